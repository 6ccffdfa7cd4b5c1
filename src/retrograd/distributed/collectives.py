"""Collective operations on tensors, and operations between two ranks.

Each function checks its arguments and starts an operation of the group's engine. With ``async_op=True`` it returns a
:class:`Work` at once; otherwise it waits, and returns None. In a process that is not a member of the group it warns and
returns None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..core.dtypes import cpp_name
from ..core.tensor import Tensor
from ..runtime.user_frame import strips_frames, warn
from .engine import Operation
from .groups import ProcessGroup, _checked_group, _rank_not_in_group, _warn_not_in_group, get_group_rank
from .reductions import ReduceOp, reduce_type, supports_complex
from .work import Work

Group = ProcessGroup | None


# -- Checks ------------------------------------------------------------------------------------------------------------


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_tensors(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, Tensor) for each in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )


def _check_dtypes(first: Tensor, others: Sequence[Tensor]) -> None:
    for each in others:
        if each.dtype != first.dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {first.dtype} and  {each.dtype}")


def _check_shapes(operation: str, expected: Tensor, found: Sequence[Tensor]) -> None:
    for index, each in enumerate(found):
        if each.shape != expected.shape:
            sizes = [f"({', '.join(map(str, shape))})" for shape in (expected.shape, each.shape)]
            raise RuntimeError(
                f"ProcessGroupGloo::{operation}: invalid tensor size at index {index} (expected {sizes[0]}, got {sizes[1]})"
            )


def _check_gathered(group: ProcessGroup, outputs: Sequence[Tensor]) -> None:
    if len(outputs) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {group.size()}, got "
            f"{len(outputs)})"
        )


def _options(tensor: Tensor) -> str:
    """Return PyTorch's description of the dtype and the device of ``tensor``."""
    return (
        f"TensorOptions(dtype={cpp_name(tensor.dtype)}, device={tensor.device}, layout=Strided, "
        "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _sizes(tensor: Tensor, first: int = 0) -> str:
    return " ".join(map(str, tensor.shape[first:]))


def _check_contiguous(*tensors: Tensor) -> None:
    if not all(each.is_contiguous() for each in tensors):
        raise ValueError("Tensors must be contiguous")


def _check_message(tensor: Tensor, tag: int) -> None:
    if tag < 0:
        raise RuntimeError("Tag must be nonnegative")
    if not tensor.is_contiguous():
        raise RuntimeError("input tensor has to be contiguous")


def _check_count(operation: str, what: str, values: Sequence[Any], size: int) -> None:
    if len(values) != size:
        raise RuntimeError(
            f"ProcessGroupGloo::{operation}: Incorrect {what} list size {len(values)}. {what.capitalize()} list size should "
            f"be {size}, same as size of the process group."
        )


def _check_reduction(name: str, tensor: Tensor, op: Any) -> ReduceOp.RedOpType:
    kind = reduce_type(op)
    if tensor.is_complex() and not supports_complex(kind):
        if name == "all_reduce":
            raise ValueError(f"all_reduce does not support {kind} on complex tensors")
        raise RuntimeError(f"{'reduce' if name == 'reduce' else 'all_reduce'} does not supporton complex tensors")
    return kind


def _check(condition: str, first: Any, second: Any) -> None:
    """Raise the error of PyTorch's internal checks if ``first`` and ``second`` differ."""
    if first != second:
        raise RuntimeError(f"Check failed: {condition} ({first} vs. {second}). ")


def _root(operation: str, group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """Return the rank in ``group`` of the root of ``operation``, of which one of the two ranks is given."""
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if global_rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    rank = global_rank if group_rank is None else group_rank
    assert rank is not None
    if group_rank is None and rank in group._ranks:
        rank = group._ranks.index(rank)
    elif not 0 <= rank < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{operation}: invalid root rank: {rank}")
    return rank


def _run(
    async_op: bool, operations: Operation | list[Operation], results: Sequence[Tensor], ranks: list[int] | None = None
) -> Work | None:  # fmt: skip
    """Return the Work of started ``operations`` if ``async_op`` is true; otherwise wait for them."""
    started = operations if isinstance(operations, list) else [operations]
    if async_op:
        for each in started:
            each.detach()
        return Work(started, results, ranks)
    for each in started:
        each.wait()
    return None


# -- All ranks get a result --------------------------------------------------------------------------------------------


@strips_frames
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Replace ``tensor`` by the reduction of ``tensor`` of all ranks."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    found = _checked_group(group)
    kind = _check_reduction("all_reduce", tensor, op)
    if tensor.is_sparse:
        if kind != ReduceOp.SUM:
            raise RuntimeError("unsupported reduction operation: sparse tensors can only be summed")
        return _run(async_op, found._engine.all_reduce_sparse(tensor), [tensor])
    return _run(async_op, found._engine.all_reduce(tensor, kind), [tensor])


@strips_frames
def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Replace each of ``tensors`` by the reduction of the corresponding tensors of all ranks. Deprecated."""
    _warn_of_coalesced("all_reduce_coalesced")
    values = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensors(values, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    found = _checked_group(group)
    kinds = [_check_reduction("all_reduce", each, op) for each in values]
    return _run(
        async_op, [found._engine.all_reduce(each, kind) for each, kind in zip(values, kinds, strict=True)], values
    )


@strips_frames
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False) -> Work | None:
    """Copy ``tensor`` of each rank into the item of ``tensor_list`` for this rank."""
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    if tensor_list:
        _check_dtypes(tensor_list[0], [*tensor_list, tensor])
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    found = _checked_group(group)
    _check_gathered(found, tensor_list)
    _check_shapes("allgather", tensor, tensor_list)
    return _run(async_op, found._engine.all_gather(tensor_list, tensor), tensor_list)


@strips_frames
def all_gather_single(output: Tensor, input: Tensor, group: Group = None, async_op: bool = False) -> Work | None:
    """Copy ``input`` of all ranks into ``output``, which consists of one part of its first dimension for each rank."""
    _check_tensor(input, "input_tensor")
    _check_tensor(output, "output_tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_single")
    found = _checked_group(group)
    parts = [output] if found.size() == 1 else list(output.detach().chunk(found.size()))
    if output.dtype != input.dtype:
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected "
            f"{_options(input)}, got {_options(output)})"
        )
    _check_shapes("allgather", input, parts)
    if len(parts) != found.size():
        _check_gathered(found, parts)
    return _run(async_op, found._engine.all_gather(parts, input), [output])


@strips_frames
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Deprecated name of :func:`all_gather_single`."""
    _warn_of_name("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


@strips_frames
def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Copy the tensors ``input_tensor_list`` of each rank into the list of outputs for this rank. Deprecated."""
    _warn_of_coalesced("all_gather_coalesced")
    _check_tensors(input_tensor_list, "input_tensor_list")
    for each in output_tensor_lists:
        _check_tensors(each, "output_tensor_lists")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    found = _checked_group(group)

    operations = [
        found._engine.all_gather([outputs[index] for outputs in output_tensor_lists], each)
        for index, each in enumerate(input_tensor_list)
    ]
    return _run(async_op, operations, [each for outputs in output_tensor_lists for each in outputs])


@strips_frames
def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Copy the reduction of the item of ``input_list`` for this rank to ``output``."""
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    if input_list:
        _check_dtypes(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    found = _checked_group(group)
    if len(input_list) != found.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    for each in input_list:
        _check("outputs[0].sizes().vec() == inputs[0][i].sizes().vec()", _sizes(output), _sizes(each))
    kind = _check_reduction("reduce_scatter", output, op)
    return _run(async_op, found._engine.reduce_scatter(output, input_list, kind), [output])


@strips_frames
def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Copy the reduction of the part of ``input`` for this rank, along the first dimension, to ``output``."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_single")
    found = _checked_group(group)
    _check("outputTensors[i].dtype() == inputTensors[i].dtype()", cpp_name(output.dtype), cpp_name(input.dtype))
    if output.dim() and input.dim():
        expected = output.shape[0] * found.size()
        _check("outputShape[0] * worldSize == inputShape[0]", expected, input.shape[0])
        _check("outputShape.slice(1) == inputShape.slice(1)", _sizes(output, 1), _sizes(input, 1))
        parts = [input] if found.size() == 1 else list(input.detach().chunk(found.size()))
    else:
        _check(
            "outputTensors[i].numel() * worldSize == inputTensors[i].numel()",
            output.numel() * found.size(),
            input.numel(),
        )
        parts = list(input.detach().reshape(found.size(), *output.shape).unbind(0))
    kind = _check_reduction("reduce_scatter", output, op)
    return _run(async_op, found._engine.reduce_scatter(output, parts, kind), [output])


@strips_frames
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Deprecated name of :func:`reduce_scatter_single`."""
    _warn_of_name("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


@strips_frames
def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Send each item of ``input_tensor_list`` to its rank, and receive the items of all ranks in the outputs."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    if output_tensor_list:
        _check_dtypes(output_tensor_list[0], [*output_tensor_list, *input_tensor_list])
    found = _checked_group(group)
    for name, values in (("input", input_tensor_list), ("output", output_tensor_list)):
        if len(values) != found.size():
            raise RuntimeError(
                f"ProcessGroupGloo::alltoall: {name} tensor list size {len(values)} does not match world size {found.size()}"
            )
    rank = found.rank()
    if output_tensor_list[rank].shape != input_tensor_list[rank].shape:
        raise RuntimeError("ProcessGroupGloo::alltoall: input and output tensors must have the same size")
    return _run(async_op, found._engine.all_to_all(output_tensor_list, input_tensor_list), output_tensor_list)


@strips_frames
def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None,
    group: Group = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send each part of ``input`` to its rank, and receive the parts of all ranks in ``output``.

    The parts are along the first dimension, of the given sizes, and by default of equal sizes.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_dtypes(output, [input])
    found = _checked_group(group)
    _check_contiguous(output, input)
    outputs = _split(output.detach(), output_split_sizes, found.size())
    inputs = _split(input, input_split_sizes, found.size())
    if outputs[found.rank()].shape != inputs[found.rank()].shape:
        raise RuntimeError("ProcessGroupGloo::alltoall: input and output tensors must have the same size")
    return _run(async_op, found._engine.all_to_all(outputs, inputs), [output])


def _split(tensor: Tensor, sizes: list[int] | None, count: int) -> list[Tensor]:
    """Return views of ``count`` successive parts of ``tensor`` along its first dimension."""
    length = tensor.shape[0] if tensor.dim() else 1
    if not tensor.dim():
        tensor = tensor.reshape(1)
    if not sizes:
        if length % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.split(sizes))


@strips_frames
def barrier(
    group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:  # fmt: skip
    """Wait until all ranks of ``group`` have called this function."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    found = _checked_group(group)
    return _run(async_op, found._engine.barrier(timeout), [])


@strips_frames
def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait as :func:`barrier` does, with ``timeout``."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    _checked_group(group)._engine.monitored_barrier(timeout, wait_all_ranks).wait()
    return None


# -- One rank is the root ----------------------------------------------------------------------------------------------


@strips_frames
def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:  # fmt: skip
    """Copy ``tensor`` of the rank ``src`` to ``tensor`` of all ranks."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    found = _checked_group(group)
    root = _root("broadcast", found, src, group_src)
    return _run(async_op, found._engine.broadcast(tensor, root), [tensor])


@strips_frames
def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Replace ``tensor`` of the rank ``dst`` by the reduction of ``tensor`` of all ranks."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    found = _checked_group(group)
    root = _root("reduce", found, dst, group_dst)
    kind = _check_reduction("reduce", tensor, op)
    return _run(async_op, found._engine.reduce(tensor, root, kind), [tensor])


@strips_frames
def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Group = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Copy ``tensor`` of each rank into an item of ``gather_list`` of the rank ``dst``, by default rank 0.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> parts = [torch.zeros(2)]
    >>> dist.gather(torch.tensor([1.0, 2.0]), parts, dst=0)
    >>> parts
    [tensor([1., 2.])]
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    found = _checked_group(group)
    root = _root("gather", found, 0 if dst is None and group_dst is None else dst, group_dst)
    check_root_list(gather_list, found.rank() == root, "gather_list", "destination")
    if gather_list:
        _check_tensors(gather_list, "gather_list")
        _check_count("gather", "output", gather_list, found.size())
        _check_dtypes(gather_list[0], [*gather_list, tensor])
        _check_shapes("gather", tensor, gather_list)
    return _run(async_op, found._engine.gather(gather_list, tensor, root), gather_list or [])


@strips_frames
def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Group = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Copy each item of ``scatter_list`` of the rank ``src``, by default rank 0, to ``tensor`` of its rank.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> part = torch.zeros(2)
    >>> dist.scatter(part, [torch.tensor([1.0, 2.0])], src=0)
    >>> part
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    found = _checked_group(group)
    root = _root("scatter", found, 0 if src is None and group_src is None else src, group_src)
    check_root_list(scatter_list, found.rank() == root, "scatter_list", "source")
    if scatter_list:
        _check_tensors(scatter_list, "scatter_list")
        _check_count("scatter", "input", scatter_list, found.size())
        _check_dtypes(tensor, scatter_list)
        _check_shapes("scatter", tensor, scatter_list)
    return _run(async_op, found._engine.scatter(tensor, scatter_list, root), [tensor])


def check_root_list(values: Any, is_root: bool, name: str, which: str) -> None:
    """Raise ValueError unless ``values``, the argument ``name``, is given in the root and only there."""
    if is_root and not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {which} rank.")
    if not is_root and values:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{which} ranks.")


# -- Between two ranks -------------------------------------------------------------------------------------------------


def other_rank(group: ProcessGroup, kind: str, global_rank: int | None, group_rank: int | None) -> int:
    """Return the rank in ``group`` of the other rank of a ``send`` or ``recv``; ``kind`` is "destination" or "source"."""
    if (global_rank is None) == (group_rank is None):
        _root(kind, group, global_rank, group_rank)  # raises the error
    if global_rank is not None:
        rank = get_group_rank(group, global_rank)
    else:
        assert group_rank is not None
        rank = group_rank
    if rank == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    return rank


@strips_frames
def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:  # fmt: skip
    """Start to send ``tensor`` to the rank ``dst``, and return a Work."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    found = _checked_group(group)
    rank = other_rank(found, "destination", dst, group_dst)
    _check_message(tensor, tag)
    return _run(True, found._engine.send(tensor, rank, tag), [tensor])


@strips_frames
def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:  # fmt: skip
    """Start to receive ``tensor`` from the rank ``src``, by default from any rank, and return a Work."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    found = _checked_group(group)
    rank = None if src is None and group_src is None else other_rank(found, "source", src, group_src)
    _check_message(tensor, tag)
    return _run(True, found._engine.receive(tensor, rank, tag), [tensor], found._ranks)


@strips_frames
def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:  # fmt: skip
    """Send ``tensor`` to the rank ``dst``."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


@strips_frames
def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:  # fmt: skip
    """Receive ``tensor`` from the rank ``src``, by default from any rank; return the global rank of the sender."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("recv")
        return -1
    found = _checked_group(group)
    rank = None if src is None and group_src is None else other_rank(found, "source", src, group_src)
    _check_message(tensor, tag)
    return found._ranks[found._engine.receive(tensor, rank, tag).wait()]


class P2POp:
    """Operation of :func:`batch_isend_irecv`: ``op`` is :func:`isend` or :func:`irecv`, and the rest its arguments."""

    __module__ = "torch.distributed.distributed_c10d"
    group: ProcessGroup
    tag: int
    tensor: Tensor

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Group = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _checked_group(group), tag
        self.group_peer: int = _root("isend", self.group, peer, group_peer)
        self.peer: int = self.group._ranks[self.group_peer]

    def __repr__(self) -> str:
        ranks = (self.group.rank(), self.group_peer)
        src, dst = ranks if self.op is isend else ranks[::-1]
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={src}, group_dst={dst},  {self.tensor.shape}, "
            f"{self.tensor.dtype})"
        )


@strips_frames
def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start the operations of ``p2p_op_list``, and return a list of their Works."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise IndexError("list index out of range")
    works = [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
    return [each for each in works if each is not None]


def _warn_of_name(old: str, new: str) -> None:
    warn(f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{new}` instead.", FutureWarning)


def _warn_of_coalesced(name: str) -> None:
    warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
    )


__all__ = [
    "P2POp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "gather", "irecv",
    "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
    "scatter", "send",
]  # fmt: skip
