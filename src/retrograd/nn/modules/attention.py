"""Multi-head attention, exported as ``torch.nn.MultiheadAttention``."""

from __future__ import annotations

from typing import Any

from ...compat.module_names import ModuleName
from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Multi-head attention: for each query, the mean of the values, weighted by the similarity of key and query.

    See Vaswani et al. 2017. ``kdim`` and ``vdim`` are the sizes of keys and values (default ``embed_dim``). If
    ``add_bias_kv`` is true, a trained key and a trained value are appended to the sequence. If ``add_zero_attn`` is
    true, a key and a value of zeros are appended.

    >>> import retrograd as torch
    >>> x = torch.ones(5, 3, 8)
    >>> out, weights = torch.nn.MultiheadAttention(8, 2)(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([5, 3, 8]), torch.Size([3, 5, 5]))
    """

    in_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim: int = kdim if kdim is not None else embed_dim
        self.vdim: int = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim: int = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        factory = {"device": device, "dtype": dtype}
        apart = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(empty((3 * embed_dim, embed_dim), **factory))
        for name, size in apart.items():
            own = None if self._qkv_same_embed_dim else Parameter(empty((embed_dim, size), **factory))
            self.register_parameter(name, own)
        if not self._qkv_same_embed_dim:
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim, **factory)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        self.bias_k = Parameter(empty((1, 1, embed_dim), **factory)) if add_bias_kv else None
        self.bias_v = Parameter(empty((1, 1, embed_dim), **factory)) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for each in (self.bias_k, self.bias_v):
            if each is not None:
                init.xavier_normal_(each)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Return the pair ``(output, weights)``, where ``weights`` are the attention weights.

        If ``need_weights`` is false, ``weights`` is None.

        ``query``, ``key``, ``value`` and the output have shape (time, batch, features), or (batch, time, features) if
        ``batch_first`` is true, or are nested tensors of the latter. The weights are averaged over the heads if
        ``average_attn_weights`` is true. ``key_padding_mask`` (batch, time) is True for keys to ignore. ``attn_mask`` is
        True for pairs of query and key to ignore; a mask that is not boolean is added to the scores. ``is_causal`` is a
        hint that ``attn_mask`` is the causal mask.
        """
        turned = self.batch_first and query.dim() == 3 and not query.is_nested
        if turned:
            query, key, value = _swap_first_dims(query, key, value)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(1, 0), weights) if turned else (out, weights)


def _swap_first_dims(*tensors: Tensor) -> list[Tensor]:
    """Return a list of the ``tensors``, each with its first two dimensions swapped.

    If two arguments are the same object, the corresponding results are also the same object: attention is faster if
    query, key and value are identical.
    """
    created = {id(each): each.transpose(1, 0) for each in tensors}
    return [created[id(each)] for each in tensors]


MultiheadAttention.__module__ = ModuleName("retrograd.nn.modules.activation", __name__)  # PyTorch's path of the class
