"""``torch.distributed.tensor._utils``: the part of a tensor that a rank of a mesh has."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard


def shard_extent(size: int, count: int, position: int) -> tuple[int, int]:
    """Return the first index and the length of part ``position`` of a dimension of ``size``, split over ``count`` ranks.

    All parts have the length ``ceil(size / count)``, except for the last ones, which are shorter or empty.
    """
    part = -(-size // count)
    start = min(position * part, size)
    return start, min(part, size - start)


class MeshPart:
    """The first ``count`` dimensions of a mesh."""

    def __init__(self, mesh: DeviceMesh, count: int) -> None:
        self.shape = mesh.shape[:count]
        self._coordinate = (mesh.get_coordinate() or ())[:count]

    def get_coordinate(self) -> tuple[int, ...]:
        """Return the indices of this process in these dimensions."""
        return self._coordinate


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh | MeshPart, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of the part of this rank, and its position in the tensor of the shape ``global_shape``."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    for position, count, placement in zip(coordinate, mesh.shape, placements, strict=True):
        if isinstance(placement, Shard):
            start, length = shard_extent(shape[placement.dim], count, position)
            offset[placement.dim] += start
            shape[placement.dim] = length
    return tuple(shape), tuple(offset)


__all__ = ["compute_local_shape_and_global_offset"]
