"""Compare retrograd with PyTorch on the samples of a family, without recording (needs PyTorch).

``python -m tests.conformance.golden.compare_live reductions [operation]`` compares values, shapes, dtypes, strides,
node names, first and second gradients in float64 and float32, and values in float16 and bfloat16.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy
import torch as oracle

import retrograd
from tests.conformance.samples import Sample, samples

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1, "complex128": 1e-9}


def inputs(torch: Any, sample: Sample, dtype: str, grad: bool) -> dict[str, Any]:
    found = {}
    for name, array in sample.arrays().items():
        tensor = torch.tensor(array.tolist(), dtype=getattr(torch, str(array.dtype)))
        if array.dtype == numpy.float64 and dtype != "float64":
            tensor = tensor.to(getattr(torch, dtype))
        if grad and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.requires_grad_()
        found[name] = tensor
    return found


def numbers(tensor: Any) -> numpy.ndarray:
    tensor = tensor.detach()
    if isinstance(tensor, oracle.Tensor) and tensor._is_zerotensor():
        tensor = oracle.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.dtype in (oracle.bfloat16, retrograd.bfloat16):
        tensor = tensor.float()
    return numpy.asarray(
        tensor.resolve_conj().resolve_neg().numpy() if isinstance(tensor, oracle.Tensor) else tensor.numpy()
    )


def weighted(outs: list[Any]) -> Any:
    total = 0
    for out in outs:
        if out.requires_grad:
            flat = out.real + 0.5 * out.imag if out.is_complex() else out
            weights = numpy.cos(numpy.arange(flat.numel(), dtype=numpy.float64)).tolist()
            torch = oracle if isinstance(out, oracle.Tensor) else retrograd
            total = total + (flat * torch.tensor(weights, dtype=flat.dtype).reshape(flat.shape)).sum()
    return total


def run(torch: Any, sample: Sample, dtype: str, grad: bool) -> dict[str, Any]:
    tensors = inputs(torch, sample, dtype, grad)
    result: dict[str, Any] = {}
    try:
        outs = list(sample.evaluate(torch, tensors))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    kept = [each for each in outs if hasattr(each, "requires_grad")]
    result["kinds"] = [f"{each.dtype} {tuple(each.shape)}" for each in kept]
    result["other"] = [each for each in outs if not hasattr(each, "requires_grad")]
    result["values"] = [numbers(each) for each in kept]
    if not grad:
        result["strides"] = [each.stride() for each in kept]
        return result
    result["nodes"] = [type(each.grad_fn).__name__ if each.grad_fn is not None else None for each in kept]
    leaves = [each for each in tensors.values() if each.requires_grad]
    total = weighted(kept)
    if not hasattr(total, "backward") or not leaves:
        return result
    first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    result["first"] = [None if each is None else numbers(each) for each in first]
    again = weighted([each for each in first if each is not None])
    if hasattr(again, "backward") and again.requires_grad:
        try:
            second = torch.autograd.grad(again, leaves, allow_unused=True)
        except RuntimeError as error:
            if torch is not oracle or "_backward is not implemented" not in str(error):
                raise
            return result
        # a zero gradient and None are equal
        result["second"] = [0.0 if each is None else numbers(each) for each in second]
    return result


def differences(sample: Sample, dtype: str, grad: bool) -> list[str]:
    ours, theirs = run(retrograd, sample, dtype, grad), run(oracle, sample, dtype, grad)
    if "error" in theirs:
        same = "error" in ours and ours["error"].split(":")[0] == theirs["error"].split(":")[0]
        note = [] if same else [f"error: torch {theirs['error'][:150]} / ours {ours.get('error', 'none')[:150]}"]
        return note if grad is False and dtype in ("float64", "float32") else []
    if "error" in ours:
        return [f"ours fails: {ours['error'][:300]}"]
    found = []
    for key, expected in theirs.items():
        got = ours.get(key)
        if key in ("values", "first", "second"):
            tolerance = TOLERANCE[dtype]
            for index, (a, b) in enumerate(zip(got or [], expected, strict=False)):
                if (a is None) != (b is None):
                    if (b is None and not numpy.any(a)) or (a is None and not numpy.any(b)):
                        continue
                    found.append(f"{key}[{index}]: {a} / torch {b}")
                elif a is not None and not numpy.allclose(a, b, tolerance, tolerance, equal_nan=True):
                    found.append(f"{key}[{index}]: {a} / torch {b}"[:400])
        elif got != expected:
            found.append(f"{key}: {got} / torch {expected}")
    return found


def main() -> int:
    bad = total = 0
    for sample in samples(sys.argv[1]):
        if len(sys.argv) > 2 and sample.op not in sys.argv[2:]:
            continue
        for dtype, grad in (
            ("float64", True),
            ("float64", False),
            ("float32", True),
            ("float16", False),
            ("bfloat16", False),
        ):
            total += 1
            try:
                found = differences(sample, dtype, grad)
            except Exception as error:
                found = [f"crash: {type(error).__name__}: {error}"]
            bad += bool(found)
            for each in found:
                print(f"{sample.expression} [{dtype}{' grad' if grad else ''}] {each}")
    print(f"{sys.argv[1]}: {total - bad} of {total} agree")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
