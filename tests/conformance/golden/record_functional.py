"""Record what PyTorch says to the calls of tests/conformance/functional_cases.py: ``python -m tests.conformance.golden.record_functional``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.functional_cases import CALLS, outcome


def main() -> None:
    recorded = {call: outcome(torch, call) for call in CALLS}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
    path = Path(__file__).with_name("functional.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "calls": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
