"""Run the tests of the graph page in a headless Chromium: ``python3 scripts/browser.py [pytest arguments]``.

Where Chromium or its driver is missing, root installs Debian's packages within :data:`LIMIT` seconds. On another system, or
if that fails, the script prints ``NOT TESTED`` with the reason and exits with status 77. ``scripts/test.py`` runs the same
tests where a browser is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from environment import ROOT, environment, run

#: Exit status if there is no browser.
NOT_TESTED = 77
#: Seconds for the installation of Chromium.
LIMIT = 300
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INSTALL = (
    ["apt-get", "update"],
    ["apt-get", "install", "--yes", "--no-install-recommends", "chromium", "chromium-driver"],
)


def missing() -> str:
    """Return what the tests need and this machine lacks, as text, or an empty text."""
    lacking = [] if any(map(shutil.which, BROWSERS)) else ["Chromium"]
    return " and ".join(lacking + ([] if shutil.which("chromedriver") else ["chromedriver"]))


def may_install(release: Path = Path("/etc/os-release")) -> bool:
    """Return whether this process is root on Debian; the package of this name on Ubuntu needs snap."""
    try:
        debian = "ID=debian" in release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return debian and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> None:
    """Install Chromium and its driver by apt; a failure shows in :func:`missing` afterwards."""
    print("Installing Chromium ...", flush=True)
    for command in INSTALL:
        try:
            subprocess.run(
                command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, timeout=LIMIT, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            print(error, flush=True)
            return


def main(arguments: Sequence[str]) -> int:
    """Install what is missing and run the tests; return pytest's exit status, or :data:`NOT_TESTED`."""
    if missing() and may_install():
        install()
    if lacking := missing():
        print(f"NOT TESTED: no {lacking}", flush=True)
        return NOT_TESTED
    return run(environment("dev"), ["-m", "pytest", "tests/browser", *arguments], ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
