"""Import time, time of the first gradient, memory, and size on disk.

Every measurement runs in a new process. Byte code is cached between them, as for an installed package.
"""

from __future__ import annotations

import importlib.metadata
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from . import trees

#: name: (program that prints a number, unit); ``{module}`` is the engine.
PROGRAMS = {
    "import": ("import {module}\nprint(1000 * (time.perf_counter() - start))", "ms"),
    "time to the first gradient": (
        "import {module} as torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\nx.grad.tolist()\n"
        "print(1000 * (time.perf_counter() - start))",
        "ms",
    ),
    "memory after import": ("import {module}\nprint(peak() - before)", "MB"),
    "memory at the peak of a perceptron's training": (
        "import {module} as torch\ntorch.manual_seed(0)\nnn = torch.nn\n"
        "model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))\n"
        "for _ in range(20):\n    optimizer.zero_grad()\n    loss = nn.functional.cross_entropy(model(x), y)\n"
        "    loss.backward()\n    optimizer.step()\nprint(peak() - before)",
        "MB",
    ),
    "memory at the peak of 50 functions of 10⁶, and backward": (
        "import {module} as torch\nx = torch.full((1000000,), 0.5, requires_grad=True)\n(x * 1).sum().backward()\n"
        "base = peak()\nfor _ in range(3):\n    x.grad = None\n    kept = x\n    for _ in range(50):\n"
        "        kept = kept.tanh()\n    kept.sum().backward()\nprint(peak() - base)",
        "MB",
    ),
    "memory per graph node": (
        "import {module} as torch\nx = torch.ones(1, requires_grad=True)\nw = x * 1\nbase = peak()\nkept = x\n"
        "for _ in range(1000000):\n    kept = kept * 1.0\nprint(peak() - base)",
        "bytes",
    ),
    "backward pass, per node": (
        "import {module} as torch\nx = torch.ones(1, requires_grad=True)\nkept = x\n"
        "for _ in range(1000000):\n    kept = kept * 1.0\nstart = time.perf_counter()\nkept.backward()\n"
        "print(time.perf_counter() - start)",
        "µs",
    ),
}

#: Peak memory of the process in megabytes. The value from ``resource`` would include the parent process.
PRELUDE = (
    "import time\nstart = time.perf_counter()\n"
    "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) * 1024 / 1e6\nbefore = peak()\n"
)


@dataclass(frozen=True)
class Footprint:
    """Measurement of each engine: ``ours``, and if measured ``other`` (another tree) and ``theirs`` (PyTorch)."""

    name: str
    unit: str
    of: dict[str, float]


def measured(program: str, engines: dict[str, tuple[str, Path | None]], rounds: int) -> dict[str, float]:
    """Return the medians of the numbers that a program prints with each engine, all run in turn."""
    printed: dict[str, list[float]] = {name: [] for name in engines}
    with ExitStack() as stack:
        caches = {name: stack.enter_context(tempfile.TemporaryDirectory()) for name in engines}
        for _ in range(rounds + 1):
            for name, (module, parent) in engines.items():
                environment = {
                    **trees.environment(parent), "PYTHONPYCACHEPREFIX": caches[name], "PYTHONDONTWRITEBYTECODE": "",
                    "OMP_NUM_THREADS": "2",
                }  # fmt: skip
                command = [sys.executable, "-P", "-c", PRELUDE + program.replace("{module}", module)]
                run = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
                printed[name].append(float(run.stdout))
    return {name: statistics.median(values[1:]) for name, values in printed.items()}  # the first run compiles byte code


def _folder_size(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.parent.name != "__pycache__"  # no byte code, no compiled loops
    )


def _needs(lines: list[str]) -> set[str]:
    """Return the names of the requirements that belong to no extra."""
    return {re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line}


def installed(names: set[str]) -> float:
    """Return the megabytes of some distributions and their dependencies, as far as they are installed."""
    total, seen, waiting = 0, set[str](), set(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if path.is_file() and path.suffix != ".pyc":
                total += path.stat().st_size
        waiting |= _needs(found.requires or [])
    return total / 1e6


def installed_size(parent: Path | None) -> float:
    """Return the megabytes of retrograd in the folder ``parent``, or of PyTorch, with the packages that it needs."""
    if parent is None:
        return installed({"torch"})
    return installed({"numpy", "scipy", "ml_dtypes"}) + _folder_size(parent / "retrograd") / 1e6


def engines_of(theirs: bool, against: Path | None) -> dict[str, tuple[str, Path | None]]:
    """Return the module of each engine and the folder that holds it: this checkout, another tree and PyTorch, if wanted."""
    engines: dict[str, tuple[str, Path | None]] = {"ours": ("retrograd", trees.package_parent(trees.ROOT))}
    if against is not None:
        engines["other"] = ("retrograd", against)
    if theirs:
        engines["theirs"] = ("torch", None)
    return engines


def rows(rounds: int, theirs: bool, against: Path | None = None) -> list[Footprint]:
    """Return all measurements; ``against`` is the folder that holds another tree's package."""
    engines = engines_of(theirs, against)
    found = [
        Footprint(name, unit, measured(program, engines, 1 if "million" in name else rounds))
        for name, (program, unit) in PROGRAMS.items()
    ]
    sizes = {name: installed_size(parent) for name, (_, parent) in engines.items()}
    return [*found, Footprint("installed, with all that it needs", "MB", sizes)]
