"""Checkpoints: reading PyTorch's, writing what PyTorch writes, and damaged or malicious files."""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import random
import stat
import struct
import sys
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.checkpoints.storages import TorchName
from tests.conformance.checkpoint_cases import UNTYPED, answer, networks, objects, outline, shown, used, wholes
from tests.conformance.golden import GOLDEN, load

RECORDED = load("checkpoints")


def saved(value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


# -- PyTorch's files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}, {"map_location": "cpu"}])
def test_loads_pytorchs_checkpoint(options: dict[str, Any]) -> None:
    found = torch.load(GOLDEN / "checkpoint.pt", **options)
    assert {name: as_json(shown(torch, each)) for name, each in found.items()} == RECORDED["shown"]
    assert found["whole"].data_ptr() + 8 == found["part"].data_ptr()
    assert found["twice"][0] is found["twice"][1]
    assert found["module"]._metadata == {"": {"version": 1}}


@pytest.mark.parametrize("weights_only", [True, False])
def test_loads_legacy_checkpoint(weights_only: bool) -> None:
    found = torch.load(GOLDEN / "checkpoint_legacy.pt", weights_only=weights_only)
    expected = {name: each for name, each in RECORDED["shown"].items() if name not in UNTYPED}
    assert {name: as_json(shown(torch, each)) for name, each in found.items()} == expected
    assert found["whole"].data_ptr() + 8 == found["part"].data_ptr()


@pytest.mark.parametrize("name", RECORDED["pickles"])
def test_pickles_match_pytorchs_bytes(name: str) -> None:
    with zipfile.ZipFile(saved(objects(torch)[name])) as archive:
        assert archive.read("archive/data.pkl").hex() == RECORDED["pickles"][name]
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/byteorder").decode() == sys.byteorder


@pytest.mark.parametrize("zipped", [True, False])
def test_save_and_load_round_trip(zipped: bool) -> None:
    found = torch.load(saved(objects(torch), _use_new_zipfile_serialization=zipped))
    assert {name: as_json(shown(torch, each)) for name, each in found.items()} == RECORDED["shown"]


def test_records_are_aligned_to_64_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.v1.pt"
    torch.save([torch.arange(3), torch.ones(100)], path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for info in archive.infolist():
            name, extra = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
            assert (info.header_offset + 30 + name + extra) % 64 == 0
            assert info.compress_type == zipfile.ZIP_STORED
    assert names[0] == "model.v1/data.pkl" and names[-1] == "model.v1/.data/serialization_id"


@pytest.mark.parametrize("name", RECORDED["answers"])
def test_pickled_modules_of_pytorch_work(name: str) -> None:
    network = torch.load(GOLDEN / "networks.pt", weights_only=False)[name]
    made, shape = networks(torch)[name]
    assert type(network) is type(made) and network.state_dict().keys() == made.state_dict().keys()
    torch.manual_seed(0)
    text, *numbers = answer(torch, network, shape)
    assert text == RECORDED["answers"][name][0]
    assert name == "lazy" or np.allclose(numbers, RECORDED["answers"][name][1:], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", RECORDED["outlines"])
def test_pickled_modules_match_pytorchs_outline(name: str) -> None:
    network, _ = networks(torch)[name]
    file = saved(network)
    assert as_json(outline(file)) == json.loads(RECORDED["outlines"][name])
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert type(again) is type(network) and repr(again) == repr(network)
    with pytest.raises(UnpicklingError, match="Unsupported global: GLOBAL torch"):
        torch.load(saved(network))


@pytest.mark.parametrize("name", RECORDED["wholes"])
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_pickled_objects_of_pytorch_work(name: str) -> None:
    value = torch.load(GOLDEN / "wholes.pt", weights_only=False)[name]
    assert type(value) is type(wholes(torch)[name])
    assert used(torch, name, value) == RECORDED["uses"][name]


@pytest.mark.parametrize("name", RECORDED["wholes"])
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_pickled_objects_match_pytorchs_outline(name: str) -> None:
    file = saved(wholes(torch)[name])
    assert as_json(outline(file)) == json.loads(RECORDED["wholes"][name])
    file.seek(0)
    assert used(torch, name, torch.load(file, weights_only=False)) == RECORDED["uses"][name]


def test_pickled_operations_use_their_public_path() -> None:
    several = [torch.relu, torch.linalg.norm, torch.special.erf, torch.nn.functional.gelu, torch.cat, torch.fft.fft]
    assert torch.load(saved(several), weights_only=False) == several
    assert outline(saved(several)) == [
        "torch.relu", "torch.linalg.norm", "torch.special.erf", "torch.nn.functional.gelu", "torch.cat",
        "torch.fft.fft",
    ]  # fmt: skip


# -- Preserved properties ----------------------------------------------------------------------------------------------------


def test_views_share_storage_after_loading() -> None:
    x = torch.zeros(4)
    a, b = torch.load(saved([x[:2], x.view(2, 2).t()]))
    a.fill_(7)
    assert b.tolist() == [[7, 0], [7, 0]] and b.stride() == (1, 2)


def test_views_of_other_dtypes_on_one_storage_raise() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
        saved([x, x.view(torch.int32)])


def test_tensors_on_foreign_memory_are_saved() -> None:
    array = np.arange(10.0)[::-1]
    kept = torch.load(saved(torch.from_numpy(array.copy()[2:5])))
    assert kept.tolist() == [7, 6, 5]
    assert torch.load(saved(torch.frombuffer(bytearray(b"abcdef"), dtype=torch.uint8, offset=2))).tolist() == [
        99,
        100,
        101,
        102,
    ]


def test_model_and_optimizer_resume(tmp_path: Path) -> None:
    torch.manual_seed(0)

    def made() -> tuple[Any, Any]:
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        return model, torch.optim.AdamW(model.parameters(), lr=0.1)

    def train(model: Any, optimizer: Any) -> float:
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.tensor([[0.0, 1.0], [2.0, float(step)]])).square().sum()
            loss.backward()
            optimizer.step()
        return loss.item()

    model, optimizer = made()
    train(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "at.pt")
    expected = train(model, optimizer)
    other, its = made()
    kept = torch.load(tmp_path / "at.pt")
    other.load_state_dict(kept["model"])
    its.load_state_dict(kept["optimizer"])
    assert train(other, its) == expected


def test_mmap_is_copy_on_write(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.ones(1000), path)
    before = path.read_bytes()
    x = torch.load(path, mmap=True)
    x.add_(1)
    assert x[0].item() == 2 and path.read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(before), mmap=True)
    torch.save(3, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)


def test_checkpoints_of_other_byte_order() -> None:
    values = {"f": torch.tensor([1.5, -2.0]), "b": torch.tensor([1.5]).bfloat16(), "c": torch.tensor([1 + 2j])}
    file, turned = saved(values), io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(turned, "w") as other:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith("byteorder"):
                data = b"big" if sys.byteorder == "little" else b"little"
            elif "/data/" in name:
                data = np.frombuffer(data, np.uint16 if len(data) == 2 else np.uint32).byteswap().tobytes()
            other.writestr(name, data)
    turned.seek(0)
    found = torch.load(turned)
    assert {name: each.tolist() for name, each in found.items()} == {
        name: each.tolist() for name, each in values.items()
    }


def test_map_location() -> None:
    x = saved(torch.ones(2))
    seen = []
    for place in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda storage, tag: seen.append(tag)):
        x.seek(0)
        assert torch.load(x, map_location=place).tolist() == [1, 1]
    assert seen == ["cpu"]
    for place, error, text in (
        ("xyz", RuntimeError, r"don't know how to restore data location of .* \(tagged with xyz\)"),
        (3.5, TypeError, "'float' object is not callable"),
    ):
        x.seek(0)
        with pytest.raises(error, match=text):
            torch.load(x, map_location=place)
    if not torch.cuda.is_available():
        x.seek(0)
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but"):
            torch.load(x, map_location="cuda")


# -- Atomic writes -------------------------------------------------------------------------------------


class Unpicklable:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save([1], path)
    with pytest.raises(ZeroDivisionError):
        torch.save([torch.ones(3), Unpicklable()], path)
    assert torch.load(path) == [1] and os.listdir(tmp_path) == ["x.pt"]


def test_a_crash_in_the_middle_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    torch.save([1], path)

    def crash(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        torch.save([2], path)
    assert torch.load(path) == [1] and os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.parametrize("record", [1, 3, 6])
@pytest.mark.filterwarnings("error")  # of ignored errors too
def test_interrupted_save_raises_only_the_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: int
) -> None:
    written, write = 0, zipfile._ZipWriteFile.write  # type: ignore[attr-defined]

    def interrupted(self: Any, data: Any) -> int:
        nonlocal written
        written += 1
        if written == record:
            raise KeyboardInterrupt
        return int(write(self, data))

    monkeypatch.setattr(zipfile._ZipWriteFile, "write", interrupted)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        torch.save([torch.ones(3), torch.zeros(4)], tmp_path / "x.pt")
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_save_keeps_symlinks_and_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    torch.save([1], path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    torch.save([2], link)
    assert link.is_symlink() and torch.load(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    torch.save([3], os.devnull)


def test_unwritable_paths(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist\."):
        torch.save(3, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write'"):
        torch.save(3, 3)
    with pytest.raises(
        AttributeError, match=r"'int' object has no attribute 'seek'. You can only torch.load from a file"
    ):
        torch.load(3)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing.pt")


def test_saves_to_file_object(tmp_path: Path) -> None:
    class Sink:
        data = b""

        def write(self, data: bytes) -> None:
            self.data += data

    sink = Sink()
    torch.save({"x": torch.arange(3)}, sink)
    assert torch.load(io.BytesIO(sink.data))["x"].tolist() == [0, 1, 2]
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save(torch.ones(1), file)
    assert torch.load(tmp_path / "x.pt").item() == 1


# -- Damaged and malicious files ----------------------------------------------------------------------------

SMALL = {"w": torch.arange(6.0).view(2, 3), "n": [1, {"a": torch.ones(2).bfloat16()}], "s": {1, 2}}


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_cut_short_loads_nothing(zipped: bool) -> None:
    data = saved(SMALL, _use_new_zipfile_serialization=zipped).getvalue()
    for length in range(0, len(data), 7):
        with pytest.raises((RuntimeError, UnpicklingError, EOFError)):
            torch.load(io.BytesIO(data[:length]))


@pytest.mark.parametrize("zipped", [True, False])
def test_damaged_files_raise_or_load_correctly(zipped: bool) -> None:
    data = saved(SMALL, _use_new_zipfile_serialization=zipped).getvalue()
    chance = random.Random(0)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            found = torch.load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, UnpicklingError, EOFError, ValueError):
            continue
        if zipped:  # each record has a checksum
            assert shown(torch, found) == shown(torch, SMALL)


def test_error_messages() -> None:
    data = bytearray(saved(torch.arange(4.0)).getvalue())
    with pytest.raises(
        RuntimeError, match=r"failed finding central directory.*likelihood that your checkpoint file is corrup"
    ):
        torch.load(io.BytesIO(bytes(data[:200])))
    data[data.index(np.float32(3).tobytes())] ^= 1
    with pytest.raises(RuntimeError, match=r"failed reading file data/0: Bad CRC-32.*is corrupted"):
        torch.load(io.BytesIO(bytes(data)))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps([1], 2)))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("x/y.txt", "z")
    other.seek(0)
    with pytest.raises(RuntimeError, match=r'Expected hasRecord\("version"\) to be true, but got false'):
        torch.load(other)


def checkpoint_of(pickled: bytes, storage: bytes = bytes(8)) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in (("data.pkl", pickled), ("version", b"3\n"), ("byteorder", b"little"), ("data/0", storage)):
            archive.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


class Evil:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call = call, arguments

    def __reduce__(self) -> Any:
        return self.call


class Mine:
    def __init__(self) -> None:
        self.x = 3


def test_weights_only_runs_no_code(tmp_path: Path) -> None:
    flag = tmp_path / "run"
    for call in (Evil(os.system, f"touch {flag}"), Evil(eval, f"open({str(flag)!r}, 'w')"), Evil(open, str(flag), "w")):
        for protocol in range(6):
            with pytest.raises(UnpicklingError, match="Weights only load failed"):
                torch.load(checkpoint_of(pickle.dumps({"a": [call]}, protocol)))
    assert not flag.exists()
    with pytest.raises(
        UnpicklingError, match=r"unsupported GLOBAL posix.system whose module posix is blocked|nt.system"
    ):
        torch.load(checkpoint_of(pickle.dumps(Evil(os.system, "true"), 2)))


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02ctorch\nTensor\n)R.",  # call a class that may only be named
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x0c\x00\x00\x00__defaults__)sb.",  # attributes of a function
        b"\x80\x02ccollections\nOrderedDict\n}X\x01\x00\x00\x00xK\x01sb.",  # attributes of a class
        b"\x80\x02K\x01K\x01\x85R.",  # call a number
        b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",  # allocate two billion bytes
        b"\x80\x02]K\x01K\x02s.",  # items of a list
        b"\x80\x02h\x05.", b"\x80\x02.", b"\x80\x02(.", b"\x80\x02u.", b"\x80\x09.", b"\x80\x02X\xff\xff\xff\x7f.", b"",
        b"\x80\x02ctorch.serialization\n_get_layout\nX\x08\x00\x00\x00warnings\x85R.",
        b"\x80\x02X\x01\x00\x00\x00aQ.",  # an invalid persistent id
        b"\x80\x02})" + b"\x85" * 2_000_000 + b"K\x01s.",  # a key of tuples within tuples, deeper than the stack of C
        b"\x80\x02(cbuiltins\nset\n])" + b"\x85" * 2_000_000 + b"a\x85R.",  # the same in a set
        b"\x80\x02ccollections\nOrderedDict\n]](" + b")" + b"\x85" * 2_000_000 + b"K\x01ea\x85R.",
        b"\x80\x04\x8f()" + b"\x85" * 2_000_000 + b"\x90.", b"\x80\x04()" + b"\x85" * 2_000_000 + b"\x91.",
        b"\x80\x02})" + b"2\x86" * 60 + b"K\x01s.",  # a key to be hashed 2**60 times
    ],
)  # fmt: skip
def test_malicious_pickles_raise(program: bytes) -> None:
    with pytest.raises((UnpicklingError, RuntimeError)):
        torch.load(checkpoint_of(program))


def tensor_pickle(
    *, kind: str = "FloatStorage", count: Any = 2, offset: Any = 0, size: Any = (2,), stride: Any = (1,)
) -> bytes:
    from retrograd.checkpoints.pickler import Pickler
    from retrograd.checkpoints.storages import Call, StorageRef, StorageTable

    identity = ("storage", TorchName("torch", kind), "0", "cpu", count)
    file = io.BytesIO()
    arguments = (StorageRef(identity), offset, size, stride, False, {})
    Pickler(file, 2, StorageTable()).dump(Call(TorchName("torch._utils", "_rebuild_tensor_v2"), arguments))
    return file.getvalue()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"size": (3,)}, "are out of bounds for storage of size 8"),
        ({"offset": 1}, "are out of bounds for storage of size 8"),
        ({"offset": -1}, "invalid storage offset -1"),
        ({"stride": (-1,)}, r"Storage size calculation overflowed with sizes=\[2\] and strides=\[-1\]"),
        ({"size": (2**62, 2**62), "stride": (2**62, 1)}, "are out of bounds"),
        ({"stride": ()}, "Storage size calculation overflowed"),
        ({"size": "ab"}, "must be tuples of ints"),
        ({"size": (1.5,)}, "must be tuples of ints"),
        ({"count": 10**15}, r"record size \(8 bytes\) does not match expected size"),
        ({"count": 1}, r"record size \(8 bytes\) does not match expected size \(4 bytes"),
        ({"count": -1}, "Unknown persistent id"),
        ({"kind": "Size"}, "Unknown persistent id"),
    ],
)
def test_tensors_outside_their_storage(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises((RuntimeError, UnpicklingError), match=text):
        torch.load(checkpoint_of(tensor_pickle(**wrong)))
    assert torch.load(checkpoint_of(tensor_pickle())).tolist() == [0, 0]


SHARED = b")" + b"2\x86" * 60  # a tuple of two items, each the same tuple of two items: 2**60 parts in 121 bytes
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (SHARED + b"Q.", r"Unknown persistent id: \(\(\(\.\.\., \.\.\.\), \(\.\.\., \.\.\.\)\),"),
        (b"(X\x07\x00\x00\x00storage" + SHARED + b"NNNtQ.", "Unknown persistent id: .'storage', "),
        (SHARED + b")R.", "Trying to call reduce for unrecognized function "),
        (SHARED + b"}(" + SHARED + b"K\x01u.", "A key of too many parts"),
        (b"ccollections\nOrderedDict\n)R}" + b"\x8c\x01a" + SHARED + b"s}" + SHARED + b"K\x01sb.", "A key of too many parts"),
        (b"ccollections\nOrderedDict\n)R}K\x01K\x02sb.", "name of an attribute must be a string, but got 1"),
        (b"ctorch.serialization\n_get_layout\n" + SHARED + b"\x85R.", "unknown layout: "),
        (b"ctorch\nSize\n" + SHARED + b"\x85R.", "takes an iterable of 'int'"),
        (REBUILD + b"X\x03\x00\x00\x00cpuK\x02tQK\x00" + SHARED + b"K\x01\x85\x89}tR.", "must be tuples of ints, but got "),
        (REBUILD + b"X\x03\x00\x00\x00cpuK\x02tQ" + SHARED + b"K\x02\x85K\x01\x85\x89}tR.", "must be tuples of ints, but got "),
        (
            REBUILD + b"X\x03\x00\x00\x00cpuK\x02tQK\x00\x8b\x88\x13\x00\x00" + b"\x7f" * 5000 + b"\x85K\x01\x85\x89}tR.",
            "must be integers of 64 bits, but got .<int of 39999 bits>,",
        ),
        (REBUILD + SHARED + b"K\x02tQK\x00K\x02\x85K\x01\x85\x89}tR.", "Unknown persistent id: .'storage', <StorageType>, '0',"),
        (
            b"(\x8b\x88\x13\x00\x00" + b"\x7f" * 5000 + b"tQ.", "Unknown persistent id: .<int of 39999 bits>,",
        ),
    ],
)  # fmt: skip
def test_messages_about_file_contents_are_bounded(program: bytes, text: str) -> None:
    with pytest.raises((UnpicklingError, RuntimeError), match=text) as caught:
        torch.load(checkpoint_of(b"\x80\x02" + program))
    assert len(str(caught.value)) < 2000


def test_equal_frozen_sets_of_many_levels_are_no_keys() -> None:
    level = b"q\x000(h\x00h\x00\x86\x91"  # the frozen set on the stack is replaced by {(it, it)}
    chain = b"(K\x01\x91" + level * 60
    with pytest.raises(UnpicklingError, match="A key of too many parts"):
        torch.load(checkpoint_of(b"\x80\x04}(" + chain + b"N" + chain + b"Nu."))


def test_messages_about_files_of_the_old_kind_are_bounded() -> None:
    magic = pickle.dumps(torch.serialization.legacy.MAGIC, 2)
    with pytest.raises(RuntimeError, match=r"Invalid protocol version: \(\(\("):
        torch.load(io.BytesIO(magic + b"\x80\x02" + SHARED + b"."))
    head = magic + pickle.dumps(1001, 2) + pickle.dumps({}, 2) + pickle.dumps(None, 2)
    with pytest.raises(RuntimeError, match="the storages that the file holds are not those that it names"):
        torch.load(io.BytesIO(head + b"\x80\x02](" + SHARED + b"e."))


@pytest.mark.parametrize("length", [10, 10**6])
def test_texts_of_a_file_are_cut_in_messages(length: int) -> None:
    name = b"a" * length
    with pytest.raises(UnpicklingError, match=r"GLOBAL aaa.* was not an allowed global") as caught:
        torch.load(checkpoint_of(b"\x80\x02c" + name + b"\nx\n."))
    assert len(str(caught.value)) < 3000


def test_classes_of_the_users_are_read_if_they_are_named() -> None:
    file = saved({"mine": Mine()})
    with pytest.raises(
        UnpicklingError, match=r"GLOBAL tests.conformance.test_saving.Mine was not an allowed global by default"
    ):
        torch.load(file)
    file.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == ["tests.conformance.test_saving.Mine"]
    with torch.serialization.safe_globals([Mine]):
        file.seek(0)
        assert torch.load(file)["mine"].x == 3
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([(Mine, "tests.conformance.test_saving.Mine")])
    assert torch.serialization.get_safe_globals() == [Mine]
    torch.serialization.clear_safe_globals()
    file.seek(0)
    assert torch.load(file, weights_only=False)["mine"].x == 3


def test_an_explicit_pickle_module() -> None:
    file = saved([torch.ones(1)])
    assert torch.load(file, pickle_module=pickle)[0].item() == 1
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(file, pickle_module=pickle, weights_only=True)


# -- safetensors -----------------------------------------------------------------------------------------------------


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {
        "a": torch.arange(6.0).view(2, 3).t(), "b": torch.ones(3).bfloat16(), "c": torch.tensor(True),
        "e": torch.empty(0, 2),
    }  # fmt: skip
    torch.serialization.save_safetensors(tensors, path, metadata={"format": "pt"})
    found = torch.serialization.load_safetensors(path)
    assert set(found) == set(tensors)
    for name, expected in tensors.items():
        assert torch.equal(found[name], expected) and found[name].dtype == expected.dtype
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header["a"] == {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]} and length % 8 == 0
    assert header["__metadata__"] == {"format": "pt"}
    for length in range(0, len(data), 5):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match="Error while deserializing header"):
            torch.serialization.load_safetensors(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0]}, {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]},
        {"dtype": "F32", "shape": [1]}, [], {"dtype": "F32", "shape": "1", "data_offsets": [0, 4]},
    ],
)  # fmt: skip
def test_safetensors_with_a_wrong_header(tmp_path: Path, entry: Any) -> None:
    text = json.dumps({"x": entry}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    with pytest.raises(ValueError, match="Error while deserializing header"):
        torch.serialization.load_safetensors(path)
