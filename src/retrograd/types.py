"""Type aliases for annotations of arguments (``torch.types``)."""

from __future__ import annotations

import builtins
import os
from typing import IO, Any, TypeAlias

from .core.devices import device
from .core.dtypes import dtype
from .core.size import Size
from .core.tensor import Tensor, layout
from .operations.creation.storage import UntypedStorage as Storage

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
BoolLikeType: TypeAlias = builtins.bool
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
py_sym_types: tuple[Any, ...] = ()

# The builtin types and those of PyTorch, by names that no argument hides.
_int, _float, _bool, _device, _dtype, _layout = builtins.int, builtins.float, builtins.bool, device, dtype, layout
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Size", "Storage", "Tensor",
           "py_sym_types"]  # fmt: skip
