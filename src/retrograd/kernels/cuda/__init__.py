"""The device ``cuda``: CuPy as the array module of kernels, with what kernels call and CuPy lacks.

Kernels are called with this module in place of NumPy, and run unchanged. All names are CuPy's, except those below:
``reduce``, ``accumulate``, ``reduceat`` and ``at`` of some ufuncs (``ufuncs.py``), functions that accept more in NumPy
(``functions.py``), and special functions with SciPy's values (``special.py``). None of them waits for the device.

The package is loaded by the first array on a GPU.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cupy

from . import attention, functions, lapack, launch, many, special, ufuncs, windows

__all__ = ["CUDA"]


class _Module(ModuleType):
    """Array module of CUDA arrays: the functions of this package, else those of CuPy."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(cupy, name)
        setattr(self, name, value)
        return value


CUDA: Any = _Module("cupy")
CUDA.__path__ = cupy.__path__
CUDA.attention, CUDA.lapack, CUDA.launch, CUDA.many, CUDA.windows = attention, lapack, launch, many, windows
CUDA.special = special.SPECIAL
for _entries in (ufuncs.UFUNCS, functions.FUNCTIONS):
    for _name, _function in _entries.items():
        setattr(CUDA, _name, _function)
