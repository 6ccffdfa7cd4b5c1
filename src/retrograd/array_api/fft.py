"""Fourier transforms of the array API standard, its extension ``fft``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import retrograd as torch
from retrograd import Tensor

from ._dtypes import COMPLEX, FLOATING, REAL_FLOATING, Axes, Device, Dtype, check

Norm = Literal["backward", "ortho", "forward"]

#: The transforms and the kinds of dtypes that they take.
_ONE_AXIS = {
    "fft": FLOATING,
    "ifft": FLOATING,
    "rfft": (REAL_FLOATING,),
    "irfft": (COMPLEX,),
    "hfft": FLOATING,
    "ihfft": (REAL_FLOATING,),
}
_AXES = {"fftn": FLOATING, "ifftn": FLOATING, "rfftn": (REAL_FLOATING,), "irfftn": (COMPLEX,)}

#: What the transforms compute, for their docstrings.
_RESULTS = {
    "fft": "discrete Fourier transform of ``x`` along ``axis``",
    "ifft": "inverse discrete Fourier transform of ``x`` along ``axis``",
    "rfft": "discrete Fourier transform of a real ``x`` along ``axis``",
    "irfft": "inverse of ``rfft`` along ``axis``",
    "hfft": "discrete Fourier transform of ``x``, which is Hermitian along ``axis``",
    "ihfft": "inverse of ``hfft`` along ``axis``",
    "fftn": "discrete Fourier transform of ``x`` along several ``axes``",
    "ifftn": "inverse discrete Fourier transform of ``x`` along several ``axes``",
    "rfftn": "discrete Fourier transform of a real ``x`` along several ``axes``",
    "irfftn": "inverse of ``rfftn`` along several ``axes``",
}


def _along_axis(name: str, kinds: tuple[str, ...], function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        check(name, kinds, x)
        return function(x, n, axis, norm)

    return transform


def _along_axes(name: str, kinds: tuple[str, ...], function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor:
        check(name, kinds, x)
        return function(x, s, axes, norm)

    return transform


def _declared() -> dict[str, Callable[..., Tensor]]:
    functions: dict[str, Callable[..., Tensor]] = {}
    for table, declare in ((_ONE_AXIS, _along_axis), (_AXES, _along_axes)):
        for name, kinds in table.items():
            functions[name] = function = declare(name, kinds, getattr(torch.fft, name))
            function.__name__ = function.__qualname__ = name
            function.__doc__ = f"Return the {_RESULTS[name]}."
    return functions


globals().update(_declared())


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return the frequencies of the elements that ``fft`` returns, for samples at distances ``d``."""
    return torch.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return the frequencies of the elements that ``rfft`` returns, for samples at distances ``d``."""
    return torch.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """Return ``x`` with the frequency zero moved to the middle."""
    check("fftshift", FLOATING, x)
    return torch.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """Return ``x`` with the frequency zero moved back to the beginning."""
    check("ifftshift", FLOATING, x)
    return torch.fft.ifftshift(x, axes)


__all__ = [*_ONE_AXIS, *_AXES, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]
