"""Data pipes that are read by keys: a source, and steps as methods of other data pipes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..datapipe import IterDataPipe, MapDataPipe, functional_datapipe
from ..iter import DataChunk, draw_seed


class SequenceWrapperMapDataPipe(MapDataPipe):
    """Data pipe of the items of ``sequence``, a sequence or dictionary."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """Data pipe of ``fn(item)``.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper({"a": 1, "b": 2}).map(lambda x: 10 * x)
    >>> pipe["b"], len(pipe)
    (20, 2)
    """

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = lambda item: item) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Data pipe of lists of ``batch_size`` items.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper([1, 2, 3, 4, 5])
    >>> list(pipe.batch(2))
    [[1, 2], [3, 4], [5]]
    >>> len(pipe.batch(2, drop_last=True))
    2
    """

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (
            datapipe, batch_size, drop_last, wrapper_class,
        )  # fmt: skip

    def __getitem__(self, index: int) -> Any:
        first = index * self.batch_size
        indices = range(first, min(first + self.batch_size, len(self.datapipe)))
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[each] for each in indices])

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Data pipe of the items of several data pipes, one after the other.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper("ab").concat(SequenceWrapper("cd"))
    >>> pipe[2], len(pipe)
    ('c', 4)
    """

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for each in self.datapipes:
            if index - offset < len(each):
                return each[index - offset]
            offset += len(each)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Data pipe of tuples with an item of each data pipe.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper("abc").zip(SequenceWrapper([1, 2]))
    >>> pipe[1], len(pipe)
    (('b', 2), 2)
    """

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes: Sequence[Any] = datapipes

    def __getitem__(self, index: Any) -> Any:
        return tuple(each[index] for each in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


class ShufflerIterDataPipe(IterDataPipe):
    """Data pipe, read in order, of the items at ``indices`` in random order.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper("abcdef").shuffle().set_seed(0)
    >>> "".join(pipe)
    'ecbafd'
    >>> "".join(pipe.set_shuffle(False))
    'abcdef'
    """

    def __init__(self, datapipe: Any, *, indices: Any = None) -> None:
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switch shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Set the seed of the next pass."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from (self.datapipe[each] for each in self.indices)
            return
        self._rng.seed(draw_seed() if self._seed is None else self._seed)
        self._seed = None
        for each in reversed(self._rng.sample(self.indices, len(self.indices))):
            yield self.datapipe[each]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
SequenceWrapper, Mapper, Batcher = SequenceWrapperMapDataPipe, MapperMapDataPipe, BatcherMapDataPipe
Concater, Zipper, Shuffler = ConcaterMapDataPipe, ZipperMapDataPipe, ShufflerIterDataPipe
__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
