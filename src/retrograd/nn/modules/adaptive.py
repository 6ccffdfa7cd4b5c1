"""AdaptiveLogSoftmaxWithLoss: approximate log-softmax over many classes, in which rare classes form clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    """Named tuple returned by ``AdaptiveLogSoftmaxWithLoss.forward``.

    ``output`` is a tensor with one log-probability per row of the input: that of the target class of the row.
    ``loss`` is the negative mean of ``output``.
    """

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax: log-softmax over many classes, in which rare classes form clusters (Grave et al. 2017).

    The log-probability of a rare class is that of its cluster plus that of the class within the cluster. The classes
    must be numbered by decreasing frequency. Each element of ``cutoffs`` is the first class of a cluster; the classes
    before the first cluster are the frequent classes. For cluster number k = 1, 2, … the input is projected to
    ``in_features // div_value ** k`` features, so that rarer classes have fewer parameters.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 50])
    >>> output, loss = layer(torch.ones(4, 16), torch.tensor([0, 9, 20, 99]))
    >>> output.shape, loss.shape
    (torch.Size([4]), torch.Size([]))
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(set(cutoffs)) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(
            int(cut) != cut for cut in cutoffs
        ):  # fmt: skip
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for cluster in range(self.n_clusters):
            size = int(in_features // div_value ** (cluster + 1))
            outs = self.cutoffs[cluster + 1] - self.cutoffs[cluster]
            self.tail.append(
                Sequential(Linear(in_features, size, bias=False, **factory), Linear(size, outs, bias=False, **factory))
            )

    def reset_parameters(self) -> None:
        """Draw new initial values for all parameters."""
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """Return the log-probability of the class ``target_[i]`` for each row ``input_[i]``, and the loss.

        ``input_`` has shape (N, in_features), and ``target_`` has shape (N,). The result is a named tuple ``(output,
        loss)``, where ``loss`` is the negative mean of the log-probabilities ``output``.
        """
        self._check(input_, target_)
        alone = target_.dim() == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if alone else (input_, target_)
        size = target.size(0)
        output = input.new_zeros(size)
        places = target.new_empty(size)
        used = 0
        for cluster, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs, strict=False)):
            rows = (target >= low).logical_and(target < high).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            if cluster == 0:
                places.index_copy_(0, rows, target[rows])
            else:
                scores = self.tail[cluster - 1](input.index_select(0, rows))
                column = self.shortlist_size + cluster - 1
                places.index_fill_(0, rows, column)
                local = F.log_softmax(scores, dim=1).gather(1, (target[rows] - low).unsqueeze(1))
                output.index_copy_(0, rows, local.squeeze(1))
            used += rows.numel()
        if used != size:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if alone else output, loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() == 1:
            if input.size(0) != target.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input.dim() != 2:
                raise RuntimeError(
                    "1D target tensor expects 2D input tensors, but found inputs with size", input.size()
                )
        elif target.dim() == 0:
            if input.dim() != 1:
                raise RuntimeError(
                    "0D target tensor expects 1D input tensors, but found inputs with size", input.size()
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes for each row of ``input``.

        ``input`` has shape (N, in_features), and the result has shape (N, n_classes).
        """
        head = F.log_softmax(self.head(input), dim=1)
        found = head.new_empty((head.size(0), self.n_classes))
        found[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for cluster, (low, high) in enumerate(pairwise(self.cutoffs)):
            local = F.log_softmax(self.tail[cluster](input), dim=1)
            found[:, low:high] = local + head[:, self.shortlist_size + cluster].unsqueeze(1)
        return found

    def predict(self, input: Tensor) -> Tensor:
        """Return a tensor with the index of the most probable class for each row of ``input``.

        If a frequent class is more probable than all other frequent classes and all clusters, it is the result, and the
        classes in the clusters are not evaluated.
        """
        head = self.head(input)
        best = head.argmax(dim=1)
        rare = best >= self.shortlist_size
        if not bool(rare.any()):
            return best
        if bool(rare.all()):
            return self.log_prob(input).argmax(dim=1)
        best[rare] = self.log_prob(input[rare]).argmax(dim=1)
        return best


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
