"""``fully_shard`` in one process, and in 2 and 4 ranks, compared with one process that has the whole batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed import fsdp
from retrograd.distributed.fsdp import FSDPModule, fully_shard
from retrograd.distributed.tensor import DTensor, Shard
from tests.distributed.rank_processes import IN_GROUP, run_ranks

LIMIT = 90.0  # seconds, on a busy machine
pytestmark = pytest.mark.thread_unsafe


@pytest.fixture
def group() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_one_rank(group: Any) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    model: Any = copy.deepcopy(plain)
    fully_shard(model[0])
    assert fully_shard(model) is model and isinstance(model, FSDPModule) and isinstance(model, nn.Sequential)
    assert type(model).__name__ == "FSDPSequential" and repr(model).startswith("FSDPSequential(\n  (0): FSDPLinear(in")
    x = torch.randn(5, 3)
    for _ in range(2):
        plain.zero_grad()
        model.zero_grad()
        plain(x).square().sum().backward()
        model(x).square().sum().backward()
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            assert (
                isinstance(b, DTensor) and torch.equal(a, b.full_tensor()) and torch.equal(a.grad, b.grad.full_tensor())
            )
    with pytest.raises(AssertionError, match=r"^FSDP does not support deepcopy\. Please use state dict"):
        copy.deepcopy(model)
    with pytest.raises(AssertionError, match=r"has already been applied"):
        fully_shard(model)
    with pytest.raises(ValueError, match=r"^fully_shard does not support containers that do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(1, 1)]))
    with pytest.raises(ValueError, match=r"^fully_shard doesn't support scalar parameters\. Change s to a 1D tensor"):
        scalar = nn.Module()
        scalar.s = nn.Parameter(torch.tensor(1.0))
        fully_shard(scalar)
    with pytest.raises(RuntimeError, match=r"use torch.distributed.fsdp.fully_shard"):
        fsdp.FullyShardedDataParallel(nn.Linear(1, 1))
    model.unshard()
    assert type(model[2].weight) is nn.Parameter
    model.reshard()
    assert isinstance(model[2].weight, DTensor) and isinstance(model.double()[0].weight, DTensor)
    assert model(x.double()).dtype == torch.float64


def test_graph_of_an_earlier_step_is_refused(group: Any) -> None:
    model: Any = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    fully_shard(model[1])
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = model(torch.ones(1, 3)).sum(), model(torch.ones(1, 3)).sum()
    first.backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"has been modified by an inplace operation"):
        second.backward()
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()  # the next step works
    assert torch.equal(model[1].bias.grad.full_tensor(), torch.ones(1))


def test_parts_modified_after_gathering(group: Any) -> None:
    model: Any = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    fully_shard(model[1])
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    x = torch.ones(1, 2)
    model(x).sum().backward()
    model[1].unshard(async_op=True)
    model(x)  # the outermost module keeps its whole parameters
    model[1].unshard(async_op=True)
    optimizer.step()
    plain = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    found = model(x)
    plain.load_state_dict({name: each.full_tensor() for name, each in model.state_dict().items()})
    assert torch.equal(found, plain(x))


def test_policies_placements_and_methods(group: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return {"out": self.b(self.a(x))}

        def features(self, x: Any) -> Any:
            return self.a(x)

    model: Any = Net()
    seen = []
    model.b.register_forward_hook(
        lambda module, args, out: seen.append((args[0].dtype, module.weight.dtype, out.dtype))
    )
    policy = fsdp.MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32
    )
    fully_shard(model, mp_policy=policy, shard_placement_fn=lambda param: Shard(1) if param.ndim > 1 else None)
    assert model.a.weight.placements == (Shard(1),) and model.a.bias.placements == (Shard(0),)
    out = model(torch.ones(1, 4))["out"]
    assert seen == [(torch.bfloat16, torch.bfloat16, torch.bfloat16)] and out.dtype == torch.float32
    out.sum().backward()
    assert model.a.weight.dtype == model.a.weight.grad.dtype == torch.float32
    with pytest.raises(RuntimeError, match=r"got mixed torch.Tensor and DTensor"):
        model.features(torch.ones(1, 4))
    fsdp.register_fsdp_forward_method(model, "features")
    assert model.features(torch.ones(1, 4)).shape == (1, 4)


COMMON = (
    IN_GROUP
    + """
from retrograd.distributed import checkpoint
from retrograd.distributed.checkpoint.state_dict import *
from retrograd.distributed.fsdp import *
from retrograd.distributed.tensor import *
from retrograd.utils.checkpoint import checkpoint as recomputed
torch.set_default_dtype(torch.float64)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(6), nn.Linear(6, 7), nn.Linear(7, 6)
    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, recompute=False):
        super().__init__()
        self.embedding, self.blocks = nn.Embedding(5, 6), nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(6, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.recompute = recompute
    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = recomputed(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(x)
def net(**named):
    torch.manual_seed(1)
    return Net(**named)
def split(model, **named):
    for block in model.blocks:
        fully_shard(block, **named)
    return fully_shard(model, **named)
count = 8 * size
ids = torch.randint(0, 5, (count, 4), generator=torch.Generator().manual_seed(3))
targets = torch.randint(0, 5, (count, 4), generator=torch.Generator().manual_seed(4))
mine = slice(8 * rank, 8 * rank + 8)
def loss_of(model, rows):
    return nn.functional.cross_entropy(model(ids[rows]).flatten(0, 1), targets[rows].flatten())
def step(model, optimizer, rows, accumulate=1):
    optimizer.zero_grad()
    total = 0
    for part in range(accumulate):
        if accumulate > 1 and isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(part == accumulate - 1)
        length = (rows.stop - rows.start) // accumulate
        loss = loss_of(model, slice(rows.start + part * length, rows.start + (part + 1) * length)) / accumulate
        loss.backward()
        total = total + loss.detach()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.)
    optimizer.step()
    if isinstance(model, FSDPModule):
        dist.all_reduce(total)
        total, norm = total / size, norm.full_tensor()
    return total, norm
def compare(model, kind, steps=3, **named):
    plain = net()
    a, b = kind(plain.parameters()), kind(model.parameters())
    for _ in range(steps):
        expected, found = step(plain, a, slice(0, count)), step(model, b, mine, **named)
        assert all(abs(x - y) < 1e-12 for x, y in zip(expected, found)), (rank, expected, found)
    for (name, x), y in zip(plain.state_dict().items(), model.state_dict().values()):
        assert (y.full_tensor() - x).abs().max() < 1e-12, (rank, name)
    return plain, a, b
adam = lambda params: torch.optim.Adam(params, lr=0.01)
momentum = lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9)
"""
)

TWO = (
    COMMON
    + """
