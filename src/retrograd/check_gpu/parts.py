"""Parts of ``retrograd check-gpu``. Each takes the :class:`Context` and writes one section of the report."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import pathlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import retrograd as torch
from retrograd.core import devices
from retrograd.cuda import synchronization
from retrograd.version import OWN

from .programs import PROGRAMS, Results
from .report import Report
from .steps import STEPS, gpt, timed


class Context(NamedTuple):
    """Options of the check: see ``check_gpu.parser``. ``deadline`` is a time of ``time.monotonic``."""

    match: str
    checkout: str | None
    deadline: float
    steps: int
    processes: int
    report: Report

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()


def device(context: Context) -> None:
    """Versions, and properties of the GPU."""
    gpu = devices.cupy()
    found = torch.cuda.get_device_properties()
    runtime = gpu.cuda.runtime
    free, total = torch.cuda.mem_get_info()
    context.report.table(
        ("", ""),
        [
            ("retrograd", OWN), ("CuPy", getattr(gpu, "__version__", "unknown")),
            ("CUDA driver, runtime", f"{runtime.driverGetVersion()}, {runtime.runtimeGetVersion()}"),
            ("GPUs", torch.cuda.device_count()), ("current GPU", found.name),
            ("compute capability", f"{found.major}.{found.minor}"),
            ("memory", f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} free"),
            ("multiprocessors", found.multi_processor_count),
        ],
    )  # fmt: skip
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    (x * x).sum().backward()
    if x.grad.tolist() != [0.0, 2.0, 4.0, 6.0]:
        context.report.fail("the gradient of a sum of squares", str(x.grad))


def _difference(found: Results, expected: Results, tolerance: float) -> str:
    """Return the first difference of two lists of results as text; "" if they agree."""
    if len(found) != len(expected):
        return f"{len(found)} results, {len(expected)} on the CPU"
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(one, str) or isinstance(other, str):
            same = one == other
        else:
            same = math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance) or (one != one and other != other)
        if not same:
            return f"result {place} is {one}, on the CPU {other}"
    return ""


def programs(context: Context) -> None:
    """Run each program on the CPU and on the GPU, and compare."""
    rows = []
    for name, program in PROGRAMS.items():
        if context.match not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = program.run("cpu")
            started = time.perf_counter()
            try:
                with synchronization.counted() as waits:
                    found = program.run("cuda")
                problem = _difference(found, expected, program.tolerance)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        rows.append(
            (name, "differs" if problem else "agrees", sum(waits.values()), f"{time.perf_counter() - started:.2f}")
        )
        if problem:
            context.report.fail(name, problem)
    context.report.table(("program", "result", "synchronisations", "seconds, the first time"), rows)


def streams(context: Context) -> None:
    """Streams, events, pinned memory, DLPack, statistics of memory."""
    cuda = torch.cuda

    def check(what: str, good: bool) -> None:
        context.report.line(f"- {what}: {'as expected' if good else 'differs'}")
        if not good:
            context.report.fail(what, "not as expected")

    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    x = torch.ones(1 << 20, device="cuda")
    start.record()
    for _ in range(10):
        x = x * 1.0
    end.record()
    end.synchronize()
    check(f"elapsed_time of 10 multiplications, {start.elapsed_time(end):.3f} ms", start.elapsed_time(end) > 0)
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x + 1
        y.record_stream(cuda.current_stream())
    cuda.current_stream().wait_stream(side)
    check("work of a second stream", y.sum().item() == 2 << 20)
    host = torch.arange(1 << 16, dtype=torch.float32).pin_memory()
    moved = host.to("cuda", non_blocking=True)
    back = (moved + 1).to("cpu", non_blocking=True)
    cuda.synchronize()
    check("copies from and to pinned memory", host.is_pinned() and torch.equal(back, host + 1))
    shared = torch.from_dlpack(devices.cupy().from_dlpack(moved))
    check("DLPack shares memory", shared.data_ptr() == moved.data_ptr())
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    z = torch.empty(1 << 20, device="cuda")
    del z
    check(
        "memory_allocated and max_memory_allocated",
        cuda.memory_allocated() == before and cuda.max_memory_allocated() == before + (4 << 20),
    )


# -- Step times and memory -----------------------------------------------------------------------------------------


def times(context: Context) -> None:
    """Measure training steps on the GPU and on the CPU, and count the synchronisations of a step."""
    rows, places = [], Counter[str]()
    for name, make in STEPS.items():
        if context.match not in name:
            continue
        try:
            torch.manual_seed(0)
            on_cpu = make(torch, "cpu")
            expected = on_cpu().item()
            torch.manual_seed(0)
            step = make(torch, "cuda")
            first, gpu = timed(torch, step, "cuda", min(5.0, context.left / 20))
            with synchronization.counted() as waits:
                step()
            places.update(waits)
            torch.manual_seed(0)
            loss = make(torch, "cuda")().item()
            _, cpu = timed(torch, on_cpu, "cpu", min(5.0, context.left / 20))
        except Exception as error:
            context.report.fail(name, f"{type(error).__name__}: {error}")
            continue
        if not math.isclose(loss, expected, rel_tol=1e-3):
            context.report.fail(name, f"the first loss is {loss}, on the CPU {expected}")
        rows.append((name, f"{first:.0f}", f"{gpu:.2f}", f"{cpu:.2f}", f"{cpu / gpu:.1f}", sum(waits.values())))
    context.report.table(
        ("training step", "first, ms (compiles kernels)", "GPU, ms", "CPU, ms", "CPU / GPU", "synchronisations"), rows
    )
    for place, count in places.most_common(10):
        context.report.line(f"- {count} synchronisations: `{place}`")


def memory(context: Context) -> None:
    """Train for some steps, and compare the memory in use after a tenth of them and after all."""
    torch.manual_seed(0)
    step = gpt(torch, "cuda")
    early = max(context.steps // 10, 1)
    used = []
    torch.cuda.reset_peak_memory_stats()
    for index in range(context.steps):
        step()
        if index + 1 in (early, context.steps):
            torch.cuda.synchronize()
            used.append((index + 1, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()))
        if context.left < 0:
            break
    context.report.table(
        ("steps", "allocated, MiB", "peak, MiB"),
        [(count, f"{now / 2**20:.2f}", f"{peak / 2**20:.2f}") for count, now, peak in used],
    )
    if len(used) > 1 and used[-1][1] > used[0][1] * 1.01:
        context.report.fail("memory", f"grew from {used[0][1]} to {used[-1][1]} bytes in use")


# -- Samples -----------------------------------------------------------------------------------------------------------


def _cases(checkout: str | None) -> Any:
    """Return the module of a checkout that compares samples, or None without a checkout."""
    package = pathlib.Path(torch.__file__).parent
    folders = [pathlib.Path(checkout)] if checkout else [package.parent.parent, pathlib.Path.cwd()]
    for folder in folders:
        if (folder / "tests" / "conformance" / "gpu_cases.py").is_file():
            sys.path.insert(0, str(folder))
            try:
                return importlib.import_module("tests.conformance.gpu_cases")
            finally:
                sys.path.remove(str(folder))
    return None


class _Found(NamedTuple):
    """Outcome of a share of the samples: totals by dtype, synchronisations by place, differences, samples left out."""

    totals: Counter[tuple[str, str]]
    places: Counter[str]
    failures: list[tuple[str, str]]
    left_out: int
    broken: bool


def _share(checkout: str | None, match: str, index: int, count: int, deadline: float) -> _Found:
    """Compare each ``count``-th sample, beginning with ``index``, until the time ``deadline`` of ``time.time``."""
    cases = _cases(checkout)
    chosen = [each for each in cases.chosen(None) if match in f"{each[1].op} {each[1].expression}"]
    chosen.sort(key=lambda each: cases.DTYPES.index(each[2]))
    chosen = chosen[index::count]
    found = _Found(Counter(), Counter(), [], 0, False)
    for done, (_, sample, dtype) in enumerate(chosen):
        if time.time() > deadline:
            return found._replace(left_out=len(chosen) - done)
        outcome = cases.compare(sample, dtype)
        if outcome is None:
            continue
        problems = {stage: text for stage, text in outcome.differences.items() if text}
        found.totals[dtype, "samples"] += 1
        found.totals[dtype, "agree"] += not problems
        found.totals[dtype, "wait"] += bool(outcome.waits)
        found.places.update(outcome.waits)
        for stage, text in problems.items():
            found.failures.append((f"{sample.op}, {dtype}, {stage}, `{sample.expression}`", text))
        if problems and _is_broken():
            return found._replace(left_out=len(chosen) - done - 1, broken=True)
    return found


def _shares(context: Context) -> list[_Found]:
    """Compare the samples in ``context.processes`` processes; what a process that ends early has found is lost."""
    given = context.checkout, context.match
    until = time.time() + context.left
    count = context.processes
    if count == 1:
        return [_share(*given, 0, 1, until)]
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    running = [pool.submit(_share, *given, index, count, until) for index in range(count)]
    found = []
    for index, each in enumerate(running):
        try:
            found.append(each.result(timeout=max(context.left, 0) + 30))
        except Exception as error:  # a process died, or does not answer
            context.report.fail(f"process {index} of {count} with samples", f"{type(error).__name__}: {error}")
    for process in list((pool._processes or {}).values()):
        if not all(each.done() for each in running):
            process.kill()
    pool.shutdown(wait=False, cancel_futures=True)
    return found


def samples(context: Context) -> None:
    """Compare the samples of all operations by dtype, forward and backward, until the time is over."""
    cases = _cases(context.checkout)
    if cases is None:
        context.report.line("Not run: the samples are in the folder `tests` of a checkout (`--checkout FOLDER`).")
        return
    totals: Counter[tuple[str, str]] = Counter()
    places: Counter[str] = Counter()
    for each in _shares(context):
        totals.update(each.totals)
        places.update(each.places)
        for what, text in each.failures:
            context.report.fail(what, text)
        if each.broken:
            context.report.line("The device did not answer any more after an error below.")
        totals["", "left out"] += each.left_out
    context.report.table(
        ("dtype", "samples", "agree", "with synchronisations"),
        [(each, *(totals[each, key] for key in ("samples", "agree", "wait"))) for each in cases.DTYPES],
    )
    if totals["", "left out"]:
        context.report.line(f"{totals['', 'left out']} samples were not run.")
    for place, count in places.most_common(20):
        context.report.line(f"- {count} synchronisations: `{place}`")


def _is_broken() -> bool:
    """Whether the GPU refuses all work, as after an illegal access of memory."""
    try:
        torch.cuda.synchronize()
    except Exception:
        return True
    return False


PARTS: dict[str, Callable[[Context], None]] = {
    "device": device, "programs": programs, "streams": streams, "times": times, "memory": memory, "samples": samples,
}  # fmt: skip

__all__ = ["PARTS", "Context"]
