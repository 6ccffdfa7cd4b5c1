"""Worker processes of a DataLoader, and the messages between a worker and the loader.

The loader is the process that iterates over the DataLoader. Each worker has its own pipe to the loader and processes
requests in order. A separate thread of the worker sends the results, so that the worker computes the next batch while
the loader is busy.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import random
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from ...operations.creation.random import manual_seed
from ...runtime.blas_threads import set_num_threads
from .messages import Sender

if TYPE_CHECKING:
    from multiprocessing.connection import Connection  # not in Pyodide


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Information about a worker: its id, the number of workers, its seed, and its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


class _ProcessState:
    """Global variable ``info``: the WorkerInfo of this process, or None if this process is not a worker."""

    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the :class:`WorkerInfo` (``id``, ``num_workers``, ``seed``, ``dataset``) of this process, or None.

    The result is None outside of the worker processes of a DataLoader.

    >>> import retrograd as torch
    >>> torch.utils.data.get_worker_info() is None  # in the main process
    True
    """
    return _ProcessState.info


# Kinds of messages from a worker.
BATCH, ERROR, END, READY = "batch", "error", "end", "ready"


@dataclass(frozen=True)
class Failure:
    """Description of an exception in a worker: its class ``kind`` and its message ``text``.

    The worker sends this object to the loader, which raises an exception of this class with this message.
    """

    kind: Any
    text: str

    def reraise(self) -> None:
        """Raise ``kind(text)``; the text contains the worker's traceback.

        RuntimeError is raised instead if the class cannot be called with one string.
        """
        if self.kind is KeyError:
            raise KeyError(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:  # a type whose constructor needs other arguments
            raise RuntimeError(self.text) from None
        raise error


class _Verbatim(str):
    """String whose ``repr`` is the string itself, used as the message of a KeyError.

    Python shows the message of a KeyError by the ``repr`` of the string, which normally adds quotes and escapes line
    breaks.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def failure(error: BaseException, where: str) -> Failure:
    """Return a Failure with the class of the exception ``error`` and a message that contains its traceback.

    The class is RuntimeError if the class of ``error`` cannot be pickled. ``where`` is the part of the message that
    names the worker, for example ``"in DataLoader worker process 0"``.
    """
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    kind: Any = type(error)
    try:
        pickle.dumps(kind)
    except Exception:  # a class that cannot be pickled
        kind = RuntimeError
    return Failure(kind, f"Caught {type(error).__name__} {where}.\nOriginal {shown}")


# -- Sending ---------------------------------------------------------------------------------------------------------


class _SendingThread:
    """Thread in a worker that sends the results to the loader."""

    def __init__(self, pipe: Connection, where: str) -> None:
        self.sender, self.where = Sender(pipe), where
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the loader has exited
            while (message := self.waiting.get()) is not None:
                try:
                    self.sender.send(message)
                except (pickle.PicklingError, TypeError, AttributeError) as error:
                    self.sender.send((message[0], ERROR, failure(error, self.where)))

    def close(self) -> None:
        self.waiting.put(None)
        self.thread.join()


# -- The worker ------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """Parameters of one worker of a DataLoader: the data set, the seed, the worker's id and others."""

    fetcher: Callable[[Any], Callable[[Any], Any]]  # called with the data set at the start of every pass
    dataset: Any
    base_seed: int
    init: Callable[[int], Any] | None
    id: int
    count: int


def seed_everything(base_seed: int, id: int) -> int:
    """Seed the random generators of retrograd, Python and NumPy in worker number ``id``; return ``base_seed + id``."""
    seed = base_seed + id
    random.seed(seed)
    manual_seed(seed)
    # NumPy's generator is seeded from a hash of both, so that workers with adjacent base seeds do not repeat each
    # other.
    words = [id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    return seed


def run(job: Job, pipe: Connection, inherited: list[Connection]) -> None:
    """Load the batches that the loader requests through ``pipe``; this is the main function of a worker process.

    A request is a tuple of the number of a batch, the indices of its samples and the blocks of shared memory that the loader
    returns. The function returns when the request
    is None or the loader has closed the pipe. ``inherited`` are connections of the loader of which this process has
    copies, because it was forked. The copies are closed first; otherwise the connections would remain open when the
    loader closes them.
    """
    for each in inherited:  # a forked process holds the loader's ends too, and would never see them closed
        each.close()
    where = f"in DataLoader worker process {job.id}"
    sender = _SendingThread(pipe, where)
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError):
        _serve(job, pipe, sender, where)
    sender.close()


def _serve(job: Job, pipe: Connection, sender: _SendingThread, where: str) -> None:
    set_num_threads(1)
    seed = seed_everything(job.base_seed, job.id)
    _ProcessState.info = WorkerInfo(job.id, job.count, seed, job.dataset)
    fetch: Any = None
    broken: Failure | None = None
    try:
        if job.init is not None:
            job.init(job.id)
        fetch = job.fetcher(job.dataset)
    except Exception as error:
        broken = failure(error, where)
    ended = False
    while (task := pipe.recv()) is not None:
        number, index, returned = task
        sender.sender.release(returned)
        if number == READY:
            fetch, ended = job.fetcher(job.dataset), False
            sender.waiting.put((READY, READY, None))
        elif broken is not None:
            sender.waiting.put((number, ERROR, broken))
            broken = None
        elif not ended:
            try:
                sender.waiting.put((number, BATCH, fetch(index)))
            except EndOfData:
                ended = True
                sender.waiting.put((number, END, None))
            except Exception as error:
                sender.waiting.put((number, ERROR, failure(error, where)))


class EndOfData(Exception):
    """Exception raised when an iterable data set has no more samples."""


def start(context: Any, job: Job, others: list[Connection]) -> tuple[Any, Connection]:
    """Start a worker process for ``job``; return the process and the loader's connection to the worker.

    ``context`` is a context of ``multiprocessing``. ``others`` are the loader's connections to the workers that were
    started before. A forked worker has copies of these connections, and closes them.
    """
    ours, theirs = context.Pipe()
    forked = context.get_start_method() == "fork"
    process = context.Process(target=run, args=(job, theirs, [*others, ours] if forked else []), daemon=True)
    with warnings.catch_warnings():
        # Python warns of a fork while other threads run: BLAS's, which BLAS creates again in the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return process, ours
