"""Access to the special functions of SciPy (on a GPU, of CuPy) for the operations of torch.special.

SciPy or CuPy is imported when the first special function is called.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

#: Element size of half precision, in which SciPy does not compute.
SHORT = 2


@cache
def library(module: str) -> Any:
    """Return SciPy's module of special functions if ``module`` is "numpy", else CuPy's."""
    return import_module("cupyx.scipy.special" if module == "cupy" else "scipy.special")


def special(np: Any, name: str, *operands: Any) -> Any:
    """Return the special function ``name`` of ``operands``, arrays or numbers.

    Operands of half precision are cast to float32 first.

    >>> import numpy
    >>> float(special(numpy, "gammaln", numpy.float64(3)))
    0.6931471805599453
    """
    dtype = next(each.dtype for each in operands if hasattr(each, "dtype"))
    wide = [np.asarray(each, None if hasattr(each, "dtype") else dtype) for each in operands]
    wide = [each.astype(np.float32) if _is_short(each) else each for each in wide]
    own = np.special.get(name) if np.__name__ == "cupy" else None
    function = own or getattr(library(np.__name__), name, None)
    if function is None:  # CuPy lacks some functions
        np.warn_on_cpu(name)
        return np.asarray(getattr(library("numpy"), name)(*(np.asnumpy(each) for each in wide)))
    return function(*wide)


def _is_short(operand: Any) -> bool:
    """Whether the dtype of the array ``operand`` is float16 or bfloat16."""
    return bool(operand.dtype.itemsize == SHORT and operand.dtype.kind in "fV")


def airy_ai(np: Any, x: Any) -> Any:
    """Return the Airy function Ai of ``x``.

    Above 103.892 the result is 0, because the value is below the smallest float; at infinity it is nan, as in PyTorch.
    """
    if np.__name__ != "cupy":
        values = library("numpy").airy(x)[0]
    else:
        np.warn_on_cpu("airy")
        values = np.asarray(library("numpy").airy(np.asnumpy(x))[0])
    return np.where(np.isinf(x), np.nan, np.where(x > 103.892, 0, values)).astype(x.dtype)


def spherical_bessel_j0(np: Any, x: Any) -> Any:
    """Return the spherical Bessel function ``sin(x) / x``, with the limits 1 at 0 and 0 at infinity."""
    safe = np.where((x == 0) | np.isinf(x), 1, x)
    return np.where(np.isinf(x), 0, np.where(x == 0, 1, np.sin(safe) / safe)).astype(x.dtype)
