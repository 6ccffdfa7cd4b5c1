"""Parameter and Buffer, classes of tensors that modules register, and UninitializedParameter and UninitializedBuffer.

Parameters are trained, and buffers are other state of a module. Operations treat a Parameter like any Tensor. A module
registers a Parameter when the Parameter is assigned as an attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..compat.module_names import shown_in
from ..compat.pickle_names import pickled_as
from ..core.tensor import Tensor, TensorMeta, leaf_sharing_memory
from ..core.torch_function import DISABLED
from ..dispatch.operand_promotion import PLAIN
from ..dispatch.transform_tensor import TransformTensor, WrapperTensor
from ..operations.creation.conversion import numpy_array_of
from ..operations.creation.factory import empty
from ..operations.tensor_protocols import rebuild as rebuild_tensor

DETACHED = (
    "Creating a Parameter from an instance of type {} requires that detach() returns an instance of the same type, but "
    "return type {} was found instead. To use the type as a Parameter, please correct the detach() semantics defined by "
    "its __torch_dispatch__() implementation."
)


class _ParameterMeta(TensorMeta):
    """Metaclass of Parameter: ``isinstance(x, Parameter)`` is true for each tensor ``x`` whose ``_is_param`` is true.

    This is needed if ``data`` is an instance of a user-defined subclass of Tensor: ``Parameter(data)`` then returns an
    instance of this subclass, in which it sets ``_is_param`` to true.
    """

    def __instancecheck__(cls, instance: Any) -> bool:  # noqa: N805 - of a metaclass
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """Tensor that a module registers as a parameter when the tensor is assigned to an attribute of the module.

    The parameter shares the storage of ``data`` and is detached from the graph of ``data``. If ``requires_grad`` is
    true (the default), the parameter requires a gradient.

    >>> from retrograd import nn, tensor
    >>> nn.Parameter(tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()
    __module__ = shown_in("torch.nn.parameter", __name__)
    __torch_function__ = DISABLED
    _is_param = True

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty(0)
        if type(data) in PLAIN:
            return leaf_sharing_memory(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            data = data.detach()
        elif isinstance(data, TransformTensor) and not data._run.strict:
            return leaf_sharing_memory(cls, data.stored(), requires_grad)
        created = data.detach()._set_requires_grad(requires_grad)
        if type(created) is not type(data):
            raise RuntimeError(DETACHED.format(type(data).__name__, type(created).__name__))
        created._is_param = True
        return created

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, **contents: Any) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self, **contents)

    def __reduce_ex__(self, protocol: Any) -> Any:
        cls = None if self.__class__ is Parameter else self.__class__
        array = self._array if self.is_meta else numpy_array_of(self)
        return rebuild, (cls, array, self.requires_grad, self.__dict__, str(self.device))


@pickled_as("parameter")
def rebuild(cls: Any, array: Any, requires_grad: bool, attributes: dict[str, Any], place: str) -> Any:
    """Return a parameter rebuilt from a pickle; this function is called when the pickle is loaded.

    ``cls`` is the class of the parameter, or None for Parameter itself. ``array`` is a NumPy array of the elements,
    ``attributes`` the ``__dict__`` of the parameter, and ``place`` the name of the device.
    """
    created = leaf_sharing_memory(cls or Parameter, rebuild_tensor(None, array, False, {}, place), requires_grad)
    created.__dict__.update(attributes)
    return created


PLAIN.add(Parameter)


class _BufferMeta(TensorMeta):
    """Metaclass of Buffer: ``isinstance(x, Buffer)`` is true for each tensor ``x`` whose ``_is_buffer`` is true."""

    def __instancecheck__(cls, instance: Any) -> bool:  # noqa: N805 - of a metaclass
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """Tensor that a module registers as a buffer when the tensor is assigned to an attribute of the module.

    If ``persistent`` is true, the buffer is part of the ``state_dict`` of the module.

    >>> from retrograd import nn, ones
    >>> module = nn.Module()
    >>> module.count = nn.Buffer(ones(1))
    >>> list(module.state_dict())
    ['count']
    """

    __slots__ = ()
    __module__ = shown_in("torch.nn.parameter", __name__)
    __torch_function__ = DISABLED

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty(0)
        created = data.detach()._set_requires_grad(data.requires_grad)
        created.persistent = persistent
        created._is_buffer = True
        return created


