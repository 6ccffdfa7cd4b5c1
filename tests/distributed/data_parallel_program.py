"""Program of several ranks whose results the tests compare with those of PyTorch: data parallel training.

    torchrun --nproc-per-node 2 tests/distributed/data_parallel_program.py tests/distributed/golden    # with PyTorch

records the expected results of 2 ranks. Each function returns numbers and texts; rank 0 writes those of all ranks to
``FOLDER/data_parallel_SIZE.json``. With a further argument, the checks of ``data_parallel_checks.py`` run in the same ranks.
"""

import copy
import json
import os
import pickle
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2))


def batches(count=4, size=8):
    """Return inputs and targets of this rank, and those of all ranks."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(count, size, 6, generator=generator), torch.randn(count, size, 2, generator=generator)
    part = slice(RANK * size // SIZE, (RANK + 1) * size // SIZE)
    return x[:, part], y[:, part], x, y


def train(model, x, y, optimizer=None, steps=None):
    """Return the losses of training steps."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for inputs, targets in zip(x[:steps], y[:steps], strict=True):
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def averaged(losses):
    total = torch.tensor(losses)
    dist.all_reduce(total)
    return (total / SIZE).tolist()


def weights(model):
    return [each.double().sum().item() for each in model.parameters()]


def gradients(model):
    return [None if each.grad is None else each.grad.double().sum().item() for each in model.parameters()]


def equal_bits(model):
    """Whether all ranks have the same bits in all parameters."""
    mine = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    gathered = [None] * SIZE
    dist.all_gather_object(gathered, mine)
    return all(each == mine for each in gathered)


def error_of(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\nParameters which")[0].partition("\nParameter indices")[0]
    return None


# -- Equal to one process ----------------------------------------------------------------------------------------------


def whole_batch():
    """Losses and parameters of one process with the whole batch, and of all ranks, in several ways."""
    x, y, whole_x, whole_y = batches()
    single = network()
    expected = train(single, whole_x, whole_y)
    results = {}
    for name, options in {
        "default": {}, "views": {"gradient_as_bucket_view": True}, "small": {"bucket_cap_mb": 1e-4},
        "unused": {"find_unused_parameters": True}, "static": {"static_graph": True},
        "static views": {"static_graph": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 1e-4},
        "list": {"bucket_cap_mb_list": [1e-4, 5e-4]},
    }.items():  # fmt: skip
        model = DistributedDataParallel(
            network(RANK), **options
        )  # other values in each rank: those of rank 0 are copied
        losses = averaged(train(model, x, y))
        close = max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 1e-12
        pairs = zip(model.parameters(), single.parameters(), strict=True)
        close = close and all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in pairs)
        results[name] = [losses, weights(model), close, equal_bits(model)]
    return results


def convolutional_network():
    """The network of examples/digits.py without dropout: losses and parameters of one process, and of all ranks."""
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(6, 16, 1, 8, 8, generator=generator)
    y = torch.randint(0, 10, (6, 16), generator=generator)
    part = slice(RANK * 16 // SIZE, (RANK + 1) * 16 // SIZE)
    results = []
    for wrapped in (False, True):
        torch.manual_seed(0)
        layers = [
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))
        model = DistributedDataParallel(module, bucket_cap_mb=0.01) if wrapped else module
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        losses = []
        for images, digits in zip(x, y, strict=True):
            loss = (
                F.cross_entropy(model(images[part]), digits[part])
                if wrapped
                else F.cross_entropy(model(images), digits)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append((averaged(losses) if wrapped else losses, weights(model), equal_bits(model)))
    close = all(abs(a - b) < 1e-12 for a, b in zip(results[0][0], results[1][0], strict=True))
    return [*results[1], close]


def optimizers_and_clipping():
    x, y, _, _ = batches()
    results = {}
    for name in ("Adam", "RMSprop", "Adagrad"):
        model = DistributedDataParallel(network(), gradient_as_bucket_view=name == "Adam")
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        results[name] = [train(model, x, y, optimizer), weights(model)]
    model = DistributedDataParallel(network())
    train(model, x, y, steps=1)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    return {**results, "norm": norm.item(), "clipped": gradients(model)}


def accumulation():
    """Gradients of two halves under no_sync, and their sum."""
    x, y, _, _ = batches()
    results = []
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}):
        model = DistributedDataParallel(network(), **options)
        for step in range(2):
            with model.no_sync():
                F.mse_loss(model(x[step]), y[step]).backward()
                local = gradients(model)
            F.mse_loss(model(x[step + 2]), y[step + 2]).backward()
            results += [local, gradients(model)]
            model.zero_grad(set_to_none=step == 0)
        results.append(equal_bits(model))
    return results


