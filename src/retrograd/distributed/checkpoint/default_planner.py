"""Default planners: nested state is flattened, replicated values are written once, and chunks are read where needed."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Sequence
from typing import Any

from ...core.size import Size
from ...core.tensor import Tensor, strided
from ...operations.creation.factory import empty
from ...runtime.user_frame import warn
from ..tensor import DTensor
from ._nested_dict import Path, flatten_state_dict, set_element
from .metadata import (
    STATE_DICT_TYPE,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from .values import from_text, to_text


class DefaultSavePlanner(SavePlanner):
    """Planner of :func:`save`.

    Values that several ranks have are written by one of them: the largest first, by the rank that writes least so far,
    or by the lowest rank with ``dedup_save_to_lowest_rank``. ``enable_plan_caching`` has no effect.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> class WithoutBuffers(checkpoint.DefaultSavePlanner):
    ...     def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
    ...         kept = {key: value for key, value in state_dict.items() if "running" not in key}
    ...         super().set_up_planner(kept, storage_meta, is_coordinator)
    >>> state = torch.nn.BatchNorm1d(2).state_dict()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = checkpoint.save(state, checkpoint_id=folder, planner=WithoutBuffers(), no_dist=True)
    >>> list(found.state_dict_metadata)
    ['weight', 'bias', 'num_batches_tracked']
    """

    mappings: dict[str, Path]

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}
        self.state_dict: STATE_DICT_TYPE = {}
        self.is_coordinator = False
        if dedup_replicated_tensors is not None:
            warn("DefaultSavePlanner's `dedup_replicated_tensors` argument is deprecated, and has no effect.")

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Store ``state_dict``, flattened if ``flatten_state_dict`` is true."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Return a plan of all values that this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Assign each value to one rank; raise ValueError if the ranks' tensors do not fit together."""
        plans, metadata = create_default_global_save_plan(
            _without_duplicates(all_plans, self.dedup_save_to_lowest_rank)
        )
        if self.flatten_state_dict:
            merged: dict[str, Path] = {}
            for plan in reversed(plans):
                merged.update(plan.planner_data)
            metadata = dataclasses.replace(metadata, planner_data=merged)
        errors = [text for name, each in metadata.state_dict_metadata.items() for text in _gaps(name, each)]
        if errors:
            raise ValueError(f"Failed to validate global plan: {'; '.join(errors)[:500]}")
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Return ``new_plan``."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return the part of a tensor that this rank has, or the JSON text of another value."""
        found: Tensor | io.BytesIO = self.transform_object(write_item, self.lookup_object(write_item.index))
        return found

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return the value of ``index``; subclasses may override this method."""
        value = self.state_dict[index.fqn]
        return value.to_local() if isinstance(value, DTensor) else value

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return ``object`` as it is written: a tensor, or bytes; subclasses may override this method."""
        return io.BytesIO(to_text(object, write_item.index.fqn)) if write_item.type == WriteItemType.BYTE_IO else object


class DefaultLoadPlanner(LoadPlanner):
    """Planner of :func:`load`.

    A key that is not in the checkpoint raises RuntimeError unless ``allow_partial_load`` is true; its value is then left
    unchanged.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> state = {"w": torch.zeros(2), "new": torch.zeros(1)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
    ...     planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    ...     checkpoint.load(state, checkpoint_id=folder, planner=planner, no_dist=True)
    >>> state
    {'w': tensor([1., 1.]), 'new': tensor([0.])}
    """

    mappings: dict[str, Path]
    original_state_dict: STATE_DICT_TYPE

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}
        self.state_dict: STATE_DICT_TYPE = {}
        self.metadata: Metadata | None = None
        self.is_coordinator = False

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Store ``state_dict``, flattened if ``flatten_state_dict`` is true. Tensors on "meta" are created on the CPU."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        for name, value in state_dict.items():
            if isinstance(value, Tensor) and value.is_meta:
                state_dict[name] = empty(value.shape, dtype=value.dtype)
                if self.flatten_state_dict:
                    set_element(self.original_state_dict, self.mappings[name], state_dict[name])
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Return a plan of the chunks that this rank needs."""
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return ``global_plan``."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """Return ``new_plan``."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Store a value, which is not a tensor, in the state dictionary; ``value`` is its JSON text."""
        name = read_item.dest_index.fqn
        found = from_text(value.getvalue())
        self.state_dict[name] = found
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], found)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return a view of the elements that ``read_item`` fills."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Do nothing: the view of :meth:`resolve_tensor` was filled."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Return the tensor of ``index``, or the part of it that this rank has; subclasses may override this method."""
        value: Tensor = self.state_dict[index.fqn]
        return value._local_tensor if isinstance(value, DTensor) else value

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Return a view of the elements of ``tensor`` that are filled; subclasses may override this method."""
        return narrowed(tensor.detach(), read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Planner that creates the state dictionary of a checkpoint, or of the ``keys`` in it, in an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _wanted(self, name: str, path: Path) -> bool:
        prefixes = (".".join(map(str, path[:count])) for count in range(1, len(path) + 1))
        return self.keys is None or name in self.keys or any(each in self.keys for each in prefixes)

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Fill ``state_dict`` with uninitialised tensors, and prepare to load them."""
        if state_dict:
            raise AssertionError("the state dictionary must be empty")
        assert metadata is not None
        paths = metadata.planner_data or {}
        for name, each in metadata.state_dict_metadata.items():
            path = paths.get(name, (name,))
            if self._wanted(name, path):
                made = (
                    empty(each.size, dtype=each.properties.dtype) if isinstance(each, TensorStorageMetadata) else None
                )
                set_element(state_dict, path, made)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def narrowed(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Return a view of the elements of ``tensor`` from ``offsets`` on, of the shape ``lengths``."""
    for dim, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        if tensor.shape[dim] != length:
            tensor = tensor.narrow(dim, offset, length)
    return tensor


# -- Plans of saving ---------------------------------------------------------------------------------------------------


def local_chunk(tensor: Tensor) -> ChunkStorageMetadata:
    """Return the part of ``tensor`` that this rank has."""
    if isinstance(tensor, DTensor):
        if any(each.is_partial() for each in tensor.placements):
            raise ValueError(f"a DTensor with placements {tensor.placements} has no elements to save; redistribute it")
        sizes, offsets = tensor._spec.chunk()
        return ChunkStorageMetadata(Size(offsets), Size(sizes))
    return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.shape))


def create_default_local_save_plan(state_dict: STATE_DICT_TYPE, is_coordinator: bool) -> SavePlan:
    """Return a plan of all values of ``state_dict`` of which this rank has a part.

    >>> plan = create_default_local_save_plan({"w": torch.ones(2), "step": 3}, is_coordinator=True)
    >>> [(item.index.fqn, item.type.name) for item in plan.items]
    [('w', 'TENSOR'), ('step', 'BYTE_IO')]
    """
    items: list[WriteItem] = []
    for name, value in state_dict.items():
        if not isinstance(value, Tensor):
            items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO))
            continue
        if value.layout is not strided or value.is_meta:
            raise TypeError(
                f"{name}: a tensor on the device {value.device} with the layout {value.layout} can not be saved"
            )
        split = isinstance(value, DTensor)
        if split and value.device_mesh.get_coordinate() is None:
            continue
        chunk = local_chunk(value)
        if split and 0 in chunk.sizes and 0 not in value.shape:
            continue
        data = TensorWriteData(chunk, TensorProperties(dtype=value.dtype), Size(value.shape))
        kind = WriteItemType.SHARD if split else WriteItemType.TENSOR
        items.append(WriteItem(MetadataIndex(name, chunk.offsets), kind, tensor_data=data))
    return SavePlan(items)


def _without_duplicates(plans: list[SavePlan], lowest: bool) -> list[SavePlan]:
    """Return ``plans`` in which each value is written by one rank; raise ValueError if the ranks' tensors differ."""
    owners: dict[MetadataIndex, list[int]] = {}
    items: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            first = items.setdefault(item.index, item)
            if item.tensor_data != first.tensor_data or item.type != first.type:
                raise ValueError(
                    f"{item.index.fqn} differs between the ranks {owners[item.index][0]} and {rank}: "
                    f"{_described(first)} and {_described(item)}"
                )
            owners.setdefault(item.index, []).append(rank)
    load = [0] * len(plans)
    chosen: dict[MetadataIndex, int] = {}
    # Values of one rank first, then the largest: the rest fills the ranks that have less to write.
    for index in sorted(items, key=lambda each: (len(owners[each]) > 1, -(items[each].tensor_storage_size() or 0))):
        ranks = owners[index]
        rank = ranks[0] if lowest else min(ranks, key=load.__getitem__)
        load[rank] += items[index].tensor_storage_size() or 1
        chosen[index] = rank
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def _described(item: WriteItem) -> str:
    data = item.tensor_data
    return (
        "a value" if data is None else f"a chunk {list(data.chunk.sizes)} of {list(data.size)}, {data.properties.dtype}"
    )


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Return ``all_plans`` with positions in the lists of chunks, and the description of the checkpoint.

    >>> plan = create_default_local_save_plan({"w": torch.ones(2), "step": 3}, is_coordinator=True)
    >>> plans, metadata = create_default_global_save_plan([plan])
    >>> len(plans), metadata.state_dict_metadata["w"].size
    (1, torch.Size([2]))
    """
    found: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if data is None:
                found[name] = BytesStorageMetadata()
            else:
                entry = found.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
                if not isinstance(entry, TensorStorageMetadata) or entry.size != data.size:
                    raise ValueError(f"{name} has different shapes on different ranks")
                if rewrite_index_hints:
                    index = dataclasses.replace(item.index, index=len(entry.chunks))
                    item = dataclasses.replace(item, index=index)
                entry.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(found)


def _gaps(name: str, entry: Any) -> list[str]:
    """Return texts of what is wrong with the chunks of a tensor: bounds, overlaps, and elements in no chunk."""
    if not isinstance(entry, TensorStorageMetadata):
        return []
    texts = []
    for chunk in entry.chunks:
        ends = [offset + size for offset, size in zip(chunk.offsets, chunk.sizes, strict=True)]
        if any(end > size for end, size in zip(ends, entry.size, strict=True)) or min(chunk.offsets, default=0) < 0:
            texts.append(f"key:{name} has out of bounds chunk: tensor-size:{entry.size} chunk: {chunk}")
    chunks = [each for each in entry.chunks if 0 not in each.sizes]
    dim = max(range(len(entry.size)), key=lambda each: len({one.offsets[each] for one in chunks}), default=None)
    if dim is not None:
        chunks.sort(key=lambda each: each.offsets[dim])
        for position, chunk in enumerate(chunks):
            for other in chunks[position + 1 :]:
                if other.offsets[dim] >= chunk.offsets[dim] + chunk.sizes[dim]:
                    break
                if _overlap(chunk, other) is not None:
                    texts.append(f"key:{name} has overlapping chunks: {chunk} {other}")
    whole, covered = math.prod(entry.size), sum(math.prod(each.sizes) for each in entry.chunks)
    if whole != covered:
        texts.append(f"key:{name} invalid fill tensor-volume: {whole} chunks-volume: {covered}")
    return texts


def _overlap(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> tuple[list[int], list[int]] | None:
    """Return the offsets and the lengths of the elements that are in ``a`` and in ``b``, or None if there are none."""
    starts = [max(one, other) for one, other in zip(a.offsets, b.offsets, strict=True)]
    ends = [
        min(one + size, other + length)
        for one, size, other, length in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True)
    ]
    if any(end <= start for start, end in zip(starts, ends, strict=True)):
        return None
    return starts, [end - start for start, end in zip(starts, ends, strict=True)]


# -- Plans of loading --------------------------------------------------------------------------------------------------


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """Return the parts of the chunks of a checkpoint that fill ``local_chunks`` of the tensor ``fqn``."""
    items = []
    for position, chunk in enumerate(local_chunks):
        for number, stored in enumerate(checkpoint_md.chunks):
            common = _overlap(chunk, stored)
            if common is None:
                continue
            starts, lengths = common
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, chunk.offsets, position),
                    Size([start - offset for start, offset in zip(starts, chunk.offsets, strict=True)]),
                    MetadataIndex(fqn, stored.offsets, number),
                    Size([start - offset for start, offset in zip(starts, stored.offsets, strict=True)]),
                    Size(lengths),
                )
            )
    return items


def create_default_local_load_plan(state_dict: STATE_DICT_TYPE, metadata: Metadata, strict: bool = True) -> LoadPlan:
    """Return a plan of what ``state_dict`` needs; raise PyTorch's errors for missing keys and other shapes.

    >>> plan = create_default_local_save_plan({"w": torch.ones(2, 3)}, is_coordinator=True)
    >>> _, metadata = create_default_global_save_plan([plan])
    >>> [item.lengths for item in create_default_local_load_plan({"w": torch.zeros(2, 3)}, metadata).items]
    [torch.Size([2, 3])]
    >>> create_default_local_load_plan({"b": torch.zeros(2)}, metadata)
    Traceback (most recent call last):
        ...
    RuntimeError: Missing key in checkpoint state_dict: b.
    """
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        if name not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        entry = metadata.state_dict_metadata[name]
        if isinstance(entry, BytesStorageMetadata):
            index = MetadataIndex(name)
            items.append(ReadItem(LoadItemType.BYTE_IO, index, Size([0]), index, Size([0]), Size([0])))
        elif not isinstance(value, Tensor):
            raise ValueError(
                f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found {type(entry)}"
            )
        elif entry.size != value.shape:
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.shape} for {name}")
        elif not isinstance(value, DTensor) or value.device_mesh.get_coordinate() is not None:
            items += create_read_items_for_chunk_list(name, entry, [local_chunk(value)])
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return ``all_plans``: loading needs no agreement.

    >>> from retrograd.distributed import checkpoint
    >>> plans = [checkpoint.LoadPlan([]), checkpoint.LoadPlan([])]
    >>> create_default_global_load_plan(plans) is plans
    True
    """
    return all_plans


__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip
