"""Samples on the device ``cuda``, by the stand-in for CuPy, compared with the same samples on the CPU.

Print a table of all samples by dtype, the failures, and the lines that wait for the device::

    PYTHONPATH=src python -m tests.conformance.gpu_cases [--part 0..4] [--dtype float32] [--family fft] [--failures 50]
"""

from __future__ import annotations

import argparse
import os
import re
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy

import retrograd as torch
import retrograd.autograd.forward_ad as fwAD
from retrograd.cuda import synchronization
from tests.conformance.sample_derivatives import directions
from tests.conformance.samples import FAMILIES, Sample, samples
from tests.cupy_stand_in import SYNCS, installed

DTYPES = ("float32", "float64", "bfloat16", "complex64")
STAGES = ("forward", "backward", "create_graph", "forward mode")
#: Relative and absolute tolerance of values, by dtype.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9, "bfloat16": 4e-2, "complex64": 1e-4}
PARTS = 5


class Outcome(NamedTuple):
    """A sample in one dtype: the difference or error of each stage ("" if it agrees), and the waits of each stage.

    ``waits`` are those of all stages, by place, as the package counts them on a card and on the stand-in; ``syncs`` are
    the stand-in's. Neither counts the copies of results for the comparison.
    """

    differences: dict[str, str]
    syncs: dict[str, Counter[tuple[str, str]]]
    waits: Counter[str]


def part_of(sample: Sample) -> int:
    """Return the part, of ``PARTS``, to which a sample belongs."""
    return zlib.crc32(b"part " + sample.expression.encode()) % PARTS


def converted(array: numpy.ndarray[Any, Any], dtype: str) -> Any:
    """Return the input ``array`` as a CPU tensor: floating inputs in ``dtype``, complex ones in the complex dtype."""
    tensor = torch.tensor(array)
    if tensor.is_floating_point():
        return tensor.to(getattr(torch, dtype))
    if tensor.is_complex() and dtype != "float64":
        return tensor.to(torch.complex64)
    return tensor


def weights(out: Any) -> Any:
    """Return fixed gradients for the result ``out``, on its device."""
    numbers = numpy.cos(numpy.arange(out.numel(), dtype=numpy.float64)).reshape(tuple(out.shape))
    return torch.tensor(numbers).to(out.dtype).to(out.device)


