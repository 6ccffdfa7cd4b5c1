"""A rank is killed during a collective operation, a backward pass and a checkpoint; training goes on after a restart."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.conformance.golden import load
from tests.distributed import program_starts
from tests.distributed.launcher_process import run
from tests.programs.example_output import assert_printed_alike

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

#: Rank 1 kills itself in another part at each start, and rank 0 prints the error that it gets; the fourth start succeeds.
PROGRAM = """
import os, signal, sys, time
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import default_planner
dist.init_process_group("gloo")
rank, start = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
def die(part):
    if rank == 1 and start == part:
        os.kill(os.getpid(), signal.SIGKILL)
def survive(step):
    signal.signal(signal.SIGTERM, lambda *_: None)  # the launcher's, so that the error comes first
    begun = time.monotonic()
    try:
        step()
    except RuntimeError as error:
        print(f"rank {rank} after {time.monotonic() - begun:.0f} s: {type(error).__name__}: {error}", flush=True)
        raise

x = torch.ones(1000)
dist.all_reduce(x)
def collective():
    die(0)
    dist.all_reduce(x)
survive(collective)

class Dies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        die(1)
        return gradient
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(400, 400) for _ in range(4)])
    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == 1:
                x = Dies.apply(x)
        return x
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=1)
survive(lambda: model(torch.ones(2, 400)).sum().backward())

state = {"w": torch.arange(6.0), f"of{rank}": torch.full((3,), float(rank))}
if not os.path.exists("good"):
    dist.barrier()
    dcp.save(state, checkpoint_id="good")
plan = default_planner.DefaultSavePlanner.resolve_data
def resolve(self, *given):
    die(2)
    return plan(self, *given)
default_planner.DefaultSavePlanner.resolve_data = resolve
if start == 2:
    survive(lambda: dcp.save({name: value + 1 for name, value in state.items()}, checkpoint_id="good"))
loaded = {name: torch.zeros_like(value) for name, value in state.items()}
dcp.load(loaded, checkpoint_id="good")
print(f"rank {rank} sum {x.sum().item():.0f} gradient {model.module.layers[0].weight.grad.sum().item():.3f} "
      f"loads {loaded['w'].tolist()} {loaded[f'of{rank}'].tolist()}", flush=True)
dist.destroy_process_group()
"""


def test_the_others_raise_and_start_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    code, out, err = run(tmp_path, "launch", "--nproc-per-node", "2", "--max-restarts", "3", "program.py", limit=90)
    assert code == 0, err
    told = [line for line in out.splitlines() if line.startswith("rank 0 after ")]
    assert len(told) == 3, out
    for line in told:
        assert re.match(r"rank 0 after [0-9] s: \w+: .*rank 1 \(process \d+ on .*\) is gone", line)
    assert "all_reduce" in told[0] and "program.py:" in told[0]
    for restart in (1, 2, 3):
        words = rf"rank 1 \(process \d+ on .*\) has ended with signal SIGKILL; all ranks start again \(restart {restart} of 3\)"
        assert re.search(words, err)
    ended = sorted(line for line in out.splitlines() if line not in told)
    assert len(ended) == 2
    for rank, line in enumerate(ended):
        assert line.startswith(f"rank {rank} sum 4000 gradient ")
        assert line.endswith(f" loads [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] {[float(rank)] * 3}")
    assert ended[0].split()[5] == ended[1].split()[5]


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
