"""Kernels of the torch.fft transforms and of stft, computed by SciPy or, on a GPU, by CuPy.

These libraries compute in the precision of the input. Results have the memory order that PyTorch's have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

#: Scaling of a transform: none, by the square root of the size, by the size. The values are PyTorch's.
UNSCALED, BY_ROOT, BY_SIZE = 0, 1, 2


def _transforms(np: Any) -> Any:
    """Return SciPy's FFT module if ``np`` is NumPy, CuPy's if ``np`` is CuPy."""
    if np.__name__ == "numpy":
        import scipy.fft as module
    else:
        import cupyx.scipy.fft as module
    return module


def _mode(norm: int, forward: bool) -> str:
    """Return SciPy's name for ``norm``, PyTorch's number of the scaling: 0 none, 1 by ``sqrt(n)``, 2 by ``n``.

    SciPy names scalings differently for forward and inverse transforms; ``forward`` tells which of them is meant.
    """
    if norm == BY_ROOT:
        return "ortho"
    return "backward" if forward is (norm == UNSCALED) else "forward"


def _order(x: Any, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of ``x`` in the order in which the result of a transform is stored, outermost first.

    The axes that are not transformed come first, by descending stride in ``x``, then ``dims``.
    """
    rest = (axis for axis in range(x.ndim) if axis not in dims)
    return (*sorted(rest, key=lambda axis: -x.strides[axis]), *dims)


def _applied(np: Any, transform: Any, x: Any, dims: Sequence[int], **options: Any) -> Any:
    """Return ``transform(x)`` over the axes ``dims``, stored in the order of axes that PyTorch's result has.

    ``options`` are passed to the transform.
    """
    order = _order(x, dims)
    result = transform(x.transpose(order), axes=tuple(range(x.ndim - len(dims), x.ndim)), **options)
    return result.transpose(tuple(np.argsort(np.asarray(order)).tolist()))


def _by_stride(x: Any, dims: Sequence[int]) -> list[int]:
    """Return the axes ``dims`` of ``x`` sorted by their strides, the largest first."""
    return sorted(dims, key=lambda axis: -x.strides[axis])


def complex_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, forward: bool) -> Any:
    """Return the discrete Fourier transform of the complex array ``x`` over ``dims``, or its inverse.

    If ``forward`` is true the exponent is ``-i…``, else ``+i…``. ``norm`` is the scaling: 0 none, 1 by ``sqrt(n)``, 2
    by ``n``.
    """
    if not dims or not x.size:
        return x.copy()
    module = _transforms(np)
    transform = module.fftn if forward else module.ifftn
    return _applied(np, transform, x, _by_stride(x, dims), norm=_mode(norm, forward))


def real_to_complex(np: Any, x: Any, dims: Sequence[int], norm: int, onesided: bool) -> Any:
    """Return the forward transform of the real array ``x`` over ``dims``, scaled by ``norm`` (0, 1 or 2).

    If ``onesided`` is true, the last of ``dims`` keeps only the first half of the spectrum, because the other half is
    its conjugated mirror image.
    """
    module, last = _transforms(np), dims[-1]
    if not x.size:
        size = x.shape[last] // 2 + 1 if onesided else x.shape[last]
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), np.result_type(x.dtype, np.complex64))

    def full_spectrum(y: Any, **options: Any) -> Any:
        """Return the full spectrum of the real array ``y``: its computed half and the mirror image on the last axis."""
        half = module.rfftn(y, **options)
        return np.concatenate([half, half[..., (y.shape[-1] - 1) // 2 : 0 : -1].conj()], -1)

    transform = module.rfftn if onesided else full_spectrum
    return _applied(np, transform, x, [*_by_stride(x, dims[:-1]), last], norm=_mode(norm, True))


def complex_to_real(np: Any, x: Any, dims: Sequence[int], norm: int, size: int) -> Any:
    """Return the inverse transform of ``x``, a half spectrum, with ``size`` real values along the last of ``dims``."""
    last = dims[-1]
    if not x.size:
        return np.zeros((*x.shape[:last], size, *x.shape[last + 1 :]), x.real.dtype)
    if len(dims) > 1:
        x = complex_to_complex(np, x, dims[:-1], norm, False)
    return _applied(np, _transforms(np).irfftn, x, [last], norm=_mode(norm, False), s=(size,))


def scale_mirrored(np: Any, x: Any, dim: int, size: int, factor: float) -> Any:
    """Return ``x``, a half spectrum along ``dim``, with ``factor`` applied to the elements that have a mirror image.

    ``size`` is the number of elements of the full spectrum. All elements but the first and, for an even size, the last
    have a mirror image.
    """
    out = x.copy()
    out[(slice(None),) * dim + (slice(1, (size + 1) // 2),)] *= factor
    return out


def frequencies(np: Any, places: Any, count: int, spacing: float, dtype: Any) -> Any:
    """Return ``places / (count * spacing)``, computed in the precision of ``dtype`` (in float32 for half precision)."""
    work = np.float32 if dtype.itemsize < 4 else dtype.type
    span = count * spacing
    step = 1 / span if span else math.inf
    with numpy.errstate(invalid="ignore"):  # 0 * inf for a transform of size 0
        return (places.astype(work) * work(step)).astype(dtype)
