"""The device ``meta``: an array module whose arrays have a shape, a dtype and strides, and no elements.

Kernels are called with this module in place of NumPy, and run unchanged: NumPy's functions ask an argument for its own
implementation (``__array_ufunc__``, ``__array_function__``), which computes a layout. So an operation needs no rule for
its shape; a function of NumPy does (``functions.py``). What depends on values raises PyTorch's errors.

The package is loaded by the first use of the device.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy

from . import fft, functions, matrices
from .array import NEEDS_VALUES, RULES, MetaArray, as_strided, new_array, no_values
from .kernels import KERNELS

__all__ = ["META", "MetaArray"]


class _Module(ModuleType):
    """Array module of meta arrays: functions that create arrays return meta arrays, all others are NumPy's."""

    ndarray = MetaArray

    def __getattr__(self, name: str) -> Any:
        found = getattr(numpy, name)
        value = RULES.get(found, found) if callable(found) and found.__hash__ is not None else found
        setattr(self, name, value)
        return value


META = _Module("meta")
SINGLE = numpy.dtype(numpy.float32)


def _sizes(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, numpy.integer)) else tuple(map(int, shape))


def _empty(shape: Any, dtype: Any = numpy.float64, order: str = "C", **named: Any) -> MetaArray:
    return new_array(_sizes(shape), numpy.float64 if dtype is None else dtype)


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **named: Any) -> MetaArray:
    kind = (fill_value if isinstance(fill_value, MetaArray) else numpy.asarray(fill_value)).dtype
    return new_array(_sizes(shape), kind if dtype is None else dtype)


def _arange(*bounds: Any, dtype: Any = None, **named: Any) -> MetaArray:
    first, last, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = (
        len(range(first, last, step))
        if all(isinstance(each, int) for each in (first, last, step))
        else (max(0, int(numpy.ceil((last - first) / step))))
    )
    return new_array((count,), numpy.result_type(*map(type, bounds)) if dtype is None else dtype)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, **named: Any
) -> MetaArray:
    return new_array((num,), numpy.float64 if dtype is None else dtype)


def _eye(n: int, m: int | None = None, k: int = 0, dtype: Any = float, **named: Any) -> MetaArray:
    return new_array((n, n if m is None else m), dtype)


def _asarray(x: Any, dtype: Any = None, order: Any = None, **named: Any) -> MetaArray:
    found = functions.as_meta(x, dtype)
    return found.copy("C") if order == "C" and not found.flags.c_contiguous else found


def _array(x: Any, dtype: Any = None, *, copy: bool = True, order: str = "K", **named: Any) -> MetaArray:
    found = functions.as_meta(x, dtype)
    return found.copy(order or "K") if found is x and copy else found


def _ascontiguousarray(x: Any, dtype: Any = None) -> MetaArray:
    found = functions.as_meta(x, dtype)
    found = found if found.ndim else found.reshape(1)
    return found if found.flags.c_contiguous else found.copy("C")


def _indices(dimensions: Any, dtype: Any = int, **named: Any) -> MetaArray:
    return new_array((len(dimensions), *dimensions), dtype)


def _triangle(n: int, k: int = 0, m: int | None = None) -> tuple[MetaArray, MetaArray]:
    columns = n if m is None else m
    count = int(numpy.clip(columns - k - numpy.arange(n), 0, columns).sum())
    return new_array((count,), numpy.int64), new_array((count,), numpy.int64)


def _as_strided(x: Any, shape: Any = None, strides: Any = None, **named: Any) -> MetaArray:
    return x.view_as(as_strided(x.layout, shape, strides))


def kernel_of(op: Any) -> Any:
    """Return the kernel of the operation ``op`` for meta arrays, whose results are meta arrays."""
    return partial(_computed, KERNELS.get(op.name, op.kernel))


def _computed(kernel: Any, *args: Any, **named: Any) -> Any:
    return functions.as_results(kernel(*args, **named))


for _name, _function in {
    "empty": _empty, "zeros": _empty, "ones": _empty, "full": _full, "arange": _arange, "linspace": _linspace,
    "eye": _eye, "identity": _eye, "asarray": _asarray, "asanyarray": _asarray, "array": _array,
    "ascontiguousarray": _ascontiguousarray, "indices": _indices, "asnumpy": MetaArray.__array__,
    "triu_indices": _triangle, "fft": fft, "map_matrices": matrices.map_matrices,
    "no_values": no_values, "NEEDS_VALUES": NEEDS_VALUES, "kernel_of": kernel_of,
    "check_devices": functions.check_devices,
    "tri": lambda n, m=None, k=0, dtype=float: _eye(n, m, dtype=dtype),
    "lib": SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=_as_strided)),
}.items():  # fmt: skip
    setattr(META, _name, _function)
