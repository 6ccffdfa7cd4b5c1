"""Run the jobs of ``tests/packages`` with the packages that are installed, and write ``docs/packages.md``.

``python scripts/packages.py [NAME ...]`` runs jobs under ``retrograd run`` and compares with what was recorded.
``--record PYTHON`` runs them by an interpreter with PyTorch too, and stores what it prints and the CPU times of both;
``--write`` writes the table of the page from the record.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.packages import jobs_of_packages as jobs  # noqa: E402 - found by the path above

PAGE = ROOT / "docs" / "packages.md"
#: Lines between which the table is.
BEGIN, END = "<!-- table: scripts/packages.py --write -->", "<!-- end of the table -->"
#: What does not run, by package.
WITHOUT = {
    "fvcore": "`FlopCountAnalysis`: it reads graphs of TorchScript",
    "torchvision": "see below",
    "ptflops": "its other backend counts a function once that a module calls",
    "accelerate": "more than one process, FSDP, DeepSpeed",
    "pytorch_lightning": "more than one process, FSDP",
    "transformers": "quantized models, export",
    "diffusers": "quantized models",
}


def record(name: str, python: str, version: str) -> dict[str, object]:
    """Run a job under both; return what is stored about it."""
    theirs = jobs.run(name, python)
    ours = jobs.run(name)
    result = ours.error or jobs.difference(ours.lines, theirs.lines) or "same"
    if theirs.error:
        print(f"{name}: PyTorch: {theirs.error}")
    return {
        "version": version,
        "lines": theirs.lines,
        "result": result,
        "pytorch_seconds": theirs.seconds,
        "retrograd_seconds": ours.seconds,
    }


def table(found: dict[str, dict[str, object]]) -> str:
    """Return the table of the page."""
    rows = [
        "| package | version | job | does not run | CPU time, s | under PyTorch, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, each in sorted(found.items()):
        cells = [
            name,
            each["version"],
            each["result"],
            WITHOUT.get(name, ""),
            f"{each['retrograd_seconds']:.1f}",
            f"{each['pytorch_seconds']:.1f}",
        ]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def main(arguments: Sequence[str]) -> int:
    """Run the jobs; return 1 if one of them differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="jobs to run; all by default")
    parser.add_argument("--record", metavar="PYTHON", help="interpreter with PyTorch and the packages")
    parser.add_argument("--write", action="store_true", help="write the table, without a run")
    chosen = parser.parse_args(arguments)
    found = jobs.expected()
    if chosen.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
        return 0
    failed = False
    for name in chosen.names or jobs.names():
        version = jobs.version(name)
        if version is None:
            print(f"{name}: not installed")
            continue
        if chosen.record:
            found[name] = record(name, chosen.record, version)
            print(
                f"{name}: {found[name]['result']}, {found[name]['retrograd_seconds']} s, "
                f"PyTorch {found[name]['pytorch_seconds']} s",
                flush=True,
            )
            jobs.EXPECTED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        elif name in found:
            done = jobs.run(name)
            result = done.error or jobs.difference(done.lines, found[name]["lines"]) or "same"
            print(f"{name}: {result}, {done.seconds} s", flush=True)
            failed |= result != "same"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
