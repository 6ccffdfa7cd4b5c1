"""The command ``retrograd check-gpu``: compare a GPU with the CPU, and write a report.

``programs.py`` has small programs that run on both, ``steps.py`` training steps, ``parts.py`` the parts of the check,
``report.py`` the report. The
samples of operations are not in the package: their part needs a checkout.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Sequence

from ..core import devices

#: Exit statuses: differences were found; the check could not run.
DIFFERENCES, CANNOT = 1, 2


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments of ``retrograd check-gpu``."""
    found = argparse.ArgumentParser(
        "retrograd check-gpu",
        description="Compare the current GPU with the CPU, and write a report: programs, synchronisations, step times, "
        "memory, and with a checkout the samples of all operations.",
    )
    found.add_argument("--output", default="check-gpu.md", help="file of the report (default: %(default)s)")
    found.add_argument("--parts", nargs="+", choices=NAMES, default=NAMES, help="parts to run (default: all)")
    found.add_argument("--match", default="", help="only programs and samples whose name contains this text")
    found.add_argument("--checkout", default=None, help="folder of a checkout, for the samples in its tests")
    found.add_argument("--seconds", type=float, default=540.0, help="limit of the whole check (default: %(default)s)")
    found.add_argument(
        "--steps", type=int, default=100, help="training steps of the part memory (default: %(default)s)"
    )
    found.add_argument(
        "--processes", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)),
        help="processes of the part samples (default: half of the processors, at most 8)",
    )  # fmt: skip
    return found


#: Names of the parts, in the order in which they run: what may break the device runs last.
NAMES = ("device", "programs", "streams", "times", "memory", "samples")


def command(arguments: Sequence[str]) -> int:
    """Run ``retrograd check-gpu`` with ``arguments``, and return its exit status.

    The status is 0 if everything agrees, 1 if something differs, and 2 without a GPU.
    """
    options = parser().parse_args(list(arguments))
    try:
        devices.cupy()
    except (AssertionError, RuntimeError) as error:
        print(f"retrograd: check-gpu needs a GPU: {error}", file=sys.stderr)
        return CANNOT
    from .parts import PARTS, Context
    from .report import Report

    report = Report(pathlib.Path(options.output))
    context = Context(
        options.match, options.checkout, time.monotonic() + options.seconds, options.steps, options.processes, report
    )
    for name in NAMES:
        if name in options.parts:
            report.run(name, PARTS[name], context)
    print(report.summary())
    return DIFFERENCES if report.failures else 0


__all__ = ["CANNOT", "DIFFERENCES", "NAMES", "command", "parser"]
