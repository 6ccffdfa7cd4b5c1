"""Commands that start the programs of ``programs/``, under PyTorch and under ``retrograd``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.distributed.rank_processes import unused_port

PROGRAMS = Path(__file__).parent / "programs"
#: For each program, whether torchrun starts it, and its arguments for a number of ranks, a port and a folder.
STARTS: dict[str, tuple[bool, Callable[[int, int, str], list[object]]]] = {
    "collectives": (True, lambda ranks, port, folder: []),
    "imagenet_style": (
        False,
        lambda ranks, port, folder: ["--ranks", ranks, "--dist-url", f"tcp://127.0.0.1:{port}", "--folder", folder],
    ),
    "ring": (False, lambda ranks, port, folder: [ranks, port]),
    "sharded_training": (True, lambda ranks, port, folder: [os.path.join(folder, "checkpoint")]),
    "snapshot_trainer": (True, lambda ranks, port, folder: [3, 2, folder]),
    "spawned_ddp": (False, lambda ranks, port, folder: [ranks, port]),
}
RANKS = (2, 4)


def words(name: str, ranks: int, folder: str) -> list[str]:
    """Return the program's path and its arguments."""
    _, arguments = STARTS[name]
    return [str(PROGRAMS / f"{name}.py"), *map(str, arguments(ranks, unused_port(), folder))]


def in_order(printed: str) -> str:
    """Return the printed lines in alphabetical order: which rank prints first is left to chance."""
    return "\n".join(sorted(printed.splitlines()))


def pytorchs_output(name: str, ranks: int) -> str:
    """Return what the program prints under PyTorch, which this Python has."""
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONUNBUFFERED", "PYTHONPATH")}
    variables["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        command, logs = words(name, ranks, folder), os.path.join(folder, "logs")
        torchrun = ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--redirects=1", f"--log-dir={logs}"]
        if not STARTS[name][0]:
            torchrun = []
        done = subprocess.run(
            [sys.executable, *torchrun, *command], env=variables, check=True, stdout=subprocess.PIPE, encoding="utf-8",
            timeout=600,
        )  # fmt: skip
        written = [each.read_text(encoding="utf-8") for each in Path(folder).glob("logs/**/stdout.log")]
        return in_order(done.stdout + "".join(written))


def record() -> str:
    """Return the outputs of all programs under PyTorch, as the text of the file with the recorded ones."""
    outputs = {f"{name} {ranks}": pytorchs_output(name, ranks) for name in STARTS for ranks in RANKS}
    return json.dumps({key: text.splitlines() for key, text in outputs.items()}, indent=1, ensure_ascii=False) + "\n"
