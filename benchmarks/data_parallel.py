"""A step of DistributedDataParallel with 2 ranks of 1 thread, beside PyTorch on gloo, and how much of it overlaps.

    python -m benchmarks.data_parallel [--torch PYTHON] [--rounds 5] [--write]

``--torch`` is the Python of an environment with PyTorch, by default this one. Both engines' ranks are started once and take
turns, round by round. The ways to reduce the gradients are

    none       each rank for itself (``no_sync``)
    after      the same buckets as DistributedDataParallel, after the backward pass
    overlap    DistributedDataParallel
    views      DistributedDataParallel with gradient_as_bucket_view=True

The hidden part of the communication is (after - overlap) / (after - none). With as many busy cores as ranks, communication
and the backward pass share the processors, so not all of it can be hidden. ``--write`` writes the table to
benchmarks/results/data_parallel.md.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RANKS = 2
WAYS = ("none", "after", "overlap", "views")
#: Steps of one measurement, by network.
STEPS = {"perceptron of 2.2 million weights": 5, "perceptron of 17 million weights": 2, "digits CNN": 20}


def network(torch: Any, name: str) -> tuple[Any, Any]:
    """Return the network ``name`` and a batch of its inputs."""
    nn = torch.nn
    torch.manual_seed(0)
    if name == "digits CNN":
        features = [
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        return nn.Sequential(*features, nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10)), torch.rand(
            64, 1, 8, 8
        )
    width = 1024 if "2.2" in name else 2048
    layers: list[Any] = []
    for _ in range(2 if width == 1024 else 4):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 10)), torch.rand(64, width)


def steps_of(torch: Any, name: str, way: str) -> Callable[[], Any]:
    """Return a function that does one training step of the network ``name``."""
    dist = torch.distributed
    module, inputs = network(torch, name)
    targets = torch.randint(0, 10, (64,))
    model = torch.nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=way == "views")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    groups: list[list[Any]] = [[]]
    size = 0
    for each in reversed(list(module.parameters())):
        groups[-1].append(each)
        size += each.numel() * 4
        if size >= (1 if len(groups) == 1 else 25) * 2**20:
            groups.append([])
            size = 0
    buffers = [torch.empty(sum(each.numel() for each in group)) for group in groups if group]

    def reduce() -> None:
        works = []
        with torch.no_grad():
            for group, buffer in zip(groups, buffers, strict=False):
                views = buffer.split([each.numel() for each in group])
                for each, view in zip(group, views, strict=True):
                    view.copy_(each.grad.view(-1)).mul_(1 / RANKS)
                works.append((dist.all_reduce(buffer, async_op=True), group, views))
            for work, group, views in works:
                work.wait()
                for each, view in zip(group, views, strict=True):
                    each.grad.copy_(view.view(each.shape))

    def step() -> None:
        optimizer.zero_grad()
        if way in ("none", "after"):
            with model.no_sync():
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            if way == "after":
                reduce()
        else:
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step


def serve() -> None:
    """Run measurements that the other process asks for, as one of the ranks."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    made: dict[Any, Callable[[], Any]] = {}
    for line in sys.stdin:
        name, way = json.loads(line)
        if (name, way) not in made:
            made[name, way] = steps_of(torch, name, way)
            for _ in range(3):
                made[name, way]()
        step, count = made[name, way], STEPS[name]
        torch.distributed.barrier()
        start = time.perf_counter()
        for _ in range(count):
            step()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)
    torch.distributed.destroy_process_group()


class Ranks:
    """The ranks of one engine; ``command`` runs this file as a program."""

    def __init__(self, command: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
        )
        places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS)}
        self.processes = [
            subprocess.Popen(
                [*command, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, **threads, **places, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(RANKS)
        ]  # fmt: skip

    def measure(self, name: str, way: str) -> float:
        """Return the time of a step in seconds: that of the slowest rank."""
        for each in self.processes:
            assert each.stdin is not None
            each.stdin.write(json.dumps([name, way]) + "\n")
            each.stdin.flush()
        return max(float(each.stdout.readline()) for each in self.processes if each.stdout is not None)

    def close(self) -> None:
        """End the ranks."""
        for each in self.processes:
            assert each.stdin is not None
            each.stdin.close()
        for each in self.processes:
            each.wait(30)


def measured(engines: dict[str, Ranks], rounds: int) -> dict[tuple[str, str, str], list[float]]:
    """Return the times in seconds by engine, network and way; the engines take turns."""
    times: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(rounds):
        for name in STEPS:
            for way in WAYS:
                for engine, ranks in engines.items():
                    times.setdefault((engine, name, way), []).append(ranks.measure(name, way))
    return times


def table(times: dict[tuple[str, str, str], list[float]], engines: list[str]) -> str:
    """Return the table: medians in milliseconds, the best of them, and the ratio of the steps of both engines."""
    rows = ["| network | engine | none | after | overlap | views | hidden | PyTorch / retrograd |", "| --- " * 8 + "|"]
    for name, chosen, engine in product(STEPS, (statistics.median, min), engines):
        none, after, overlap, views = (chosen(times[engine, name, way]) * 1e3 for way in WAYS)
        hidden = f"{(after - overlap) / (after - none):.0%}" if after > none * 1.02 else "-"
        ratio = ""
        if engine == "retrograd" and len(engines) > 1:
            pairs = zip(times[engines[1], name, "overlap"], times[engine, name, "overlap"], strict=True)
            best = chosen(times[engines[1], name, "overlap"]) * 1e3 / overlap
            ratio = f"{best if chosen is min else statistics.median(other / own for other, own in pairs):.2f}"
        shown = [f"{each:.1f}" for each in (none, after, overlap, views)]
        rows.append("| " + " | ".join([name + ", best" * (chosen is min), engine, *shown, hidden, ratio]) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default=sys.executable, help="Python of an environment with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return
    found = subprocess.run([chosen.torch, "-c", "import torch.distributed"], capture_output=True)
    engines = {"retrograd": Ranks([sys.executable, "-m", "retrograd", "run"])}
    if not found.returncode:
        engines["PyTorch, gloo"] = Ranks([chosen.torch])
    try:
        times = measured(engines, chosen.rounds)
    finally:
        for each in engines.values():
            each.close()
    text = table(times, list(engines))
    print(text)
    if chosen.write:
        title = "# Data parallel training: milliseconds a step, 2 ranks of 1 thread\n\n"
        note = f"Medians and best of {chosen.rounds} rounds; see benchmarks/data_parallel.py.\n\n"
        (HERE / "results" / "data_parallel.md").write_text(title + note + text + "\n")


if __name__ == "__main__":
    main()
