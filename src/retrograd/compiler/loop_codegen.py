"""Source text of a fused loop, and its compilation by Numba when it is first called.

    def loop(x0, x1, v4, v5):  # mul, tanh, sum_all
        ...
        for k in prange(...):

Loops with equal text are compiled once. An iteration of ``prange`` computes an element, a row, or a block of elements
or rows. A loop over at least ``LARGE`` elements distributes these iterations over the threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING
from zlib import crc32

import numpy

from ..kernels import numba_dispatch
from ..kernels.numba_dispatch import LARGE, RUNNING
from ..runtime.codegen import compile_source
from .fusion import BLOCK_ELEMENTS, BLOCK_ROWS, MEANS, SUMS, Loop, merged_dims, reduced_merged_dims
from .ir import Step, Value
from .scalar_code import element_text, expression_of, scalar_literal

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, Function
    from .program import Writer


class _LoopSource:
    """Builder of the source text of the fused loop ``loop``, with a list of lines for each part of the function.

    ``inner`` are the lines that compute one element. ``names`` maps each recorded array (:class:`Value`) to the
    expression for its current element in these lines.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        merged = merged_dims(loop.steps)
        assert merged is not None
        self.merged = merged
        self.sizes = [size for size, _ in merged]
        self.names: dict[Value, str] = {}
        self.inner: list[str] = []
        self.before: list[str] = []  # at the beginning of the function
        self.of_row: list[str] = []  # at the beginning of a row
        self.row_end: list[str] = []
        self.round: list[str] = []  # at the beginning of an iteration of prange
        self.round_end: list[str] = []
        self.after: list[str] = []  # after the last iteration
        self.count = 0

    # -- Elements

    def name(self, text: str, comment: str = "") -> str:
        """Append a line that assigns the expression ``text`` to a new local variable, and return the variable's name.

        ``comment`` is appended to the line.
        """
        self.count += 1
        self.inner.append(f"t{self.count} = {text}{comment}")
        return f"t{self.count}"

    def element(self, value: object) -> str:
        """Return an expression for the current element of the operand ``value``; for a number, a literal."""
        if value.__class__ is not Value:
            return scalar_literal(value)
        if value in self.names:
            return self.names[value]
        if value.array is not None and value.size == 1 and value.dtype.kind == "f":
            self.names[value] = scalar_literal(float(value.array.reshape(-1)[0]))
            return self.names[value]
        shape, rank = self.loop.shape, len(self.loop.shape)
        have = (1,) * (rank - len(value.shape)) + value.shape
        differs = [bool(axes) and have[axes[0]] != 1 for _, axes in self.merged]
        del shape
        array = f"a_{value.name}"
        if not any(differs):
            self.before.append(f"s_{value.name} = {value.name}.reshape(-1)[0]")
            self.names[value] = f"s_{value.name}"
            return self.names[value]
        sizes = [str(size) for size, each in zip(self.sizes, differs, strict=True) if each]
        self.before.append(f"{array} = {value.name}.reshape({', '.join(sizes)})")
        indices = [index for index, each in zip(self.indices, differs, strict=True) if each]
        if not differs[-1]:
            self.of_row.append(f"s_{value.name} = {array}[{', '.join(indices)}]")
            self.names[value] = f"s_{value.name}"
        else:
            self.count += 1
            self.inner.append(f"t{self.count} = {array}[{', '.join(indices)}]")
            self.names[value] = f"t{self.count}"
        return self.names[value]

    @property
    def indices(self) -> list[str]:
        """Names of the index variables of the generated loop, one for each dimension."""
        return {1: ["i"], 2: ["r", "i"], 3: ["o", "c", "i"]}[len(self.sizes)]

    def step(self, step: Step) -> None:
        """Append the source lines that compute ``step`` for one iteration of the loop.

        For a pointwise operation, the lines compute one element of the result. For a sum or mean, they add one element
        of the operand to the sum.
        """
        name, result = step.op.name, step.results[0]
        if name in SUMS:
            self.sum(step)
            return
        operands = [self.element(each) for each in step.operands]
        found = expression_of(step, self.loop.dtype)
        assert found is not None, "fusion.is_fusible has tested this"
        text = element_text(found, operands, self.name)
        comment = f"  # {result.name} = {name}"
        self.names[result] = self.name(text, comment)
        if result in self.loop.results:
            self.store(result)

    def store(self, result: Value) -> None:
        """Append the source line that writes the current element of ``result`` to its array."""
        self.before.append(f"a_{result.name} = {result.name}.reshape({', '.join(map(str, self.sizes))})")
        self.inner.append(f"a_{result.name}[{', '.join(self.indices)}] = {self.names[result]}")

    # -- Sums

    def sum(self, step: Step) -> None:
        """Append the source lines that compute ``step``, a sum or mean.

        The lines add up the elements inside the loop, and write the result afterwards.
        """
        result, x = step.results[0], self.element(step.operands[0])
        over, many = reduced_merged_dims(step, self.merged), step.operands[0].size // result.size
        name = result.name
        divided = f" / {many}" if step.op.name in MEANS else ""
        self.before.append(f"a_{name} = {name}.reshape(-1)")
        self.count += 1
        total = f"sum{self.count}"
        if all(over):
            self.before.append(f"parts_{name} = empty(rounds, float64)")
            if len(self.sizes) == 1:
                self.round.append(f"{total} = F(0)")
                self.round_end.append(f"parts_{name}[k] = {total}")
            else:
                self.round.append(f"part_{total} = 0.0")
                self.of_row.append(f"{total} = F(0)")
                self.row_end.append(f"part_{total} += {total}")
                self.round_end.append(f"parts_{name}[k] = part_{total}")
            self.inner.append(f"{total} = plus({total}, {x})  # {step.op.name}")
            self.after += ["whole = 0.0", "for k in range(rounds):", f"    whole += parts_{name}[k]",
                           f"a_{name}[0] = whole{divided}"]  # fmt: skip
        elif over[-1]:
            zero = "F(0)" if self.sizes[-1] <= BLOCK_ELEMENTS else "0.0"
            self.of_row.append(f"{total} = {zero}")
            self.inner.append(f"{total} = plus({total}, {x})  # {step.op.name}")
            self.row_end.append(f"a_{name}[r] = {total}{divided}")
        else:
            self.before.append(f"parts_{name} = zeros((rounds, {self.sizes[-1]}), F)")
            self.round.append(f"{total} = parts_{name}[k]")
            self.inner.append(f"{total}[i] += {x}  # {step.op.name}")
            self.after += [f"for i in range({self.sizes[-1]}):", "    whole = 0.0", "    for k in range(rounds):",
                           f"        whole += parts_{name}[k, i]", f"    a_{name}[i] = whole{divided}"]  # fmt: skip

    # -- The function

    def lines(self) -> list[str]:
        """Generate and return the source lines of the function ``loop``."""
        for each in self.loop.steps:
            self.step(each)
        given = [each.name for each in self.loop.reads if each.name in self._used()] + [
            each.name for each in self.loop.results
        ]
        self.given = given
        sums = bool(self.round)
        head = f"def loop({', '.join(given)}):  # {', '.join(dict.fromkeys(step.op.name for step in self.loop.steps))}"
        if len(self.sizes) == 1:
            size = self.sizes[0]
            if not sums:
                body = [f"for i in prange({size}):", *_indent(self.inner)]
                rounds = 0
            else:
                rounds = -(-size // BLOCK_ELEMENTS)
                body = ["for k in prange(rounds):", *_indent(self.round),
                        f"    for i in range(k * {BLOCK_ELEMENTS}, min({size}, (k + 1) * {BLOCK_ELEMENTS})):",
                        *_indent(_indent(self.inner)),
                        *_indent(self.round_end)]  # fmt: skip
        else:
            rows, across = int(numpy.prod(self.sizes[:-1])), self.sizes[-1]
            step = BLOCK_ROWS if sums else 1
            rounds = -(-rows // step)
            row = [] if len(self.sizes) == 2 else [f"o, c = r // {self.sizes[1]}, r % {self.sizes[1]}"]
            row += [*self.of_row, f"for i in range({across}):", *_indent(self.inner), *self.row_end]
            if sums:
                some = [f"for r in range(k * {step}, min({rows}, (k + 1) * {step})):", *_indent(row)]
                body = ["for k in prange(rounds):", *_indent([*self.round, *some, *self.round_end])]
            else:
                body = [f"for r in prange({rows}):", *_indent(row)]
        start = [f"rounds = {rounds}"] * sums + list(dict.fromkeys(self.before))
        return [head, *_indent([*start, *body, *self.after])]

    def _used(self) -> set[str]:
        text = "\n".join(self.before)
        return {each.name for each in self.loop.reads if f" {each.name}." in text}


def _indent(lines: Sequence[str]) -> list[str]:
    return ["    " + each for each in lines]


_compiled: dict[tuple[str, str], Runner] = {}


class Runner:
    """Machine code of a fused loop: the function with the text ``source``, compiled by Numba for arrays of ``dtype``.

    ``one(*arrays)`` runs the loop on its inputs and results, in the calling thread; :meth:`all` runs it on all threads.
    """

    def __init__(self, source: str, dtype: ArrayDType) -> None:
        self.source, self.dtype = source, dtype
        self.one: Function = self._first
        self._for_all: Function | None = None

    def _first(self, *arrays: Array) -> None:
        """Compile the loop for one thread, and run it on ``arrays``."""
        self.one = _compile_loop(self.source, self.dtype, False)
        self.one(*arrays)

    def all(self, *arrays: Array) -> None:
        """Run the loop on ``arrays``, its inputs and results, on all threads."""
        if self._for_all is None:
            self._for_all = _compile_loop(self.source, self.dtype, True)
        if RUNNING.simple:
            self._for_all(*arrays)
        elif not RUNNING.together(self._for_all, LARGE, arrays)[0]:
            self.one(*arrays)


def _compile_loop(source: str, dtype: ArrayDType, parallel: bool) -> Function:
    import math

    from numba import prange

    scalars = numba_dispatch.loops("math")
    name = f"loop_{crc32((source + dtype.name).encode()):08x}_{'all' if parallel else 'one'}"
    space: dict[str, object] = {
        "F": dtype.type, "prange": prange, "empty": numpy.empty, "zeros": numpy.zeros, "float64": numpy.float64,
        "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "inf": math.inf, "nan": math.nan, "__name__": __name__,
    }  # fmt: skip
    for each in ("exp", "log", "log1p", "tanh", "sigmoid", "erf", "normal_cdf", "decay", "decay_less_one", "plus"):
        space[each] = getattr(scalars, each)
    text = source.replace("def loop(", f"def {name}(", 1)
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "parallel": parallel}
    return compile_cached(name, text, space, options)


def compile_cached(
    name: str, text: str, space: dict[str, object], options: dict[str, object], notes: str = ""
) -> Function:
    """Return the function ``name`` that ``text`` defines, compiled by Numba, with its machine code in a cache folder.

    ``space`` has the global names, and ``options`` are those of Numba. ``notes`` are appended to the text in the file.
    ``name`` must contain a checksum of the text and the notes.
    """
    from numba import njit

    filename = _write_source(name, text + notes)
    function: FunctionType = compile_source(filename, text.splitlines(), space, name)
    if os.path.exists(filename):
        try:
            return njit(function, cache=True, **options)
        except RuntimeError:  # no writable cache folder
            pass
    return njit(function, **options)


def _write_source(name: str, text: str) -> str:
    """Write the source ``text`` to a file in the cache folder, and return the path of the file.

    The file is necessary because Numba caches machine code only for functions from files. ``name`` is the name of the
    function that ``text`` defines. If the folder is not writable, no file is written, and the result is a name that is
    not a path.
    """
    try:
        folder = Path(os.environ.get("RETROGRAD_CACHE_DIR") or Path.home() / ".cache" / "retrograd" / "loops")
        version = numba_dispatch.loops("jit")._version()
        folder = folder / version
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.py"
        if not file.exists():
            written = file.with_suffix(f".{os.getpid()}")
            written.write_text(text)
            os.replace(written, file)
        return str(file)
    except OSError:
        return f"<compiled {name}>"


def loop_call(loop: Loop, writer: Writer) -> list[str]:
    """Return the source lines of a program that allocate the results of the fused loop ``loop`` and call it.

    ``writer`` is the :class:`Writer` of the program.
    """
    text = _LoopSource(loop)
    loop.source = "\n".join(text.lines())
    key = loop.source, loop.dtype.name
    if key not in _compiled:
        _compiled[key] = Runner(*key[:1], loop.dtype)
    runner = _compiled[key]
    large = loop.size >= LARGE
    name = writer.name(runner, "loop")
    loop.source = loop.source.replace("def loop(", f"def {name}(", 1)
    lines = []
    for each in loop.results:
        lines.append(f"{each.name} = {writer.memory(each)}")
    operations = ", ".join(dict.fromkeys(step.op.name for step in loop.steps))
    lines.append(f"{name}.{'all' if large else 'one'}({', '.join(text.given)})  # {operations}")
    return lines
