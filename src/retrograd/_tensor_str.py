"""``torch._tensor_str``: print options and the text of tensors, which are implemented in ``core/formatting.py``."""

from __future__ import annotations

from collections.abc import Sequence

from .core.formatting import OPTIONS as PRINT_OPTS
from .core.formatting import elements_text, get_printoptions, printoptions, set_printoptions, with_suffixes
from .core.tensor import Tensor
from .operations.creation.conversion import numpy_array_of
from .operations.tensor_protocols import text_of


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the text of the elements of ``self``, whose further lines are indented by ``indent`` characters."""
    return elements_text(numpy_array_of(self), indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """Return ``tensor_str`` with ``suffixes`` and the closing parenthesis, wrapped at the line width."""
    return with_suffixes(tensor_str, list(suffixes), indent, force_newline)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the repr of the tensor ``inp``, with ``tensor_contents`` for its elements."""
    return text_of(inp, contents=tensor_contents)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the repr of the tensor ``self``, with ``tensor_contents`` for its elements."""
    return _str_intern(self, tensor_contents=tensor_contents)


__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
