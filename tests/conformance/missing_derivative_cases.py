"""Derivatives that PyTorch does not implement and retrograd has, one expression each.

``kinds``: the derivatives that PyTorch lacks: ``backward``, ``twice`` (second order), ``forward``, ``vmap``. All
numbers are float64. ``golden/missing_derivatives.json`` holds PyTorch's errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy


class Gap(NamedTuple):
    """``name``: the operation as docs/differences.md lists it; ``inputs``: the shapes of the tensors x, y, z."""

    kinds: str
    name: str
    expression: str
    inputs: tuple[Any, ...] = ((3,),)
    positive: bool = False


MATRIX, TWO = ((3, 3),), ((4,), (4,))
TEXT = "torch.tensor([[1, 2, 1], [3, 3, 0]]), torch.tensor([5, 4]), torch.tensor([3, 2])"
BAG = "torch.tensor([0, 2, 1, 0]), {}, torch.tensor([0, 2]), mode='{}'"
GAPS = [
    Gap("backward forward", "floor_divide", "torch.floor_divide(x, y)", TWO, True),
    Gap("backward", "remainder of a number", "7.3 % x", ((4,),), True),
    Gap("backward forward", "heaviside", "torch.heaviside(x - 10, y)", TWO),
    Gap("backward forward", "heaviside", "torch.heaviside(0 * x, y)", TWO),
    Gap("backward forward", "igamma", "torch.igamma(x, y)", TWO, True),
    Gap("backward forward", "igammac", "torch.igammac(x, y)", TWO, True),
    Gap("backward forward", "special.zeta", "torch.special.zeta(x + 2, y)", TWO, True),
    Gap("backward", "asinh_, acosh_, atanh_", "(x * 1).asinh_()"),
    Gap("backward", "asinh_, acosh_, atanh_", "(x + 2).acosh_()", ((3,),), True),
    Gap("backward", "asinh_, acosh_, atanh_", "(x * 0.1).atanh_()"),
    Gap("backward forward", "unique", "torch.unique(x)"),
    Gap("backward forward", "unique", "torch.unique(x, dim=0)", MATRIX),
    Gap("backward forward", "unique_consecutive", "torch.unique_consecutive(x)"),
    Gap("backward forward", "geqrf", "torch.geqrf(x)[0]", ((3, 2),)),
    Gap("backward forward", "geqrf", "torch.geqrf(x)[1]", ((3, 2),)),
    Gap("backward forward", "linalg.ldl_factor", "torch.linalg.ldl_factor(x)[0]", MATRIX),
    Gap(
        "backward forward", "linalg.ldl_solve",
        "torch.linalg.ldl_solve(x, torch.tensor([1, 2, 3], dtype=torch.int32), y)", ((3, 3), (3, 2)),
    ),
    Gap("backward", "linalg.cond", "torch.linalg.cond(x, 'fro')", MATRIX),
    Gap("backward", "scatter with reduce", "x.scatter(0, torch.tensor([0, 2]), y, reduce='add')", ((3,), (2,))),
    Gap("backward", "scatter with reduce", "x.scatter(0, torch.tensor([0, 2]), y, reduce='multiply')", ((3,), (2,))),
    Gap("forward", "cholesky", "torch.cholesky(x @ x.mT + torch.eye(3, dtype=x.dtype))", MATRIX),
    Gap("forward", "ormqr", "torch.ormqr(x, y, z)", ((3, 2), (2,), (3, 2))),
    *[
        Gap("forward", "index_reduce", f"x.index_reduce(0, torch.tensor([0, 2, 0]), y, '{how}')", ((3,), (3,)), True)
        for how in ("mean", "prod", "amin", "amax")
    ],
    Gap("twice forward", "cdist", "torch.cdist(x, y)", ((3, 2), (2, 2))),
    Gap("twice forward", "pdist", "torch.nn.functional.pdist(x)", ((3, 2),)),
    Gap("twice", "hardsigmoid", "torch.nn.functional.hardsigmoid(x) ** 2"),
    Gap("twice forward", "multi_margin_loss", "torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 2, 1]), p=2)", MATRIX),
    Gap(
        "twice forward", "multilabel_margin_loss",
        "torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, 2, -1], [1, -1, 0], [2, 1, -1]])) ** 2", MATRIX,
    ),
    Gap("twice forward", "ctc_loss", f"torch.nn.functional.ctc_loss(x.log_softmax(2), {TEXT})", ((5, 2, 4),)),
    Gap(
        "twice forward", "embedding_bag",
        f"torch.nn.functional.embedding_bag({BAG.format('x', 'sum')}, per_sample_weights=y)", ((3, 2), (4,)),
    ),
    Gap("forward", "embedding_bag", f"torch.nn.functional.embedding_bag({BAG.format('x', 'mean')})", ((3, 2),)),
    Gap("forward", "embedding_bag", f"torch.nn.functional.embedding_bag({BAG.format('x', 'max')})", ((3, 2),)),
    Gap("twice", "layer_norm with a bias and no weight", "torch.nn.functional.layer_norm(x, (3,), None, y)", ((2, 3), (3,))),
    Gap("forward", "grid_sample", "torch.nn.functional.grid_sample(x, y / 4, align_corners=False)", ((1, 1, 3, 3), (1, 2, 2, 2))),
    Gap(
        "forward", "grid_sample", "torch.nn.functional.grid_sample(x, y / 4, align_corners=True)",
        ((1, 1, 2, 3, 2), (1, 1, 2, 2, 3)),
    ),
    Gap("vmap", "cov with weights", "torch.cov(x, aweights=y)", ((2, 3), (3,)), True),
    Gap("vmap", "as_strided_scatter", "torch.as_strided_scatter(x, y, (2,), (1,), 1)", ((4,), (2,))),
    Gap("vmap", "rrelu", "torch.nn.functional.rrelu(x)", ((4,),)),
    Gap("vmap", "narrow from a tensor", "torch.narrow(x, 0, torch.tensor(1), 2)", ((4,),)),
    Gap("vmap", "tensor_split at a tensor", "torch.tensor_split(x, torch.tensor([1, 2]))[1]", ((4,),)),
    Gap("vmap", "column_stack", "torch.column_stack([x, y])", TWO),
    Gap("vmap", "gaussian_nll_loss", "torch.nn.functional.gaussian_nll_loss(x, y, z)", ((4,), (4,), (4,)), True),
    Gap("vmap", "histogramdd", "torch.histogramdd(x, 2).hist", ((4, 2),)),
]  # fmt: skip


def arrays(gap: Gap) -> list[numpy.ndarray]:
    """Return the inputs of a gap as arrays: distinct, no integers."""
    rng = numpy.random.default_rng(len(gap.expression))
    values = [
        rng.permutation(numpy.linspace(-1.7, 2.3, int(numpy.prod(shape)) + 2)[1:-1]).reshape(shape)
        for shape in gap.inputs
    ]
    return [numpy.abs(each) + 0.3 + 0.1 * k if gap.positive else each for k, each in enumerate(values)]


def tensors(torch: Any, gap: Gap, **options: Any) -> list[Any]:
    """Return the inputs of a gap as tensors."""
    return [torch.tensor(each.tolist(), dtype=torch.float64, **options) for each in arrays(gap)]


def as_function(torch: Any, gap: Gap) -> Any:
    """Return the expression as a function of its tensors."""
    return eval(f"lambda {', '.join('xyz'[: len(gap.inputs)])}: {gap.expression}", {"torch": torch})


def error_of(torch: Any, gap: Gap, kind: str) -> str:
    """Return an engine's error for a derivative, or an empty text."""
    call = as_function(torch, gap)
    try:
        if kind == "vmap":
            torch.func.vmap(call)(*[torch.stack([each, each]) for each in tensors(torch, gap)])
        elif kind == "forward":
            with torch.autograd.forward_ad.dual_level():
                call(
                    *[torch.autograd.forward_ad.make_dual(each, torch.ones_like(each)) for each in tensors(torch, gap)]
                )
        else:
            given = tensors(torch, gap, requires_grad=True)
            first = torch.autograd.grad(
                call(*given).sin().sum(), given, create_graph=kind == "twice", allow_unused=True
            )
            if kind == "twice":
                torch.autograd.grad(
                    sum(each.sin().sum() for each in first if each is not None), given, allow_unused=True
                )
    except (RuntimeError, NotImplementedError) as error:
        return str(error).splitlines()[0]
    return ""
