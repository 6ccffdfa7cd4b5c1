"""Interface between the public functions of ``torch.distributed`` and what moves data between processes.

The public functions check arguments, translate global ranks to ranks of a group, and create :class:`Work` objects. All
of this is the same for every engine. An engine is the communicator of one group. It gets tensors that fit each other,
and ranks of the group.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..futures import Future
from .errors import several_processes_error
from .reductions import ReduceOp

if TYPE_CHECKING:
    from .stores import Store


class Engine(ABC):
    """Communicator of the ranks of one group, of which this process is ``rank``, one of ``size`` ranks.

    Each operation blocks until the tensors of this rank are complete, writes its results into the tensors that it gets,
    and runs without recording. The tensors may be of any memory layout. All ranks of the group call the same operations
    in the same order.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def submit(self, operation: Callable[[], Any], asynchronous: bool) -> Future[Any]:
        """Run ``operation``, which calls methods of this engine, and return a future of its result.

        An engine with a thread of its own runs it there if ``asynchronous`` is true, and then sets an error of the
        operation in the future instead of raising it.
        """
        future: Future[Any] = Future()
        with no_grad():
            future.set_result(operation())
        return future

    @abstractmethod
    def all_reduce(self, tensors: list[Tensor], op: ReduceOp.RedOpType) -> None:
        """Replace each tensor by the reduction of the corresponding tensors of all ranks."""

    @abstractmethod
    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> None:
        """Replace ``tensor`` of the rank ``root`` by the reduction of the tensors of all ranks."""

    @abstractmethod
    def broadcast(self, tensor: Tensor, root: int) -> None:
        """Copy ``tensor`` of the rank ``root`` to ``tensor`` of all ranks."""

    @abstractmethod
    def all_gather(self, outputs: list[Tensor], tensor: Tensor) -> None:
        """Copy ``tensor`` of each rank into the output for this rank, in all ranks."""

    @abstractmethod
    def gather(self, outputs: list[Tensor] | None, tensor: Tensor, root: int) -> None:
        """Copy ``tensor`` of each rank into the output for this rank, in the rank ``root``."""

    @abstractmethod
    def scatter(self, output: Tensor, inputs: list[Tensor] | None, root: int) -> None:
        """Copy each input of the rank ``root`` to ``output`` of the rank for which it is."""

    @abstractmethod
    def reduce_scatter(self, output: Tensor, inputs: list[Tensor], op: ReduceOp.RedOpType) -> None:
        """Copy the reduction of each input to ``output`` of the rank for which it is."""

    @abstractmethod
    def all_to_all(self, outputs: list[Tensor], inputs: list[Tensor]) -> None:
        """Copy input ``j`` of rank ``i`` to output ``i`` of rank ``j``."""

    @abstractmethod
    def send(self, tensor: Tensor, destination: int, tag: int) -> None:
        """Send ``tensor`` to another rank."""

    @abstractmethod
    def receive(self, tensor: Tensor, source: int | None, tag: int) -> int:
        """Receive ``tensor`` from the rank ``source``, or from any rank if it is None; return the rank of the sender."""

    @abstractmethod
    def barrier(self, timeout: timedelta | None = None) -> None:
        """Wait until all ranks have called this method."""

    @abstractmethod
    def all_gather_objects(self, value: Any) -> list[Any]:
        """Return a list of copies of the values of all ranks, in the order of the ranks."""

    @abstractmethod
    def scatter_objects(self, values: list[Any] | None, root: int) -> Any:
        """Return a copy of the one of the ``values`` of the rank ``root`` that is for this rank."""

    @abstractmethod
    def subgroup(self, ranks: list[int]) -> Engine | None:
        """Return the engine of the group of ``ranks``, or None if this rank is not one of them.

        All ranks of this engine call the method.
        """

    def close(self) -> None:  # noqa: B027 - an engine may have nothing to close
        """Release the resources of this engine."""


class SingleProcess(Engine):
    """Engine of a group of one process: reductions change nothing, and other operations copy.

    The reduction of a single tensor is this tensor. Outputs may be views that share memory with inputs.
    """

    def __init__(self) -> None:
        super().__init__(0, 1)

    def all_reduce(self, tensors: list[Tensor], op: ReduceOp.RedOpType) -> None:
        for each in tensors:
            _check_reduction(each, op)

    def reduce(self, tensor: Tensor, root: int, op: ReduceOp.RedOpType) -> None:
        _check_reduction(tensor, op)

    def broadcast(self, tensor: Tensor, root: int) -> None:
        pass

    def all_gather(self, outputs: list[Tensor], tensor: Tensor) -> None:
        outputs[0].copy_(tensor)

    def gather(self, outputs: list[Tensor] | None, tensor: Tensor, root: int) -> None:
        assert outputs is not None
        outputs[0].copy_(tensor)

    def scatter(self, output: Tensor, inputs: list[Tensor] | None, root: int) -> None:
        assert inputs is not None
        output.copy_(inputs[0])

    def reduce_scatter(self, output: Tensor, inputs: list[Tensor], op: ReduceOp.RedOpType) -> None:
        _check_reduction(output, op)
        output.copy_(inputs[0])

    def all_to_all(self, outputs: list[Tensor], inputs: list[Tensor]) -> None:
        outputs[0].copy_(inputs[0])

    def send(self, tensor: Tensor, destination: int, tag: int) -> None:
        raise ValueError("a group of one process has no other rank to send to")

    def receive(self, tensor: Tensor, source: int | None, tag: int) -> int:
        raise ValueError("a group of one process has no other rank to receive from")

    def barrier(self, timeout: timedelta | None = None) -> None:
        pass

    def all_gather_objects(self, value: Any) -> list[Any]:
        return [pickle.loads(pickle.dumps(value))]

    def scatter_objects(self, values: list[Any] | None, root: int) -> Any:
        assert values is not None
        return pickle.loads(pickle.dumps(values[0]))

    def subgroup(self, ranks: list[int]) -> Engine | None:
        return SingleProcess() if ranks else None


def _check_reduction(tensor: Tensor, op: ReduceOp.RedOpType) -> None:
    """Raise PyTorch's error if ``op`` is not defined for the dtype of ``tensor``."""
    floating = tensor.is_floating_point() or tensor.is_complex()
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and floating:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op == ReduceOp.AVG and not floating:
        name = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
        kind = str(tensor.dtype).rpartition(".")[2]
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name.get(kind, kind)}")
    if op == ReduceOp.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")


def connect(backend: str, store: Store, rank: int, size: int, timeout: timedelta) -> Engine:
    """Return the engine of the default group, of which this process is ``rank``, one of ``size`` ranks.

    ``store`` is shared by all ranks. A package that connects several processes is to be called here.
    """
    if size > 1:
        raise several_processes_error(size)
    if rank != 0:
        raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {size - 1}]")
    return SingleProcess()
