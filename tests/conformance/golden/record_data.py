"""Record what PyTorch's data sets, samplers and loaders give: ``python -m tests.conformance.golden.record_data`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.data_cases import CALLS, answer


def main() -> None:
    lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(answer(torch, call))}" for call in CALLS)
    path = Path(__file__).with_name("data.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {len(CALLS)} calls, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