def several_forward_passes():
    x, y, _, _ = batches()
    model = DistributedDataParallel(network())
    results = []
    for _ in range(2):
        (F.mse_loss(model(x[0]), y[0]) + F.mse_loss(model(x[1]), y[1])).backward()
        results.append(gradients(model))
        model.zero_grad()
    first, second = F.mse_loss(model(x[0]), y[0]), F.mse_loss(model(x[1]), y[1])
    first.backward()
    results.append(gradients(model))
    second.backward()  # not reduced, as in PyTorch
    return [*results, gradients(model)]


# -- Parameters without gradients --------------------------------------------------------------------------------------


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.second, self.third = nn.Linear(6, 2), nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x, which):
        return {"main": [self.first(x)], "other": (self.second(x) if which == 1 else self.third(x).detach(), which)}


def unused_parameters():
    x, _, _, _ = batches()
    results = []
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    for step, which in enumerate((1, 2, 1 + RANK % 2, 2 - RANK % 2)):
        out = model(x[step], which)
        (out["main"][0].sum() + out["other"][0].sum()).backward()
        results.append(gradients(model))
        if step != 1:
            model.zero_grad()
    out = model(x[0], 1)
    out["main"][0].sum().backward()  # the other output is not used in any rank
    results.append(gradients(model))
    model.zero_grad()
    out = model(x[0], 1)
    (out["main"][0].sum() + RANK * out["other"][0].sum() if RANK else out["main"][0].sum()).backward()
    results.append(gradients(model))
    return results


def unused_under_no_sync():
    x, _, _, _ = batches()
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    with model.no_sync():
        out = model(x[0], 1)
        (out["main"][0].sum() + out["other"][0].sum()).backward()
    out = model(x[1], 2)
    out["main"][0].sum().backward()
    return gradients(model)


def unused_without_permission():
    x, _, _, _ = batches()
    model = DistributedDataParallel(Branches())

    def step():
        model(x[0], 1)["main"][0].sum().backward()

    return [error_of(step), error_of(step)]


def static_unused():
    x, _, _, _ = batches()
    model = DistributedDataParallel(Branches(), static_graph=True)
    results = []
    for step in range(4):
        out = model(x[step], 1 + RANK % 2)
        (out["main"][0].sum() + out["other"][0].sum()).backward()
        results.append(gradients(model))
        model.zero_grad()
    results.append(error_of(lambda: model(x[0], 2 - RANK % 2)["other"][0].sum().backward()) if SIZE == 1 else None)
    return results


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        class Result:
            value = self.layer(x)

        return Result()


@dataclass
class Output:
    value: torch.Tensor


class Dataclass(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        return Output(self.layer(x))


def outputs():
    x, _, _, _ = batches()
    hidden = DistributedDataParallel(Hidden(), find_unused_parameters=True)
    texts = [error_of(lambda: hidden(torch.ones(1, 2)).value.sum().backward())]
    model = DistributedDataParallel(Dataclass(), find_unused_parameters=True)
    model(x[0]).value.sum().backward()
    single = DistributedDataParallel(nn.Linear(2, 2), find_unused_parameters=True)
    return [*texts, gradients(model), str(single(torch.ones(1, 2)).grad_fn.name()), repr(single)]


class Recomputed(nn.Module):
    def __init__(self, times):
        super().__init__()
        torch.manual_seed(4)
        self.layers, self.times = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)]), times

    def forward(self, x):
        for _ in range(self.times):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=True).tanh()
        return x


def recomputation():
    x, _, _, _ = batches()
    results = []
    for times, options in ((1, {}), (2, {"static_graph": True})):
        model = DistributedDataParallel(Recomputed(times), **options)
        for step in range(3):
            model(x[step].clone().requires_grad_()).sum().backward()
            results.append(gradients(model))
            model.zero_grad()
    return results


# -- Buffers, dtypes, sparse gradients ---------------------------------------------------------------------------------


