"""``explain``: the graph of a tensor in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dtypes import of
from ..core.graph import AccumulateGrad, dead_ref
from ..core.tensor import Tensor, memory_of
from .graph_reader import Kept, Leaf, Operand, Reading, Step, names_around, read, tensors_in, user_frame
from .repeats import folded
from .tracing import remembered_of


@dataclass
class Unreached:
    """An operand that gets no gradient: what it is called, which operations use it, and ``why`` (empty: not known)."""

    label: str
    shape: tuple[int, ...] | None
    dtype: Any
    why: str
    users: list[tuple[Step, Operand]]


@dataclass
class Explanation:
    """What :func:`explain` returns; ``print`` shows it.

    ``steps``: the operations, from the result back; each has ``operation``, ``shape``, ``line``, ``operands``, ``kept``,
    ``hooks``. ``leaves``: the tensors that get gradients. ``unreached``: the operands that get none, and why. ``kept``: what is
    kept for the backward pass, with the step that keeps it; ``nbytes`` in all, shared memory counted once. ``changed``: what of
    that was modified since. ``ready``: whether a backward pass can run.
    """

    shown: str
    why: str
    reading: Reading
    unreached: list[Unreached]
    limit: int | None

    @property
    def steps(self) -> list[Step]:
        return self.reading.steps

    @property
    def leaves(self) -> list[Leaf]:
        return self.reading.leaves

    @property
    def kept(self) -> list[tuple[Step, Kept]]:
        return self.reading.kept

    @property
    def changed(self) -> list[tuple[Step, Kept]]:
        return [(step, each) for step, each in self.kept if each.changed]

    @property
    def freed(self) -> list[Step]:
        """The steps whose values a backward pass has freed."""
        return [step for step in self.steps if step.freed]

    @property
    def ready(self) -> bool:
        return not (self.why or self.changed or self.freed)

    @property
    def nbytes(self) -> int:
        return bytes_of([each for _, each in self.kept])

    def __str__(self) -> str:
        return "\n".join(_text(self))

    __repr__ = __str__


def explain(tensor: Any, params: Mapping[str, Any] | None = None, *, limit: int | None = 30) -> Explanation:
    """How a tensor was computed, in words: ``print(explain(loss))``.

    Told are the operations with their shapes and the program's lines; which leaves get gradients, and which operands do not and
    why; what is kept for the backward pass, and how many bytes; hooks; and what would make a backward pass fail.

    Args:
        tensor: a Tensor, or several.
        params: names of tensors, as ``dict(model.named_parameters())``; the caller's variables give names, too.
        limit: how many lines each part of the text may have (None: all). Repeats, as of a loop, are folded.

    What is not kept can not be told: whether an operand was detached or computed under ``no_grad`` is only known if it
    shares memory with something in the graph, or if the program ran under :class:`tracing`.

    >>> import retrograd as torch
    >>> w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    >>> found = torch.autograd.explain((w * x).sum(), {"w": w, "x": x})
    >>> [step.operation for step in found.steps], found.nbytes, [(each.label, each.why) for each in found.unreached]
    (['sum', 'mul'], 12, [('x', 'requires_grad=False')])
    """
    tensors = tensors_in(tensor, "explain")
    reading = read(tensors, names_around(user_frame(), params))
    why = next((_why_none(each) for each in tensors if not _has_graph(each)), "")
    return Explanation(" and ".join(map(_form_of, tensors)), why, reading, _grouped(reading), limit)


def _has_graph(tensor: Tensor) -> bool:
    place = tensor._grad_edge if tensor._view is None else Tensor._current(tensor)
    return place is not None and place.variable_ref is not dead_ref


def _why_none(tensor: Tensor) -> str:
    """Why a tensor requires no gradient."""
    told = remembered_of(tensor)
    if told is not None:
        return told.why
    if tensor._array.dtype.kind not in "fcV":
        return f"{tensor.dtype} has no gradients"
    if tensor._version_counter is None:
        return "it was made in inference mode"
    if tensor._view is not None and tensor._view._grad_edge is not None:
        return "it is a view made where nothing was recorded (torch.no_grad())"
    return (
        "requires_grad=False; whether it was made so, detached, or computed under torch.no_grad() is not kept "
        "(under torch.autograd.tracing() it is)"
    )


def _grouped(reading: Reading) -> list[Unreached]:
    """The tensors among the operands that have no gradient; what is the same is said once."""
    found: dict[Any, Unreached] = {}
    for step, each in reading.constants:
        if each.why and each.shape is None:
            continue  # a number, or nothing
        key = (each.label, each.why, each.shape) if each.why else (step.operation, each.name)
        group = found.setdefault(key, Unreached(each.label, each.shape, each.dtype, each.why, []))
        group.users.append((step, each))
    return list(found.values())


def bytes_of(kept: Sequence[Kept]) -> int:
    """The bytes of what is kept; memory that several share counts once."""
    seen: dict[int, int] = {}
    packed = 0
    for each in kept:
        if each.array is None:
            packed += each.nbytes
        else:
            owner = memory_of(each.array)
            seen[id(owner)] = max(owner.nbytes, each.nbytes)
    return packed + sum(seen.values())


# --- Text -----------------------------------------------------------------------------------------------------------

WIDTH = 110


def size(nbytes: int) -> str:
    """A number of bytes as one reads it.

    >>> size(512), size(3 * 1024), size(5 * 2**20)
    ('512 bytes', '3.0 KiB', '5.0 MiB')
    """
    if nbytes < 1024:
        return f"{nbytes} byte{'s' * (nbytes != 1)}"
    power = min((nbytes.bit_length() - 1) // 10, 4)
    return f"{nbytes / 1024**power:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def count(number: int, what: str) -> str:
    """``1 step``, ``2 steps``, ``2 leaves``."""
    several = {"leaf": "leaves", "box": "boxes"}.get(what, what + "s")
    return f"{number} {what if number == 1 else several}"


def form(shape: Any, dtype: Any) -> str:
    """A shape and a dtype as in ``[2, 3] float32``."""
    name = "" if dtype is None else of(dtype).name
    return " ".join(filter(None, [str(list(shape)) if shape is not None else "", name]))


def _form_of(tensor: Tensor) -> str:
    return form(tensor._array.shape, tensor._array.dtype)


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
    line = count(len(found.steps), "operation"), count(len(found.leaves), "leaf"), size(found.nbytes)
    yield f"A tensor {found.shown}, computed by {line[0]} from {line[1]}; {line[2]} kept for the backward pass"
    if found.why:
        yield f"  (one of the tensors has no graph: {found.why})"
    yield from _failures(found)
    yield ""
    yield "Computed, the last first:"
    yield from _steps(found)
    yield from _leaves(found)
    yield from _unreached(found)
    yield from _kept(found)
    yield from _hooks(found)


def _failures(found: Explanation) -> Iterator[str]:
    """What would make a backward pass fail."""
    if found.freed:
        steps = found.freed
        yield (
            f"  A backward pass would FAIL: one has run already and freed what {count(len(steps), 'step')} kept "
            "(retain_graph=True keeps it)"
        )
    for step, each in found.changed:
        at = f" at {each.at}" if each.at else ""
        yield f"  A backward pass would FAIL: {each.name} of step {step.number} ({step.operation}) was modified in place{at}"


def _refer(operand: Operand) -> str:
    """An operand as a step's line names it."""
    if operand.step is not None:
        return str(operand.step) + (f" (result {operand.result})" if operand.result else "")
    if operand.leaf is not None:
        return operand.leaf.name or f"a leaf {list(operand.leaf.shape)}"
    if operand.label:
        return operand.label
    return "" if operand.shape is None else f"a constant {list(operand.shape)}"


