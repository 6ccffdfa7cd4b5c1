"""Samples: one line per way to call an operation, used to test values and derivatives.

A sample is an expression in PyTorch's language with recipes for its inputs. Inputs come from NumPy's generator, so that
retrograd and PyTorch get the same numbers.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

Recipe = Callable[[numpy.random.Generator], numpy.ndarray]


def normal(*shape: int) -> Recipe:
    """Normal numbers."""
    return lambda rng: rng.standard_normal(shape)


def positive(*shape: int) -> Recipe:
    """Numbers between 0.5 and 2."""
    return lambda rng: rng.uniform(0.5, 2, shape)


def unit(*shape: int) -> Recipe:
    """Numbers between -0.9 and 0.9."""
    return lambda rng: rng.uniform(-0.9, 0.9, shape)


def distinct(*shape: int) -> Recipe:
    """Distinct numbers far from each other in random order, for operations that sort or select."""
    size = int(numpy.prod(shape))
    return lambda rng: (rng.permutation(size).reshape(shape) - size / 2 + 0.25) / 2


def spd(size: int, *batch: int) -> Recipe:
    """Symmetric positive definite matrices."""

    def make(rng: numpy.random.Generator) -> numpy.ndarray:
        root = rng.standard_normal((*batch, size, size))
        return root @ numpy.swapaxes(root, -1, -2) + size * numpy.eye(size)

    return make


def integers(low: int, high: int, *shape: int) -> Recipe:
    """Integers from ``low`` to below ``high`` (int64; never differentiated)."""
    return lambda rng: rng.integers(low, high, shape)


def booleans(*shape: int) -> Recipe:
    """True and false (never differentiated)."""
    return lambda rng: rng.uniform(size=shape) < 0.5


def complexes(*shape: int) -> Recipe:
    """Complex numbers (complex128)."""
    return lambda rng: rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@dataclass(eq=False)
class Sample:
    """``expression`` uses ``torch`` and the inputs by name; its value is a tensor, a tuple or a list of tensors.

    ``smooth=False``: not differentiable or piecewise constant; only values are compared. ``second=False``: the second
    derivative is not checked by finite differences (give the reason beside the sample). ``beyond=True``: PyTorch lacks
    a derivative that retrograd has, which is checked by finite differences only. ``named=True``: the gradient is by
    definition not the derivative (padding …), so that finite differences are not compared. ``once=True``: PyTorch's
    second derivative is not compared, because it is nan or accidental there.
    """

    op: str
    expression: str
    smooth: bool
    second: bool
    beyond: bool
    named: bool
    once: bool
    inputs: dict[str, Recipe]

    def __init__(
        self,
        op: str,
        expression: str,
        /,
        *,
        smooth: bool = True,
        second: bool = True,
        beyond: bool = False,
        named: bool = False,
        once: bool = False,
        **inputs: Recipe,
    ) -> None:
        self.named, self.once = named, once
        self.op, self.expression, self.smooth, self.second, self.inputs = op, expression, smooth, second, inputs
        self.beyond = beyond

    def arrays(self) -> dict[str, numpy.ndarray]:
        """Return the inputs, the same at every call."""
        rng = numpy.random.default_rng(zlib.crc32(self.expression.encode()))
        return {name: numpy.asarray(recipe(rng)) for name, recipe in self.inputs.items()}

    def evaluate(self, torch: Any, tensors: dict[str, Any]) -> list[Any]:
        """Return the tensors that the expression gives with ``torch`` for the engine."""
        value = eval(self.expression, {"torch": torch, **tensors})
        return [value] if not isinstance(value, (tuple, list)) else list(value)


def unique_expressions(samples: list[Sample]) -> list[Sample]:
    """Append a number, as a comment, to expressions that occur again with other inputs."""
    seen: dict[str, int] = {}
    for each in samples:
        seen[each.expression] = count = seen.get(each.expression, 0) + 1
        if count > 1:
            each.expression += f"  # {count}"
    return samples


#: Every module of this folder is a family. Edge cases come last: records made from samples take the first that fits.
FAMILIES = tuple(
    sorted((each.name for each in pkgutil.iter_modules(__path__)), key=lambda name: (name == "edges", name))
)


def samples(family: str) -> list[Sample]:
    """Return all samples of a family."""
    return importlib.import_module(f"tests.conformance.samples.{family}").SAMPLES  # type: ignore[no-any-return]
