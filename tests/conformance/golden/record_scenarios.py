"""Record the course of the scenarios under PyTorch: ``python -m tests.conformance.golden.record_scenarios [family …]``."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.overrides
import torch.utils.checkpoint

from tests.scenarios import FAMILIES, course, scenarios


def main() -> None:
    with warnings.catch_warnings():  # PyTorch's own, at the first tangents
        warnings.simplefilter("ignore")
        with torch.autograd.forward_ad.dual_level():
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1)).sin()
    for family in sys.argv[1:] or FAMILIES:
        found = {name: course(torch, scenario) for name, scenario in scenarios(family).items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
        path = Path(__file__).with_name(f"scenarios_{family}.json")
        path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "scenarios": {{\n{lines}\n}}}}\n')
        print(f"{path.name}: {len(found)} scenarios")


if __name__ == "__main__":
    main()
