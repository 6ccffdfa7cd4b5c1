"""``retrograd launch`` and ``torchrun``: start, output, failures, restarts and signals of ranks."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd
from retrograd import cli
from retrograd.distributed.elastic.multiprocessing import Std
from retrograd.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from retrograd.distributed.launcher import LaunchConfig, elastic_launch
from retrograd.distributed.launcher.output import Console
from retrograd.distributed.launcher.processes import Processes
from retrograd.distributed.run import get_args_parser, parse_min_max_nnodes
from tests.distributed.launcher_process import Started, run, running, until, variables
from tests.distributed.rank_processes import unused_port

Launch = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Folder for the program; processes whose ids a program has written to files ``*.pid`` must have ended."""
    yield tmp_path
    left = [each.name for each in tmp_path.glob("*.pid") if running(int(each.read_text()))]
    for name in left:
        os.kill(int((tmp_path / name).read_text()), signal.SIGKILL)
    assert not left


@pytest.fixture
def launch(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Function that runs ``retrograd launch`` in this process, and returns its exit status, output and errors."""
    monkeypatch.chdir(folder)
    for name in os.environ.keys() - variables().keys():
        monkeypatch.delenv(name)

    def run_here(*arguments: str, **more: str) -> tuple[int, str, str]:
        for name, value in variables(**more).items():
            monkeypatch.setenv(name, value)
        if "OMP_NUM_THREADS" not in more:
            monkeypatch.setenv("OMP_NUM_THREADS", "1")  # restores it at the end
            monkeypatch.delenv("OMP_NUM_THREADS")
        code = cli.main(["launch", *arguments])
        return (code, *capsys.readouterr())

    return run_here


def program(folder: Path, text: str) -> str:
    (folder / "program.py").write_text("import os, sys, time\nrank = int(os.environ['RANK'])\n" + text)
    return "program.py"


#: Lines of a program that write the process's id to a file, for the fixture.
NOTE = """
def note(name, pid=None):
    with open(name + ".part", "w") as file:
        file.write(str(pid or os.getpid()))
    os.replace(name + ".part", name + ".pid")
note(f"rank{rank}")
"""


def test_environment_and_arguments_of_the_ranks(folder: Path, launch: Launch) -> None:
    text = """
import json, torch
names = [each for each in os.environ if each.split("_")[0] in ("MASTER", "TORCHELASTIC", "OMP", "PMI")
         or each.endswith(("RANK", "WORLD_SIZE"))]
print(json.dumps([sys.argv, torch.__name__, torch.distributed.is_torchelastic_launched(), {n: os.environ[n] for n in names}]))
"""
    options = ["--nproc-per-node", "2", "--max-restarts", "3", "--role", "r"]
    code, out, err = launch(*options, program(folder, text), "-x", "two words", "--nnodes", PMI_RANK="5")
    assert code == 0, err
    assert "OMP_NUM_THREADS=1 for each rank" in err
    found = sorted((json.loads(line) for line in out.splitlines()), key=lambda each: each[3]["RANK"])
    assert [each[:3] for each in found] == [[["program.py", "-x", "two words", "--nnodes"], "torch", True]] * 2
    first = found[0][3]
    assert first.pop("TORCHELASTIC_ERROR_FILE") != found[1][3].pop("TORCHELASTIC_ERROR_FILE")
    port, job = int(first.pop("MASTER_PORT")), first.pop("TORCHELASTIC_RUN_ID")
    assert 0 < port < 65536 and job
    assert first == {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1", "ROLE_RANK": "0", "ROLE_WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    assert {name: value for name, value in found[1][3].items() if first.get(name) != value} == {
        "RANK": "1", "LOCAL_RANK": "1", "ROLE_RANK": "1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": job,
    }  # fmt: skip


def test_lines_of_ranks_are_whole_and_in_order(folder: Path, launch: Launch) -> None:
    text = """
for number in range(300):
    for piece in (rank, "says", "x" * 200, number):
        print(piece, end=" ")
    print()
sys.stderr.write("\\r50 %"); sys.stderr.write("\\r100 %\\n")
print("no newline", end="")
"""
    code, out, err = launch("--nproc-per-node=2", program(folder, text), OMP_NUM_THREADS="2")
    assert code == 0 and "OMP_NUM_THREADS" not in err
    for rank in ("0", "1"):
        numbers = [int(line.split()[3]) for line in out.splitlines() if line.startswith(rank + " says " + "x" * 200)]
        assert numbers == [*range(300)]
    assert len(out.splitlines()) == 602 and out.count("no newline") == 2
    assert err.count("\r100 %\n") == 2


def test_failed_rank_is_named_and_the_others_are_ended(folder: Path, launch: Launch) -> None:
    text = """
import subprocess
if rank == 0:
    note("grandchild", subprocess.Popen(["sleep", "60"]).pid)
    time.sleep(60)
while not os.path.exists("grandchild.pid"):
    time.sleep(0.02)
def deeper():
    raise ValueError("in words")
deeper()
"""
    begun = time.monotonic()
    code, _, err = launch("--nproc-per-node", "2", program(folder, NOTE + text))
    assert code == 1 and time.monotonic() - begun < 20
    report = err[err.index("program.py FAILED") :]
    assert "<NO_OTHER_FAILURES>" in report and "rank      : 1 (local_rank: 1)" in report
    assert "exitcode  : 1 (pid: " in report
    assert "launcher" not in report  # the traceback has the program's lines only
    assert report.index("in deeper") < report.index("ValueError: in words") and report.rstrip().endswith("=")
    until(lambda: not running(int((folder / "grandchild.pid").read_text())))


def test_crashed_rank_and_one_that_ignores_sigterm(folder: Path, launch: Launch) -> None:
    text = """
import signal
if rank == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("ready")
    time.sleep(60)
while not os.path.exists("ready.pid"):
    time.sleep(0.02)
def crash():
    os.kill(os.getpid(), signal.SIGSEGV)
crash()
"""
    begun = time.monotonic()
    options = ["--nproc-per-node", "2", "--shutdown-timeout", "1"]
    code, _, err = launch(*options, program(folder, NOTE + text))
    assert code == 1 and time.monotonic() - begun < 20
    assert "exitcode  : -11 (pid: " in err and "(SIGSEGV)" in err and "rank      : 1 " in err
    assert "in crash" in err  # Python's fault handler prints the line


def test_restarts_after_failures(folder: Path, launch: Launch) -> None:
    text = """
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("attempt", attempt, "of rank", rank)
if attempt == 0 and rank == 1:
    sys.exit(3)
if attempt == 1 and rank == 0:
    os._exit(4)
if attempt < 2:
    time.sleep(60)
"""
    options = ["--nproc-per-node", "2", "--max-restarts", "2"]
    code, out, err = launch(*options, program(folder, text))
    assert code == 0, err
    assert sorted(out.splitlines())[-2:] == ["attempt 2 of rank 0", "attempt 2 of rank 1"]
    words = [line for line in err.splitlines() if "start again" in line]
    assert len(words) == 2
    assert "rank 1 (process " in words[0] and "exit code 3; all ranks start again (restart 1 of 2)" in words[0]
    assert "rank 0 (process " in words[1] and "exit code 4; all ranks start again (restart 2 of 2)" in words[1]
    assert "sys.exit(3)" in err and "os._exit" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signals_to_the_launcher_end_the_ranks(folder: Path, number: signal.Signals) -> None:
    text = """
note(f"ready{rank}")
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", rank)
"""
    started = Started(folder, "launch", "--nproc-per-node", "2", "--max-restarts", "2", program(folder, NOTE + text))
    until(lambda: (folder / "ready0.pid").exists() and (folder / "ready1.pid").exists())
    started.process.send_signal(number)
    code, out, err = started.wait(20)
    assert code == (-9 if number == signal.SIGKILL else 1)
    if number == signal.SIGINT:
        assert sorted(out.splitlines()) == ["interrupted 0", "interrupted 1"]
    if number != signal.SIGKILL:
        assert f"{number.name}; the ranks are ended" in err and "Traceback" not in err
    until(lambda: not any(running(int(each.read_text())) for each in folder.glob("rank*.pid")))


def test_commands_of_programs_under_run(folder: Path) -> None:
    program(folder, "import torch\nprint(torch.__name__, sys.argv, flush=True)\n")
    (folder / "outer.py").write_text(
        """if True:
        import os, subprocess, sys
        for command in (["torchrun"], [sys.executable, "-m", "torch.distributed.launch"]):
            done = subprocess.run([*command, "--nproc_per_node=1", "program.py", "-a"], capture_output=True, text=True)
            print(done.returncode, done.stdout.splitlines(), "FutureWarning" in done.stderr)
        child = "import torch; print(torch.__name__, torch.__version__)"
        print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout, end="")
        """
    )
    code, out, err = run(folder, "run", "outer.py")
    assert code == 0, err
    first, second, third = out.splitlines()
    assert third == f"torch {retrograd.__version__}"
    lines = ["torch ['program.py', '-a']"], ["torch ['program.py', '--local-rank=0', '-a']"]
    assert (first, second) == (f"0 {lines[0]} False", f"0 {lines[1]} True")
    code, out, err = run(folder, "run", "-m", "torch.distributed.run", "--nproc-per-node", "1", "program.py")
    assert (code, out) == (0, "torch ['program.py']\n"), err


def test_modules_and_other_commands(folder: Path, launch: Launch) -> None:
    program(folder, "import torch\nprint(torch.__name__, sys.argv[1:], __name__)\n")
    assert launch("-m", "program", "a")[1] == "torch ['a'] __main__\n"
    (folder / "command.sh").write_text('#!/bin/sh\necho "$RANK of $WORLD_SIZE" "$@"\n')
    (folder / "command.sh").chmod(0o755)
    assert launch("--no-python", "./command.sh", "b")[1] == "0 of 1 b\n"
    assert run(folder, "launch", "--run-path", "program.py", "c")[1] == "torch ['c'] __main__\n"
    code, _, err = launch("--no-python", "./nowhere.sh")
    assert code == 1 and "nowhere.sh" in err and "Traceback" not in err
    code, _, err = launch("nowhere.py")
    assert code == 1 and "can't open file" in err


def test_files_of_streams(folder: Path, launch: Launch) -> None:
    text = "print('out of', rank)\nprint('err of', rank, file=sys.stderr)\n"
    options = ["--nproc-per-node", "2", "--log-dir", "logs", "--rdzv-id", "job", "--redirects", "0:1", "--tee", "1:3"]
    code, out, err = launch(*options, program(folder, text))
    assert code == 0
    assert out == "[default1]:out of 1\n" and "[default1]:err of 1\n" in err and "err of 0\n" in err
    (logs,) = (folder / "logs").glob("*/attempt_0")
    written = {str(each.relative_to(logs)): each.read_text() for each in logs.glob("*/*.log")}
    assert written == {"0/stdout.log": "out of 0\n", "1/stdout.log": "out of 1\n", "1/stderr.log": "err of 1\n"}
    options = ["--nproc-per-node", "2", "--local-ranks-filter", "1"]
    assert launch(*options, "program.py")[1] == "out of 1\n"


def test_arguments_that_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in {
        ("--nnodes", "1:2:3", "x.py"): 'nnodes=1:2:3 is not in "MIN:MAX" format',
        ("--nnodes", "2:1", "x.py"): "min_nodes must be > 0 and <= max_nodes, got min_nodes=2, max_nodes=1",
        ("--max-restarts", "-1", "x.py"): "max_restarts must be >= 0",
        ("--nproc-per-node", "many", "x.py"): "Unsupported nproc_per_node value: many",
        ("--no-python", "-m", "x"): "Don't use both the '--no-python' flag and the '--module' flag",
    }.items():
        assert cli.main(["launch", *options]) == 1
        assert words in capsys.readouterr().err
    assert cli.main(["launch"]) == 2
    assert "launch needs a program" in capsys.readouterr().err


def test_options_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("PET_STANDALONE", "1")
    args = get_args_parser().parse_args(["--master_port", "5", "x.py"])
    assert (args.nproc_per_node, args.standalone, args.master_port) == ("3", True, 5)
    assert parse_min_max_nnodes("3") == (3, 3)


def double(number: int) -> int:
    print(os.environ["RANK"])
    if number < 0:
        raise ValueError(f"{number} is negative")
    return 2 * number + int(os.environ["RANK"])


def test_functions_as_ranks() -> None:
    config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0)
    assert elastic_launch(config, double)(4) == {0: 8, 1: 9}
    config.nproc_per_node = 1
    with pytest.raises(ChildFailedError, match="ValueError: -1 is negative") as raised:
        elastic_launch(config, double)(-1)
    assert raised.value.name == "double" and raised.value.failures.keys() <= {0, 1}


def test_recorded_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))

    @record
    def main(number: int) -> float:
        return 1 / number

    assert main(4) == 0.25 and not file.exists()
    with pytest.raises(ZeroDivisionError):
        main(0)
    data = json.loads(file.read_text())
    assert data["message"]["message"] == "ZeroDivisionError: division by zero"
    assert "return 1 / number" in data["message"]["extraInfo"]["py_callstack"]
    failure = ProcessFailure(local_rank=1, pid=99, exitcode=1, error_file=str(file))
    later = ProcessFailure(local_rank=0, pid=98, exitcode=-9, error_file="nowhere")
    later.timestamp = failure.timestamp + 1
    assert later.message == "Signal 9 (SIGKILL) received by PID 98" and failure.signal_name() == "<N/A>"
    error = ChildFailedError("train.py", {0: later, 1: failure})
    assert error.get_first_failure() == (1, failure)
    text = str(error)
    assert (
        text.index("(SIGKILL)") < text.index("Root Cause (first observed failure):") < text.index("ZeroDivisionError")
    )
    with pytest.raises(AssertionError):
        ChildFailedError("train.py", {})


def test_streams_of_ranks() -> None:
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    with pytest.raises(ValueError, match="does not match"):
        Std.from_str("x")


def test_process_group_of_one_rank(folder: Path, launch: Launch) -> None:
    text = (
        "import torch.distributed as dist\ndist.init_process_group()\nprint(dist.get_rank(), dist.get_world_size())\n"
    )
    code, out, err = launch("--master-port", "0", program(folder, text))
    assert (code, out) == (0, "0 1\n"), err


def test_launchers_of_two_nodes_restart_together(folder: Path) -> None:
    """The second node has more ranks; its last one fails, and the first node's launcher restarts its own as well."""
    text = """
import torch, torch.distributed as dist
dist.init_process_group()
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
total = torch.tensor(rank)
dist.all_reduce(total)
names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE")
print(attempt, rank, dist.get_world_size(), total.item(), *(os.environ[each] for each in names))
note(f"{rank}of{attempt}")
if attempt == "0":
    while not (os.path.exists("0of0.pid") and os.path.exists("1of0.pid")):
        time.sleep(0.02)
    if rank == 2:
        raise ValueError("only the first time")
    time.sleep(60)
dist.destroy_process_group()
"""
    pytest.importorskip("mpi4py")
    port = str(unused_port())
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "job"]
    launchers = []
    for ranks in "12":
        options = ["--nnodes", "2", "--nproc-per-node", ranks, "--max-restarts", "1", *meeting]
        launchers.append(Started(folder, "launch", *options, program(folder, NOTE + text)))
        until(lambda: accepts(int(port)))  # the first that comes is node 0
    ended = [each.wait() for each in launchers]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert sorted("".join(out for _, out, _ in ended).splitlines()) == [
        f"{attempt} {place}" for attempt in "01" for place in ("0 3 3 0 1 0 2", "1 3 3 0 2 1 2", "2 3 3 1 2 1 2")
    ]
    for _, _, err in ended:
        assert "rank 2 (process " in err and "all ranks start again (restart 1 of 1)" in err
        assert "ValueError: only the first time" in err


def accepts(port: int) -> bool:
    """Whether a server on this machine accepts connections at ``port``."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_launchers_of_two_nodes_end_together(folder: Path) -> None:
    text = """
note(f"ready{rank}")
while not os.path.exists("ready0.pid"):
    time.sleep(0.02)
if sys.argv[1] == "exit" and rank == 1:
    sys.exit(5)
time.sleep(60)
"""
    for how in ("exit", "signal"):
        for each in folder.glob("ready*"):
            each.unlink()
        port = str(unused_port())
        options = ["--nnodes", "2", "--master-port", port, "--node-rank"]
        launchers = [Started(folder, "launch", *options, node, program(folder, NOTE + text), how) for node in "01"]
        if how == "signal":
            until(lambda: all((folder / f"ready{each}.pid").exists() for each in (0, 1)))
            launchers[1].process.kill()  # the first node's launcher learns of it as its own rank cannot
            launchers[1].wait()
            launchers[0].process.terminate()
            code, _, err = launchers[0].wait(20)
            assert code == 1 and "SIGTERM; the ranks are ended" in err
            continue
        for code, _, err in [each.wait() for each in launchers]:
            assert code == 1 and "rank      : 1 (local_rank: 0)" in err and "exitcode  : 5 " in err


def test_launchers_that_do_not_fit_together(folder: Path) -> None:
    port = str(unused_port())
    start = ["launch", "--nnodes", "2", "--master-port", port, "--rdzv-conf", "join_timeout=4", "--node-rank"]
    launchers = [Started(folder, *start, "0", program(folder, "pass"))]
    until(lambda: accepts(int(port)))
    launchers += [Started(folder, *start[:-3], "--node-rank", "3", "program.py")]
    code, _, err = launchers[1].wait()
    assert code == 1 and "--node-rank is 3, but --nnodes is 2" in err
    code, _, err = launchers[0].wait()
    assert code == 1 and f"after 4 s, node 1 of 2 nodes had not come to 127.0.0.1:{port}" in err


def test_ranks_that_end_while_the_launcher_looks(tmp_path: Path) -> None:
    """Exit codes are added by threads while the launcher collects failures and the running ranks."""

    class Codes(dict[int, int]):
        """Dictionary to which each look-up adds a number, as another thread might."""

        def __contains__(self, key: object) -> bool:
            self[-1 - len(self)] = 0
            return super().__contains__(key)

        def copy(self) -> dict[int, int]:
            return {0: 3}

        def items(self) -> Any:
            raise AssertionError("iterated over")

        keys = __iter__ = items

    processes = Processes(SimpleQueue(), str(tmp_path), Console())
    processes.processes = [SimpleNamespace(pid=1)] * 3
    processes.codes = Codes({0: 3})
    processes.times[0] = 1.0
    assert processes.running() == {1, 2}
    assert [(rank, each.exitcode) for rank, each in processes.failures(first_rank=4).items()] == [(4, 3)]
