"""Programs: generated Python functions that run the steps of a recorded call on arrays, one after another.

Each line calls a NumPy function, the kernel of an operation, or a fused loop (``compiler/fusion.py``). Dtypes and
conversions, which an uncompiled operation determines in each call, are determined once, when the source is generated. A
local variable is deleted after its last use, so that its array is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy

from ..core import dtypes
from ..core.tensor import wrap
from ..dispatch.generic_path import _cast, retype, run
from ..dispatch.kernel_traits import ufunc_of
from ..dispatch.operand_promotion import F32, common_dtype
from ..kernels import numba_dispatch
from ..kernels.matmul import product
from ..kernels.thresholds import PRODUCT
from ..runtime.codegen import compile_source
from .fusion import Loop, fuse, is_contiguous
from .ir import Step, Value, short_repr
from .loop_codegen import loop_call
from .passes import transposed_matrix
from .regions import Region, form_regions

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, Scalar
    from .typing import AnyStep, Operation


class Writer:
    """Builder of the source text of a program: ``lines`` are its source lines, and ``space`` is its namespace."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.space: dict[str, object] = {
            "np": numpy,
            "asarray": numpy.asarray,
            "empty": numpy.empty,
            "ndarray": numpy.ndarray,
            "product": product,
            "__name__": None,
        }
        self._named: dict[int, str] = {}
        self._kept: list[object] = []
        self._numbers: dict[tuple[str, ArrayDType], Array] = {}

    def name(self, thing: object, hint: str) -> str:
        """Add the object ``thing`` to the namespace of the program, and return its name, which begins with ``hint``.

        An object that is already in the namespace keeps its name.
        """
        if id(thing) not in self._named:
            found, count = hint, 1
            while found in self.space:
                count += 1
                found = f"{hint}_{count}"
            self.space[found] = thing
            self._named[id(thing)] = found
            self._kept.append(thing)
        return self._named[id(thing)]

    def number(self, value: object, dtype: ArrayDType) -> str:
        """Add the number ``value``, converted to ``dtype``, to the namespace of the program, and return its name."""
        key = repr(value), dtype
        if key not in self._numbers:
            self._numbers[key] = _cast(numpy, value, dtype)
        return self.name(self._numbers[key], f"number_{_identifier(value)}")

    def memory(self, value: Value) -> str:
        """Return the source text that allocates an uninitialised array with the shape and dtype of ``value``."""
        return f"empty({value.shape}, {self.name(value.dtype, value.dtype.name)})"

    def literal(self, value: object) -> str:
        """Return an expression for ``value``, a parameter of an operation: a literal, or a name in the namespace."""
        if value is None or value.__class__ in (int, bool, str) or (value.__class__ is float and value - value == 0):
            return repr(value)
        if value.__class__ is tuple:
            inner = [self.literal(each) for each in value]
            return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
        return self.name(value, getattr(type(value), "__name__", "value"))


class Program:
    """Generated function of a recorded call: ``run(*arrays)`` takes arrays for ``inputs`` and returns ``outputs``.

    ``source`` is the text of the function, and ``title`` its name. ``steps`` are the recorded operations and fused
    loops that the function runs. With ``regions``, steps on small arrays are compiled together (``compiler/regions.py``).
    Unless ``compiled``, no step is compiled, so that the function does not need Numba.
    """

    def __init__(
        self,
        title: str,
        inputs: Sequence[Value],
        steps: Sequence[Step],
        outputs: Sequence[Value | None],
        regions: bool = False,
        compiled: bool = True,
    ) -> None:
        self.title, self.inputs, self.outputs = title, tuple(inputs), tuple(outputs)
        self.steps: list[AnyStep] = list(steps)
        if compiled and numba_dispatch.permitted():
            self.steps = form_regions(steps, self.outputs) if regions else fuse(steps, self.outputs)
        writer = Writer()
        last = _last_uses(self.steps, self.outputs)
        for step in self.steps:
            writer.lines += _step_lines(writer, step)
            dead = [each.name for each in _values_of(step) if last.get(each) is step and each.kind == "result"]
            if dead:
                writer.lines.append(f"del {', '.join(dead)}")
        given = ", ".join(each.name for each in self.inputs)
        for each in _constants(self.steps, self.outputs):
            writer.space[each.name] = each.array
        made = ", ".join("None" if each is None else each.name for each in self.outputs)
        lines = [
            f"def {title}({given}):",
            *("    " + line for line in writer.lines),
            f"    return ({made}{',' * (len(self.outputs) == 1)})",
        ]
        self.source = "\n".join(lines)
        self.run = compile_source(f"<compiled {title}>", lines, writer.space, title)

    @property
    def loops(self) -> list[Loop]:
        """Fused loops among ``steps``."""
        return [each for each in self.steps if isinstance(each, Loop)]


