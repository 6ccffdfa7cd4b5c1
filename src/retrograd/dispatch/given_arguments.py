"""The arguments of a call as the caller passed them, by position or by keyword, computed inside the called function.

A function with named parameters does not know which of its arguments were passed by keyword. Their names are read from
the source of the call. For a call ``f(**mapping)``, a local variable of the caller is searched that is a dictionary
with the same arguments; its keys are the names.
"""

from __future__ import annotations

import ast
import inspect
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..runtime import user_frame
from .op import MISSING

if TYPE_CHECKING:
    from ..core.typing import Function
    from .typing import Locals

#: The flags of code with ``*args`` or ``**kwargs``.
LOOSE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
#: Positional and keyword arguments.
Given = tuple[tuple[object, ...], dict[str, object]]


def as_given(
    values: dict[str, object], rest: tuple[object, ...], named: dict[str, object], defaults: dict[str, object], depth: int = 0,
    method: bool = False, defaulted: bool = True,
) -> Given:  # fmt: skip
    """Return a pair: the tuple of the positional and the dictionary of the keyword arguments, as the user passed them.

    Arguments that the user has not passed are left out.

    values    the positional-or-keyword arguments by parameter name, in order
    rest      further positional arguments of the call
    named     further keyword arguments of the call
    defaults  the default values of the parameters, by name
    depth     the number of calling functions to skip, beginning with the one that calls this function
    method    whether the function is a method of Tensor
    defaulted if true, an argument that equals its default is included if the user has passed it, otherwise left out
    """
    frame = _calling_frame(sys._getframe(depth + 1))
    if defaulted and not rest and frame is not None:
        passed_by_position = _passed_by_position(frame, values, named, defaults, method)
        if passed_by_position is not None:
            return passed_by_position, {}
    given = {key: value for key, value in values.items() if value is not MISSING}
    count, keywords = (0, ()) if frame is None else _arguments_in(frame, {**given, **named})
    passed_by_name = keywords if defaulted else ()
    unnamed = {
        key: value for key, value in named.items() if key in passed_by_name or value is not defaults.get(key, MISSING)
    }
    named = {**{key: given.pop(key) for key in keywords if key in given}, **unnamed}
    if rest:
        return (*given.values(), *rest), named
    names = list(given)
    passed = len(names)  # trailing arguments that equal their defaults count as not passed …
    while passed > (count if defaulted else 0) and given[names[passed - 1]] is defaults.get(names[passed - 1], MISSING):
        passed -= 1
    if (
        method
        and defaulted
        and passed == count < len(names)
        and count
        and frame is not None
        and user_frame.calls_method(frame)
    ):
        passed += 1  # … unless the call has more: the object of a method call is not among its arguments
    return tuple([given[each] for each in names[:passed]]), named


def parameters_of(
    function: Function, values: Locals
) -> tuple[dict[str, object], tuple[object, ...], dict[str, object], dict[str, object]]:
    """Return the first four arguments of :func:`as_given` (``values``, ``rest``, ``named``, ``defaults``) for a call.

    ``values`` are the local variables of the called ``function`` at its beginning.
    """
    code = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names, position = code.co_varnames, count + only
    rest: tuple[Any, ...] = ()
    if code.co_flags & inspect.CO_VARARGS:
        rest = values[names[position]]
        position += 1
    free = function.__defaults__ or ()
    defaults = {**dict(zip(names[count - len(free) : count], free, strict=True)), **(function.__kwdefaults__ or {})}
    named = {name: values[name] for name in names[count : count + only] if values[name] is not MISSING}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named.update(values[names[position]])
    return {name: values[name] for name in names[:count]}, rest, named, defaults


def _calling_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame, from ``frame`` outwards, that is not that of a generated function, or None."""
    while frame is not None and user_frame.CALL_MARK in frame.f_globals:
        frame = frame.f_back
    return frame


def _passed_by_position(
    frame: FrameType, values: dict[str, object], named: dict[str, object], defaults: dict[str, object], method: bool
) -> tuple[object, ...] | None:
    """Return the arguments of a call that passes all of them by position, or None if this is not certain.

    This is the usual case of :func:`as_given`, whose parameters have the same meaning. ``frame`` is that of the caller.
    """
    count, keywords = getattr(user_frame.expression(frame), "fixed", (0, True))
    if keywords:
        return None
    names, given = (*values,), (*values.values(),)
    if method and count < len(given) and given[count] is not MISSING:
        if given[count] is defaults.get(names[count], MISSING):  # passed by x.method(value), not by Tensor.method(x)
            return None
        count += 1  # the object of a method call is not among its arguments
    if count > len(given):  # the expression is the call of another function, such as functools.reduce
        return None
    for index in range(count, len(given)):
        if given[index] is not MISSING and given[index] is not defaults.get(names[index], MISSING):
            return None
    for key, value in named.items():
        if value is not defaults.get(key, MISSING):
            return None
    for index in range(count):
        if given[index] is MISSING:
            return None
    return given[:count]


def _arguments_in(frame: FrameType, values: dict[str, object]) -> tuple[int, tuple[str, ...]]:
    """Return the number of positional arguments (0 if unknown) and the names of the keyword arguments of a call.

    The call is the expression that ``frame`` evaluates, and ``values`` are its arguments by parameter name. Without
    source text, the names include all names of keywords in the code of ``frame``.
    """
    call = user_frame.expression(frame)
    if call is None:  # without source, all names of keywords in the code
        tuples = [each for each in frame.f_code.co_consts if isinstance(each, tuple)]
        return 0, tuple(dict.fromkeys(name for names in tuples for name in names if isinstance(name, str)))
    if not isinstance(call, ast.Call):
        return 0, ()
    fixed: tuple[int, tuple[str, ...]] | None = getattr(call, "fixed", None)
    if fixed is not None:
        return fixed
    names = dict.fromkeys(each.arg for each in call.keywords if each.arg)
    if len(names) == len(call.keywords) and not any(isinstance(each, ast.Starred) for each in call.args):
        call.fixed = len(call.args), tuple(names)  # type: ignore[attr-defined]  # the same in every call
        return call.fixed  # type: ignore[attr-defined]
    if len(names) < len(call.keywords):
        for each in frame.f_locals.values():
            if each.__class__ is dict and all(key in values and values[key] is value for key, value in each.items()):
                names.update(dict.fromkeys(each))
    return sum(_count(each, frame) for each in call.args), tuple(names)


def _count(argument: ast.expr, frame: FrameType) -> int:
    """Return how many positional arguments the expression ``argument`` passes in a call by ``frame``.

    The number is 1, except for ``*sequence``: then it is the length of the sequence, or 0 if this is unknown.
    """
    if not isinstance(argument, ast.Starred):
        return 1
    value = frame.f_locals.get(argument.value.id) if isinstance(argument.value, ast.Name) else None
    return len(value) if isinstance(value, (tuple, list)) else 0


__all__ = ["LOOSE", "Given", "as_given", "parameters_of"]
