"""``MPIEngine``: the ranks of a group exchange data through MPI (mpi4py).

Note [Posting and progress]. An operation is a generator that posts nonblocking MPI requests and yields them, as a list,
each time it has to wait. Its first requests are posted in the calling thread, in the order of the program. What follows
(a second step, writing results into tensors) runs in the thread that finds the requests complete. MPI makes progress only
inside its calls. Therefore a thread that waits asks again and again: at first without a pause, then with pauses that
grow to 0.2 ms, in which it holds neither the processor nor the interpreter's lock. Operations that nobody waits for are
asked by one thread, :class:`_Progress`. Asking instead of blocking is what makes it possible to notice that a rank is gone,
that the time is up, or that the user has pressed Ctrl-C.

Note [Order of later steps]. Collective operations of MPI must be posted in the same order by all ranks, which is certain
only for first steps. Later steps send messages between two ranks, with a tag of the operation.

Note [Headers]. With each collective operation a reduction of two integers is posted: the maximum of the operation's
fingerprint (a number for the operation, shape, dtype and root, and the count of operations of the group) and of its
complement. If all ranks call the same operation, the second is the complement of the first. If not, all ranks learn of
it, although they have called different operations; they exchange descriptions, and raise an error that says what each
rank has called.
"""

from __future__ import annotations

import atexit
import pickle
import threading
import time
from collections.abc import Generator, Sequence
from datetime import timedelta
from types import CodeType
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy
from mpi4py import MPI

from ..core.tensor import Tensor
from ..core.views import bump_version
from ..determinism import are_deterministic_algorithms_enabled
from ..futures import Future
from ..runtime.user_frame import file_of, line_of, user_location
from .engine import Engine, Operation, check_reduction
from .errors import DistBackendError, several_processes_error
from .reductions import ReduceOp

if TYPE_CHECKING:
    from .stores import Store

#: Steps of an operation: requests to wait for, or requests and the list in which to store their statuses.
Steps = Generator[list[MPI.Request] | tuple[list[MPI.Request], list[MPI.Status]], None, Any]

#: Seconds for which a waiting thread asks without a pause, its first and its longest pause.
SPIN, FIRST_PAUSE, LONGEST_PAUSE = 50e-6, 20e-6, 200e-6
#: Seconds after which a waiting rank asks where the others are.
PATIENCE = 10.0
#: Bytes of the description of an operation that ranks exchange if their operations differ.
_DESCRIPTION = 512

#: For each dtype that can be reduced: the dtype in which MPI reduces it, and MPI's type.
_REDUCED = {
    "float32": ("float32", MPI.FLOAT), "float64": ("float64", MPI.DOUBLE),
    "float16": ("float32", MPI.FLOAT), "bfloat16": ("float32", MPI.FLOAT),
    "uint8": ("uint8", MPI.UINT8_T), "int8": ("int8", MPI.INT8_T), "bool": ("uint8", MPI.UINT8_T),
    "int32": ("int32", MPI.INT32_T), "int64": ("int64", MPI.INT64_T),
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
#: The operation on 0 and 1 that each operation on bool is.
_OF_BOOL = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PRODUCT: ReduceOp.MIN}


class Watch:
    """What the engine knows of the other processes, if nothing watches them."""

    failure: str | None = None
    position: Any = None
    answers: dict[int, str] | None = None

    def ask(self) -> None:
        """Ask all ranks where they are."""


class Position:
    """What a rank is doing: an operation, its number in the group, and the line of the program."""

    __slots__ = ("code", "detail", "instruction", "name", "number", "ranks")

    def __init__(self, name: str, detail: str, number: int, ranks: Sequence[int]) -> None:
        self.name, self.detail, self.number, self.ranks = name, detail, number, ranks
        self.code: CodeType | None
        self.code, self.instruction = user_location(3)

    def describe(self) -> str:
        """Return the description that error messages contain."""
        place = f" at {file_of(self.code)}:{line_of(self.code, self.instruction)}" if self.code is not None else ""
        return f"`{self.name}`{self.detail}{place}"


