"""Checks of ``data_parallel_program.py`` without a counterpart in PyTorch: errors, SyncBatchNorm on the CPU, compiling.

The functions are called by all ranks.
"""

import copy
import gc
import os
import weakref
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def error_of(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("no error")


def equal_in_all_ranks(model):
    mine = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    gathered = [None] * SIZE
    dist.all_gather_object(gathered, mine)
    return all(each == mine for each in gathered)


def different_parameters():
    """All ranks get an error that names the parameter; the group can be used afterwards."""
    text = error_of(lambda: DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2 + (RANK == 1)))))
    where = "this process" if RANK == 1 else "process 1"
    start = f"RuntimeError: [{RANK}]: params[2] in {where} with sizes [3, 2] appears not to match sizes of the same param in "
    assert text.startswith(start + "process 0."), text
    assert "`1.weight`" in text and "[2, 2]" in text, text
    text = error_of(lambda: DistributedDataParallel(nn.Linear(2, 2).float() if RANK == 1 else nn.Linear(2, 2)))
    assert "torch.float64" in text and "torch.float32" in text, text
    text = error_of(lambda: DistributedDataParallel(nn.Sequential(*[nn.Linear(2, 2) for _ in range(1 + (RANK == 1))])))
    counts = (4, 2) if RANK == 1 else (2, 4)
    others = (0 if RANK == 1 else 1, RANK)
    assert (
        f"Rank {others[1]} has {counts[0]} params, while rank {others[0]} has inconsistent {counts[1]} params." in text
    ), text
    assert "`1.weight`" in text, text
    assert "meta device" in error_of(lambda: DistributedDataParallel(nn.Linear(2, 2, device="meta")))


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle, self.hidden, self.extra = (nn.Linear(2, 2) for _ in range(4))

    def forward(self, x):
        x = self.used(x)
        return {"a": nn.functional.linear(x, self.hidden.weight.detach()), "b": self.extra(x)}


def unused_parameters_are_explained():
    model = DistributedDataParallel(Partly())
    x = torch.ones(1, 2)
    out = model(x)
    out["a"].sum().backward()
    text = error_of(lambda: model(x))
    assert "Parameters which did not receive grad for rank " in text, text
    reasons = {line.partition(":")[0].strip(): line for line in text.splitlines() if line.startswith("  ")}
    assert "its module was not called" in reasons["idle.weight, idle.bias, hidden.bias"], text
    assert "output['b'] of `forward` depends on it" in reasons["extra.weight, extra.bias"], text
    assert "used by `mm`" in reasons["hidden.weight"] or "used by `linear`" in reasons["hidden.weight"], text
    assert "detached" in reasons["hidden.weight"] and Path(__file__).name in reasons["hidden.weight"], text
    model = DistributedDataParallel(Partly())
    model.module.idle.requires_grad_(False)
    (lambda out: out["a"].sum() + out["b"].sum())(model(x)).backward()
    text = error_of(lambda: model(x))
    assert "idle.weight, idle.bias: requires_grad was set to False" in text, text


