"""SciPy's Fourier transforms of meta arrays, with the parameters that ``kernels/fft.py`` passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from .array import MetaArray, new_array


def _complex_dtype(x: MetaArray) -> Any:
    return numpy.result_type(x.dtype if x.dtype.kind in "fc" else numpy.float64, numpy.complex64)


def _shape(x: MetaArray, s: Sequence[int] | None, axes: Sequence[int]) -> list[int]:
    """Return the shape of ``x`` with the sizes ``s`` along ``axes``."""
    shape = list(x.shape)
    for axis, size in zip(axes, s or (), strict=False):
        shape[axis] = size
    return shape


def fftn(x: MetaArray, s: Any = None, axes: Any = None, **options: Any) -> MetaArray:
    """Return a complex array."""
    return new_array(_shape(x, s, axes), _complex_dtype(x))


ifftn = fftn


def rfftn(x: MetaArray, s: Any = None, axes: Any = None, **options: Any) -> MetaArray:
    """Return the first half of the frequencies along the last of ``axes``."""
    shape = _shape(x, s, axes)
    shape[axes[-1]] = shape[axes[-1]] // 2 + 1
    return new_array(shape, _complex_dtype(x))


def irfftn(x: MetaArray, s: Any = None, axes: Any = None, **options: Any) -> MetaArray:
    """Return a real array."""
    shape = list(x.shape)
    shape[axes[-1]] = 2 * (shape[axes[-1]] - 1)
    for axis, size in zip(axes, s or (), strict=False):
        shape[axis] = size
    return new_array(shape, _complex_dtype(x).type(0).real.dtype)


hfftn = irfftn
ihfftn = rfftn


def _along(function: Any) -> Any:
    return lambda x, n=None, axis=-1, **options: function(x, None if n is None else [n], [axis], **options)


fft, ifft, rfft, irfft, hfft, ihfft = map(_along, (fftn, ifftn, rfftn, irfftn, irfftn, rfftn))
