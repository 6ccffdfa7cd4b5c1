"""``save`` and ``async_save``: write the state of all ranks as a checkpoint."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from ...core.tensor import Tensor
from ...runtime.user_frame import strips_frames, warn
from .. import groups
from ..tensor import DTensor
from .api import CheckpointException
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import SavePlan, SavePlanner
from .stateful import Stateful
from .storage import StorageWriter, WriteResult
from .utils import _DistWrapper


class AsyncCheckpointerType(Enum):
    """Place in which :func:`async_save` writes; a thread of this process is used in both cases.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     future = checkpoint.async_save(
    ...         {"w": torch.ones(2)}, checkpoint_id=folder, no_dist=True,
    ...         async_checkpointer_type=AsyncCheckpointerType.THREAD,
    ...     )
    ...     list(future.result().state_dict_metadata)
    ['w']
    """

    THREAD = "thread"
    PROCESS = "process"


@strips_frames
def save(
    state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None, process_group: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write ``state_dict`` to the folder ``checkpoint_id``; all ranks of ``process_group`` call this function.

    Values that all ranks have are written once, and the parts of a DTensor by the ranks that have them. Objects with
    ``state_dict`` and ``load_state_dict`` are replaced by their state. Values that are not tensors may be numbers,
    strings, bytes, None, NumPy arrays, dtypes, and lists, tuples, sets and dicts of them; other objects raise TypeError.
    Without a process group, or with ``no_dist``, this process saves alone.

    If a rank fails, every rank raises :class:`CheckpointException`, and a former checkpoint in the folder is unchanged.

    >>> import tempfile
    >>> import retrograd as torch
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     state = {"w": torch.zeros(2), "step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder, no_dist=True)
    ...     state
    {'w': tensor([1., 1.]), 'step': 3}
    """
    no_dist = single_process(no_dist, "save")
    writer = _writer(storage_writer, checkpoint_id)
    return save_state(plain_state(state_dict), writer, process_group, 0, no_dist, planner)


def single_process(no_dist: bool, what: str) -> bool:
    """Whether to ``what`` ("save" or "load") in this process alone; warn if there is no process group."""
    if not no_dist and not groups.is_initialized():
        warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
            f"{what} in a single process."
        )
        return True
    return no_dist


def _writer(writer: StorageWriter | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageWriter:
    if writer is not None:
        if checkpoint_id is not None:
            writer.reset(checkpoint_id)
        return writer
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not FileSystemWriter.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            "Cannot detect which StorageReader or StorageWriter to use. Please specify the storage_reader/storage_writer."
        )
    return FileSystemWriter(checkpoint_id)


def plain_state(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """Return a copy of ``state_dict`` with the states of its Stateful objects in their place."""
    return {key: each.state_dict() if isinstance(each, Stateful) else each for key, each in state_dict.items()}


def save_state(
    state_dict: STATE_DICT_TYPE, writer: StorageWriter, group: Any, coordinator_rank: int, no_dist: bool,
    planner: SavePlanner | None,
) -> Metadata:  # fmt: skip
    """Write ``state_dict``, which has no Stateful objects, with ``writer``, and return its description."""
    ranks = _DistWrapper(group, not no_dist, coordinator_rank)
    chosen = planner or DefaultSavePlanner()
    described: list[Metadata] = []

    def local_plan() -> SavePlan:
        chosen.set_up_planner(state_dict, writer.storage_meta(), ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank, use_collectives=True)
        return writer.prepare_local_plan(chosen.create_local_plan())

    def global_plan(plans: list[SavePlan]) -> list[SavePlan]:
        made, metadata = chosen.create_global_plan(plans)
        described.append(metadata)
        return writer.prepare_global_plan(made)

    def write() -> list[WriteResult]:
        future: Any = writer.write_data(chosen.finish_plan(plan), chosen)
        found: list[WriteResult] = future.wait() if hasattr(future, "wait") else future.result()
        return found

    def finish(results: list[list[WriteResult]]) -> Metadata:
        writer.finish(described[0], results)
        return described[0]

    try:
        plan = ranks.reduce_scatter("plan", local_plan, global_plan)
        return ranks.all_reduce("write", write, finish)
    except CheckpointException:  # all ranks know; after another error the coordinator may have completed the checkpoint
        getattr(writer, "abandon", lambda: None)()
        raise


# -- Asynchronous saving -----------------------------------------------------------------------------------------------

#: The thread in which all asynchronous saves of this process run, one after another.
_threads: list[ThreadPoolExecutor] = []
#: Group of the asynchronous saves by the group of the caller, whose operations it must not disturb.
_own_groups: dict[Any, Any] = {}


@strips_frames
def async_save(
    state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None, process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD, async_stager: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> Future[Metadata]:  # fmt: skip
    """Copy ``state_dict`` to the memory of the CPU, and write it in another thread as :func:`save` does.

    Return a ``concurrent.futures.Future`` of the description. The program may modify the state when this function has
    returned. Successive saves of a process are written one after another. ``async_stager.stage(state_dict)`` copies the
    state if it is passed.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> weight = torch.ones(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     future = checkpoint.async_save({"w": weight}, checkpoint_id=folder, no_dist=True)
    ...     _ = weight.zero_()  # not saved
    ...     _ = future.result()
    ...     checkpoint.load({"w": weight}, checkpoint_id=folder, no_dist=True)
    >>> weight
    tensor([1., 1.])
    """
    no_dist = single_process(no_dist, "save")
    writer = _writer(storage_writer, checkpoint_id)
    group = process_group
    if not no_dist:
        group = process_group or groups.group.WORLD
        if groups.get_world_size(group) == groups.get_world_size() > 1:
            if _own_groups.get("of") is not group:
                _own_groups.update(of=group, own=groups.new_group())
            group = _own_groups["own"]
    state = plain_state(state_dict)
    staged = copy_of_state(state) if async_stager is None else async_stager.stage(state)
    if isinstance(staged, Future):
        staged = staged.result()
    if not _threads:
        _threads.append(ThreadPoolExecutor(1, thread_name_prefix="checkpoint"))
    return _threads[0].submit(_save_in_thread, staged, writer, group, no_dist, planner)


def _save_in_thread(state: STATE_DICT_TYPE, writer: StorageWriter, group: Any, no_dist: bool, planner: Any) -> Metadata:
    return save_state(state, writer, group, 0, no_dist, planner)


def copy_of_state(value: Any) -> Any:
    """Return a copy of ``value`` whose tensors are copies on the CPU."""
    if isinstance(value, DTensor):
        return value.detach().clone()
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        copied = {key: copy_of_state(each) for key, each in value.items()}
        return copied if type(value) is dict else _like(value, copied)
    if isinstance(value, (list, tuple)):
        copies = [copy_of_state(each) for each in value]
        return type(value)(copies) if type(value) in (list, tuple) else value
    return value


def _like(value: Any, copied: dict[Any, Any]) -> Any:
    try:
        return type(value)(copied)
    except TypeError:  # such as a defaultdict
        return copied


def save_state_dict(
    state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """Deprecated form of :func:`save`.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metadata = checkpoint.save_state_dict(
    ...         {"w": torch.ones(2)}, checkpoint.FileSystemWriter(folder), no_dist=True
    ...     )
    >>> list(metadata.state_dict_metadata)
    ['w']
    """
    warn(
        "`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
        FutureWarning,
    )
    storage_writer.reset()
    return save_state(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


__all__ = ["AsyncCheckpointerType", "CheckpointException", "async_save", "save", "save_state_dict"]
