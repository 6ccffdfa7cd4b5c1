"""What is saved for the backward pass: hooks that pack it, and checkpoints, for every operation of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from retrograd.utils.checkpoint import checkpoint
from tests.agreement import golden, leaves
from tests.samples import FAMILIES, Sample, samples
from tests.weights import weighted_sum

SMOOTH = [
    pytest.param(sample, id=sample.expression)
    for family in FAMILIES
    for sample in samples(family)
    if sample.smooth and not {"error", "refused"} & golden(family).get(sample.expression, {"error": 0}).keys()
]


def gradients(sample: Sample, through: Any, second: bool = True) -> list[Any]:
    """The gradients of both orders; ``through`` calls the function that computes the weighted sum."""
    inputs = leaves(sample)
    wanted = [each for each in inputs.values() if each.requires_grad]
    total = through(lambda: weighted_sum(torch, sample.evaluate(torch, inputs)))
    if not wanted or not getattr(total, "requires_grad", False):
        return []
    first = torch.autograd.grad(total, wanted, create_graph=second, allow_unused=True)
    slopes = [each for each in first if each is not None and each.requires_grad]
    if not second or not slopes:
        return [None if each is None else each.detach().numpy() for each in first]
    again = torch.autograd.grad(weighted_sum(torch, slopes), wanted, allow_unused=True)
    return [None if each is None else each.detach().numpy() for each in (*first, *again)]


def same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(
        (a is None and b is None) or numpy.array_equal(a, b, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def packed(run: Any) -> Any:
    """Run with hooks that keep NumPy's bytes of all that is saved, and none of the tensors."""

    def pack(tensor: Any) -> Any:
        assert not torch.is_grad_enabled()
        array = tensor.detach().numpy()
        return array.dtype, array.shape, array.tobytes()

    def unpack(kept: Any) -> Any:
        dtype, shape, data = kept
        return torch.from_numpy(numpy.frombuffer(data, dtype).reshape(shape).copy())

    with saved_tensors_hooks(pack, unpack):
        return run()


@pytest.mark.parametrize("sample", SMOOTH)
def test_what_hooks_pack_gives_the_same_gradients(sample: Sample) -> None:
    torch.manual_seed(0)
    expected = gradients(sample, lambda run: run())
    torch.manual_seed(0)
    assert same(gradients(sample, packed), expected)


@pytest.mark.parametrize("sample", SMOOTH)
def test_a_checkpointed_operation_has_the_same_gradients(sample: Sample) -> None:
    torch.manual_seed(0)
    expected = gradients(sample, lambda run: run(), second=False)
    torch.manual_seed(0)
    assert same(gradients(sample, lambda run: checkpoint(run, use_reentrant=False), second=False), expected)
