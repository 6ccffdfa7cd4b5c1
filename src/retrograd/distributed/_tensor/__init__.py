"""``torch.distributed._tensor``: the former name of ``torch.distributed.tensor``."""

from ..tensor import DeviceMesh, DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

__all__ = ["DTensor", "DeviceMesh", "Partial", "Replicate", "Shard", "distribute_tensor", "init_device_mesh"]