for named in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}):
    compare(split(net(), **named), momentum)
plain, a, b = compare(model := split(net()), adam)
assert model.blocks[0].up.weight.to_local().shape == ((4, 6), (3, 6))[rank]
assert b.state[model.blocks[0].up.weight]["exp_avg"].to_local().shape == ((4, 6), (3, 6))[rank]
compare(split(net(recompute=True)), momentum)
compare(split(net()), momentum, accumulate=2)
ahead = split(net(), reshard_after_forward=True)
for here, there in zip(ahead.blocks, ahead.blocks[1:]):
    here.set_modules_to_forward_prefetch([there])
    there.set_modules_to_backward_prefetch([here])
handle = ahead.blocks[0].unshard(async_op=True)
handle.wait()
assert type(ahead.blocks[0].up.weight) is nn.Parameter
ahead.blocks[0].reshard()
compare(ahead, momentum)
one = net()
fully_shard([one.blocks[1], one.blocks[2]])
compare(fully_shard(one), momentum)

# Parameters without a gradient in a step, and evaluation.
part = split(net())
part.blocks[0](torch.ones(1, 6)).sum().backward()
assert part.blocks[0].up.weight.grad is not None and part.blocks[1].up.weight.grad is None
part.zero_grad()
with torch.no_grad():
    part(ids[mine])
assert all(isinstance(each, DTensor) for each in part.state_dict().values())
compare(part, momentum)

# Whole state of rank 0, to all ranks.
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
fresh = split(net())
for each in fresh.parameters():
    each.detach().zero_()
new = adam(fresh.parameters())
set_model_state_dict(fresh, plain.state_dict() if rank == 0 else {}, options=options)
set_optimizer_state_dict(fresh, new, get_optimizer_state_dict(plain, a) if rank == 0 else {}, options=options)
for _ in range(2):
    expected, found = step(plain, a, slice(0, count)), step(fresh, new, mine)
    assert all(abs(x - y) < 1e-12 for x, y in zip(expected, found)), (rank, expected, found)
full = get_model_state_dict(fresh, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
assert bool(full) == (rank == 0)
checkpoint.save({"model": get_model_state_dict(fresh), "optimizer": get_optimizer_state_dict(fresh, new)}, checkpoint_id="two")
torch.save(plain.state_dict(), f"plain{rank}.pt")

# On the meta device first.
with torch.device("meta"):
    empty_model = Net()
split(empty_model)
empty_model.to_empty(device="cpu")
loaded = {"model": get_model_state_dict(empty_model)}
checkpoint.load(loaded, checkpoint_id="two")
set_model_state_dict(empty_model, loaded["model"])
assert abs(loss_of(empty_model, mine) - loss_of(plain, mine)) < 1e-12

# Memory: the whole parameters of one layer at a time.
if sys.platform == "linux":
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
    torch.set_default_dtype(torch.float32)
    def growth(reshard):
        model = nn.Sequential(*[nn.Linear(1000, 1000, bias=False) for _ in range(8)])  # 8 times 4 MB
        for layer in model:
            fully_shard(layer, reshard_after_forward=reshard)
        fully_shard(model, reshard_after_forward=reshard)
        x = torch.ones(1, 1000)
        before = resident()
        out = model(x)
        after = resident()
        out.sum().backward()
        return after - before
    kept, dropped = growth(False), growth(True)
    print(json.dumps([kept, dropped]))
    assert dropped < 12 and kept > 24, (kept, dropped)
"""
)

FOUR = (
    COMMON
    + """
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
compare(model := split(net(), mesh=mesh), momentum)
assert model.head.weight.placements == (Replicate(), Shard(0)) and model.head.weight.to_local().shape[0] in (2, 3)
compare(split(net()), adam, steps=2)
fresh = split(net())
new = adam(fresh.parameters())
state = {"model": get_model_state_dict(fresh), "optimizer": get_optimizer_state_dict(fresh, new)}
checkpoint.load(state, checkpoint_id="two")
set_state_dict(fresh, new, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
plain = torch.load("plain0.pt")
for name, each in fresh.state_dict().items():
    assert (each.full_tensor() - plain[name]).abs().max() < 1e-12, name
assert new.state[fresh.head.weight]["step"] == 5
"""
)


def test_two_ranks_and_four(tmp_path: Path) -> None:
    run_ranks(tmp_path, TWO, 2, LIMIT)
    run_ranks(tmp_path, FOUR, 4, LIMIT)
