"""Regions: runs of steps on small arrays that are compiled into one function, which needs no call of NumPy for a step.

A step on ten elements takes 5 ns in a processor and 500 ns in NumPy. The steps of a region are therefore written as one
straight-line function of loops over constant ranges, in a small subset of Python:

    def region(x0, v4):  # slice, pow_scalar, sum_all
        v3 = empty(7)
        for i in range(7):
            t1 = x0[i + 1]
            v3[i] = t1 * t1
        ...

``kernels/numba/straight_line.py`` translates the text to machine code. Views have no code: elements of the viewed array
are read. The text is also valid Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from ..dispatch.operand_promotion import F32, F64
from ..kernels import numba_dispatch
from ..kernels.scalar_code import SmallElement, element_text, scalar_literal
from ..runtime.codegen import parse_module
from .fusion import MEANS, SUMS, decompose, fuse
from .ir import CONSTANT, RESULT, Step, Value
from .loop_codegen import compile_cached
from .scalar_code import BOOL, expression_of

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, Function
    from .program import Writer
    from .typing import AnyStep, Operand

#: Maximum number of elements of an array, and of multiplications of a product of matrices, of a step in a region.
MOST_ELEMENTS, MOST_PRODUCTS = 4096, 4096
#: Minimum number of steps of a region, and maximum number of elements of the arrays that it has on the stack.
FEWEST_STEPS, STACK = 3, 16384
#: Minimum number of elements of a sum that are added in another order than that of their indices.
EXACT = 8
#: Maximum number of elements of an array that are moved one by one.
LISTED = 64
#: Maximum number of elements of a constant that is part of the text.
LITERAL_ELEMENTS = 128
#: Operations whose results have only elements of the operands, and zeros; views are added to them.
MOVES = frozenset(
    """
    zeros detach slice_backward select_backward diagonal_backward split_backward tril triu cat stack clone_block reshape_copy
    unsafe_view flip_block roll_block rot90_block repeat_block diag_embed_block constant_pad_nd_block same
    """.split()  # noqa: SIM905
)
#: Products of matrices: the dimensions of the operands and of the result, as in einsum.
PRODUCTS = {
    "dot": ("k", "k", ""), "mv": ("ik", "k", "i"), "mm": ("ik", "kj", "ij"), "bmm": ("bik", "bkj", "bij"),
}  # fmt: skip


class Region:
    """Steps that one generated function computes: it reads the arrays ``reads`` and writes ``results``.

    ``source`` is the text of the function, and ``stack`` the number of elements of the arrays that it has on the stack.
    """

    def __init__(self, steps: Sequence[Step], asked: set[Value]) -> None:
        self.steps = list(steps)
        made = {each for step in steps for each in step.results}
        self.results = tuple([each for step in steps for each in step.results if each in asked])
        text = _RegionSource(self.steps, self.results)
        self.reads: list[Value] = [each for each in text.reads if each not in made]
        self.op = _Name("region of " + ", ".join(dict.fromkeys(step.op.name for step in steps)))
        self.name, self.source, self.stack = "", text.source("region"), sum(each.size for each in text.local())

    def values(self) -> Iterator[Value]:
        """Return an iterator over the recorded arrays that the region reads."""
        return iter(self.reads)

    def call(self, writer: Writer) -> list[str]:
        """Return the source lines of a program that allocate the results and compute the region."""
        name = writer.name(compiled_region(self.source), "region")
        self.source = self.source.replace("def region(", f"def {name}(", 1)
        lines = [f"{each.name} = {writer.memory(each)}" for each in self.results]
        in_order = writer.name(numpy.ascontiguousarray, "in_order")
        given = [f"{in_order}({each.name})" if each.kind is RESULT else each.name for each in self.reads]
        return [*lines, f"{name}({', '.join([*given, *[each.name for each in self.results]])})"]

    def __repr__(self) -> str:
        return f"{', '.join(each.name for each in self.results)} = {self.op.name}"


_compiled: dict[str, Function] = {}


def compiled_region(source: str) -> Function:
    """Return the function whose text is ``source``, which is compiled when it is first called, for contiguous arrays."""
    if source not in _compiled:
        tree: Any = parse_module(source).body[0]
        names = ", ".join(each.arg for each in tree.args.args)
        name = f"region_{sha256(source.encode()).hexdigest()[:20]}"
        space = {"body": numba_dispatch.loops("straight_line").body_of(tree), "__name__": __name__}
        text = f"def {name}({names}):\n    body(({names},))\n"
        _compiled[source] = compile_cached(
            name, text, space, {"nogil": True, "error_model": "numpy"}, f"\n\n{source}\n"
        )  # fmt: skip
    return _compiled[source]


class _Name:
    def __init__(self, name: str) -> None:
        self.name = self.shown = name


def form_regions(steps: Sequence[Step], outputs: Sequence[Value | None]) -> list[AnyStep]:
    """Return ``steps`` with runs of steps on small arrays replaced by :class:`Region` objects.

    ``outputs`` are the values that the program returns. Each step gets a phase, which is not before those of the steps
    whose results it reads: steps that a region can compute are in odd phases, others in even ones.
    """
    steps = decompose(steps)
    phase: dict[Value, tuple[int, bool]] = {}
    phases: dict[tuple[int, bool], list[Step]] = {}  # by the number of the phase, and whether a region is of float32
    for step in steps:
        before = [phase[each] for each in step.values() if each in phase]
        first, small = max([number for number, _ in before], default=0), is_small(step)
        logical = all(each.dtype == BOOL for each in (*step.values(), *step.results))
        single = small and (any(each for _, each in before) if logical else _dtype(step) == F32)
        number = first + (first % 2 != small)
        if small and (number, not single) in before:
            number += 2
        phase.update(dict.fromkeys(step.results, (number, single)))
        phases.setdefault((number, single), []).append(step)
    found: list[AnyStep] = []
    for key in sorted(phases):
        group, number = phases[key], key[0]
        used = {each for other, steps in phases.items() if other != key for s in steps for each in s.values()}
        asked = [*used, *[each for each in outputs if each is not None]]
        if number % 2 and len(group) >= FEWEST_STEPS:
            region = Region(group, {each for step in group for each in step.results}.intersection(asked))
            if region.stack <= STACK:
                found.append(region)
                continue
        found += fuse(group, asked) if number % 2 == 0 or len(group) >= FEWEST_STEPS else group
    return found


def is_small(step: Step) -> bool:
    """Whether a region can compute ``step``: its arrays are of float32 or of float64, or bool, and have few elements."""
    values = [each for each in (*step.operands, *step.results) if each.__class__ is Value]
    if not all(each.dtype in (_dtype(step), BOOL) and each.size <= MOST_ELEMENTS for each in values):
        return False
    return _plan(step) is not None


def _dtype(step: Step) -> ArrayDType:
    """Return the dtype of the numbers of ``step``."""
    return F32 if any(each.dtype == F32 for each in (*step.values(), *step.results)) else F64


# -- How a step is computed --------------------------------------------------------------------------------------------


class _Moved(NamedTuple):
    """Result of a step that moves elements: the operand and the index of each, or -1 for a zero."""

    operand: Array
    places: Array


def _plan(step: Step) -> object:
    """Return how a region computes ``step``, or None if it cannot: an expression, a name, or moved elements."""
    name, floating = step.op.name, all(each.dtype != BOOL for each in (*step.values(), *step.results))
    if name in SUMS:
        return "sum" if floating else None
    if name in PRODUCTS:
        sizes = _sizes(step) if floating else None
        return None if sizes is None or numpy.prod([*sizes.values()]) > MOST_PRODUCTS else "product"
    if step.op.kind == "view" or name in MOVES:
        moved = _moved(step) if not step.several or step.op.kind == "view" else None
        return moved
    if step.several or any(each.__class__ not in (Value, int, float) for each in step.operands):
        return None
    found = expression_of(step, _dtype(step), SmallElement)
    return found if found is not None and found[0].dtype == step.results[0].dtype else None


def _moved(step: Step) -> list[_Moved] | None:
    """Return where the elements of the results of ``step`` come from, by its kernel for arrays of their numbers."""
    arrays, count = [], 1
    operands = [each for each in step.operands if each.__class__ is Value]
    if len(operands) < len(step.operands) or any(each.dtype == BOOL for each in (*operands, *step.results)):
        return None
    for each in operands:
        arrays.append(numpy.arange(count, count + each.size, dtype=each.dtype).reshape(each.shape))
        count += each.size
    try:
        positional = getattr(step.op, "positional", len(step.params))
        named = dict(zip(getattr(step.op, "params", ())[positional:], step.params[positional:], strict=False))
        found = step.op.kernel(numpy, *arrays, *step.params[:positional], **named)
    except Exception:  # the kernel depends on more than the shapes
        return None
    starts = numpy.cumsum([0, *[each.size for each in operands]])
    result = []
    for value, each in zip(step.results, found if step.several else (found,), strict=True):
        numbers = numpy.asarray(each).astype(int)
        if numbers.shape != value.shape or not numpy.array_equal(numbers, each):
            return None
        operand = numpy.searchsorted(starts, numbers - 1, "right") - 1
        moved = _Moved(numpy.where(numbers > 0, operand, -1), numbers - 1 - starts[operand])
        if numbers.size > LISTED and numbers.any() and _affine(moved.places) is None and _runs(moved, operands) is None:
            return None
        result.append(moved)
    return result


def _affine(index: Array) -> tuple[int, tuple[int, ...]] | None:
    """Return the offset and the strides by which ``index`` is computed from the indices of its dimensions, if it is."""
    if not index.size:
        return 0, (0,) * index.ndim
    first = int(index.flat[0])
    strides = []
    for axis, size in enumerate(index.shape):
        strides.append(int(index.take(1, axis).flat[0]) - first if size > 1 else 0)
    grid = numpy.full(index.shape, first)
    for axis, (size, stride) in enumerate(zip(index.shape, strides, strict=True)):
        grid += stride * numpy.arange(size).reshape(-1, *(1,) * (index.ndim - axis - 1))
    return (first, tuple(strides)) if numpy.array_equal(grid, index) else None


def _runs(moved: _Moved, operands: Sequence[Value]) -> list[tuple[int, int, tuple[int, ...]]] | None:
    """Return, for each operand, its number and the offset and strides of its elements in the result.

    The result is None if an operand has elements without a place, or with several.
    """
    found = []
    for number, operand in enumerate(operands):
        place = numpy.flatnonzero(moved.operand.reshape(-1) == number)
        index = moved.places.reshape(-1)[place]
        if len(index) != operand.size or len(set(index.tolist())) != operand.size:
            return None
        target = numpy.empty(operand.size, int)
        target[index] = place
        at = _affine(target.reshape(operand.shape))
        if at is None:
            return None
        found.append((number, *at))
    return found


def _sizes(step: Step) -> dict[str, int] | None:
    """Return the size of each dimension of the product ``step``, or None if an operand is no matrix or vector of it."""
    found: dict[str, int] = {}
    for names, each in zip(PRODUCTS[step.op.name], (*step.operands, *step.results), strict=True):
        if len(each.shape) != len(names):
            return None
        found.update(zip(names, each.shape, strict=True))
    return found


# -- Source text -------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Elements of a value in memory: the array, and by which offset and strides its index is computed."""

    array: Value
    offset: int
    strides: tuple[int, ...]


