"""Record how PyTorch indexes: ``python -m tests.conformance.golden.record_indexing`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.fuzz.index_expressions import answer, programs

COUNT = 500


def main() -> None:
    lines = ",\n".join(json.dumps(answer(torch, each), separators=(",", ":")) for each in programs(COUNT))
    path = Path(__file__).with_name("indexing.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "answers": [\n{lines}\n]}}\n')
    print(f"{COUNT} answers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
