"""Record what PyTorch's shapes, views and refusals are: ``python -m tests.conformance.golden.record_shapes`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.shape_cases import EXPRESSIONS, answer


def main() -> None:
    lines = ",\n".join(json.dumps(answer(torch, each), separators=(",", ":")) for each in EXPRESSIONS)
    path = Path(__file__).with_name("shapes.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": [\n{lines}\n]}}\n')
    print(f"{len(EXPRESSIONS)} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
