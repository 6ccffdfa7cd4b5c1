"""Record with PyTorch what it says to each call of tests/errors.txt: ``python -m tests.golden.record_errors``."""

from __future__ import annotations

import json
import pathlib

import torch

from tests.errors import calls, failure, first_line, inputs

TARGET = pathlib.Path(__file__).with_name("errors.json")


def main() -> None:
    """Write errors.json: for each call the exception's type and the first line of its text."""
    found: dict[str, list[str]] = {}
    for call in (each for topic in calls().values() for each in topic):
        error = failure(torch, call, inputs(torch))
        if error is None:
            print("PyTorch does not refuse", call)
        else:
            found[call] = [
                next(each for each in type(error).__mro__ if not each.__name__.startswith("_")).__name__,
                first_line(error),
            ]
    TARGET.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
