"""Loss layers: L1Loss, MSELoss, NLLLoss, CrossEntropyLoss, BCELoss, CTCLoss and others.

In all of them ``reduction`` is ``"mean"``, ``"sum"``, or ``"none"`` for unreduced losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...core.tensor import Tensor
from ...runtime.user_frame import warn
from .. import functional as F
from .declarative import declares_layer
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module


class _Loss(Module):
    """Base class of loss layers, with the attribute ``reduction``."""


class _WeightedLoss(_Loss):
    """Base class of loss layers with the buffer ``weight``: one factor per class, or per element in BCELoss."""


@declares_layer(F.l1_loss, takes="input, target")
class L1Loss(_Loss):
    """Absolute difference of input and target.

    ``reduction`` is ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.nll_loss, takes="input, target", buffers=("weight",))
class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of the target class.

    The input holds log-probabilities; the target holds class indices.
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


class NLLLoss2d(NLLLoss):
    """Deprecated alias of :class:`NLLLoss`, which warns."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


@declares_layer(F.poisson_nll_loss, takes="log_input, target")
class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of the target under a Poisson distribution.

    The mean of the distribution is ``exp(input)`` if ``log_input`` is true, otherwise ``input``.
    """

    log_input: bool = True
    full: bool = False
    size_average: Any = None
    eps: float = 1e-8
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.gaussian_nll_loss, takes="input, target, var")
class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of the target under the normal distribution with mean ``input`` and variance ``var``.

    The variance is an argument of the call and is clamped to at least ``eps``.
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@declares_layer(F.kl_div, takes="input, target")
class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of the target from the input, which holds log-probabilities.

    If ``log_target`` is true, the target holds log-probabilities instead of probabilities.
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    log_target: bool = False


@declares_layer(F.mse_loss, takes="input, target")
class MSELoss(_Loss):
    """Squared difference of input and target.

    >>> import retrograd as torch
    >>> torch.nn.MSELoss()(torch.zeros(2), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.binary_cross_entropy, takes="input, target", buffers=("weight",))
class BCELoss(_WeightedLoss):
    """Binary cross-entropy of input and target; the input holds the probabilities of class 1."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.binary_cross_entropy_with_logits, takes="input, target", buffers=("weight", "pos_weight"))
class BCEWithLogitsLoss(_Loss):
    """:class:`BCELoss` of the sigmoid of the input, computed together with the sigmoid, so that nothing overflows."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


@declares_layer(F.hinge_embedding_loss, takes="input, target")
class HingeEmbeddingLoss(_Loss):
    """Hinge loss: ``input`` where the target is 1, and ``max(0, margin - input)`` where the target is -1."""

    margin: float = 1.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.multilabel_margin_loss, takes="input, target")
class MultiLabelMarginLoss(_Loss):
    """Hinge loss with margin 1 between the score of each target class and the score of each other class.

    Each row of the target lists the target classes, up to the first -1.
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.smooth_l1_loss, takes="input, target")
class SmoothL1Loss(_Loss):
    """Absolute difference of input and target, replaced by a parabola where the difference is less than ``beta``."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    beta: float = 1.0


@declares_layer(F.huber_loss, takes="input, target")
class HuberLoss(_Loss):
    """Half the squared difference of input and target, made linear where the difference is large.

    The loss is linear where the absolute difference is greater than ``delta``.
    """

    reduction: str = "mean"
    delta: float = 1.0


@declares_layer(F.soft_margin_loss, takes="input, target")
class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``, where each target is 1 or -1."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.cross_entropy, takes="input, target", buffers=("weight",))
class CrossEntropyLoss(_WeightedLoss):
    """:class:`NLLLoss` of the log-softmax of the input, which holds scores.

    The target holds class indices, or the probability of each class.

    >>> import retrograd as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@declares_layer(F.multilabel_soft_margin_loss, takes="input, target", buffers=("weight",))
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """:class:`BCEWithLogitsLoss`, averaged over the classes."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.cosine_embedding_loss, takes="input1, input2, target")
class CosineEmbeddingLoss(_Loss):
    """Loss of the cosine similarity of two inputs along the last dimension.

    The loss is 1 minus the cosine where the target is 1, and ``max(0, cosine - margin)`` where the target is -1.
    """

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.margin_ranking_loss, takes="input1, input2, target")
class MarginRankingLoss(_Loss):
    """``max(0, margin - target * (input1 - input2))``, where each target is 1 or -1.

    A target of 1 means that ``input1`` should be greater than ``input2``; a target of -1 means the opposite.
    """

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.multi_margin_loss, takes="input, target", buffers=("weight",))
class MultiMarginLoss(_WeightedLoss):
    """Hinge loss with ``margin`` between the score of the target class and the score of each other class.

    Each difference is raised to the power ``p``, which is 1 or 2.
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def _settle(self) -> None:
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {self.weight.dim()}D instead"
            )


def _check_margin(self: Any) -> None:
    if self.margin <= 0:
        raise ValueError(f"{type(self).__name__}: expected margin to be greater than 0, got {self.margin} instead")


@declares_layer(F.triplet_margin_loss, takes="anchor, positive, negative")
class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``, where ``| |`` is the p-norm."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    _settle = _check_margin


@declares_layer(F.triplet_margin_with_distance_loss, takes="anchor, positive, negative")
class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with ``distance_function(x, y)`` instead of the p-norm of ``x - y``."""

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _settle(self) -> None:
        _check_margin(self)
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


@dataclass
class LinearCrossEntropyOptions:
    """Options of :class:`LinearCrossEntropyLoss` by which PyTorch saves memory; the options have no effect here."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """:class:`CrossEntropyLoss` of the scores of a :class:`Linear` layer, which is part of the loss.

    ``out_features`` is the shape of the losses of each row.
    """

    weight: Any

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.register_buffer("weight", weight)
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        r"""Return the loss for the scores of ``input`` (N, in_features) and the class indices ``target`` (N,
        \*out_features).
        """
        shape = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input, weight.reshape(*shape, self.linear.in_features) if self.out_features else weight, target,
            linear_bias=bias.reshape(shape) if bias is not None and self.out_features else bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the arguments as text."""
        own = {"in_features": self.linear.in_features, "bias": self.linear.bias is not None, **self.__dict__}
        names = "in_features num_classes out_features bias reduction ignore_index label_smoothing options"
        return ", ".join(f"{name}={own[name]}" for name in names.split())


@declares_layer(F.ctc_loss, takes="log_probs, targets, input_lengths, target_lengths")
class CTCLoss(_Loss):
    """Connectionist temporal classification loss (Graves et al. 2006).

    The loss is the negative log-likelihood of a label sequence, summed over all alignments with the input.
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions",
    "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip
