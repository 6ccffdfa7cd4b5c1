"""Kernels of the torch.fft transforms and of stft, computed by SciPy or, on a GPU, by CuPy.

The transforms are computed in the precision of the input. Results have the same memory order as PyTorch's results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

#: Scaling of a transform: none, by the square root of the size, by the size. The values are PyTorch's.
UNSCALED, BY_ROOT, BY_SIZE = 0, 1, 2


def _transforms(np: Any) -> Any:
    """Return the module of FFT functions: SciPy's if ``np`` is NumPy, CuPy's if ``np`` is CuPy, or that of meta arrays."""
    if np.__name__ == "numpy":
        import scipy.fft as module
    elif np.__name__ == "meta":
        module = np.fft
    else:
        import cupyx.scipy.fft as module
    return module


def _mode(norm: int, forward: bool) -> str:
    """Return SciPy's name for the scaling of a Fourier transform.

    ``norm`` is PyTorch's number of the scaling: 0 none, 1 by ``1 / sqrt(n)``, 2 by ``1 / n``, where n is the number of
    transformed elements. SciPy's name for the same scaling depends on the direction: ``forward`` is true for a forward
    transform, and false for an inverse transform.
    """
    if norm == BY_ROOT:
        return "ortho"
    return "backward" if forward is (norm == UNSCALED) else "forward"


def _order(x: Any, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of ``x`` in the order in which the result of a transform is stored, outermost first.

    The axes that are not transformed come first, by descending stride in ``x``. The transformed axes ``dims`` follow.
    """
    rest = (axis for axis in range(x.ndim) if axis not in dims)
    return (*sorted(rest, key=lambda axis: -x.strides[axis]), *dims)


def _applied(np: Any, transform: Any, x: Any, dims: Sequence[int], **options: Any) -> Any:
    """Return ``transform(x)`` over the axes ``dims``, stored in the same memory order as PyTorch's result.

    ``options`` are passed to the transform.
    """
    order = _order(x, dims)
    result = transform(x.transpose(order), axes=tuple(range(x.ndim - len(dims), x.ndim)), **options)
    return result.transpose(tuple([order.index(axis) for axis in range(x.ndim)]))


def _by_stride(x: Any, dims: Sequence[int]) -> list[int]:
    """Return the axes ``dims`` of ``x`` sorted by their strides, the largest first."""
    return sorted(dims, key=lambda axis: -x.strides[axis])


def complex_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, forward: bool) -> Any:
    """Return the discrete Fourier transform of the complex array ``x`` over ``dims``, or the inverse transform.

    The transform is inverse if ``forward`` is false. ``norm`` is PyTorch's number of the scaling: 0 none, 1 by
    ``1 / sqrt(n)``, 2 by ``1 / n``, where n is the number of transformed elements.
    """
    if not dims or not x.size:
        return x.copy()
    module = _transforms(np)
    transform = module.fftn if forward else module.ifftn
    return _applied(np, transform, x, _by_stride(x, dims), norm=_mode(norm, forward))


def real_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, onesided: bool) -> Any:
    """Return the forward Fourier transform of the real array ``x`` over ``dims``.

    ``norm`` is PyTorch's number of the scaling: 0 none, 1 by ``1 / sqrt(n)``, 2 by ``1 / n``, where n is the number of
    transformed elements. If ``onesided`` is true, only the first half of the spectrum is returned along the last of
    ``dims``, because the other half is its complex conjugate in reverse order.
    """
    module, last = _transforms(np), dims[-1]
    if not x.size:
        size = x.shape[last] // 2 + 1 if onesided else x.shape[last]
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), np.result_type(x.dtype, np.complex64))

    def full_spectrum(y: Any, **options: Any) -> Any:
        """Return the full spectrum of the real array ``y``.

        The first half is computed along the last axis. The second half is its complex conjugate at the negative
        frequencies.
        """
        axes = [axis % y.ndim for axis in options.get("axes") or range(y.ndim)]
        half = module.rfftn(y, **options)
        count, rest = y.shape[axes[-1]], [slice(None)] * y.ndim
        rest[axes[-1]] = slice((count - 1) // 2, 0, -1)
        mirrored = half[tuple(rest)]
        for axis in axes[:-1]:  # at the negative frequencies of the other axes
            mirrored = np.roll(np.flip(mirrored, axis), 1, axis)
        return np.concatenate([half, mirrored.conj()], axes[-1])

    transform = module.rfftn if onesided else full_spectrum
    return _applied(np, transform, x, [*_by_stride(x, dims[:-1]), last], norm=_mode(norm, True))


def complex_to_real(np: Any, x: Any, dims: Sequence[int], norm: int, size: int) -> Any:
    """Return the inverse transform of ``x``, a half spectrum, with ``size`` real values along the last of ``dims``.

    A half spectrum is the first half of the Fourier transform of a real array; the other half is its complex conjugate
    in reverse order. ``norm`` is PyTorch's number of the scaling: 0 none, 1 by ``1 / sqrt(n)``, 2 by ``1 / n``, where n
    is the number of transformed elements.
    """
    last = dims[-1]
    if not x.size:
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), x.real.dtype)
    if len(dims) > 1:
        x = complex_to_complex(np, x, dims[:-1], norm, False)
    return _applied(np, _transforms(np).irfftn, x, [last], norm=_mode(norm, False), s=(size,))


def scale_mirrored(np: Any, x: Any, dim: int, size: int, factor: float) -> Any:
    """Return the half spectrum ``x`` with the elements that occur twice in the full spectrum multiplied by ``factor``.

    The full spectrum of a real signal has ``size`` elements along ``dim``. Its second half, the complex conjugate of
    the first half in reverse order, is not stored in ``x``. The first element and, if ``size`` is even, the last
    element of ``x`` occur once in the full spectrum; all others occur twice. The gradients of rfft and irfft contain
    this step.
    """
    out = x.copy()
    out[(slice(None),) * dim + (slice(1, (size + 1) // 2),)] *= factor
    return out


def frequencies(np: Any, places: Any, count: int, spacing: float, dtype: Any) -> Any:
    """Return ``places / (count * spacing)``, the frequencies of fftfreq and rfftfreq, as an array of ``dtype``.

    ``places`` are the integer indices of the frequencies, ``count`` is the number of samples, and ``spacing`` the
    distance between two samples. The result is computed in the precision of ``dtype``, or in float32 for half
    precision.
    """
    work = np.float32 if dtype.itemsize < 4 else dtype.type
    span = count * spacing
    step = 1 / span if span else math.inf
    with numpy.errstate(invalid="ignore"):  # 0 * inf for a transform of size 0
        return (places.astype(work) * work(step)).astype(dtype)
