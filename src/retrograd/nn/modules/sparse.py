"""Embedding and EmbeddingBag: layers with a trained table of vectors, whose rows are selected by integer indices."""

from __future__ import annotations

from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class _EmbeddingBase(Module):
    """Base class of Embedding and EmbeddingBag, with a parameter ``weight`` of ``num_embeddings`` rows.

    The row ``padding_idx`` is initialised to 0 and has the gradient 0.
    """

    weight: Any
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _fill(self, weight: Tensor | None, frozen: bool, device: Any, dtype: Any) -> None:
        """Register the parameter ``weight`` of the layer.

        The parameter has the values of the argument ``weight``, or random values if this argument is None. If
        ``frozen`` is true, the parameter does not require a gradient.
        """
        if self.padding_idx is not None:
            if not -self.num_embeddings <= self.padding_idx < self.num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            self.padding_idx %= self.num_embeddings
        shape = [self.num_embeddings, self.embedding_dim]
        if weight is None:
            self.weight = Parameter(empty(shape, device=device, dtype=dtype), requires_grad=not frozen)
            self.reset_parameters()
        else:
            if list(weight.shape) != shape:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(weight, requires_grad=not frozen)

    def reset_parameters(self) -> None:
        """Draw ``weight`` from the standard normal distribution and set the row ``padding_idx`` to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _shown(self, **usual: Any) -> str:
        """Return the text for ``repr``: the sizes of ``weight``, and the attributes that differ from their defaults.

        ``usual`` maps the names of these attributes to their default values.
        """
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)!r}"
        return text


def _rows_of(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_EmbeddingBase):
    """Layer that returns the row ``weight[i]`` for each integer i of its input, where ``weight`` is trained.

    >>> import retrograd as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    torch.Size([2, 2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._fill(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``weight[input]``: one row of ``weight`` per integer; the shape is (*input.shape, embedding_dim)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        """Return the sizes, and all arguments that differ from their defaults, as text for the ``repr``."""
        text = self._shown(padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return text + ", sparse=True" if self.sparse else text

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """Return an Embedding whose weight is ``embeddings``. The weight requires a gradient if ``freeze`` is false."""
        rows, columns = _rows_of(embeddings)
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(_EmbeddingBase):
    """Layer that returns the sum, mean or maximum of several rows of ``weight``, one result for each bag.

    A bag is a list of integers, the indices of the rows. ``mode`` is ``"sum"``, ``"mean"`` or ``"max"``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> layer = nn.EmbeddingBag.from_pretrained(weight, mode="sum")
    >>> layer(torch.tensor([0, 1, 2]), torch.tensor([0, 2]))  # bags [0, 1] and [2]
    tensor([[4., 6.],
            [5., 6.]])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = padding_idx
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._fill(_weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one vector per bag, a list of row indices: the sum, mean or maximum of these rows of ``weight``.

        Each row of a 2-d ``input`` is a bag. A 1-d ``input`` is the concatenation of all bags, and ``offsets`` has the
        position at which each bag begins. ``per_sample_weights`` has the shape of ``input`` and has a factor for each
        selected row.
        """
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the sizes, and all arguments that differ from their defaults, as text for the ``repr``."""
        return self._shown(max_norm=None, norm_type=2, scale_grad_by_freq=False, mode=None, padding_idx=None)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """Return an EmbeddingBag whose weight is ``embeddings``.

        The weight requires a gradient if ``freeze`` is false.
        """
        rows, columns = _rows_of(embeddings)
        created = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
                   padding_idx)  # fmt: skip
        created.weight.requires_grad_(not freeze)
        return created


__all__ = ["Embedding", "EmbeddingBag"]
