"""The scripts that set up an environment, choose tests and run the checks on every supported Python."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests import ROOT

SCRIPTS = ROOT / "scripts"


def load(name: str) -> ModuleType:
    """Import a script by its path, because ``test`` is also a package of Python's."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def scripts_on_the_path() -> Iterator[None]:
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))


def made_by(root: Path, version: str) -> None:
    (root / ".venv").mkdir()
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n", encoding="utf-8")


def test_the_first_version_owns_the_environment_without_a_suffix(tmp_path: Path) -> None:
    environment = load("environment")
    assert environment.folder_of("3.12", tmp_path) == tmp_path / ".venv"
    made_by(tmp_path, "3.12.1")
    assert environment.folder_of("3.12", tmp_path) == tmp_path / ".venv"
    assert environment.folder_of("3.11", tmp_path) == tmp_path / ".venv-3.11"
    assert environment.folder_of("3.1", tmp_path) == tmp_path / ".venv-3.1"


def test_an_environment_names_the_version_of_its_python(tmp_path: Path) -> None:
    environment = load("environment")
    assert environment.version_of(Path(sys.prefix)) in (None, "{}.{}".format(*sys.version_info))
    assert environment.version_of(tmp_path) is None


def test_an_environment_is_current_only_for_the_files_it_was_made_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = load("environment")
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    before = environment.fingerprint()
    assert environment.fingerprint() == before
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert environment.fingerprint() != before


def test_a_folder_that_the_script_did_not_make_is_not_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment = load("environment")
    (tmp_path / "notes.txt").write_text("kept", encoding="utf-8")
    for name, path in {"FOLDER": "", "BUILDING": "retrograd-building", "RECORD": "retrograd-environment.json"}.items():
        monkeypatch.setattr(environment, name, tmp_path / path)
    with pytest.raises(SystemExit, match="was not made by this script"):
        environment.build(set())
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "kept"


def test_every_selected_test_is_found() -> None:
    script = load("test")
    paths = [Path(each) for each in script.pytest_arguments(["--selection", "-q"])[:-1]]
    assert [path.stem for path in paths] == list(script.SELECTION) and all(path.is_file() for path in paths)


def test_a_test_is_found_by_its_name_in_any_folder(tmp_path: Path) -> None:
    script = load("test")
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit" / "test_one.py").touch()
    found = script.pytest_arguments(["test_one", "-k", "info", "tests/test_cli.py"], tmp_path)
    assert found == [str(tmp_path / "unit" / "test_one.py"), "-k", "info", "tests/test_cli.py"]
    with pytest.raises(SystemExit, match=r"0 files .* are named test_two\.py"):
        script.pytest_arguments(["test_two"], tmp_path)
    (tmp_path / "test_one.py").touch()
    with pytest.raises(SystemExit, match=r"2 files .* are named test_one\.py"):
        script.pytest_arguments(["test_one"], tmp_path)


def test_lowest_versions_are_those_of_the_requirements() -> None:
    lowest = load("lowest")
    text = """[project]
    dependencies = ["numpy>=2.0", "ml_dtypes>=0.5"]
    optional-dependencies = {test = ["retrograd[more]", "pytest-xdist>=3.6.1"], fast = ["numba>=9"], more = ["a>=1; b != 'c'"]}"""
    assert lowest.lowest(text) == ["numpy==2.0", "ml_dtypes==0.5", "a==1; b != 'c'", "pytest-xdist==3.6.1"]
    own = lowest.lowest((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {each.partition("==")[0] for each in own} > {"numpy", "scipy", "ml_dtypes", "numba", "pytest"}
    assert all("==" in each and ">" not in each for each in own)


def test_a_lowest_version_without_a_wheel_is_named_with_the_oldest_after_it() -> None:
    lowest, python = load("lowest"), "{}.{}".format(*sys.version_info)
    printed = (
        "ERROR: Could not find a version that satisfies the requirement numpy==2.0 (from versions: 1.3.0, 2.10.0, 2.2.1)\n"
        "ERROR: No matching distribution found for numpy==2.0\n"
    )
    assert lowest.reason(printed) == f"no wheel of numpy 2.0 for Python {python}; the oldest after it is 2.2.1"
    assert lowest.reason(printed.replace(", 2.10.0, 2.2.1", "")).endswith("the oldest after it is none")
    assert lowest.reason("WARNING: slow\nERROR: no network\n") == "ERROR: no network"


def test_options_stand_for_files_of_tests() -> None:
    script = load("test")
    for option, chosen in script.OPTIONS.items():
        names = [each for each in chosen if each.startswith("test_")]
        found = [Path(each).stem for each in script.pytest_arguments([option]) if each.endswith(".py")]
        assert found == names and names


def test_the_supported_versions_are_those_of_the_classifiers() -> None:
    ci = load("ci")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert ci.supported(text) == ["3.11", "3.12", "3.13"]
    assert not set(ci.UNPROVEN) & set(ci.supported(text))
    assert f'requires-python = ">={ci.supported(text)[0]}"' in text


def fake_python(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreters are shell scripts")
def test_an_interpreter_that_does_not_start_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ci = load("ci")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    fake_python(tmp_path / "shims" / "python3.12", "exit 127")
    assert ci.find_python("3.12") is None
    fake_python(tmp_path / "pyenv/versions/3.12.9/bin/python", "echo 3.12")
    newest = fake_python(tmp_path / "pyenv/versions/3.12.10/bin/python", "echo 3.12")
    assert ci.find_python("3.12") == newest
    assert ci.find_python("3.13") is None
    on_path = fake_python(tmp_path / "shims" / "python3.12", "echo 3.12")
    assert ci.find_python("3.12") == on_path
    fake_python(tmp_path / "shims" / "python3.12", "echo 3.11")  # another version than its name says
    assert ci.find_python("3.12") == newest


def test_other_versions_run_the_selection_or_with_all_the_whole_suite() -> None:
    ci = load("ci")
    for everything in (False, True):
        (step,) = [each for each in ci.steps({"3.99": "python3.99"}, everything) if each.title == "tests, 3.99"]
        assert step.command == ["python3.99", str(SCRIPTS / "test.py"), *([] if everything else ["--selection"])]
        assert step.tests
        titles = {each.title for each in ci.steps({}, everything)}
        assert {"tests, lowest versions", "tests, threads"} & titles == (
            {"tests, lowest versions", "tests, threads"} if everything else set()
        )
        generic = [each for each in ci.steps({}, everything) if each.variables]
        assert [each.variables for each in generic] == [("RETROGRAD_CODEGEN=0",)] * everything


def test_a_step_sets_its_variables(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    ci = load("ci")
    program = "import os; print('31 passed in 1.0s' if os.environ['RETROGRAD_CODEGEN'] == '0' else '')"
    step = ci.Step("tests", [sys.executable, "-c", program], tests=True, variables=("RETROGRAD_CODEGEN=0",))
    assert ci.run(step).passed and b"== tests: RETROGRAD_CODEGEN=0" in capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("printed", "status", "passed", "summary"),
    [
        ("=== 2 failed, 31 passed, 1 warning in 4.05s ===", 1, False, "2 failed, 31 passed, 1 warning in 4.05s"),
        ("31 passed, 4 skipped in 304.05s (0:05:04)", 0, True, "31 passed, 4 skipped in 304.05s (0:05:04)"),
        ("=== no tests ran in 0.01s ===", 0, False, "no test ran"),
        ("4 skipped in 0.01s", 0, False, "4 skipped in 0.01s"),
        ("Setting up failed", 3, False, "exit status 3"),
    ],
)
def test_a_step_of_tests_passes_only_if_a_test_passed(
    printed: str, status: int, passed: bool, summary: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    ci = load("ci")
    command = [sys.executable, "-c", f"print({printed!r}); raise SystemExit({status})"]
    outcome = ci.run(ci.Step("tests", command, tests=True))
    assert (outcome.passed, outcome.summary) == (passed, summary)
    assert printed.encode() in capfdbinary.readouterr().out.splitlines()


def test_a_step_that_could_not_be_set_up_is_reported(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    ci, reason = load("ci"), "no wheel of numpy 2.0 for Python 3.99; the oldest after it is 2.9"
    command = [sys.executable, "-c", f"print('NOT TESTED: {reason}'); raise SystemExit({load('lowest').NOT_TESTED})"]
    outcome = ci.run(ci.Step("tests, lowest", command, tests=True))
    assert outcome.passed
    lines = ci.report([outcome], ["3.99"]).splitlines()
    assert lines[1:] == ["NOT TESTED: 3.99", f"NOT TESTED: tests, lowest ({reason})", "CI passed."]
    failed = ci.run(ci.Step("tests, lowest", [sys.executable, "-c", "raise SystemExit(77)"], tests=True))
    assert not failed.passed


def test_a_version_without_an_interpreter_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ci = load("ci")
    monkeypatch.setattr(ci, "find_python", lambda version: None)
    monkeypatch.setattr(ci, "run", lambda step: ci.Outcome(step.title, step.title != "types", 0.5, ""))
    assert ci.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "CI failed: types"
    this = "{}.{}".format(*sys.version_info)
    assert [each for each in lines if each.startswith("NOT TESTED")] == [
        f"NOT TESTED: {version}" for version in ("3.11", "3.12", "3.13", "3.14") if version != this
    ]
    monkeypatch.setattr(ci, "run", lambda step: ci.Outcome(step.title, True, 0.5, ""))
    assert ci.main(["--all"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "CI passed."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not a checkout of array-api-tests"),
        ([".", "--operators"], "expected one argument"),
        ([".", "--operators", "pytoch"], "invalid choice: 'pytoch'"),
    ],
)
def test_wrong_arguments_of_the_array_api_tests_are_reported(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        load("array_api_tests").main(arguments)
    assert message in capsys.readouterr().err


def test_a_machine_without_a_browser_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = load("browser")
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    assert browser.main([]) == browser.NOT_TESTED
    assert capsys.readouterr().out == "NOT TESTED: no Chromium and chromedriver\n"
    monkeypatch.setattr(browser.shutil, "which", lambda name: "/usr/bin/chromium" if name == "chromium" else None)
    assert browser.missing() == "chromedriver"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no root")
def test_chromium_is_installed_only_by_root_on_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    browser, release = load("browser"), tmp_path / "os-release"
    monkeypatch.setattr(browser.shutil, "which", lambda name: f"/usr/bin/{name}")
    for text, user, expected in (
        ("ID=debian", 0, True),
        ("ID=debian", 1000, False),
        ("ID=ubuntu\nID_LIKE=debian", 0, False),
    ):
        release.write_text(f"NAME=x\n{text}\n", encoding="utf-8")
        monkeypatch.setattr(browser.os, "geteuid", lambda user=user: user)
        assert browser.may_install(release) is expected
    assert not browser.may_install(tmp_path / "absent")
