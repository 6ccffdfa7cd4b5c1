"""Conversion of an autograd graph to records, from which ``explain``, ``memory`` and ``draw`` are computed.

The records describe the steps (operations) with their operands, saved values and hooks. They also describe the leaves
and the operands without a gradient. The nodes of the graph do not store why an operand has no gradient; therefore this
reason may be unknown. ``tracing`` records the reason while a program runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

from ..autograd.function import BackwardCFunction
from ..core.error_context import describe_definition
from ..core.graph import AccumulateGrad, Hooks, OutputEdge, dead_ref
from ..core.saved_tensor_hooks import PackedValue
from ..core.tensor import Tensor, memory_owner
from ..core.views import CopySlices
from ..dispatch.op import FUNCTIONS, METHODS
from ..runtime import user_frame as frames
from .tracing import operand_record

NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class Line:
    """Line of the user's program: the file name, the line number and the source text."""

    file: str = ""
    number: int = 0
    source: str = ""

    def __str__(self) -> str:
        return f"{self.short()}: {self.source}" if self.source else self.short()

    def __bool__(self) -> bool:
        return bool(self.file)

    def short(self) -> str:
        """Return the text ``file:number``, with a relative path if the file is below the working directory."""
        if not self.file:
            return ""
        inside = os.path.relpath(self.file) if os.path.isabs(self.file) and os.path.exists(self.file) else self.file
        return f"{self.file if inside.startswith(os.pardir) else inside}:{self.number}"


def line_of(code: Any, instruction: int) -> Line:
    """Return the :class:`Line` of the bytecode instruction at offset ``instruction`` in the code object ``code``."""
    shown = frames.describe(code, instruction)
    if not shown:
        return Line()
    file = frames.file_of(code)
    number, _, source = shown.removeprefix(file + ":").partition(": ")
    return Line(file, int(number), source)


@dataclass
class SavedValue:
    """Value that a step (operation) saves for the backward pass.

    ``nbytes`` is the size of the value in bytes; other values may share its memory. ``packed`` is true if saved-tensor
    hooks have packed the value. ``changed`` is true if the value was modified in place after it was saved, so that a
    backward pass fails; ``at`` is the line that modified it, if known. ``array`` is None if the value was freed or is
    packed.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    nbytes: int
    array: Any = None
    packed: bool = False
    changed: bool = False
    at: Line = field(default_factory=Line)


@dataclass
class Operand:
    """Operand of a step: a result of another step, a leaf, or a value without a gradient.

    For a result of another step, ``step`` is the number of that step, and ``result`` the index among its results.
    ``why`` is the reason why the operand has no gradient, or "" if it has a gradient or the reason is unknown.
    ``label`` is the operand's name in the program.
    """

    name: str
    step: int | None = None
    result: int = 0
    leaf: Leaf | None = None
    why: str = ""
    label: str = ""
    shape: tuple[int, ...] | None = None
    dtype: Any = None


@dataclass
class Leaf:
    """Leaf tensor of the graph, which receives a gradient in a backward pass."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    line: Line
    place: Any
    hooks: list[str]


@dataclass
class Step:
    """Operation in an autograd graph; ``number`` is 1 for the last operation and increases towards the leaves."""

    number: int
    node: Any
    operation: str
    shape: tuple[int, ...]
    dtype: Any
    line: Line
    operands: list[Operand]
    kept: list[SavedValue]
    freed: bool
    hooks: list[str]
    label: str = ""


@dataclass
class GraphRecord:
    """Description of the autograd graph of one or more tensors; ``steps`` are its operations, the last one first."""

    steps: list[Step]
    leaves: list[Leaf]
    roots: list[Operand]

    @property
    def kept(self) -> list[tuple[Step, SavedValue]]:
        """Pairs (step, saved value), for all values that the steps save for the backward pass."""
        return [(step, each) for step in self.steps for each in step.kept]

    @property
    def constants(self) -> list[tuple[Step, Operand]]:
        """Pairs (step, operand), for all operands that receive no gradient."""
        return [(step, each) for step in self.steps for each in step.operands if each.step is None and not each.leaf]


# --- Names ----------------------------------------------------------------------------------------------------------


