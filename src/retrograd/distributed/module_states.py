"""Parameters and buffers of a module that are made equal in all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.devices import array_module_of
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor, wrap
from .collectives import broadcast
from .groups import ProcessGroup
from .object_collectives import all_gather_object

#: Number of bytes up to which tensors are joined to one message.
MESSAGE_BYTES = 250 * 1024 * 1024


def broadcast_coalesced(
    group: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int = MESSAGE_BYTES, src: int = 0
) -> None:
    """Copy ``tensors`` of the rank ``src`` of ``group`` to the same tensors of all ranks.

    Tensors of one dtype and device are joined to messages of up to ``buffer_size`` bytes. Version counters do not
    change, as in PyTorch: a graph that has saved the tensors stays valid.
    """
    if group.size() == 1:
        return
    messages: list[list[Tensor]] = []
    last: dict[Any, tuple[list[Tensor], int]] = {}
    for each in tensors:
        key, nbytes = (each.dtype, each.device), each._array.nbytes
        message, held = last.get(key, ([], buffer_size))
        if held + nbytes > buffer_size:
            message, held = [], 0
            messages.append(message)
        message.append(each)
        last[key] = message, held + nbytes
    with no_grad():
        works = []
        for message in messages:
            arrays = [each._array for each in message]
            joined = wrap(array_module_of(arrays[0]).concatenate([each.reshape(-1) for each in arrays]))
            works.append((broadcast(joined, group=group, group_src=src, async_op=True), joined, arrays))
        for work, joined, arrays in works:
            assert work is not None
            work.wait()
            begin = 0
            for array in arrays:
                array[...] = joined._array[begin : begin + array.size].reshape(array.shape)
                begin += array.size


def verify_shapes(group: ProcessGroup, parameters: Iterable[Tensor], names: Sequence[str]) -> None:
    """Raise RuntimeError in all ranks of ``group`` unless ``parameters`` have the same number, shapes and dtypes there.

    PyTorch raises the error only in the ranks that differ from rank 0, and does not compare dtypes.
    """
    if group.size() == 1:
        return
    mine = [(name, tuple(each.shape), str(each.dtype)) for name, each in zip(names, parameters, strict=True)]
    gathered: list[Any] = [None] * group.size()
    all_gather_object(gathered, mine, group)
    rank = group.rank()
    for other, theirs in enumerate(gathered):
        if len(theirs) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, while rank {other} has "
                f"inconsistent {len(theirs)} params.{_first_other_name(mine, theirs, other)}"
            )
    first = gathered[0]
    differing = next((number for number, theirs in enumerate(gathered) if _differs(theirs, first)), None)
    if differing is None:
        return
    theirs = mine if rank and _differs(mine, first) else gathered[differing]
    who = rank if theirs is mine else differing
    place, (name, shape, dtype) = next(
        (place, each) for place, each in enumerate(theirs) if each[1:] != first[place][1:]
    )
    where = "this process" if who == rank else f"process {who}"
    original = f"process 0 (`{first[place][0]}`: sizes {list(first[place][1])}, {first[place][2]})"
    raise RuntimeError(
        f"[{rank}]: params[{place}] in {where} with sizes {list(shape)} appears not to match sizes of the same param in "
        f"process 0. It is `{name}`, {dtype}, and in {original}."
    )


def _differs(mine: Sequence[Any], first: Sequence[Any]) -> bool:
    return any(each[1:] != other[1:] for each, other in zip(mine, first, strict=True))


def _first_other_name(mine: Sequence[Any], theirs: Sequence[Any], other: int) -> str:
    """Return a sentence about a parameter that exists only in one of two ranks."""
    names, others = [each[0] for each in mine], [each[0] for each in theirs]
    alone = [each for each in names if each not in others]
    if alone:
        return f" Rank {other} has no `{alone[0]}`."
    alone = [each for each in others if each not in names]
    return f" This rank has no `{alone[0]}`." if alone else ""


def sync_module_states(
    module: Any, group: ProcessGroup, src: int = 0, ignored: Iterable[str] = (), buffers: bool = True
) -> None:
    """Copy the parameters of ``module`` in the rank ``src`` of ``group`` to all ranks, and its buffers if ``buffers``.

    ``ignored`` are names of parameters and buffers that are left as they are.
    """
    skipped = frozenset(ignored)
    found = [each for name, each in module.named_parameters() if name not in skipped]
    if buffers:
        found += [each for name, each in module.named_buffers() if name not in skipped]
    broadcast_coalesced(group, found, MESSAGE_BYTES, src)


__all__ = ["broadcast_coalesced", "sync_module_states", "verify_shapes"]
