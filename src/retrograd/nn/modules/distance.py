"""PairwiseDistance and CosineSimilarity: layers for distances and similarities of vectors."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer()
class PairwiseDistance(Module):
    """Layer that returns the p-norm of ``x1 - x2 + eps`` along the last dimension, for two inputs x1 and x2.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.PairwiseDistance()(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[3.0, 4.0], [1.0, 2.0]]))
    tensor([5.0000, 1.0000])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def _settle(self) -> None:
        self.norm = self.__dict__.pop("p")  # PyTorch names the attribute ``norm``

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the p-norm of the difference of each vector of ``x1`` and the corresponding vector of ``x2``.

        The vectors extend along the last dimension.
        """
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@declares_layer(F.cosine_similarity, takes="x1, x2")
class CosineSimilarity(Module):
    """Layer that returns the cosine of the angle between corresponding vectors of two inputs.

    The vectors extend along the dimension ``dim``. Their norms, by which the dot product is divided, are clamped to at
    least ``eps``.

    >>> import retrograd as torch
    >>> torch.nn.CosineSimilarity(dim=0)(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0]))
    tensor(1.)
    """

    dim: int = 1
    eps: float = 1e-8


__all__ = ["CosineSimilarity", "PairwiseDistance"]
