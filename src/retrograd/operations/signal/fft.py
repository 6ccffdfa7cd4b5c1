"""``torch.fft``: discrete Fourier transforms, ``fftshift`` and ``fftfreq``.

All transforms are based on three operations: ``fft_c2c`` (from complex to complex elements), ``fft_r2c`` (from real to
complex) and ``fft_c2r`` (from complex to real). The gradient of a transform is computed by the transform in the
opposite direction, because the transforms are linear and, except for a scale factor, unitary.

In the spectrum of n real elements, element ``n - k`` is the complex conjugate of element k. Such a spectrum is called
Hermitian-symmetric. A one-sided spectrum holds only its first ``n // 2 + 1`` elements. An element whose conjugate is
omitted represents two elements of the spectrum, and therefore counts twice in gradients. The numerical code is in
``kernels/fft.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim, strided
from ...dispatch.declare import TENSORS, op
from ...kernels import fft as fft_kernels
from ..creation.conversion import to
from ..creation.factory import array_module_for, new_leaf
from ..shape.padding import constant_pad_nd_block
from ..shape.rearrange import roll
from ..shape.slicing import slice_block

F: Any = TENSORS


# -- Operations ------------------------------------------------------------------------------------------------------


@op(function=False, method=False, linear=True, backward="FftC2CBackward0", event="_fft_c2c")
def fft_c2c(np: Any, self: Any, /, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Return the discrete Fourier transform of the complex ``self`` over the dimensions ``dim``.

    ``forward=False`` selects the inverse transform. ``normalization`` is 0 for no scaling, 1 to divide the result by
    ``sqrt(n)``, and 2 to divide it by n, where n is the number of transformed elements.
    """
    return fft_kernels.complex_to_complex(np, self, dim, normalization, forward)


fft_c2c.derivative(
    self=lambda F, g, dim, normalization, forward: F.fft_c2c(g, dim, normalization, not forward)
)  # fmt: skip


