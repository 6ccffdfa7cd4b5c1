"""Selection of the GPU on which each node of a backward pass runs, on machines with several GPUs.

CuPy computes on the current GPU. A node computes on the GPU of its gradient, as in PyTorch, whichever is current when
the backward pass begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import devices, engine
from .accumulate import visit_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .graph import AccumulateGrad, Node
    from .typing import Edge, Edges, Gradient, Gradients, Heap, Inner, Root, Wanted


class _DeviceSelector:
    """Observer of one backward pass, which selects the GPU of each node before the node runs."""

    def __init__(self) -> None:
        self.gpu = devices.cupy()
        self.first = self.gpu.cuda.runtime.getDevice()

    def _select(self, gradients: Sequence[Gradient]) -> None:
        """Make the GPU of the first of ``gradients`` that is not None the current GPU."""
        found = next((each for each in gradients if each is not None), None)
        if found is not None and devices.selected_for((found,)) is not None:
            self.gpu.cuda.runtime.setDevice(devices.device_of(found).index)

    def visit(
        self, edge: Edge, grad: Gradient, edges: Edges, keep: bool, record: bool,
        several: dict[Node, list[Gradient]], heap: Heap, wanted: Wanted, inner: Inner,
    ) -> Gradients:  # fmt: skip
        """Run the node at ``edge`` on the GPU of ``grad``; the parameters are those of ``engine._visit``."""
        if not record:
            self._select(several.get(edge, ()) if grad is None else (grad,))  # type: ignore[arg-type]
        return engine._visit(edge, grad, edges, keep, record, several, heap, wanted, inner)

    def leaf(
        self, leaf: AccumulateGrad, grad: Gradient, owned: bool, record: bool, wanted: Wanted, write: bool
    ) -> None:
        """Store the gradient of ``leaf``; the parameters are those of ``accumulate.visit_leaf``."""
        if not record:
            self._select((grad,))
        visit_leaf(leaf, grad, owned, record, wanted, write)

    def end(self) -> None:
        """Select the GPU again that was current before the backward pass."""
        self.gpu.cuda.runtime.setDevice(self.first)


def _observer(roots: Sequence[Root]) -> _DeviceSelector | None:
    return _DeviceSelector() if devices.several_gpus else None


def observe_backward_passes() -> None:
    """Make backward passes run each node on its GPU, except while the profiler observes them."""
    if _observer not in engine.observers:
        engine.observers.insert(0, _observer)
