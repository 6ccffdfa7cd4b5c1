"""Record what PyTorch's layers do: ``python -m tests.conformance.golden.record_layers`` (needs PyTorch). Writes ``layers.json``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.layer_cases import LAYERS, played


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for layer in LAYERS:
        found = played(torch, layer)
        lines.append(f"{json.dumps(layer.expression + ' ' + layer.call)}: {json.dumps(found, separators=(',', ':'))}")
    path = Path(__file__).with_name("layers.json")
    body = ",\n".join(lines)
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "layers": {{\n{body}\n}}}}\n')
    print(f"{path.name}: {len(LAYERS)} layers, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
