"""``explain``: a description of the autograd graph of a tensor, printed as text and available as attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dtypes import dtype_of
from ..core.graph import AccumulateGrad, dead_ref
from ..core.tensor import Tensor, memory_owner
from .graph_reader import (
    GraphRecord,
    Leaf,
    Operand,
    SavedValue,
    Step,
    as_tensor_list,
    calling_frame,
    names_in_scope,
    read_graph,
)
from .repeats import fold_repeats
from .tracing import tensor_record


@dataclass
class Unreached:
    """Operand that receives no gradient, in the graph that :func:`explain` describes.

    ``label`` is the operand's name in the program. ``why`` is the reason why it receives no gradient, or "" if the
    reason is unknown. ``users`` has a pair (step, :class:`Operand`) for each step (operation) that uses the operand.
    """

    label: str
    shape: tuple[int, ...] | None
    dtype: Any
    why: str
    users: list[tuple[Step, Operand]]


@dataclass
class Explanation:
    """Result of :func:`explain`; ``print`` shows it as text.

    ``steps`` are the operations, the last operation first; each has the attributes ``operation``, ``shape``, ``line``,
    ``operands``, ``kept`` and ``hooks``. ``leaves`` are the tensors that receive gradients. ``unreached`` is a list of
    :class:`Unreached` objects, the operands that receive no gradient.

    ``kept`` are pairs (step, value that the step saves for the backward pass). ``nbytes`` is the number of bytes of
    these values, where shared memory counts once. ``changed`` are the pairs of ``kept`` whose value was modified in
    place after it was saved. ``ready`` is true if a backward pass can run.
    """

    shown: str
    why: str
    reading: GraphRecord
    unreached: list[Unreached]
    limit: int | None

    @property
    def steps(self) -> list[Step]:
        return self.reading.steps

    @property
    def leaves(self) -> list[Leaf]:
        return self.reading.leaves

    @property
    def kept(self) -> list[tuple[Step, SavedValue]]:
        return self.reading.kept

    @property
    def changed(self) -> list[tuple[Step, SavedValue]]:
        return [(step, each) for step, each in self.kept if each.changed]

    @property
    def freed(self) -> list[Step]:
        """Steps whose saved values have been freed by a backward pass."""
        return [step for step in self.steps if step.freed]

    @property
    def ready(self) -> bool:
        return not (self.why or self.changed or self.freed)

    @property
    def nbytes(self) -> int:
        return total_bytes([each for _, each in self.kept])

    def __str__(self) -> str:
        return "\n".join(_text(self))

    __repr__ = __str__


def explain(tensor: Any, params: Mapping[str, Any] | None = None, *, limit: int | None = 30) -> Explanation:
    """Return a description of the autograd graph of ``tensor``; ``print(explain(loss))`` shows it as text.

    The description lists the operations with their shapes and lines of the program, the leaves that receive gradients,
    and the operands that receive no gradient, with the reason. It also lists the values saved for the backward pass
    with their size, hooks, and reasons why a backward pass would fail.

    Args:
        tensor: a tensor or an iterable of tensors.
        params: a dictionary from names to tensors, such as ``dict(model.named_parameters())``. Local variables
            of the calling function get their names without ``params``.
        limit: the maximum number of lines in each part of the text, None for no limit. Repeated steps (operations),
            as in a loop, are printed once.

    An operand that was detached or computed under ``no_grad`` is recognised only in two cases: if it shares memory with
    a value in the graph, or if the program ran inside :class:`tracing`.

    >>> import retrograd as torch
    >>> w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    >>> found = torch.autograd.explain((w * x).sum(), {"w": w, "x": x})
    >>> [step.operation for step in found.steps], found.nbytes, [(each.label, each.why) for each in found.unreached]
    (['sum', 'mul'], 12, [('x', 'requires_grad=False')])
    """
    tensors = as_tensor_list(tensor, "explain")
    reading = read_graph(tensors, names_in_scope(calling_frame(), params))
    why = next((why_no_gradient(each) for each in tensors if not _has_graph(each)), "")
    return Explanation(" and ".join(map(_form_of, tensors)), why, reading, _grouped(reading), limit)


def _has_graph(tensor: Tensor) -> bool:
    edge = tensor._grad_edge if tensor._view is None else Tensor._current(tensor)
    return edge is not None and edge.variable_ref is not dead_ref


def why_no_gradient(tensor: Tensor) -> str:
    """Return the reason why ``tensor`` requires no gradient."""
    record = tensor_record(tensor)
    if record is not None:
        return record.why
    if tensor._array.dtype.kind not in "fcVW":
        return f"{tensor.dtype} has no gradients"
    if tensor._version_counter is None:
        return "it was created in inference mode"
    if tensor._view is not None and tensor._view._grad_edge is not None:
        return "it is a view created under torch.no_grad()"
    return (
        "requires_grad=False; whether it was created so, detached, or computed under torch.no_grad() is recorded only "
        "under torch.autograd.tracing()"
    )


def _grouped(reading: GraphRecord) -> list[Unreached]:
    """Return a list of :class:`Unreached` objects for the operands in ``reading`` that receive no gradient.

    ``reading`` is the record of a graph. Operands with equal name, shape and reason are combined into one object. Plain
    numbers are omitted.
    """
    groups: dict[Any, Unreached] = {}
    for step, each in reading.constants:
        if each.why and each.shape is None:
            continue  # a number or None
        key = (each.label, each.why, each.shape) if each.why else (step.operation, each.name)
        group = groups.setdefault(key, Unreached(each.label, each.shape, each.dtype, each.why, []))
        group.users.append((step, each))
    return list(groups.values())


def total_bytes(kept: Sequence[SavedValue]) -> int:
    """Return the number of bytes of the saved values ``kept``; memory that several values share is counted once."""
    seen: dict[int, int] = {}
    packed = 0
    for each in kept:
        if each.array is None:
            packed += each.nbytes
        else:
            owner = memory_owner(each.array)
            seen[id(owner)] = max(owner.nbytes, each.nbytes)
    return packed + sum(seen.values())


# --- Text -----------------------------------------------------------------------------------------------------------

WIDTH = 110


def format_bytes(nbytes: int) -> str:
    """Return ``nbytes``, a number of bytes, as text with a unit.

    >>> format_bytes(512), format_bytes(3 * 1024), format_bytes(5 * 2**20)
    ('512 bytes', '3.0 KiB', '5.0 MiB')
    """
    if nbytes < 1024:
        return f"{nbytes} byte{'s' * (nbytes != 1)}"
    power = min((nbytes.bit_length() - 1) // 10, 4)
    return f"{nbytes / 1024**power:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def format_count(number: int, what: str) -> str:
    """Return text such as ``1 step`` or ``2 leaves``: ``number``, and the noun ``what`` in the singular or plural."""
    several = {"leaf": "leaves", "box": "boxes"}.get(what, what + "s")
    return f"{number} {what if number == 1 else several}"


def format_shape_dtype(shape: Any, dtype: Any) -> str:
    """Return ``shape`` and ``dtype`` as text, such as ``[2, 3] float32``; either may be None."""
    name = "" if dtype is None else dtype_of(dtype).name
    return " ".join(filter(None, [str(list(shape)) if shape is not None else "", name]))


def _form_of(tensor: Tensor) -> str:
    return format_shape_dtype(tensor._array.shape, tensor._array.dtype)


def _clipped(lines: Sequence[str], limit: int | None, more: str) -> Iterator[str]:
    shown = lines if limit is None or len(lines) <= limit else lines[: max(limit - 1, 1)]
    yield from shown
    if len(shown) < len(lines):
        yield f"  … and {len(lines) - len(shown)} more {more} (limit=None shows all)"


def _text(found: Explanation) -> Iterator[str]:
    if found.why and not found.steps:
        leaf = found.leaves
        yield f"A tensor {found.shown} without a graph: " + (found.why if not leaf else "a leaf")
        return
    if not found.steps:
        yield f"A leaf {found.shown}: a backward pass adds to its grad"
        yield from _leaves(found)
        return
    line = (
        format_count(len(found.steps), "operation"),
        format_count(len(found.leaves), "leaf"),
        format_bytes(found.nbytes),
    )
    yield f"A tensor {found.shown}, computed by {line[0]} from {line[1]}; {line[2]} saved for the backward pass"
    if found.why:
        yield f"  (one of the tensors has no graph: {found.why})"
    yield from _failures(found)
    yield ""
    yield "Operations, the last first:"
    yield from _steps(found)
    yield from _leaves(found)
    yield from _unreached(found)
    yield from _kept(found)
    yield from _hooks(found)


def _failures(found: Explanation) -> Iterator[str]:
    """Yield a line of text for each reason why a backward pass through the explained graph would fail."""
    if found.freed:
        steps = found.freed
        yield (
            f"  A backward pass would FAIL: one has run already and freed the saved values of {format_count(len(steps), 'step')} "
            "(retain_graph=True keeps them)"
        )
    for step, each in found.changed:
        at = f" at {each.at}" if each.at else ""
        yield f"  A backward pass would FAIL: {each.name} of step {step.number} ({step.operation}) was modified in place{at}"


def _refer(operand: Operand) -> str:
    """Return a short text that refers to ``operand`` in the printed description of a graph.

    For the result of a step (operation), the text is the number of the step. For another operand, it is the name of the
    operand. If there is no name, the text contains the shape; it is empty if the shape is unknown too.
    """
    if operand.step is not None:
        return str(operand.step) + (f" (result {operand.result})" if operand.result else "")
    if operand.leaf is not None:
        return operand.leaf.name or f"a leaf {list(operand.leaf.shape)}"
    if operand.label:
        return operand.label
    return "" if operand.shape is None else f"a constant {list(operand.shape)}"


def folding_key(step: Step) -> Any:
    """Return a value that is equal for steps (operations) that repeat each other, as in a loop.

    Steps have equal keys if their operation, their location in the program and their shape are equal.
    :func:`fold_repeats` finds repeats by comparing keys.
    """
    return step.operation, step.node.code, step.node.instruction, step.shape


def _step_line(step: Step, width: int) -> str:
    sources = ", ".join(filter(None, map(_refer, step.operands)))
    label = f" = {step.label}" if step.label else ""
    head = f"  {step.number:>{width}}. {step.operation} {list(step.shape)}{label}"
    head += f" from {sources}" if sources else ""
    return _beside(head, str(step.line))


def _beside(head: str, line: str) -> str:
    """Return the text ``head`` followed by the source line ``line``, which is cut to fit into ``WIDTH`` characters."""
    remaining = max(WIDTH - max(len(head), 44) - 2, 30)
    return f"{head:<44}  {line if len(line) <= remaining else line[: remaining - 1] + '…'}".rstrip()


def _steps(found: Explanation) -> Iterator[str]:
    width = len(str(len(found.steps)))
    remaining = len(found.steps) if found.limit is None else found.limit
    lines: list[str] = []
    shown = 0
    for each in fold_repeats([folding_key(step) for step in found.steps]):
        body = found.steps[each.start : min(each.start + each.length, each.start + remaining - len(lines))]
        lines += [_step_line(step, width) for step in body]
        shown = each.start + len(body)
        if len(body) < each.length:
            break
        if each.times > 1:
            what = "this step" if each.length == 1 else f"these {each.length} steps"
            again = "once" if each.times == 2 else f"{each.times - 1} times"
            lines.append(f"  {'':>{width}}  … {what} {again} more (to {each.end})")
            shown = each.end
    yield from lines
    if shown < len(found.steps):
        rest = Counter(step.operation for step in found.steps[shown:])
        most = ", ".join(f"{name} {times}" for name, times in rest.most_common(6))
        yield f"  … and {format_count(len(found.steps) - shown, 'further step')}: {most} (limit=None shows all)"


def _leaves(found: Explanation) -> Iterator[str]:
    if found.leaves:
        yield ""
        yield "Gradients go to:"
        lines = [_leaf_line(each) for each in found.leaves]
        yield from _clipped(lines, found.limit, "leaves")


def _leaf_line(leaf: Leaf) -> str:
    head = f"  {leaf.name or 'a leaf'} {format_shape_dtype(leaf.shape, leaf.dtype)}"
    deleted = leaf.place.__class__ is AccumulateGrad and leaf.place.variable_ref() is None
    return _beside(head, str(leaf.line)) + " (deleted: its gradient will be dropped)" * deleted


def _unreached(found: Explanation) -> Iterator[str]:
    known = [_unreached_line(each) for each in found.unreached if each.why]
    unknown = sum(len(each.users) for each in found.unreached if not each.why)
    if not known and not unknown:
        return
    yield ""
    yield "No gradients go to:"
    yield from _clipped(known, found.limit, "of them")
    if unknown:
        yield f"  {format_count(unknown, 'operand')} not saved in the graph (numbers, constants or detached tensors)"
        yield "  (run the program under torch.autograd.tracing() to record them)"


def _unreached_line(each: Unreached) -> str:
    step, operand = each.users[0]
    label = each.label or (f"{operand.name} {format_shape_dtype(each.shape, each.dtype)}".rstrip())
    where = f"step {step.number}, {step.operation}"
    more = f" and {format_count(len(each.users) - 1, 'further step')}" if len(each.users) > 1 else ""
    return f"  {label} (in {where}{more}): {each.why}"


def _kept(found: Explanation) -> Iterator[str]:
    kept = sorted(found.kept, key=lambda pair: -pair[1].nbytes)
    if not kept:
        return
    yield ""
    yield f"Saved for the backward pass: {format_bytes(found.nbytes)} in {format_count(len(kept), 'value')}"
    first: dict[
        int, tuple[Step, SavedValue]
    ] = {}  # identity of the memory -> the first value in it, which counts its bytes
    rows: dict[Any, list[tuple[Step, SavedValue]]] = {}
    for step, each in kept:
        other = None if each.array is None else first.setdefault(id(memory_owner(each.array)), (step, each))
        source = None if other is None or other[1] is each else (folding_key(other[0]), other[1].name)
        key = source, folding_key(step), each.name, each.shape, each.dtype, each.nbytes, each.packed, each.changed
        rows.setdefault(key, []).append((step, each))
    # Values that share the memory of others come last.
    ordered = sorted(rows.items(), key=lambda row: -sum(each.nbytes for _, each in row[1]) if row[0][0] is None else 0)
    lines = [
        _kept_line(row, None if key[0] is None else first[id(memory_owner(row[0][1].array))]) for key, row in ordered
    ]
    yield from _clipped(lines, None if found.limit is None else max(found.limit // 3, 3), "values")


def _kept_line(row: list[tuple[Step, SavedValue]], other: tuple[Step, SavedValue] | None) -> str:
    """Return one line of text for the saved values in ``row``, which have the same description.

    ``row`` has a pair (step, saved value) for each value; the step is the operation that saves the value. ``other`` is
    such a pair for a value that is not in ``row`` and with which the values share memory, or None if there is none.
    """
    (step, each), more = row[0], len(row) - 1
    note = " each" if more else ""
    if other is not None:
        source = "values above" if more else f"{other[1].name} of step {other[0].number} ({other[0].operation})"
        note += f", shared with {source}"
    note += ", packed by hooks" if each.packed else ""
    note += ", MODIFIED since" if each.changed else ""
    steps = f" and {format_count(more, 'further step')}" if more else ""
    head = f"  {each.name} of step {step.number} ({step.operation}){steps}"
    return f"{head}: {format_shape_dtype(each.shape, each.dtype)}, {format_bytes(each.nbytes)}{note}"


def _hooks(found: Explanation) -> Iterator[str]:
    lines = [f"  step {step.number} ({step.operation}): {each}" for step in found.steps for each in step.hooks]
    lines += [f"  {leaf.name or 'a leaf'}: {each}" for leaf in found.leaves for each in leaf.hooks]
    if lines:
        yield ""
        yield "Hooks:"
        yield from _clipped(lines, found.limit, "hooks")


__all__ = ["Explanation", "Unreached", "explain", "why_no_gradient"]
