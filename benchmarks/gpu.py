"""Training steps on a GPU beside PyTorch: ``python -m benchmarks.gpu [--rounds 3]``.

Each engine trains the steps of ``retrograd/check_gpu/steps.py`` in its own process, in turn, round by round. The table has
the median time of a step in milliseconds, synchronised with the device, and PyTorch's time divided by ours. Needs a GPU,
CuPy, and a PyTorch for this GPU.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from typing import Any

from . import trees

STEPS = trees.ROOT / "src" / "retrograd" / "check_gpu" / "steps.py"


def measure(engine: str, seconds: float) -> dict[str, float]:
    """Return the median time of each step by the module ``engine``, in milliseconds."""
    spec = importlib.util.spec_from_file_location("steps", STEPS)  # without importing the package beside PyTorch
    assert spec is not None and spec.loader is not None
    steps: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(steps)
    torch = importlib.import_module(engine)
    found = {}
    for name, make in steps.STEPS.items():
        torch.manual_seed(0)
        found[name] = steps.timed(torch, make(torch, "cuda"), "cuda", seconds)[1]
    return found


def main() -> None:
    """Run the command."""
    options = argparse.ArgumentParser("python -m benchmarks.gpu", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=2.0, help="time of a step in a round")
    options.add_argument("--engine", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.engine:
        print(json.dumps(measure(arguments.engine, arguments.seconds)))
        return
    times: dict[str, list[dict[str, float]]] = {"retrograd": [], "torch": []}
    folders = os.pathsep.join([str(trees.ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    for _ in range(arguments.rounds):
        for engine, found in times.items():
            command = [sys.executable, "-m", "benchmarks.gpu", "--engine", engine, "--seconds", str(arguments.seconds)]
            done = subprocess.run(
                command, cwd=trees.ROOT, env={**os.environ, "PYTHONPATH": folders}, stdout=subprocess.PIPE, check=True
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
    print("| training step | retrograd, ms | PyTorch, ms | ratio |\n| --- | --- | --- | --- |")
    for name in times["torch"][0]:
        ours, theirs = (statistics.median(each[name] for each in times[engine]) for engine in ("retrograd", "torch"))
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} |")


if __name__ == "__main__":
    main()
