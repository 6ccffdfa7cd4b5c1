"""The backward engine, which runs every node of the graph once, in order from the results to the leaves.

Nodes are numbered in the order of creation, and a node is created after the nodes that computed its inputs. The engine
keeps the nodes that have received a gradient in a heap, and always runs the newest of them. Only newer nodes pass
gradients to this node, and all of them have run already. Therefore the engine need not count the dependencies of each
node before the backward pass. The engine converts every gradient to the shape and dtype of the tensor to which it
belongs (``gradients.py``) and adds gradients of the same tensor (``accumulate.py``), so nodes need not do this.

Note [The order of leaves]. The engine adds gradients to the ``grad`` of leaves at the end of the backward pass. PyTorch
adds the gradients of a leaf as soon as the last one has arrived, but only hooks of leaves can observe the difference.
Therefore the engine uses PyTorch's order only in two cases: while a leaf exists that has had a hook, and while the
profiler observes the backward pass. For PyTorch's order, the engine counts the gradients that each leaf will receive
(:class:`Plan`) before the backward pass, and visits a leaf when that number has arrived.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from typing import TYPE_CHECKING

from ..runtime.extension_module import use_compiled_copy
from ..runtime.fp_warnings import IGNORED, errors
from . import anomaly_mode
from .accumulate import add_pending, sum_gradients, visit_leaf
from .error_context import add_origin_note
from .grad_mode import recording, restore_recording, set_recording
from .gradients import as_tensor, unwrap_unless_recorded, validate_gradient
from .graph import AccumulateGrad, Node, OutputEdge
from .hooks import run_node_post_hooks, run_node_pre_hooks, run_tensor_hooks

if TYPE_CHECKING:
    from types import FrameType

    from .typing import Apply, Edge, Edges, Gradient, Gradients, Heap, Inner, Observer, Root, Wanted

#: Functions that are called with the roots when a backward pass begins, the last one first, until one returns an object
#: that runs the steps of this backward pass (methods ``visit``, ``apply``, ``leaf``) and has a method ``end``, called at
#: its end. A function returns None for a pass that it does not observe, such as one of another thread. See
#: ``profiler/recorder.py`` and ``inspection/page/recorder.py``.
observers: list[Callable[[Sequence[Root]], Observer | None]] = []
#: The function that decides whether a backward pass computes with Tensors (``python_dispatch``), once it is loaded.
by_tensors: list[Callable[[], bool]] = []


#: Functions to call at the end of a backward pass, by the frame of its :func:`run_backward`.
_final_callbacks: dict[FrameType, list[Callable[[], object]]] = {}


def queue_callback(callback: Callable[[], object], outermost: bool = False) -> None:
    """Call ``callback()`` at the end of the innermost backward pass that is running in this thread.

    If ``outermost`` is true, it is called at the end of the outermost pass, in which the others are nested. Nothing is
    called if the pass raises an exception. The pass is found by its frame, so passes without callbacks need no record
    of themselves.
    """
    frame = running_frame()
    outer = frame
    while outermost and outer is not None:
        frame, outer = outer, running_frame(outer.f_back)
    if frame is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _final_callbacks.setdefault(frame, []).append(callback)


def running_frame(frame: FrameType | None = None) -> FrameType | None:
    """Return the frame of :func:`run_backward` of the innermost backward pass of this thread, or None.

    The search starts at ``frame``, by default at the caller.
    """
    frame = frame or sys._getframe(1)
    while frame is not None and frame.f_code is not run_backward.__code__:
        frame = frame.f_back
    return frame


def _run_final_callbacks(frame: FrameType) -> None:
    """Call the callbacks of the backward pass whose frame is ``frame``, also those that callbacks add."""
    while frame in _final_callbacks:
        for callback in _final_callbacks.pop(frame):
            callback()


def run_backward(
    roots: Sequence[Root],
    keep: bool,
    record: bool,
    wanted: Wanted = None,
    write: bool = True,
    silent: bool = False,
) -> None:
    """Run a backward pass from ``roots``.

    Args:
        roots: Pairs of a gradient edge and the incoming gradient at this edge.
        keep: If true, nodes keep their saved values for another backward pass (``retain_graph``).
        record: If true, gradients are Tensors and the backward pass is recorded (``create_graph``).
        wanted: Dictionary whose keys are the edges with requested gradients; the gradients are stored as its values.
            No other gradients are computed. None: the gradients of all leaves are computed.
        write: If true, gradients are added to the ``grad`` of leaves.
        silent: If true, the backward pass is not recorded although ``record`` is true. The gradients are then Tensors
            only because they belong to a transform such as ``vmap``.
    """
    if by_tensors and not record and by_tensors[0]():
        record = silent = True
        roots = [(edge, as_tensor(grad)) for edge, grad in roots]
    before, saved_errstate = recording(), errors.get()
    observer = None
    if observers:
        observer = next(filter(None, (each(roots) for each in observers[::-1])), None)
    plan = token = None
    try:
        if before is not (record and not silent):
            set_recording(record and not silent)
        if not record:  # recorded operations suppress NumPy's warnings themselves
            errors.set(IGNORED)
        if AccumulateGrad.hooked or observer is not None:
            plan = Plan(roots, wanted, True)
            token = _running.set(plan)
        elif wanted is not None and not _is_chain(roots, wanted):
            plan = Plan(roots, wanted)
        if write and wanted is not None and plan is not None:
            plan.inner = {edge: leads or None for edge, leads in plan.inner.items()}
        _run(roots, keep, record, wanted, write, plan, observer)
        if _final_callbacks:
            _run_final_callbacks(sys._getframe())
    finally:
        if _final_callbacks:  # left by an exception
            _final_callbacks.pop(sys._getframe(), None)
        try:
            restore_recording(before)
        finally:  # even if an interrupt is raised between the two
            errors.set(saved_errstate)
        if token is not None:
            _running.reset(token)
        if observer is not None:
            observer.end()


def _note_origin(error: Exception, edge: Edge | None) -> None:
    """Add to ``error``, raised in a backward pass while ``edge`` was visited, a note with the node that was running.

    If a hook or a node has run another backward pass, which failed, that pass has added its note. A leaf is found in the
    traceback, as a local variable of :func:`visit_leaf`.
    """
    trace = error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code is run_backward.__code__:
            return
        if frame.f_globals is visit_leaf.__globals__ and "leaf" in frame.f_locals:
            edge = frame.f_locals["leaf"]
    add_origin_note(error, edge)


@use_compiled_copy
def _run(
    roots: Sequence[Root], keep: bool, record: bool, wanted: Wanted, write: bool, plan: Plan | None,
    observer: Observer | None,
) -> None:  # fmt: skip
    """Run the nodes of a backward pass (helper of :func:`run_backward`).

    ``roots``, ``keep``, ``record``, ``wanted`` and ``write`` are the arguments of :func:`run_backward`. ``plan`` is the
    :class:`Plan` of the backward pass, or None if it needs no plan. ``observer`` is None or an object of the profiler.
    The methods ``visit`` and ``leaf`` of this object are called instead of :func:`_visit` and :func:`visit_leaf`.

    For speed, the edge to visit next and its gradient are local variables. Only if several nodes have received a
    gradient, the others are stored in a heap, and their gradients in a dict. Nodes with a single edge, by far the most
    common, have a fast path.
    """
    flow: set[Edge] | None = None
    awaited: dict[Edge, int] | None = None
    inner: Inner = {}
    if plan is not None:
        flow, inner, awaited = plan.flow, plan.inner, plan.awaited
    visit: Callable[..., Gradients]
    finish: Callable[..., None]
    visit, finish = _visit, visit_leaf
    if observer is not None:
        visit, finish = observer.visit, observer.leaf
        inner = {**inner, None: False}
    if anomaly_mode.setting.enabled:
        anomaly_mode.begin()
        inner = {**inner, None: False}  # not empty: no node takes the fast path
    pending: dict[Edge, Gradient] = {}  # sum of the gradients that have arrived, by edge
    owned: set[Edge] = set()  # edges whose pending gradient is a sum that only the engine refers to
    leaves: dict[AccumulateGrad, None] = {}  # leaves with a gradient, in order
    heap: Heap = []
    several: dict[Node, list[Gradient]] = {}  # gradients of all results, by node with several results
    edge: Edge | None
    current: Edge | None = None
    previous: Edge | None = None
    if len(roots) == 1 and plan is None and roots[0][0].__class__ is not AccumulateGrad:
        ((current, grad),) = roots
    else:
        _enter(roots, flow, pending, leaves, heap)
    try:
        while True:
            if current is None:
                if not heap:
                    break
                current = heappop(heap)[1]
                grad = pending.pop(current, None)
            elif heap and heap[0][0] < current.number:
                pending[current] = grad
                current = heapreplace(heap, (current.number, current))[1]
                grad = pending.pop(current, None)
            if current.hooks is None and grad is not None and current.single and not inner:
                edges = None if current.lone else current.edges if flow is None else _within(flow, current.edges)
                grads = current.vjp_recorded(grad, edges, keep) if record else current.vjp(grad, edges, keep)  # type: ignore[arg-type]
                if edges is None:
                    edge = current.edge
                    if grads is not None and edge not in pending:
                        array = grads._array if record else grads
                        # The node's own tuple is no reason to compare, but all 0-d shapes are one object.
                        shape = edge.shape
                        if (
                            (shape is not current.shape or not shape) and array.shape != shape
                        ) or array.dtype is not edge.dtype:
                            grads = validate_gradient(grads, edge, current)
                        if edge.__class__ is not AccumulateGrad:
                            current, grad, grads, array = edge, grads, None, None
                            continue
                        if awaited is None:
                            pending[edge] = grads
                            leaves[edge] = None
                            current = grad = grads = array = None
                            continue
                    edges = current.edges
            else:
                edges = current.edges if flow is None else _within(flow, current.edges)
                grads = visit(current, grad, edges, keep, record, several, heap, wanted, inner)
                if grads is _WAITING:
                    current = None
                    continue
            if len(edges) == 1:
                grads = (grads,)
            previous, current, grad = current, None, None
            for edge, arrived in zip(edges, grads):  # noqa: B905 - a vjp returns one gradient per edge
                if edge is None:
                    continue
                if arrived is not None:
                    array = arrived._array if record else arrived
                    shape = edge.shape
                    if (
                        (shape is not previous.shape or not shape) and array.shape != shape
                    ) or array.dtype is not edge.dtype:
                        arrived = validate_gradient(arrived, edge, previous)
                    if edge is current:
                        grad = sum_gradients(grad, arrived)
                    elif edge in pending:
                        add_pending(pending, owned, edge, arrived)
                    elif edge.__class__ is AccumulateGrad:
                        pending[edge] = arrived
                        leaves[edge] = None
                    elif current is None:
                        current, grad = edge, arrived
                    else:
                        pending[edge] = arrived
                        heappush(heap, (edge.number, edge))
                elif edge is not current and edge not in pending and edge.__class__ is not AccumulateGrad:
                    # No gradient arrived at this edge, but the node is visited because it may have hooks.
                    pending[edge] = None
                    heappush(heap, (edge.number, edge))
                if awaited is not None and edge.__class__ is AccumulateGrad:
                    awaited[edge] -= 1
                    if not awaited[edge] and (edge in pending or edge.hooks is not None):
                        array = arrived = None
                        leaves.pop(edge, None)
                        _visit_leaves((edge,), finish, pending, owned, record, wanted, write)
            grads = arrived = array = None
        _visit_leaves(leaves, finish, pending, owned, record, wanted, write)
    except Exception as error:
        _note_origin(error, current or previous)
        raise


def _visit_leaves(
    leaves: Iterable[AccumulateGrad], finish: Callable[..., None], pending: dict[Edge, Gradient], owned: set[Edge],
    record: bool, wanted: Wanted, write: bool,
) -> None:  # fmt: skip
    """Call ``finish``, which is :func:`visit_leaf` or the like, for each of ``leaves`` with its gradient in ``pending``.

    This function has no compiled copy, because ``accumulate.py`` relies on the reference counts of interpreted calls.
    ``owned``, ``record``, ``wanted`` and ``write`` are as for :func:`_run`.
    """
    for leaf in leaves:
        finish(leaf, pending.pop(leaf, None), leaf in owned, record, wanted, write)


def _enter(
    roots: Sequence[Root],
    flow: set[Edge] | None,
    pending: dict[Edge, Gradient],
    leaves: dict[AccumulateGrad, None],
    heap: Heap,
) -> None:
    """Enter the ``roots`` of a backward pass in the dict ``pending``, and in ``leaves`` or ``heap``.

    ``roots`` are pairs of a gradient edge and its gradient, and ``pending`` is a dict from gradient edges to gradients.
    The edge of a leaf is also entered in ``leaves``, and any other edge in ``heap``, the priority queue of nodes to
    run. If ``flow`` is a set, only edges in this set are entered: those that lead to a requested gradient.
    """
    for edge, grad in roots:
        if edge in pending:
            pending[edge] = pending[edge] + grad
        elif flow is None or edge in flow:
            pending[edge] = grad
            if edge.__class__ is AccumulateGrad:
                leaves[edge] = None
            else:
                heappush(heap, (edge.number, edge))


def _within(flow: set[Edge], edges: Edges) -> Edges:
    """Return ``edges``, with each edge that is not in the set ``flow`` replaced by None.

    ``flow`` contains the edges that lead to a gradient requested by the argument ``inputs``. No gradients are computed
    for other edges.
    """
    return tuple([edge if edge in flow else None for edge in edges])


#: Result of :func:`_visit` if there are no gradients to pass on.
_WAITING = object()


def _visit(
    edge: Edge, grad: Gradient, edges: Edges, keep: bool, record: bool, several: dict[Node, list[Gradient]], heap: Heap,
    wanted: Wanted, inner: Inner, apply: Apply | None = None,
) -> Gradients:  # fmt: skip
    """Run the node at ``edge``, and return the gradients for ``edges``, the gradient edges of the node's inputs.

    :func:`_run` calls this function for nodes that its fast path does not handle, such as nodes with hooks. The
    constant ``_WAITING`` is returned if there are no gradients to pass on. This is the case if ``edge`` belongs to one
    of several results of a node, which runs later. It is also the case if the gradient at ``edge`` has been requested
    and no other requested gradient depends on it.

    Args:
        edge: Gradient edge to visit.
        grad: Gradient at ``edge``.
        edges: Gradient edges of the node's inputs.
        keep: Argument of :func:`run_backward`.
        record: Argument of :func:`run_backward`.
        several: Dict from each node with several results to the list of the gradients of its results.
        heap: Priority queue of the nodes to run.
        wanted: Dict from edges to requested gradients.
        inner: Dict from each requested edge that is not a leaf to whether the edge leads to another requested edge. The
            value is None, not False, in ``backward(inputs=…)``, which runs the node also if no gradient is passed on.
        apply: Method of the profiler that is called instead of :func:`_apply`, or None.
    """
    if edge in inner:
        if not inner[edge]:
            if edge.hooks is not None:
                grad = run_tensor_hooks(edge.hooks, grad, record)
            wanted[edge] = grad  # type: ignore[index]
            if inner[edge] is None and edge.single:
                _run_unused(edge, grad, keep, record)
            return _WAITING
        # Before the hooks, as in PyTorch: they change only the gradients passed on.
        wanted[edge] = grad  # type: ignore[index]
    if edge.__class__ is OutputEdge:
        _collect_output_grad(edge, grad, several, heap)
        return _WAITING
    if edge.hooks is not None:
        grad = run_tensor_hooks(edge.hooks, grad, record)
        if edge.hooks.before and edge.single:
            grad = run_node_pre_hooks(edge, (grad,), record)[0]
    return (apply or _apply)(edge, grad, edges, keep, record, several)  # type: ignore[arg-type]  # a Node


def _run_unused(node: Node, grad: Gradient, keep: bool, record: bool) -> None:
    """Run ``node`` and its hooks without computing gradients of its inputs, as in ``backward(inputs=…)``.

    The saved values are freed unless ``keep`` is true.
    """
    if grad is None:
        return
    hooks, unused = node.hooks, (None,) * len(node.edges)
    if hooks is not None and hooks.before:
        grad = run_node_pre_hooks(node, (grad,), record)[0]
    if record:
        node.vjp_recorded(grad, unused, keep)
    else:
        node.vjp(grad, unused, keep)
    if hooks is not None and hooks.after:
        run_node_post_hooks(node, None if len(unused) == 1 else unused, grad, record)


def _collect_output_grad(output: OutputEdge, grad: Gradient, several: dict[Node, list[Gradient]], heap: Heap) -> None:
    """Store ``grad``, the gradient of one result of a node with several results.

    ``output`` is the gradient edge of this result. The gradient is stored in the list ``several[node]``, which has an
    item for each result of the node. When the first gradient of a node is stored, the node is added to ``heap``, the
    priority queue of nodes to run.
    """
    node = output.node
    if node not in several:
        several[node] = [None] * node.outputs
        heappush(heap, (node.number, node))
    held = several[node][output.position]
    several[node][output.position] = grad if held is None else held if grad is None else held + grad


def _apply(
    node: Node, grad: Gradient, edges: Edges, keep: bool, record: bool, several: dict[Node, list[Gradient]]
) -> Gradients:
    """Run ``node`` and its hooks for the incoming gradient ``grad``, and return the gradients for ``edges``.

    If the node has several results, ``grad`` is ignored, and the list ``several[node]`` of the gradients of its results
    is used. If ``keep`` is true, saved values are not freed. ``record`` is true if the backward pass is recorded
    (``create_graph=True``).
    """
    if node in several:
        grad = several.pop(node)
        if node.result_hooks is not None:
            for position, hooks in sorted(node.result_hooks.items()):
                if grad[position] is None and node.merged:
                    continue
                grad[position] = run_tensor_hooks(hooks, grad[position], record)
        if all(each is None for each in grad) and not node.takes_none:
            grad = None
        elif node.hooks is not None and node.hooks.before:
            grad = run_node_pre_hooks(node, tuple(grad), record)
    if grad is None and not node.takes_none:
        grads: Gradients = None if len(edges) == 1 else (None,) * len(edges)
    elif anomaly_mode.setting.enabled:
        grads = anomaly_mode.run(node, grad, edges, keep)
    else:
        grads = node.vjp_recorded(grad, edges, keep) if record else node.vjp(grad, edges, keep)
    if node.hooks is not None and node.hooks.after:
        grads = run_node_post_hooks(node, grads, grad, record)
    return grads


def _is_chain(roots: Sequence[Root], wanted: dict[Edge, Gradient]) -> bool:
    """Whether the graph is a chain of nodes from the single root in ``roots`` to the only leaf in ``wanted``.

    Every node of such a chain has exactly one gradient edge and leads to the requested gradient. So no :class:`Plan` is
    needed.
    """
    if len(roots) != 1 or len(wanted) > 1:
        return False
    edge = roots[0][0]
    while edge.lone:
        edge = edge.edge
    return edge.__class__ is AccumulateGrad and edge in wanted


class Plan:
    """Plan of a backward pass, made by a traversal of the graph before the backward pass.

    A plan is needed if gradients of certain tensors are requested (``inputs``), or if leaves are visited in PyTorch's
    order (see Note [The order of leaves]).

    Attributes:
        seen: Set of all edges at which gradients can arrive, except the edges of leaves.
        flow: Set of the edges that lead to a requested gradient, and of the requested edges; None if all edges are
            visited.
        inner: Dict from each requested edge that is not a leaf to whether the edge leads to another requested edge.
        awaited: Dict from each leaf to the number of gradients that it will receive; None if leaves are visited at the
            end.
    """

    __slots__ = ("__weakref__", "awaited", "flow", "inner", "seen")

    def __init__(self, roots: Sequence[Root], wanted: Wanted, in_order: bool = False) -> None:
        seen: set[Edge] = set()
        stack = [edge for edge, _ in roots]
        while stack:
            edge = stack.pop()
            while edge not in seen and edge.__class__ is not AccumulateGrad:
                seen.add(edge)
                if not edge.lone:
                    stack += (
                        (edge.node,)
                        if edge.__class__ is OutputEdge
                        else [each for each in edge.edges if each is not None]
                    )
                    break
                edge = edge.edge
        flow = None
        inner: Inner = {}
        if wanted is not None:
            flow = set(wanted)
            for edge in sorted(seen, key=_by_number, reverse=True):
                if edge.lone:
                    leads = edge.edge in flow
                elif edge.__class__ is OutputEdge:
                    leads = edge.node in flow
                else:
                    leads = not flow.isdisjoint(edge.edges)
                if edge in flow:
                    inner[edge] = leads
                elif leads:
                    flow.add(edge)
        self.seen, self.flow, self.inner = seen, flow, inner
        self.awaited = _awaited(roots, seen if flow is None else flow, wanted) if in_order else None

    def serves(self, edge: Edge) -> bool:
        """Whether the backward pass computes the gradient at ``edge``, a gradient edge."""
        if edge.__class__ is AccumulateGrad:
            return self.awaited is not None and edge in self.awaited
        node = edge.node
        return node in self.seen and (self.flow is None or node in self.flow or edge in self.flow)


_running: ContextVar[Plan | None] = ContextVar("running", default=None)
#: Return the plan of the backward pass that is running in this thread, if leaves are visited in PyTorch's order.
running_plan = _running.get


_by_number = attrgetter("number")


def _awaited(roots: Sequence[Root], visited: set[Edge], wanted: Wanted) -> dict[Edge, int]:
    """Return a dict with the number of gradients that each leaf will receive in the backward pass.

    ``roots`` is the argument of :func:`run_backward`, and ``visited`` are the edges that the backward pass visits. If
    the dict ``wanted`` of requested gradients is not None, leaves that are not in ``wanted`` are left out.
    """
    awaited: dict[Edge, int] = dict.fromkeys((edge for edge, _ in roots if edge.__class__ is AccumulateGrad), 0)
    for each in visited:
        for edge in each.edges:
            if edge.__class__ is AccumulateGrad and (wanted is None or edge in wanted):
                awaited[edge] = awaited.get(edge, 0) + 1
    return awaited


# --- One node outside a backward pass -------------------------------------------------------------------------------


def run_one(node: Node | AccumulateGrad, grads: tuple[Gradient, ...]) -> Gradients:
    """Run a single node, as in a call ``tensor.grad_fn(grad)``, with the incoming gradients ``grads``.

    Return the gradients of the node's inputs, a Tensor or a tuple. If the node is an AccumulateGrad, add the gradient
    to the leaf and return an empty tuple.
    """
    expected = getattr(node, "outputs", 1)
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    record = bool(recording())
    values = tuple(unwrap_unless_recorded(each, record) for each in grads)
    if node.__class__ is AccumulateGrad:
        visit_leaf(node, values[0], False, record, None, True)
        return ()
    grad = values[0] if node.single else values
    if record:
        sent = node.vjp_recorded(grad, node.edges, True)  # type: ignore[union-attr]
    else:
        saved_errstate = errors.get()
        try:
            errors.set(IGNORED)
            sent = node.vjp(grad, node.edges, True)  # type: ignore[union-attr]
        finally:
            errors.set(saved_errstate)
    if node.lone and node.operands > 1:
        sent = node.spread(sent)
    elif len(node.edges) == 1:
        return as_tensor(sent)
    listed = node.listed or range(len(sent))  # type: ignore[union-attr]
    return as_tensor(sent[listed[0]]) if len(listed) == 1 else tuple([as_tensor(sent[index]) for index in listed])


Node.run = staticmethod(run_one)
