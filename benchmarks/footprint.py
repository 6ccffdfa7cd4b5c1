"""What an engine costs before it has computed anything: import, memory, the first gradient, its size on the disk.

Every measurement is a process of its own. Byte code is kept between them, as it is of an installed package.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    "memory of a million nodes, for each": (
        "import {module} as torch\nx = torch.ones(1, requires_grad=True)\nw = x * 1\nbase = peak()\nkept = x\n"
        "for _ in range(1000000):\n    kept = kept * 1.0\nprint(peak() - base)",
        "bytes",
    ),
    "a million nodes swept, per node": (
        "import {module} as torch\nx = torch.ones(1, requires_grad=True)\nkept = x\n"
        "for _ in range(1000000):\n    kept = kept * 1.0\nstart = time.perf_counter()\nkept.backward()\n"
        "print(time.perf_counter() - start)",
        "µs",
    ),
}

#: The most memory that the process has held, in megabytes. What ``resource`` says counts the process it came from too.
PRELUDE = (
    "import time\nstart = time.perf_counter()\n"
    "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) * 1024 / 1e6\nbefore = peak()\n"
)


def measured(program: str, module: str, rounds: int) -> float:
    """The median of what a program prints."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "2",
        }  # fmt: skip
        code = PRELUDE + program.replace("{module}", module)
        command = [sys.executable, "-c", code]
        printed = [
            float(subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout)
            for _ in range(rounds + 1)
        ]
        return statistics.median(printed[1:])


def _folder_size(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.parent.name != "__pycache__"  # nor compiled loops
    )


def _needs(lines: list[str]) -> set[str]:
    """The names in requirements that no extra asks for."""
    return {re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line}


def installed(names: set[str]) -> float:
    """Megabytes of some distributions and all that they need, as far as that is installed."""
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


def installed_size(module: str) -> float:
    """Megabytes of an engine with what it needs."""
    if module != "retrograd":
        return installed({module})
    spec = importlib.util.find_spec("retrograd")
    assert spec is not None
    assert spec.origin is not None
    return installed({"numpy", "scipy", "ml_dtypes"}) + _folder_size(Path(spec.origin).parent) / 1e6


def rows(rounds: int, theirs: bool) -> list[tuple[str, str, float, float | None]]:
    """name, unit, ours, theirs of each measurement."""
    modules = ("retrograd", "torch") if theirs else ("retrograd",)
    found = []
    for name, (program, unit) in PROGRAMS.items():
        values = [measured(program, module, 1 if "million" in name else rounds) for module in modules]
        found.append((name, unit, values[0], values[1] if theirs else None))
    sizes = [installed_size(module) for module in modules]
    found.append(("installed, with all that it needs", "MB", sizes[0], sizes[1] if theirs else None))
    return found
