"""``torch.distributed.nn.functional``: collective operations that return new tensors and have gradients.

The gradient of an operation is the operation in the other direction, applied to the gradients of all ranks. All ranks
of the group must call ``backward``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...core.tensor import Tensor
from ...operations.creation.factory import empty_like, zeros_like
from ...operations.shape.join import cat
from .. import collectives
from ..collectives import Group
from ..groups import get_rank, get_world_size
from ..reductions import ReduceOp


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Group, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone().contiguous()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone().contiguous()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grads[0])
        return None, None, grad if get_rank() == ctx.src else zeros_like(grad)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Group, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone().contiguous()
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0])


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Group, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        results = [zeros_like(tensor) for _ in range(get_world_size(group))]
        collectives.gather(tensor.contiguous(), results if get_rank() == dst else None, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = zeros_like(tensors[0])
        collectives.scatter(result, list(tensors) if get_rank() == src else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grads[0])


class _Reduce_Scatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Group, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        collectives.reduce_scatter(output, [each.contiguous() for each in tensors], op, group)
        return output.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grads[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        results = [empty_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(results, tensor.contiguous(), group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        parts = _AlltoAll.apply(ctx.group, [empty_like(each) for each in grads], *grads)
        total = parts[0]
        for each in parts[1:]:
            total = total + each
        return None, total


class _AlltoAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, outputs: Sequence[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [each.shape for each in tensors]
        collectives.all_to_all(list(outputs), [each.contiguous() for each in tensors], group)
        return tuple(each.clone() for each in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *_AlltoAll.apply(ctx.group, outputs, *grads)


class _AlltoAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Group, output: Tensor, output_split_sizes: Any, input_split_sizes: Any, tensor: Tensor
    ) -> Tensor:  # fmt: skip
        ctx.group, ctx.input_shape, ctx.splits = group, tensor.shape, (input_split_sizes, output_split_sizes)
        collectives.all_to_all_single(output, tensor.contiguous(), output_split_sizes, input_split_sizes, group)
        return output.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        output = grads[0].new_empty(ctx.input_shape)
        return None, None, None, None, _AlltoAllSingle.apply(ctx.group, output, *ctx.splits, grads[0].contiguous())


def broadcast(tensor: Tensor, src: int, group: Group = None) -> Tensor:
    """Return ``tensor`` of the rank ``src``; its gradient there is the sum of the gradients of all ranks.

    See https://docs.pytorch.org/docs/stable/distributed.html#autograd-enabled-communication-primitives.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> from retrograd.distributed.nn.functional import broadcast
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> broadcast(x, 0).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    result: Tensor = _Broadcast.apply(src, group, tensor)
    return result


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> tuple[Tensor, ...]:
    """Return ``tensor`` of all ranks in the rank ``dst``, and tensors of zeros in other ranks.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (part,) = dist.nn.gather(x)
    >>> part.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    result: tuple[Tensor, ...] = _Gather.apply(dst, group, tensor)
    return result


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """Return the one of ``tensors`` of the rank ``src`` that is for this rank.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> dist.nn.scatter([3 * x], src=0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    result: Tensor = _Scatter.apply(src, group, *tensors)
    return result


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the reduction of ``tensor`` of all ranks in the rank ``dst``; its value in other ranks is undefined.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (2 * dist.nn.reduce(x, dst=0)).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    >>> dist.destroy_process_group()
    """
    result: Tensor = _Reduce.apply(dst, op, group, tensor)
    return result


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None
) -> Tensor:  # fmt: skip
    """Return the reduction of the item of ``input_list`` for this rank; ``output`` receives it too.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = dist.nn.reduce_scatter(torch.zeros(2), [2 * x])
    >>> y.sum().backward()
    >>> y.tolist(), x.grad
    ([2.0, 4.0], tensor([2., 2.]))
    >>> dist.destroy_process_group()
    """
    result: Tensor = _Reduce_Scatter.apply(op, group, output, *input_list)
    return result


def all_gather(tensor: Tensor, group: Group = None) -> tuple[Tensor, ...]:
    """Return ``tensor`` of all ranks, a tuple in the order of the ranks."""
    result: tuple[Tensor, ...] = _AllGather.apply(group, tensor)
    return result


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Group = None) -> Tensor:
    """Return ``input_tensor`` of all ranks, joined along the first dimension; ``output_tensor`` receives it too."""
    joined = cat(all_gather(input_tensor, group))
    output_tensor.detach().copy_(joined.detach().reshape(output_tensor.shape))
    return joined


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the items of all ranks' ``input_tensor_list`` that are for this rank; the outputs receive them too.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (part,) = dist.nn.all_to_all([torch.zeros(2)], [2 * x])
    >>> part.sum().backward()
    >>> part.tolist(), x.grad
    ([2.0, 4.0], tensor([2., 2.]))
    >>> dist.destroy_process_group()
    """
    result: tuple[Tensor, ...] = _AlltoAll.apply(group, output_tensor_list, *input_tensor_list)
    return result


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None,
    group: Group = None,
) -> Tensor:  # fmt: skip
    """Return the parts of all ranks' ``input`` that are for this rank; ``output`` receives them too.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = dist.nn.all_to_all_single(torch.zeros(2), 2 * x)
    >>> y.sum().backward()
    >>> y.tolist(), x.grad
    ([2.0, 4.0], tensor([2., 2.]))
    >>> dist.destroy_process_group()
    """
    result: Tensor = _AlltoAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)
    return result


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the reduction of ``tensor`` of all ranks; its gradient is the reduction of the gradients."""
    result: Tensor = _AllReduce.apply(op, group, tensor)
    return result


__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip
