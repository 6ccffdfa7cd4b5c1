"""The command line, in new processes: programs run as under ``python``, with retrograd as ``torch``."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import cli
from retrograd.compat.missing_names import DIFFERENCES_PAGE
from retrograd.version import OWN
from tests import ROOT

SOURCE = str(Path(retrograd.__file__).parent.parent)


def command(
    *arguments: str, folder: Path | None = None, python: bool = False, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``retrograd ...`` (or ``python ...`` for comparison) and capture both streams."""
    path = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
    start = [sys.executable] if python else [sys.executable, "-m", "retrograd"]
    return subprocess.run(
        [*start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        input=given,
    )


def both(folder: Path, text: str, *arguments: str) -> None:
    """Assert that a program without torch has the same output, errors and exit status under both."""
    (folder / "program.py").write_text(text)
    ours = command("run", "program.py", *arguments, folder=folder)
    pythons = command("program.py", *arguments, folder=folder, python=True)
    assert ours.stdout == pythons.stdout
    assert ours.stderr == pythons.stderr
    assert ours.returncode == pythons.returncode


def test_a_program_gets_retrograd(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch as th\nprint(th.__name__, th.__version__)\n")
    done = command("run", "program.py", folder=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == (f"torch {retrograd.__version__}\n", "", 0)


def test_arguments_names_and_main(tmp_path: Path) -> None:
    text = """
import os, sys
print(sys.argv, __name__, __file__, __package__, __spec__, __doc__)
print(os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)))
print(sys.modules["__main__"].__dict__ is globals())
if __name__ == "__main__":
    print("main")
"""
    both(tmp_path, text, "--help", "-x", "two words")


def test_modules_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nname = torch.__name__\n")
    (tmp_path / "program.py").write_text("from beside import name\nprint(name)\n")
    assert command("run", str(tmp_path / "program.py")).stdout == "torch\n"


def test_pickling_of_the_programs_own_classes(tmp_path: Path) -> None:
    both(
        tmp_path,
        "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, A.__module__)\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "def f():\n    g()\n\ndef g():\n    raise ValueError('x')\n\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
        "x = = 1",
        "import sys\nsys.exit()",
        "import sys\nsys.exit(7)",
        "raise SystemExit('in words')",
        "raise SystemExit(None)",
        "import no_such_module",
        "raise ExceptionGroup('several', [ValueError(1), KeyError(2)])",
        "import sys\nsys.excepthook = lambda k, e, t: print('own hook', k, e, t.tb_lineno, t.tb_next)\n1 / 0",
        "import atexit\natexit.register(print, 'at the end')\nraise ValueError",
        "raise KeyboardInterrupt",
    ],
)
def test_exit_status_matches_python(tmp_path: Path, text: str) -> None:
    both(tmp_path, text + "\n")


def test_traceback_of_missing_name_ends_in_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def ask():\n    import torch.nowhere\n\nask()\n")
    done = command("run", "program.py", folder=tmp_path)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[-1].startswith("ModuleNotFoundError: No module named 'torch.nowhere'")
    assert lines[-1].endswith(f"see {DIFFERENCES_PAGE})")
    assert all("program.py" in line for line in lines if line.startswith("  File"))


def test_children_of_multiprocessing_get_retrograd_too(tmp_path: Path) -> None:
    text = """
import multiprocessing
import torch

def name(number):
    import torch as again
    assert again is torch
    return f"{again.__name__} {number}"

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        if method != "fork":  # a forked child has the hook as it has everything
            with multiprocessing.get_context(method).Pool(1) as pool:
                print(pool.map(name, [1, 2]))
"""
    (tmp_path / "program.py").write_text(text)
    done = command("run", "program.py", folder=tmp_path)
    assert done.stderr == ""
    assert set(done.stdout.splitlines()) == {"['torch 1', 'torch 2']"}


def test_a_module_a_package_and_a_folder(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    body = "import sys, torch\nprint(torch.__name__, __name__, __spec__ and __spec__.name, sys.argv[1:], __package__)\n"
    (package / "part.py").write_text(body)
    (package / "__main__.py").write_text(body)
    assert command("run", "-m", "package.part", "a", folder=tmp_path).stdout == (
        "torch __main__ package.part ['a'] package\n"
    )
    assert command("run", "-m", "package", "-m", folder=tmp_path).stdout == (
        "torch __main__ package.__main__ ['-m'] package\n"
    )
    assert command("run", "package", "b", folder=tmp_path).stdout == "torch __main__ None ['b'] None\n"


def test_text(tmp_path: Path) -> None:
    stdin = "import sys\nprint(sys.argv, __name__, sys.path[0], __package__, __file__)\n1 / 0\n"
    ours, pythons = command("run", "-", "-x", given=stdin), command("-", "-x", given=stdin, python=True)
    assert (ours.stdout, ours.stderr, ours.returncode) == (pythons.stdout, pythons.stderr, pythons.returncode)
    done = command("run", "-c", "import sys, torch; print(torch.__name__, sys.argv)", "x")
    assert done.stdout == "torch ['-c', 'x']\n"


def test_run_restores_the_process_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys, torch\nsys.path.append('somewhere')\nprint(torch.__name__)\n1 / 0\n")
    hook = sys.excepthook

    def state() -> tuple[object, ...]:
        torches = {name for name in sys.modules if name.partition(".")[0] == "torch"}
        return sys.argv, list(sys.path), sys.modules["__main__"], list(sys.meta_path), torches

    before = state()
    with pytest.raises(ZeroDivisionError):
        cli.main(["run", str(program)])
    assert state() == before
    sys.excepthook = hook
    assert capsys.readouterr().out == "torch\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "run needs a program"),
        (("run", "-m"), "run -m needs an argument"),
        (("run", "--frobnicate"), "run has no option --frobnicate"),
        (("frobnicate",), "there is no command 'frobnicate'"),
        (("info", "more"), "info takes no arguments"),
        (("run", "no_such_program.py"), "can't open file"),
        (("run", "-m", "no_such_module"), "No module named no_such_module"),
        (("run", "-m", "no_such_module.part"), "No module named 'no_such_module'"),
        (("run", "-m", "json"), "No module named json.__main__"),
    ],
)
def test_invalid_commands(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err and printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("rum", "program.py"), "retrograd run"),
        (("inf",), "retrograd info"),
        (("chekpoint",), "retrograd checkpoint"),
        (("program.py",), "retrograd run program.py"),
        (("model.pt",), "retrograd checkpoint model.pt"),
        (("run", "progam.py"), "program.py"),
        (("run", "folder/mian.py"), os.path.join("folder", "main.py")),
        (("run", "folder"), f"{os.path.join('folder', 'main.py')}, {os.path.join('folder', 'other.py')}"),
        (("docs", "difference"), "differences"),
    ],
)
def test_misspelt_commands_get_a_hint(
    arguments: tuple[str, ...], meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("program.py", "folder/main.py", "folder/other.py", "folder/__init__.py"):
        (tmp_path / name).write_text("")
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.endswith(f". Did you mean: {meant}\n") and printed.err.count("\n") == 1 and printed.out == ""


def test_a_folder_without_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(tmp_path)]) == 2
    assert f"{str(tmp_path)!r} is a folder without __main__.py, and no Python file is in it" in capsys.readouterr().err


def test_docs_lists_and_shows_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs"]) == 0
    listed = capsys.readouterr().out
    pages = {path.stem for path in Path(DIFFERENCES_PAGE).parent.glob("*.md")}
    assert {line.split()[0] for line in listed.splitlines()[:-2]} == pages
    heading = Path(DIFFERENCES_PAGE).read_text(encoding="utf-8").split("\n")[0].removeprefix("# ")
    assert heading in listed
    for name in ("differences", "Differences.md"):
        assert cli.main(["docs", name]) == 0
        assert capsys.readouterr().out == Path(DIFFERENCES_PAGE).read_text(encoding="utf-8")
    assert cli.main(["docs", "--search", "x"]) == 2


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--help",), ("run", "--help"), ("info", "--help"), ("warmup", "-h")):
        assert cli.main(arguments or ["--help"]) == 0
        assert capsys.readouterr().out == cli.USAGE + "\n"
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"retrograd {OWN}\n"


def test_info_lists_versions_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy

    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    titles = [line.split()[0] for line in printed.splitlines() if not line.startswith(" ")]
    assert titles == [
        *("retrograd", "pages", "Python", "platform", "numpy", "scipy", "ml_dtypes"),
        *(
            "extras",
            "extension",
            *(["loops"] if importlib.util.find_spec("numba") else []),
            "processors",
            "BLAS",
            "threads",
            "device",
        ),
    ]
    assert OWN in printed and numpy.__version__ in printed
    pages = next(line.split(maxsplit=1)[1] for line in printed.splitlines() if line.startswith("pages"))
    assert (
        Path(pages, "differences.md") == Path(DIFFERENCES_PAGE)
        and Path(DIFFERENCES_PAGE).is_file()
        and Path(DIFFERENCES_PAGE).is_absolute()
    )


def test_pages_are_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert all(place == f"retrograd/{page}" for page, place in included.items())
    assert "docs/differences.md" in included and sum((ROOT / page).stat().st_size for page in included) < 500_000


def test_info_imports_neither_scipy_nor_numba() -> None:
    text = "import sys; from retrograd.cli import info; info(); print({'scipy', 'numba'} & set(sys.modules))"
    assert command("-c", text, python=True).stdout == "set()\n"
