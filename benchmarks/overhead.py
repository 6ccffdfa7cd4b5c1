"""Microseconds per operation on small tensors, beside PyTorch when it is installed.

    python benchmarks/overhead.py [--rounds 15]

Every row is one piece of work written once, in PyTorch's language, and run on both engines in turn, round by round, so
that both see the same machine; both use 2 threads. A row's ratio is PyTorch's time divided by retrograd's: the median
of the rounds, with the quartiles. Needs an otherwise idle machine to mean anything.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import retrograd

try:
    import torch as oracle
except ImportError:
    oracle = None


def recorded_mul(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)
    return lambda: x * y


def recorded_add_number(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x + 2.0


def recorded_tanh(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x.tanh()


def recorded_sum(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x.sum()


def recorded_index(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, 8, requires_grad=True)
    return lambda: x[3]


def recorded_matmul(torch: Any) -> Callable[[], Any]:
    x, w = torch.ones(4, 8), torch.ones(8, 8, requires_grad=True)
    return lambda: x @ w


def unrecorded_mul(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8), torch.ones(8)
    return lambda: x * y


def chain(torch: Any) -> Callable[[], Any]:
    x, y, g = torch.ones(8, requires_grad=True), torch.ones(8), torch.ones(8)

    def run() -> None:
        z = x
        for _ in range(500):
            z = z * y
            z = z + y
        z.backward(g)
        x.grad = None

    return run


def polynomial(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.tensor(2.0, requires_grad=True)
        y = 2 * x**4 + x**3 + 3 * x**2 + 5 * x + 1
        y.backward()
        return x.grad

    return run


def mean_of_square(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.ones(2, 2, requires_grad=True)
        y = x + 2
        z = y * y * 3
        out = z.mean()
        out.backward()
        return x.grad

    return run


def third_derivative(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.tensor(3.0, requires_grad=True)
        y = x**2
        d1 = torch.autograd.grad((y,), (x,), create_graph=True)
        d2 = torch.autograd.grad(d1, (x,), create_graph=True)
        return torch.autograd.grad(d2, (x,))

    return run


def create_graph(torch: Any) -> Callable[[], Any]:
    x, y, g = torch.ones(8, requires_grad=True), torch.ones(8), torch.ones(8)

    def run() -> Any:
        z = x
        for _ in range(100):
            z = (z * y).tanh()
        return torch.autograd.grad(z, x, g, create_graph=True)

    return run


def gradient_descent(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    x, t = torch.randn(16, 4), torch.randn(16, 1)
    w, b = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)

    def run() -> None:
        loss = ((x @ w + b - t) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
            b.sub_(0.01 * b.grad)
        w.grad.zero_()
        b.grad.zero_()

    return run


#: name: (work, operations in it, the ratio asked for)
ROWS: dict[str, tuple[Callable[[Any], Callable[[], Any]], int, float]] = {
    "x * y, recorded": (recorded_mul, 1, 1.5),
    "x + 2.0, recorded": (recorded_add_number, 1, 1.5),
    "tanh, recorded": (recorded_tanh, 1, 1.5),
    "sum, recorded": (recorded_sum, 1, 1.5),
    "x[3], recorded": (recorded_index, 1, 1.5),
    "x @ w, recorded": (recorded_matmul, 1, 1.5),
    "x * y, not recorded": (unrecorded_mul, 1, 1.5),
    "chain of 1000, forward + backward": (chain, 1000, 2.0),
    "polynomial of a tutorial": (polynomial, 1, 2.0),
    "mean of 3 (x + 2)^2": (mean_of_square, 1, 2.0),
    "third derivative of x^2": (third_derivative, 1, 2.0),
    "chain of 200 with create_graph": (create_graph, 200, 1.0),
    "step of gradient descent": (gradient_descent, 1, 1.5),
}


def once(work: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def measure(name: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds per run of both engines, round by round."""
    make, _, _ = ROWS[name]
    ours = make(retrograd)
    theirs = make(oracle) if oracle is not None else None
    once(ours, 3)
    count = max(1, int(0.02 / once(ours, 3)))
    mine, other = [], []
    gc.collect()
    for _ in range(rounds):
        mine.append(once(ours, count))
        if theirs is not None:
            other.append(once(theirs, count))
    return mine, other


def import_seconds(module: str) -> float:
    """The median time of a fresh ``import`` in a process of its own, over that of an empty process.

    Byte code is kept between the processes, as it is of an installed package.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}

        def seconds(code: str) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            return time.perf_counter() - start

        seconds(f"import {module}")
        return statistics.median(seconds(f"import {module}") - seconds("pass") for _ in range(7))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--only", default="", help="rows whose name contains this")
    arguments = options.parse_args()
    if oracle is not None:
        oracle.set_num_threads(2)
    print(f"{'µs per operation':36}{'retrograd':>10}{'PyTorch':>10}{'ratio':>8}  quartiles    asked")
    for name, (_, operations, asked) in ROWS.items():
        if arguments.only not in name:
            continue
        mine, other = measure(name, arguments.rounds)
        line = f"{name:36}{1e6 * statistics.median(mine) / operations:10.2f}"
        if other:
            low, middle, high = statistics.quantiles([b / a for a, b in zip(mine, other, strict=True)], n=4)
            line += f"{1e6 * statistics.median(other) / operations:10.2f}{middle:8.2f}  {low:.2f}–{high:.2f}"
            line += f"{asked:10.1f}{'' if middle >= asked else '  under'}"
        print(line, flush=True)
    if not arguments.only:
        ours = import_seconds("retrograd")
        line = f"{'import, ms':36}{1000 * ours:10.0f}"
        if oracle is not None:
            theirs = import_seconds("torch")
            line += f"{1000 * theirs:10.0f}{theirs / ours:8.2f}{'':13}{5.0:10.1f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
