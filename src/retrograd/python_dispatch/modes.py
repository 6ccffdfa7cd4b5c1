"""``torch.utils._python_dispatch``: modes that receive basic operations, and helpers of subclasses of Tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from ..core.tensor import Tensor
from ..core.torch_function import handlers
from . import calls


class TorchDispatchMode:
    """Context manager in which the basic operations below autograd call ``__torch_dispatch__`` of this object.

    The method gets operations such as ``torch.ops.aten.mul.Tensor``, of the forward and of the backward pass, and tensors
    whose operations are not recorded. The mode is inactive while the method runs.

    Source: PyTorch's ``torch.utils._python_dispatch.TorchDispatchMode``.

    >>> import retrograd as torch
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2, requires_grad=True)
    >>> with Log():
    ...     y = x.exp() * 2
    aten.exp.default
    aten.mul.Tensor
    """

    __module__ = "torch.utils._python_dispatch"

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of ``func(*args, **kwargs)``; a subclass redefines this method."""
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Return ``cls(*args, **kwargs)``, which is to be entered."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to PyTorch's own machinery: False."""
        return False

    def __enter__(self) -> Self:
        stack = self.__dict__.setdefault("_entered", [])
        stack.append((calls.active_modes(), calls.handler not in handlers()))
        calls.enter(self)
        return self

    def __exit__(self, *error: Any) -> None:
        calls.leave(*self.__dict__["_entered"].pop())


def _get_current_dispatch_mode() -> Any:
    """Return the innermost active mode, or None."""
    modes = calls.active_modes()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the active modes, the innermost last."""
    return list(calls.active_modes())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active."""
    return bool(calls.active_modes())


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Return a context manager in which no mode is active; its value is the list of the modes."""
    modes = calls.active_modes()
    calls.leave((), False)
    try:
        yield list(modes)
    finally:
        calls.leave(modes, False)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether ``t`` is, or is a class of, tensors with ``__tensor_flatten__`` and ``__tensor_unflatten__``."""
    kind = t if isinstance(t, type) else type(t)
    if not issubclass(kind, Tensor) or kind is Tensor:
        return False
    return hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether ``t`` is a class of tensors with ``__tensor_flatten__`` and ``__tensor_unflatten__``."""
    return isinstance(t, type) and is_traceable_wrapper_subclass(t)


def transform_subclass(
    t: Any, callback: Callable[[str, Tensor], Tensor], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a tensor of the class of ``t``, whose inner tensors are ``callback(name, inner)``."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(
        inner,
        context,
        t.size() if outer_size is None else outer_size,
        t.stride() if outer_stride is None else outer_stride,
    )


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what a handler returns for ``func``: the overwritten argument of an in-place operation, otherwise ``out``."""
    if func._schema.is_mutable and args:
        return args[0]
    return kwargs["out"] if kwargs and kwargs.get("out") is not None else out


__all__ = [
    "TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing", "transform_subclass",
]  # fmt: skip
