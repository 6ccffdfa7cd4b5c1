"""``DistributedDataParallel``, communication hooks, ``Join`` and ``SyncBatchNorm`` with 2 and 4 ranks."""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import distributed as dist
from retrograd import nn
from retrograd.nn.parallel import DistributedDataParallel
from tests.distributed.rank_processes import run_ranks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the helper that starts ranks")
HERE = Path(__file__).parent


def check(found: Any, expected: Any, path: str) -> None:
    """Compare results: numbers to 1e-10, texts exactly, except for what an error of PyTorch is followed by."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for name, each in expected.items():
            check(found[name], each, f"{path}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for index, each in enumerate(expected):
            check(found[index], each, f"{path}[{index}]")
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-10, abs_tol=1e-10), f"{path}: {found} is not {expected}"
    elif isinstance(expected, str):
        assert found.startswith(expected), f"{path}: {found} is not {expected}"
    else:
        assert found == expected, f"{path}: {found} is not {expected}"


@pytest.mark.parametrize("ranks", [2, 4])
def test_results_of_several_ranks_are_pytorchs(tmp_path: Path, ranks: int) -> None:
    """The golden values were recorded by data_parallel_program.py with PyTorch and gloo; it also runs the checks."""
    pytest.importorskip("mpi4py", reason="several ranks need retrograd[distributed]")
    arguments = ["run", str(HERE / "data_parallel_program.py"), str(tmp_path), "checks"]
    run_ranks(tmp_path, f"from retrograd.cli import main\nmain({arguments})", ranks, limit=100.0)
    assert len([*tmp_path.glob("passed.*")]) == ranks
    name = f"data_parallel_{ranks}.json"
    found = json.loads((tmp_path / name).read_text())
    for rank, expected in enumerate(json.loads((HERE / "golden" / name).read_text())):
        check(found[rank], expected, f"rank {rank}")


def test_whole_batches_were_recorded_as_equal() -> None:
    """The golden values contain whether losses and parameters equal those of one process to 1e-12, and the bits agree."""
    for ranks in (2, 4):
        for each in json.loads((HERE / "golden" / f"data_parallel_{ranks}.json").read_text()):
            assert all(found[2:] == [True, True] for found in each["whole_batch"].values())
            assert each["convolutional_network"][2:] == [True, True]


# -- One process -------------------------------------------------------------------------------------------------------


@pytest.fixture
def group() -> Any:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_buckets_are_pytorchs(group: Any) -> None:
    tensors = [torch.empty(*shape) for shape in ((4, 2), (3,), (5, 5), (1,))]
    tensors += [torch.empty(7, dtype=torch.float64), torch.empty(30, dtype=torch.float64)]
    assign = dist._compute_bucket_assignment_by_size
    assert assign(tensors, [40, 100]) == ([[0, 1], [2], [3], [4], [5]], [40, 100, 100, 100, 100])
    assert assign(tensors, [1000]) == ([[0, 1, 2, 3], [4, 5]], [1000, 1000])
    assert assign(tensors, [1000], [False, True, False, False, False, False])[0] == [[0, 2, 3], [1], [4, 5]]


def test_buckets_follow_the_order_of_the_gradients(group: Any) -> None:
    class Reversed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.first = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x))

    model = DistributedDataParallel(Reversed(), bucket_cap_mb=1e-6)
    assert [each.indices for each in model.reducer.buckets] == [[0, 1, 2, 3]]
    started = []
    for step in range(2):
        model(torch.ones(1, 2)).sum().backward()
        started.append([sorted(each.indices) for each in model.reducer.buckets])
        assert model.reducer.rebuilt == (step > 0)
    assert started[1] == [[1], [0], [3], [2]]


def test_reduction_starts_during_the_backward_pass(group: Any) -> None:
    """The first bucket is reduced before the gradients of the first layer are computed."""
    model = DistributedDataParallel(network(), bucket_cap_mb=1e-6)
    order: list[str] = []

    def hook(state, bucket):  # type: ignore[no-untyped-def]  # the annotation of ``bucket`` is checked
        order.append(f"bucket {bucket.index()}")
        done: Any = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model.register_comm_hook(None, hook)
    model.module[0].weight.register_hook(lambda grad: order.append("first layer"))
    for _ in range(2):
        order.clear()
        model(torch.ones(1, 3)).sum().backward()
    assert order.index("bucket 0") < order.index("first layer") < order.index("bucket 3")


def test_gradients_are_views_of_buckets(group: Any) -> None:
    model = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    for set_to_none in (True, False):
        model(torch.ones(1, 3)).sum().backward()
        for bucket in model.reducer.buckets:
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                assert parameter.grad.data_ptr() == view.data_ptr()
        model.zero_grad(set_to_none=set_to_none)


def test_memory_layouts_of_parameters_are_kept(group: Any) -> None:
    for as_view in (False, True):
        layer = nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last)
        plain = nn.Conv2d(2, 3, 2)
        plain.load_state_dict(layer.state_dict())
        model = DistributedDataParallel(layer, gradient_as_bucket_view=as_view)
        image = torch.arange(32.0).reshape(1, 2, 4, 4)
        model(image).square().sum().backward()
        plain(image).square().sum().backward()
        torch.testing.assert_close(layer.weight.grad, plain.weight.grad)
        assert layer.weight.grad.stride() == layer.weight.stride()


def test_warnings_are_pytorchs(group: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DistributedDataParallel(network(), broadcast_buffers=False, check_reduction=True)
        DistributedDataParallel(network(), broadcast_buffers=False, forward_sync_buffers=True)
        model = DistributedDataParallel(network(), find_unused_parameters=True)
        model(torch.ones(1, 3)).sum().backward()
        DistributedDataParallel(network(), static_graph=True, find_unused_parameters=True)._set_static_graph()
    texts = [(each.category, str(each.message)) for each in caught]
    starts = [
        (FutureWarning, "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead."),
        (FutureWarning, "The `check_reduction` argument in `DistributedDataParallel` module is deprecated."),
        (FutureWarning, "Both `broadcast_buffers` and `forward_sync_buffers` were specified."),
        (UserWarning, "find_unused_parameters=True was specified in DDP constructor, but did not find any unused"),
        (UserWarning, "You passed find_unused_parameters=true to DistributedDataParallel"),
        (UserWarning, "You've set static_graph to be True, no need to set it again."),
    ]
    assert len(texts) == len(starts), texts
    for (kind, text), (expected, start) in zip(texts, starts, strict=True):
        assert kind is expected and text.startswith(start)


def test_communication_hooks_are_checked(group: Any) -> None:
    model = DistributedDataParallel(network())
    model.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    with pytest.raises(RuntimeError, match=r"callback must return a torch.futures.Future object, but got torch.Tensor"):
        model(torch.ones(1, 3)).sum().backward()
    other = DistributedDataParallel(network())
    other._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    other(torch.ones(1, 3)).sum().backward()
    assert other.module[2].bias.grad.tolist() == [1.0, 1.0]


def test_every_registered_hook_runs(group: Any) -> None:
    from retrograd.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook

    for kind in DDPCommHookType:
        model = DistributedDataParallel(network())
        register_ddp_comm_hook(kind, model)
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
        assert model.module[2].bias.grad.tolist() == [1.0, 1.0], kind


def test_buffer_hooks_replace_the_broadcast(group: Any) -> None:
    from retrograd.nn.parallel.distributed import _BufferCommHookLocation

    for location in _BufferCommHookLocation:
        model, seen = DistributedDataParallel(nn.BatchNorm1d(2)), []

        def hook(state: Any, buffers: Any, seen: Any = seen) -> list[Any]:
            seen.append((state, sorted(buffers)))
            done: Any = torch.futures.Future()
            done.set_result(None)
            return [done]

        model._register_buffer_comm_hook("state", hook, location)
        model(torch.ones(2, 2)).sum().backward()
        assert seen == [("state", ["num_batches_tracked", "running_mean", "running_var"])]


def test_recorded_gradients_warn(group: Any) -> None:
    model = DistributedDataParallel(nn.Linear(2, 1))
    with pytest.warns(UserWarning, match="create_graph=True  is not well-supported"):
        model(torch.ones(1, 2)).square().sum().backward(create_graph=True)
