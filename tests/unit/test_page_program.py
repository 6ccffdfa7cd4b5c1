"""``retrograd run --page``: the page of a program's last backward pass."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import retrograd
from retrograd import cli

PROGRAM = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(3):
    loss = (w * w).sum()
    loss.backward()
print(w.grad)
"""


def run(folder: Path, *arguments: str, text: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "retrograd", "run", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_last_backward_pass_of_a_program(tmp_path: Path) -> None:
    done = run(tmp_path, "--page", "out.html", "program.py")
    assert (done.stdout, done.returncode) == ("tensor([ 6., 12.])\n", 0)
    assert done.stderr.startswith("retrograd: out.html shows backward pass 3, at ")
    assert done.stderr.endswith("program.py:6; open it in a browser\n")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    packed = re.search('id="document"[^>]*>([^<]+)<', page)
    assert packed is not None and len(page) < 60_000
    document = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    assert [each["name"] for each in document["nodes"]] == ["w", "mul", "sum", "loss"]
    assert "    loss.backward()" in document["sources"][0]["parts"][0]["lines"]


def test_the_page_is_written_after_an_exception(tmp_path: Path) -> None:
    done = run(tmp_path, "--page=out.html", "program.py", text=PROGRAM + "raise ValueError('later')\n")
    assert done.returncode == 1 and "out.html shows backward pass 3" in done.stderr
    assert done.stderr.endswith("ValueError: later\n") and "inspection" not in done.stderr.split("Traceback")[1]
    assert (tmp_path / "out.html").exists()
    done = run(tmp_path, "--page=exit.html", "program.py", text=PROGRAM + "raise SystemExit(7)\n")
    assert done.returncode == 7 and (tmp_path / "exit.html").exists()


def test_a_program_without_a_backward_pass(tmp_path: Path) -> None:
    done = run(tmp_path, "--page", "out.html", "program.py", text="print(1)\n")
    assert (done.stdout, done.returncode) == ("1\n", 0)
    assert "no page was written to out.html: the program ran no backward pass" in done.stderr
    assert not (tmp_path / "out.html").exists()


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(tmp_path, "--page", "none/out.html", "program.py")
    assert done.returncode == 0 and "the page was not written: " in done.stderr


def test_child_processes_write_no_page(tmp_path: Path) -> None:
    text = PROGRAM + "import os, sys\nif os.fork() == 0:\n    sys.exit()\nos.wait()\n"
    assert run(tmp_path, "--page", "out.html", "program.py", text=text).stderr.count("out.html") == 1


def test_arguments_of_the_program_stay_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "--page", "out.html", "program.py", "--page", "x", text="import sys\nprint(sys.argv)\n")
    assert done.stdout == "['program.py', '--page', 'x']\n"
    done = run(tmp_path, "program.py", "--page", "x", text="import sys\nprint(sys.argv)\n")
    assert done.stdout == "['program.py', '--page', 'x']\n" and not done.stderr
    done = run(tmp_path, "--page", "out.html", "-c", "import torch; torch.ones(1, requires_grad=True).backward()")
    assert "out.html shows the backward pass" in done.stderr


def test_a_missing_file_name(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--page"], ["--page="]):
        assert cli.run(arguments) == cli.CANNOT
        assert "run --page needs the name of an HTML file" in capsys.readouterr().err
    for arguments in (["--page", "program.py", "data.py"], ["--page", "-c", "import torch"]):
        assert cli.run(arguments) == cli.CANNOT
        assert f"an HTML file, before the program: {arguments[1]}" in capsys.readouterr().err
    assert cli.run(["--pgae", "out.html", "program.py"]) == cli.CANNOT
    assert "run has no option --pgae. Did you mean: --page\n" in capsys.readouterr().err
    assert cli.run(["--page", "out.html"]) == cli.CANNOT
    assert "run needs a program" in capsys.readouterr().err


def test_the_file_belongs_to_the_folder_in_which_the_command_started(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    done = run(tmp_path, "--page", "out.html", "program.py", text=PROGRAM + "import os; os.chdir('elsewhere')")
    assert done.returncode == 0 and (tmp_path / "out.html").exists(), done.stderr
