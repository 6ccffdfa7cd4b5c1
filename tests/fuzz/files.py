"""Mutated checkpoints and safetensors files, loaded by retrograd and compared with what PyTorch makes of them.

    PYTHONPATH=src python -m tests.fuzz.files --count 3000 --pytorch /path/to/python-with-pytorch
    PYTHONPATH=src python -m tests.fuzz.files --count 3000 --kind safetensors --safetensors /path/to/python

File number ``n`` is made from the random seed ``n``. Each file is loaded in a process of its own group, in which a file
that takes more than 5 seconds or 1 GB ends the process. The command prints each file that ends a process, that raises
an exception of a type that is not documented, or that loads something else than with the reference.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import pickletools
import random
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[1] / "conformance" / "golden"
COUNTS = {"zip": 200, "legacy": 150, "safetensors": 150}  # files of the test suite
KINDS = ("zip", "legacy", "safetensors")
SECONDS, MEMORY = 5, 2**30
NUMBERS = [
    0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63,
    2**64 - 1, -1, -2, -(2**31), -(2**63),
]  # fmt: skip
NAMES = [
    "collections OrderedDict", "collections Counter", "builtins set", "builtins complex", "builtins bytearray",
    "_codecs encode", "torch Size", "torch Tensor", "torch device", "torch float32", "torch FloatStorage",
    "torch LongStorage", "torch UntypedStorage", "torch.storage UntypedStorage", "torch.nn.parameter Parameter",
    "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter", "torch._utils _rebuild_parameter_with_state", "torch._tensor _rebuild_from_type_v2",
    "os system", "builtins eval", "builtins getattr", "torch load", "torch.serialization load", "__builtin__ list",
]  # fmt: skip
STRINGS = [
    "",
    "storage",
    "0",
    "1",
    "cpu",
    "cuda",
    "cuda:0",
    "cpu:1",
    "meta",
    "latin1",
    "__class__",
    "__setstate__",
    "é",
    "x" * 300,
]


# -- The mutations ---------------------------------------------------------------------------------------------------


def mutated(number: int, kind: str) -> bytes:
    """Return the file with the number ``number`` of a kind of :data:`KINDS`."""
    rng = random.Random(f"{kind} {number}")
    if kind == "zip":
        return _zip(rng)
    if kind == "legacy":
        data = (GOLDEN / "checkpoint_legacy.pt").read_bytes()
        return _bytes(rng, data) if rng.random() < 0.4 else _legacy(rng, data)
    return _safetensors(rng)


def _bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        at = rng.randrange(len(changed) + 1)
        choice = rng.random()
        if choice < 0.4 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif choice < 0.6:
            number = rng.choice(NUMBERS) % 2**64
            size = rng.choice([1, 2, 4, 8])
            changed[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
        elif choice < 0.7:
            del changed[at : at + rng.choice([1, 2, 8, 100])]
        elif choice < 0.8:
            changed[at:at] = rng.randbytes(rng.choice([1, 2, 8, 100]))
        elif choice < 0.9:
            other = rng.randrange(len(changed))
            changed[at:at] = changed[other : other + rng.choice([1, 4, 30, 200])]
        else:
            del changed[rng.randrange(len(changed)) :]
        if not changed:
            break
    return bytes(changed)


def _records() -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(GOLDEN / "checkpoint.pt") as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def _zip(rng: random.Random) -> bytes:
    choice = rng.random()
    if choice < 0.25:
        return _bytes(rng, (GOLDEN / "checkpoint.pt").read_bytes())
    records = _records()
    root = records[0][0].partition("/")[0]
    compressed: set[str] = set()
    if choice < 0.65:
        index = next(index for index, (name, _) in enumerate(records) if name.endswith("/data.pkl"))
        records[index] = (records[index][0], _pickle(rng, records[index][1]))
    else:
        for _ in range(rng.choice([1, 1, 2])):
            index = rng.randrange(len(records))
            name, data = records[index]
            change = rng.randrange(9)
            if change == 0:
                del records[index]
            elif change == 1:
                records.insert(rng.randrange(len(records) + 1), (name, rng.choice(records)[1]))
            elif change == 2:
                parts = [
                    root,
                    "other",
                    "version",
                    "data.pkl",
                    "DATA.PKL",
                    "constants.pkl",
                    "data/0",
                    "data/",
                    "/",
                    "..",
                    "",
                ]
                records[index] = ("/".join(rng.sample(parts, rng.randint(1, 3))), data)
            elif change == 3:
                records[index] = (name, data[: rng.randrange(len(data) + 1)])
            elif change == 4:
                records[index] = (name, data + bytes(rng.choice([1, 4, 1000])))
            elif change == 5:
                records[index] = (name, rng.choice(records)[1])
            elif change == 6:
                text = rng.choice(
                    ["", "x", "0", "1", "10", "11", "-1", "999", "big", "little", "3\n\n", "\xff", "9" * 30]
                )
                which = rng.choice(
                    ["version", "byteorder", ".storage_alignment", ".format_version", ".data/serialization_id"]
                )
                records = [(each, text.encode("latin1") if each == f"{root}/{which}" else old) for each, old in records]
            elif change == 7:
                compressed.add(name)
            else:
                rng.shuffle(records)
            if not records:
                break
    data = archive_of(records, compressed)
    return _fields(rng, data) if rng.random() < 0.3 else data


def archive_of(
    records: list[tuple[str, bytes]], compressed: Container[str], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """Return a zip archive of ``records``; those with a name in ``compressed`` are compressed by ``method``."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in records:
                info = zipfile.ZipInfo(name)
                info.compress_type = method if name in compressed else zipfile.ZIP_STORED
                archive.writestr(info, data)
    return file.getvalue()


_FIELDS = {
    b"PK\x03\x04": [(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2), (30, 1)],
    b"PK\x01\x02": [(6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (34, 2), (38, 4), (42, 4), (50, 1)],
    b"PK\x05\x06": [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)],
}  # fmt: skip


def _fields(rng: random.Random, data: bytes) -> bytes:
    """Change fields of the structures of a zip archive."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2])):
        signature = rng.choice(list(_FIELDS))
        places = []
        at = data.find(signature)
        while at >= 0:
            places.append(at)
            at = data.find(signature, at + 1)
        offset, size = rng.choice(_FIELDS[signature])
        if places:
            at = rng.choice(places) + offset
            old = int.from_bytes(changed[at : at + size], "little")
            number = rng.choice([old + 1, old - 1, old * 2, *NUMBERS])
            changed[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _instructions(data: bytes) -> list[bytes]:
    places = [place for _, _, place in pickletools.genops(data)]
    return [data[begin:end] for begin, end in zip(places, [*places[1:], len(data)], strict=True)]


def _number(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x0a" + value.to_bytes(10, "little", signed=True)


def _instruction(rng: random.Random) -> bytes:
    text = rng.choice(STRINGS).encode()
    return rng.choice([
        _number(rng.choice(NUMBERS)), b"X" + struct.pack("<I", len(text)) + text, b"c%s\n%s\n" % tuple(rng.choice(NAMES).encode().split()),
        b"N", b"\x88", b"\x89", b"(", b")", b"]", b"}", b"\x8f", b"t", b"\x85", b"\x86", b"\x87", b"l", b"d", b"e", b"a", b"s", b"u",
        b"b", b"R", b"\x81", b"Q", b"0", b"1", b"2", b".", b"G" + rng.randbytes(8), b"q" + rng.randbytes(1), b"h" + rng.randbytes(1),
        b"r" + rng.randbytes(4), b"j" + rng.randbytes(4), b"U\x03abc", b"\x80" + bytes([rng.randrange(7)]), b"X\xff\xff\xff\x7f",
        b"\x8b\xff\xff\xff\x7f", rng.randbytes(1),
    ])  # fmt: skip


def _pickle(rng: random.Random, data: bytes) -> bytes:
    """Change instructions of a pickle."""
    parts = _instructions(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(parts))
        choice = rng.random()
        if choice < 0.25:
            numbers = [index for index, part in enumerate(parts) if part[:1] in b"KMJ"]
            parts[rng.choice(numbers)] = _number(rng.choice(NUMBERS))
        elif choice < 0.35:
            texts = [index for index, part in enumerate(parts) if part[:1] == b"X"]
            text = rng.choice(STRINGS).encode()
            parts[rng.choice(texts)] = b"X" + struct.pack("<I", len(text)) + text
        elif choice < 0.45:
            names = [index for index, part in enumerate(parts) if part[:1] == b"c"]
            parts[rng.choice(names)] = b"c%s\n%s\n" % tuple(rng.choice(NAMES).encode().split())
        elif choice < 0.6:
            parts[at] = _instruction(rng)
        elif choice < 0.7:
            del parts[at]
        elif choice < 0.8:
            parts.insert(at, _instruction(rng))
        elif choice < 0.9:
            parts[at:at] = parts[at : at + rng.choice([1, 3, 10, 40])] * rng.choice([1, 2, 50])
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
    return b"".join(parts)


def _legacy(rng: random.Random, data: bytes) -> bytes:
    """Change one of the five pickles of a legacy checkpoint, or the sizes of the storages."""
    file = io.BytesIO(data)
    pickles = []
    for _ in range(5):
        begin = file.tell()
        for _ in pickletools.genops(file):
            pass
        pickles.append(data[begin : file.tell()])
    rest = data[file.tell() :]
    if rng.random() < 0.15:
        rest = struct.pack("<q", rng.choice([each for each in NUMBERS if -(2**63) <= each < 2**63])) + rest[8:]
    else:
        index = rng.choice([0, 1, 2, 3, 3, 3, 3, 3, 4])
        parts = pickles[index]
        pickles[index] = _pickle(rng, parts) if index in (3,) else _bytes(rng, parts)
    return b"".join(pickles) + rest


def _safetensors(rng: random.Random) -> bytes:
    kinds = {"F32": 4, "I64": 8, "BF16": 2, "U8": 1, "BOOL": 1, "F64": 8}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if rng.random() < 0.5 else {}
    position = 0
    for index in range(rng.randint(0, 5)):
        kind = rng.choice(list(kinds))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        size = kinds[kind]
        for each in shape:
            size *= each
        header[f"t{index}"] = {"dtype": kind, "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header)
    entries = [each for name, each in header.items() if name != "__metadata__"]
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        change = rng.randrange(8)
        entry = rng.choice(entries) if entries else {"data_offsets": [0, 0], "shape": [0], "dtype": ""}
        if change == 0:
            entry["data_offsets"][rng.randrange(2)] = rng.choice([*NUMBERS, 1.0, None, True, "0", []])
        elif change == 1:
            shift = rng.choice([1, -1, 4, -4, 8])
            entry["data_offsets"] = [each + shift if type(each) is int else each for each in entry["data_offsets"]]
        elif change == 2:
            entry["shape"] = rng.choice(
                [[], [rng.choice(NUMBERS)] * rng.randint(1, 3), [1] * 100, {}, None, "4", [[1]]]
            )
        elif change == 3:
            entry["dtype"] = rng.choice(["F32", "U8", "C64", "F8_E4M3", "X", "", None, 1, {"U8": None}])
        elif change == 4:
            header[rng.choice(["__metadata__", "t0", "t1", "", "é", "\ud800"])] = rng.choice(
                [entry, dict(entry), {}, [], None, {"a": "b"}, {"a": 1}]
            )
        elif change == 5 and entries:
            entry.pop(rng.choice(list(entry)), None)
            entry.setdefault("data_offsets", [0, 0])
        elif change == 6:
            position = max(0, position + rng.choice([1, -1, 8, -8, 1000]))
        text = json.dumps(header)
        if change == 7:
            text = rng.choice(
                [text[:-1] + "," + text[1:], " " + text, text + " ", text.replace("0", "-0", 1), "[" * 3000, text * 2]
            )
    body = rng.randbytes(position)
    length = len(text.encode()) if rng.random() < 0.9 else rng.choice(NUMBERS) % 2**64
    data = struct.pack("<Q", length) + text.encode() + body
    return _bytes(rng, data) if rng.random() < 0.3 else data


# -- The answers -----------------------------------------------------------------------------------------------------


def described(torch: Any, value: Any, depth: int = 12) -> Any:
    """Return a text of a loaded object that is equal for equal objects of both packages."""
    if isinstance(value, torch.Tensor):
        small = value.numel() <= 10_000
        numbers = value.detach().reshape(-1).tolist() if small else "large"
        parts = [type(value).__name__, str(value.dtype), list(value.shape), value.requires_grad, numbers]
        return [*map(str, parts), sorted(str(name) for name in value.__dict__ if name != "_is_param")]
    if depth == 0:
        return "..."
    name = type(value).__name__
    if isinstance(value, dict):
        items = [[described(torch, key, depth - 1), described(torch, each, depth - 1)] for key, each in value.items()]
        return [name, items, sorted(map(str, getattr(value, "__dict__", {})))]
    if isinstance(value, (list, tuple)):
        return [name, *(described(torch, each, depth - 1) for each in value)]
    if isinstance(value, (set, frozenset)):
        return [name, *sorted(str(described(torch, each, depth - 1)) for each in value)]
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, bytearray)):
        return [name, repr(value)]
    return (
        [name, str(value)]
        if name in ("dtype", "device")
        else "function"
        if callable(value) or name == "TensorType"
        else name
    )


def digest(description: Any) -> str:
    return hashlib.sha256(json.dumps(description).encode()).hexdigest()[:10]


def loaded(engine: str, kind: str) -> Callable[[bytes], Any]:
    """Return a function that loads a file with a package, and returns a description of the result."""
    if engine == "safetensors":
        import safetensors  # type: ignore[import-not-found]

        def read(data: bytes) -> Any:
            found = safetensors.deserialize(data)
            return sorted([name, each["dtype"], list(each["shape"]), bytes(each["data"]).hex()] for name, each in found)

        return read
    if engine == "pytorch":
        import torch  # type: ignore[import-not-found]
    else:
        import retrograd as torch
    if kind == "safetensors":
        from retrograd.checkpoints import safetensors as module

        def read_tensors(data: bytes) -> Any:
            found = module.read(io.BytesIO(data), len(data))
            size = 8 + struct.unpack("<Q", data[:8])[0] + sum(each.nbytes for each in found.values())
            assert size == len(data), "the tensors do not cover the file"
            return sorted(
                [name, module._NAMES[each.dtype], list(each.shape), each._array.tobytes().hex()]
                for name, each in found.items()
            )

        return read_tensors

    def load(data: bytes) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(torch, torch.load(io.BytesIO(data)))

    return load


def answer(load: Callable[[bytes], Any], data: bytes) -> str:
    """Return the name of the exception that ``load(data)`` raises, or the digest of its result."""
    try:
        return digest(load(data))
    except Exception as error:
        text = str(error)
        return f"{type(error).__name__}: {text[:200]!r} {text[200:][-250:]!r}"


def answers(engine: str, kind: str, numbers: Iterator[int], limits: bool = True) -> Iterator[str]:
    """Yield the answer for each file; the files are loaded in child processes."""
    import resource  # not on Windows
    import signal

    load = loaded(engine, kind)
    waiting = list(numbers)
    while waiting:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            if limits:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            for number in waiting[:100]:
                signal.alarm(SECONDS)
                line = answer(load, mutated(number, kind))
                os.write(writing, (json.dumps(line) + "\n").encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            found = [json.loads(line) for line in lines]
        _, status = os.waitpid(child, 0)
        if status:
            found.append(f"process ended by signal {status & 127}")
        yield from found
        del waiting[: len(found)]


# -- The command -----------------------------------------------------------------------------------------------------

#: The exceptions that ``load`` and ``load_safetensors`` document.
DOCUMENTED = ("UnpicklingError", "RuntimeError", "EOFError", "ValueError")


def is_error(line: str) -> bool:
    return ":" in line or line.startswith("process")


def problem(found: str, expected: str | None) -> str | None:
    """Return what is wrong with retrograd's answer, if the reference's answer is ``expected`` (None: unknown)."""
    if found.startswith("process"):
        return found
    if is_error(found):
        return None if found.partition(":")[0] in DOCUMENTED else f"undocumented {found}"
    if expected is None or found == expected:
        return None
    if "Unsupported operand" in expected:  # retrograd also reads the instructions of newer pickle protocols
        return None
    return f"refused by the reference: {expected}" if is_error(expected) else "another value"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--pytorch", help="Python interpreter with PyTorch")
    parser.add_argument("--safetensors", help="Python interpreter with safetensors")
    parser.add_argument("--answers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answers:
        for line in answers(options.answers, options.kind, iter(range(options.first, options.first + options.count))):
            print(json.dumps(line))
        return
    bad = 0
    for kind in [options.kind] if options.kind else KINDS:
        numbers = range(options.first, options.first + options.count)
        engine = "safetensors" if kind == "safetensors" else "pytorch"
        interpreter = options.safetensors if kind == "safetensors" else options.pytorch
        expected: list[str | None] = [None] * options.count
        if interpreter:
            with tempfile.TemporaryFile("w+") as output:
                command = [interpreter, "-m", "tests.fuzz.files", "--answers", engine, "--kind", kind]
                command += ["--first", str(options.first), "--count", str(options.count)]
                subprocess.run(command, stdout=output, check=True)
                output.seek(0)
                expected = [json.loads(line) for line in output if line.startswith('"')]
        assert len(expected) == options.count
        values = 0
        for number, found, known in zip(numbers, answers("retrograd", kind, iter(numbers)), expected, strict=True):
            values += not is_error(found)
            if wrong := problem(found, known):
                bad += 1
                print(f"{kind} {number}: {wrong}")
        print(
            f"{kind}: {options.count} files, {values} loaded, {sum(not is_error(each or ':') for each in expected)} by the reference"
        )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
