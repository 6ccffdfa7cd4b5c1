"""The profiler: compared with PyTorch's output, and without side effects during and after profiling."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.core import devices, engine
from retrograd.core.graph import AccumulateGrad
from retrograd.dispatch.intercept import HANDLERS
from retrograd.dispatch.op import ARRAYS
from retrograd.profiler import ProfilerActivity, profile, record_function, recorder
from retrograd.profiler.events import FunctionEvent, FunctionEventAvg
from retrograd.runtime.lazy_functions import UNWRITTEN, is_generated
from retrograd.runtime.timed_functions import PROFILED
from tests.conformance.golden import load
from tests.conformance.profiler_cases import (
    MISTAKES,
    OPTIONS,
    OWN,
    PROGRAMS,
    SCHEDULES,
    SHOWN,
    error_of,
    outline_of_program,
    run,
    schedule_run,
    shown,
)

RECORDED = load("profiler")


# --- Against PyTorch ------------------------------------------------------------------------------------------------


def test_everything_is_recorded() -> None:
    assert PROGRAMS.keys() == RECORDED["programs"].keys() and set(SHOWN) == RECORDED["shown"].keys()
    assert {*SCHEDULES, *OWN} == RECORDED["schedules"].keys() and set(MISTAKES) == RECORDED["mistakes"].keys()


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_match_pytorch(name: str) -> None:
    assert outline_of_program(torch, PROGRAMS[name]) == RECORDED["programs"][name]


@pytest.mark.parametrize("call", SHOWN)
def test_tables_match_pytorch_exactly(call: str) -> None:
    assert [shown(torch, call, *each) for each in OPTIONS] == RECORDED["shown"][call]


@pytest.mark.parametrize("schedule", [*SCHEDULES, *OWN])
def test_schedules_match_pytorch(schedule: str) -> None:
    assert json.loads(json.dumps(schedule_run(torch, schedule))) == RECORDED["schedules"][schedule]


@pytest.mark.parametrize("call", MISTAKES)
def test_errors_match_pytorch(call: str) -> None:
    assert error_of(torch, call) == RECORDED["mistakes"][call]


# --- No side effects -------------------------------------------------------------------------------------------


def codes() -> list[Any]:
    """Return the code of functions of every kind, the kernels in rule namespaces, and the registered handlers."""
    gc.collect()  # deletes leaves with hooks of earlier tests, which resets AccumulateGrad.hooked
    functions: list[Any] = [
        each for each in (*vars(torch).values(), *vars(torch.Tensor).values()) if is_generated(each)
    ]
    functions += [*PROFILED, torch.Tensor.detach, engine.run_backward, engine._apply, engine.Plan.__init__]
    written = [each.__code__ for each in functions if each.__code__.co_filename != UNWRITTEN]
    return [*written, dict(ARRAYS.__dict__), AccumulateGrad.hooked, list(HANDLERS), list(engine.observers)]


def assert_at_rest(before: list[Any]) -> None:
    after = codes()
    assert not recorder.sessions and not HANDLERS and not engine.observers and not recorder._kernels.running
    assert after[-4:] == before[-4:] and {*before[:-4]} <= {*after[:-4]}


def result() -> Any:
    """Return numbers, node names and random numbers of a small program."""
    torch.manual_seed(3)
    x = torch.rand(3, 4, requires_grad=True)
    y = torch.nn.functional.dropout((x @ x.t()).exp() + x.sum(), 0.5)
    y[0] = x[0, :3] * 2
    (y * y).mean().backward()
    assert x.grad is not None
    return x.grad.tolist(), y.tolist(), str(y), type(y.grad_fn), torch.rand(2).tolist()


def test_profiling_does_not_change_results() -> None:
    plain = result()
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        assert result() == plain
    assert result() == plain


def test_profilers_leave_functions_unchanged() -> None:
    result()
    before = codes()
    with profile() as first:
        with profile():
            result()
        assert recorder.sessions and codes()[:-4] == before[:-4]
    assert_at_rest(before)
    assert len(first.events()) > 20


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_errors_and_interrupts_restore_state(kind: type[BaseException]) -> None:
    result()
    before = codes()
    x = torch.ones(2, requires_grad=True)

    class Interrupted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise kind("now")

    with pytest.raises(kind), profile() as p, record_function("block"):
        Interrupted.apply(x).sum().backward()
    assert_at_rest(before)
    by_name = {event.name: event for event in p.events()}
    assert by_name["InterruptedBackward"].cpu_parent.cpu_parent is by_name["block"]
    assert all(event.time_range.elapsed_us() >= 0 for event in p.events())
    with profile() as p:
        x * 2
    assert [event.name for event in p.events()] == ["aten::mul"]


def test_interrupted_start_restores_state(monkeypatch: pytest.MonkeyPatch) -> None:
    result()
    before = codes()

    def interrupt(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder, "_timed_kernel", interrupt)
    with pytest.raises(KeyboardInterrupt):
        profile().start()
    assert_at_rest(before)


def test_profiling_does_not_change_errors() -> None:
    x = torch.ones(2, requires_grad=True)
    calls = [
        lambda: torch.add(x, "a"),
        lambda: x.sum(dimension=1),
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        lambda: x.reshape(7),
        lambda: torch.nn.functional.linear(x, input=1),
        lambda: (x * 2).backward(),
        lambda: torch.softmax(x),
    ]
    for call in calls:
        with pytest.raises(Exception) as plain:
            call()
        with profile(), pytest.raises(type(plain.value)) as said:
            call()
        assert str(said.value) == str(plain.value)


def test_a_function_that_is_first_called_while_a_profiler_runs() -> None:
    made: Any = torch.special.gammaln
    with profile() as p:
        made(torch.ones(2))
        made(torch.ones(2))
    assert [event.name for event in p.events()] == ["aten::ones", "aten::special_gammaln"] * 2
    assert made.__code__.co_filename != UNWRITTEN
    made(torch.ones(2))


def test_profiler_is_per_thread() -> None:
    x = torch.ones(3)
    names: dict[str, list[str]] = {}

    def own() -> None:
        with profile() as inner:
            x.exp()
        names["own"] = [event.name for event in inner.events()]

    def unwatched() -> None:
        with record_function("not seen"):
            names["result"] = x.cos().tolist()

    with profile() as p:
        for target in (own, unwatched):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        x.sin()
    assert [event.name for event in p.events()] == ["aten::sin"]
    assert names["own"] == ["aten::exp"] and len(names["result"]) == 3


def test_nested_profilers_record_their_own_block() -> None:
    x = torch.ones(2)
    with profile() as outer:
        x.exp()
        with record_function("block"), profile(profile_memory=True) as inner:
            x.sin()
        x.cos()
    assert [event.name for event in outer.events()] == ["aten::exp", "block", "aten::sin", "aten::cos"]
    assert [event.name for event in inner.events() if event.name != "[memory]"] == ["aten::sin"]
    assert inner.events()[0].cpu_parent is None


# --- Output --------------------------------------------------------------------------------------------------


def test_times_add_up() -> None:
    p = run(torch, PROGRAMS["a classifier"])
    events = p.events()
    for event in events:
        assert event.cpu_time_total >= sum(child.cpu_time_total for child in event.cpu_children) - 1e-6
        if event.cpu_parent is not None:
            assert event.cpu_parent.time_range.start <= event.time_range.start
            assert event.time_range.end <= event.cpu_parent.time_range.end + 1e-6
    top = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(top)
    assert p.key_averages().self_cpu_time_total == pytest.approx(top)
    counts = {event.key: event.count for event in p.key_averages()}
    assert counts["aten::linear"] == counts["aten::addmm"] == 2
    assert isinstance(events[0], FunctionEvent) and isinstance(p.key_averages()[0], FunctionEventAvg)


def test_memory_is_counted_at_allocation_and_free() -> None:
    with profile(profile_memory=True) as p:
        x = torch.zeros(100)
        with record_function("block"):
            y = (x + 1).exp()
            z = y[10:]
        x.mul_(2)
        del y, z
        torch.zeros(3)
    by_name = {event.name: event for event in p.events()}
    assert by_name["aten::zeros"].cpu_memory_usage == 12  # the last of this name
    assert by_name["aten::add"].self_cpu_memory_usage == by_name["aten::exp"].self_cpu_memory_usage == 400
    assert by_name["block"].cpu_memory_usage == 400 and by_name["block"].self_cpu_memory_usage == -400
    assert by_name["aten::slice"].cpu_memory_usage == by_name["aten::mul_"].cpu_memory_usage == 0
    assert [event.cpu_memory_usage for event in p.events() if event.name == "[memory]"] == [-400, -12]
    assert "400 B" in p.key_averages().table(sort_by="self_cpu_memory_usage")


def test_memory_of_a_training_step_balances() -> None:
    layer = torch.nn.Linear(4, 3)
    x = torch.ones(2, 4)
    layer(x).sum().backward()
    with profile(profile_memory=True) as p:
        layer(x).sum().backward()
    total = sum(event.self_cpu_memory_usage for event in p.events())
    assert total == 0
    assert sum(event.self_cpu_memory_usage for event in p.events() if event.self_cpu_memory_usage > 0) > 60


def test_group_by_input_shape() -> None:
    with profile(record_shapes=True) as p:
        for size in (2, 3, 3):
            torch.ones(size, 4) * torch.ones(4)
        torch.cat([torch.ones(1), torch.ones(2)])
    found = {str(e.input_shapes): e.count for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::mul"}
    assert found == {"[[2, 4], [4]]": 1, "[[3, 4], [4]]": 2}
    cat = next(event for event in p.events() if event.name == "aten::cat")
    assert cat.input_shapes == [[], []] and cat.structured_input_shapes == [[[1], [2]], []]
    assert next(e for e in p.key_averages() if e.key == "aten::mul").input_shapes == ""


def test_stacks_of_operations_and_their_derivatives() -> None:
    def calculate(x: Any) -> Any:
        return (x * x).sum()

    x = torch.ones(2, requires_grad=True)
    with profile(with_stack=True) as p:
        calculate(x).backward()
    line = calculate.__code__.co_firstlineno + 1
    by_name = {event.name: event for event in p.events()}
    assert by_name["aten::mul"].stack[0] == f"{__file__}({line}): calculate"
    assert "test_stacks_of" in by_name["aten::mul"].stack[1]
    assert by_name["MulBackward0"].stack == by_name["aten::mul"].stack
    assert f"({line}): calculate" in p.key_averages(group_by_stack_n=2).table()


def test_stacks_name_lines_of_a_file_beside_the_package() -> None:
    file = f"{os.path.dirname(torch.__file__)}_program.py"
    space: dict[str, Any] = {"torch": torch}
    exec(compile("def calculate(x):\n    return x * x\n", file, "exec"), space)
    with profile(with_stack=True) as p:
        space["calculate"](torch.ones(2))
    assert next(each for each in p.events() if each.name == "aten::mul").stack[0] == f"{file}(2): calculate"


def test_stacks_for_flame_graphs(tmp_path: Path) -> None:
    with profile(with_stack=True) as p:
        torch.ones(500, 500) @ torch.ones(500, 500)
    p.export_stacks(str(tmp_path / "stacks"))
    *names, _ = (tmp_path / "stacks").read_text().splitlines()[-1].rpartition(" ")[0].split(";")
    assert names and all(" " not in name for name in names)


def test_operations_are_linked_to_their_derivatives(tmp_path: Path) -> None:
    p = run(torch, PROGRAMS["a product of matrices"], record_shapes=True, profile_memory=True, with_stack=True)
    by_name = {event.name: event for event in reversed(p.events())}  # the first of each name
    assert by_name["aten::mm"].sequence_nr == by_name["MmBackward0"].sequence_nr >= 0
    assert by_name["MmBackward0"].scope == 1 and by_name["MmBackward0"].fwd_thread == 1
    p.add_metadata("note", 'said "so"')
    p.add_metadata_json("number", "[1, 2]")
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["note"] == 'said "so"' and trace["number"] == [1, 2] and trace["record_shapes"] == 1
    found = [each for each in trace["traceEvents"] if each["ph"] == "X" and each.get("cat") == "cpu_op"]
    assert {each["name"] for each in found} >= {"aten::matmul", "MmBackward0"}
    assert next(each for each in found if each["name"] == "aten::mm")["args"]["Input Dims"] == [[3, 4], [4, 4]]
    starts = {each["id"]: each["ts"] for each in trace["traceEvents"] if each["ph"] == "s"}
    ends = {each["id"]: each["ts"] for each in trace["traceEvents"] if each["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == 3 and all(starts[each] < ends[each] for each in starts)
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        assert len(json.load(file)["traceEvents"]) == len(trace["traceEvents"])


def test_floating_point_operations_are_counted() -> None:
    with profile(with_flops=True) as p:
        a, b = torch.ones(3, 4), torch.ones(4, 5)
        a @ b
        torch.ones(2, 3, 4) @ torch.ones(2, 4, 5)
        torch.nn.functional.linear(a, torch.ones(6, 4), torch.ones(6))
        a * a + 1
        torch.nn.functional.conv2d(torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3), stride=2, padding=1)
    flops = {event.key: event.flops for event in p.key_averages() if event.flops}
    assert flops == {"aten::mm": 120, "aten::bmm": 240, "aten::addmm": 144, "aten::mul": 12, "aten::add": 12,
                     "aten::conv2d": 2 * 2 * 4 * 4 * 4 * 27}  # fmt: skip


def test_gpu_time_is_measured_by_events(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mark:
        """Fake CUDA event: each is recorded a millisecond after the one before."""

        passed = 0

        def record(self) -> None:
            Mark.passed += 1
            self.at = Mark.passed

    device = types.SimpleNamespace(synchronize=lambda: None)
    cuda = types.SimpleNamespace(Event=Mark, Device=lambda: device, get_elapsed_time=lambda a, b: b.at - a.at)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    monkeypatch.setattr(devices, "gpu_count", lambda: 1)
    x = torch.ones(2)
    with profile() as p, record_function("block"):
        x.exp()
        x.sin()
    by_name = {event.name: event for event in p.events()}
    assert by_name["block"].device_time_total == 5000 and by_name["block"].self_device_time_total == 3000
    assert by_name["aten::exp"].self_device_time_total == 1000
    table = p.key_averages().table(sort_by="cuda_time_total")
    assert "Self CUDA %    CUDA total  CUDA time avg" in table and "CUDA time total: 5.000ms" in table


def test_traces_for_tensorboard(tmp_path: Path) -> None:
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "log"), "me", use_gzip=True)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=handler) as p:
        for _ in range(5):
            torch.ones(2).exp()
            p.step()
    files = sorted((tmp_path / "log").iterdir())
    assert len(files) == 2 and all(
        each.name.startswith("me.") and each.name.endswith(".pt.trace.json.gz") for each in files
    )


def test_acc_events_keeps_all_cycles() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    for keep, count in ((False, 1), (True, 2)):
        with profile(schedule=plan, acc_events=keep) as p:
            for _ in range(4):
                torch.ones(2).exp()
                p.step()
        assert sum(event.name == "aten::exp" for event in p.events()) == count


def test_nothing_is_recorded_while_collection_is_toggled_off() -> None:
    x = torch.ones(2)
    with profile() as p:
        p.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x.exp()
        p.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        x.sin()
    assert [event.name for event in p.events()] == ["aten::sin"]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_hooks_and_anomaly_detection_while_profiling() -> None:
    seen: list[str] = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("leaf"))
    with profile(profile_memory=True), torch.autograd.detect_anomaly(check_nan=True):
        (x * 2).sum().backward()
        with (
            pytest.raises(RuntimeError, match="returned nan values"),
            pytest.warns(UserWarning, match="Error detected"),
        ):
            (x.sub(1).sqrt() * 0).sum().backward()
    assert seen == ["tensor", "leaf"] and AccumulateGrad.hooked is True


class Doubling(torch.overrides.TorchFunctionMode):
    """Mode that doubles every product."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.Tensor.mul else out


def test_modes_while_profiling_in_any_order() -> None:
    x = torch.tensor(3.0)
    result()
    before = codes()
    with profile() as p, Doubling():
        assert x * x == 18
        x.exp()
    assert x * x == 9 and x.mul(x) == 9
    assert_at_rest(before)
    with Doubling():
        with profile() as inside:
            assert x.mul(x) == 18
        assert x.mul(x) == 18
    assert x.mul(x) == 9
    assert_at_rest(before)
    mode, other = Doubling(), profile()
    mode.__enter__()
    other.start()
    assert x.mul(x) == 18
    mode.__exit__(None, None, None)
    assert x.mul(x) == 9
    other.stop()
    assert_at_rest(before)
    other.start()
    mode.__enter__()
    other.stop()
    assert x.mul(x) == 18
    mode.__exit__(None, None, None)
    assert x.mul(x) == 9
    assert_at_rest(before)
    assert "aten::exp" in [event.name for event in p.events()]
    assert "aten::mul" in [event.name for event in inside.events()]


def alone(code: str) -> str:
    """Return the output of a program in a new process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_modules_imported_while_profiling() -> None:
    code = """
import retrograd as torch
with torch.profiler.profile() as p:
    x = torch.eye(2, requires_grad=True)
    torch.fft.fft(torch.linalg.det(torch.nn.functional.relu(x))[None])
    torch.special.erf(x)
    optimizer = torch.optim.SGD([x], lr=1.0)
    x.grad = x.detach()
    optimizer.step()
    optimizer.zero_grad()
print(*[event.name for event in p.events() if event.cpu_parent is None])
"""
    names = ["eye", "relu", "linalg_det", "unsqueeze", "fft_fft", "special_erf", "detach"]
    own = ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]
    assert alone(code).split() == [*("aten::" + each for each in names), *own]


def test_importing_the_package_does_not_import_the_profiler() -> None:
    code = "import sys, retrograd; print([m for m in sys.modules if 'profil' in m and m.startswith('retrograd')])"
    assert alone(code) == "[]"
