"""Recording of forward values and of backward passes, for a page.

A :class:`Recorder` is a handler of calls (Note [Interception] in ``dispatch/intercept.py``): it takes the result of each
operation that creates a node. When a backward pass begins, an :class:`Observer` of the engine (``core/engine.py``) reads
the graph and then takes, node by node, the gradients that arrive and leave. A :class:`Trace` has all of this as texts
and copied values; it refers to no node, so that it keeps no memory of the program alive.

:func:`replay` makes a trace of a graph that was recorded before: it runs a backward pass with an observer that calls no
hook and writes no ``grad``.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from types import FrameType
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy

from ...autograd.function import BackwardCFunction
from ...core import accumulate, engine, grad_mode
from ...core.gradients import validate_gradient
from ...core.graph import AccumulateGrad, OutputEdge, dead_ref
from ...core.saved_tensor_hooks import PackedValue
from ...core.tensor import Tensor, memory_owner
from ...core.views import CopySlices
from ...dispatch.intercept import GO_ON, Call, Handler
from ...operations.creation.random import get_rng_state, set_rng_state
from ...runtime import user_frame
from ..explain import why_no_gradient
from ..graph_reader import (
    GraphRecord,
    Names,
    Operand,
    Step,
    array_parameters,
    names_in_scope,
    read_edges,
    saved_operand,
)
from ..tracing import note_operands, note_result
from .summary import Value, take

NUMBERS = (bool, int, float, complex)
DEPTH = 8  # functions on the call stack whose variables give names


@dataclass
class Saved:
    """Value that an operation keeps for its derivative; ``source`` is the entry whose value it is, or None."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    nbytes: int
    value: Value | None
    source: int | None
    state: str


@dataclass
class Entry:
    """Node of a page: an operation, a leaf, a constant (an operand without gradient) or a result.

    ``inputs`` are pairs (index of the entry, name of the operand). ``values`` has one value for each result of the
    operation, None where it was not kept. ``operation`` is the declaration of the operation or the custom Function.
    """

    kind: str
    name: str
    node: str = ""
    label: str = ""
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    code: Any = None
    instruction: int = -1
    inputs: list[tuple[int, str]] = field(default_factory=list)
    values: list[Value | None] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    freed: bool = False
    nbytes: int = 0
    operation: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)
    hooks: list[str] = field(default_factory=list)
    why: str = ""
    module: str = ""
    requires_grad: bool = True


@dataclass
class Outgoing:
    """Gradient that an operation passes on to the entry ``target``, for its operand number ``index``.

    ``value`` is the gradient as it arrives, and ``raw_shape`` the shape of the gradient that the rule computed, before
    it was summed over broadcast dimensions. ``numbers`` are the numbers of one element by their names in the rule,
    ``result`` the computed number, and ``element`` the index of the element. ``lost`` is the number of elements that
    are 0 although the incoming gradient is not. ``broken`` tells that an element is NaN or infinite although the
    incoming gradient is finite. ``hooked`` is true if a hook after the operation has replaced the gradient by ``final``.
    """

    target: int
    index: int
    name: str
    value: Value | None
    raw_shape: tuple[int, ...] | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    element: tuple[int, ...] | None = None
    lost: int = 0
    broken: bool = False
    hooked: bool = False
    replaced: Value | None = None

    @property
    def final(self) -> Value | None:
        """Gradient that arrives at the target: ``value``, or the one by which a hook has replaced it."""
        return self.replaced if self.hooked else self.value


@dataclass
class Event:
    """Step of a backward pass; ``kind`` is ``start``, ``sum``, ``hook``, ``node`` or ``leaf``.

    ``incoming`` has one value for each result of the operation. ``parts`` are pairs (entry from which a gradient came,
    gradient). ``before`` and ``after`` are the gradient before and after a hook, or the ``grad`` of a leaf before and
    after the accumulation.
    """

    kind: str
    node: int
    incoming: list[Value | None] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    parts: list[tuple[int, Value | None]] = field(default_factory=list)
    before: Value | None = None
    after: Value | None = None
    freed: int = 0
    text: str = ""


@dataclass
class Trace:
    """Graph and backward pass as texts and values: what a page shows.

    ``line`` is the code object and instruction of the backward call. ``unused`` are names of tensors that require a
    gradient and are not in the graph. ``replayed`` is true if the pass was run for the page alone, ``stopped`` if an
    exception ended it, and ``requested`` if it computes the gradients of certain tensors only.
    """

    entries: list[Entry] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    line: tuple[Any, int] = (None, -1)
    replayed: bool = False
    record: bool = False
    stopped: bool = False
    requested: bool = False


# --- Reading the graph ----------------------------------------------------------------------------------------------


