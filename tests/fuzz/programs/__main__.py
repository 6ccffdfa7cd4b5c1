"""Command that compares random programs: ``python -m tests.fuzz.programs --help``."""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from collections import Counter
from pathlib import Path

from . import cases
from .comparison import Difference, differences, tolerance_of
from .differences import Accepted, classify, origin, perturb
from .engine import SETTINGS, Engine
from .grammars import GRAMMARS
from .shrinking import shrink


class Comparison:
    """Comparison of two engines, with counts of what was found."""

    def __init__(self, engine: Engine, oracle: Engine) -> None:
        self.engine, self.oracle = engine, oracle
        self.counts: Counter[str] = Counter()
        self.groups: dict[str, int] = {}
        self.reduced: Counter[str] = Counter()  # disagreements before their reduction

    def compare(self, text: str) -> tuple[Difference | None, Accepted | None]:
        """Return the first difference of a program that is not explained, or else an explained one."""
        self.engine.send(text)
        self.oracle.send(text)
        return classify(self.engine.receive(), self.oracle.receive(), text)

    def unexplained(self, text: str) -> Difference | None:
        """Return the first difference of a program, unless it is explained or due to rounding."""
        found, accepted = self.compare(text)
        return None if found is None or accepted is not None or self.unstable(text, found) else found

    def unstable(self, text: str, found: Difference) -> bool:
        """Whether the oracle's own result changes as much if the numbers of the program change by rounding."""
        if found.kind not in ("values", "value", "derivative", "log"):
            return False
        tolerance, before = tolerance_of(text), self.oracle.run(text)
        others = (self.oracle.run(perturb(text, tolerance / 10, seed)) for seed in range(3))
        return any(next(differences(other, before, tolerance / 2), None) is not None for other in others)

    def check(self, text: str, name: str) -> None:
        """Compare a program; reduce and print a disagreement that is not explained and of a new kind."""
        found, accepted = self.compare(text)
        self.counts["programs"] += 1
        if found is None:
            return
        if accepted is not None:
            self.counts[f"{accepted.heading}: {accepted.entry}"] += 1
            return
        if self.unstable(text, found):
            self.counts["Operations: Rounding"] += 1
            return
        self.counts["disagreements"] += 1
        kind = found.kind
        first = f"{kind} | " + re.sub(r"\d+", "", statement_of(found, text))
        self.reduced[first] += 1
        if self.reduced[first] > 2:
            return

        def differs(smaller: str) -> bool:
            other = self.unexplained(smaller)
            return other is not None and other.kind == kind

        least = shrink(text, differs)
        last = self.unexplained(least) or found
        group = f"{kind} | " + re.sub(r"\d+", "", statement_of(last, least))
        self.groups[group] = self.groups.get(group, 0) + 1
        if self.groups[group] == 1:
            print(
                f"--- {name}: {kind} {last.where}\n{least}\n    {str(last.found)[:300]}\n    {str(last.expected)[:300]}",
                flush=True,
            )


def statement_of(found: Difference, text: str) -> str:
    """Return the statement of a program to which a difference belongs."""
    statements = ast.parse(text).body
    return origin(text, found.where).partition("\n")[0] or ast.unparse(
        statements[int(found.where) if found.where.isdigit() else -1]
    )


ENGINES = """engine to compare with, without --against (default: %(default)s). retrograd: functions that a program compiles are
compiled, however short; eager: they run uncompiled; generic: as eager, with templates instead of specialised functions;
specialized: as eager, with functions specialised at the first call; without numba: as eager, with NumPy instead of compiled
loops; compile: each program as a whole is one compiled function"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.programs", description=__doc__)
    parser.add_argument("--grammar", choices=GRAMMARS, action="append", help="grammar (repeatable; default: all)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default: %(default)s)")
    parser.add_argument(
        "--count", type=int, default=1000, help="number of programs of each grammar (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--engine", choices=SETTINGS, default="generic", help=ENGINES)
    parser.add_argument(
        "--add",
        metavar="FILE",
        help="record the programs in FILE, separated by empty lines, as cases (needs --against)",
    )
    parser.add_argument("--record", action="store_true", help="record all cases again (needs --against)")
    chosen = parser.parse_args()
    oracle = Engine("torch", chosen.against) if chosen.against else Engine(chosen.engine)
    if chosen.add or chosen.record:
        added = Path(chosen.add).read_text(encoding="utf-8").split("\n\n") if chosen.add else []
        cases.record(oracle, [text for text, _ in cases.read_cases()] + added)
        return
    comparison, start = Comparison(Engine("retrograd"), oracle), time.monotonic()
    for number in range(chosen.seed, chosen.seed + chosen.count):
        for name in chosen.grammar or GRAMMARS:
            comparison.check(GRAMMARS[name](number), f"{name} {number}")
        if time.monotonic() - start > 60 * chosen.minutes:
            break
    for group, count in sorted(comparison.groups.items(), key=lambda each: -each[1]):
        print(f"{count:6} {group}")
    for kind, count in comparison.counts.items():
        print(f"{count:8} {kind}")
    sys.exit(comparison.counts["disagreements"] > 0)


if __name__ == "__main__":
    main()
