"""Derivatives of a sample along one direction, compared with finite differences."""

from __future__ import annotations

from typing import Any

import numpy

import retrograd as torch
from tests.conformance.sample_comparison import leaves
from tests.conformance.sample_derivatives import weighted_sum
from tests.conformance.samples import Sample


class Directional:
    """Derivatives of the weighted sum of a sample's results along one direction of its inputs."""

    def __init__(self, sample: Sample) -> None:
        self.sample, self.arrays = sample, sample.arrays()
        self.names = [name for name, array in self.arrays.items() if array.dtype.kind in "fc"]
        rng = numpy.random.default_rng(0)
        self.step = {name: _direction(rng, self.arrays[name]) for name in self.names}
        results = sample.evaluate(torch, leaves(sample))
        self.differentiable = bool(self.names) and hasattr(weighted_sum(torch, results), "grad_fn")
        #: The slope by finite differences of values, which does not depend on the derivative rules.
        self.slope = self._difference(0) if self.differentiable else 0.0

    def along(self, order: int, distance: float) -> float:
        """Return the weighted sum (order 0), or its derivative of order 1 or 2, at a distance from the inputs."""
        tensors = {
            name: torch.tensor(array + distance * self.step[name] if name in self.step else array)
            for name, array in self.arrays.items()
        }
        for name in self.names:
            tensors[name].requires_grad_()
        total = weighted_sum(torch, self.sample.evaluate(torch, tensors))
        if order == 0:
            return float(total.item())
        wanted = [tensors[name] for name in self.names]
        found = torch.autograd.grad(total, wanted, create_graph=order > 1, allow_unused=True)
        slope = _slope(found, [self.step[name] for name in self.names])
        if order == 1:
            return float(getattr(slope, "detach", lambda: slope)())
        if not getattr(slope, "requires_grad", False):
            return 0.0
        again = torch.autograd.grad(slope, wanted, allow_unused=True)
        return float(_slope(again, [self.step[name] for name in self.names]))

    def _difference(self, order: int) -> float:
        return (self.along(order, 1e-5) - self.along(order, -1e-5)) / 2e-5

    def mismatch(self, order: int) -> str:
        """Return the difference between a derivative and the finite difference, or an empty text."""
        if not self.differentiable:
            return ""
        expected = self.slope if order == 1 else self._difference(order - 1)
        got = self.along(order, 0.0)
        fits = got == expected or abs(got - expected) <= max(1e-5 * abs(expected), 1e-6)
        return "" if fits else f"order {order}: {got}, expected {expected}"


def _direction(rng: numpy.random.Generator, array: numpy.ndarray) -> numpy.ndarray:
    step = rng.standard_normal(array.shape)
    return step + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else step


def _slope(grads: Any, steps: list[numpy.ndarray]) -> Any:
    total: Any = 0.0
    for grad, step in zip(grads, steps, strict=True):
        if grad is not None:
            # For complex numbers the directional derivative is the real part of <grad, step>.
            product = grad * torch.tensor(numpy.conj(step))
            total = total + torch.real(product).sum() if grad.is_complex() else total + product.sum()
    return total
