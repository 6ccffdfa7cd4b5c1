"""Numbers in a row: from one to another in steps, or so many of them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, strided
from .create import dtype_of, into, made, place_of
from .table import surface


@surface(method=False)
def arange(
    start: Any, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from ``start`` to below ``end`` in steps of ``step``; of one argument, from 0 to below it.

    int64 if all arguments are integers, else of the default dtype.
    """
    if end is None:
        start, end = 0, start
    bounds = [each.item() if isinstance(each, Tensor) else each for each in (start, end, step)]
    _check_range(*bounds)
    whole = all(isinstance(each, (int, numpy.integer)) for each in bounds)
    kind = dtype_of("arange", dtype, dtypes.int64 if whole else None)
    if kind.kind in "bc":
        raise dtypes.unsupported("arange_cpu", kind)
    if kind == numpy.int64:
        bounds, whole = [int(each) for each in bounds], True
        _check_range(*bounds)
    first, last, stride = bounds
    count = max(0, -((first - last) // stride)) if whole else max(0, math.ceil((last - first) / stride))
    np = place_of(device)
    if whole or kind.kind in "iu":  # the ends are cut to the dtype, only then counted on
        first, stride = int(first), int(stride)
        array = (first + stride * np.arange(count, dtype=np.int64)).astype(kind)
    else:
        array = (first + stride * np.arange(count, dtype=np.float64)).astype(kind)
    return into(out, made(array, requires_grad))


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(each) for each in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@surface(method=False, name="range")
def _range(
    start: Any, end: Any, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """As :func:`arange`, but including ``end``; deprecated in PyTorch too."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    _check_range(start, end, step)
    count = math.floor((end - start) / step) + 1
    array = (start + step * place_of(device).arange(count, dtype=numpy.float64)).astype(dtype_of("range", dtype))
    return into(out, made(array, requires_grad))


@surface(method=False)
def linspace(
    start: Any, end: Any, steps: int, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """``steps`` numbers evenly from ``start`` to ``end``, both included."""
    start, end = _ends("linspace", start, end)
    kind = dtype_of("linspace", dtype, dtypes.default.complex if isinstance(start + end, complex) else None)
    return into(out, made(_even(place_of(device), "linspace", start, end, steps, kind), requires_grad))


def _ends(name: str, start: Any, end: Any) -> tuple[Any, Any]:
    """The ends as numbers, given as such or as tensors without dimensions."""
    ranks = [each._array.ndim if isinstance(each, Tensor) else 0 for each in (start, end)]
    if any(ranks):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {ranks[0]} dimension(s) and end "
            f"with {ranks[1]} dimension(s)."
        )
    first, last = (each.item() if isinstance(each, Tensor) else each for each in (start, end))
    return first, last


def _even(np: Any, name: str, start: Any, end: Any, steps: int, kind: Any) -> Any:
    """Counted from both ends to the middle, as PyTorch does, in the precision of the result."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if kind.kind in "iub":
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


@surface(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """``steps`` numbers from ``base ** start`` to ``base ** end``, evenly by their exponents."""
    start, end = _ends("logspace", start, end)
    kind = dtype_of("logspace", dtype)
    np = place_of(device)
    if kind.kind in "iu":
        start, end = int(start), int(end)
    exponents = _even(np, "logspace", start, end, steps, np.dtype(np.float64))
    return into(out, made(np.power(float(base), exponents).astype(kind), requires_grad))