class Reader:
    """Converter of a :class:`GraphRecord` to the entries of a :class:`Trace`.

    ``names`` are names of the program's tensors, and ``forward`` the :class:`Forward` of a recording or None.
    ``tensors`` are the results, if they are known. While the pass runs, ``numbers`` maps the nodes and leaves of the
    graph to indices of entries.
    """

    def __init__(
        self, reading: GraphRecord, names: Names, forward: Forward | None, tensors: Sequence[Any] = ()
    ) -> None:
        self.trace: Trace = Trace()
        self.numbers: dict[Any, int] = {}
        self.reading: GraphRecord = reading
        self.names: Names = names
        self.forward: Forward | None = forward
        self._taken: dict[int, tuple[Any, Value | None]] = {}  # by identity of the array, which is kept alive
        self._constants: dict[Any, int] = {}
        self._in_scope: dict[int, Any] = {}
        self._kept: dict[Any, set[int]] = {}  # by node, the identities of the memory that it keeps
        self._keepers: dict[int, list[int]] = {}  # by identity, the number of nodes that keep it, and its bytes
        for each in (*names.held, *tensors):
            edge = each._grad_edge if isinstance(each, Tensor) else None
            if edge is not None and edge.__class__ is not AccumulateGrad:
                edge = edge if each._view is None else Tensor._current(each)
                self._in_scope[_key(edge)] = each._array
        owners: set[int] = set()
        for leaf in reading.leaves:
            owners.add(id(memory_owner(leaf.place.array)))
        for step in reversed(reading.steps):
            self._add_step(step, owners)
        for index, root in enumerate(reading.roots):
            self._add_root(root, tensors[index] if tensors else None)
        used = {id(leaf.place) for leaf in reading.leaves}
        for each in names.held[: names.near]:
            edge = each._grad_edge if isinstance(each, Tensor) else None
            if edge.__class__ is AccumulateGrad and id(edge) not in used:
                used.add(id(edge))
                self.trace.unused.append(names.places.get(id(edge), ""))

    def release(self, node: Any) -> int:
        """Return the number of bytes that no operation keeps any more, once ``node`` has freed its values."""
        found = 0
        for each in self._kept.pop(node, ()):
            keepers = self._keepers[each]
            keepers[0] -= 1
            found += 0 if keepers[0] else keepers[1]
        return found

    def value_of(self, array: Any) -> Value | None:
        """Return the value of ``array``, which is taken once however often it is read."""
        found = self._taken.get(id(array))
        if found is None:
            found = self._taken[id(array)] = array, take(array)
        return found[1]

    def finish(self) -> Trace:
        """Forget the graph, and return the trace."""
        self.numbers.clear()
        self._taken.clear()
        self._in_scope.clear()
        self._kept.clear()
        del self.reading, self.names
        return self.trace

    def _add(self, entry: Entry) -> int:
        self.trace.entries.append(entry)
        return len(self.trace.entries) - 1

    def _add_leaf(self, leaf: Any) -> int:
        place = leaf.place
        if place not in self.numbers:
            self.numbers[place] = self._add(
                Entry(
                    "leaf", leaf.name or "a leaf", "AccumulateGrad", leaf.name, leaf.shape, leaf.dtype, place.code,
                    place.instruction, values=[self.value_of(place.array)], hooks=leaf.hooks,
                )
            )  # fmt: skip
        return self.numbers[place]

    def _add_root(self, root: Operand, tensor: Any) -> None:
        """Add the entry of a result, which has the name of the tensor and the value of its operation."""
        if root.step is None and root.leaf is None:
            entry = Entry("constant", root.label or "a tensor", label=root.label, shape=root.shape, dtype=root.dtype)
            entry.requires_grad = False
            if tensor is not None:
                entry.values, entry.why = [self.value_of(tensor._array)], why_no_gradient(tensor)
            self.trace.roots.append(self._add(entry))
            return
        if root.step is not None:
            step = self.reading.steps[root.step - 1]
            source = self.numbers[step.node]
        else:
            source = self._add_leaf(root.leaf)
        of = self.trace.entries[source]
        value = of.values[root.result] if root.result < len(of.values) else None
        if root.leaf is not None:
            self.trace.roots.append(source)
            return
        shape = of.shape if len(of.values) <= 1 or value is None else tuple(value.summary["shape"])
        entry = Entry("result", of.label or "result", label=of.label, shape=shape, dtype=of.dtype, values=[value])
        entry.inputs = [(source, "")]
        self.trace.roots.append(self._add(entry))

    def _add_step(self, step: Step, owners: set[int]) -> None:
        node = step.node
        entry = Entry(
            "operation", step.operation, node.name(), step.label, step.shape, step.dtype, node.code, node.instruction,
            freed=step.freed, hooks=step.hooks,
        )  # fmt: skip
        inner = node.inner if isinstance(node, CopySlices) else node
        entry.operation = inner._forward_cls if isinstance(inner, BackwardCFunction) else inner.operation
        entry.parameters = _parameters(inner)
        edges = node.spread(node.edge) if node.lone else node.edges
        given = self.forward.operands.get(node, {}) if self.forward is not None else {}
        arrays = iter(array_parameters(node))
        for index, operand in enumerate(step.operands):
            array = saved_operand(node, index) if index < len(edges) else next(arrays, None)
            self._add_input(entry, operand, array, given.get(index))
        entry.values = self._values(node, step)
        self._keep(entry, step, owners)
        recorded = self.forward.modules.get(node) if self.forward is not None else None
        entry.module = recorded if recorded is not None else self._module_of(entry)
        self.numbers[node] = self._add(entry)
        for saved in entry.saved:
            if saved.source == -1:
                saved.source = self.numbers[node]

    def _add_input(self, entry: Entry, operand: Operand, array: Any, given: Any) -> None:
        """Add ``operand`` to the inputs of ``entry``; ``array`` is its saved value, ``given`` its recorded one."""
        if operand.step is not None:
            source = self.numbers[self.reading.steps[operand.step - 1].node]
            entry.inputs.append((source, operand.name))
            return
        if operand.leaf is not None:
            entry.inputs.append((self._add_leaf(operand.leaf), operand.name))
            return
        if isinstance(array, NUMBERS) or isinstance(given, NUMBERS) or operand.why == "a number":
            number = array if isinstance(array, NUMBERS) else given
            entry.parameters["input" if operand.name == "self" else operand.name] = (
                number if isinstance(number, NUMBERS) else "a number"
            )
            return
        if operand.why == "not given":
            return
        value = self.value_of(array) if array is not None else given[1] if given is not None else None
        key: Any = (
            id(array) if array is not None else given[0] if given is not None else (len(self._constants), "unknown")
        )
        if key not in self._constants:
            shape, dtype = operand.shape, operand.dtype
            if value is not None and shape is None:
                shape = tuple(value.summary["shape"])
            made = given[2] if given is not None else None
            entry_of = Entry(
                "constant", operand.label or (made[0] if made else "constant"), label=operand.label, shape=shape, dtype=dtype,
                values=[value], why=operand.why, requires_grad=False,
            )  # fmt: skip
            if made:
                entry_of.code, entry_of.instruction = made[1]
            self._constants[key] = self._add(entry_of)
        entry.inputs.append((self._constants[key], operand.name))

    def _values(self, node: Any, step: Step) -> list[Value | None]:
        """Return the values of the results of ``node``: those recorded, or else those of variables and saved values."""
        recorded = self.forward.results.get(node) if self.forward is not None else None
        found: list[Value | None] = [None] * node.outputs
        for position in range(node.outputs):
            if recorded is not None and position in recorded:
                found[position] = recorded[position]
            elif (key := _key(node) if node.outputs == 1 else (id(node), position)) in self._in_scope:
                found[position] = self.value_of(self._in_scope[key])
        for each in getattr(node, "arrays", ()):
            array = getattr(node, each.held, None)
            if (
                each.kind == "result"
                and each.index < len(found)
                and found[each.index] is None
                and hasattr(array, "shape")
            ):
                found[each.index] = self.value_of(array)
        return found

    def _keep(self, entry: Entry, step: Step, owners: set[int]) -> None:
        """Add the saved values of ``step`` to ``entry``, and take the values of its operands from them."""
        inputs = {name: source for source, name in reversed(entry.inputs)}
        for each in step.kept:
            source = -1 if each.name == "result" else inputs.get(each.name)
            state = "packed by hooks" if each.packed else ""
            if each.changed:
                state = f"changed in place at {each.at.short()}" if each.at else "changed in place"
            value = None
            if each.array is not None and not each.changed:
                value = self.value_of(each.array)
                of = self.trace.entries[source] if source is not None and source >= 0 else None
                if of is not None and len(of.values) == 1:
                    of.values[0] = of.values[0] or value
            if each.array is not None:
                owner = memory_owner(each.array)
                if id(owner) not in owners:
                    owners.add(id(owner))
                    entry.nbytes += owner.nbytes
                    self._keepers[id(owner)] = [0, owner.nbytes]
                kept = self._kept.setdefault(step.node, set())
                if id(owner) in self._keepers and id(owner) not in kept:
                    kept.add(id(owner))
                    self._keepers[id(owner)][0] += 1
            else:
                entry.nbytes += each.nbytes
            entry.saved.append(Saved(each.name, each.shape, each.dtype, each.nbytes, value, source, state))

    def _module_of(self, entry: Entry) -> str:
        """Return the module to which ``entry`` belongs by the names of its parameters, such as ``model.blocks.0``."""
        for source, _ in entry.inputs:
            of = self.trace.entries[source]
            if of.kind == "leaf" and "." in of.label and "[" not in of.label:
                return of.label.rpartition(".")[0]
        return ""


