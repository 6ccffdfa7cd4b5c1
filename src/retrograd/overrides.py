"""``torch.overrides``: support for ``__torch_function__``, with which classes and modes override public functions.

``core/torch_function.py`` implements the protocol ``__torch_function__``; ``dispatch/torch_function_overrides.py``
applies it to the operations.
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
from .dispatch.intercept import go_on
from .dispatch.torch_function_overrides import Overridable
from .nn import functional as _functional
from .runtime.user_frame import warn

Callee = TypeVar("Callee", bound=Callable[..., Any])

# -- Modes -----------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """Context manager (mode) in which functions of ``torch`` call the method ``__torch_function__`` of this object.

    The mode is inactive while its ``__torch_function__`` runs: public functions that this method calls are passed to
    the mode that was entered before, if any.

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
        """Return the result of ``func(*args, **kwargs)``, a public function that was called inside the context.

        A subclass redefines this method. ``types`` are those classes of the arguments that have their own
        ``__torch_function__``. If the method returns NotImplemented, ``__torch_function__`` of these classes is called.
        """
        raise NotImplementedError

    def __enter__(self) -> Any:
        torch_function.enter_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        torch_function.leave_mode(self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return ``cls(*args, **kwargs)`` and warn that the method is deprecated; use ``with cls(...)`` instead."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """``TorchFunctionMode`` that calls every function without changes.

    >>> import retrograd as torch
    >>> with torch.overrides.BaseTorchFunctionMode():
    ...     print(torch.ones(2) + 1)
    tensor([2., 2.])
    """

    __module__ = "torch.overrides"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return ``func(*args, **kwargs)``."""
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Return a context manager without effect.

    In PyTorch, it concerns ``__torch_dispatch__``, which retrograd does not implement.
    """
    yield


# -- Dispatch in functions of other libraries --------------------------------------------------------------------------

_skip_next: ContextVar[bool] = ContextVar("spared", default=False)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a call with the arguments ``relevant_args`` is overridden by ``__torch_function__``.

    This is the case if the class of an argument overrides ``__torch_function__``, or a ``TorchFunctionMode`` is active.

    >>> import retrograd as torch
    >>> has_torch_function((torch.ones(1), 2))
    False
    """
    level, modes, *_ = torch_function.state()
    if level == torch_function.NONE:
        return False
    if _skip_next.get():
        _skip_next.set(False)
        return False
    return bool(modes) or (
        level == torch_function.ALL and bool(torch_function.overriding_arguments(relevant_args, Tensor))
    )


def has_torch_function_unary(tensor: Any) -> bool:
    """Return ``has_torch_function((tensor,))``; see :func:`has_torch_function`.

    >>> import retrograd as torch
    >>> torch.overrides.has_torch_function_unary(torch.ones(1))
    False
    """
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Return ``has_torch_function(args)``; see :func:`has_torch_function`.

    >>> import retrograd as torch
    >>> torch.overrides.has_torch_function_variadic(torch.ones(1), 2)
    False
    """
    return has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of ``__torch_function__`` for the call ``public_api(*args, **kwargs)``.

    The active modes are called first, then the classes of ``relevant_args``, until a call returns a result other than
    NotImplemented. TypeError is raised if all return NotImplemented.

    >>> import retrograd as torch
    >>> class Named(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__
    >>> def double(x):
    ...     return torch.overrides.handle_torch_function(double, (x,), x)
    >>> double(torch.ones(1).as_subclass(Named))
    'double'
    """
    found = torch_function.overriding_arguments(relevant_args, None)
    types = tuple(each.__class__ for each in found)
    known = _overridables().get(public_api)
    shown = f"{public_api.__module__}.{public_api.__name__}" if known is None else known.shown
    return torch_function.call_override(public_api, found, types, args, kwargs, shown, True)


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Return ``func(*args, **kwargs)`` without calling ``__torch_function__`` for ``func`` itself.

    ``__torch_function__`` is still called for the operations that ``func`` calls. ``types`` is unused.

    >>> import retrograd as torch
    >>> torch.overrides.redispatch_function(torch.add, (), (torch.ones(2), 1), {})
    tensor([2., 2.])
    """
    known = _overridables().get(func)
    if known is not None:
        if known.python:
            return go_on(known.function, args, kwargs or {})
        return torch_function.call_without_overrides(go_on, (known.function, args, kwargs or {}), {})
    _skip_next.set(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _skip_next.set(False)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callee], Callee]:
    """Return a decorator that makes a function overridable by ``__torch_function__`` of its arguments.

    ``dispatcher`` is called with the arguments of the function, and returns those whose classes may override the call.

    >>> import retrograd as torch
    >>> double = torch.overrides.wrap_torch_function(lambda x: (x,))(lambda x: 2 * x)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """

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
    """Whether ``inp`` is a Tensor or has a method ``__torch_function__``.

    >>> import retrograd as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# -- Overridable functions ---------------------------------------------------------------------------------------------


@functools.cache
def _overridables() -> dict[Any, Overridable]:
    """Return a dictionary of the public functions that ``__torch_function__`` can override, with their descriptions.

    A key is the object that ``__torch_function__`` receives as ``func``. The value is an :class:`Overridable`, which
    describes the function.
    """
    for place in torch_function_overrides.PLACES:
        importlib.import_module(f"{__package__}.{place}".rstrip("."))
    every = [
        each for name, each in torch_function_overrides.every().items() if not name.startswith(("inside.", "autograd."))
    ]
    return {each.func if each.property else each.function: each for each in every}


def resolve_name(f: Any) -> str | None:
    """Return the public name of ``f``, an overridable function or method, or None for any other object.

    >>> import retrograd as torch
    >>> resolve_name(torch.Tensor.add), resolve_name(torch.nn.functional.relu), resolve_name(len)
    ('torch.Tensor.add', 'torch.nn.functional.relu', None)
    """
    found = _overridables().get(f)
    if found is None:
        return None
    if found.shown.startswith(("torch.functional.", "torch._lowrank.")) or found.name == "istft":
        return f"torch.functional.{found.name}"
    shared = vars(_functional).get(found.name) is f  # PyTorch counts it to this module
    return f"torch.{'nn.functional.' * shared}{found.name}"


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether ``func`` is a method of Tensor, or the getter or setter of one of its properties.

    >>> import retrograd as torch
    >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    True
    >>> torch.overrides.is_tensor_method_or_property(torch.add)
    False
    """
    found = _overridables().get(func)
    return (found is not None and found.name.startswith("Tensor.")) or getattr(func, "__name__", "") == "__get__"


def get_default_nowrap_functions() -> set[Any]:
    """Return the set of functions whose results are not converted to the Tensor subclass of the arguments.

    ``Tensor.__torch_function__`` converts the results of all other functions.

    >>> import retrograd as torch
    >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    True
    """
    return Tensor._unwrapped()


def get_ignored_functions() -> set[Any]:
    """Return the set of public functions that do not call ``__torch_function__`` of the classes of their arguments.

    Some of these functions call ``__torch_function__`` of active modes.

    >>> import retrograd as torch
    >>> torch.is_tensor in torch.overrides.get_ignored_functions()
    True
    """
    names = torch_function_overrides.known().names
    wanted = names["ignored"] | names["nobody"] | names["only modes"]
    return {function for name in wanted if (function := torch_function_overrides.at(name)) is not None}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return a dictionary from modules and classes to the lists of overridable functions that they define.

    >>> import retrograd as torch
    >>> torch.add in torch.overrides.get_overridable_functions()[torch]
    True
    """
    listed_by: dict[Any, list[Any]] = defaultdict(list)
    ignored = get_ignored_functions()
    for function, each in _overridables().items():
        if function not in ignored:
            listed_by[torch_function_overrides.place_of(each.name)].append(function)
    return listed_by


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """Return a dictionary from each overridable function to a function of the same signature that returns -1.

    >>> import retrograd as torch
    >>> torch.overrides.get_testing_overrides()[torch.add](torch.ones(1), torch.ones(1))
    -1
    """
    return {each: _dummy(each) for found in get_overridable_functions().values() for each in found}


def _dummy(function: Any) -> Callable[..., int]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    dummy.__name__ = "<lambda>"
    with suppress(ValueError):  # a property's getter
        dummy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return dummy


__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip
