"""Record PyTorch's results for every sample: ``python -m tests.conformance.golden.record_samples [family …]``.

Needs PyTorch and writes two files per family, in float64: ``samples_…json`` has for each expression the values, shapes,
dtypes and nodes of the results, and the first and second derivatives of a weighted sum of them; ``forward_…json`` has
the forward derivatives of the results along a fixed direction of all inputs.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.conformance.sample_derivatives import derivatives, directions, tangents_by_backward
from tests.conformance.samples import FAMILIES, Sample, samples


def plain(tensor: Any) -> dict[str, Any]:
    """Return a tensor as JSON: dtype, shape and flat numbers (complex ones as pairs, non-finite ones as text)."""
    tensor = tensor.detach().resolve_conj()
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    found: dict[str, Any] = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    found["values"] = [number(each) for each in tensor.contiguous().reshape(-1).tolist()]
    return found


def number(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else repr(value)
    return value


def record(sample: Sample) -> dict[str, Any]:
    """Return PyTorch's results for one sample."""
    torch.manual_seed(0)  # as the tests do
    tensors = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    for tensor in tensors.values():
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.requires_grad_(sample.smooth)
    try:
        outs = sample.evaluate(torch, tensors)
    except Exception as error:
        return {"error": [type(error).__name__, str(error).splitlines()[0]]}
    found: dict[str, Any] = {
        "results": [plain(each) if isinstance(each, torch.Tensor) else {"other": repr(each)} for each in outs],
        "nodes": [None if getattr(each, "grad_fn", None) is None else type(each.grad_fn).__name__ for each in outs],
    }
    if sample.smooth:
        try:
            first, second = derivatives(torch, outs, list(tensors.values()), second=not sample.once)
        except RuntimeError as error:
            if not re.search("_backward'? is not implemented", str(error)):
                return {**found, "refused": str(error).splitlines()[0]}
            # PyTorch has a first derivative and no second; ours is checked by differences.
            first, second = derivatives(torch, outs, list(tensors.values()), second=False)[0], None
        found["first"] = [None if each is None else plain(each) for each in first]
        if second is not None and not sample.once:
            found["second"] = [None if each is None else plain(each) for each in second]
    return found


def forward(sample: Sample) -> dict[str, Any] | None:
    """Return the tangents of the results along the sample's direction and the mode that computed them, or None.

    Where PyTorch's two modes differ (forward_ad drops the imaginary part of a complex number to a real power), or one
    is missing (forward_ad takes the product of ``scatter_reduce`` for a constant), finite differences decide; they may
    decide for neither (the inverse from a Cholesky factor whose diagonal is not real).
    """
    tensors = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    steps = {name: torch.tensor(step) for name, step in directions(sample).items()}
    leaves = {name: each.clone().requires_grad_(name in steps) for name, each in tensors.items()}
    ways = {}
    for way, tangents, given in (
        ("forward_ad", tangents_by_forward, tensors),
        ("backward", tangents_by_backward, leaves),
    ):
        # An operation may have no forward derivative in PyTorch, or no second one.
        with contextlib.suppress(Exception), sdpa_kernel(SDPBackend.MATH):  # attention has them when written out
            torch.manual_seed(0)
            found = tangents(torch, sample, given, steps)
            ways[way] = [None if each is None else plain(each)["values"] for each in found]
    if not ways:
        return None
    best = next(iter(ways))
    if len(ways) == 1 or disagree(*ways.values()):
        far = {way: distance(tangents, sample, tensors, steps) for way, tangents in ways.items()}
        best = min(far, key=far.__getitem__)
        if far[best] > 1e-4:
            return None
    return {"by": best, "tangents": [None if each is None else shortened(each) for each in ways[best]]}


def tangents_by_forward(torch: Any, sample: Sample, tensors: dict[str, Any], steps: dict[str, Any]) -> list[Any]:
    """Return the tangent of each result in forward mode."""
    with forward_ad.dual_level():
        duals = {name: forward_ad.make_dual(tensors[name], step) for name, step in steps.items()}
        outs = sample.evaluate(torch, {**tensors, **duals})
        return [forward_ad.unpack_dual(each).tangent if isinstance(each, torch.Tensor) else None for each in outs]


def disagree(one: list[Any], other: list[Any]) -> bool:
    pairs = [
        [numpy.asarray(0.0 if each is None else each, float) for each in pair] for pair in zip(one, other, strict=True)
    ]
    return not all(numpy.allclose(a, b, 1e-8, 1e-8) for a, b in pairs)


def distance(found: list[Any], sample: Sample, tensors: dict[str, Any], steps: dict[str, Any]) -> float:
    """Return the distance between tangents and finite differences."""
    ends = [
        sample.evaluate(torch, {**tensors, **{name: tensors[name] + h * step for name, step in steps.items()}})
        for h in (1e-6, -1e-6)
    ]
    far = 0.0
    for above, below, tangent in zip(*ends, found, strict=True):
        if isinstance(above, torch.Tensor) and (above.is_floating_point() or above.is_complex()):
            slope = numpy.asarray(plain((above - below) / 2e-6)["values"], float)
            gap = numpy.abs(slope - numpy.asarray(0.0 if tangent is None else tangent, float))
            far = max(far, float(numpy.max(numpy.nan_to_num(gap, nan=numpy.inf), initial=0.0)))
    return far


def shortened(values: list[Any]) -> list[Any]:
    return [float(f"{each:.10g}") if isinstance(each, float) else each for each in values]


def write(name: str, recorded: dict[str, Any]) -> None:
    """Write a file with a sample per line."""
    path = Path(__file__).with_name(f"{name}.json")
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "samples": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {len(recorded)} samples, {path.stat().st_size // 1024} KB")


def main() -> None:
    for family in sys.argv[1:] or FAMILIES:
        recorded = {sample.expression: record(sample) for sample in samples(family)}
        write(f"samples_{family}", recorded)
        tangents = {
            sample.expression: forward(sample)
            for sample in samples(family)
            if sample.smooth and not sample.named and not {"error", "refused"} & recorded[sample.expression].keys()
        }
        write(f"forward_{family}", {key: value for key, value in tangents.items() if value is not None})


if __name__ == "__main__":
    main()
