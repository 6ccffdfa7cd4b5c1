"""Interface between the public functions of ``torch.distributed`` and what moves data between processes.

The public functions check arguments, translate global ranks to ranks of a group, and create :class:`Work` objects. All
of this is the same for every engine. An engine is the communicator of one group. It gets tensors that fit each other,
and ranks of the group.

A method of an engine starts an operation in the calling thread, so that the operations of a rank have the order of the
program, and returns an :class:`Operation`, whose method ``wait`` waits for the result.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..core.dtypes import scalar_name
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..futures import Future
from .reductions import ReduceOp

if TYPE_CHECKING:
    from .stores import Store


class Operation:
    """Operation that an engine has started; this class is an operation that is complete already.

    ``value`` is what the operation returns, for example the objects that were gathered.
    """

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.error: BaseException | None = None

    def done(self) -> bool:
        """Whether the operation is complete, with or without an error."""
        return True

    def wait(self, timeout: timedelta | None = None) -> Any:
        """Wait until the operation is complete; return its value, or raise its error."""
        return self.value

    def detach(self) -> None:
        """Let the operation continue while no thread waits for it."""

    def when_done(self, future: Future[Any], value: Any) -> None:
        """Set ``value`` or the error of the operation in ``future``, as soon as the operation is complete."""
        future.set_result(value)


class Engine(ABC):
    """Communicator of the ranks of one group, of which this process is ``rank``, one of ``size`` ranks.

    Each method starts an operation, which writes its results into the tensors that it gets, and runs without recording.
    The tensors may be of any memory layout. All ranks of the group call the same operations in the same order.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size

    @abstractmethod
    def all_reduce(self, tensor: Tensor, op: ReduceOp.RedOpType) -> Operation:
        """Replace ``tensor`` by the reduction of the tensors of all ranks."""

    @abstractmethod
    def all_reduce_sparse(self, tensor: Tensor) -> Operation:
        """Replace the sparse ``tensor`` by the coalesced sum of the tensors of all ranks."""

    @abstractmethod
    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> Operation:
        """Replace ``tensor`` of the rank ``root`` by the reduction of the tensors of all ranks."""

    @abstractmethod
    def broadcast(self, tensor: Tensor, root: int) -> Operation:
        """Copy ``tensor`` of the rank ``root`` to ``tensor`` of all ranks."""

    @abstractmethod
    def all_gather(self, outputs: Sequence[Tensor], tensor: Tensor) -> Operation:
        """Copy ``tensor`` of each rank into the output for this rank, in all ranks."""

    @abstractmethod
    def gather(self, outputs: Sequence[Tensor] | None, tensor: Tensor, root: int) -> Operation:
        """Copy ``tensor`` of each rank into the output for this rank, in the rank ``root``."""

    @abstractmethod
    def scatter(self, output: Tensor, inputs: Sequence[Tensor] | None, root: int) -> Operation:
        """Copy each input of the rank ``root`` to ``output`` of the rank for which it is."""

    @abstractmethod
    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp.RedOpType) -> Operation:
        """Copy the reduction of each input to ``output`` of the rank for which it is."""

    @abstractmethod
    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Operation:
        """Copy input ``j`` of rank ``i`` to output ``i`` of rank ``j``."""

    @abstractmethod
    def send(self, tensor: Tensor, destination: int, tag: int) -> Operation:
        """Send ``tensor`` to another rank."""

    @abstractmethod
    def receive(self, tensor: Tensor, source: int | None, tag: int) -> Operation:
        """Receive ``tensor`` from the rank ``source``, or from any rank if it is None; the value is the sender's rank."""

    @abstractmethod
    def barrier(self, timeout: timedelta | None = None) -> Operation:
        """Wait until all ranks have called this method."""

    @abstractmethod
    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Operation:
        """Wait until all ranks have called this method; the error in rank 0 names the ranks that have not."""

    @abstractmethod
    def all_gather_objects(self, value: Any) -> Operation:
        """Gather copies of the values of all ranks: a list, in the order of the ranks."""

    @abstractmethod
    def gather_objects(self, value: Any, root: int) -> Operation:
        """Gather copies of the values of all ranks in the rank ``root``; the value is None in other ranks."""

    @abstractmethod
    def broadcast_objects(self, values: Any, root: int) -> Operation:
        """Send a copy of ``values`` of the rank ``root`` to all other ranks."""

    @abstractmethod
    def scatter_objects(self, values: list[Any] | None, root: int) -> Operation:
        """Send each of the ``values`` of the rank ``root`` to the rank for which it is."""

    @abstractmethod
    def subgroup(self, ranks: list[int], timeout: timedelta) -> Engine | None:
        """Return the engine of the group of ``ranks``, or None if this rank is not one of them.

        All of ``ranks`` call the method.
        """

    def close(self) -> None:  # noqa: B027 - an engine may have nothing to close
        """Release the resources of this engine."""


