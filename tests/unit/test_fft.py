"""Fourier transforms, windows and short-time transforms beyond the samples. Messages are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.operations.signal import stft

X = torch.arange(12.0).reshape(3, 4)
Z = torch.complex(X, X)
REFUSED = [
    (lambda: torch.fft.fft(X.half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: torch.fft.rfft(Z), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: torch.fft.rfftn(Z), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    (lambda: torch.fft.ihfftn(Z), RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
    (lambda: torch.fft.fft(X, norm="bad"), RuntimeError, 'Invalid normalization mode: "bad"'),
    (lambda: torch.fft.fft(X, n=0), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda: torch.fft.irfft(X[:, :1]), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda: torch.fft.fft(torch.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: torch.fft.rfftn(X, dim=()), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: torch.fft.fftn(X, dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
    (
        lambda: torch.fft.fftn(X, s=(3, 3, 3)),
        RuntimeError,
        "Got shape with 3 values but input tensor only has 2 dimensions.",
    ),
    (
        lambda: torch.fft.fftn(X, s=(3,), dim=(0, 1)),
        RuntimeError,
        "When given, dim and shape arguments must have the same length",
    ),
    (
        lambda: torch.fft.fft(X, out=torch.empty(0)),
        RuntimeError,
        "fft expects a complex output tensor, but got Float",
    ),
    (
        lambda: torch.fft.irfft(X, out=torch.empty(0, dtype=torch.complex64)),
        RuntimeError,
        "irfft expects a floating point output tensor, but got ComplexFloat",
    ),
    (lambda: torch.fft.fft([1.0]), TypeError, "fft_fft(): argument 'input' (position 1) must be Tensor, not list"),
    (lambda: torch.fft.fft(X, 1.5), TypeError, "fft_fft(): argument 'n' (position 2) must be int, not float"),
    (lambda: torch.fft.ifftshift(torch.tensor(1.0)), RuntimeError, "`shifts` required"),
    (
        lambda: torch.fft.fftfreq(5, dtype=torch.int64),
        RuntimeError,
        "fftfreq requires a floating point or complex dtype",
    ),
    (
        lambda: torch.hann_window(-1),
        RuntimeError,
        "hann_window requires non-negative window_length, got window_length=-1",
    ),
    (lambda: torch.signal.windows.kaiser(5, beta=-3.0), ValueError, "beta must be non-negative, got: -3.0 instead."),
    (lambda: torch.signal.windows.general_cosine(5, a=[]), ValueError, "Coefficients cannot be empty"),
    (
        lambda: torch.stft(X[0], 2, hop_length=0, center=False, return_complex=True, window=torch.ones(2)),
        RuntimeError,
        "stft(torch.FloatTensor[4], n_fft=2, hop_length=0, win_length=2, window=torch.FloatTensor{[2]}, normalized=0, "
        "onesided=None, return_complex=1, align_to_window=None) : expected hop_length > 0, but got hop_length=0",
    ),
    (
        lambda: torch.stft(X[0], 2, window=torch.ones(2)),
        RuntimeError,
        "stft requires the return_complex parameter be given for real inputs, and will further require that "
        "return_complex=True in a future PyTorch release.",
    ),
    (
        lambda: torch.stft(Z[0], 2, 1, window=torch.ones(2), onesided=True),
        RuntimeError,
        "Cannot have onesided output if window or input is complex",
    ),
    (
        lambda: torch.istft(Z, 4, 9, window=torch.ones(4)),
        RuntimeError,
        "istft(CPUComplexFloatType[3, 4], n_fft=4, hop_length=9, win_length=4, window=torch.FloatTensor{[4]}, center=1, "
        "normalized=0, onesided=None, length=None, return_complex=0) : expected 0 < hop_length <= win_length",
    ),
    (
        lambda: torch.istft(X, 4, window=torch.ones(4)),
        RuntimeError,
        "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_errors(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_single_precision_stays_single() -> None:
    assert torch.fft.fft(X).dtype is torch.complex64
    assert torch.fft.irfftn(Z).dtype is torch.float32


def test_an_empty_batch_has_an_empty_spectrum() -> None:
    """PyTorch raises an error of its FFT library here."""
    assert torch.fft.fft(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.fft.rfft(torch.zeros(0, 3)).shape == (0, 2)
    assert torch.fft.irfft(torch.zeros(0, 3, dtype=torch.complex64)).shape == (0, 4)


def test_multidimensional_transforms_match_numpy() -> None:
    array = numpy.random.default_rng(0).standard_normal((2, 3, 2, 3, 2))
    spectrum = torch.fft.fftn(torch.tensor(array))
    numpy.testing.assert_allclose(spectrum.numpy(), numpy.fft.fftn(array), 1e-12, 1e-12)
    numpy.testing.assert_allclose(torch.fft.ifftn(spectrum).real.numpy(), array, 1e-12, 1e-12)


def test_istft_inverts_stft() -> None:
    x = torch.tensor(numpy.random.default_rng(1).standard_normal(40))
    window = torch.hann_window(8, dtype=torch.float64)
    spectra_ = torch.stft(x, 8, 2, window=window, return_complex=True)
    numpy.testing.assert_allclose(
        torch.istft(spectra_, 8, 2, window=window, length=40).numpy(), x.numpy(), 1e-12, 1e-12
    )


def test_gradient_of_long_stft_needs_no_matrix() -> None:
    x = torch.ones(100_000, requires_grad=True)
    torch.stft(x, 16, 8, window=torch.ones(16), return_complex=True).real[0].sum().backward()
    assert x.grad is not None and x.grad.tolist()[:11] == [2.0] + 8 * [3.0] + [2.0, 2.0]


def test_warnings_are_raised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stft, "_WARNED", set())
    with pytest.warns(UserWarning, match="A window was not provided. A rectangular window will be applied,which"):
        torch.stft(X[0], 2, 1, return_complex=True)
    torch.stft(X[0], 2, 1, return_complex=True)
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        pairs = torch.stft(X[0], 2, 1, return_complex=False)
    assert pairs.shape == (2, 5, 2)
    whole = torch.stft(X[0], 2, 1, window=torch.ones(2), return_complex=True)
    with pytest.warns(UserWarning, match="Please provide the same window used by stft"):
        torch.istft(whole, 2, 1)
    with pytest.warns(UserWarning, match="Result is being padded with zeros in the tail"):
        assert torch.istft(whole, 2, 1, window=torch.ones(2), length=9)[-3:].tolist() == [0.0, 0.0, 0.0]
