"""Record what PyTorch makes of the random programs of tests/fuzz/hook_programs.py.

    python -m tests.conformance.golden.record_hook_programs

Needs PyTorch.
"""

from __future__ import annotations

import json
import pathlib

import torch

from tests.fuzz.hook_programs import COUNT, program, run


def main() -> None:
    found = [run(torch, program(seed)) for seed in range(COUNT)]
    path = pathlib.Path(__file__).with_name("hook_programs.json")
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in found)
    path.write_text(f'{{"torch": "{torch.__version__}", "programs": [\n{lines}\n]}}\n', encoding="utf-8")
    failing = sum(any(isinstance(value, str) for value in each.values()) for each in found)
    print(f"{len(found)} programs, {failing} with errors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