class _Access(NamedTuple):
    """Line of a loop that loads an element of ``array`` into the variable ``name``, or stores it there."""

    name: str
    array: Value
    offset: int
    strides: tuple[int, ...]
    store: bool


class _Nest:
    """Nested loops over ``sizes``, whose ``lines`` are texts and :class:`_Access` objects.

    ``names`` has the variable of each value whose current element is in one, and ``loaded`` those of loaded elements.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.lines: list[str | _Access] = []
        self.names: dict[Value, str] = {}
        self.loaded: dict[tuple[object, ...], str] = {}

    def text(self, stored: set[Value]) -> list[str]:
        """Return the source lines; elements are stored only in the arrays in ``stored``."""
        lines = [each for each in self.lines if isinstance(each, str) or not each.store or each.array in stored]
        if not lines:
            return []
        accesses = [each.strides for each in lines if not isinstance(each, str)]
        axes: list[tuple[int, tuple[int, ...]]] = []  # the size, and the stride of each access
        for axis, size in enumerate(self.sizes):
            steps = tuple(each[axis] for each in accesses)
            if size == 1:
                continue
            if axes and axes[-1][1] == tuple(size * each for each in steps):
                axes[-1] = axes[-1][0] * size, steps
            else:
                axes.append((size, steps))
        found, space = [], ""
        for number, (size, _) in enumerate(axes):
            found.append(f"{space}for i{number} in range({size}):")
            space += "    "
        count = 0
        for each in lines:
            if isinstance(each, str):
                found.append(space + each)
                continue
            index = _index(each.offset, [steps[count] for _, steps in axes])
            count += 1
            at = f"{each.array.name}[{index}]"
            found.append(space + (f"{at} = {each.name}" if each.store else f"{each.name} = {at}"))
        return found


def _index(offset: int, strides: Sequence[int]) -> str:
    """Return the text of an index of an array, in loops with the given strides."""
    parts = [f"i{k}" if stride == 1 else f"i{k} * {stride}" for k, stride in enumerate(strides) if stride]
    return " + ".join([*parts, str(offset)] if offset or not parts else parts)


class _RegionSource:
    """Builder of the source text of a region that computes ``results`` by ``steps``; ``reads`` are the arrays it reads."""

    def __init__(self, steps: Sequence[Step], results: Sequence[Value]) -> None:
        self.results = results
        self.nests: list[_Nest] = []
        self.places: dict[Value, _Place] = {}
        self.constants: dict[Value, str] = {}
        self.reads: dict[Value, None] = {}
        self.stored: set[Value] = set(results)
        self.made = {each for step in steps for each in step.results}
        self.count = 0
        for step in steps:
            plan = _plan(step)
            if plan == "sum":
                self._sum(step)
            elif plan == "product":
                self._product(step)
            elif isinstance(plan, list):
                for value, moved in zip(step.results, plan, strict=True):
                    self._move(step, value, moved)
            else:
                self._elementwise(step, plan)
        for value in results:
            if value in self.places and self.places[value].array is not value:  # a view
                self._copy(self.places[value], value, value.shape, 0, _strides(value.shape))

    def source(self, name: str) -> str:
        """Return the text of the function."""
        body = [line for nest in self.nests for line in nest.text(self.stored)]
        start = [f"{each.name} = empty({each.size}{', bool' * (each.dtype == BOOL)})" for each in self.local()]
        start += [f"{each.name} = constant({text})" for each, text in self.constants.items()]
        given = ", ".join(each.name for each in (*self.reads, *self.results))
        return "\n".join([f"def {name}({given}):", *["    " + each for each in (*start, *body)]])

    def local(self) -> list[Value]:
        """Return the arrays that only the region uses."""
        found = [each for each in self.stored if each in self.made and each not in self.results]
        return sorted(found, key=lambda each: each.number)

    # -- Parts of the text

    def _variable(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def _place(self, value: Value) -> _Place:
        """Return the location of the elements of ``value``, and mark its array as read."""
        place = self.places.get(value) or _Place(value, 0, _strides(value.shape))
        array = place.array
        if (
            array.kind is CONSTANT
            and array.dtype != BOOL
            and array.size <= LITERAL_ELEMENTS
            and array.array is not None
        ):
            self.constants[array] = ", ".join(map(_number, array.array.reshape(-1).tolist()))
        elif array in self.made:
            self.stored.add(array)
        else:
            self.reads[array] = None
        return place

    def _nest(self, sizes: tuple[int, ...], operands: Sequence[Operand] = ()) -> _Nest:
        """Return a nest of loops over ``sizes`` for a step with ``operands``: the last one if it can compute the step."""
        last = self.nests[-1] if self.nests else None
        if operands and last is not None and last.sizes == sizes and last.names:
            arrays = {self.places[each].array for each in operands if each in self.places}
            made = set(last.names)
            if not arrays & made and all(each.shape == sizes for each in operands if each in made):
                return last
        self.nests.append(_Nest(sizes))
        return self.nests[-1]

    def _load(self, nest: _Nest, value: object, sizes: tuple[int, ...]) -> str:
        """Return the variable for the element of ``value``, which is broadcast to ``sizes``, or a literal."""
        if value.__class__ is not Value:
            return scalar_literal(value)
        if value in nest.names:
            return nest.names[value]
        if value.array is not None and value.size == 1 and value.dtype != BOOL:
            return scalar_literal(float(value.array.reshape(-1)[0]))
        place = self._place(value)
        strides = tuple(0 if size == 1 else each for size, each in zip(value.shape, place.strides, strict=True))
        return self._access(nest, place.array, place.offset, (0,) * (len(sizes) - len(strides)) + strides)

    def _access(self, nest: _Nest, array: Value, offset: int, strides: tuple[int, ...]) -> str:
        key = array, offset, strides
        if key not in nest.loaded:
            nest.loaded[key] = self._variable()
            nest.lines.append(_Access(nest.loaded[key], array, offset, strides, False))
        return nest.loaded[key]

    # -- Steps

    def _elementwise(self, step: Step, plan: object) -> None:
        result = step.results[0]
        nest = self._nest(result.shape, step.operands)
        operands = [self._load(nest, each, result.shape) for each in step.operands]

        def name(text: str) -> str:
            made = self._variable()
            nest.lines.append(f"{made} = {text}")
            return made

        nest.names[result] = name(element_text(plan, operands, name))  # type: ignore[arg-type]
        nest.lines.append(_Access(nest.names[result], result, 0, _strides(result.shape), True))

    def _copy(
        self, source: _Place, target: Value, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> None:
        nest = self._nest(shape)
        name = self._access(nest, source.array, source.offset, source.strides)
        nest.lines.append(_Access(name, target, offset, strides, True))

    def _fill(self, target: Value, text: str) -> None:
        nest = self._nest(target.shape)
        nest.lines.append(_Access(text, target, 0, _strides(target.shape), True))

    def _move(self, step: Step, value: Value, moved: _Moved) -> None:
        operands = [self._place(each) for each in step.operands]
        numbers = set(moved.operand.reshape(-1).tolist())
        only = step.operands[min(numbers)] if len(numbers) == 1 and min(numbers) >= 0 else None
        if not value.size:
            return
        if only is not None:
            place = self.places.get(only) or _Place(only, 0, _strides(only.shape))
            indices = _flat_indices(place, only.shape)[moved.places]
            if (at := _affine(indices)) is not None:
                self.places[value] = _Place(place.array, *at)
                return
        runs = _runs(moved, step.operands)
        if runs is not None:
            if -1 in numbers:
                self._fill(value, "F(0)")
            for number, offset, strides in runs:
                if step.operands[number].size:
                    self._copy(operands[number], value, step.operands[number].shape, offset, strides)
            return
        nest = self._nest(())
        for k, (number, index) in enumerate(zip(moved.operand.flat, moved.places.flat, strict=True)):
            name = "F(0)"
            if number >= 0:
                place = operands[number]
                offset = int(_flat_indices(place, step.operands[number].shape)[index])
                name = self._access(nest, place.array, offset, ())
            nest.lines.append(_Access(name, value, k, (), True))

    def _sum(self, step: Step) -> None:
        (x,), (result,) = step.operands, step.results
        over = _reduced_axes(step)
        kept = [axis for axis in range(len(x.shape)) if axis not in over]
        place, total = self._place(x), self._variable()
        strides = _strides(tuple(x.shape[axis] for axis in kept))
        inner = _index(place.offset, [place.strides[axis] for axis in (*kept, *over)])
        mean = step.op.name in MEANS
        element = f"{place.array.name}[{inner}]"
        exact = x.size < EXACT * result.size  # NumPy adds less than 8 numbers in their order, too
        self._reduce(
            [x.shape[axis] for axis in kept], [x.shape[axis] for axis in over], total,
            f"{total}[0] + {element}" if exact else f"plus({total}[0], {element})", result, strides,
            f" / F({x.size // result.size})" * mean,
        )  # fmt: skip

    def _product(self, step: Step) -> None:
        a, b = step.operands
        first, second, names = PRODUCTS[step.op.name]
        sizes = _sizes(step)
        assert sizes is not None
        places = self._place(a), self._place(b)
        order = [*names, *[each for each in first if each not in names]]
        texts = []
        for place, dims in zip(places, (first, second), strict=True):
            strides = [place.strides[dims.index(each)] if each in dims else 0 for each in order]
            texts.append(f"{place.array.name}[{_index(place.offset, strides)}]")
        total, result = self._variable(), step.results[0]
        counts = [sizes[each] for each in names]
        if names.endswith("j"):  # the elements of a row are computed together
            index = _index(0, _strides(result.shape))
            *outer, last = counts
            nest, space = _Nest(()), "    " * len(outer)
            each = f"i{len(outer)}"
            nest.lines += [
                f"{total} = empty({last})",
                *["    " * number + f"for i{number} in range({size}):" for number, size in enumerate(outer)],
                f"{space}for {each} in range({last}):",
                f"{space}    {total}[{each}] = F(0.0)",
                f"{space}for i{len(names)} in range({sizes['k']}):",
                f"{space}    for {each} in range({last}):",
                f"{space}        {total}[{each}] = {total}[{each}] + {texts[0]} * {texts[1]}",
                f"{space}for {each} in range({last}):",
                f"{space}    {result.name}[{index}] = {total}[{each}]",
            ]
            self.nests.append(nest)
            self.stored.add(result)
            return
        self._reduce(
            counts, [sizes["k"]], total, f"plus({total}[0], {texts[0]} * {texts[1]})",
            result, _strides(result.shape), "",
        )  # fmt: skip

    def _reduce(
        self, kept: Sequence[int], over: Sequence[int], total: str, added: str, result: Value,
        strides: tuple[int, ...], end: str,
    ) -> None:  # fmt: skip
        """Append loops over ``kept`` that compute an element of ``result``, by loops over ``over`` that compute ``added``."""
        lines = [f"{total} = empty(1)"]
        space = ""
        for number, size in enumerate(kept):
            lines.append(f"{space}for i{number} in range({size}):")
            space += "    "
        lines.append(f"{space}{total}[0] = F(0.0)")
        deep = space
        for number, size in enumerate(over):
            lines.append(f"{deep}for i{len(kept) + number} in range({size}):")
            deep += "    "
        lines.append(f"{deep}{total}[0] = {added}")
        lines.append(f"{space}{result.name}[{_index(0, strides)}] = {total}[0]{end}")
        nest = _Nest(())
        nest.lines += lines
        self.nests.append(nest)
        self.stored.add(result)


def _reduced_axes(step: Step) -> list[int]:
    """Return the dimensions of its operand that ``step``, a sum or mean, reduces."""
    shape = step.operands[0].shape
    if step.op.name.endswith("_all"):
        return [*range(len(shape))]
    if step.op.name == "sum_to_size":
        have = (1,) * (len(shape) - len(step.params[0])) + tuple(step.params[0])
        lead = len(shape) - len(step.params[0])
        return [k for k, (a, b) in enumerate(zip(shape, have, strict=True)) if k < lead or a != b]
    dims = step.params[0]
    if dims is None or dims == ():
        return [*range(len(shape))]
    return sorted({each % len(shape) for each in ((dims,) if isinstance(dims, int) else dims)}) if shape else []


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a C-contiguous array of ``shape``, in elements."""
    found = [1]
    for size in shape[:0:-1]:
        found.append(found[-1] * size)
    return tuple(found[::-1]) if shape else ()


def _flat_indices(place: _Place, shape: tuple[int, ...]) -> Array:
    """Return the index in the array of ``place`` of each element of a value of ``shape``, in C order."""
    found = numpy.full(shape, place.offset)
    for axis, (size, stride) in enumerate(zip(shape, place.strides, strict=True)):
        found += stride * numpy.arange(size).reshape(-1, *(1,) * (len(shape) - axis - 1))
    return found.reshape(-1)


def _number(value: float) -> str:
    return repr(value) if value - value == 0 else "nan" if value != value else "inf" if value > 0 else "-inf"
