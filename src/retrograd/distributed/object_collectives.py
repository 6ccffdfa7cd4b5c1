"""Collective operations on Python objects, which are pickled: every rank gets copies."""

from __future__ import annotations

import pickle
from typing import Any

from ..core.dtypes import int64, uint8
from ..operations.creation.factory import empty
from ..operations.creation.from_data import frombuffer, tensor
from ..runtime.user_frame import strips_frames
from .collectives import Group, _root, check_root_list, recv, send
from .groups import _checked_group, _rank_not_in_group, _warn_not_in_group


@strips_frames
def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Replace the items of ``object_list`` by copies of ``obj`` of all ranks.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> gathered = [None]
    >>> dist.all_gather_object(gathered, {"loss": 0.5})
    >>> gathered
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    engine = _checked_group(group)._engine
    for index, value in enumerate(engine.all_gather_objects(obj).wait()):
        object_list[index] = value


@strips_frames
def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Group = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Replace the items of ``object_gather_list`` of the rank ``dst``, by default rank 0, by copies of ``obj``."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    found = _checked_group(group)
    rank = 0 if dst is None and group_dst is None else dst if dst is not None else found._ranks[group_dst or 0]
    check_root_list(object_gather_list, found._ranks[found.rank()] == rank, "gather_list", "destination")
    gathered = found._engine.gather_objects(obj, found._ranks.index(rank)).wait()
    if object_gather_list:
        for index, value in enumerate(gathered):
            object_gather_list[index] = value


@strips_frames
def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: Any = None, group_src: int | None = None
) -> None:  # fmt: skip
    """Replace the items of ``object_list`` of other ranks by copies of those of the rank ``src``, by default rank 0."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    found = _checked_group(group)
    root = _root("broadcast", found, 0 if src is None and group_src is None else src, group_src)
    received = found._engine.broadcast_objects(object_list, root).wait()
    if found.rank() != root:
        object_list[:] = received


@strips_frames
def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Group = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Store a copy of the item for this rank of the list of the rank ``src``, by default rank 0, in the output list."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    found = _checked_group(group)
    root = _root("scatter", found, 0 if src is None and group_src is None else src, group_src)
    if found.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != found.size():
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_object_input_list)}. Input list size "
                f"should be {found.size()}, same as size of the process group."
            )
    values = scatter_object_input_list
    scatter_object_output_list[0] = found._engine.scatter_objects(values, root).wait()


@strips_frames
def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send copies of the items of ``object_list`` to the rank ``dst``, which calls :func:`recv_object_list`."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    parts = [pickle.dumps(each) for each in object_list]
    send(tensor([len(each) for each in parts], dtype=int64), dst, group, group_dst=group_dst)
    send(frombuffer(bytearray(b"".join(parts)), dtype=uint8), dst, group, group_dst=group_dst)
    return None


@strips_frames
def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """Replace the items of ``object_list`` by copies of those of the rank ``src``, by default of any rank; return it."""
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    sizes = empty(len(object_list), dtype=int64)
    sender = recv(sizes, src, group, group_src=group_src)
    data = empty(int(sizes.sum()), dtype=uint8)
    recv(data, sender, group)
    start = 0
    for index, size in enumerate(sizes.tolist()):
        object_list[index] = pickle.loads(data[start : start + size].numpy())
        start += size
    return sender


__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]
