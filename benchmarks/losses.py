"""Benchmarks of softmax, log_softmax, normalisation, gelu, losses and dropout: several passes over the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .row import Row, both


def classes(rows: int, count: int) -> Callable[[Any], Any]:
    """Return a function of the module that returns a class index for each row."""
    return lambda torch: torch.arange(rows) * 7 % count


def dropped(torch: Any, x: Any) -> Any:
    """Return dropout with a fixed seed, so that both engines drop the same elements in every run."""
    torch.manual_seed(1)
    return torch.nn.functional.dropout(x, 0.3)


#: name: (work, the shapes of its inputs)
WORK: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax, 1024 × 1000": (lambda torch, x: torch.softmax(x, 1), ((1024, 1000),)),
    "softmax of 50257, 16 rows": (lambda torch, x: torch.softmax(x, 1), ((16, 50257),)),
    "softmax along 0, 1024 × 1000": (lambda torch, x: torch.softmax(x, 0), ((1024, 1000),)),
    "log_softmax, 1024 × 1000": (lambda torch, x: torch.log_softmax(x, 1), ((1024, 1000),)),
    "cross_entropy, 1024 × 1000": (
        lambda torch, x, y: torch.nn.functional.cross_entropy(x, y),
        ((1024, 1000), classes(1024, 1000)),
    ),
    "cross_entropy, smoothed, 1024 × 1000": (
        lambda torch, x, y: torch.nn.functional.cross_entropy(x, y, label_smoothing=0.1),
        ((1024, 1000), classes(1024, 1000)),
    ),
    "binary_cross_entropy_with_logits, 10⁶": (
        lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, y.detach().sigmoid()),
        ((1_000_000,), (1_000_000,)),
    ),
    "mse_loss, 10⁶": (lambda torch, x, y: torch.nn.functional.mse_loss(x, y.detach()), ((1_000_000,), (1_000_000,))),
    "smooth_l1_loss, 10⁶": (
        lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y.detach()),
        ((1_000_000,), (1_000_000,)),
    ),
    "layer_norm, 1024 × 768": (
        lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (768,), w, b),
        ((1024, 768), (768,), (768,)),
    ),
    "rms_norm, 1024 × 768": (
        lambda torch, x, w: torch.nn.functional.rms_norm(x, (768,), w),
        ((1024, 768), (768,)),
    ),
    "batch_norm, 32 × 64 × 28 × 28": (
        lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
        ((32, 64, 28, 28), (64,), (64,)),
    ),
    "group_norm, 16 × 64 × 28 × 28": (
        lambda torch, x, w, b: torch.nn.functional.group_norm(x, 8, w, b),
        ((16, 64, 28, 28), (64,), (64,)),
    ),
    "gelu, 10⁶": (lambda torch, x: torch.nn.functional.gelu(x), ((1_000_000,),)),
    "gelu by tanh, 10⁶": (lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"), ((1_000_000,),)),
    "silu, 10⁶": (lambda torch, x: torch.nn.functional.silu(x), ((1_000_000,),)),
    "leaky_relu, 10⁶": (lambda torch, x: torch.nn.functional.leaky_relu(x), ((1_000_000,),)),
    "softplus, 10⁶": (lambda torch, x: torch.nn.functional.softplus(x), ((1_000_000,),)),
    "dropout, 10⁶": (dropped, ((1_000_000,),)),
}


def rows() -> Iterator[Row]:
    """Yield the rows of the group "losses"."""
    for name, (function, shapes) in WORK.items():
        yield from both(name, 1.0, function, *shapes)
