"""The engine on MPI: results, asynchronous operations, errors and dead ranks, with 2 and 3 ranks.

The checks are in ``engine_checks.py``; all checks with one number of ranks run in one start.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.distributed.rank_processes import Ranks

pytest.importorskip("mpi4py", reason="the ranks need mpi4py and an MPI library")
pytestmark = [pytest.mark.thread_unsafe, pytest.mark.skipif(os.name != "posix", reason="signals")]
LAST = "a_dead_rank_fails_all_operations"
NAMES = re.findall(
    r"^@check\ndef (\w+)", Path(__file__).with_name("engine_checks.py").read_text(encoding="utf-8"), re.M
)


@pytest.mark.parametrize("size", [2, 3])
def test_checks_pass_in_all_ranks(size: int, tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    text = f"from tests.distributed.engine_checks import main\nmain({NAMES!r})\n"
    ended = Ranks(tmp_path, text, size, PYTHONPATH=path, OMP_NUM_THREADS="1").wait(60)
    assert NAMES[-1] == LAST
    for rank, (code, out, err) in enumerate(ended):
        passed = [f"{each} {rank}" for each in NAMES]
        assert out.splitlines() == (passed[:-1] if rank == 1 else passed), err
        assert code == (-9 if rank == 1 else 0), err
