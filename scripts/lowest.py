"""Make the environment ``.venv-lowest``, with the lowest versions of the dependencies that ``pyproject.toml`` allows.

Used by ``test.py --lowest``. Every ``name>=version`` of the dependencies, of the extra ``test`` and of the extras in it is
installed as ``name==version``, from a wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from environment import ROOT, pip, python_of

FOLDER = ROOT / ".venv-lowest"
#: Exit status if the versions cannot be installed.
NOT_TESTED = 77


def lowest(pyproject: str) -> list[str]:
    """Return the requirements of a ``pyproject.toml``, and those of its extra ``test``, with the lowest versions."""
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"]
    found = list(project["dependencies"])
    for each in extras["test"]:
        own = re.fullmatch(r"retrograd\[([\w-]+)\]", each)
        found += extras[own[1]] if own else [each]
    return [re.sub(r"^([\w-]+)>=([\w.]+)(?=$|;)", r"\1==\2", each) for each in found]


def numbers(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def reason(printed: str) -> str:
    """Return why pip could not install the requirements, from what it printed."""
    missing = re.search(r"requirement (\S+)==(\S+) \(from versions: ([^)]*)\)", printed)
    if missing is None:
        return (printed.strip().splitlines() or ["pip failed"])[-1]
    name, version, listed = missing.groups()
    later = sorted((each for each in listed.split(", ") if numbers(each) > numbers(version)), key=numbers)
    python = "{}.{}".format(*sys.version_info)
    return f"no wheel of {name} {version} for Python {python}; the oldest after it is {(later or ['none'])[0]}"


def environment(requirements: Sequence[str]) -> Path:
    """Return the interpreter of the environment; create it first. Exit with ``NOT_TESTED`` if that is not possible."""
    record, wanted = FOLDER / "requirements.txt", "\n".join([sys.version, *requirements])
    if not record.exists() or record.read_text(encoding="utf-8") != wanted:
        venv.create(FOLDER, clear=True, symlinks=os.name != "nt", with_pip=False)
        try:
            pip("install", "--only-binary", ":all:", *requirements, folder=FOLDER)
            pip("install", "--no-deps", "--editable", ".", folder=FOLDER)
        except subprocess.CalledProcessError as error:
            print(f"NOT TESTED: {reason(error.stderr)}", flush=True)
            sys.exit(NOT_TESTED)
        record.write_text(wanted, encoding="utf-8")
    return python_of(FOLDER)
