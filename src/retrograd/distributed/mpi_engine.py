"""``MPIEngine``: the ranks of a group exchange data through MPI (mpi4py).

Note [Progress]. An operation is a generator that posts nonblocking MPI requests and yields them, as a list, each time it
has to wait. Each step runs in the thread that finds the requests of the one before complete. MPI makes progress only
inside its calls. Therefore a thread that waits polls: at first without a pause, then with pauses that grow, in which it
holds neither the processor nor the interpreter's lock. One thread, :class:`_Progress`, polls all operations that no
other thread waits for. Because threads poll instead of blocking, they notice that a rank is gone, that the time is up, or
that the user has pressed Ctrl-C.

Note [Headers]. A collective operation begins with a reduction of two integers: the maximum of the operation's fingerprint
(a number for the operation, shape, dtype and root, and the count of operations of the group) and of its complement. If
all ranks call the same operation, the second is the complement of the first. If not, all ranks learn of it, although
they have called different operations; they exchange descriptions, and raise an error with the operation that each rank has
called. No tensor has changed then. Without headers, operations that do not fit each other give wrong results, wait for
ever, or end the process within the MPI library. A header takes 4 µs between two ranks of one machine.

Note [Order of posting]. Collective operations of MPI must be posted in the same order by all ranks of a communicator.
Headers are posted in the calling thread, on a communicator of their own. The first steps are posted on another one in the
same order, each as soon as its header and those before it are complete, by the thread that finds them so. Later steps send
messages between two ranks, with a tag of the operation, because their order is left to chance. The operations on objects
are an exception: their later steps are collective operations, because the thread that calls them waits for them.
"""

from __future__ import annotations

import atexit
import pickle
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from types import CodeType
from typing import Any
from zlib import crc32

import mpi4py
import numpy

if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.initialize = mpi4py.rc.finalize = False  # mpi_start starts MPI; without this, the next import would

from mpi4py import MPI

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor, address
from ..core.views import bump_version, check_in_place
from ..determinism import are_deterministic_algorithms_enabled
from ..futures import Future
from ..operations.creation.from_data import as_tensor
from ..runtime.user_frame import file_of, line_of, user_location
from .engine import Engine, Operation, check_reduction
from .errors import DistBackendError
from .reductions import ReduceOp

#: Steps of an operation: requests to wait for, or requests and the list in which to store their statuses.
#: None is a request to be called again later.
Steps = Generator[list[MPI.Request] | tuple[list[MPI.Request], list[MPI.Status]] | None, None, Any]
Array = Any

#: Seconds for which a waiting thread polls without a pause, and its first pause. A pause is at most ``SHARE`` of the time
#: that the thread has waited, or ``USUAL_PAUSE`` if that is longer, and never longer than ``LONGEST_PAUSE``.
SPIN, FIRST_PAUSE, USUAL_PAUSE, SHARE, LONGEST_PAUSE = 100e-6, 1e-6, 100e-6, 0.02, 5e-3
#: Seconds after which a waiting rank requests the positions of the others.
PATIENCE = 10.0
#: Seconds for which an operation goes on after another rank has ended in good order.
GRACE = 1.0
#: Number of headers of a group that are posted at a time. Each call of MPI looks at all requests: with thousands of them, the
#: time would grow with the square of their number.
_HEADERS = 64
#: Bytes of the description of an operation that ranks exchange if their operations differ.
_DESCRIPTION = 512
#: Tags of messages that are not of the user are odd: that of descriptions, that of the start of a group, and the first
#: of those of operations (see :meth:`MPIEngine._tag`).
_EXPLAIN, _MEET, _FIRST_TAG, _TAGS = 1, 3, 17, 1 << 18

#: For each dtype that can be reduced: the dtype in which MPI reduces it, and MPI's type.
_REDUCED = {
    "float32": ("float32", MPI.FLOAT), "float64": ("float64", MPI.DOUBLE),
    "float16": ("float32", MPI.FLOAT), "bfloat16": ("float32", MPI.FLOAT),
    "uint8": ("uint8", MPI.UINT8_T), "int8": ("int8", MPI.INT8_T), "bool": ("uint8", MPI.UINT8_T),
    "int16": ("int16", MPI.INT16_T), "int32": ("int32", MPI.INT32_T), "int64": ("int64", MPI.INT64_T),
    "uint16": ("uint16", MPI.UINT16_T), "uint32": ("uint32", MPI.UINT32_T), "uint64": ("uint64", MPI.UINT64_T),
    "complex64": ("float32", MPI.FLOAT), "complex128": ("float64", MPI.DOUBLE),
}  # fmt: skip
_OPS = {
    ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD, ReduceOp.MIN: MPI.MIN, ReduceOp.MAX: MPI.MAX,
    ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR,
}  # fmt: skip
_UFUNCS = {
    ReduceOp.SUM: numpy.add, ReduceOp.AVG: numpy.add, ReduceOp.PRODUCT: numpy.multiply, ReduceOp.MIN: numpy.minimum,
    ReduceOp.MAX: numpy.maximum, ReduceOp.BAND: numpy.bitwise_and, ReduceOp.BOR: numpy.bitwise_or,
    ReduceOp.BXOR: numpy.bitwise_xor,
}  # fmt: skip


def _least(first: Array, second: Array, out: Array) -> None:
    """Write the smaller of ``first`` and ``second`` to ``out``; of numbers that do not compare, such as NaN, ``first``."""
    out[...] = numpy.where(second < first, second, first)


def _greatest(first: Array, second: Array, out: Array) -> None:
    """Write the greater of ``first`` and ``second`` to ``out``; of numbers that do not compare, such as NaN, ``first``."""
    out[...] = numpy.where(first < second, second, first)


#: Functions of floating-point numbers that MPI does not compute alike in all ranks: of NaN and of zeros of both signs, each
#: rank would keep its own. The result is that of a comparison in the order of the ranks.
_OF_FLOATS = {ReduceOp.MIN: _least, ReduceOp.MAX: _greatest}
#: The operation on 0 and 1 that an operation on bool is.
_OF_BOOL = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PRODUCT: ReduceOp.MIN}


