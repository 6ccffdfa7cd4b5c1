"""``torch.utils.data.distributed``: the module of ``DistributedSampler``."""

from ...distributed.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
