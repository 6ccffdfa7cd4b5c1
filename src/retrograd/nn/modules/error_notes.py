"""Notes in errors that an operation raises inside a module's call: the module's path, what it expects and what it got."""

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
    shapes = [" × ".join(map(str, each.shape)) or "no dimensions" for each in inputs if isinstance(each, Tensor)]
    if not shapes or user_frame.MARK not in frames[-1].f_globals or call in [each.f_code for each in frames[1:]]:
        return
    try:
        error.add_note(_note(frames[0].f_locals["self"], call, shapes, named_modules))
    except Exception:  # user code, such as the ``__repr__`` of an attribute: the error must arrive as it was raised
        return


def _note(module: Any, call: CodeType, shapes: list[str], named_modules: Callable[[Any], Any]) -> str:
    """Return the note for an error in the call of ``module`` with tensors of ``shapes``."""
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
    return f"{path}: {described} got {' and '.join(shapes)}" if path else f"{described} got {' and '.join(shapes)}"


__all__ = ["add_module_note"]