# -- Operations that have been started -----------------------------------------------------------------------------------


class Position:
    """Operation that a rank has called, and the line of the program that calls it."""

    __slots__ = ("code", "detail", "instruction", "name")
    detail: str
    name: str
    instruction: int

    def __init__(self, name: str, detail: str) -> None:
        self.name, self.detail = name, detail
        self.code: CodeType | None
        self.code, self.instruction = user_location(3)

    def describe(self) -> str:
        """Return the description that error messages contain."""
        return f"`{self.name}`{self.detail}" + (f" at {':'.join(map(str, self.place()))}" if self.code else "")

    def place(self) -> tuple[str, int]:
        """Return the file and the line."""
        return ("", 0) if self.code is None else (file_of(self.code), line_of(self.code, self.instruction))


class Pending(Operation):
    """Operation of an :class:`MPIEngine` that has been started; ``header`` are the two integers of Note [Headers]."""

    engine: MPIEngine
    position: Position
    value: Any

    def __init__(self, engine: MPIEngine, position: Position, steps: Steps, header: Array | None = None) -> None:
        super().__init__()
        self.engine, self.position, self._steps, self._header_values = engine, position, steps, header
        self.header: MPI.Request | None = None
        self.number = 0
        self._posted = False
        self._requests: list[MPI.Request] = []
        self._statuses: list[MPI.Status] | None = None
        self._lock = threading.RLock()  # an operation may fail while this thread makes progress with it
        self._done = self._asked = self._last = False
        self._futures: list[tuple[Future[Any], Any]] = []
        self._started = time.monotonic()
        self._left: float | None = None
        self._limit = engine.timeout.total_seconds()

    def post_header(self) -> None:
        """Post the reduction of the fingerprint, unless an interrupted call has done it."""
        if self.header is None:
            self.header = self.engine.heads.Iallreduce(MPI.IN_PLACE, self._header_values, MPI.MAX)

    def ready(self) -> bool:
        """Whether the header is complete. If the ranks have called different operations, the steps become others."""
        if self.header is not None:
            if not self.header.Test():
                return False
            first, second = self._header_values  # type: ignore[misc]
            if first != ~second:
                self._steps = self.engine._explain(self.position, self.number)
            self.header = None  # last, because an interrupt may come before
        return True

    def begin(self) -> None:
        """Do the first step."""
        self._next()
        self._posted = True

    def _next(self) -> bool:
        """Do the next step; return False if it is to be called again later."""
        self._requests, self._statuses = [], None
        try:
            waiting = next(self._steps)
        except StopIteration as end:
            self.value, self._last = end.value, True
            return True
        except KeyboardInterrupt as error:  # the step cannot go on; the traceback has the buffers of posted requests
            _keep(error, error.__traceback__)
            self._set_error(self.engine._fail(f"{self.position.describe()} was interrupted"))
            self._done = True
            self._complete()
            raise
        if isinstance(waiting, tuple):
            self._requests, self._statuses = waiting
        elif waiting is not None:
            self._requests = waiting
        return waiting is not None

    def done(self) -> bool:
        return self._done or self.poll()

    def poll(self) -> bool:
        """Make progress; return whether the operation is complete."""
        if self._done or not self._lock.acquire(False):
            return self._done
        try:
            if self._done:
                return True  # type: ignore[unreachable]
            try:
                if not self._advance():
                    return False
            except Exception as error:  # ``wait`` raises it
                self._set_error(error)
            self._done = True
        finally:
            self._lock.release()
        self._complete()
        return True

    def _advance(self) -> bool:
        """Make progress; return whether the last step is complete."""
        if not self._posted:
            self.engine.post_ready()
            if not self._posted:
                return False
        while not self._last:
            if not self._test() or not self._next():
                return False
        return True

    def _test(self) -> bool:
        """Whether the requests are complete."""
        requests, statuses = self._requests, self._statuses
        if statuses is None:
            if len(requests) == 1:
                return requests[0].Test()
            statuses = self._statuses = [MPI.Status() for _ in requests]
        try:
            return MPI.Request.Testall(requests, statuses)
        except MPI.Exception as error:
            codes = [each.Get_error() for each in statuses]
            known = [each for each in codes if each not in (MPI.SUCCESS, MPI.ERR_PENDING)]
            raise (MPI.Exception(known[0]) if known else error) from None

    def _set_error(self, error: BaseException) -> None:
        if isinstance(error, MPI.Exception):
            error = self.engine._fail(f"{self.position.describe()} failed: {_words(error)}")
        self.error = error
        if self._requests or self.header is not None:
            _keep(error, self._steps, self._requests, self.header, self._header_values)

    def _complete(self) -> None:
        for future, value in self._futures:
            _settle(future, value, self.error)
        self._futures.clear()
        self._steps = None  # type: ignore[assignment]
        self.engine._count(-1)

    def fail(self, error: BaseException) -> None:
        """Complete the operation with ``error``; its buffers are kept, because MPI may still use them."""
        with self._lock:
            if self._done:
                return
            self._set_error(error)
            self._done = True
        self._complete()

    def check(self, now: float) -> None:
        """Fail if a rank is gone or the time is up; report where the other ranks are after some seconds."""
        engine, watch = self.engine, self.engine.watch
        waited = now - self._started
        if watch.failure is not None:
            if not self.poll():  # its data may have come before the other rank ended
                self.fail(engine._fail(f"{self.position.describe()} failed: {watch.failure}"))
        elif engine._broken is not None and now - engine._broken_at > GRACE:
            self.fail(DistBackendError(f"An earlier operation of this process group has failed: {engine._broken}"))
        elif waited > self._limit:
            said = engine._answers()
            self.fail(
                engine._fail(
                    f"Timed out waiting {round(self._limit * 1000)}ms for {self.position.describe()} to complete"
                    + (f": {said}" if said else "")
                )
            )
        elif watch.left is not None:
            self._left = self._left or now
            if now - self._left > GRACE:
                self.fail(engine._fail(f"{self.position.describe()} failed: {watch.left}"))
        elif waited > min(PATIENCE, self._limit / 2):
            if not self._asked:
                self._asked = True
                watch.answers = None
                watch.ask()
            elif watch.answers is not None and waited > PATIENCE and engine._reported < self._started:
                engine._reported = now
                places = set(watch.answers.values())
                if places == {self.position.describe()} and len(watch.answers) >= engine.size:
                    return  # all are here: it only takes long
                text = f"retrograd: {self.position.describe()} has waited for {round(waited)} s: {engine._answers()}"
                print(text, file=sys.stderr, flush=True)

    def wait(self, timeout: timedelta | None = None) -> Any:
        if not self._done and not self.poll():
            self._ask(None if timeout is None else timeout.total_seconds())
        if self.error is not None:
            raise self.error
        return self.value

    def _ask(self, limit: float | None) -> None:
        """Poll until the operation is complete; raise RuntimeError after ``limit`` seconds."""
        watch = self.engine.watch
        begun = time.perf_counter()
        pause = FIRST_PAUSE
        watch.position, before = self.position, watch.position
        try:
            while not self.poll():
                waited = time.perf_counter() - begun
                if waited < SPIN:
                    continue
                self.check(time.monotonic())
                if limit is not None and waited > limit:
                    raise RuntimeError(
                        f"Operation timed out! {self.position.describe()} is not complete after {round(limit * 1000)} ms"
                    )
                time.sleep(pause)
                pause = _next_pause(pause, waited)
        except BaseException:
            self.detach()
            raise
        finally:
            watch.position = before

    def detach(self) -> None:
        if not self._done:
            PROGRESS.add(self)

    def when_done(self, future: Future[Any], value: Any) -> None:
        with self._lock:
            if not self._done:
                self._futures.append((future, value))
                return
        _settle(future, value, self.error)


