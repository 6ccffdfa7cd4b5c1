"""``flex_attention``: attention with a function that changes the scores, and a function that selects positions.

The scores of all positions are computed, and positions that a mask excludes are set to ``-inf``. PyTorch's compiled form
skips blocks of them; the results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtypes import bool_
from ...core.tensor import Tensor
from ...operations.creation.factory import full, ones
from ...operations.creation.ranges import arange

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Further results of :func:`flex_attention`: the logarithms of the sums of exponentials, and the largest scores.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> _, found = flex_attention(q, q, q, return_aux=AuxRequest(lse=True))
    >>> found.lse.shape, found.max_scores
    (torch.Size([1, 1, 2]), None)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Further results that an :class:`AuxRequest` has asked for, otherwise None.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> _, found = flex_attention(q, q, q, return_aux=AuxRequest(max_scores=True))
    >>> found.max_scores, found.lse
    (tensor([[[2., 2.]]]), None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class BlockMask:
    """Positions that a function selects, made by :func:`create_block_mask`."""

    device: Any
    shape: tuple[int, int, int, int]

    def __init__(
        self, mask_mod: Callable[..., Any], shape: tuple[int, int, int, int], device: Any, block_size: Any
    ) -> None:
        self.mask_mod, self.shape, self.device = mask_mod, shape, device
        self.BLOCK_SIZE = (block_size, block_size) if isinstance(block_size, int) else tuple(block_size)
        self.seq_lengths: tuple[int, int] = shape[2:]

    def to_dense(self) -> Tensor:
        """Return a bool tensor of the selected positions."""
        return create_mask(self.mask_mod, *self.shape, device=self.device)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, block_size={self.BLOCK_SIZE})"


def _positions(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """Return the indices of all positions along each dimension, as tensors that can be broadcast to ``shape``."""
    return [
        arange(size, device=device).reshape([-1 if each == dim else 1 for each in range(4)])
        for dim, size in enumerate(shape)
    ]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Tensor:
    """Return True: select all positions.

    >>> noop_mask(torch.tensor(0), torch.tensor(0), torch.tensor(1), torch.tensor(2))
    tensor(True)
    """
    return ones((), dtype=bool_, device=batch.device)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that selects the positions that all of ``mask_mods`` select.

    >>> window = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(window, 1, 1, 3, 3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [False,  True,  True]])
    """

    def selected(*position: Any) -> Any:
        result = noop_mask(*position)
        for each in mask_mods:
            result = result & each(*position)
        return result

    return selected


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that selects the positions that at least one of ``mask_mods`` selects.

    >>> mask = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    >>> create_mask(mask, 1, 1, 3, 3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True, False,  True]])
    """

    def selected(*position: Any) -> Any:
        result = noop_mask(*position).logical_not()
        for each in mask_mods:
            result = result | each(*position)
        return result

    return selected


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:  # fmt: skip
    """Return a bool tensor of the shape (B, H, Q_LEN, KV_LEN) of ``mod_fn(batch, head, query, key)``."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_positions(shape, device)).expand(shape)


def create_block_mask(
    mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
) -> BlockMask:  # fmt: skip
    """Return the positions for which ``mask_mod(batch, head, query, key)`` is true, as a :class:`BlockMask`."""
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), device, BLOCK_SIZE)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Return the attention of ``query``, ``key`` and ``value``, each of the shape (B, H, length, size).

    ``score_mod(score, batch, head, query, key)`` returns the scores to use. It is called once, with all scores and with
    indices that are broadcast to their shape. With ``enable_gqa``, several heads of ``query`` share a head of ``key``.

    >>> import retrograd as torch
    >>> from retrograd.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> x = torch.ones(1, 1, 3, 2)
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 3, 3)
    >>> flex_attention(x, x, x, block_mask=mask).shape
    torch.Size([1, 1, 3, 2])
    """
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    elif query.shape[1] != key.shape[1]:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and Hkv={key.shape[1]}. "
            "Try setting enable_gqa=True for GQA."
        )
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    positions = _positions(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *positions)
    if block_mask is not None:
        excluded = full((), -math.inf, dtype=scores.dtype, device=scores.device)
        scores = scores.where(block_mask.mask_mod(*positions), excluded)
    largest = scores.amax(-1, keepdim=True)
    weights = (scores - largest.where(largest > -math.inf, 0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    out = (weights @ value) / total.where(total > 0, 1.0)
    if not return_lse and return_aux is None:
        return out
    lse = scores.logsumexp(-1)
    if return_lse:
        return out, lse
    assert return_aux is not None
    return out, AuxOutput(lse if return_aux.lse else None, largest.squeeze(-1) if return_aux.max_scores else None)


__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask",
    "or_masks",
]  # fmt: skip
