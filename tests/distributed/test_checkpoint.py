"""``torch.distributed.checkpoint``, DTensor and ZeroRedundancyOptimizer, in one process and in 2, 3 and 4 ranks.

Texts that are compared were recorded with PyTorch 2.13 on gloo.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed import checkpoint
from retrograd.distributed.checkpoint import CheckpointException, filesystem, format_utils, state_dict
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, zeros
from tests.distributed.rank_processes import IN_GROUP, Ranks, run_ranks

LIMIT = 90.0  # seconds, on a busy machine
pytestmark = [pytest.mark.thread_unsafe, pytest.mark.filterwarnings("ignore:torch.distributed is disabled")]


@pytest.fixture
def mesh() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def save(state: dict[str, Any], folder: Path, **more: Any) -> checkpoint.Metadata:
    return checkpoint.save(state, checkpoint_id=folder, no_dist=True, **more)


def load(state: dict[str, Any], folder: Path, **more: Any) -> dict[str, Any]:
    checkpoint.load(state, checkpoint_id=folder, no_dist=True, **more)
    return state


def error_of(call: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(CheckpointException) as caught:
        call(*args, **named)
    assert list(caught.value.failures) == [0]
    return str(caught.value).splitlines()[-1]


# -- One process -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_tensors_of_all_dtypes_and_layouts(tmp_path: Path) -> None:
    names = [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "complex32",
    ]
    values = torch.arange(12.0).reshape(3, 4)
    state = {name: values.to(getattr(torch, name)) for name in names}
    state |= {
        "transposed": values.t(),
        "view": values[1:, ::2],
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
    }
    save(state, tmp_path)
    found = load({name: torch.zeros_like(value) for name, value in state.items()}, tmp_path)
    for name, value in state.items():
        assert found[name].dtype == value.dtype and torch.equal(
            found[name].to(torch.complex128), value.to(torch.complex128)
        ), name


def test_values_that_are_not_tensors(tmp_path: Path) -> None:
    state = {
        "numbers": [1, -(2**70), 0.1, math.inf, -math.inf, True, None, 2 - 3j], "text": "a\ud800b", "bytes": b"\x00\xff",
        "containers": ((1, (2,)), {3, 4}, frozenset({5}), Counter({6: 2}), OrderedDict(z=1, a=2)),
        "list": [[1, [2]], ()], "dtype": torch.bfloat16, "device": torch.device("cpu"), "size": torch.Size([2, 3]),
        "array": numpy.arange(6, dtype=">i2").reshape(2, 3), "scalar": numpy.float32(1.5), "$": {"$": 1, 2: "int"},
        "python": random.Random(3).getstate(), "numpy": numpy.random.RandomState(3).get_state(),
        "generator": torch.Generator().manual_seed(3).get_state(), "in a tuple": (torch.ones(2, dtype=torch.bfloat16),),
    }  # fmt: skip
    save(state, tmp_path)
    found = load(
        dict.fromkeys(state) | {"$": {"$": None, 2: None}, "generator": torch.zeros_like(state["generator"])}, tmp_path
    )
    for name in ("numbers", "text", "bytes", "containers", "list", "dtype", "device", "size", "python", "$"):
        assert found[name] == state[name] and type(found[name]) is type(state[name]), name
    assert [type(each) for each in found["containers"]] == [type(each) for each in state["containers"]]
    assert numpy.array_equal(found["array"], state["array"]) and found["array"].dtype == state["array"].dtype
    assert found["scalar"] == 1.5 and type(found["scalar"]) is numpy.float32
    assert all(numpy.array_equal(a, b) for a, b in zip(found["numpy"], state["numpy"], strict=True))
    assert torch.equal(found["generator"], state["generator"]) and found["in a tuple"][0].dtype == torch.bfloat16
    assert math.isnan(load({"x": 0}, (save({"x": math.nan}, tmp_path / "nan"), tmp_path / "nan")[1])["x"])


class Own:
    """Object of a class that is not known to a checkpoint."""


@pytest.mark.parametrize("value", [Own(), len, Own, (1, [Own()]), torch.optim.SGD, numpy.array([None])])
def test_other_objects_are_refused_and_nothing_remains(value: Any, tmp_path: Path) -> None:
    save({"x": 1}, tmp_path)
    text = error_of(save, {"x": torch.ones(3), "deep": {"key": value}}, tmp_path)
    assert text.startswith("TypeError: deep.key") and "can not be saved in a checkpoint" in text
    assert load({"x": 0}, tmp_path) == {"x": 1} and len([*tmp_path.iterdir()]) == 2


def test_a_checkpoint_is_data_and_reading_it_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR.")
    assert "is PyTorch's index, a pickle" in error_of(load, {"x": 0}, tmp_path)
    kinds = re.findall(rb'"\$": ?"(\w+)"', (save({"x": (1,)}, tmp_path / "a"), b"")[1])
    assert kinds == []


def test_files_and_description(tmp_path: Path) -> None:
    metadata = save({"a": torch.ones(2, 3), "b": [1, 2], "c": {"d": [torch.ones(1), {"e": "x"}], 5: 7}}, tmp_path)
    assert [each.suffix for each in sorted(tmp_path.iterdir())] == ["", ".safetensors"]
    read = checkpoint.FileSystemReader(tmp_path).read_metadata()
    assert read.state_dict_metadata == metadata.state_dict_metadata
    assert list(read.state_dict_metadata) == ["a", "b", "c.d.0", "c.d.1.e", "c.5"]
    assert read.planner_data == {
        "a": ("a",), "b": ("b",), "c.d.0": ("c", "d", 0), "c.d.1.e": ("c", "d", 1, "e"), "c.5": ("c", 5),
    }  # fmt: skip
    entry = read.state_dict_metadata["a"]
    assert isinstance(entry, checkpoint.TensorStorageMetadata)
    assert (entry.size, entry.properties.dtype, entry.chunks[0].offsets) == ((2, 3), torch.float32, (0, 0))
    assert load({"c": {"d": [torch.zeros(1), {"e": None}], 5: 0}}, tmp_path) == {
        "c": {"d": [torch.ones(1), {"e": "x"}], 5: 7}
    }
    index = json.loads((tmp_path / ".metadata").read_text())
    assert index["format"] == "retrograd.distributed.checkpoint" and index["version"] == 1
    before = {*tmp_path.iterdir()}
    save({"a": torch.zeros(1)}, tmp_path)
    assert len([*tmp_path.iterdir()]) == 2 and len(before & {*tmp_path.iterdir()}) == 1
    for options in ({"thread_count": 2}, {"single_file_per_rank": False}):
        writer = checkpoint.FileSystemWriter(tmp_path / "many", **options)
        checkpoint.save({"a": torch.ones(5), "b": torch.zeros(3)}, storage_writer=writer, no_dist=True)
        assert len([*(tmp_path / "many").glob("*.safetensors")]) == 2
        assert torch.equal(load({"a": torch.zeros(5)}, tmp_path / "many")["a"], torch.ones(5))


def test_errors_of_one_process(tmp_path: Path) -> None:
    save({"a": torch.ones(2, 3), "b": 1}, tmp_path)
    assert error_of(load, {"z": 1}, tmp_path) == "RuntimeError: Missing key in checkpoint state_dict: z."
    assert error_of(load, {"a": torch.ones(3)}, tmp_path) == (
        "ValueError: Size mismatch between saved torch.Size([2, 3]) and current: torch.Size([3]) for a"
    )
    assert error_of(load, {"a": 5}, tmp_path).startswith(
        "ValueError: Invalid checkpoint metadata for a, expected Bytes"
    )
    state = {"z": 5, "b": None}
    assert load(state, tmp_path, planner=checkpoint.DefaultLoadPlanner(allow_partial_load=True)) == {"z": 5, "b": 1}
    writer = checkpoint.FileSystemWriter(tmp_path, overwrite=False)
    assert error_of(checkpoint.save, {"a": 1}, storage_writer=writer, no_dist=True) == (
        "RuntimeError: Checkpoint already exists and self.overwrite=False."
    )
    assert "there is no checkpoint in" in error_of(load, {"a": 1}, tmp_path / "none")
    with pytest.raises(
        RuntimeError, match=r"^`checkpoint_id` must be specified if storage_reader/storage_writer is None"
    ):
        checkpoint.save({"a": 1}, no_dist=True)
    assert error_of(save, {"a": {"b": 1}, "a.b": 2}, tmp_path) == "ValueError: duplicated flatten key a.b"
    loop: list[Any] = []
    loop.append(loop)
    assert error_of(save, {"a": (loop,)}, tmp_path).startswith("ValueError: a: the value is nested too deeply")
    assert "sparse" in error_of(save, {"a": torch.eye(2).to_sparse()}, tmp_path)
    assert load({"b": None}, tmp_path) == {"b": 1}


def corrupt(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 16
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["flipped", "header", "short", "long", "missing", "index", "other"])
def test_damaged_files_are_named_and_nothing_is_modified(damage: str, tmp_path: Path) -> None:
    big = torch.arange(3_000_000.0)
    save({"a": torch.ones(4), "big": big}, tmp_path)
    file = next(tmp_path.glob("*.safetensors"))
    if damage == "flipped":
        corrupt(file, 9_000_000)
    elif damage == "header":
        file.write_bytes(file.read_bytes().replace(b'"F32"', b'"F16"', 1))
    elif damage == "short":
        file.write_bytes(file.read_bytes()[:-8])
    elif damage == "long":
        file.write_bytes(file.read_bytes() + bytes(8))
    elif damage == "missing":
        file.unlink()
    elif damage == "other":
        torch.serialization.save_safetensors({"a": torch.ones(4), "big": big[:-1]}, file)
    else:
        index = tmp_path / ".metadata"
        file = index
        index.write_text(index.read_text().replace("12000000", "12000001", 1).replace("[4]", "[5]"))
    state = {"a": torch.zeros(4), "big": torch.zeros(3_000_000)}
    text = error_of(load, state, tmp_path)
    assert str(file) in text, text
    assert not state["a"].any() and not state["big"].any()
    if damage == "flipped":
        assert torch.equal(load({"a": torch.zeros(4)}, tmp_path)["a"], torch.ones(4))  # other blocks are fine


def test_full_disk_leaves_the_former_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save({"a": torch.ones(4)}, tmp_path)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    written = filesystem._checksums

    def full(line: Any) -> str:
        if len(line) > 100:
            raise OSError(28, "No space left on device")
        return written(line)

    monkeypatch.setattr(filesystem, "_checksums", full)
    assert error_of(save, {"a": torch.ones(4), "b": torch.ones(100)}, tmp_path) == (
        "OSError: [Errno 28] No space left on device"
    )
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before
    monkeypatch.undo()
    monkeypatch.setattr(filesystem, "_index_text", lambda *args: full(b"x" * 200))
    assert "No space left" in error_of(save, {"b": torch.ones(100)}, tmp_path)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_files_of_whole_tensors_as_hugging_face_has_them(mesh: Any, tmp_path: Path) -> None:
    state = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
    writer = checkpoint.HuggingFaceStorageWriter(tmp_path, {"a": 1, "b": 2})
    checkpoint.save(state, storage_writer=writer)
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    assert json.loads((tmp_path / names[2]).read_text()) == {
        "metadata": {"total_size": 28}, "weight_map": {"a": names[0], "b": names[1]},
    }  # fmt: skip
    assert torch.equal(torch.serialization.load_safetensors(tmp_path / names[0])["a"], state["a"])
    found = {"a": distribute_tensor(torch.zeros(2, 3), mesh, [Shard(1)]), "b": torch.zeros(2)}
    checkpoint.load(found, storage_reader=checkpoint.HuggingFaceStorageReader(tmp_path))
    assert torch.equal(found["a"].full_tensor(), state["a"]) and found["b"].tolist() == [1, 1]
    for value, words in ((found["a"], "x is a DTensor"), (3, "x is not a tensor")):
        assert words in error_of(
            checkpoint.save, {"x": value}, storage_writer=checkpoint.HuggingFaceStorageWriter(tmp_path)
        )
    (tmp_path / names[1]).write_bytes(b"1234")
    reader = checkpoint.HuggingFaceStorageReader(tmp_path)
    assert names[1] in error_of(checkpoint.load, {"a": torch.zeros(2, 3)}, storage_reader=reader)
    reader = checkpoint.HuggingFaceStorageReader(tmp_path / "none")
    assert "there are no safetensors files" in error_of(checkpoint.load, {"a": 1}, storage_reader=reader)
    with pytest.raises(RuntimeError, match=r"^HuggingFaceStorageWriter writes whole tensors only"):
        checkpoint.HuggingFaceStorageWriter(tmp_path, save_distributed=True)


def test_planners_may_be_derived(tmp_path: Path) -> None:
    class Half(checkpoint.DefaultSavePlanner):
        def transform_object(self, write_item: Any, object: Any) -> Any:
            found = super().transform_object(write_item, object)
            return found * 2 if isinstance(found, torch.Tensor) else found

    class Renamed(checkpoint.DefaultLoadPlanner):
        def set_up_planner(self, state_dict: Any, metadata: Any = None, is_coordinator: bool = False) -> None:
            super().set_up_planner({"old": state_dict["new"]}, metadata, is_coordinator)

    save({"old": torch.ones(3)}, tmp_path, planner=Half())
    assert torch.equal(load({"new": torch.zeros(3)}, tmp_path, planner=Renamed())["new"], torch.full((3,), 2.0))


def test_conversion_to_and_from_files_of_torch_save(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}
    torch.save(state, tmp_path / "a.pt")
    format_utils.torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "dcp")
    format_utils.dcp_to_torch_save(tmp_path / "dcp", tmp_path / "b.pt")
    found = torch.load(tmp_path / "b.pt")
    assert found["step"] == 3 and found["optimizer"]["state"].keys() == {0, 1}
    assert found["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
    other = torch.optim.Adam(model.parameters())
    other.load_state_dict(found["optimizer"])
    assert torch.equal(other.state[model.weight]["exp_avg_sq"], optimizer.state[model.weight]["exp_avg_sq"])


def test_asynchronous_saving_copies_first(tmp_path: Path) -> None:
    x, nested = torch.ones(1000), {"n": [torch.ones(2), 5]}
    future = checkpoint.async_save({"x": x, "nested": nested}, checkpoint_id=tmp_path, no_dist=True)
    x.zero_()
    nested["n"][0].zero_()  # type: ignore[attr-defined]
    assert isinstance(future.result(), checkpoint.Metadata)
    found = load({"x": torch.zeros(1000), "nested": {"n": [torch.zeros(2), 0]}}, tmp_path)
    assert found["x"].all() and found["nested"]["n"][0].all() and found["nested"]["n"][1] == 5
    failed = checkpoint.async_save({"x": Own()}, checkpoint_id=tmp_path, no_dist=True)
    with pytest.raises(CheckpointException, match="can not be saved"):
        failed.result()


class Application:
    """State of a model and an optimiser, as PyTorch's tutorial writes it."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = state_dict.get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        state_dict.set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@pytest.mark.parametrize("kind", ["groups", "momentum", "plain"])
def test_state_of_a_wrapped_model_continues_in_a_plain_one(kind: str, mesh: Any, tmp_path: Path) -> None:
    def make(params: Any) -> torch.optim.Optimizer:
        listed = list(params)
        if kind == "groups":
            return torch.optim.AdamW([{"params": listed[:2], "lr": 0.1}, {"params": listed[2:]}])
        return torch.optim.SGD(listed, lr=0.1, momentum=0.9 if kind == "momentum" else 0)

    model: Any = nn.parallel.DistributedDataParallel(network())
    optimizer, x = make(model.parameters()), torch.randn(8, 3)

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    for _ in range(3):
        step(model, optimizer)
    checkpoint.save({"app": Application(model, optimizer), "epoch": 3}, checkpoint_id=tmp_path)
    plain: Any = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    other = make(plain.parameters())
    state = {"app": Application(plain, other), "epoch": 0}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["epoch"] == 3
    for each in ((model, optimizer), (plain, other)):
        step(*each)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), plain.state_dict().values(), strict=True))
    names, states = state_dict.get_state_dict(model, optimizer)
    assert list(names) == list(plain.state_dict()) and states["param_groups"][0]["params"][0] == "0.weight"
    options = state_dict.StateDictOptions(flatten_optimizer_state_dict=True)
    flat = state_dict.get_optimizer_state_dict(model, optimizer, options=options)
    assert "param_groups.0.weight.lr" in flat and ("state.0.weight.step" in flat) == (kind == "groups")
    state_dict.set_optimizer_state_dict(plain, other, copy.deepcopy(flat), options=options)
    for each in ((model, optimizer), (plain, other)):
        step(*each)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))


def test_options_and_errors_of_state_dictionaries() -> None:
    model = network()
    model[0].weight.requires_grad_(False)
    options = state_dict.StateDictOptions(ignore_frozen_params=True)
    assert next(iter(state_dict.get_model_state_dict(model, options=options))) == "0.bias"
    with pytest.raises(ValueError, match=r"^full_state_dict must be True when broadcast_from_rank0 is True"):
        state_dict.get_model_state_dict(model, options=state_dict.StateDictOptions(broadcast_from_rank0=True))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        state_dict.set_model_state_dict(model, {"x": torch.ones(1)})
    found = state_dict.set_model_state_dict(
        model, {"x": torch.ones(1)}, options=state_dict.StateDictOptions(strict=False)
    )
    assert found.unexpected_keys == ["x"]
    optimizer = torch.optim.Adam(model.parameters())
    before = [each.clone() for each in model.parameters()]
    fresh = state_dict.get_optimizer_state_dict(model, optimizer)
    assert "0.weight" not in fresh["state"] and fresh["state"]["0.bias"]["step"] == 0  # PyTorch leaves 1 there
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    del fresh["state"]["0.bias"]
    with pytest.raises(RuntimeError, match=r"^Missing optimizer state for parameter '0\.bias' in checkpoint"):
        state_dict.set_optimizer_state_dict(model, optimizer, fresh)


# -- DTensor in one process --------------------------------------------------------------------------------------------


def test_distributed_tensor_of_one_rank(mesh: Any) -> None:
    x = torch.arange(6.0).reshape(3, 2)
    d = distribute_tensor(x, mesh, [Shard(0)])
    assert (d.shape, d.stride(), d.numel(), d.dim(), len(d), d.dtype, d.device.type) == (
        (3, 2),
        (2, 1),
        6,
        2,
        3,
        x.dtype,
        "cpu",
    )
    assert repr(d).startswith(
        "DTensor(local_tensor=tensor([[0., 1.],\n        [2., 3.],\n        [4., 5.]]), device_mesh="
    )
    assert (
        repr(d).endswith("placements=(Shard(dim=0),))")
        and str(Shard(0)) == "S(0)"
        and repr(Partial()) == "Partial(sum)"
    )
    assert (
        (d + 1).placements == (Shard(0),) and d.sum().placements == (Partial(),) and d.sum(1).placements == (Shard(0),)
    )
    assert float(d.sum()) == 15 and d.sum().full_tensor().item() == 15 and float(d.mean()) == 2.5
    assert d.mean().placements == d[0].placements == (Replicate(),)
    assert (
        torch.equal(d, d) and torch.zeros_like(d).placements == (Shard(0),) and isinstance(d.detach().clone(), DTensor)
    )
    assert zeros(4, 2, device_mesh=mesh, placements=[Shard(1)]).to_local().shape == (4, 2)
    with pytest.raises(
        RuntimeError, match=r"got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor"
    ):
        d + x
    with pytest.raises(RuntimeError, match=r"^a Tensor with 6 elements cannot be converted to Scalar"):
        d.item()
    with pytest.raises(RuntimeError, match=r"^\.numpy\(\) is not supported for tensor subclasses"):
        d.numpy()
    with pytest.raises(RuntimeError, match=r"^placements is needed for redistribute!"):
        d.redistribute()
    with pytest.raises(RuntimeError, match=r"^Can not redistribute from S\(0\) to P\(sum\)"):
        d.redistribute(placements=[Partial()])
    with pytest.raises(
        ValueError, match=r"^`placements` must have the same length as `device_mesh.ndim`! Found placements"
    ):
        distribute_tensor(x, mesh, [Shard(0), Shard(1)])
    with pytest.raises(AssertionError, match=r"^Sharding dim 5 greater than tensor ndim 2"):
        distribute_tensor(x, mesh, [Shard(5)])
    with pytest.raises(RuntimeError, match="a DTensor can not be pickled"):
        torch.save(d, "never-written.pt")


