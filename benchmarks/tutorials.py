"""Benchmarks of small graphs from tutorials beside the same work in NumPy, with gradients written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from . import overhead, training
from .row import Row


def polynomial_by_hand() -> Callable[[], Any]:
    """Return the work of a polynomial and its derivative, in NumPy."""

    def work() -> Any:
        x = numpy.float32(2.0)
        y = 2 * x**4 + x**3 + 3 * x**2 + 5 * x + 1
        return y, 8 * x**3 + 3 * x**2 + 6 * x + 5

    return work


def square_by_hand() -> Callable[[], Any]:
    """Return the work of the mean of 3 (x + 2)² and its gradient, in NumPy."""

    def work() -> Any:
        x = numpy.ones((2, 2), numpy.float32)
        y = x + 2
        out = (y * y * 3).mean()
        slope = numpy.full_like(y, 1 / y.size)
        return out, 3 * slope * y + 3 * slope * y

    return work


def descent_by_hand() -> Callable[[], Any]:
    """Return the work of a step of gradient descent on a line, in NumPy."""
    draw = numpy.random.default_rng(0)
    x, t = draw.normal(size=(16, 4)).astype("f"), draw.normal(size=(16, 1)).astype("f")
    w, b = numpy.zeros((4, 1), "f"), numpy.zeros(1, "f")
    rate = numpy.float32(0.01)

    def work() -> Any:
        gap = x @ w + b - t
        loss = (gap**2).mean()
        slope = gap * numpy.float32(2 / 16)
        w.__isub__(rate * (x.T @ slope))
        b.__isub__(rate * slope.sum(0))
        return loss

    return work


def rows() -> Iterator[Row]:
    """Yield the rows of the group "tutorials"."""
    yield Row("polynomial of a tutorial", overhead.polynomial, 1.5, by_hand=polynomial_by_hand)
    yield Row("mean of 3 (x + 2)²", overhead.mean_of_square, 1.5, by_hand=square_by_hand)
    yield Row("step of gradient descent", overhead.gradient_descent, 1.5, by_hand=descent_by_hand)
    yield Row(
        "step of a perceptron, 64, 32, 1", training.mlp_of_tensors, 1.0, tolerance=2e-3, by_hand=training.mlp_by_hand
    )
