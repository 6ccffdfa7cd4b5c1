"""``save_safetensors`` and ``load_safetensors``: files of named tensors, which contain no code and are safe to read.

Source: the documentation of the ``safetensors`` package. A file consists of the length of the header, the header in
JSON (dtype, shape and byte offsets of each tensor), and the data of the tensors.
"""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any, BinaryIO

import numpy

from ..core import devices, dtypes
from ..core.devices import as_device
from ..core.dtypes import dtype
from ..core.tensor import Tensor, wrap
from .files import atomic_write, read_into
from .formatting import shortened, shortened_text

_DTYPES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
    "F8_E4M3": dtypes.FLOAT8[0], "F8_E5M2": dtypes.FLOAT8[2], "F8_E8M0": dtypes.FLOAT8[4],
    "F8_E4M3FNUZ": dtypes.FLOAT8[1], "F8_E5M2FNUZ": dtypes.FLOAT8[3],
}  # fmt: skip
_NAMES = {kind: name for name, kind in _DTYPES.items()}
_MAX_HEADER = 100_000_000  # bytes of a header; the package's own bound
_MAX_DIMENSIONS = 64  # of a NumPy array


def to_bytes(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> list[Any]:
    """Return the content of a safetensors file with ``tensors`` and ``metadata``, as a list of consecutive buffers."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    parts: list[Any] = []
    position = 0
    for name, tensor in in_order(tensors):
        if name == "__metadata__":
            raise ValueError("safetensors keeps the name '__metadata__' for the metadata")
        if tensor.dtype not in _NAMES:
            raise ValueError(f"safetensors has no dtype {tensor.dtype} (tensor {name!r})")
        array = devices.to_device(tensor._array, devices.CPU) if tensor.device.type != "cpu" else tensor._array
        line = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
        end = position + line.size
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, end]}
        parts.append(line.data)
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)), text, *parts]


def in_order(tensors: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Return the items of ``tensors`` in the order of the file.

    The largest element sizes are first, so that each tensor is aligned to its element size.
    """
    return sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))


def read(file: BinaryIO, size: int) -> dict[str, Tensor]:
    """Return a dict of the tensors in ``file``, a safetensors file of ``size`` bytes, by name.

    The header is checked completely before the data are read. Raises ValueError if the file is not valid.
    """
    tensors = {}
    for name, (kind, shape, count) in read_places(file, size).items():
        line = numpy.empty(count, numpy.uint8)
        if read_into(file, line) < count:
            raise _invalid(f"the file ends before the data of tensor {shortened(name)}")
        tensors[name] = wrap(line.view(kind.numpy).reshape(shape))
    return tensors


def read_places(file: BinaryIO, size: int) -> dict[str, tuple[dtype, tuple[int, ...], int]]:
    """Return the dtype, the shape and the number of bytes of each tensor by name, as :func:`read_header` does."""
    return read_header(file, size)[0]


def read_header(file: BinaryIO, size: int) -> tuple[dict[str, tuple[dtype, tuple[int, ...], int]], dict[str, str]]:
    """Read the header of ``file``, a safetensors file of ``size`` bytes, and check it.

    Return the dtype, the shape and the number of bytes of each tensor by name, in the order of the data, which begin at
    the present position of ``file``; and the metadata, a dict of strings.
    """
    begin = file.read(8)
    length = struct.unpack("<Q", begin)[0] if len(begin) == 8 else None
    if length is None or length > min(size - 8, _MAX_HEADER):
        raise _invalid("the file is too short for its header")
    return _places(file.read(length), size - 8 - length)


def _invalid(what: str) -> ValueError:
    return ValueError(f"Error while deserializing header: {what}")


def _places(text: bytes, size: int) -> tuple[dict[str, tuple[dtype, tuple[int, ...], int]], dict[str, str]]:
    """Return the dtype, the shape and the number of bytes of each tensor by name, in the order of the data; and the metadata.

    ``text`` is the header, and ``size`` is the number of bytes after the header. Raises ValueError unless the tensors
    cover these bytes exactly, without overlaps and gaps.
    """
    try:
        header = json.loads(
            text.decode(),
            object_pairs_hook=_without_duplicates,
            parse_int=_natural_number,
            parse_float=_natural_number,
            parse_constant=_natural_number,
        )
        if type(header) is not dict:
            raise ValueError("the header must be an object")
        metadata = header.pop("__metadata__", None)
        if metadata is not None and not (
            type(metadata) is dict and all(type(each) is str for each in metadata.values())
        ):
            raise ValueError("__metadata__ must be an object of strings")
        entries = []
        for name, each in header.items():
            name.encode()  # a single surrogate raises
            begin, end = each["data_offsets"]
            entries.append((begin, end, name, _DTYPES[each["dtype"]], each["shape"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _invalid(f"{type(error).__name__}: {shortened_text(str(error))}") from error
    for begin, end, name, _, shape in entries:
        if type(shape) is not list or any(
            type(each) is not int or not 0 <= each < 2**63 for each in (*shape, begin, end)
        ):
            raise _invalid(f"invalid numbers for tensor {shortened(name)}")
        if len(shape) > _MAX_DIMENSIONS:
            raise _invalid(f"tensor {shortened(name)} has {len(shape)} dimensions, more than {_MAX_DIMENSIONS}")
    places: dict[str, tuple[dtype, tuple[int, ...], int]] = {}
    position = 0
    for begin, end, name, kind, shape in sorted(entries, key=lambda entry: entry[:2]):
        # The extents that are not 0 bound the memory layout even if the tensor is empty.
        extent = math.prod(each for each in shape if each) * kind.itemsize
        if begin != position or end - begin != (0 if 0 in shape else extent) or end > size or extent >= 2**63:
            raise _invalid(f"invalid offsets for tensor {shortened(name)}")
        places[name] = kind, tuple(shape), end - begin
        position = end
    if position != size:
        raise _invalid(f"the tensors cover {position} of {size} bytes")
    return places, metadata or {}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


def _natural_number(text: str) -> int:
    if len(text) > 20 or not text.isdigit():
        raise ValueError(f"the numbers must be integers of 64 bits without a sign, but got {shortened_text(text, 20)}")
    return int(text)


def save_safetensors(
    tensors: dict[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Write ``tensors``, a dict by name, to the file ``filename`` in the safetensors format.

    ``metadata`` is a dict of strings that the file also contains. If an error occurs, an existing file is unchanged.
    """
    parts = to_bytes(tensors, metadata)
    with atomic_write(os.fspath(filename)) as file:
        for part in parts:
            file.write(part)


def load_safetensors(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """Return a dict of the tensors in the safetensors file ``filename``, by name, on ``device``.

    Raises ValueError if the file is not valid: for example, if tensors overlap, or if the file has bytes that belong to
    no tensor.

    >>> import os, tempfile
    >>> import retrograd as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     torch.serialization.save_safetensors({"weight": torch.ones(2)}, path)
    ...     torch.serialization.load_safetensors(path)
    {'weight': tensor([1., 1.])}
    """
    with open(filename, "rb") as file:
        tensors = read(file, os.fstat(file.fileno()).st_size)
    place = as_device(device)
    return tensors if place.type == "cpu" else {name: each.to(place) for name, each in tensors.items()}
