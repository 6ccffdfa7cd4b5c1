"""Calls that failed: whether their arguments were to blame, and then PyTorch's words for it.

A public function that raises, of whatever kind and from however deep, comes here with the arguments as they were
given; if no signature takes them (``signatures.py``), its error becomes the one that PyTorch's parser of arguments
raises before anything is done. So no function checks the types of its arguments, and a call that succeeds pays nothing
but a ``try``. Arguments that are missing are MISSING, which nothing can compute with.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..core import where
from . import signatures


class _Missing:
    """Stands for an argument that was not given."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


def explain(space: str, name: str, values: dict[str, Any], rest: Any, named: Any, defaults: Any, depth: int) -> None:
    """Raise PyTorch's error if it was the arguments of ``name`` that made a call fail; otherwise return.

    ``values``: the arguments by name, in order; ``rest`` and ``named``: what there was no name for; ``depth``: how many
    frames above this one the call was made.
    """
    keywords = _keywords(sys._getframe(depth + 1))
    given = {key: value for key, value in values.items() if value is not MISSING}
    named = {**{key: given.pop(key) for key in keywords if key in given}, **named}
    if not rest:  # an argument at the end that is as if it had not been given was not
        for key in reversed(list(given)):
            if given[key] is not defaults.get(key, MISSING):
                break
            del given[key]
    said = signatures.refusal(space, name, (*given.values(), *rest), named)
    if said is not None:
        raise TypeError(said) from None


def _keywords(frame: FrameType | None) -> tuple[str, ...]:
    """The names that the call in this frame gave to its last arguments, read off its instructions."""
    if frame is None or frame.f_lasti < 0:
        return ()
    before: list[Any] = []
    for each in dis.get_instructions(frame.f_code):
        if each.offset == frame.f_lasti:
            break
        before = [*before[-1:], each] if each.opname not in ("PRECALL", "CACHE") else before
    last = before[-1] if before else None
    if last is not None and last.opname in ("KW_NAMES", "LOAD_CONST") and isinstance(last.argval, tuple):
        if last.opname == "KW_NAMES" or each.opname.startswith("CALL_KW"):
            return last.argval
    return ()


def guarded(target: Callable[..., Any], space: str, name: str) -> Callable[..., Any]:
    """``target`` as the public function ``name``, with PyTorch's errors for wrong arguments.

    Its code is written for its arguments, which costs 50 ns a call; ``*args, **kwargs`` would cost twice that.
    """
    from .calls import compiled

    code = target.__code__
    names = code.co_varnames[: code.co_argcount]
    optional = dict(zip(names[len(names) - len(target.__defaults__ or ()) :], target.__defaults__ or (), strict=True))
    space_of: dict[str, Any] = {
        "target": target, "explain": explain, "MISSING": MISSING, "__name__": "retrograd.ops.refusals", where.MARK: True,
        "defaults": {**optional, **(target.__kwdefaults__ or {})},
    }  # fmt: skip
    taken = [f"{each}=defaults[{each!r}]" if each in optional else f"{each}=MISSING" for each in names]
    required = " or ".join(f"{each} is MISSING" for each in names if each not in optional)
    given = "".join(f"{each}, " for each in names)
    lines = [
        f"def {target.__name__}({', '.join([*taken, '*rest', '**named'])}):",
        "    try:",
        f"        if rest or named: return target({given}*rest, **named)",
        *([f"        if {required}: raise TypeError"] if required else []),
        f"        return target({given.rstrip(', ')})",
        "    except Exception:",
        f"        explain({space!r}, {name!r}, dict({', '.join(f'{each}={each}' for each in names)}), rest, named, defaults, 1)",
        "        raise",
    ]
    made = compiled(f"<{name}>", lines, space_of, target.__name__)
    functools.update_wrapper(made, target)
    return made  # type: ignore[no-any-return]
