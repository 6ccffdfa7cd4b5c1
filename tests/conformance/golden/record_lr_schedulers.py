"""Record PyTorch's schedules of learning rates: ``python -m tests.conformance.golden.record_lr_schedulers`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.lr_scheduler_cases import FAILING, LED, SCHEDULES, followed, refused


def main() -> None:
    found = {
        "runs": {call: followed(torch, call) for call in (*SCHEDULES, *LED)},
        "errors": {call: refused(torch, call) for call in FAILING},
    }
    lines = [f"{json.dumps(kind)}: {{\n" + ",\n".join(f"{json.dumps(c)}: {json.dumps(r)}" for c, r in each.items()) + "\n}"
             for kind, each in found.items()]  # fmt: skip
    path = Path(__file__).with_name("lr_schedulers.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)},\n' + ",\n".join(lines) + "\n}\n")
    print(f"{path.name}: {len(found['runs'])} schedules, {len(FAILING)} errors, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
