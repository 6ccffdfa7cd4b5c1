"""Make the checkout's virtual environment, keep it current, and run Python in it.

Needs Python 3.11 or newer and pip, nothing else. Used by demo.py and test.py; as a command,
``python3 scripts/environment.py [python arguments]`` creates the environment with the development tools
and runs its Python: ``python3 scripts/environment.py -m ruff check``.

Every Python version has its own environment. The first one to make an environment owns the folder ``.venv``; another
version uses ``.venv-3.12``, named after itself. To give ``.venv`` to another version, delete the folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version_of(folder: Path) -> str | None:
    """Return the Python version, such as ``3.12``, of the virtual environment in ``folder``, or None."""
    try:
        found = re.search(
            r"^version\s*=\s*(\d+\.\d+)", (folder / "pyvenv.cfg").read_text(encoding="utf-8"), re.MULTILINE
        )
    except OSError:
        return None
    return found[1] if found else None


def folder_of(version: str, root: Path = ROOT) -> Path:
    """Return the folder for the environment of a Python version: ``.venv`` unless another version owns it."""
    shared = root / ".venv"
    return shared if version_of(shared) in (None, version) else root / f".venv-{version}"


FOLDER = folder_of("{}.{}".format(*sys.version_info))
# BUILDING is written before anything else and renamed to RECORD last. A folder with neither was not made by this
# script; in a folder with BUILDING alone the set-up was interrupted.
BUILDING = FOLDER / "retrograd-building"
RECORD = FOLDER / "retrograd-environment.json"


def python_of(folder: Path) -> Path:
    """Return the path of a virtual environment's interpreter."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def fingerprint() -> str:
    """Return a hash of what the environment depends on; if it changes, the environment is rebuilt."""
    parts = ((ROOT / "pyproject.toml").read_text(encoding="utf-8"), str(ROOT), sys.version.split()[0])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def extras_present() -> set[str] | None:
    """Return the extras of a finished and current environment, or None if there is none."""
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    current = record.get("fingerprint") == fingerprint() and python_of(FOLDER).exists()
    return set(record["extras"]) if current else None


def pip(*arguments: str, folder: Path | None = None) -> None:
    """Run pip on an environment, with this Python's pip if it has one, because Debian's Python has no ensurepip.

    The default is the checkout's environment. For another folder, what pip prints is in the ``stderr`` of an error.
    """
    inside = python_of(folder or FOLDER)
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "--python", str(inside)]
    else:
        subprocess.run([inside, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
        command = [str(inside), "-m", "pip"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    errors = subprocess.PIPE if folder else None
    subprocess.run([*command, *quiet, *arguments], check=True, cwd=ROOT, stderr=errors, text=True)


def build(extras: set[str]) -> None:
    """Create the environment and install the checkout into it, editable, with ``extras``."""
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
    """Return the interpreter of the checkout's environment with at least ``extras``; create or update it first."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this check is for older versions
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
    """Run the environment's Python, in ``folder`` if given, and return its exit status."""
    try:
        return subprocess.run([python, *arguments], cwd=folder).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run(environment("dev"), sys.argv[1:], ROOT))
