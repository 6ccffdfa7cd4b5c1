"""Record the dtypes of results within ``autocast``: ``python -m tests.conformance.golden.record_amp`` (needs PyTorch)."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from retrograd.amp import autocast_mode
from tests.conformance.autocast_cases import concerned, given

LISTS = ("LOWER", "FULL", "WIDEST", "AS_IT_IS", "AS_THE_FIRST")


def main() -> None:
    warnings.simplefilter("ignore")
    names = set(" ".join(getattr(autocast_mode, each) for each in LISTS).split())
    found = {
        key: {kind: given(torch, sample, kind, "bfloat16") for kind in ("float32", "bfloat16", "float64")}
        for key, sample in concerned(names)
    }
    path = Path(__file__).with_name("amp.json")
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "dtypes": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {len(found)} samples, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
