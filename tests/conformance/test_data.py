"""``torch.utils.data``: compared with PyTorch's record, and failures of worker processes."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import time
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info, messages
from tests.conformance.data_cases import CALLS, answer
from tests.conformance.golden import load
from tests.worker_memory import shared_memory

EXPECTED = load("data")["answers"]
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def test_every_call_is_recorded() -> None:
    assert set(CALLS) == EXPECTED.keys()


@pytest.mark.parametrize("call", CALLS)
def test_results_match_pytorch(call: str) -> None:
    assert answer(torch, call) == EXPECTED[call]


class Squares(Dataset[Any]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        return index**2


class Failing(Squares):
    def __init__(self, how: str) -> None:
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 5:
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "sleep":
                time.sleep(30)
            if self.how == "key":
                raise KeyError("five")
            if self.how == "local":
                raise type("Local", (Exception,), {})("five")
            if self.how == "unpicklable":
                return lambda: 5
            raise ValueError("five")
        return index


def nobody_left() -> bool:
    return not any(each.name.startswith("Process") and each.is_alive() for each in multiprocessing.active_children())


@pytest.mark.parametrize(
    "start", [method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()]
)
def test_start_methods_of_workers(start: str) -> None:
    found = list(DataLoader(Squares(), 5, num_workers=2, multiprocessing_context=start))
    assert [each.tolist() for each in found] == [[0, 1, 4, 9, 16], [25, 36, 49, 64, 81], [100, 121]]
    assert nobody_left()


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (
            "value",
            ValueError,
            r"^Caught ValueError in DataLoader worker process \d\.\nOriginal Traceback \(most recent call",
        ),
        ("key", KeyError, r"^Caught KeyError in DataLoader worker process 0"),
        ("local", RuntimeError, "^Caught Local in DataLoader worker process 0"),
        ("unpicklable", (AttributeError, pickle.PicklingError), "Caught .* in DataLoader worker process 0"),
    ],
)
def test_errors_of_workers_propagate(how: str, kind: Any, text: str) -> None:
    loader = DataLoader(Failing(how), 2, num_workers=2, collate_fn=list)
    passes = iter(loader)
    assert [next(passes), next(passes)] == [[0, 1], [2, 3]]
    with pytest.raises(kind, match=text):
        next(passes)
    assert next(passes) == [6, 7]  # the others go on
    del passes
    assert nobody_left()


def test_killed_worker_raises() -> None:
    passes = iter(DataLoader(Failing("die"), 2, num_workers=2))
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(passes)
    del passes
    assert nobody_left()


def test_timeout() -> None:
    loader = DataLoader(Failing("sleep"), 2, num_workers=1, timeout=0.3)
    passes = iter(loader)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.3 seconds"):
        list(passes)
    for process in passes._processes:
        process.kill()
    del passes
    assert nobody_left()


def test_abandoned_iterator_stops_its_workers() -> None:
    passes = iter(DataLoader(Squares(), 1, num_workers=2))
    next(passes)
    del passes
    assert nobody_left()


class Large(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return {
            "x": torch.full((300, 300), float(index)), "b": torch.tensor([index]).bfloat16(), "e": torch.empty(0, 2),
            "t": torch.arange(6).view(2, 3).t(), "n": np.full(3, index),
        }  # fmt: skip


def test_large_batches_arrive_complete_and_writable() -> None:
    for index, batch in enumerate(DataLoader(Large(), None, num_workers=2)):
        assert batch["x"].shape == (300, 300) and batch["x"].sum().item() == 90000 * index
        batch["x"].add_(1)
        assert batch["b"].dtype == torch.bfloat16 and batch["b"].item() == index
        assert batch["e"].shape == (0, 2) and batch["t"].tolist() == [[0, 3], [1, 4], [2, 5]]
        assert batch["n"].tolist() == [index] * 3


# -- Shared memory (messages.py, Note [Blocks of shared memory]) -------------------------------------------------------

on_linux = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")


class Images(Dataset[Any]):
    """Samples of 80 kB; sample number ``at`` does something else, named by ``how``."""

    def __init__(self, length: int = 24, how: str = "", at: int = 21) -> None:
        self.length, self.how, self.at = length, how, at

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index == self.at:
            if self.how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "error":
                raise ValueError("an error")
            if self.how == "interrupt":
                os.kill(os.getppid(), signal.SIGINT)
        return torch.full((100, 200), float(index)), np.full(10, index), index


def right(batch: Any) -> bool:
    x, y, index = batch
    return bool((x == index[:, None, None]).all() and (y == index[:, None]).all())


@on_linux
@pytest.mark.parametrize(
    ("how", "persistent", "start"),
    [*product(["", "break", "killed", "error", "interrupt"], [False, True], ["fork"]), ("killed", True, "spawn")],
)
def test_shared_memory_is_freed(how: str, persistent: bool, start: str) -> None:
    loader = DataLoader(Images(how=how), 4, num_workers=2, persistent_workers=persistent, multiprocessing_context=start)
    raised = {"killed": RuntimeError, "error": ValueError, "interrupt": KeyboardInterrupt}.get(how)
    shared = 0
    for _ in range(3 if persistent and not raised else 1):
        with pytest.raises(raised) if raised else contextlib.nullcontext():
            for n, batch in enumerate(loader):
                assert right(batch)
                shared += batch[0].is_shared()
                if how == "break" and n == 2:
                    break
                if how == "interrupt" and n == 5:
                    time.sleep(10)
    assert shared >= (3 if how in ("", "break") else 1)
    del batch, loader
    assert nobody_left()
    assert shared_memory() == []


@on_linux
def test_batch_outlives_its_workers() -> None:
    first, second = DataLoader(Images(8), 4, num_workers=2)
    assert nobody_left() and first[0].is_shared()
    assert right(first) and right(second)
    del first
    view = second[0][1:].numpy()
    del second
    assert view[0, 0, 0] == 5 and shared_memory() != []
    del view
    assert shared_memory() == []


@on_linux
def test_kept_batches_are_not_overwritten() -> None:
    batches = list(DataLoader(Images(160), 2, num_workers=2))  # more than the workers have blocks
    assert all(map(right, batches))
    assert sum(x.is_shared() for x, _, _ in batches) == 2 * messages.LIMIT
    batches[0][0].add_(1)
    assert not right(batches[0]) and all(map(right, batches[1:]))


@on_linux
def test_blocks_are_used_again_and_grow() -> None:
    class Growing(Dataset[Any]):
        def __len__(self) -> int:
            return 60

        def __getitem__(self, index: int) -> Any:
            return torch.full((50_000 + 10_000 * (index % 20),), float(index))

    places = set()
    for index, x in enumerate(DataLoader(Growing(), None, num_workers=1)):
        assert x.is_shared() and bool((x == index).all())
        places.add(x.data_ptr())
        del x
    assert 1 <= len(places) <= 12


@on_linux
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_copies_in_a_forked_process_are_not_overwritten() -> None:
    passes = iter(DataLoader(Images(400), 2, num_workers=2))
    batch = next(passes)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.read(read, 1)
        os._exit(0 if right(batch) else 1)
    del batch
    for batch in passes:
        assert right(batch)
    os.write(write, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(read), os.close(write)


@on_linux
def test_limit_of_open_files() -> None:
    resource = pytest.importorskip("resource")
    gc.collect()  # no file may be closed later
    passes = iter(DataLoader(Images(), 4, num_workers=2))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(RuntimeError, match=r"could not map the shared memory of a worker .*`ulimit -n`"):
            next(passes)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert list(passes) == []
    assert nobody_left() and shared_memory() == []


def test_out_of_order() -> None:
    class Slow(Squares):
        def __getitem__(self, index: int) -> int:
            if index == 0:
                time.sleep(0.5)
            return index

    found = [each.item() for each in DataLoader(Slow(), 1, num_workers=2, in_order=False)]
    assert sorted(found) == list(range(12)) and found[0] != 0


def test_worker_init_fn_and_info() -> None:
    class Told(IterableDataset[Any]):
        def __iter__(self) -> Any:
            info = get_worker_info()
            assert info is not None
            yield info.id, info.num_workers, info.seed - info.id, self.mark  # type: ignore[attr-defined]

    def mark(id: int) -> None:
        info = get_worker_info()
        assert info is not None
        info.dataset.mark = 10 + id

    found = list(DataLoader(Told(), None, num_workers=2, worker_init_fn=mark))
    assert [(each[0], each[1], each[3]) for each in found] == [(0, 2, 10), (1, 2, 11)]
    assert found[0][2] == found[1][2] and get_worker_info() is None


def test_prefetching() -> None:
    class Slow(Squares):
        def __getitem__(self, index: int) -> int:
            time.sleep(0.02)
            return index

    passes = iter(DataLoader(Slow(), 2, num_workers=1, prefetch_factor=3))
    next(passes)
    time.sleep(0.5)
    start = time.perf_counter()
    next(passes), next(passes)
    assert time.perf_counter() - start < 0.05


def test_iterator_cannot_be_pickled() -> None:
    with pytest.raises(NotImplementedError, match="_SingleProcessDataLoaderIter"):
        pickle.dumps(iter(DataLoader(Squares())))


def test_read_only_attributes() -> None:
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        DataLoader(Squares()).batch_size = 3


class _Labelled(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return torch.ones(100_000), index


def test_labels_do_not_keep_the_memory_of_their_batches() -> None:
    loader = DataLoader(_Labelled(), 2, num_workers=1)
    batches = list(loader)
    assert all(x.is_shared() and not y.is_shared() for x, y in batches)
    assert [y.tolist() for _, y in batches] == [[n, n + 1] for n in range(0, 12, 2)]
