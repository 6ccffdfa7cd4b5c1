"""Overriding operations, as ``torch.overrides``: modes, and what library code needs to take part in ``__torch_function__``.

How operations look for overrides is written in ``dispatch/torch_function_overrides.py``, whom they ask in ``core/torch_function.py``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from .core import torch_function
from .core.tensor import Tensor
from .dispatch import torch_function_overrides
from .dispatch.torch_function_overrides import Overridable
from .nn import functional as _functional
from .runtime.user_frame import warn

Callee = TypeVar("Callee", bound=Callable[..., Any])

# -- Modes -----------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """A context in which every public function asks ``__torch_function__`` of this object what it gives.

    Within ``__torch_function__`` the mode is off; functions that are called there ask the mode entered before it.

    >>> import retrograd as torch
    >>> class Log(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     y = torch.ones(2) + 1
    ones
    add
    """

    __module__ = "torch.overrides"
    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What ``func(*args, **kwargs)`` gives in this mode; NotImplemented leaves it to the arguments' classes."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        torch_function.enter_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        torch_function.leave_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode to enter, as PyTorch had it once."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    __module__ = "torch.overrides"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What ``func`` gives."""
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Has no effect: it is for handlers below autograd (``__torch_dispatch__``), of which there are none here."""
    yield


# -- Asking, for functions of libraries --------------------------------------------------------------------------------

_spared: ContextVar[bool] = ContextVar("spared", default=False)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class has a ``__torch_function__`` that is to be asked, or a mode is active.

    >>> import retrograd as torch
    >>> has_torch_function((torch.ones(1), 2))
    False
    """
    level, modes = torch_function.state()
    if level == torch_function.NONE:
        return False
    if _spared.get():
        _spared.set(False)
        return False
    return bool(modes) or (
        level == torch_function.ALL and bool(torch_function.overriding_arguments(relevant_args, Tensor))
    )


def has_torch_function_unary(tensor: Any) -> bool:
    """:func:`has_torch_function` for one argument."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """:func:`has_torch_function` for arguments given one by one."""
    return has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the modes and the classes of ``relevant_args`` say that ``public_api(*args, **kwargs)`` gives.

    Raises TypeError where all return NotImplemented.
    """
    found = torch_function.overriding_arguments(relevant_args, None)
    types = tuple(each.__class__ for each in found)
    known = _overridables().get(public_api)
    shown = f"{public_api.__module__}.{public_api.__name__}" if known is None else known.shown
    return torch_function.call_override(public_api, found, types, args, kwargs, shown, True)


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What ``func`` gives by itself; the operations that it is made of look for overrides again."""
    known = _overridables().get(func)
    if known is not None:
        return known.plain(*args, **(kwargs or {}))
    _spared.set(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _spared.set(False)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callee], Callee]:
    """Let a function be overridden; ``dispatcher``, which takes the same arguments, names those whose classes to ask."""

    def inner(func: Callee) -> Callee:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return inner


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor or stands for one: whether its class has a ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# -- What can be overridden --------------------------------------------------------------------------------------------


@functools.cache
def _overridables() -> dict[Any, Overridable]:
    """All that is handed over, by what is handed over."""
    for place in torch_function_overrides.PLACES:
        importlib.import_module(f"{__package__}.{place}".rstrip("."))
    every = [
        each for name, each in torch_function_overrides.every().items() if not name.startswith(("inside.", "autograd."))
    ]
    return {each.func if each.property else each.function: each for each in every}


def resolve_name(f: Any) -> str | None:
    """The name of a function or method that can be overridden, or None.

    >>> import retrograd as torch
    >>> resolve_name(torch.Tensor.add), resolve_name(torch.nn.functional.relu), resolve_name(len)
    ('torch.Tensor.add', 'torch.nn.functional.relu', None)
    """
    found = _overridables().get(f)
    if found is None:
        return None
    if found.shown.startswith(("torch.functional.", "torch._lowrank.")) or found.name == "istft":
        return f"torch.functional.{found.name}"
    shared = vars(_functional).get(found.name) is f  # as PyTorch counts it
    return f"torch.{'nn.functional.' * shared}{found.name}"


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether ``func`` is a method of Tensor, or what gets or sets one of its properties."""
    found = _overridables().get(func)
    return (found is not None and found.name.startswith("Tensor.")) or getattr(func, "__name__", "") == "__get__"


def get_default_nowrap_functions() -> set[Any]:
    """What ``Tensor.__torch_function__`` gives to subclasses as plain tensors."""
    return Tensor._unwrapped()


def get_ignored_functions() -> set[Any]:
    """The public functions that ``__torch_function__`` of a tensor's class is not asked about (modes may be)."""
    names = torch_function_overrides.known().names
    wanted = names["ignored"] | names["nobody"] | names["only modes"]
    return {function for name in wanted if (function := torch_function_overrides.at(name)) is not None}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that can be overridden, by the module (or class) in which they are."""
    listed_by: dict[Any, list[Any]] = defaultdict(list)
    ignored = get_ignored_functions()
    for function, each in _overridables().items():
        if function not in ignored:
            listed_by[torch_function_overrides.place_of(each.name)].append(function)
    return listed_by


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """For every function that can be overridden one of the same signature, which returns -1."""
    return {each: _dummy(each) for found in get_overridable_functions().values() for each in found}


def _dummy(function: Any) -> Callable[..., int]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    dummy.__name__ = "<lambda>"
    with suppress(ValueError):  # of a property's
        dummy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return dummy


__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip
