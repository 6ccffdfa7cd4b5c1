"""Losses whose targets are class indices: nll_loss, cross_entropy, multi_margin_loss, ctc_loss and others."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.devices import array_module_of, on_gpu
from ...core.dtypes import scalar_name, unsupported
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import op, pointwise, public, shared, with_fast_path
from ...dispatch.form import FIRST
from ...dispatch.operand_promotion import F32, F64
from ...dispatch.transform_tensor import slicewise
from ...kernels import class_losses, ctc
from ..creation.conversion import numpy_array_of
from ..creation.factory import zeros_like
from ..elementwise.arithmetic import neg
from ..elementwise.comparison import eq, isinf
from ..elementwise.rounding import clamp_min
from ..linalg.derivative_programs import ctc_gradient, vjp_by_autograd
from ..reductions.sums import sum
from ..shape.join import where_
from ..shape.views import view
from .linear import linear
from .losses import REDUCTIONS, numbered_reduction, parse_reduction, reduce_losses
from .softmax import log_softmax_block

# -- Negative log-likelihood -----------------------------------------------------------------------------------------


def is_plain_nll(self: Any, target: Any, weight: Any, reduction: Any, _d: Any) -> Any:
    """Return a true value if the arguments of :func:`nll_loss` are simple and need no checks.

    In this case, ``nll_loss`` computes its result directly on the arrays. The arguments are simple if ``self`` (N, C)
    is float32 or float64, ``target`` holds N int64 class indices, ``weight`` is None and ``reduction`` is a valid name.
    ``_d`` is the dtype of ``self``.
    """
    return (
        (_d is F32 or _d is F64) and weight is None and self.ndim == 2 and target.ndim == 1
        and target.dtype is class_losses.INT and len(target) == len(self) and reduction in REDUCTIONS
    )  # fmt: skip


def _nll_block(name: str, backward: str) -> Any:
    def kernel(np: Any, self: Any, target: Any, weight: Any, /, reduction: str, ignore_index: int) -> Any:
        """Return the negative log-likelihood loss of ``self``, and the sum of the target weights.

        The loss of sample n is ``-self[n, target[n]] * weight[target[n]]``. The losses are reduced by ``reduction``. A
        mean is the sum of the losses divided by the sum of the weights. Targets equal to ``ignore_index`` are excluded.
        """
        if self.dtype.kind in "biuc":
            raise unsupported(f"{name}_out_frame", self.dtype)
        return class_losses.likelihood_loss(np, target, self, weight, reduction, ignore_index)

    block = op(
        function=False, method=False, name=f"{name}_block", backward=backward, outputs=("out", "total_weight"),
        differentiable=1, optional=("weight",), connected="zero", event="nll_loss_forward" if name == "nll_loss" else None,
    )(kernel)  # fmt: skip
    block.derivative(
        self=lambda F, g, target, weight, total_weight, self_shape, reduction, ignore_index: F.nll_loss_backward(
            g, target, weight, total_weight, self_shape, reduction, ignore_index
        )
    )
    return block


nll_loss_block = _nll_block("nll_loss", "NllLossBackward0")
nll_loss2d_block = _nll_block("nll_loss2d", "NllLoss2DBackward0")


@op(function=False, method=False, vmap="slices")
def nll_loss_backward(
    np: Any, grad_output: Any, target: Any, weight: Any, total_weight: Any, /, shape: tuple[int, ...], reduction: str,
    ignore_index: int,
) -> Any:  # fmt: skip
    """Return the gradient of ``nll_loss`` with respect to its input, which has the shape ``shape``.

    The gradient is 0 except at the target class of each sample. For a mean, the gradient is divided by
    ``total_weight``, the sum of the target weights.
    """
    out = np.zeros(shape, grad_output.dtype)
    counts = class_losses.check_classes(np, target, shape[0] if len(shape) == 1 else shape[1], ignore_index)
    index, share = class_losses.class_weights(np, target, counts, weight, out.dtype)
    values = -grad_output if reduction != "mean" else -grad_output / total_weight
    if share is not None:
        values = values * share
    if counts is not None:  # 0, not nan, for ignored targets: if all are ignored, the total weight is 0
        values = np.where(counts, values, np.zeros((), out.dtype))
    class_losses.place(np, out, index, np.broadcast_to(values, index.shape))
    return out


@op(function=False, method=False, vmap="slices")
def nll_pick(
    np: Any, self: Any, target: Any, weight: Any, total_weight: Any, /, reduction: str, ignore_index: int
) -> Any:
    """Return the gradient of ``nll_loss_backward`` with respect to its ``grad_output``, for second derivatives.

    The gradient is ``nll_loss`` of ``self``, because ``nll_loss`` is linear in its input. The only difference is that a
    mean is the sum of the losses divided by ``total_weight``, the sum of the target weights that ``nll_loss`` has
    computed.
    """
    counts = class_losses.check_classes(np, target, self.shape[0] if self.ndim == 1 else self.shape[1], ignore_index)
    index, share = class_losses.class_weights(np, target, counts, weight, self.dtype)
    result = -class_losses.pick(np, self, index)
    result = result if share is None else result * share
    if reduction == "none":
        return result
    total = np.add.reduce(result, None)
    return total / total_weight if reduction == "mean" else total


nll_loss_backward.derivative(
    grad_output=lambda F, g, target, weight, total_weight, reduction, ignore_index: F.nll_pick(
        g, target, weight, total_weight, reduction, ignore_index
    )
)
nll_pick.derivative(
    self=lambda F, g, target, weight, total_weight, self_shape, reduction, ignore_index: F.nll_loss_backward(
        g, target, weight, total_weight, self_shape, reduction, ignore_index
    )
)


def _check_weight(input: Tensor, weight: Tensor | None, classes: int, spatial: bool) -> None:
    if weight is None:
        return
    if weight.ndim != 1 or weight.numel() != classes:
        raise RuntimeError(
            "weight tensor should be defined either for all or no classes" if spatial else
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )  # fmt: skip
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(weight.dtype)}")


def _check_target(input: Tensor, target: Tensor) -> None:
    if not input.ndim:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    if input.ndim != 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 0})."
        )


def _check_long(target: Tensor) -> None:
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int) -> Tensor:
    x, labels = input._array, target._array
    if (
        weight is None
        and x.ndim == 2
        and labels.ndim == 1
        and labels.dtype is class_losses.INT
        and len(labels) == len(x)
    ):
        plain: Tensor = _plain_nll(input, target, None, reduction, ignore_index)
        return plain
    _check_target(input, target)
    shape = tuple(input.shape)
    if len(shape) in (1, 2):
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        _check_long(target)
        if len(shape) == 1 and target.ndim == 1:
            if target.numel() != 1:
                raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}")
            target = view(target, ())
        _check_weight(input, weight, shape[-1], False)
        result: Tensor = nll_loss_block(input, target, weight, reduction, ignore_index)[0]
        return result
    if len(shape) == 4:
        if target.ndim != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                + str(target.ndim)
            )
    elif tuple(target.shape[1:]) != shape[2:]:
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(target.shape)}")
    _check_long(target)
    _check_weight(input, weight, shape[1], True)
    if len(shape) == 4:
        if tuple(target.shape) != (shape[0], *shape[2:]):
            raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target.shape)}")
        result = nll_loss2d_block(input, target, weight, reduction, ignore_index)[0]
        return result
    flat = view(input.contiguous(), (shape[0], shape[1], 1, math.prod(shape[2:])))
    result = nll_loss2d_block(
        flat, view(target.contiguous(), (shape[0], 1, math.prod(shape[2:]))), weight, reduction, ignore_index
    )[0]
    return view(result, (shape[0], *shape[2:])) if reduction == "none" else result


@public(function=False, method=False, fast_path=nll_loss_block, if_arrays=is_plain_nll, result_class=FIRST)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the negative log-likelihood loss: the weighted mean of ``-input[n, target[n]]``.

    ``input`` holds log-probabilities, of shape (N, C, …) or (C,). ``target`` holds class indices, of shape (N, …) or
    (). ``weight`` (C,) has one factor per class, and a mean is divided by the sum of the factors of the targets.
    Targets equal to ``ignore_index`` are excluded. ``reduction`` is ``"mean"``, ``"sum"``, or ``"none"`` for one loss
    per target.
    """
    return _nll(input, target, weight, parse_reduction(size_average, reduce, reduction), ignore_index)


def _first_of_block(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int) -> Any:
    return nll_loss_block(input, target, weight, reduction, ignore_index)[0]


#: ``nll_loss`` of checked arguments.
_plain_nll = with_fast_path(_first_of_block, nll_loss_block, if_arrays=is_plain_nll, result_class=FIRST)


# -- Cross entropy ---------------------------------------------------------------------------------------------------


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Return :func:`nll_loss` of the log-softmax of the scores ``input``.

    ``input`` has shape (N, C, …). ``target`` holds class indices, of shape (N, …), or class probabilities, of the shape
    of ``input``. ``label_smoothing`` is the part of each target probability that is distributed evenly over all
    classes. ``weight``, ``ignore_index`` and ``reduction`` are those of :func:`nll_loss`.

    >>> import retrograd as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """
    plain = reduction == "mean" and size_average is None and reduce is None
    reduction_name = reduction if plain else parse_reduction(size_average, reduce, reduction)
    x, labels = input._array, target._array
    if weight is None and not label_smoothing and x.ndim == 2 and labels.ndim == 1 and labels.dtype is class_losses.INT:
        return _nll(log_softmax_block(input, 1), target, None, reduction_name, ignore_index)
    if labels.shape == x.shape:
        return _cross_entropy_of_probabilities(input, target, weight, reduction_name, ignore_index, label_smoothing)
    if label_smoothing > 0:
        return _smoothed_cross_entropy(input, target, weight, reduction_name, ignore_index, label_smoothing)
    return _nll(
        log_softmax_block(input, 0 if input._array.ndim == 1 else 1), target, weight, reduction_name, ignore_index
    )


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:  # fmt: skip
    """Return :func:`cross_entropy` of ``input @ linear_weight.T + linear_bias``.

    ``linear_weight`` has shape (C, features). With the shape (C, …, features), each input has several vectors of C
    scores, and a loss for each of them. ``options`` has no effect. In PyTorch, ``options`` chooses an implementation
    that saves memory.

    >>> import retrograd as torch
    >>> input, weight = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> torch.nn.functional.linear_cross_entropy(input, weight, torch.tensor([0]))
    tensor(0.1269)
    """
    outs = linear_weight.shape[:-1]
    _check_linear(input, linear_weight, linear_bias)
    if target.is_floating_point() and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    flat = None if linear_bias is None else linear_bias.reshape(-1)
    scores = linear(input, linear_weight.reshape(-1, linear_weight.size(-1)) if len(outs) > 1 else linear_weight, flat)
    if len(outs) > 1:
        scores = scores.reshape(-1, *outs)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, None, ignored, None, reduction, label_smoothing)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise RuntimeError if the shapes of the first arguments of ``linear_cross_entropy`` do not fit."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.dim()}")
    features, (*outs, expected) = input.shape[-1], weight.shape
    if features != expected:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {features} and {expected}, "
            "respectively"
        )
    if bias is not None and list(bias.shape) != outs:
        raise RuntimeError(f"expected linear_bias shape {tuple(outs)}, got {tuple(bias.shape)}")
    if len(outs) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )


def _log_softmax(input: Tensor) -> Tensor:
    result: Tensor = log_softmax_block(input, 0 if input._array.ndim == 1 else 1)
    return result


def _check_smoothing(share: float) -> None:
    if not 0 <= share <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {share:g}")


@pointwise(
    lambda g, number: g / number, backward="DivBackward1", function=False, method=False, in_place=False
)  # fmt: skip
def divided(np: Any, self: Any, /, number: float) -> Any:
    """Return ``self / number``, with an autograd node named ``DivBackward1``.

    PyTorch uses this name for a division by a Python number. If ``number`` is 0, the result is nan.
    """
    return self / (number or np.nan)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, smoothing: float
) -> Tensor:
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {scalar_name(target.dtype)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    _check_smoothing(smoothing)
    at = 0 if input.ndim == 1 else 1
    classes = input.shape[at]
    _check_weight(input, weight, classes, False)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    each = log_softmax_block(input, at) * target
    if weight is not None:
        each = each * view(weight, [-1 if axis == at else 1 for axis in range(input.ndim)])
    if reduction == "none":
        return neg(sum(each, at))
    return neg(sum(each)) if reduction == "sum" else divided(neg(sum(each)), input.numel() / (classes or 1))


@slicewise
def _smoothed_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, smoothing: float
) -> Tensor:
    _check_smoothing(smoothing)
    at = 0 if input.ndim == 1 else 1
    classes = input.shape[at]
    logs = _log_softmax(input)
    exact = _nll(logs, target, weight, reduction, ignore_index)
    shape = [-1 if axis == at else 1 for axis in range(input.ndim)]
    even = neg(sum(logs if weight is None else logs * view(weight, shape), at))
    ignored = eq(target, ignore_index)
    even = even.masked_fill(ignored, 0)
    if reduction == "mean":
        counted = wrap(~ignored._array)
        if weight is None:
            number = counted._array.sum()
            even = sum(even) / (1 if input.is_meta else wrap(number) if on_gpu(number) else int(number))
        elif on_gpu(target._array):
            np = array_module_of(target._array)
            of_target = weight._array[np.where(ignored._array, 0, target._array)]
            even = sum(even) / sum(wrap(np.where(ignored._array, of_target.dtype.type(0), of_target)))
        elif input.is_meta:
            even = sum(even) / sum(weight)
        else:
            even = sum(even) / sum(wrap(weight._array[target._array[counted._array]]))
    elif reduction == "sum":
        even = sum(even)
    return exact * (1 - smoothing) + even * (smoothing / classes)


# -- Margin losses ---------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    return x.reshape(1, -1) if x.ndim < 2 else x


def _reduced_rows(np: Any, each: Any, shape: tuple[int, ...], reduction: str) -> Any:
    if reduction == "none":
        return each if len(shape) == 2 else each[0]
    return np.add.reduce(each) / (each.size if reduction == "mean" else 1)


def _margin_rule(F: Any, g: Any, slope: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """Return the gradient of a margin loss with respect to its input of shape ``shape``, (N, C) or (C,).

    ``slope`` (N, C) is the derivative of the sum of the margins of each row. The loss of a row is this sum divided by
    C. Therefore the gradient is ``slope / C`` times ``g``, the gradient of the reduced loss. If ``reduction`` is
    ``"mean"``, it is also divided by N.
    """
    count, classes = shape if len(shape) == 2 else (1, math.prod(shape))
    each = F.reshape(g, (-1, 1)) / (classes * (count if reduction == "mean" else 1))
    return F.reshape(slope * each, shape)


def _margin_loss(backward: str) -> Any:
    return op(function=False, method=False, backward=backward)


@_margin_loss("MultiMarginLossBackward0")
def multi_margin_loss_block(
    np: Any, self: Any, target: Any, weight: Any, /, p: int, margin: float, reduction: str
) -> Any:
    """Return the multi-class margin loss of the scores ``self``, reduced by ``reduction``.

    The loss of a row x of C scores is the sum of ``max(0, margin - x[target] + x[class]) ** p`` over all classes other
    than the target, divided by C. ``weight`` is None or has one factor for each target class.
    """
    if self.dtype not in (np.float32, np.float64):
        raise unsupported("multi_margin_loss_cpu_kernel", self.dtype)
    x, index = _rows(self), target.reshape(-1)
    if index.size and not on_gpu(index) and not (index.min() >= 0 and index.max() < x.shape[1]):
        raise RuntimeError("target out of range")
    gap, _ = class_losses.margins(np, x, index, margin)
    each = np.add.reduce(gap if p == 1 else gap * gap, 1) / x.shape[1]
    return _reduced_rows(np, each if weight is None else each * weight[index], self.shape, reduction)


@op(function=False, method=False, vmap="slices")
def margin_mask(np: Any, self: Any, target: Any, /, margin: float) -> Any:
    """Return an array that is 1 for each class with a positive margin in ``multi_margin_loss``, and 0 elsewhere.

    The margin of a class is positive if its score in ``self`` plus ``margin`` exceeds the score of the target class.
    """
    gap, _ = class_losses.margins(np, _rows(self), target.reshape(-1), margin)
    return (gap > 0).astype(self.dtype)


@op(function=False, method=False, vmap="slices")
def margin_slope(np: Any, self: Any, target: Any, weight: Any, /, p: int, margin: float) -> Any:
    """Return the derivative (N, C) of the sum of the margins of each row x of ``self``, for ``multi_margin_loss``.

    The margin of a class is ``max(0, margin - x[target] + x[class]) ** p``. The sum excludes the target class.
    ``weight`` is None or has one factor for each target class.
    """
    index = target.reshape(-1)
    gap, rows = class_losses.margins(np, _rows(self), index, margin)
    slope = (gap > 0).astype(self.dtype) if p == 1 else 2 * gap
    if weight is not None:
        slope *= weight[index][:, None]
    slope[rows, index] = -np.add.reduce(slope, 1)
    return slope


def _margin_backward_self(
    F: Any, g: Any, self: Any, target: Any, weight: Any, self_shape: Any, out_shape: Any, p: int, margin: float
) -> Any:
    if p == 1:
        return F.zeros_as(F.reshape(g, self_shape))
    index = F.reshape(target, (-1, 1))
    each = 2 * F.margin_mask(self, target, margin)
    if weight is not None:
        each = each * F.reshape(F.take_along(F.reshape(weight, (1, -1)), F.reshape(target, (1, -1)), 1), (-1, 1))
    across = each * (g - F.take_along(g, index, 1))
    result = across - F.put_along(F.sum_dim(across, 1, True), index, out_shape, 1)
    return F.reshape(result, self_shape)


margin_mask.derivative(self=lambda F, g, self_shape: F.zeros_as(F.reshape(g, self_shape)))
margin_slope.derivative(self=_margin_backward_self)
multi_margin_loss_block.derivative(
    self=lambda F, g, self, target, weight, self_shape, p, margin, reduction: _margin_rule(
        F, g, F.margin_slope(self, target, weight, p, margin), self_shape, reduction
    )
)


def _check_scores(shape: list[int]) -> None:
    """Raise RuntimeError unless ``shape`` is (N, C), (C,) or (), with C > 0."""
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}")


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the multi-class margin loss of the scores ``input``, reduced by ``reduction``.

    The loss of a row x of C scores is the sum of ``max(0, margin - x[target] + x[class]) ** p`` over all classes other
    than the target, divided by C. ``input`` has shape (N, C) or (C,). ``target`` holds class indices, of shape (N,) or
    (). ``p`` is 1 or 2. ``weight`` (C,) has one factor for each target class.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    shape = list(input.shape)
    _check_scores(shape)
    count = shape[0] if len(shape) == 2 else 1
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size)."
            f" Expected target size [{count}], but got {list(target.shape)}. Input has shape {shape}."
        )
    if weight is not None and weight.numel() != shape[-1]:
        raise RuntimeError(f"inconsistent weight size, expected {shape[-1]} but got {list(weight.shape)}")
    _check_class_indices(target)
    result: Tensor = multi_margin_loss_block(input, target, weight, p, margin, reduction_name)
    return result


def _check_class_indices(target: Tensor) -> None:
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtypes.scalar_name(target.dtype)}")


def _margins_by_class(np: Any, x: Any, target: Any) -> Any:
    """Yield the pair (classes, margins) for each column of ``target``, for the multi-label margin loss.

    Each row of ``target`` lists the target classes of the same row of ``x`` (N, C), up to the first -1. ``classes``
    (N,) holds the target class of each row in this column. ``margins`` (N, C) holds the margin
    ``max(0, 1 - x[t] + x[o])`` between this target class t and each class o of the row. The margin is 0 if o is a
    target class of the row, too, or if the list of the row has ended before this column.
    """
    counts, named = class_losses.listed(np, target)
    for k in range(target.shape[1]):
        at = np.where(counts[:, k], target[:, k], 0)
        gap = 1 - (np.take_along_axis(x, at[:, None], 1) - x)
        np.copyto(gap, 0, where=named | ~counts[:, k : k + 1])
        yield at, np.maximum(gap, 0, out=gap)


@_margin_loss("MultilabelMarginLossBackward0")
def multilabel_margin_loss_block(np: Any, self: Any, target: Any, /, reduction: str) -> Any:
    """Return the multi-label margin loss of ``self``, reduced by ``reduction``.

    The loss of a row x of C scores is the sum of ``max(0, 1 - x[t] + x[o])`` over all target classes t and all other
    classes o, divided by C. Each row of ``target`` lists target classes up to the first -1.
    """
    if self.dtype not in (np.float32, np.float64):
        raise unsupported("multilabel_margin_loss_forward_out_frame", self.dtype)
    x, index = _rows(self), _rows(target)
    if index.size and not on_gpu(index) and not (index.min() >= -1 and index.max() < x.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    each = np.zeros(x.shape[0], x.dtype)
    for _, gap in _margins_by_class(np, x, index):
        each += np.add.reduce(gap, 1)
    return _reduced_rows(np, each / x.shape[1], self.shape, reduction)


@op(function=False, method=False, vmap="slices")
def label_margin_slope(np: Any, self: Any, target: Any, /) -> Any:
    """Return the derivative (N, C) of the sum of the margins of each row x of ``self``.

    The margins are ``max(0, 1 - x[t] + x[o])`` for all target classes t and all other classes o, as in
    ``multilabel_margin_loss``. Each row of ``target`` lists target classes up to the first -1.
    """
    x = _rows(self)
    slope = np.zeros(x.shape, x.dtype)
    rows = np.arange(x.shape[0])
    for at, gap in _margins_by_class(np, x, _rows(target)):
        near = gap > 0
        slope += near
        slope[rows, at] -= np.add.reduce(near, 1, x.dtype)
    return slope


label_margin_slope.derivative(self=lambda F, g, self_shape: F.zeros_as(F.reshape(g, self_shape)))
multilabel_margin_loss_block.derivative(
    self=lambda F, g, self, target, self_shape, reduction: _margin_rule(
        F, g, F.label_margin_slope(self, target), self_shape, reduction
    )
)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the multi-label margin loss of ``input``, reduced by ``reduction``.

    The loss of a row x of C scores is the sum of ``max(0, 1 - x[t] + x[o])`` over all target classes t and all other
    classes o, divided by C. ``input`` has shape (N, C) or (C,). ``target`` has the same shape, and each of its rows
    lists target classes up to the first -1.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    _check_scores(list(input.shape))
    if input.shape != target.shape and not (input.ndim <= 1 and input.numel() == target.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_class_indices(target)
    result: Tensor = multilabel_margin_loss_block(input, target, reduction_name)
    return result


# -- Connectionist temporal classification (CTC) ---------------------------------------------------------------------


@op(
    function=False, method=False, backward="CtcLossBackward0", outputs=("out", "log_alpha"), differentiable=1,
    name="ctc_loss_block",
)  # fmt: skip
def ctc_loss_block(
    np: Any, self: Any, labels: Any, input_lengths: Any, target_lengths: Any, /, zero_infinity: bool
) -> Any:
    """Return the CTC losses (N,), and the logarithms of the forward variables, which the gradient needs.

    The forward variable of time step t and label s is the total probability of all alignments of the steps up to t with
    the labels up to s.

    ``self`` holds log-probabilities, of shape (T, N, C). ``labels`` (N, 2 S + 1) holds the target sequences with blanks
    inserted. ``input_lengths`` and ``target_lengths`` (N,) are the lengths of the sequences. ``zero_infinity`` is used
    only for the gradient.
    """
    if self.dtype not in (np.float32, np.float64):
        raise unsupported("ctc_loss_cpu", self.dtype)
    return ctc.forward(np, self, labels, input_lengths, target_lengths)


@op(function=False, method=False, backward="NotImplemented", vmap="slices")
def ctc_loss_backward(
    np: Any, grad_output: Any, self: Any, labels: Any, input_lengths: Any, target_lengths: Any, loss: Any,
    log_alpha: Any, /, zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return the gradient of ``ctc_loss`` with respect to the log-probabilities ``self``.

    ``loss`` and ``log_alpha`` are the results of ``ctc_loss_block`` for the same operands. If ``zero_infinity`` is
    true, the gradient of an infinite loss is 0.
    """
    return ctc.gradient(np, grad_output, self, labels, input_lengths, target_lengths, loss, log_alpha, zero_infinity)


ctc_loss_block.derivative(
    self=lambda F, g, self, labels, input_lengths, target_lengths, out, log_alpha, zero_infinity: F.ctc_loss_backward(
        g, self, labels, input_lengths, target_lengths, out, log_alpha, zero_infinity
    )
)


@shared
def _ctc_backward_rule(
    F: Any,
    g: Any,
    grad_output: Any,
    self: Any,
    labels: Any,
    input_lengths: Any,
    target_lengths: Any,
    zero_infinity: bool,
) -> Any:
    lab, have, want = (
        each if isinstance(each, Tensor) else wrap(each) for each in (labels, input_lengths, target_lengths)
    )
    given = [grad_output, self]
    return vjp_by_autograd(F, lambda slope, probs: ctc_gradient(slope, probs, lab, have, want, zero_infinity), given, g)


ctc_loss_backward.derivative(grad_output=_ctc_backward_rule, self=_ctc_backward_rule)


def _lengths(name: str, given: Any, batch: int) -> Any:
    if isinstance(given, Tensor) and given.is_meta:
        raise devices.meta().no_values("_ctc_loss")
    values = numpy_array_of(given) if isinstance(given, Tensor) else numpy.asarray(given)
    values = values.reshape(-1).astype(numpy.int64)
    if values.size != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    return values


