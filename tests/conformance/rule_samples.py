"""Samples of derivatives of which PyTorch has no record; they are compared with finite differences only.

These are the derivatives that PyTorch does not implement, and operations that only derivative rules call: their own
rules run in derivatives of a higher order than the samples of public operations have.
"""

from __future__ import annotations

from typing import Any

import numpy

from retrograd.dispatch.op import TENSORS
from retrograd.kernels import interpolation
from retrograd.kernels.lapack import LAPACK_ROWS
from tests.conformance.missing_derivative_cases import GAPS, arrays
from tests.conformance.samples import Sample, complexes, normal, positive

PLAN = interpolation.linear(4, 6, None, True)


class RuleSample(Sample):
    """A sample whose expression may also use ``F``, the namespace of operations that derivative rules use."""

    def evaluate(self, torch: Any, tensors: dict[str, Any]) -> list[Any]:
        value = eval(self.expression, {"torch": torch, "F": TENSORS, "numpy": numpy, "plan": PLAN, **tensors})
        return [value] if not isinstance(value, (tuple, list)) else list(value)


def fixed(array: numpy.ndarray) -> Any:
    return lambda rng: array


def values(*numbers: Any) -> Any:
    return fixed(numpy.array(numbers))


INF = numpy.inf
BAG_CALL = "torch.nn.functional.embedding_bag(torch.tensor([0, 2, 1, 0]), x, torch.tensor([0, 2]), mode={}) ** 2"
LARGE = LAPACK_ROWS * numpy.eye(LAPACK_ROWS)
BAG = {"i": values(0, 2, 1, 0), "b": values(0, 0, 1, 1)}
MARGIN = "torch.tensor([0, 2]), torch.tensor([0.5, 1.5, 2.0]).double()"
RULE_SAMPLES: list[Sample] = [
    Sample(gap.name, gap.expression, **dict(zip("xyz", map(fixed, arrays(gap)), strict=False)))
    for gap in GAPS
    if gap.kinds != "vmap"
] + [
    RuleSample(name, expression, **inputs)
    for name, expression, inputs in (
        ("to_device", "F.to_device(x, torch.device('cpu'))", {"x": normal(3)}),
        ("reshape_copy", "F.reshape_copy(x, (3, 2)) ** 2", {"x": normal(2, 3)}),
        ("remainder_of_number", "7.3 % x", {"x": positive(4)}),
        ("remainder_of_number", "-7.3 % x", {"x": positive(4)}),
        ("take_along", "F.take_along(x, i, 1) ** 2", {"x": normal(2, 3), "i": values([0], [2])}),
        ("complex_of", "F.complex_of(x, None, numpy.dtype(complex)) ** 2", {"x": normal(3)}),
        ("complex_of", "F.complex_of(None, x, numpy.dtype(complex)) ** 2 ", {"x": normal(3)}),
        ("outer_block", "F.outer_block(x, y) ** 2", {"x": normal(3, 1), "y": normal(4)}),
        ("cofactors_backward", "F.cofactors_backward(x, y)", {"x": normal(2, 3, 3), "y": normal(2, 3, 3)}),
        ("cofactors_backward", "F.cofactors_backward(x, y)", {"x": complexes(3, 3), "y": complexes(3, 3)}),
        ("as_strided_scatter", "torch.as_strided_scatter(x, y, (2, 2), (1, 2), 1) ** 2", {"x": normal(6), "y": normal(2, 2)}),
        ("unique", "torch.unique(x[[0, 1, 0, 2]]) ** 2", {"x": normal(3)}),
        ("unique", "torch.unique(x[:, [0, 1, 0, 2]], dim=1) ** 2", {"x": normal(2, 3)}),
        ("unique", "torch.unique(x[[0, 1, 0]], dim=0) ** 2", {"x": normal(2, 2, 3)}),
        ("unique", "torch.unique(x[:, [0, 1, 0]], dim=1) ** 2", {"x": normal(2, 2, 3)}),
        ("scatter_reduce", "x.scatter_reduce(0, torch.tensor([0, 0, 1]), y, 'amax', include_self=False) ** 2",
         {"x": values(1.0, 2.0), "y": values(1.0, 0.5, 2.0)}),
        ("scatter_reduce", "x.scatter_reduce(0, torch.tensor([0, 0, 1]), y[[0, 0, 1]], 'amin', include_self=False) ** 2",
         {"x": values(1.0, 2.0), "y": values(1.0, 2.0)}),
        ("minimum_zero", "F.minimum_zero(x) ** 2", {"x": values(-2.0, -0.5, 0.5, 2.0)}),
        ("nll_pick", "F.nll_pick(x, i, w, None, 'sum', -100) ** 2",
         {"x": normal(2, 3), "i": values(0, 2), "w": fixed(numpy.array([1, 2, 3]))}),
        ("margin_slope", f"F.margin_slope(x, {MARGIN}, 2, 1.0)", {"x": normal(2, 3)}),
        ("margin_slope", f"F.margin_slope(x, {MARGIN}, 1, 1.0)", {"x": normal(2, 3)}),
        ("margin_slope", "F.margin_slope(x, torch.tensor(1), None, 2, 1.0)", {"x": normal(3)}),
        ("margin_mask", "F.margin_mask(x, torch.tensor([0, 2]), 1.0)", {"x": normal(2, 3)}),
        ("embedding_double", "F.embedding_double(x, i, 1, True) ** 2", {"x": normal(4, 2), "i": values(0, 2, 1, 0)}),
        ("row_products", "F.row_products(x, y, i, b)", {"x": normal(3, 2), "y": normal(2, 2), **BAG}),
        ("row_sums", "F.row_sums(w, x, i, b, 2)", {"w": normal(4), "x": normal(3, 2), **BAG}),
        ("gamma_moment", "F.gamma_moment(x, y, 1)", {"x": positive(3), "y": positive(3)}),
        ("gamma_moment", "F.gamma_moment(x, y, 2)", {"x": positive(3), "y": positive(3)}),
        ("gamma_moment", "F.gamma_moment(x, y, 3)", {"x": positive(3), "y": positive(3)}),
        ("zeta_sum", "F.zeta_sum(x + 2, y, 0)", {"x": positive(3), "y": positive(3)}),
        ("zeta_sum", "F.zeta_sum(x + 2, y, 1)", {"x": positive(3), "y": positive(3)}),
        ("zeta_sum", "F.zeta_sum(x + 2, y, 2)", {"x": positive(3), "y": positive(3)}),
        ("logcumsumexp", "torch.logcumsumexp(x, 0)[2:]", {"x": values(-INF, -INF, 1.0, 2.0)}),
        ("logcumsumexp", "torch.logcumsumexp(x, 1)[:, 1:]", {"x": values([1.0, -INF, 2.0], [-INF, 0.5, 1.0])}),
        ("recurrence", "F.recurrence(x, y, 1, True)", {"x": normal(2, 4), "y": normal(2, 4)}),
        ("recurrence", "F.recurrence(x, y, 0, False)", {"x": normal(3, 2), "y": normal(3, 2)}),
        ("solve", "torch.linalg.solve(x + s, y)", {"x": normal(*LARGE.shape), "y": normal(len(LARGE), 2), "s": fixed(LARGE)}),
        ("solve", "torch.linalg.solve(x + s, y, left=False)",
         {"x": complexes(*LARGE.shape), "y": complexes(2, len(LARGE)), "s": fixed(LARGE)}),
        ("slogdet", "torch.linalg.slogdet(x + s)[1]", {"x": normal(2, 1, *LARGE.shape), "s": fixed(LARGE)}),
        ("slogdet", "torch.linalg.slogdet(x + s)", {"x": complexes(*LARGE.shape), "s": fixed(LARGE)}),
        ("cofactors_backward", "F.cofactors_backward(x, y)", {"x": normal(4, 4), "y": normal(4, 4)}),
        ("masked_product", "torch.sqrt(F.masked_product(x, i.double()))", {"x": positive(3), "i": values(0, 1, 2)}),
        ("cumprod", "torch.sqrt(torch.cumprod(x.masked_fill(i == 0, 0), 0))", {"x": positive(4), "i": values(0, 1, 1, 1), "second": False}),
        ("rsub_number", "F.rsub_number(x, y, alpha=2.5) ** 2", {"x": normal(3), "y": normal(3)}),
        ("unique", "torch.unique(x) ** 2", {"x": normal(2, 3)}),
        ("resample", "F.resample_back(x, (plan,)) ** 2", {"x": normal(2, 6)}),
        ("resample", "F.resample(x, (plan,)) ** 2", {"x": normal(2, 4)}),
        ("embedding_bag", BAG_CALL.format("'sum', per_sample_weights=y"), {"x": normal(3, 2), "y": normal(4)}),
        *[("embedding_bag", BAG_CALL.format(f"'{mode}'"), {"x": normal(3, 2)}) for mode in ("sum", "mean", "max")],
        ("logcumsumexp", "torch.logcumsumexp(x, 0)[2:]", {"x": values(-INF + 0j, -INF + 0j, 1 + 1j, 2 - 1j)}),
        ("prelu_kernel_backward", "F.prelu_kernel_backward(x, i.double(), y) ** 2",
         {"x": normal(3), "i": values(-1, 0, 1), "y": normal(3)}),
        ("gamma_moment", "F.gamma_moment(x, y, 0)", {"x": positive(3), "y": positive(3)}),
        ("slogdet", "torch.linalg.slogdet(x)[1]", {"x": normal(2, 3, 3)}),
        ("slogdet", "torch.linalg.slogdet(x)", {"x": complexes(3, 3)}),
        ("solve", "torch.linalg.solve(x, y)", {"x": normal(3, 3), "y": normal(3, 2)}),
        ("solve", "torch.linalg.solve(x, y, left=False)", {"x": complexes(3, 3), "y": complexes(2, 3)}),
        ("solve", "torch.linalg.solve(x, y)", {"x": normal(2, 3, 3), "y": normal(2, 3)}),
    )
]  # fmt: skip
