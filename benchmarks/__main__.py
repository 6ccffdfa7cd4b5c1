"""The command: measures groups of rows, prints them, and writes their tables into docs/performance.md.

    python -m benchmarks                                everything, which takes a quarter of an hour
    python -m benchmarks --group windows picking        some groups
    python -m benchmarks --group windows --only conv2d  some rows; nothing is written

Every row is one piece of work written once, in PyTorch's language. Values and gradients of both engines are compared
before they are measured in turn, round by round, so that both see the same machine; both use 2 threads. A ratio is
PyTorch's time divided by retrograd's: the median of the rounds, with the quartiles. Needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from retrograd.core.threads import set_num_threads

from . import footprint, higher, large, losses, overhead, page, products, training, tutorials, windows
from .measure import Clock, Result, measure, oracle
from .row import Group, Row


def _overhead() -> Iterator[Row]:
    for name, (program, operations, asked) in overhead.ROWS.items():
        yield Row(name, program, asked, operations)


GROUPS = {
    group.name: group
    for group in (
        Group("overhead", "Single operations and small graphs", tuple(_overhead()), 2.5),
        Group("tutorials", "Beside NumPy by hand", tuple(tutorials.rows())),
        Group("large", "Large tensors: element by element, and reductions", tuple(large.rows()), 2.0),
        Group("chains", "Chains of operations element by element", tuple(large.chains()), 2.0),
        Group("losses", "softmax, normalisation, losses, dropout", tuple(losses.rows()), 1.5),
        Group("products", "Products of matrices, linear algebra", tuple(products.rows()), 1.0),
        Group("windows", "Convolution, pooling, embedding, attention", tuple(windows.rows()), 1.0),
        Group("picking", "Picking, sorting, scanning, drawing", tuple(windows.picking()), 1.0),
        Group("training", "Steps of training", tuple(training.rows()), 1.5),
        Group("higher", "Derivatives of higher order", tuple(higher.rows()), 1.5),
    )
}


def measured(group: Group, only: list[str], rounds: int) -> tuple[list[Result], list[str]]:
    """The results of a group's rows, printed as they come, and what failed."""
    results, failed = [], []
    print(f"\n{group.title} ({group.name})", flush=True)
    for row in group.rows:
        if only and not any(each in row.name for each in only):
            continue
        try:
            results.append(measure(row, rounds))
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
    set_num_threads(arguments.threads)
    Clock.of_threads(arguments.threads)
    if oracle is not None:
        oracle.set_num_threads(arguments.threads)
    failures = []
    writing = not arguments.only and not arguments.quick and oracle is not None
    print(page.machine())
    for name in arguments.group:
        if name == "footprint":
            if not arguments.only:
                rows = footprint.rows(rounds, oracle is not None)
                for label, unit, ours, theirs in rows:
                    shown = "" if theirs is None else f"{theirs:10.4g}{theirs / ours:8.2f}"
                    print(f"{label + ', ' + unit:58}{ours:10.4g}{shown}")
                if writing:
                    page.write({name: page.footprint_table(rows)}, arguments.threads)
            continue
        results, failed = measured(GROUPS[name], arguments.only, rounds)
        failures += failed
        if results and writing:
            page.write({name: page.table(GROUPS[name], results)}, arguments.threads)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
