"""A scalar made of any results, for taking derivatives of: the same under retrograd and under PyTorch."""

from __future__ import annotations

from typing import Any

import numpy


def weighted_sum(torch: Any, outs: list[Any]) -> Any:
    """The sum of all elements of the results that require gradients, each with a weight of its own (0 if none do)."""
    total: Any = 0
    for out in outs:
        if getattr(out, "requires_grad", False):
            flat = torch.real(out) + 0.5 * torch.imag(out) if out.is_complex() else out
            weights = numpy.cos(numpy.arange(flat.numel(), dtype=numpy.float64)).reshape(tuple(flat.shape))
            total = total + (flat * torch.tensor(weights.tolist(), dtype=flat.dtype).reshape(flat.shape)).sum()
    return total


def derivatives(torch: Any, outs: list[Any], leaves: list[Any], second: bool = True) -> tuple[list[Any], list[Any]]:
    """First and second derivatives of the weighted sum by each leaf that requires gradients (None where there is none)."""
    leaves = [each for each in leaves if each.requires_grad]
    total = weighted_sum(torch, outs)
    if not leaves or not hasattr(total, "grad_fn"):
        return [None] * len(leaves), [None] * len(leaves)
    first = torch.autograd.grad(total, leaves, create_graph=second, allow_unused=True)
    again = weighted_sum(torch, [each for each in first if each is not None])
    if not hasattr(again, "grad_fn") or not again.requires_grad:
        return list(first), [None] * len(leaves)
    return list(first), list(torch.autograd.grad(again, leaves, allow_unused=True))
