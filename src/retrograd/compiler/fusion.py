"""Fusion of pointwise steps, and of sums of their results, into single loops that read and write each element once.

A step is one recorded operation. Two steps can be part of one loop if they have the same iteration shape (see
:func:`iteration_shape`) and neither depends on the other through a step outside the loop. Adjacent dimensions of a loop
are merged into one where every operand allows it. A broadcast operand is read with fewer indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy

from ..dispatch.op import OPS
from ..dispatch.operand_promotion import F32, F64
from ..kernels.numba_dispatch import LARGE
from .ir import Step, Value
from .passes import eliminate_dead_code
from .scalar_code import BOOL, expression_of

if TYPE_CHECKING:
    from ..core.typing import ArrayDType
    from .typing import AnyStep

#: Operations that sum or average, which end a loop.
SUMS = frozenset({"sum_all", "mean_all", "sum_dim", "mean_dim", "sum_to_size"})
MEANS = frozenset({"mean_all", "mean_dim"})
#: Number of elements (STRETCH) or rows (FLUSH) that a thread sums before it adds the sum in double precision.
BLOCK_ELEMENTS, BLOCK_ROWS = 4096, 128


class Loop:
    """Fused loop: steps (recorded operations) that a single generated loop computes element by element.

    ``shape`` is the shape over which the loop iterates. ``reads`` are the recorded arrays (:class:`Value` objects) that
    the loop reads, and ``results`` those that it writes. ``source`` is the text of the generated function.
    """

    name: str
    source: str

    def __init__(self, steps: Sequence[Step], asked: set[Value]) -> None:
        self.steps: list[Step] = list(steps)
        made = {each for step in steps for each in step.results}
        self.reads: list[Value] = list(
            dict.fromkeys(each for step in steps for each in step.values() if each not in made)
        )
        self.results: tuple[Value, ...] = tuple(each for step in steps for each in step.results if each in asked)
        self.shape: tuple[int, ...] = next(iteration_shape(step) for step in steps)
        self.dtype: ArrayDType = next((kind for step in steps if (kind := _compute_dtype(step)) is not None), F32)
        self.op: _Name = _Name("loop of " + ", ".join(step.op.name for step in steps))
        self.name, self.source = "", ""

    @property
    def size(self) -> int:
        """Number of elements over which the loop iterates."""
        return int(numpy.prod(self.shape))

    def values(self) -> Iterator[Value]:
        """Return an iterator over the recorded arrays (:class:`Value` objects) that the loop reads."""
        return iter(self.reads)

    def __repr__(self) -> str:
        return f"{', '.join(each.name for each in self.results)} = {self.op.name}"


class _Name:
    def __init__(self, name: str) -> None:
        self.name = self.shown = name


def iteration_shape(step: Step) -> tuple[int, ...]:
    """Return the shape over whose elements a loop for ``step``, a recorded operation, iterates.

    For a sum or mean, this is the shape of the operand, otherwise the shape of the result.
    """
    if step.op.name in SUMS:
        found: tuple[int, ...] = step.operands[0].shape
        return found
    return step.results[0].shape


def is_contiguous(value: Value) -> bool:
    """Whether the array that ``value`` describes is C-contiguous."""
    expected = value.dtype.itemsize
    for size, stride in zip(reversed(value.shape), reversed(value.strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _compute_dtype(step: Step) -> ArrayDType | None:
    """Return the dtype in which a loop computes ``step``: the first dtype other than bool of its operands and results.

    The result is None if all operands and results are bool.
    """
    kinds = [each.dtype for each in (*step.values(), *step.results) if each.dtype != BOOL]
    return kinds[0] if kinds else None


def is_fusible(step: Step) -> bool:
    """Whether ``step`` can be part of a fused loop.

    The operation must be a sum, a mean, or one of which ``scalar_code`` derives an expression. It must have a single
    result, and operands that are arrays or numbers. All arrays must be C-contiguous and of float32, or all of float64;
    some operations also accept bool arrays.
    """
    name = step.op.name
    if step.several or len(step.results) != 1 or not step.results[0].size:
        return False
    values = [*step.values(), *step.results]
    kinds = {each.dtype for each in values} - {BOOL}
    if len(kinds) > 1 or not kinds <= {F32, F64} or not all(map(is_contiguous, values)) or not any(step.values()):
        return False
    if any(each.__class__ is not Value and each.__class__ not in (int, float) for each in step.operands):
        return False
    if name in SUMS:
        return _reduced_dims(step) is not None
    found = expression_of(step, next(iter(kinds), F32))
    return found is not None and found[0].dtype == step.results[0].dtype


def is_cheap(step: Step) -> bool:
    """Whether ``step`` is a view, or a pointwise operation that a fused loop can compute with little extra time."""
    return (is_fusible(step) or step.op.name in VIEWS) and step.op.name not in SUMS


def _reduced_dims(step: Step) -> tuple[bool, ...] | None:
    """Return a bool for each dimension of the operand of ``step``, a sum or mean: true if the dimension is reduced.

    The result is None if a fused loop cannot compute ``step``. A loop can only reduce all, the first or the last
    dimensions.
    """
    (x,) = step.operands
    if x.dtype == BOOL or step.results[0].dtype != x.dtype:
        return None
    rank = len(x.shape)
    if step.op.name.endswith("_all"):
        over = [True] * rank
    elif step.op.name == "sum_to_size":
        have = (1,) * (rank - len(step.params[0])) + tuple(step.params[0])
        over = [a != b for a, b in zip(x.shape, have, strict=True)]
    else:
        dims = step.params[0]
        dims = range(rank) if dims is None or dims == () else (dims,) if isinstance(dims, int) else dims
        over = [False] * rank
        for each in dims if rank else ():
            over[each] = True
    over = [a or size == 1 for a, size in zip(over, x.shape, strict=True)] if any(over) else over
    first = over.index(False) if False in over else rank
    last = rank - over[::-1].index(False) if False in over else 0
    if all(over) or (not any(over[first:]) and first) or (not any(over[:last]) and last < rank):
        return tuple(over)
    return None


# --- Grouping ---------------------------------------------------------------------------------------------------------


class _Group:
    """Group of steps (recorded operations) that one fused loop may compute.

    ``open`` is true if a loop can compute the steps; otherwise the group has one step, and no steps are added.
    ``needs`` are the groups that compute the operands of its steps.
    """

    def __init__(self, step: Step, open: bool) -> None:
        self.steps, self.open = [step], open
        self.needs: set[_Group] = set()

    def reaches(self, other: _Group, but: _Group | None = None) -> bool:
        """Whether this group uses results of the group ``other``, directly or through further groups.

        Results that this group uses directly from the group ``but`` are ignored.
        """
        seen: set[_Group] = set()
        pending = [each for each in self.needs if each is not but]
        while pending:
            each = pending.pop()
            if each is other:
                return True
            if each not in seen:
                seen.add(each)
                pending += each.needs
        return False


class Grouping:
    """Partition of ``steps``, the operations of a program, into groups of which each can be computed by one fused loop.

    A step that no loop can compute is a group with one item.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.groups: dict[_Group, None] = {}
        self.maker: dict[Value, _Group] = {}
        self.users: dict[Value, list[Step]] = {}
        self.of: dict[Step, _Group] = {}
        self.place: dict[Step, int] = {step: index for index, step in enumerate(steps)}
        for step in steps:
            group = self.of[step] = _Group(step, is_fusible(step))
            self.groups[group] = None
            group.needs |= {self.maker[each] for each in step.values() if each in self.maker}
            for value in step.values():
                self.users.setdefault(value, []).append(step)
            for value in step.results:
                self.maker[value] = group
            if group.open:
                self.widen(step)

    def widen(self, step: Step) -> None:
        """Merge the group of ``step`` with each group that computes or reads one of its operands, if one loop can."""
        near = [self.maker[each] for each in step.values() if each in self.maker]
        near += [self.of[other] for each in step.values() for other in self.users.get(each, ())]
        for each in dict.fromkeys(near):
            own = self.of[step]
            if each is not own and each in self.groups and self.fit(each, own):
                self.merge(each, own)

    def fit(self, one: _Group, other: _Group) -> bool:
        """Whether one loop can compute the steps of the two groups ``one`` and ``other``."""
        if not (one.open and other.open) or iteration_shape(one.steps[0]) != iteration_shape(other.steps[0]):
            return False
        steps = [*one.steps, *other.steps]
        if len(steps) > MAX_STEPS or len({_compute_dtype(each) for each in steps} - {None}) > 1:
            return False
        ends = {value for each in steps if each.op.name in SUMS for value in each.results}
        if any(value in ends for each in steps for value in each.values()):
            return False
        return not (one.reaches(other, but=other) or other.reaches(one, but=one)) and merged_dims(steps) is not None

    def merge(self, one: _Group, other: _Group) -> None:
        """Move all steps of the group ``other`` into the group ``one``, and remove ``other``."""
        one.steps = sorted([*one.steps, *other.steps], key=self.place.__getitem__)
        one.needs = (one.needs | other.needs) - {one, other}
        for step in other.steps:
            self.of[step] = one
            for value in step.results:
                self.maker[value] = one
        del self.groups[other]
        for each in self.groups:
            if other in each.needs:
                each.needs = (each.needs - {other}) | ({one} if each is not one else set())

    def sorted(self) -> list[list[Step]]:
        """Return the groups, each as a list of steps, in topological order: every group follows its dependencies."""
        done: dict[_Group, None] = {}
        order = {group: self.place[group.steps[0]] for group in self.groups}

        def visit(group: _Group) -> None:
            if group not in done:
                for each in sorted(group.needs, key=order.__getitem__):
                    visit(each)
                done[group] = None

        for each in self.groups:
            visit(each)
        return [each.steps for each in done]


