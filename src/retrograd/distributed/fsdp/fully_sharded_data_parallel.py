"""``torch.distributed.fsdp.fully_sharded_data_parallel``: the module of ``FullyShardedDataParallel``."""

from . import (
    BackwardPrefetch,
    CPUOffload,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullyShardedDataParallel", "MixedPrecision", "ShardingStrategy", "StateDictType",
]  # fmt: skip
