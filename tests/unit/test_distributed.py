"""``torch.distributed`` and ``torch.multiprocessing`` with one process; results and messages are PyTorch 2.13's."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
import retrograd.distributed as dist
from retrograd import multiprocessing, nn
from retrograd.nn.parallel import DistributedDataParallel, gather, parallel_apply, scatter
from retrograd.utils.data import DistributedSampler
from tests.distributed.rank_processes import unused_port

pytestmark = pytest.mark.thread_unsafe
NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


@pytest.fixture
def group() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def fails(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match="^" + re.escape(words)):
        call()


# -- Before a group exists ---------------------------------------------------------------------------------------------


def test_distributed_is_available_and_not_initialized() -> None:
    assert dist.is_available() and not dist.is_initialized() and not dist.is_torchelastic_launched()
    assert dist.is_gloo_available() and not dist.is_backend_available("ucc")
    assert dist.is_mpi_available() == (importlib.util.find_spec("mpi4py") is not None)
    assert (dist.group.WORLD, dist.GroupMember.WORLD, dist.GroupMember.NON_GROUP_MEMBER) == (None, None, -100)
    x = torch.ones(3)
    for call in (
        dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.new_group, lambda: dist.all_reduce(x),
        lambda: DistributedDataParallel(nn.Linear(2, 2)), lambda: DistributedSampler([1]),
    ):  # fmt: skip
        fails(ValueError, NOT_INITIALIZED, call)
    fails(AssertionError, "Process group cannot be None", dist.destroy_process_group)
    fails(RuntimeError, "LOCAL_RANK is not in the environment.", dist.get_node_local_rank)
    assert dist.get_node_local_rank(3) == 3


def test_nothing_is_loaded_before_the_first_use() -> None:
    program = """if True:
        import sys, retrograd as torch
        torch.nn.parallel.DataParallel(torch.nn.Linear(2, 2))(torch.ones(1, 2)), torch.utils.data.DataLoader([1])
        print([name for name in sys.modules if "distributed" in name or name in ("retrograd.multiprocessing", "socket")])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- Groups ------------------------------------------------------------------------------------------------------------


def init(**arguments: Any) -> None:
    dist.init_process_group("gloo", **arguments)


