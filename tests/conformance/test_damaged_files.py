"""Damaged and hostile checkpoints and safetensors files: what PyTorch or safetensors refuses, and bounded work."""

from __future__ import annotations

import io
import json
import pickle
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import pytest

import retrograd as torch
from retrograd.checkpoints import safetensors
from tests.conformance.golden import GOLDEN
from tests.conformance.test_saving import checkpoint_of, saved, tensor_pickle
from tests.fuzz.files import archive_of

VALUE = {"w": torch.arange(4.0)}


def archive(
    records: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED, compressed: str | None = None
) -> io.BytesIO:
    names = [name for name, _ in records] if compressed is None else [compressed]
    return io.BytesIO(archive_of(records, names, method))


def records_of(value: Any = VALUE) -> dict[str, bytes]:
    with zipfile.ZipFile(saved(value)) as found:
        return {name: found.read(name) for name in found.namelist()}


def changed(**records: bytes | None) -> io.BytesIO:
    """Return a checkpoint of which some records are replaced or, for None, left out."""
    found = records_of() | {f"archive/{name.replace('__', '/')}": data for name, data in records.items()}
    return archive([(name, data) for name, data in found.items() if data is not None])


# -- Archives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["archive/data.pkl", "archive/version", "archive/data/0", "archive/DATA.PKL"])
@pytest.mark.parametrize("first", [True, False])
def test_names_that_occur_twice_raise(name: str, first: bool) -> None:
    records = list(records_of().items())
    records.insert(0 if first else len(records), (name, b"\x80\x02K\x01."))
    with pytest.raises(RuntimeError, match=r"reading zip archive: the name archive/\S+ occurs twice"):
        torch.load(archive(records))


@pytest.mark.parametrize("other", ["other/x", "x", "archives/x", "other/constants.pkl"])
def test_records_outside_the_folder_raise(other: str) -> None:
    records = list(records_of().items())
    with pytest.raises(RuntimeError, match=f"file in archive is not in a subdirectory archive/: {other}"):
        torch.load(archive([*records, (other, b"1")]))
    with pytest.raises(RuntimeError, match=r"not in a subdirectory|Expected hasRecord"):
        torch.load(archive([(other, b"1"), *records]))


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (b"999", "version 999, but the maximum supported version for reading is 10"), (b"11", "version 11, but the maximum"),
        (b"x", "Couldn't parse the version b'x' as Long Long"), (b"", "Couldn't parse the version b'' as Long Long"),
        (b"0", "version 0, but the minimum supported version for reading is 1"), (b"-1", "version -1, but the minimum"),
        (b"0x3", "version 0, but the minimum"), (b"\x003", "Couldn't parse"), (b"9" * 5000, "Couldn't parse"),
    ],
)  # fmt: skip
def test_versions_that_pytorch_refuses(version: bytes, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch.load(changed(version=version))


@pytest.mark.parametrize("version", [b"1", b"3", b"10", b" 3", b"+3", b"03", b"3x", b"3\x00", b"3\n\n"])
def test_versions_that_pytorch_reads(version: bytes) -> None:
    assert torch.load(changed(version=version))["w"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("byteorder", b"\xff"), ("byteorder", b"x"), (".storage_alignment", b"x"), (".storage_alignment", b""),
        (".storage_alignment", b"9" * 5000), (".data/serialization_id", b"\xff\xfe"),
    ],
)  # fmt: skip
def test_damaged_records_about_the_archive_raise(name: str, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Unknown endianness|invalid literal for int|not text in UTF-8"):
        torch.load(changed(**{name: data}))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_methods_other_than_deflate_raise(method: int) -> None:
    with pytest.raises(RuntimeError, match="unsupported method"):
        torch.load(archive(list(records_of().items()), method))


def test_deflated_records_are_read() -> None:
    assert torch.load(archive(list(records_of().items()), zipfile.ZIP_DEFLATED))["w"].tolist() == [0, 1, 2, 3]


def entry_of(data: bytes, name: str) -> int:
    """Return the position of the entry of the record ``name`` in the central directory."""
    at = data.find(b"PK\x01\x02")
    while data[at + 46 : at + 46 + len(name)] != name.encode():
        at = data.index(b"PK\x01\x02", at + 1)
    return at


@pytest.mark.parametrize("name", ["archive/data.pkl", "archive/data/0"])
@pytest.mark.parametrize(
    ("offset", "form", "value", "text"),
    [
        (8, "<H", 1, "unsupported encryption"), (8, "<H", 0x40, "unsupported encryption"),
        (8, "<H", 0x2000, "unsupported encryption"), (8, "<H", 0x20, "unsupported feature"),
        (10, "<H", 14, "unsupported method"), (10, "<H", 99, "unsupported method"), (10, "<H", 8, "is corrupted"),
        (16, "<I", 1, "Bad CRC-32"), (20, "<I", 2**31, "is corrupted"), (20, "<I", 2**32 - 1, "is corrupted"),
        (24, "<I", 2**31, "is corrupted"), (24, "<I", 2**32 - 1, "is corrupted"), (34, "<H", 5, "multidisk"),
        (38, "<I", 0x10, "is corrupted"), (42, "<I", 5, "is corrupted"), (42, "<I", 2**31, "is corrupted"),
    ],
)  # fmt: skip
def test_wrong_entries_of_the_central_directory_raise(name: str, offset: int, form: str, value: int, text: str) -> None:
    data = bytearray(archive(list(records_of().items())).getvalue())
    struct.pack_into(form, data, entry_of(data, name) + offset, value)
    with pytest.raises(RuntimeError, match=text):
        torch.load(io.BytesIO(data))


@pytest.mark.parametrize(
    ("offset", "form", "value"),
    [
        (4, "<H", 1), (6, "<H", 1), (8, "<H", 1), (10, "<H", 1), (8, "<I", 0x10001), (8, "<I", 0x640064), (12, "<I", 0),
        (16, "<I", 0), (16, "<I", 2**32 - 1),
    ],
)  # fmt: skip
def test_wrong_ends_of_the_central_directory_raise(offset: int, form: str, value: int) -> None:
    data = bytearray(archive(list(records_of().items())).getvalue())
    struct.pack_into(form, data, data.rindex(b"PK\x05\x06") + offset, value)
    with pytest.raises(RuntimeError, match=r"corrupted|Expected hasRecord"):
        torch.load(io.BytesIO(data))


def test_archives_begin_at_the_position_of_the_file() -> None:
    data = saved(VALUE).getvalue()
    file = io.BytesIO(b"abc" + data)
    file.seek(3)
    assert torch.load(file)["w"].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="is corrupted"):
        torch.load(io.BytesIO(b"PK\x03\x04xx" + data))
    with pytest.raises(RuntimeError, match="does not contain any files"):
        torch.load(io.BytesIO(b"PK\x03\x04" + archive([]).getvalue()))


def test_sizes_of_64_bits_are_read() -> None:
    """The entry of a record has its sizes and its position in the extra field, as in archives of more than 4 GB."""
    data = archive(list(records_of().items())).getvalue()
    at = entry_of(data, "archive/data/0")
    fields = list(struct.unpack_from("<3I5H2I", data, at + 16))
    packed, size, offset = fields[1], fields[2], fields[9]
    entry = bytearray(data[at : at + 46 + len("archive/data/0")])
    struct.pack_into("<2I", entry, 20, 2**32 - 1, 2**32 - 1)
    struct.pack_into("<H", entry, 30, 28)
    struct.pack_into("<I", entry, 42, 2**32 - 1)
    entry += struct.pack("<2H3Q", 1, 24, size, packed, offset)
    end = data.rindex(b"PK\x05\x06")
    tail = bytearray(data[end:])
    (length,) = struct.unpack_from("<I", tail, 12)
    struct.pack_into("<I", tail, 12, length + 28)
    large = data[:at] + bytes(entry) + data[at + len(entry) - 28 : end] + bytes(tail)
    assert torch.load(io.BytesIO(large))["w"].tolist() == [0, 1, 2, 3]
    wrong = large.replace(struct.pack("<3Q", size, packed, offset), struct.pack("<3Q", size, packed, 2**63))
    with pytest.raises(RuntimeError, match="is corrupted"):
        torch.load(io.BytesIO(wrong))


def test_overlapping_records_raise() -> None:
    """Each record would contain the following ones, so that n records of a file have n² / 2 times its size."""
    data = bytearray(archive(list(records_of().items())).getvalue())
    at = entry_of(data, "archive/data.pkl")
    struct.pack_into("<2I", data, at + 20, 900, 900)
    with pytest.raises(RuntimeError, match=r"the record archive/data\.pkl overlaps the next one"):
        torch.load(io.BytesIO(data))


def test_compressed_pickles_that_expand_too_far_raise() -> None:
    records = records_of() | {"archive/data.pkl": b"\x80\x02" + b"N0" * 20_000_000 + b"N."}
    file = archive(list(records.items()), zipfile.ZIP_DEFLATED, "archive/data.pkl")
    with pytest.raises(RuntimeError, match=r"reading file data.pkl: \d+ bytes expand to 40000004"):
        torch.load(file)


def test_mapped_records_outside_the_file_and_without_alignment(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(archive(list(records_of().items())).getvalue())
    found = torch.load(path, mmap=True)["w"]
    assert found.tolist() == [0, 1, 2, 3] and found.data_ptr() % 4 == 0
    data = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from("<I", data, entry_of(data, "archive/data/0") + 42)
    struct.pack_into("<H", data, offset + 28, 60_000)
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="reading file data/0: invalid header"):
        torch.load(path, mmap=True)


# -- Files -----------------------------------------------------------------------------------------------------------


class Unseekable(io.BytesIO):
    def seek(self, *arguments: Any) -> int:
        raise io.UnsupportedOperation("seek")


class Short(io.BytesIO):
    """File that returns a few bytes for each call, as a raw file may."""

    def readinto(self, target: Any) -> int:
        return super().readinto(memoryview(target)[:3])


def test_streams_that_are_not_seekable_raise() -> None:
    with pytest.raises(io.UnsupportedOperation, match=r"seek\. You can only torch\.load from a file that is seekable"):
        torch.load(Unseekable(saved(VALUE).getvalue()))


def test_files_that_return_fewer_bytes_are_read() -> None:
    assert torch.load(Short(saved(VALUE).getvalue()))["w"].tolist() == [0, 1, 2, 3]


def test_directories_devices_and_files_of_text_raise(tmp_path: Path) -> None:
    for load in (torch.load, torch.serialization.load_safetensors):
        with pytest.raises(OSError, match=r"directory|denied"):
            load(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises((EOFError, UnpicklingError)):
            torch.load("/dev/zero")  # has no end
        with pytest.raises(ValueError, match="too short"):
            torch.serialization.load_safetensors("/dev/zero")
    with pytest.raises(TypeError, match="binary mode"):
        torch.load(io.StringIO("abc"))


def test_only_the_name_cpu_means_the_cpu() -> None:
    for place in ("cpu:0", "cpux", torch.device("cpu:0")):
        with pytest.raises(RuntimeError, match=r"don't know how to restore data location .*\(tagged with cpu"):
            torch.load(saved(VALUE), map_location=place)


@pytest.mark.parametrize(
    "program",
    [b"c_codecs\nencode\n)\x81.", b"(.", b"K\x01(\x85.", b"K\x01\x86.", b"K\x01K\x02\x87.", b"K\x01(K\x02\x86.", b"](K\x01a.", b"}(K\x01K\x02s.", b"](]e1.", b"t.", b"c_codecs\nencode\n)\x81."],
)  # fmt: skip
def test_instructions_can_not_reach_below_a_mark(program: bytes) -> None:
    with pytest.raises(UnpicklingError, match="Weights only load failed"):
        torch.load(checkpoint_of(b"\x80\x02" + program))


# -- Pickles: time and memory ----------------------------------------------------------------------------------------

LIST = b"](" + b"K\x01" * 20_000 + b"eq\x000"
TUPLE = b"(" + b"K\x01" * 20_000 + b"tq\x000"


def many_ints_of_one_hash(prefix: bytes, suffix: bytes) -> bytes:
    numbers = (k * (2**61 - 1) for k in range(1, 20_000))
    return b"".join(prefix + b"\x8a\x0a" + number.to_bytes(10, "little") + suffix for number in numbers)


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\nset\nq\x010" + LIST + b"](" + b"h\x01h\x00\x85R" * 5000 + b"e.",
        b"ccollections\nCounter\nq\x010" + LIST + b"](" + b"h\x01h\x00\x85R" * 5000 + b"e.",
        b"ctorch\nSize\nq\x010" + TUPLE + b"](" + b"h\x01h\x00\x85R" * 5000 + b"e.",
        b"c_codecs\nencode\nq\x010X\xa0\x86\x01\x00" + b"a" * 100_000 + b"q\x00X\x06\x00\x00\x00latin1\x86q\x020]("
        + b"h\x01h\x02R" * 5000 + b"e.",
        b"}(" + b"".join(b"X\x05\x00\x00\x00%05dN" % k for k in range(20_000)) + b"uq\x000ccollections\nOrderedDict\nq\x010]("
        + b"h\x01)Rh\x00b" * 5000 + b"e.",
        b"(" + b"K\x01" * 9999 + b"tq\x000}(" + b"h\x00N" * 50_000 + b"u.",
    ],
)  # fmt: skip
def test_copies_of_shared_objects_are_bounded(program: bytes) -> None:
    begin = time.perf_counter()
    with pytest.raises(UnpicklingError, match="copies its objects too often"):
        torch.load(checkpoint_of(b"\x80\x02" + program))
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    "program",
    [
        b"}(" + many_ints_of_one_hash(b"", b"N") + b"u.",
        b"}(" + many_ints_of_one_hash(b"", b"\x85N") + b"u.",
        b"}" + many_ints_of_one_hash(b"", b"Ns") + b".",
        b"(" + many_ints_of_one_hash(b"", b"N") + b"d.",
        b"(" + many_ints_of_one_hash(b"", b"") + b"\x91.",
        b"\x8f(" + many_ints_of_one_hash(b"", b"") + b"\x90.",
        b"cbuiltins\nset\n](" + many_ints_of_one_hash(b"", b"") + b"e\x85R.",
        b"ccollections\nOrderedDict\n](" + many_ints_of_one_hash(b"", b"N\x86") + b"e\x85R.",
    ],
)
def test_keys_with_equal_hashes_are_bounded(program: bytes) -> None:
    begin = time.perf_counter()
    with pytest.raises(UnpicklingError, match="Too many keys with the same hash"):
        torch.load(checkpoint_of(b"\x80\x04" + program))
    assert time.perf_counter() - begin < 5


def test_equal_keys_of_many_dicts_are_allowed() -> None:
    value = [{(1, 2): 0, 2**61 - 1: 1, 0.5: 2} for _ in range(3000)]
    assert torch.load(saved(value)) == value


@pytest.mark.parametrize("function", [b"cbuiltins\nset\n", b"ctorch\nSize\n", b"ccollections\nCounter\n"])
def test_expanded_tensors_are_no_items(function: bytes) -> None:
    """A tensor of 2**33 elements and 4 bytes took 46 seconds and 5 GB."""
    tensor = tensor_pickle(size=(2**33,), stride=(0,))[2:-1]
    with pytest.raises(UnpicklingError, match=r"Can not make a \w+ of a Tensor"):
        torch.load(checkpoint_of(b"\x80\x02" + function + tensor + b"\x85R."))


def negated(count: int, size: int) -> io.BytesIO:
    """Return a checkpoint of ``count`` tensors of ``size`` elements, all marked as negated, with the same storage."""
    number = b"J" + struct.pack("<i", size)
    program = (
        b"\x80\x02](ctorch._utils\n_rebuild_tensor_v2\nq\x04((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number + b"tQK\x00" + number + b"\x85K\x01\x85\x89}}X\x03\x00\x00\x00neg\x88stq\x05R"
    )  # fmt: skip
    return checkpoint_of(program + b"h\x04h\x05R" * (count - 1) + b"e.", bytes(4 * size))


