"""Where the numerics of special functions come from: SciPy on the CPU, CuPy's copy of it on the GPU.

Both are imported when the first special function is called, and not before.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

#: Element sizes that SciPy does not calculate in.
SHORT = 2


@cache
def library(module: str) -> Any:
    """The special functions that go with an array module."""
    return import_module("scipy.special" if module == "numpy" else "cupyx.scipy.special")


def special(np: Any, name: str, *operands: Any) -> Any:
    """The special function ``name`` of arrays and numbers; short floats are calculated in float32.

    >>> import numpy
    >>> float(special(numpy, "gammaln", numpy.float64(3)))
    0.6931471805599453
    """
    dtype = next(each.dtype for each in operands if hasattr(each, "dtype"))
    wide = [np.asarray(each, None if hasattr(each, "dtype") else dtype) for each in operands]
    wide = [each.astype(np.float32) if _is_short(each) else each for each in wide]
    found = getattr(library(np.__name__), name, None)
    if found is None:  # CuPy has not all of them: the CPU calculates
        return np.asarray(getattr(library("numpy"), name)(*(np.asnumpy(each) for each in wide)))
    return found(*wide)


def _is_short(operand: Any) -> bool:
    return bool(operand.dtype.itemsize == SHORT and operand.dtype.kind in "fV")


def airy_ai(np: Any, x: Any) -> Any:
    """The Airy function Ai; beyond 103.892 its value is below the smallest float, and no formula holds at infinity."""
    if np.__name__ == "numpy":
        found = library("numpy").airy(x)[0]
    else:
        found = np.asarray(library("numpy").airy(np.asnumpy(x))[0])
    return np.where(np.isinf(x), np.nan, np.where(x > 103.892, 0, found)).astype(x.dtype)


def spherical_bessel_j0(np: Any, x: Any) -> Any:
    """``sin(x) / x``: 1 at 0, and 0 at infinity."""
    safe = np.where((x == 0) | np.isinf(x), 1, x)
    return np.where(np.isinf(x), 0, np.where(x == 0, 1, np.sin(safe) / safe)).astype(x.dtype)
