"""Optimiser steps of large parameters as compiled loops (``kernels/numba/optimizers.py``).

A compiled loop reads the memory once; the NumPy operations of a rule read it about twelve times. Each function takes
the arrays of an update rule (the parameter, the gradient, the state) and the scalar arguments ``numbers``, and returns
True if it applied the step. If the result is False, the caller executes the rule by NumPy operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..kernels.numba_dispatch import F32, F64, LARGE, available, loops

Step = Callable[[list[Any], dict[str, Any]], bool]


def with_loop(step: Step) -> Callable[[Any], Any]:
    """Return a decorator that stores the function ``step`` as the attribute ``large`` of an update rule.

    ``step(arrays, numbers)`` applies the rule by a compiled loop. ``ArrayOps.run`` calls ``step`` instead of the rule
    for large arrays.
    """

    def mark(rule: Any) -> Any:
        rule.large = step
        return rule

    return mark


def _run(name: str, arrays: list[Any], numbers: tuple[Any, ...]) -> bool:
    first = arrays[0]
    if first.size < LARGE or first.dtype not in (F32, F64) or not available():
        return False
    if any(array.__class__ is not numpy.ndarray or not array.flags.carray for array in arrays):
        return False
    kind = first.dtype.type
    getattr(loops("optimizers"), name)(*[array.reshape(-1) for array in arrays], *[kind(number) for number in numbers])
    return True


def _slope(numbers: dict[str, Any]) -> tuple[Any, Any]:
    return -1 if numbers["maximize"] else 1, numbers["weight_decay"]


def descent(arrays: list[Any], numbers: dict[str, Any]) -> bool:
    """Apply a step of SGD without momentum to ``arrays`` by a compiled loop; return whether the loop was applied."""
    return _run("descent", arrays, (*_slope(numbers), numbers["lr"]))


def momentum(arrays: list[Any], numbers: dict[str, Any]) -> bool:
    """Apply a step of SGD with momentum to ``arrays`` by a compiled loop; return whether the loop was applied."""
    stored, added = numbers["momentum"], 1 - numbers["dampening"]
    if numbers["first"]:
        stored, added = 0, 1
    ahead = numbers["momentum"] if numbers["nesterov"] else 0
    return _run("momentum", arrays, (*_slope(numbers), numbers["lr"], stored, added, ahead))


def adam(arrays: list[Any], numbers: dict[str, Any]) -> bool:
    """Apply a step of Adam to ``arrays`` by a compiled loop; return whether the loop was applied.

    The loop does not support ``amsgrad``.
    """
    if len(arrays) != 4:
        return False
    beta1, beta2 = numbers["beta1"], numbers["beta2"]
    shrink = 1 if numbers["shrink"] is None else numbers["shrink"]
    rest = (shrink, 1 - beta1, beta2, 1 - beta2, numbers["eps"], numbers["size"], numbers["correction"])
    return _run("adam", arrays, (*_slope(numbers), *rest))


def root_mean_square(arrays: list[Any], numbers: dict[str, Any]) -> bool:
    """Apply a step of RMSprop to ``arrays`` by a compiled loop; return whether the loop was applied.

    The loop supports neither momentum nor the option ``centered``.
    """
    if len(arrays) != 3:
        return False
    alpha = numbers["alpha"]
    return _run("root_mean_square", arrays, (*_slope(numbers), alpha, 1 - alpha, numbers["eps"], numbers["lr"]))
