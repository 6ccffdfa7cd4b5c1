"""Record what PyTorch's modules show: ``python -m tests.conformance.golden.record_modules`` (needs PyTorch). Writes ``modules.json``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.module_cases import programs, shown


def main() -> None:
    torch.set_num_threads(1)
    found = {topic: shown(torch, statements) for topic, statements in programs().items()}
    lines = [
        f"{json.dumps(topic)}: [\n" + ",\n".join(json.dumps(each) for each in texts) + "]"
        for topic, texts in found.items()
    ]
    path = Path(__file__).with_name("modules.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "shown": {{\n' + ",\n".join(lines) + "}}\n")
    print(f"{path.name}: {sum(map(len, found.values()))} statements, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
