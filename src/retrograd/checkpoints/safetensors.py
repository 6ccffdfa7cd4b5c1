"""``save_safetensors`` and ``load_safetensors``: files of named tensors, which contain no code and are safe to read.

Source: the documentation of the ``safetensors`` package. A file consists of the length of the header, the header in
JSON (dtype, shape and byte offsets of each tensor), and the data of the tensors.
"""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any

import numpy

from ..core import devices, dtypes
from ..core.devices import as_device
from ..core.tensor import Tensor, wrap
from .files import atomic_write
from .formatting import shortened, shortened_text

_DTYPES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _DTYPES.items()}
_MAX_HEADER = 100_000_000  # bytes of a header; the package's own bound


def to_bytes(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> list[Any]:
    """Return the content of a safetensors file with ``tensors`` and ``metadata``, as a list of consecutive buffers."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    parts: list[Any] = []
    position = 0
    # The largest element sizes first, so that each tensor is aligned to its element size.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
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


def from_bytes(data: Any) -> dict[str, Tensor]:
    """Return a dict of the tensors in ``data``, the bytes of a safetensors file, by name.

    The elements are copied. Raises ValueError if ``data`` is not a valid file.
    """
    (length,) = struct.unpack("<Q", data[:8]) if len(data) >= 8 else (None,)
    if length is None or length > min(len(data) - 8, _MAX_HEADER):
        raise ValueError("Error while deserializing header: the file is too short for its header")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
        entries = {name: each for name, each in header.items() if name != "__metadata__"}
        places = {}
        for name, each in entries.items():
            begin, end = each["data_offsets"]
            places[name] = _DTYPES[each["dtype"]], tuple(each["shape"]), begin, end
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"Error while deserializing header: {type(error).__name__}: {shortened_text(str(error))}"
        ) from error
    body = data[8 + length :]
    return {name: _read(name, body, *place) for name, place in places.items()}


def _read(name: str, body: Any, kind: Any, shape: Any, begin: Any, end: Any) -> Tensor:
    if any(type(each) is not int or each < 0 for each in (*shape, begin, end)):
        raise ValueError(f"Error while deserializing header: invalid numbers for tensor {shortened(name)}")
    if not begin <= end <= len(body) or end - begin != math.prod(shape) * kind.itemsize:
        raise ValueError(f"Error while deserializing header: invalid offsets for tensor {shortened(name)}")
    line = numpy.frombuffer(body[begin:end], numpy.uint8).copy()
    return wrap(line.view(kind.numpy).reshape(shape))


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

    >>> import os, tempfile
    >>> import retrograd as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     torch.serialization.save_safetensors({"weight": torch.ones(2)}, path)
    ...     torch.serialization.load_safetensors(path)
    {'weight': tensor([1., 1.])}
    """
    with open(filename, "rb") as file:
        tensors = from_bytes(memoryview(file.read()))
    place = as_device(device)
    return tensors if place.type == "cpu" else {name: each.to(place) for name, each in tensors.items()}
