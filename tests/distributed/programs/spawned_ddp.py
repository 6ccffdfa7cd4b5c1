"""Data parallel training in processes of mp.spawn: a plain module, a checkpoint, a module in two parts.

spawned_ddp.py WORLD_SIZE PORT
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


class ToyPartsModel(nn.Module):
    """The same in two parts on two devices, both of which are the CPU here."""

    def __init__(self, dev0, dev1):
        super().__init__()
        self.dev0, self.dev1 = dev0, dev1
        self.net1 = nn.Linear(10, 10).to(dev0)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5).to(dev1)

    def forward(self, x):
        x = self.relu(self.net1(x.to(self.dev0)))
        return self.net2(x.to(self.dev1))


def steps(rank, model, count=3):
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.001 * 100)
    torch.manual_seed(100 + rank)
    for step in range(count):
        optimizer.zero_grad()
        outputs = model(torch.randn(20, 10))
        labels = torch.randn(20, 5)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        print(f"rank {rank} step {step} loss {loss.item():.6f}", flush=True)
    total = sum(p.detach().double().sum().item() for p in model.parameters())
    print(f"rank {rank} weights {total:.5f}", flush=True)


def demo_basic(rank, world_size, port, folder):
    print(f"Running basic DDP example on rank {rank}.", flush=True)
    setup(rank, world_size, port)
    torch.manual_seed(rank)  # different weights; DDP sends those of rank 0
    steps(rank, DDP(ToyModel()))
    cleanup()


def demo_checkpoint(rank, world_size, port, folder):
    print(f"Running DDP checkpoint example on rank {rank}.", flush=True)
    setup(rank, world_size, port)
    torch.manual_seed(rank)
    ddp_model = DDP(ToyModel())
    path = os.path.join(folder, "model.checkpoint")
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    state = torch.load(path, map_location="cpu", weights_only=True)
    ddp_model.load_state_dict(state)
    print(f"rank {rank} loaded {list(state)}", flush=True)
    steps(rank, ddp_model)
    dist.barrier()
    if rank == 0:
        os.remove(path)
    cleanup()
    demo_parts(rank, world_size, str(int(port) + 1), folder)  # a second group of the same processes


def demo_parts(rank, world_size, port, folder):
    print(f"Running DDP with model parallel example on rank {rank}.", flush=True)
    setup(rank, world_size, port)
    torch.manual_seed(rank)
    steps(rank, DDP(ToyPartsModel("cpu", torch.device("cpu"))))
    cleanup()


def demo_failure(rank, world_size, port, folder):
    setup(rank, world_size, port)
    if rank == 1:
        raise ValueError("rank 1 gives up")
    dist.barrier()


def run_demo(demo_fn, world_size, *args):
    mp.spawn(demo_fn, args=(world_size, *args), nprocs=world_size, join=True)


if __name__ == "__main__":
    world_size, port = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        for offset, demo in enumerate([demo_basic, demo_checkpoint]):
            run_demo(demo, world_size, str(port + offset), folder)
        try:
            run_demo(demo_failure, world_size, str(port + 3), folder)
        except mp.ProcessRaisedException as error:
            lines = str(error).strip().splitlines()
            print(type(error).__name__, error.error_index, lines[0], lines[-1])
