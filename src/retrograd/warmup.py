"""Compilation of the common loops ahead of time: the command ``retrograd warmup``, and the process in the background.

Numba stores compiled loops on the disk. The programs in this module call the operations whose loops take long to compile
or are used by most programs, with large arrays of float32 and float64, on all threads and on one. A loop that no program
calls is compiled at its first use, which takes up to one second.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Seconds after which a lock that is not touched is ignored: its process was killed, or another one has its number.
STALE = 86400 if os.name == "posix" else 900

Program = Callable[[Any, Any], None]


def _programs() -> Iterator[Program]:
    """Yield functions of the module ``retrograd`` and a dtype, each of which needs a group of loops."""

    def backward(y: Any) -> None:
        y.sum().backward()

    def arithmetic(torch: Any, dtype: Any) -> None:
        x = torch.full((256, 256), 0.5, dtype=dtype, requires_grad=True)
        y = torch.full((256, 256), 0.25, dtype=dtype, requires_grad=True)
        row = torch.ones(256, dtype=dtype, requires_grad=True)
        backward((x * y + x - y) / (y + 2) * 3 + x * row - row / 2)
        backward((x - row[:, None]) * row[:, None] + x.t() * y)
        with torch.no_grad():
            z = torch.zeros_like(x)
            z.add_(y).mul_(2).sub_(x).div_(3).add_(row).copy_(row)

    def functions(torch: Any, dtype: Any) -> None:
        for name in [
            "exp",
            "log",
            "sqrt",
            "tanh",
            "sigmoid",
            "relu",
            "square",
            "abs",
            "neg",
            "reciprocal",
            "sin",
            "cos",
            "erf",
        ]:
            x = torch.full((40000,), 0.5, dtype=dtype, requires_grad=True)
            backward(getattr(torch, name)(x))
        for name in ["gelu", "silu", "leaky_relu", "elu", "softplus"]:
            x = torch.full((40000,), 0.5, dtype=dtype, requires_grad=True)
            backward(getattr(torch.nn.functional, name)(x))
        x = torch.full((200, 200), 0.5, dtype=dtype, requires_grad=True)
        backward(x**2 + torch.where(x > 0, x, -x) + x.clamp(0, 1) + torch.maximum(x, -x) + x.masked_fill(x > 1, 0))

    def reductions(torch: Any, dtype: Any) -> None:
        x = torch.arange(65536, dtype=dtype).reshape(64, 32, 32).requires_grad_()
        for dim in (None, 0, 1, 2, (0, 2)):
            backward(x.mean(dim))
            backward(x.var(dim))
        for dim in (0, 2):
            backward(x.max(dim).values)
            backward(x.cumsum(dim))
            x.argmax(dim)
        backward(x.norm())

    def normalization(torch: Any, dtype: Any) -> None:
        F = torch.nn.functional
        weight = torch.ones(64, dtype=dtype, requires_grad=True)
        bias = torch.zeros(64, dtype=dtype, requires_grad=True)
        x = torch.arange(65536, dtype=dtype).reshape(1024, 64).div(65536).requires_grad_()
        backward(F.layer_norm(x, (64,), weight, bias))
        backward(F.rms_norm(x, (64,), weight))
        for dim in (0, 1):
            backward(x.softmax(dim))
            backward(x.log_softmax(dim))
        backward(F.cross_entropy(x, torch.arange(1024) % 64))
        backward(F.batch_norm(x, None, None, weight, bias, True))
        images = x.detach().reshape(4, 64, 16, 16).requires_grad_()
        backward(F.batch_norm(images, None, None, weight, bias, True))
        backward(F.group_norm(images, 8, weight, bias))
        backward(F.mse_loss(x, x.detach() + 1) + F.binary_cross_entropy_with_logits(x, x.detach().sigmoid()))

    def convolution(torch: Any, dtype: Any) -> None:
        F = torch.nn.functional
        for channels, outputs, size, kernel, padding in (
            (1, 16, 28, 3, 1), (16, 32, 14, 3, 1), (3, 16, 32, 5, 2), (32, 64, 8, 1, 0), (16, 16, 16, 3, 0),
        ):  # fmt: skip
            x = torch.ones(32, channels, size, size, dtype=dtype, requires_grad=True)
            weight = torch.ones(outputs, channels, kernel, kernel, dtype=dtype, requires_grad=True)
            bias = torch.zeros(outputs, dtype=dtype, requires_grad=True)
            y = F.conv2d(x, weight, bias, padding=padding)
            backward(F.max_pool2d(y.relu(), 2))
            backward(F.avg_pool2d(F.conv2d(x, weight, padding=padding), 2))
        x = torch.ones(16, 16, 16, 16, dtype=dtype, requires_grad=True)
        backward(F.conv2d(x, torch.ones(16, 1, 3, 3, dtype=dtype, requires_grad=True), groups=16))
        backward(F.conv_transpose2d(x, torch.ones(16, 8, 4, 4, dtype=dtype, requires_grad=True), stride=2))
        backward(F.interpolate(x, scale_factor=2) + 0)

    def attention(torch: Any, dtype: Any) -> None:
        F = torch.nn.functional
        for causal in (False, True):
            q, k, v = (torch.ones(4, 4, 64, 32, dtype=dtype, requires_grad=True) for _ in range(3))
            backward(F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        table = torch.ones(1000, 64, dtype=dtype, requires_grad=True)
        index = torch.arange(2048) % 1000
        backward(F.embedding(index, table))
        backward(table.index_select(0, index) + 0)
        backward(F.linear(F.dropout(table), torch.ones(256, 64, dtype=dtype, requires_grad=True)))
        torch.cat([table, table.detach()]).t().contiguous()

    def recurrent(torch: Any, dtype: Any) -> None:
        for units in (16, 512):  # states of up to 8192 elements are computed on one thread
            x, h = torch.ones(4, 32, 8, dtype=dtype), torch.zeros(1, 32, units, dtype=dtype)
            for run, gates, state in ((torch.lstm, 4, (h, h)), (torch.gru, 3, h)):
                rows = gates * units
                shapes = (rows, 8), (rows, units), (rows,), (rows,)
                weights = [torch.full(each, 0.1, dtype=dtype, requires_grad=True) for each in shapes]
                backward(run(x, state, weights, True, 1, 0.0, True, False, False)[0])

    def random_numbers(torch: Any, dtype: Any) -> None:
        generator = torch.Generator().manual_seed(0)  # the program's own generator is not used
        torch.rand(100000, dtype=dtype, generator=generator)
        torch.randn(100000, dtype=dtype, generator=generator)
        torch.randint(10, (100000,), generator=generator)
        torch.randperm(100000, generator=generator)
        torch.empty(100000, dtype=dtype).bernoulli_(0.5, generator=generator)

    def optimizers(torch: Any, dtype: Any) -> None:
        for name, options in (
            ("SGD", {"momentum": 0.9}), ("SGD", {}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {}),
        ):  # fmt: skip
            x = torch.ones(200, 200, dtype=dtype, requires_grad=True)
            optimizer = getattr(torch.optim, name)([x], 0.1, **options)
            for _ in range(2):
                optimizer.zero_grad()
                backward(x.square())
                torch.nn.utils.clip_grad_norm_([x], 1.0)
                optimizer.step()

    yield from (
        arithmetic, functions, normalization, optimizers, convolution, attention, recurrent, reductions, random_numbers,
    )  # fmt: skip


def compile_loops(report: Callable[[str], None]) -> None:
    """Run all programs on all threads and on one, and note that their loops are on the disk.

    ``report`` is called with a line of text before each program. ``RETROGRAD_FAST=1`` must be set.
    """
    import retrograd as torch

    from .kernels.numba import jit
    from .kernels.numba_startup import is_compiled, note_compiled

    jit.Waiting.patience = threading.TIMEOUT_MAX  # no message of its own
    threads = torch.get_num_threads()
    programs, dtypes = list(_programs()), (torch.float32, torch.float64)
    counts = [count for count in dict.fromkeys([threads, 1]) if not is_compiled(count)]
    done, total = 0, len(counts) * len(dtypes) * len(programs)
    for count in counts:
        torch.set_num_threads(count)
        try:
            for dtype in dtypes:
                for program in programs:
                    done += 1
                    name, kind = program.__name__.replace("_", " "), str(dtype).partition(".")[2]
                    report(f"{done} of {total} ({name}, {kind}, {count} thread{'s' * (count > 1)})")
                    program(torch, dtype)
        finally:
            torch.set_num_threads(threads)
        note_compiled(count)


def command() -> int:
    """Run ``retrograd warmup`` and return its exit status."""
    from importlib.util import find_spec

    if find_spec("numba") is None:
        from .runtime.extras import how_to_install

        print(f"retrograd: Numba is not installed, so that there are no loops to compile: {how_to_install('fast')}")
        return 1
    from .kernels.numba_startup import folder, is_compiled

    os.environ["RETROGRAD_FAST"] = "1"
    begin = time.perf_counter()
    wide = 50
    lock = _lock()
    if lock is None and (owner := compiling_process()):
        print(f"retrograd: process {owner} is compiling the loops already")
        return 0

    def report(text: str) -> None:
        if lock is not None:
            lock.touch()
        if sys.stdout.isatty():
            print(f"\rcompiling loops: {text:<{wide}}", end="", flush=True)
        else:
            print(f"compiling loops: {text}", flush=True)

    try:
        compile_loops(report)
    except KeyboardInterrupt:
        print("\nInterrupted. The loops compiled so far are kept: `retrograd warmup` goes on with the others.")
        return 130
    finally:
        _release(lock)
    if not is_compiled(1):
        place = folder() or os.environ.get("NUMBA_CACHE_DIR") or "the folder of the package or the user's cache"
        print(f"\nretrograd: the loops cannot be kept, because no file can be written in {place}", file=sys.stderr)
        return 1
    end = "\r" if sys.stdout.isatty() else ""
    print(f"{end}The loops are compiled and stored ({time.perf_counter() - begin:.0f} s).{' ' * wide}".rstrip())
    return 0


def in_background() -> None:
    """Compile the loops with the lowest priority, unless another process does."""
    if hasattr(os, "nice"):
        os.nice(19)
    with suppress(AttributeError, OSError):  # on Linux any thread of the program takes the processor at once
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    lock = _lock()
    if lock is None:
        return
    try:
        compile_loops(lambda text: lock.touch())
    finally:
        _release(lock)


# -- The lock file of the process that compiles ------------------------------------------------------------------------

_LOCK = "compiling.lock"


def _lock() -> Path | None:
    """Return the new lock file of this process in the folder of the loops, or None if another process has one.

    None is returned, too, if no folder is writable. The file holds the number of the process.
    """
    from .kernels.numba_startup import folder

    place = folder()
    if place is None:
        return None
    lock = place / _LOCK
    try:
        if lock.exists() and not _owner(lock):
            lock.unlink()
        file = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        with open(file, "w") as writer:
            writer.write(str(os.getpid()))
    except OSError:
        return None
    return lock


def _release(lock: Path | None) -> None:
    """Delete ``lock``, unless another process has taken it meanwhile."""
    with suppress(OSError):
        if lock is not None and lock.read_text() == str(os.getpid()):
            lock.unlink()


def _owner(lock: Path) -> int:
    """Return the number of the process that holds ``lock``; 0 if it has ended, or has not touched it for long."""
    try:
        if time.time() - lock.stat().st_mtime > STALE:
            return 0
        owner = int(lock.read_text() or 0)
        if owner and os.name == "posix":  # on Windows, os.kill would end the process
            os.kill(owner, 0)
    except PermissionError:  # of another user
        return owner
    except (OSError, ValueError):
        return 0
    return owner or -1  # not yet written


def compiling_process() -> int:
    """Return the number of the process that compiles the loops; 0 if there is none."""
    from .kernels.numba_startup import folder

    place = folder()
    return _owner(place / _LOCK) if place is not None else 0


def state() -> str:
    """Return whether the loops are compiled, as text for ``retrograd info``."""
    from .kernels.numba_startup import is_compiled
    from .runtime import blas_threads

    if is_compiled(blas_threads.max_threads()):
        return "compiled"
    owner = compiling_process()
    return f"being compiled by process {owner}" if owner else "not compiled (`retrograd warmup` compiles them)"


__all__ = ["command", "compile_loops", "compiling_process", "in_background", "state"]
