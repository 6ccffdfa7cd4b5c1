"""The command: measures groups of rows, prints them, and writes their tables into docs/performance.md.

    python -m benchmarks                                everything, which takes a quarter of an hour
    python -m benchmarks --group windows picking        some groups
    python -m benchmarks --group windows --only conv2d  some rows; nothing is written

Every row is one piece of work written once, in PyTorch's language. Values and gradients of both engines are compared
before they are measured in turn, round by round, each in a process of its own; both use 2 threads. A ratio is
PyTorch's time divided by retrograd's: the median of the rounds, with the quartiles. Needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from . import footprint, page
from .groups import GROUPS
from .measure import Bench, Result
from .row import Group


def measured(bench: Bench, group: Group, only: list[str], rounds: int) -> tuple[list[Result], list[str]]:
    """The results of a group's rows, printed as they come, and what failed."""
    results, failed = [], []
    print(f"\n{group.title} ({group.name})", flush=True)
    for place, row in enumerate(group.rows):
        if only and not any(each in row.name for each in only):
            continue
        try:
            results.append(bench.measure(group, place, rounds))
        except Exception as error:
            failed.append(f"{row.name}: {error}")
            print(f"{row.name:58} failed: {error}", flush=True)
            continue
        print(page.line(results[-1]), flush=True)
    if results and results[0].theirs:
        print(f"{'geometric mean':58}{page.mean(results):28.2f}")
    return results, failed


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser("python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--group", nargs="+", choices=[*GROUPS, "footprint"], default=[*GROUPS, "footprint"])
    options.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="rows whose names contain one of these")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--threads", type=int, default=2, help="of both; with 1 the processor's time is taken")
    options.add_argument("--quick", action="store_true", help="3 rounds; nothing is written")
    return options.parse_args()


def main() -> int:
    """Run the command; 1 if a row failed or the engines did not agree."""
    arguments = _arguments()
    rounds = 3 if arguments.quick else arguments.rounds
    theirs = find_spec("torch") is not None
    bench = Bench(arguments.threads, theirs)
    failures = []
    writing = theirs and not arguments.only and not arguments.quick
    print(page.machine())
    for name in arguments.group:
        if name == "footprint":
            if not arguments.only:
                rows = footprint.rows(rounds, theirs)
                for label, unit, ours, theirs in rows:
                    shown = "" if theirs is None else f"{theirs:10.4g}{theirs / ours:8.2f}"
                    print(f"{label + ', ' + unit:58}{ours:10.4g}{shown}")
                if writing:
                    page.write({name: page.footprint_table(rows)}, arguments.threads)
            continue
        results, failed = measured(bench, GROUPS[name], arguments.only, rounds)
        failures += failed
        if results and writing:
            page.write({name: page.table(GROUPS[name], results)}, arguments.threads)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
