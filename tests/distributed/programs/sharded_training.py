"""fully_shard, a checkpoint by torch.distributed.checkpoint, and ZeroRedundancyOptimizer, as the tutorials use them.

torchrun sharded_training.py FOLDER
"""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP


class AppState(Stateful):
    """Model and optimizer, saved and loaded together."""

    def __init__(self, model, optimizer=None):
        self.model = model
        self.optimizer = optimizer

    def state_dict(self):
        model_state_dict, optimizer_state_dict = get_state_dict(self.model, self.optimizer)
        return {"model": model_state_dict, "optim": optimizer_state_dict}

    def load_state_dict(self, state_dict):
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state_dict["model"], optim_state_dict=state_dict["optim"]
        )


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(16, 16)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(16, 8)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def say(*words):
    if dist.get_rank() == 0:
        print(*words, flush=True)


def sharded(seed, mesh=None):
    torch.manual_seed(seed)
    model = ToyModel()
    fully_shard(model.net1, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(model, optimizer):
    torch.manual_seed(10 + dist.get_rank())
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.rand(8, 16)).sum()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0).full_tensor()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        say(f"step {step}: loss {total.item():.3f}, norm {norm.item():.3f}", model.net2.bias.grad)


def tensors(mesh):
    x = torch.arange(10.0).reshape(5, 2)
    d = distribute_tensor(x, mesh, [Shard(0)])
    for each in (d, d + 1, d.sum(), d.sum(1), d.redistribute(placements=[Replicate()]), d[0]):
        say(each)
    total, again = d.sum().full_tensor(), d.full_tensor()
    say(total, torch.equal(again, x))
    w = nn.Parameter(d)
    (w * w).sum().backward()
    say(w.grad)


def zero():
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(20, 20) for _ in range(5)])
    ddp = DDP(model)
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        nn.MSELoss()(ddp(torch.randn(20, 20)), torch.randn(20, 20)).backward()
        optimizer.step()
    say(f"params sum is: {sum(p.sum() for p in model.parameters()).item():.4f}")
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        state = optimizer.state_dict()
        print(sorted(state["state"]), state["param_groups"][0]["lr"], len(state["param_groups"][0]["params"]))
    say(optimizer)


def main(folder):
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    tensors(mesh)
    model = sharded(0, mesh)
    say(model)
    say(model.net1.weight.placements, model.net1.weight.to_local().shape)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    train(model, optimizer)
    dcp.save({"app": AppState(model, optimizer)}, checkpoint_id=folder)

    other = sharded(1)
    other_optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
    dcp.load(state_dict={"app": AppState(other, other_optimizer)}, checkpoint_id=folder)
    say(torch.equal(other.net1.weight.to_local(), model.net1.weight.to_local()))
    train(other, other_optimizer)

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    full = get_model_state_dict(model, options=options)
    say({name: tuple(each.shape) for name, each in full.items()})
    states = get_optimizer_state_dict(model, optimizer, options=options)
    if dist.get_rank() == 0:
        print(states["param_groups"], states["state"]["net1.bias"]["step"])
    third = sharded(2)
    set_model_state_dict(third, full, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    say(third(torch.ones(1, 16)))
    say([(type(each).__name__, each.shape, each.to_local().shape) for each in third.state_dict().values()])
    zero()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
