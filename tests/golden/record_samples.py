"""Record what PyTorch gives for every sample: ``python -m tests.golden.record_samples [family …]`` (needs PyTorch).

Writes one JSON file a family beside this script: for each expression the values, shapes, dtypes and nodes of the
results, and the first and second derivatives of a weighted sum of them, in float64.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

from tests.samples import FAMILIES, Sample, samples
from tests.weights import derivatives


def plain(tensor: Any) -> dict[str, Any]:
    """A tensor as JSON: dtype, shape and flat numbers (complex ones as pairs, non-finite ones as text)."""
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
    """What PyTorch gives for one sample."""
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
            first, second = derivatives(torch, outs, list(tensors.values()))
        except RuntimeError as error:
            if "_backward is not implemented" not in str(error):
                return {**found, "refused": str(error).splitlines()[0]}
            # PyTorch has a first derivative and no second; ours is checked by differences.
            first, second = derivatives(torch, outs, list(tensors.values()), second=False)[0], None
        found["first"] = [None if each is None else plain(each) for each in first]
        if second is not None:
            found["second"] = [None if each is None else plain(each) for each in second]
    return found


def main() -> None:
    for family in sys.argv[1:] or FAMILIES:
        recorded = {sample.expression: record(sample) for sample in samples(family)}
        path = Path(__file__).with_name(f"samples_{family}.json")
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
        path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "samples": {{\n{lines}\n}}}}\n')
        print(f"{path.name}: {len(recorded)} samples, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