def buffers():
    x, y, _, _ = batches()
    torch.manual_seed(5)
    results = []
    for options in ({}, {"forward_sync_buffers": False}):
        model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), **options)
        losses = train(model, x * (1 + RANK), y)
        results.append([losses, weights(model), [each.double().sum().item() for each in model.buffers()]])
        model.eval()
        with torch.no_grad():
            results.append(model(x[0]).sum().item())
        results.append([each.double().sum().item() for each in model.buffers()])
    return results


def ignored():
    module = network(RANK)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["0.weight", "4.bias"])
    model = DistributedDataParallel(module)
    x, y, _, _ = batches()
    F.mse_loss(model(x[0]), y[0]).backward()
    return [weights(model), gradients(model)]


def dtypes():
    torch.manual_seed(6)
    module = nn.Sequential(nn.Linear(6, 4).float(), nn.Linear(4, 4).double(), nn.Linear(4, 2).float())
    layers = list(module)
    model = DistributedDataParallel(module, bucket_cap_mb=1e-4)
    x, _, _, _ = batches()
    results = []
    for step in range(3):
        # a module of mixed dtypes converts between its layers
        for layer, dtype in zip(layers, (torch.float32, torch.float64, torch.float32), strict=True):
            if step == 0:
                layer.register_forward_pre_hook(lambda _, inputs, dtype=dtype: (inputs[0].to(dtype),))
        model(x[step]).sum().backward()
        results.append([round(each, 5) for each in gradients(model)])
        model.zero_grad()
    return results


def sparse_gradients():
    torch.manual_seed(7)
    results = []
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(10, 3, sparse=True), nn.Flatten(), nn.Linear(6, 2)))
    for step in range(3):
        model(torch.tensor([[RANK, 5], [step, 5]])).sum().backward()
        grad = model.module[0].weight.grad
        results.append([grad.is_sparse, grad.to_dense().tolist(), gradients(nn.ModuleList([model.module[2]]))])
        model.zero_grad()
    return results


# -- Communication hooks -----------------------------------------------------------------------------------------------


def communication_hooks():
    x, y, _, _ = batches(8)
    results = {}
    hooks = {
        "allreduce": (default_hooks.allreduce_hook, None), "fp16": (default_hooks.fp16_compress_hook, None),
        "wrapper": (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), None),
        "power": (powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(None, 2, 2, min_compression_rate=1)),
        "batch": (
            powerSGD_hook.powerSGD_hook,
            powerSGD_hook.PowerSGDState(None, 3, 2, 1, batch_tensors_with_same_shape=True, warm_start=False),
        ),
        "local": (post_localSGD_hook.post_localSGD_hook, post_localSGD_hook.PostLocalSGDState(None, None, 2, False)),
    }  # fmt: skip
    for name, (hook, state) in hooks.items():
        model = DistributedDataParallel(network())
        model.register_comm_hook(state, hook)
        digits = 3 if name in ("fp16", "wrapper") else 9
        results[name] = [round(each, digits) for each in train(model, x, y)]
    seen = []

    def record(state, bucket):
        seen.append([
            bucket.index(), bucket.is_last(), list(bucket.buffer().shape), [list(each.shape) for each in bucket.gradients()],
            [list(each.shape) for each in bucket.parameters()], bucket.gradients()[0].sum().item(), state,
        ])  # fmt: skip
        return default_hooks.allreduce_hook(None, bucket)

    model = DistributedDataParallel(network(), bucket_cap_mb=1e-4)
    model.register_comm_hook("state", record)
    results["again"] = error_of(lambda: model.register_comm_hook(None, record))
    results["buckets"] = [train(model, x, y, steps=3), seen]
    model = DistributedDataParallel(network())
    results["errors"] = [
        error_of(lambda: model.register_comm_hook(None, 1)),
        error_of(lambda: model.register_comm_hook(None, wrong_annotation)),
        error_of(lambda: model.register_comm_hook(None, wrong_result)),
    ]
    return results


def wrong_annotation(state, bucket: int):
    """Return nothing."""


def wrong_result(state, bucket) -> int:
    """Return nothing."""


# -- Ranks with different numbers of inputs ----------------------------------------------------------------------------


class Counter(Joinable):
    """Object with one reduction in each iteration."""

    class Hook(JoinHook):
        def __init__(self, counter):
            self.counter, self.calls = counter, 0

        def main_hook(self):
            self.calls += 1
            dist.all_reduce(torch.zeros(1))

        def post_hook(self, is_last_joiner):
            self.counter.ended = [self.calls, is_last_joiner]

    def __init__(self):
        super().__init__()
        self.counts, self.ended = [], None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.counts.append(one.item())

    def join_hook(self, **kwargs):
        return Counter.Hook(self)

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def uneven_inputs():
    x, y, _, _ = batches(6)
    results = []
    for options, arguments in (
        ({}, {}), ({"bucket_cap_mb": 1e-4}, {"divide_by_initial_world_size": False}), ({"find_unused_parameters": True}, {}),
        ({}, {"throw_on_early_termination": True}),
    ):  # fmt: skip
        model = DistributedDataParallel(nn.Sequential(network(), nn.BatchNorm1d(2)), **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []

        def loop(model=model, optimizer=optimizer, losses=losses, arguments=arguments):
            with model.join(**arguments):
                losses += train(model, x[: 2 + RANK], y[: 2 + RANK], optimizer)

        text = error_of(loop)
        if text is None:
            results += [losses, weights(model), equal_bits(model)]
        else:
            results.append(text)
    counter = Counter()
    with Join([counter]):
        for _ in range(1 + RANK):
            counter()
    return [*results, counter.counts, counter.ended]


# -- Other features ----------------------------------------------------------------------------------------------------


def sampler():
    data = TensorDataset(torch.arange(11.0))
    results = []
    for options in ({}, {"drop_last": True}, {"shuffle": False}):
        chosen = DistributedSampler(data, **options)
        chosen.set_epoch(3)
        results.append([[each.item() for (part,) in DataLoader(data, 2, sampler=chosen) for each in part], len(chosen)])
    return results


def precision():
    x, y, _, _ = batches()
    model = DistributedDataParallel(network().float())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = []
    for inputs, targets in zip(x.float(), y.float(), strict=True):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.mse_loss(model(inputs).float(), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(round(loss.item(), 2))
    return [losses, equal_bits(model), scaler.get_scale()]


def state():
    model = DistributedDataParallel(network())
    x, y, _, _ = batches()
    train(model, x, y)
    saved = model.state_dict()
    other = DistributedDataParallel(network(1))
    other.load_state_dict(saved)
    plain = network(2)
    nn.modules.utils.consume_prefix_in_state_dict_if_present(saved, "module.")
    plain.load_state_dict(saved)
    copied = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    losses = [train(each, x, y) for each in copied]
    group = dist.new_group(list(range(SIZE)))
    in_group = DistributedDataParallel(network(), process_group=group)
    return [
        weights(other), weights(plain), losses, [equal_bits(each) for each in copied],
        error_of(lambda: pickle.dumps(in_group)), train(in_group, x, y),
    ]  # fmt: skip


def subgroups():
    """Data parallel training in two groups of ranks."""
    ranks = [list(range(SIZE // 2)), list(range(SIZE // 2, SIZE))]
    groups = [dist.new_group(each) for each in ranks]
    x, y, _, _ = batches()
    model = DistributedDataParallel(network(), process_group=groups[RANK >= SIZE // 2])
    return [train(model, x, y), weights(model)]


def construction():
    return [
        error_of(lambda: DistributedDataParallel(nn.ReLU())),
        error_of(lambda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])),
        error_of(lambda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0, 1])),
        error_of(lambda: DistributedDataParallel(nn.Sequential(nn.Linear(2, 2).requires_grad_(False)))),
        error_of(lambda: DistributedDataParallel(nn.Linear(2, 2), param_to_hook_all_reduce=1)),
    ]


def rounded(value):
    """Return ``value`` with numbers of 13 digits."""
    if isinstance(value, float):
        return float(f"{value:.13g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


FUNCTIONS = [
    whole_batch, convolutional_network, optimizers_and_clipping, accumulation, several_forward_passes, unused_parameters, unused_under_no_sync,
    unused_without_permission, static_unused, outputs, recomputation, buffers, ignored, dtypes, sparse_gradients,
    communication_hooks, uneven_inputs, sampler, precision, state, subgroups, construction,
]  # fmt: skip


def main(folder, *checks):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in FUNCTIONS:
            results[each.__name__] = each()
        if checks:
            from data_parallel_checks import CHECKS

            for check in CHECKS:
                check()
            Path(folder, f"passed.{RANK}").touch()
    gathered = [None] * SIZE
    dist.all_gather_object(gathered, results)
    if RANK == 0:
        Path(folder, f"data_parallel_{SIZE}.json").write_text(json.dumps(rounded(gathered), indent=0))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
