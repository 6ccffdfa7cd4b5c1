"""The command: measure groups of rows beside PyTorch or beside another source tree, and print them.

    python -m benchmarks                                everything, which takes a quarter of an hour
    python -m benchmarks --group windows picking        some groups
    python -m benchmarks --group windows --only conv2d  some rows; nothing is written
    python -m benchmarks --against TREE                 this checkout, TREE and (where installed) PyTorch

Every row is one program, written once with PyTorch's names. Each engine runs in its own process, with 2 threads; values
and gradients are compared first, then the engines take turns, round by round. A ratio is the other engine's time divided
by that of this checkout: above 1 this checkout is faster. It is the median of the rounds, with the quartiles. The machine
should be idle. Without ``--against`` each group's table is written to ``benchmarks/results``.

``--against`` compares two trees: TREE is a checkout or a folder that holds the package, in ``TREE/src/retrograd`` or
``TREE/retrograd``. The rows are those of this checkout, on both packages. A group's last line is the geometric mean of
all its ratios, computed in each round: the median of the rounds, with the quartiles. The processes of both trees are
started afresh twice in each group, because two processes of the same tree differ by up to 3 %. A tree compared with itself
gives the noise of the method. Nothing is written except to the file of ``--json``. On a machine that is not idle
``--threads 1`` is more exact, because it measures processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import footprint, loader, memory, page, trees
from .groups import GROUPS
from .measure import Bench, Result
from .row import Group

#: Groups whose rows run in processes of their own: the title, and the function that measures.
ALONE = {
    "footprint": ("Import, memory and size", footprint.rows),
    "memory": ("Peak memory of training steps", memory.rows),
    "loader": ("DataLoader with 2 workers", loader.rows),
}
#: Pairs of processes, started one after the other, that measure a group in a comparison. One pair is not enough: with
#: the same tree on both sides its mean was off by up to 3 %, in all rounds alike.
PAIRS = 3


def measured(bench: Bench, group: Group, only: list[str], rounds: int) -> tuple[list[Result], list[str]]:
    """Measure a group's rows and print each at once; return the results and the failures."""
    comparing = "other" in bench.engines
    pairs = min(PAIRS, rounds) if comparing else 1
    results: dict[int, Result] = {}
    failed: dict[int, str] = {}
    chosen = {place: row for place, row in enumerate(group.rows) if not only or any(each in row.name for each in only)}
    print(f"\n{group.title} ({group.name})", flush=True)
    for pair in range(pairs):
        if comparing:
            bench.restart()
        for place, row in chosen.items():
            if place in failed:
                continue
            try:
                result = bench.measure(group, place, (rounds + pair) // pairs)
            except Exception as error:
                failed[place] = f"{row.name}: {error}"
                results.pop(place, None)
                print(f"{row.name:58} failed: {error}", flush=True)
                continue
            results.setdefault(place, Result(row)).extend(result)
            if pair == pairs - 1:
                print(page.comparison(results[place]) if comparing else page.line(results[place]), flush=True)
    if results:
        print(page.group_line(list(results.values())))
    return list(results.values()), list(failed.values())


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser("python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--group", nargs="+", choices=[*GROUPS, *ALONE], default=[*GROUPS, *ALONE])
    options.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="rows whose names contain one of these")
    options.add_argument("--against", type=Path, metavar="TREE", help="another source tree to compare this one with")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--threads", type=int, default=2, help="of each engine; with 1 processor time is measured")
    options.add_argument("--quick", action="store_true", help="3 rounds; nothing is written")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the seconds of every round to FILE")
    return options.parse_args()


def main() -> int:
    """Run the command; return 1 if a row failed or the engines' results differed."""
    arguments = _arguments()
    rounds = 3 if arguments.quick else arguments.rounds
    theirs = find_spec("torch") is not None
    against = trees.package_parent(arguments.against) if arguments.against else None
    bench = Bench(arguments.threads, theirs, against)
    failures: list[str] = []
    rounds_of: dict[str, Any] = {}
    writing = theirs and against is None and not arguments.only and not arguments.quick
    how = "One thread each, processor time." if arguments.threads == 1 else f"{arguments.threads} threads each."
    print(page.machine())
    if against is not None:
        print(f"ours: {trees.package_parent(trees.ROOT)}\nother: {against}\n\n{page.comparison_head()}")
    for name in arguments.group:
        command = f"python -m benchmarks --group {name}"
        if name in ALONE:
            if not arguments.only:
                title, measure = ALONE[name]
                rows = measure(rounds, theirs, against)
                print(f"\n{title} ({name})", *map(page.footprint_line, rows), sep="\n")
                rounds_of[name] = {row.name: row.of for row in rows}
                if writing:
                    page.write(name, title, command, page.footprint_table(rows))
            continue
        group = GROUPS[name]
        results, failed = measured(bench, group, arguments.only, rounds)
        failures += failed
        rounds_of[name] = {
            each.row.name: {engine: getattr(each, engine) for engine in bench.engines} for each in results
        }
        if results and writing:
            page.write(name, group.title, command, f"{how} {page.table(group, results)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rounds_of, indent=1) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
