"""Functions of many arrays on a GPU by few launches: steps of optimizers, scaling of gradients, and their norm.

A launch takes about as long as the computation of 100,000 elements, and a model has many small parameters. A kernel with
a table computes the same expressions for all of them. The table has the addresses and sizes of the arrays, and is passed
by value, so that nothing is copied to the device before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import cupy
import numpy

from .elements import F32, F64, MODULE, DeviceElement
from .launch import THREADS, UNKNOWN, elements_for, elementwise_kernel, key_of, raw_kernel
from .source import TYPES, Elementwise, elementwise, preamble

#: Maximum number of elements of an array in a shared launch, and of a concatenated array.
SMALL, TOGETHER = 2**20, 2**24
#: Bytes of a table. CUDA passes at most 4,096 bytes of arguments to a kernel.
TABLE = 3584
#: Elements that a thread computes.
OF_THREAD = 8

#: Launches: functions and their arguments.
Launches = list[tuple[Callable[..., Any], tuple[Any, ...]]]
#: Arrays that are computed together: each has the size of the others.
Row = Sequence[Any]


def same_floats(arrays: Sequence[Any]) -> bool:
    """Whether ``arrays`` are arrays on one GPU, of float32 or of float64 elements."""
    first = arrays[0]
    if first.__class__ is not cupy.ndarray or first.dtype not in (F32, F64):
        return False
    return all(each.__class__ is cupy.ndarray and each.dtype is first.dtype for each in arrays)


# -- Kernels with a table --------------------------------------------------------------------------------------------


class _TableKernel:
    """Kernel that computes the statements ``lines`` for element ``i`` of the arrays ``y0``, ``y1`` … of each row.

    A row has ``width`` arrays of the dtype with the character ``kind``. ``declared`` are the declarations of the
    arguments after the table.
    """

    def __init__(
        self, name: str, width: int, kind: str, declared: Sequence[str], lines: Sequence[str], double: bool
    ) -> None:  # fmt: skip
        self.rows = TABLE // (8 * (width + 1))
        sizes, starts = ("size", numpy.int64, (self.rows,)), ("start", numpy.uint64, (width, self.rows))
        self.table = numpy.dtype([sizes, starts])
        name, kind = f"retrograd_{name}", TYPES[kind]
        text = "\n".join([
            *([f"#include <cupy/{kind}.cuh>"] if "float1" in kind else []),
            preamble(double, "math.cuh"),
            f"struct Table {{ long long size[{self.rows}]; {kind}* start[{width}][{self.rows}]; }};",
            f'extern "C" __global__ void {name}({", ".join(["const Table table", *declared])}) {{',
            *[f"    {kind}* y{k} = table.start[{k}][blockIdx.y];" for k in range(width)],
            "    const long long step = (long long)gridDim.x * blockDim.x;",
            "    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
            "    for (long long i = first; i < table.size[blockIdx.y]; i += step) {",
            *["        " + line for line in lines], "    }", "}", "",
        ])  # fmt: skip
        self.kernel = raw_kernel(text, name)

    def launches(self, rows: Sequence[Row], values: Sequence[Any]) -> Launches:
        """Return the launches that compute ``rows``; ``values`` are the arguments after the table."""
        found: Launches = []
        for first in range(0, len(rows), self.rows):
            part = rows[first : first + self.rows]
            table = numpy.zeros((), self.table)
            sizes = [row[0].size for row in part]
            table["size"][: len(part)] = sizes
            table["start"][:, : len(part)] = [[each.data.ptr for each in arrays] for arrays in zip(*part, strict=True)]
            grid = max(1, -(-max(sizes) // (THREADS * OF_THREAD))), len(part)
            found.append((self.kernel, (grid, (THREADS,), (table, *values))))
        return found


def _is_small(row: Row) -> bool:
    """Whether the arrays of ``row`` are small, and their elements are in the same order in memory, without gaps."""
    flags = [each.flags for each in row]
    return row[0].size <= SMALL and (
        all(each.c_contiguous for each in flags) or all(each.f_contiguous for each in flags)
    )


# -- Updates ---------------------------------------------------------------------------------------------------------

#: Updates by their rules, apart from other plans: the numbers of many rules change in each step of an optimizer.
_updates: dict[Any, _Update | None] = {}
MOST_UPDATES = 64


class _Update:
    """Kernels of a rule that modifies rows of ``width`` arrays in place.

    ``made`` is the ElementwiseKernel, whose results are stored to the arrays ``places`` of a row. Its arguments are the
    arrays of a row, numbers, and arrays of one element that all rows share.
    """

    def __init__(self, name: str, made: Elementwise, places: Sequence[int], width: int, kind: Any) -> None:
        self.name, self.made, self.places, self.width, self.kind = name, made, places, width, kind

    def launches(self, rows: Sequence[Row], shared: Sequence[Any]) -> Launches:
        """Return the launches that modify ``rows``: one for all small arrays, and one for each of the others."""
        small = [_is_small(row) for row in rows]
        together = [row for row, each in zip(rows, small, strict=True) if each] if len(rows) > 1 else []
        found: Launches = []
        if len(together) > 1:
            kernel = _update_with_table(self.name, self.made, tuple(self.places), self.width, self.kind.char)
            number = F64.type if self.made.double else F32.type
            numbers = [number(each.value) for each in self.made.arguments if each.place is None]
            found += kernel.launches(together, [*shared, *numbers])
            rows = [row for row, each in zip(rows, small, strict=True) if not each]
        if rows:
            call = elementwise_kernel(self.made, self.name)
            sources = [(each.place, each.value) for each in self.made.arguments]
            ends = [each.reshape(()) for each in shared]
            for row in rows:
                given = [*row, *ends]
                arguments = [value if place is None else given[place] for place, value in sources]
                found.append((call, (*arguments, *[row[k] for k in self.places])))
        return found


_table_updates: dict[Any, _TableKernel] = {}


def _update_with_table(name: str, made: Elementwise, places: tuple[int, ...], width: int, kind: str) -> _TableKernel:
    """Return the kernel with a table that computes what ``made`` computes for a single row."""
    origins = tuple([each.place for each in made.arguments])
    key = made[:4], origins, places, width, kind
    if key not in _table_updates:
        shared = sorted({place for place in origins if place is not None and place >= width})
        declared = [f"const {TYPES[kind]}* s{place}" for place in shared]
        read = []
        for k, place in enumerate(origins):
            if place is None:
                declared.append(f"F p{k}")
            else:
                read.append(f"const F x{k} = F({f's{place}[0]' if place >= width else f'y{place}[i]'});")
        lines = made.body.split("\n")
        last = len(lines) - len(places)
        results = [f"const F z{k} ={line.partition('=')[2]}" for k, line in enumerate(lines[last:])]
        stores = [f"y{place}[i] = z{k};" for k, place in enumerate(places)]
        body = [*read, *lines[:last], *results, *stores]
        _table_updates[key] = _TableKernel(name, width, kind, declared, body, made.double)
    return _table_updates[key]


def update_calls(
    rule: partial[None], rows: Sequence[Row], shared: Sequence[Any] = (), name: str = "step"
) -> Launches | None:
    """Return the launches that modify the arrays of each row as ``rule(np, dtype, *row, *shared)`` does.

    The arguments of the partial function ``rule`` are part of the key by which the kernel is found. The arrays of a row
    must have one shape, and all arrays one dtype; those of ``shared`` have one element. The result is None if there is
    no kernel.
    """
    width, dtype = len(rows[0]), rows[0][0].dtype
    try:
        key = rule.func, *[key_of(each) for each in rule.args], dtype.char, width, len(shared)
    except TypeError:
        return None
    update = _updates.get(key, UNKNOWN)
    if update is UNKNOWN:
        if len(_updates) >= MOST_UPDATES:
            _updates.clear()
        update = _updates[key] = _update(rule, name, dtype, width, len(shared))
    return None if update is None else update.launches(rows, shared)


def update(rule: partial[None], rows: Sequence[Row]) -> bool:
    """Perform the launches of :func:`update_calls`; return whether there is a kernel."""
    launches = update_calls(rule, rows)
    for call, given in launches or ():
        call(*given)
    return launches is not None


def _update(rule: Callable[..., None], name: str, dtype: Any, width: int, shared: int) -> _Update | None:
    examples = [numpy.empty(shape, dtype) for shape in [(1,)] * width + [()] * shared]  # the kernels serve all shapes
    elements: list[DeviceElement] | None = elements_for(examples)
    if elements is None:
        return None
    try:
        rule(MODULE, dtype, *elements)
    except Exception:  # the rule is more than functions of the tables
        return None
    places = [k for k, each in enumerate(elements) if each.current is not each]
    if any(place >= width for place in places):
        return None
    made = elementwise([elements[k].current for k in places], [dtype] * len(places), [dtype] * len(elements))
    if not made.arguments or any(each.positions is not None for each in made.arguments):
        return None
    return _Update(name, made, places, width, dtype)


# -- Gradients -------------------------------------------------------------------------------------------------------


def norm(arrays: Sequence[Any]) -> Any:
    """Return the square root of the sum of all squares in ``arrays``, for which :func:`same_floats` is true.

    Small arrays are copied one after the other, so that there is one product for all of them.
    """
    lines: list[Any] = []
    together: list[Any] = []
    size = 0
    for each in arrays:
        line = each.ravel()
        if line.size > SMALL:
            lines.append(line)
            continue
        if size + line.size > TOGETHER:
            lines.append(cupy.concatenate(together))
            together, size = [], 0
        together.append(line)
        size += line.size
    if together:
        lines.append(together[0] if len(together) == 1 else cupy.concatenate(together))
    total = lines[0].dot(lines[0])
    for line in lines[1:]:
        total += line.dot(line)
    return cupy.sqrt(total, total)


def clip_factor(np: Any, norm: Any, largest: float) -> Any:
    """Return ``largest / (norm + 1e-6)``, at most 1."""
    return np.minimum(largest / (norm + 1e-6), 1)


def zero(arrays: Sequence[Any]) -> None:
    """Set all elements of ``arrays`` to 0; their elements have no gaps, and :func:`same_floats` is true."""
    for call, given in _zeroing(arrays[0].dtype.char).launches([(each,) for each in arrays], []):
        call(*given)


@cache
def _zeroing(kind: str) -> _TableKernel:
    return _TableKernel("zero", 1, kind, [], ["y0[i] = 0;"], kind == "d")


def unscale(arrays: Sequence[Any], inverse: Any) -> Any:
    """Multiply ``arrays`` in place by ``inverse``, a float32 array of one element.

    Return a bool array of no dimension: whether an element was infinite or nan. The elements of the arrays have no
    gaps, and :func:`same_floats` is true.
    """
    found = cupy.zeros(1, F32)
    kernel = _unscaling(arrays[0].dtype.char)
    for call, given in kernel.launches([(each,) for each in arrays], [inverse, found]):
        call(*given)
    return (found != 0).reshape(())


@cache
def _unscaling(kind: str) -> _TableKernel:
    lines = ["const F x = y0[i];", "if (!(x - x == F(0))) found[0] = 1;", "y0[i] = x * F(inverse[0]);"]
    return _TableKernel("unscale", 1, kind, ["const float* inverse", "float* found"], lines, kind == "d")


__all__ = ["clip_factor", "norm", "same_floats", "unscale", "update", "update_calls", "zero"]
