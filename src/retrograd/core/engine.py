"""The backward sweep: from roots to leaves, every node once, youngest first.

Nodes are numbered in the order in which they were made, and a node is always younger than what it leads to. So a heap
that hands out the youngest pending node never hands one out before all gradients for it have arrived, and no pass to
count dependencies is needed. The engine, and only the engine, fits a gradient to its place (sums broadcast dimensions
away, casts, drops imaginary parts) and adds up gradients that meet.

Note [The order of leaves]. What arrives at leaves is added to ``grad`` when the sweep ends. Nobody can tell that from
PyTorch's order, which serves a leaf as soon as its last gradient is there, but hooks on leaves: while any leaf that has had
one lives, a pass before the sweep counts what each leaf will get.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from typing import Any

from ..runtime.fp_warnings import IGNORED, errors
from . import anomaly_mode
from .accumulate import _add, _sum, _visit_leaf
from .error_context import add_origin_note
from .grad_mode import recording, restore_recording, set_recording
from .gradients import _as_level, as_tensor, validate_gradient
from .graph import AccumulateGrad, Node, OutputEdge
from .hooks import _run_node_pre_hooks, _run_post_hooks, _run_pre_hooks


def run_backward(
    roots: Sequence[tuple[Any, Any]],
    keep: bool,
    record: bool,
    wanted: dict[Any, Any] | None = None,
    write: bool = True,
    silent: bool = False,
) -> None:
    """Run the graph backwards from ``roots``, pairs of a place and the gradient that arrives there.

    ``keep``: leave saved values in place for another sweep. ``record``: gradients are Tensors and the sweep records
    itself. ``wanted``: only gradients at these places are asked for; they are written into it. ``write``: add to the
    ``grad`` of leaves. ``silent``: gradients may be Tensors (of a transformation), but nothing is recorded.
    """
    before, heeded = recording(), errors.get()
    plan = token = None
    try:
        if before is not (record and not silent):
            set_recording(record and not silent)
        if not record:  # else the operations see to NumPy's warnings themselves
            errors.set(IGNORED)
        if AccumulateGrad.hooked:
            plan = Plan(roots, wanted)
            token = _running.set(plan)
        elif wanted is not None and not _just_a_chain(roots, wanted):
            plan = Plan(roots, wanted)
        _run(roots, keep, record, wanted, write, plan)
    except Exception as error:
        _tell_place(error)
        raise
    finally:
        try:
            restore_recording(before)
        finally:  # an interrupt may come between the two
            errors.set(heeded)
        if token is not None:
            _running.reset(token)


def _tell_place(error: Exception) -> None:
    """Note on an error which place of the graph was being served: the functions below hold it in a local."""
    place, trace = None, error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code is _run.__code__:
            place = frame.f_locals.get("place") or frame.f_locals.get("previous")
        elif frame.f_globals is _visit_leaf.__globals__ and "leaf" in frame.f_locals:
            place = frame.f_locals["leaf"]
    add_origin_note(error, place)


def _run(
    roots: Sequence[tuple[Any, Any]], keep: bool, record: bool, wanted: dict[Any, Any] | None, write: bool, plan: Any
) -> None:
    """The loop. The next place to serve and its gradient are kept in two locals, so that along a chain neither the
    heap nor ``pending`` is touched, and nodes with one edge, the most common by far, are served on a short way.
    """
    flow: set[Any] | None = None
    awaited: dict[Any, int] | None = None
    inner: dict[Any, bool] = {}
    if plan is not None:
        flow, inner, awaited = plan.flow, plan.inner, plan.awaited
    if anomaly_mode.setting.enabled:
        anomaly_mode.begin()
        inner = {**inner, None: False}  # sends every place the long way
    pending: dict[Any, Any] = {}  # the gradient that has arrived so far, per place
    owned: set[Any] = set()  # places whose gradient is a sum that nobody else holds
    leaves: dict[Any, None] = {}  # leaves that got something, in order
    heap: list[tuple[int, Any]] = []
    several: dict[Any, list[Any]] = {}  # the gradients of all results, per node that has several
    place = None
    if len(roots) == 1 and plan is None and roots[0][0].__class__ is not AccumulateGrad:
        ((place, grad),) = roots
    else:
        _enter(roots, flow, pending, leaves, heap)
    while True:
        if place is None:
            if not heap:
                break
            place = heappop(heap)[1]
            grad = pending.pop(place, None)
        elif heap and heap[0][0] < place.number:
            pending[place] = grad
            place = heapreplace(heap, (place.number, place))[1]
            grad = pending.pop(place, None)
        if place.hooks is None and grad is not None and place.single and not inner:
            edges = None if place.lone else place.edges if flow is None else _within(flow, place.edges)
            grads = place.vjp_recorded(grad, edges, keep) if record else place.vjp(grad, edges, keep)
            if edges is None:
                edge = place.edge
                if grads is not None and edge not in pending:
                    array = grads._array if record else grads
                    shape = edge.shape  # one tuple with the node's: it fits (but all 0-d places share theirs)
                    if (
                        (shape is not place.shape or not shape) and array.shape != shape
                    ) or array.dtype is not edge.dtype:
                        grads = validate_gradient(grads, edge, place)
                    if edge.__class__ is not AccumulateGrad:
                        place, grad, grads, array = edge, grads, None, None
                        continue
                    if awaited is None:
                        pending[edge] = grads
                        leaves[edge] = None
                        place = grad = grads = array = None
                        continue
                edges = place.edges
        else:
            edges = place.edges if flow is None else _within(flow, place.edges)
            grads = _visit(place, grad, edges, keep, record, several, heap, wanted, inner)
            if grads is _WAITING:
                place = None
                continue
        if len(edges) == 1:
            grads = (grads,)
        previous, place, grad = place, None, None
        for edge, arrived in zip(edges, grads):  # noqa: B905 - a vjp gives as many as there are edges
            if edge is None:
                continue
            if arrived is not None:
                array = arrived._array if record else arrived
                shape = edge.shape
                if (
                    (shape is not previous.shape or not shape) and array.shape != shape
                ) or array.dtype is not edge.dtype:
                    arrived = validate_gradient(arrived, edge, previous)
                if edge is place:
                    grad = _sum(grad, arrived)
                elif edge in pending:
                    _add(pending, owned, edge, arrived)
                elif edge.__class__ is AccumulateGrad:
                    pending[edge] = arrived
                    leaves[edge] = None
                elif place is None:
                    place, grad = edge, arrived
                else:
                    pending[edge] = arrived
                    heappush(heap, (edge.number, edge))
            elif edge is not place and edge not in pending and edge.__class__ is not AccumulateGrad:
                # No gradient came along this edge: the place is served all the same, for its hooks' sake.
                pending[edge] = None
                heappush(heap, (edge.number, edge))
            if awaited is not None and edge.__class__ is AccumulateGrad:
                awaited[edge] -= 1
                if not awaited[edge] and (edge in pending or edge.hooks is not None):
                    array = arrived = None
                    leaves.pop(edge, None)
                    _visit_leaf(edge, pending.pop(edge, None), edge in owned, record, wanted, write)
        grads = arrived = array = None
    for leaf in leaves:
        _visit_leaf(leaf, pending.pop(leaf), leaf in owned, record, wanted, write)


def _enter(
    roots: Any, flow: Any, pending: dict[Any, Any], leaves: dict[Any, None], heap: list[tuple[int, Any]]
) -> None:
    """Let the gradients with which a sweep begins wait at their places."""
    for place, grad in roots:
        if place in pending:
            pending[place] = pending[place] + grad
        elif flow is None or place in flow:
            pending[place] = grad
            if place.__class__ is AccumulateGrad:
                leaves[place] = None
            else:
                heappush(heap, (place.number, place))


def _within(flow: set[Any], edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """``edges``, without those along which nobody wants a gradient."""
    return tuple([edge if edge in flow else None for edge in edges])


_WAITING = object()


def _visit(
    place: Any, grad: Any, edges: Any, keep: bool, record: bool, several: Any, heap: Any, wanted: Any, inner: Any
) -> Any:
    """What a place sends along ``edges`` if it is wanted itself, has hooks, or is one result of several.

    ``_WAITING`` for a place that sends nothing: a wanted one that leads to no other, and a result of several, which
    leaves sending to its node.
    """
    if place in inner:
        if not inner[place]:
            wanted[place] = grad if place.hooks is None else _run_pre_hooks(place.hooks, grad, record)
            return _WAITING
        wanted[place] = grad  # as it arrived: PyTorch lets hooks act on what goes on from here
    if place.__class__ is OutputEdge:
        _collect_output_grad(place, grad, several, heap)
        return _WAITING
    if place.hooks is not None:
        grad = _run_pre_hooks(place.hooks, grad, record)
        if place.hooks.before and place.single:
            grad = _run_node_pre_hooks(place, (grad,), record)[0]
    return _apply(place, grad, edges, keep, record, several)


def _collect_output_grad(
    place: OutputEdge, grad: Any, several: dict[Any, list[Any]], heap: list[tuple[int, Any]]
) -> None:
    """Put the gradient of one result beside those of its siblings; the first to come announces the node."""
    node = place.node
    if node not in several:
        several[node] = [None] * node.outputs
        heappush(heap, (node.number, node))
    held = several[node][place.position]
    several[node][place.position] = grad if held is None else held if grad is None else held + grad


def _apply(place: Any, grad: Any, edges: Any, keep: bool, record: bool, several: dict[Any, list[Any]]) -> Any:
    """The gradients that a node sends along ``edges``, by its rules and its hooks."""
    if place in several:
        grad = several.pop(place)
        if place.result_hooks is not None:
            for position, hooks in sorted(place.result_hooks.items()):
                grad[position] = _run_pre_hooks(hooks, grad[position], record)
        if all(each is None for each in grad) and not place.takes_none:
            grad = None
        elif place.hooks is not None and place.hooks.before:
            grad = _run_node_pre_hooks(place, tuple(grad), record)
    if grad is None and not place.takes_none:
        grads: Any = None if len(edges) == 1 else (None,) * len(edges)
    elif anomaly_mode.setting.enabled:
        grads = anomaly_mode.run(place, grad, edges, keep)
    else:
        grads = place.vjp_recorded(grad, edges, keep) if record else place.vjp(grad, edges, keep)
    if place.hooks is not None and place.hooks.after:
        grads = _run_post_hooks(place, grads, grad, record)
    return grads


def _just_a_chain(roots: Sequence[tuple[Any, Any]], wanted: dict[Any, Any]) -> bool:
    """Whether nothing can be reached from ``roots`` but by a chain to the one leaf that is ``wanted``: no plan is needed."""
    if len(roots) != 1 or len(wanted) > 1:
        return False
    place = roots[0][0]
    while place.lone:
        place = place.edge
    return place.__class__ is AccumulateGrad and place in wanted


class Plan:
    """What a sweep that is asked for more than the gradients of all leaves must know of the graph beforehand.

    ``seen``: the places that gradients can reach, but leaves. ``flow``: those that they are to reach (None: all).
    ``inner``: the wanted ones that are not leaves, each with whether it leads to another. ``awaited``: how many gradients
    each leaf will be sent, if any leaf ever had a hook (see Note [The order of leaves]).
    """

    __slots__ = ("__weakref__", "awaited", "flow", "inner", "seen")

    def __init__(self, roots: Sequence[tuple[Any, Any]], wanted: dict[Any, Any] | None) -> None:
        seen: set[Any] = set()
        stack = [place for place, _ in roots]
        while stack:
            place = stack.pop()
            while place not in seen and place.__class__ is not AccumulateGrad:
                seen.add(place)
                if not place.lone:
                    stack += (
                        (place.node,)
                        if place.__class__ is OutputEdge
                        else [each for each in place.edges if each is not None]
                    )
                    break
                place = place.edge
        flow = None
        inner: dict[Any, bool] = {}
        if wanted is not None:
            flow = set(wanted)
            for place in sorted(seen, key=_by_age, reverse=True):
                if place.lone:
                    leads = place.edge in flow
                elif place.__class__ is OutputEdge:
                    leads = place.node in flow
                else:
                    leads = not flow.isdisjoint(place.edges)
                if place in flow:
                    inner[place] = leads
                elif leads:
                    flow.add(place)
        self.seen, self.flow, self.inner = seen, flow, inner
        hooked = AccumulateGrad.hooked
        self.awaited = _awaited(roots, seen if flow is None else flow, wanted) if hooked else None

    def serves(self, place: Any) -> bool:
        """Whether the sweep comes to ``place``."""
        if place.__class__ is AccumulateGrad:
            return self.awaited is not None and place in self.awaited
        node = place.node
        return node in self.seen and (self.flow is None or node in self.flow or place in self.flow)


_running: ContextVar[Plan | None] = ContextVar("running", default=None)
#: The plan of the sweep that is running in this thread: only known once ``AccumulateGrad.hooked``.
running = _running.get


_by_age = attrgetter("number")


def _awaited(roots: Sequence[tuple[Any, Any]], places: set[Any], wanted: dict[Any, Any] | None) -> dict[Any, int]:
    """How many gradients each leaf will be sent; those that nobody wants are sent none."""
    awaited = dict.fromkeys((place for place, _ in roots if place.__class__ is AccumulateGrad), 0)
    for place in places:
        for edge in place.edges:
            if edge.__class__ is AccumulateGrad and (wanted is None or edge in wanted):
                awaited[edge] = awaited.get(edge, 0) + 1
    return awaited


# --- One node outside a backward pass -------------------------------------------------------------------------------


def run_one(place: Any, grads: tuple[Any, ...]) -> Any:
    """What one node makes of ``grads``, outside any sweep: as a Tensor, or a tuple of them."""
    record = bool(recording())
    given = tuple(_as_level(each, record) for each in grads)
    if place.__class__ is AccumulateGrad:
        _visit_leaf(place, given[0], False, record, None, True)
        return ()
    grad = given[0] if place.single else given
    if record:
        sent = place.vjp_recorded(grad, place.edges, True)
    else:
        heeded = errors.get()
        try:
            errors.set(IGNORED)
            sent = place.vjp(grad, place.edges, True)
        finally:
            errors.set(heeded)
    if place.lone and place.operands > 1:
        sent = place.spread(sent)
    elif len(place.edges) == 1:
        return as_tensor(sent)
    listed = place.listed or range(len(sent))
    return as_tensor(sent[listed[0]]) if len(listed) == 1 else tuple([as_tensor(sent[index]) for index in listed])


Node.run = staticmethod(run_one)
