"""Benchmarks of matrix products, einsum, and linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .row import Row, both


def definite(count: int) -> Callable[[Any], Any]:
    """Return a function of the module that draws a well-conditioned symmetric positive definite matrix."""

    def make(torch: Any) -> Any:
        x = torch.randn(count, count)
        return x @ x.t() / count + torch.eye(count)

    return make


WORK: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul, 64 × 64": (lambda torch, x, y: x @ y, ((64, 64), (64, 64))),
    "matmul, 512 × 512": (lambda torch, x, y: x @ y, ((512, 512), (512, 512))),
    "matmul, 1024 × 1024": (lambda torch, x, y: x @ y, ((1024, 1024), (1024, 1024))),
    "matmul of a transpose, 512 × 512": (lambda torch, x, y: x.t() @ y, ((512, 512), (512, 512))),
    "matrix by vector, 2048 × 2048": (lambda torch, x, y: x @ y, ((2048, 2048), (2048,))),
    "linear, 128 × 784 to 256": (
        lambda torch, x, w, b: torch.nn.functional.linear(x, w, b),
        ((128, 784), (256, 784), (256,)),
    ),
    "bmm, 64 of 64 × 64": (lambda torch, x, y: torch.bmm(x, y), ((64, 64, 64), (64, 64, 64))),
    "bmm with a transpose, 64 of 128 × 32": (
        lambda torch, x, y: torch.bmm(x, y.transpose(1, 2)),
        ((64, 128, 32), (64, 128, 32)),
    ),
    "matmul, broadcast, 32 × 128 × 256 by 256 × 256": (lambda torch, x, y: x @ y, ((32, 128, 256), (256, 256))),
    "einsum bhqd,bhkd->bhqk": (
        lambda torch, x, y: torch.einsum("bhqd,bhkd->bhqk", x, y),
        ((8, 8, 64, 32), (8, 8, 64, 32)),
    ),
    "einsum ij,jk,kl->il": (
        lambda torch, x, y, z: torch.einsum("ij,jk,kl->il", x, y, z),
        ((128, 128), (128, 128), (128, 128)),
    ),
    "outer, 1000": (lambda torch, x, y: torch.outer(x, y), ((1000,), (1000,))),
    "solve, 256": (lambda torch, x, y: torch.linalg.solve(x, y), (definite(256), (256, 8))),
    "inv, 256": (lambda torch, x: torch.linalg.inv(x), (definite(256),)),
    "cholesky, 256": (lambda torch, x: torch.linalg.cholesky(x), (definite(256),)),
    "slogdet, 256": (lambda torch, x: torch.linalg.slogdet(x)[1], (definite(256),)),
    "eigvalsh, 128": (lambda torch, x: torch.linalg.eigvalsh(x), (definite(128),)),
    "svdvals, 128": (lambda torch, x: torch.linalg.svdvals(x), (definite(128),)),
    "qr, 128": (lambda torch, x: torch.linalg.qr(x)[1], (definite(128),)),
}


def rows() -> Iterator[Row]:
    """Yield the rows of the group "products"."""
    for name, (function, shapes) in WORK.items():
        yield from both(name, 0.95, function, *shapes, tolerance=1e-3)
