"""Record what PyTorch's profiler shows: ``python -m tests.conformance.golden.record_profiler`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.profiler

from tests.conformance.profiler_cases import (
    MISTAKES,
    OPTIONS,
    OWN,
    PROGRAMS,
    SCHEDULES,
    SHOWN,
    followed,
    profiled,
    refused,
    shown,
)


def main() -> None:
    found = {
        "programs": {name: profiled(torch, program) for name, program in PROGRAMS.items()},
        "shown": {call: [shown(torch, call, *options) for options in OPTIONS] for call in SHOWN},
        "schedules": {each: followed(torch, each) for each in (*SCHEDULES, *OWN)},
        "mistakes": {call: refused(torch, call) for call in MISTAKES},
    }
    lines = [f"{json.dumps(kind)}: {{\n" + ",\n".join(f"{json.dumps(c)}: {json.dumps(r)}" for c, r in each.items()) + "\n}"
             for kind, each in found.items()]  # fmt: skip
    path = Path(__file__).with_name("profiler.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)},\n' + ",\n".join(lines) + "\n}\n")
    print(
        f"{path.name}: {', '.join(f'{len(each)} {kind}' for kind, each in found.items())}, {path.stat().st_size // 1024} KB"
    )


if __name__ == "__main__":
    main()
