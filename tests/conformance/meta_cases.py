"""Samples on the device ``meta``, compared with the same samples on the CPU: layouts of results and of gradients."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import retrograd as torch
from tests.conformance.samples import Sample


class Outcome(NamedTuple):
    """Comparison of one sample: ``difference`` is empty if the layouts agree; ``error`` is what meta tensors raised."""

    difference: str = ""
    error: Exception | None = None


def layout(value: Any) -> Any:
    """Return shape, dtype, strides and node of a tensor, or the class of another object."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    node = None if value.grad_fn is None else type(value.grad_fn).__name__
    return tuple(value.shape), value.dtype, value.stride(), node


def leaves(sample: Sample, device: str) -> dict[str, Any]:
    """Return the inputs of a sample as leaves on a device."""
    tensors = {name: torch.tensor(array).to(device) for name, array in sample.arrays().items()}
    for each in tensors.values():
        if each.is_floating_point() or each.is_complex():
            each.requires_grad_(sample.smooth)
    return tensors


def gradients(outs: list[Any], tensors: dict[str, Any], create_graph: bool = False) -> list[Any]:
    """Return the gradients of the inputs, for gradients of ones of all results."""
    outs = [each for each in outs if isinstance(each, torch.Tensor) and each.requires_grad]
    inputs = [each for each in tensors.values() if each.requires_grad]
    if not outs or not inputs:
        return []
    ones = [torch.ones_like(each) for each in outs]
    return list(torch.autograd.grad(outs, inputs, ones, create_graph=create_graph, allow_unused=True))


def second_gradients(sample: Sample, device: str) -> list[Any]:
    """Return shape and dtype of the gradients of the gradients of a sample; None for those that do not exist.

    The list is empty if none exists: whether a gradient that is constant has a node may depend on values (``max``).
    """
    tensors = leaves(sample, device)
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.device(device):
        warnings.simplefilter("ignore")
        first = gradients(sample.evaluate(torch, tensors), tensors, create_graph=True)
    second = gradients([each for each in first if each is not None], tensors)
    found = [None if each is None else (tuple(each.shape), each.dtype) for each in second]
    return found if any(found) else []


def compare(sample: Sample) -> Outcome | None:
    """Compare a sample on the device ``meta`` with the CPU; None if the CPU refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        here = leaves(sample, "cpu")
        try:
            outs = sample.evaluate(torch, here)
        except Exception:
            return None
        there = leaves(sample, "meta")
        try:
            with torch.device("meta"):
                found = sample.evaluate(torch, there)
        except Exception as error:
            return Outcome(error=error)
        tensors = [each for each in found if isinstance(each, torch.Tensor)]
        if not all(each.is_meta for each in tensors):
            return Outcome("a result is on the CPU")
        expected, got = list(map(layout, outs)), list(map(layout, found))
        if got != expected:
            return Outcome(f"{got}, expected {expected}")
        try:
            wanted = gradients(outs, here)
        except Exception:
            return Outcome()
        try:
            given = gradients(found, there)
        except Exception as error:
            return Outcome(error=error)
        expected, got = list(map(layout, wanted)), list(map(layout, given))
        return Outcome("" if got == expected else f"gradients {got}, expected {expected}")
