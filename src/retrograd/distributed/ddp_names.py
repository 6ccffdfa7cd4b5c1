"""Names of ``torch.distributed`` from which ``DistributedDataParallel`` is built in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ..core.tensor import Tensor
from .algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from .groups import ProcessGroup
from .module_states import broadcast_coalesced as _broadcast_coalesced  # noqa: F401 - read as torch.distributed._broadcast_coalesced
from .module_states import verify_shapes
from .reducer import Hook, Reducer, assign_buckets

_DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024


class BuiltinCommHookType(Enum):
    """Communication hooks that ``DistributedDataParallel._register_builtin_comm_hook`` accepts."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1

    @property
    def hook(self) -> Hook:
        """The function of :mod:`torch.distributed.algorithms.ddp_comm_hooks.default_hooks`."""
        return (allreduce_hook, fp16_compress_hook)[self.value]


def _compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor], bucket_size_limits: Sequence[int], expect_sparse_gradient: Sequence[bool] = (),
    tensor_indices: Sequence[int] = (),
) -> tuple[list[list[int]], list[int]]:  # fmt: skip
    """Return the indices of the tensors in each bucket, and the limit of each bucket in bytes."""
    sparse = list(expect_sparse_gradient) or [False] * len(tensors)
    buckets = assign_buckets(tensors, sparse, bucket_size_limits, list(tensor_indices) or None)
    last = len(bucket_size_limits) - 1
    return buckets, [bucket_size_limits[min(number, last)] for number in range(len(buckets))]


def _verify_params_across_processes(process_group: ProcessGroup, params: Sequence[Tensor], logger: Any = None) -> None:
    """Raise RuntimeError unless ``params`` have the same shapes in all ranks."""
    verify_shapes(process_group, params, [f"params[{index}]" for index in range(len(params))])


def _register_comm_hook(reducer: Reducer, state: Any, comm_hook: Hook) -> None:
    """Set the communication hook of ``reducer``."""
    reducer.hook = comm_hook, state


def _register_builtin_comm_hook(reducer: Reducer, comm_hook_type: BuiltinCommHookType) -> None:
    """Set a communication hook of ``reducer`` by its name."""
    reducer.hook = comm_hook_type.hook, reducer.group


__all__ = ["BuiltinCommHookType"]
