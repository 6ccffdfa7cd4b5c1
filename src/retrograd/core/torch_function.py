"""The ``__torch_function__`` protocol: which arguments and modes may override a call, and in what order.

A handler is the method ``__torch_function__`` of a class or of a mode (``torch.overrides``). Public functions check for
handlers only after the first class or mode has been registered here: ``dispatch/torch_function_overrides.py`` then
replaces their code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..compat.lazy_imports import ON_LOAD
from ..runtime.user_frame import warn

#: Levels of disabling: all handlers are called, only those of modes, or none.
ALL, MODES, NONE = range(3)
#: The level of disabling and the active modes, the innermost last.
_state: ContextVar[tuple[int, tuple[Any, ...]]] = ContextVar("overrides", default=(ALL, ()))
state = _state.get


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return ``func(*args, **kwargs)``, called while the ``__torch_function__`` methods of classes are disabled.

    This function is the ``__torch_function__`` of classes that override no function.
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


def overriding_arguments(values: Iterable[Any], ordinary: type | None) -> list[Any]:
    """Return the elements of ``values``, the arguments of a call, whose classes have a handler ``__torch_function__``.

    The result has at most one instance of each class, and a subclass precedes its base classes. Elements of lists and
    tuples among ``values`` are included. Instances of the class ``ordinary`` are skipped.
    """
    overriding: list[Any] = []
    for each in values:
        kind = each.__class__
        if kind is ordinary or kind in _NEVER:
            continue
        if kind is tuple or kind is list:
            for one in each:
                if one.__class__ is not ordinary and has_torch_function(one.__class__):
                    _insert(one, overriding)
        elif getattr(kind, "__torch_function__", disabled) is not disabled:
            _insert(each, overriding)
    return overriding


def _insert(value: Any, overriding: list[Any]) -> None:
    """Insert ``value`` into the list ``overriding`` before the values whose classes are base classes of its class.

    Nothing is inserted if the list already has a value of the same class.
    """
    kind = value.__class__
    if not overriding:
        overriding.append(value)
    if any([each.__class__ is kind for each in overriding]):  # noqa: C419 - faster than a generator
        return
    index = next((i for i, each in enumerate(overriding) if issubclass(kind, each.__class__)), len(overriding))
    overriding.insert(index, value)


PLAIN_METHOD = "as a plain method is deprecated and will be an error in future, please define it as a classmethod."


def call_override(
    func: Any, overriding: list[Any], types: tuple[type, ...], args: Any, kwargs: Any, shown: str, python: bool
) -> Any:
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
    level, modes = _state.get()
    arguments = (func, types, args, kwargs) if python or kwargs else (func, types, args)
    mode = None
    if modes and level < NONE:
        mode = modes[-1]
        token = _state.set((level, modes[:-1]))
        try:
            result = mode.__torch_function__(*arguments)
        finally:
            _state.reset(token)
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
        raise TypeError(
            f"no implementation found for '{shown}' on types that implement __torch_function__: {kinds}{nor}"
        )
    handlers = [] if mode is None else [f"  - mode object {mode!r}\n"]
    handlers += [f"  - tensor subclass {each.__class__!r}\n" for each in overriding]
    raise TypeError(
        f"Multiple dispatch failed for '{shown}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        f"{''.join(handlers)}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


@contextmanager
def disabled_overrides(level: int) -> Iterator[None]:
    """Return a context manager in which handlers (methods ``__torch_function__``) are not called.

    If ``level`` is the constant MODES, the handlers of modes are still called, but not those of classes. If ``level``
    is the constant NONE, no handlers are called.
    """
    before, modes = _state.get()
    token = _state.set((max(level, before), modes))
    try:
        yield
    finally:
        _state.reset(token)


def call_without_overrides(func: Any, args: Any, kwargs: Any) -> Any:
    """Return ``func(*args, **kwargs)``, called while the ``__torch_function__`` methods of classes are disabled."""
    level, modes = _state.get()
    token = _state.set((max(level, MODES), modes))
    try:
        return func(*args, **kwargs)
    finally:
        _state.reset(token)


# --- Registration ---------------------------------------------------------------------------------------------------


class _Watch:
    """Callbacks that add checks for ``__torch_function__`` to public functions, and that remove these checks.

    The module ``dispatch/torch_function_overrides.py`` sets the callbacks.
    """

    look: Callable[[], None] = staticmethod(lambda: None)  # install the checks in all functions
    loaded: Callable[[], None] = staticmethod(lambda: None)  # called when a module has been loaded
    rest: Callable[[], None] = staticmethod(lambda: None)  # remove the checks
    take: Callable[[type], None] = staticmethod(lambda kind: None)  # add a subclass of Tensor to the operand classes


installer = _Watch()
ON_LOAD.append(lambda: installer.loaded())
_registered = _entered = _removals = 0
#: How often the checks are removed when the last mode ends. A removal takes as long as a thousand calls.
MAX_REMOVALS = 10
_counting = threading.Lock()


def register_class(kind: type) -> bool:
    """Add the checks for ``__torch_function__`` to public functions if the class ``kind`` has this method.

    Return whether the class has this method.
    """
    global _registered
    if not has_torch_function(kind):
        return False
    with _counting:
        _registered += 1
        installer.look()
        installer.take(kind)
    return True


def forget_classes() -> None:
    """Unregister all classes with a ``__torch_function__``, and remove the checks for it unless a mode is active.

    Only tests call this function.
    """
    global _registered, _removals
    with _counting:
        _registered = _removals = 0
        if not _entered:
            installer.rest()


def register_overriding(values: Iterable[Any], ordinary: type) -> bool:
    """Register the classes with a ``__torch_function__`` among the classes of ``values``.

    ``values`` are the arguments of a call that failed because such a class was not registered. Instances of the class
    ``ordinary`` are skipped. Return whether a class was registered.
    """
    overriding = overriding_arguments(values, ordinary) if _state.get()[0] == ALL else []
    return bool(overriding) and all(register_class(each.__class__) for each in overriding)


def enter_mode(mode: Any) -> None:
    """Activate ``mode``, whose ``__torch_function__`` is called before those of the modes that are already active."""
    global _entered
    with _counting:
        _entered += 1
        installer.look()
    level, modes = _state.get()
    _state.set((level, (*modes, mode)))


def leave_mode(rest: bool = False) -> None:
    """Deactivate the innermost mode.

    If no other mode is active and no class is registered, the checks for ``__torch_function__`` are removed from public
    functions. This is slow. Therefore it is done at most :data:`MAX_REMOVALS` times, unless ``rest`` is true.
    """
    global _entered, _removals
    level, modes = _state.get()
    _state.set((level, modes[:-1]))
    with _counting:
        _entered -= 1
        if not _entered and not _registered and (rest or _removals < MAX_REMOVALS):
            _removals += not rest
            installer.rest()
