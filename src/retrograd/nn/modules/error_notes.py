"""Notes in errors that an operation raises inside a module's call: the module's path, what it expects and what it got.

What it got are the shapes of its inputs; for an embedding, the range of the indices, or the dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from ...core.tensor import Tensor
from ...runtime import user_frame

#: Attributes of modules that say which input they expect.
EXPECTATIONS = (
    "in_features", "in1_features", "in2_features", "in_channels", "num_features", "num_channels", "normalized_shape",
    "input_size", "embed_dim", "num_embeddings",
)  # fmt: skip


def add_module_note(
    error: Exception, call: CodeType, inputs: tuple[Any, ...], named_modules: Callable[[Any], Any]
) -> None:
    """Add to ``error`` a note such as ``encoder.layers.3.linear1: Linear(in_features=30) got 256 × 35228``.

    The caller is the method ``__call__`` of a module, whose code is ``call``. Only the innermost call adds a note, and
    only if retrograd has raised the error. The path is that below the module of the outermost call. ``inputs`` are the
    arguments of the call, and ``named_modules`` is the method of Module. No other code of the program runs.
    """
    entry, frames = error.__traceback__, []
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    tensors = [each for each in inputs if isinstance(each, Tensor)]
    if not tensors or user_frame.MARK not in frames[-1].f_globals or call in [each.f_code for each in frames[1:]]:
        return
    try:
        error.add_note(_note(frames[0].f_locals["self"], call, tensors, named_modules))
    except Exception:  # user code, such as the ``__repr__`` of an attribute: the error must arrive as it was raised
        return


def _note(module: Any, call: CodeType, inputs: list[Tensor], named_modules: Callable[[Any], Any]) -> str:
    """Return the note for an error in the call of ``module`` with the tensors ``inputs``."""
    outermost, caller = module, sys._getframe(2).f_back
    while caller is not None:
        if caller.f_code is call:
            outermost = caller.f_locals["self"]
        caller = caller.f_back
    path = next((name for name, each in named_modules(outermost) if each is module), "")
    attributes = vars(module)
    expected = ", ".join(
        f"{name}={attributes[name]!r}" for name in EXPECTATIONS if type(attributes.get(name)) in (int, tuple)
    )
    described = f"{type(module).__name__}({expected})" if expected else type(module).__name__
    indexed = "num_embeddings" in attributes
    got = _indices(inputs[0]) if indexed else " and ".join(map(_shape, inputs))
    return f"{path}: {described} got {got}" if path else f"{described} got {got}"


def _shape(x: Tensor) -> str:
    return " × ".join(map(str, x.shape)) or "no dimensions"


def _indices(x: Tensor) -> str:
    """Return the least and the greatest of the indices ``x``, or the dtype if they are no integers."""
    dtype, array = x.dtype, x._array
    if dtype.is_floating_point or dtype.is_complex:
        return f"elements of dtype {dtype.name}"
    if x.is_meta or not array.size:
        return _shape(x)
    low, high = int(array.min()), int(array.max())
    return f"index {low}" if low == high else f"indices from {low} to {high}"


__all__ = ["add_module_note"]
