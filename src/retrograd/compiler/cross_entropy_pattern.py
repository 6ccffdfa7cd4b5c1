"""Cross-entropy of a small matrix of scores, and its gradient, each computed by a single loop.

The loop replaces the recorded operations log_softmax and nll_loss, for which NumPy needs about 24 calls. After a matrix
product that has filled the CPU cache, these 24 calls take as long as the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from ..dispatch.op import OPS
from ..dispatch.operand_promotion import F32, F64
from ..kernels.class_losses import INT
from ..kernels.numba_dispatch import LARGE, loops
from .ir import ExtraOp, Step, Value

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, ArrayModule, Function, Gradient
    from .typing import Operand


def merge_cross_entropy(steps: Sequence[Step]) -> list[Step]:
    """Return the recorded operations ``steps`` with log_softmax and nll_loss merged into one step where possible.

    The gradients of the two operations are also merged into one step.
    """
    maker = {value: step for step in steps for value in step.results}
    readers: dict[Value, list[Step]] = {}
    for step in steps:
        for each in step.values():
            readers.setdefault(each, []).append(step)
    found: dict[Step, None] = {}
    for step in steps:
        before = maker.get(step.operands[0]) if step.operands and step.operands[0].__class__ is Value else None
        made = None
        if before is not None and (join := MERGES.get((before.op.name, step.op.name))) is not None:
            of_it = readers[before.results[0]]
            if of_it[0] is step and (len(of_it) == 1 or join is _merge_loss):
                made = join(before, step)
        if before is not None and made is not None:
            del found[before]
        found[made or step] = None
    return list(found)


def _loops_apply(scores: Value, target: Value, weight: Operand, dim: int, reduction: str, ignore: int) -> bool:
    """Whether one of the generated loops can compute a cross-entropy with these parameters.

    ``scores`` must be a matrix with one row for each sample and fewer than ``LARGE`` float32 or float64 elements, and
    ``target`` must be int64. ``weight`` must be None, and ``reduction`` ``"mean"`` or ``"sum"``. ``ignore``, the
    argument ``ignore_index``, must not be the index of a column of ``scores``.
    """
    return (
        weight is None
        and scores.dtype in (F32, F64)
        and len(scores.shape) == 2
        and dim in (1, -1)
        and 0 < scores.size < LARGE
        and target.__class__ is Value
        and target.dtype == INT
        and target.shape == scores.shape[:1]
        and reduction in ("mean", "sum")
        and not 0 <= ignore < scores.shape[1]
    )


def _merge_loss(first: Step, second: Step) -> Step | None:
    (scores,), (dim,) = first.operands, first.params
    _, target, weight = second.operands
    reduction, ignore = second.params
    if not _loops_apply(scores, target, weight, dim, reduction, ignore):
        return None
    kernel = _loss_kernel(scores.dtype, reduction, ignore)
    op = ExtraOp("likelihood", kernel)
    return Step(op, (scores, target), (), (*first.results, *second.results), True, second.line)


def _loss_kernel(dtype: ArrayDType, reduction: str, ignore: int) -> Function:
    kind, empty, loop = dtype.type, numpy.empty, loops("cross_entropy").likelihood
    general, chosen = OPS["log_softmax_block"].kernel, OPS["nll_loss_block"].kernel

    def likelihood(np: ArrayModule, scores: Array, target: Array) -> tuple[Array, Array, Array]:
        logs = empty(scores.shape, dtype)
        whole, known = loop(scores, target, logs)
        if not known:  # a target is ``ignore_index`` or out of range
            logs = general(np, scores, 1)
            return logs, *chosen(np, logs, target, None, reduction, ignore)
        rows = len(target)
        return logs, kind(-whole / rows if reduction == "mean" else -whole), kind(rows)

    return likelihood


def _merge_gradient(first: Step, second: Step) -> Step | None:
    g, target, weight, total = first.operands
    shape, reduction, ignore = first.params
    logs = second.operands[1]
    (dim,) = second.params
    if (
        logs.__class__ is not Value
        or logs.shape != shape
        or not _loops_apply(logs, target, weight, dim, reduction, ignore)
    ):
        return None
    op = ExtraOp("likelihood_slope", _gradient_kernel(logs.dtype, reduction, ignore))
    return Step(op, (g, target, total, logs), (), second.results, False, second.line)


def _gradient_kernel(dtype: ArrayDType, reduction: str, ignore: int) -> Function:
    empty, loop = numpy.empty, loops("cross_entropy").likelihood_slope
    placed, general = OPS["nll_loss_backward"].kernel, OPS["log_softmax_backward_data"].kernel

    def likelihood_slope(np: ArrayModule, g: Gradient, target: Array, total: Array, logs: Array) -> Array:
        out = empty(logs.shape, dtype)
        if loop(logs, target, (g / total if reduction == "mean" else g)[()], out):
            return out
        return general(np, placed(np, g, target, None, total, logs.shape, reduction, ignore), logs, 1)

    return likelihood_slope


#: For each pair of adjacent operations that is merged the function that merges it.
MERGES = {
    ("log_softmax_block", "nll_loss_block"): _merge_loss,
    ("nll_loss_backward", "log_softmax_backward_data"): _merge_gradient,
}
