"""Record which functions accept NumPy's names of parameters: ``python -m tests.conformance.golden.record_numpy_names``.

Needs PyTorch and writes ``numpy_names.json``: for each function and name a call made from a sample, and None if PyTorch
accepts it, otherwise the type and text of its error. If PyTorch accepts one of several calls, that one is recorded.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import torch

from tests.conformance.golden import GOLDEN
from tests.conformance.numpy_name_cases import cases
from tests.conformance.samples import Sample


def outcome(sample: Sample, expression: str) -> list[str] | None:
    """Return None if PyTorch accepts the call ``expression``, otherwise the type and the text of its error."""
    tensors = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    try:
        eval(expression, {"torch": torch, **tensors})
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]
    return None


def main() -> None:
    """Write the record."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Any]] = {}
    for function, name, sample, expression in cases():
        known = found.setdefault(function, {}).get(name)
        if known is None or known["error"] is not None:
            torch.manual_seed(0)
            error = outcome(sample, expression)
            if known is None or error is None:
                found[function][name] = {"sample": sample.expression, "call": expression, "error": error}
    lines = [
        f"{json.dumps([function, name, *each.values()])}"
        for function, names in found.items()
        for name, each in names.items()
    ]
    (GOLDEN / "numpy_names.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
