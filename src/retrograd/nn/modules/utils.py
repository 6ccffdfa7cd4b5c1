"""Helpers for arguments with one value or one per dimension, as ``torch.nn.modules.utils``."""

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


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove ``prefix`` (for example ``"module."``) from the keys of a state_dict, in place."""
    for name in [each for each in state_dict if each.startswith(prefix)]:
        state_dict[name[len(prefix) :]] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in [each for each in metadata if f"{each}.".startswith(prefix)]:
        metadata[name[len(prefix) :]] = metadata.pop(name)


def _reverse_repeat_tuple(t: Iterable[int], n: int) -> tuple[int, ...]:
    """Return the elements of ``t`` in reverse order, each ``n`` times.

    This converts one padding per dimension to the argument of ``F.pad``, whose order begins with the last dimension.
    """
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))