class SingleProcess(Engine):
    """Engine of a group of one process: reductions change nothing, and other operations copy.

    The reduction of a single tensor is this tensor. Outputs may be views that share memory with inputs.
    """

    def __init__(self) -> None:
        super().__init__(0, 1)

    def all_reduce(self, tensor: Tensor, op: ReduceOp.RedOpType) -> Operation:
        check_reduction(tensor, op)
        return Operation()

    def all_reduce_sparse(self, tensor: Tensor) -> Operation:
        from ..sparse.tensor import replace

        with no_grad():
            replace(tensor, tensor.coalesce(), "all_reduce")  # type: ignore[arg-type]
        return Operation()

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> Operation:
        check_reduction(tensor, op)
        return Operation()

    def broadcast(self, tensor: Tensor, root: int) -> Operation:
        return Operation()

    def all_gather(self, outputs: Sequence[Tensor], tensor: Tensor) -> Operation:
        return _copied(outputs[0], tensor)

    def gather(self, outputs: Sequence[Tensor] | None, tensor: Tensor, root: int) -> Operation:
        assert outputs is not None
        return _copied(outputs[0], tensor)

    def scatter(self, output: Tensor, inputs: Sequence[Tensor] | None, root: int) -> Operation:
        assert inputs is not None
        return _copied(output, inputs[0])

    def reduce_scatter(self, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp.RedOpType) -> Operation:
        check_reduction(output, op)
        return _copied(output, inputs[0])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Operation:
        return _copied(outputs[0], inputs[0])

    def send(self, tensor: Tensor, destination: int, tag: int) -> Operation:
        raise ValueError("a group of one process has no other rank to send to")

    def receive(self, tensor: Tensor, source: int | None, tag: int) -> Operation:
        raise ValueError("a group of one process has no other rank to receive from")

    def barrier(self, timeout: timedelta | None = None) -> Operation:
        return Operation()

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Operation:
        return Operation()

    def all_gather_objects(self, value: Any) -> Operation:
        return Operation([pickle.loads(pickle.dumps(value))])

    def gather_objects(self, value: Any, root: int) -> Operation:
        return self.all_gather_objects(value)

    def broadcast_objects(self, values: Any, root: int) -> Operation:
        return Operation(values)

    def scatter_objects(self, values: list[Any] | None, root: int) -> Operation:
        assert values is not None
        return Operation(pickle.loads(pickle.dumps(values[0])))

    def subgroup(self, ranks: list[int], timeout: timedelta) -> Engine | None:
        return SingleProcess() if ranks else None


def _copied(output: Tensor, tensor: Tensor) -> Operation:
    with no_grad():
        output.copy_(tensor)
    return Operation()


def check_reduction(tensor: Tensor, op: ReduceOp.RedOpType) -> None:
    """Raise PyTorch's error if ``op`` is not defined for the dtype of ``tensor``."""
    floating = tensor.is_floating_point() or tensor.is_complex()
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and floating:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op == ReduceOp.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if op == ReduceOp.AVG and not floating:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(tensor.dtype)}")


def connect(backend: str, store: Store, rank: int, size: int, timeout: timedelta) -> Engine:
    """Return the engine of the default group, of which this process is ``rank``, one of ``size`` ranks.

    ``store`` is shared by all ranks.
    """
    if size > 1:
        from .mpi_start import start

        comm, watch = start(store, rank, size, timeout)
        from .mpi_engine import engine_of  # imports mpi4py, which start has prepared

        return engine_of(comm, watch, timeout)
    if rank != 0:
        raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {size - 1}]")
    return SingleProcess()
