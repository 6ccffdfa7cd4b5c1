"""Derivatives of samples, the same way under both engines: weighted sums, directions and tangents."""

from __future__ import annotations

import zlib
from typing import Any

import numpy

from tests.conformance.samples import Sample


def weighted_sum(torch: Any, outs: list[Any]) -> Any:
    """Return the sum of all elements of the results that require grad, with fixed weights (0 if there are none)."""
    total: Any = 0
    for out in outs:
        if getattr(out, "requires_grad", False):
            flat = torch.real(out) + 0.5 * torch.imag(out) if out.is_complex() else out
            weights = numpy.cos(numpy.arange(flat.numel(), dtype=numpy.float64)).reshape(tuple(flat.shape))
            total = total + (flat * torch.tensor(weights.tolist(), dtype=flat.dtype).reshape(flat.shape)).sum()
    return total


def derivatives(torch: Any, outs: list[Any], leaves: list[Any], second: bool = True) -> tuple[list[Any], list[Any]]:
    """Return first and second derivatives of the weighted sum by each leaf that requires grad (None where undefined)."""
    leaves = [each for each in leaves if each.requires_grad]
    total = weighted_sum(torch, outs)
    if not leaves or not hasattr(total, "grad_fn"):
        return [None] * len(leaves), [None] * len(leaves)
    first = torch.autograd.grad(total, leaves, create_graph=second, allow_unused=True)
    again = weighted_sum(torch, [each for each in first if each is not None])
    if not hasattr(again, "grad_fn") or not again.requires_grad:
        return list(first), [None] * len(leaves)
    return list(first), list(torch.autograd.grad(again, leaves, allow_unused=True))


def directions(sample: Sample) -> dict[str, numpy.ndarray]:
    """Return a fixed step for each differentiable input, the direction of forward derivatives."""
    rng = numpy.random.default_rng(zlib.crc32(b"along " + sample.expression.encode()))
    steps = {}
    for name, array in sample.arrays().items():
        if array.dtype.kind in "fc":
            step = rng.standard_normal(array.shape)
            steps[name] = numpy.asarray(
                step + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else step, array.dtype
            )
    return steps


def tangents_by_backward(torch: Any, sample: Sample, tensors: dict[str, Any], steps: dict[str, Any]) -> list[Any]:
    """Return the forward derivative of each result along ``steps`` by double backward (None: it has none)."""
    places: list[int] = []

    def differentiable(*inputs: Any) -> tuple[Any, ...]:
        outs = sample.evaluate(torch, {**tensors, **dict(zip(steps, inputs, strict=True))})
        places[:] = [index for index, out in enumerate(outs) if getattr(out, "requires_grad", False)]
        nonlocal count
        count = len(outs)
        return tuple(outs[index] for index in places)

    count = 0
    given = tuple(tensors[name] for name in steps)
    if not given:
        return [None] * len(sample.evaluate(torch, tensors))
    _, found = torch.autograd.functional.jvp(differentiable, given, tuple(steps.values()))
    tangents: list[Any] = [None] * count
    for index, tangent in zip(places, found, strict=True):
        tangents[index] = tangent
    return tangents
