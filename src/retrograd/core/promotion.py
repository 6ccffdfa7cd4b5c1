"""Type promotion: the dtype in which tensors and numbers of several dtypes are computed.

Two dtypes of the same category (bool, integer, floating, complex) are promoted to the wider one, with two exceptions:
uint8 and int8 are promoted to int16, and float16 and bfloat16 to float32. The wider unsigned integers are promoted with
floating dtypes only, as in PyTorch.
"""

from __future__ import annotations

from ..runtime.user_frame import strips_frames
from .dtypes import (
    COMPLEX,
    FLOAT8,
    FLOATING,
    INTEGER,
    _check_dtypes,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    default,
    dtype,
    float16,
    float32,
    float64,
    int16,
    int64,
    scalar_name,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .torch_function import GO_ON, HANDLERS, intercepted

_FLOAT_RANK = (float16, bfloat16, float32, float64)
_WIDE_UNSIGNED = (uint16, uint32, uint64)


@strips_frames
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype to which both ``type1`` and ``type2`` can be converted, by PyTorch's rules.

    >>> import retrograd as torch
    >>> torch.promote_types(torch.int32, torch.float16), torch.promote_types(torch.uint8, torch.int8)
    (torch.float16, torch.int16)
    """
    if HANDLERS and (answer := intercepted(promote_types, type1, type2)) is not GO_ON:
        return answer
    if type1 is type2 and isinstance(type1, dtype):
        return type1
    _check_dtypes("promote_types", type1=type1, type2=type2)
    if type1 in FLOAT8 or type2 in FLOAT8:
        raise RuntimeError(
            "Promotion for Float8 Types is not supported, attempted to promote "
            f"{scalar_name(type1)} and {scalar_name(type2)}"
        )
    if (type1 in _WIDE_UNSIGNED or type2 in _WIDE_UNSIGNED) and not (
        type1.is_floating_point or type2.is_floating_point or type1.category == type2.category == INTEGER
    ):
        raise _no_promotion(type1, type2)
    low, high = (type1, type2) if type1.category <= type2.category else (type2, type1)
    if low.category == high.category == INTEGER:
        return _promote_integers(low, high)
    if high.category < COMPLEX:
        if low.category != high.category:
            return high
        return float32 if {low, high} == {float16, bfloat16} else max(low, high, key=_FLOAT_RANK.index)
    if low.to_real() is float64 or high is complex128:
        return complex128
    return complex32 if high is complex32 and (low.category < FLOATING or low is float16) else complex64


def _promote_integers(a: dtype, b: dtype) -> dtype:
    if a.is_signed == b.is_signed and (a.is_signed or a is uint8 or b is uint8 or a is b):
        wider = a if a.itemsize >= b.itemsize else b
        if wider not in _WIDE_UNSIGNED:
            return wider
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        raise _no_promotion(a, b)
    signed = a if a.is_signed else b
    return signed if signed.itemsize > 1 else int16


def _no_promotion(a: dtype, b: dtype) -> RuntimeError:
    return RuntimeError(
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
        f"{scalar_name(a)} and {scalar_name(b)}"
    )


def dtype_of_number(value: object) -> dtype:
    """Return the dtype to which the Python number ``value`` is converted if no tensor determines the dtype.

    Floats and complex numbers get the default dtypes, bools ``bool`` and ints ``int64``.
    """
    if value.__class__ is bool:
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return default.floating
    return default.complex


def promoted_dtype(dimensioned: dtype | None, zero_dim: dtype | None, number: dtype | None) -> dtype:
    """Return the dtype in which tensors with dimensions, 0-d tensors and Python numbers are combined.

    Each argument is the promoted dtype of the operands of one kind, or None if there are none: ``dimensioned`` of the
    tensors with dimensions, ``zero_dim`` of the 0-d tensors, and ``number`` of the Python numbers. The result has the
    dtype ``dimensioned`` unless a 0-d tensor or a number has a higher category. Similarly, a number does not change the
    dtype ``zero_dim`` unless its category is higher. The categories, from low to high, are bool, integer, floating and
    complex.
    """
    result = _combine(dimensioned, _combine(zero_dim, number))
    assert result is not None
    return result


def _combine(stronger: dtype | None, weaker: dtype | None) -> dtype | None:
    """Return the common dtype of the dtypes ``stronger`` and ``weaker``, one of which may be None.

    The dtype ``weaker`` changes the result only if its category is higher than that of ``stronger``.
    """
    if stronger is None or weaker is None:
        return stronger or weaker
    if stronger.category >= FLOATING:
        return stronger.to_complex() if weaker.is_complex else stronger
    if weaker.is_complex:
        return weaker
    if stronger is bool_ or weaker.category >= FLOATING:
        return promote_types(stronger, weaker)
    return stronger


@strips_frames
def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch's casting rules allow a conversion of the dtype ``from_`` to the dtype ``to``.

    Conversions from complex to real, from floating to integer, and from integer to bool are not allowed.

    >>> import retrograd as torch
    >>> torch.can_cast(torch.int64, torch.float32), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    if HANDLERS and (answer := intercepted(can_cast, from_, to)) is not GO_ON:
        return answer
    _check_dtypes("can_cast", from_=from_, to=to)
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and to.category < FLOATING:
        return False
    return not (from_.category == INTEGER and to is bool_)