def stages(sample: Sample, dtype: str, device: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name and the results of each stage of a sample on a device; the first error ends it."""

    def leaves() -> dict[str, Any]:
        return {name: converted(array, dtype).to(device) for name, array in sample.arrays().items()}

    def evaluate(tensors: dict[str, Any]) -> list[Any]:
        torch.manual_seed(0)
        with torch.device(device):
            return sample.evaluate(torch, tensors)

    tensors = leaves()
    inputs = [each for each in tensors.values() if each.is_floating_point() or each.is_complex()]
    for each in inputs:
        each.requires_grad_(sample.smooth)
    outs = evaluate(tensors)
    yield "forward", outs
    smooth = [each for each in outs if isinstance(each, torch.Tensor) and each.requires_grad and each.grad_fn]
    if not sample.smooth or not smooth or not inputs:
        return
    first_weights = list(map(weights, smooth))
    yield "backward", list(torch.autograd.grad(smooth, inputs, first_weights, retain_graph=True, allow_unused=True))
    first = torch.autograd.grad(smooth, inputs, first_weights, create_graph=True, allow_unused=True)
    smooth = [each for each in first if each is not None and each.requires_grad and each.grad_fn]
    second = torch.autograd.grad(smooth, inputs, list(map(weights, smooth)), allow_unused=True) if smooth else []
    yield "create_graph", [*first, *second]
    steps = {name: converted(step, dtype).to(device) for name, step in directions(sample).items()}
    with fwAD.dual_level():
        duals = {name: fwAD.make_dual(each, steps[name]) if name in steps else each for name, each in leaves().items()}
        found = evaluate(duals)
        yield (
            "forward mode",
            [fwAD.unpack_dual(each).tangent if isinstance(each, torch.Tensor) else None for each in found],
        )


def values(results: list[Any]) -> list[Any]:
    """Return dtype, shape, device and elements of tensors; other objects by their text."""
    found = []
    for each in results:
        if not isinstance(each, torch.Tensor):
            found.append(type(each).__name__)
            continue
        plain = each.detach().cpu()
        plain = plain.to_dense() if plain.layout != torch.strided else plain
        plain = plain.resolve_conj() if plain.is_complex() else plain
        array = plain.to(torch.float64).numpy() if plain.dtype in (torch.bfloat16, torch.float16) else plain.numpy()
        found.append((each.dtype, tuple(each.shape), each.device.type, array))
    return found


class Several(NamedTuple):
    """Function of the elements of a result that all right answers have in common, and why there are several answers."""

    determined: Callable[[Any], Any]
    reason: str


DUPLICATES = Several(numpy.shape, "which of the values at equal indices stays is not defined, in PyTorch neither")
PHASES = Several(numpy.abs, "each vector may be multiplied by a number of absolute value 1")
QUOTIENTS = Several(numpy.shape, "which parts of a complex quotient by 0 are nan, and which infinite, is not defined")
#: Samples with several right answers. Their derivatives are not compared.
SEVERAL_ANSWERS = {
    "i.scatter(1, k, j)": DUPLICATES,
    "torch.scatter(i, 1, k, j, out=torch.zeros(0, dtype=torch.int64))": DUPLICATES,
    "torch.linalg.eigh(x + x.mH)[1]": PHASES,
    "torch.linalg.eig(x)[1]": PHASES,
    "torch.linalg.svd(x)[0]": PHASES,
    "torch.nan_to_num(x / i, nan=1.5, posinf=2.5, neginf=-2.5)": QUOTIENTS,
    "torch.nan_to_num(z / i)": QUOTIENTS,
}


MULTI_HEAD = "torch.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, w, b, None, None, False, 0., u, c)"
#: Derivatives that are small differences of large numbers: factors of the tolerance by sample, stage and dtype. The
#: second derivatives of this one are sums of numbers up to 31. Those of the CPU are 2.7 tolerances from the values
#: in float64 in float32, and 7.9 in bfloat16.
CANCELLING = {(MULTI_HEAD, "create_graph", dtype): 10 for dtype in ("float32", "bfloat16")}


def difference(
    got: list[Any], expected: list[Any], tolerance: float, determined: Callable[[Any], Any] | None = None
) -> str:
    """Return the first difference of the results of two devices as text; "" if they agree.

    ``determined`` returns what is compared of the elements of a result, by default the elements themselves. A
    derivative that is missing agrees with zeros: whether a constant gradient has a node may depend on values, which are
    not read on a GPU.
    """
    for one, other in zip_longest(got, expected, fillvalue="NoneType"):
        if isinstance(one, str) or isinstance(other, str):
            if one != other and not (
                "NoneType" in (one, other) and not numpy.any((one if isinstance(other, str) else other)[3])
            ):
                return f"{one}, expected {other}"
            continue
        if one[:2] != other[:2]:
            return f"{one[:2]}, expected {other[:2]}"
        if one[2] != "cuda":
            return "a result is on the CPU"
        if determined is not None and numpy.allclose(determined(one[3]), determined(other[3]), tolerance, tolerance):
            continue
        rough = max(tolerance, TOLERANCE.get(str(one[0]).removeprefix("torch."), 0))
        if not numpy.allclose(one[3], other[3], rough, rough, equal_nan=True):
            return f"values {one[3].ravel()[:4]}, expected {other[3].ravel()[:4]}"
    return ""


#: Texts in samples whose result is on the CPU, also while ``cuda`` is the default device, as in PyTorch.
ON_THE_CPU = ("frombuffer", "numpy", "Tensor([")


def where(error: Exception) -> str:
    """Return the innermost line of the package that an error comes from."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/retrograd/" in each.filename]
    return "/".join(frames[-1].filename.split("/")[-2:]) + f":{frames[-1].lineno}" if frames else ""


def compare(sample: Sample, dtype: str) -> Outcome | None:
    """Compare a sample on the stand-in with the CPU, up to the stage where the CPU refuses; None if it refuses all."""
    expected: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for stage, results in stages(sample, dtype, "cpu"):
                expected[stage] = values(results)
        except Exception:
            pass
        if not expected or any(each in sample.expression for each in ON_THE_CPU):
            return None
        outcome = Outcome({}, {}, Counter())
        running = stages(sample, dtype, "cuda")
        several = SEVERAL_ANSWERS.get(sample.expression.strip())
        for stage, wanted in expected.items():
            if several is not None and stage != "forward":
                break
            before = Counter(SYNCS)
            try:
                with synchronization.counted() as waits:
                    _, results = next(running)
                outcome.waits.update(waits)
                outcome.syncs[stage] = SYNCS - before
                tolerance = TOLERANCE[dtype] * CANCELLING.get((sample.expression, stage, dtype), 1)
                outcome.differences[stage] = difference(
                    values(results), wanted, tolerance, several.determined if several else None
                )
            except StopIteration:
                outcome.differences[stage] = "no such stage"
                break
            except Exception as error:
                outcome.syncs.setdefault(stage, SYNCS - before)
                outcome.differences[stage] = f"{type(error).__name__}: {str(error)[:200]} {where(error)}"
                break
        running.close()
        return outcome


