"""Calls that failed: whether their arguments were to blame, and then PyTorch's words for it.

A public function that raises, of whatever kind and from however deep, comes here with the arguments as they were
given; if no signature takes them (``signatures.py``), its error becomes the one that PyTorch's parser of arguments
raises before anything is done. So no function checks the types of its arguments, and a call that succeeds pays nothing
but a ``try``. Arguments that are missing are MISSING, which nothing can compute with.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from ..core import where
from . import signatures
from .calls import compiled
from .operation import MISSING


#: What written code holds as ``public`` when it stands between a caller and a guard (see ``table.public_form``).
PUBLIC = ("function", "method")


def explain(
    error: Exception, target: Callable[..., Any], space: str, name: str, values: dict[str, Any], rest: tuple[Any, ...],
    named: dict[str, Any], defaults: dict[str, Any], depth: int,
) -> None:  # fmt: skip
    """Raise PyTorch's error if it was the arguments of ``name`` that made a call fail; otherwise return.

    ``values``: the arguments that may stand without a name, in order; ``rest`` and ``named``: all others; ``depth``: how
    many frames above this one the call was made.
    """
    given = {key: value for key, value in values.items() if value is not MISSING}
    keywords = [key for key in _keywords(sys._getframe(depth + 1)) if key in given]
    unnamed = {key: value for key, value in named.items() if value is not defaults.get(key, MISSING)}
    named = {**{key: given.pop(key) for key in keywords}, **unnamed}
    if not rest:  # what ends the list and is as if it had not been given was not
        for key in reversed(list(given)):
            if given[key] is not defaults.get(key, MISSING):
                break
            del given[key]
    args = (*given.values(), *rest)
    said = signatures.refusal(space, name, args[1:] if space == "Tensor" else args, named)
    if said is None and type(error) is TypeError:
        said = _python_said(error, target, args, named, ("Tensor." if space == "Tensor" else "") + name)
    if said is not None:
        raise TypeError(said) from None


def _python_said(error: TypeError, target: Any, args: Any, named: dict[str, Any], name: str) -> str | None:
    """What Python says of a call for which a function has no parameters, as if the function were called ``name``."""
    try:
        inspect.signature(target).bind(*args, **named)
    except TypeError:
        try:
            target(*args, **named)
        except TypeError as found:
            error = found
    else:
        return None
    return str(error).replace(f"{target.__qualname__}()", f"{name}()", 1)


def _keywords(frame: FrameType | None) -> tuple[str, ...]:
    """The names that the call in this frame gave to its last arguments, read off its instructions."""
    while frame is not None and (frame.f_code.co_name == _first_call.__name__ or frame.f_globals.get("public") in PUBLIC):
        frame = frame.f_back
    if frame is None:
        return ()
    run = [each for each in dis.get_instructions(frame.f_code) if each.offset <= frame.f_lasti]
    names = [each for each in run[-3:] if each.opname == "KW_NAMES"]  # Python 3.11 and 3.12: just before the call
    if run and run[-1].opname == "CALL_KW":
        names = [each for each in run[-2:] if each.opname == "LOAD_CONST"]
    return frame.f_code.co_consts[names[0].arg or 0] if names else ()


# --- Public functions -----------------------------------------------------------------------------------------------


def _first_call(*args: Any, **kwargs: Any) -> Any:
    write(function)  # type: ignore[name-defined] # noqa: F821 - from the globals that guarded gives it
    return function(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821


def guarded(target: Callable[..., Any], space: str, name: str) -> Any:
    """``target`` as the public function ``name``; its code is written when it is first called."""
    made = FunctionType(_first_call.__code__, {"write": _write, "target": target, where.MARK: True}, name)
    made.__globals__.update(function=made, space=space, name=name)
    made.__doc__, made.__module__, made.__qualname__ = target.__doc__, "retrograd", name
    made.__wrapped__ = target  # type: ignore[attr-defined]
    return made


def _write(function: FunctionType) -> None:
    """Write the code for just the arguments of its target: 90 ns a call; ``*args, **kwargs`` would cost 150."""
    space = function.__globals__
    target, name = space["target"], space["name"]
    names = target.__code__.co_varnames[: target.__code__.co_argcount]
    given = target.__defaults__ or ()
    defaults = {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(target.__kwdefaults__ or {})}
    space.update(
        explain=explain, MISSING=MISSING, defaults=defaults, __name__="retrograd.ops.refusals",
        **{f"default_{each}": value for each, value in defaults.items()},
    )  # fmt: skip
    taken = [f"{each}=default_{each}" if each in defaults else f"{each}=MISSING" for each in names]
    missing = " or ".join(f"{each} is MISSING" for each in names if each not in defaults)
    lines = [
        f"def guard({', '.join([*taken, '*rest', '**named'])}):",
        "    try:",
        f"        if rest or named: return target({', '.join([*names, '*rest', '**named'])})",
        f"        if {missing}: raise TypeError" if missing else "",
        f"        return target({', '.join(names)})",
        "    except Exception as error:",
        f"        values = {{{', '.join(f'{each!r}: {each}' for each in names)}}}",
        f"        explain(error, target, {space['space']!r}, {name!r}, values, rest, named, defaults, 1)",
        "        raise",
    ]
    made = compiled(f"<guard of {name}>", [each for each in lines if each], dict(space), "guard")
    function.__defaults__ = made.__defaults__
    function.__code__ = made.__code__.replace(co_name=name, co_qualname=name)


def explained(apply: Callable[..., Any], op: Any, space: str, name: str) -> Callable[..., Any]:
    """``apply``, to which the written code of a block leaves what is not the common case, for its public function."""
    free = (*("input" if each == "self" else each for each in op.tensors), *op.params[: op.positional])
    only = op.params[op.positional :]

    def slow(op: Any, given: tuple[Any, ...], params: tuple[Any, ...], out: Any = None, rest: Any = ()) -> Any:
        try:
            if rest or any(each is MISSING for each in (*given, *params)):
                raise TypeError
            return apply(op, given, params, out)
        except Exception as error:
            values = dict(zip(free, (*given, *params), strict=False))
            named = {**dict(zip(only, params[op.positional :], strict=True)), "out": out}
            explain(error, op.kernel, space, name, values, rest, named, {"out": None, **op.defaults}, 2)
            raise

    return slow

