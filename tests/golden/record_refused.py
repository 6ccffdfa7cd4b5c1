"""Record the errors of PyTorch for the calls of tests/refused.py: ``python -m tests.golden.record_refused``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.refused import FAMILIES, calls, error_of


def main() -> None:
    found = {family: {call: error_of(torch, call) for call in calls(family)} for family in FAMILIES}
    path = Path(__file__).with_name("refused.json")
    path.write_text(json.dumps({"torch": torch.__version__, "errors": found}, indent=0) + "\n")
    print(f"{path.name}: {sum(map(len, found.values()))} calls")


if __name__ == "__main__":
    main()
