"""The class ``Tensor``: an array, its edge in the graph, its version counter and its base if it is a view.

This module has the data and properties of a tensor; ``operations/tensor_methods.py`` adds the operations. The fields:

``_array``            elements, as a ``numpy.ndarray`` or ``cupy.ndarray``, also for a 0-d tensor
``_grad_edge``        gradient edge: Node, OutputEdge, AccumulateGrad of a leaf, or None if no gradient is required
``_counter``          version counter ``[version, location of the last modification]``, one list for all tensors that
                      share memory; None until it is needed (most results are never saved, viewed or modified, and
                      a list takes 50 ns), and an empty tuple for inference tensors
``_version_counter``  property that creates the counter if necessary; None for inference tensors
``_view``             base of a view (never itself a view), or None
``_view_version``     for a view: version of the memory when its edge was last set
``_creation_meta``    for a view: mode or kind of operation that created it (see ``views``)
``_grad``             gradient: None, an array (until the program reads ``grad``) or a Tensor
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from ..compat.lazy_imports import load_part
from ..compat.missing_names import without_unsupported
from ..compat.module_names import shown_in
from ..compat.pickle_names import pickled_as
from ..compat.type_names import type_name
from ..runtime.user_frame import strip_frames, strips_frames, warn
from . import devices, dtypes, torch_function
from .devices import device
from .dtypes import dtype
from .error_context import with_remedy
from .grad_mode import in_inference
from .graph import AccumulateGrad, Handle, HookList, Node, OutputEdge, dead_ref, hooks_of, note_other_shape
from .size import Size, size_of
from .torch_function import GO_ON, HANDLERS, OVERRIDING, intercepted

if TYPE_CHECKING:
    from .typing import Array, Edge, Intercepted, Shape, VersionCounter

new = object.__new__


class layout:
    """Layout of a tensor's elements in memory: ``torch.strided`` or, of sparse tensors, ``torch.sparse_coo`` and others.

    >>> import retrograd as torch
    >>> torch.zeros(2).layout, torch.eye(2).to_sparse().layout
    (torch.strided, torch.sparse_coo)
    """

    __slots__ = ("name",)
    __module__ = shown_in("torch", __name__)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:  # Note [Any in public signatures]
        return layout_named, (self.name,)


class memory_format(layout):
    """Order of the elements in memory: ``torch.contiguous_format`` and others.

    >>> import retrograd as torch
    >>> torch.zeros(1, 2, 3, 4).contiguous(memory_format=torch.channels_last).stride()
    (24, 1, 8, 2)
    """

    __slots__ = ()
    __module__ = shown_in("torch", __name__)


@pickled_as("layout")
def layout_named(name: str) -> layout:
    """Return the layout or memory format called ``name``, such as ``strided``; pickles call this function."""
    return globals()[name]


class sparse_layout(layout):
    """Layout of sparse tensors; a class of its own, so that the argument checks of functions that create tensors see it."""

    __slots__ = ()
    __module__ = shown_in("torch", __name__)


sparse_layout.__name__ = sparse_layout.__qualname__ = "layout"
strided: layout = layout("strided")
sparse_coo: layout = sparse_layout("sparse_coo")
sparse_csr: layout = sparse_layout("sparse_csr")
sparse_csc: layout = sparse_layout("sparse_csc")
contiguous_format: memory_format = memory_format("contiguous_format")
preserve_format: memory_format = memory_format("preserve_format")
channels_last: memory_format = memory_format("channels_last")
channels_last_3d: memory_format = memory_format("channels_last_3d")


class TensorMeta(type):
    """Metaclass of Tensor, whose ``dir()`` omits the names that raise: attributes of PyTorch's that are left out."""

    __module__ = shown_in("torch._C", __name__)

    def __dir__(cls) -> list[str]:
        return without_unsupported(cls, type.__dir__(cls))


TensorMeta.__name__ = TensorMeta.__qualname__ = "_TensorMeta"


