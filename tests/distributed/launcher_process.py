"""Helper of the tests that start ranks: the command ``retrograd`` in new processes, with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import retrograd

SOURCE = str(Path(retrograd.__file__).parent.parent)
LIMIT = 60.0
FAST = {"RETROGRAD_FAST": "0"}  # each rank would compile or load loops
#: Folder of the compiled modules of all processes: where Python may write none, each would compile them again (0.4 s).
BYTECODE = tempfile.TemporaryDirectory(prefix="retrograd-bytecode-")


def variables(**more: str) -> dict[str, str]:
    """Return the environment of the command: this process's, without what a launcher or a user may have set."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TORCHELASTIC_", "PET_", "SLURM_"))
    }
    # Without PYTHONUNBUFFERED: it would write the ends of lines apart, between the lines of other processes.
    for name in (
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
    ):  # fmt: skip
        kept.pop(name, None)
    path = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
    kept["PYTHONPYCACHEPREFIX"] = BYTECODE.name
    return {**kept, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "OPENBLAS_NUM_THREADS": "1", **FAST, **more}


class Started:
    """Process ``retrograd arguments`` in ``folder``, whose output goes to files; ``by`` is a command that starts it."""

    def __init__(self, folder: Path, *arguments: str, by: Sequence[str] = (), **more: str) -> None:
        number = len([*folder.glob("*.out")])
        self.files = folder / f"{number}.out", folder / f"{number}.err"
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self.process = subprocess.Popen(
                [*by, sys.executable, "-m", "retrograd", *arguments], cwd=folder, env=variables(**more), stdout=out, stderr=err,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def wait(self, limit: float = LIMIT) -> tuple[int, str, str]:
        """Return the exit status, standard output and standard error; a process that does not end is a failure."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # it ends its ranks
            try:
                self.process.wait(35)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            raise AssertionError(f"not finished after {limit} s:\n{self.texts()[0]}\n{self.texts()[1]}") from None
        return (code, *self.texts())

    def texts(self) -> tuple[str, str]:
        """Return what it has written so far."""
        out, err = (each.read_bytes().decode("utf-8", "replace") for each in self.files)
        return out, err


def run(
    folder: Path, *arguments: str, limit: float = LIMIT, by: Sequence[str] = (), **more: str
) -> tuple[int, str, str]:
    """Run ``retrograd arguments`` in ``folder``; return the exit status, standard output and standard error."""
    return Started(folder, *arguments, by=by, **more).wait(limit)


def until(condition: Callable[[], bool], limit: float = 20.0) -> None:
    """Wait until ``condition`` is true."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it has not come true"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether the process ``pid`` exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