def _values_of(step: AnyStep) -> list[Value]:
    """Return the distinct recorded arrays (:class:`Value` objects) that ``step`` reads or computes."""
    return list(dict.fromkeys([*step.values(), *step.results]))


def _last_uses(steps: Sequence[AnyStep], outputs: Sequence[Value | None]) -> dict[Value, AnyStep]:
    """Return a dict from each recorded array, except those in ``outputs``, to the last of ``steps`` that uses it."""
    found: dict[Value, AnyStep] = {}
    for step in steps:
        for each in _values_of(step):
            found[each] = step
    for each in outputs:  # type: ignore[assignment]
        found.pop(each, None)
    return found


def _constants(steps: Sequence[AnyStep], outputs: Sequence[Value | None]) -> list[Value]:
    every = [each for step in steps for each in step.values()] + [each for each in outputs if each is not None]
    return [each for each in dict.fromkeys(every) if each.kind == "constant"]


def _step_lines(writer: Writer, step: AnyStep) -> list[str]:
    """Return the source lines that run ``step``, which may be a fused loop."""
    if isinstance(step, Loop):
        return loop_call(step, writer)
    if isinstance(step, Region):
        return step.call(writer)
    made = ", ".join(each.name for each in step.results) + "," * step.several
    comment = f"  # {list(step.results[0].shape)}"
    return [f"{made} = {_expression(writer, step)}{comment}"]


def _expression(writer: Writer, step: Step) -> str:
    """Return the source text of the expression that computes the results of ``step``."""
    op = step.op
    if op.name in NUMPY_EXPRESSIONS and (text := NUMPY_EXPRESSIONS[op.name](step)) is not None:
        return text
    operands, target = (_cast_operands(writer, step)) if op.kind == "pointwise" else (_named(writer, step), None)
    params = [writer.literal(each) for each in step.params]
    short = op.opmath and any(each.dtype in dtypes.HALF_PRECISION for each in step.values())
    if short or (target is not None and target in dtypes.HALF_PRECISION):
        return f"{writer.name(_half_precision_step(step), op.name)}({', '.join(operands)})"
    result = step.results[0]
    whole = not result.shape  # a kernel may return a NumPy scalar
    ufunc = ufunc_of(op) if not step.params or op.kind == "pointwise" else None
    if ufunc is not None and list(step.params) == [op.defaults[each] for each in op.params]:
        text = f"{writer.name(ufunc, ufunc.__name__)}({', '.join(operands)})"
    else:
        positional = getattr(op, "positional", len(params))
        names = getattr(op, "params", ())
        params[positional:] = [
            f"{name}={value}" for name, value in zip(names[positional:], params[positional:], strict=True)
        ]
        text = f"{writer.name(op.kernel, op.name)}({', '.join(['np', *operands, *params])})"
        whole = whole or step.several
    computed = op.result or target
    if target is not None and computed not in (_PLAIN_DTYPES if ufunc is not None else _FLOATS):
        text = f"{writer.name(_cast_result(op, target), 'retyped')}({text})"
    if step.several:
        return f"map(asarray, {text})"
    if op.in_order and len(result.shape) > 1:
        return f"{writer.name(numpy.ascontiguousarray, 'in_order')}({text})"
    return f"asarray({text})" if whole else text


