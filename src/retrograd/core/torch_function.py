"""The ``__torch_function__`` protocol: which arguments and modes may override a call, and in what order.

A handler is the method ``__torch_function__`` of a class or of a mode (``torch.overrides``). Public functions look for
handlers only while ``HANDLERS`` (the active modes and other objects that intercept calls) or ``OVERRIDING`` (the
classes that override calls) is not empty; see ``dispatch/intercept.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from ..runtime.forks import hold_while_forking
from ..runtime.user_frame import mark_final, warn
from .deferral import block

if TYPE_CHECKING:
    from .typing import Args, Function, Handler, Intercepted, InterceptionState, Kwargs, OtherHandlers

#: Levels of disabling: all handlers are called, only those of modes, or none.
ALL, MODES, NONE = range(3)
#: Tuple of five items: the level of disabling; the active modes, the innermost last; the other active handlers, the
#: innermost last; the arguments with which ``__torch_function__`` of the running mode was called; and the modes or
#: handlers that may get a call, which is false if there are none (see :func:`_state_of`).
_state: ContextVar[InterceptionState] = ContextVar("overrides", default=(ALL, (), (), None, ()))
state = _state.get


def _state_of(level: int, modes: tuple[Handler, ...], others: OtherHandlers, got: Args | None) -> InterceptionState:
    return level, modes, others, got, (modes if level < NONE else ()) or others


def handlers() -> OtherHandlers:
    """Return the active handlers of this context that are no modes; the innermost is the last."""
    return _state.get()[2]


def set_handlers(others: OtherHandlers) -> None:
    """Replace the active handlers of this context that are no modes."""
    level, modes, _, got, _ = _state.get()
    _state.set(_state_of(level, modes, others, got))


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Note [Any in public signatures]
    """Return ``func(*args, **kwargs)``, called while the ``__torch_function__`` methods of classes are disabled.

    A class with this function as its ``__torch_function__`` overrides no functions. In PyTorch, it is called
    ``torch._C._disabled_torch_function_impl``.
    """
    with disabled_overrides(MODES):
        return func(*args, **(kwargs or {}))


#: Descriptor for a class body: ``__torch_function__ = DISABLED`` exempts the class from the protocol.
DISABLED = staticmethod(disabled)
disabled.__name__ = disabled.__qualname__ = "_disabled_torch_function_impl"
disabled.__module__ = "torch._C"

#: Common classes without handler, for a fast answer.
_NEVER = frozenset({int, float, bool, complex, str, bytes, slice, type(None), type(Ellipsis), type})


def has_torch_function(kind: type) -> bool:
    """Whether the class ``kind`` has a ``__torch_function__`` that overrides calls."""
    return kind not in _NEVER and getattr(kind, "__torch_function__", disabled) is not disabled


# Note [Any by attribute name]: a value with the attribute `__torch_function__` is a Handler.
def overriding_arguments(values: Iterable[Any], ordinary: type | None) -> list[Handler]:
    """Return the arguments of a call that can override it, because their class defines ``__torch_function__``.

    ``values`` are the arguments; the elements of lists and tuples among them are included. The result has at most one
    instance of each class, and instances of a subclass precede those of its base classes. Instances of the class
    ``ordinary``, if it is not None, are skipped.
    """
    overriding: list[Handler] = []
    for each in values:
        kind = each.__class__
        if kind is ordinary or kind in _NEVER:
            continue
        if kind is tuple or kind is list:
            for one in each:
                if one.__class__ is not ordinary and has_torch_function(one.__class__):
                    _insert(one, overriding)
        elif getattr(kind, "__torch_function__", disabled) is not disabled:
            if overriding:
                _insert(each, overriding)
            else:
                overriding.append(each)
    return overriding


def _insert(value: Handler, overriding: list[Handler]) -> None:
    """Insert ``value`` into ``overriding``, the list of arguments that can override a call.

    Instances of a subclass precede those of its base classes, because they are called first. Nothing is inserted if the
    list already has a value of the same class.
    """
    kind = value.__class__
    if not overriding:
        overriding.append(value)
        return
    if any([each.__class__ is kind for each in overriding]):  # noqa: C419 - faster than a generator
        return
    index = next((i for i, each in enumerate(overriding) if issubclass(kind, each.__class__)), len(overriding))
    overriding.insert(index, value)


PLAIN_METHOD = "as a plain method is deprecated and will be an error in future, please define it as a classmethod."


def call_override(
    func: Function,
    overriding: list[Handler],
    types: tuple[type, ...],
    args: Args,
    kwargs: Kwargs,
    shown: str,
    python: bool,
) -> Intercepted:
    """Return the result of the first handler that implements ``func``.

    A handler is the method ``__torch_function__`` of a mode or class. The handler of the innermost mode is called first,
    then those of the classes of ``overriding``. If a handler returns NotImplemented, the next handler is called.
    TypeError is raised if all handlers return NotImplemented.

    Args:
        func: Function that was called.
        overriding: Values from :func:`overriding_arguments`.
        types: Classes of these values, passed to the handlers.
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.
        shown: Name of the function in errors.
        python: Whether PyTorch implements the function in Python. Handlers of such a function get ``kwargs`` even if
            empty, and errors differ from those of functions in C++.
    """
    level, modes, others, _, _ = before = _state.get()
    arguments = (func, types, args, kwargs) if python or kwargs else (func, types, args)
    mode = None
    if modes and level < NONE:
        mode, outer = modes[-1], modes[:-1]
        try:  # the state is set inside the block, so that an interrupt cannot leave it changed
            _state.set((level, outer, others, arguments, outer or others))
            result = mode.__torch_function__(*arguments)
            _state.set(before)
        except BaseException:
            _state.set(before)
            raise
        if result is not NotImplemented:
            return result
    for each in overriding:
        handler = each.__torch_function__
        if getattr(handler, "__self__", None) is each:
            quoted = "__torch_function__" if python else "__torch_function__`"
            warn(f"Defining your `{quoted} {PLAIN_METHOD}", DeprecationWarning)
        result = handler(*arguments)
        if result is not NotImplemented:
            return result
    if python:
        nor = "" if mode is None else f" nor in mode {mode}"
        kinds = [each.__class__ for each in overriding]
        text = f"no implementation found for '{shown}' on types that implement __torch_function__: {kinds}{nor}"
        raise mark_final(TypeError(text))
    handlers = [] if mode is None else [f"  - mode object {mode!r}\n"]
    handlers += [f"  - tensor subclass {each.__class__!r}\n" for each in overriding]
    text = f"Multiple dispatch failed for '{shown}'; all __torch_function__ handlers returned NotImplemented:\n\n"
    more = "For more information, try re-running with TORCH_LOGS=not_implemented"
    raise mark_final(TypeError(f"{text}{''.join(handlers)}\n{more}"))


@contextmanager
def disabled_overrides(level: int) -> Iterator[None]:
    """Return a context manager in which the methods ``__torch_function__`` are not called.

    If ``level`` is the constant MODES, those of modes are still called, but not those of classes. If ``level`` is the
    constant NONE, none are called.
    """
    least, modes, others, got, _ = before = _state.get()
    try:
        _state.set(_state_of(max(level, least), modes, others, got))
        yield
        _state.set(before)
    except BaseException:
        _state.set(before)
        raise


def call_without_overrides(func: Function, args: Args, kwargs: Kwargs) -> Intercepted:
    """Return ``func(*args, **kwargs)``, called while the ``__torch_function__`` methods of classes are disabled."""
    least, modes, others, got, _ = before = _state.get()
    level = least if least > MODES else MODES
    try:
        _state.set((level, modes, others, got, (modes if level < NONE else ()) or others))
        result = func(*args, **kwargs)
        _state.set(before)
    except BaseException:
        _state.set(before)
        raise
    return result


# --- Registration ---------------------------------------------------------------------------------------------------

#: Everything that intercepts calls of public functions in any thread: modes and other handlers. Every public function
#: tests this list; whether a handler applies to the call's own thread is decided in ``dispatch/intercept.py``.
HANDLERS: list[object] = []
#: Weak references to the classes whose ``__torch_function__`` overrides calls. Functions that do not test the classes of
#: their arguments otherwise test this set, too. A reference is removed with its class.
OVERRIDING: set[ReferenceType[type]] = set()
#: Result of an interception after which the intercepted function runs its own body.
GO_ON: Intercepted = object()
#: Reentrant, so that a thread does not wait for itself after an interrupt.
_changing = threading.RLock()
hold_while_forking(lambda: _changing)


def listen(handler: object) -> None:
    """Add ``handler`` to ``HANDLERS``, the list of the objects that intercept calls of public functions."""
    with _changing:
        HANDLERS.append(handler)


def unlisten(handler: object) -> None:
    """Remove ``handler`` from ``HANDLERS``, the list of the objects that intercept calls of public functions.

    If the list contains ``handler`` several times, only the last occurrence is removed.
    """
    with _changing:
        if HANDLERS and HANDLERS[-1] is handler:
            del HANDLERS[-1]
            return
        for index in reversed(range(len(HANDLERS))):
            if HANDLERS[index] is handler:  # not remove(): a mode may define ==
                del HANDLERS[index]
                return


class _Interceptor:
    """Holder of a reference to the function ``intercept`` of ``dispatch/intercept.py``.

    Functions of the package ``core`` use it to call ``intercept``, which applies modes and other handlers to a call.
    ``core`` cannot import ``dispatch/intercept.py``, because that module imports ``core`` (circular import). Therefore
    that module sets the attribute ``intercept`` when it is imported.
    """

    intercept: Callable[[Function, Args, Kwargs], Intercepted]


interceptor = _Interceptor()


def intercepted(function: Function, *args: object) -> Intercepted:
    """Return the result of ``function(*args)`` if a handler overrides this call, and otherwise ``GO_ON``.

    ``function`` is a function of the package ``core``. A handler is a mode or another object that intercepts calls of
    public functions. If the result is the constant ``GO_ON``, ``function`` must compute the result itself.
    """
    return interceptor.intercept(function, args, {})


def register_class(kind: type) -> bool:
    """Add ``kind`` to ``OVERRIDING``, the set of classes that override calls, if it has a ``__torch_function__``.

    Return True if ``kind`` has this method, and otherwise False.
    """
    if not has_torch_function(kind):
        return False
    OVERRIDING.add(ReferenceType(kind, OVERRIDING.discard))
    return True


def forget_classes() -> None:
    """Clear ``OVERRIDING``, the set of classes that override calls. Only tests call this function."""
    OVERRIDING.clear()


def register_overriding(values: Iterable[object], ordinary: type) -> bool:
    """Register the classes of arguments that can override a call, and return whether there are any.

    ``values`` are the arguments; instances of the class ``ordinary`` are skipped. Classes that define
    ``__torch_function__`` are added to ``OVERRIDING``. While the ``__torch_function__`` methods of classes are
    disabled, no class is added and the result is False.
    """
    overriding = overriding_arguments(values, ordinary) if _state.get()[0] == ALL else []
    for each in overriding:
        register_class(each.__class__)
    return bool(overriding)


def enter_mode(mode: Handler) -> None:
    """Activate ``mode``; its handler is called before the handlers of the modes that are already active."""
    block(f"{type(mode).__name__} begins", 1)
    level, modes, others, got, _ = _state.get()
    listen(mode)
    _state.set(_state_of(level, (*modes, mode), others, got))


def leave_mode(mode: Handler) -> None:
    """Deactivate ``mode``, which is the innermost mode."""
    try:
        block(f"{type(mode).__name__} ends", -1)
    finally:
        level, modes, others, got, _ = _state.get()
        _state.set(_state_of(level, modes[:-1], others, got))
        unlisten(mode)
