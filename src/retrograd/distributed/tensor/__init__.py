"""``torch.distributed.tensor``: tensors that are distributed over the ranks of a mesh; see docs/distributed.md."""

from __future__ import annotations

from ..device_mesh import DeviceMesh, init_device_mesh
from ._api import DTensor, distribute_tensor, empty, full, ones, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "empty", "full",
    "init_device_mesh", "ones", "zeros",
]  # fmt: skip
