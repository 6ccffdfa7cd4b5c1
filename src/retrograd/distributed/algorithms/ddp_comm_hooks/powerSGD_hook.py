"""PowerSGD: communication hooks that reduce a low-rank approximation of the gradients.

A gradient M, seen as a matrix, is approximated by P Qᵀ with few columns: one step of the power method for the sum of M
over all ranks, which begins with Q of the last iteration. P = M Q and Q = Mᵀ P are reduced instead of M. What the
approximation leaves out is added to the next gradient (error feedback), so it is delayed, not lost.

Note [Order of reductions]. The reduction of Q follows the one of P. It is posted when the reducer waits for the bucket,
at the end of the backward pass, and not by a thread that finds P complete: all ranks must post reductions in one order.

Source: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ....core.dtypes import bfloat16, float16
from ....core.tensor import Tensor
from ....futures import Future
from ....operations.creation.factory import empty
from ....operations.creation.random import Generator
from ....operations.linalg.factorizations import qr
from ....operations.shape.join import cat, stack
from ...collectives import all_reduce
from ...groups import _checked_group
from ...reducer import GradBucket
from .default_hooks import _allreduce_fut


class _Deferred(Future[Tensor]):
    """Future whose value is computed by the thread that waits for it; Note [Order of reductions]."""

    def __init__(self, compute: Callable[[], Tensor]) -> None:
        super().__init__()
        self._compute = compute

    def wait(self) -> Tensor:
        if not self.done():
            self.set_result(self._compute())
        return super().wait()

    def then(self, callback: Callable[[Future[Tensor]], Any]) -> Future[Any]:
        return _Deferred(lambda: (self.wait(), callback(self))[1])


class PowerSGDState:
    """Options of :func:`powerSGD_hook`, and what it keeps from one iteration to the next.

    Args:
        process_group: Process group, None for the default group.
        matrix_approximation_rank: Number of columns of P and Q.
        start_powerSGD_iter: Number of iterations in which gradients are averaged without compression.
        min_compression_rate: A gradient is compressed if that saves more than this factor.
        use_error_feedback: Whether the error of the approximation is added to the next gradient.
        warm_start: Whether Q of the last iteration is used, instead of a random matrix.
        orthogonalization_epsilon: Number that is added to the norm of a column before the division by it.
        random_seed: Seed of the first Q.
        compression_stats_logging_frequency: Stored only.
        batch_tensors_with_same_shape: Whether gradients of one shape are multiplied together.
    """

    __slots__ = [
        "batch_tensors_with_same_shape", "compression_stats_logging_frequency", "error_dict", "iter",
        "matrix_approximation_rank", "min_compression_rate", "next_stats_report", "orthogonalization_epsilon",
        "p_memory_dict", "process_group", "q_memory_dict", "rng", "start_powerSGD_iter", "total_numel_after_compression",
        "total_numel_before_compression", "use_error_feedback", "warm_start",
    ]  # fmt: skip

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only "
                "be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback = min_compression_rate, use_error_feedback
        self.warm_start, self.orthogonalization_epsilon = warm_start, orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = numpy.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = _checked_group(None)
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration if ``bucket`` is the last."""
        self.iter += bucket.is_last()

    def compression_stats(self) -> tuple[float, int, int]:
        """Return the rate of compression, and the numbers of elements before and after the compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0), before, after


def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Make the columns of each of the ``matrices`` orthonormal, in place."""
    columns = matrices.shape[2]
    if columns > 2 and matrices.dtype not in (float16, bfloat16):
        matrices.copy_(qr(matrices)[0])
        return
    for index in range(columns):
        column = matrices[:, :, index : index + 1]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        if index + 1 < columns:
            rest = matrices[:, :, index + 1 :]
            rest -= (column * rest).sum(dim=1, keepdim=True) * column


def _fill_random(matrices: list[Tensor], state: PowerSGDState) -> None:
    """Fill ``matrices`` with normally distributed numbers, the same in all ranks."""
    generator = Generator().manual_seed(state.rng.randint(1_000_000_000))
    for each in matrices:
        each.normal_(generator=generator)


