"""Benchmarks of elementwise operations, reductions and chains of them on tensors of at least 10⁵ elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .row import Program, Row, both, forward, size, swept

SIZES = (100_000, 1_000_000, 16_000_000)

#: Functions of the module and the tensors that the name lists.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "x + y": lambda torch, x, y: x + y,
    "x * y": lambda torch, x, y: x * y,
    "x / y": lambda torch, x, y: x / y,
    "x + 2": lambda torch, x: x + 2,
    "x ** 3": lambda torch, x: x**3,
    "exp": lambda torch, x: x.exp(),
    "log of abs": lambda torch, x: x.abs().log(),
    "sqrt of abs": lambda torch, x: x.abs().sqrt(),
    "sin": lambda torch, x: x.sin(),
    "tanh": lambda torch, x: x.tanh(),
    "sigmoid": lambda torch, x: x.sigmoid(),
    "erf": lambda torch, x: x.erf(),
    "relu": lambda torch, x: x.relu(),
    "maximum": lambda torch, x, y: torch.maximum(x, y),
    "clamp": lambda torch, x: x.clamp(-1, 1),
    "where": lambda torch, x, y: torch.where(x > 0, x, y),
}

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda torch, x: x.sum(),
    "mean": lambda torch, x: x.mean(),
    "max": lambda torch, x: x.max(),
    "var": lambda torch, x: x.var(),
    "norm": lambda torch, x: x.norm(),
}

#: Functions of tensors with 1000 columns.
ALONG: dict[str, Callable[..., Any]] = {
    "sum(0)": lambda torch, x: x.sum(0),
    "sum(1)": lambda torch, x: x.sum(1),
    "mean(1)": lambda torch, x: x.mean(1),
    "amax(1)": lambda torch, x: x.amax(1),
    "max(0)": lambda torch, x: x.max(0)[0],
    "var(1)": lambda torch, x: x.var(1),
    "logsumexp(1)": lambda torch, x: x.logsumexp(1),
    "prod(1)": lambda torch, x: (1 + x / 1000).prod(1),
}

COMPARISONS: dict[str, Callable[..., Any]] = {
    "x < y": lambda torch, x, y: x < y,
    "argmax(1)": lambda torch, x, y: x.argmax(1),
    "(x > y).any(1)": lambda torch, x, y: (x > y).any(1),
    "isnan": lambda torch, x, y: x.isnan(),
    "x.to(float64)": lambda torch, x, y: x.double(),
}

STRIDED: dict[str, Callable[..., Any]] = {
    "x.t() + y": lambda torch, x, y: x.t() + y,
    "x[:, ::2] * y[:, ::2]": lambda torch, x, y: x[:, ::2] * y[:, ::2],
    "tanh of x[::2]": lambda torch, x, y: x[::2].tanh(),
    "sum of x.t() along 1": lambda torch, x, y: x.t().sum(1),
    "x.t().contiguous()": lambda torch, x, y: x.t().contiguous(),
    "x + row": lambda torch, x, y: x + y[0],
    "x * column": lambda torch, x, y: x * y[:, :1],
}


def _arity(function: Callable[..., Any]) -> int:
    return function.__code__.co_argcount - 1


def _in_place(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(1_000_000), torch.zeros(1_000_000)

    def work() -> Any:
        return x.add_(y, alpha=0.5).mul_(1.0)

    return work


def rows() -> Iterator[Row]:
    """Yield the rows of the group "large"."""
    for count in SIZES:
        for name, function in {**ELEMENTWISE, **REDUCTIONS}.items():
            # PyTorch's own norm of 1.6·10⁷ elements is off by 6·10⁻⁴.
            yield from both(f"{name}, {size(count)}", 1.0, function, *[(count,)] * _arity(function), tolerance=1e-3)
    for name, function in ALONG.items():
        yield from both(f"{name}, 1000 × 1000", 1.0, function, (1000, 1000))
    for name, function in COMPARISONS.items():
        yield Row(f"{name}, 1000 × 1000, forward", forward(function, (1000, 1000), (1000, 1000)), 1.0)
    for name, function in STRIDED.items():
        yield from both(f"{name}, 1000 × 1000", 1.0, function, (1000, 1000), (1000, 1000))
    yield Row(f"x.add_(y).mul_(1), {size(1_000_000)}", _in_place, 1.0)


def _gelu_by_hand(torch: Any, x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _swish_and_square(torch: Any, x: Any, y: Any) -> Any:
    return ((x * torch.sigmoid(x) - y) ** 2).mean()


def _ten_products(torch: Any, x: Any, y: Any) -> Any:
    for _ in range(5):
        x = x * y + 0.5
    return x


def _standardised(torch: Any, x: Any) -> Any:
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()


def _damped_waves(torch: Any, x: Any, y: Any) -> Any:
    return torch.exp(-x * x) * torch.sin(3 * y) + torch.cos(x) * y


CHAINS: dict[str, tuple[Callable[..., Any], int]] = {
    "gelu by its formula": (_gelu_by_hand, 1),
    "mean square of a swish": (_swish_and_square, 2),
    "ten products and sums": (_ten_products, 2),
    "rows standardised": (_standardised, 1),
    "exp(-x²) sin 3y + y cos x": (_damped_waves, 2),
}


def chains() -> Iterator[Row]:
    """Yield the rows of the group "chains"."""
    for shape in ((100, 1000), (1000, 1000)):
        for name, (function, arity) in CHAINS.items():
            program: Program = swept(function, *[shape] * arity)
            yield Row(f"{name}, {size(shape[0] * shape[1])}, and backward", program, 1.0)