class Names:
    """Names of the tensors of the user's program, which are used to describe a graph.

    A name is found by the identity of the tensor's array, or of its gradient edge: the tensor's place in the graph, as
    in ``torch.autograd.graph.GradientEdge``.
    """

    def __init__(self) -> None:
        self.places: dict[int, str] = {}
        self.tensors: dict[int, tuple[str, Tensor]] = {}  # by identity of their arrays
        self.memory: dict[int, tuple[str, Tensor]] = {}  # by identity of the memory that they fill
        self.held: list[Any] = []  # keeps the objects alive, so that no identity is reused
        self.near = 0  # number of items of `held` that belong to params and the innermost function

    def add(self, name: str, tensor: Tensor) -> None:
        """Store ``name`` as the name of ``tensor``, unless ``tensor`` has a name already."""
        edge, array = tensor._grad_edge, tensor._array
        self.held += (tensor, array)
        if edge is not None and edge.variable_ref is not dead_ref:
            self.places.setdefault(id(edge), name)
        self.tensors.setdefault(id(array), (name, tensor))
        if hasattr(array, "not_an_array"):  # a sparse tensor, or one of a transform
            return
        owner = memory_owner(array)
        if owner.nbytes == array.nbytes:
            self.memory.setdefault(id(owner), (name, tensor))

    def leaf_of(self, array: Any) -> tuple[str, Tensor] | None:
        """Return the name and the tensor with a gradient whose whole memory ``array`` shares, such as its transpose."""
        owner = memory_owner(array)
        found = self.memory.get(id(owner)) if owner.nbytes == array.nbytes else None
        return found if found is not None and found[1].requires_grad else None


def names_in_scope(frame: FrameType | None, params: Mapping[str, Any] | None = None, depth: int = 1) -> Names:
    """Return the names of the tensors in ``params`` and among the local and global variables of the user's functions.

    The user's functions are the innermost ``depth`` functions outside the package on the call stack, starting at
    ``frame``, up to the module that is executed. Tensors in lists, tuples, dictionaries and modules get names such as
    ``model.0.weight``.
    """
    names = Names()
    for name, value in (params or {}).items():
        names.add(name, value)
    for _ in range(depth):
        while frame is not None and frames.MARK in frame.f_globals:
            frame = frame.f_back
        if frame is None:
            break
        local = frame.f_locals
        for space in [local] if local is frame.f_globals else [local, frame.f_globals]:
            for name, value in list(space.items()):
                if not name.startswith("_"):
                    _add(names, name, value)
        if local.__class__ is dict and frame.f_code.co_flags & CO_OPTIMIZED:
            local.clear()  # before Python 3.13 the frame keeps this copy of its variables, with their graphs
        names.near = names.near or len(names.held)
        frame = None if frame.f_code.co_name == "<module>" else frame.f_back
    return names


_MAX_MEMBERS = 100  # members of larger containers get no names


