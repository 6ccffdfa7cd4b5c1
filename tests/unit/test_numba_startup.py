"""The decision when Numba's loops are used, and the change from NumPy to loops between forward and backward."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import warmup
from retrograd.kernels import numba_startup
from retrograd.kernels.numba_startup import STARTUP, WORK, Startup
from retrograd.nn import functional as F
from tests import ROOT
from tests.loops import use_loops

needs_numba = pytest.mark.skipif(not numba_startup.permitted(), reason="needs Numba")


@pytest.fixture
def startup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Startup:
    """Return a new state for the default rule, with an empty folder for the loops; no process is started."""
    monkeypatch.delenv("RETROGRAD_FAST", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    started: list[int] = []
    monkeypatch.setattr(numba_startup, "start_compiler", lambda: started.append(1))
    monkeypatch.setattr(numba_startup, "INTERVAL", 0.0)
    monkeypatch.setattr(numba_startup, "started", started, raising=False)
    return Startup()


@needs_numba
def test_loops_are_used_after_the_work_that_repays_them_if_they_are_compiled(startup: Startup) -> None:
    numba_startup.note_compiled(torch.get_num_threads())
    assert not startup.asked(WORK)  # the first call reads the environment
    assert not startup.asked(WORK - 1)
    assert startup.asked(1) and startup.ready
    assert numba_startup.started == []


@needs_numba
def test_loops_that_are_not_compiled_are_compiled_by_another_process(startup: Startup) -> None:
    startup.asked(0)
    assert not any(startup.asked(WORK) for _ in range(3))
    assert numba_startup.started == [1]
    numba_startup.note_compiled(torch.get_num_threads())
    assert startup.asked(1)


@needs_numba
def test_a_user_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setattr(numba_startup, "FOLDER", tmp_path / "numba")
    assert numba_startup.folder() == tmp_path / "numba" / "__pycache__"
    numba_startup.note_compiled(1)
    assert numba_startup.is_compiled(1)


@needs_numba
def test_the_command_says_that_no_folder_is_writable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("RETROGRAD_FAST", "1")  # restored afterwards
    monkeypatch.setattr(warmup, "_programs", lambda: iter(()))
    assert warmup.command() == 1
    assert str(tmp_path / "file") in capsys.readouterr().err


@needs_numba
def test_deterministic_algorithms_do_not_change_to_loops(startup: Startup) -> None:
    startup.deterministic = True
    startup.asked(0)
    assert not startup.asked(WORK)
    numba_startup.note_compiled(torch.get_num_threads())
    assert not startup.asked(WORK) and numba_startup.started == []


def test_the_setting_reaches_the_decision() -> None:
    torch.use_deterministic_algorithms(True)
    assert STARTUP.deterministic
    torch.use_deterministic_algorithms(False)
    assert not STARTUP.deterministic


@pytest.mark.parametrize(("rule", "ready"), [("0", False), ("1", numba_startup.permitted())])
def test_the_environment_variable_decides(startup: Startup, monkeypatch: Any, rule: str, ready: bool) -> None:
    monkeypatch.setenv("RETROGRAD_FAST", rule)
    assert startup.asked(1) is ready
    assert (startup.ready or startup.asked(WORK)) is ready
    assert numba_startup.started == []


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread, for which the loops compile faster."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _x(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32).requires_grad_()


CASES: dict[str, Callable[[Any], Any]] = {
    "conv2d": lambda x: F.conv2d(x.reshape(8, 8, 32, 32), torch.ones(8, 8, 3, 3, dtype=x.dtype).tril() / 7, padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x.reshape(8, 8, 32, 32), 2),
    "max_pool2d of conv2d": lambda x: F.max_pool2d(
        F.conv2d(x.reshape(8, 8, 32, 32), torch.ones(4, 8, 3, 3, dtype=x.dtype).tril()), 2
    ),
    "softmax": lambda x: x.reshape(512, 128).softmax(-1),
    "log_softmax": lambda x: x.reshape(64, 8, 128).log_softmax(1),
    "layer_norm": lambda x: F.layer_norm(x.reshape(512, 128), (128,)),
    "batch_norm": lambda x: F.batch_norm(x.reshape(8, 8, 32, 32), None, None, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(*x.reshape(4, 4, 64, 64).chunk(2, -1), x.reshape(4, 4, 64, 64)),
    "embedding": lambda x: F.embedding(torch.arange(2048) % 500, x.reshape(1024, 64)),
    "cross_entropy": lambda x: F.cross_entropy(x.reshape(512, 128), torch.arange(512) % 128),
    "cumsum": lambda x: x.reshape(512, 128).cumsum(0),
    "max": lambda x: x.reshape(512, 128).max(1).values,
    "gelu": lambda x: F.gelu(x) * x.exp().tanh() + x.sigmoid(),
    "index_select": lambda x: x.reshape(1024, 64).index_select(0, torch.arange(4096) % 1000),
    "interpolate": lambda x: F.interpolate(x.reshape(8, 8, 32, 32), scale_factor=2.0, mode="bilinear"),
    "std": lambda x: x.reshape(512, 128).std(0) * x.reshape(512, 128).var(1)[:, None],
}  # fmt: skip


@needs_numba
@pytest.mark.parametrize("name", CASES)
def test_loops_may_begin_between_forward_and_backward(
    name: str, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    def gradient(forward: bool, backward: bool) -> tuple[Any, Any]:
        x = _x(65536)
        use_loops(monkeypatch, forward)
        y = CASES[name](x)
        weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
        use_loops(monkeypatch, backward)
        (y * weight).sum().backward()
        return y.detach(), x.grad

    expected = gradient(False, False)
    for pair in ((False, True), (True, False), (True, True)):
        for found, wanted in zip(gradient(*pair), expected, strict=True):
            assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-4), pair


@needs_numba
def test_only_one_process_compiles(tmp_path: Path) -> None:
    (tmp_path / "compiling.lock").write_text(str(os.getpid()))
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(
        [sys.executable, "-c", "from retrograd.warmup import in_background; in_background()"], env=variables, check=True
    )
    assert [each.name for each in tmp_path.iterdir()] == ["compiling.lock"]


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="needs Linux")
def test_the_process_in_the_background_has_the_lowest_priority(tmp_path: Path) -> None:
    program = (
        "import os; from retrograd import warmup\n"
        "warmup.compile_loops = lambda report: print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))\n"
        "warmup.in_background()"
    )
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=variables)
    assert found.stdout.split() == ["19", str(os.SCHED_IDLE)]


class _Started:
    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        STARTED.append(self)

    def wait(self, timeout: float) -> int:
        return 0


STARTED: list[_Started] = []


def test_the_process_in_the_background_stays_in_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", _Started)
    STARTED.clear()
    numba_startup.start_compiler()
    assert "start_new_session" not in STARTED[0].options and STARTED[0].options["env"]["RETROGRAD_FAST"] == "1"
    assert "-P" in STARTED[0].command
    for name, value in (("executable", "/usr/bin/uwsgi"), ("executable", None), ("frozen", True)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, value, raising=False)
            assert numba_startup.start_compiler() is None
    assert len(STARTED) == 1


@needs_numba
@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_the_process_in_the_background_is_no_child_and_imports_nothing_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "platform.py").write_text("raise SystemExit('imported from the current folder')")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "compiling.lock").write_text(str(os.getpid()))  # the process ends at once
    program = (
        "import os, sys; sys.path.remove(''); from retrograd.kernels import numba_startup\n"
        "numba_startup.start_compiler()\n"
        "try: print(os.wait())\n"
        "except ChildProcessError: print('no child')"
    )
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-X", "dev", "-c", program]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=variables, cwd=tmp_path)
    assert found.stdout == "no child\n" and "ResourceWarning" not in found.stderr


class _Writer:
    def write(self, text: str) -> None:
        raise AssertionError


@needs_numba
@pytest.mark.parametrize("broken", ["stderr", "metadata", "process"])
def test_an_operation_does_not_fail_whatever_the_system_refuses(
    startup: Startup, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise RuntimeError("refused")

    monkeypatch.undo()
    monkeypatch.setattr(subprocess, "Popen", refuse if broken == "process" else _Started)
    if broken == "stderr":
        monkeypatch.setattr(sys, "stderr", _Writer())
    if broken == "metadata":
        monkeypatch.setattr(numba_startup, "_key", refuse)
    startup.asked(0)
    startup.never, startup.ready = False, False
    monkeypatch.setattr(numba_startup, "is_compiled", refuse if broken == "metadata" else lambda threads: False)
    assert not startup.asked(WORK) and not startup.asked(WORK)


@needs_numba
def test_loops_are_compiled_in_place_if_they_cannot_be_kept(startup: Startup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull + "/no folder")
    assert numba_startup.folder() is None and not numba_startup.is_compiled(1)
    startup.asked(0)
    assert not startup.asked(WORK - 1) and startup.asked(1)
    assert numba_startup.started == []


@needs_numba
def test_deterministic_algorithms_after_the_start_of_the_compiler(startup: Startup) -> None:
    startup.asked(0)
    assert not startup.asked(WORK) and numba_startup.started == [1]
    startup.deterministic = True
    numba_startup.note_compiled(torch.get_num_threads())
    assert not startup.asked(1) and not startup.never
    startup.deterministic = False
    assert startup.asked(1)


@needs_numba
def test_ranks_decide_at_once(startup: Startup, monkeypatch: pytest.MonkeyPatch) -> None:
    startup.settle()
    assert startup.ready
    other = Startup()
    monkeypatch.setenv("RETROGRAD_FAST", "0")
    other.settle()
    assert not other.ready


@needs_numba
def test_the_lock_of_a_process_that_was_killed_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock = tmp_path / "compiling.lock"
    lock.write_text(str(ended.pid))
    if os.name == "posix":
        assert warmup.compiling_process() == 0 and warmup._lock() == lock
        assert lock.read_text() == str(os.getpid()) and warmup.compiling_process() == os.getpid()
    assert warmup._lock() is None
    os.utime(lock, (time.time() - 2 * warmup.STALE,) * 2)
    assert warmup.compiling_process() == 0 and warmup._lock() == lock
    lock.unlink()
    assert warmup.compiling_process() == 0


@needs_numba
def test_the_command_and_the_process_in_the_background_do_not_both_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RETROGRAD_FAST", "1")
    monkeypatch.setattr(warmup, "compile_loops", lambda report: pytest.fail("compiles"))
    (tmp_path / "compiling.lock").write_text(str(os.getpid()))
    assert warmup.command() == 0
    assert capsys.readouterr().out == f"retrograd: process {os.getpid()} is compiling the loops already\n"
    assert warmup.state() == f"being compiled by process {os.getpid()}"


@needs_numba
def test_the_command_keeps_what_is_compiled_before_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(torch: Any, dtype: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RETROGRAD_FAST", "1")
    monkeypatch.setattr(warmup, "_programs", lambda: iter([interrupted]))
    assert warmup.command() == 130
    out = capsys.readouterr().out
    assert "compiling loops: 1 of 4 (interrupted, float32, " in out and "are kept" in out
    assert not list(tmp_path.iterdir()) and warmup.state().startswith("not compiled")
    monkeypatch.setattr(warmup, "_programs", lambda: iter(()))
    assert warmup.command() == 0 and "stored" in capsys.readouterr().out and warmup.state() == "compiled"