class Pending(Operation):
    """Operation of an :class:`MPIEngine` that has been started."""

    def __init__(self, engine: MPIEngine, position: Position, header: numpy.ndarray | None, steps: Steps) -> None:
        super().__init__()
        self.engine, self.position, self._steps = engine, position, steps
        self._header_values = header
        self._header: MPI.Request | None = None
        self._requests: list[MPI.Request] = []
        self._statuses: list[MPI.Status] | None = None
        self._lock = threading.Lock()
        self._done = False
        self._futures: list[tuple[Future[Any], Any]] = []
        self.started = time.monotonic()
        self._asked = False
        self.limit = engine.timeout

    def post(self) -> None:
        """Post the first requests."""
        if self._header_values is not None:
            self._header = self.engine.comm.Iallreduce(MPI.IN_PLACE, self._header_values, MPI.MAX)
        if not self._next() and self._header is None:
            self._done = True

    def _next(self) -> bool:
        """Do the next step; return False if there is none."""
        try:
            waiting = next(self._steps)
        except StopIteration as end:
            self.value, self._requests = end.value, []
            return False
        self._requests, self._statuses = waiting if isinstance(waiting, tuple) else (waiting, None)
        return True

    def done(self) -> bool:
        return self._done or self.poll()

    def poll(self) -> bool:
        """Make progress; return whether the operation is complete."""
        if self._done or not self._lock.acquire(False):
            return self._done
        try:
            if self._done or not self._advance():
                return self._done
            self._done = True
        except Exception as error:
            self._set_error(error)
        finally:
            self._lock.release()
        self._complete()
        return True

    def _advance(self) -> bool:
        """Make progress; return whether the last step is complete."""
        if self._header is not None:
            if not self._header.Test():
                return False
            self._header = None
            first, second = self._header_values  # type: ignore[misc]
            if first != ~second:
                self._steps = self.engine._explain(self.position)
                self._next()
        while MPI.Request.Testall(self._requests, self._statuses):
            if not self._next():
                return True
        return False

    def _set_error(self, error: BaseException) -> None:
        if isinstance(error, MPI.Exception):
            error = self.engine._error(f"{self.position.describe()} failed: {_words(error)}")
        self.error, self._done = error, True

    def _complete(self) -> None:
        for future, value in self._futures:
            _settle(future, value, self.error)
        self._futures = []
        if self.error is None:
            self._steps = None  # type: ignore[assignment]
        else:
            _LEFT.append(self)  # requests of MPI may still use the buffers

    def fail(self, error: BaseException) -> None:
        """Complete the operation with ``error``; its buffers are kept, because MPI may still use them."""
        with self._lock:
            if self._done:
                return
            self._set_error(error)
        self._complete()

    def check(self, now: float) -> None:
        """Fail if a rank is gone or the time is up; ask where the other ranks are after some seconds."""
        engine = self.engine
        waited = now - self.started
        if engine.watch.failure is not None:
            self.fail(engine._error(f"{self.position.describe()}: {engine.watch.failure}"))
        elif waited > self.limit.total_seconds():
            self.fail(engine._error(engine._late(self.position, waited)))
        elif waited > PATIENCE and not self._asked:
            self._asked = True
            engine.watch.ask()

    def wait(self, timeout: timedelta | None = None) -> Any:
        if not self._done and not self.poll():
            self._ask(timeout)
        if self.error is not None:
            raise self.error
        return self.value

    def _ask(self, timeout: timedelta | None) -> None:
        begun = time.perf_counter()
        pause = FIRST_PAUSE
        try:
            while not self.poll():
                waited = time.perf_counter() - begun
                if waited < SPIN:
                    continue
                self.check(time.monotonic())
                if timeout is not None and waited > timeout.total_seconds():
                    raise RuntimeError(
                        f"{self.position.describe()} is not complete after {round(timeout.total_seconds() * 1000)} ms"
                    )
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        if not self._done:
            PROGRESS.add(self)

    def when_done(self, future: Future[Any], value: Any) -> None:
        with self._lock:
            if not self._done:
                self._futures.append((future, value))
                return
        _settle(future, value, self.error)


#: Operations that have failed, whose buffers MPI may still use.
_LEFT: list[Pending] = []


def _settle(future: Future[Any], value: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))


def _words(error: MPI.Exception) -> str:
    text = str(error.Get_error_string() if hasattr(error, "Get_error_string") else error)
    return text.splitlines()[-1].strip() if text else "MPI error"