#: What may wait for the device, one function a line: the shape of its result depends on values, it is computed on the
#: CPU, or the number of its steps depends on values.
MAY_WAIT = Path(__file__).with_name("gpu_waits.txt")


def function_of(where: str) -> str:
    """Return file and function of a place without the line, which changes."""
    return re.sub(r":[0-9]+ ", " ", where)


def today() -> int:
    """Return the part that the suite compares: RETROGRAD_GPU_PART, by default another one each day."""
    return int(os.environ.get("RETROGRAD_GPU_PART") or time.time() // 86400) % PARTS


def chosen(part: int | None, families: list[str] | None = None) -> Iterator[tuple[str, Sample, str]]:
    """Yield family, sample and dtype of what is compared: all parts if ``part`` is None."""
    for family in families or FAMILIES:
        for sample in samples(family):
            if part is not None and part_of(sample) != part:
                continue
            floating = any(each.dtype.kind == "f" for each in sample.arrays().values())
            for dtype in DTYPES if floating else ("float64",):
                yield family, sample, dtype


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--family", nargs="*")
    parser.add_argument("--failures", type=int, default=100)
    parser.add_argument("--match", default="")
    parser.add_argument("--write-waits", action="store_true", help="write gpu_waits.txt, to be read before a commit")
    options = parser.parse_args()
    started = time.process_time()
    totals: Counter[tuple[str, str]] = Counter()
    operations: dict[str, set[str]] = {}
    failing: dict[str, set[str]] = {}
    places: Counter[tuple[str, str]] = Counter()
    texts: Counter[str] = Counter()
    waits: Counter[tuple[str, str]] = Counter()
    lines = []
    with installed():
        for family, sample, dtype in chosen(options.part, options.family):
            if (options.dtype and dtype != options.dtype) or options.match not in f"{sample.op} {sample.expression}":
                continue
            outcome = compare(sample, dtype)
            if outcome is None:
                continue
            operations.setdefault(dtype, set()).add(sample.op)
            totals[dtype, "samples"] += 1
            for stage, found in outcome.differences.items():
                totals[dtype, stage + " of"] += 1
                totals[dtype, stage] += not found
                if found:
                    texts[found[:150]] += 1
                    lines.append(f"{family}\t{sample.op}\t{sample.expression}\t{dtype}\t{stage}\t{found[:200]}")
                    failing.setdefault(dtype, set()).add(sample.op)
            totals[dtype, "passed"] += not any(outcome.differences.values())
            for stage, counts in outcome.syncs.items():
                waits[dtype, stage] += bool(counts)
                places.update(counts)
    for line in lines[: options.failures]:
        print(line)
    print(f"\n{'':>10} " + " ".join(f"{each:>14}" for each in ("samples", "operations", *STAGES)))
    for dtype in operations:
        print(
            f"{dtype:>10} {totals[dtype, 'passed']:>6}/{totals[dtype, 'samples']:<7} "
            f"{len(operations[dtype]) - len(failing.get(dtype, ())):>6}/{len(operations[dtype]):<7} "
            + " ".join(f"{totals[dtype, each]:>6}/{totals[dtype, each + ' of']:<7}" for each in STAGES)
        )
        print(f"{'waiting':>10} {'':>14} {'':>14} " + " ".join(f"{waits[dtype, each]:>6}{'':8}" for each in STAGES))
    print(f"\n{sum(places.values())} synchronisations")
    for (what, where), count in places.most_common(40):
        print(f"{count:6} {what:16} {where}")
    if options.write_waits:
        MAY_WAIT.write_text(
            "".join(f"{each}\n" for each in sorted({function_of(at) for _, at in places})), encoding="utf-8"
        )
    print("\nerrors")
    for text, count in texts.most_common(60):
        print(f"{count:6} {text}")
    print(f"\n{time.process_time() - started:.0f} s CPU")


if __name__ == "__main__":
    main()
