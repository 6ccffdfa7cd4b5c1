"""CUDA C++ of the expressions of a kernel: the body of an ElementwiseKernel, or a kernel that reduces rows.

A row is what the reductions of a kernel reduce: the elements along the reduced axes, for one position along the others.
The threads of a row pass over its elements once for each reduction that depends on the one before, and once more for
the results. Axes that are adjacent in memory for all arrays are merged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy

from ..scalar_code import ARITHMETIC, AS_NUMBER, BOOL, CHOICE, LOGIC
from .elements import F32, F64, INT, PICKED, DeviceElement

#: CUDA C++ of the texts of Python that differ from it.
TEXTS = {
    ARITHMETIC["maximum"]: "maximum({0}, {1})", ARITHMETIC["minimum"]: "minimum({0}, {1})",
    ARITHMETIC["sign"]: "sign_of({0})", AS_NUMBER: "F({0})", CHOICE: "{0} ? {1} : {2}",
    LOGIC["logical_not"]: "!{0}", LOGIC["logical_and"]: "{0} && {1}", LOGIC["logical_or"]: "{0} || {1}",
}  # fmt: skip
#: Reductions: the first value, and the function of two values.
IDENTITIES = {"add": "F(0)", "maximum": "-INFINITE", "minimum": "INFINITE"}
NAMES = {
    "e": "float16", "E": "bfloat16", "f": "float32", "d": "float64", "?": "bool", "l": "int64", "q": "int64",
}  # fmt: skip
#: Types of C++ by the characters of dtypes; ``NAMES`` are those of ElementwiseKernel.
TYPES = {**NAMES, "f": "float", "d": "double", "l": "long long", "q": "long long"}


@cache
def preamble(double: bool, *names: str) -> str:
    """Return the text of the header files ``names`` of this folder, for kernels that compute in float64 or float32."""
    texts = [files(__package__).joinpath(name).read_text() for name in names]
    return "\n".join([f"typedef {'double' if double else 'float'} F;", *texts])


class NoKernel(Exception):
    """The expressions are not those of a kernel."""


class _Writer:
    """Writer of statements for expressions; ``roots`` are the elements of the results.

    ``leaf(element)`` returns the text that reads an argument, and ``picked(element, index)`` that which reads an array at
    an index. A part that is used more than once becomes a variable.
    """

    def __init__(
        self, roots: Sequence[DeviceElement], leaf: Callable[[DeviceElement], str],
        picked: Callable[[DeviceElement, str], str] | None = None,
    ) -> None:  # fmt: skip
        self.leaf, self.picked, self.count = leaf, picked, 0
        self.uses: Counter[int] = Counter()
        seen: set[int] = set()
        pending = list(roots)
        while pending:
            node = pending.pop()
            self.uses[id(node)] += 1
            if id(node) not in seen:
                seen.add(id(node))
                pending += node.operands

    def name(self, dtype: Any, text: str, lines: list[str]) -> str:
        """Append a statement that assigns ``text`` to a new variable, and return its name."""
        self.count += 1
        kind = "bool" if dtype == BOOL else "long long" if dtype == INT else "F"
        lines.append(f"const {kind} t{self.count} = {text};")
        return f"t{self.count}"

    def text(self, node: DeviceElement, lines: list[str], known: dict[int, str]) -> str:
        """Return the expression of ``node``; ``known`` are the texts of the elements that have been computed."""
        found = known.get(id(node))
        if found is None:
            if node.text is None:
                found = known[id(node)] = self.leaf(node)
            elif node.text == PICKED:
                if self.picked is None:
                    raise NoKernel
                found = known[id(node)] = self.picked(node, self.text(node.operands[0], lines, known))
            else:
                parts = [self.text(each, lines, known) for each in node.operands]
                made = TEXTS.get(node.text, node.text).format(*parts)
                several = self.uses[id(node)] > 1 and node.operands
                found = self.name(node.dtype, made, lines) if several else f"({made})" if node.operands else made
                known[id(node)] = found
        return found


class Elementwise(NamedTuple):
    """Arguments of ``cupy.ElementwiseKernel``, and the elements of the kernel's arguments in order."""

    inputs: str
    outputs: str
    body: str
    double: bool
    arguments: tuple[DeviceElement, ...]


def _reached(roots: Sequence[DeviceElement]) -> list[DeviceElement]:
    """Return the elements on which ``roots`` depend, and these, each after those on which it depends."""
    found: dict[int, DeviceElement] = {}
    seen: set[int] = set()

    def visit(node: DeviceElement) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for each in node.operands:
                visit(each)
            found[id(node)] = node

    for each in roots:
        visit(each)
    return list(found.values())


