"""Helpers for arguments that are one value or one value per dimension, as ``torch.nn.modules.utils``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str) -> Callable[[Any], tuple[Any, ...]]:
    def spread(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = f"Return ``x`` as a tuple if ``x`` is iterable, otherwise a tuple with {n} times ``x``."
    return spread


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
_sextuple = _ntuple(6, "_sextuple")


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove ``prefix``, for example ``"module."``, from the keys of ``state_dict`` in place."""
    for name in [each for each in state_dict if each.startswith(prefix)]:
        state_dict[name[len(prefix) :]] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in [each for each in metadata if f"{each}.".startswith(prefix)]:
        metadata[name[len(prefix) :]] = metadata.pop(name)


def _reverse_repeat_tuple(t: Iterable[int], n: int) -> tuple[int, ...]:
    """Return the elements of ``t`` in reverse order, each ``n`` times.

    With ``n=2``, the function converts a tuple of paddings per dimension to the argument of ``F.pad``, which has two
    paddings per dimension and begins with the last dimension.
    """
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))