class _Progress:
    """Thread that asks the operations for which no other thread waits; it is started with the first of them."""

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
                atexit.register(self.stop)
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
        pause = FIRST_PAUSE
        while True:
            if self._new or not pending:
                with self._changed:
                    while not (self._new or pending or self._stop):
                        self._changed.wait()
                    pending += self._new
                    self._new = []
                pause = FIRST_PAUSE
            if self._stop:
                return
            left = [each for each in pending if not each.poll()]
            if len(left) == len(pending):
                now = time.monotonic()
                for each in left:
                    each.check(now)
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)
            else:
                pause = FIRST_PAUSE
            pending = left


PROGRESS = _Progress()


# -- Tensors and memory ------------------------------------------------------------------------------------------------


def _host(tensor: Tensor) -> numpy.ndarray:
    array = tensor._array
    return array if isinstance(array, numpy.ndarray) else array.get()


def _flat(tensor: Tensor) -> numpy.ndarray:
    """Return the elements of ``tensor`` in one dimension: a view of its memory if that is possible, else a copy."""
    return _host(tensor).reshape(-1)


def _is_view(tensor: Tensor, flat: numpy.ndarray) -> bool:
    array = tensor._array
    return isinstance(array, numpy.ndarray) and (array.flags.c_contiguous or not array.size)


def _store(tensor: Tensor, flat: numpy.ndarray) -> None:
    """Write ``flat``, the elements that a result has, into the memory of ``tensor``."""
    array = tensor._array
    values = flat.reshape(array.shape)
    if isinstance(array, numpy.ndarray):
        array[...] = values
    else:
        array.set(values)


def _bytes(flat: numpy.ndarray) -> list[Any]:
    """Return the buffer of ``flat`` for MPI, as bytes."""
    return [flat.view(numpy.uint8), MPI.BYTE]


def _target(tensor: Tensor) -> tuple[numpy.ndarray, bool]:
    """Return an array for the elements of the result ``tensor``, and whether it is the memory of ``tensor``."""
    bump_version(tensor)
    array = tensor._array
    if isinstance(array, numpy.ndarray) and array.flags.c_contiguous and array.flags.writeable:
        return array.reshape(-1), True
    return numpy.empty(tensor.numel(), numpy.dtype(array.dtype)), False


def _joined(tensors: Sequence[Tensor]) -> numpy.ndarray | None:
    """Return the memory of ``tensors`` in one dimension if they are successive parts of it, else None."""
    first = tensors[0]._array
    if not isinstance(first, numpy.ndarray) or not first.flags.c_contiguous or not first.size:
        return None
    at, step = first.__array_interface__["data"][0], first.nbytes
    for index, each in enumerate(tensors):
        array = each._array
        if (
            not isinstance(array, numpy.ndarray)
            or not array.flags.c_contiguous
            or array.nbytes != step
            or array.__array_interface__["data"][0] != at + index * step
        ):
            return None
    return numpy.lib.stride_tricks.as_strided(first.reshape(-1), (first.size * len(tensors),))


# -- The engine --------------------------------------------------------------------------------------------------------


