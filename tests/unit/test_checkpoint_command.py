"""``retrograd checkpoint``: lists files without running anything in them, and converts between their formats."""

import io
import os
import pickle
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd import cli
from retrograd.checkpoints import contents
from retrograd.serialization import load_safetensors, save_safetensors

Printed = pytest.CaptureFixture[str]


def run(printed: Printed, *arguments: Any) -> tuple[int, str, str]:
    """Return the exit status of ``retrograd checkpoint`` and what it prints and reports."""
    status = cli.main(["checkpoint", *map(str, arguments)])
    captured = printed.readouterr()
    return status, captured.out, captured.err


def weights() -> dict[str, Any]:
    return {"layer.weight": torch.arange(6.0).reshape(2, 3), "layer.bias": torch.tensor([1, -2], dtype=torch.int16)}


def test_a_training_checkpoint_is_listed(tmp_path: Path, capsys: Printed) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    file = tmp_path / "train.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
    status, printed, errors = run(capsys, file)
    assert (status, errors) == (0, "")
    lines = [line.split() for line in printed.splitlines()]
    assert ["model.weight", "(2,", "3)", "float32", "24", "bytes"] in lines
    assert ["optimizer.state.1.exp_avg", "(2,)", "float32", "8", "bytes"] in lines
    assert ["optimizer.param_groups.0.lr", "float", "0.5"] in lines
    assert ["optimizer.param_groups.0.params", "list", "[0,", "1]"] in lines
    assert ["epoch", "int", "3"] in lines
    assert printed.splitlines()[-1].startswith("8 tensors, 26 elements, 104 bytes; ")
    status, printed, _ = run(capsys, file, "--part", "optimizer.state.0")
    assert status == 0 and [line.split()[0] for line in printed.splitlines()[1:-1]] == ["step", "exp_avg", "exp_avg_sq"]
    status, _, errors = run(capsys, file, "--part", "optimiser")
    assert status == 2 and "has no part 'optimiser'; parts here: model, optimizer, epoch" in errors


def test_every_format_has_the_same_rows(tmp_path: Path, capsys: Printed) -> None:
    torch.save(weights(), tmp_path / "a.pt")
    torch.save(weights(), tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    save_safetensors(weights(), tmp_path / "c.safetensors", {"origin": "a test"})
    numpy.savez(tmp_path / "d.npz", **{name: each.numpy() for name, each in weights().items()})
    numpy.savez_compressed(tmp_path / "e.npz", **{name: each.numpy() for name, each in weights().items()})
    rows = []
    for path in sorted(tmp_path.iterdir()):
        status, printed, _ = run(capsys, path)
        assert status == 0
        lines = printed.splitlines()
        rows.append(sorted(lines[1:3]))
        assert lines[3] == "2 tensors, 8 elements, 28 bytes"
        assert ("metadata: origin = a test" in lines) == (path.suffix == ".safetensors")
    assert rows[0] == ["layer.bias    (2,)    int16    4 bytes", "layer.weight  (2, 3)  float32  24 bytes"]
    assert all(each == rows[0] for each in rows)


@pytest.mark.parametrize("first", [".pt", ".safetensors", ".npz"])
@pytest.mark.parametrize("second", [".pth", ".safetensors", ".npz"])
def test_conversions(first: str, second: str, tmp_path: Path, capsys: Printed) -> None:
    given: dict[str, Any] = weights() | {
        "half": torch.ones(2, 1, dtype=torch.float16), "none": torch.empty(0, 3), "flag": torch.tensor(True),
        "turned": torch.arange(6.0).reshape(2, 3).T, "complex": torch.tensor([1 + 2j]),
    }  # fmt: skip
    start, middle, end = tmp_path / "start.pt", tmp_path / f"middle{first}", tmp_path / f"end{second}"
    torch.save(given, start)
    for source, target in ((start, middle), (middle, end)):
        status, printed, errors = run(capsys, source, target)
        assert (status, errors) == (0, "") and printed.startswith(f"{target}: ")
    read: dict[str, Any]
    if second == ".npz":
        read = {name: torch.from_numpy(each) for name, each in numpy.load(end).items()}
    else:
        read = load_safetensors(end) if second == ".safetensors" else torch.load(end)
    assert read.keys() == given.keys()
    torch.testing.assert_close(read, given, rtol=0, atol=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({start.name, middle.name, end.name})


def test_a_conversion_to_pytorch_keeps_everything(tmp_path: Path, capsys: Printed) -> None:
    weight = torch.ones(2, 2)
    given = {
        "tied": [weight, weight.T],
        "p": torch.nn.Parameter(torch.zeros(2)),
        "lr": 0.5,
        "b": torch.ones(1, dtype=torch.bfloat16),
    }
    torch.save(given, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    assert run(capsys, tmp_path / "a.pt", tmp_path / "b.pt")[0] == 0
    read = torch.load(tmp_path / "b.pt")
    read["tied"][0][0, 1] = 5
    assert read["tied"][1][1, 0] == 5 and read["p"].requires_grad and isinstance(read["p"], torch.nn.Parameter)
    assert read["lr"] == 0.5 and read["b"].dtype is torch.bfloat16
    assert zipfile.is_zipfile(tmp_path / "b.pt")


@pytest.mark.parametrize(
    ("value", "ending", "words"),
    [
        ({"a": 3}, ".npz", "npz holds only tensors by name, but 'a' is of type int"),
        ({"m": {"w": torch.ones(1)}, "e": 1}, ".safetensors", "'m' is of type dict; --part takes one part: m"),
        ({1: torch.ones(1)}, ".npz", "the name 1 is no string"),
        ([torch.ones(1)], ".safetensors", "this is not a dict: list"),
        ({"a": torch.ones(1, dtype=torch.bfloat16)}, ".npz", "npz has no dtype bfloat16 ('a')"),
        ({"a": torch.ones(1, dtype=torch.complex128)}, ".safetensors", "safetensors has no dtype torch.complex128"),
        ({"a": torch.ones(1).expand(3)}, ".npz", "'a' repeats its elements in memory, which npz cannot keep; --copy-shared"),
        ({"a": torch.eye(2).to_sparse()}, ".npz", "'a' is of the layout torch.sparse_coo"),
        ({"a": torch.ones(2, device="meta")}, ".npz", "'a' is on the device meta"),
        ({"__metadata__": torch.ones(1)}, ".safetensors", "keeps the name '__metadata__'"),
        ({"a\0b": torch.ones(1)}, ".npz", "it contains the character 0"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold(value: Any, ending: str, words: str, tmp_path: Path, capsys: Printed) -> None:
    torch.save(value, tmp_path / "a.pt")
    status, printed, errors = run(capsys, tmp_path / "a.pt", tmp_path / f"b{ending}")
    assert status == 2 and printed == "" and words in errors and errors.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_part_of_memory_between_tensors_of_the_whole(tmp_path: Path, capsys: Printed) -> None:
    x = torch.arange(10.0)
    torch.save({"x": x, "y": x[2:5], "z": x, "e": torch.ones(2, 1).expand(2, 50)}, tmp_path / "a.pt")
    _, printed, _ = run(capsys, tmp_path / "a.pt")
    assert [line.split("  ")[-1] for line in printed.splitlines()[1:-1]] == [
        "40 bytes", "shares memory with x", "shares memory with x", "repeats its elements"
    ]  # fmt: skip
    assert printed.splitlines()[-1] == "4 tensors (2 share memory, which is counted once), 12 elements, 48 bytes"


def test_shared_memory(tmp_path: Path, capsys: Printed) -> None:
    base = torch.arange(8.0).reshape(4, 2)
    torch.save({"a": base, "b": base[1:3], "left": base[:, :1], "c": torch.ones(2)}, tmp_path / "a.pt")
    _, printed, _ = run(capsys, tmp_path / "a.pt")
    assert [line.split("  ")[-1] for line in printed.splitlines()[1:5]] == [
        "32 bytes", "shares memory with a", "shares memory with a", "8 bytes"
    ]  # fmt: skip
    assert printed.splitlines()[5] == "4 tensors (2 share memory, which is counted once), 10 elements, 40 bytes"
    status, _, errors = run(capsys, tmp_path / "a.pt", tmp_path / "b.safetensors")
    assert status == 2 and "'b' shares memory with 'a'" in errors
    assert run(capsys, tmp_path / "a.pt", tmp_path / "b.safetensors", "--copy-shared")[0] == 0
    torch.testing.assert_close(load_safetensors(tmp_path / "b.safetensors")["left"], base[:, :1])
    # Columns of one matrix lie between each other and have no element in common.
    torch.save({"left": base[:, :1], "right": base[:, 1:]}, tmp_path / "columns.pt")
    assert run(capsys, tmp_path / "columns.pt", tmp_path / "columns.npz")[0] == 0


def test_equal_names_are_counted_one_by_one(tmp_path: Path, capsys: Printed) -> None:
    x, long = torch.ones(6), "n" * 500
    for value, last in (
        ({"a": {"b": x}, "a.b": x}, "2 tensors (1 share memory, which is counted once), 6 elements, 24 bytes"),
        ({"a.b": torch.ones(2), "a": {"b": x}, "c": x[:3]}, "3 tensors (1 share memory, which is counted once), 8 elements, 32 bytes"),
        ({f"{long}a": x, f"{long}b": torch.ones(2), f"{long}c": x}, "3 tensors (1 share memory, which is counted once), 8 elements, 32 bytes"),
        ({"a": x[:1], "b": x[:1].expand(3)}, "2 tensors (1 share memory, which is counted once), 1 element, 4 bytes"),
    ):  # fmt: skip
        torch.save(value, tmp_path / "a.pt")
        assert run(capsys, tmp_path / "a.pt")[1].splitlines()[-1] == last
    torch.save({"a": {"b": x}, "a.b": x}, tmp_path / "a.pt")
    assert [line.split("  ")[-1] for line in run(capsys, tmp_path / "a.pt")[1].splitlines()[1:3]] == [
        "24 bytes", "shares memory with a.b"
    ]  # fmt: skip


def random_view(draw: random.Random, base: Any) -> Any:
    """Return a random view of the matrix ``base``."""
    height, width = base.shape
    top, left = draw.randrange(height), draw.randrange(width)
    part = base[
        top : draw.randint(top, height) : draw.randint(1, 3), left : draw.randint(left, width) : draw.randint(1, 3)
    ]
    kind = draw.randrange(5)
    if kind == 0:
        return base.reshape(-1)[top * width + left :: draw.choice((1, 7, width))]
    if kind == 1:
        return part[::-1].T
    return numpy.broadcast_to(part, (2, *part.shape)) if kind == 2 else part[:, :1] if kind == 3 else part


def expected_sharing(arrays: list[Any]) -> dict[int, int]:
    """Return what ``contents.shared_positions`` returns, by comparison of every array with every other."""
    found = {}
    for position, array in enumerate(arrays):
        others = [other for other in range(position) if numpy.shares_memory(array, arrays[other])]
        if others:
            found[position] = others[0]
        elif array.size and 0 in [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]:
            found[position] = position
    return found


@pytest.mark.parametrize("count", [3, 12, 60])
def test_sharing_of_random_views(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(count)
    for _ in range(40):
        bases = [numpy.zeros((draw.randint(1, 40), draw.randint(1, 40)), dtype) for dtype in ("f4", "i2", "f8")]
        arrays = [random_view(draw, draw.choice(bases)) for _ in range(count)]
        expected = expected_sharing(arrays)
        assert contents.shared_positions([None, *arrays]) == {key + 1: other + 1 for key, other in expected.items()}
        monkeypatch.setattr(contents, "PAIRS", 0)
        assert contents.shared_positions(arrays) == expected
        monkeypatch.undo()


def test_the_number_of_compared_pairs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bool:
        raise AssertionError("a pair of arrays is compared")

    monkeypatch.setattr(contents, "_share_elements", refuse)
    base = numpy.zeros(4000 * 8)
    assert contents.shared_positions([base[start::4000] for start in range(4000)]) == {}
    assert contents.shared_positions([base[start % 50 : 5000 : 50] for start in range(4000)]) == {
        start: start % 50 for start in range(50, 4000)
    }
    assert contents.shared_positions([base[:start] for start in range(1, 4000)]) == dict.fromkeys(range(1, 3999), 0)
    monkeypatch.setattr(contents, "RUNS", 1000)  # more runs are not compared: the arrays may share memory
    assert len(contents.shared_positions([base[start::4000] for start in range(4000)])) == 3999


def test_files_are_replaced_only_by_force_and_only_when_complete(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(weights(), tmp_path / "a.pt")
    target = tmp_path / "b.npz"
    target.write_bytes(b"before")
    status, _, errors = run(capsys, tmp_path / "a.pt", target)
    assert (
        status == 2
        and errors == f"retrograd: {target} exists; --force replaces it\n"
        and target.read_bytes() == b"before"
    )

    def no_space(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(numpy.lib.format, "write_array", no_space)
        assert run(capsys, tmp_path / "a.pt", target, "--force")[0] == 2
    assert target.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 2
    assert run(capsys, tmp_path / "a.pt", target, "--force")[0] == 0
    assert sorted(numpy.load(target)) == ["layer.bias", "layer.weight"]


def test_the_metadata_and_requires_grad_are_named_where_they_get_lost(tmp_path: Path, capsys: Printed) -> None:
    save_safetensors(weights(), tmp_path / "a.safetensors", {"k": "v"})
    assert "no place for it: the metadata" in run(capsys, tmp_path / "a.safetensors", tmp_path / "a.npz")[1]
    run(capsys, tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert "metadata: k = v" in run(capsys, tmp_path / "b.safetensors")[1]
    torch.save({"w": torch.nn.Parameter(torch.ones(1))}, tmp_path / "p.pt")
    assert "no place for it: requires_grad=True of 1 tensor" in run(capsys, tmp_path / "p.pt", tmp_path / "p.npz")[1]


class Settings:
    """A class of a program, whose pickle refers to the program."""

    def __init__(self) -> None:
        self.rate, self.weight = 0.25, torch.ones(3)


class Attack:
    def __reduce__(self) -> Any:
        return os.mkdir, ("attacked",)


def test_classes_of_the_file_are_named_and_not_loaded(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"settings": Settings(), "attack": Attack(), "model": {"w": torch.ones(2)}}, "a.pt")
    status, printed, _ = run(capsys, "a.pt")
    assert status == 0 and os.listdir() == ["a.pt"]
    lines = [line.split() for line in printed.splitlines()]
    assert ["settings.rate", "float", "0.25"] in lines and [
        "settings.weight",
        "(3,)",
        "float32",
        "12",
        "bytes",
    ] in lines
    assert ["attack.arguments", "tuple", "('attacked',)"] in lines
    last = printed.splitlines()[-1]
    assert ".Settings" in last and ".mkdir" in last and "not loaded" in last
    assert run(capsys, "a.pt", "b.npz", "--part", "model")[0] == 0
    status, _, errors = run(capsys, "a.pt", "b.pt")
    assert status == 2 and "'settings' is of a class or function that is not loaded" in errors
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 1)), "whole.pt")
    printed = run(capsys, "whole.pt")[1]
    assert ["_modules.0._parameters.weight", "(1,", "2)", "float32", "8", "bytes"] in [
        line.split() for line in printed.splitlines()
    ]
    assert "not loaded: torch.nn.modules.linear.Linear" in printed and "hooks" not in printed


def test_names_are_printed_without_control_characters(tmp_path: Path, capsys: Printed) -> None:
    torch.save({"a\x1b[2Jb": torch.ones(1), "c\nd": "\x07"}, tmp_path / "a.pt")
    _, printed, _ = run(capsys, tmp_path / "a.pt")
    assert r"a\x1b[2Jb" in printed and r"c\nd" in printed and "\x1b" not in printed and "\x07" not in printed


def test_nested_and_cyclic_containers_end(tmp_path: Path, capsys: Printed) -> None:
    shared: list[Any] = [torch.ones(1)]
    for _ in range(30):
        shared = [shared, shared]
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep, 1]
    cycle: dict[str, Any] = {"w": torch.ones(1)}
    cycle["self"] = cycle
    torch.save({"shared": shared, "deep": deep, "cycle": cycle}, tmp_path / "a.pt")
    status, printed, _ = run(capsys, tmp_path / "a.pt")
    assert status == 0 and len(printed.splitlines()) < 200
    assert "the same object as shared.0" in printed and "nested too deeply" in printed
    assert "the same object as cycle" in printed


def npz_of(header: str, data: bytes) -> bytes:
    """Return an archive of one array with ``header``, the text of a dict."""
    text = header.encode().ljust(117) + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pt", b"", "it is empty"),
        ("a.pt", b"hello, world", "it is no checkpoint"),
        ("a.pt", b"PK\x03\x04", "File is not a zip file"),
        ("a.safetensors", b"\xff" * 8 + b"{}", "the file is too short for its header"),
        ("a.safetensors", b"", "the file is too short for its header"),
        ("a.pt", pickle.dumps({"a": 1}), "Invalid magic number"),
        ("a.pt", pickle.dumps(Attack()), "Invalid magic number"),
        ("a.npz", npz_of("{'descr': '<f4', 'fortran_order': False, 'shape': (10**12,)}", b""), "malformed node or string"),
        ("a.npz", npz_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}", b""), "does not fill its record"),
        ("a.npz", npz_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}", b"abcd"), "does not fill its record"),
        ("a.npz", npz_of("{'descr': '|O', 'fortran_order': False, 'shape': ()}", b""), "holds Python objects"),
    ],
)  # fmt: skip
def test_damaged_and_foreign_files(name: str, data: bytes, words: str, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / name).write_bytes(data)
    status, printed, errors = run(capsys, tmp_path / name)
    assert (status, printed) == (2, "") and words in errors and errors.count("\n") == 1
    assert not Path("attacked").exists()


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors", "npz"])
def test_changed_bytes_give_a_line(kind: str, tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / f"a.{kind if kind in ('safetensors', 'npz') else 'pt'}"
    if kind in ("zip", "legacy"):
        torch.save({"m": weights(), "n": [1, {"x": Settings()}]}, file, _use_new_zipfile_serialization=kind == "zip")
    elif kind == "npz":
        numpy.savez_compressed(file, **{name: each.numpy() for name, each in weights().items()})
    else:
        save_safetensors(weights(), file)
    whole, draw = file.read_bytes(), random.Random(0)
    outcomes = set()
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(draw.choice((1, 1, 3))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        if draw.random() < 0.2:
            del changed[draw.randrange(len(changed)) :]
        file.write_bytes(changed)
        for more in ((), (tmp_path / "out.pt", "--force")):
            status, printed, errors = run(capsys, file, *more)
            outcomes.add(status)
            assert (status == 0 and errors == "") or (status == 2 and printed == "" and errors.count("\n") == 1)
    assert outcomes == {0, 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("no.pt",), "no.pt does not exist"), ((".",), ". is a folder"), (("a.pt", "b.h5"), "b.h5 has the ending '.h5'")],
)
def test_arguments(arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: Printed, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(torch.ones(1), "a.pt")
    status, _, errors = run(capsys, *arguments)
    assert status == 2 and words in errors


def test_the_reader_of_the_output_may_end(tmp_path: Path) -> None:
    torch.save({f"tensor {number}": torch.ones(1) for number in range(3000)}, tmp_path / "a.pt")
    source = str(Path(torch.__file__).parent.parent)
    command = subprocess.Popen(
        [sys.executable, "-m", "retrograd", "checkpoint", str(tmp_path / "a.pt")],
        env={**os.environ, "PYTHONPATH": source}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert command.stdout is not None and command.stderr is not None
    command.stdout.readline()
    command.stdout.close()
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait(60) == 0


def test_equal_containers_are_listed_once() -> None:
    inner = {"w": torch.ones(1)}
    found = [(each.name, each.note) for each in contents.entries({"a": inner, "b": inner})]
    assert found == [("a.w", ""), ("b", "the same object as a")]
