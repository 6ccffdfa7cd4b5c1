"""Record checkpoints that PyTorch writes: ``python -m tests.conformance.golden.record_checkpoints`` (needs PyTorch).

Writes ``checkpoint.pt`` and ``checkpoint_legacy.pt`` (all objects of ``checkpoint_cases.py`` in one file each),
``networks.pt`` (whole modules), ``wholes.pt`` (other objects) and ``checkpoints.json``: their contents, the pickle of each
object alone, and outlines of the modules' pickles.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import torch

from tests.conformance.checkpoint_cases import UNTYPED, answer, networks, objects, outline, shown, used, wholes


def main() -> None:
    here = Path(__file__).parent
    found = objects(torch)
    torch.save(found, here / "checkpoint.pt")
    old = {name: each for name, each in found.items() if name not in UNTYPED}
    torch.save(old, here / "checkpoint_legacy.pt", _use_new_zipfile_serialization=False)
    pickles = {}
    for name, each in found.items():
        file = io.BytesIO()
        torch.save(each, file)
        pickles[name] = zipfile.ZipFile(file).read("archive/data.pkl").hex()
    whole = networks(torch)
    torch.save({name: network for name, (network, _) in whole.items()}, here / "networks.pt")
    outlines = {}
    for name, (network, _) in whole.items():
        file = io.BytesIO()
        torch.save(network, file)
        outlines[name] = json.dumps(outline(file))
    answers = {name: answer(torch, network, shape) for name, (network, shape) in whole.items()}
    others = wholes(torch)
    torch.save(others, here / "wholes.pt")
    kept = {}
    for name, each in others.items():
        file = io.BytesIO()
        torch.save(each, file)
        kept[name] = json.dumps(outline(file))
    recorded = {
        "wholes": kept,
        "uses": {name: used(torch, name, torch.load(here / "wholes.pt", weights_only=False)[name]) for name in others},
        "torch": torch.__version__,
        "outlines": outlines,
        "answers": answers,
        "shown": {name: shown(torch, each) for name, each in found.items()},
    }
    path = here / "checkpoints.json"
    path.write_text(json.dumps(recorded | {"pickles": pickles}, indent=0) + "\n")
    for each in ("checkpoint.pt", "checkpoint_legacy.pt", "networks.pt", "wholes.pt", "checkpoints.json"):
        print(f"{each}: {(here / each).stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