def _key(edge: Any) -> Any:
    """Return a key for ``edge``, equal for all edges of the same result."""
    return (id(edge.node), edge.position) if edge.__class__ is OutputEdge else id(edge)


def _parameters(node: Any) -> dict[str, Any]:
    """Return the parameters of the call that ``node`` keeps for its rules, such as ``dim``, if they are plain values."""
    operation = getattr(node, "operation", None)
    found = {}
    for each in operation.saved() if operation is not None else ():
        value = getattr(node, each.held, None)
        if each.kind == "parameter" and _is_plain(value):
            found[each.name] = value
    return found


def _is_plain(value: Any) -> bool:
    if value.__class__ in (tuple, list):
        return len(value) <= 8 and all(map(_is_plain, value))
    return value is not None and isinstance(value, (*NUMBERS, str))


# --- The backward pass ----------------------------------------------------------------------------------------------


class Observer:
    """Recorder of one backward pass, whose methods the engine calls in place of its own.

    The methods call those of the engine, so that a recorded pass computes the same as any other. An error in the
    recording itself does not end the pass; it becomes a note of the trace.
    """

    def __init__(self, reader: Reader, roots: Sequence[Any], session: Recorder | None) -> None:
        self.reader: Reader = reader
        self.trace: Trace = reader.trace
        self.session: Recorder | None = session
        #: The gradients that have arrived at each edge: pairs (entry from which it came, value).
        self.arrived: dict[Any, list[tuple[int, Value | None]]] = {}
        self.leaving: list[Any] | None = None
        self.outside: BaseException | None = sys.exc_info()[1]
        for (edge, grad), number in zip(roots, self.trace.roots, strict=False):
            value = take(grad)
            self.trace.events.append(Event("start", number, [value]))
            self.arrived.setdefault(_key(edge), []).append((number, value))

    def end(self) -> None:
        """Store the trace as the last one of the recording."""
        error = sys.exc_info()[1]
        if error is not None and error is not self.outside:
            self.trace.stopped = True
            self.trace.notes.append(_stopped(error))
        trace = self.reader.finish()
        self.arrived.clear()
        if self.session is not None:
            self.session.running = False
            self.session.trace = trace

    def safely(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``, None if it raises an exception, which becomes a note."""
        try:
            return function(*args)
        except Exception as error:
            note = f"A part of the pass could not be recorded: {type(error).__name__}: {error}"
            if note not in self.trace.notes:
                self.trace.notes.append(note)
            return None

    def visit(
        self,
        edge: Any,
        grad: Any,
        edges: Any,
        keep: bool,
        record: bool,
        several: Any,
        heap: Any,
        wanted: Any,
        inner: Any,
    ) -> Any:
        """Return the result of ``engine._visit`` for ``edge``, with the events of sums, of hooks and of the node."""
        self.trace.record = record and bool(grad_mode.recording())
        self.trace.requested = wanted is not None
        self.applied: bool = edge.__class__ is OutputEdge or not edge.single
        self.before: Any = None if self.applied or edge.hooks is None else self.safely(take, grad)
        if edge.__class__ is OutputEdge or edge.single:
            self.safely(self._add_sum, edge, grad)
        result = engine._visit(edge, grad, edges, keep, record, several, heap, wanted, inner, self.apply)
        if not self.applied:
            self.safely(self._add_end, edge, wanted.get(edge, grad))
        return result

    def apply(self, node: Any, grad: Any, edges: Any, keep: bool, record: bool, several: Any) -> Any:
        """Return the gradients that ``engine._apply`` computes for ``node``, and record the call as an event."""
        self.applied = True
        held = several.get(node)
        incoming = self.safely(_taken, [grad] if held is None else [*held])
        hooks = node.hooks
        if held is None and hooks is not None and (hooks.tensor or hooks.before):
            self.safely(self._add_hook, node, self.before, incoming[0])
        if hooks is None and node.result_hooks is None:
            return self.run(engine._apply, node, grad, incoming, edges, keep, record, several)
        at = len(self.trace.events)
        with _Probes() as probes:
            arriving = probes.last(hooks.before) if held is not None and hooks is not None and hooks.before else []
            self.leaving = probes.first(hooks.after) if hooks is not None and hooks.after else None
            try:
                return self.run(engine._apply, node, grad, incoming, edges, keep, record, several)
            finally:
                if held is not None:
                    self.safely(self._add_result_hooks, at, incoming, arriving[0][0] if arriving else held)

    def run(
        self, function: Any, node: Any, grad: Any, incoming: Any, edges: Any, keep: bool, record: bool, several: Any
    ) -> Any:
        """Return ``function(node, grad, edges, keep, record, several)``, and record the call as an event."""
        event = self.safely(self._begin, node, incoming)
        saved = self.safely(_saved, node) or {}
        before = 0 if keep else self.safely(_kept_bytes, node)
        grads = function(node, grad, edges, keep, record, several)
        if event is not None:
            event.freed = self.reader.release(node) if before and not self.safely(_kept_bytes, node) else 0
            self.safely(self._add_outgoing, event, node, grad, edges, grads, saved)
        return grads

    def _begin(self, node: Any, incoming: Any) -> Event:
        event = Event("node", self.reader.numbers[node], incoming or [])
        self.trace.events.append(event)
        return event

    def _add_end(self, edge: Any, grad: Any) -> None:
        event = Event("node", self.reader.numbers[edge.node], [take(grad)])
        event.text = "The gradient of this result was requested (inputs=), and the pass ends here."
        self.trace.events.append(event)

    def _add_outgoing(self, event: Event, node: Any, grad: Any, edges: Any, grads: Any, saved: dict[str, Any]) -> None:
        leaving, self.leaving = self.leaving, None  # what the hooks after the node were called with
        given = leaving[0][0] if leaving else ()
        listed = list(node.listed or range(len(given)))
        for index, (edge, each) in enumerate(zip(edges, (grads,) if len(edges) == 1 else grads, strict=False)):
            if edge is not None and edge.variable_ref is not dead_ref:
                position = node.operand if node.lone else index
                ruled = given[listed.index(position)] if leaving and position in listed else each
                with numpy.errstate(all="ignore"):
                    found = self._outgoing(node, edge, position, grad, ruled, saved)
                if leaving:
                    found.replaced = take(_array_of(each))
                    found.hooked = not _is_same(found.value, found.replaced)
                self._arrive(edge, event.node, found.final)
                event.outgoing.append(found)
        if leaving:
            self._add_after_hooks(event)

    def _add_after_hooks(self, event: Event) -> None:
        """Add an event for each gradient that hooks after the node have changed, or one if they have changed none."""
        shown = "; ".join(each for each in self.trace.entries[event.node].hooks if each.startswith(AFTER))
        for each in event.outgoing:
            if each.hooked:
                text = f"{shown}: the gradient for `{each.name}` is another one"
                self.trace.events.append(Event("hook", event.node, before=each.value, after=each.replaced, text=text))
        if not any(each.hooked for each in event.outgoing):
            self.trace.events.append(Event("hook", event.node, text=f"{shown}: the gradients are unchanged"))

    def _outgoing(self, node: Any, edge: Any, position: int, grad: Any, each: Any, saved: dict[str, Any]) -> Outgoing:
        """Return the record of the gradient ``each`` that ``node`` passes on to ``edge``, its operand ``position``."""
        target = self.reader.numbers[edge.node]
        name = next((name for i, name in _names_of(node) if i == position), "")
        if each is None:
            return Outgoing(target, position, name, None)
        raw = _array_of(each)
        arrived = raw
        if not isinstance(raw, Tensor) and (raw.shape != edge.shape or raw.dtype != edge.dtype):
            try:
                arrived = validate_gradient(raw, edge, node)
            except RuntimeError:  # the engine raises it, too
                arrived = raw
        value = take(arrived)
        found = Outgoing(target, position, name, value)
        if not isinstance(raw, Tensor) and raw.shape != edge.shape:
            found.raw_shape = raw.shape
        _choose_element(found, node, _array_of(grad), raw, saved)
        return found

    def _arrive(self, edge: Any, source: int, value: Value | None) -> None:
        self.arrived.setdefault(_key(edge), []).append((source, value))

    def leaf(self, leaf: Any, grad: Any, owned: bool, record: bool, wanted: Any, write: bool) -> None:
        """Accumulate the gradient ``grad`` of ``leaf`` by ``accumulate.visit_leaf``, and record the call as an event."""
        event = self.safely(self._begin_leaf, leaf, grad)
        hooks = leaf.hooks
        if hooks is None or not (hooks.tensor or hooks.before):
            accumulate.visit_leaf(leaf, grad, owned, record, wanted, write)
        else:
            with _Probes() as probes:
                called = probes.last(hooks.before if write and hooks.before else hooks.tensor)
                try:
                    accumulate.visit_leaf(leaf, grad, owned, record, wanted, write)
                finally:
                    if event is not None and called:
                        self.safely(self._add_leaf_hooks, event, leaf, called[0][0])
        if event is not None:
            self.safely(self._end_leaf, event, leaf, wanted, write)

    def _begin_leaf(self, leaf: Any, grad: Any) -> Event:
        number = self.reader.numbers[leaf]
        self._add_sum(leaf, grad)
        event = Event("leaf", number, [take(grad)], before=take(_grad_of(leaf)))
        self.trace.events.append(event)
        return event

    def _add_leaf_hooks(self, event: Event, leaf: Any, grad: Any) -> None:
        """Add the event of the hooks of ``leaf`` before ``event``; ``grad`` is the gradient that they have given."""
        (before,), event.incoming = event.incoming, [take(grad[0] if isinstance(grad, tuple) else grad)]
        self.trace.events.remove(event)
        self._add_hook(leaf, before, event.incoming[0])
        self.trace.events.append(event)

    def _end_leaf(self, event: Event, leaf: Any, wanted: Any, write: bool) -> None:
        if wanted is not None and leaf not in wanted:
            event.text = "This gradient was not requested, and is dropped."
        elif write:
            event.after = take(_grad_of(leaf))
            event.text = "; ".join(each for each in self.trace.entries[event.node].hooks if each.startswith(AFTER))
        else:
            event.text = "The gradient is returned; .grad is unchanged."
        if not write:
            event.before = None

    def _add_sum(self, edge: Any, grad: Any) -> None:
        """Add the event of a sum if several gradients have arrived at ``edge``."""
        parts = self.arrived.pop(_key(edge), [])
        if sum(value is not None for _, value in parts) > 1:
            self.trace.events.append(Event("sum", self.reader.numbers[edge.node], [take(grad)], parts=parts))

    def _add_hook(self, node: Any, before: Value | None, after: Value | None) -> None:
        """Add the event of the hooks that ``node``, a node or a leaf, has for the gradient that arrives."""
        number, same = self.reader.numbers[node], _is_same(before, after)
        event = Event("hook", number, before=before, after=None if same else after)
        shown = "; ".join(each for each in self.trace.entries[number].hooks if not each.startswith(AFTER))
        event.text = f"{shown}: {'the gradient is unchanged' if same else 'the gradient is another one'}"
        self.trace.events.append(event)

    def _add_result_hooks(self, at: int, incoming: list[Value | None], final: Sequence[Any]) -> None:
        """Add events of hooks of the results of a node before its event, number ``at``; ``final`` is what they have given."""
        event = self.trace.events[at]
        event.incoming = _taken(final)
        hooks = [each for each in self.trace.entries[event.node].hooks if not each.startswith(AFTER)]
        for index, (before, after) in enumerate(zip(incoming, event.incoming, strict=True)):
            if _is_same(before, after):
                continue
            of = [each for each in hooks if each.endswith(f"(result {index})") or not each.endswith(")")]
            text = f"{'; '.join(of)}: the gradient of result {index} is another one"
            self.trace.events.insert(at, Event("hook", event.node, before=before, after=after, text=text))
            at += 1


#: Beginning of the descriptions of hooks that run after the gradients have been computed or accumulated.
AFTER = "a hook after"


class _Probes:
    """Context manager that adds hooks of its own to lists of hooks, and removes them at the end.

    :meth:`first` and :meth:`last` return a list, to which the arguments of the hook are added when it is called.
    """

    def __init__(self) -> None:
        self.added: list[tuple[Any, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for hooks, key in self.added:
            hooks.pop(key, None)

    def last(self, hooks: Any) -> list[Any]:
        """Add a hook at the end of ``hooks``."""
        called: list[Any] = []
        key = -1 - len(self.added)
        hooks[key] = lambda *arguments: called.append(arguments)
        self.added.append((hooks, key))
        return called

    def first(self, hooks: Any) -> list[Any]:
        """Add a hook at the beginning of ``hooks``."""
        others = dict(hooks)
        hooks.clear()
        called = self.last(hooks)
        hooks.update(others)
        return called


def _is_same(a: Value | None, b: Value | None) -> bool:
    if a is None or b is None or a is b:
        return a is b
    if a.array is None or b.array is None:
        return a.summary == b.summary
    return bool(a.array.dtype == b.array.dtype and a.array.tobytes() == b.array.tobytes())


def _stopped(error: BaseException) -> str:
    return f"The backward pass stopped with {type(error).__name__}: {error}"


def _taken(values: Sequence[Any]) -> list[Value | None]:
    return [take(each) for each in values]


def _array_of(value: Any) -> Any:
    """Return the array of ``value``, a gradient; a sparse Tensor, a tuple or None is returned unchanged."""
    return value._array if isinstance(value, Tensor) and not hasattr(value._array, "not_an_array") else value


def _grad_of(leaf: Any) -> Any:
    variable = leaf.variable_ref()
    return variable._grad if variable is not None else leaf.grad


class ReplayObserver(Observer):
    """Recorder of a backward pass that is run for a page: it calls no hook of the program and writes no ``grad``."""

    def visit(
        self,
        edge: Any,
        grad: Any,
        edges: Any,
        keep: bool,
        record: bool,
        several: Any,
        heap: Any,
        wanted: Any,
        inner: Any,
    ) -> Any:
        """Return the gradients of the inputs of the node at ``edge``, or ``engine._WAITING``."""
        if edge.__class__ is OutputEdge:
            self.safely(self._add_sum, edge, grad)
            engine._collect_output_grad(edge, grad, several, heap)
            return engine._WAITING
        if edge.single:
            self.safely(self._add_sum, edge, grad)
        self.safely(self._add_uncalled, edge)
        incoming = self.safely(_taken, [*several[edge]] if edge in several else [grad])
        return self.run(_without_hooks, edge, grad, incoming, edges, keep, record, several)

    def _add_uncalled(self, node: Any) -> None:
        number = self.reader.numbers[node]
        hooks = self.trace.entries[number].hooks
        if hooks:
            text = f"{'; '.join(hooks)}: not called, because the pass runs for this page"
            self.trace.events.append(Event("hook", number, text=text))

    def leaf(self, leaf: Any, grad: Any, owned: bool, record: bool, wanted: Any, write: bool) -> None:
        """Record the gradient ``grad`` that arrives at ``leaf``."""
        self.safely(self._only_record, leaf, grad)

    def _only_record(self, leaf: Any, grad: Any) -> None:
        self._add_sum(leaf, grad)
        self._add_uncalled(leaf)
        event = Event("leaf", self.reader.numbers[leaf], [take(grad)])
        event.text = "This pass was run for the page: .grad is unchanged."
        self.trace.events.append(event)


class InnerPasses:
    """Observer of the backward passes that functions run inside a pass for a page, as reentrant ``checkpoint`` does.

    They run as ever, because the functions need their gradients; :meth:`restore` restores the ``grad`` of leaves.
    """

    visit = staticmethod(engine._visit)

    def __init__(self) -> None:
        self.before: dict[AccumulateGrad, tuple[Any, Any, Any]] = {}

    def leaf(self, leaf: Any, grad: Any, owned: bool, record: bool, wanted: Any, write: bool) -> None:
        """Accumulate the gradient ``grad`` of ``leaf``, whose ``grad`` is replaced by a copy first."""
        if write and leaf not in self.before:
            variable = leaf.variable_ref()
            held = None if variable is None else variable._grad
            self.before[leaf] = leaf.grad, variable, held
            if variable is not None and held is not None:
                variable._grad = held.detach().clone() if isinstance(held, Tensor) else held.copy()
        accumulate.visit_leaf(leaf, grad, owned, record, wanted, write)

    def end(self) -> None:
        """Do nothing at the end of a pass."""

    def restore(self) -> None:
        """Restore the ``grad`` of the leaves."""
        for leaf, (grad, variable, held) in self.before.items():
            leaf.grad = grad
            if variable is not None:
                variable._grad = held


def _without_hooks(node: Any, grad: Any, edges: Any, keep: bool, record: bool, several: Any) -> Any:
    """Return the gradients that ``engine._apply`` would compute for ``node`` if it had no hooks."""
    if node in several:
        grad = several.pop(node)
        if all(each is None for each in grad) and not node.takes_none:
            grad = None
    if grad is None and not node.takes_none:
        return None if len(edges) == 1 else (None,) * len(edges)
    return node.vjp(grad, edges, keep)


def _names_of(node: Any) -> Iterable[tuple[int, str]]:
    inner = node.inner if isinstance(node, CopySlices) else node
    if isinstance(inner, BackwardCFunction):
        return [(index, f"argument {at}") for index, at in enumerate(inner._operands_at)]
    operation = getattr(inner, "operation", None)
    if operation is None or operation.several:
        return [(index, f"operand {index}") for index in range(len(node.edges))]
    return [(index, "input" if name == "self" else name) for index, name in enumerate(operation.tensors)]


def _saved(node: Any) -> dict[str, Any]:
    """Return the arrays and numbers that ``node`` keeps, by their names in the rules; packed values are left out.

    They are read before the node runs, because the run may free them.
    """
    operation = getattr(node, "operation", None)
    if operation is None or isinstance(node, (CopySlices, BackwardCFunction)):
        return {}
    found = {}
    for each in operation.saved():
        value = getattr(node, each.held, None)
        if value is not None and value.__class__ is not PackedValue:
            found[each.name] = value
    return found


def _kept_bytes(node: Any) -> int:
    """Return the number of bytes of the arrays that ``node`` keeps."""
    inner = node.inner if isinstance(node, CopySlices) else node
    if isinstance(inner, BackwardCFunction):
        found = 0
        for each in inner._saved or ():
            array = each.source._array if hasattr(each, "source") else getattr(each, "array", None)
            found += getattr(array, "nbytes", 0)
        return found
    return sum(getattr(getattr(inner, each.held, None), "nbytes", 0) for each in getattr(inner, "arrays", ()))


def _choose_element(found: Outgoing, node: Any, grad: Any, raw: Any, saved: dict[str, Any]) -> None:
    """Choose the element whose numbers are shown: the first NaN or 0 that arises here, otherwise the first element.

    Numbers are taken from elementwise operations, and from others if all of their values have one element.
    """
    operation = getattr(node, "operation", None)
    if operation is None or grad is None or grad.__class__ in (list, tuple) or isinstance(raw, Tensor):
        return
    if not hasattr(raw, "shape") or hasattr(raw, "layout_only") or not raw.size or not hasattr(grad, "shape"):
        return
    arrays = {name: each for name, each in saved.items() if hasattr(each, "shape")}
    elementwise = operation.kind == "pointwise" and all(
        _fits(each.shape, raw.shape) for each in (grad, *arrays.values())
    )
    if not elementwise and any(each.size != 1 for each in (raw, grad, *arrays.values())):
        found.broken = bool(_is_broken(grad, raw))
        return
    raw_array, grad_array = _plain(raw), _plain(grad)
    if elementwise and grad_array.shape != raw.shape:
        grad_array = numpy.broadcast_to(grad_array, raw.shape)
    at = 0
    if elementwise:
        flat, from_grad = raw_array.reshape(-1), grad_array.reshape(-1)
        bad = ~numpy.isfinite(flat) & numpy.isfinite(from_grad)
        zero = (flat == 0) & (from_grad != 0)
        found.lost, found.broken = int(numpy.count_nonzero(zero)), bool(bad.any())
        chosen = bad if found.broken else zero
        at = int(chosen.argmax()) if chosen.any() else 0
    else:
        found.broken = bool(_is_broken(grad, raw))
        found.lost = int(raw_array.reshape(-1)[0] == 0 and grad_array.reshape(-1)[0] != 0)
    found.element = tuple(int(each) for each in numpy.unravel_index(at, raw.shape)) if raw.size > 1 else None
    found.result = raw_array.reshape(-1)[at].item()
    found.numbers["g"] = grad_array.reshape(-1)[at].item()
    for name, each in saved.items():
        if hasattr(each, "shape") and hasattr(each, "dtype"):
            array = _plain(each)
            if elementwise and array.shape != raw.shape:
                array = numpy.broadcast_to(array, raw.shape)
            found.numbers[name] = array.reshape(-1)[at].item()
        elif _is_plain(each):
            found.numbers[name] = each


def _is_broken(grad: Any, raw: Any) -> bool:
    return bool(numpy.isfinite(_plain(grad)).all() and not numpy.isfinite(_plain(raw)).all())


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(shape[::-1], whole[::-1], strict=False))


def _plain(value: Any) -> Any:
    """Return ``value``, an array of any device and dtype, as an array whose dtype is NumPy's own."""
    if value.__class__ is numpy.ndarray and value.dtype.kind != "V":
        return value
    array = value.get() if hasattr(value, "get") and not isinstance(value, numpy.generic) else numpy.asarray(value)
    return array.astype(numpy.float32) if array.dtype.kind == "V" else array


# --- Replay of a graph that exists ----------------------------------------------------------------------------------


def replay(tensors: Sequence[Any], edges: Sequence[Any], reading: GraphRecord, names: Names) -> Trace:
    """Return a trace of the graph of ``tensors``, with a backward pass that is run for it.

    The pass starts with ones, keeps the graph, calls no hooks, and writes no ``grad``. ``edges`` are the gradient edges
    of the tensors. If the pass cannot run, the trace has a note with the reason, and the events until then.
    """
    reader = Reader(reading, names, None, tensors)
    trace = reader.trace
    trace.replayed = True
    roots = [
        (edge, numpy.ones(tensor._array.shape, tensor._array.dtype)[()] if _is_cpu(tensor) else _ones(tensor))
        for tensor, edge in zip(tensors, edges, strict=True) if edge is not None and edge.variable_ref is not dead_ref
    ]  # fmt: skip
    if not roots:
        trace.notes.append("No backward pass: the tensor has no graph.")
        return reader.finish()
    freed = [step for step in reading.steps if step.freed]
    if freed:
        trace.notes.append(
            "No backward pass is shown: an earlier one has freed the saved values of the graph. Make the page before it, "
            "pass it retain_graph=True, or run it inside torch.autograd.graph.recording()."
        )
        return reader.finish()
    observer = ReplayObserver(reader, roots, None)
    before = get_rng_state()
    thread, passes = get_ident(), InnerPasses()

    def observer_of(starting: Sequence[Any]) -> Observer | InnerPasses | None:
        return None if get_ident() != thread else observer if starting is roots else passes

    try:
        engine.observers.append(observer_of)
        engine.run_backward(roots, True, False, None, False)
    except Exception:  # the observer has noted it
        pass
    finally:
        engine.observers.remove(observer_of)
        passes.restore()
        set_rng_state(before)
    if any(tensor._array.size != 1 for tensor in tensors):
        trace.notes.append("The result has several elements: the backward pass starts with a gradient of ones.")
    if any(entry.hooks for entry in trace.entries):
        trace.notes.append("Hooks were not called, because this pass was run for the page alone.")
    return trace


def _is_cpu(tensor: Tensor) -> bool:
    return isinstance(tensor._array, numpy.ndarray)


def _ones(tensor: Tensor) -> Any:
    return tensor.detach().new_ones(tensor.shape)._array


# --- Recording a program --------------------------------------------------------------------------------------------


class Forward:
    """Values of the forward pass, by node: they are forgotten with the graph.

    ``results`` has values by position, ``operands`` a number or a triple (identity, value, origin) by the index of an
    operand without gradient, and ``modules`` the name of the module whose ``forward`` was running.
    """

    def __init__(self) -> None:
        self.results: WeakKeyDictionary[Any, dict[int, Value | None]] = WeakKeyDictionary()
        self.operands: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()
        self.modules: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


_recordings: dict[int, list[Recorder]] = {}
_changing = threading.Lock()


class Recorder(Handler):
    """Context manager that records the forward values and the backward passes of its thread.

    ``trace`` is the :class:`Trace` of the last backward pass, and ``passes`` the number of passes so far. ``failure`` is
    the first error of the recording itself, which does not end the program.
    """

    def __init__(self) -> None:
        self.forward: Forward = Forward()
        self.trace: Trace | None = None
        self.passes = 0
        self.busy: bool = False
        self.running: bool = False
        self.failure: str = ""
        self._names: dict[int, str] = {}
        self._made: dict[int, Any] = {}  # origins of tensors without gradient, by identity

    def __enter__(self) -> Self:
        super().__enter__()
        with _changing:
            _recordings.setdefault(get_ident(), []).append(self)
            engine.observers.append(_observer)
        return self

    def __exit__(self, *error: object) -> None:
        with _changing:
            stack = _recordings.get(get_ident(), [])
            if self in stack:
                stack.remove(self)
                engine.observers.remove(_observer)
            if not stack:
                _recordings.pop(get_ident(), None)
        super().__exit__(*error)

    # -- The forward pass

    def wanted(self, function: Any) -> Any:
        return function

    def around(self, known: Any, call: Call) -> Any:
        if call.rest and self in call.rest:
            return GO_ON
        result = call.go_on()
        if not self.busy:
            self.busy = True
            try:
                self._note(known, call, result)
            except Exception as error:  # a defect of the recording must not end the program
                self.failure = self.failure or f"{type(error).__name__}: {error}"
            finally:
                self.busy = False
        return result

    def _note(self, function: Any, call: Call, result: Any) -> None:
        """Take the values of ``result``, and of the modified first argument, if the call has created their nodes."""
        if isinstance(result, Tensor):
            results: Sequence[Any] = (result,)
        elif result.__class__ in (tuple, list) or isinstance(result, tuple):
            results = result
        else:
            results = call.args[:1]
        for each in results:
            if not isinstance(each, Tensor):
                continue
            edge = each._grad_edge
            if edge is None and each is result:
                self._note_constant(function, call, each)
            if edge is None or edge.__class__ is AccumulateGrad:
                continue
            self._take(edge, each, function, call)
            base = each._view
            if base is not None and base._grad_edge.__class__ is CopySlices:
                self._take(base._grad_edge, base, function, call)

    def _take(self, edge: Any, tensor: Tensor, function: Any, call: Call) -> None:
        node = edge.node
        found = self.forward.results.get(node)
        if found is None:
            found = self.forward.results[node] = {}
            self.forward.modules[node] = self._module()
            self._take_operands(node, call)
        if edge.position not in found:
            found[edge.position] = take(tensor)

    def _take_operands(self, node: Any, call: Call) -> None:
        """Record the values of the operands of ``node`` that get no gradient."""
        arguments: list[Any] = []
        skipped = isinstance(node, BackwardCFunction) and call.args[:1] and isinstance(call.args[0], type)
        for each in (*call.args[1 if skipped else 0 :], *call.kwargs.values()):
            arguments += each if each.__class__ in (tuple, list) else (each,)
        edges = node.spread(node.edge) if node.lone else node.edges
        if isinstance(node, BackwardCFunction):
            arguments = [arguments[at] for at in node._operands_at if at < len(arguments)]
        operands = note_operands(node, arguments)
        found = {
            index: each if isinstance(each, NUMBERS) else (id(each), take(each), self._origin(each))
            for index, (edge, each) in enumerate(zip(edges, operands, strict=False)) if edge is None and each is not None
        }  # fmt: skip
        if found:
            self.forward.operands[node] = found

    def _origin(self, tensor: Tensor) -> Any:
        """Return the function that computed ``tensor`` and the line, None if that is not recorded."""
        found = self._made.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _note_constant(self, function: Any, call: Call, result: Tensor) -> None:
        """Record where ``result``, which gets no gradient, was computed, and why it gets none."""
        name = getattr(function, "__name__", "")
        operation = getattr(function, "op", None)
        name = str(operation.shown) if operation is not None else name.strip("_")
        arguments: list[Any] = []
        for each in (*call.args, *call.kwargs.values()):
            arguments += each if each.__class__ in (tuple, list) else (each,)
        if any(each is result for each in arguments):
            return
        note_result(name, arguments, result)
        number = id(result)
        if name != "detach":
            self._made[number] = (
                weakref.ref(result, lambda _: self._made.pop(number, None)), (name, user_frame.user_location())
            )  # fmt: skip

    def _module(self) -> str:
        """Return the name of the module whose ``forward`` is running, such as ``model.blocks.0``, or ""."""
        modules: list[tuple[Any, FrameType]] = []
        frame: FrameType | None = sys._getframe(4)
        while frame is not None:
            if frame.f_code.co_name == "forward" and frame.f_code.co_argcount and frame.f_code.co_varnames[0] == "self":
                owner = _first_argument(frame)
                if hasattr(owner, "_modules") and (not modules or modules[-1][0] is not owner):
                    modules.append((owner, frame))
            frame = frame.f_back
        name, parent = "", None
        for owner, frame in reversed(modules):
            name = self._name_in(parent, name, owner, frame)
            parent = owner
        return name

    def _name_in(self, parent: Any, name: str, owner: Any, frame: FrameType) -> str:
        """Return the name of the module ``owner``, which is called inside ``parent``, a module called ``name``."""
        if parent is None:
            return self._names.get(id(owner)) or self._names.setdefault(id(owner), _variable_of(owner, frame))
        for key, each in parent._modules.items():
            if each is owner:
                return f"{name}.{key}"
        path = next((path for path, each in parent.named_modules() if each is owner), type(owner).__name__)
        return f"{name}.{path}"


def _first_argument(frame: FrameType) -> Any:
    local = frame.f_locals
    owner = local.get("self")
    if local.__class__ is dict:
        local.clear()  # before Python 3.13 the frame keeps this copy of its variables, with their graphs
    return owner


def _variable_of(owner: Any, frame: FrameType) -> str:
    """Return the name of a variable of the program that is the module ``owner``, or the name of its class."""
    outer = frame.f_back
    while outer is not None:
        if user_frame.MARK not in outer.f_globals:
            local = outer.f_locals
            found = next((name for name, value in list(local.items()) if value is owner and name != "self"), "")
            if local is not outer.f_globals and local.__class__ is dict:
                local.clear()
            if found:
                return found
        outer = outer.f_back
    return type(owner).__name__


def _observer(roots: Sequence[Any]) -> Observer | None:
    """Return the observer of a backward pass that begins in this thread, or None if it is not recorded."""
    stack = _recordings.get(get_ident())
    session = stack[-1] if stack else None
    if session is None or session.running:
        return None
    session.passes += 1
    try:
        session.running = True
        names = names_in_scope(sys._getframe(1), depth=DEPTH)
        reader = Reader(read_edges([edge for edge, _ in roots], names), names, session.forward)
        reader.trace.line = user_frame.user_location()
        return Observer(reader, roots, session)
    except Exception as error:  # a defect of the recording must not end the program
        session.running = False
        session.failure = f"{type(error).__name__}: {error}"
        return None
    except BaseException:  # an interrupt of the program
        session.running = False
        raise


__all__ = ["Entry", "Event", "Outgoing", "Saved", "Trace", "Recorder", "replay"]
