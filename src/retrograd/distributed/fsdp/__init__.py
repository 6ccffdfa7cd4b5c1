"""``torch.distributed.fsdp``: :func:`fully_shard`, and the names of the former ``FullyShardedDataParallel``.

Packages import the names of ``FullyShardedDataParallel``, whose constructor raises RuntimeError.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ...nn.modules.module import Module
from ._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)


@dataclass
class MixedPrecision:
    """Dtypes of parameters, reductions and buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Option to move parameters to the CPU."""

    offload_params: bool = False


class ShardingStrategy(Enum):
    """Enumeration of the parts of a module that are split over the ranks."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class StateDictType(Enum):
    """Kind of state dictionary."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class BackwardPrefetch(Enum):
    """Enumeration of the times at which parameters of the next module are collected."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class FullyShardedDataParallel(Module):
    """Module whose parameters are split over several processes; the constructor raises RuntimeError."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("FullyShardedDataParallel is not supported: use torch.distributed.fsdp.fully_shard")


__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision",
    "MixedPrecisionPolicy", "OffloadPolicy", "ShardingStrategy", "StateDictType", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
