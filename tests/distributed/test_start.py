"""Start of many ranks: by ``env://``, ``tcp://``, ``file://``, a store, and ``mpiexec``; and what can go wrong."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd.distributed as dist
from retrograd.distributed import launch_environment
from retrograd.distributed.coordinator import Coordinator
from retrograd.distributed.mpi_start import Meeting
from tests.distributed.launcher_process import running, until, variables
from tests.distributed.rank_processes import Ranks, run_ranks, unused_port

pytest.importorskip("mpi4py", reason="the ranks need mpi4py and an MPI library")
pytestmark = [pytest.mark.thread_unsafe, pytest.mark.skipif(os.name != "posix", reason="signals and process groups")]


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def fails(kind: type[BaseException], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match="^" + re.escape(words)):
        call()


def segments() -> set[str]:
    """Return the names of the shared memory of MPI."""
    return (
        {each for each in os.listdir("/dev/shm") if each.startswith(("mpich", "Intel"))}
        if os.path.isdir("/dev/shm")
        else set()
    )


#: The program prints the process id of the coordinator, which rank 0 has started.
COORDINATOR = """
from retrograd.distributed import mpi_start
print("coordinator", getattr(mpi_start._world.coordinator, "pid", None), flush=True)
"""
INIT = "dist.init_process_group('gloo', timeout=timedelta(seconds=30))\n"


def coordinator_of(out: str) -> int:
    return int(out.partition("coordinator ")[2].split()[0])


def ended(pid: int) -> None:
    until(lambda: not running(pid), 5.0)


# -- Start and end -----------------------------------------------------------------------------------------------------


def test_start_by_environment(tmp_path: Path) -> None:
    before = segments()
    out = run_ranks(
        tmp_path,
        """
rank = int(os.environ["RANK"])
dist.init_process_group("GLOO", timeout=timedelta(seconds=30))
"""
        + COORDINATOR
        + """
print(dist.get_rank(), dist.get_world_size(), dist.get_backend())
x = torch.ones(2) * (rank + 1)
dist.all_reduce(x)
print(x)
store = dist.group.WORLD.get_group_store()
store.set(f"from {rank}", str(rank * 10))
print(store.get(f"from {1 - rank}"))
child = os.fork()
if child == 0:
    try:
        dist.all_reduce(x)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
dist.barrier()
dist.destroy_process_group()
dist.init_process_group(rank=rank, world_size=2)
dist.all_reduce(x)
print(x, dist.get_backend())
dist.destroy_process_group()
try:
    dist.init_process_group(rank=rank, world_size=3)
except RuntimeError as error:
    print(error)
"""
        "print([name for name in os.environ if name.startswith('PMI_')])",
    )
    for rank, text in enumerate(out):
        lines = text.splitlines()[1:]
        assert lines[:3] == [f"{rank} 2 gloo", "tensor([3., 3.])", f"b'{(1 - rank) * 10}'"]
        assert f"this process was forked from rank {rank} after init_process_group: MPI does not work in it" in lines[3]
        assert lines[4] == "tensor([6., 6.]) undefined"
        assert lines[5] == (
            f"this process is rank {rank} of 2: after destroy_process_group, init_process_group needs the same rank and "
            f"world_size again, not rank {rank} of 3. Start new processes for another group."
        )
        assert lines[6] == "[]"
    ended(coordinator_of(out[0]))
    assert segments() <= before


def test_start_by_file_and_store(tmp_path: Path) -> None:
    text = """
rank = int(os.environ.pop("RANK"))
def total():
    x = torch.ones(1) * (rank + 1)
    dist.all_reduce(x)
    dist.destroy_process_group()
    print(x.item())
dist.init_process_group("mpi", init_method="file://" + os.path.abspath("meet"), rank=rank, world_size=2)
total()
dist.init_process_group(store=dist.FileStore("again", 2), rank=rank, world_size=2)
total()
dist.init_process_group(init_method="file://" + os.path.abspath("meet"), rank=rank, world_size=2)
total()
"""
    assert run_ranks(tmp_path, text) == ["3.0\n3.0\n3.0\n"] * 2
    assert not [*tmp_path.glob("meet"), *tmp_path.glob("again")], "the last rank removes the file"


def test_start_by_mpiexec(tmp_path: Path) -> None:
    command = shutil.which("mpiexec", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if command is None:
        pytest.skip("there is no mpiexec")
    (tmp_path / "program.py").write_text(
        "import os, torch\nimport torch.distributed as dist\ndist.init_process_group()\n"
        "x = torch.ones(1) * int(os.environ['RANK'])\ndist.all_reduce(x)\n"
        "os.write(1, f'{x.item()} {dist.get_world_size()} {os.environ[\"WORLD_SIZE\"]}\\n'.encode())"
    )
    done = subprocess.run(
        [command, "-n", "2", sys.executable, "-m", "retrograd", "run", "program.py"], cwd=tmp_path, env=variables(),
        capture_output=True, text=True, timeout=40,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["1.0", "2", "2"] * 2), done.stderr


# -- A rank that ends --------------------------------------------------------------------------------------------------


def check_killed(text: str, victim: int, folder: Path, **more: Any) -> None:
    """Run ``text`` in two ranks, of which ``victim`` kills itself, and the other has to notice it."""
    before = segments()
    text = f"""
