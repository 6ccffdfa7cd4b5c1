"""Compare retrograd's results for a sample with PyTorch's record, one aspect at a time.

Used by the test of every operation and by ``scripts/coverage.py``, which counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy

import retrograd as torch
from tests.conformance.golden import GOLDEN
from tests.conformance.sample_derivatives import derivatives, directions, tangents_by_backward
from tests.conformance.samples import Sample

#: The aspects of a sample, in the order of comparison.
ASPECTS = ("value", "node", "first", "second", "forward")


@cache
def golden(family: str) -> dict[str, Any]:
    """Return PyTorch's results for the samples of a family."""
    return _samples(f"samples_{family}.json")


@cache
def golden_forward(family: str) -> dict[str, Any]:
    """Return the recorded forward derivatives of a family's samples."""
    return _samples(f"forward_{family}.json")


def _samples(name: str) -> dict[str, Any]:
    path = GOLDEN / name
    return json.loads(path.read_text())["samples"] if path.exists() else {}


def leaves(sample: Sample) -> dict[str, Any]:
    """Return the inputs of a sample as tensors that require grad if it is smooth."""
    tensors = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    for tensor in tensors.values():
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.requires_grad_(sample.smooth)
    return tensors


def compare_sample(family: str, sample: Sample) -> dict[str, str]:
    """Return for each recorded aspect the difference, or an empty text."""
    expected = golden(family).get(sample.expression)
    if expected is None:
        return {}
    if "error" in expected:
        return {"value": _difference(lambda: _refuses(sample, expected["error"][0]))}
    recorded = [each for each in ASPECTS if each in expected or each in ("value", "node")]
    tensors = leaves(sample)
    try:
        outs = sample.evaluate(torch, tensors)
    except Exception as error:
        return dict.fromkeys(recorded, f"fails: {type(error).__name__}: {error}")
    nodes = [None if getattr(out, "grad_fn", None) is None else type(out.grad_fn).__name__ for out in outs]
    found = {
        "value": _difference(lambda: _same_values(outs, expected["results"])),
        "node": "" if nodes == expected["nodes"] else f"{nodes}, expected {expected['nodes']}",
    }
    if "refused" in expected:
        if not sample.beyond:
            found["first"] = _difference(lambda: _refuses_derivatives(outs, tensors))
    elif sample.smooth:
        found |= _derivatives(outs, tensors, expected)
    forward = golden_forward(family).get(sample.expression)
    if sample.smooth and forward is not None:
        found["forward"] = _difference(lambda: _same_tangents(sample, forward["tangents"]))
    return found


def _difference(compare: Callable[[], None]) -> str:
    try:
        compare()
    except AssertionError as error:
        return str(error).strip() or "different"
    except Exception as error:
        return f"fails: {type(error).__name__}: {error}"
    return ""


def _refuses(sample: Sample, kind: str) -> None:
    try:
        sample.evaluate(torch, leaves(sample))
    except Exception as error:
        kinds = [each.__name__ for each in type(error).__mro__]
        assert kind in kinds or "RuntimeError" in kinds, f"{type(error).__name__}: {error}, expected {kind}"
    else:
        raise AssertionError(f"no error, expected {kind}")


def _refuses_derivatives(outs: list[Any], tensors: dict[str, Any]) -> None:
    try:
        derivatives(torch, outs, list(tensors.values()))
    except RuntimeError:
        return
    raise AssertionError("derivatives where PyTorch refuses them")


def flat(tensor: Any) -> list[Any]:
    """Return the elements in order, complex ones as pairs."""
    array = numpy.ascontiguousarray(tensor.detach().numpy())
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    return array.ravel().tolist()


def _close(got: list[Any], expected: list[Any], tolerance: float) -> None:
    wanted = numpy.asarray([float(each) if isinstance(each, str) else each for each in expected])
    have = numpy.asarray(got)
    assert have.shape == wanted.shape, f"{have.size} numbers, expected {wanted.size}"
    fits = numpy.isclose(have, wanted, tolerance, tolerance, equal_nan=True)
    if not fits.all():
        first = int(numpy.argmin(fits))
        count = f"{int((~fits).sum())} of {fits.size} numbers"
        raise AssertionError(f"{count}, the first of them {have[first]}, expected {wanted[first]}")


def _same(got: Any, expected: dict[str, Any], tolerance: float) -> None:
    if "other" in expected:
        assert repr(got) == expected["other"], f"{got!r}, expected {expected['other']}"
        return
    dtype, shape = str(got.dtype).removeprefix("torch."), list(got.shape)
    assert (dtype, shape) == (expected["dtype"], expected["shape"]), (
        f"{dtype} {shape}, expected {expected['dtype']} {expected['shape']}"
    )
    _close(flat(got), expected["values"], tolerance)


def _same_values(outs: list[Any], expected: list[dict[str, Any]]) -> None:
    assert len(outs) == len(expected), f"{len(outs)} results, expected {len(expected)}"
    for out, wanted in zip(outs, expected, strict=True):
        _same(out, wanted, 1e-6 if wanted.get("dtype") in ("float32", "complex64") else 1e-9)


def _derivatives(outs: list[Any], tensors: dict[str, Any], expected: dict[str, Any]) -> dict[str, str]:
    try:
        found = derivatives(torch, outs, list(tensors.values()))
    except Exception as error:
        return dict.fromkeys(expected.keys() & {"first", "second"}, f"fails: {type(error).__name__}: {error}")

    def compare(got: list[Any], wanted: list[Any]) -> None:
        assert len(got) == len(wanted), f"{len(got)} gradients, expected {len(wanted)}"
        for one, other in zip(got, wanted, strict=True):
            # No gradient and a zero gradient are equal.
            if one is None or other is None:
                numbers = (other or {"values": []})["values"] if one is None else flat(one)
                assert not numpy.any(numbers), f"{numbers}, {'expected' if one is None else 'expected none'}"
            else:
                _same(one, other, 1e-7)

    # Where PyTorch has no second derivative, none is recorded.
    orders = {order: got for order, got in zip(("first", "second"), found, strict=True) if order in expected}
    return {order: _difference(partial(compare, got, expected[order])) for order, got in orders.items()}


def _same_tangents(sample: Sample, expected: list[Any]) -> None:
    tensors, steps = leaves(sample), {name: torch.tensor(step) for name, step in directions(sample).items()}
    found = tangents_by_backward(torch, sample, tensors, steps)
    assert len(found) == len(expected), f"{len(found)} tangents, expected {len(expected)}"
    for got, wanted in zip(found, expected, strict=True):
        numbers = [] if got is None else flat(got)
        if wanted is None or got is None:
            assert not numpy.any(numbers) and not numpy.any(wanted or []), f"{numbers}, expected {wanted}"
        else:
            _close(numbers, wanted, 1e-7)
