"""Record PyTorch's promotion of dtypes: ``python -m tests.conformance.golden.record_promotion`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.promotion_cases import EXPRESSIONS, answer


def main() -> None:
    path = Path(__file__).with_name("promotion.json")
    answers = [answer(torch, each).removeprefix("torch.") for each in EXPRESSIONS]
    path.write_text(json.dumps({"torch": torch.__version__, "answers": answers}) + "\n")
    print(f"{len(answers)} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