def arguments_of(roots: Sequence[DeviceElement]) -> list[DeviceElement]:
    """Return the arguments on which the elements ``roots`` depend: arrays and numbers."""
    return [each for each in _reached(roots) if each.text is None]


def computes_double(nodes: Sequence[DeviceElement]) -> bool:
    """Whether the kernel with the arguments and results ``nodes`` computes in float64."""
    return any(each.dtype == F64 and each.place is not None for each in nodes)


def elementwise(roots: Sequence[DeviceElement], stored: Sequence[Any], read: Sequence[Any]) -> Elementwise:
    """Return the ElementwiseKernel that computes ``roots``, and stores them as arrays of the dtypes ``stored``.

    ``read`` are the dtypes of the arrays by their places.
    """
    given = arguments_of(roots)
    double = computes_double(given)
    names, inputs = {}, []
    elements = read_at_every_element(roots)
    for k, each in enumerate(given):
        if each.place is None:
            if each.positions is not None:
                names[id(each)] = f"x{k}"
                inputs.append(f"int64 x{k}")
                continue
            names[id(each)] = f"p{k}"
            inputs.append(f"{'float64' if double else 'float32'} p{k}")
        else:
            names[id(each)] = f"x{k}" if each.dtype in (BOOL, INT) else f"F(x{k})"
            raw = "" if id(each) in elements else "raw "
            inputs.append(f"{raw}{NAMES[numpy.dtype(read[each.place]).char]} x{k}")
    lines: list[str] = []

    def picked(node: DeviceElement, index: str) -> str:
        (_, array) = node.operands
        if id(array) in elements or array.ndim != 1:
            raise NoKernel
        return names[id(array)].replace(")", "") + f"[within({index}, {array.shape[0]})])"

    writer = _Writer(roots, lambda node: names[id(node)], picked)
    known: dict[int, str] = {}
    results = [writer.text(each, lines, known) for each in roots]
    lines += [f"y{k} = {text};" for k, text in enumerate(results)]
    outputs = [f"{NAMES[numpy.dtype(kind).char]} y{k}" for k, kind in enumerate(stored)]
    return Elementwise(", ".join(inputs), ", ".join(outputs), "\n".join(lines), double, tuple(given))


