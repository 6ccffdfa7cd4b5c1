"""A rank is killed during a collective operation, a backward pass and a checkpoint; training goes on after a restart."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.conformance.golden import load
from tests.distributed import program_starts
from tests.distributed.launcher_process import run
from tests.programs.example_output import assert_printed_alike

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

#: Beginning of the programs: rank 1 of the first start kills itself in ``die()``, and rank 0 prints the error that it gets.
START = """
import os, signal, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, first = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
def die():
    if rank == 1 and first:
        os.kill(os.getpid(), signal.SIGKILL)
def survive(step):
    signal.signal(signal.SIGTERM, lambda *_: None)  # the launcher's, so that the error comes first
    begun = time.monotonic()
    try:
        step()
    except RuntimeError as error:
        print(f"rank {rank} after {time.monotonic() - begun:.0f} s: {type(error).__name__}: {error}", flush=True)
        raise
"""
PROGRAMS = {
    "collective": """
x = torch.ones(1000)
dist.all_reduce(x)
def step():
    die()
    dist.all_reduce(x)
survive(step)
print(f"rank {rank} sum {x.sum().item():.0f}", flush=True)
""",
    "backward": """
class Dies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        die()
        return gradient
torch.manual_seed(0)
layers = [torch.nn.Linear(400, 400) for _ in range(4)]
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == 1:
                x = Dies.apply(x)
        return x
model = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=1)
survive(lambda: model(torch.ones(2, 400)).sum().backward())
print(f"rank {rank} gradient {layers[0].weight.grad.sum().item():.4f}", flush=True)
""",
    "checkpoint": """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import default_planner
state = {"w": torch.arange(6.0), f"of{rank}": torch.full((3,), float(rank))}
if first:
    dcp.save(state, checkpoint_id="good")
    plan = default_planner.DefaultSavePlanner.resolve_data
    def resolve(self, *given):
        die()
        return plan(self, *given)
    default_planner.DefaultSavePlanner.resolve_data = resolve
    state["w"] += 1
    survive(lambda: dcp.save(state, checkpoint_id="good"))
loaded = {name: torch.zeros_like(value) for name, value in state.items()}
dcp.load(loaded, checkpoint_id="good")
print(f"rank {rank} loads {loaded['w'].tolist()} {loaded[f'of{rank}'].tolist()}", flush=True)
""",
}
RESULTS = {
    "collective": ["rank 0 sum 4000", "rank 1 sum 4000"],
    "checkpoint": [
        "rank 0 loads [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] [0.0, 0.0, 0.0]",
        "rank 1 loads [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] [1.0, 1.0, 1.0]",
    ],
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_others_raise_and_start_again(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(START + PROGRAMS[name] + "dist.destroy_process_group()\n")
    begun = time.monotonic()
    code, out, err = run(tmp_path, "launch", "--nproc-per-node", "2", "--max-restarts", "1", "program.py")
    assert code == 0, err
    assert time.monotonic() - begun < 40
    lines = out.splitlines()
    told = [line for line in lines if line.startswith("rank 0 after ")]
    assert len(told) == 1, out
    assert re.match(r"rank 0 after [0-3] s: \w+: .*rank 1 \(process \d+ on .*\) is gone", told[0])
    assert "rank 1 (process " in err and "signal SIGKILL; all ranks start again (restart 1 of 1)" in err
    results = sorted(line for line in lines if line not in told)
    assert len(results) == 2 and (name == "backward" or results == RESULTS[name])
    if name == "backward":
        assert results[0].split()[2:] == results[1].split()[2:]


def test_training_goes_on_from_its_snapshot_with_the_same_numbers(tmp_path: Path) -> None:
    """The killed run's last epochs are those of an uninterrupted one, which are recorded from PyTorch."""
    words = program_starts.words("snapshot_trainer", 2, str(tmp_path))
    start = ["launch", "--nproc-per-node", "2", "--max-restarts", "1"]
    code, out, err = run(tmp_path, *start, *words, "--die-in-epoch", "2", OMP_NUM_THREADS="1")
    assert code == 0, err
    before, _, after = program_starts.in_order(out), None, out[out.index("Resuming training") :]
    assert before.count("Resuming training from snapshot at Epoch 1") == 2
    recorded = load("distributed_programs")["snapshot_trainer 2"]
    for words_of_line in ("Epoch 1 | Loss", "Epoch 2 | Loss", "Weights"):
        expected = "\n".join(line for line in recorded if words_of_line in line)
        found = "\n".join(sorted(line for line in after.splitlines() if words_of_line in line))
        assert_printed_alike(found, expected, units=2)
