"""Promotion of operands (tensors and numbers) to a common dtype, and errors for shapes that cannot be broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import ref

import numpy

from ..core import dtypes, promotion
from ..core.lazy_tensor import Lazy
from ..core.tensor import Tensor, wrap
from ..core.torch_function import ALL, OVERRIDING, state

if TYPE_CHECKING:
    from ..core.typing import ArrayDType, Function
    from .op import Op
    from .typing import ArrayList, DTypes, Number, Operand, OperandSequence

#: Classes whose instances the fast path takes as Tensors: Tensor and Parameter, whose ``__torch_function__`` overrides
#: nothing.
PLAIN: set[type] = {Tensor, Lazy}
NUMBERS = frozenset({float, int, bool})
F32, F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
INTEGERS = frozenset(map(numpy.dtype, (numpy.int64, numpy.int32, numpy.int16, numpy.int8, numpy.uint8)))
#: The dtypes besides float32 and float64 that kernels may take without conversion.
OTHERS: DTypes = INTEGERS | {numpy.dtype(bool)} | dtypes.HALF_PRECISION


#: NumPy's scalar types, which are treated as Python numbers. float64 and complex128 are also subclasses of these.
SCALARS: frozenset[type] = frozenset(numpy.sctypeDict.values()) - {
    numpy.object_, numpy.bytes_, numpy.str_, numpy.void, numpy.datetime64, numpy.timedelta64,
}  # fmt: skip


def is_exempt(kind: type) -> bool:
    """Whether ``kind`` is a class of tensors that overrides calls, and these overrides are disabled now."""
    return state()[0] != ALL and ref(kind) in OVERRIDING and issubclass(kind, Tensor) if OVERRIDING else False


def plain_number(value: Number) -> Number:
    """Return a NumPy scalar as a Python number, and any other value unchanged.

    A NumPy bool becomes a float, as in PyTorch.
    """
    if isinstance(value, numpy.generic):
        if isinstance(value, (numpy.bool_, numpy.longdouble)):
            return float(value)
        return complex(value) if isinstance(value, numpy.clongdouble) else value.item()
    return value


def annotated_numbers(function: Function) -> frozenset[str]:
    """Return the names of the parameters of ``function`` that are annotated as floats."""
    return frozenset(name for name, kind in function.__annotations__.items() if str(kind).startswith("float"))


def common_dtype(operands: Sequence[object]) -> dtypes.dtype:
    """Return the dtype to which ``operands`` (Tensors and numbers) are promoted.

    As in PyTorch, tensors with dimensions have priority over 0-d tensors, and 0-d tensors over numbers. An operand of
    lower priority changes the dtype only if the category of its dtype (bool < integer < floating < complex) is higher.
    """
    groups: list[dtypes.dtype | None] = [None, None, None]
    for each in operands:
        if isinstance(each, Tensor):
            kind, dtype = (0 if each._array.ndim else 1), dtypes.dtype_of(each._array.dtype)
        else:
            kind, dtype = 2, promotion.dtype_of_number(plain_number(each))
        previous = groups[kind]
        groups[kind] = dtype if previous is None else promotion.promote_types(previous, dtype)
    return promotion.promoted_dtype(*groups)


def promote_operands(op: Op, taken: DTypes, *operands: Operand) -> tuple[ArrayList, ArrayDType] | None:
    """Return the operands (arrays and numbers) in the NumPy dtype in which ``op`` computes, and this dtype.

    Numbers are returned unchanged. ``taken`` is the set of dtypes besides float32 and float64 that the kernel supports
    without conversion. The common dtype is cached in the dictionary ``op.united``, whose keys are the operands' dtypes.
    The result is None for operands that only the fallback ``generic_path.apply`` supports.
    """
    key = dtypes.default.floating, *([each.dtype.num * 2 + (not each.ndim) if isinstance(each, numpy.ndarray) else each.__class__
                                     for each in operands])  # fmt: skip
    try:
        target = op.united[key]
    except KeyError:
        target = op.united[key] = _common_numpy_dtype(op, taken, operands)
    if target is None:
        return None
    return [
        each if each.__class__ is not numpy.ndarray or each.dtype is target else each.astype(target)
        for each in operands
    ], target


def _common_numpy_dtype(op: Op, taken: DTypes, operands: OperandSequence) -> ArrayDType | None:
    """Return the NumPy dtype in which ``op`` computes the result for ``operands``, without a cache.

    The result is None if only the fallback ``generic_path.apply`` supports the operands. ``taken`` is as for
    :func:`promote_operands`.
    """
    if op.check is not None:
        op.check(*operands)
    common = common_dtype([wrap(each) if isinstance(each, numpy.ndarray) else each for each in operands])
    if op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    target = common.numpy
    numbers = any(each.__class__ in NUMBERS for each in operands)
    if numbers and target in INTEGERS:
        return None
    if target in dtypes.HALF_PRECISION and numbers:
        return None
    if target in (F32, F64):
        return None if op.refuses is not None and "f" in op.refuses[1] else target
    return target if target in taken else None


#: The smallest and the largest int of the range in which a dtype represents every int exactly.
_LIMITS: dict[ArrayDType, tuple[int, int]] = {F32: (-(2**24), 2**24), F64: (-(2**53), 2**53)}
for _each in INTEGERS:
    _LIMITS[_each] = int(numpy.iinfo(_each.str).min), int(numpy.iinfo(_each.str).max)


def stores_like_pytorch(value: Number, dtype: ArrayDType) -> bool:
    """Whether assigning the number ``value`` to an array of ``dtype`` gives the same result in NumPy as in PyTorch.

    If the result is False, the caller must convert the number first.
    """
    kind = value.__class__
    if kind is float:
        return dtype is F64 or (dtype is F32 and (-3e38 < value < 3e38 or value - value != 0))  # or inf, or nan
    if kind is int and dtype in _LIMITS:
        low, high = _LIMITS[dtype]
        return low <= value <= high
    return kind is bool and dtype.kind == "b"


def broadcast_error(operands: Sequence[object]) -> RuntimeError | None:
    """Return PyTorch's error if the shapes of the Tensors among ``operands`` cannot be broadcast together, or None."""
    shapes = [each._array.shape for each in operands if isinstance(each, Tensor)]
    merged: tuple[int, ...] = ()
    for shape in shapes:
        error = broadcast_mismatch(merged, shape)
        if error is not None:
            return error
        merged = numpy.broadcast_shapes(merged, shape)
    return None


def broadcast_mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError | None:
    """Return PyTorch's error if the shapes ``a`` and ``b`` cannot be broadcast together, or None."""
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at non-singleton "
                f"dimension {max(len(a), len(b)) - back}"
            )
    return None


def number_in(param: Number) -> Number:
    """Return the number in ``param`` if this is a 0-d tensor, and any other value unchanged.

    Raises TypeError for a tensor that has dimensions or requires a gradient.
    """
    if not isinstance(param, Tensor):
        return param
    if param._array.ndim or param.requires_grad:
        raise TypeError("a parameter must be a number, or a 0-d tensor that requires no gradient")
    return param.item()
