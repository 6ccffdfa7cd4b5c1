"""Conversion of checkpoint files between PyTorch's format, safetensors and NumPy's ``.npz``."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, strided, wrap
from . import contents, zip_format
from .contents import Checkpoint, Unknown
from .files import atomic_write
from .formatting import shortened
from .safetensors import save_safetensors

#: Formats that can be written, by the ending of the file's name.
ENDINGS = {
    ".pt": "torch", ".pth": "torch", ".bin": "torch", ".ckpt": "torch", ".safetensors": "safetensors", ".npz": "npz"
}  # fmt: skip
_PROTOCOL = 2  # of pickles, as PyTorch writes them


class CannotConvert(ValueError):
    """Error for a value that the format of the output cannot hold."""


def convert(checkpoint: Checkpoint, output: str, part: str | None = None, copy_shared: bool = False) -> list[str]:
    """Write the contents ``checkpoint`` of a file to the file ``output``; its ending decides the format.

    Return texts about what was not written. ``part`` is the path of the part that is written. With ``copy_shared``,
    tensors that share memory are written one by one to formats that cannot keep this. Raises CannotConvert for a
    value that the format cannot hold. If an error occurs, an existing file is unchanged.
    """
    value = checkpoint.value if part is None else contents.part_of(checkpoint.value, part)
    kind = ENDINGS[os.path.splitext(output)[1].lower()]
    left_out = []
    if kind == "torch":
        _write_torch(value, output)
    else:
        tensors = _tensors(value, kind, copy_shared)
        left_out += _attributes(tensors)
        if kind == "safetensors":
            save_safetensors(tensors, output, checkpoint.metadata or None)
        else:
            _write_npz(tensors, output)
    if checkpoint.metadata and kind != "safetensors":
        left_out.append("the metadata")
    return left_out


def _attributes(tensors: dict[str, Tensor]) -> list[str]:
    """Return texts about the attributes of tensors that formats of plain arrays do not keep."""
    graded = sum(each.requires_grad for each in tensors.values())
    return [f"requires_grad=True of {graded} tensors"] if graded else []


def _write_torch(value: Any, output: str) -> None:
    for each in contents.entries(value):
        if isinstance(each.value, Unknown):
            where = f"{contents.printable(each.name)!r} is" if each.name else "the whole is"
            raise CannotConvert(f"{where} of a class or function that is not loaded: {each.value.name}")
    if isinstance(value, dict) and any(isinstance(each, numpy.ndarray) for each in value.values()):
        value = {name: _as_tensor(name, each) for name, each in value.items()}
    with atomic_write(output) as file:
        name = os.path.basename(output)
        zip_format.write(value, file, name.rpartition(".")[0] or name, _PROTOCOL, True)


def _as_tensor(name: str, value: Any) -> Tensor:
    """Return ``value``, a tensor or NumPy array, as a tensor."""
    if isinstance(value, Tensor):
        return value
    try:
        return wrap(dtypes.with_shared_dtype(value.astype(value.dtype.newbyteorder("="), copy=False)))
    except TypeError:
        raise CannotConvert(f"{name!r} has NumPy's dtype {value.dtype}, which no tensor can have") from None


def _tensors(value: Any, kind: str, copy_shared: bool) -> dict[str, Tensor]:
    """Return the dict of tensors ``value`` for a format of named arrays, ``"safetensors"`` or ``"npz"``.

    Raises CannotConvert if ``value`` is something else, or if tensors share memory and ``copy_shared`` is false.
    """
    if not isinstance(value, dict):
        found = value.name if isinstance(value, Unknown) else type(value).__name__
        raise CannotConvert(f"{kind} holds tensors by name, but this is not a dict: {found}{_choices(value)}")
    tensors: dict[str, Tensor] = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise CannotConvert(f"{kind} holds tensors by name, but the name {shortened(name)} is no string")
        if not isinstance(each, (Tensor, numpy.ndarray)):
            found = each.name if isinstance(each, Unknown) else type(each).__name__
            raise CannotConvert(f"{kind} holds only tensors by name, but {name!r} is of type {found}{_choices(value)}")
        tensor = _as_tensor(name, each)
        if contents.array_of(tensor) is None:
            form = f"of the layout {tensor.layout}" if tensor.layout is not strided else "on the device meta"
            raise CannotConvert(f"{kind} holds only dense tensors, but {name!r} is {form}")
        tensors[name] = tensor
    shared = {} if copy_shared else contents.shared_positions([each._array for each in tensors.values()])
    for position, owner in shared.items():
        name, other = [*tensors][position], [*tensors][owner]
        how = "repeats its elements in memory" if name == other else f"shares memory with {other!r}"
        raise CannotConvert(f"{name!r} {how}, which {kind} cannot keep; --copy-shared writes each tensor in full")
    return tensors


def _choices(value: Any) -> str:
    """Return a hint at the parts of ``value`` that are dicts of tensors, or an empty string."""
    names = list(_dicts_of_tensors(value))
    return f"; --part takes one part: {contents.some_names(names)}" if names else ""


def _dicts_of_tensors(value: Any) -> Iterator[str]:
    items = value.parts if isinstance(value, Unknown) else value
    for name, each in items.items() if isinstance(items, dict) else ():
        if isinstance(each, dict) and each and all(isinstance(one, Tensor) for one in each.values()):
            yield str(name)


def _write_npz(tensors: dict[str, Tensor], output: str) -> None:
    arrays = {}
    for name, tensor in tensors.items():
        if tensor._array.dtype.isbuiltin != 1:
            raise CannotConvert(
                f"npz has no dtype {tensor.dtype.name} ({name!r}): convert the tensor in a program, or write safetensors"
            )
        if "\0" in name:
            raise CannotConvert(f"npz cannot hold the name {shortened(name)}: it contains the character 0")
        arrays[name] = tensor._array
    with atomic_write(output) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as record:
                numpy.lib.format.write_array(record, array, allow_pickle=False)
