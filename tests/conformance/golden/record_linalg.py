"""Record what PyTorch answers to calls of linear algebra: ``python -m tests.conformance.golden.record_linalg`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.linalg_cases import CALLS, EMPTY, answer


def main() -> None:
    lines = ",\n".join(f"{json.dumps(each)}: {json.dumps(answer(torch, each))}" for each in (*CALLS, *EMPTY))
    path = Path(__file__).with_name("linalg.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": {{\n{lines}\n}}}}\n')
    print(f"{len(CALLS) + len(EMPTY)} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
