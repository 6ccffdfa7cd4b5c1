"""The arguments of a call as the caller passed them, by position or by keyword, computed inside the called function.

A function with named parameters does not know which of its arguments were passed by keyword. This is read from the
source of the call, or from its bytecode if there is no source, once for each call in a program and each function that
it calls (:class:`ArgumentReader`). A mode usually repeats a call as ``func(*args, **kwargs)`` with the arguments that it
has got. For other calls ``f(**mapping)``, a local variable of the caller is searched that is a dictionary with the same
arguments; its keys are the names.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from operator import is_
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import TYPE_CHECKING

from ..runtime import user_frame
from ..runtime.user_frame import CALL_MARK, expressions
from .op import MISSING
from .signatures import USUAL_NAMES

if TYPE_CHECKING:
    from ..core.typing import Function, Intercepted
    from .typing import ArgumentList, Locals

#: The flags of code with ``*args`` or ``**kwargs``.
LOOSE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
#: Positional and keyword arguments.
Given = tuple[tuple[object, ...], dict[str, object]]
#: Which parameters a call passes: the number of positional arguments, the keyword arguments with the index of the
#: parameter (None for one that is not named), the indices of all other parameters, and the index of a parameter that is
#: passed only if the call is that of a tensor's method and not of the class's, or -1.
Passed = tuple[int, tuple[tuple[str, int | None], ...], tuple[int, ...], int]
#: Value of a local variable, which is not read, because ``frame.f_locals`` keeps all local variables alive before 3.13.
UNKNOWN = object()


class ArgumentReader:
    """Reconstruction of the arguments of the calls of one function, as the callers passed them.

    function    the function
    names       the names of its parameters; the first ``positional`` of them are positional, the others keyword-only
    defaults    the default values of the parameters, by name
    method      whether the function is a method of Tensor
    exact       whether all arguments of the function are positional and required
    """

    __slots__ = ("defaults", "exact", "filled", "function", "method", "names", "positional", "repeated")
    defaults: dict[str, object]
    function: Function
    names: Sequence[str]
    positional: int
    exact: bool
    method: bool

    def __init__(
        self, function: Function, names: Sequence[str], positional: int, defaults: dict[str, object], method: bool,
        exact: bool = False,
    ) -> None:  # fmt: skip
        self.function, self.names, self.positional, self.defaults = function, names, positional, defaults
        self.method, self.exact = method, exact
        #: The values of parameters that a call does not pass.
        self.filled: list[object | None] = [defaults.get(each, MISSING) for each in names]
        #: Results of :meth:`passed` for repeated calls, by the number of positional and the names of keyword arguments.
        self.repeated: dict[object, Passed | None] = {}

    def given(
        self, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object,
        frame: FrameType | None, got: tuple[Intercepted, ...] | None = None,
    ) -> Given:  # fmt: skip
        """Return a pair: the tuple of the positional and the dictionary of the keyword arguments of a call.

        ``args`` are the values of the named parameters, ``rest`` and ``unknown`` further positional and keyword
        arguments, and ``out`` is the argument ``out=``. ``frame`` is the frame of the function, or one that called it.
        ``got`` are the arguments with which ``__torch_function__`` of the running mode was called, if there is one.
        """
        again = None
        while frame is not None and CALL_MARK in frame.f_globals:
            frame = frame.f_back
        try:
            passed = expressions[id(frame.f_code)][1][frame.f_lasti].passed[self]  # type: ignore[union-attr, attr-defined]
        except (KeyError, AttributeError):
            passed = None if frame is None else self._read(frame)
        if passed is REPEATED:
            passed = None
            if got is not None and got[0] is self.function:
                again = got[2], got[3] if len(got) > 3 else {}
                passed = self._repeats(*again)
        if passed is INDIRECT:
            frame = None
        elif passed is not None and not rest:
            count, keywords, others, doubtful = passed
            filled = self.filled
            for i in others:
                if args[i] is not filled[i]:
                    break
            else:
                if doubtful < 0 or args[doubtful] is not filled[doubtful]:
                    free, named = tuple(args[:count]), {}
                    if keywords:
                        for name, k in keywords:
                            if k is None and name not in unknown and name != "out":
                                break  # an argument of another function, which has called this one
                            named[name] = args[k] if k is not None else unknown.get(name, out)
                        else:
                            if again is None or (_same(free, again[0]) and _same(named.values(), again[1].values())):
                                return free, named
                    elif not unknown and out is None and (again is None or _same(free, again[0])):
                        return free, named
        positional = self.positional
        values = dict(zip(self.names[:positional], args, strict=False))
        named = {**dict(zip(self.names[positional:], args[positional:], strict=True)), **unknown}
        if out is not None:
            named["out"] = out
        return _reconstructed(values, rest, named, self.defaults, frame, self.method)

    def _read(self, frame: FrameType) -> Passed | None:
        """Return which parameters the call passes that ``frame`` evaluates, or None if not known.

        The result is ``REPEATED`` if the call passes on the parameters ``*args`` and ``**kwargs`` of its function.
        """
        call = user_frame.expression(frame)
        known: dict[ArgumentReader, Passed | None] = call.__dict__.setdefault("passed", {})
        if not isinstance(call, ast.Call):
            known[self] = None
        elif (fixed := _fixed(call)) is not None:
            known[self] = self._passed_by(call, *fixed, frame)
        else:
            known[self] = REPEATED if _passes_on(call, frame) else None
        return known[self]

    def _repeats(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Passed | None:
        """Return which parameters a call with the arguments ``args`` and ``kwargs`` passes, or None if not known."""
        key = (len(args), *kwargs) if kwargs else len(args)
        try:
            return self.repeated[key]
        except KeyError:
            found = self.repeated[key] = self._passed(len(args), tuple(kwargs), -1)
            return found

    def _passed(self, count: int, names: tuple[str, ...], doubtful: int) -> Passed | None:
        if count > self.positional:
            return None
        index = {name: i for i, name in enumerate(self.names)}
        keywords = tuple([(name, index.get(name)) for name in names])
        there = {*range(count), *[i for _, i in keywords]}
        return count, keywords, tuple([i for i in index.values() if i not in there]), doubtful

    def _passed_by(self, call: ast.Call, count: int, names: tuple[str, ...], frame: FrameType) -> Passed | None:
        """Return which parameters the expression ``call`` passes, which ``frame`` evaluates, or None if not known.

        ``count`` is the number of its positional arguments, and ``names`` are those of its keyword arguments. The result
        is ``INDIRECT`` if the called function is another one, written in C, which has called this function.
        """
        function, doubtful = call.func, -1
        own = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        if own != self.function.__name__ and isinstance(_value(function, frame), (type, BuiltinFunctionType)):
            return INDIRECT
        if self.method and isinstance(function, ast.Attribute):
            owner = function.value
            if isinstance(owner, ast.Name):
                value = _value(owner, frame)
                if value is UNKNOWN:  # a local variable, most probably of a tensor
                    doubtful = count
                count += not isinstance(value, (type, ModuleType, type(None)))
            else:
                named = isinstance(owner, ast.Attribute) and owner.attr == "Tensor"
                count += not named and not isinstance(_value(owner, frame), type)
        return self._passed(count, names, doubtful)


#: Result of :meth:`ArgumentReader._passed_by` for a call such as ``map(torch.exp, tensors)``.
INDIRECT: Passed = (0, (), (), -1)
#: Result of :meth:`ArgumentReader._read` for a call such as ``func(*args, **kwargs)``.
REPEATED: Passed = (0, (), (), -2)


def _same(values: Iterable[object], others: Iterable[object]) -> bool:
    """Whether two collections of the same length have the same objects."""
    return all(map(is_, values, others))


def _fixed(call: ast.Call) -> tuple[int, tuple[str, ...]] | None:
    """Return the number of positional arguments of ``call`` and the names of its keyword arguments.

    The result is None if they depend on the values of ``*sequence`` or ``**mapping``.
    """
    names = [each.arg for each in call.keywords if each.arg is not None]
    if len(names) < len(call.keywords) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    return len(call.args), tuple(names)


def _passes_on(call: ast.Call, frame: FrameType) -> bool:
    """Whether all arguments of ``call`` are ``*args`` and ``**kwargs``, parameters of the function that ``frame`` runs.

    ``**(kwargs or {})`` counts, too.
    """
    parameters = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    starred = [each.value for each in call.args if isinstance(each, ast.Starred)]
    mappings = [each.value for each in call.keywords if each.arg is None]
    mappings = [each.values[0] if isinstance(each, ast.BoolOp) else each for each in mappings]
    passed = [each.id for each in (*starred, *mappings) if isinstance(each, ast.Name) and each.id in parameters]
    return len(call.args) == len(starred) == 1 and len(passed) == 1 + len(call.keywords) == 1 + len(mappings)


def _value(expression: ast.expr, frame: FrameType) -> object:
    """Return the value in ``frame`` of a global variable, or of an attribute of a module; otherwise ``UNKNOWN``."""
    if isinstance(expression, ast.Name):
        code, name = frame.f_code, expression.id
        if name not in code.co_varnames and name not in code.co_cellvars and name not in code.co_freevars:
            return frame.f_globals.get(name, vars(builtins).get(name, UNKNOWN))
    elif isinstance(expression, ast.Attribute):
        owner = _value(expression.value, frame)
        if isinstance(owner, (type, ModuleType)):
            return vars(owner).get(expression.attr, UNKNOWN)
    return UNKNOWN


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
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None and CALL_MARK in frame.f_globals:
        frame = frame.f_back
    return _reconstructed(values, rest, named, defaults, frame, method, defaulted)


def _reconstructed(
    values: dict[str, object], rest: tuple[object, ...], named: dict[str, object], defaults: dict[str, object],
    frame: FrameType | None, method: bool, defaulted: bool = True,
) -> Given:  # fmt: skip
    """Return the result of :func:`as_given` for a call by ``frame``; None means that the caller is not known."""
    given = {key: value for key, value in values.items() if value is not MISSING}
    count, keywords = (0, ()) if frame is None else _arguments_in(frame, {**given, **named})
    keywords = tuple([each if each in given or each in named else USUAL_NAMES.get(each, each) for each in keywords])
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


def arguments_of(function: Function, values: Locals) -> tuple[ArgumentList, tuple[object, ...], dict[str, object]]:
    """Return the values of the named parameters of a call, and its further positional and keyword arguments.

    ``values`` are the local variables of the called ``function`` at its beginning.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names, loose = code.co_varnames, code.co_flags
    spread = loose & inspect.CO_VARARGS != 0
    return (
        [values[name] for name in names[:count]],
        values[names[count]] if spread else (),
        values[names[count + spread]] if loose & inspect.CO_VARKEYWORDS else {},
    )


@cache
def reader_of(function: Function) -> ArgumentReader:
    """Return the reader of the calls of ``function``, which is not a method of Tensor."""
    code = function.__code__
    free, positional = function.__defaults__ or (), code.co_argcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]
    defaults = dict(zip(names[positional - len(free) : positional], free, strict=True))
    defaults |= function.__kwdefaults__ or {}
    exact = function.__defaults__ is None and not code.co_kwonlyargcount and not code.co_flags & LOOSE
    return ArgumentReader(function, names, positional, defaults, False, exact)


def _arguments_in(frame: FrameType, values: dict[str, object]) -> tuple[int, tuple[str, ...]]:
    """Return the number of positional arguments (0 if unknown) and the names of the keyword arguments of a call.

    The call is the expression that ``frame`` evaluates, and ``values`` are its arguments by parameter name.
    """
    call = user_frame.expression(frame)
    if not isinstance(call, ast.Call):
        return 0, ()
    fixed = _fixed(call)
    if fixed is not None:
        return fixed
    names = dict.fromkeys(each.arg for each in call.keywords if each.arg)
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


__all__ = ["ArgumentReader", "Given", "arguments_of", "as_given", "reader_of"]
