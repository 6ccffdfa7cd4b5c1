"""What is saved for the backward pass, by every operation of the table: packed by hooks, and computed anew by checkpoints."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.utils.checkpoint import checkpoint
from tests.agreement import golden, leaves
from tests.samples import FAMILIES, Sample, samples
from tests.weights import weighted_sum


def one_for_each_operation() -> list[Any]:
    found: dict[str, Any] = {}
    for family in FAMILIES:
        for sample in samples(family):
            refused = {"error", "refused"} & golden(family).get(sample.expression, {"error": 0}).keys()
            if sample.smooth and not refused and sample.op not in found:
                found[sample.op] = pytest.param(sample, id=sample.op)
    return list(found.values())


OPERATIONS = one_for_each_operation()


def gradients(sample: Sample, through: Any) -> list[Any]:
    """The gradients of both orders; ``through`` calls the function that computes the weighted sum."""
    torch.manual_seed(0)
    inputs = leaves(sample)
    wanted = [each for each in inputs.values() if each.requires_grad]
    total = through(lambda: weighted_sum(torch, sample.evaluate(torch, inputs)))
    if not wanted or not getattr(total, "requires_grad", False):
        return []
    first = torch.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
    slopes = [each for each in first if each is not None and each.requires_grad]
    again = torch.autograd.grad(weighted_sum(torch, slopes), wanted, allow_unused=True) if slopes else ()
    return [None if each is None else each.detach().numpy() for each in (*first, *again)]


def same(found: list[Any], expected: list[Any]) -> bool:
    """Equal but for rounding: arrays come back in another order of their elements, which NumPy adds up otherwise."""
    return len(found) == len(expected) and all(
        (a is None and b is None) or numpy.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def packed(run: Any) -> Any:
    """Run with hooks that keep the bytes of all that is saved, and none of the tensors."""

    def pack(tensor: Any) -> Any:
        assert not torch.is_grad_enabled()
        array = tensor.detach().numpy()
        return array.dtype, array.shape, array.tobytes()

    def unpack(kept: Any) -> Any:
        dtype, shape, data = kept
        return torch.from_numpy(numpy.frombuffer(data, dtype).reshape(shape).copy())

    with saved_tensors_hooks(pack, unpack):
        return run()


@pytest.mark.parametrize("sample", OPERATIONS)
def test_the_gradients_are_the_same(sample: Sample) -> None:
    expected = gradients(sample, lambda run: run())
    assert same(gradients(sample, packed), expected)
    assert same(gradients(sample, lambda run: checkpoint(run, use_reentrant=False)), expected)
    assert same(gradients(sample, lambda run: packed(lambda: checkpoint(run, use_reentrant=False))), expected)
