"""Tensors that stand for more than their array: what an operation does with them is their class's business.

A subclass of :class:`Interpreted` belongs to one run of a transformation (a level): the duals of forward mode, the batches
of vmap. Its ``_array`` has the shape and dtype that the user sees, so that surfaces can sort out arguments by it; what is
computed, ``process`` decides, once an operation has come as far as its block. Nothing is paid where there are none: they
are looked for only among operands that are not exactly Tensors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor


class Interpreted(Tensor):
    """A tensor of a transformation; ``level`` says how deep that is nested (the innermost has the highest)."""

    __slots__ = ()  # so that an instance may become a plain tensor
    level: int

    @abstractmethod
    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        """What ``op`` gives for operands of which ``self`` is one of the innermost level.

        ``in_place``: the first operand takes the result, and is returned.
        """


def innermost(tensors: Sequence[Any]) -> Interpreted | None:
    """The operand whose transformation has to act first, or None."""
    found = [each for each in tensors if isinstance(each, Interpreted)]
    return max(found, key=lambda each: each.level) if found else None
