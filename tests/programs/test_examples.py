"""The examples print the same under ``retrograd run`` and under PyTorch (``golden/examples.json``).

Words and layout are compared exactly, numbers with a tolerance for another order of summation. Examples that train run
for a few steps (``example_output.py``).
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd
from tests import ROOT
from tests.conformance.golden import load
from tests.programs.example_output import SHORT, arguments, assert_printed_alike, without_times

EXAMPLES = ROOT / "examples"
RECORDED: dict[str, str] = load("examples")["printed"]
NO_PICTURE = "No picture without matplotlib: pip install matplotlib\n"


def run(program: Path, folder: Path, first: str = "") -> str:
    """Return what the example prints; ``first`` is a folder of modules that are found before all others."""
    source = str(Path(retrograd.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [first, source, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "retrograd", "run", str(program), *arguments(program.name, str(folder))],
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert (done.returncode, done.stderr if program.name not in SHORT else "") == (0, "")  # progress is written there
    return without_times(done.stdout)


def test_every_example_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_output_matches_pytorch(name: str, tmp_path: Path) -> None:
    if name in SHORT:
        for library in ("sklearn", "tqdm"):  # from the extra "examples"
            pytest.importorskip(library)
    has_picture = name in SHORT and importlib.util.find_spec("matplotlib") is not None
    printed, expected = run(EXAMPLES / name, tmp_path), RECORDED[name]
    assert [each.name for each in tmp_path.iterdir()] == [name.replace(".py", ".png")] * has_picture
    assert_printed_alike(printed, expected + NO_PICTURE * (name in SHORT and not has_picture))


def test_without_matplotlib_an_example_says_what_to_install_for_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    modules, output = tmp_path / "modules", tmp_path / "output"
    modules.mkdir()
    output.mkdir()
    (modules / "matplotlib.py").write_text('raise ImportError("not installed")\n', encoding="utf-8")
    printed = run(EXAMPLES / "ratings.py", output, str(modules))
    assert printed == RECORDED["ratings.py"] + NO_PICTURE
    assert not list(output.iterdir())


def test_interrupted_training_can_resume_from_its_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    program = """if True:
        import runpy, sys, torch
        steps = []
        def step(*given, plain=torch.optim.Adam.step):
            steps.append(1)
            if len(steps) == 5 and "--resume" not in sys.argv:
                raise KeyboardInterrupt
            return plain(*given)
        torch.optim.Adam.step = step
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        print(len(steps))
    """
    script = tmp_path / "interrupted.py"
    script.write_text(program, encoding="utf-8")
    source = str(Path(retrograd.__file__).parent.parent)
    printed = []
    for more in ([], ["--resume", str(tmp_path / "adding.pt")]):
        done = subprocess.run(
            [sys.executable, "-m", "retrograd", "run", str(script), str(EXAMPLES / "adding.py"), "--steps", "8", "--folder",
             str(tmp_path), *more],
            env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}, capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert "stopped after step 4" in printed[0] and printed[0].endswith("5\n")
    assert printed[1].endswith("4\n") and (tmp_path / "adding.png").exists()
