"""Numbers that may be given once for all dimensions, as ``torch.nn.modules.utils``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str) -> Callable[[Any], tuple[Any, ...]]:
    def spread(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = f"``x`` {n} times, or the tuple that it is."
    return spread


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
_sextuple = _ntuple(6, "_sextuple")


def _reverse_repeat_tuple(t: Iterable[int], n: int) -> tuple[int, ...]:
    """Each number ``n`` times, the last first: how ``pad`` takes what convolutions give by dimension."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))
