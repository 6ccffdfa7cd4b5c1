"""Type aliases for annotations of arguments (``torch.types``)."""

from __future__ import annotations

import builtins
import os
from typing import IO, Any, TypeAlias

from .core.devices import device
from .core.size import Size
from .core.tensor import Tensor
from .operations.creation.storage import UntypedStorage as Storage

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
BoolLikeType: TypeAlias = builtins.bool
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
py_sym_types: tuple[Any, ...] = ()

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Size", "Storage", "Tensor",
           "py_sym_types"]  # fmt: skip
