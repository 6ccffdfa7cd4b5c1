"""Helper of the tests that start ranks by themselves: one process for each rank, with a time limit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.distributed.launcher_process import variables

START = (
    "import os, sys, time\nimport retrograd as torch, retrograd.distributed as dist\nfrom datetime import timedelta\n"
)
#: Beginning of a program that creates the default group; ``raised(call, …)`` is the text of the exception of a call.
IN_GROUP = """\
import json
from retrograd import nn
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
def raised(call, *args, **named):
    try:
        call(*args, **named)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None
"""
LIMIT = 40.0


def unused_port() -> int:
    """Return a port that no program uses at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Ranks:
    """Processes of ``size`` ranks that run the program ``text`` in ``folder``; ``each[rank]`` has variables of one rank.

    The program gets the variables of ``env://``. Ranks that are running after the time limit are killed, and have the exit
    status -9.
    """

    def __init__(
        self, folder: Path, text: str, size: int = 2, each: dict[int, dict[str, str]] | None = None, **more: str
    ) -> None:  # fmt: skip
        file = folder / "program.py"
        file.write_text(START + text)
        # Unbuffered: a forked process would print what its parent has in the buffer.
        found = variables(
            PYTHONUNBUFFERED="1",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(unused_port()),
            **{"WORLD_SIZE": str(size), **more},
        )
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(file)], cwd=folder, env={**found, "RANK": str(rank), **((each or {}).get(rank, {}))},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            )
            for rank in range(size)
        ]  # fmt: skip

    def wait(self, limit: float = LIMIT) -> list[tuple[int, str, str]]:
        """Return the exit status, the output and the errors of each rank."""
        end = time.monotonic() + limit
        found: list[Any] = []
        for process in self.processes:
            try:
                out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            found.append((process.returncode, out, err))
        return found


def run_ranks(folder: Path, text: str, size: int = 2, limit: float = LIMIT, **more: Any) -> list[str]:
    """Run the program in ``size`` ranks, and return the output of each; all of them must end without an error."""
    ended = Ranks(folder, text, size, **more).wait(limit)
    assert [code for code, _, _ in ended] == [0] * size, "\n".join(f"{code}\n{out}\n{err}" for code, out, err in ended)
    return [out for _, out, _ in ended]
