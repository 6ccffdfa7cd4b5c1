"""Record what PyTorch's distributions answer: ``python -m tests.conformance.golden.record_distributions`` (needs PyTorch).

Writes ``distributions.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from tests.conformance.distribution_cases import CASES, PAIRS, SOURCE, answers, divergence, title
from tests.conformance.module_cases import programs, shown


def short(value: Any) -> Any:
    """Numbers with as many digits as are compared."""
    if isinstance(value, dict):
        return {key: short(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [short(each) for each in value]
    return float(f"{value:.11g}") if isinstance(value, float) else value


def main() -> None:
    torch.set_num_threads(1)
    cases = {title(case): answers(torch, case) for case in CASES}
    pairs = {" to ".join(pair): divergence(torch, pair) for pair in PAIRS}
    lines = {topic: shown(torch, statements) for topic, statements in programs(SOURCE).items()}
    path = Path(__file__).with_name("distributions.json")
    parts = {"cases": cases, "pairs": pairs, "shown": lines}
    written = (
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(short(each))}" for key, each in found.items())
        + "}"
        for part, found in parts.items()
    )
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)},\n' + ",\n".join(written) + "}\n")
    answered = sum(map(len, cases.values()))
    print(f"{path.name}: {answered} answers of {len(cases)} distributions, {len(pairs)} divergences, "
          f"{sum(map(len, lines.values()))} lines, {path.stat().st_size // 1024} KB")  # fmt: skip


if __name__ == "__main__":
    main()
