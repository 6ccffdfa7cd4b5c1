"""An engine: a process that executes programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
#: Engines of retrograd itself: the argument of ``worker.py`` and the environment.
SETTINGS = {
    "retrograd": ("retrograd", {}),
    "eager": ("eager", {}),
    "generic": ("eager", {"RETROGRAD_CODEGEN": "0"}),
    "specialized": ("eager", {"RETROGRAD_CODEGEN": "1"}),
    "without numba": ("eager", {"RETROGRAD_FAST": "0"}),
    "compile": ("compile", {}),
}  # fmt: skip


class Engine:
    """A process that executes programs; it is started again if it ends."""

    def __init__(self, name: str, python: str = sys.executable) -> None:
        self.module, settings = SETTINGS.get(name, (name, {}))
        self.python = python
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **settings}
        self.start()

    def start(self) -> None:
        command = [self.python, "-m", "tests.fuzz.programs.worker", self.module]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=self.environment, cwd=ROOT
        )

    def send(self, text: str) -> None:
        """Begin to execute a program."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return what has been observed of the program."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        code = self.process.wait()
        self.start()
        return {"failed": f"Exit: the process ended with status {code}"}

    def run(self, text: str) -> dict[str, Any]:
        """Execute a program and return what is observed."""
        self.send(text)
        return self.receive()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