# -- Uninitialized parameters and buffers ----------------------------------------------------------------------------


class UninitializedTensorMixin(WrapperTensor):
    """Tensor whose shape is not known yet; :meth:`materialize` sets the shape and allocates the storage."""

    __slots__ = ()
    __module__ = shown_in("torch.nn.parameter", __name__)
    level = 1 << 30  # above the level of every transform: all operations reach `process`
    cls_to_become: Any = Tensor

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Allocate the tensor in place with shape ``shape`` and uninitialised values.

        ``device`` and ``dtype`` are by default the device and dtype of the uninitialized tensor.
        """
        self.data = empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raise RuntimeError, because the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        """Raise RuntimeError, because no storage is allocated yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        """Execute the operation ``op`` on this tensor; only conversions to a dtype or device are possible.

        Every operation that is applied to this tensor calls this method. ``op.name`` is ``"to_dtype"`` or
        ``"to_device"``, and ``params`` contains the dtype or the device; the result is the converted tensor. Raises
        ValueError for all other operations, because this tensor has no shape yet. ``in_place`` is used only for the
        error message.
        """
        if op.name in ("to_dtype", "to_device"):
            return self.data.to(*params)
        raise _uninitialized_error(op.name.removesuffix("_block").removesuffix("_all") + "_" * in_place)

    def __repr__(self, **contents: Any) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unmade, (type(self).__name__, self.requires_grad, str(self.device), self.dtype, self.__dict__)

    def described(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the pair ``(class, arguments)`` that ``torch.save`` stores.

        ``class(*arguments)`` rebuilds the tensor.
        """
        return type(self), (self.requires_grad,)


def _uninitialized_error(name: str) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in <method '{name}' of 'torch._C.TensorBase' objects>. This error "
        "happens when you are using a `LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` "
        "objects. When using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
        "torch functions"
    )


def _raising_method(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise _uninitialized_error(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise ValueError, because the tensor is not initialised yet."
    return refuse


for _name in ("numel", "nelement", "dim", "__len__", "detach", "stride", "is_contiguous", "data_ptr"):
    setattr(UninitializedTensorMixin, _name, _raising_method(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """Parameter whose shape is not known yet. Lazy modules have uninitialized parameters before their first call.

    >>> from retrograd import nn
    >>> weight = nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', torch.Size([2, 3]))
    """

    __slots__ = ()
    __module__ = shown_in("torch.nn.parameter", __name__)
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return leaf_sharing_memory(cls, empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin):
    """Buffer whose shape is not known yet. Lazy modules have uninitialized buffers before their first call.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> buffer = nn.UninitializedBuffer()
    >>> buffer.materialize((2, 3))
    >>> buffer.shape
    torch.Size([2, 3])
    """

    __slots__ = ()
    __module__ = shown_in("torch.nn.parameter", __name__)
    _is_buffer = True

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        created: Any = leaf_sharing_memory(cls, empty(0, device=device, dtype=dtype), requires_grad)
        created.persistent, created._is_buffer = persistent, True
        return created


@pickled_as("uninitialized")
def _unmade(kind: str, requires_grad: bool, device: str, dtype: Any, attributes: dict[str, Any]) -> Any:
    """Return an uninitialized parameter or buffer rebuilt from a pickle; called when the pickle is loaded.

    ``kind`` is ``"UninitializedParameter"`` or ``"UninitializedBuffer"``, and ``attributes`` is the ``__dict__`` of the
    tensor.
    """
    cls = UninitializedParameter if kind == "UninitializedParameter" else UninitializedBuffer
    created = cls(requires_grad, device, dtype)
    created.__dict__.update(attributes)
    return created


def is_lazy(param: Any) -> bool:
    """Return whether ``param`` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]
