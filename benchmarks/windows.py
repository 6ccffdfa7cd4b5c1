"""Benchmarks of convolution, pooling, embedding, attention, and of operations that gather elements by index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .losses import classes
from .row import Row, both, forward


def convolution(**options: Any) -> Callable[..., Any]:
    """Return a program's function that calls conv2d with these options."""
    return lambda torch, x, w, b: torch.nn.functional.conv2d(x, w, b, **options)


def called(name: str, *arguments: Any, **options: Any) -> Callable[..., Any]:
    """Return a program's function that calls a function of nn.functional."""
    return lambda torch, *inputs: getattr(torch.nn.functional, name)(*inputs, *arguments, **options)


WINDOWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "conv2d 1→32 3×3, 64 × 28²": (convolution(), ((64, 1, 28, 28), (32, 1, 3, 3), (32,))),
    "conv2d 32→64 3×3, 64 × 13²": (convolution(), ((64, 32, 13, 13), (64, 32, 3, 3), (64,))),
    "conv2d 1→6 5×5, 64 × 28²": (convolution(padding=2), ((64, 1, 28, 28), (6, 1, 5, 5), (6,))),
    "conv2d 3→64 7×7 stride 2, 4 × 112²": (
        convolution(stride=2, padding=3),
        ((4, 3, 112, 112), (64, 3, 7, 7), (64,)),
    ),
    "conv2d 64→64 3×3, 8 × 28²": (convolution(padding=1), ((8, 64, 28, 28), (64, 64, 3, 3), (64,))),
    "conv2d 128→128 3×3, 4 × 14²": (convolution(padding=1), ((4, 128, 14, 14), (128, 128, 3, 3), (128,))),
    "conv2d 128→128 3×3 stride 2, 4 × 28²": (
        convolution(padding=1, stride=2),
        ((4, 128, 28, 28), (128, 128, 3, 3), (128,)),
    ),
    "conv2d 64→256 1×1, 8 × 28²": (convolution(), ((8, 64, 28, 28), (256, 64, 1, 1), (256,))),
    "conv2d depthwise 64 3×3, 8 × 28²": (
        convolution(padding=1, groups=64),
        ((8, 64, 28, 28), (64, 1, 3, 3), (64,)),
    ),
    "conv2d 64→64 3×3 in 4 groups, 8 × 28²": (
        convolution(padding=1, groups=4),
        ((8, 64, 28, 28), (64, 16, 3, 3), (64,)),
    ),
    "conv1d 64→64 5, 16 × 256": (called("conv1d", padding=2), ((16, 64, 256), (64, 64, 5), (64,))),
    "conv_transpose2d 64→32 4×4 stride 2, 8 × 14²": (
        called("conv_transpose2d", stride=2, padding=1),
        ((8, 64, 14, 14), (64, 32, 4, 4), (32,)),
    ),
    "max_pool2d 2, 64 × 32 × 26²": (called("max_pool2d", 2), ((64, 32, 26, 26),)),
    "max_pool2d 3 stride 2, 8 × 64 × 56²": (called("max_pool2d", 3, 2, 1), ((8, 64, 56, 56),)),
    "avg_pool2d 2, 64 × 32 × 26²": (called("avg_pool2d", 2), ((64, 32, 26, 26),)),
    "adaptive_avg_pool2d 1, 16 × 128 × 14²": (called("adaptive_avg_pool2d", 1), ((16, 128, 14, 14),)),
    "interpolate to twice, nearest, 8 × 32 × 28²": (called("interpolate", scale_factor=2), ((8, 32, 28, 28),)),
    "interpolate to twice, bilinear, 8 × 32 × 28²": (
        called("interpolate", scale_factor=2, mode="bilinear"),
        ((8, 32, 28, 28),),
    ),
    "embedding, 4096 of 10000 × 64": (
        lambda torch, i, w: torch.nn.functional.embedding(i, w),
        (classes(4096, 10000), (10000, 64)),
    ),
    "embedding, 16384 of 65 × 64": (
        lambda torch, i, w: torch.nn.functional.embedding(i, w),
        (classes(16384, 65), (65, 64)),
    ),
    "attention, 8 × 8 heads × 128 × 32": (
        called("scaled_dot_product_attention"),
        ((8, 8, 128, 32), (8, 8, 128, 32), (8, 8, 128, 32)),
    ),
    "attention, causal, 4 × 8 heads × 256 × 64": (
        called("scaled_dot_product_attention", is_causal=True),
        ((4, 8, 256, 64), (4, 8, 256, 64), (4, 8, 256, 64)),
    ),
    "attention, causal, 1 × 4 heads × 2048 × 64": (
        called("scaled_dot_product_attention", is_causal=True),
        ((1, 4, 2048, 64), (1, 4, 2048, 64), (1, 4, 2048, 64)),
    ),
}


def rows() -> Iterator[Row]:
    """Yield the rows of the group "windows"."""
    for name, (function, shapes) in WINDOWS.items():
        yield from both(name, 0.8, function, *shapes)


def places(*shape: int, below: int) -> Callable[[Any], Any]:
    """Return a function of the module that draws indices below ``below``."""
    return lambda torch: torch.randint(0, below, shape)


def distinct(*shape: int) -> Callable[[Any], Any]:
    """Return a function of the module that draws distinct values, whose order is unique."""
    return lambda torch: torch.randperm(math.prod(shape)).float().view(shape)


PICKING: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gather along 1, 1000 × 1000": (
        lambda torch, x, i: x.gather(1, i),
        ((1000, 1000), places(1000, 1000, below=1000)),
    ),
    "gather along 0, 1000 × 1000": (
        lambda torch, x, i: x.gather(0, i),
        ((1000, 1000), places(1000, 1000, below=1000)),
    ),
    "scatter_add along 1, 1000 × 1000": (
        lambda torch, x, i, y: x.scatter_add(1, i, y),
        ((1000, 1000), places(1000, 1000, below=1000), (1000, 1000)),
    ),
    "index_select of rows, 4000 of 10000 × 64": (
        lambda torch, x, i: x.index_select(0, i),
        ((10000, 64), places(4000, below=10000)),
    ),
    "index_add of rows, 4000 into 10000 × 64": (
        lambda torch, x, i, y: x.index_add(0, i, y),
        ((10000, 64), places(4000, below=10000), (4000, 64)),
    ),
    "x[i], 4000 of 10000 × 64": (lambda torch, x, i: x[i], ((10000, 64), places(4000, below=10000))),
    "masked_fill, 1000 × 1000": (lambda torch, x: x.masked_fill(x.detach() > 0, 0.0), ((1000, 1000),)),
    "x[mask], 1000 × 1000": (lambda torch, x: x[x.detach() > 0], ((1000, 1000),)),
    "topk 10 along 1, 1000 × 1000": (lambda torch, x: x.topk(10, 1)[0], ((1000, 1000),)),
    "sort along 1, 1000 × 1000": (lambda torch, x: x.sort(1)[0], (distinct(1000, 1000),)),
    "sort, 10⁶": (lambda torch, x: x.sort()[0], (distinct(1_000_000),)),
    "cumsum along 1, 1000 × 1000": (lambda torch, x: x.cumsum(1), ((1000, 1000),)),
    "cumsum along 0, 1000 × 1000": (lambda torch, x: x.cumsum(0), ((1000, 1000),)),
    "cumprod along 1, 1000 × 1000": (lambda torch, x: (1 + x / 1000).cumprod(1), ((1000, 1000),)),
    "cat of two, 1000 × 1000": (lambda torch, x, y: torch.cat((x, y)), ((1000, 1000), (1000, 1000))),
    "stack of two, 1000 × 1000": (lambda torch, x, y: torch.stack((x, y), 1), ((1000, 1000), (1000, 1000))),
    "flip along 1, 1000 × 1000": (lambda torch, x: x.flip(1), ((1000, 1000),)),
    "roll by 10 along 1, 1000 × 1000": (lambda torch, x: x.roll(10, 1), ((1000, 1000),)),
    "tril, 1000 × 1000": (lambda torch, x: x.tril(), ((1000, 1000),)),
}

#: The seed is set in every run, so that both engines draw the same numbers.
DRAWING: dict[str, Callable[..., Any]] = {
    "randn, 10⁶": lambda torch: torch.manual_seed(0) and torch.randn(1_000_000),
    "rand, 10⁶": lambda torch: torch.manual_seed(0) and torch.rand(1_000_000),
    "randint, 10⁶": lambda torch: torch.manual_seed(0) and torch.randint(0, 1000, (1_000_000,)),
    "randperm, 10⁵": lambda torch: torch.manual_seed(0) and torch.randperm(100_000),
    "bernoulli, 10⁶": lambda torch: torch.manual_seed(0) and torch.full((1_000_000,), 0.3).bernoulli(),
    "multinomial, 1000 of 1000": lambda torch: (
        torch.manual_seed(0) and torch.ones(1000).multinomial(1000, replacement=True)
    ),
}


def picking() -> Iterator[Row]:
    """Yield the rows of the group "picking"."""
    for name, (function, shapes) in PICKING.items():
        yield from both(name, 0.8, function, *shapes)
    for name, function in DRAWING.items():
        yield Row(name, forward(function), 0.8)
    yield Row("unique, 10⁵", forward(lambda torch, x: torch.unique(x), places(100_000, below=1000)), 0.8)
    yield Row(
        "bincount, 10⁶", forward(lambda torch, x: torch.bincount(x, minlength=1000), places(1_000_000, below=1000)), 0.8
    )
    yield Row(
        "searchsorted, 10⁵",
        forward(
            lambda torch, x: torch.searchsorted(torch.linspace(-3, 3, 1000), x),
            (100_000,),
        ),
        0.8,
        tolerance=2e-3,  # the engines' bin edges differ in the last bit, and a value may fall between
    )