def key_of(step: Step) -> Any:
    """What is the same of two steps that are told as one."""
    return step.operation, step.node.code, step.node.instruction, step.shape


def _step_line(step: Step, width: int) -> str:
    given = ", ".join(filter(None, map(_refer, step.operands)))
    label = f" = {step.label}" if step.label else ""
    head = f"  {step.number:>{width}}. {step.operation} {list(step.shape)}{label}"
    head += f" from {given}" if given else ""
    return _beside(head, str(step.line))


def _beside(head: str, line: str) -> str:
    """``head``, and the program's line at its right as far as there is room."""
    room = max(WIDTH - max(len(head), 44) - 2, 30)
    return f"{head:<44}  {line if len(line) <= room else line[: room - 1] + '…'}".rstrip()


def _steps(found: Explanation) -> Iterator[str]:
    width = len(str(len(found.steps)))
    room = len(found.steps) if found.limit is None else found.limit
    lines: list[str] = []
    shown = 0
    for each in folded([key_of(step) for step in found.steps]):
        body = found.steps[each.start : min(each.start + each.length, each.start + room - len(lines))]
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
        yield f"  … and {count(len(found.steps) - shown, 'further step')}: {most} (limit=None shows all)"


def _leaves(found: Explanation) -> Iterator[str]:
    if found.leaves:
        yield ""
        yield "Gradients go to:"
        lines = [_leaf_line(each) for each in found.leaves]
        yield from _clipped(lines, found.limit, "leaves")