def test_optimizers_and_distributed_parameters(mesh: Any) -> None:
    weight = torch.randn(5, 2)
    plain, split = nn.Parameter(weight.clone()), nn.Parameter(distribute_tensor(weight, mesh, [Shard(0)]))
    assert isinstance(split, nn.Parameter) and isinstance(split, DTensor) and split.is_leaf
    for kind, options in ((torch.optim.Adam, {}), (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adagrad, {})):
        optimizers = [kind([each], lr=0.1, **options) for each in (plain, split)]
        for _ in range(3):
            for optimizer, param in zip(optimizers, (plain, split), strict=True):
                optimizer.zero_grad()
                (param**3).sum().backward()
                torch.nn.utils.clip_grad_norm_([param], 1.0)
                optimizer.step()
        assert torch.allclose(split.full_tensor(), plain) and isinstance(split.grad, DTensor)
        kinds = {name: type(each).__name__ for name, each in optimizers[1].state[split].items() if each.ndim}
        assert set(kinds.values()) == {"DTensor"}, kinds
    with pytest.raises(RuntimeError, match=r"^Adafactor needs whole parameters, but got a DTensor"):
        torch.optim.Adafactor([split]).step()
    with torch.no_grad():
        split[0] = 7.0
        split.mul_(2).add_(split)
    assert split.full_tensor()[0].tolist() == [28, 28]
    module = nn.Linear(2, 5)
    module.weight = split
    module.load_state_dict(module.state_dict())
    assert isinstance(module.double().weight, DTensor) and module.weight.dtype == torch.float64


def test_errors_of_the_zero_redundancy_optimizer(mesh: Any) -> None:
    w = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match=r"^ZeroRedundancyOptimizer got an empty parameter list"):
        ZeroRedundancyOptimizer([], torch.optim.SGD, lr=1)
    with pytest.raises(TypeError, match=r"^`params` argument should be an iterable of Tensors"):
        ZeroRedundancyOptimizer(w, torch.optim.SGD, lr=1)
    with pytest.raises(RuntimeError, match=r"with `overlap_with_ddp=True` is not supported"):
        ZeroRedundancyOptimizer([w], torch.optim.SGD, overlap_with_ddp=True, lr=1)
    optimizer = ZeroRedundancyOptimizer([w], torch.optim.SGD, lr=1)
    with pytest.raises(
        RuntimeError, match=r"^Optimizer state has not been consolidated on this rank\. Please call `con"
    ):
        optimizer.state_dict()


# -- Several ranks -----------------------------------------------------------------------------------------------------

BASIS = (
    IN_GROUP
    + """
import shutil
from retrograd.distributed import checkpoint
from retrograd.distributed.checkpoint import filesystem
from retrograd.distributed.checkpoint.state_dict import *
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.tensor import *
torch.set_default_dtype(torch.float64)
mesh = dist.init_device_mesh("cpu", (size,))
whole = {"even": torch.arange(24.).reshape(12, 2), "uneven": torch.arange(35.).reshape(5, 7), "small": torch.ones(1, 3)}
def state(value, dim=0):
    return {
        "split": {name: distribute_tensor(each * value, mesh, [Shard(dim)]) for name, each in whole.items()},
        "replicated": distribute_tensor(whole["even"] * value, mesh, [Replicate()]),
        "plain": whole["uneven"] * value, "step": torch.tensor(7. * value), "epoch": 3 * value, f"of {rank}": rank * value,
    }
def check(found):
    for name, each in whole.items():
        assert torch.equal(found["split"][name].full_tensor(), each), (rank, name)
    assert torch.equal(found["replicated"].to_local(), whole["even"]) and torch.equal(found["plain"], whole["uneven"])
    assert found["step"] == 7 and found["epoch"] == 3
def load(folder, dim=0):
    found = state(0, dim)
    for key in [key for key in found if key.startswith("of ")]:
        del found[key]
    checkpoint.load(found, checkpoint_id=folder)
    check(found)
"""
)

OF_TWO = (
    BASIS
    + """
assert torch.equal(state(1)["split"]["uneven"].full_tensor(), whole["uneven"])
metadata = checkpoint.save(state(1), checkpoint_id="two")
for dim in (0, 1):
    load("two", dim)
found = {"of 1": None}
checkpoint.load(found, checkpoint_id="two")
assert found == {"of 1": 1}
sizes = [os.path.getsize(os.path.join("two", name)) for name in os.listdir("two") if name.startswith("__")]
assert len(sizes) == 2 and max(sizes) < 1.6 * min(sizes), sizes  # replicated values are written once, and spread

# Differentiable redistribution and operations on the whole.
for placement in (Shard(0), Shard(1), Replicate()):
    d = torch.nn.Parameter(distribute_tensor(whole["uneven"], mesh, [placement]))
    x = whole["uneven"].clone().requires_grad_()
    for w in (d, x):
        (torch.softmax(w / 10, 0) * w + w.sum(1, keepdim=True) ** 2).sum().backward()
    assert torch.allclose(d.grad.full_tensor(), x.grad, rtol=1e-14), (rank, placement)
    assert torch.allclose(torch.nn.utils.clip_grad_norm_([d], 1.).full_tensor(), torch.nn.utils.clip_grad_norm_([x], 1.))
    assert torch.allclose(d.grad.full_tensor(), x.grad, rtol=1e-14)
d = distribute_tensor(whole["uneven"], mesh, [Shard(0)])
local = d.to_local().clone().requires_grad_()
again = DTensor.from_local(local, mesh, [Shard(0)], shape=d.shape)
again.full_tensor().square().sum().backward()
assert torch.equal(local.grad, 2 * local)
printed = repr(d)
assert d.to_local().shape == ((3, 7), (2, 7))[rank]
torch.manual_seed(5)
d.normal_()
torch.manual_seed(5)
assert torch.equal(d.full_tensor(), torch.empty(5, 7).normal_())

# Another thread saves on a group of its own, while this one communicates.
future = checkpoint.async_save(state(1), checkpoint_id="async")
total = torch.ones(1000)
for _ in range(20):
    dist.all_reduce(total)
    total /= size
future.result(60)
load("async")

# Failures of one rank are raised by all, and the former checkpoint stays.
def files():
    return sorted(os.listdir("two"))
before = files()
dist.barrier()
text = raised(checkpoint.save, {"x": object() if rank else 1, f"only {rank}": object() if rank else 1}, checkpoint_id="two")
assert text.startswith("CheckpointException") and "(RANK 1)" in text and "only 1: an object of the class" in text, text
text = raised(checkpoint.save, {"x": torch.ones(3 + rank)}, checkpoint_id="two")
assert "x differs between the ranks 0 and 1: a chunk [3] of [3]" in text, text
dist.barrier()
assert files() == before
import resource
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
if rank == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
big = {"big": distribute_tensor(torch.zeros(100_000), mesh, [Shard(0)])}
text = raised(checkpoint.save, big, checkpoint_id="two")
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
assert "(RANK 1)" in text and "(RANK 0)" not in text and "File too large" in text, text
dist.barrier()
assert files() == before
load("two")
dist.barrier()
if rank == 0:
    shutil.copytree("two", "damaged")
    index = json.load(open("damaged/.metadata"))["contents"]["entries"]
    name = index["split.uneven"]["chunks"][1]["file"]
    data = bytearray(open("damaged/" + name, "rb").read())
    data[-9] ^= 1
    open("damaged/" + name, "wb").write(data)
dist.barrier()
found = state(0)
text = raised(checkpoint.load, found, checkpoint_id="damaged")
assert text.startswith("CheckpointException") and "__1_0." in text and "are corrupt" in text, text
assert not found["plain"].any() and not found["split"]["even"].to_local().any()
checkpoint.save(state(1), checkpoint_id="two")
print(printed)
"""
)