WHILE_CHECKING = "(while checking arguments for ctc_loss_allocate_outputs)"


def _padded_targets(targets: Tensor, lengths: Any, blank: int) -> Any:
    """Return the target sequences as rows of one array (N, S), padded with the class ``blank``.

    ``lengths`` (N,) are the lengths of the sequences. ``targets`` has one sequence per row, or is 1-d and holds all
    sequences concatenated. Raises RuntimeError if the size of ``targets`` does not fit ``lengths``.
    """
    width = int(lengths.max()) if lengths.size else 0
    given: Any = numpy.zeros(targets.shape, int) if targets.is_meta else numpy_array_of(targets).astype(numpy.int64)
    rows = numpy.full((lengths.size, width), blank, numpy.int64)
    inside = numpy.arange(width)[None, :] < lengths[:, None]
    if given.ndim == 1:
        need, have, axis = int(lengths.sum()), given.size, 0
    else:
        need, have, axis = width, given.shape[1], 1
    if have < need or (axis == 0 and have != need):
        least = "at least " if axis else ""
        raise RuntimeError(
            f"Expected tensor to have size {least}{need} at dimension {axis}, but got size {have} for argument #2 "
            f"'targets' {WHILE_CHECKING}"
        )
    rows[inside] = given if given.ndim == 1 else given[:, :width][inside]
    return rows


