"""Record what ``torch.autograd.functional`` gives: ``python -m tests.conformance.golden.record_autograd_functional`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.autograd_functional_cases import answer, calls


def main() -> None:
    answers: dict[str, list[str]] = {}
    for call in calls():
        answers.setdefault(answer(torch, call), []).append(call)
    lines = ",\n".join(f"{json.dumps(text)}: {json.dumps(found)}" for text, found in answers.items())
    path = Path(__file__).with_name("autograd_functional.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {len(calls())} calls, {len(answers)} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
