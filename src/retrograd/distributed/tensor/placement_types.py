"""``torch.distributed.tensor.placement_types``: ways in which a tensor is distributed along a dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass


class Placement:
    """Base class of the ways in which a tensor is distributed along a dimension of a mesh.

    >>> from retrograd.distributed.tensor import Partial, Replicate, Shard
    >>> Shard(1).is_shard(), Shard(1).is_shard(dim=0), Replicate().is_replicate(), Partial().is_partial()
    (True, False, True, True)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is split, along ``dim`` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether all ranks have the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is the reduction of the tensors of all ranks."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Placement of a tensor that is split along ``dim``."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Placement of a tensor that all ranks have."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Placement of a tensor that is the reduction of the tensors of all ranks, by ``"sum"``, ``"avg"``, ``"max"`` …"""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Placement of a tensor that is split along ``dim``, of which each rank has ``split_factor`` parts."""

    split_factor: int = 1


__all__ = ["Partial", "Placement", "Replicate", "Shard"]
