"""``memory`` measures the memory that a graph keeps alive, and ``watch_leaks`` warns if graphs accumulate."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ..core.graph import AccumulateGrad, Node, next_number
from ..core.tensor import memory_owner
from ..runtime.user_frame import warn
from .explain import format_bytes, format_count, total_bytes
from .graph_reader import (
    Line,
    Step,
    as_tensor_list,
    calling_frame,
    line_of,
    names_in_scope,
    operation_of,
    read_graph,
    saved_values_of,
)


@dataclass
class Holding:
    """Total of the values that one operation in one line of the program saves for the backward pass.

    ``steps`` is the number of calls of the operation, which may run several times, as in a loop. ``values`` is the
    number of the saved values, and ``nbytes`` their size in bytes. If a saved value shares memory with a leaf or with a
    value that has been counted already, its size is added to ``shared`` instead of ``nbytes``.
    """

    operation: str
    line: Line
    steps: int = 0
    values: int = 0
    nbytes: int = 0
    shared: int = 0
    shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)


@dataclass
class Memory:
    """Result of :func:`memory`; ``print`` shows it as text.

    ``nbytes`` is the number of bytes that the graph keeps alive without the leaves, and ``leaf_nbytes`` the number of
    bytes of the leaves. ``rows`` has one item for each operation and line of the program, the largest first. ``packed``
    is the number of values that saved-tensor hooks have packed; their size may be unknown.
    """

    nbytes: int
    leaf_nbytes: int
    rows: list[Holding]
    leaves: int
    packed: int
    limit: int | None

    def __str__(self) -> str:
        if not self.rows and not self.leaves:
            return "No graph: nothing is kept alive"
        text = [
            f"The graph keeps {format_bytes(self.nbytes)} alive, and {format_bytes(self.leaf_nbytes)} of "
            f"{format_count(self.leaves, 'leaf')}"
        ]
        if self.packed:
            text.append(f"  ({format_count(self.packed, 'value')} packed by hooks: counted only if they are arrays)")
        shown = self.rows if self.limit is None else self.rows[: self.limit]
        text += [_row(each) for each in shown]
        if len(shown) < len(self.rows):
            rest = self.rows[len(shown) :]
            text.append(
                f"  {format_bytes(sum(each.nbytes for each in rest)):>10}  {format_count(len(rest), 'further row')} "
                "(limit=None shows all)"
            )
        return "\n".join(text)

    __repr__ = __str__


def _row(each: Holding) -> str:
    times = f" × {each.steps}" if each.steps > 1 else ""
    shapes = ", ".join(str(list(shape)) for shape, _ in each.shapes.most_common(2)) + ", …" * (len(each.shapes) > 2)
    shared = f", shares {format_bytes(each.shared)}" if each.shared else ""
    line = f"  {each.line}" if each.line else ""
    return f"  {format_bytes(each.nbytes):>10}  {each.operation}{times} {shapes}{shared}{line}"


def memory(tensor: Any, params: Mapping[str, Any] | None = None, *, limit: int | None = 20) -> Memory:
    """Return the sizes of the memory that the graph of ``tensor`` keeps alive, by operation and line of the program.

    ``tensor`` is a tensor or an iterable of tensors. ``params`` is a dictionary from names to tensors, as for
    :func:`explain`. ``limit`` is the maximum number of rows in the printed text, None for all.

    Memory that several saved values share, such as an array and its views, is counted once, for the operation recorded
    first. The memory of the leaves is counted separately.

    >>> import retrograd as torch
    >>> w, x = torch.ones(10, 10, requires_grad=True), torch.ones(5, 10)
    >>> found = torch.autograd.graph.memory(torch.tanh(x @ w).sum())
    >>> found.nbytes, found.leaf_nbytes, [(row.operation, row.nbytes) for row in found.rows]
    (400, 400, [('mm', 200), ('tanh', 200)])
    """
    reading = read_graph(as_tensor_list(tensor, "memory"), names_in_scope(calling_frame(), params))
    own = {id(memory_owner(leaf.place.array)): memory_owner(leaf.place.array).nbytes for leaf in reading.leaves}
    seen = set(own)
    rows: dict[Any, Holding] = {}
    packed = 0
    for step in reversed(reading.steps):
        packed += sum(each.packed for each in step.kept)
        _hold(rows, step, seen)
    found = sorted((each for each in rows.values() if each.values), key=lambda each: -each.nbytes)
    return Memory(sum(each.nbytes for each in found), sum(own.values()), found, len(reading.leaves), packed, limit)


def _hold(rows: dict[Any, Holding], step: Step, seen: set[int]) -> None:
    """Add the saved values of ``step`` to the total for its operation and its line of the program.

    ``rows`` is a dictionary from pairs (operation, line) to totals, which are :class:`Holding` objects. ``seen`` is the
    set of the ``id`` of all arrays whose memory has been counted. The arrays of ``step`` are added to it.
    """
    row = rows.setdefault((step.operation, step.line), Holding(step.operation, step.line))
    row.steps += 1
    for each in step.kept:
        row.values += 1
        row.shapes[each.shape] += 1
        if each.array is None:
            row.nbytes += each.nbytes
            continue
        owner = memory_owner(each.array)
        if id(owner) in seen:
            row.shared += each.nbytes
        else:
            seen.add(id(owner))
            row.nbytes += owner.nbytes


# --- Leaks ----------------------------------------------------------------------------------------------------------

#: Number of consecutive steps in which the graphs of a line must grow before a warning.
PATIENCE = 4


class watch_leaks:
    """Context manager that warns if autograd graphs accumulate or grow from step to step of a training loop.

    Call ``step()`` once in every training step, after temporary tensors are deleted. ``step`` warns in two cases, with
    the line of the program and the number of bytes kept alive. The first case is that the number of graphs whose last
    operation is in the same line increases in ``patience`` consecutive steps, for example because losses are stored in
    a list. The second case is that a single graph gets longer in ``patience`` consecutive steps, for example because a
    state is passed from step to step.

    At the end of the ``with`` statement, there is a warning for each line with more than ``patience`` graphs that were
    recorded inside the statement and are still alive. Each line causes at most one warning. ``step`` and both ends of
    the ``with`` statement examine all objects of the process, which takes some milliseconds for each ten thousand
    objects.

    >>> import retrograd as torch
    >>> w, losses = torch.ones(3, requires_grad=True), []
    >>> with torch.autograd.graph.watch_leaks() as watch:
    ...     for _ in range(9):
    ...         losses.append((w * 2).sum().item())  # without .item() there would be a warning
    ...         watch.step()
    >>> watch.found
    []
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self.patience = patience
        self.found: list[Leak] = []
        self.growth: dict[Any, tuple[int, int]] = {}  # by line: last number of graphs, and consecutive steps of growth
        self.length = 0, 0  # the same for the number of all nodes
        self.before: dict[Any, int] = {}
        self.begun = 0

    def __enter__(self) -> watch_leaks:
        self.before = {key: len(ends) for key, ends in _ends(_nodes()).items()}
        self.begun = next_number()
        return self

    def step(self) -> None:
        """Examine the graphs that are alive at the end of a training step, and warn if they accumulate."""
        nodes = _nodes()
        ends = _ends(nodes)
        growth, more_graphs = {}, False
        for key, found in ends.items():
            last, times = self.growth.get(key, (self.before.get(key, 0), 0))
            times = times + 1 if len(found) > last else 0
            growth[key] = len(found), times
            more_graphs = more_graphs or times > 0
            if times >= self.patience:
                self._warn_once(key, found, f"more in each of the last {times} steps", _ACCUMULATED)
        self.growth = growth
        last, times = self.length
        times = times + 1 if len(nodes) > last > 0 and not more_graphs else 0
        self.length = len(nodes), times
        if times >= self.patience:
            # Node numbers decrease, so these nodes were recorded in the block.
            new = [each for found in ends.values() for each in found if each.number < self.begun]
            longest = max(new, key=lambda end: len(_nodes_of([end])))
            self._warn_once(_key(longest), [longest], f"longer after each of the last {times} steps", _CARRIED)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            return
        for key, nodes in _ends(_nodes()).items():
            if len(nodes) - self.before.get(key, 0) > self.patience:
                self._warn_once(key, nodes, "still there at the end of the block", _ACCUMULATED)

    def _warn_once(self, key: Any, ends: list[Any], how: str, remedy: str) -> None:
        if any(each.key == key for each in self.found):
            return
        leak = Leak(key, operation_of(ends[0]), line_of(ends[0].code, ends[0].instruction), len(ends), _alive(ends))
        self.found.append(leak)
        line = f" recorded at {leak.line}" if leak.line else ""
        number = f"{leak.graphs} graphs that end in {leak.operation}{line} are" if len(ends) > 1 else (
            f"A graph that ends in {leak.operation}{line} is"
        )  # fmt: skip
        what = (
            "; saved values were freed"
            if not leak.nbytes
            else f"; {format_bytes(leak.nbytes)} of saved values are kept"
        )
        warn(f"{number} alive, {how}{what}. {remedy}")


