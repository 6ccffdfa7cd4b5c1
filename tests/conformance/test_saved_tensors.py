"""Saved tensors of every operation: packed by saved-tensor hooks, and recomputed by checkpoints."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.autograd.graph import save_on_cpu, saved_tensors_hooks
from retrograd.utils.checkpoint import checkpoint
from tests.conformance.sample_comparison import golden, leaves
from tests.conformance.sample_derivatives import weighted_sum
from tests.conformance.samples import FAMILIES, Sample, samples


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
    """Return first and second gradients; ``through`` calls the function that computes the weighted sum."""
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
    """Whether two results are equal within rounding: unpacked arrays have other strides, which changes the order of
    sums.
    """
    return len(found) == len(expected) and all(
        (a is None and b is None) or numpy.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def packed(run: Any) -> Any:
    """Run with saved-tensor hooks that keep bytes and no tensors."""

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
def test_gradients_match_with_packed_tensors_and_checkpoints(sample: Sample) -> None:
    expected = gradients(sample, lambda run: run())
    assert same(gradients(sample, packed), expected)
    assert same(gradients(sample, lambda run: checkpoint(run, use_reentrant=False)), expected)
    assert same(gradients(sample, lambda run: packed(lambda: checkpoint(run, use_reentrant=False))), expected)


def exp_saving_its_result() -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    return Exp.apply


@pytest.mark.parametrize("function", [torch.exp, exp_saving_its_result(), lambda x: x.clone().exp_()])
def test_graph_with_packed_tensors_is_freed_by_reference_counting(function: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    gc.disable()
    try:
        with save_on_cpu():  # keeps the tensor itself if it is there already
            y = function(x)
        node = weakref.ref(y.grad_fn)
        assert y.grad_fn._raw_saved_result.data is not y if hasattr(y.grad_fn, "_raw_saved_result") else True
        del y
        assert node() is None
    finally:
        gc.enable()