import signal
if dist.get_rank() == {victim}:
    print("killed", time.time(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(torch.ones(3))
except RuntimeError as error:
    print("error", time.time(), error)
    raise
""".join([INIT + COORDINATOR + text, ""])
    done = Ranks(folder, text, 2, **more).wait()
    other = 1 - victim
    assert [done[victim][0], done[other][0]] == [-signal.SIGKILL, 1], done
    killed = float(done[victim][1].partition("killed ")[2].split()[0])
    found = re.search(r"error ([0-9.]+) (.*)", done[other][1])
    assert found is not None, done[other]
    assert 0 <= float(found[1]) - killed < 1
    assert f"rank {victim} (process " in found[2] and "is gone: its connection closed" in found[2]
    ended(coordinator_of(done[0][1]))
    assert segments() <= before


def test_killed_rank_is_named(tmp_path: Path) -> None:
    fork = (
        "if os.fork() == 0:\n    os.close(1), os.close(2), time.sleep(4), os._exit(0)"  # it has the rank's connections
    )
    check_killed(fork, 0, tmp_path)


def test_ranks_of_two_machines(tmp_path: Path) -> None:
    text = """
from mpi4py import MPI
local = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
x = torch.arange(300_000.) * (dist.get_rank() + 1)
dist.all_reduce(x)
assert (local.size, x[-1].item()) == (1, 899997.), (local.size, x[-1].item())
"""
    nodes = {rank: {"RETROGRAD_NODE": str(rank)} for rank in range(2)}
    check_killed(text, 1, tmp_path, each=nodes)


def test_rank_that_raises_ends_the_others(tmp_path: Path) -> None:
    text = (
        INIT
        + """
if dist.get_rank() == 1:
    raise KeyError("data")
dist.all_reduce(torch.ones(3))
"""
    )
    (first, _, error), (second, _, own) = Ranks(tmp_path, text).wait()
    assert (first, second) == (1, 1)
    assert "is gone: its program has ended by KeyError: 'data'" in error and own.endswith("KeyError: 'data'\n")


def test_rank_that_ends_early_is_named(tmp_path: Path) -> None:
    text = (
        INIT
        + """
if dist.get_rank() == 1:
    sys.exit(3)
dist.all_reduce(torch.ones(3))
"""
    )
    (first, _, error), (second, _, _) = Ranks(tmp_path, text).wait()
    assert (first, second) == (1, 3)
    assert "has ended its program" in error


def test_interrupt_during_the_start(tmp_path: Path) -> None:
    text = (
        """
import subprocess
popen = subprocess.Popen
class Popen(popen):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        print("coordinator", self.pid, flush=True)
subprocess.Popen = Popen
"""
        + INIT
    )
    ranks = Ranks(tmp_path, text, 1, WORLD_SIZE="2")
    line = ranks.processes[0].stdout.readline()  # type: ignore[union-attr]
    ranks.processes[0].send_signal(signal.SIGINT)
    ((code, _, error),) = ranks.wait(10)
    assert code != 0 and error.endswith("KeyboardInterrupt\n")
    ended(coordinator_of(line))


# -- Errors of the start -----------------------------------------------------------------------------------------------


def test_missing_ranks_are_named() -> None:
    begin = time.monotonic()
    fails(
        dist.DistStoreError, "Timed out after 0.5 seconds waiting for clients. 1/3 clients joined. Missing: ranks 1, 2.",
        lambda: dist.init_process_group(
            init_method=f"tcp://127.0.0.1:{unused_port()}", rank=0, world_size=3, timeout=seconds(0.5)
        ),
    )  # fmt: skip
    assert time.monotonic() - begin < 10 and not dist.is_initialized()


def test_unreachable_master_is_named() -> None:
    port = unused_port()
    words = f"The client socket has timed out after 300ms while trying to connect to (127.0.0.1, {port}). Attempts: "
    fails(
        dist.DistNetworkError, words,
        lambda: dist.init_process_group(
            init_method=f"tcp://127.0.0.1:{port}", rank=1, world_size=2, timeout=seconds(0.3)
        ),
    )  # fmt: skip


def meet(*arguments: tuple[int, int]) -> list[BaseException | None]:
    """Return the errors of threads that meet as (rank, size), one after the other."""
    store, errors = dist.HashStore(), [None] * len(arguments)

    def run(index: int, rank: int, size: int) -> None:
        meeting = Meeting(store, 0, rank, size, seconds(1))
        try:
            try:
                meeting.arrive()
            except BaseException as error:
                meeting.fail(error)
                raise
            meeting.wait()
        except RuntimeError as error:
            errors[index] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(index, *each)) for index, each in enumerate(arguments)]
    for each in threads:
        each.start()
        time.sleep(0.05)
    for each in threads:
        each.join()
    return errors


def test_ranks_that_contradict_each_other() -> None:
    assert meet((0, 2), (1, 2)) == [None, None]
    for arguments, words in (
        (((0, 3), (1, 3), (1, 3)), r"two processes have one rank: rank 1 \(process \d+ on .*\) and rank 1 \(process"),
        (
            ((0, 2), (1, 3)),
            r"the ranks have different world sizes: 3 in rank 1 \(process .*\), and 2 in rank 0 \(process",
        ),
        (((0, 3), (2, 3)), r"Timed out after 1 seconds waiting for clients. 2/3 clients joined. Missing: rank 1.$"),
    ):
        errors = meet(*arguments)
        assert all(isinstance(each, dist.DistStoreError) and re.match(words, str(each)) for each in errors), errors


def test_rank_outside_of_the_world_fails_everywhere() -> None:
    with pytest.raises(ValueError, match=re.escape("Invalid rank 2, rank should be in the interval [0, 1]")):
        Meeting(dist.HashStore(), 0, 2, 2, seconds(1)).arrive()


def test_second_process_with_rank_0() -> None:
    port = unused_port()
    master = dist.TCPStore("127.0.0.1", port, is_master=True)
    meeting = Meeting(dist.PrefixStore("default_pg", master), 0, 0, 2, seconds(10))
    meeting.arrive()
    address = f"tcp://127.0.0.1:{port}"
    fails(
        dist.DistNetworkError,
        "The server socket has failed to listen on any local network address. "
        f"port: {port}, useIpv6: false, code: {-errno.EADDRINUSE}, name: EADDRINUSE, message: address already in use",
        lambda: dist.init_process_group(init_method=address, rank=0, world_size=2, timeout=seconds(1)),
    )
    meeting.store.add("informed", 1)  # as rank 1 does
    fails(
        dist.DistStoreError, f"two processes have one rank, or two jobs one address, 127.0.0.1:{port}: ", meeting.wait
    )


def test_mpi4py_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    fails(
        RuntimeError, 'world_size is 2: several processes need mpi4py and an MPI library: pip install "mpi4py>=4.1"',
        lambda: dist.init_process_group(store=dist.FileStore(tmp_path / "store"), rank=1, world_size=2),
    )  # fmt: skip


def test_hash_store_of_several_processes() -> None:
    fails(
        ValueError, "a HashStore is in the memory of one process; several processes need a TCPStore or a FileStore",
        lambda: dist.init_process_group(store=dist.HashStore(), rank=1, world_size=2),
    )  # fmt: skip


# -- Launchers ---------------------------------------------------------------------------------------------------------


def test_variables_of_launchers() -> None:
    slurm = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4",
             "SLURM_STEP_NODELIST": "node[03-04,7]", "SLURM_JOB_ID": "1000", "SLURM_STEP_ID": "2"}  # fmt: skip
    address = {"MASTER_ADDR": "node03", "MASTER_PORT": "27002"}
    assert launch_environment.variables(slurm) == {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", **address}
    pmi = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}
    assert launch_environment.variables(pmi) == {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    assert launch_environment.variables({**slurm, **pmi}) == {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        **address,
    }
    del slurm["SLURM_STEP_ID"]  # a batch script
    assert launch_environment.variables(slurm) == {} and launch_environment.mpi_rank(slurm) is None
    names = ["a", "a1,a2", "n[1-3]", "n[001,003-5],m1", "r[1-2]n[4,7]-x,b"]
    assert [launch_environment.first_node(each) for each in names] == ["a", "a1", "n1", "n001", "r1n4-x"]


def test_ranks_of_one_machine() -> None:
    for nodes, words in (
        ("aaaaa", "(0,1,5)"), ("aabbb", "(0,1,2),(1,1,3)"), ("aabbcc", "(0,3,2)"), ("abab", "(0,2,1),(0,2,1)"),
        ("abaab", "(0,2,1),(0,1,2),(1,1,1)"),
    ):  # fmt: skip
        coordinator = Coordinator(None, len(nodes), "", "", 1.0)  # type: ignore[arg-type]
        coordinator.hosts = dict(enumerate(nodes))
        assert coordinator.mapping() == f"(vector,{words})"
