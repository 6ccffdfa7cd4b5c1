"""Record the errors of PyTorch for the calls of tests/conformance/operation_error_cases.py: ``python -m tests.conformance.golden.record_operation_errors``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.conformance.operation_error_cases import FAMILIES, calls, error_of


def main() -> None:
    found = {family: {call: error_of(torch, call) for call in calls(family)} for family in FAMILIES}
    path = Path(__file__).with_name("operation_errors.json")
    path.write_text(json.dumps({"torch": torch.__version__, "errors": found}, indent=0) + "\n")
    print(f"{path.name}: {sum(map(len, found.values()))} calls")


if __name__ == "__main__":
    main()
