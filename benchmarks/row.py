"""Rows of a table and groups of rows, with helpers to define them. Programs take the engine's module as a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

#: Program: a function of the module that creates the data and returns the work to measure.
Program = Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Row:
    """One measured work, written with PyTorch's names.

    The work's result (tensors, or tuples of them) is compared before anything is measured: ``tolerance`` is the maximum
    difference relative to the largest element.
    """

    name: str
    program: Program
    asked: float
    operations: int = 1
    tolerance: float = 1e-4
    #: The same work in NumPy, written by hand; the row's target is at most twice its time.
    by_hand: Callable[[], Callable[[], Any]] | None = None


@dataclass(frozen=True)
class Group:
    """Rows of one subject, and the target for the geometric mean of their ratios."""

    name: str
    title: str
    rows: tuple[Row, ...]
    mean: float | None = None
    notes: str = field(default="")


def _inputs(torch: Any, shapes: Iterable[Any], grad: bool) -> list[Any]:
    """Return normally distributed inputs of these shapes, the same on both engines.

    A function is called with the module.
    """
    torch.manual_seed(0)
    made = [shape(torch) if callable(shape) else torch.randn(shape) for shape in shapes]
    for each in made:
        if grad and each.is_floating_point():
            each.requires_grad_(True)
    return made


def forward(function: Callable[..., Any], *shapes: Any) -> Program:
    """Return a program that calls ``function(torch, *inputs)``, not recorded."""

    def program(torch: Any) -> Callable[[], Any]:
        inputs = _inputs(torch, shapes, False)
        return lambda: function(torch, *inputs)

    return program


def swept(function: Callable[..., Any], *shapes: Any) -> Program:
    """Return a program that calls ``function(torch, *inputs)``, recorded, and a backward pass with a random gradient."""

    def program(torch: Any) -> Callable[[], Any]:
        inputs = _inputs(torch, shapes, True)
        leaves = [each for each in inputs if each.requires_grad]
        seed = torch.randn(function(torch, *inputs).shape)

        def work() -> Any:
            out = function(torch, *inputs)
            for leaf in leaves:
                leaf.grad = None
            out.backward(seed)
            return out.detach(), *(leaf.grad for leaf in leaves)

        return work

    return program


def both(name: str, asked: float, function: Callable[..., Any], *shapes: Any, **options: Any) -> tuple[Row, Row]:
    """Return two rows: forward only, and forward and backward."""
    return (
        Row(f"{name}, forward", forward(function, *shapes), asked, **options),
        Row(f"{name}, and backward", swept(function, *shapes), asked, **options),
    )


def size(count: int) -> str:
    """Return a number as text: ``10⁶`` for 1000000, ``1.6·10⁷`` for 16000000."""
    power = len(str(count)) - 1
    digits = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    lead = count / 10**power
    return f"10{digits}" if lead == 1 else f"{lead:g}·10{digits}"