def _add_error(state: PowerSGDState, index: int, buffer: Tensor) -> Tensor | None:
    """Add the error of the last iteration to ``buffer``; return a copy of the sum, or None without error feedback."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        buffer.add_(state.error_dict[index])
    return buffer.detach().clone()


def _views(memory: Tensor, matrices: list[Tensor], dim: int, rank: int) -> Iterator[Tensor]:
    """Yield views of successive parts of ``memory``: for each of ``matrices`` the P (``dim`` 1) or Q (``dim`` 2)."""
    begin = 0
    for each in matrices:
        batch, rows, columns = each.shape
        shape = batch, each.shape[dim], min(rows, columns, rank)
        yield memory[begin : begin + math.prod(shape)].view(shape)
        begin += math.prod(shape)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients, those that are matrices or tensors of more dimensions by a low-rank approximation.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 30))
    >>> model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook)
    >>> dist.destroy_process_group()
    """
    group, buffer, index = _checked_group(state.process_group), bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, buffer)
    original = _add_error(state, index, buffer)
    rank = state.matrix_approximation_rank
    compressed: dict[Any, list[Tensor]] = {}
    others: list[Tensor] = []
    for each in bucket.gradients():
        matrix = each.reshape(each.shape[0], -1) if each.ndim else each.view(1, 1)
        rows, columns = matrix.shape
        kept = (rows + columns) * min(rows, columns, rank)
        state.total_numel_before_compression += rows * columns
        if kept * state.min_compression_rate < rows * columns:
            state.total_numel_after_compression += kept
            key = matrix.shape if state.batch_tensors_with_same_shape else len(compressed)
            compressed.setdefault(key, []).append(matrix)
        else:
            state.total_numel_after_compression += rows * columns
            others.append(each)
    if not compressed or state.batch_tensors_with_same_shape:
        groups = list(compressed.values())
    else:  # in the order of PyTorch: gradients of one shape follow each other
        by_shape: dict[Any, list[Tensor]] = {}
        for (each,) in compressed.values():
            by_shape.setdefault(each.shape, []).append(each)
        groups = [[each] for members in by_shape.values() for each in members]
    matrices = [stack(each) if len(each) > 1 else each[0].unsqueeze(0) for each in groups]
    uncompressed = cat([each.reshape(-1) for each in others]) if others else buffer.new_empty(0)
    fresh = not state.warm_start or index not in state.p_memory_dict
    if fresh:
        sizes = [(each.shape[0], *each.shape[1:], min(*each.shape[1:], rank)) for each in matrices]
        for memory, side in ((state.p_memory_dict, 1), (state.q_memory_dict, 2)):
            count = sum(each[0] * each[side] * each[3] for each in sizes)
            memory[index] = empty(count, dtype=buffer.dtype, device=buffer.device)
    p_memory, q_memory = state.p_memory_dict[index], state.q_memory_dict[index]
    ps = list(_views(p_memory, matrices, 1, rank))
    qs = list(_views(q_memory, matrices, 2, rank))
    if fresh:
        _fill_random(qs, state)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(q, state.orthogonalization_epsilon)
        p.copy_(matrix @ q)
    works = [all_reduce(each, group=group, async_op=True) for each in (uncompressed, p_memory)]

    def finish() -> Tensor:
        for work in works:
            assert work is not None
            work.wait()
        for matrix, p, q in zip(matrices, ps, qs, strict=True):
            _orthogonalize(p, state.orthogonalization_epsilon)
            q.copy_(matrix.transpose(1, 2) @ p)
        all_reduce(q_memory, group=group)
        q_memory.div_(group.size())
        uncompressed.div_(group.size())
        begin = 0
        for each in others:
            each.copy_(uncompressed[begin : begin + each.numel()].view(each.shape))
            begin += each.numel()
        for members, p, q in zip(groups, ps, qs, strict=True):
            for each, product in zip(members, p @ q.transpose(1, 2), strict=True):
                each.copy_(product)
        if original is not None:
            state.error_dict[index] = original - buffer
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        state.maybe_increase_iter(bucket)
        return buffer

    return _Deferred(finish)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients by one low-rank approximation of the whole bucket, seen as a square matrix.

    This is quicker than :func:`powerSGD_hook`, and less accurate.
    """
    group, buffer, index = _checked_group(state.process_group), bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, buffer)
    length = buffer.shape[0]
    side = math.ceil(math.sqrt(length))
    state.total_numel_before_compression += length
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    padded = cat([buffer, buffer.new_zeros(side * side - length)])
    original = _add_error(state, index, padded)
    matrix = padded.view(1, side, side)
    if not state.warm_start or index not in state.p_memory_dict:
        shape = 1, side, state.matrix_approximation_rank
        state.p_memory_dict[index] = empty(shape, dtype=buffer.dtype, device=buffer.device)
        state.q_memory_dict[index] = empty(shape, dtype=buffer.dtype, device=buffer.device)
        _fill_random([state.q_memory_dict[index][0]], state)
    p, q = state.p_memory_dict[index], state.q_memory_dict[index]
    _orthogonalize(q, state.orthogonalization_epsilon)
    p.copy_(matrix @ q)
    work = all_reduce(p, group=group, async_op=True)

    def finish() -> Tensor:
        assert work is not None
        work.wait()
        _orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(matrix.transpose(1, 2) @ p)
        all_reduce(q, group=group)
        q.div_(group.size())
        matrix.copy_(p @ q.transpose(1, 2))
        if original is not None:
            state.error_dict[index] = original - padded
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        state.maybe_increase_iter(bucket)
        return buffer.copy_(padded[:length])

    return _Deferred(finish)


__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]
