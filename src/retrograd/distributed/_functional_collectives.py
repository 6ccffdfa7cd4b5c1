"""``torch.distributed._functional_collectives``: collective operations that return new tensors."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core.tensor import Tensor
from ..operations.creation.factory import empty
from .collectives import all_gather_single
from .collectives import all_reduce as _reduce
from .collectives import all_to_all_single as _exchange
from .collectives import broadcast as _broadcast
from .collectives import reduce_scatter_single as _reduce_scatter
from .groups import get_world_size
from .reductions import ReduceOp


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return ``tensor``, because the operations of this module are complete when they return."""
    return tensor


def _reduction(name: str) -> Any:
    return getattr(ReduceOp, name.upper())


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """Return the reduction of ``self`` of all ranks."""
    out = self.detach().clone()
    _reduce(out, _reduction(reduceOp), group)
    return out


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Return ``self`` of the rank ``src``."""
    out = self.detach().clone()
    _broadcast(out, src, group)
    return out


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return ``self`` of all ranks, joined along ``gather_dim``."""
    first = self.detach().movedim(gather_dim, 0).contiguous()
    out = empty(get_world_size(group) * first.shape[0], *first.shape[1:], dtype=self.dtype, device=self.device)
    all_gather_single(out, first, group)
    return out.movedim(0, gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return the part for this rank of the reduction of ``self`` of all ranks, split along ``scatter_dim``."""
    first = self.detach().movedim(scatter_dim, 0).contiguous()
    out = empty(first.shape[0] // get_world_size(group), *first.shape[1:], dtype=self.dtype, device=self.device)
    _reduce_scatter(out, first, _reduction(reduceOp), group)
    return out.movedim(0, scatter_dim)


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:  # fmt: skip
    """Return the parts for this rank of ``self`` of all ranks."""
    length = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    out = empty(length, *self.shape[1:], dtype=self.dtype, device=self.device)
    _exchange(out, self.detach(), output_split_sizes, input_split_sizes, group)
    return out


class _AllToAll(Function):
    """Exchange of parts whose derivative is the exchange in the other direction."""

    @staticmethod
    def forward(ctx: Any, self: Tensor, outputs: Any, inputs: Any, group: Any) -> Any:
        ctx.sizes_and_group = inputs, outputs, group
        return all_to_all_single(self, outputs, inputs, group)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return all_to_all_single(grads[0].contiguous(), *ctx.sizes_and_group), None, None, None


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:  # fmt: skip
    """Return what :func:`all_to_all_single` returns, with its derivative."""
    result: Tensor = _AllToAll.apply(self, output_split_sizes, input_split_sizes, group)
    return result


class AsyncCollectiveTensor(Tensor):
    """Class of results that are not complete. It has no instances (see :func:`wait_tensor`)."""


__all__ = [
    "AsyncCollectiveTensor", "all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
    "broadcast", "reduce_scatter_tensor",
    "wait_tensor",
]  # fmt: skip
