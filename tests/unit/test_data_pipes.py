"""Data pipes of ``torch.utils.data``, private parts of the loader, and weak dictionaries; results are PyTorch 2.13's."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.utils.data import DataLoader, IterableDataset, IterDataPipe, dataloader, functional_datapipe
from retrograd.utils.data import graph_settings as settings
from retrograd.utils.data.datapipes.iter import FileLister, FileOpener, IterableWrapper, StreamReader
from retrograd.utils.data.datapipes.map import SequenceWrapper
from retrograd.utils.data.graph import traverse_dps
from retrograd.utils.weak import TensorWeakRef, WeakIdKeyDictionary

P: Any = IterableWrapper(range(10))


def test_steps() -> None:
    assert list(P.map(lambda x: x * 2).filter(lambda x: x % 3 == 0).batch(2)) == [[0, 6], [12, 18]]
    assert list(P.batch(3, drop_last=True).unbatch()) == list(range(9))
    assert list(IterableWrapper([1, 2]).zip(IterableWrapper("ab"))) == [(1, "a"), (2, "b")]
    assert list(IterableWrapper([1, 2]).concat(IterableWrapper("ab"))) == [1, 2, "a", "b"]
    assert list(IterableWrapper([1, 2]).mux(IterableWrapper("ab"))) == [1, "a", 2, "b"]
    assert list(P.groupby(lambda x: x % 3)) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert list(P.groupby(lambda x: x % 3, group_size=2)) == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    assert len(P.batch(3)) == 4 and repr(P.map(str)) == "MapperIterDataPipe"
    first, second = P.demux(2, lambda x: x % 2)
    assert (list(first), list(second)) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    first, second = P.fork(2)
    assert list(first) == list(second) == list(range(10))
    pairs = IterableWrapper([(1, 2), (3, 4)])
    assert list(pairs.map(lambda a: a * 10, input_col=0)) == [(10, 2), (30, 4)]
    assert list(pairs.map(lambda a, b: a + b, input_col=[0, 1], output_col=-1)) == [(1, 2, 3), (3, 4, 7)]
    assert list(pickle.loads(pickle.dumps(IterableWrapper([1, 2]).batch(2)))) == [[1, 2]]


def test_order_of_a_seed() -> None:
    torch.manual_seed(0)
    assert list(P.shuffle()) == [3, 5, 0, 1, 9, 6, 2, 7, 4, 8]
    assert list(P.shuffle(buffer_size=3)) == [0, 3, 1, 5, 6, 7, 8, 4, 2, 9]
    assert list(P.shuffle().set_seed(5)) == [9, 4, 6, 8, 7, 5, 0, 2, 1, 3]
    assert list(SequenceWrapper(list("abcdef")).shuffle().set_seed(1)) == ["c", "d", "f", "a", "e", "b"]


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"^Boolean output is required for `filter_fn` of FilterIterDataPipe, got"):
        list(P.filter(lambda x: x))
    with pytest.raises(AttributeError, match=r"^'IterableWrapperIterDataPipe' object has no attribute 'nothing$"):
        P.nothing
    first, second = iter(P), iter(P)
    assert next(first) == 0 and next(second) == 0
    with pytest.raises(RuntimeError, match=r"^This iterator has been invalidated because another iterator has been"):
        next(first)


def test_a_step_of_a_program() -> None:
    @functional_datapipe("plus_number")
    class Plus(IterDataPipe):
        def __init__(self, source: Any, number: int) -> None:
            self.source, self.number, self.resets = source, number, 0

        def reset(self) -> None:
            self.resets += 1

        def __iter__(self) -> Iterator[Any]:
            for each in self.source:
                yield each + self.number

    pipe = P.plus_number(5)
    assert list(pipe) == list(pipe) == list(range(5, 15)) and pipe.resets == 2 and isinstance(pipe, IterableDataset)
    with pytest.raises(Exception, match=r"^Unable to add DataPipe function name plus_number as it is already taken$"):
        functional_datapipe("plus_number")(Plus)
    batches = [each.tolist() for each in DataLoader(pipe, batch_size=4)]
    assert batches == [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14]]


def test_graph() -> None:
    pipe = P.sharding_filter()
    settings.apply_sharding(pipe, 3, 1)
    assert list(pipe) == [1, 4, 7] and len(pipe) == 3
    assert len(settings.get_all_graph_pipes(traverse_dps(P.map(str).shuffle().batch(2)))) == 4
    with pytest.raises(RuntimeError, match=r"^Sharding twice on a single pipeline is likely unintended"):
        settings.apply_sharding(pipe.sharding_filter(), 2, 0)
    assert [each.tolist() for each in DataLoader(P.shuffle(), batch_size=5, shuffle=False)] == [
        [*range(5)],
        [*range(5, 10)],
    ]


def test_workers_share_a_sharded_pipe() -> None:
    loader = DataLoader(P.sharding_filter(), batch_size=2, num_workers=2)
    assert sorted(each for batch in loader for each in batch.tolist()) == list(range(10))


def test_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name)
    found = StreamReader(FileOpener(FileLister(str(tmp_path), "*.txt")))
    assert [text for _, text in found] == ["a.txt", "b.txt"]


def test_parts_of_the_loader() -> None:
    kind = dataloader._DatasetKind
    assert kind.create_fetcher(kind.Map, list(range(5)), True, list, False).fetch([1, 2]) == [1, 2]
    fetcher = kind.create_fetcher(kind.Iterable, range(3), True, list, False)
    assert [fetcher.fetch([0, 1]), fetcher.fetch([0, 1])] == [[0, 1], [2]]
    with pytest.raises(StopIteration):
        fetcher.fetch([0])

    class Own(dataloader._BaseDataLoaderIter):
        def _next_data(self) -> Any:
            return self._dataset[self._next_index()[0]]

    loader = DataLoader(list(range(3)), batch_size=1)
    own = Own(loader)
    assert list(own) == [0, 1, 2] and own._num_yielded == 3 and own._auto_collation


def test_weak_dictionary() -> None:
    gc.disable()
    try:
        x, y = torch.ones(2), torch.ones(2)
        found = WeakIdKeyDictionary({x: 1})
        found[y] = 2
        assert found[x] == 1 and len(found) == 2 and x in found and torch.ones(2) not in found
        reference = TensorWeakRef(x)
        del x
        assert reference() is None and [each is y for each in found] == [True]
    finally:
        gc.enable()