class Failing(nn.Module):
    """Module of which a backward pass fails in the middle."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.fails = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)]), False

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x).tanh()
            if number == 1 and self.fails:
                x.register_hook(self.fail)
        return x

    def fail(self, grad):
        raise ArithmeticError("a bad batch")


def failing_backward_passes():
    """A backward pass raises in one rank, or in all: the next steps are correct, and equal in all ranks."""
    for options in ({}, {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}):
        _failing_backward_passes(options, (set(), {SIZE - 1}, set(), set(range(SIZE)), set()))
        _failing_backward_passes(options, ({SIZE - 1}, set(), {0}, set()))  # also before buckets are rebuilt
        _failing_backward_passes(options, ({0}, set()))


def _failing_backward_passes(options, passes):
    model, expected = DistributedDataParallel(Failing(), bucket_cap_mb=1e-5, **options), Failing()
    x = torch.arange(8.0 * SIZE).reshape(SIZE, 2, 4) / 10
    for failing in passes:
        model.zero_grad()
        model.module.fails = RANK in failing
        if RANK in failing:
            assert "a bad batch" in error_of(lambda: model(x[RANK]).sum().backward())
        else:
            model(x[RANK]).sum().backward()
        if not failing:
            expected.zero_grad()
            (expected(x.flatten(0, 1)).sum() / SIZE).backward()
            for one, other in zip(model.parameters(), expected.parameters(), strict=True):
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-12)
    assert equal_in_all_ranks(model)


def sync_batchnorm():
    """Outputs, gradients and running statistics are those of the whole batch, with batches of different sizes."""
    bounds = [0, 3, 8] if SIZE == 2 else [0, 1, 1, 5, 8]
    part = slice(bounds[RANK], bounds[RANK + 1])
    for shape, kind in (((8, 3), nn.BatchNorm1d), ((8, 3, 4), nn.BatchNorm1d), ((8, 3, 2, 2), nn.BatchNorm2d)):
        for options in ({}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}):
            torch.manual_seed(1)
            x, w = torch.randn(*shape), torch.randn(*shape)
            whole = kind(3, **options)
            if whole.weight is not None:
                nn.init.uniform_(whole.weight)
                nn.init.uniform_(whole.bias)
            split = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(kind(3, **options)))
            split[0].load_state_dict(whole.state_dict())
            for _ in range(2):
                a, b = x.clone().requires_grad_(), x[part].clone().requires_grad_()
                y, z = whole(a), split(b)
                (y * w).sum().backward()
                (z * w[part]).sum().backward()
                torch.testing.assert_close(z, y[part])
                torch.testing.assert_close(b.grad, a.grad[part])
            for one, other in zip(split.parameters(), whole.parameters(), strict=True):
                dist.all_reduce(one.grad)
                torch.testing.assert_close(one.grad, other.grad)
            for one, other in zip(split.buffers(), whole.buffers(), strict=True):
                torch.testing.assert_close(one, other)
            split.eval()
            torch.testing.assert_close(split(x), whole.eval()(x))
    half = nn.SyncBatchNorm(3).half()(torch.ones(2, 3, dtype=torch.float16))
    assert half.dtype == torch.float16 and half.shape == (2, 3)


def ddp_with_sync_batchnorm():
    torch.manual_seed(2)
    whole = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1))
    split = DistributedDataParallel(
        nn.SyncBatchNorm.convert_sync_batchnorm(
            nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1))
        )
    )
    split.module.load_state_dict(whole.state_dict())
    x = torch.randn(3, SIZE, 4, 4)
    one, other = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (whole, split))
    for batch in x:
        for model, optimizer, part in ((whole, one, batch.flatten(0, 1)), (split, other, batch[RANK])):
            optimizer.zero_grad()
            model(part).square().mean().backward()
            optimizer.step()
    for a, b in zip(whole.parameters(), split.module.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def compiled_modules():
    """Compiled modules within, and the compiled object, compute the same gradients."""
    torch.manual_seed(3)
    x = torch.randn(SIZE, 6, 4)

    def make():
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    plain = make()
    plain(x.flatten(0, 1)).square().mean().backward()
    for wrap in (
        lambda m: DistributedDataParallel(torch.compile(m)),
        lambda m: torch.compile(DistributedDataParallel(m)),
    ):
        module = make()
        module.load_state_dict(plain.state_dict())
        model = wrap(module)
        for _ in range(3):
            model.zero_grad()
            model(x[RANK]).square().mean().backward()
            for a, b in zip(module.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-12)


def hooks_in_bfloat16():
    """PyTorch refuses the hook for gloo."""
    torch.manual_seed(4)
    model = DistributedDataParallel(nn.Linear(4, 2))
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    model(torch.ones(3, 4)).sum().backward()
    torch.testing.assert_close(model.module.weight.grad, torch.full((2, 4), 3.0))


def collected_when_dropped():
    """The hooks of the parameters keep neither the object nor its buckets alive."""
    module = nn.Linear(2, 2)
    model = DistributedDataParallel(module)
    reference = weakref.ref(model.reducer)
    del model
    gc.collect()
    assert reference() is None
    module(torch.ones(1, 2)).sum().backward()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.out.weight = self.table.weight

    def forward(self, index):
        return self.out(self.table(index))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.LSTM(4, 5, num_layers=2, batch_first=True), nn.Linear(5, 1)

    def forward(self, x):
        return checkpoint(self.out, self.cells(x)[0], use_reentrant=False)


def kinds_of_modules():
    """Gradients of modules with shared, recurrent and computed parameters are those of the whole batch."""
    generator = torch.Generator().manual_seed(1)
    index, x = torch.arange(SIZE * 6).reshape(SIZE, 6) % 7, torch.randn(SIZE, 2, 3, 4, generator=generator)
    makers = [
        (Tied, index), (Recurrent, x), (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), x),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), x),
    ]  # fmt: skip
    for options in ({}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-4}, {"find_unused_parameters": True}):
        for make, inputs in makers:
            whole = make()
            model = DistributedDataParallel(copy.deepcopy(whole), **options)
            for one, other in zip(whole.parameters(), model.parameters(), strict=True):
                one.data.copy_(other.data)
            for _ in range(2):
                whole.zero_grad()
                model.zero_grad()
                (sum(whole(each).square().mean() for each in inputs) / SIZE).backward()
                model(inputs[RANK]).square().mean().backward()
                for one, other in zip(whole.parameters(), model.parameters(), strict=True):
                    torch.testing.assert_close(other.grad, one.grad, rtol=1e-10, atol=1e-12)


CHECKS = [
    different_parameters, unused_parameters_are_explained, failing_backward_passes, sync_batchnorm, ddp_with_sync_batchnorm,
    compiled_modules, kinds_of_modules, hooks_in_bfloat16, collected_when_dropped,
]  # fmt: skip
