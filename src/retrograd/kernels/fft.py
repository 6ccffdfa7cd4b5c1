"""Fourier transforms of arrays in the precision that they come in, laid out as PyTorch lays them out.

Knows no Tensor. The transforms are SciPy's (or CuPy's), which keep single precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

#: How a transform is scaled: not at all, by the root of its size, by its size. PyTorch's numbers for them.
UNSCALED, BY_ROOT, BY_SIZE = 0, 1, 2


def _transforms(np: Any) -> Any:
    """The module of transforms that goes with an array module."""
    if np.__name__ == "numpy":
        import scipy.fft as found
    else:
        import cupyx.scipy.fft as found
    return found


def _mode(norm: int, forward: bool) -> str:
    if norm == BY_ROOT:
        return "ortho"
    return "backward" if forward is (norm == UNSCALED) else "forward"


def _order(x: Any, dims: Sequence[int]) -> tuple[int, ...]:
    """The order of the dimensions in the memory of a result: those not transformed first, by their strides in ``x``."""
    rest = (axis for axis in range(x.ndim) if axis not in dims)
    return (*sorted(rest, key=lambda axis: -x.strides[axis]), *dims)


def _applied(np: Any, transform: Any, x: Any, dims: Sequence[int], **options: Any) -> Any:
    """``transform`` over ``dims``, calculated in the order in which the result shall lie in memory."""
    order = _order(x, dims)
    found = transform(x.transpose(order), axes=tuple(range(x.ndim - len(dims), x.ndim)), **options)
    return found.transpose(tuple(np.argsort(np.asarray(order)).tolist()))


def _by_stride(x: Any, dims: Sequence[int]) -> list[int]:
    return sorted(dims, key=lambda axis: -x.strides[axis])


def complex_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, forward: bool) -> Any:
    """The transform of complex ``x`` over ``dims``: ``forward`` with ``exp(-i…)``, else with ``exp(i…)``."""
    if not dims or not x.size:
        return x.copy()
    module = _transforms(np)
    transform = module.fftn if forward else module.ifftn
    return _applied(np, transform, x, _by_stride(x, dims), norm=_mode(norm, forward))


def real_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, onesided: bool) -> Any:
    """The forward transform of real ``x``; ``onesided`` leaves out the half of the last of ``dims`` that mirrors it."""
    module, last = _transforms(np), dims[-1]
    if not x.size:
        size = x.shape[last] // 2 + 1 if onesided else x.shape[last]
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), np.result_type(x.dtype, np.complex64))

    def whole(y: Any, **options: Any) -> Any:
        """Half of the spectrum, and its mirror image behind it (over one dimension)."""
        half = module.rfftn(y, **options)
        return np.concatenate([half, half[..., (y.shape[-1] - 1) // 2 : 0 : -1].conj()], -1)

    transform = module.rfftn if onesided else whole
    return _applied(np, transform, x, [*_by_stride(x, dims[:-1]), last], norm=_mode(norm, True))


def complex_to_real(np: Any, x: Any, dims: Sequence[int], norm: int, size: int) -> Any:
    """The backward transform of half a spectrum, to ``size`` real numbers along the last of ``dims``."""
    last = dims[-1]
    if not x.size:
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), x.real.dtype)
    if len(dims) > 1:
        x = complex_to_complex(np, x, dims[:-1], norm, False)
    return _applied(np, _transforms(np).irfftn, x, [last], norm=_mode(norm, False), s=(size,))


def mirrored_scaled(np: Any, x: Any, dim: int, size: int, factor: float) -> Any:
    """Half a spectrum of ``size`` numbers, times ``factor`` where an element stands for its mirror image too."""
    found = x.copy()
    found[(slice(None),) * dim + (slice(1, (size + 1) // 2),)] *= factor
    return found


def frequencies(np: Any, places: Any, count: int, spacing: float, dtype: Any) -> Any:
    """``places / (count * spacing)`` in the precision of ``dtype``."""
    work = np.float32 if dtype.itemsize < 4 else dtype.type
    whole = count * spacing
    step = 1 / whole if whole else math.inf
    with numpy.errstate(invalid="ignore"):  # none of nothing: 0 * inf
        return (places.astype(work) * work(step)).astype(dtype)
