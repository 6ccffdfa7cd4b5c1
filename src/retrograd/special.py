"""Special functions, as ``torch.special``."""

from __future__ import annotations

from typing import Any

from .core.tensor import Tensor
from .dispatch.declare import publish, with_error_name
from .operations.elementwise import elementary, rounding
from .operations.elementwise import special as _special
from .operations.elementwise.special import BESSEL, POLYNOMIALS, mvlgamma, polygamma, xlog1py, xlogy, zeta
from .operations.nn import softmax as _softmax
from .operations.reductions import sums

# Functions that are also in ``torch``, where some have other names.
_ALIASES = {
    "digamma": _special.digamma, "psi": _special.digamma, "erf": _special.erf, "erfc": _special.erfc,
    "erfinv": _special.erfinv, "exp2": elementary.exp2, "expit": elementary.sigmoid, "expm1": elementary.expm1,
    "gammainc": _special.igamma, "gammaincc": _special.igammac, "gammaln": _special.lgamma, "i0": _special.i0,
    "log1p": elementary.log1p, "logit": _special.logit, "sinc": elementary.sinc,
}  # fmt: skip
(digamma, psi, erf, erfc, erfinv, exp2, expit, expm1, gammainc, gammaincc, gammaln, i0, log1p, logit, sinc) = (
    with_error_name(function, f"special_{name}") for name, function in _ALIASES.items()
)
airy_ai = _special.special_airy_ai
entr = _special.special_entr
erfcx = _special.special_erfcx
i0e = _special.special_i0e
i1 = _special.special_i1
i1e = _special.special_i1e
log_ndtr = _special.special_log_ndtr
ndtr = _special.special_ndtr
ndtri = _special.special_ndtri
spherical_bessel_j0 = _special.special_spherical_bessel_j0
multigammaln = mvlgamma
globals().update(BESSEL)
globals().update(POLYNOMIALS)


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return ``input`` rounded to ``decimals`` decimal places; ties are rounded to even."""
    return rounding.round(input, decimals=decimals)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return ``exp(input) / sum(exp(input))`` along ``dim``, in ``dtype`` if it is passed."""
    return _softmax.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax` of ``input`` along ``dim``, in ``dtype`` if it is passed."""
    return _softmax.log_softmax(input, dim, dtype=dtype)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm of the sum of ``exp(input)`` along ``dim``, computed without overflow.

    If ``keepdim`` is true, the result keeps these dimensions with size 1.
    """
    return sums.logsumexp(input, dim, keepdim)


__all__ = [
    *_ALIASES, *BESSEL, *POLYNOMIALS, "airy_ai", "entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "log_softmax",
    "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "round", "softmax", "spherical_bessel_j0", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip
publish(globals(), "special")
