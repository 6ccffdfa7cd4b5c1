"""Record the errors of the calls in failing_calls.txt and failing_calls_of_classes.txt (needs PyTorch).

``python -m tests.conformance.golden.record_errors`` writes ``errors.json``. With ``--marks``, and without PyTorch, it marks
the lines where retrograd raises another error with ``~``.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

from tests.conformance.error_cases import SOURCES, agrees, calls, failure, first_line, inputs

TARGET = pathlib.Path(__file__).with_name("errors.json")


def record(torch: Any) -> None:
    """Write errors.json: for each call the exception's type and the first line of its text."""
    found: dict[str, list[str]] = {}
    for call in (each.removeprefix("~ ") for topic in calls().values() for each in topic):
        error = failure(torch, call, inputs(torch))
        if error is None:
            print("PyTorch does not refuse", call)
        else:
            kind = next(each for each in type(error).__mro__ if not each.__name__.startswith("_"))
            found[call] = [kind.__name__, first_line(error)]
    TARGET.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def mark(torch: Any) -> None:
    """Mark the lines where retrograd raises another error."""
    recorded = json.loads(TARGET.read_text(encoding="utf-8"))
    count = 0
    for source in SOURCES:
        lines = []
        for line in source.read_text(encoding="utf-8").splitlines():
            call = line.removeprefix("~ ")
            if call in recorded:
                error = failure(torch, call, inputs(torch))
                torch.set_default_dtype(torch.float32)
                torch.set_default_device(None)
                same = agrees(error, *recorded[call])
                count += not same
                line = call if same else f"~ {call}"
                if not same and "-v" in sys.argv:
                    print(line, "\n    ours   ", repr(error), "\n    PyTorch", *recorded[call])
            lines.append(line)
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(len(recorded) - count, "of", len(recorded), "calls are answered as PyTorch answers them")


if __name__ == "__main__":
    if "--marks" in sys.argv:
        import retrograd

        mark(retrograd)
    else:
        import torch

        record(torch)