def _has_float_operands(step: Step) -> bool:
    return all(each.__class__ is Value and each.dtype in (F32, numpy.dtype(numpy.float64)) for each in step.operands)


def _matmul_text(step: Step) -> str | None:
    a, b = step.operands
    if not (_has_float_operands(step) and a.dtype == b.dtype and a.size and b.size):
        return None
    return f"{a.name}.dot({b.name})" if a.size + b.size < PRODUCT else f"product({a.name}, {b.name})"


def _transpose_text(step: Step) -> str | None:
    return f"{step.operands[0].name}.T" if transposed_matrix(step) is not None else None


def _reshape_text(step: Step) -> str | None:
    return f"{step.operands[0].name}.reshape({step.results[0].shape})" if is_contiguous(step.operands[0]) else None


#: Source text of operations for which NumPy has a faster expression than the operation's kernel.
NUMPY_EXPRESSIONS: dict[str, Callable[[Step], str | None]] = {
    "mm": _matmul_text, "t": _transpose_text, "transpose": _transpose_text, "view": _reshape_text, "unsqueeze": _reshape_text,
    "reshape_alias": _reshape_text, "unsafe_view": _reshape_text, "alias": lambda step: f"{step.operands[0].name}.view()",
    "detach": lambda step: f"{step.operands[0].name}.view()",
}  # fmt: skip
_FLOATS = (F32, numpy.dtype(numpy.float64))
_PLAIN_DTYPES = (*_FLOATS, numpy.dtype(bool))


def _cast_result(op: Operation, target: ArrayDType) -> Callable[[Array], Array]:
    """Return a function that converts an array, which the kernel of ``op`` has computed, to the dtype of the result.

    The dtype is ``target``, unless ``op`` has a fixed result dtype, ``op.result``, such as bool for comparisons.
    """
    return lambda array: retype(op, numpy.asarray(array), op.result or target)


def _half_precision_step(step: Step) -> Callable[..., Array | tuple[Array, ...]]:
    """Return a function that runs ``step``, which has float16 or bfloat16 operands, as an uncompiled call does.

    The function takes the operands as arrays and returns the result as an array, or a tuple of arrays.
    """
    op, params, final = step.op, step.params, step.results[0].dtype

    def by_short(*operands: Array | Scalar | None) -> Array | tuple[Array, ...]:
        tensors = tuple([wrap(each) if isinstance(each, (numpy.ndarray, numpy.generic)) else each for each in operands])
        found = run(op, tensors, params)[1]
        if isinstance(found, tuple):
            return tuple([numpy.asarray(each) for each in found])
        found = numpy.asarray(found)
        return found if found.dtype == final else found.astype(final)

    return by_short


def _named(writer: Writer, step: Step) -> list[str]:
    return [each.name if each.__class__ is Value else writer.literal(each) for each in step.operands]


def _cast_operands(writer: Writer, step: Step) -> tuple[list[str], ArrayDType]:
    """Return a list with an expression for each operand of the pointwise ``step``, and the common dtype.

    If an operand has another dtype, its expression converts the operand to the common dtype.
    """
    common = common_dtype_of(step)
    if common in dtypes.HALF_PRECISION:
        return [each.name if each.__class__ is Value else writer.literal(each) for each in step.operands], common
    found = []
    for each in step.operands:
        if each.__class__ is not Value:
            found.append(writer.number(each, common))
        elif each.dtype == common:
            found.append(each.name)
        else:
            found.append(f"{each.name}.astype({writer.name(common, common.name)})")
    return found, common


def _identifier(number: object) -> str:
    return "".join(each if each.isalnum() else "_" for each in str(number))


def common_dtype_of(step: Step) -> ArrayDType:
    """Return the NumPy dtype in which the pointwise ``step`` is computed."""
    blank = [
        wrap(numpy.empty((1,) * len(each.shape), each.dtype)) if each.__class__ is Value else each
        for each in step.operands
    ]
    common = common_dtype(blank)
    if step.op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    return common.numpy


__all__ = ["Program", "Writer", "common_dtype_of", "short_repr"]
