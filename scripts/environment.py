"""The checkout's own virtual environment: makes it, keeps it current, runs Python in it.

Needs Python 3.11 or newer and pip, nothing else. Used by demo.py and test.py; as a command,
``python3 scripts/environment.py [python arguments]`` makes the environment with the development tools
and runs its Python: ``python3 scripts/environment.py -m ruff check``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"
# Written before anything else and renamed to RECORD last: a folder with neither is somebody else's, a folder with
# BUILDING alone was interrupted.
BUILDING = FOLDER / "retrograd-building"
RECORD = FOLDER / "retrograd-environment.json"


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def fingerprint() -> str:
    """What the environment was made from: when it changes, the environment is made anew."""
    parts = ((ROOT / "pyproject.toml").read_text(encoding="utf-8"), str(ROOT), sys.version.split()[0])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def extras_present() -> set[str] | None:
    """The extras that a finished and current environment has, or None where there is no such environment."""
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    current = record.get("fingerprint") == fingerprint() and python_of(FOLDER).exists()
    return set(record["extras"]) if current else None


def pip(*arguments: str) -> None:
    """Run pip on the environment: this Python's pip where it has one (Debian's Python has no ensurepip)."""
    inside = python_of(FOLDER)
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "--python", str(inside)]
    else:
        subprocess.run([inside, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
        command = [str(inside), "-m", "pip"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*command, *quiet, *arguments], check=True, cwd=ROOT)


def build(extras: set[str]) -> None:
    """Make the environment from nothing and install the checkout into it, editable, with ``extras``."""
    if FOLDER.exists():
        if any(FOLDER.iterdir()) and not (RECORD.exists() or BUILDING.exists()):
            sys.exit(f"{FOLDER} was not made by this script: move it away, or it would have to be deleted.")
        BUILDING.touch()
        RECORD.unlink(missing_ok=True)
        for entry in FOLDER.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry != BUILDING:
                entry.unlink()
    else:
        FOLDER.mkdir()
        BUILDING.touch()
    venv.create(FOLDER, symlinks=os.name != "nt", with_pip=False)
    install(extras)


def install(extras: set[str]) -> None:
    """Install the checkout with ``extras``; the environment counts as finished only when that has succeeded."""
    if RECORD.exists():
        os.replace(RECORD, BUILDING)
    wanted = f".[{','.join(sorted(extras))}]" if extras else "."
    pip("install", "--editable", wanted)
    BUILDING.write_text(json.dumps({"fingerprint": fingerprint(), "extras": sorted(extras)}) + "\n", encoding="utf-8")
    os.replace(BUILDING, RECORD)


def environment(*extras: str) -> Path:
    """The interpreter of the checkout's environment with at least ``extras``, made or brought up to date first."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this is the place that says so
        sys.exit(f"retrograd needs Python 3.11 or newer; this is Python {sys.version.split()[0]}.")
    present = extras_present()
    wanted = set(extras)
    if present is not None and wanted <= present:
        return python_of(FOLDER)
    start = time.monotonic()
    print(f"Setting up {FOLDER.name} (once; a minute or so) ...", file=sys.stderr, flush=True)
    try:
        if present is None:
            build(wanted)
        else:
            install(wanted | present)
    except subprocess.CalledProcessError as error:
        sys.exit(f"Setting up failed: {' '.join(map(str, error.cmd))} ended with status {error.returncode}.")
    except KeyboardInterrupt:
        sys.exit("Interrupted: the next run starts the set-up afresh.")
    print(f"Ready after {time.monotonic() - start:.0f} s.", file=sys.stderr, flush=True)
    return python_of(FOLDER)


def run(python: Path, arguments: Sequence[str], folder: Path | None = None) -> int:
    """Run the environment's Python, in ``folder`` where one is named; its exit status."""
    try:
        return subprocess.run([python, *arguments], cwd=folder).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run(environment("dev"), sys.argv[1:], ROOT))
