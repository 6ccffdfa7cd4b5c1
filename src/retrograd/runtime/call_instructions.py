"""The form of a statement, read from the instructions of the calling code.

The form of a call is read for programs without source text. Unpacking and assertions are read for values that are
recorded instead of computed (``torch.fx``).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dis import Instruction


def decode_call(frame: FrameType) -> ast.expr:
    """Return a syntax tree of the call that ``frame`` is evaluating, made from the instructions of its code.

    The tree has the called name, if there is one, the number of the positional arguments, and the names of the keyword
    arguments. All other expressions are ``None``. The code of a program has no source text in an interactive session,
    after ``python -c``, or if it was compiled from a string.
    """
    import dis  # slow to import, and rarely needed

    before: list[dis.Instruction] = []
    for each in dis.get_instructions(frame.f_code):
        if each.offset > frame.f_lasti:
            break
        before.append(each)
    call, function = before.pop(), -1
    names: tuple[str, ...] = ()
    if call.opname not in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
        return ast.Constant(None)
    if before[-1].opname == "PRECALL":
        before.pop()
    if before[-1].opname == "KW_NAMES" or call.opname == "CALL_KW":
        names = frame.f_code.co_consts[before.pop().arg or 0]
    places = [each.positions or (None,) * 4 for each in (*before, call)]
    *others, (first, _, start, _) = places
    if first is not None:  # the called expression begins where the call begins, and ends before it
        found = [i for i, each in enumerate(others) if each[::2] == (first, start) and each != places[-1]]
        function = next((i for i in reversed(found) if before[i].opname != "PUSH_NULL"), -1)
    if call.opname == "CALL_FUNCTION_EX":
        loads = [i for i in range(function + 1, len(before)) if before[i].opname.startswith("LOAD_")]
        sequence, *mappings = [_loaded(before, i) for i in loads] or [ast.Constant(None)]
        return ast.Call(
            _loaded(before, function), [ast.Starred(sequence)], [ast.keyword(None, each) for each in mappings]
        )
    args: list[ast.expr] = [ast.Constant(None)] * ((call.arg or 0) - len(names))
    return ast.Call(_loaded(before, function), args, [ast.keyword(name, ast.Constant(None)) for name in names])


def unpacked_count(frame: FrameType) -> int | None:
    """Return the number of variables into which ``frame`` is unpacking a value, or None if it does something else."""
    import dis

    running = next((each for each in dis.get_instructions(frame.f_code) if each.offset == frame.f_lasti), None)
    return running.arg if running is not None and running.opname == "UNPACK_SEQUENCE" else None


def is_asserting(frame: FrameType) -> bool:
    """Whether ``frame`` is evaluating the condition of an ``assert`` statement."""
    import dis

    following = [each for each in dis.get_instructions(frame.f_code) if each.offset >= frame.f_lasti][:5]
    jump = next((i for i, each in enumerate(following) if "JUMP" in each.opname), 5)
    loads = following[jump + 1 : jump + 3]
    return any(each.opname == "LOAD_ASSERTION_ERROR" or each.argrepr == "AssertionError" for each in loads)


def _loaded(instructions: Sequence[Instruction], last: int) -> ast.expr:
    """Return a syntax tree of the name or attribute that the instruction with the index ``last`` loads.

    The tree of anything else is ``None``, also if ``last`` is -1.
    """
    if last >= 0 and instructions[last].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return ast.Attribute(_loaded(instructions, last - 1), instructions[last].argval)
    if last >= 0 and instructions[last].opname.startswith(("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF")):
        name: Any = instructions[last].argval
        return ast.Name(name if isinstance(name, str) else name[-1])  # LOAD_FAST_LOAD_FAST loads two variables
    return ast.Constant(None)


__all__ = ["decode_call"]
