"""Samples of gamma and Dirichlet distributions that are differentiable with respect to the parameters.

Only ``retrograd.distributions`` imports this module.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor
from ...dispatch.declare import op, pointwise
from ...kernels import gamma_sampling as draws
from ..rule_helpers import not_implemented
from .random import default_generator


def _check(name: str, alpha: Any) -> None:
    if alpha.dtype.kind != "f" or alpha.dtype.itemsize < 4:
        raise dtypes.unsupported(name, alpha.dtype)


def _drawn(np: Any, draw: Any, stream: Any, alpha: Any) -> Any:
    """Return one random sample for each distribution with the parameters ``alpha``, as an array of the module ``np``.

    ``np`` is NumPy or CuPy. ``draw(stream, alpha)`` draws the samples on the CPU, where ``stream`` is the state of the
    random number generator. If ``alpha`` is on a GPU, the samples are copied to the GPU.
    """
    return np.asarray(draw(stream, np.asnumpy(alpha))) if hasattr(np, "asnumpy") else draw(stream, alpha)


@pointwise(
    not_implemented("_standard_gamma_grad"), not_implemented("_standard_gamma_grad"),
    backward="StandardGammaGradBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def standard_gamma_grad(np: Any, self: Any, output: Any, /) -> Any:
    """Return the derivative of samples of gamma distributions with respect to the shape parameters, elementwise.

    ``self`` holds the shape parameters, and ``output`` holds one sample of each distribution.
    """
    return draws.standard_gamma_grad(np, self, output).astype(self.dtype)


@op(backward="StandardGammaBackward0", function=False, method=False, vmap="random")
def standard_gamma_block(np: Any, self: Any, /, stream: Any) -> Any:
    """Return one sample of the gamma distribution with rate 1 for each shape parameter in ``self``.

    ``stream`` is the state of the random number generator.
    """
    _check("gamma_cpu", self)
    return _drawn(np, draws.standard_gamma, stream, self)


standard_gamma_block.derivative(self=lambda F, g, self, out: g * F.standard_gamma_grad(self, out))


@op(backward="DirichletGradBackward0", function=False, method=False, vmap="leading")
def dirichlet_grad(np: Any, x: Any, alpha: Any, /) -> Any:
    """Return the elementwise derivative of ``x`` with respect to ``alpha``, divided by ``1 - x``.

    ``x`` holds samples of Dirichlet distributions, and ``alpha`` holds their concentrations. An element of such a
    sample has a beta distribution; the derivative is that of a sample of this distribution. The gradient of
    :func:`dirichlet_block` is computed from this quotient.
    """
    return draws.dirichlet_grad(np, x, alpha).astype(x.dtype)


dirichlet_grad.derivative(x=not_implemented("_dirichlet_grad"), alpha=not_implemented("_dirichlet_grad"))


def _dirichlet_rule(F: Any, g: Any, self: Any, out: Any) -> Any:
    return F.dirichlet_grad(out, self) * (g - F.sum_dim(out * g, (-1,), True))


@op(backward="_DirichletBackward", function=False, method=False, vmap="random")
def dirichlet_block(np: Any, self: Any, /, stream: Any) -> Any:
    """Return one sample of the Dirichlet distribution for each row of concentrations in ``self``.

    A row is a vector along the last dimension. The elements of a sample sum to 1. ``stream`` is the state of the random
    number generator.
    """
    _check("dirichlet", self)
    return _drawn(np, draws.dirichlet, stream, self)


dirichlet_block.derivative(self=_dirichlet_rule)


def standard_gamma(concentration: Tensor) -> Tensor:
    """Return one sample of the gamma distribution with rate 1 for each shape parameter in ``concentration``.

    The samples are differentiable with respect to ``concentration``.
    """
    return standard_gamma_block(concentration, default_generator._stream)


def sample_dirichlet(concentration: Tensor) -> Tensor:
    """Return one sample of the Dirichlet distribution for each row of ``concentration``.

    A row is a vector along the last dimension. The samples are differentiable with respect to ``concentration``.
    """
    return dirichlet_block(concentration, default_generator._stream)


__all__ = ["sample_dirichlet", "standard_gamma"]