#: Buffers and requests of operations that have failed, which MPI may still use, and the errors.
_KEPT: list[Any] = []
_KEPT_WHY: list[str] = []


def _keep(why: BaseException | str, *used: Any) -> None:
    """Keep ``used``, buffers and requests of an operation that has failed, until the end of the process."""
    _KEPT.append(used)
    _KEPT_WHY.append(str(why))


def _settle(future: Future[Any], value: Any, error: BaseException | None) -> None:
    """Complete ``future``. Errors of its callbacks are printed: they belong neither to the operation nor to this thread."""
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # also SystemExit, by which a callback must not end the thread that makes progress
        traceback.print_exc()


def _next_pause(pause: float, waited: float) -> float:
    """Return the pause after ``pause`` of a thread that has waited for ``waited`` seconds."""
    return min(pause * 1.5, max(USUAL_PAUSE, min(SHARE * waited, LONGEST_PAUSE)))


def unfinished() -> str | None:
    """Return why MPI must not be finalised: an operation has failed whose requests are not complete; else None."""
    return next((each for each in _KEPT_WHY), None)


def _words(error: MPI.Exception) -> str:
    """Return what is wrong: for most errors, the last line of MPI's description."""
    if error.Get_error_class() == MPI.ERR_TRUNCATE:
        return "another rank has sent more bytes than the tensor has"
    lines = [each.strip() for each in error.Get_error_string().splitlines() if each.strip()]
    return lines[-1] if lines else "error of MPI"


