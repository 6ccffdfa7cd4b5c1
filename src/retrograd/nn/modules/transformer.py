"""Transformer, its encoder and decoder, and their layers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ...compat.lazy_imports import load_part
from ...core.grad_mode import is_grad_enabled
from ...core.tensor import Tensor
from ...operations.creation.factory import full
from ...runtime.user_frame import warn
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]
Mask = Tensor | None


def _get_activation_fn(activation: Activation) -> Any:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _causal(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return the causal mask of shape (size, size), which is minus infinity above the diagonal and 0 elsewhere.

    The mask is added to the attention scores, so that a query does not attend to later keys.
    """
    return full((size, size), -math.inf, device=device, dtype=dtype).triu(diagonal=1)


def _is_causal(mask: Mask, hint: bool | None, source: Tensor, batch_first: bool) -> bool:
    """Return whether ``mask`` is the causal mask, by which a query does not attend to later keys.

    If ``hint`` is not None, the result is ``hint``. If ``mask`` is None, the result is False. Otherwise ``mask`` is
    compared with the causal mask for the length of ``source``, a batch of sequences. ``batch_first`` is true if the
    first dimension of ``source`` is the batch.
    """
    if hint is not None or mask is None:
        return hint is True
    size = source.size(0) if source.dim() == 2 or not batch_first else source.size(1)
    expected = _causal(size, mask.device, mask.dtype if mask.is_floating_point() else None)
    return mask.size() == expected.size() and bool(mask.eq(expected).all())


