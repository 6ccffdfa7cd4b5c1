"""Data pipes that are read in order: sources, and steps as methods of other data pipes."""

from __future__ import annotations

import copy
import fnmatch
import os
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .....core.dtypes import int64
from .....operations.creation.factory import empty
from .....runtime.user_frame import warn
from ...collate import default_collate
from ...sampler import SequentialSampler
from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import StreamWrapper


def draw_seed() -> int:
    """Return a seed drawn from the default generator."""
    return int(empty((), dtype=int64).random_().item())


class IterableWrapperIterDataPipe(IterDataPipe):
    """Data pipe of the items of ``iterable``, of which each pass reads a copy if ``deepcopy`` is true."""

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect source "
                    "data."
                )
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)


def _applied(fn: Callable[..., Any], data: Any, input_col: Any, output_col: Any) -> Any:
    """Return ``data`` after ``fn`` was applied to its columns ``input_col``; the result goes to ``output_col``."""
    if input_col is None and output_col is None:
        return fn(data)
    given = [data[each] for each in input_col] if isinstance(input_col, (list, tuple)) else [data[input_col]]
    result = fn(*given)
    was_tuple = isinstance(data, tuple)
    made = list(data) if was_tuple else copy.copy(data)
    if output_col is None:
        if isinstance(input_col, (list, tuple)):
            made[input_col[0]] = result
            for each in sorted(input_col[1:], reverse=True):
                del made[each]
        else:
            made[input_col] = result
    elif output_col == -1:
        made.append(result)
    else:
        made[output_col] = result
    return tuple(made) if was_tuple else made


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """Data pipe of ``fn(item)``, or of items in which a column is replaced by ``fn`` of columns."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if not callable(fn):
            raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield _applied(self.fn, data, self.input_col, self.output_col)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """Data pipe of the items for which ``filter_fn`` is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            given = (
                [data]
                if self.input_col is None
                else [data[each] for each in self.input_col]
                if isinstance(self.input_col, (list, tuple))
                else [data[self.input_col]]
            )
            kept = self.filter_fn(*given)
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(kept)}")
            if kept:
                yield data


class DataChunk(list[Any]):
    """Batch of items, a list."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Return the items as text after ``indent``."""
        return f"{indent}[{', '.join(map(str, iter(self)))}]"

    def raw_iterator(self) -> Iterator[Any]:
        """Return an iterator of the items."""
        yield from self.items


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Data pipe of lists of ``batch_size`` items."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (
            datapipe, batch_size, drop_last, wrapper_class,
        )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for each in self.datapipe:
            batch.append(each)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """Data pipe of the items of batches, nested ``unbatch_level`` times; -1 means all levels."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for each in self.datapipe:
            yield from self._items(each, self.unbatch_level)

    def _items(self, value: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(value, (list, DataChunk))):
            yield value
        elif isinstance(value, (list, DataChunk)):
            for each in value:
                yield from self._items(each, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Data pipe of ``collate_fn(batch)``."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, fn=collate_fn if collate_fn is not None else conversion)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """Data pipe of the items in random order, drawn from ``buffer_size`` items at a time."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled, self._seed = buffer_size, True, None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switch shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Set the seed of the next pass."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def reset(self) -> None:
        """Seed the next pass."""
        if self._enabled:
            self._rng.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for each in self.datapipe:
            if len(buffer) == self.buffer_size:
                index = self._rng.randint(0, len(buffer) - 1)
                taken, buffer[index] = buffer[index], each
                yield taken
            else:
                buffer.append(each)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)


class SamplerIterDataPipe(IterDataPipe):
    """Data pipe of the indices that ``sampler`` yields for ``datapipe``.

    >>> from retrograd.utils.data import RandomSampler
    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper, Sampler
    >>> list(Sampler(IterableWrapper("abc")))
    [0, 1, 2]
    >>> sorted(Sampler(IterableWrapper("abc"), RandomSampler, sampler_kwargs={"num_samples": 3}))
    [0, 1, 2]
    """

    def __init__(self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None,
                 sampler_kwargs: Any = None) -> None:  # fmt: skip
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Data pipe of the items of several data pipes, one after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(each, IterDataPipe) for each in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for each in self.datapipes:
            yield from each

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Data pipe of tuples with an item of each data pipe, as many as the shortest has."""

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(each, IterDataPipe) for each in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """Data pipe of an item of each data pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*self.datapipes, strict=False):
            yield from items

    def __len__(self) -> int:
        return min(map(len, self.datapipes)) * len(self.datapipes)


class _Shared:
    """Items of a data pipe for several readers; ``route`` returns the numbers of the readers of an item."""

    def __init__(self, datapipe: Any, count: int, route: Callable[[Any], Sequence[int]], buffer_size: int) -> None:
        self.main_datapipe, self.route, self.buffer_size = datapipe, route, buffer_size
        self.queues: list[deque[Any]] = [deque() for _ in range(count)]
        self.source: Any = None
        self.begun: set[int] = set()

    def items(self, reader: int) -> Iterator[Any]:
        """Yield the items of ``reader``; the first reader that begins again starts a new pass."""
        if self.source is None or reader in self.begun:
            self.source, self.begun = iter(self.main_datapipe), set()
            for each in self.queues:
                each.clear()
        self.begun.add(reader)
        queue = self.queues[reader]
        while True:
            while not queue:
                try:
                    item = next(self.source)
                except StopIteration:
                    return
                for number in self.route(item):
                    self.queues[number].append(item)
                    if 0 <= self.buffer_size < len(self.queues[number]):
                        raise BufferError(
                            f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                        )
            yield queue.popleft()


class _ChildDataPipe(IterDataPipe):
    """One of the data pipes that ``fork`` and ``demux`` return."""

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.items(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe.main_datapipe)


def _children(shared: _Shared) -> list[_ChildDataPipe]:
    return [_ChildDataPipe(shared, index) for index in range(len(shared.queues))]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Copies of a data pipe, a list of ``num_instances``."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return [datapipe]
        everyone = range(num_instances)
        return _children(_Shared(datapipe, num_instances, lambda item: everyone, buffer_size))


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Parts of a data pipe, a list of ``num_instances``: each item goes to that which ``classifier_fn`` returns."""

    def __new__(
        cls, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], int | None], drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:  # fmt: skip
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")

        def route(item: Any) -> Sequence[int]:
            found = classifier_fn(item)
            if found is None and drop_none:
                return ()
            if found is None or not 0 <= found < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {found} is returned."
                )
            return (found,)

        return _children(_Shared(datapipe, num_instances, route, buffer_size))


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Data pipe of lists of items with the same ``group_key_fn(item)``, of at most ``group_size`` items."""

    def __init__(
        self, datapipe: Any, group_key_fn: Callable[[Any], Any], *, keep_key: bool = False, buffer_size: int = 10000,
        group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        least = guaranteed_group_size
        self.guaranteed_group_size = (
            group_size if least is None and group_size is not None and drop_remaining else least
        )

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = {}
        count = 0

        def shown(key: Any, group: list[Any]) -> Any:
            return (key, DataChunk(group)) if self.keep_key else DataChunk(group)

        for each in self.datapipe:
            key = self.group_key_fn(each)
            groups.setdefault(key, []).append(each)
            count += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                count -= self.group_size
                yield shown(key, groups.pop(key))
            if count == self.buffer_size:
                largest = max(groups, key=lambda name: len(groups[name]))
                group = groups.pop(largest)
                count -= len(group)
                if self.guaranteed_group_size is None or len(group) >= self.guaranteed_group_size:
                    yield shown(largest, group)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items")
        for key, group in groups.items():
            if (
                self.guaranteed_group_size is None
                or len(group) >= self.guaranteed_group_size
                or not self.drop_remaining
            ):
                yield shown(key, group)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Data pipe of the items of one worker process: every ``num_of_instances``-th."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.num_of_instances, self.instance_id = source_datapipe, 1, 0

    def is_shardable(self) -> bool:
        """Return True."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Set the number of the parts, and which of them this is."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for index, each in enumerate(self.source_datapipe):
            if index % self.num_of_instances == self.instance_id:
                yield each

    def __len__(self) -> int:
        count = len(self.source_datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """Data pipe of the paths in folders whose names match ``masks``, in the order of the file system or sorted.

    >>> import pathlib, tempfile
    >>> from retrograd.utils.data.datapipes.iter import FileLister
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "a.txt").write_text("one two")
    >>> _ = pathlib.Path(folder.name, "b.csv").write_text("1,2")
    >>> [pathlib.Path(path).name for path in FileLister(folder.name, masks="*.csv")]
    ['b.csv']
    >>> folder.cleanup()
    """

    def __init__(
        self, root: Any = ".", masks: Any = "", *, recursive: bool = False, abspath: bool = False,
        non_deterministic: bool = False, length: int = -1,
    ) -> None:  # fmt: skip
        self.datapipe = IterableWrapperIterDataPipe([root] if isinstance(root, str) else root)
        self.masks = [masks] if isinstance(masks, str) else list(masks)
        self.recursive, self.abspath = recursive, abspath

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            for folder, folders, files in os.walk(root):
                folders[:] = sorted(folders) if self.recursive else []
                for name in sorted(files):
                    if self.masks in ([], [""]) or any(fnmatch.fnmatch(name, mask) for mask in self.masks):
                        path = os.path.join(folder, name)
                        yield os.path.abspath(path) if self.abspath else path


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Data pipe of pairs of a path and the open file.

    >>> import pathlib, tempfile
    >>> from retrograd.utils.data.datapipes.iter import FileLister
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "a.txt").write_text("one two")
    >>> [file.read() for path, file in FileLister(folder.name).open_files()]
    ['one two']
    >>> [file.read() for path, file in FileLister(folder.name).open_files("rb")]
    [b'one two']
    >>> folder.cleanup()
    """

    def __init__(self, datapipe: Any, mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        self.datapipe, self.mode, self.encoding = datapipe, mode if "r" in mode else "r" + mode, encoding

    def __iter__(self) -> Iterator[Any]:
        for path in self.datapipe:
            file = Path(path).open(self.mode, encoding=self.encoding)  # noqa: SIM115 - closed by its wrapper
            yield path, StreamWrapper(file)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Data pipe of pairs of a path and ``chunk`` characters or bytes of its file; None means all.

    >>> import pathlib, tempfile
    >>> from retrograd.utils.data.datapipes.iter import FileLister
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "a.txt").write_text("one two")
    >>> files = FileLister(folder.name).open_files()
    >>> [text for path, text in files.read_from_stream(chunk=4)]
    ['one ', 'two']
    >>> folder.cleanup()
    """

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield path, data


IterableWrapper, Mapper, Filter = IterableWrapperIterDataPipe, MapperIterDataPipe, FilterIterDataPipe
Batcher, UnBatcher, Collator, Grouper = (
    BatcherIterDataPipe, UnBatcherIterDataPipe, CollatorIterDataPipe, GrouperIterDataPipe,
)  # fmt: skip
Shuffler, Sampler, ShardingFilter = ShufflerIterDataPipe, SamplerIterDataPipe, ShardingFilterIterDataPipe
Concater, Zipper, Multiplexer = ConcaterIterDataPipe, ZipperIterDataPipe, MultiplexerIterDataPipe
Forker, Demultiplexer = ForkerIterDataPipe, DemultiplexerIterDataPipe
FileLister, FileOpener, StreamReader = FileListerIterDataPipe, FileOpenerIterDataPipe, StreamReaderIterDataPipe
__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper",
    "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip
