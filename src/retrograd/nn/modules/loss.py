"""Loss layers: L1Loss, MSELoss, NLLLoss, CrossEntropyLoss, BCELoss, CTCLoss and others.

Every layer has the argument ``reduction``: ``"mean"`` (default), ``"sum"``, or ``"none"`` to return one loss per
element or sample. The deprecated arguments ``size_average`` and ``reduce`` of some layers select the same options.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...core.tensor import Tensor
from ...operations.nn.losses import parse_reduction
from ...runtime.user_frame import warn
from .. import functional as F
from .declarative import declares_layer
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module


class _Loss(Module):
    """Base class of loss layers. The attribute ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = parse_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """Base class of loss layers with the buffer ``weight``, by which the losses are multiplied.

    ``weight`` has one factor per class or, for BCELoss, one factor per element of the input.
    """

    def __init__(
        self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


@declares_layer(F.l1_loss, takes="input, target")
class L1Loss(_Loss):
    """Loss ``abs(input - target)``.

    ``reduction`` is ``"mean"``, ``"sum"``, or ``"none"`` to return one loss per element.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 4.0]))
    tensor(1.2500)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.nll_loss, takes="input, target", buffers=("weight",))
class NLLLoss(_WeightedLoss):
    """Negative log-likelihood loss: ``-input[target]`` for each sample.

    The input has the log-probability of each class, and the target has the index of the correct class. ``weight`` has a
    factor per class. Samples whose target is ``ignore_index`` do not contribute.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> log_probs = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]).log()
    >>> nn.NLLLoss()(log_probs, torch.tensor([0, 2]))
    tensor(0.4581)
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


class NLLLoss2d(NLLLoss):
    """Deprecated alias of :class:`NLLLoss`; the constructor issues a FutureWarning."""

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

    The mean of the distribution is ``exp(input)`` if ``log_input`` is true, otherwise ``input``. If ``full`` is true,
    the term ``log(target!)`` is included by Stirling's approximation.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]))
    tensor(0.3591)
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

    ``input``, ``target`` and ``var`` are the arguments of ``forward``. ``var`` is clamped to at least ``eps``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.GaussianNLLLoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.4091)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@declares_layer(F.kl_div, takes="input, target")
class KLDivLoss(_Loss):
    """Kullback-Leibler divergence ``target * (log(target) - input)``, where the input has log-probabilities.

    The target has probabilities, or log-probabilities if ``log_target`` is true.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> log_probs = torch.tensor([[0.5, 0.5]]).log()
    >>> nn.KLDivLoss(reduction="batchmean")(log_probs, torch.tensor([[0.25, 0.75]]))
    tensor(0.1308)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    log_target: bool = False


@declares_layer(F.mse_loss, takes="input, target")
class MSELoss(_Loss):
    """Loss ``(input - target) ** 2``, by default averaged over all elements.

    >>> import retrograd as torch
    >>> torch.nn.MSELoss()(torch.zeros(2), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.binary_cross_entropy, takes="input, target", buffers=("weight",))
class BCELoss(_WeightedLoss):
    """Binary cross-entropy ``-(target * log(input) + (1 - target) * log(1 - input))``.

    The input has probabilities, and the target has values between 0 and 1. ``weight`` has a factor per element.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.BCELoss()(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
    tensor(0.1643)
    """

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.binary_cross_entropy_with_logits, takes="input, target", buffers=("weight", "pos_weight"))
class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy (:class:`BCELoss`) of ``sigmoid(input)`` and the target.

    Sigmoid and loss are computed in one formula, which avoids overflow. The term ``target * log(sigmoid(input))`` is
    multiplied by ``pos_weight``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.BCEWithLogitsLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
    tensor(0.2201)
    """

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


@declares_layer(F.hinge_embedding_loss, takes="input, target")
class HingeEmbeddingLoss(_Loss):
    """Hinge loss: ``input`` where the target is 1, and ``max(0, margin - input)`` where the target is -1.

    The input is usually a distance of two vectors.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    margin: float = 1.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.multilabel_margin_loss, takes="input, target")
class MultiLabelMarginLoss(_Loss):
    """Hinge loss of multi-label classification: the target classes should have greater scores than all other classes.

    The loss of a row of the input is the sum of ``max(0, 1 - (input[j] - input[i])) / C`` over all target classes j and
    all other classes i, where C is the number of classes. Each row of the target has the indices of the target classes,
    followed by -1.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.MultiLabelMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.smooth_l1_loss, takes="input, target")
class SmoothL1Loss(_Loss):
    """Smooth L1 loss of the difference ``d = abs(input - target)``.

    The loss is ``d ** 2 / (2 * beta)`` where ``d < beta``, and ``d - beta / 2`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.SmoothL1Loss(reduction="none")(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]))
    tensor([0.1250, 2.5000])
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    beta: float = 1.0


@declares_layer(F.huber_loss, takes="input, target")
class HuberLoss(_Loss):
    """Huber loss of the difference ``d = abs(input - target)``.

    The loss is ``d ** 2 / 2`` where ``d < delta``, and ``delta * (d - delta / 2)`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.HuberLoss(reduction="none")(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]))
    tensor([0.1250, 2.5000])
    """

    reduction: str = "mean"
    delta: float = 1.0


@declares_layer(F.soft_margin_loss, takes="input, target")
class SoftMarginLoss(_Loss):
    """Logistic loss ``log(1 + exp(-target * input))``, where each element of the target is 1 or -1.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.SoftMarginLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, -1.0]))
    tensor(0.2201)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.cross_entropy, takes="input, target", buffers=("weight",))
class CrossEntropyLoss(_WeightedLoss):
    """Cross-entropy loss: :class:`NLLLoss` of ``log_softmax(input)``, where the input has a score (logit) per class.

    The target has the index of the correct class, or the probability of each class.

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
    """Loss of multi-label classification: :class:`BCEWithLogitsLoss` of each class, averaged over the classes.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.cosine_embedding_loss, takes="input1, input2, target")
class CosineEmbeddingLoss(_Loss):
    """Loss of the cosine similarity of two inputs along the last dimension.

    The loss is ``1 - cosine`` where the target is 1, and ``max(0, cosine - margin)`` where the target is -1.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, torch.tensor([1]))
    tensor(0.4000)
    """

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.margin_ranking_loss, takes="input1, input2, target")
class MarginRankingLoss(_Loss):
    """Ranking loss ``max(0, margin - target * (input1 - input2))``, where each element of the target is 1 or -1.

    The target is 1 where ``input1`` should be greater than ``input2``, and -1 where it should be less.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> scores, others = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])
    >>> nn.MarginRankingLoss(margin=0.5)(scores, others, torch.tensor([1.0, 1.0]))
    tensor(0.7500)
    """

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declares_layer(F.multi_margin_loss, takes="input, target", buffers=("weight",))
class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of classification: the target class should have a greater score than all other classes.

    The loss of a row of the input is the sum of ``max(0, margin - (input[t] - input[i])) ** p / C`` over all classes i
    except the target class t, where C is the number of classes. ``p`` is 1 or 2. ``weight`` has a factor per target
    class.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
    tensor(0.3250)
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
    """Triplet loss ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, where d is the p-norm distance.

    ``anchor``, ``positive`` and ``negative`` are the arguments of ``forward``. If ``swap`` is true, ``d(anchor,
    negative)`` is replaced by ``d(positive, negative)`` where the latter is less.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> anchor, positive = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> negative = torch.tensor([[0.0, 2.0]])
    >>> nn.TripletMarginLoss()(anchor, positive, negative)
    tensor(4.0000)
    """

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
    """Triplet loss (:class:`TripletMarginLoss`) with the distance ``distance_function(x, y)``.

    The default distance is :class:`PairwiseDistance`.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> anchor, positive = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> negative = torch.tensor([[0.0, 2.0]])
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(anchor, positive, negative)
    tensor(6.)
    """

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
    """Options of :class:`LinearCrossEntropyLoss`, with which PyTorch saves memory; they have no effect in retrograd.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LinearCrossEntropyLoss(4, 3, options=nn.LinearCrossEntropyOptions()).linear.weight.shape
    torch.Size([3, 4])
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross-entropy loss (:class:`CrossEntropyLoss`) of the scores that a trained :class:`Linear` layer computes.

    The linear layer is the attribute ``linear``. For each row of the input, it computes one score per class, and the
    target is the index of a class. If ``out_features`` is not empty, the layer computes scores of shape ``(num_classes,
    *out_features)`` for each row, and the target has shape ``out_features``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> _ = torch.manual_seed(0)
    >>> loss = nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(torch.ones(2, 4), torch.tensor([0, 2])).shape
    torch.Size([])
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
        r"""Return the loss of ``linear(input)`` for the class indices ``target``.

        ``input`` has shape (N, in_features), and ``target`` has shape (N, \*out_features).
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
        """Return the constructor arguments as text for the ``repr`` of the layer."""
        own = {"in_features": self.linear.in_features, "bias": self.linear.bias is not None, **self.__dict__}
        names = "in_features num_classes out_features bias reduction ignore_index label_smoothing options"
        return ", ".join(f"{name}={own[name]}" for name in names.split())


@declares_layer(F.ctc_loss, takes="log_probs, targets, input_lengths, target_lengths")
class CTCLoss(_Loss):
    """Connectionist temporal classification loss (Graves et al. 2006).

    The loss is ``-log(P)``, where P is the probability of the target sequence, summed over all its alignments with the
    input sequence. ``blank`` is the index of the blank label. If ``zero_infinity`` is true, infinite losses become 0.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> log_probs = torch.full((10, 1, 4), 0.25).log()  # (time, batch, classes); class 0 is the blank
    >>> nn.CTCLoss()(log_probs, torch.tensor([[1, 2, 3]]), torch.tensor([10]), torch.tensor([3]))
    tensor(2.1384)
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