class _Layer(Module):
    """Base class of TransformerEncoderLayer and TransformerDecoderLayer.

    A layer has two or three parts: one or two attention layers, and a feed-forward network of two linear layers. Each
    part has a residual connection: the input of the part is added to the output of the part. If ``norm_first`` is true,
    layer normalisation is applied to the input of each part, otherwise to the sum.
    """

    attentions: tuple[str, ...]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        for name in self.attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **factory)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps, bias=bias, **factory))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)
        self._settle()

    def _settle(self) -> None:
        """Do nothing; ``__init__`` calls this method at the end, and a subclass may override it to set attributes."""

    def _residual(self, x: Tensor, part: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the output of one part of the layer for ``x``, with residual connection, dropout and normalisation.

        The output is ``x + dropout(function(norm(x)))`` if ``norm_first`` is true, and ``norm(x +
        dropout(function(x)))`` otherwise. ``function`` computes the attention or the feed-forward network, which is
        part number ``part`` of the layer. ``norm`` and ``dropout`` are the attributes ``norm<part>`` and
        ``dropout<part>``.
        """
        norm, dropout = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return x + dropout(function(norm(x)))
        return norm(x + dropout(function(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attention_of_queries(attention: Any, memory: Tensor | None, mask: Mask, padding: Mask, is_causal: bool) -> Any:
    """Return a function that maps a tensor of queries to the output of the layer ``attention``.

    If ``memory`` is None, the queries are also the keys and values (self-attention). Otherwise the keys and values are
    ``memory``. ``mask``, ``padding`` and ``is_causal`` are passed to ``attention`` as ``attn_mask``,
    ``key_padding_mask`` and ``is_causal``.
    """

    def attend(x: Tensor) -> Tensor:
        seen = x if memory is None else memory
        return attention(
            x, seen, seen, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )[0]

    return attend


class TransformerEncoderLayer(_Layer):
    """Layer of a Transformer encoder: self-attention, followed by a feed-forward network.

    >>> import retrograd as torch
    >>> torch.nn.TransformerEncoderLayer(d_model=8, nhead=2)(torch.ones(10, 3, 8)).shape
    torch.Size([10, 3, 8])
    """

    attentions = ("self_attn",)

    def _settle(self) -> None:
        known = (F.relu, ReLU), (F.gelu, GELU)  # PyTorch stores these numbers for its fused fast path
        result = [self.activation is function or isinstance(self.activation, kind) for function, kind in known]
        self.activation_relu_or_gelu = result.index(True) + 1 if any(result) else 0

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        """Return the output of the layer for ``src``, of the same shape as ``src``.

        The shape is (time, batch, features), or (batch, time, features) if ``batch_first`` is true. ``src_mask``,
        ``src_key_padding_mask`` and ``is_causal`` are arguments of the self-attention: see :class:`MultiheadAttention`.
        """
        attend = _attention_of_queries(self.self_attn, None, src_mask, src_key_padding_mask, is_causal)
        return self._residual(self._residual(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Layer of a Transformer decoder: self-attention, attention to the encoder's output, and a feed-forward network.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, batch_first=True)
    >>> layer(torch.ones(3, 5, 16), torch.ones(3, 7, 16)).shape
    torch.Size([3, 5, 16])
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the output of the layer for ``tgt``, of the same shape; ``memory`` is the output of the encoder.

        The parameters ``tgt_…`` are arguments of the self-attention, and the parameters ``memory_…`` are arguments of
        the attention to ``memory``: see :class:`MultiheadAttention`.
        """
        itself = _attention_of_queries(self.self_attn, None, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = _attention_of_queries(
            self.multihead_attn, memory, memory_mask, memory_key_padding_mask, memory_is_causal
        )
        return self._residual(self._residual(self._residual(tgt, 1, itself), 2, other), 3, self._feed_forward)


def _why_not_nested(layer: Any) -> str:
    """Return why an encoder of such layers cannot compute with nested tensors, or an empty string."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, "encoder_layer.norm_first was True"),
        (
            not attention.batch_first,
            "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, "encoder_layer.self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "encoder_layer.self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "encoder_layer.activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "encoder_layer.self_attn.num_heads is odd"),
    )
    return next((reason for applies, reason in reasons if applies), "")


class TransformerEncoder(Module):
    """Sequence of ``num_layers`` copies of ``encoder_layer``, followed by the layer ``norm`` if it is not None.

    If ``enable_nested_tensor`` is true and the layers allow it, padded positions of the output are 0 in evaluation
    without recording. If ``mask_check`` is true, this requires that the padding is at the end.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True)
    >>> nn.TransformerEncoder(layer, num_layers=2)(torch.ones(3, 5, 16)).shape
    torch.Size([3, 5, 16])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why_not = _why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        if enable_nested_tensor and why_not:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}")
        self.mask_check = mask_check

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        """Return the output of the encoder for ``src``, of the same shape as ``src``.

        ``mask`` and ``src_key_padding_mask`` are passed to each layer. ``is_causal`` is a hint whether ``mask`` is the
        causal mask; if it is None, ``mask`` is compared with the causal mask.
        """
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        causal = _is_causal(mask, is_causal, src, batch_first)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if self.use_nested_tensor and mask is None and src_key_padding_mask is not None and self._is_fast(src):
            kept = src_key_padding_mask.eq(0)
            if not self.mask_check or bool((kept[:, :-1] | ~kept[:, 1:]).all()):
                src = src.masked_fill(~kept.unsqueeze(-1), 0)
        return src if self.norm is None else self.norm(src)

    def _is_fast(self, src: Tensor) -> bool:
        """Return whether PyTorch would compute with nested tensors: in evaluation, without recording and autocast."""
        layer = self.layers[0]
        recorded = is_grad_enabled() and (src.requires_grad or any(each.requires_grad for each in layer.parameters()))
        if layer.training or src.dim() != 3 or recorded or load_part("amp.autocast_mode").is_autocast_enabled():
            return False
        enabled: bool = load_part("backends.mha").get_fastpath_enabled()
        return enabled


class TransformerDecoder(Module):
    """Sequence of ``num_layers`` copies of ``decoder_layer``, followed by the layer ``norm`` if it is not None.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d_model=16, nhead=4), num_layers=2)
    >>> decoder(torch.ones(5, 3, 16), torch.ones(7, 3, 16)).shape
    torch.Size([5, 3, 16])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the output of the decoder for ``tgt``, of the same shape; ``memory`` is the output of the encoder.

        The masks are passed to each layer. ``tgt_is_causal`` is a hint whether ``tgt_mask`` is the causal mask; if it
        is None, ``tgt_mask`` is compared with the causal mask.
        """
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, batch_first)
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Transformer: an encoder of a source sequence, and a decoder of a target sequence (Vaswani et al. 2017).

    The decoder attends to the output of the encoder.

    >>> import retrograd as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> model(torch.ones(3, 10, 8), torch.ones(3, 20, 8)).shape
    torch.Size([3, 20, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder = custom_encoder
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*layer, **factory)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        self.decoder = custom_decoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*layer, **factory)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask of shape (sz, sz): minus infinity above the diagonal, and 0 elsewhere."""
        return _causal(sz, device, dtype)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None,
        src_key_padding_mask: Mask = None, tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return ``decoder(tgt, encoder(src))``, of the shape of ``tgt``.

        The masks ``src_…`` are passed to the encoder, and the masks ``tgt_…`` and ``memory_…`` to the decoder.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip


__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip
