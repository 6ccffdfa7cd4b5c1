"""Who is to be asked instead of an operation: classes with ``__torch_function__``, and modes (``torch.overrides``).

Whom to ask, in which order and with what. That functions look for overrides at all is no business of this module's: code
that does is put into them (``dispatch/torch_function_overrides.py``) when the first class or mode announces itself here. Knows no operation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..compat.lazy_imports import ON_LOAD
from ..runtime.user_frame import warn

#: How much is switched off: nothing, asking classes, or asking modes too.
ALL, MODES, NONE = range(3)
#: What is switched off, and the modes entered, the innermost last.
_state: ContextVar[tuple[int, tuple[Any, ...]]] = ContextVar("overrides", default=(ALL, ()))
state = _state.get


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of a class that is never asked: calls ``func``."""
    with disabled_overrides(MODES):
        return func(*args, **(kwargs or {}))


#: PyTorch's own name for it, by which programs exempt a class.
DISABLED = staticmethod(disabled)
disabled.__name__ = disabled.__qualname__ = "_disabled_torch_function_impl"
disabled.__module__ = "torch._C"

_NEVER = frozenset({int, float, bool, complex, str, bytes, slice, type(None), type(Ellipsis), type})


def has_torch_function(kind: type) -> bool:
    """Whether values of a class are to be asked."""
    return kind not in _NEVER and getattr(kind, "__torch_function__", disabled) is not disabled


def overriding_arguments(values: Iterable[Any], ordinary: type | None) -> list[Any]:
    """Of each class that is to be asked the first value, of subclasses before what they derive from.

    Looked for among ``values``, and the elements of lists and tuples among them; ``ordinary``: a class not to be asked.
    """
    found: list[Any] = []
    for each in values:
        kind = each.__class__
        if kind is ordinary or kind in _NEVER:
            continue
        if kind is tuple or kind is list:
            for one in each:
                if one.__class__ is not ordinary and has_torch_function(one.__class__):
                    _enter(one, found)
        elif getattr(kind, "__torch_function__", disabled) is not disabled:
            _enter(each, found)
    return found


def _enter(value: Any, found: list[Any]) -> None:
    """Put ``value`` at its place among those that are to be asked."""
    kind = value.__class__
    if not found:
        found.append(value)
    if any([each.__class__ is kind for each in found]):  # noqa: C419 - faster than a generator
        return
    place = next((i for i, each in enumerate(found) if issubclass(kind, each.__class__)), len(found))
    found.insert(place, value)


PLAIN_METHOD = "as a plain method is deprecated and will be an error in future, please define it as a classmethod."


def call_override(
    func: Any, found: list[Any], types: tuple[type, ...], args: Any, kwargs: Any, shown: str, python: bool
) -> Any:
    """What the innermost mode or else the first of ``found`` says that ``func`` gives; NotImplemented hands on.

    ``shown``: the function's name in errors; ``python``: whether it is one of PyTorch's functions written in Python, which
    hand themselves over in another way than those of C++. Raises TypeError where everybody says NotImplemented.
    """
    level, modes = _state.get()
    given = (func, types, args, kwargs) if python or kwargs else (func, types, args)
    mode = None
    if modes and level < NONE:
        mode = modes[-1]
        token = _state.set((level, modes[:-1]))
        try:
            result = mode.__torch_function__(*given)
        finally:
            _state.reset(token)
        if result is not NotImplemented:
            return result
    for each in found:
        handler = each.__torch_function__
        if getattr(handler, "__self__", None) is each:
            quoted = "__torch_function__" if python else "__torch_function__`"
            warn(f"Defining your `{quoted} {PLAIN_METHOD}", DeprecationWarning)
        result = handler(*given)
        if result is not NotImplemented:
            return result
    if python:
        nor = "" if mode is None else f" nor in mode {mode}"
        kinds = [each.__class__ for each in found]
        raise TypeError(
            f"no implementation found for '{shown}' on types that implement __torch_function__: {kinds}{nor}"
        )
    asked = [] if mode is None else [f"  - mode object {mode!r}\n"]
    asked += [f"  - tensor subclass {each.__class__!r}\n" for each in found]
    raise TypeError(
        f"Multiple dispatch failed for '{shown}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        f"{''.join(asked)}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


@contextmanager
def disabled_overrides(level: int) -> Iterator[None]:
    """Switch off in this block what ``level`` says."""
    before, modes = _state.get()
    token = _state.set((max(level, before), modes))
    try:
        yield
    finally:
        _state.reset(token)


def call_without_overrides(func: Any, args: Any, kwargs: Any) -> Any:
    """What ``func`` gives while classes are not asked."""
    level, modes = _state.get()
    token = _state.set((max(level, MODES), modes))
    try:
        return func(*args, **kwargs)
    finally:
        _state.reset(token)


# -- Announcing ------------------------------------------------------------------------------------------------------


class _Watch:
    """What puts into the functions the code that looks for overrides, and takes it out; ``dispatch/torch_function_overrides.py`` sets it."""

    look: Callable[[], None] = staticmethod(lambda: None)
    loaded: Callable[[], None] = staticmethod(lambda: None)  # when a module has been loaded
    rest: Callable[[], None] = staticmethod(lambda: None)
    take: Callable[[type], None] = staticmethod(lambda kind: None)  # a class of tensors as operations take them


watch = _Watch()
ON_LOAD.append(lambda: watch.loaded())
_announced = _entered = _left = 0
#: How often functions get their code back when the last mode ends; it takes as long as a thousand calls.
OFTEN = 10
_counting = threading.Lock()


def register_class(kind: type) -> bool:
    """Let functions look for overrides from now on if values of class ``kind`` are to be asked; whether they are."""
    global _announced
    if not has_torch_function(kind):
        return False
    with _counting:
        _announced += 1
        watch.look()
        watch.take(kind)
    return True


def forget_classes() -> None:
    """Take all classes announced so far for gone, for which functions then look no longer."""
    global _announced, _left
    with _counting:
        _announced = _left = 0
        if not _entered:
            watch.rest()


def register_overriding(values: Iterable[Any], ordinary: type) -> bool:
    """:func:`register_class` for values that an operation could not take; whether there was one to be asked."""
    found = overriding_arguments(values, ordinary) if _state.get()[0] == ALL else []
    return bool(found) and all(register_class(each.__class__) for each in found)


def enter_mode(mode: Any) -> None:
    """Ask ``mode`` first from now on."""
    global _entered
    with _counting:
        _entered += 1
        watch.look()
    level, modes = _state.get()
    _state.set((level, (*modes, mode)))


def leave_mode(rest: bool = False) -> None:
    """Forget the innermost mode. ``rest``: if it was the last, functions get their code back however often that was."""
    global _entered, _left
    level, modes = _state.get()
    _state.set((level, modes[:-1]))
    with _counting:
        _entered -= 1
        if not _entered and not _announced and (rest or _left < OFTEN):
            _left += not rest
            watch.rest()
