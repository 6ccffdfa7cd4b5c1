"""Run the checks that a change must pass, on every supported Python that this machine has.

``.ci/run`` runs the whole suite, the linters, the types, the site, the layers, the tests in a browser and the demo on the
Python that it is started with (``python3``), and on the others the tests of operations, autograd, generated code, views,
printing and compilation (``scripts/test.py --selection``). ``.ci/run --all`` runs the whole suite on all of them, and once
more with ``RETROGRAD_CODEGEN=0``: every function then runs its template as it stands. It also runs the selection with the
lowest versions of the dependencies that ``pyproject.toml`` allows, and tests in eight threads at once.

The versions are those of the classifiers in ``pyproject.toml``, and of ``UNPROVEN``, which have not been run yet. An
interpreter is looked for on the path and among pyenv's versions. A version without one is reported as ``NOT TESTED``
and does not fail the run, nor do lowest versions without a wheel, a machine without a browser, or links to other sites
without a network.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
#: Prints the version of a Python from which an environment can be made. A shim of pyenv, for one, may not start.
PROBE = (
    "import importlib.util as u, sys; print('%d.%d' % sys.version_info[:2]); "
    "sys.exit(not (u.find_spec('venv') and (u.find_spec('pip') or u.find_spec('ensurepip'))))"
)
#: Versions that the package is meant to support, but that no run has tested yet; a classifier follows the first run.
UNPROVEN = ("3.14",)
#: Exit status of ``test.py --lowest`` if the versions cannot be installed, and of ``site.py --links`` without a network.
NOT_TESTED = 77
#: pytest's closing line, such as "2 failed, 31 passed in 4.05s".
CLOSING = re.compile(r"(?:\d+ [a-z]+, )*\d+ [a-z]+ in [\d.]+s(?: \([\d:]+\))?")


class Step(NamedTuple):
    """A command, whether it runs tests, and environment variables ``NAME=value`` for it."""

    title: str
    command: list[str]
    tests: bool = False
    variables: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The end of a step: the summary is pytest's closing line, or the reason of a failure."""

    title: str
    passed: bool
    minutes: float
    summary: str


def supported(pyproject: str) -> list[str]:
    """Return the versions that the classifiers of a ``pyproject.toml`` name, in order."""
    found = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def candidates(version: str) -> Iterator[Path]:
    """Yield the paths where an interpreter of a version may be: on the path, then pyenv's versions, the newest first."""
    for folder in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        yield Path(folder) / f"python{version}"
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"

    def patch(path: Path) -> int:
        return int(re.findall(r"\d+", path.name)[-1])

    for folder in sorted(versions.glob(f"{version}.*"), key=patch, reverse=True):
        yield folder / "bin" / "python"


def find_python(version: str) -> str | None:
    """Return the first interpreter that starts, is of the version and can make an environment, or None."""
    for path in candidates(version):
        if not path.is_file():
            continue
        try:
            answer = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return str(path)
    return None


def steps(pythons: dict[str, str], everything: bool) -> list[Step]:
    """Return all steps; ``pythons`` are the other interpreters by version, ``everything`` runs all tests on them too."""
    main, test = sys.executable, str(SCRIPTS / "test.py")
    inside = [main, str(SCRIPTS / "environment.py"), "-m"]
    selection = [] if everything else ["--selection"]
    more = [
        Step("tests, generic", [main, test], tests=True, variables=("RETROGRAD_CODEGEN=0",)),
        Step("tests, lowest versions", [main, test, "--lowest"], tests=True),
        Step("tests, threads", [main, test, "--threads"], tests=True),
    ]
    return [
        Step("tests, {}.{}".format(*sys.version_info), [main, test], tests=True),
        *(Step(f"tests, {version}", [python, test, *selection], tests=True) for version, python in pythons.items()),
        *(more if everything else []),
        Step("lint", [*inside, "ruff", "check", "."]),
        Step("format", [*inside, "ruff", "format", "--check", "."]),
        Step("types", [*inside, "mypy"]),
        Step("stubs", [*inside, "tests.typing.check"]),
        Step("site", [main, str(SCRIPTS / "site.py")]),
        Step("links", [main, str(SCRIPTS / "site.py"), "--links"]),
        Step("layers", [main, test, "-q", "test_layer_order"], tests=True),
        Step("browser", [main, str(SCRIPTS / "browser.py"), "-q"], tests=True),
        Step("demo", [main, str(SCRIPTS / "demo.py")]),
    ]


def run(step: Step) -> Outcome:
    """Run a step with its output passed on; tests pass only if pytest's closing line counts a passed test."""
    print(f"\n== {step.title}: {' '.join([*step.variables, *step.command])}", flush=True)
    environment = {**os.environ, **dict(each.split("=", 1) for each in step.variables)}
    start, tail = time.monotonic(), b""
    with subprocess.Popen(
        step.command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 1 << 16):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            tail = (tail + chunk)[-4096:]
    minutes = (time.monotonic() - start) / 60
    closing = CLOSING.findall(tail.decode(errors="replace"))
    summary = closing[-1] if closing else ""
    if process.returncode == NOT_TESTED and (text := tail.decode(errors="replace")).count("NOT TESTED: "):
        return Outcome(step.title, True, minutes, text[text.rindex("NOT TESTED: ") :].splitlines()[0])
    if process.returncode:
        return Outcome(step.title, False, minutes, summary or f"exit status {process.returncode}")
    if step.tests and not re.search(r"\b[1-9]\d* passed", summary):
        return Outcome(step.title, False, minutes, summary or "no test ran")
    return Outcome(step.title, True, minutes, summary)


def report(outcomes: Sequence[Outcome], absent: Sequence[str]) -> str:
    """Return the closing lines: minutes and result of each step, versions without an interpreter, and the verdict."""
    failed = [each.title for each in outcomes if not each.passed]
    untested = [each for each in outcomes if each.summary.startswith("NOT TESTED: ")]
    lines = [
        f"{each.title:22}{each.minutes:6.1f} min  {'passed' if each.passed else 'FAILED'}  {each.summary}".rstrip()
        for each in outcomes
        if each not in untested
    ]
    lines.append(f"{'all':22}{sum(each.minutes for each in outcomes):6.1f} min")
    lines += [f"NOT TESTED: {version}" for version in absent]
    lines += [f"NOT TESTED: {each.title} ({each.summary.removeprefix('NOT TESTED: ')})" for each in untested]
    lines.append(f"CI failed: {'; '.join(failed)}" if failed else "CI passed.")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps and print the report; return 1 if a step failed."""
    options = argparse.ArgumentParser(".ci/run", description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--all", action="store_true", help="run the whole suite on every supported Python")
    everything = options.parse_args(arguments).all
    named = [*supported((ROOT / "pyproject.toml").read_text(encoding="utf-8")), *UNPROVEN]
    others = [version for version in named if version != "{}.{}".format(*sys.version_info)]
    found = {version: find_python(version) for version in others}
    pythons = {version: python for version, python in found.items() if python is not None}
    outcomes = [run(step) for step in steps(pythons, everything)]
    print(f"\n{report(outcomes, [version for version in others if version not in pythons])}")
    return 0 if all(each.passed for each in outcomes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