def test_init_by_url_environment_and_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port())}
    address = f"tcp://127.0.0.1:{unused_port()}"
    for name, value in environment.items():
        words = f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected"
        fails(ValueError, words, init)
        monkeypatch.setenv(name, value)
    file = (tmp_path / "store").as_uri()
    for arguments in (
        {}, {"init_method": "env://"}, {"init_method": address, "rank": 0, "world_size": 1},
        {"init_method": f"{address}?rank=0&world_size=1"}, {"init_method": file, "rank": 0, "world_size": 1},
        {"store": dist.HashStore(), "rank": 0, "world_size": 1}, {"rank": 0, "world_size": 1},
    ):  # fmt: skip
        init(**arguments)
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized()) == (
            0,
            1,
            "gloo",
            True,
        )
        fails(ValueError, "trying to initialize the default process group twice!", init)
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_errors_of_init_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    start, tcp = "Error initializing torch.distributed using ", "tcp://127.0.0.1:29611"
    store = dist.HashStore()
    for kind, words, arguments in (
        (ValueError, start + "tcp:// rendezvous: rank parameter missing", {"init_method": tcp}),
        (ValueError, start + "tcp:// rendezvous: world size parameter missing", {"init_method": tcp, "rank": 0}),
        (ValueError, start + "tcp:// rendezvous: port number missing", {"init_method": "tcp://a", "rank": 0}),
        (ValueError, start + "file:// rendezvous: path missing", {"init_method": "file://?rank=0&world_size=1"}),
        (AssertionError, "The url: tcp://a:1?rank=0 has node-", {"init_method": "tcp://a:1?rank=0", "world_size": 1}),
        (RuntimeError, "No rendezvous handler for foo://", {"init_method": "foo://", "rank": 0, "world_size": 1}),
        (AssertionError, "Cannot specify both init_method and store.", {"init_method": tcp, "store": store}),
        (AssertionError, "world_size must be positive if using store", {"store": store}),
        (AssertionError, "rank must be non-negative if using store", {"store": store, "world_size": 1}),
        (TypeError, "Expected timeout argument to be of type datetime.timedelta, got 5", {"timeout": 5}),
    ):
        fails(kind, words, lambda arguments=arguments: init(**arguments))
    one = {"store": store, "rank": 0, "world_size": 1}
    fails(
        RuntimeError, "Distributed package doesn't have NCCL built in", lambda: dist.init_process_group("nccl", **one)
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    fails(RuntimeError, "Distributed package doesn't have MPI built in", lambda: dist.init_process_group("MPI", **one))
    fails(AssertionError, "Unknown backend type foo", lambda: dist.init_process_group("foo", **one))
    fails(RuntimeError, "Rendezvous handler for tcp:// already", lambda: dist.register_rendezvous_handler("tcp", init))
    assert not dist.is_initialized()


def test_default_backend() -> None:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    assert (dist.get_backend(), dist.get_backend_config()) == ("undefined", "cpu:gloo")
    dist.destroy_process_group()
    assert [dist.get_default_backend_for_device(each) for each in ("cpu", "cuda:1")] == ["gloo", "nccl"]
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"


def test_groups(group: Any) -> None:
    assert (group.group_name, group.group_desc, group.rank(), group.size(), group.name()) == (
        "0",
        "default_pg",
        0,
        1,
        "gloo",
    )
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    new = dist.new_group([0], group_desc="mine")
    assert (new.group_name, new.group_desc, dist.get_rank(new), dist.get_world_size(new)) == ("1", "mine", 0, 1)
    assert (dist.get_process_group_ranks(new), dist.get_global_rank(new, 0), dist.get_group_rank(new, 0)) == ([0], 0, 0)
    fails(ValueError, "Global rank 4 is not part of group", lambda: dist.get_group_rank(new, 4))
    fails(ValueError, "Group rank 4 is not part of group", lambda: dist.get_global_rank(new, 4))
    fails(ValueError, "the new group's world size should be less or equal", lambda: dist.new_group([0, 1]))
    fails(ValueError, "Rank 1 is out of range. Valid ranks are 0 to 0 (world_size=1)", lambda: dist.new_group([1]))
    fails(ValueError, "The arg 'group_size' (2) must not exceed the world size (1)", lambda: dist.new_subgroups(2))
    mine, all_groups = dist.new_subgroups(1)
    assert all_groups == [mine] and dist.get_pg_count() == 3
    dist.destroy_process_group(new)
    fails(ValueError, "Invalid process group specified", lambda: dist.destroy_process_group(new))
    fails(ValueError, "Group <", lambda: dist.get_rank(new))
    nobody: Any = dist.GroupMember.NON_GROUP_MEMBER
    assert (dist.get_rank(nobody), dist.get_world_size(nobody)) == (-1, -1)
    with pytest.warns(
        UserWarning, match="Running all_reduce on global rank 0 which does not belong to the given group."
    ):
        assert dist.all_reduce(torch.ones(1), group=nobody) is None


def test_device_mesh(group: Any) -> None:
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1), mesh.get_coordinate()) == (2, (1, 1), 1, 1, (0, 0))
    assert mesh["b"].mesh.tolist() == [0] and mesh["b"].mesh_dim_names == ("b",)
    assert mesh.get_group("a") is group and mesh.get_local_rank("b") == 0 and mesh == mesh["a", "b"]
    fails(
        RuntimeError, "Mesh should not be bigger than default world size 1", lambda: dist.init_device_mesh("cpu", (2,))
    )
    fails(RuntimeError, "('Found the DeviceMesh have 2 dimensions'", mesh.get_group)


# -- Collective operations ---------------------------------------------------------------------------------------------


def test_collectives_of_one_process(group: Any) -> None:
    x, out = torch.tensor([1.0, 2.0]), torch.zeros(2)
    for call, expected in (
        (lambda: dist.all_gather([out], x), [1.0, 2.0]),
        (lambda: dist.all_gather_single(out, x + 1), [2.0, 3.0]),
        (lambda: dist.gather(x, [out]), [1.0, 2.0]),
        (lambda: dist.scatter(out, [x + 1]), [2.0, 3.0]),
        (lambda: dist.reduce_scatter(out, [x + 2]), [3.0, 4.0]),
        (lambda: dist.reduce_scatter_single(out, x + 3, op=dist.ReduceOp.AVG), [4.0, 5.0]),
        (lambda: dist.all_to_all([out], [x + 4]), [5.0, 6.0]),
        (lambda: dist.all_to_all_single(out, x + 5, [2], [2]), [6.0, 7.0]),
    ):
        assert call() is None and out.tolist() == expected
    for same in (
        lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0), lambda: dist.broadcast(x, group_src=0),
        lambda: dist.reduce(x, 0, dist.ReduceOp.MAX), dist.barrier, dist.monitored_barrier,
    ):  # fmt: skip
        assert same() is None and x.tolist() == [1.0, 2.0]
    with pytest.warns(FutureWarning, match="`torch.distributed.all_gather_into_tensor` is deprecated."):
        dist.all_gather_into_tensor(out, x)
    assert out.tolist() == [1.0, 2.0]


def test_async_op_returns_work(group: Any) -> None:
    x, out = torch.tensor([1.0, 2.0]), torch.zeros(2)
    for work, results in (
        (dist.all_reduce(x, async_op=True), [[1.0, 2.0]]),
        (dist.all_gather([out], x, async_op=True), [[1.0, 2.0]]),
        (dist.barrier(async_op=True), []),
        (group.allreduce([x]), [[1.0, 2.0]]),
    ):
        assert work is not None and work.wait() is True and work.is_completed() and work.is_success()
        assert work.exception() is None
        assert [each.tolist() for each in work.result()] == results
        assert [each.tolist() for each in work.get_future().wait()] == results
    work = dist.broadcast(x, 0, async_op=True)
    assert isinstance(work, dist.Work)
    fails(RuntimeError, "sourceRank() may only be called on work objects that", work.source_rank)


def test_collectives_do_not_record(group: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    out = torch.zeros(2)
    dist.all_reduce(x)
    dist.all_gather([out], x * 2)
    dist.broadcast(x, 0)
    assert out.tolist() == [2.0, 2.0] and not out.requires_grad and x.is_leaf


@pytest.mark.parametrize("name", ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])
def test_reductions_accept_pytorchs_dtypes(group: Any, name: str) -> None:
    op = getattr(dist.ReduceOp, name)
    bitwise = name in ("BAND", "BOR", "BXOR")
    for values, refused in (
        ([1.0, 2.0], f"Cannot use ReduceOp.{name} with non-integral dtype" if bitwise else ""),
        ([1, 2], "result type Float can't be cast to the desired output type Long" if name == "AVG" else ""),
        ([True, False], "result type Float can't be cast to the desired output type Bool" if name == "AVG" else ""),
        (
            [1 + 1j],
            "" if name in ("SUM", "AVG") else f"all_reduce does not support RedOpType.{name} on complex tensors",
        ),
    ):
        x = torch.tensor(values)
        if refused:
            fails((RuntimeError, ValueError), refused, lambda x=x: dist.all_reduce(x, op))  # type: ignore[arg-type]
        else:
            dist.all_reduce(x, op)
        assert x.tolist() == values


def test_errors_of_collectives_are_pytorchs(group: Any) -> None:
    x, other = torch.ones(3), torch.ones(4)
    gloo = "ProcessGroupGloo::"
    for kind, words, call in (
        (TypeError, "Invalid function argument. Expected parameter `tensor` of type torch.Tensor\n", lambda: dist.all_reduce(3)),
        (TypeError, "Invalid function argument. Expected parameter `tensor_list` of", lambda: dist.all_gather(x, x)),
        (ValueError, "Must specify global_rank or group_rank", lambda: dist.broadcast(x)),
        (ValueError, "Can't specify both group_rank and global_rank", lambda: dist.broadcast(x, 0, group_src=0)),
        (RuntimeError, gloo + "broadcast: invalid root rank: 1", lambda: dist.broadcast(x, 1)),
        (RuntimeError, gloo + "reduce: invalid root rank: 3", lambda: dist.reduce(x, 3)),
        (RuntimeError, gloo + "allgather: invalid output tensor list at index 0 (expected length 1, got 2)",
         lambda: dist.all_gather([x, x], x)),
        (RuntimeError, gloo + "allgather: invalid tensor size at index 0 (expected (3), got (4))",
         lambda: dist.all_gather([other], x)),
        (RuntimeError, gloo + "allgather: invalid tensor size at index 0 (expected (3), got (1, 3))",
         lambda: dist.all_gather_single(torch.ones(1, 3), x)),
        (ValueError, "Invalid usage of tensors with different dtypesFound torch.int64 and  torch.float32",
         lambda: dist.all_gather([torch.zeros(3, dtype=torch.int64)], x)),
        (ValueError, "Argument ``gather_list`` must be specified on destination rank.", lambda: dist.gather(x)),
        (ValueError, "Argument ``scatter_list`` must be specified on source rank.", lambda: dist.scatter(x)),
        (RuntimeError, gloo + "scatter: Incorrect input list size 2. Input list size should be 1, same as size of the",
         lambda: dist.scatter(x, [x, x])),
        (RuntimeError, gloo + "scatter: invalid tensor size at index 0 (expected (3), got (4))", lambda: dist.scatter(x, [other])),
        (RuntimeError, "invalid input tensor list size, must be world size", lambda: dist.reduce_scatter(x, [x, x])),
        (RuntimeError, gloo + "alltoall: input tensor list size 2 does not match world size 1",
         lambda: dist.all_to_all([x], [x, x])),
        (RuntimeError, "Split sizes doesn't match total dim 0 size", lambda: dist.all_to_all_single(x, x, [2], [3])),
        (ValueError, "Invalid destination rank: destination rank should not be the same as the rank of the current process.",
         lambda: dist.send(x, 0)),
        (ValueError, "Invalid ``op``. Expected ``op`` to be of type", lambda: dist.P2POp(print, x, 0)),
        (ValueError, "Invalid ``p2p_op_list``.", lambda: dist.batch_isend_irecv([3])),
        (ValueError, "Expected argument scatter_object_output_list to be a list of size at least 1.",
         lambda: dist.scatter_object_list([], [5], 0)),
        (ValueError, "source rank must provide non-None scatter_object_input_list", lambda: dist.scatter_object_list([None])),
        (IndexError, "list assignment index out of range", lambda: dist.all_gather_object([], 3)),
    ):  # fmt: skip
        fails(kind, words, call)  # type: ignore[arg-type]


def test_object_collectives_copy(group: Any) -> None:
    value = {"a": torch.ones(2)}
    gathered: list[Any] = [None]
    dist.all_gather_object(gathered, value)
    assert gathered[0]["a"].tolist() == [1.0, 1.0] and gathered[0] is not value
    dist.gather_object(1, gathered)
    assert gathered == [1]
    dist.scatter_object_list(gathered, ["b"], 0)
    assert gathered == ["b"]
    dist.broadcast_object_list(gathered, 0)
    assert gathered == ["b"]


def test_reduce_op() -> None:
    op = dist.ReduceOp.SUM
    assert (repr(op), str(op), op == 0, op.name) == ("<RedOpType.SUM: 0>", "RedOpType.SUM", True, "SUM")
    assert isinstance(op, dist.ReduceOp) and dist.ReduceOp(op) == op
    assert pickle.loads(pickle.dumps(op)) is op


def test_functional_collectives_return_new_tensors(group: Any) -> None:
    from retrograd.distributed import _functional_collectives as functional

    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    for result in (
        functional.all_reduce(x, "sum", group), functional.broadcast(x, 0, group), functional.wait_tensor(x.detach()),
        functional.all_gather_tensor(x, 1, group), functional.reduce_scatter_tensor(x, "avg", 1, group),
        functional.all_to_all_single(x, None, None, group),
    ):  # fmt: skip
        assert result.tolist() == [[1.0, 2.0]] and not result.requires_grad
    (3 * functional.all_to_all_single_autograd(x, [1], [1], group)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[3.0, 3.0]]


def test_names_of_distributed_tensors_and_split_modules(group: Any) -> None:
    from retrograd.distributed import algorithms, fsdp, tensor
    from retrograd.distributed.tensor._utils import compute_local_shape_and_global_offset

    mesh = dist.init_device_mesh("cpu", (1,))
    assert compute_local_shape_and_global_offset((4, 3), mesh, [tensor.Shard(0)]) == ((4, 3), (0, 0))
    assert tensor.Shard(1).is_shard(1) and not tensor.Replicate().is_shard() and tensor.Partial().is_partial("sum")
    assert not isinstance(torch.ones(1), tensor.DTensor) and fsdp.ShardingStrategy.FULL_SHARD.value == 1
    with algorithms.Join([DistributedDataParallel(nn.Linear(1, 1))]):
        pass


# -- Stores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind: str, tmp_path: Path) -> None:
    store = {
        "hash": dist.HashStore, "file": lambda: dist.FileStore(tmp_path / "store", 1),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, is_master=True), "prefix": lambda: dist.PrefixStore("p", dist.HashStore()),
    }[kind]()  # fmt: skip
    store.set_timeout(timedelta(milliseconds=20))
    assert store.timeout == timedelta(milliseconds=20)
    store.set("a", "x")
    store.set("b", b"\x00\xff")
    assert (store.get("a"), store.get("b")) == (b"x", b"\x00\xff")
    assert (store.add("n", 2), store.add("n", 3), store.get("n")) == (2, 5, b"5")
    store.wait(["a"])
    for call in (lambda: store.get("zz"), lambda: store.wait(["zz"], timedelta(milliseconds=1))):
        with pytest.raises(dist.DistStoreError, match=r"(?i)wait timeout"):
            call()
    assert store.check(["a"]) and not store.check(["zz"])
    sets = [("a", "x", "y"), ("a", "x", "z"), ("new", "", "q"), ("new2", "w", "q")]
    assert [store.compare_set(*each) for each in sets] == [b"y", b"y", b"q", b"w"]
    assert store.delete_key("a") and not store.delete_key("a") and store.num_keys() == 3
    store.append("n", "1")
    store.multi_set(["u", "v"], ["1", "2"])
    assert (store.get("n"), store.multi_get(["u", "v"]), sorted(store.list_keys())) == (
        b"51", [b"1", b"2"], ["b", "n", "new", "u", "v"],
    )  # fmt: skip
    store.queue_push("q", "1")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_len("q")) == (1, b"1", 0)
    fails(dist.QueueEmptyError, "queue is empty", lambda: store.queue_pop("q", block=False))
    assert store.clone().get("u") == b"1"
    with pytest.raises(TypeError):
        store.set("k", 3)


def test_stores_of_one_place_share_keys(tmp_path: Path) -> None:
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    inner = dist.PrefixStore("p", dist.PrefixStore("r", master))
    inner.set("k", "v")
    assert dist.TCPStore("127.0.0.1", master.port).get("r/p/k") == b"v"
    assert inner._underlying_non_prefix_store is master
    first, second = dist.FileStore(tmp_path / "f"), dist.FileStore(tmp_path / "f", 1)
    first.set("a", "1")
    assert second.get("a") == b"1" and (tmp_path / "f").exists()


# -- Modules -----------------------------------------------------------------------------------------------------------


def test_ddp_computes_what_the_module_computes(group: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2))
    x = torch.randn(5, 3)
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    parallel = DistributedDataParallel(model)
    assert list(parallel.state_dict()) == ["module." + name for name in model.state_dict()]
    parallel(x).square().sum().backward()
    for each, gradient in zip(model.parameters(), expected, strict=True):
        assert each.grad is not None and torch.equal(each.grad, gradient)
    with parallel.no_sync():
        assert not parallel.require_backward_grad_sync
        parallel(x).square().sum().backward()
    assert parallel.require_backward_grad_sync
    for each, gradient in zip(model.parameters(), expected, strict=True):
        assert each.grad is not None and torch.equal(each.grad, 2 * gradient)
    with parallel.join():
        assert parallel.eval().training is model.training is False
    copied = pickle.loads(pickle.dumps(parallel.state_dict()))
    assert str(parallel.load_state_dict(copied)) == "<All keys matched successfully>"
    assert repr(parallel).startswith("DistributedDataParallel(\n  (module): Sequential(")


def test_ddp_refuses_what_pytorch_refuses(group: Any) -> None:
    words = "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
    fails(RuntimeError, words, lambda: DistributedDataParallel(nn.ReLU()))
    words = "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU"
    fails(ValueError, words, lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]))
    words = "Modules with uninitialized parameters can't be used with `DistributedDataParallel`."
    fails(RuntimeError, words, lambda: DistributedDataParallel(nn.LazyLinear(1)))


@pytest.mark.parametrize("initialized", [False, True])
def test_sync_batchnorm_is_batchnorm_of_one_process(initialized: bool, request: pytest.FixtureRequest) -> None:
    if initialized:
        request.getfixturevalue("group")
    torch.manual_seed(0)
    plain, sync = nn.BatchNorm2d(3), nn.SyncBatchNorm(3)
    x = torch.randn(4, 3, 2, 2)
    for mode in (True, False):
        assert torch.equal(plain.train(mode)(x), sync.train(mode)(x))
    assert torch.equal(plain.running_var, sync.running_var) and sync(torch.randn(4, 3)).shape == (4, 3)
    fails(ValueError, "expected at least 2D input (got 1D input)", lambda: sync(torch.randn(4)))


def test_convert_sync_batchnorm() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(2, affine=False)), nn.InstanceNorm1d(2))
    weight, mean = model[0].weight, model[0].running_mean
    model[0].eval()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert repr(converted) == (
        "Sequential(\n  (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  (1): Sequential(\n"
        "    (0): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)\n  )\n"
        "  (2): InstanceNorm1d(2, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)\n)"
    )
    assert converted is model and converted[0].weight is weight and converted[0].running_mean is mean
    assert not converted[0].training and converted[1][0].training
    memory = io.BytesIO()
    torch.save(converted, memory)
    memory.seek(0)
    assert isinstance(torch.load(memory, weights_only=False)[0], nn.SyncBatchNorm)


def test_scatter_and_gather() -> None:
    x = torch.arange(6).reshape(3, 2)
    parts = scatter(({"x": x}, [x, "word"], 1), ["cpu", "cpu"])
    assert [each[0]["x"].tolist() for each in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [(each[1][0].shape[0], each[1][1], each[2]) for each in parts] == [(2, "word", 1), (1, "word", 1)]
    joined = gather(parts_of_tensors := [{"x": each[0]["x"], "none": None} for each in parts], "cpu")
    assert joined["x"].tolist() == x.tolist() and joined["none"] is None and len(parts_of_tensors) == 2
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]
    doubled = nn.Sequential()
    assert [each.tolist() for each in parallel_apply([doubled, doubled], [(x[0],), x[1]])] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        ({"num_replicas": 3, "rank": 1}, [1, 3, 8, 4], [6, 0, 3, 5]),
        ({"num_replicas": 3, "rank": 0, "shuffle": False}, [0, 3, 6, 9], [0, 3, 6, 9]),
        ({"num_replicas": 3, "rank": 2, "drop_last": True, "seed": 5}, [9, 5, 8], [5, 3, 4]),
        ({"num_replicas": 4, "rank": 3, "shuffle": False, "drop_last": True}, [3, 7], [3, 7]),
        ({"num_replicas": 12, "rank": 11, "shuffle": False}, [1], [1]),
    ],
)
def test_distributed_sampler_has_pytorchs_order(arguments: dict[str, Any], first: list[int], second: list[int]) -> None:
    sampler = DistributedSampler(range(10), **arguments)
    assert list(sampler) == first and len(sampler) == len(first)
    sampler.set_epoch(1)
    assert list(sampler) == second


def test_distributed_sampler_checks_the_rank(group: Any) -> None:
    assert list(DistributedSampler(range(3), num_replicas=10, rank=9)) == [2]
    assert sorted(DistributedSampler(range(3))) == [0, 1, 2]
    words = "Invalid rank 2, rank should be in the interval [0, 1]"
    fails(ValueError, words, lambda: DistributedSampler([1], num_replicas=2, rank=2))


# -- torch.multiprocessing ---------------------------------------------------------------------------------------------


def fill(index: int, x: torch.Tensor) -> None:
    x[index] = index + 1


def fail(index: int, word: str) -> None:
    if index == 1:
        raise ValueError(word)


def leave(index: int) -> None:
    sys.exit(3)


def put(index: int, queue: Any) -> None:
    queue.put(torch.arange(3) + index)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="memory is shared by fork")
def test_processes_share_memory_of_tensors() -> None:
    x = torch.zeros(2).share_memory_()
    with quiet_forks():
        multiprocessing.start_processes(fill, (x,), nprocs=2, start_method="fork")
    assert x.tolist() == [1.0, 2.0]


@contextlib.contextmanager
def quiet_forks() -> Iterator[None]:
    """Ignore Python's warning about a fork while other threads run."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def test_spawn_runs_functions_and_sends_tensors() -> None:
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(put, (queue,), nprocs=1)
    assert queue.get().tolist() == [0, 1, 2]


def test_errors_of_processes() -> None:
    with quiet_forks():
        with pytest.raises(multiprocessing.ProcessRaisedException) as raised:
            multiprocessing.start_processes(fail, ("bad",), nprocs=2, start_method="fork")
        assert str(raised.value).startswith(
            "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent"
        )
        assert str(raised.value).endswith("ValueError: bad\n") and raised.value.error_index == 1
        context = multiprocessing.start_processes(leave, nprocs=1, join=False, start_method="fork")
        assert context is not None and len(context.pids()) == 1
        with pytest.raises(
            multiprocessing.ProcessExitedException, match=r"^process 0 terminated with exit code 3$"
        ) as left:
            while not context.join():
                pass
    assert (left.value.exit_code, left.value.signal_name) == (3, None)
    assert left.value.error_pid == context.pids()[0]


def test_warnings_of_multiprocessing() -> None:
    with pytest.warns(FutureWarning, match=r"This method only supports start_method=spawn \(got: fork\)"):
        multiprocessing.spawn(put, nprocs=0, start_method="fork")
    with pytest.warns(UserWarning, match="SpawnContext is renamed to ProcessContext since 1.4 release"):
        assert multiprocessing.SpawnContext([], []).join()


def test_names_of_multiprocessing() -> None:
    assert multiprocessing.get_sharing_strategy() == "file_descriptor"
    fails(
        AssertionError,
        "invalid sharing strategy 'x', expected one of {",
        lambda: multiprocessing.set_sharing_strategy("x"),
    )
    multiprocessing.set_sharing_strategy("file_system")
    assert multiprocessing.get_sharing_strategy() == "file_system"
    multiprocessing.set_sharing_strategy("file_descriptor")
    from retrograd.multiprocessing.spawn import ProcessRaisedException

    assert multiprocessing.ProcessRaisedException is ProcessRaisedException and callable(multiprocessing.spawn)
    assert {"Process", "Queue", "Pool", "Manager", "get_context", "cpu_count"} <= set(dir(multiprocessing))


def test_store_is_released_while_another_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector may release the last master of a port in a thread that creates another one."""
    from retrograd.distributed import stores

    class Server(stores.Server):
        def __init__(self, *given: Any) -> None:
            gc.collect()
            super().__init__(*given)

    abandoned: list[Any] = [dist.TCPStore("127.0.0.1", 0, is_master=True)]
    abandoned.append(abandoned)
    del abandoned
    monkeypatch.setattr(stores, "Server", Server)
    thread = threading.Thread(target=lambda: dist.TCPStore("127.0.0.1", 0, is_master=True), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
