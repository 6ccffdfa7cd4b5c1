"""Change of the placements of a distributed tensor: communication between the ranks of a mesh, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...core.tensor import Tensor, contiguous_format
from ...operations.creation.factory import empty, zeros
from ...operations.shape.join import cat
from ..collectives import all_gather, all_reduce
from ..device_mesh import DeviceMesh
from ..groups import get_world_size
from ..reductions import ReduceOp
from ._utils import MeshPart, compute_local_shape_and_global_offset, shard_extent
from .placement_types import Partial, Placement, Replicate, Shard

Placements = Sequence[Placement]


def redistributed(local: Tensor, shape: Sequence[int], mesh: DeviceMesh, old: Placements, new: Placements) -> Tensor:
    """Return the part of this rank for the placements ``new``.

    ``local`` is its part for the placements ``old``, and ``shape`` the shape of the whole tensor. All ranks of ``mesh``
    call this function. A part may be returned as it is. The derivative is the change from ``new`` to ``old``.
    """
    if tuple(old) == tuple(new):
        return local
    if local.requires_grad:
        result: Tensor = _Redistribution.apply(local, tuple(shape), mesh, tuple(old), tuple(new))
        return result
    return _redistribute(local, tuple(shape), mesh, tuple(old), tuple(new))


class _Redistribution(Function):
    """Redistribution that is recorded; a partial sum has the gradient of the sum."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, shape: Any, mesh: Any, old: Any, new: Any) -> Tensor:
        ctx.change = shape, mesh, old, new
        return _redistribute(local.detach(), shape, mesh, old, new)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        shape, mesh, old, new = ctx.change
        there, back = ([Replicate() if isinstance(each, Partial) else each for each in each_] for each_ in (new, old))
        return redistributed(grads[0], shape, mesh, there, back), None, None, None, None


class _SumOfGradients(Function):
    """Identity whose gradient is summed over the ranks of groups."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, members: Any) -> Tensor:
        ctx.members = members
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = grads[0]
        for group in ctx.members:
            total = reduce_partial(total, Partial(), group)
        return total, None


def with_summed_gradient(local: Tensor, members: Sequence[Any]) -> Tensor:
    """Return ``local``, whose gradient is the sum of the gradients of the ranks of the groups ``members``.

    A replicated tensor needs it if each rank uses it for another part of a result.
    """
    if not members or not local.requires_grad:
        return local
    result: Tensor = _SumOfGradients.apply(local, tuple(members))
    return result


def _redistribute(
    local: Tensor, shape: tuple[int, ...], mesh: DeviceMesh, old: Placements, new: Placements
) -> Tensor:  # fmt: skip
    """Do what :func:`redistributed` does, without recording."""
    first = next(index for index, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    # A later dimension of the mesh splits the parts of the earlier ones: it is joined before them, and split after them.
    for index in reversed(range(first, mesh.ndim)):
        placement = old[index]
        if isinstance(placement, Shard):
            whole, _ = compute_local_shape_and_global_offset(shape, MeshPart(mesh, index), old[:index])
            local = gather_shards(local, whole[placement.dim], placement.dim, mesh.get_group(index))
        elif isinstance(placement, Partial) and placement != new[index]:
            local = reduce_partial(local, placement, mesh.get_group(index))
    for index in range(first, mesh.ndim):
        placement = new[index]
        if isinstance(placement, Shard):
            start, length = shard_extent(local.shape[placement.dim], mesh.shape[index], mesh.get_group(index).rank())
            local = local.narrow(placement.dim, start, length).clone(memory_format=contiguous_format)
    return local


def gather_shards(local: Tensor, size: int, dim: int, group: Any) -> Tensor:
    """Return the tensor whose parts along ``dim``, of the total length ``size``, are ``local`` of the ranks of ``group``."""
    count = get_world_size(group)
    if count == 1:
        return local.clone()
    part = -(-size // count)
    shape = list(local.shape)
    shape[dim] = part
    if local.shape[dim] < part:  # all ranks send the same number of elements
        padded = zeros(shape, dtype=local.dtype, device=local.device)
        padded.narrow(dim, 0, local.shape[dim]).copy_(local.detach())
        local = padded
    parts = [empty(shape, dtype=local.dtype, device=local.device) for _ in range(count)]
    all_gather(parts, local.detach().contiguous(), group)
    extents = [shard_extent(size, count, position)[1] for position in range(count)]
    return cat([each.narrow(dim, 0, length) for each, length in zip(parts, extents, strict=True)], dim)


def reduce_partial(local: Tensor, placement: Partial, group: Any) -> Tensor:
    """Return the reduction of ``local`` of the ranks of ``group``, which ``placement`` determines."""
    count = get_world_size(group)
    kind = {"avg": "sum"}.get(placement.reduce_op, placement.reduce_op)
    total = local.detach().clone()
    all_reduce(total, getattr(ReduceOp, kind.upper()), group)
    return total / count if placement.reduce_op == "avg" else total


__all__ = ["redistributed", "with_summed_gradient"]
