"""Communication hooks that average gradients, also in 16 bits; ``state`` is a process group, or None for the default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.dtypes import bfloat16, float16
from ....core.tensor import Tensor
from ....futures import Future
from ...collectives import all_reduce
from ...groups import ProcessGroup, _checked_group
from ...reducer import GradBucket


def _allreduce_fut(process_group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """Divide ``tensor`` by the number of ranks, and return a future of its sum over all ranks."""
    group = _checked_group(process_group)
    tensor.div_(group.size())  # before the sum, which could overflow in float16
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    result: Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return result


def allreduce_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients, as is done without a hook.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, allreduce_hook)
    >>> dist.destroy_process_group()
    """
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: Any, process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in ``dtype``."""
    group, buffer = _checked_group(process_group), bucket.buffer()
    compressed = buffer.to(dtype, copy=True).div_(group.size())
    work = all_reduce(compressed, group=group, async_op=True)
    assert work is not None
    result: Future[Tensor] = work.get_future().then(lambda done: buffer.copy_(done.value()[0]))
    return result


def fp16_compress_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in float16, which halves the number of bytes that ranks exchange."""
    return _compress_hook(float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in bfloat16, which has the range of float32, and 8 bits of precision."""
    return _compress_hook(bfloat16, process_group, bucket)


def _wrapper(hook: Callable[..., Future[Tensor]], dtype: Any) -> Callable[..., Future[Tensor]]:
    def compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype, copy=True))
        result: Future[Tensor] = hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))
        return result

    return compress_wrapper_hook


def fp16_compress_wrapper(hook: Callable[..., Future[Tensor]]) -> Callable[..., Future[Tensor]]:
    """Return a hook that calls ``hook`` with the gradients in float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Callable[..., Future[Tensor]]) -> Callable[..., Future[Tensor]]:
    """Return a hook that calls ``hook`` with the gradients in bfloat16."""
    return _wrapper(hook, bfloat16)


__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip
