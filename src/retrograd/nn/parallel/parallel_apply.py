"""``parallel_apply``: calls of several modules, one for each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[Any] | None = None, devices: Any = None
) -> list[Any]:  # fmt: skip
    """Return a list of the results of calling each of ``modules`` with its ``inputs``, one module after another.

    Each item of ``inputs`` is a tuple of arguments, or a single argument, and each item of ``kwargs_tup`` a dict of
    keyword arguments. ``devices`` has no effect.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    named: Sequence[Any] = kwargs_tup or [{}] * len(modules)
    return [
        module(*given if isinstance(given, (list, tuple)) else (given,), **keywords)
        for module, given, keywords in zip(modules, inputs, named, strict=True)
    ]


__all__ = ["parallel_apply"]