# -- Rows ------------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Kernel that reduces rows: its text, its arguments, and what is needed for a launch.

    ``parameters`` are the elements, sizes and strides that are passed after the results. ``results`` are the shapes of
    the results, ``rows`` and ``length`` the numbers of rows and of elements in a row. ``adjacent`` is the distance of
    the elements of a row in the first array.
    """

    text: str
    parameters: tuple[Any, ...]
    results: tuple[tuple[int, ...], ...]
    rows: int
    length: int
    adjacent: bool


def all_nodes(roots: Sequence[DeviceElement]) -> list[DeviceElement]:
    """Return the elements on which ``roots`` depend, and these."""
    found, pending, seen = [], list(roots), set()
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            pending += node.operands
    return found


def read_at_every_element(roots: Sequence[DeviceElement]) -> set[int]:
    """Return the ``id`` of each element that is an operand, except for arrays that are only read at an index."""
    nodes = all_nodes(roots)
    return {id(each) for node in nodes for each in (node.operands[:1] if node.text == PICKED else node.operands)}


def _reductions(roots: Sequence[DeviceElement]) -> list[DeviceElement]:
    """Return the reductions on which ``roots`` depend, each after those on which it depends."""
    return [each for each in _reached(roots) if each.over is not None]


class _RowWriter:
    """Writer of a kernel that computes ``roots``, which depend on reductions over the same axes of arrays of one shape.

    ``arrays`` are the arguments by their places. Each row is divided into ``parts``, whose results are stored one after
    the other.
    """

    def __init__(
        self, roots: Sequence[DeviceElement], arrays: Sequence[Any], stored: Sequence[Any], parts: int = 1
    ) -> None:
        self.roots, self.arrays, self.stored, self.parts = roots, arrays, stored, parts
        self.reductions = _reductions(roots)
        first = self.reductions[0]
        self.shape, self.over = first.operands[0].shape, first.over or ()
        if any(each.over != self.over or each.operands[0].shape != self.shape for each in self.reductions):
            raise NoKernel
        self.given = arguments_of(roots)
        self.double = computes_double(self.given)
        self.chosen = [node for node in all_nodes(roots) if node.text == PICKED]
        read = read_at_every_element(roots)
        self.leaves = [each for each in self.given if each.place is not None and id(each) in read]
        if any(each.positions is not None for each in self.given):
            raise NoKernel
        self.levels: dict[int, bool] = {}
        count = math.prod(self.shape)
        many = math.prod(n for axis, n in enumerate(self.shape) if axis not in self.over)
        self.full = [not self.of_row(each) or math.prod(each.shape) != many for each in roots]
        if any(math.prod(each.shape) != (count if full else many) for each, full in zip(roots, self.full, strict=True)):
            raise NoKernel
        steps = {id(each): self.steps_of(each) for each in self.leaves}
        steps.update({id(each): self.picked_steps(each) for each in self.chosen})
        patterns = [*steps.values()]
        self.axes = self.merged(patterns)
        self.kept = [k for k, axes in enumerate(self.axes) if axes[0] not in self.over]
        self.along = [k for k, axes in enumerate(self.axes) if axes[0] in self.over]
        self.parameters: list[Any] = []
        self.declared: list[str] = []
        self.sizes = [math.prod(self.shape[axis] for axis in axes) for axes in self.axes]
        self.start: list[str] = []  # statements at the beginning of a row
        self.first, self.end, self.line = "threadIdx.x", "count", "row"
        if parts > 1:
            self.first, self.end, self.line = "first + threadIdx.x", "last", "line"
            many = math.prod(self.shape[axis] for axis in self.over)
            divisor, chunk = self.integer(parts), self.integer(-(-many // parts))
            self.start += [f"const long long row = line / {divisor};", f"const long long first = line % {divisor} * {chunk};",
                           f"const long long last = first + {chunk} < count ? first + {chunk} : count;"]  # fmt: skip
        self.coordinates: dict[int, str] = {}
        self.loop_coordinates: list[str] = []
        self.row_coordinates()
        self.index = {id(each): self.address(steps[id(each)]) for each in (*self.leaves, *self.chosen)}
        self.pointers: dict[int, str] = {}
        self.full_index = (self.address(self.contiguous()) or "0") if any(self.full) else ""
        self.names = {}
        for k, each in enumerate(self.given):
            if each.place is None:
                self.declare(f"F p{k}", each)
                self.names[id(each)] = f"p{k}"
            else:
                self.declare(f"const {TYPES[numpy.dtype(arrays[each.place].dtype).char]}* a{k}", each)
                self.pointers[id(each)] = f"a{k}"
                if id(each) in self.index:
                    text = f"a{k}[{self.index[id(each)] or 0}]"
                    self.names[id(each)] = text if each.dtype in (BOOL, INT) else f"F({text})"

    def declare(self, text: str, value: Any) -> None:
        """Add a parameter with the declaration ``text`` and the argument ``value``."""
        self.declared.append(text)
        self.parameters.append(value)

    def integer(self, value: int) -> str:
        """Return the name of a new parameter with the integer ``value``."""
        self.declare(f"long long n{len(self.declared)}", numpy.int64(value))
        return self.declared[-1].split()[-1]

    # -- Axes

    def steps_of(self, leaf: DeviceElement) -> list[int]:
        """Return the strides of the array of ``leaf`` in elements, along the axes of the rows."""
        steps = [step if n != 1 else 0 for step, n in zip(self.element_strides(leaf), leaf.shape, strict=True)]
        if len(leaf.shape) > len(self.shape) or numpy.broadcast_shapes(leaf.shape, self.shape) != self.shape:
            raise NoKernel
        return [0] * (len(self.shape) - len(steps)) + steps

    def picked_steps(self, node: DeviceElement) -> list[int]:
        """Return the strides of the array from which ``node`` is picked, along the axes of the rows."""
        strides = self.element_strides(node.operands[1])
        steps = [0 if axis is None or n == 1 else strides[axis] for axis, n in zip(node.axes, node.shape, strict=True)]
        if numpy.broadcast_shapes(node.shape, self.shape) != self.shape:
            raise NoKernel
        return [0] * (len(self.shape) - len(steps)) + steps

    def picked(self, node: DeviceElement, index: str) -> str:
        """Return the text that reads the element at ``index`` of the array of ``node``."""
        step = self.element_strides(node.operands[1])[node.axis]
        size = self.integer(node.operands[1].shape[node.axis])
        place = f"within({index}, {size})" + ("" if step == 1 else f" * {self.integer(step)}")
        terms = [each for each in (self.index[id(node)], place) if each]
        return f"F({self.pointers[id(node.operands[1])]}[{' + '.join(terms)}])"

    def element_strides(self, leaf: DeviceElement) -> list[int]:
        """Return the strides of the array of ``leaf`` in elements."""
        array = self.arrays[leaf.place].reshape(leaf.shape)
        return [step // array.itemsize for step in array.strides]

    def contiguous(self) -> list[int]:
        """Return the strides of a result of the shape of the rows."""
        return [math.prod(self.shape[k + 1 :]) if n != 1 else 0 for k, n in enumerate(self.shape)]

    def merged(self, patterns: list[list[int]]) -> list[list[int]]:
        """Return the axes in groups that are one axis for all arrays."""
        groups: list[list[int]] = []
        every = [*patterns, self.contiguous()]
        for axis, size in enumerate(self.shape):
            if size == 1:
                continue
            last = groups[-1][-1] if groups else axis
            joined = (last in self.over) == (axis in self.over) and all(s[last] == s[axis] * size for s in every)
            if groups and joined:
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def row_coordinates(self) -> None:
        """Write the statements that compute the coordinates of a row, and of an element in it."""
        for places, variable, lines in ((self.kept, "row", self.start), (self.along, "i", self.loop_coordinates)):
            rest = variable
            for k in reversed(places):
                if k == places[0]:
                    self.coordinates[k] = rest
                    break
                size = self.integer(self.sizes[k])
                lines.append(f"const long long c{k} = {rest} % {size};")
                lines.append(f"const long long d{k} = {rest} / {size};")
                self.coordinates[k], rest = f"c{k}", f"d{k}"

    def address(self, steps: Sequence[int]) -> str:
        """Return the index of the current element of an array with the strides ``steps``; empty for a single element."""
        terms = []
        for k, axes in enumerate(self.axes):
            step = steps[axes[-1]]
            if step:
                terms.append(self.coordinates[k] + ("" if step == 1 else f" * {self.integer(step)}"))
        return " + ".join(terms)

    # -- Levels

    def of_row(self, node: DeviceElement) -> bool:
        """Whether ``node`` has one value for each row."""
        found = self.levels.get(id(node))
        if found is None:
            if node.over is not None or (node.text is None and node.place is None):
                found = True
            elif node.text == PICKED:
                found = False
            elif node.text is None:
                shape = (1,) * (len(self.shape) - len(node.shape)) + node.shape
                found = all(shape[axis] == 1 for axis in self.over) or all(self.shape[axis] == 1 for axis in self.over)
            else:
                found = all(map(self.of_row, node.operands))
            self.levels[id(node)] = found
        return found

    def depth(self, node: DeviceElement, known: dict[int, int]) -> int:
        """Return the number of passes over a row that are needed before ``node`` can be computed."""
        if id(node) not in known:
            below = max([self.depth(each, known) for each in node.operands], default=0)
            known[id(node)] = below + (node.over is not None)
        return known[id(node)]

    # -- Text

    def lines(self) -> list[str]:
        """Return the statements that compute one row."""
        writer = _Writer(self.roots, lambda node: self.names[id(node)], self.picked)
        of_row: dict[int, str] = {}
        out, depths = [*self.start], dict[int, int]()

        for level in range(1, 1 + max(self.depth(each, depths) for each in self.reductions)):
            here = [each for each in self.reductions if depths[id(each)] == level]
            inside: list[str] = []
            for each in here:
                self.hoist(each.operands[0], writer, out, of_row, set())
            known = dict(of_row)
            for each in here:
                text = writer.text(each.operands[0], inside, known)
                of_row[id(each)] = total = f"s{len(of_row)}"
                out.append(f"F {total} = {IDENTITIES[each.text or '']};")
                inside.append(f"{total} = {each.text}({total}, {text});")
            out += self.loop(inside)
            out += [f"{of_row[id(each)]} = reduced<{each.text}>({of_row[id(each)]});" for each in here]
        inside = []
        for each in self.roots:
            self.hoist(each, writer, out, of_row, set())
        known = dict(of_row)
        for k, (each, full) in enumerate(zip(self.roots, self.full, strict=True)):
            if full:
                inside.append(f"y{k}[{self.full_index}] = {writer.text(each, inside, known)};")
            else:
                out.append(f"if (threadIdx.x == 0) y{k}[{self.line}] = {writer.text(each, out, of_row)};")
        return out + (self.loop(inside) if inside else [])

    def hoist(
        self, node: DeviceElement, writer: _Writer, out: list[str], of_row: dict[int, str], seen: set[int]
    ) -> None:
        """Compute the parts of ``node`` that have one value for each row, before the loop over its elements."""
        if id(node) in seen or id(node) in of_row:
            return
        seen.add(id(node))
        if self.of_row(node):
            if node.over is None:
                text = writer.text(node, out, of_row)
                if node.operands or node.place is not None:
                    of_row[id(node)] = text if text.isalnum() else writer.name(node.dtype, text, out)
            return
        for each in node.operands[:1] if node.text == PICKED else node.operands:
            self.hoist(each, writer, out, of_row, seen)

    def loop(self, inside: list[str]) -> list[str]:
        """Return the statements of a loop over the elements of a row."""
        body = ["    " + line for line in [*self.loop_coordinates, *inside]]
        return [f"for (long long i = {self.first}; i < {self.end}; i += blockDim.x) {{", *body, "}"]

    def rows(self, name: str) -> Rows:
        """Return the kernel."""
        body = self.lines()
        outputs = [f"{TYPES[numpy.dtype(kind).char]}* y{k}" for k, kind in enumerate(self.stored)]
        head = ", ".join([*outputs, "long long rows", "long long count", *self.declared])
        text = "\n".join([
            f'extern "C" __global__ void {name}({head}) {{',
            "    const long long step = (long long)gridDim.x * blockDim.y;",
            f"    for (long long {self.line} = (long long)blockIdx.x * blockDim.y + threadIdx.y; "
            f"{self.line} < rows; {self.line} += step) {{",
            *["        " + line for line in body], "    }", "}",
        ])  # fmt: skip
        short = sorted({each for each in TYPES.values() if "float1" in each and each in head})
        includes = "".join(f"#include <cupy/{each}.cuh>\n" for each in short)
        text = f"{includes}{preamble(self.double, 'math.cuh', 'rows.cuh')}\n{text}\n"
        kept = math.prod(self.sizes[k] for k in self.kept)
        count = math.prod(self.sizes[k] for k in self.along)
        last = self.axes[-1] if self.axes else []
        adjacent = not last or last[0] in self.over or count == 1
        shapes = tuple((kept, self.parts) if self.parts > 1 else each.shape for each in self.roots)
        return Rows(text, tuple(self.parameters), shapes, kept * self.parts, count, adjacent)


def rows(name: str, roots: Sequence[DeviceElement], arrays: Sequence[Any], stored: Sequence[Any]) -> Rows | None:
    """Return the kernel that computes ``roots`` by rows, or None if they are not computed by rows.

    ``arrays`` are the arguments by their places, and ``stored`` the dtypes of the results.
    """
    try:
        return _RowWriter(roots, arrays, stored).rows(name)
    except NoKernel:
        return None


def divided(
    name: str, roots: Sequence[DeviceElement], arrays: Sequence[Any], stored: Sequence[Any], parts: int
) -> tuple[Rows, Rows] | None:
    """Return two kernels for a few long rows: of the reductions of ``parts`` of each row, and of these and ``roots``.

    The first kernel stores float32 or float64 arrays, which are the arguments of the second; this stores the dtypes
    ``stored``. The result is None if
    ``roots`` depend on the elements of the rows in another way than by reductions of expressions.
    """
    reductions = _reductions(roots)
    if any(_reductions(each.operands) for each in reductions):
        return None
    count = math.prod(n for axis, n in enumerate(reductions[0].shape) if axis not in (reductions[0].over or ()))
    made: dict[int, DeviceElement] = {}
    for place, each in enumerate(reductions):
        part = DeviceElement(each.dtype, (count, parts))
        part.place = place
        made[id(each)] = part.reduce(each.text or "", 1, True)

    def replaced(node: DeviceElement) -> DeviceElement:
        if id(node) not in made:
            if node.place is not None or node.text == PICKED:
                raise NoKernel
            if not node.operands:
                return node
            made[id(node)] = DeviceElement(node.dtype, (count, 1), node.text, [replaced(x) for x in node.operands])
        return made[id(node)]

    try:
        kind = F64 if computes_double(arguments_of(roots)) else F32
        first = _RowWriter(reductions, arrays, [kind] * len(reductions), parts).rows(name)
        between = [numpy.empty((count, parts), kind)] * len(reductions)
        second = _RowWriter([replaced(each) for each in roots], between, stored).rows(f"{name}_of_parts")
    except NoKernel:
        return None
    return first, second._replace(results=tuple(each.shape for each in roots))