@op(function=False, method=False, linear=True, backward="FftR2CBackward0", event="_fft_r2c")
def fft_r2c(np: Any, self: Any, /, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """Return the discrete Fourier transform of the real ``self`` over the dimensions ``dim``, a complex array.

    If ``onesided`` is true, only the first ``m // 2 + 1`` of the m elements along the last dimension in ``dim`` are
    returned, because the other elements are complex conjugates of these. ``normalization`` is 0 for no scaling, 1 to
    divide the result by ``sqrt(n)``, and 2 to divide it by n, where n is the number of transformed elements.
    """
    return fft_kernels.real_to_complex(np, self, dim, normalization, onesided)


def _r2c_rule(F: Any, g: Any, self_shape: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    if not onesided:
        return F.fft_c2c(g, dim, normalization, False)  # the engine drops the imaginary parts
    size = self_shape[dim[-1]]
    return F.fft_c2r(F.mirrored_scaled(g, dim[-1], size, 0.5), dim, normalization, size)


fft_r2c.derivative(self=_r2c_rule)


@op(function=False, method=False, linear=True, backward="FftC2RBackward0", event="_fft_c2r")
def fft_c2r(np: Any, self: Any, /, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """Return the inverse discrete Fourier transform of ``self`` over the dimensions ``dim``, a real array.

    ``self`` is a one-sided spectrum: along the last dimension in ``dim`` it has ``last_dim_size // 2 + 1`` elements,
    and the result has ``last_dim_size`` elements. ``normalization`` is 0 for no scaling, 1 to divide the result by
    ``sqrt(n)``, and 2 to divide it by n, where n is the number of elements of the result over ``dim``.
    """
    return fft_kernels.complex_to_real(np, self, dim, normalization, last_dim_size)


fft_c2r.derivative(
    self=lambda F, g, dim, normalization, last_dim_size: F.mirrored_scaled(
        F.fft_r2c(g, dim, normalization, True), dim[-1], last_dim_size, 2.0
    )
)


@op(function=False, method=False, linear=True)
def mirrored_scaled(np: Any, self: Any, /, dim: int, size: int, factor: float) -> Any:
    """Return the one-sided spectrum ``self``, scaled for the gradient of ``fft_r2c`` or ``fft_c2r``.

    The complete spectrum has ``size`` elements along ``dim``. A one-sided spectrum omits elements that are the complex
    conjugates of others. An element whose conjugate is omitted is multiplied by ``factor``. The other elements are
    copied.
    """
    return fft_kernels.scale_mirrored(np, self, dim, size, factor)


mirrored_scaled.derivative(self=lambda F, g, dim, size, factor: F.mirrored_scaled(g, dim, size, factor))


@op(function=False, method=False, linear=True, holomorphic=False, backward="ConjBackward0", vmap="leading")
def conjugated(np: Any, self: Any, /) -> Any:
    """Return the complex conjugate of ``self``."""
    return self.conj()


conjugated.derivative(self=lambda F, g: F.conj_physical(g))


# -- Arguments -------------------------------------------------------------------------------------------------------


def _operand(name: str, input: Any, complex_: bool = False) -> Tensor:
    """Return ``input``, converted to a floating or complex dtype if necessary.

    Integers are converted to the default floating dtype. If ``complex_`` is true, a floating dtype is converted to a
    complex dtype of the same precision. Raise RuntimeError for half precision. ``name`` is not used.
    """
    kind = input.dtype if input.dtype.category >= dtypes.FLOATING else dtypes.default.floating
    if kind.numpy not in (each.numpy for each in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)):
        raise RuntimeError(f"Unsupported dtype {dtypes.scalar_name(kind)}")
    if complex_ and not kind.is_complex:
        kind = dtypes.complex64 if kind is dtypes.float32 else dtypes.complex128
    return input if kind is input.dtype else to(input, kind)


_SCALES = {None: (0, 2), "backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


def _scale(norm: Any, forward: bool) -> int:
    if norm not in _SCALES:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return _SCALES[norm][0 if forward else 1]


def _positive_size(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _truncated_or_padded(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return ``x`` truncated or padded with zeros to the size ``sizes[i]`` along each dimension ``dims[i]``."""
    target = list(x._array.shape)
    for axis, size in zip(dims, sizes, strict=True):
        if size < target[axis]:
            x = slice_block(x, axis, 0, size, 1)
        target[axis] = size
    lacking = [(0, target[axis] - size) for axis, size in reversed(list(enumerate(x._array.shape)))]
    if not any(after for _, after in lacking):
        return x
    return constant_pad_nd_block(x, tuple(each for pair in lacking for each in pair), 0.0)


def _dims_and_sizes(x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """Return the tuple (dimensions of ``x`` to transform, size of the transform along each of them).

    ``s`` (sizes) and ``dim`` are the arguments of a function such as ``torch.fft.fftn``; either may be None.
    """
    shape = x._array.shape
    s, dim = ((each,) if isinstance(each, int) else each for each in (s, dim))
    if dim is not None:
        if dim and not shape:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = [normalize_dim(each, len(shape)) for each in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is None:
        dims = list(range(len(shape))) if dim is None else dims
        return dims, [shape[axis] for axis in dims]
    if dim is not None and len(dim) != len(s):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    if len(s) > len(shape):
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {len(shape)} dimensions.")
    dims = list(range(len(shape) - len(s), len(shape))) if dim is None else dims
    return dims, [shape[axis] if size == -1 else size for axis, size in zip(dims, s, strict=True)]


def _one_sided_plan(name: str, x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int], int]:
    """Return the tuple (dims, sizes, n) for a transform of the one-sided spectrum ``x`` to a real signal.

    ``dims`` are the dimensions to transform. n is the size of the real signal along the last of them. ``sizes`` are the
    sizes to which ``x`` must be truncated or padded along ``dims``. The last size is ``n // 2 + 1``, because the
    spectrum is one-sided. ``name`` is the name of the function of ``torch.fft``, such as "irfftn", and ``s`` and
    ``dim`` are its arguments.
    """
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = (s,) if isinstance(s, int) else s
    real = sizes[-1] if last is not None and last[-1] != -1 else 2 * (x._array.shape[dims[-1]] - 1)
    return dims, [*(_positive_size(size) for size in sizes[:-1]), _positive_size(real) // 2 + 1], real


# -- Over one dimension ----------------------------------------------------------------------------------------------


def _fit_to_length(name: str, x: Tensor, n: Any, dim: Any, half: bool = False) -> tuple[Tensor, int, int]:
    """Truncate ``x`` or pad it with zeros for a transform of ``n`` elements along the dimension ``dim``.

    Return the tuple (x, dim, n), where dim is not negative. If ``half`` is false, the returned x has n elements along
    ``dim``. If ``half`` is true, ``x`` is a one-sided spectrum, and the returned x has ``n // 2 + 1`` elements.

    If ``n`` is None, it is computed from the size m of ``x`` along ``dim``: n is m, or ``2 * (m - 1)`` for a one-sided
    spectrum. ``name`` is not used.
    """
    axis = normalize_dim(dim, x._array.ndim, wrap_scalar=False)
    have = x._array.shape[axis]
    size = _positive_size((2 * (have - 1) if half else have) if n is None else n)
    if n is not None or half:
        x = _truncated_or_padded(x, (axis,), (size // 2 + 1 if half else size,))
    return x, axis, size


def _from_real(name: str, input: Any, n: Any, dim: Any, norm: Any, forward: bool, onesided: bool) -> Tensor:
    """Return the discrete Fourier transform of the real ``input`` along ``dim``.

    ``forward=False`` selects the inverse transform. If ``onesided`` is true, the result is a one-sided spectrum.
    ``name`` is the name of the calling function of ``torch.fft``, such as ``rfft``. ``n``, ``dim`` and ``norm`` are the
    arguments of that function: the size, the dimension and the scale of the transform.
    """
    if isinstance(input, Tensor) and input.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {dtypes.scalar_name(input.dtype)}")
    x, axis, _ = _fit_to_length(name, _operand(name, input), n, dim)
    scale = _scale(norm, forward)
    if forward:
        return fft_r2c(x, (axis,), scale, onesided)
    return conjugated(fft_r2c(x, (axis,), scale, onesided))


def _from_any(name: str, input: Any, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    if not isinstance(input, Tensor) or not input.is_complex():
        return _from_real(name, input, n, dim, norm, forward, False)
    x, axis, _ = _fit_to_length(name, _operand(name, input), n, dim)
    return fft_c2c(x, (axis,), _scale(norm, forward), forward)


def _to_real(name: str, input: Any, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    x, axis, size = _fit_to_length(name, _operand(name, input, True), n, dim, half=True)
    return fft_c2r(conjugated(x) if forward else x, (axis,), _scale(norm, forward), size)


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the discrete Fourier transform of ``input`` along ``dim``, a complex tensor.

    ``input`` is truncated or padded with zeros to ``n`` elements. ``norm`` selects the scale of the result:
    ``"backward"``, the default, means no scaling in this direction, ``"forward"`` divides by ``n``, and ``"ortho"``
    divides by the square root of ``n``.

    >>> import retrograd as torch
    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _from_any("fft", input, n, dim, norm, True)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse discrete Fourier transform of ``input`` along ``dim``, a complex tensor.

    ``input`` is truncated or padded with zeros to ``n`` elements. ``norm`` selects the scale of the result:
    ``"backward"``, the default, divides by ``n``, ``"forward"`` means no scaling in this direction, and ``"ortho"``
    divides by the square root of ``n``.
    """
    return _from_any("ifft", input, n, dim, norm, False)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the one-sided discrete Fourier transform of the real ``input`` along ``dim``.

    The result has the first ``n // 2 + 1`` elements of the transform; the omitted elements are complex conjugates of
    these. The parameters have the same meaning as in :func:`fft`.

    >>> import retrograd as torch
    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _from_real("rfft", input, n, dim, norm, True, True)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse of :func:`rfft` along ``dim``: a real signal from the one-sided spectrum ``input``.

    The result has ``n`` elements, by default ``2 * (m - 1)``, where m is the size of ``input`` along ``dim``. ``norm``
    selects the scale, as in :func:`ifft`.
    """
    return _to_real("irfft", input, n, dim, norm, False)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the discrete Fourier transform along ``dim`` of a signal that is Hermitian-symmetric along ``dim``.

    The transform of such a signal is real. ``input`` holds the first ``n // 2 + 1`` elements of the signal. The result
    has ``n`` elements, by default ``2 * (m - 1)``, where m is the size of ``input`` along ``dim``. ``norm`` selects the
    scale, as in :func:`fft`.
    """
    return _to_real("hfft", input, n, dim, norm, True)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse of :func:`hfft` along ``dim``: a Hermitian-symmetric signal from the real ``input``.

    The result holds the first ``n // 2 + 1`` elements of the signal. The parameters have the same meaning as in
    :func:`ifft`.
    """
    return _from_real("ihfft", input, n, dim, norm, False, True)


# -- Over several dimensions -----------------------------------------------------------------------------------------


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the discrete Fourier transform of ``input`` over the dimensions ``dim``.

    If ``dim`` is None, all dimensions are transformed, or the last ``len(s)`` dimensions if ``s`` is passed. ``input``
    is truncated or padded with zeros to the sizes ``s``. ``norm`` selects the scale, as in :func:`fft`.
    """
    return _to_complex("fftn", input, s, dim, norm, True)


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse discrete Fourier transform of ``input`` over the dimensions ``dim``.

    ``s`` and ``dim`` have the same meaning as in :func:`fftn`. ``norm`` selects the scale, as in :func:`ifft`.
    """
    return _to_complex("ifftn", input, s, dim, norm, False)


def _to_complex(name: str, input: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    x = _operand(name, input, True)
    dims, sizes = _dims_and_sizes(x, s, dim)
    x = _truncated_or_padded(x, dims, [_positive_size(size) for size in sizes])
    return fft_c2c(x, tuple(dims), _scale(norm, forward), forward)


def _real_operand(name: str, input: Any, s: Any, dim: Any) -> tuple[Tensor, list[int]]:
    x = _operand(name, input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return _truncated_or_padded(x, dims, [_positive_size(size) for size in sizes]), dims


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the discrete Fourier transform of the real ``input`` over the dimensions ``dim``.

    Along the last dimension in ``dim``, the result is a one-sided spectrum, as in :func:`rfft`. The parameters have the
    same meaning as in :func:`fftn`.
    """
    if isinstance(input, Tensor) and input.is_complex():
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {dtypes.scalar_name(input.dtype)}")
    x, dims = _real_operand("rfftn", input, s, dim)
    return fft_r2c(x, tuple(dims), _scale(norm, True), True)


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse of :func:`rfftn` over the dimensions ``dim``, a real tensor.

    ``s`` holds the sizes of the result along the dimensions ``dim``. For the last dimension in ``dim``, along which
    ``input`` has m elements, the default size is ``2 * (m - 1)``. ``norm`` selects the scale, as in :func:`ifft`.
    """
    x = _operand("irfftn", input, True)
    dims, sizes, last = _one_sided_plan("irfftn", x, s, dim)
    return fft_c2r(_truncated_or_padded(x, dims, sizes), tuple(dims), _scale(norm, False), last)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the discrete Fourier transform over the dimensions ``dim`` of a Hermitian-symmetric signal.

    The transform of such a signal is real. ``s`` holds the sizes of the result along the dimensions ``dim``. Along the
    last dimension in ``dim``, ``input`` holds only the first ``n // 2 + 1`` of the n elements of the signal. ``norm``
    selects the scale, as in :func:`fft`.
    """
    x = _operand("hfftn", input, True)
    dims, sizes, last = _one_sided_plan("hfftn", x, s, dim)
    x, scale = _truncated_or_padded(x, dims, sizes), _scale(norm, True)
    if len(dims) > 1:
        x = fft_c2c(x, tuple(dims[:-1]), scale, True)
    return fft_c2r(conjugated(x), (dims[-1],), scale, last)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """Return the inverse of :func:`hfftn` over ``dim``: a Hermitian-symmetric signal from the real ``input``.

    Along the last dimension in ``dim``, the result holds only the first ``n // 2 + 1`` of the n elements. ``s`` and
    ``dim`` have the same meaning as in :func:`fftn`. ``norm`` selects the scale, as in :func:`ifft`.
    """
    if isinstance(input, Tensor) and input.is_complex():
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {dtypes.scalar_name(input.dtype)}")
    x, dims = _real_operand("ihfftn", input, s, dim)
    scale = _scale(norm, False)
    half = fft_r2c(x, (dims[-1],), scale, True)
    if len(dims) == 1:
        return conjugated(half)
    return fft_c2c(F.conj_physical(half), tuple(dims[:-1]), scale, False)


def _two_dimensional(transform: Any) -> Any:
    """Return the two-dimensional version of ``transform``, such as ``fft2`` for ``fftn``.

    The returned function transforms the last two dimensions by default.
    """

    def plane(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
        return transform(input, s, dim, norm)

    plane.__name__ = plane.__qualname__ = transform.__name__[:-1] + "2"
    plane.__doc__ = f"Return the result of :func:`{transform.__name__}` over two dimensions, by default the last two."
    return plane


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (
    _two_dimensional(each) for each in (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn)
)


# -- Frequencies -----------------------------------------------------------------------------------------------------


def _shifted(input: Tensor, dim: Any, forward: bool) -> Tensor:
    shape = input._array.shape
    dims = tuple(range(len(shape))) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims:
        raise RuntimeError("`shifts` required")
    sizes = [shape[normalize_dim(each, len(shape))] for each in dims]
    return roll(input, tuple(size // 2 if forward else (size + 1) // 2 for size in sizes), dims)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return the spectrum ``input``, rolled so that frequency 0 is in the middle of each dimension in ``dim``.

    ``dim`` is an int or a tuple of ints, by default all dimensions.

    >>> import retrograd as torch
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted(input, dim, True)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return the inverse of :func:`fftshift`: ``input`` rolled so that frequency 0 is the first along ``dim``."""
    return _shifted(input, dim, False)


def _frequencies(name: str, n: Any, d: float, half: bool, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    if not hasattr(n, "__index__"):
        raise TypeError(f"fft_{name}(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    kind = dtypes.default.floating if dtype is None else dtype
    if kind.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    size = int(n / 2) + 1 if half else n  # rounded towards zero, also for a negative n
    if size < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {size}: [{size}]")
    np = array_module_for(device)
    indices = np.arange(size)
    if not half:
        indices = np.where(indices < (n + 1) // 2, indices, indices - n)
    return new_leaf(fft_kernels.frequencies(np, indices, n, d, kind.numpy), requires_grad)


def fftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the frequency of each element of the result of :func:`fft`, for a signal of ``n`` samples.

    ``d`` is the distance between two samples. The frequencies are in cycles per unit of ``d``.

    >>> import retrograd as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fftfreq", n, d, False, dtype, device, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the frequency of each element of the result of :func:`rfft`, for a signal of ``n`` samples.

    ``d`` is the distance between two samples. The frequencies are in cycles per unit of ``d``.
    """
    return _frequencies("rfftfreq", n, d, True, dtype, device, requires_grad)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