def test_memory_of_negated_tensors_is_bounded() -> None:
    assert len(torch.load(negated(4, 10))) == 4
    file = negated(2000, 2**14)
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match="too many tensors with the same storage are marked"):
            torch.load(file)
        assert tracemalloc.get_traced_memory()[1] < 2**22  # 2**27 without the bound
    finally:
        tracemalloc.stop()


PLACE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    b"K\x00K\x02\x85K\x01\x85"
)
V2 = b"ctorch._utils\n_rebuild_tensor_v2\n"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (V2 + b"(" + PLACE + b"\x89}](K\x01etR.", "expected dict, got list"),
        (V2 + b"(" + PLACE + b"N}tR.", "requires_grad must be a bool"),
        (
            b"ctorch._tensor\n_rebuild_from_type_v2\n(" + V2 + b"ctorch\nSize\n(" + PLACE + b"\x89}t}tR.",
            "Size does not inherit from Tensor",
        ),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(" + V2 + b"K\x01(" + PLACE + b"\x89}t}tR.", "cls must be a type"),
    ],
)
def test_arguments_that_pytorch_refuses(program: bytes, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch.load(checkpoint_of(b"\x80\x02" + program))


@pytest.mark.parametrize("identity", ["short", "long", "tensor"])
def test_persistent_ids_that_pytorch_refuses(identity: str) -> None:
    storage = b"X\x07\x00\x00\x00storage" if identity != "tensor" else tensor_pickle()[2:-1]
    rest = b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + (b"" if identity == "short" else b"K\x02")
    program = b"(" + storage + rest + (b"N" if identity == "long" else b"") + b"tQ."
    with pytest.raises(UnpicklingError, match="Unknown persistent id"):
        torch.load(checkpoint_of(b"\x80\x02" + program))


# -- The legacy format -----------------------------------------------------------------------------------------------


def legacy_file(pickled: bytes, keys: list[str], data: bytes = b"") -> io.BytesIO:
    head = [torch.serialization.legacy.MAGIC, 1001, {"little_endian": True}]
    return io.BytesIO(b"".join(pickle.dumps(each, 2) for each in head) + pickled + pickle.dumps(keys, 2) + data)


def legacy_storage(key: bytes, count: int, view: bytes = b"N") -> bytes:
    number = b"J" + struct.pack("<i", count)
    return (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
        + key
        + b"X\x03\x00\x00\x00cpu"
        + number
        + view
        + b"tQ"
    )


def test_legacy_storages_together_are_not_larger_than_the_file() -> None:
    storages = b"".join(legacy_storage(bytes([65 + index]), 400) for index in range(20))
    with pytest.raises(RuntimeError, match="unexpected EOF"):
        torch.load(legacy_file(b"\x80\x02](" + storages + b"e.", [chr(65 + index) for index in range(20)], bytes(2000)))


@pytest.mark.parametrize(
    "view",
    [b"(NJ\xff\xff\xff\xffK\x01t", b"(NK\x01K\x02t", b"(NG\x00\x00\x00\x00\x00\x00\x00\x00K\x01t", b"(NK\x00t", b"K\x01", b"(NK\x00J\xff\xff\xff\xfft"],
)  # fmt: skip
def test_legacy_views_outside_their_storage_raise(view: bytes) -> None:
    program = b"\x80\x02" + legacy_storage(b"0", 2, view) + b"."
    with pytest.raises(UnpicklingError, match="Unknown persistent id"):
        torch.load(legacy_file(program, ["0"], struct.pack("<q2f", 2, 1, 2)))


def test_legacy_checkpoints_of_conjugated_tensors() -> None:
    """The storages follow the pickle, so that the conjugated values are computed after it."""
    found = torch.load(GOLDEN / "conjugated_legacy.pt")
    assert found["x"].tolist() == [1 + 2j, 3 - 4j, 5 + 6j] and found["c"].tolist() == [1 - 2j, 3 + 4j, 5 - 6j]
    assert found["l"][0].tolist() == [3 + 4j, 5 - 6j]


def test_tar_files_raise() -> None:
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as written:
        written.addfile(tarfile.TarInfo("storages"))
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
        torch.load(file)


# -- safetensors -----------------------------------------------------------------------------------------------------


def tensors_in(header: Any, size: int = 4) -> dict[str, Any]:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(range(size))
    return safetensors.read(io.BytesIO(data), len(data))


def entry(begin: int = 0, end: int = 4, kind: Any = "U8", shape: Any = None) -> dict[str, Any]:
    return {"dtype": kind, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ({"a": entry(), "b": entry(2, 6)}, 6), ({"a": entry(), "b": entry()}, 4), ({"a": entry(), "b": entry(5, 9)}, 9),
        ({"a": entry()}, 5), ({"a": entry(4, 8)}, 8), ({}, 1), ({"a": entry(), "z": entry(2, 2)}, 4),
        (b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', 8),
        (b'{"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4),
        (b'{"__metadata__":{},"__metadata__":{},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4),
        ({"__metadata__": {"a": 1}, "a": entry()}, 4), ({"__metadata__": [], "a": entry()}, 4),
        ({"__metadata__": {"a": None}, "a": entry()}, 4), ({"__metadata__": entry()}, 4),
        (b"\xef\xbb\xbf" + json.dumps({"a": entry()}).encode(), 4), (json.dumps({"a": entry()}).encode("utf-16"), 4),
        ({"\ud800": entry()}, 4), (b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":NaN}}', 4),
        (b'{"a":{"dtype":"U8","shape":[-0,4],"data_offsets":[0,0]}}', 0), ({"a": entry(0, 4, shape=[4.0])}, 4),
        ({"a": entry(0, 4, shape=[True] * 4)}, 4), ({"a": entry(0, 0, shape=[2**32, 2**32, 0])}, 0),
        ({"a": entry(0, 0, shape=[0, 2**63])}, 0), ({"a": entry(0, 1, shape=[1] * 70)}, 1), ({"a": entry(4, 0, shape=[4])}, 4),
        ({"a": entry(0, 4, shape=[2**32, 2**32])}, 4), (b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}\0', 4),
        (b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 0), (b'{"a":{"dtype":"U8","shape":[' + b"9" * 5000 + b"]}}", 0),
        (b"[]", 0), (b"null", 0), (b"", 0),
    ],
)  # fmt: skip
def test_headers_that_safetensors_refuses(header: Any, size: int) -> None:
    with pytest.raises(ValueError, match="Error while deserializing header") as caught:
        tensors_in(header, size)
    assert len(str(caught.value)) < 500


def test_headers_that_safetensors_reads() -> None:
    found = tensors_in({"b": entry(4, 8), "a": entry(0, 4), "z": entry(4, 4), "__metadata__": None}, 8)
    assert found["a"].tolist() == [0, 1, 2, 3] and found["b"].tolist() == [4, 5, 6, 7] and found["z"].numel() == 0
    found = tensors_in({"a": entry(0, 1), "b": entry(1, 5, "F32", [1])}, 5)
    assert found["b"].data_ptr() % 4 == 0  # the data of a tensor need not be aligned in the file
    assert tensors_in({"a": entry(0, 0, shape=[0, 2**40])}, 0)["a"].shape == (0, 2**40)


def test_memory_of_overlapping_tensors_is_bounded() -> None:
    """A file of 1 MB took 3 GB."""
    header = {str(index): entry(0, 900_000) for index in range(1000)}
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="invalid offsets"):
            text = json.dumps(header).encode()
            data = struct.pack("<Q", len(text)) + text + bytes(900_000)
            safetensors.read(io.BytesIO(data), len(data))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_memory_of_a_valid_file_is_its_size(tmp_path: Path) -> None:
    torch.serialization.save_safetensors({"a": torch.zeros(2**20), "b": torch.zeros(2**20)}, tmp_path / "x")
    tracemalloc.start()
    try:
        found = torch.serialization.load_safetensors(tmp_path / "x")
        assert tracemalloc.get_traced_memory()[1] < 1.1 * 2**23 and len(found) == 2
    finally:
        tracemalloc.stop()
