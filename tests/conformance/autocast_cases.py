"""Dtypes of results within ``autocast``, for the samples of every operation that it affects."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import Any

import tests.conformance.samples as every
from tests.conformance.samples import Sample, samples


def affected_samples(names: set[str]) -> Iterator[tuple[str, Sample]]:
    """Yield the samples of these operations, each under a unique key."""
    for family in sorted(module.name for module in pkgutil.iter_modules(every.__path__)):
        for number, sample in enumerate(samples(family)):
            if sample.op in names:
                yield f"{family} {number} {sample.op}", sample


def result_dtypes(torch: Any, sample: Sample, kind: str, short: str) -> str:
    """Return the dtypes of a sample's results for inputs of dtype ``kind``, or the type of the error."""
    tensors = {name: torch.tensor(array.tolist()) for name, array in sample.arrays().items()}
    tensors = {name: x.to(getattr(torch, kind)) if x.is_floating_point() else x for name, x in tensors.items()}
    try:
        with torch.autocast("cpu", getattr(torch, short)):
            found = sample.evaluate(torch, tensors)
    except Exception as error:
        return f"!{type(error).__name__}"
    return " ".join(str(each.dtype).removeprefix("torch.") for each in found if hasattr(each, "dtype"))
