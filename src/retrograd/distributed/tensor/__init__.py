"""``torch.distributed.tensor``: the class of tensors distributed over a mesh, of which no instances exist."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard


class DTensor(Tensor):
    """Class of tensors that are distributed over the ranks of a mesh. It exists for ``isinstance`` checks."""

    __module__ = "torch.distributed.tensor"

    def __new__(cls, *args: Any, **kwargs: Any) -> DTensor:
        raise _unsupported()


def distribute_tensor(tensor: Tensor, *args: Any, **kwargs: Any) -> DTensor:
    """Raise RuntimeError, because a tensor is distributed over several processes."""
    raise _unsupported()


def _unsupported() -> RuntimeError:
    return RuntimeError("distributed tensors need several processes, which this version does not support")


__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "init_device_mesh",
]
