"""Operands brought together: the dtype in which tensors and numbers are calculated, and shapes that do not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..core import dtypes, promotion
from ..core.tensor import Tensor, wrap

#: Classes whose instances behave exactly as Tensors do (Tensor itself and Parameter).
PLAIN: set[type] = {Tensor}
#: Those among them that are not a program's own (see ``dispatch/torch_function_overrides.py``).
OURS: set[type] = {Tensor}
NUMBERS = frozenset({float, int, bool})
F32, F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
INTEGERS = frozenset(map(numpy.dtype, (numpy.int64, numpy.int32, numpy.int16, numpy.int8, numpy.uint8)))
OTHERS = INTEGERS | {numpy.dtype(bool)} | dtypes.SHORT


#: NumPy's scalar types, which stand for Python's numbers beside tensors; complex128 and float64 are subclasses of these.
SCALARS: frozenset[Any] = frozenset(numpy.sctypeDict.values()) - {
    numpy.object_, numpy.bytes_, numpy.str_, numpy.void, numpy.datetime64, numpy.timedelta64,
}  # fmt: skip


def plain_number(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, anything else as it is. A NumPy bool is a float, as in PyTorch."""
    if isinstance(value, numpy.generic):
        return float(value) if isinstance(value, numpy.bool_) else value.item()
    return value


def annotated_numbers(function: Any) -> frozenset[str]:
    """Return the names of the parameters of ``function`` that are annotated as floats."""
    return frozenset(name for name, kind in function.__annotations__.items() if str(kind).startswith("float"))


def common_dtype(operands: Sequence[Any]) -> dtypes.dtype:
    """The dtype in which operands (Tensors and numbers) are calculated together."""
    found: list[dtypes.dtype | None] = [None, None, None]
    for each in operands:
        if isinstance(each, Tensor):
            kind, dtype = (0 if each._array.ndim else 1), each.dtype
        else:
            kind, dtype = 2, promotion.of_number(plain_number(each))
        held = found[kind]
        found[kind] = dtype if held is None else promotion.promote_types(held, dtype)
    return promotion.result_of(*found)


def promote_operands(op: Any, taken: frozenset[Any], *operands: Any) -> tuple[list[Any], Any]:
    """Operands (arrays and numbers) in the dtype in which ``op`` calculates them, and that dtype.

    Raises ValueError where the generated caller is not to go on: ``apply`` knows what to do.
    """
    key = dtypes.default.floating, *([each.dtype.num * 2 + (not each.ndim) if isinstance(each, numpy.ndarray) else each.__class__
                                     for each in operands])  # fmt: skip
    try:
        target = op.united[key]
    except KeyError:
        target = op.united[key] = _united(op, taken, operands)
    if target is None:
        raise ValueError
    return [
        each if each.__class__ is not numpy.ndarray or each.dtype is target else each.astype(target)
        for each in operands
    ], target


def _united(op: Any, taken: frozenset[Any], operands: Sequence[Any]) -> Any:
    """The NumPy dtype for :func:`unite`, or None."""
    if op.check is not None:
        op.check(*operands)
    common = common_dtype([wrap(each) if isinstance(each, numpy.ndarray) else each for each in operands])
    if op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    target = common.numpy
    numbers = any(each.__class__ in NUMBERS for each in operands)
    if target in dtypes.SHORT and numbers:
        return None
    return target if target in (F32, F64) or target in taken else None


#: The numbers that a dtype takes as they are.
_LIMITS: dict[Any, tuple[int, int]] = {F32: (-(2**24), 2**24), F64: (-(2**53), 2**53)}
for _each in INTEGERS:
    _LIMITS[_each] = int(numpy.iinfo(_each.str).min), int(numpy.iinfo(_each.str).max)


def storable(value: Any, dtype: Any) -> bool:
    """Whether NumPy writes a number into an array of ``dtype`` just as torch does; if not, it is to be converted first."""
    kind = value.__class__
    if kind is float:
        return dtype is F64 or (dtype is F32 and (-3e38 < value < 3e38 or value - value != 0))  # or inf, or nan
    if kind is int and dtype in _LIMITS:
        low, high = _LIMITS[dtype]
        return low <= value <= high
    return kind is bool and dtype.kind == "b"


def broadcast_error(operands: Sequence[Any]) -> RuntimeError | None:
    """torch's error for shapes that do not go together, if they do not."""
    shapes = [each._array.shape for each in operands if isinstance(each, Tensor)]
    merged: tuple[int, ...] = ()
    for shape in shapes:
        error = mismatch(merged, shape)
        if error is not None:
            return error
        merged = numpy.broadcast_shapes(merged, shape)
    return None


def mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError | None:
    """torch's error if shapes ``a`` and ``b`` can not be broadcast together."""
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at non-singleton "
                f"dimension {max(len(a), len(b)) - back}"
            )
    return None


def numbers_in(params: tuple[Any, ...]) -> tuple[Any, ...]:
    """``params`` with the number for a tensor without dimensions; TypeError for any other tensor."""
    for each in params:
        if isinstance(each, Tensor) and (each._array.ndim or each.requires_grad):
            raise TypeError("a parameter must be a number, or a tensor of no dimensions that requires no gradient")
    return tuple([each.item() if isinstance(each, Tensor) else each for each in params])
