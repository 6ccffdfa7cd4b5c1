"""``load``: fill the state of all ranks from a checkpoint."""

from __future__ import annotations

import os
from typing import Any

from ...runtime.user_frame import strips_frames, warn
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .metadata import STATE_DICT_TYPE
from .planner import LoadPlan, LoadPlanner
from .state_dict_saver import single_process
from .stateful import Stateful
from .storage import StorageReader
from .utils import _DistWrapper


@strips_frames
def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None, process_group: Any = None,
    no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill the tensors of ``state_dict`` in place from the checkpoint in the folder ``checkpoint_id``.

    All ranks of ``process_group`` call this function; their number and the placements of DTensors may differ from those
    of :func:`save`. Values that are not tensors are replaced in ``state_dict``. Objects with ``state_dict`` and
    ``load_state_dict`` get their state by these methods. Each rank reads only the parts that it needs.

    If a rank fails, every rank raises :class:`CheckpointException`: the keys, the shapes and the checksums of the files
    are tested on all ranks before a tensor is modified.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> model, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"model": model, "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     state = {"model": other, "step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder, no_dist=True)
    >>> torch.equal(model.weight, other.weight), state["step"]
    (True, 3)
    """
    no_dist = single_process(no_dist, "load")
    reader = _reader(storage_reader, checkpoint_id)
    keys = sorted(state_dict)
    state = {key: each.state_dict() if isinstance(each := state_dict[key], Stateful) else each for key in keys}
    load_state(state, reader, process_group, 0, no_dist, planner)
    for key in keys:
        if isinstance(each := state_dict[key], Stateful):
            each.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]


def _reader(reader: StorageReader | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageReader:
    if reader is not None:
        if checkpoint_id is not None:
            reader.reset(checkpoint_id)
        return reader
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    return FileSystemReader(checkpoint_id)


def load_state(
    state_dict: STATE_DICT_TYPE, reader: StorageReader, group: Any, coordinator_rank: int, no_dist: bool,
    planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """Fill ``state_dict``, which has no Stateful objects, with ``reader``."""
    ranks = _DistWrapper(group, not no_dist, coordinator_rank)
    chosen = planner or DefaultLoadPlanner()

    def local_plan() -> LoadPlan:
        metadata = reader.read_metadata()
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return reader.prepare_local_plan(chosen.create_local_plan())

    def global_plan(plans: list[LoadPlan]) -> list[LoadPlan]:
        return reader.prepare_global_plan(chosen.create_global_plan(plans))

    def read() -> None:
        future: Any = reader.read_data(chosen.finish_plan(plan), chosen)
        future.wait() if hasattr(future, "wait") else future.result()

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    ranks.all_gather("read", read)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None, process_group: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the values of ``keys`` and of the keys below them, by default all, as whole tensors."""
    no_dist = single_process(False, "load")
    state: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner(keys={keys} if isinstance(keys, str) else keys)
    load_state(state, _reader(storage_reader, checkpoint_id), process_group, 0, no_dist, planner)
    return state


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """Deprecated form of :func:`load`.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> state = {"w": torch.zeros(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     checkpoint.load_state_dict(state, checkpoint.FileSystemReader(folder), no_dist=True)
    >>> state
    {'w': tensor([1., 1.])}
    """
    warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
    )
    storage_reader.reset()
    load_state(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


__all__ = ["load", "load_state_dict"]
