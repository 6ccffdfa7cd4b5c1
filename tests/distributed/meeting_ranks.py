"""Helper of the tests of several ranks: the same program in new processes that meet in a file, with a time limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .launcher_process import variables

LIMIT = 90.0
_BEGIN = """\
import json, os, sys
import retrograd as torch
import retrograd.distributed as dist
from retrograd import nn
rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
def raised(call, *args, **named):
    try:
        call(*args, **named)
    except BaseException as error:
        return type(error).__name__ + ": " + str(error)
    return None
"""
_END = """
if dist.is_initialized():
    dist.destroy_process_group()
"""


def run_ranks(folder: Path, size: int, program: str, limit: float = LIMIT, **more: str) -> list[tuple[int, str, str]]:
    """Run ``program`` in ``size`` processes, and return the exit status, standard output and error of each rank.

    The program finds ``torch``, ``nn``, ``dist`` with the default group, ``rank``, ``size``, and ``raised(call, …)``,
    which returns the text of an exception. A process that does not end within ``limit`` seconds fails the test.
    """
    number = len([*folder.glob("program*.py")])
    file, meeting = folder / f"program{number}.py", folder / f"meeting{number}"
    file.write_text(_BEGIN + program + _END, encoding="utf-8")
    processes = [
        subprocess.Popen(
            [sys.executable, str(file), str(rank), str(size), str(meeting)], cwd=folder, env=variables(**more),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, encoding="utf-8",
        )
        for rank in range(size)
    ]  # fmt: skip
    results = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=limit)
            results.append((process.returncode, out, err))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return results


def run_ok(folder: Path, size: int, program: str, **more: str) -> list[str]:
    """Return the standard output of each rank of :func:`run_ranks`, all of which must succeed."""
    results = run_ranks(folder, size, program, **more)
    assert [each[0] for each in results] == [0] * size, "\n".join(each[2] for each in results)
    return [each[1] for each in results]