def _leaf_line(leaf: Leaf) -> str:
    head = f"  {leaf.name or 'a leaf'} {form(leaf.shape, leaf.dtype)}"
    gone = leaf.place.__class__ is AccumulateGrad and leaf.place.variable_ref() is None
    return _beside(head, str(leaf.line)) + " (it is gone: its gradient will be dropped)" * gone


def _unreached(found: Explanation) -> Iterator[str]:
    known = [_unreached_line(each) for each in found.unreached if each.why]
    unknown = sum(len(each.users) for each in found.unreached if not each.why)
    if not known and not unknown:
        return
    yield ""
    yield "No gradients go to:"
    yield from _clipped(known, found.limit, "of them")
    if unknown:
        yield f"  {count(unknown, 'operand')} of which nothing is kept: numbers, constants, detached tensors"
        yield "  (what they were is told of a program that runs under torch.autograd.tracing())"


def _unreached_line(each: Unreached) -> str:
    step, operand = each.users[0]
    label = each.label or (f"{operand.name} {form(each.shape, each.dtype)}".rstrip())
    where = f"step {step.number}, {step.operation}"
    more = f" and {count(len(each.users) - 1, 'further step')}" if len(each.users) > 1 else ""
    return f"  {label} (in {where}{more}): {each.why}"


def _kept(found: Explanation) -> Iterator[str]:
    kept = sorted(found.kept, key=lambda pair: -pair[1].nbytes)
    if not kept:
        return
    yield ""
    yield f"Kept for the backward pass: {size(found.nbytes)} in {count(len(kept), 'value')}"
    first: dict[int, tuple[Step, Kept]] = {}  # by the memory: in whose bytes others share
    rows: dict[Any, list[tuple[Step, Kept]]] = {}
    for step, each in kept:
        other = None if each.array is None else first.setdefault(id(memory_of(each.array)), (step, each))
        source = None if other is None or other[1] is each else (key_of(other[0]), other[1].name)
        key = source, key_of(step), each.name, each.shape, each.dtype, each.nbytes, each.packed, each.changed
        rows.setdefault(key, []).append((step, each))
    # What is in the bytes of others comes last.
    ordered = sorted(rows.items(), key=lambda row: -sum(each.nbytes for _, each in row[1]) if row[0][0] is None else 0)
    lines = [_kept_line(row, None if key[0] is None else first[id(memory_of(row[0][1].array))]) for key, row in ordered]
    yield from _clipped(lines, None if found.limit is None else max(found.limit // 3, 3), "values")


def _kept_line(row: list[tuple[Step, Kept]], other: tuple[Step, Kept] | None) -> str:
    """What is said of a value, or of the same value of the turns of a loop; ``other``: in whose bytes it is, if in another's."""
    (step, each), more = row[0], len(row) - 1
    note = " each" if more else ""
    if other is not None:
        source = "values above" if more else f"{other[1].name} of step {other[0].number} ({other[0].operation})"
        note += f", shared with {source}"
    note += ", packed by hooks" if each.packed else ""
    note += ", MODIFIED since" if each.changed else ""
    steps = f" and {count(more, 'further step')}" if more else ""
    head = f"  {each.name} of step {step.number} ({step.operation}){steps}"
    return f"{head}: {form(each.shape, each.dtype)}, {size(each.nbytes)}{note}"


def _hooks(found: Explanation) -> Iterator[str]:
    lines = [f"  step {step.number} ({step.operation}): {each}" for step in found.steps for each in step.hooks]
    lines += [f"  {leaf.name or 'a leaf'}: {each}" for leaf in found.leaves for each in leaf.hooks]
    if lines:
        yield ""
        yield "Hooks:"
        yield from _clipped(lines, found.limit, "hooks")


__all__ = ["Explanation", "Unreached", "explain"]