class Tensor(metaclass=TensorMeta):
    """Multidimensional array that records the operations that computed it, so that it can be differentiated.

    Create a tensor by :func:`retrograd.tensor` or another factory function; ``Tensor(2, 3)`` and ``Tensor([1, 2])`` are
    PyTorch's legacy constructors. See https://docs.pytorch.org/docs/stable/tensors.html.

    >>> import retrograd as torch
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> x.shape, x.dtype
    (torch.Size([2, 2]), torch.float32)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_counter",
        "_creation_meta",
        "_frozen_edge",
        "_grad",
        "_grad_edge",
        "_view",
        "_view_version",
    )
    __module__ = shown_in("torch", __name__)

    _array: Array
    _counter: VersionCounter | tuple[()] | None
    _grad: Array | Tensor | None
    _grad_edge: Edge | None
    _view: Tensor | None
    _view_version: int
    _creation_meta: int
    _frozen_edge: AccumulateGrad | None
    _construct: ClassVar[Callable[..., Tensor]]  # PyTorch's legacy constructor; set by operations/creation/factory.py
    _instance_of: ClassVar[Callable[..., Tensor]]  # as_subclass; set by operations/creation/conversion.py
    _current: ClassVar[Callable[..., Edge | None]]  # current_edge; set by views.py
    _in_transform: ClassVar[Callable[[], bool]]  # whether torch.func transforms the caller; set by transform_tensor.py

    if TYPE_CHECKING:  # installed by operations/tensor_methods.py

        def __getattr__(self, name: str) -> Any: ...  # Note [Any by attribute name]
        def __add__(self, other: object) -> Tensor: ...
        def __radd__(self, other: object) -> Tensor: ...
        def __sub__(self, other: object) -> Tensor: ...
        def __rsub__(self, other: object) -> Tensor: ...
        def __mul__(self, other: object) -> Tensor: ...
        def __rmul__(self, other: object) -> Tensor: ...
        def __truediv__(self, other: object) -> Tensor: ...
        def __rtruediv__(self, other: object) -> Tensor: ...
        def __matmul__(self, other: object) -> Tensor: ...
        def __pow__(self, other: object) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __getitem__(self, index: object) -> Tensor: ...
        def __setitem__(self, index: object, value: object) -> None: ...
        def __lt__(self, other: object) -> Tensor: ...
        def __le__(self, other: object) -> Tensor: ...
        def __gt__(self, other: object) -> Tensor: ...
        def __ge__(self, other: object) -> Tensor: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __iter__(self) -> Iterator[Tensor]: ...

    @strips_frames
    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:  # Note [Any in public signatures]
        return Tensor._construct(cls, *args, **kwargs)

    def __init_subclass__(cls, **named: Any) -> None:  # Note [Any in public signatures]
        super().__init_subclass__(**named)
        if (
            cls.__torch_dispatch__ is not Tensor.__torch_dispatch__
            and getattr(cls.__torch_function__, "__func__", None) is Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
        ):
            cls.__torch_function__ = torch_function.DISABLED  # type: ignore[method-assign]
        torch_function.register_class(cls)

    @classmethod  # Note [Any in public signatures]
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return ``func(*args, **kwargs)``, with tensors in the result converted to instances of ``cls``.

        ``types`` are the classes of the arguments that have a ``__torch_function__``. The result is NotImplemented if
        one of them is not a base class of ``cls``.

        Subclasses override this method. An override calls ``super().__torch_function__`` for functions that it does not
        change.
        """
        if types != (cls,) and not all(issubclass(cls, each) for each in types):
            return NotImplemented
        result = torch_function.call_without_overrides(func, args, kwargs or {})
        plain = cls is Tensor or (func.__class__ is not FunctionType and func in Tensor._unwrapped())
        return result if plain else _instances(result, cls)

    @classmethod
    def _unwrapped(cls) -> set[object]:
        """Return the getters of ``grad`` and ``_base``, whose results keep their class.

        :meth:`__torch_function__` converts the tensors that other functions return to a subclass of Tensor.
        """
        return {vars(Tensor)[name].__get__ for name in ("grad", "_base")}

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: object = False) -> Tensor:
        """Return a leaf of class ``cls`` that shares the memory of ``data`` but is not part of the graph.

        If ``require_grad`` is true, the leaf requires gradients.
        """
        if cls.__torch_dispatch__ is not Tensor.__torch_dispatch__:
            load_part("python_dispatch.calls").activate()
        return leaf_sharing_memory(cls, data, require_grad)

    @staticmethod  # Note [Any in public signatures]
    def _make_wrapper_subclass(cls: type[Tensor], size: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return a tensor of class ``cls`` that has a shape and a dtype and no memory (``torch.utils._python_dispatch``)."""
        made: Tensor = load_part("python_dispatch.subclasses").make_wrapper_subclass(cls, size, *args, **kwargs)
        return made

    @staticmethod  # Note [Any in public signatures]
    def __torch_dispatch__(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return ``func(*args, **kwargs)``, computed without the ``__torch_dispatch__`` of classes."""
        return load_part("python_dispatch.calls").without_classes(func, types, args, kwargs)

    def _repr_html_(self) -> str | None:
        """Return the text of the tensor with a heat map, which notebooks show (``inspection/notebook.py``), or None."""
        made: str | None = load_part("inspection.notebook").tensor_html(self)
        return made

    @property
    def _version_counter(self) -> VersionCounter | None:
        counter = self._counter
        if counter is None:
            counter = self._counter = [0, None]
        return counter or None

    @_version_counter.setter
    def _version_counter(self, counter: VersionCounter | None) -> None:
        self._counter = () if counter is None else counter

    # -- shape and memory

    @property
    def shape(self) -> Size:
        """Size of every dimension.

        >>> import retrograd as torch
        >>> torch.zeros(2, 3).shape
        torch.Size([2, 3])
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("shape", self)) is not GO_ON:
            return answer
        return size_of(Size, self._array.shape)

    def size(self, dim: int | None = None, **names: int) -> Any:  # Note [Any in public signatures]
        """Return the shape, or the size of dimension ``dim``.

        >>> import retrograd as torch
        >>> x = torch.zeros(2, 3)
        >>> x.size(), x.size(1)
        (torch.Size([2, 3]), 3)
        """
        if names:
            if dim is not None or names.keys() != {"axis"}:
                raise TypeError(f"size() got an unexpected keyword argument '{next(iter(names))}'")
            return self.size(names["axis"])
        if HANDLERS or OVERRIDING:
            given = () if dim is None else (dim,)
            if (answer := intercepted(Tensor.size, self, *given)) is not GO_ON:
                return answer
        if dim is None:
            return size_of(Size, self._array.shape)
        try:
            return self._array.shape[normalize_dim(dim, self._array.ndim)]
        except TypeError:
            raise TypeError(f"size(): argument 'dim' (position 1) must be int, not {type_name(dim)}") from None
        except IndexError as error:
            raise strip_frames(error) or error from None

    def stride(self, dim: int | None = None) -> Any:  # Note [Any in public signatures]
        """Return the strides in elements, or the stride of dimension ``dim``.

        >>> import retrograd as torch
        >>> x = torch.zeros(2, 3)
        >>> x.stride(), x.T.stride()
        ((3, 1), (1, 3))
        """
        strides = element_strides(self._array)
        try:
            return strides if dim is None else strides[normalize_dim(dim, len(strides))]
        except IndexError as error:
            raise strip_frames(error) or error from None

    def storage_offset(self) -> int:
        """Return the offset of the first element in the tensor's memory, in elements.

        >>> import retrograd as torch
        >>> torch.arange(5)[2:].storage_offset()
        2
        """
        return offset_in_memory(self._array)

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        >>> import retrograd as torch
        >>> torch.zeros(2, 3).ndim
        2
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("ndim", self)) is not GO_ON:
            return answer
        return self._array.ndim

    def dim(self) -> int:
        """Return the number of dimensions.

        >>> import retrograd as torch
        >>> torch.zeros(2, 3).ndimension()
        2
        """
        if (HANDLERS or OVERRIDING) and (answer := intercepted(Tensor.dim, self)) is not GO_ON:
            return answer
        return self._array.ndim

    def numel(self) -> int:
        """Return the number of elements.

        >>> import retrograd as torch
        >>> torch.zeros(2, 3).nelement()
        6
        """
        return self._array.size

    nelement = numel
    ndimension = dim

    def element_size(self) -> int:
        """Return the number of bytes per element.

        >>> import retrograd as torch
        >>> torch.zeros(2, dtype=torch.float64).element_size()
        8
        """
        return self._array.itemsize

    @property
    def itemsize(self) -> int:
        """Number of bytes per element.

        >>> import retrograd as torch
        >>> torch.zeros(2, dtype=torch.float64).itemsize
        8
        """
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Number of bytes of all elements.

        >>> import retrograd as torch
        >>> torch.zeros(2, 3).nbytes
        24
        """
        return self._array.nbytes

    @property
    def dtype(self) -> dtype:
        """Data type of the elements.

        >>> import retrograd as torch
        >>> torch.tensor([1, 2]).dtype
        torch.int64
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("dtype", self)) is not GO_ON:
            return answer
        return dtypes.dtype_of(self._array.dtype)

    @property
    def device(self) -> device:
        """Device of the memory.

        >>> import retrograd as torch
        >>> torch.zeros(2).device
        device(type='cpu')
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("device", self)) is not GO_ON:
            return answer
        return devices.device_of(self._array)

    @property
    def layout(self) -> layout:
        """Layout of the memory: ``torch.strided``, or that of a sparse tensor.

        >>> import retrograd as torch
        >>> torch.zeros(2).layout
        torch.strided
        """
        return strided

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers.

        >>> import retrograd as torch
        >>> torch.tensor([1.0]).is_floating_point(), torch.tensor([1]).is_floating_point()
        (True, False)
        """
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers.

        >>> import retrograd as torch
        >>> torch.tensor([1j]).is_complex()
        True
        """
        return self.dtype.is_complex

    def is_contiguous(self, *, memory_format: Any = contiguous_format) -> bool:  # Note [Any in public signatures]
        """Whether the elements are stored without gaps in the order of ``memory_format``.

        >>> import retrograd as torch
        >>> x = torch.zeros(2, 3)
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
        if memory_format is channels_last or memory_format is channels_last_3d:
            array = self._array
            return array.ndim == (4 if memory_format is channels_last else 5) and bool(
                channels_last_view(array).flags.c_contiguous
            )
        return bool(self._array.flags.c_contiguous)

    def data_ptr(self) -> int:
        """Return the address of the first element.

        >>> import retrograd as torch
        >>> x = torch.zeros(4)
        >>> x[1:].data_ptr() - x.data_ptr()  # bytes
        4
        """
        return address(self._array)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Description of the memory on a GPU for other libraries, such as Numba and CuPy, which share it.

        Raises AttributeError for a tensor on another device, and RuntimeError for one that requires gradients.
        """
        if not self.is_cuda:
            raise AttributeError(
                "Can't get __cuda_array_interface__ on non-CUDA tensor type: "
                f"torch.{dtypes.scalar_name(self.dtype)}Tensor If CUDA data is required use tensor.cuda() to copy tensor to "
                "device memory."
            )
        if self.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
                "var.detach() to get Variable that doesn't require grad."
            )
        array: object = self._array
        found: dict[str, object] = array.__cuda_array_interface__  # type: ignore[attr-defined]
        return found

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether the memory is on the CPU."""
        return self.device.type == "cpu"

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is ``torch.sparse_coo``."""
        return False

    @property
    def is_quantized(self) -> bool:
        """False: quantized tensors are not supported."""
        return False

    @property
    def is_meta(self) -> bool:
        """Whether there are no elements, only a layout."""
        return devices.is_meta(self._array)

    @property
    def is_mkldnn(self) -> bool:
        """False: the layout of MKL-DNN is not supported."""
        return False

    @property
    def is_mps(self) -> bool:
        """False: the device MPS is not supported."""
        return False

    @property
    def is_xpu(self) -> bool:
        """False: the device XPU is not supported."""
        return False

    @property
    def is_ipu(self) -> bool:
        """False: the device IPU is not supported."""
        return False

    @property
    def is_maia(self) -> bool:
        """False: the device MAIA is not supported."""
        return False

    @property
    def is_mtia(self) -> bool:
        """False: the device MTIA is not supported."""
        return False

    @property
    def is_vulkan(self) -> bool:
        """False: the device Vulkan is not supported."""
        return False

    @property
    def is_xla(self) -> bool:
        """False: the device XLA is not supported."""
        return False

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is ``torch.sparse_csr``."""
        return False

    @property
    def grad_dtype(self) -> dtypes.dtype:
        """Dtype of the gradient: that of the tensor."""
        return self.dtype

    @property
    def name(self) -> None:
        """None: a tensor has no name."""
        return None

    @property
    def is_nested(self) -> bool:
        """False: nested tensors are not supported."""
        return False

    # -- the graph

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded, so that gradients can be computed.

        >>> import retrograd as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> (x * 2).requires_grad
        True
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("requires_grad", self)) is not GO_ON:
            return answer
        edge, base = self._grad_edge, self._view
        if base is None or (edge is not None and edge.variable_ref is not dead_ref):
            return edge is not None
        return base._grad_edge is not None and self._array.dtype.kind in "fcVW"  # a view that is not recorded

    @requires_grad.setter
    def requires_grad(self, value: object) -> None:
        if value.__class__ is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if not _without_node(self):
            text = "you can only change requires_grad flags of leaf variables." + (value is False) * DETACHED
            raise RuntimeError(with_remedy(text, "detach() it", self._grad_edge))
        if value and self.dtype.category < dtypes.FLOATING:
            text = "only Tensors of floating point and complex dtype can require gradients"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()"))
        self._set_requires_grad(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: Any = True) -> Tensor:  # Note [Any in public signatures]
        """Set :attr:`requires_grad` in place and return the tensor.

        Raises RuntimeError for a tensor of integers or booleans, and for False on a tensor that is not a leaf.

        >>> import retrograd as torch
        >>> torch.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        if requires_grad.__class__ is not bool:
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if Tensor._in_transform():
            raise RuntimeError(with_remedy(REQUIRES_GRAD_IN_TRANSFORM, "use torch.func.grad within"))
        return self._set_requires_grad(requires_grad)

    def _set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        """Set :attr:`requires_grad` as :meth:`requires_grad_` does, also inside of a transform such as vmap."""
        edge = self._grad_edge
        unrecorded = (
            edge.variable_ref is dead_ref if edge.__class__ is AccumulateGrad else edge is None and requires_grad
        )
        if requires_grad == self.requires_grad and not unrecorded:
            return self
        if not requires_grad:
            if not _without_node(self):
                text = "you can only change requires_grad flags of leaf variables." + DETACHED
                raise RuntimeError(with_remedy(text, "detach() it", self._grad_edge))
            _freeze(self)
            return self
        if self.dtype.category < dtypes.FLOATING:
            text = f"only Tensors of floating point dtype can require gradients. This one is of {self.dtype}"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()"))
        if self._version_counter is None and not in_inference():
            raise RuntimeError(with_remedy(LEAF_OF_INFERENCE, "clone() it first, or make it under torch.no_grad()"))
        self._grad_edge = getattr(self, "_frozen_edge", None)
        self._frozen_edge = None
        if self._grad_edge is None:
            self._grad_edge = AccumulateGrad(self, self._array, self._version_counter)
        else:
            self._grad_edge.cell = self._version_counter
            self._renew_leaf()
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is a leaf of the graph, that is, not the result of a recorded operation.

        >>> import retrograd as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("is_leaf", self)) is not GO_ON:
            return answer
        node = self._grad_edge if self._view is None else Tensor._current(self, True)
        return node is None or node.__class__ is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """Graph node that computed this tensor; None for a leaf.

        >>> import retrograd as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (x**2).grad_fn.name()
        'PowBackward0'
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("grad_fn", self)) is not GO_ON:
            return answer
        node = self._grad_edge if self._view is None else Tensor._current(self, True)
        if node is None or node.__class__ is AccumulateGrad:
            return None
        return node.node  # type: ignore[return-value]  # not a leaf

    @property
    def _grad_fn(self) -> Node | None:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def _backward_hooks(self) -> HookList | None:
        edge = self._grad_edge
        held: HookList | None = self.__dict__.get("_backward_hooks")
        return edge.hooks.tensor or held if edge is not None and edge.hooks is not None else held

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: HookList | None) -> None:
        edge = self._grad_edge
        if edge is None or edge.hooks is None:
            self.__dict__["_backward_hooks"] = hooks
            return
        registered = edge.hooks.tensor
        for key in [*registered]:
            if key != edge.hooks.retaining:
                del registered[key]
        registered.update(hooks or {})

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def output_nr(self) -> int:
        """Index of this tensor among the results of its node.

        >>> import retrograd as torch
        >>> first, second = torch.ones(2, requires_grad=True).unbind()
        >>> second.output_nr
        1
        """
        return 0 if self._grad_edge is None else self._grad_edge.position

    @property
    def grad(self) -> Tensor | None:
        """Gradient accumulated by backward passes, or None.

        Only leaves that require gradients, and tensors that retain their gradient (see :meth:`retain_grad`), have a
        gradient.

        >>> import retrograd as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (x**2).backward()
        >>> x.grad
        tensor(6.)
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("grad", self)) is not GO_ON:
            return answer
        grad = self._grad
        if grad is None:
            if not _without_node(self) and not self.retains_grad:
                warn(NOT_A_LEAF)
            return None
        if not isinstance(grad, Tensor):
            grad = self._grad = wrap(grad)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        try:
            if value is not None:
                self._check_grad(value)
        except Exception as error:
            raise strip_frames(error) or error from None
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, value: object) -> None:
        """Raise PyTorch's error if ``value`` cannot be assigned to ``grad`` of this tensor."""
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {_short(value)}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.cpp_name(value.dtype)}' to a tensor with grad_dtype "
                f"'{dtypes.scalar_name(self.dtype)}'. The gradient must match the tensor's grad_dtype (defaults to the "
                "tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow "
                "any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
                "downstream systems that assume they match."
                + with_remedy("", f"convert the gradient to {self.dtype}", self._grad_edge, "The tensor is")
            )
        if value.device.type != self.device.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if value._array.shape != self._array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
                f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size."
                + with_remedy("", "give a gradient of the tensor's shape", self._grad_edge, "The tensor is")
            )

    @property
    def retains_grad(self) -> bool:
        """Whether a tensor that is not a leaf retains its gradient in :attr:`grad` (see :meth:`retain_grad`).

        >>> import retrograd as torch
        >>> y = torch.ones(2, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        node = self._grad_edge
        return not _without_node(self) and node.hooks is not None and node.hooks.retaining is not None  # type: ignore[union-attr]

    def retain_grad(self) -> None:
        """Retain the gradient of this tensor in :attr:`grad`, as a leaf does.

        This method registers a hook that stores the gradient. Hooks run in the order of registration, so the retained
        gradient includes the changes by hooks registered before (see ``autograd.graph.set_retain_grad_last`` for
        PyTorch 2's order).

        >>> import retrograd as torch
        >>> y = torch.tensor(3.0, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> (y**2).backward()
        >>> y.grad
        tensor(12.)
        """
        if not self.requires_grad:
            raise RuntimeError(with_remedy("can't retain_grad on Tensor that has requires_grad=False", REQUIRE))
        if _without_node(self) or self.retains_grad:
            return
        hooks = hooks_of(Tensor._current(self))  # type: ignore[arg-type]
        key, Handle.next_id = Handle.next_id, Handle.next_id + 1
        retain = Retain(self)
        try:
            hooks.tensor[key] = retain
            hooks.retaining = key
        except KeyboardInterrupt:
            hooks.tensor[key] = retain
            hooks.retaining = key
            raise

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Register ``hook(grad)``, which is called when this tensor's gradient is computed.

        A Tensor that the hook returns replaces the gradient. Returns a handle whose ``remove()`` removes the hook.

        >>> import retrograd as torch
        >>> v = torch.tensor([0.0, 0.0], requires_grad=True)
        >>> h = v.register_hook(lambda grad: grad * 2)
        >>> v.backward(torch.tensor([1.0, 2.0]))
        >>> v.grad
        tensor([2., 4.])
        """
        if (HANDLERS or OVERRIDING) and (answer := intercepted(Tensor.register_hook, self, hook)) is not GO_ON:
            return answer
        if not self.requires_grad:
            raise RuntimeError(with_remedy("cannot register a hook on a tensor that doesn't require gradient", REQUIRE))
        node = self._grad_edge if self._view is None else Tensor._current(self)
        # A view that was not recorded gets no gradient, so its hooks are never called.
        if node.variable_ref is dead_ref:  # type: ignore[union-attr]
            return Handle(HookList(), hook)
        hooks = hooks_of(node)  # type: ignore[arg-type]
        return Handle((hooks.earlier or hooks).tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Register ``hook(leaf)``, called after a gradient has been accumulated in the ``grad`` of this leaf.

        >>> import retrograd as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x**2).backward()
        tensor(6.)
        """
        if not self.requires_grad:
            raise RuntimeError(with_remedy("cannot register a hook on a tensor that doesn't require gradient", REQUIRE))
        if not self.is_leaf:
            text = "post accumulate grad hooks cannot be registered on non-leaf tensors"
            raise RuntimeError(with_remedy(text, "use register_hook, or retain_grad()", self._grad_edge))
        return Handle(hooks_of(self._grad_edge).own("accumulated"), hook)  # type: ignore[arg-type]

    @property
    def data(self) -> Tensor:
        """Tensor that shares the memory of this tensor, outside the graph and with its own version counter.

        >>> import retrograd as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.data
        tensor([1., 1.])
        """
        if (HANDLERS or OVERRIDING) and (answer := _intercepted_read("data", self)) is not GO_ON:
            return answer
        out = wrap(self._array)
        out._version_counter = None if self._version_counter is None else [0, None]
        return out

    @data.setter
    def data(self, value: object) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {_short(value)}")
        if self._grad_edge is not None and value.dtype.category < dtypes.FLOATING:
            text = "data set to a tensor that requires gradients must be floating point or complex dtype"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()", self._grad_edge, "The tensor is"))
        self._array = value._array
        self._renew_leaf()

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _renew_leaf(self, anew: bool = False) -> None:
        """Update the AccumulateGrad of this leaf after its array has been replaced, for example through ``data``.

        If the new array has another dtype, or ``anew`` is true and it has another shape, the leaf gets a new
        AccumulateGrad. Graphs that were recorded before keep the old one. Otherwise, if the shape is another, an
        AccumulateGrad that is part of a graph keeps the old shape, as in PyTorch: a gradient is reduced to it, and then
        expanded to the shape of the leaf.
        """
        unused = _references_to_edge(self) <= _UNUSED
        edge = self._grad_edge
        if edge.__class__ is not AccumulateGrad:
            return
        if edge.dtype != self._array.dtype or (anew and edge.shape != self._array.shape):
            note_other_shape()  # the gradients of old graphs have the old shape
            self._grad_edge = AccumulateGrad(self, self._array, self._version_counter)
            self._grad_edge.hooks = edge.hooks
            return
        edge.array = self._array
        if edge.shape != self._array.shape:
            if unused:
                edge.shape = self._array.shape
            else:
                note_other_shape()

    def detach(self) -> Tensor:
        """Return a tensor that shares the memory of this tensor and is not part of the graph.

        >>> import retrograd as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> (x * 2).detach().requires_grad
        False
        """
        if (HANDLERS or OVERRIDING) and (answer := intercepted(Tensor.detach, self)) is not GO_ON:
            return answer
        out = wrap(self._array)
        out._version_counter = self._version_counter
        return out

    def detach_(self) -> Tensor:
        """Detach this tensor from the graph in place: it becomes a leaf that requires no gradient.

        In inference mode nothing is changed.

        >>> import retrograd as torch
        >>> x = torch.ones(2, requires_grad=True) * 2
        >>> x.detach_()
        tensor([2., 2.])
        >>> x.is_leaf
        True
        """
        if in_inference():
            return self
        if self._view is not None:
            raise RuntimeError(with_remedy(DETACH_VIEW, "use detach()", self._grad_edge))
        _freeze(self)
        return self

    @property
    def _version(self) -> int:
        """Number of in-place modifications of the tensor's memory."""
        if self._version_counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._version_counter[0]

    @property
    def _base(self) -> Tensor | None:
        """Tensor that this view shares its memory with, or None if this tensor is not a view."""
        return self._view

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        """Whether the tensor was created in :class:`inference_mode`.

        >>> import retrograd as torch
        >>> with torch.inference_mode():
        ...     x = torch.zeros(2)
        >>> x.is_inference()
        True
        """
        return self._version_counter is None

    def __hash__(self) -> int:
        return id(self)


def _intercepted_read(name: str, x: Tensor) -> Intercepted:
    """Return the value of the property ``name`` of ``x`` that a ``__torch_function__`` handler computes instead.

    The result is the constant ``GO_ON`` if no handler overrides the property.
    """
    if not HANDLERS and x.__class__ is Tensor:  # classes with a __torch_function__ exist, but ``x`` is of none of them
        return GO_ON
    return intercepted(vars(Tensor)[name].fget, x)


def wrap(array: Array) -> Tensor:
    """Return a Tensor of ``array`` that has no gradient edge and is not a view."""
    out: Tensor = new(Tensor)
    out._array = array
    out._grad_edge = None
    out._counter = () if in_inference() else None
    out._view = None
    out._grad = None
    return out


def at_edge(array: Array, counter: VersionCounter | None, edge: Edge | None) -> Tensor:
    """Return a Tensor of ``array`` with the version counter ``counter`` and the gradient edge ``edge``.

    ``counter`` is None for an inference tensor. The backward pass uses this function to restore the tensors that a node
    has saved, of which the node only stores the arrays.
    """
    out: Tensor = new(Tensor)
    out._array = array
    out._grad_edge = edge
    out._version_counter = counter
    out._view = None
    out._grad = None
    return out


def leaf_from_array(array: Array) -> Tensor:
    """Return a Tensor of ``array`` that is a leaf and requires gradients."""
    if array.dtype.kind not in "fcVW":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    out = wrap(array)
    if in_inference():
        return out._set_requires_grad()
    counter = out._counter = [0, None]
    out._grad_edge = AccumulateGrad(out, array, counter)
    return out


def _freeze(x: Tensor) -> None:
    """Detach ``x`` from the graph, so that ``x`` requires no gradient.

    If ``x`` is a leaf, its AccumulateGrad is kept in the attribute ``_frozen_edge``, because hooks and recorded graphs
    refer to it. A later call of ``requires_grad_()`` uses this AccumulateGrad again. If ``x`` was computed by a node,
    ``_frozen_edge`` is set to None.
    """
    edge = x._grad_edge
    if edge.__class__ is AccumulateGrad and edge.variable_ref is not dead_ref:
        edge.variable_ref = weakref.ref(x)
        x._frozen_edge = edge
    elif edge is not None:
        x._frozen_edge = None
    x._grad_edge = None


def leaf_sharing_memory(cls: type, data: Tensor, requires_grad: object, function: str = "_make_subclass") -> Tensor:
    """Return a leaf of class ``cls`` that shares memory and version counter with ``data``.

    If ``requires_grad`` is true, the leaf requires gradients. ``function`` is the name of the public function in error
    messages.
    """
    if requires_grad.__class__ is not bool:
        kind = type(requires_grad).__name__
        raise TypeError(f"{function}(): argument 'require_grad' (position 3) must be bool, not {kind}")
    if requires_grad and data._array.dtype.kind not in "fcVW":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    out: Tensor = new(cls)
    out._array, out._version_counter = data._array, data._version_counter
    out._grad_edge = out._view = out._grad = None
    if requires_grad:
        if out._version_counter is None and not in_inference():
            raise RuntimeError(LEAF_OF_INFERENCE)
        out._grad_edge = AccumulateGrad(out, out._array, out._version_counter)
    return out


def _instances(result: object, cls: type[Tensor]) -> object:
    """Return ``result`` with all tensors, also those in tuples and lists, converted to instances of ``cls``."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else Tensor._instance_of(result, cls)
    if isinstance(result, (tuple, list)) and result.__class__ is not Size:
        return type(result)([_instances(each, cls) for each in result])
    return result


def _remake(accumulate: AccumulateGrad) -> Tensor:
    """Return a new leaf in place of the deleted leaf of ``accumulate``, with the same array."""
    out = at_edge(accumulate.array, accumulate.cell, accumulate)
    out._grad = accumulate.grad
    accumulate.variable_ref = weakref.ref(out)
    return out


AccumulateGrad.remake = staticmethod(_remake)


class Retain:
    """Hook that stores a tensor's gradient in ``grad``, registered by ``Tensor.retain_grad``.

    The hook has only a weak reference to the tensor.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)

    def __call__(self, grad: Tensor) -> None:
        tensor = self.tensor()
        if tensor is not None:
            before = tensor._grad
            if before is None:
                tensor._grad = grad.clone()
            else:
                tensor._grad = tensor.grad + grad


def _references_to_edge(x: Tensor | SimpleNamespace) -> int:
    """Return the reference count of the gradient edge of ``x``; a graph that contains the edge has references to it."""
    edge = x._grad_edge
    return sys.getrefcount(edge)


#: Reference count of an edge that is part of no graph, including the references of the running function.
_UNUSED = _references_to_edge(SimpleNamespace(_grad_edge=object()))


def _without_node(x: Tensor) -> bool:
    """Whether ``x`` has no ``grad_fn``: it is a leaf, or it is not part of a graph.

    Unlike ``is_leaf``, this function does not update a view whose memory has been modified in place since its
    ``grad_fn`` was set.
    """
    return x._grad_edge is None or x._grad_edge.__class__ is AccumulateGrad


# --- Arrays and their memory ----------------------------------------------------------------------------------------


def normalize_dim(dim: int, ndim: int, *, wrap_scalar: bool = True) -> int:
    """Return the dimension ``dim`` of a tensor with ``ndim`` dimensions as a non-negative index.

    Raises PyTorch's IndexError if ``dim`` is out of range. A 0-d tensor has the dimensions 0 and -1, unless
    ``wrap_scalar`` is False.
    """
    bound = ndim or (1 if wrap_scalar else 0)
    if not -bound <= dim < bound:
        if bound == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + bound if dim < 0 else dim


def element_strides(array: Array) -> Shape:
    """Return the strides of ``array`` counted in elements, with PyTorch's values for dimensions of size 0 and 1."""
    if array.flags.c_contiguous and (1 not in array.shape if array.size else not any(array.strides)):
        return contiguous_strides(array.shape)  # NumPy's strides of an empty array are 0
    size: int = array.itemsize
    return tuple(step // size for step in array.strides)


def contiguous_strides(shape: Shape) -> Shape:
    """Return the strides, in elements, of a contiguous tensor of ``shape``."""
    strides, step = [], 1
    for size in shape[::-1]:
        strides.append(step)
        step *= size or 1
    return tuple(strides[::-1])


def memory_owner(array: Array) -> Array:
    """Return the array that owns the memory of ``array``."""
    owner = array
    while (below := owner.base) is not None:
        if not hasattr(below, "dtype"):  # as_strided inserts an object that has a base; otherwise it is a buffer
            below = getattr(below, "base", None)
            if not hasattr(below, "dtype"):
                break
        owner = below  # type: ignore[assignment]
    return owner


def share_memory(a: Array, b: Array) -> bool:
    """Whether the arrays ``a`` and ``b`` are views of the same memory (their elements need not overlap)."""
    return a is b if a.base is None and b.base is None else memory_owner(a) is memory_owner(b)


def address(array: Array) -> int:
    """Return the memory address (in bytes) of the first element of ``array``."""
    return int(array.ctypes.data if isinstance(array, numpy.ndarray) else _address_elsewhere(array))


def _address_elsewhere(array: Any) -> Any:  # of CuPy, or of no memory; Note [Any by attribute name]
    return array.offset if devices.is_meta(array) else array.data.ptr


def offset_in_memory(array: Array) -> int:
    """Return the offset of the first element of ``array`` from the start of its memory, as a number of elements."""
    return (address(array) - address(memory_owner(array))) // array.itemsize


def channels_last_view(array: Array) -> Array:
    """Return a view of ``array`` in which the channels (dimension 1) are the last dimension."""
    return array.transpose(0, *range(2, array.ndim), 1)


def _short(value: object) -> str:
    return type(value).__name__


REQUIRES_GRAD_IN_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a "
    "function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
REQUIRE = "requires_grad_() it, or compute it from what requires gradients while that is recorded"
NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
    ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
    "Tensor instead."
)
LEAF_OF_INFERENCE = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
DETACHED = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
    "var.detach()."
)
DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
    "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
    "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
    "as the solution."
)
__all__ = ["OutputEdge", "Tensor", "at_edge", "wrap"]
