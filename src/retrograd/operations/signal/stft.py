"""``stft`` and ``istft``: the short-time Fourier transform and its inverse."""

from __future__ import annotations

from ...core import dtypes
from ...core.devices import on_gpu
from ...core.tensor import Tensor, element_strides
from ...dispatch.declare import METHODS, public
from ...runtime.user_frame import warn
from ..creation.factory import ones
from ..elementwise.complex import view_as_complex, view_as_real
from ..shape.padding import pad
from ..shape.slicing import as_strided, slice_block, unfold_backward
from ..shape.views import squeeze, transpose, unsqueeze, view
from .fft import fft_c2c, fft_c2r, fft_r2c

NO_WINDOW = "A window was not provided. A rectangular window will be applied,"
SUPPRESS_HINT = (
    "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


_WARNED: set[str] = set()


def _warn_once(text: str) -> None:
    """Issue the warning ``text`` unless it was issued before in this process."""
    if text not in _WARNED:
        _WARNED.add(text)
        warn(text)


def _flag(value: bool | None) -> str:
    return "None" if value is None else str(int(value))


def _shown(window: Tensor | None) -> str:
    return "None" if window is None else f"{_type(window)}{{{list(window._array.shape)}}}"


def _type(x: Tensor) -> str:
    return f"torch.{dtypes.scalar_name(x.dtype)}Tensor"


# -- Forward transform -----------------------------------------------------------------------------------------------


@public()
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the short-time Fourier transform of the signal ``input``: the spectra of its frames.

    ``input`` is one signal (1-d) or several signals (2-d), real or complex. A frame is a section of ``n_fft`` elements.
    Two successive frames start ``hop_length`` elements apart, by default a quarter of ``n_fft``. Each frame is
    multiplied by ``window``, which has ``win_length`` elements (by default ``n_fft``) and is padded with zeros to
    ``n_fft``.

    ``center=True`` pads the signal, in the mode ``pad_mode``, so that frame k is centred at element ``k * hop_length``.
    ``align_to_window=True``, allowed only with ``center=False``, pads the signal with zeros such that the window of
    frame k starts at element ``k * hop_length``. ``normalized=True`` divides the spectra by the square root of
    ``n_fft``. ``onesided=True``, the default for real signals, omits the frequencies that are redundant for real
    signals and returns ``n_fft // 2 + 1`` frequencies.

    ``return_complex`` must be passed if ``input`` and ``window`` are real; ``return_complex=False`` is deprecated. The
    result has the shape (frequencies, frames), or (signals, frequencies, frames) if ``input`` is 2-d.

    >>> import retrograd as torch
    >>> torch.stft(torch.arange(6.0), 4, window=torch.hann_window(4), return_complex=True).shape
    torch.Size([3, 7])
    """
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        shape, reach = input._array.shape, int(n_fft // 2)
        longer = pad(view(input, [1] * (3 - len(shape)) + list(shape)), [reach, reach], pad_mode)
        input = view(longer, longer._array.shape[3 - len(shape) :])
    hop = n_fft >> 2 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        _warn_once(
            f"{NO_WINDOW}which is known to cause spectral leakage. Other windows such as torch.hann_window or "
            f"torch.hamming_window are recommended to reduce spectral leakage.{SUPPRESS_HINT}"
        )
    elif window.is_complex() and return_complex is None:
        return_complex = True
    if input.is_complex() and return_complex is None:
        return_complex = True
    if return_complex is None:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    call = (
        f"stft({_type(input)}{list(input._array.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={length}, "
        f"window={_shown(window)}, normalized={int(normalized)}, onesided={_flag(onesided)}, "
        f"return_complex={_flag(return_complex)}, align_to_window={_flag(align_to_window)}) : "
    )
    _check_frames(call, input, n_fft, hop, length, window)
    spectra = _frames_to_spectra(input, n_fft, hop, length, window, normalized, onesided, bool(align_to_window))
    if return_complex:
        return spectra
    _warn_once(
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
        "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
        "complex output to recover the old return format."
    )
    return view_as_real(spectra)


def _check_frames(call: str, x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None) -> None:
    shape = x._array.shape
    if x.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{call}expected a tensor of floating point or complex values")
    if len(shape) not in (1, 2):
        raise RuntimeError(f"{call}expected a 1D or 2D tensor")
    if not 0 < n_fft <= shape[-1]:
        raise RuntimeError(f"{call}expected 0 < n_fft < {shape[-1]}, but got n_fft={length}")
    if hop <= 0:
        raise RuntimeError(f"{call}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{call}expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._array.shape != (length,):
        raise RuntimeError(
            f"{call}expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._array.shape)}"
        )


def _centred(window: Tensor, n_fft: int) -> Tensor:
    """Return ``window`` padded with zeros on both sides to ``n_fft`` elements."""
    length = window._array.shape[0]
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    return pad(window, (left, n_fft - length - left))


def _frames_to_spectra(
    x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None, normalized: bool, onesided: bool | None,
    align_to_window: bool,
) -> Tensor:  # fmt: skip
    single = x._array.ndim == 1
    rows = unsqueeze(x, 0) if single else x
    if align_to_window:
        rows = pad(rows, [(n_fft - length) // 2] * 2)
    if window is None and length < n_fft:
        window = ones(length, dtype=x.dtype, device=x.device)
    count, size = rows._array.shape
    outer, inner = element_strides(rows._array)
    frames = as_strided(rows, (count, 1 + (size - n_fft) // hop, n_fft), (outer, hop * inner, inner))
    if window is not None:
        frames = frames * _centred(window, n_fft)
    if frames.dtype.numpy in dtypes.HALF_PRECISION:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {dtypes.scalar_name(frames.dtype)}")
    scale = int(normalized)
    if frames.is_complex():
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectra = fft_c2c(frames, (2,), scale, True)
    else:
        spectra = fft_r2c(frames, (2,), scale, onesided is None or onesided)
    spectra = METHODS["transpose_"](spectra, 1, 2)
    return METHODS["squeeze_"](spectra, 0) if single else spectra


# -- Inverse transform -----------------------------------------------------------------------------------------------


@public()
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """Return the signal whose :func:`stft` is ``input``: the inverse short-time Fourier transform.

    If no signal has exactly this transform, return the signal whose transform is closest to ``input`` in the
    least-squares sense. ``length`` is the number of elements of the signal. If ``return_complex`` is true, the signal
    is complex. The other arguments must be the same as in the call of :func:`stft`.

    >>> import retrograd as torch
    >>> x = torch.arange(8.0)
    >>> spectrum = torch.stft(x, n_fft=4, window=torch.ones(4), return_complex=True)
    >>> torch.istft(spectrum, n_fft=4, window=torch.ones(4), length=8)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    hop = n_fft >> 2 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if window is None:
        _warn_once(
            f"{NO_WINDOW[:-1]}.Please provide the same window used by stft to make the inversion lossless.{SUPPRESS_HINT}"
        )
    call = (
        f"istft(CPU{dtypes.scalar_name(input.dtype)}Type{list(input._array.shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={size}, window={_shown(window)}, center={int(center)}, normalized={int(normalized)}, "
        f"onesided={_flag(onesided)}, length={length}, return_complex={int(return_complex)}) "
    )
    one_side = _check_spectra(call + ": ", input, n_fft, hop, size, window, onesided)
    frames = _spectra_to_frames(input, n_fft, window, normalized, one_side, return_complex)
    if window is None:
        window = ones(size, dtype=frames.dtype.to_real(), device=input.device)
    return _overlapped(call, frames, _centred(window, n_fft), hop, center, length, input._array.ndim == 2)


def _check_spectra(
    call: str, x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None, onesided: bool | None
) -> bool:
    """Check the arguments of ``istft``, and return whether the spectra ``x`` are one-sided.

    ``hop`` is ``hop_length``, and ``length`` is ``win_length``. ``call`` is the beginning of the error messages. Raise
    RuntimeError or IndexError if an argument is invalid.
    """
    if not x.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    shape = x._array.shape
    if len(shape) < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-len(shape) - 1}, {len(shape)}], but got -3)"
        )
    if x._array.size == 0:
        raise RuntimeError(f"{call}input tensor cannot be empty.")
    if len(shape) > 3:
        raise RuntimeError(f"{call}expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    frequencies = shape[-2]
    one_side = frequencies != n_fft if onesided is None else onesided
    wanted, what = (
        (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True") if one_side else (n_fft, "n_fft when onesided=False")
    )
    if wanted != frequencies:
        raise RuntimeError(
            f"{call}expected the frequency dimension (3rd to the last) of the input tensor to match {what}, but got {frequencies}"
        )
    if not 0 < hop <= length:
        raise RuntimeError(f"{call}expected 0 < hop_length <= win_length")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{call}expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (length,):
        raise RuntimeError(f"{call}Invalid window shape. window has to be 1D and length of `win_length`")
    return one_side


def _spectra_to_frames(
    x: Tensor, n_fft: int, window: Tensor | None, normalized: bool, one_side: bool, return_complex: bool
) -> Tensor:
    pairs = view_as_real(x)
    if x._array.ndim == 2:
        pairs = unsqueeze(pairs, 0)
    spectra = view_as_complex(transpose(pairs, 1, 2))
    scale = 1 if normalized else 2
    if return_complex:
        if one_side:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return fft_c2c(spectra, (2,), scale, False)
    if window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if not one_side:
        spectra = slice_block(spectra, 2, 0, n_fft // 2 + 1, 1)
    return fft_c2r(spectra, (2,), scale, n_fft)


def _overlapped(
    call: str, frames: Tensor, window: Tensor, hop: int, center: bool, length: int | None, single: bool
) -> Tensor:
    """Return the signal that ``istft`` computes from ``frames`` by weighted overlap-add.

    The frames are multiplied by ``window`` and added up, where successive frames start ``hop`` elements apart. The sum
    is divided by the sum of the squared windows, which are shifted in the same way. ``center`` and ``length`` are the
    arguments of ``istft``. ``call`` is the beginning of the error message.

    If ``single`` is true, ``frames`` belong to one signal, and the result is 1-d. Otherwise the result is 2-d, with one
    row for each signal.
    """
    count, frame_count, n_fft = frames._array.shape
    total = n_fft + hop * (frame_count - 1)
    signal = unfold_backward(frames * view(window, 1, 1, n_fft), (count, total), 1, n_fft, hop)
    squares = (window**2).expand((1, frame_count, n_fft))
    envelope = unfold_backward(squares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    cut = min(end, total)
    signal, envelope = (slice_block(each, 1, start, cut, 1) for each in (signal, envelope))
    if not on_gpu(envelope._array) and bool((abs(envelope.detach())._array < 1e-11).any()):
        raise RuntimeError(f"{call}window overlap add min: 1")
    result = signal / envelope
    if single:
        result = squeeze(result, 0)
    if end > total:
        _warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        result = pad(result, (0, end - total))
    return result
