"""Expressions by which a fused loop computes one element of an operation's result, derived from its kernel.

The kernel is called once with an :class:`Element` in place of each array (``kernels/scalar_code.py``). An operation has
no expression if its kernel calls a function that is in none of the tables, or decides by values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..kernels.scalar_code import BOOL, ArrayModule, Element, element_text, scalar_literal

if TYPE_CHECKING:
    from ..core.typing import ArrayDType
    from .ir import Step
    from .typing import Operation, Params


def expression_of(
    step: Step, dtype: ArrayDType, kind: type[Element] = Element
) -> tuple[Element, tuple[Element, ...]] | None:
    """Return the expression of ``step``, a recorded operation in a loop of ``dtype``, and the elements of its operands.

    The elements are of the class ``kind``, which has the table of the functions that the loop can compute.

    The result is None if the operation is not elementwise, or if no expression can be derived.
    """
    op = step.op
    if op.kind != "pointwise" and op.vmap not in ("elementwise", "loss") and op.scalar is None:
        return None
    operands = tuple([(each.dtype, each.size) if hasattr(each, "dtype") else (dtype, 1) for each in step.operands])
    try:
        return _derived(op, step.params, operands, repr(step.params), kind)
    except TypeError:  # unhashable parameters
        return None


@lru_cache(1024)
def _derived(
    op: Operation, params: Params, operands: tuple[tuple[ArrayDType, int], ...], text: str, kind: type[Element]
) -> tuple[Element, tuple[Element, ...]] | None:
    """Return the expression of ``op`` and the elements of its operands, or None.

    ``text`` is the text of ``params``. It is part of the key of the cache because -0.0 equals 0.0, and True equals 1.
    """
    given = tuple([kind(*each) for each in operands])
    try:
        if op.scalar is not None:
            found = op.scalar(*given, *params)
        else:
            named = dict(zip(op.params[op.positional :], params[op.positional :], strict=True))
            found = op.kernel(ArrayModule(), *given, *params[: op.positional], **named)
    except Exception:  # the kernel is more than functions of the tables
        return None
    return (found, given) if found.__class__ is kind else None


__all__ = ["BOOL", "element_text", "expression_of", "scalar_literal"]
