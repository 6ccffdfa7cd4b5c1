"""Programs in the structure of public tutorials print what they print under PyTorch on gloo, with 2 and 4 ranks.

The outputs are recorded in ``golden/distributed_programs.json``; ``program_starts.py`` has the commands that start the programs.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from tests import ROOT
from tests.conformance.golden import load
from tests.distributed import program_starts
from tests.distributed.launcher_process import Started, run
from tests.programs.example_output import arguments, assert_printed_alike, without_times

pytest.importorskip("mpi4py")
RECORDED: dict[str, list[str]] = load("distributed_programs")
#: Programs and numbers of ranks that are tested; each program with the other number of ranks differs in nothing else.
TESTED = [
    ("collectives", 2), ("collectives", 4), ("imagenet_style", 2), ("ring", 2), ("sharded_training", 2),
    ("snapshot_trainer", 4), ("spawned_ddp", 2),
]  # fmt: skip


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
    words = program_starts.words("snapshot_trainer", 2, str(tmp_path))
    code, out, err = run(tmp_path, "run", *words, by=[str(mpiexec), "-n", "2"], OMP_NUM_THREADS="1")
    assert code == 0, err
    check("snapshot_trainer", 2, out)


def test_srun_starts_a_program(tmp_path: Path) -> None:
    """The variables of srun without MPI's support; two processes are the tasks of one step."""
    step = {
        "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
    }  # fmt: skip
    words = program_starts.words("snapshot_trainer", 2, str(tmp_path))
    tasks = [
        Started(tmp_path, "run", *words, OMP_NUM_THREADS="1", SLURM_PROCID=rank, SLURM_LOCALID=rank, **step)
        for rank in ("0", "1")
    ]
    ended = [each.wait() for each in tasks]
    assert [code for code, _, _ in ended] == [0, 0], ended
    check("snapshot_trainer", 2, ended[0][1] + ended[1][1])


def test_example_prints_the_same_with_two_ranks(tmp_path: Path) -> None:
    """The batch is the same as with one process, and so are PyTorch's printed losses."""
    for library in ("matplotlib", "sklearn", "tqdm"):  # from the extra "examples"
        pytest.importorskip(library)
    name = "data_parallel.py"
    start = ["launch", "--nproc-per-node", "2", str(ROOT / "examples" / name)]
    code, out, err = run(tmp_path, *start, *arguments(name, str(tmp_path)), OMP_NUM_THREADS="1")
    assert code == 0, err
    assert_printed_alike(without_times(out), load("examples")["printed"][name])
    assert (tmp_path / "data_parallel.png").exists() and not (tmp_path / "data_parallel.pt").exists()
    assert "epoch 1" in err  # the progress bar of rank 0