class _Progress:
    """Thread that polls the operations for which no other thread waits; it is started with the first of them."""

    def __init__(self) -> None:
        self._new: list[Pending] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop = False

    def add(self, operation: Pending) -> None:
        """Let the thread complete ``operation``."""
        with self._changed:
            self._new.append(operation)
            if self._thread is None:
                self._stop = False
                self._thread = threading.Thread(target=self._run, name="retrograd-distributed", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End the thread; operations that are not complete stay so."""
        with self._changed:
            thread, self._thread, self._stop = self._thread, None, True
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5)

    def _run(self) -> None:
        pending: list[Pending] = []
        pause, idle = FIRST_PAUSE, time.monotonic()
        while not self._stop:
            if self._new or not pending:
                with self._changed:
                    while not (self._new or self._stop):
                        self._changed.wait()
                    pending += self._new
                    self._new = []
                pause, idle = FIRST_PAUSE, time.monotonic()
            left = [each for each in pending if not each.poll()]
            if len(left) == len(pending):
                now = time.monotonic()
                for each in left:
                    each.check(now)
                time.sleep(pause)
                pause = _next_pause(pause, time.monotonic() - idle)
            else:
                pause, idle = FIRST_PAUSE, time.monotonic()
            pending = left


PROGRESS = _Progress()
atexit.register(PROGRESS.stop)  # before MPI is finalised: functions run in the reverse order of their registration


# -- Memory of tensors -------------------------------------------------------------------------------------------------


def _host(tensor: Tensor) -> Array:
    """Return the elements of ``tensor`` as a NumPy array: its own, or a copy of that of a GPU."""
    array: Any = tensor._array
    return array if isinstance(array, numpy.ndarray) else array.get()


def _in_place(tensor: Tensor) -> bool:
    """Whether MPI can write into the memory of ``tensor``."""
    array: Any = tensor._array
    return isinstance(array, numpy.ndarray) and array.flags.c_contiguous and array.flags.writeable


def _write(tensor: Tensor, flat: Array) -> None:
    """Write ``flat``, the elements in one dimension, into ``tensor``."""
    array: Any = tensor._array
    values = flat.reshape(array.shape)
    if isinstance(array, numpy.ndarray):
        array[...] = values
    else:
        array.set(values)


def _flat(tensor: Tensor) -> Array:
    """Return the elements of ``tensor`` in one dimension: a view of its memory if it is contiguous, else a copy."""
    return _host(tensor).ravel()


def _bytes(flat: Array) -> list[Any]:
    """Return the buffer of ``flat``, a contiguous array in one dimension, for MPI."""
    return [flat.view(numpy.uint8), MPI.BYTE]


class _Result:
    """Memory in which MPI stores the elements of the tensor ``output``: its own if possible."""

    def __init__(self, output: Tensor) -> None:
        self.output = output
        self.direct = _in_place(output)
        array: Any = output._array
        self.flat = array.reshape(-1) if self.direct else numpy.empty(array.size, numpy.dtype(array.dtype))
        self.buffer = _bytes(self.flat)

    def finish(self) -> None:
        """Write the elements into the tensor."""
        if not self.direct:
            _write(self.output, self.flat)


class _Parts:
    """Memory for the elements of several tensors of one size, one after the other.

    This is the memory of the tensors themselves, if they are successive parts of one memory, and else a new array. With
    ``filled=True`` the new array has the elements of the tensors.
    """

    def __init__(self, tensors: Sequence[Tensor], filled: bool) -> None:
        self.tensors = tensors
        arrays: list[Any] = [each._array for each in tensors]
        size = arrays[0].nbytes
        self.direct = isinstance(arrays[0], numpy.ndarray)
        if self.direct:
            start = address(arrays[0])
            self.direct = all(
                each.flags.c_contiguous and each.flags.writeable and address(each) == start + index * size
                for index, each in enumerate(arrays)
            )
        if self.direct:
            memory: Any = MPI.buffer.fromaddress(start, size * len(arrays)) if size else numpy.empty(0, numpy.uint8)
        elif filled:
            memory = numpy.concatenate([_flat(each) for each in tensors]).view(numpy.uint8)
        else:
            memory = numpy.empty(size * len(arrays), numpy.uint8)
        self.memory = memory
        self.buffer = [memory, MPI.BYTE]

    def overlaps(self, flat: Array) -> bool:
        """Whether the array ``flat`` may be a part of this memory."""
        if not self.direct or not flat.size:
            return False
        first: Any = self.tensors[0]._array
        start, other = address(first), address(flat)
        return bool(start < other + flat.nbytes and other < start + first.nbytes * len(self.tensors))

    def finish(self) -> None:
        """Write the elements into the tensors."""
        if not self.direct:
            size = len(self.memory) // len(self.tensors)
            for index, each in enumerate(self.tensors):
                part = self.memory[index * size : (index + 1) * size]
                _write(each, part.view(numpy.dtype(each._array.dtype)))


class _Reduction:
    """Memory in which the elements of ``tensor`` are reduced, and the operation.

    float16 and bfloat16 are reduced in float32, complex numbers as pairs, and bool as 0 and 1. With ``copied``, ranks
    that reduce the elements themselves, in the order of the ranks, do it in memory other than that of ``tensor``.
    """

    def __init__(self, size: int, op: ReduceOp.RedOpType, tensor: Tensor, copied: bool = False) -> None:
        kind = str(tensor.dtype).rpartition(".")[2]
        if kind not in _REDUCED:
            raise RuntimeError("Invalid scalar type")
        check_reduction(tensor, op)
        dtype, self.datatype = _REDUCED[kind]
        self.size, self.op, self.dtype = size, op, numpy.dtype(tensor._array.dtype)
        kept = _OF_BOOL.get(op, op) if kind == "bool" else op
        self.mpi_op, self.ufunc = _OPS[kept], _UFUNCS[kept]
        self.ordered = size > 2 and are_deterministic_algorithms_enabled()  # sums of two ranks are alike in any order
        if op in _OF_FLOATS and tensor.is_floating_point():
            self.ufunc, self.ordered = _OF_FLOATS[op], True  # type: ignore[assignment]
        self.same = self.dtype.kind in "cb" or self.dtype == dtype
        flat = _flat(tensor)
        self.direct = self.same and _in_place(tensor) and not (copied and self.ordered)
        if not self.same:
            flat = flat.astype(dtype)
        elif not self.direct:
            flat = flat.copy()
        self.work = flat.view(dtype) if self.dtype.kind in "cb" else flat
        self.buffer = [self.work, self.datatype]

    def finish(self, output: Tensor, work: Array = None) -> None:
        """Write the result ``work``, by default that of :attr:`work`, into ``output``."""
        values = self.work if work is None else work
        if self.op == ReduceOp.AVG:
            values /= self.size
        if not self.direct or work is not None:
            with numpy.errstate(all="ignore"):
                _write(output, values.view(self.dtype) if self.same else values.astype(self.dtype))


def _modified(*tensors: Tensor) -> None:
    """Raise PyTorch's error if a result of copying must not be modified, and increment the versions."""
    for each in tensors:
        check_in_place(each, each.requires_grad)
    for each in tensors:
        bump_version(each)


def _reduced(tensor: Tensor) -> None:
    """Increment the version of a result; unlike results of copying, it may be a leaf, as in PyTorch."""
    check_in_place(tensor, False, True)
    bump_version(tensor)


# -- The engine --------------------------------------------------------------------------------------------------------


class MPIEngine(Engine):
    """Engine of a group of several processes.

    Args:
        comm, heads: Communicators of MPI for data and for headers, which only this engine uses.
        watch: What is known of other processes; see ``watch.py``.
        timeout: Time after which an operation that is not complete fails.
        ranks: Global ranks of the group.
    """

    ranks: list[int]
    timeout: timedelta
    watch: Any
    heads: Any

    def __init__(
        self, comm: MPI.Intracomm, heads: MPI.Intracomm, watch: Any, timeout: timedelta, ranks: Sequence[int]
    ) -> None:  # fmt: skip
        super().__init__(comm.Get_rank(), comm.Get_size())
        self.comm, self.heads, self.watch, self.timeout, self.ranks = comm, heads, watch, timeout, list(ranks)
        self._others = [(self.rank + each) % self.size for each in range(1, self.size)]
        self._posting, self._counting = threading.RLock(), threading.Lock()
        self._waiting: deque[Pending] = deque()
        self._number = self._beginning = self._open = self._barriers = 0
        self._broken: str | None = None
        self._broken_at = 0.0
        self._closed = False
        self._reported = float("-inf")
        largest: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)  # Open MPI does not give it for other communicators
        self._largest_tag = largest // 2

    # -- Starting an operation

    def _collective(self, name: str, detail: str, steps: Steps, timeout: timedelta | None = None) -> Pending:
        """Start a collective operation; ``name`` and ``detail`` must be the same in all ranks."""
        with self._posting:
            self._check()
            self._number += 1
            fingerprint = (self._number & 0x3FFFFFFF) << 32 | crc32(f"{name}{detail}".encode())
            header = numpy.array((fingerprint, ~fingerprint), numpy.int64)
            pending = Pending(self, Position(name, detail), steps, header)
            pending.number = self._number
            now = len(self._waiting) < _HEADERS
            try:
                self._start(pending, pending.post_header if now else _later, timeout)
            except BaseException:
                self._number -= pending.header is None  # an interrupt before anything was posted
                raise
            self._waiting.append(pending)
        return pending

    def _direct(self, name: str, detail: str, steps: Steps, timeout: timedelta | None = None) -> Pending:
        """Start an operation between two ranks."""
        with self._posting:
            self._check()
            pending = Pending(self, Position(name, detail), steps)
            self._start(pending, pending.begin, timeout)
        return pending

    def _start(self, pending: Pending, post: Callable[[], None], timeout: timedelta | None) -> None:
        if timeout is not None:
            pending._limit = timeout.total_seconds()
        try:
            post()
        except MPI.Exception as error:
            raise self._fail(f"{pending.position.describe()} failed: {_words(error)}") from None
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt; the traceback has the buffers of posted requests
                _keep(error, pending, error.__traceback__)
            raise
        self._count(1)

    def post_ready(self) -> None:
        """Do the first steps of the operations whose headers are complete, in the order of the program."""
        if not self._waiting or not self._posting.acquire(False):
            return
        try:
            while self._waiting and self._waiting[0].ready():
                if len(self._waiting) > _HEADERS:
                    self._waiting[_HEADERS].post_header()
                first = self._waiting.popleft()
                self._beginning += 1
                try:
                    first.begin()
                except Exception as error:
                    words = _words(error) if isinstance(error, MPI.Exception) else str(error)
                    first.fail(self._fail(f"{first.position.describe()} failed: {words}"))
        finally:
            self._posting.release()

    def _check(self) -> None:
        """Raise the error of the group if it cannot be used any more."""
        if self.watch.failure is not None:
            raise DistBackendError(str(self.watch.failure))
        if self._broken is not None:
            raise DistBackendError(f"An earlier operation of this process group has failed: {self._broken}")
        if self._closed:
            raise DistBackendError("This process group has been destroyed.")

    def _fail(self, text: str) -> DistBackendError:
        """Return an error, which makes the group unusable."""
        if self._broken is None:
            self._broken_at = time.monotonic()
            self._broken = text
        return DistBackendError(text)

    def _count(self, change: int) -> None:
        """Count the operations that are not complete; free the communicator after the last one of a closed group."""
        with self._counting:
            self._open += change
            free = self._closed and not self._open and self.comm != MPI.COMM_NULL and self._broken is None
            if free:
                comms = self.comm, self.heads
                self.comm = self.heads = MPI.COMM_NULL  # type: ignore[assignment]
        if free and not MPI.Is_finalized():
            for comm in comms:
                comm.Free()

    def _tag(self) -> int:
        """Return a tag for the messages of the operation whose first step runs."""
        return _FIRST_TAG + 2 * (self._beginning % _TAGS)

    def _answers(self) -> str:
        """Return what is known about where the ranks are; ranks at one place are named together."""
        answers: dict[int, str] = self.watch.answers or {}
        places: dict[str, list[int]] = {}
        for rank in self.ranks:
            if rank in answers:
                places.setdefault("in " + answers[rank], []).append(rank)
        return _who(places)

    def _explain(self, position: Position, number: int) -> Steps:
        """Exchange descriptions of the operations that the ranks have called, and raise the error."""
        mine = f"{number} {position.describe()}".encode()[:_DESCRIPTION].ljust(_DESCRIPTION)
        rows = numpy.zeros((self.size, _DESCRIPTION), numpy.uint8)
        rows[self.rank] = numpy.frombuffer(mine, numpy.uint8)
        if self.rank == 0:
            yield [self.comm.Irecv([rows[each], MPI.BYTE], each, _EXPLAIN) for each in range(1, self.size)]
            yield [self.comm.Isend([rows, MPI.BYTE], each, _EXPLAIN) for each in range(1, self.size)]
        else:
            yield [self.comm.Isend([rows[self.rank].copy(), MPI.BYTE], 0, _EXPLAIN)]
            yield [self.comm.Irecv([rows, MPI.BYTE], 0, _EXPLAIN)]
        said = [row.tobytes().decode(errors="replace").strip().split(" ", 1) for row in rows]
        alike = len({call for _, call in said}) == 1
        calls: dict[str, list[int]] = {}
        for rank, (count, call) in zip(self.ranks, said, strict=True):
            calls.setdefault(f"in operation {count} of the group, {call}" if alike else f"in {call}", []).append(rank)
        raise self._fail(f"Detected mismatch between collectives on ranks: {_who(calls)}.")

    # -- Reductions

    def all_reduce(self, tensor: Tensor, op: ReduceOp.RedOpType) -> Operation:
        reduction = _Reduction(self.size, op, tensor)
        _reduced(tensor)

        def steps() -> Steps:
            if reduction.ordered:
                yield from self._reduce_in_order(reduction, range(self.size))
            else:
                yield [self.comm.Iallreduce(MPI.IN_PLACE, reduction.buffer, reduction.mpi_op)]
            reduction.finish(tensor)

        return self._collective("all_reduce", f"({_shown(tensor)}, {op.name})", steps())

    def _reduce_in_order(self, reduction: _Reduction, receivers: Iterable[int]) -> Steps:
        """Reduce in the order of the ranks: each rank reduces a part of the elements, and sends it to ``receivers``."""
        tag, work, comm, others = self._tag(), reduction.work, self.comm, self._others
        bounds = [len(work) * each // self.size for each in range(self.size + 1)]
        parts = [work[start:end] for start, end in pairwise(bounds)]
        mine = parts[self.rank]
        received = numpy.empty((self.size, len(mine)), work.dtype)
        received[self.rank] = mine
        yield [
            *(comm.Irecv(_bytes(received[each]), each, tag) for each in others),
            *(comm.Isend(_bytes(parts[each]), each, tag) for each in others),
        ]
        mine[...] = received[0]
        for each in received[1:]:
            reduction.ufunc(mine, each, out=mine)
        yield [
            *(comm.Irecv(_bytes(parts[each]), each, tag) for each in others if self.rank in receivers),
            *(comm.Isend(_bytes(mine), each, tag) for each in others if each in receivers),
        ]

    def all_reduce_sparse(self, tensor: Tensor) -> Operation:
        from ..sparse.creation import sparse_coo_tensor
        from ..sparse.tensor import replace

        with no_grad():
            mine = tensor.coalesce()
            indices, values = _host(mine.indices()), _host(mine.values())
        shape, dims, inner = tuple(tensor.shape), len(indices), values.shape[1:]

        def steps() -> Steps:
            tag, comm = self._tag(), self.comm
            count, counts = numpy.array([len(values)], numpy.int64), numpy.zeros(self.size, numpy.int64)
            yield [comm.Iallgather(count, counts)]
            found = [
                (numpy.empty((dims, each), numpy.int64), numpy.empty((each, *inner), values.dtype)) for each in counts
            ]
            found[self.rank] = indices, values
            yield [
                *(comm.Irecv(_bytes(part.reshape(-1)), each, tag) for each in self._others for part in found[each]),
                *(comm.Isend(_bytes(part.ravel()), each, tag) for each in self._others for part in found[self.rank]),
            ]
            with no_grad():
                places = as_tensor(numpy.concatenate([each for each, _ in found], 1))
                numbers = as_tensor(numpy.concatenate([each for _, each in found]))
                replace(tensor, sparse_coo_tensor(places, numbers, shape).coalesce(), "all_reduce")  # type: ignore[arg-type]

        kind = str(tensor.dtype).rpartition(".")[2]
        return self._collective("all_reduce", f"(sparse {kind}{list(shape)}, SUM)", steps())

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> Operation:
        is_root = self.rank == root
        reduction = _Reduction(self.size, op, tensor, copied=not is_root)
        if is_root:
            _reduced(tensor)

        def steps() -> Steps:
            if reduction.ordered:
                yield from self._reduce_in_order(reduction, [root])
            elif is_root:
                yield [self.comm.Ireduce(MPI.IN_PLACE, reduction.buffer, reduction.mpi_op, root)]
            else:
                yield [self.comm.Ireduce(reduction.buffer, None, reduction.mpi_op, root)]
            if is_root:
                reduction.finish(tensor)

        detail = f"({_shown(tensor)}, {op.name}, dst={self.ranks[root]})"
        return self._collective("reduce", detail, steps())

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp.RedOpType) -> Operation:
        parts = [_Reduction(self.size, op, each) for each in inputs]
        _modified(output)

        def steps() -> Steps:
            # Messages and sums in the order of the ranks; MPI needs the parts in one memory, and took 1.5 times as long.
            tag, mine = self._tag(), parts[self.rank]
            received = [mine.work if each == self.rank else numpy.empty_like(mine.work) for each in range(self.size)]
            yield [
                *(self.comm.Irecv(_bytes(received[each]), each, tag) for each in self._others),
                *(self.comm.Isend(_bytes(parts[each].work), each, tag) for each in self._others),
            ]
            total = received[1 if self.rank == 0 else 0]  # not the memory of the input
            mine.ufunc(received[0], received[1], out=total)
            for each in received[2:]:
                mine.ufunc(total, each, out=total)
            mine.finish(output, total)

        return self._collective("reduce_scatter", f"({_shown(output)}, {op.name})", steps())

    # -- Copies

    def broadcast(self, tensor: Tensor, root: int) -> Operation:
        is_root = self.rank == root
        result = None if is_root else _Result(tensor)
        buffer = _bytes(_flat(tensor)) if result is None else result.buffer
        _reduced(tensor)

        def steps() -> Steps:
            yield [self.comm.Ibcast(buffer, root)]
            if result is not None:
                result.finish()

        detail = f"({_shown(tensor)}, src={self.ranks[root]})"
        return self._collective("broadcast", detail, steps())

    def all_gather(self, outputs: Sequence[Tensor], tensor: Tensor) -> Operation:
        _modified(*outputs)
        sent, received = _flat(tensor), _Parts(outputs, False)
        if received.overlaps(sent):
            sent = sent.copy()

        def steps() -> Steps:
            yield [self.comm.Iallgather(_bytes(sent), received.buffer)]
            received.finish()

        return self._collective("all_gather", f"({_shown(tensor)})", steps())

    def gather(self, outputs: Sequence[Tensor] | None, tensor: Tensor, root: int) -> Operation:
        if outputs:
            _modified(*outputs)
        sent, received = _flat(tensor), _Parts(outputs, False) if outputs else None
        if received is not None and received.overlaps(sent):
            sent = sent.copy()

        def steps() -> Steps:
            yield [self.comm.Igather(_bytes(sent), received and received.buffer, root)]
            if received is not None:
                received.finish()

        detail = f"({_shown(tensor)}, dst={self.ranks[root]})"
        return self._collective("gather", detail, steps())

    def scatter(self, output: Tensor, inputs: Sequence[Tensor] | None, root: int) -> Operation:
        _reduced(output)
        result, sent = _Result(output), _Parts(inputs, True) if inputs else None
        target = result.buffer
        if sent is not None and sent.overlaps(result.flat):
            result.direct, result.flat = False, result.flat.copy()
            target = _bytes(result.flat)

        def steps() -> Steps:
            yield [self.comm.Iscatter(sent and sent.buffer, target, root)]
            result.finish()

        detail = f"({_shown(output)}, src={self.ranks[root]})"
        return self._collective("scatter", detail, steps())

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Operation:
        _modified(*outputs)
        sent, results = [_flat(each) for each in inputs], [_Result(each) for each in outputs]
        for index, each in enumerate(sent):
            if any(numpy.may_share_memory(each, result.flat) for result in results):
                sent[index] = each.copy()

        def steps() -> Steps:
            tag, comm, others = self._tag(), self.comm, self._others
            results[self.rank].flat[...] = sent[self.rank]
            requests = [comm.Irecv(results[each].buffer, each, tag) for each in reversed(others)]
            requests += [comm.Isend(_bytes(sent[each]), each, tag) for each in others]
            statuses = [MPI.Status() for _ in requests]
            yield requests, statuses
            for each, status in zip(reversed(others), statuses, strict=False):
                self._check_size("all_to_all", status, results[each].flat.nbytes)
            for result in results:
                result.finish()

        kind = str(inputs[0].dtype).rpartition(".")[2] if inputs else ""
        return self._collective("all_to_all", f"({kind})", steps())

    def _check_size(self, name: str, status: MPI.Status, expected: int) -> None:
        """Raise an error if a message has fewer bytes than the tensor; of a longer one, MPI raises the error."""
        count = status.Get_count(MPI.BYTE)
        if count != expected:
            raise DistBackendError(
                f"{name}: rank {self.ranks[status.Get_source()]} has sent {count} bytes, but the tensor has {expected}"
            )

    # -- Between two ranks

    def _user_tag(self, tag: int) -> int:
        return 2 * (tag % self._largest_tag)

    def send(self, tensor: Tensor, destination: int, tag: int) -> Operation:
        sent = _bytes(_flat(tensor))

        def steps() -> Steps:
            yield [self.comm.Isend(sent, destination, self._user_tag(tag))]

        return self._direct("send", f"({_shown(tensor)}, dst={self.ranks[destination]}, tag={tag})", steps())

    def receive(self, tensor: Tensor, source: int | None, tag: int) -> Operation:
        _reduced(tensor)
        result = _Result(tensor)

        def steps() -> Steps:
            status = MPI.Status()
            origin = MPI.ANY_SOURCE if source is None else source
            yield [self.comm.Irecv(result.buffer, origin, self._user_tag(tag))], [status]
            self._check_size("recv", status, result.flat.nbytes)
            result.finish()
            return status.Get_source()

        origin = "any" if source is None else self.ranks[source]
        return self._direct("recv", f"({_shown(tensor)}, src={origin}, tag={tag})", steps())

    # -- Barriers

    def barrier(self, timeout: timedelta | None = None) -> Operation:
        return self._collective("barrier", "()", _nothing(), timeout=timeout)  # the header is a barrier

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Operation:
        limit = (timeout or self.timeout).total_seconds()
        return self._direct("monitored_barrier", "()", self._monitored(limit, wait_all_ranks), timedelta(days=1))

    def _monitored(self, limit: float, wait_all_ranks: bool) -> Steps:
        """Let rank 0 wait for a message of each rank, and answer them with an error text, which is empty if all came."""
        comm, tag, ready = self.comm, _FIRST_TAG + 2 * (_TAGS + self._barriers % _TAGS), numpy.empty(0, numpy.uint8)
        self._barriers += 1
        answer = numpy.zeros(_DESCRIPTION, numpy.uint8)
        until = time.monotonic() + limit
        if self.rank:
            yield [comm.Isend([ready, MPI.BYTE], 0, tag)]
            request = comm.Irecv([answer, MPI.BYTE], 0, tag)
            while not request.Test():
                if time.monotonic() > until + 0.5:  # rank 0 is not there; its own answer may come a little later
                    _keep("monitored_barrier", request, answer)
                    raise RuntimeError(f"{self._reached(0)}\nOperation timed out after {round(limit * 1000)} ms")
                yield None
            text = answer.tobytes().rstrip(b"\0").decode(errors="replace")
            if text:
                raise RuntimeError(f"{self._reached(0)}\n Original exception: \n{text}")
            return
        waiting = {each: comm.Irecv([ready, MPI.BYTE], each, tag) for each in range(1, self.size)}
        while waiting and time.monotonic() < until:
            waiting = {each: request for each, request in waiting.items() if not request.Test()}
            if waiting:
                yield None
        text = ""
        if waiting:
            missing = [self.ranks[each] for each in waiting]
            shown = f"Ranks {', '.join(map(str, missing))}" if wait_all_ranks else f"Rank {missing[0]}"
            text = f"[Rank {self.ranks[0]}]: {shown} failed to pass monitoredBarrier in {round(limit * 1000)} ms"
        answer[: len(text)] = numpy.frombuffer(text.encode(), numpy.uint8)
        yield [comm.Isend([answer, MPI.BYTE], each, tag) for each in range(1, self.size) if each not in waiting]
        if text:
            raise RuntimeError(text)

    def _reached(self, root: int) -> str:
        return (
            f"Rank {self.ranks[self.rank]} successfully reached monitoredBarrier, but received "
            f"errors while waiting for send/recv from rank {self.ranks[root]}. Please check rank {self.ranks[root]} logs for "
            "faulty rank."
        )

    # -- Objects

    def all_gather_objects(self, value: Any) -> Operation:
        data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)

        def steps() -> Steps:
            size, sizes = numpy.array([len(data)], numpy.int64), numpy.zeros(self.size, numpy.int64)
            yield [self.comm.Iallgather(size, sizes)]
            received = numpy.empty(int(sizes.sum()), numpy.uint8)
            yield [self.comm.Iallgatherv([data, MPI.BYTE], [received, (sizes.tolist(), None), MPI.BYTE])]
            return _objects(received, sizes)

        return self._collective("all_gather_object", "()", steps())

    def gather_objects(self, value: Any, root: int) -> Operation:
        data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)

        def steps() -> Steps:
            size, sizes = numpy.array([len(data)], numpy.int64), numpy.zeros(self.size, numpy.int64)
            yield [self.comm.Igather(size, sizes if self.rank == root else None, root)]
            if self.rank != root:
                yield [self.comm.Igatherv([data, MPI.BYTE], None, root)]
                return None
            received = numpy.empty(int(sizes.sum()), numpy.uint8)
            yield [self.comm.Igatherv([data, MPI.BYTE], [received, (sizes.tolist(), None), MPI.BYTE], root)]
            return _objects(received, sizes)

        return self._collective("gather_object", f"(dst={self.ranks[root]})", steps())

    def broadcast_objects(self, values: Any, root: int) -> Operation:
        is_root = self.rank == root
        data = numpy.frombuffer(pickle.dumps(values) if is_root else b"", numpy.uint8)

        def steps() -> Steps:
            size = numpy.array([len(data)], numpy.int64)
            yield [self.comm.Ibcast(size, root)]
            buffer = data if is_root else numpy.empty(int(size[0]), numpy.uint8)
            yield [self.comm.Ibcast([buffer, MPI.BYTE], root)]
            return values if is_root else pickle.loads(buffer.data)

        return self._collective("broadcast_object_list", f"(src={self.ranks[root]})", steps())

    def scatter_objects(self, values: list[Any] | None, root: int) -> Operation:
        is_root = self.rank == root
        parts = [pickle.dumps(each) for each in values or ()] if is_root else []

        def steps() -> Steps:
            sizes, size = numpy.array([len(each) for each in parts], numpy.int64), numpy.zeros(1, numpy.int64)
            yield [self.comm.Iscatter(sizes if is_root else None, size, root)]
            received = numpy.empty(int(size[0]), numpy.uint8)
            data = numpy.frombuffer(b"".join(parts), numpy.uint8)
            sent = [data, (sizes.tolist(), None), MPI.BYTE] if is_root else None
            yield [self.comm.Iscatterv(sent, [received, MPI.BYTE], root)]
            return pickle.loads(received.data)

        return self._collective("scatter_object_list", f"(src={self.ranks[root]})", steps())

    # -- Groups

    def subgroup(self, ranks: list[int], timeout: timedelta) -> Engine | None:
        if self.rank not in ranks:
            return None
        detail = f"({[self.ranks[each] for each in ranks]})"
        self._direct("new_group", detail, self._meet(ranks)).wait()
        everyone = self.comm.Get_group()
        chosen = everyone.Incl(ranks)
        try:
            comm = self.comm.Create_group(chosen)  # blocks, but all of them are here
            heads = comm.Dup()
        except MPI.Exception as error:
            raise DistBackendError(
                f"new_group: MPI cannot create another group ({_words(error)}). A library of MPI has a limit, about 1,000 in "
                "MPICH. Remedy: create groups once, and call destroy_process_group(group) for those no longer needed"
            ) from None
        finally:
            everyone.Free()
            chosen.Free()
        return MPIEngine(comm, heads, self.watch, timeout, [self.ranks[each] for each in ranks])

    def _meet(self, ranks: list[int]) -> Steps:
        """Wait until all of ``ranks`` are here: messages over distances of 1, 2, 4 … ranks."""
        here, count, nothing = ranks.index(self.rank), len(ranks), numpy.empty(0, numpy.uint8)
        distance = 1
        while distance < count:
            yield [
                self.comm.Irecv([nothing, MPI.BYTE], ranks[(here - distance) % count], _MEET),
                self.comm.Isend([nothing, MPI.BYTE], ranks[(here + distance) % count], _MEET),
            ]
            distance *= 2

    def close(self) -> None:
        self._closed = True
        self._count(0)


def _later() -> None:
    """Post nothing: :meth:`MPIEngine.post_ready` does it."""


def _nothing() -> Steps:
    """Steps of an operation that only has a header."""
    yield from ()


def _shown(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"


def _who(places: dict[str, list[int]]) -> str:
    """Return a text that says which ranks are at which places; a few that differ from the others come first."""
    return ", ".join(
        f"ranks {', '.join(map(str, ranks))} are {place}" if len(ranks) > 1 else f"rank {ranks[0]} is {place}"
        for place, ranks in sorted(places.items(), key=lambda each: len(each[1]))
    )


def _objects(received: Array, sizes: Array) -> list[Any]:
    ends = numpy.cumsum(sizes).tolist()
    return [pickle.loads(received[end - size : end].data) for end, size in zip(ends, sizes.tolist(), strict=True)]


def engine_of(comm: MPI.Intracomm, watch: Any, timeout: timedelta) -> MPIEngine:
    """Return the engine of the default group, whose ranks are those of ``comm``; all of them call the function."""
    copies, requests = zip(*(comm.Idup() for _ in range(2)), strict=True)
    pause = FIRST_PAUSE
    until = time.monotonic() + timeout.total_seconds()
    while not MPI.Request.Testall(list(requests)):
        if watch.failure is not None:
            raise DistBackendError(str(watch.failure))
        if time.monotonic() > until:
            raise DistBackendError(f"Timed out waiting {round(timeout.total_seconds() * 1000)}ms for the other ranks")
        time.sleep(pause)
        pause = min(pause * 1.5, USUAL_PAUSE)
    return MPIEngine(copies[0], copies[1], watch, timeout, range(comm.Get_size()))