class MPIEngine(Engine):
    """Engine of a group of several processes, whose communicator is ``comm``.

    ``ranks`` are the global ranks of the group, and ``name`` is how messages call it.
    """

    def __init__(
        self, comm: MPI.Intracomm, watch: Any, timeout: timedelta, ranks: Sequence[int], name: str = ""
    ) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self.comm, self.watch, self.timeout, self.ranks = comm, watch, timeout, list(ranks)
        self.name = name
        self._post = threading.RLock()
        self._number = 0
        self._messages = 0
        self._broken: str | None = None

    # -- Starting an operation

    def _collective(self, name: str, detail: str, steps: Steps, timeout: timedelta | None = None) -> Pending:
        """Start a collective operation; ``detail`` must be the same in all ranks."""
        with self._post:
            self._check()
            number = self._number = self._number + 1
            fingerprint = (number & 0x3FFFFFFF) << 32 | crc32(f"{name}{detail}".encode())
            header = numpy.array([fingerprint, ~fingerprint], numpy.int64)
            pending = Pending(self, Position(name, detail, number, self.ranks), header, steps)
            return self._started(pending, timeout)

    def _direct(self, name: str, detail: str, steps: Steps, timeout: timedelta | None = None) -> Pending:
        """Start an operation between two ranks."""
        with self._post:
            self._check()
            return self._started(Pending(self, Position(name, detail, 0, self.ranks), None, steps), timeout)

    def _started(self, pending: Pending, timeout: timedelta | None) -> Pending:
        if timeout is not None:
            pending.limit = timeout
        self.watch.position = pending.position
        try:
            pending.post()
        except MPI.Exception as error:
            raise self._error(f"{pending.position.describe()} failed: {_words(error)}") from None
        return pending

    def _check(self) -> None:
        """Raise the error of the group if it cannot be used any more."""
        if self.watch.failure is not None:
            raise DistBackendError(str(self.watch.failure))
        if self._broken is not None:
            raise DistBackendError(f"an earlier operation of this group has failed: {self._broken}")

    def _error(self, text: str) -> DistBackendError:
        if self._broken is None:
            self._broken = text
        return DistBackendError(text)

    def _late(self, position: Position, waited: float) -> str:
        """Return the text of the error for an operation that has waited too long."""
        text = f"{position.describe()} timed out after {round(waited * 1000)} ms"
        if self.watch.answers:
            text += ": " + "; ".join(f"rank {rank} is {said}" for rank, said in sorted(self.watch.answers.items()))
        return text

    def _tag(self) -> int:
        """Return a tag for the messages of an operation between ranks of the group."""
        return 2 * (self._number % 0x100000) + 1

    def _explain(self, position: Position) -> Steps:
        """Exchange descriptions of the operations that the ranks have called, and raise the error."""
        mine = position.describe().encode()[:_DESCRIPTION].ljust(_DESCRIPTION)
        tag = 1
        rows = numpy.zeros((self.size, _DESCRIPTION), numpy.uint8)
        rows[self.rank] = numpy.frombuffer(mine, numpy.uint8)
        if self.rank == 0:
            yield [self.comm.Irecv([rows[each], MPI.BYTE], each, tag) for each in range(1, self.size)]
            yield [self.comm.Isend([rows, MPI.BYTE], each, tag) for each in range(1, self.size)]
        else:
            sent = rows[self.rank].copy()
            yield [self.comm.Isend([sent, MPI.BYTE], 0, tag)]
            yield [self.comm.Irecv([rows, MPI.BYTE], 0, tag)]
        calls: dict[str, list[int]] = {}
        for rank, row in enumerate(rows):
            calls.setdefault(row.tobytes().decode(errors="replace").strip(), []).append(self.ranks[rank])
        said = [
            f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} {'are' if len(ranks) > 1 else 'is'} in {call}"
            for call, ranks in sorted(calls.items(), key=lambda each: len(each[1]))
        ]
        raise self._error("The ranks of a group have called different operations: " + ", ".join(said))

    # -- Reductions

    def _reduction(self, tensor: Tensor, op: ReduceOp.RedOpType) -> tuple[str, MPI.Datatype, ReduceOp.RedOpType]:
        """Return the dtype in which to reduce ``tensor``, MPI's type, and the operation."""
        kind = str(tensor.dtype).rpartition(".")[2]
        if kind not in _REDUCED:
            raise RuntimeError("Invalid scalar type")
        check_reduction(tensor, op)
        name, datatype = _REDUCED[kind]
        return name, datatype, _OF_BOOL.get(op, op) if kind == "bool" else op

    def _working(self, tensor: Tensor, dtype: str, copied: bool) -> tuple[numpy.ndarray, bool]:
        """Return the elements of ``tensor`` in ``dtype``, in one dimension, and whether it is the tensor's memory.

        ``copied`` requests a copy in any case.
        """
        flat = _flat(tensor)
        kind = flat.dtype.kind
        seen = flat.view(dtype) if kind in "cb" else flat.astype(dtype, copy=False)
        same = seen.base is not None and _is_view(tensor, flat) and (kind in "cb" or seen.dtype == flat.dtype)
        writable = same and seen.flags.writeable
        if writable and not copied:
            return seen, True
        return (seen.copy() if copied or same else seen), False

    def _finish(self, tensor: Tensor, work: numpy.ndarray, own: bool, op: ReduceOp.RedOpType) -> None:
        """Write the result ``work`` of a reduction into ``tensor``."""
        if op == ReduceOp.AVG:
            work /= self.size
        if not own:
            dtype = numpy.dtype(tensor._array.dtype)
            with numpy.errstate(all="ignore"):
                _store(tensor, work.view(dtype) if dtype.kind in "cb" else work.astype(dtype, copy=False))

    def all_reduce(self, tensor: Tensor, op: ReduceOp.RedOpType) -> Operation:
        dtype, datatype, kind = self._reduction(tensor, op)
        work, own = self._working(tensor, dtype, False)
        bump_version(tensor)

        def steps() -> Steps:
            if are_deterministic_algorithms_enabled() and self.size > 2:
                yield from self._ordered(work, _UFUNCS[kind])
            else:
                yield [self.comm.Iallreduce(MPI.IN_PLACE, [work, datatype], _OPS[kind])]
            self._finish(tensor, work, own, op)

        return self._collective("all_reduce", f"{_shown(tensor)}, {op.name})", steps())

    def _ordered(self, work: numpy.ndarray, ufunc: Any) -> Steps:
        """Reduce ``work`` of all ranks in the order of the ranks: each rank reduces a part of the elements."""
        tag = self._tag()
        bounds = [len(work) * each // self.size for each in range(self.size + 1)]
        mine = slice(bounds[self.rank], bounds[self.rank + 1])
        parts = numpy.empty((self.size, mine.stop - mine.start), work.dtype)
        others = [each for each in range(self.size) if each != self.rank]
        parts[self.rank] = work[mine]
        yield [
            *(self.comm.Irecv(_bytes(parts[each]), each, tag) for each in others),
            *(self.comm.Isend(_bytes(work[bounds[each] : bounds[each + 1]]), each, tag) for each in others),
        ]
        total = parts[0]
        for each in parts[1:]:
            ufunc(total, each, out=total)
        work[mine] = total
        yield [
            *(self.comm.Irecv(_bytes(work[bounds[each] : bounds[each + 1]]), each, tag) for each in others),
            *(self.comm.Isend(_bytes(total), each, tag) for each in others),
        ]

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> Operation:
        dtype, datatype, kind = self._reduction(tensor, op)
        is_root = self.rank == root
        work, own = self._working(tensor, dtype, False)
        if is_root:
            bump_version(tensor)

        def steps() -> Steps:
            if is_root:
                yield [self.comm.Ireduce(MPI.IN_PLACE, [work, datatype], _OPS[kind], root)]
                self._finish(tensor, work, own, op)
            else:
                yield [self.comm.Ireduce([work, datatype], None, _OPS[kind], root)]

        return self._collective("reduce", f"{_shown(tensor)}, {op.name}, dst={self.ranks[root]})", steps())

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp.RedOpType) -> Operation:
        dtype, datatype, kind = self._reduction(output, op)
        parts = [self._working(each, dtype, False)[0] for each in inputs]
        joined = _joined(inputs) if parts[0].dtype == inputs[0]._array.dtype else None
        sent = joined if joined is not None else numpy.concatenate(parts) if parts else numpy.empty(0, dtype)
        work = numpy.empty(len(sent) // self.size, dtype)
        bump_version(output)

        def steps() -> Steps:
            yield [self.comm.Ireduce_scatter_block([sent, datatype], [work, datatype], op=_OPS[kind])]
            self._finish(output, work, False, op)

        return self._collective("reduce_scatter", f"{_shown(output)}, {op.name})", steps())

    # -- Copies

    def broadcast(self, tensor: Tensor, root: int) -> Operation:
        is_root = self.rank == root
        flat, own = (_flat(tensor), True) if is_root else _target(tensor)
        if is_root:
            bump_version(tensor)

        def steps() -> Steps:
            yield [self.comm.Ibcast(_bytes(flat), root)]
            if not own:
                _store(tensor, flat)

        return self._collective("broadcast", f"{_shown(tensor)}, src={self.ranks[root]})", steps())

    def _gathered(self, outputs: Sequence[Tensor]) -> tuple[numpy.ndarray, bool]:
        """Return an array for the elements of all ``outputs``, and whether it is their memory."""
        for each in outputs:
            bump_version(each)
        joined = _joined(outputs)
        if joined is not None and joined.flags.writeable:
            return joined, True
        first = outputs[0]
        return numpy.empty(first.numel() * len(outputs), numpy.dtype(first._array.dtype)), False

    def all_gather(self, outputs: Sequence[Tensor], tensor: Tensor) -> Operation:
        sent = _flat(tensor)
        received, own = self._gathered(outputs)
        if own and numpy.shares_memory(sent, received):
            sent = sent.copy()

        def steps() -> Steps:
            yield [self.comm.Iallgather(_bytes(sent), _bytes(received))]
            if not own:
                _distribute(outputs, received)

        return self._collective("all_gather", f"{_shown(tensor)})", steps())

    def gather(self, outputs: Sequence[Tensor] | None, tensor: Tensor, root: int) -> Operation:
        sent = _flat(tensor)
        received, own = self._gathered(outputs or ()) if outputs else (None, True)
        if outputs and own and numpy.shares_memory(sent, received):
            sent = sent.copy()

        def steps() -> Steps:
            yield [self.comm.Igather(_bytes(sent), None if received is None else _bytes(received), root)]
            if not own:
                _distribute(outputs, received)

        return self._collective("gather", f"{_shown(tensor)}, dst={self.ranks[root]})", steps())

    def scatter(self, output: Tensor, inputs: Sequence[Tensor] | None, root: int) -> Operation:
        sent = None
        if inputs:
            sent = _joined(inputs)
            if sent is None:
                sent = numpy.concatenate([_flat(each) for each in inputs])
        received, own = _target(output)
        if sent is not None and own and numpy.shares_memory(sent, received):
            sent = sent.copy()

        def steps() -> Steps:
            yield [self.comm.Iscatter(None if sent is None else _bytes(sent), _bytes(received), root)]
            if not own:
                _store(output, received)

        return self._collective("scatter", f"{_shown(output)}, src={self.ranks[root]})", steps())

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Operation:
        sent = [_flat(each) for each in inputs]
        received = [_target(each) for each in outputs]
        others = [(self.rank + each) % self.size for each in range(1, self.size)]

        def steps() -> Steps:
            tag = self._tag()
            mine = received[self.rank][0]
            mine[...] = sent[self.rank]
            incoming = [self.comm.Irecv(_bytes(received[each][0]), each, tag) for each in reversed(others)]
            outgoing = [self.comm.Isend(_bytes(sent[each]), each, tag) for each in others]
            statuses = [MPI.Status() for _ in range(len(incoming) + len(outgoing))]
            yield [*incoming, *outgoing], statuses
            for each, status in zip(reversed(others), statuses, strict=False):
                self._check_size("all_to_all", status, received[each][0].nbytes)
            for tensor, (flat, own) in zip(outputs, received, strict=True):
                if not own:
                    _store(tensor, flat)

        kind = str(inputs[0].dtype).rpartition(".")[2] if inputs else ""
        return self._collective("all_to_all", f"({kind})", steps())

    # -- Between two ranks

    def send(self, tensor: Tensor, destination: int, tag: int) -> Operation:
        sent = _flat(tensor)

        def steps() -> Steps:
            yield [self.comm.Isend(_bytes(sent), destination, 2 * tag)]

        return self._direct("send", f"{_shown(tensor)}, dst={self.ranks[destination]}, tag={tag})", steps())

    def receive(self, tensor: Tensor, source: int | None, tag: int) -> Operation:
        received, own = _target(tensor)

        def steps() -> Steps:
            status = MPI.Status()
            yield [self.comm.Irecv(_bytes(received), MPI.ANY_SOURCE if source is None else source, 2 * tag)], [status]
            self._check_size("recv", status, received.nbytes)
            if not own:
                _store(tensor, received)
            return status.Get_source()

        origin = "any" if source is None else self.ranks[source]
        return self._direct("recv", f"{_shown(tensor)}, src={origin}, tag={tag})", steps())

    def _check_size(self, name: str, status: MPI.Status, expected: int) -> None:
        count = status.Get_count(MPI.BYTE)
        if count != expected:
            raise DistBackendError(
                f"{name}: rank {self.ranks[status.Get_source()]} has sent {count} bytes, but the tensor has {expected}"
            )

    def barrier(self, timeout: timedelta | None = None) -> Operation:
        return self._collective("barrier", "()", _nothing(), timeout)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Operation:
        return self._collective("monitored_barrier", "()", _nothing(), timeout)

    # -- Objects

    def all_gather_objects(self, value: Any) -> Operation:
        data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)

        def steps() -> Steps:
            size, sizes = numpy.array([len(data)]), numpy.zeros(self.size, numpy.int64)
            yield [self.comm.Iallgather(size, sizes)]
            received = numpy.empty(int(sizes.sum()), numpy.uint8)
            yield [self.comm.Iallgatherv([data, MPI.BYTE], [received, (sizes.tolist(), None), MPI.BYTE])]
            return _objects(received, sizes)

        return self._collective("all_gather_object", "()", steps())

    def gather_objects(self, value: Any, root: int) -> Operation:
        data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)

        def steps() -> Steps:
            size, sizes = numpy.array([len(data)]), numpy.zeros(self.size, numpy.int64)
            yield [self.comm.Iallgather(size, sizes)]
            if self.rank != root:
                yield [self.comm.Igatherv([data, MPI.BYTE], None, root)]
                return None
            received = numpy.empty(int(sizes.sum()), numpy.uint8)
            yield [self.comm.Igatherv([data, MPI.BYTE], [received, (sizes.tolist(), None), MPI.BYTE], root)]
            return _objects(received, sizes)

        return self._collective("gather_object", f"(dst={self.ranks[root]})", steps())

    def broadcast_objects(self, values: Any, root: int) -> Operation:
        is_root = self.rank == root
        data = numpy.frombuffer(pickle.dumps(values), numpy.uint8) if is_root else numpy.empty(0, numpy.uint8)

        def steps() -> Steps:
            size = numpy.array([len(data)])
            yield [self.comm.Ibcast(size, root)]
            buffer = data if is_root else numpy.empty(int(size[0]), numpy.uint8)
            yield [self.comm.Ibcast([buffer, MPI.BYTE], root)]
            return values if is_root else pickle.loads(buffer)

        return self._collective("broadcast_object_list", f"(src={self.ranks[root]})", steps())

    def scatter_objects(self, values: list[Any] | None, root: int) -> Operation:
        is_root = self.rank == root
        parts = [pickle.dumps(each) for each in values or ()] if is_root else []

        def steps() -> Steps:
            sizes, size = numpy.array([len(each) for each in parts] or [0] * self.size), numpy.zeros(1, numpy.int64)
            yield [self.comm.Iscatter(sizes if is_root else None, size, root)]
            received = numpy.empty(int(size[0]), numpy.uint8)
            data = numpy.frombuffer(b"".join(parts), numpy.uint8)
            sent = [data, (sizes.tolist(), None), MPI.BYTE] if is_root else None
            yield [self.comm.Iscatterv(sent, [received, MPI.BYTE], root)]
            return pickle.loads(received)

        return self._collective("scatter_object_list", f"(src={self.ranks[root]})", steps())

    # -- Groups

    def subgroup(self, ranks: list[int], timeout: timedelta) -> Engine | None:
        if self.rank not in ranks:
            return None
        made = self.comm.Get_group().Incl(ranks)
        self._direct("new_group", f"({[self.ranks[each] for each in ranks]})", self._meet(ranks), timeout).wait()
        comm = self.comm.Create_group(made)
        made.Free()
        return MPIEngine(comm, self.watch, timeout, [self.ranks[each] for each in ranks])

    def _meet(self, ranks: list[int]) -> Steps:
        """Wait until all of ``ranks`` are here: messages over distances of 1, 2, 4 … ranks."""
        here, count = ranks.index(self.rank), len(ranks)
        nothing = numpy.empty(0, numpy.uint8)
        distance = 1
        while distance < count:
            yield [
                self.comm.Irecv([nothing, MPI.BYTE], ranks[(here - distance) % count], 3),
                self.comm.Isend([nothing, MPI.BYTE], ranks[(here + distance) % count], 3),
            ]
            distance *= 2

    def close(self) -> None:
        self._broken = "the group was destroyed"


def _nothing() -> Steps:
    return
    yield []


def _shown(tensor: Tensor) -> str:
    kind = str(tensor.dtype).rpartition(".")[2]
    return f"({kind}{list(tensor.shape)}"


def _distribute(outputs: Any, received: Any) -> None:
    size = len(received) // len(outputs)
    for index, each in enumerate(outputs):
        _store(each, received[index * size : (index + 1) * size])


def _objects(received: numpy.ndarray, sizes: numpy.ndarray) -> list[Any]:
    ends = numpy.cumsum(sizes).tolist()
    return [pickle.loads(received[end - size : end]) for end, size in zip(ends, sizes.tolist(), strict=True)]


def start_engine(store: Store, rank: int, size: int, timeout: timedelta) -> MPIEngine:
    """Return the engine of the default group, after MPI has been started."""
    try:
        from .mpi_start import start
    except ImportError:
        comm, watch = MPI.COMM_WORLD, Watch()
        if comm.Get_size() != size:
            raise several_processes_error(size) from None
    else:
        comm, watch = start(store, rank, size, timeout)
    return MPIEngine(comm.Dup(), watch, timeout, range(size))