ZERO = (
    BASIS
    + """
def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Linear(3, 1))
x = torch.randn(16, 5, generator=torch.Generator().manual_seed(3))
def step(model, optimizer):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
kinds = [(torch.optim.Adam, {}), (torch.optim.SGD, {"momentum": .9}), (torch.optim.AdamW, {"weight_decay": .1})][: 3 if size == 2 else 1]
for number, (kind, options) in enumerate(kinds):
    options["lr"] = 0.01
    for view in (False, True):
        plain, zero = net(), net()
        optimizers = kind(plain.parameters(), **options), ZeroRedundancyOptimizer(zero.parameters(), kind, parameters_as_bucket_view=view, **options)
        schedulers = [torch.optim.lr_scheduler.StepLR(each, 2, .5) for each in optimizers]
        for _ in range(5):
            assert step(plain, optimizers[0]) == step(zero, optimizers[1])
            for each in schedulers:
                each.step()
        assert same(plain, zero)
    # The consolidated state is that of the plain optimiser, and either can be loaded.
    optimizers[1].consolidate_state_dict(to=size - 1)
    if rank == size - 1:
        found, expected = optimizers[1].state_dict(), optimizers[0].state_dict()
        assert found["param_groups"] == expected["param_groups"] and found["state"].keys() == expected["state"].keys()
        for key, entries in expected["state"].items():
            assert all(torch.equal(found["state"][key][name], value) for name, value in entries.items())
    else:
        assert "has not been consolidated" in raised(optimizers[1].state_dict)
    import copy
    loaded = net()
    loaded.load_state_dict(zero.state_dict())
    other = ZeroRedundancyOptimizer(loaded.parameters(), kind, **options)
    other.load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
    # Saved in parts by name, and loaded by the plain optimiser.
    folder = f"zero{number}"
    checkpoint.save({"model": loaded.state_dict(), "optimizer": get_optimizer_state_dict(loaded, other)}, checkpoint_id=folder)
    fresh = net()
    new = kind(fresh.parameters(), **options)
    read = {"model": fresh.state_dict(), "optimizer": get_optimizer_state_dict(fresh, new)}
    checkpoint.load(read, checkpoint_id=folder)
    set_state_dict(fresh, new, model_state_dict=read["model"], optim_state_dict=read["optimizer"])
    full = get_optimizer_state_dict(loaded, other, options=StateDictOptions(full_state_dict=True))
    assert len(full["state"]) == 6
    for _ in range(2):
        assert step(plain, optimizers[0]) == step(loaded, other) == step(fresh, new)
    assert same(plain, loaded) and same(plain, fresh)
# Every rank has about its share of the state.
mine = sum(each.numel() for state in other.optim.state.values() for each in state.values())
total = sum(each.numel() for state in optimizers[0].state.values() for each in state.values())
shares = [None] * size
dist.all_gather_object(shares, mine)
assert sum(shares) == total and max(shares) <= 0.6 * total, (shares, total)
grown = nn.Parameter(torch.ones(3))
other.add_param_group({"params": [grown], "lr": 1.0})
grown.sum().backward()
other.step()
assert len(other.param_groups) == 2 and grown.sum() < 1
"""
)


def test_two_ranks_then_four_then_one_and_three(tmp_path: Path) -> None:
    printed = run_ranks(tmp_path, OF_TWO + ZERO.removeprefix(BASIS), 2, LIMIT)
    shown = (
        "DTensor(local_tensor=tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.],\n        [ 7.,  8.,  9., 10., 11., 12., 13.],\n"
        "        [14., 15., 16., 17., 18., 19., 20.]]), device_mesh=DeviceMesh((2,), 'cpu'"
    )
    assert printed[0].startswith(shown) and "placements=(Shard(dim=0),))" in printed[0]
    last = "load('two')\nload('two', 1)\ncheckpoint.save(state(1, 1), checkpoint_id='four')\nload('four')\n"
    run_ranks(tmp_path, ZERO + last, 4, LIMIT)
    whole = {"even": torch.arange(24.0).reshape(12, 2).double(), "uneven": torch.arange(35.0).reshape(5, 7).double()}
    for folder in ("two", "four", "async"):
        found = load(
            {"split": {name: torch.zeros_like(each) for name, each in whole.items()}, "epoch": 0}, tmp_path / folder
        )
        assert found["epoch"] == 3 and all(torch.equal(found["split"][name], whole[name]) for name in whole)
    every: dict[str, Any] = {}
    format_utils.dcp_to_torch_save(tmp_path / "four", tmp_path / "four.pt")
    every = torch.load(tmp_path / "four.pt")
    assert [every[f"of {rank}"] for rank in range(4)] == [0, 1, 2, 3] and torch.equal(every["plain"], whole["uneven"])
    save({**every, "split": every["split"]}, tmp_path / "one")
    run_ranks(tmp_path, BASIS + "load('one')\nload('four', 1)\n", 3, LIMIT)


def test_coordinator_killed_after_the_index_is_replaced(tmp_path: Path) -> None:
    program = (
        BASIS
        + """
import signal
checkpoint.save(state(1), checkpoint_id="kept")
dist.barrier()
finish = filesystem.FileSystemWriter.finish
def dies(*args):
    finish(*args)
    os.kill(os.getpid(), signal.SIGKILL)
filesystem.FileSystemWriter.finish = dies
print(raised(checkpoint.save, {**state(1), "epoch": 4}, checkpoint_id="kept"), flush=True)
os._exit(0)
"""
    )
    (killed, _, _), (code, out, err) = Ranks(tmp_path, program, 2).wait(LIMIT)
    assert killed == -9 and code == 0 and "rank 0" in out, err
    found = load({"epoch": 0, "split": {"even": torch.zeros(12, 2).double()}}, tmp_path / "kept")
    assert found["epoch"] == 4 and found["split"]["even"][11, 1] == 23  # the new one, with the files of all ranks


def test_rank_killed_while_saving(tmp_path: Path) -> None:
    program = (
        BASIS
        + """
import signal
checkpoint.save(state(1), checkpoint_id="kept")
dist.barrier()
if rank == 1:
    def dies(line):
        os.kill(os.getpid(), signal.SIGKILL)
    filesystem._checksums = dies
text = raised(checkpoint.save, state(2), checkpoint_id="kept")
print(json.dumps([text, sorted(os.listdir("kept"))]), flush=True)
os._exit(0)
"""
    )
    (code, out, err), (killed, _, _) = Ranks(tmp_path, program, 2).wait(LIMIT)
    assert code == 0 and killed == -9, err
    text, names = json.loads(out)
    assert "rank 1" in text, text
    kept = tmp_path / "kept"
    assert sum(name.startswith("__") for name in names) >= 2  # of the former checkpoint
    assert load({"epoch": 0, "split": {"even": torch.zeros(12, 2).double()}}, kept)["epoch"] == 3
    assert len([*kept.iterdir()]) > 3  # the unfinished file of the killed rank
    save({"x": 1}, kept)
    assert len([*kept.iterdir()]) == 2
