"""Parametrizations, as ``torch.nn.utils.parametrize``: modules that compute a parameter from another tensor.

The class of the parametrized module is replaced by a subclass ``Parametrized<name>``, in which the parameter is a
property. The getter of the property computes the parameter.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

_cache_enabled = 0  # number of active `cached` blocks
_cache: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Return a context manager inside which each parametrized tensor is computed only once and then cached.

    >>> from retrograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with nn.utils.parametrize.cached():
    ...     print(layer.weight is layer.weight)
    True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """List of the parametrizations of one tensor of a module, in order of application.

    The first parametrization is applied to the tensor in the attribute ``original``. If it takes several tensors, they
    are the attributes ``original0``, ``original1`` and so on.
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before_shape, before_dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):  # a parametrization without inverse is allowed
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with no_grad():
                original.data = new.data
            _register(self, "original", original)
        else:
            for place, each in enumerate(new):
                if not isinstance(each, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{place} of the sequence with type {type(each).__name__}."
                    )
                created = Parameter(each) if isinstance(original, Parameter) else each
                _register(self, f"original{place}", created.requires_grad_(original.requires_grad))
        if not unsafe:
            self._check(before_shape, before_dtype)

    def _check(self, shape: Any, dtype: Any) -> None:
        """Raise ValueError unless the parametrized tensor has the shape ``shape`` and the dtype ``dtype``."""
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, old, new in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if old != new:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {old}\nparametrized {what}: {new}"
                )

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{place}") for place in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized tensor becomes ``value``.

        The ``right_inverse`` methods of the parametrizations are called in reverse order.
        """
        with no_grad():
            new: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
                if value.dtype != new.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while `value` has dtype {value.dtype}"
                    )
                new = [new]
            elif not isinstance(new, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(new)}.")
            if len(new) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(new)}."
                )
            for own, each in zip(self._originals(), new, strict=True):
                _assign(own, each)

    def forward(self) -> Tensor:
        """Return the parametrized tensor, computed from the original tensors."""
        first, *others = self
        result = first(*self._originals())
        for module in others:
            result = module(result)
        return result


def _assign(own: Any, value: Tensor) -> None:
    """Overwrite the values of the tensor ``own`` by ``value``; ``own`` remains the same object.

    If the shapes are equal, the elements are copied. Otherwise ``own`` gets the shape and the storage of ``value``.
    """
    if value.shape == own.shape:
        own.data.copy_(value)
    else:
        own.data = value.data


def _specialise_class(module: Module) -> None:
    """Replace the class of ``module`` by a new subclass, so that properties can be added to this module only."""
    cls = module.__class__

    def default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        created = memo.get(id(self))
        if created is not None:
            return created
        created = self.__new__(self.__class__)
        memo[id(self)] = created
        created.__dict__ = copy.deepcopy(self.__dict__, memo)
        return created

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    body: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)
    module.parametrizations = ModuleDict()


def _install_property(module: Module, name: str) -> None:
    """Add a property ``name`` to the class of ``module``, which replaces the parametrized tensor ``name``.

    The getter computes the tensor from the original tensors. The setter sets the original tensors, by ``right_inverse``
    of the ParametrizationList.
    """

    def compute(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def invert(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(compute, invert))


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Replace the parameter or buffer ``tensor_name`` of ``module`` by ``parametrization(original)``.

    ``original`` is the present tensor, or ``right_inverse`` of the present tensor if ``parametrization`` has this
    method, the inverse of its ``forward``. If a value is assigned to the parametrized tensor, ``original`` is set to
    ``right_inverse(value)``; without this method the assignment raises RuntimeError.

    Several parametrizations of a tensor are applied in order of registration. If ``unsafe`` is true, the
    parametrization may change the shape and the dtype. Returns ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> class Positive(nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
    >>> bool((layer.weight > 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            if not isinstance(after, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
            for what in ("dtype", "shape"):
                old, new = getattr(before, what), getattr(after, what)
                if old != new:
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                        f"enabled.\nmodule.{tensor_name}.{what}: {old}\nparametrization(module.{tensor_name}).{what}: {new}"
                    )
            _check_inverse(parametrization, after)
        held = module.parametrizations[tensor_name]
        held.append(parametrization)
        held.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        held = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _specialise_class(module)
        _install_property(module, tensor_name)
        module.parametrizations[tensor_name] = held
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_inverse(parametrization: Any, value: Tensor) -> None:
    """Raise ValueError if ``parametrization.right_inverse(value)`` has another shape or dtype than ``value``.

    A parametrization without the method ``right_inverse`` is accepted.
    """
    if not hasattr(parametrization, "right_inverse"):
        return
    with no_grad():
        result = parametrization.right_inverse(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(result).__name__}")
    for what in ("dtype", "shape"):
        if getattr(result, what) != getattr(value, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as the tensor it was given"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a tensor of ``module`` has a parametrization.

    If ``tensor_name`` is not None, only the tensor with this name is considered.
    """
    held = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Remove all parametrizations of the tensor ``tensor_name`` of ``module``; return ``module``.

    If ``leave_parametrized`` is true, the tensor keeps its parametrized value. Otherwise the tensor has the value of
    the original tensor.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if held.is_tensor:
        original = held.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            _assign(original, value.clone())
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            "of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not len(module.parametrizations):
        del module._modules["parametrizations"]
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of ``module``; if ``module`` is parametrized, the class before the first parametrization."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Copy the parametrizations and original tensors of ``from_module`` to ``to_module``; return ``to_module``.

    If ``tensor_name`` is not None, only the tensor with this name and its parametrizations are copied.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for each in source:
            register_parametrization(to_module, name, each, unsafe=source.unsafe)
        target = to_module.parametrizations[name]
        for own, given in zip(target._originals(), source._originals(), strict=True):
            own.data = given.data
    return to_module


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip
