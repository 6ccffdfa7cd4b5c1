"""Collective operations of 2 ranks with 1 thread each, beside PyTorch on gloo.

    python -m benchmarks.collectives [--torch PYTHON] [--ranks 2] [--rounds 7] [--only all_reduce] [--write]

``--torch`` is the Python of an environment with PyTorch, by default this one. The ranks of both engines are started once
and take turns, round by round. A ratio is gloo's time divided by that of this checkout: above 1 this checkout is
faster. It is the median of the rounds, with the quartiles. A time is that of one call of several in a row, with
``async_op=True`` of a call and its ``wait()``. The bandwidth is the size of the tensor divided by the time. ``--write`` writes
the table to benchmarks/results/collectives.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Number of float32 elements by the name of a size, and the calls of one round.
SIZES = {"1 kB": (256, 300), "1 MB": (1 << 18, 60), "25 MB": (25 << 18, 8), "100 MB": (100 << 18, 3)}
#: Names of operations, and their sizes.
ROWS = {
    "all_reduce": ("1 kB", "1 MB", "25 MB", "100 MB"),
    "all_reduce, async_op": ("1 kB", "1 MB", "25 MB", "100 MB"),
    "broadcast": ("1 kB", "1 MB", "25 MB", "100 MB"),
    "all_gather": ("1 kB", "1 MB", "25 MB"),
    "reduce_scatter": ("1 kB", "1 MB", "25 MB"),
    "send and recv": ("1 kB", "1 MB", "25 MB"),
    "barrier": ("1 kB",),
}


def call_of(torch: Any, name: str, length: int) -> Any:
    """Return a function that calls the operation ``name`` on tensors of ``length`` elements."""
    dist = torch.distributed
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.zeros(length)
    parts = [torch.zeros(length) for _ in range(size)]

    def exchange() -> None:
        if rank == 0:
            dist.send(x, 1)
            dist.recv(x, 1)
        elif rank == 1:
            dist.recv(x, 0)
            dist.send(x, 0)

    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_reduce, async_op": lambda: dist.all_reduce(x, async_op=True).wait(),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather(parts, x),
        "reduce_scatter": lambda: dist.reduce_scatter(x, parts),
        "send and recv": exchange,
        "barrier": dist.barrier,
    }[name]


def serve() -> None:
    """Run measurements that the other process asks for, as one of the ranks."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    made: dict[tuple[str, str], Any] = {}
    for line in sys.stdin:
        name, size = json.loads(line)
        length, count = SIZES[size]
        if (name, size) not in made:
            made = {(name, size): call_of(torch, name, length)}
            for _ in range(2):
                made[name, size]()
        call = made[name, size]
        torch.distributed.barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)
    torch.distributed.destroy_process_group()


class Ranks:
    """The ranks of one engine, which run this module."""

    def __init__(self, command: list[str], size: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size), **dict.fromkeys(names, "1")}
        path = os.pathsep.join([str(HERE.parent / "src"), str(HERE.parent)])
        self.processes = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent,
                env={**os.environ, **places, "RANK": str(rank), "PYTHONPATH": path},
            )
            for rank in range(size)
        ]  # fmt: skip

    def measure(self, name: str, size: str) -> float:
        """Return the seconds of one call, of the slowest rank."""
        for each in self.processes:
            assert each.stdin is not None
            each.stdin.write(json.dumps([name, size]) + "\n")
            each.stdin.flush()
        lines = [each.stdout.readline() for each in self.processes if each.stdout is not None]
        if not all(lines):
            raise RuntimeError("a rank has ended")
        return max(map(json.loads, lines))

    def close(self) -> None:
        """End the processes."""
        for each in self.processes:
            assert each.stdin is not None
            each.stdin.close()
        for each in self.processes:
            try:
                each.wait(10)
            except subprocess.TimeoutExpired:
                each.kill()


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def main() -> None:
    """Measure and print the table."""
    from .measure import quartiles

    parser = argparse.ArgumentParser(prog="python -m benchmarks.collectives")
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    program = str(Path(__file__).resolve())
    ours = Ranks([sys.executable, "-m", "retrograd", "run", program, "--serve"], given.ranks)
    theirs = Ranks([given.torch, program, "--serve"], given.ranks)
    lines = [
        "| operation | size | retrograd | gloo | ratio (quartiles) | bandwidth |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    try:
        for name, sizes in ROWS.items():
            for size in sizes if given.only in name else ():
                times = [(ours.measure(name, size), theirs.measure(name, size)) for _ in range(given.rounds)]
                low, middle, high = quartiles([gloo / mine for mine, gloo in times])
                mine, gloo = (statistics.median(each) for each in zip(*times, strict=True))
                rate = f"{SIZES[size][0] * 4 / mine / 1e9:.2g} GB/s" if size != "1 kB" else ""
                ratio = f"{middle:.2f} ({low:.2f} to {high:.2f})"
                lines.append(f"| {name} | {size} | {shown(mine)} | {shown(gloo)} | {ratio} | {rate} |")
                print(lines[-1], flush=True)
    finally:
        ours.close()
        theirs.close()
    if given.write:
        text = [
            "# Collective operations", "",
            f"{given.ranks} ranks of 1 thread beside PyTorch on gloo, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, {given.rounds} rounds. A ratio above 1 means that retrograd is faster. Made by "
            "`python -m benchmarks.collectives --write`.", "",
        ]  # fmt: skip
        (HERE / "results" / "collectives.md").write_text("\n".join([*text, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
