"""Tracebacks: the user's line and at most one frame of the package, unless user code runs below it."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.runtime import user_frame
from retrograd.runtime.user_frame import MARK
from tests.conformance.error_cases import SOURCES, calls, failure, inputs

# All calls but those whose error passes through another library.
TOPICS = {
    topic: [each.removeprefix("~ ") for each in lines if "copy.deepcopy" not in each]
    for topic, lines in calls(
        SOURCES[:1]
    ).items()  # functions of failing_calls_of_classes.txt are written in Python in PyTorch too, which shows their frames
}


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("RETROGRAD_TRACEBACK")
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def below_the_program(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames below the program's last one."""
    frames = traceback.extract_tb(error.__traceback__)
    last = max(index for index, each in enumerate(frames) if each.filename == "<string>")
    return list(frames[last + 1 :])


@pytest.mark.parametrize("topic", TOPICS)
def test_one_frame_of_the_package_is_shown(topic: str) -> None:
    long = []
    for call in TOPICS[topic]:
        error = failure(torch, call, inputs(torch))
        if error is not None and len(below_the_program(error)) > 1:
            long.append(call)
        if error is not None and error.__context__ is not None and not error.__suppress_context__:
            long.append(f"{call}: during the handling of {error.__context__!r}")
    assert long == []


@pytest.mark.parametrize("call", ["torch.cat([x], 9)", "x + v[:2]", "x.sum(7)", "torch.exp('a')", "x.add_(m)", "x[9]"])
@pytest.mark.parametrize("before", [0, 1])
def test_frame_has_the_functions_name(call: str, before: int) -> None:
    for _ in range(before):  # the first call is of another function
        failure(torch, call, inputs(torch))
    error = failure(torch, call, inputs(torch))
    assert error is not None
    (shown,) = below_the_program(error)
    assert shown.name in ("cat", "add", "__add__", "sum", "exp", "add_", "__getitem__")
    assert shown.line is not None and "RETROGRAD_TRACEBACK=full" in shown.line


def test_errors_of_user_callbacks_show_all_frames() -> None:
    def hook(grad: Any) -> None:
        raise ValueError("of the program's own")

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(ValueError, match="own") as seen:
        x.sum().backward()
    names = [each.name for each in seen.traceback]
    assert names[-1] == "hook" and any("_run" in each for each in names)


def test_errors_of_user_functions_keep_their_context() -> None:
    class Careful(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            try:
                return {}[0]
            except KeyError:
                raise RuntimeError("not found")  # noqa: B904 - the implicit cause is tested here

    with pytest.raises(RuntimeError, match="not found") as seen:
        Careful.apply(torch.ones(1))
    assert isinstance(seen.value.__context__, KeyError) and not seen.value.__suppress_context__


def test_errors_do_not_keep_frames_alive() -> None:
    import gc
    import weakref

    def fail(call: Any) -> Any:
        x = torch.ones(2, 3)
        try:
            call(x)
        except (IndexError, TypeError):
            return weakref.ref(x)
        return None

    gc.collect()
    gc.disable()
    try:
        assert fail(lambda x: torch.cat([x, x], 9))() is None
        assert fail(lambda x: torch.nn.functional.cross_entropy(x, x, foo=1))() is None
        assert fail(lambda x: torch.nn.functional.relu(x, foo=1))() is None
    finally:
        gc.enable()


def test_full_tracebacks_by_setting() -> None:
    program = "import retrograd as torch\ntorch.ones(2, 3).sum(7)"
    seen = {}
    for setting in ("", "full"):
        env = {**os.environ, "RETROGRAD_TRACEBACK": setting}
        found = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
        assert found.stderr.splitlines()[-1].startswith("IndexError: Dimension out of range")
        seen[setting] = found.stderr.count("File ")
    assert seen[""] == 2 < 4 < seen["full"]


def test_frames_of_the_package_are_recognised() -> None:
    assert MARK in vars(sys.modules["retrograd.dispatch.generic_path"]) and MARK not in globals()


INTERRUPT = """
def interrupt(frame, event, argument):
    left[0] -= 1
    if left[0] == 0:
        raise KeyboardInterrupt
"""


def interrupted(at: int, work: Any) -> KeyboardInterrupt | None:
    """Run ``work`` and raise KeyboardInterrupt at its function call number ``at``; return the exception, if raised."""
    space: dict[str, Any] = {MARK: True, "left": [at]}  # the signal handler of Ctrl-C has no frame, that of the package
    exec(INTERRUPT, space)
    sys.settrace(space["interrupt"])
    try:
        work()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None


@pytest.mark.parametrize("call", ["torch.cov(m)", "torch.cdist(m, m)", "x.sum().backward()"])
def test_an_interrupt_shows_no_kernel(call: str) -> None:
    space = {"torch": torch, "x": torch.randn(64, requires_grad=True), "m": torch.randn(8, 8)}
    program = compile(call, "<string>", "eval")
    eval(program, space)
    count = 0
    for at in range(2, 200):
        error = interrupted(at, lambda: eval(program, space))
        if error is None:
            break
        assert len(below_the_program(error)) <= 2, (at, below_the_program(error))
        count += 1
    assert count > 5


def test_code_that_is_freed_when_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of modules are None by then, and an exception of a weak reference's callback would be printed."""
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    space: dict[str, Any] = {"read": user_frame.expression, "sys": sys}
    exec(compile("def f():\n    return read(sys._getframe())", "<string>", "exec"), space)
    space["f"]()
    monkeypatch.setattr(user_frame, "expressions", None)
    space.clear()
    gc.collect()
    assert raised == []


def test_pytest_does_not_show_frames_of_assert_close(tmp_path: Path) -> None:
    program = """
import retrograd as torch

def test_close():
    torch.testing.assert_close({"a": [torch.ones(2)]}, {"a": [torch.zeros(2)]})

def check(x):
    torch.testing.assert_allclose(x, torch.zeros(2))

def test_all_close():
    check(torch.ones(2))

def test_wrong_type():
    torch.testing.assert_close(1, "1")
"""
    (tmp_path / "test_program.py").write_text(program)
    source = str(Path(torch.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_program.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    shown = [line.split(":")[:2] for line in done.stdout.splitlines() if re.match(r"\S+\.py:\d+:", line)]
    assert shown[:3] == [["test_program.py", "5"], ["test_program.py", "11"], ["test_program.py", "8"]], done.stdout
    assert "The failure occurred for item ['a'][0]" in done.stdout and "Mismatched elements: 2 / 2" in done.stdout
    assert "raise AssertionError" not in done.stdout and shown[3] == ["test_program.py", "14"]
