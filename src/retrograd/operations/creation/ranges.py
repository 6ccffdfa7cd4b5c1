"""Functions that create evenly spaced values: ``arange``, ``range``, ``linspace`` and ``logspace``."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.tensor import Tensor, strided
from ...dispatch.declare import public
from ...runtime.user_frame import warn
from .factory import array_module_for, as_python_number, new_leaf, numpy_dtype_for


def _common_arange(start: Any, end: Any, step: Any) -> Any:
    """Return ``arange(start, end, step)`` as an array if the arguments are simple, else None.

    The arguments are simple if they are valid ints, the values do not overflow int64, and the default device is the
    CPU. For other arguments, the general implementation of ``arange`` is used, which is slower. If ``end`` is None, the
    result is that of ``arange(0, start, step)``.
    """
    if start.__class__ is not int or step.__class__ is not int or array_module_for(None) is not numpy:
        return None
    if end is None:
        start, end = 0, start
    if end.__class__ is not int or not step or (end - start) * step < 0:
        return None
    return numpy.arange(start, end, step, dtype=INT) if -(2**62) < start < 2**62 and abs(end - start) < 2**58 else None


INT = numpy.dtype(numpy.int64)


@public(method=False, array_factory=_common_arange)
def arange(
    start: Any = None, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the values from ``start`` (included) to ``end`` (excluded) in steps of ``step``, as a 1-d tensor.

    ``arange(end)`` starts at 0. If ``dtype`` is None, the result has dtype int64 if all arguments are integers, else
    the default floating dtype.

    >>> import retrograd as torch
    >>> torch.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> torch.arange(1.0, 2.0, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    if end is None:
        if step.__class__ is not int or step != 1:
            raise TypeError("arange() of an end only has no step")
        start, end = None, start
    first, last, stride = as_python_number(0 if start is None else start), as_python_number(end), as_python_number(step)
    integral = isinstance(first, int) and isinstance(last, int) and isinstance(stride, int)
    kind = numpy_dtype_for("arange", dtype, dtypes.int64 if integral else None)
    if kind.kind in "bc":
        raise dtypes.unsupported("arange_cpu", kind)
    if kind == numpy.int64 and not integral and all(map(math.isfinite, (first, last, stride))):
        if int(stride) == 0 != stride:
            raise ValueError("step must be nonzero")
        first, last, stride, integral = int(first), int(last), int(stride), True
    _check_range(first, last, stride)
    count = max(0, -((first - last) // stride)) if integral else max(0, math.ceil((last - first) / stride))
    if count > 2**58:
        raise RuntimeError("invalid size, possible overflow?")
    if not integral and kind.kind in "iu":
        first, stride, integral = int(first), int(stride), True
    place = devices.as_device(device)
    with devices.selected(place):
        np = devices.array_module_for(place)
        counted = np.arange(count, dtype=numpy.int64 if integral else numpy.float64)
        return new_leaf((first + stride * counted).astype(kind), requires_grad, pin_memory=pin_memory)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@public(method=False, name="range")
def _range(
    start: Any, end: Any, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the values from ``start`` to ``end``, both included, in steps of ``step``, as a 1-d tensor.

    The function is deprecated, as in PyTorch.

    >>> import retrograd as torch
    >>> torch.range(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500, 2.0000])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
    )
    start, end, step = (as_python_number(each) for each in (start, end, step))
    _check_range(start, end, step)
    count = math.floor((end - start) / step) + 1
    place = devices.as_device(device)
    with devices.selected(place):
        np = devices.array_module_for(place)
        array = start + step * np.arange(count, dtype=numpy.float64)
        return new_leaf(array.astype(numpy_dtype_for("range", dtype)), requires_grad)


def _common_linspace(start: Any, end: Any, steps: Any) -> Any:
    """Return ``linspace(start, end, steps)`` as an array if the arguments are simple, else None.

    The arguments are simple if ``start`` and ``end`` are ints or floats, ``steps`` is an int from 2 to 4096, the
    default dtype is not half precision, and the default device is the CPU. For other arguments, the general
    implementation of ``linspace`` is used, which is slower. The limit of 4096 bounds the memory of the cache of
    :func:`_from_both_ends`.
    """
    kind = dtypes.default.floating.numpy
    numbers = (start.__class__ is int or start.__class__ is float) and (end.__class__ is int or end.__class__ is float)
    if not numbers or steps.__class__ is not int or not 1 < steps <= 4096 or kind in dtypes.HALF_PRECISION:
        return None
    if array_module_for(None) is not numpy:
        return None
    low, high, half = kind.type(start), kind.type(end), steps // 2
    line = numpy.multiply(_from_both_ends(steps, kind), numpy.asarray((high - low) / kind.type(steps - 1)))
    if start or end <= 0:  # otherwise the first half stays as it is: no zero in it is negative
        line[:half] += low
    line[half:] += high
    return line


@lru_cache(maxsize=64)
def _from_both_ends(steps: int, kind: Any) -> Any:
    """Return the offset of each of ``steps`` elements from the nearer end of a sequence, as an array of dtype ``kind``.

    For example, the offsets for 5 elements are 0, 1, -2, -1, 0. ``linspace`` computes an element as the value at the
    nearer end plus the offset times the distance between two elements.
    """
    half = steps // 2
    return numpy.array([*range(half), *range(half + 1 - steps, 1)], kind)


@public(method=False, array_factory=_common_linspace)
def linspace(
    start: Any, end: Any, steps: int, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included, as a 1-d tensor.

    If ``dtype`` is None, the result has the default complex dtype if ``start`` or ``end`` is complex, else the default
    floating dtype.

    >>> import retrograd as torch
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    first, last, count, kind = _bounds("linspace", start, end, steps, dtype)
    place = devices.as_device(device)
    with devices.selected(place):
        np = devices.array_module_for(place)
        return new_leaf(_evenly_spaced(np, first, last, count, kind), requires_grad, pin_memory=pin_memory)


def _bounds(name: str, start: Any, end: Any, steps: Any, dtype: Any) -> tuple[Any, Any, int, Any]:
    """Check the arguments of ``linspace`` or ``logspace``, and return them as Python numbers with the NumPy dtype.

    The result is the tuple (start, end, steps, NumPy dtype of the result). Raise TypeError or RuntimeError for invalid
    arguments. ``name`` is the name of the function in the error message.
    """
    _check_ends(name, start=start, end=end)
    first, last = [
        0.0 if isinstance(each, Tensor) and each.is_meta else as_python_number(each) for each in (start, end)
    ]
    inferred = dtypes.default.complex if isinstance(first + last, complex) else None
    kind = numpy_dtype_for(name, dtype, inferred)
    if inferred is not None and kind.kind != "c":
        raise RuntimeError(
            f"torch.{name}(): inferred dtype c10::complex<{'double' if inferred is dtypes.complex128 else 'float'}> can't "
            f"be safely cast to passed dtype {dtypes.scalar_name(dtypes.dtype_of(kind))}"
        )
    if kind.kind == "b":
        raise dtypes.unsupported(f"{name}_cpu", kind)
    count = steps.__index__()
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    return first, last, count, kind


def _check_ends(name: str, **ends: Any) -> None:
    """Raise RuntimeError if the argument ``start`` or ``end`` of a function is a tensor that is not 0-d.

    ``name`` is the name of the function, and ``ends`` holds the two arguments by name.
    """
    ranks = {which: each._array.ndim for which, each in ends.items() if isinstance(each, Tensor)}
    if any(ranks.values()):
        described = " and ".join(f"{which} with {rank} dimension(s)" for which, rank in ranks.items())
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {described}.")


def _evenly_spaced(np: Any, start: Any, end: Any, steps: int, kind: Any) -> Any:
    """Return ``steps`` evenly spaced values from ``start`` to ``end`` as an array of dtype ``kind``.

    The values in the first half are computed from ``start``, the others from ``end``, so that the rounding is the same
    as in PyTorch. The precision is that of ``kind``, or float64 if ``kind`` is an integer dtype. ``np`` is the array
    module, NumPy or CuPy.
    """
    if kind.kind in "iu":
        work: Any = np.dtype(np.float64)
        start, end = int(start), int(end)
    else:
        work = kind
    if steps == 1:
        return np.asarray([start]).astype(kind)
    low, high = np.asarray(start).astype(work), np.asarray(end).astype(work)
    stride = ((high - low) / work.type(max(steps - 1, 1))).astype(work)
    count = np.arange(steps)
    half = steps // 2
    up = low + stride * count.astype(work)
    down = high - stride * (steps - 1 - count).astype(work)
    values = np.where(count < half, up, down)
    return (np.trunc(values) if kind.kind in "iu" else values).astype(kind)


@public(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the values ``base ** x`` for ``steps`` exponents x, as a 1-d tensor.

    The exponents are evenly spaced from ``start`` to ``end``, both included.

    >>> import retrograd as torch
    >>> torch.logspace(0, 3, steps=4)
    tensor([   1.,   10.,  100., 1000.])
    """
    first, last, count, kind = _bounds("logspace", start, end, steps, dtype)
    if kind.kind in "iu":
        first, last = int(first), int(last)
    place = devices.as_device(device)
    with devices.selected(place):
        gpu = devices.array_module_for(place)
        # Powers of integers are exact on the CPU, and may be rounded down to the next integer on a GPU.
        np = numpy if kind.kind in "iu" and gpu.__name__ == "cupy" else gpu
        exponents = _evenly_spaced(np, first, last, count, np.dtype(np.complex128 if kind.kind == "c" else np.float64))
        powers = np.power(float(base), exponents).astype(kind)
        return new_leaf(powers if np is gpu else gpu.asarray(powers), requires_grad, pin_memory=pin_memory)
