"""``out=`` for functions that are no blocks of the table: their result is written where the caller wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.modes import recording
from ..core.tensor import Tensor
from ..core.views import check_in_place
from .calls import check_cast, write_array


def refuse_grad(name: str, out: Any, tensors: Sequence[Any]) -> None:
    """Refuse ``out=`` where gradients would have to flow."""
    if out is not None and recording():
        for each in (*tensors, out):
            if isinstance(each, Tensor) and each.requires_grad:
                raise RuntimeError(
                    f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                    "the arguments requires grad. Remedy: take the result as it is returned, or call it under "
                    "torch.no_grad()."
                )


def written(out: Tensor | None, result: Tensor) -> Tensor:
    """``result``, or ``out`` with it written in."""
    if out is None:
        return result
    check_cast(result.dtype, out.dtype)
    check_in_place(out, False)
    write_array(out, result._array)
    return out
