"""Record what PyTorch gives for the expressions of ``tests/conformance/transform_cases.py``: ``python -m tests.conformance.golden.record_transforms``."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from tests.conformance.transform_cases import EXPRESSIONS, outcome

PLACE = Path(__file__).with_name("transforms.json")


def main() -> None:
    warnings.simplefilter("ignore")
    found = {each: outcome(torch, each) for each in EXPRESSIONS}
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    PLACE.write_text("{\n" + lines + "\n}\n")
    print(f"{len(found)} expressions, {sum('error' in each for each in found.values())} of them refused")


if __name__ == "__main__":
    main()
