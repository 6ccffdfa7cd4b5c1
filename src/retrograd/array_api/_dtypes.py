"""Data types of the array API standard: kinds, promotion, checks of operands, ``astype``, ``finfo`` and ``iinfo``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import retrograd as torch
from retrograd import Tensor

BOOL, SIGNED, UNSIGNED, REAL_FLOATING, COMPLEX = (
    "bool", "signed integer", "unsigned integer", "real floating", "complex floating",
)  # fmt: skip
INTEGRAL = (SIGNED, UNSIGNED)
FLOATING = (REAL_FLOATING, COMPLEX)
REAL = (*INTEGRAL, REAL_FLOATING)
NUMERIC = (*REAL, COMPLEX)
BOOL_OR_INTEGRAL = (BOOL, *INTEGRAL)
ANY = (BOOL, *NUMERIC)

#: The dtypes of the standard, by name.
STANDARD = {
    name: getattr(torch, name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    )
}  # fmt: skip

Dtype = torch.dtype
Device = torch.device | str | int
Axes = int | tuple[int, ...] | None
Scalar = bool | int | float | complex


def kind_of(dtype: Dtype) -> str:
    """Return the kind of ``dtype``, as ``isdtype`` names it."""
    if not isinstance(dtype, Dtype):
        raise TypeError(f"expected a dtype of {__package__}, got {dtype!r}")
    if dtype is torch.bool:
        return BOOL
    if dtype.is_complex:
        return COMPLEX
    if dtype.is_floating_point:
        return REAL_FLOATING
    return SIGNED if dtype.is_signed else UNSIGNED


_KINDS: dict[Any, str] = {dtype: kind_of(dtype) for dtype in (*STANDARD.values(), torch.float16, torch.bfloat16)}
#: For each kind of Python scalar, the kinds of arrays with which it may be combined.
_SCALAR_KINDS: dict[type, tuple[str, ...]] = {bool: (BOOL,), int: NUMERIC, float: FLOATING, complex: FLOATING}
_NAMED_KINDS = {
    BOOL: (BOOL,), SIGNED: (SIGNED,), UNSIGNED: (UNSIGNED,), "integral": INTEGRAL, REAL_FLOATING: (REAL_FLOATING,),
    COMPLEX: (COMPLEX,), "numeric": NUMERIC,
}  # fmt: skip


def check(name: str, kinds: Iterable[str], *arrays: Any) -> None:
    """Raise TypeError if an argument is not a tensor or has a dtype that the function ``name`` does not take."""
    for x in arrays:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() takes tensors, not {type(x).__name__}")
        if kind_of(x.dtype) not in kinds:
            raise TypeError(f"{name}() takes dtypes of kind {' or '.join(map(repr, kinds))}, not {x.dtype}")


def _promote(first: Dtype, second: Dtype) -> Dtype:
    if first is second:
        return first
    kinds = _KINDS[first], _KINDS[second]
    if set(kinds) <= set(FLOATING):
        return torch.promote_types(first, second)
    if kinds[0] == kinds[1]:
        return max(first, second, key=lambda each: each.itemsize)
    if set(kinds) == set(INTEGRAL):
        signed, unsigned = (first, second) if kinds[0] == SIGNED else (second, first)
        size = max(signed.itemsize, 2 * unsigned.itemsize)
        if size <= 8:
            return STANDARD[f"int{8 * size}"]
    raise TypeError(f"the standard defines no common dtype of {first} and {second}; convert one with astype()")


def _with_scalar(dtype: Dtype, scalar: Scalar) -> Dtype:
    kind = next(each for each in (bool, int, float, complex) if isinstance(scalar, each))
    if _KINDS[dtype] not in _SCALAR_KINDS[kind]:
        raise TypeError(f"the standard does not combine a Python {kind.__name__} with an array of {dtype}")
    return dtype.to_complex() if kind is complex else dtype


def result_type(*arrays_and_dtypes: Tensor | Dtype | Scalar) -> Dtype:
    """Return the common dtype of arrays, dtypes and Python scalars, by the promotion rules of the standard.

    The rules do not depend on the number of dimensions. Raises TypeError for a mix of kinds for which the standard
    defines no result, such as an integer and a floating-point dtype.
    """
    dtypes = [_dtype_of(each) for each in arrays_and_dtypes if not _is_scalar(each)]
    if not dtypes:
        raise ValueError("result_type() takes at least one array or dtype")
    dtype = reduce(_promote, dtypes)
    for each in arrays_and_dtypes:
        if isinstance(each, Scalar):
            dtype = _with_scalar(dtype, each)
    return dtype


def _dtype_of(value: Any) -> Dtype:
    """Return ``value``, a dtype or its name in the standard, or the dtype of an array. xarray passes names."""
    found = value.dtype if isinstance(value, Tensor) else STANDARD.get(value) if isinstance(value, str) else value
    if not isinstance(found, Dtype):
        raise TypeError(f"expected an array or a dtype of {__package__}, got {value!r}")
    return found


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Scalar)


def promoted(name: str, kinds: Iterable[str], *operands: Any) -> list[Tensor]:
    """Return the operands of the function ``name`` as tensors of their common dtype, which must be of ``kinds``."""
    arrays = [each for each in operands if not _is_scalar(each)]
    check(name, kinds, *arrays)
    if not arrays:
        raise TypeError(f"{name}() takes at least one tensor")
    dtype = result_type(*operands)
    device = arrays[0].device
    converted = [
        torch.asarray(each, dtype=dtype, device=device) if _is_scalar(each) else each.to(dtype) for each in operands
    ]
    check(name, kinds, converted[0])
    return converted


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Whether ``dtype`` is of a ``kind``: a dtype, a name such as "real floating", or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _NAMED_KINDS:
            raise ValueError(f"unknown kind of dtype {kind!r}; the kinds are {', '.join(_NAMED_KINDS)}")
        return kind_of(dtype) in _NAMED_KINDS[kind]
    return dtype == kind


def can_cast(from_: Dtype | Tensor, to: Dtype, /) -> bool:
    """Whether the promotion rules of the standard convert ``from_`` to ``to``."""
    try:
        return result_type(from_, to) == to
    except TypeError:
        return False


def astype(x: Tensor, dtype: Dtype, /, *, copy: bool = True, device: Device | None = None) -> Tensor:
    """Return ``x`` converted to ``dtype``; without ``copy``, ``x`` itself if it has the dtype already."""
    check("astype", ANY, x)
    dtype = _dtype_of(dtype)
    if x.dtype.is_complex and not (dtype.is_complex or dtype is torch.bool):
        raise TypeError(f"astype() does not convert {x.dtype} to {dtype}; take real() or abs() first")
    return x.to(x.device if device is None else device, dtype, copy=copy)


class FloatInfo(NamedTuple):
    """Limits of a floating-point dtype, as ``finfo`` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


class IntegerInfo(NamedTuple):
    """Limits of an integer dtype, as ``iinfo`` returns."""

    bits: int
    max: int
    min: int
    dtype: Dtype


def finfo(type: Dtype | Tensor, /) -> FloatInfo:
    """Return the limits of a floating-point dtype; of the parts, for a complex one."""
    dtype = _dtype_of(type)
    info = torch.finfo(dtype)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype.to_real())


def iinfo(type: Dtype | Tensor, /) -> IntegerInfo:
    """Return the limits of an integer dtype."""
    dtype = _dtype_of(type)
    info = torch.iinfo(dtype)
    return IntegerInfo(info.bits, info.max, info.min, dtype)
