"""``torch.distributed.fsdp``: options and classes of modules that are split over several processes.

Packages import these names. Modules are not split, because this version has no engine for several processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NoReturn

from ...nn.modules.module import Module


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of parameters, reductions and outputs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


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
class OffloadPolicy:
    """Policy that keeps parameters on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Policy that moves parameters to the CPU."""

    pin_memory: bool = True


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


def _fail() -> NoReturn:
    raise RuntimeError("a module is split over several processes, which this version does not support")


class FSDPModule:
    """Class of modules that were split by :func:`fully_shard`. It has no instances."""


class FullyShardedDataParallel(Module):
    """Module whose parameters are split over several processes; the constructor raises RuntimeError."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        _fail()


def fully_shard(module: Module, **kwargs: Any) -> Module:
    """Raise RuntimeError, because a module is split over several processes."""
    _fail()


__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision",
    "MixedPrecisionPolicy", "OffloadPolicy", "ShardingStrategy", "StateDictType", "fully_shard",
]  # fmt: skip
