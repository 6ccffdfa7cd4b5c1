"""``torch.nn.parallel.distributed``: the module of ``DistributedDataParallel``."""

from ...distributed.data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
