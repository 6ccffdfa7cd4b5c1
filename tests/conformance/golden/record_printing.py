"""Record how PyTorch prints: ``python -m tests.conformance.golden.record_printing`` (needs PyTorch).

The tensors are made by expressions in NumPy, so that both engines print the same numbers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import torch

from tests.conformance.printing_cases import CASES, array_of


def main() -> None:
    recorded = []
    for expression, dtype, options, extra in CASES:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        tensor = torch.tensor(numpy.asarray(array_of(expression))).to(getattr(torch, dtype))
        if extra == "requires_grad":
            tensor.requires_grad_()
        elif extra == "grad_fn":
            tensor = tensor.requires_grad_() * 1
        recorded.append(repr(tensor))
    path = Path(__file__).with_name("printing.json")
    path.write_text(json.dumps({"torch": torch.__version__, "texts": recorded}, indent=0) + "\n")
    print(f"{len(recorded)} texts, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