@public(method=False, name="ctc_loss")
def _ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``nn.functional.ctc_loss`` of the arguments.

    ``reduction`` is 0 for none, 1 for the mean, 2 for the sum.
    """
    return ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, numbered_reduction(reduction), zero_infinity
    )


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Return the connectionist temporal classification (CTC) loss (Graves et al. 2006).

    The loss of a target sequence is the negative logarithm of the total probability of all its alignments with the
    input, which repeat classes and insert blanks. ``log_probs`` has shape (T, N, C) or (T, C). ``targets`` has shape
    (N, S), or is 1-d and holds all sequences concatenated. ``input_lengths`` and ``target_lengths`` have shape (N,).
    ``blank`` is the class of the blank. A mean is taken over the losses divided by their target lengths. If
    ``zero_infinity`` is true, the loss of a target that is too long for its input is 0 instead of infinity.
    """
    reduction_name = parse_reduction(None, None, reduction)
    batched = log_probs.ndim == 3
    probs = log_probs if batched else log_probs.unsqueeze(1)
    if not batched and targets.ndim == 1:
        targets = targets.unsqueeze(0)
    steps, batch, classes = probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if not probs._array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    have, want = _lengths("input_lengths", input_lengths, batch), _lengths("target_lengths", target_lengths, batch)
    for name, lengths in (("input", have), ("target", want)):
        if int(lengths.min()) < 0:
            raise RuntimeError(
                f"Expected {name}_lengths to have value at least 0, but got value {int(lengths.min())} {WHILE_CHECKING}"
            )
    if have.size and int(have.max()) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {int(have.max())} {WHILE_CHECKING}"
        )
    labels = ctc.with_blanks(numpy, _padded_targets(targets, want, blank), blank)
    given = [wrap(devices.to_device(each, probs.device)) for each in (labels, have, want)]
    each = ctc_loss_block(probs, *given, zero_infinity)[0]
    if zero_infinity:
        each = where_(isinf(each), zeros_like(each), each)
    if not batched and reduction_name == "none":
        return each.squeeze(0)
    if reduction_name == "mean":
        each = each / clamp_min(given[2].to(each.dtype), 1)
    return reduce_losses(each, reduction_name)


__all__ = [
    "cross_entropy", "ctc_loss", "linear_cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "nll_loss",
]  # fmt: skip
