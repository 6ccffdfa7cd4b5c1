"""Record what PyTorch makes of random programs: ``python -m tests.conformance.golden.record_view_programs`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.fuzz.view_programs import program, run

COUNT = 250


def main() -> None:
    recorded = [run(torch, program(seed)) for seed in range(COUNT)]
    lines = ",\n".join(json.dumps(each) for each in recorded)
    path = Path(__file__).with_name("view_programs.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "programs": [\n{lines}\n]}}\n')
    print(f"{COUNT} programs, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