_ACCUMULATED = (
    "Some object refers to their tensors, such as a list of losses. Remedy: store numbers (loss.item()), or "
    "loss.detach()."
)
_CARRIED = "A tensor of one step is used in the next with its entire history. Remedy: detach() it between the steps."


@dataclass
class Leak:
    """Graphs of which :class:`watch_leaks` warns: the last operation, its line, the number of graphs and of bytes."""

    key: Any
    operation: str
    line: Line
    graphs: int
    nbytes: int


def _nodes() -> list[Any]:
    """Return all autograd nodes in this process whose edges have not been freed.

    The function tests ``type(object)`` for each object of the process. ``isinstance`` would raise ReferenceError for a
    weak proxy of a deleted object.
    """
    objects = gc.get_objects()
    return [each for each in objects if issubclass(type(each), Node) and getattr(each, "edges", None) is not None]


def _key(node: Any) -> Any:
    return type(node).__name__, node.code, node.instruction


def _ends(nodes: list[Any]) -> dict[Any, list[Any]]:
    """Return the last nodes of the graphs that consist of ``nodes``, grouped by operation and line.

    A last node is a node to which no edge of another node leads. The result is a dictionary from tuples (class name of
    the node, code object, instruction), which identify an operation in a line, to lists of nodes.
    """
    inner = {id(edge.node) for node in nodes for edge in node.edges if edge is not None}
    ends: dict[Any, list[Any]] = {}
    for node in nodes:
        if id(node) not in inner:
            ends.setdefault(_key(node), []).append(node)
    return ends


def _nodes_of(ends: list[Any]) -> list[Any]:
    """Return all nodes of the graphs whose last nodes are ``ends``, including ``ends``, without the leaves.

    A last node is a node to which no edge of another node leads.
    """
    found: dict[int, Any] = {}
    stack = list(ends)
    while stack:
        node = stack.pop()
        if id(node) not in found and node.__class__ is not AccumulateGrad:
            found[id(node)] = node
            stack += [edge.node for edge in node.edges if edge is not None]
    return list(found.values())


def _alive(ends: list[Any]) -> int:
    """Return the number of bytes that the graphs with the last nodes ``ends`` keep alive, without the leaves.

    A last node is a node to which no edge of another node leads.
    """
    nodes = _nodes_of(ends)
    own = {id(memory_owner(edge.array)) for node in nodes for edge in node.edges if edge.__class__ is AccumulateGrad}
    kept = [each for node in nodes for each in saved_values_of(node)[0]]
    return total_bytes([each for each in kept if each.array is None or id(memory_owner(each.array)) not in own])


__all__ = ["Holding", "Leak", "Memory", "memory", "watch_leaks"]
