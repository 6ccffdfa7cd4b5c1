"""Worker processes of a DataLoader: what one does, and how the loader talks to it.

Each worker has a pipe of its own. What it is asked for comes in the order in which it was asked; results are sent by a
thread, so that the worker goes on with the next batch while the loader is busy.
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
from multiprocessing.connection import Connection
from typing import Any

import numpy

from ...operations.creation.random import manual_seed
from ...runtime.blas_threads import set_num_threads


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed, its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


class _Here:
    """Whether this process is a worker."""

    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader: its ``id``, ``num_workers``, ``seed`` and ``dataset``; elsewhere None."""
    return _Here.info


# What a worker answers, beside batches.
BATCH, ERROR, END, READY = "batch", "error", "end", "ready"


@dataclass(frozen=True)
class Failure:
    """An error in a worker, as the loader raises it."""

    kind: Any
    text: str

    def reraise(self) -> None:
        """Raise an error of the same kind, with the worker's trace in its text."""
        if self.kind is KeyError:
            raise KeyError(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:  # a kind that is not made of a text alone
            raise RuntimeError(self.text) from None
        raise error


class _Verbatim(str):
    """A text that is shown as it is in a KeyError."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def failure(error: BaseException, where: str) -> Failure:
    """An error that is being handled, ready to be sent."""
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    kind: Any = type(error)
    try:
        pickle.dumps(kind)
    except Exception:  # a class that only the worker knows
        kind = RuntimeError
    return Failure(kind, f"Caught {type(error).__name__} {where}.\nOriginal {shown}")


# -- Sending ---------------------------------------------------------------------------------------------------------


def send(pipe: Connection, message: Any) -> None:
    """Send a message whose arrays are not copied into the pickle."""
    pieces: list[Any] = []
    body = pickle.dumps(message, 5, buffer_callback=lambda piece: pieces.append(piece.raw()))
    pipe.send([len(piece) for piece in pieces])
    pipe.send_bytes(body)
    for piece in pieces:
        pipe.send_bytes(piece)


def receive(pipe: Connection) -> Any:
    """A message that was sent so; its arrays may be written to."""
    lengths = pipe.recv()
    body = pipe.recv_bytes()
    pieces = []
    for length in lengths:
        piece = bytearray(max(length, 1))
        pipe.recv_bytes_into(piece)
        pieces.append(memoryview(piece)[:length])
    return pickle.loads(body, buffers=pieces)


class _Sender:
    """Sends answers in a thread of its own."""

    def __init__(self, pipe: Connection, where: str) -> None:
        self.pipe, self.where = pipe, where
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the loader is gone
            while (message := self.waiting.get()) is not None:
                try:
                    send(self.pipe, message)
                except (pickle.PicklingError, TypeError, AttributeError) as error:
                    send(self.pipe, (message[0], ERROR, failure(error, self.where)))

    def close(self) -> None:
        self.waiting.put(None)
        self.thread.join()


# -- The worker ------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """What a worker is for."""

    fetcher: Callable[[Any], Callable[[Any], Any]]  # of the data set; made anew for every pass
    dataset: Any
    base_seed: int
    init: Callable[[int], Any] | None
    id: int
    count: int


def seed_everything(base_seed: int, id: int) -> int:
    """Seed PyTorch's, Python's and NumPy's generators of a worker."""
    seed = base_seed + id
    random.seed(seed)
    manual_seed(seed)
    # NumPy's is seeded from a mixture of both, so that workers of neighbouring base seeds do not repeat each other.
    words = [id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    return seed


def run(job: Job, pipe: Connection, inherited: list[Connection]) -> None:
    """The life of a worker: answers ``(number, index)`` until the pipe is closed."""
    for each in inherited:  # a fork holds the loader's ends too, and would never see them closed
        each.close()
    where = f"in DataLoader worker process {job.id}"
    sender = _Sender(pipe, where)
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError):
        _answer(job, pipe, sender, where)
    sender.close()


def _answer(job: Job, pipe: Connection, sender: _Sender, where: str) -> None:
    set_num_threads(1)
    seed = seed_everything(job.base_seed, job.id)
    _Here.info = WorkerInfo(job.id, job.count, seed, job.dataset)
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
        number, index = task
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
    """An iterable data set has no more samples."""


def start(context: Any, job: Job, others: list[Connection]) -> tuple[Any, Connection]:
    """Start a worker; its process, and the loader's end of its pipe. ``others`` are the ends of workers started before."""
    ours, theirs = context.Pipe()
    forked = context.get_start_method() == "fork"
    process = context.Process(target=run, args=(job, theirs, [*others, ours] if forked else []), daemon=True)
    with warnings.catch_warnings():
        # Python warns of forking beside threads: those of BLAS, which are made anew in the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return process, ours
