"""``torch.nn._reduction``: the numbers and the former names of the reductions of losses."""

from __future__ import annotations

from ..operations.nn.losses import REDUCTIONS, parse_reduction


def get_enum(reduction: str) -> int:
    """Return the number of ``reduction``: 0 for ``"none"``, 1 for ``"mean"``, 2 for ``"sum"``."""
    return REDUCTIONS.index(parse_reduction(None, None, reduction))


def legacy_get_string(size_average: bool | None, reduce: bool | None) -> str:
    """Return the reduction that the former arguments ``size_average`` and ``reduce`` select; None means True."""
    return parse_reduction(size_average is None or size_average, reduce is None or reduce, "mean")


def legacy_get_enum(size_average: bool | None, reduce: bool | None) -> int:
    """Return :func:`get_enum` of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce))


__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]
