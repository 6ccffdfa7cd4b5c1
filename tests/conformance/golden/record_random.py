"""Record what PyTorch draws: ``python -m tests.conformance.golden.record_random`` (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.random_cases import draw


def main() -> None:
    rows = [[float(f"{each:.9g}") for each in row] for row in draw(torch)]
    lines = ",\n".join(json.dumps(row) for row in rows)
    path = Path(__file__).with_name("random.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "rows": [\n{lines}\n]}}\n')
    print(f"{len(rows)} draws, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