#: Maximum number of steps in a loop.
MAX_STEPS = 80


# --- Dimensions -------------------------------------------------------------------------------------------------------


def _varies_along(value: Value, shape: tuple[int, ...]) -> tuple[bool, ...]:
    """Return a bool for each dimension of ``shape``: false if ``value`` is broadcast along this dimension.

    ``value`` is broadcast along the dimensions in which its size is 1, and along leading dimensions that it lacks.
    """
    have = (1,) * (len(shape) - len(value.shape)) + value.shape
    return tuple(each != 1 for each in have)


def merged_dims(steps: Sequence[Step]) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return the dimensions of a loop that computes ``steps``, with adjacent dimensions merged where possible.

    Two dimensions are merged if every operand is broadcast along both or along neither, and every sum reduces both or
    neither. Dimensions of size 1 are left out. The result has one pair for each merged dimension: its size, and the
    tuple of the indices of the original dimensions.

    A loop is generated for at most three merged dimensions, or two if ``steps`` contain a sum. If there are more, the
    result is None.
    """
    shape = iteration_shape(steps[0])
    every = [each for step in steps for each in step.operands if each.__class__ is Value]
    patterns = {_varies_along(each, shape) for each in every}
    sums = [over for step in steps if step.op.name in SUMS and (over := _reduced_dims(step)) is not None]
    patterns |= {tuple(not each for each in one) for one in sums}
    found: list[list[int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if found and all(one[axis] == one[found[-1][-1]] for one in patterns):
            found[-1].append(axis)
        else:
            found.append([axis])
    merged = [(int(numpy.prod([shape[i] for i in axes])), tuple(axes)) for axes in found] or [(1, ())]
    if len(merged) > 3 or (sums and len(merged) > 2):
        return None
    return merged


def reduced_merged_dims(step: Step, merged: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[bool, ...]:
    """Return a bool for each dimension in ``merged``: whether ``step``, a sum or mean, reduces the dimension.

    ``merged`` is the result of :func:`merged_dims`.
    """
    over = _reduced_dims(step)
    assert over is not None
    return tuple(all(over[i] for i in axes) for _, axes in merged)


def read_through_views(steps: Sequence[Step]) -> list[Step]:
    """Return ``steps`` with operands that are views replaced by the arrays of which they are views.

    A fused loop then reads these arrays, so that the views need not be created. An operand is replaced only if a
    loop can compute the step with the viewed array in its place.
    """
    shows: dict[Value, tuple[Value, tuple[int, ...]]] = {}  # the base, and the shape in which it is read
    found = []
    for step in steps:
        if step.op.name in VIEWS and is_contiguous(step.operands[0]):
            base, shape = shows.get(step.operands[0], (step.operands[0], step.operands[0].shape))
            result = step.results[0]
            if step.op.name == "expand":
                shows[result] = base, (1,) * (len(result.shape) - len(shape)) + shape
            elif shape == step.operands[0].shape:
                shows[result] = base, result.shape
            elif all(each == 1 for each in shape):
                shows[result] = base, (1,) * len(result.shape)
        elif any(each in shows for each in step.values()) and iteration_size(step) >= MIN_ELEMENTS:
            seen = [
                shows[each][0].seen_as(shows[each][1]) if each.__class__ is Value and each in shows else each
                for each in step.operands
            ]
            whole = step.op.name not in SUMS or seen[0].shape == step.operands[0].shape
            made = Step(step.op, tuple(seen), step.params, step.results, step.several, step.line)
            found.append(made if whole and is_fusible(made) else step)
            continue
        found.append(step)
    return found


def decompose(steps: Sequence[Step]) -> list[Step]:
    """Return the recorded operations ``steps`` with composite operations split, so that loops can compute their parts.

    addmm is split into mm and add; mse_loss is split into sub, square and a mean or sum.
    """
    found: list[Step] = []
    for step in steps:
        name, values = step.op.name, step.operands
        usual = all(each.__class__ is Value and each.dtype in (F32, F64) for each in values)
        if name == "addmm" and usual and tuple(step.params) == (1, 1) and step.results[0].size:
            product = step.results[0].like(step.results[0].shape)
            found.append(Step(OPS["mm"], values[1:], (), (product,), False, step.line))
            found.append(Step(OPS["add"], (product, values[0]), (1,), step.results, False, step.line))
        elif (
            name == "mse_loss_block"
            and usual
            and step.results[0].dtype == values[0].dtype
            and values[0].size
            and all(map(is_contiguous, values))
        ):
            gap, square = values[0].like(values[0].shape), values[0].like(values[0].shape)
            how = step.params[0]
            result = step.results[0]
            found.append(Step(OPS["sub"], values, (1,), (gap,), False, step.line))
            found.append(Step(OPS["square"], (gap,), (), (result if how == "none" else square,), False, step.line))
            if how != "none":
                found.append(
                    Step(OPS["mean_all" if how == "mean" else "sum_all"], (square,), (), (result,), False, step.line)
                )
        else:
            found.append(step)
    return found


#: Views whose base a loop can read directly.
VIEWS = frozenset(
    "expand view unsqueeze alias reshape_alias reshape_copy unsafe_view squeeze_all squeeze_dim squeeze_dims".split()  # noqa: SIM905
)


def fuse(steps: Sequence[Step], outputs: Sequence[Value | None]) -> list[AnyStep]:
    """Return the recorded operations ``steps`` with groups of them replaced by :class:`Loop` objects.

    ``outputs`` are the values that the program returns; steps whose results are unused are removed. A group is replaced
    only if :func:`is_worth_compiling` is true for the group.
    """
    groups = Grouping(read_through_views(decompose(steps))).sorted()
    users: dict[Value, int] = {}
    for group in groups:
        for value in {value for step in group for value in step.values()}:
            users[value] = users.get(value, 0) + 1
    found: list[AnyStep] = []
    for group in groups:
        inside = {value for step in group for value in step.results}
        used_inside = {value for step in group for value in step.values()} & inside
        asked = {value for value in inside if value in outputs or users.get(value, 0) > (value in used_inside)}
        if is_fusible(group[0]) and is_worth_compiling(group):
            found.append(Loop(group, asked))
        else:
            found += group
    return eliminate_dead_code(found, [each for each in outputs if each is not None])


#: Minimum number of elements for which a loop is compiled.
MIN_ELEMENTS = 64


def is_worth_compiling(group: Sequence[Step]) -> bool:
    """Whether one compiled loop for the steps of ``group`` is faster than a separate NumPy or kernel call for each."""
    if iteration_size(group[0]) < MIN_ELEMENTS:
        return False
    if len(group) == 1:
        step = group[0]
        if any(each.__class__ is Value and each.base is not None for each in step.operands):
            return True
        return step.op.name not in SUMS and iteration_size(step) >= LARGE
    return True


def iteration_size(step: Step) -> int:
    """Return the number of elements of :func:`iteration_shape` of ``step``."""
    return int(numpy.prod(iteration_shape(step)))