def _add(names: Names, name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        names.add(name, value)
    elif isinstance(value, (list, tuple)) and len(value) <= _MAX_MEMBERS:
        for index, each in enumerate(value):
            if isinstance(each, Tensor):
                names.add(f"{name}[{index}]", each)
    elif isinstance(value, dict) and len(value) <= _MAX_MEMBERS:
        for key, each in list(value.items()):
            if isinstance(each, Tensor):
                names.add(f"{name}[{key!r}]", each)
    elif callable(getattr(type(value), "named_parameters", None)):  # an attribute of a module may be slow to miss
        for method in (value.named_parameters, value.named_buffers):
            for key, each in method():
                names.add(f"{name}.{key}", each)


def calling_frame() -> FrameType:
    """Return the frame of the caller of this function, where the search for the user's function begins."""
    return sys._getframe(1)


# --- Reading --------------------------------------------------------------------------------------------------------


def as_tensor_list(value: Any, name: str) -> list[Tensor]:
    """Return ``value``, a tensor or an iterable of tensors, as a list.

    TypeError is raised for any other value; its message contains ``name``, the name of the called function.
    """
    tensors = [value] if isinstance(value, Tensor) or not isinstance(value, Iterable) else list(value)
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(f"{name}(): argument 'tensor' must be a Tensor or several, not {type(each).__name__}")
    return tensors


def read_graph(tensors: Sequence[Any], names: Names | None = None) -> GraphRecord:
    """Return a :class:`GraphRecord` of the autograd graph of ``tensors``; tensors without a graph are accepted too.

    ``names`` are the names of tensors to use in the record.
    """
    return read_edges(
        [each._grad_edge if each._view is None else Tensor._current(each) for each in tensors], names, tensors
    )


def read_edges(edges: Sequence[Any], names: Names | None = None, tensors: Sequence[Any] | None = None) -> GraphRecord:
    """Return a :class:`GraphRecord` of the autograd graph of ``edges``, the gradient edges of its results.

    ``names`` are the names of tensors to use in the record. An edge may be None if ``tensors`` has the tensor without a
    graph at the same index.
    """
    names = names or Names()
    nodes = _nodes(edges)
    numbers = {node: index + 1 for index, node in enumerate(nodes)}
    leaves: dict[Any, Leaf] = {}
    shared = _MemoryIndex(names)
    for node in nodes:
        shared.note(node, names)
    steps = []
    lines: dict[tuple[Any, int], Line] = {}
    for node in nodes:
        if (node.code, node.instruction) not in lines:
            lines[node.code, node.instruction] = line_of(node.code, node.instruction)
        kept, freed = saved_values_of(node)
        operands = [_operand(node, *each, numbers, leaves, shared, names) for each in _edges(node)]
        operands += [_parameter_operand(each, names) for each in array_parameters(node)]
        steps.append(
            Step(
                numbers[node], node, operation_of(node), node.shape, node.dtype,
                lines[node.code, node.instruction],
                operands, kept, freed, _hooks(node), names.places.get(id(node), ""),
            )
        )  # fmt: skip
    roots = [
        _constant(tensors[index], names)
        if edge is None and tensors is not None
        else _edge_operand(edge, "", numbers, leaves, names)
        for index, edge in enumerate(edges)
    ]
    return GraphRecord(steps, list(leaves.values()), roots)


def _constant(tensor: Tensor, names: Names) -> Operand:
    called = names.tensors.get(id(tensor._array), ("",))[0]
    return Operand("", label=called, shape=tensor._array.shape, dtype=tensor._array.dtype)


def _nodes(edges: Iterable[Any]) -> list[Any]:
    """Return the nodes that can be reached from ``edges``, the last recorded node first, without the leaves.

    Each of ``edges`` is a gradient edge (a tensor's place in the graph) or None.
    """
    seen: dict[Any, None] = {}
    stack = [edge for edge in edges if edge is not None]
    while stack:
        node = stack.pop().node
        if node in seen or node.__class__ is AccumulateGrad:
            continue
        seen[node] = None
        stack += [edge for edge in node.edges if edge is not None]
    return sorted(seen, key=lambda node: node.number)


def operation_of(node: Any) -> str:
    """Return the name of the operation that created ``node``, such as ``mul`` or the name of a custom Function."""
    if isinstance(node, BackwardCFunction):
        return node._forward_cls.__name__
    if isinstance(node, CopySlices):
        return f"{operation_of(node.inner)} into a part"
    operation = node.operation
    if operation is not None and (operation.shown in FUNCTIONS or operation.shown in METHODS):
        return str(operation.shown)
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", type(node).__name__.partition("Backward")[0]).lower()


def _edges(node: Any) -> Iterator[tuple[int, str, Any, bool]]:
    """Yield a tuple of four items for each operand of ``node``.

    The items are the operand's index, its name, its gradient edge (its place in the graph, or None if it requires no
    gradient), and whether the operation is differentiable with respect to the operand.
    """
    edges = node.spread(node.edge) if node.lone else node.edges
    operation = getattr(node.inner if isinstance(node, CopySlices) else node, "operation", None)
    for index, edge in enumerate(edges):
        if isinstance(node, BackwardCFunction):
            yield index, f"argument {node._operands_at[index]}", edge, True
        elif operation is None or operation.several or index >= len(operation.tensors):
            yield index, f"operand {index}" if len(edges) > 1 else "input", edge, True
        else:
            name = operation.tensors[index]
            yield index, "input" if name == "self" else name, edge, operation.rules[index] is not None


def _edge_operand(edge: Any, name: str, numbers: dict[Any, int], leaves: dict[Any, Leaf], names: Names) -> Operand:
    """Return an :class:`Operand` for the operand called ``name``, whose place in the graph is ``edge``.

    If ``edge`` is a leaf, ``leaves`` is searched for its :class:`Leaf` object, and a new object is added if there is
    none. Otherwise ``edge`` is a node or an output of a node, and ``numbers`` contains the step number of the node.
    ``names`` are the names of tensors.
    """
    if edge is None or edge.__class__ is not AccumulateGrad:
        at = None if edge is None else numbers[edge.node]
        return Operand(name, at, edge.position if edge.__class__ is OutputEdge else 0)
    if edge.variable_ref is dead_ref:
        why = "a view, created under torch.no_grad(), of a tensor that has a graph: gradients end there"
        return Operand(name, why=why, shape=edge.shape, dtype=edge.dtype)
    if edge not in leaves:
        called = names.places.get(id(edge), "")
        line = line_of(edge.code, edge.instruction)
        leaves[edge] = Leaf(called, edge.shape, edge.dtype, line, edge, _hooks(edge))
    return Operand(name, leaf=leaves[edge])


def _operand(
    node: Any,
    index: int,
    name: str,
    edge: Any,
    differentiable: bool,
    numbers: Any,
    leaves: Any,
    shared: Any,
    names: Names,
) -> Operand:
    if edge is not None:
        return _edge_operand(edge, name, numbers, leaves, names)
    found = Operand(name)
    record = operand_record(node, index)
    if record is not None:
        found.why, found.shape, found.dtype = record.why, record.shape, record.dtype
        tensor = record.tensor() if record.tensor is not None else None
        if tensor is not None and id(tensor._array) in names.tensors:
            found.label = names.tensors[id(tensor._array)][0]
    value = saved_operand(node, index)
    if isinstance(value, NUMBERS):
        found.why, found.label = "a number", str(value)
    elif hasattr(value, "shape"):
        found.shape, found.dtype = value.shape, value.dtype
        named = names.tensors.get(id(value)) or names.leaf_of(value)
        found.label = named[0] if named else ""
        found.why = found.why or shared.why(value)
    if not found.why and not differentiable:
        found.why = f"{operation_of(node)} has no gradient with respect to it"
    return found


def saved_operand(node: Any, index: int) -> Any:
    """Return the saved value of operand number ``index`` of ``node``, an array or a number, or None if not saved."""
    if isinstance(node, CopySlices):
        node = node.inner
    operation = getattr(node, "operation", None)
    if operation is None or operation.several or index >= len(operation.tensors):
        return None
    value = getattr(node, "s_" + operation.tensors[index], None)
    return None if value.__class__ is PackedValue else value


class _MemoryIndex:
    """Memory of the leaves and saved values of a graph, which shows why an operand has no gradient.

    For example, a detached operand shares memory with another tensor of the graph. :meth:`note` records the memory of
    the leaves and saved values, and :meth:`why` searches it for the memory of an operand without a gradient.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.inside: dict[int, str] = {}

    def note(self, node: Any, names: Names) -> None:
        """Record the memory of the leaves that are operands of ``node``, and of the values that ``node`` saves.

        Saved values that receive no gradient are omitted. ``names`` are the names of the leaves.
        """
        for edge in node.edges:
            if edge.__class__ is AccumulateGrad and edge.variable_ref is not dead_ref:
                called = names.places.get(id(edge), "")
                self.inside.setdefault(id(memory_owner(edge.array)), f"the leaf {called}" if called else "a leaf")
        for each in getattr(node, "arrays", ()):
            value = getattr(node, each.held, None)
            place = node if each.kind == "result" else node.edge_of(each.index)
            if place is None or not hasattr(value, "shape") or place.__class__ is AccumulateGrad:
                continue
            owner = place.node
            line = line_of(owner.code, owner.instruction)
            self.inside.setdefault(
                id(memory_owner(value)),  # type: ignore[arg-type]
                f"the result of {operation_of(owner)}" + (f" at {line.short()}" if line else ""),
            )

    def why(self, array: Any) -> str:
        """Return the reason why ``array``, an operand of an operation, receives no gradient.

        The result is "" if the reason is unknown.
        """
        if array.dtype.kind not in "fcVW":
            return f"{_dtype_name(array.dtype)} has no gradients"
        origin = self.inside.get(id(memory_owner(array)))
        if origin is not None:
            return f"detached from {origin}, whose memory it shares (by detach(), .data or under no_grad)"
        named = self.names.tensors.get(id(array))
        if named is None:
            leaf = self.names.leaf_of(array)
            return (
                f"detached from {leaf[0]}, whose memory it shares (by detach(), .data or under no_grad)" if leaf else ""
            )
        if named[1].requires_grad:
            return "it did not require a gradient yet when this was recorded"
        return "requires_grad=False"


def _dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))


def array_parameters(node: Any) -> list[Any]:
    """Return a list of the arrays that ``node`` saves for arguments that get no gradient, such as ``i`` in ``x[i]``.

    Arrays inside tuples and lists are included. Arrays without dimensions are omitted.
    """
    operation = getattr(node, "operation", None)
    saved = [] if operation is None else operation.saved()
    stack: list[Any] = [getattr(node, each.held, None) for each in saved if each.kind == "parameter"]
    found = []
    while stack:
        value = stack.pop()
        if value.__class__ in (tuple, list):
            stack += reversed(value)
        elif hasattr(value, "nbytes") and value.ndim:
            found.append(value)
    return found


def _parameter_operand(array: Any, names: Names) -> Operand:
    """Return an :class:`Operand` for ``array``, a parameter of an operation, such as the index in ``x[i]``."""
    label = names.tensors[id(array)][0] if id(array) in names.tensors else ""
    why = (
        f"{_dtype_name(array.dtype)} has no gradients"
        if array.dtype.kind not in "fcVW"
        else "a parameter of the operation"
    )
    return Operand("index", why=why, label=label, shape=array.shape, dtype=array.dtype)


def saved_values_of(node: Any) -> tuple[list[SavedValue], bool]:
    """Return a list of the values that ``node`` saves for the backward pass, and whether some have been freed."""
    if isinstance(node, CopySlices):
        return saved_values_of(node.inner)
    if isinstance(node, BackwardCFunction):
        saved = node._saved
        return [
            _kept_by_function(f"saved {i}", each) for i, each in enumerate(saved or ()) if each is not None
        ], saved is None
    found, freed = [], False
    for each in getattr(node, "arrays", ()):
        value, counter = getattr(node, each.held, None), getattr(node, each.cell, None)
        if value is None:
            freed = freed or counter is not None
        elif not isinstance(value, NUMBERS):
            name = "result" if each.name == "out" else "input" if each.name == "self" else each.name
            found.append(_kept(name, value, counter, getattr(node, each.seen, 0)))
    return found + [_kept("index", each, None, 0) for each in array_parameters(node)], freed


def _kept(name: str, value: Any, counter: Any, version: int) -> SavedValue:
    if value.__class__ is PackedValue:
        held = value.value
        array = held._array if isinstance(held, Tensor) else held
        size = getattr(array, "nbytes", 0)
        return SavedValue(name, tuple(getattr(array, "shape", ())), getattr(array, "dtype", None), size, packed=True)
    if not hasattr(value, "nbytes"):
        return SavedValue(name, (), None, 0)
    changed = bool(counter) and counter[0] != version
    at = line_of(*counter[1]) if changed and counter[1] else Line()
    return SavedValue(name, value.shape, value.dtype, value.nbytes, value, changed=changed, at=at)


def _kept_by_function(name: str, saved: Any) -> SavedValue:
    """Return a :class:`SavedValue` called ``name`` for ``saved``, a value that a custom Function has saved."""
    packed = getattr(saved, "packed", None)
    if packed is not None:
        return _kept(name, packed, None, 0)
    source = getattr(saved, "source", None)
    if source is not None:
        return _kept(name, source._array, source._version_counter, saved.version)
    return _kept(name, saved.array, saved.counter, saved.version)


def _hooks(edge: Any) -> list[str]:
    """Return a description of each hook that is registered on ``edge``, a graph node or a leaf."""
    every: list[tuple[str, Hooks]] = [] if edge.hooks is None else [("", edge.hooks)]
    for position, hooks in sorted((getattr(edge, "result_hooks", None) or {}).items()):
        every.append((f" (result {position})", hooks))
    found = []
    for which, hooks in every:
        for key, hook in hooks.tensor.items():
            kind = "retains its gradient" if key == hooks.retaining else f"a tensor's hook{_definition_of(hook)}"
            found.append(kind + which)
        found += [f"a hook before the step{_definition_of(each)}" for each in hooks.before.values()]
        found += [f"a hook after the step{_definition_of(each)}" for each in hooks.after.values()]
        found += [f"a hook after accumulating{_definition_of(each)}" for each in hooks.accumulated.values()]
    return found


def _definition_of(hook: Any) -> str:
    return f" {getattr(hook, '__name__', type(hook).__name__)}{describe_definition(hook)}"


__all__ = [
    "SavedValue",
    "Leaf",
    "Line",
    "Operand",
    "GraphRecord",
    "Step",
    "names_in_scope",
    "read_graph",
    "as_tensor_list",
]
