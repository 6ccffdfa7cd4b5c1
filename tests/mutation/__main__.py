"""Mutation testing: ``python -m tests.mutation rules`` or ``python -m tests.mutation engine``; see ``tests/README.md``."""

from __future__ import annotations

import argparse
import os
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("part", choices=("rules", "engine"), help="the derivative rules, or the engine and the views")
    parser.add_argument("--count", type=int, default=0, help="the number of random mutants (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="*", default=(), help="of samples that judge rules (default: all)")
    parser.add_argument(
        "--files", nargs="*", default=(), help="source files of the rules, without suffix (default: all)"
    )
    given = parser.parse_args()
    os.environ["RETROGRAD_CODEGEN"] = "0"  # specialised functions would contain copies of rules
    if given.part == "rules":
        from tests.mutation import rules

        return int(rules.run(given.count, given.seed, given.families, given.files) > 0)
    from tests.mutation import modules

    return int(modules.run(given.count, given.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
