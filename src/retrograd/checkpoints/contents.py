"""Contents of a checkpoint file: names, shapes, dtypes and sizes, read without running anything in the file.

The formats are PyTorch's two, safetensors and NumPy's ``.npz``. A pickle is read by the restricted unpickler
(``unpickler.py``). Objects of classes that a checkpoint may not create become instances of :class:`Unknown`, so that the
tensors beside them can still be listed. The command ``retrograd checkpoint`` prints the list.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy

from ..core.tensor import Tensor, strided, wrap
from ..inspection.explain import format_bytes
from . import legacy, safetensors, zip_format
from .files import read_into
from .formatting import shortened, shortened_text
from .storages import Storage, allowed_names, rebuild_from_type
from .unpickler import BROKEN, Interpreter, Refused, Source

#: Errors that reading or converting a file can cause.
ERRORS = (
    OSError, RuntimeError, ValueError, TypeError, NotImplementedError, zipfile.BadZipFile, zlib.error, Refused, *BROKEN,
)  # fmt: skip
#: Maximum depth of nested containers whose items are listed, and maximum length of a name.
DEPTH, LENGTH = 40, 400
#: Number of arrays up to which each is compared with each other, and maximum number of runs of bytes that are compared.
PAIRS, RUNS = 16, 1 << 20
CONTAINERS = (dict, list, tuple, set, frozenset)


class Unknown:
    """Stand-in for an object of a class that is not loaded, or for the result of a function that is not called.

    ``name`` is the name of the class or function, and ``parts`` are the arguments, the state and the items that the
    pickle gives it.
    """

    name = ""

    def __init__(self, *arguments: Any) -> None:
        self.parts: dict[Any, Any] = {"arguments": arguments} if arguments else {}

    def __setstate__(self, state: Any) -> None:
        self.parts.update(state if isinstance(state, dict) else {"state": state})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.parts[key] = value

    def append(self, item: Any) -> None:
        self.parts.setdefault("items", []).append(item)

    def extend(self, items: Iterable[Any]) -> None:
        self.parts.setdefault("items", []).extend(items)

    update = extend


class Reading:
    """Reader of the pickles in one file, for ``legacy.read`` and ``zip_format.read``.

    ``unknown`` has the classes and functions that the file names and that are not loaded, by name.
    """

    torchscript_error = "it is an archive of TorchScript, which holds compiled programs"

    def __init__(self) -> None:
        self.known = allowed_names() | {"torch._tensor._rebuild_from_type_v2": rebuild_as_tensor}
        self.unknown: dict[str, type[Unknown]] = {}

    def find(self, module: str, name: str) -> Any:
        """Return the object with the name, or a new subclass of :class:`Unknown`."""
        full = f"{module}.{name}"
        if full in self.known:
            return self.known[full]
        if full not in self.unknown:
            self.unknown[full] = type("Unknown", (Unknown,), {"name": shortened_text(full)})
        return self.unknown[full]

    def run(self, source: Source, persistent: Any) -> Any:
        """Return the object of the pickle that begins at the current position of ``source``."""
        try:
            return Interpreter(source, self.find, persistent, (Unknown,)).run()
        except Refused:
            raise
        except BROKEN as error:
            raise Refused(f"its pickle is damaged ({type(error).__name__}: {shortened_text(str(error))})") from error


def rebuild_as_tensor(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """Return the tensor of :func:`rebuild_from_type`, as a plain tensor if its class ``kind`` is not loaded."""
    unloaded = isinstance(kind, type) and issubclass(kind, Unknown)
    return rebuild_from_type(function, Tensor if unloaded else kind, arguments, {} if unloaded else state)


class Checkpoint(NamedTuple):
    """Contents of a file.

    ``format`` is the name of the format. ``value`` is the object in the file: for safetensors and ``.npz``, a dict of
    tensors or NumPy arrays. ``metadata`` are the strings of a safetensors file. ``unknown`` are the names of the
    classes and functions that are not loaded.
    """

    format: str
    value: Any
    metadata: dict[str, str]
    unknown: list[str]


def read(path: str, data: bool) -> Checkpoint:
    """Return the contents of the file ``path``.

    Storages are mapped into memory where the format permits it. Unless ``data`` is true, the elements of ``.npz`` files
    are not read: the arrays have the right shapes and dtypes. Raises one of :data:`ERRORS` if the file is damaged.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        begin = file.read(9)
        file.seek(0)
        if begin[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                if all(name.endswith(".npy") for name in names):
                    return Checkpoint("NumPy's .npz", _read_npz(archive, data), {}, [])
            file.seek(0)
            reading = Reading()
            value = zip_format.read(file, _stay, reading, mapped=True)
            return Checkpoint("PyTorch's zip format", value, {}, sorted(reading.unknown))
        if (begin[8:9] == b"{" and struct.unpack("<Q", begin[:8])[0] <= size - 8) or path.endswith(".safetensors"):
            tensors, metadata = _read_safetensors(file, size)
            return Checkpoint("safetensors", tensors, metadata, [])
        if begin[:1] == b"\x80":
            reading = Reading()
            value = legacy.read(file, _stay, reading)
            return Checkpoint("PyTorch's legacy format", value, {}, sorted(reading.unknown))
    raise ValueError("it is empty" if not size else "it is no checkpoint of PyTorch, safetensors or NumPy's .npz")


def _stay(array: Any, place: str) -> Any:
    """Return ``array``: storages of all devices are read to the CPU."""
    return array


def _read_safetensors(file: BinaryIO, size: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    places, metadata = safetensors.read_header(file, size)
    start = file.tell()
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    tensors = {}
    for name, (kind, shape, count) in places.items():
        if count:
            array = numpy.frombuffer(memory, kind.numpy, count // kind.itemsize, start).reshape(shape)
        else:
            array = numpy.empty(shape, kind.numpy)
        tensors[name] = wrap(array)
        start += count
    return tensors, metadata


def _read_npz(archive: zipfile.ZipFile, data: bool) -> dict[str, Any]:
    """Return the arrays of ``archive`` by name; without ``data``, arrays of one repeated element."""
    found: dict[str, Any] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in found:
            raise ValueError(f"the name {shortened(name)} occurs twice")
        with archive.open(info) as file:
            version = numpy.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"the array {shortened(name)} has version {version} of NumPy's format")
            shape, fortran, dtype = _HEADERS[version](file)
            if dtype.hasobject:
                raise ValueError(f"the array {shortened(name)} holds Python objects, which only running code can load")
            count = math.prod(shape)
            if any(each < 0 for each in shape) or file.tell() + count * dtype.itemsize != info.file_size:
                raise ValueError(f"the array {shortened(name)} of shape {shortened(shape)} does not fill its record")
            if data:
                line = numpy.empty(count * dtype.itemsize, numpy.uint8)
                if read_into(file, line) < line.size:
                    raise ValueError(f"the file ends before the data of the array {shortened(name)}")
                found[name] = line.view(dtype).reshape(shape, order="F" if fortran else "C")
            else:
                found[name] = numpy.broadcast_to(numpy.zeros((), dtype), shape)
    return found


#: Readers of the headers of NumPy's format by version. Version 3 is only for names of fields.
_HEADERS = {(1, 0): numpy.lib.format.read_array_header_1_0, (2, 0): numpy.lib.format.read_array_header_2_0}


# -- Listing -----------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """Item of a checkpoint: ``name`` is its path in nested containers, and ``value`` a tensor, an array or another value.

    ``note`` is a text about it, such as ``"the same object as a"``.
    """

    name: str
    value: Any
    note: str = ""

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.value, (Tensor, numpy.ndarray))


def entries(value: Any) -> Iterator[Entry]:
    """Yield the items of the nested containers ``value``; each container is listed once.

    A list, tuple or set without tensors and containers is one item.
    """
    seen: dict[int, str] = {}
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        name, each, depth = waiting.pop()
        items = each.parts if isinstance(each, Unknown) else each
        if isinstance(each, Unknown):
            yield Entry(name, each, f"not loaded: {each.name}")
        elif not isinstance(each, CONTAINERS) or not each or (not isinstance(each, dict) and _is_flat(each)):
            yield Entry(name, each)
            continue
        if id(each) in seen:
            yield Entry(name, each, f"the same object as {seen[id(each)] or 'the whole'}")
        elif depth == DEPTH:
            yield Entry(name, each, "nested too deeply to be listed")
        else:
            seen[id(each)] = name
            pairs = [*(items.items() if isinstance(items, dict) else enumerate(items))]
            if isinstance(each, Unknown):  # a module has a dozen empty dicts of hooks
                pairs = [(key, item) for key, item in pairs if not (item is None or _is_empty(item))]
            below = [(_joined(name, key), item, depth + 1) for key, item in pairs]
            waiting += below[::-1]


def _is_empty(value: Any) -> bool:
    return isinstance(value, CONTAINERS) and not value


def _is_flat(items: Iterable[Any]) -> bool:
    return not any(isinstance(each, (Tensor, Storage, Unknown, *CONTAINERS)) for each in items)


def _joined(name: str, key: Any) -> str:
    own = key if isinstance(key, str) else str(key) if type(key) is int else shortened(key)
    return shortened_text(f"{name}.{own}" if name else own, LENGTH)


def array_of(value: Any) -> Any:
    """Return the NumPy array of ``value``, a dense tensor; None for another value or layout."""
    dense = isinstance(value, Tensor) and value.layout is strided and not value.is_meta and not value.is_nested
    return value._array if dense else None


def shared_positions(arrays: Sequence[Any]) -> dict[int, int]:
    """Return, for each array that has elements in common with an array before it, the position of the first of those.

    The keys are positions too. An array that repeats its own elements, as an expanded tensor does, and has none in
    common with an array before it, has its own position. Items that are None are ignored.
    """
    found: dict[int, int] = {}
    bounds = []
    for position, array in enumerate(arrays):
        if array is not None and array.size:
            low, high = numpy.lib.array_utils.byte_bounds(array)
            if array.nbytes > high - low or _repeats(array):
                found[position] = position
            bounds.append((low, high, position))
    bounds.sort()
    group: list[int] = []
    end = 0
    for low, high, position in bounds:
        if low >= end:
            found |= _shared_in_group(arrays, sorted(group))
            group = []
        group.append(position)
        end = max(end, high)
    found |= _shared_in_group(arrays, sorted(group))
    return dict(sorted(found.items()))


def _repeats(array: Any) -> bool:
    """Whether ``array`` is expanded, also if there are gaps between its elements."""
    return any(not step and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def _shared_in_group(arrays: Sequence[Any], group: list[int]) -> dict[int, int]:
    """Return the part of :func:`shared_positions` for the arrays at the positions ``group``, whose bounds overlap.

    In a small group, every array is compared with every other. In others, the runs of bytes of the arrays are sorted.
    """
    found = {}
    if len(group) <= PAIRS:
        for number, position in enumerate(group):
            for other in group[:number]:
                if _share_elements(arrays[position], arrays[other]):
                    found[position] = other
                    break
        return found
    parts = [_runs(arrays[position]) for position in group]
    if sum(math.prod(count for _, count in outer) for _, outer in parts) > RUNS:
        parts = [(high - low, []) for low, high in (numpy.lib.array_utils.byte_bounds(arrays[each]) for each in group)]
    starts = []
    for position, (_, outer) in zip(group, parts, strict=True):
        start = numpy.array([numpy.lib.array_utils.byte_bounds(arrays[position])[0]])
        for step, count in outer:
            start = numpy.add.outer(start, numpy.arange(count) * step).ravel()
        starts.append(start)
    numbers = numpy.repeat(numpy.arange(len(group)), [len(start) for start in starts])
    begins = numpy.concatenate(starts)
    first = _first_owners(begins, begins + numpy.array([length for length, _ in parts])[numbers], numbers)
    least = numpy.arange(len(group))
    numpy.minimum.at(least, numbers, first)
    return {group[number]: group[other] for number, other in enumerate(least.tolist()) if other < number}


def _runs(array: Any) -> tuple[int, list[tuple[int, int]]]:
    """Return the runs of bytes without a gap in ``array``: their length, and pairs (step, count) of their starts."""
    length = int(array.itemsize)
    outer: list[tuple[int, int]] = []
    for step, count in sorted((abs(step), count) for step, count in zip(array.strides, array.shape, strict=True)):
        if step and count > 1:
            if not outer and step <= length:
                length += step * (count - 1)
            else:
                outer.append((step, count))
    return length, outer


def _first_owners(begins: Any, ends: Any, owners: Any) -> Any:
    """Return, for each interval, the smallest owner of an interval that overlaps it, which may be itself.

    The intervals are arrays of the beginnings, the ends and the owners, numbers from 0. For n intervals, the function
    takes about n log n steps. The ends divide the line into cells. An interval of c cells is the union of two windows of
    2**k cells, where 2**k is the greatest power of two up to c. ``least`` has the smallest owner of each window of one
    size: first from the largest windows down to single cells, which gives the owner of each cell, and then back.
    """
    edges, places = numpy.unique(numpy.concatenate((begins, ends)), return_inverse=True)
    begin, end = places[: len(begins)], places[len(begins) :]
    level = numpy.frexp(end - begin)[1] - 1
    levels = [(1 << k, numpy.flatnonzero(level == k)) for k in range(int(level.max()) + 1)]
    least = numpy.full(len(edges), len(owners))
    for size, which in levels[::-1]:
        if size < levels[-1][0]:
            least[size:] = numpy.minimum(least[size:], least[:-size])
        numpy.minimum.at(least, begin[which], owners[which])
        numpy.minimum.at(least, end[which] - size, owners[which])
    first = numpy.empty_like(owners)
    for size, which in levels:
        first[which] = numpy.minimum(least[begin[which]], least[end[which] - size])
        least = numpy.minimum(least[:-size], least[size:])
    return first


def _share_elements(a: Any, b: Any) -> bool:
    """Whether the arrays ``a`` and ``b``, whose bounds overlap, have elements in common, or may have."""
    try:
        return bool(numpy.shares_memory(a, b, max_work=1000))  # type: ignore[arg-type] # any number
    except numpy.exceptions.TooHardError:
        return True


def listing(path: str, checkpoint: Checkpoint, part: str | None = None) -> Iterator[str]:
    """Yield the lines that ``retrograd checkpoint`` prints for ``checkpoint``, the contents of the file ``path``."""
    value = checkpoint.value if part is None else part_of(checkpoint.value, part)
    found = list(entries(value))
    tensors = [each for each in found if each.is_tensor]
    shared = shared_positions([array_of(each.value) for each in found])  # names can be equal
    yield printable(f"{path}: {checkpoint.format}, {format_bytes(os.path.getsize(path))}")
    rows = [_row(each, found[shared[position]] if position in shared else None) for position, each in enumerate(found)]
    widths = [
        min(max((len(row[column]) for row in rows), default=0), limit) for column, limit in ((0, 60), (1, 30), (2, 12))
    ]
    for name, shape, kind, rest in rows:
        yield f"{name:{widths[0]}}  {shape:{widths[1]}}  {kind:{widths[2]}}  {rest}".rstrip()
    counted = [
        each for position, each in enumerate(found) if each.is_tensor and shared.get(position, position) == position
    ]
    elements = sum(_elements(each.value) for each in counted)
    size = format_bytes(sum(_elements(each.value) * int(each.value.itemsize) for each in counted if _bytes(each.value)))
    once = (
        f" ({len(tensors) - len(counted)} share memory, which is counted once)" if len(counted) < len(tensors) else ""
    )
    total = f"{_count(len(tensors), 'tensor')}{once}, {_count(elements, 'element')}, {size}"
    others = len(found) - len(tensors)
    yield total + (f"; {_count(others, 'other value')}" if others else "")
    for key, text in checkpoint.metadata.items():
        yield printable(f"metadata: {shortened_text(key)} = {shortened_text(text)}")
    if checkpoint.unknown:
        names = ", ".join(checkpoint.unknown[:10]) + ", ..." * (len(checkpoint.unknown) > 10)
        yield printable(f"classes and functions that the file names, not loaded: {names}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _elements(value: Any) -> int:
    """Return the number of elements of a tensor or array; those that it repeats in memory count once."""
    array = array_of(value)
    return math.prod(
        size for size, step in zip(value.shape, array.strides if array is not None else value.shape, strict=True)
        if step or not size
    )  # fmt: skip


def _bytes(value: Any) -> int:
    """Return the number of bytes of the elements of a tensor or array; 0 for those that are not stored one by one."""
    if isinstance(value, Tensor) and array_of(value) is None:
        return 0
    return math.prod(value.shape) * int(value.itemsize)


def _row(entry: Entry, owner: Entry | None) -> tuple[str, str, str, str]:
    """Return the columns of ``entry``: name, shape or type, dtype or nothing, size and notes.

    ``owner`` is the entry with which it shares memory, itself if it repeats its elements, or None.
    """
    value, note = entry.value, entry.note
    name = printable(entry.name) or "(the whole)"
    if not entry.is_tensor:
        kind = "" if isinstance(value, Unknown) else type(value).__name__
        return name, kind, "", printable(note or ("" if value is None else shortened(value)))
    if owner is not None:
        note = "repeats its elements" if owner is entry else f"shares memory with {owner.name}"
    layout = getattr(value, "layout", strided)
    if layout is not strided:
        note = layout.name
    elif isinstance(value, Tensor) and value.is_meta:
        note = "on the device meta, without elements"
    return (
        name,
        str(tuple(value.shape)),
        value.dtype.name if isinstance(value, Tensor) else str(value.dtype),
        "  ".join(filter(None, [format_bytes(_bytes(value)) if _bytes(value) else "", printable(note)])),
    )


def printable(text: str) -> str:
    """Return ``text`` with characters that a terminal would not show, or would obey, as escapes such as ``\\x1b``."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def part_of(value: Any, part: str) -> Any:
    """Return the item of the nested containers ``value`` with the path ``part``, such as ``"optimizer.state"``.

    Raises ValueError if there is none.
    """
    rest = part
    while rest:
        items = value.parts if isinstance(value, Unknown) else value
        pairs = (
            items.items() if isinstance(items, dict) else enumerate(items) if isinstance(items, (list, tuple)) else ()
        )
        names = {_joined("", key): item for key, item in pairs}
        key = next(
            (key for key in sorted(names, key=len, reverse=True) if rest == key or rest.startswith(f"{key}.")), None
        )
        if key is None:
            raise ValueError(f"it has no part {part!r}" + (f"; parts here: {some_names(names)}" if names else ""))
        value, rest = names[key], rest[len(key) + 1 :]
    return value


def some_names(names: Iterable[str]) -> str:
    """Return the first names as text for an error message."""
    found = list(names)
    return printable(shortened_text(", ".join(found[:8]), LENGTH)) + ", ..." * (len(found) > 8)
