"""``DataLoader``: loads a data set in batches, in this process or in worker processes (``worker.py``)."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from ...compat.lazy_imports import load_part, module_getattr
from ...core import devices
from ...dispatch.intercept import GO_ON, HANDLERS, intercept
from ...operations.creation.random import Generator
from ...runtime.timed_functions import profiled
from ...runtime.user_frame import warn
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset, fetch_samples
from .messages import Receiver, TransferError
from .sampler import BatchSampler, RandomSampler, SequentialSampler, draw_seed
from .worker import BATCH, END, ERROR, READY, EndOfData, Job, get_worker_info, start

Batch = TypeVar("Batch", covariant=True)
_collate_fn_t: TypeAlias = Callable[[list[Any]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _InfiniteConstantSampler:
    """Sampler for an iterable data set, which has no indices.

    It yields None without end, so that a BatchSampler determines only the number of samples in a batch.
    """

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[Batch]):
    """Iterable over the samples of ``dataset`` in batches; each iteration is one pass over the data set.

    If ``shuffle`` is true, the order is random. A ``sampler``, which yields indices, or a ``batch_sampler``, which
    yields lists of indices, determines another order. ``collate_fn`` combines a list of ``batch_size`` samples into a
    batch; ``batch_size=None`` yields single samples. If ``drop_last`` is true, an incomplete last batch is dropped.

    ``num_workers`` processes load batches in advance, up to ``prefetch_factor`` batches each. Each worker first calls
    ``worker_init_fn(id)``. If ``persistent_workers`` is true, the workers are kept for the next pass. ``timeout`` is
    the limit in seconds for one batch. If ``in_order`` is false, batches are yielded in the order in which the workers
    finish them. ``generator`` is used to draw the order and the seeds of the workers. With ``pin_memory``, the
    tensors of a batch are copied to pinned memory if there is a GPU.

    For the same seed, the order and the random numbers of the workers are the same as in PyTorch.

    >>> import retrograd as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> for (batch,) in torch.utils.data.DataLoader(data, batch_size=2):
    ...     print(batch)
    tensor([0, 1])
    tensor([2, 3])
    tensor([4])
    """

    __initialized = False

    def __init__(
        self, dataset: Dataset[Batch] | Sequence[Batch], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        samples: Any = dataset
        iterable = isinstance(dataset, IterableDataset)
        if _is_pipe(dataset):
            if iterable:
                dataset = _graph_settings().apply_shuffle_settings(dataset, shuffle=shuffle)
                shuffle = None
            if num_workers:
                worker_init_fn = partial(_dataset_kind()._sharding_worker_init_fn, worker_init_fn, 1, 0)
        _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(samples, generator=generator) if shuffle else SequentialSampler(samples)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._dataset_kind = int(iterable)  # PyTorch reads it from a pickled loader
        self._iterator: _MultiProcessingDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """Context of ``multiprocessing`` that starts the workers, or None for the default context."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            import multiprocessing  # not in Pyodide

            if isinstance(context, str):
                valid = multiprocessing.get_all_start_methods()
                if context not in valid:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            self.check_worker_number_rationality()
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None or self._iterator.closed:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator.again()
        return self._iterator

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if the number of workers exceeds the number of processors."""
        known = hasattr(os, "sched_getaffinity")
        count = len(os.sched_getaffinity(0)) if known else os.cpu_count()
        if not self.num_workers or (count is not None and self.num_workers <= count):
            return
        suggested = "DataLoader is not able to compute a suggested max number of worker in current system."
        if count is not None:
            suggested = (
                f"Our suggested max number of worker in current system is {count}"
                f"{'' if known else ' (`cpuset` is not taken into account)'}, which is smaller than what this DataLoader "
                "is going to create."
            )
        warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {suggested} Please be aware that "
            "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
            "potential slowness/freeze if necessary."
        )


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_order(
    iterable: bool, batch_size: int | None, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    refused = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in refused.items() if iterable else ():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


# -- Fetching --------------------------------------------------------------------------------------------------------


def fetcher(batched: bool, collate: Callable[[Any], Any], drop_last: bool, dataset: Any) -> Callable[[Any], Any]:
    """Return a function that loads a batch of ``dataset``: it takes a list of indices and returns the batch.

    The batch is ``collate(samples)``, where ``samples`` is the list of the samples at the indices. If ``batched`` is
    false, the function takes a single index and returns ``collate(sample)``.

    If ``dataset`` is iterable, the indices are not used: the samples are the next samples of the data set, as many as
    there are indices. After the last sample, the function raises EndOfData. If ``drop_last`` is true, it also raises
    EndOfData instead of returning an incomplete batch.
    """
    if not isinstance(dataset, IterableDataset):
        return lambda index: collate(fetch_samples(dataset, index) if batched else dataset[index])
    samples, ended = iter(dataset), [False]

    def fetch(index: Any) -> Any:
        if ended[0]:
            raise EndOfData
        found = []
        for _ in index if batched else (None,):
            try:
                found.append(next(samples))
            except StopIteration:
                ended[0] = True
                break
        if not found or (batched and drop_last and len(found) < len(index)):
            raise EndOfData
        return collate(found if batched else found[0])

    return fetch


# -- Passes ----------------------------------------------------------------------------------------------------------


def _is_pipe(dataset: Any) -> bool:
    """Whether ``dataset`` is a data pipe, a class that is loaded on demand."""
    part = sys.modules.get(f"{__package__}.datapipes.datapipe")
    return part is not None and isinstance(dataset, (part.IterDataPipe, part.MapDataPipe))


def _graph_settings() -> Any:
    return load_part("utils.data.graph_settings")


def _dataset_kind() -> Any:
    return load_part("utils.data._dataset_kind")


#: PyTorch's private attributes of an iterator, as functions of the loader.
_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "_IterableDataset_len_called": lambda loader: loader._IterableDataset_len_called,
    "_auto_collation": lambda loader: loader._auto_collation,
    "_collate_fn": lambda loader: loader.collate_fn,
    "_dataset": lambda loader: loader.dataset,
    "_dataset_kind": lambda loader: loader._dataset_kind,
    "_drop_last": lambda loader: loader.drop_last,
    "_in_order": lambda loader: loader.in_order,
    "_index_sampler": lambda loader: loader._index_sampler,
    "_num_workers": lambda loader: loader.num_workers,
    "_persistent_workers": lambda loader: loader.persistent_workers,
    "_pin_memory": lambda loader: loader.pin_memory and devices.gpu_count() > 0,
    "_pin_memory_device": lambda loader: loader.pin_memory_device,
    "_prefetch_factor": lambda loader: loader.prefetch_factor,
    "_profile_name": lambda loader: "enumerate(DataLoader)",
    "_rank": lambda loader: 0,
    "_shared_seed": lambda loader: None,
    "_timeout": lambda loader: loader.timeout,
    "_world_size": lambda loader: 1,
}


class _BaseDataLoaderIter:
    """Base class of iterators of a DataLoader; an iterator makes one pass over the data set."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory and loader.pin_memory_device:
            warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
                f"pin_memory_device='{loader.pin_memory_device}'."
            )
        if loader.pin_memory and devices.gpu_count() == 0:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )
        self._loader = loader
        self._pins = loader.pin_memory and devices.gpu_count() > 0
        if _is_pipe(loader.dataset):
            self._shared_seed = int(draw_seed(loader.generator))
            _graph_settings().apply_random_seed(loader.dataset, Generator().manual_seed(self._shared_seed))
        self._begin()
        self._base_seed = draw_seed(loader.generator)

    def _begin(self) -> None:
        self._indices = iter(self._loader._index_sampler)
        self._given = 0

    def __getattr__(self, name: str) -> Any:
        """Return an attribute by its name in PyTorch, for loaders of other packages."""
        if name == "_sampler_iter":
            return self._indices
        read = _ATTRIBUTES.get(name)
        if read is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = self.__dict__[name] = read(self._loader)
        return found

    @property
    def _num_yielded(self) -> int:
        return self._given

    @_num_yielded.setter
    def _num_yielded(self, count: int) -> None:
        self._given = count

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._begin()
        self._sampler_iter = iter(loader._index_sampler)

    def _make(self) -> Callable[[Any], Callable[[Any], Any]]:
        loader = self._loader
        return partial(fetcher, loader.batch_sampler is not None, loader.collate_fn, loader.drop_last)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)

    @profiled(lambda self: f"enumerate(DataLoader)#{type(self).__name__}.__next__")
    def __next__(self) -> Any:
        if HANDLERS and (answer := intercept(_BaseDataLoaderIter.__next__, (self,), {})) is not GO_ON:
            return answer
        data = self._next()
        if self._pins:
            data = load_part("utils.data._utils.pin_memory").pin_memory(data)
        self._given += 1
        said = self._loader._IterableDataset_len_called
        if said is not None and self._given > said:
            text = (
                f"Length of IterableDataset {self._loader.dataset} was reported to be {said}(when accessing "
                f"len(dataloader)), but {self._given} samples have been fetched. "
            )
            if self._loader.num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                )
            warn(text)
        return data

    def _next(self) -> Any:
        return self._next_data()  # an iterator of another package

    def _next_data(self) -> Any:
        raise NotImplementedError


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Iterator that loads batches in the process of the DataLoader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetch = self._make()(loader.dataset)

    def _next(self) -> Any:
        try:
            return self._fetch(next(self._indices))
        except EndOfData:
            raise StopIteration from None


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Iterator that loads batches in advance in worker processes; the batches are assigned to the workers in turn."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        import multiprocessing  # not in Pyodide

        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._owner = os.getpid()
        self._processes: list[Any] = []
        self._pipes: list[Any] = []
        self._receivers: list[Receiver] = []
        for id in range(loader.num_workers):
            job = Job(self._make(), loader.dataset, self._base_seed, loader.worker_init_fn, id, loader.num_workers)
            process, pipe = start(context, job, self._pipes)
            self._processes.append(process)
            self._pipes.append(pipe)
            self._receivers.append(Receiver(pipe))
        self._fill()

    def again(self) -> None:
        """Start another pass over the data set with the same workers."""
        try:
            self._begin()
            for pipe in self._pipes:
                pipe.send((READY, None, []))
            waiting = set(range(len(self._pipes)))
            while waiting:
                waiting -= {worker for worker, (number, _, _) in self._received(waiting) if number == READY}
            self._fill()
        except KeyboardInterrupt:
            self.shut_down()
            raise

    @property
    def closed(self) -> bool:
        """Whether the workers have been stopped."""
        return not self._pipes

    def _fill(self) -> None:
        self._sent = 0
        self._tasks: deque[tuple[int, int]] = deque()  # numbers of batches and their workers, in order
        self._results: dict[int, tuple[str, Any]] = {}
        self._open = [True] * len(self._pipes)
        self._turn = 0
        for _ in range(self._loader.prefetch_factor * len(self._pipes)):  # type: ignore[operator]
            self._ask()

    def _ask(self) -> None:
        """Request the next batch from the next worker in turn; do nothing if no batch or no worker is left."""
        if not any(self._open):
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        while not self._open[self._turn % len(self._open)]:
            self._turn += 1
        worker = self._turn % len(self._open)
        self._turn += 1
        with contextlib.suppress(OSError):  # the worker has exited: waiting for its result raises the error
            self._pipes[worker].send((self._sent, index, self._receivers[worker].returned()))
        self._tasks.append((self._sent, worker))
        self._sent += 1

    def _next(self) -> Any:
        try:
            return self._next_batch()
        except (KeyboardInterrupt, TransferError):  # a message may have been received in part
            self.shut_down()
            raise

    def _next_batch(self) -> Any:
        while self._tasks:
            number = self._next_ready()
            if number is None:
                self._wait()
                continue
            kind, data = self._results.pop(number)
            self._ask()
            if kind == ERROR:
                data.reraise()
            return data
        if not self._loader.persistent_workers:
            self.shut_down()
        raise StopIteration

    def _next_ready(self) -> int | None:
        """Return the number of the next batch to yield, and remove the batch from the queue of requests.

        If ``in_order`` of the DataLoader is true, the next batch is the first in the queue; the result is None if it
        has not arrived yet. Otherwise it is the first that has arrived; the result is None if none has arrived.

        A worker that has reached the end of an iterable data set does not answer its remaining requests. Such requests
        at the front of the queue are removed first.
        """
        while self._tasks and not self._open[self._tasks[0][1]] and self._tasks[0][0] not in self._results:
            self._tasks.popleft()
        numbers = [number for number, _ in self._tasks]
        for number in numbers[:1] if self._loader.in_order else numbers:
            if number in self._results:
                self._tasks = deque(task for task in self._tasks if task[0] != number)
                return number
        return None

    def _wait(self) -> None:
        """Wait for at least one result from the workers and store the results that have arrived."""
        busy = {worker for number, worker in self._tasks if number not in self._results and self._open[worker]}
        if not busy:
            return
        for worker, (number, kind, data) in self._received(busy):
            if kind == END:
                self._open[worker] = False
                self._ask()
            elif kind in (BATCH, ERROR):
                self._results[number] = (kind, data)

    def _received(self, workers: set[int]) -> list[tuple[int, Any]]:
        """Wait for results from ``workers``, a set of worker numbers, and return a list of pairs ``(worker, result)``.

        ``worker`` is the number of the worker that sent ``result``. Raises RuntimeError if no result arrives within
        ``timeout`` seconds, or if a worker has exited and there is no result.
        """
        from multiprocessing.connection import wait

        pipes = {self._pipes[worker]: worker for worker in workers}
        ends = {self._processes[worker].sentinel: worker for worker in workers}
        timeout = self._loader.timeout or None
        ready = wait([*pipes, *ends], timeout)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")
        found = []
        ended = {ends[each] for each in ready if each in ends}
        for pipe in ready:
            if pipe in pipes:
                try:
                    found.append((pipes[pipe], self._receivers[pipes[pipe]].receive()))
                except (EOFError, OSError):  # a worker's pipe closes before its sentinel is ready
                    ended.add(pipes[pipe])
        if not found:
            gone = ", ".join(str(self._processes[worker].pid) for worker in sorted(ended))
            raise RuntimeError(f"DataLoader worker (pid(s) {gone}) exited unexpectedly")
        return found

    def shut_down(self) -> None:
        """Stop the workers, and terminate those that do not exit within 5 seconds. The iterator ends."""
        self._tasks = deque()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
            with contextlib.suppress(OSError):  # closed by a call that was interrupted
                pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
                process.join(5)
        self._pipes, self._receivers, self._processes = [], [], []

    def __del__(self) -> None:
        if (
            getattr(self, "_pipes", None) and self._owner == os.getpid()
        ):  # a forked process has a copy, but is not the parent of the workers
            self.shut_down()


__getattr__ = module_getattr(__name__, dict.fromkeys(("_DatasetKind", "_sharding_worker_init_fn"), "._dataset_kind"))
__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
