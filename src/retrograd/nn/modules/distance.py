"""Distances and similarities of vectors."""

from __future__ import annotations

from ...core.absent import absent, listed
from .. import functional as F
from .carried import carries
from .module import Module


@carries(F.pairwise_distance, takes="x1, x2")
class PairwiseDistance(Module):
    """The p-norm of ``x1 - x2`` along the last dimension (``eps`` is added to each difference)."""

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def _settle(self) -> None:
        self.norm = self.p  # PyTorch's name of the attribute


@carries(F.cosine_similarity, takes="x1, x2")
class CosineSimilarity(Module):
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; no norm is taken to be less than ``eps``.

    >>> import retrograd as torch
    >>> torch.nn.CosineSimilarity(dim=0)(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0]))
    tensor(1.)
    """

    dim: int = 1
    eps: float = 1e-8


__all__ = ["CosineSimilarity", "PairwiseDistance"]
__getattr__, __dir__ = absent(__name__), listed(globals())
