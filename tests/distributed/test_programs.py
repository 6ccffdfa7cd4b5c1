"""Programs in the structure of public tutorials print what they print under PyTorch on gloo, with 2 and 4 ranks.

The outputs are recorded in ``golden/distributed_programs.json``; ``program_starts.py`` says how the programs are started.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conformance.golden import load
from tests.distributed import program_starts
from tests.distributed.launcher_process import Started, run, until
from tests.programs.example_output import assert_printed_alike

pytest.importorskip("mpi4py")
RECORDED: dict[str, list[str]] = load("distributed_programs")
#: Programs and numbers of ranks that are tested; each program with the other number of ranks differs in nothing else.
TESTED = [("imagenet_style", 2), ("ring", 4), ("snapshot_trainer", 4), ("spawned_ddp", 2)]


def check(name: str, ranks: int, printed: str) -> None:
    expected = "\n".join(RECORDED[f"{name} {ranks}"])
    assert_printed_alike(program_starts.in_order(printed), expected, units=2)


def test_every_program_is_recorded() -> None:
    names = sorted(each.stem for each in program_starts.PROGRAMS.glob("[!_]*.py"))
    assert sorted(program_starts.STARTS) == names
    assert sorted(RECORDED) == sorted(f"{name} {ranks}" for name in names for ranks in program_starts.RANKS)


@pytest.mark.parametrize(("name", "ranks"), TESTED)
def test_output_matches_pytorch(name: str, ranks: int, tmp_path: Path) -> None:
    start = ["launch", "--nproc-per-node", str(ranks)] if program_starts.STARTS[name][0] else ["run"]
    code, out, err = run(tmp_path, *start, *program_starts.words(name, ranks, str(tmp_path)), OMP_NUM_THREADS="1")
    assert code == 0, err
    check(name, ranks, out)


def test_mpiexec_starts_a_program(tmp_path: Path) -> None:
    mpiexec = Path(sysconfig.get_path("scripts")) / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec beside this Python")
    os.symlink(sys.executable, tmp_path / "python")
    program = program_starts.PROGRAMS / "snapshot_trainer.py"
    environment = {"LOCAL_RANK": "0", "OMP_NUM_THREADS": "1"}
    program_text = (
        "import os, runpy, sys\n"
        "os.environ.setdefault('RANK', os.environ['PMI_RANK'])\n"
        "os.environ['LOCAL_RANK'] = os.environ['RANK']\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    (tmp_path / "program.py").write_text(program_text)
    code, out, err = run(
        tmp_path, "run", "-c",
        "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))",
        str(mpiexec), "-n", "2", sys.executable, "-m", "retrograd", "run", "program.py", str(program), "3", "2",
        str(tmp_path), **environment,
    )  # fmt: skip
    assert code == 0, err
    check("snapshot_trainer", 2, out)
