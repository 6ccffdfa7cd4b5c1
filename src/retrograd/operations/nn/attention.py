"""Attention: scaled_dot_product_attention and multi_head_attention_forward.

For each query, attention returns a weighted mean of the values. The weights are the softmax of the scores, which are
the dot products of the query and the keys.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.devices import array_module_of, on_gpu
from ...core.dtypes import cpp_name
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import FUNCTIONS, TENSORS, op, rule_function, shared
from ...dispatch.intercept import GO_ON, HANDLERS, intercept_locals
from ...dispatch.operand_promotion import broadcast_mismatch
from ...kernels import attention
from ..linalg.matmul import addmm, baddbmm, bmm, matmul
from ..shape.join import cat
from ..shape.views import permute, reshape, squeeze, t, transpose, unsqueeze, view
from .dropout import dropout
from .softmax import softmax

F: Any = TENSORS

#: The attention implementations that a program has enabled. They have no effect, because this package has only one.
ENABLED_BACKENDS = {
    "flash": True,
    "mem_efficient": True,
    "math": True,
    "cudnn": True,
    "overrideable": True,
    "reduced": False,
}


_KIND: Any = {
    "backward": "ScaledDotProductFlashAttentionForCpuBackward0", "outputs": ("output", "logsumexp"),
    "differentiable": 1, "function": False, "method": False,
}  # fmt: skip


@op(**_KIND, vmap="samples")
def attention_block(np: Any, query: Any, key: Any, value: Any, /, is_causal: bool, scale: float) -> tuple[Any, Any]:
    """Return ``softmax(query @ key.mT * scale) @ value``, and the logarithm of the softmax denominator of each query.

    All operands have the shape (batch, heads, length, size). If ``is_causal`` is true, query i attends only to keys 0
    to i. The kernel computes blocks of queries and keys, and never allocates the matrix of all scores.
    """
    return attention.forward(np, query, key, value, None, is_causal, scale)


def _with_expanded_mask(F: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
    rank, samples = attn_mask.ndim, query.shape[0]
    if rank == 4 and attn_mask.shape[0] == samples:
        return "samples"
    mask = F.expand(attn_mask, (samples, *(1,) * (3 - rank), *attn_mask.shape[max(rank - 3, 0) :]))
    return F.masked_attention_block(query, key, value, mask, is_causal, scale)


@op(**_KIND, vmap=_with_expanded_mask)
def masked_attention_block(
    np: Any, query: Any, key: Any, value: Any, attn_mask: Any, /, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """Return the results of ``attention_block`` with the mask ``attn_mask`` applied to the scores.

    If ``attn_mask`` is boolean, each query attends only to keys whose mask element is True. Otherwise ``attn_mask`` is
    added to the scores.
    """
    return attention.forward(np, query, key, value, attn_mask, is_causal, scale)


@shared
def _attention_rule(
    F: Any, g: Any, query: Any, key: Any, value: Any, output: Any, logsumexp: Any, is_causal: bool, scale: float
) -> tuple[Any, ...]:
    return F.attention_back(g, query, key, value, None, output, logsumexp, is_causal, scale)


@shared
def _masked_attention_rule(
    F: Any, g: Any, query: Any, key: Any, value: Any, attn_mask: Any, output: Any, logsumexp: Any, is_causal: bool,
    scale: float,
) -> tuple[Any, ...]:  # fmt: skip
    return F.attention_back(g, query, key, value, attn_mask, output, logsumexp, is_causal, scale)


attention_block.derivative(query=_attention_rule, key=_attention_rule, value=_attention_rule)
masked_attention_block.derivative(
    query=_masked_attention_rule, key=_masked_attention_rule, value=_masked_attention_rule
)


def _attention_back(g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Any, output: Any, sums: Any,
                    is_causal: bool, scale: float) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the gradients of attention with respect to ``query``, ``key`` and ``value``, for second derivatives.

    The gradients are computed by differentiable operations, which allocate the matrix of all scores. For first
    derivatives, a faster function with the same parameters is used. ``g`` is the gradient of the attention output, and
    ``mask`` is None or the attention mask. ``output`` and ``sums`` are the results of the forward pass, which only the
    faster function uses.
    """
    share = query._array.shape[1] // key._array.shape[1]
    keys, values = (_repeat_heads(each, share) for each in (key, value))
    weights = _attention_weights(query, keys, mask, is_causal, scale)
    slope = matmul(g, transpose(values, -2, -1))
    slope = weights * (slope - (weights * slope).sum(-1, True)) * scale
    grads = (
        matmul(slope, keys),
        _sum_repeated_heads(matmul(transpose(slope, -2, -1), query), share),
        _sum_repeated_heads(matmul(transpose(weights, -2, -1), g), share),
    )
    return grads


rule_function("attention_back", lambda g, *rest: attention.backward(array_module_of(g), g, *rest), _attention_back)


def _repeat_heads(x: Tensor, share: int) -> Tensor:
    """Return ``x`` of shape (batch, heads, length, size) with each head repeated ``share`` times.

    In grouped-query attention, keys and values have fewer heads than the query. They are repeated because several heads
    of the query use the same head of the keys and values.
    """
    return x if share == 1 else x.repeat_interleave(share, -3)


def _sum_repeated_heads(x: Tensor, share: int) -> Tensor:
    """Return ``x`` (batch, heads, length, size) with each group of ``share`` consecutive heads replaced by its sum.

    This is the gradient of :func:`_repeat_heads`.
    """
    if share == 1:
        return x
    batch, heads, length, size = x._array.shape
    return reshape(x, (batch, heads // share, share, length, size)).sum(2)


def _attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """Return the attention weights (…, L, S): the softmax of ``query @ key.mT * scale`` after masking.

    L is the number of queries and S the number of keys. If ``is_causal`` is true, query i has weights only for keys 0
    to i. If all keys are masked for a query, its weights are 0.
    """
    root = math.sqrt(abs(scale))
    scores = matmul(query * (root if scale >= 0 else -root), transpose(key, -2, -1) * root)
    if is_causal:
        rows, columns = scores._array.shape[-2:]
        later = wrap(~array_module_of(query._array).tri(rows, columns, dtype=bool))
        scores = scores.masked_fill(later, -math.inf)
    if mask is not None:
        added = mask if mask._array.dtype.kind != "b" else _as_additive_mask(F.logical_not(mask), query.dtype)
        scores = scores + added.to(scores.dtype)
    on_device = on_gpu(scores._array)  # on a GPU, whether a query is masked for all keys is not asked
    if on_device and mask is None:
        return softmax(scores, -1)
    fully_masked = wrap((scores._array == -math.inf).all(-1, keepdims=True))
    if not on_device and not fully_masked._array.any():
        return softmax(scores, -1)
    return softmax(scores.masked_fill(fully_masked, 0.0), -1).masked_fill(fully_masked, 0.0)


def _as_additive_mask(mask: Tensor, dtype: Any) -> Tensor:
    """Return a tensor of dtype ``dtype`` that is minus infinity where ``mask`` is True, and zero elsewhere."""
    return FUNCTIONS["zeros_like"](mask, dtype=dtype).masked_fill(mask, -math.inf)


def _check_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, is_causal: bool) -> None:
    arrays = query._array, key._array, value._array
    if is_causal and mask is not None and query._array.ndim != 4:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if len({each.dtype for each in arrays}) > 1:
        names = [cpp_name(each.dtype) for each in arrays]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: {names[1]} "
            f"and value.dtype: {names[2]} instead."
        )
    if min(each.ndim for each in arrays) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{arrays[0].ndim} key.dim: {arrays[1].ndim} and value.dim: {arrays[2].ndim} instead."
        )
    if mask is not None and str(mask._array.dtype) not in ("bool", "float32", str(query._array.dtype)):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{cpp_name(mask.dtype)} and  query.dtype: {cpp_name(query.dtype)} instead."
        )
    if not 0 <= p <= 1:
        if p < 0:
            raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _uses_blocked_kernel(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float) -> bool:
    """Return whether attention of these operands is computed in blocks of queries and keys (flash attention).

    PyTorch uses this method for the same operands. ``p`` is the dropout probability.
    """
    q, k, v = query._array, key._array, value._array
    if p > 0 or not q.ndim == k.ndim == v.ndim == 4 or not (q.size and k.size and v.size):
        return False
    if mask is not None and (mask._array.ndim not in (2, 4) or mask.requires_grad):
        return False
    return bool(
        q.dtype.kind in "fV" and q.shape[0] == k.shape[0] == v.shape[0] and k.shape[1:3] == v.shape[1:3]
        and q.shape[3] == k.shape[3] == v.shape[3] and all(each.strides[3] == each.itemsize for each in (q, k, v))
    )  # fmt: skip


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``softmax(query @ key.mT * scale + attn_mask) @ value``.

    ``query`` has shape (…, L, E), ``key`` (…, S, E) and ``value`` (…, S, Ev). If ``attn_mask`` is boolean, each query
    attends only to keys whose mask element is True. Otherwise ``attn_mask`` is added to the scores. If ``is_causal`` is
    true, query i attends only to keys 0 to i. The default of ``scale`` is 1 / sqrt(E). If ``enable_gqa`` is true,
    ``key`` and ``value`` may have fewer heads than ``query``, and several query heads use the same head of ``key`` and
    ``value``. Each attention weight is set to 0 with probability ``dropout_p``.

    Attention of 4-d inputs without dropout is computed in blocks, without allocating the matrix of all scores.

    >>> import retrograd as torch
    >>> query, key = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> value = torch.tensor([[10.0], [20.0]])
    >>> torch.nn.functional.scaled_dot_product_attention(query, key, value)
    tensor([[13.3024]])
    """
    if HANDLERS and (answer := intercept_locals(scaled_dot_product_attention, locals())) is not GO_ON:
        return answer
    _check_attention(query, key, value, attn_mask, dropout_p, is_causal)
    factor = 1.0 / math.sqrt(query._array.shape[-1]) if scale is None and query._array.shape[-1] else (scale or 1.0)
    share = 1
    if enable_gqa:
        heads, key_heads = query._array.shape[-3], key._array.shape[-3]
        if heads % key_heads or key._array.shape[-3] != value._array.shape[-3]:
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
        share = heads // key_heads
    if attn_mask is not None:
        error = broadcast_mismatch((*query._array.shape[:-1], key._array.shape[-2]), attn_mask._array.shape)
        if error is not None:
            raise error
    if (
        _uses_blocked_kernel(query, key, value, attn_mask, dropout_p)
        and query._array.shape[1] == key._array.shape[1] * share
    ):
        if attn_mask is None:
            return attention_block(query, key, value, is_causal, factor)[0]
        return masked_attention_block(query, key, value, attn_mask, is_causal, factor)[0]
    if enable_gqa:
        key, value = _repeat_heads(key, share), _repeat_heads(value, share)
    weights = _attention_weights(query, key, attn_mask, is_causal, factor)
    return matmul(dropout(weights, dropout_p), value)


# -- Multi-head attention --------------------------------------------------------------------------------------------


def _projected(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the linear projection ``x @ weight.T + bias``, where ``x`` is 2-d or 3-d."""
    flat = reshape(x, (-1, x._array.shape[-1])) if x._array.ndim == 3 else x
    out = matmul(flat, t(weight)) if bias is None else addmm(bias, flat, t(weight))
    return out if flat is x else view(out, (*x._array.shape[:-1], weight._array.shape[0]))


def _check_heads(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Check the shapes for multi-head attention, and return whether the operands have a batch dimension.

    Raise AssertionError if the numbers of dimensions of ``query``, ``key``, ``value``, of the padding mask ``padding``
    and of the attention mask ``mask`` do not fit together. Also raise AssertionError if there is no batch dimension and
    a 3-d ``mask`` has the wrong shape for ``heads`` heads.
    """
    rank, ranks = query._array.ndim, (key._array.ndim, value._array.ndim)
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    what = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if ranks != (rank, rank):
        raise AssertionError(
            f"For {what} `query`, expected `key` and `value` to be {rank}-D but found {ranks[0]}-D and {ranks[1]}-D "
            "tensors respectively"
        )
    if padding is not None and padding._array.ndim != rank - 1:
        raise AssertionError(
            f"For {what} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{padding._array.ndim}-D tensor instead"
        )
    if mask is not None:
        if mask._array.ndim not in (2, 3):
            raise AssertionError(
                f"For {what} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask._array.ndim}-D tensor "
                "instead"
            )
        wanted = (heads, query._array.shape[0], key._array.shape[0])
        if rank == 2 and mask._array.ndim == 3 and mask._array.shape != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")
    return rank == 3


def _additive_mask(mask: Tensor | None, name: str, other: Tensor | None, dtype: Any) -> Tensor | None:
    """Return ``mask``, a mask of multi-head attention, as values to add to the scores, or None if ``mask`` is None.

    A boolean ``mask`` is True for the keys to ignore. It becomes a tensor of dtype ``dtype`` that is minus infinity for
    these keys, and 0 for the others. Raises AssertionError if ``mask`` is neither boolean nor floating-point. ``name``
    is the name of the mask in the error message. ``other`` is not used.
    """
    if mask is None:
        return None
    if mask._array.dtype.kind not in "bfV":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return _as_additive_mask(mask, dtype) if mask._array.dtype.kind == "b" else mask


def _projections(
    query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Any, separate: tuple[Any, Any, Any] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the linear projections of ``query``, ``key`` and ``value``, each with its own weight matrix and bias.

    ``weight`` holds the three weight matrices, concatenated along dimension 0. If ``separate`` is not None, it is the
    tuple of the three weight matrices, and ``weight`` is not used. ``bias`` is None or holds the three biases,
    concatenated.
    """
    size = query._array.shape[-1]
    if separate is not None:
        for each, name in zip(separate, "qkv", strict=True):
            if each is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        parts = (None,) * 3 if bias is None else bias.chunk(3)
        return tuple(  # type: ignore[return-value]
            _projected(x, w, b) for x, w, b in zip((query, key, value), separate, parts, strict=True)
        )
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key and key is value:
        return _projected(query, weight, bias).chunk(3, -1)
    parts = (None,) * 3 if bias is None else bias.split(size)
    return tuple(  # type: ignore[return-value]
        _projected(x, w, b) for x, w, b in zip((query, key, value), weight.split(size), parts, strict=True)
    )


def _split_heads(x: Tensor, batch: int, heads: int) -> Tensor:
    """Return ``x`` of shape (L, batch, heads * size) as a tensor of shape (batch * heads, L, size)."""
    return transpose(view(x.contiguous(), (x._array.shape[0], batch * heads, x._array.shape[2] // heads)), 0, 1)


def _checked_static(x: Tensor, name: str, batch: int, heads: int, size: int) -> Tensor:
    """Return ``x``, the argument named ``name`` (static_k or static_v) of ``multi_head_attention_forward``.

    Raise AssertionError if the shape of ``x`` is not (``batch * heads``, S, ``size``).
    """
    for dim, wanted in ((0, batch * heads), (2, size)):
        if x._array.shape[dim] != wanted:
            raise AssertionError(f"expecting {name}.size({dim}) of {wanted}, but got {x._array.shape[dim]}")
    return x


def _masks_for_added_key(masks: list[Tensor | None]) -> list[Tensor | None]:
    """Return ``masks``, extended by one key, which is appended at the end and is not masked.

    ``masks`` holds masks that are added to the scores, and whose last dimension is that of the keys. A zero is appended
    along this dimension. A mask that is None stays None.
    """
    return [None if each is None else F.constant_pad_nd_block(each, (0, 1), 0) for each in masks]


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return multi-head attention with input and output projections, as ``torch.nn.MultiheadAttention`` computes it.

    ``query`` has shape (L, batch, E), ``key`` and ``value`` (S, batch, E). All three may also have no batch dimension.
    ``embed_dim_to_check`` must be E. The weights, the biases and the masks are those of
    ``torch.nn.MultiheadAttention``. If ``static_k`` or ``static_v`` is not None, it replaces the projected keys or
    values.

    The first result is the output (L, batch, E). If ``need_weights`` is false, the second result is None. Otherwise the
    second result holds the attention weights, averaged over the heads, of shape (batch, L, S). If
    ``average_attn_weights`` is false, the weights are not averaged and have shape (batch, heads, L, S).

    >>> import retrograd as torch
    >>> x, weights = torch.ones(5, 1, 4), (torch.ones(12, 4), torch.zeros(12), None, None)
    >>> output, attention = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, *weights, False, 0.0, torch.eye(4), torch.zeros(4)
    ...   )
    >>> output.shape, attention.shape
    (torch.Size([5, 1, 4]), torch.Size([1, 5, 5]))
    """
    batched = _check_heads(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    length, batch, embed = query._array.shape
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    size = embed // num_heads
    padding = _additive_mask(key_padding_mask, "key_padding_mask", attn_mask, query.dtype)
    if is_causal and padding is None and not need_weights:
        mask = None  # the hint already implies this mask
    else:
        mask = _additive_mask(attn_mask, "attn_mask", None, query.dtype)
        is_causal = is_causal and padding is None
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projections(query, key, value, in_proj_weight, in_proj_bias, separate)
    mask = _check_mask(mask, length, key._array.shape[0], batch * num_heads)
    if bias_k is not None or bias_v is not None:
        k, v = _with_bias(k, v, bias_k, bias_v, static_k, static_v)
        mask, padding = _masks_for_added_key([mask, padding])
    q = _split_heads(q, batch, num_heads)
    k = (
        _split_heads(k, batch, num_heads)
        if static_k is None
        else _checked_static(static_k, "static_k", batch, num_heads, size)
    )
    v = (
        _split_heads(v, batch, num_heads)
        if static_v is None
        else _checked_static(static_v, "static_v", batch, num_heads, size)
    )
    if add_zero_attn:
        zeros = FUNCTIONS["zeros_like"](k[:, :1])
        k, v = cat([k, zeros], 1), cat([v, zeros], 1)
        mask, padding = _masks_for_added_key([mask, padding])
    mask = _with_padding(mask, padding, batch, num_heads, k._array.shape[1])
    p = dropout_p if training else 0.0
    if need_weights:
        out, weights = _attention_with_weights(q, k, v, mask, p)
        out = reshape(transpose(out, 0, 1).contiguous(), (length * batch, embed))
        weights = view(weights, (batch, num_heads, length, k._array.shape[1]))
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        out, weights = _attention_output(q, k, v, mask, p, is_causal, batch, num_heads), None
    out = view(_projected(out, out_proj_weight, out_proj_bias), (length, batch, out_proj_weight._array.shape[0]))
    if batched:
        return out, weights
    return squeeze(out, 1), None if weights is None else squeeze(weights, 0)


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``query``, ``key`` and ``value`` with a batch dimension of size 1 inserted at index 1.

    If ``key`` is ``query``, or ``value`` is ``key``, the corresponding results are also the same tensor.
    """
    batched = unsqueeze(query, 1)
    keys = batched if key is query else unsqueeze(key, 1)
    return batched, keys, keys if value is key else unsqueeze(value, 1)


def _with_bias(
    k: Tensor, v: Tensor, bias_k: Tensor | None, bias_v: Tensor | None, static_k: Any, static_v: Any
) -> tuple[Tensor, Tensor]:
    """Return keys ``k`` and values ``v`` with the learned key ``bias_k`` and the learned value ``bias_v`` appended.

    Raise AssertionError if only one of ``bias_k`` and ``bias_v`` is None, or if ``static_k`` or ``static_v`` is not
    None.
    """
    if bias_k is None or bias_v is None:
        raise AssertionError(
            "bias_k is set but bias_v is None" if bias_v is None else "bias_v is set but bias_k is None"
        )
    for what, given in (("key", static_k), ("value", static_v)):
        if given is not None:
            raise AssertionError(f"bias cannot be added to static {what}.")
    batch = k._array.shape[1]
    return cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, embed: int, heads: int, separate: bool) -> None:
    have = query._array.shape[2]
    if have != embed:
        raise AssertionError(f"was expecting embedding dimension of {embed}, but got {have}")
    if embed % heads:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {heads}")
    if separate:
        if key._array.shape[:2] != value._array.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key._array.shape != value._array.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_mask(mask: Tensor | None, length: int, keys: int, count: int) -> Tensor | None:
    """Return ``mask`` as a 3-d tensor whose first dimension is 1 or ``count``, or None if ``mask`` is None.

    ``count`` is the batch size times the number of heads. Raises RuntimeError if the shape of ``mask`` is neither
    (``length``, ``keys``) nor (``count``, ``length``, ``keys``).
    """
    if mask is None:
        return None
    wanted = (length, keys) if mask._array.ndim == 2 else (count, length, keys)
    if mask._array.shape != wanted:
        raise RuntimeError(f"The shape of the {mask._array.ndim}D attn_mask is {mask.shape}, but should be {wanted}.")
    return unsqueeze(mask, 0) if mask._array.ndim == 2 else mask


def _with_padding(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int) -> Tensor | None:
    """Return the sum of the attention mask ``mask`` and the padding mask ``padding``, repeated for each head.

    ``padding`` has shape (``batch``, ``keys``). If ``padding`` is None, return ``mask``. If ``mask`` is None, return
    the repeated ``padding``.
    """
    if padding is None:
        return mask
    if padding._array.shape[0] != batch:
        raise AssertionError(f"Expected key_padded_mask.shape[0] to be {batch}, but got {padding._array.shape[0]}")
    if padding._array.shape[1] != keys:
        raise AssertionError(f"Expected key_padded_mask.shape[1] to be {keys}, but got {padding._array.shape[1]}")
    wide = F.expand(view(padding, (batch, 1, 1, keys)), (batch, heads, 1, keys))
    wide = reshape(wide, (batch * heads, 1, keys))
    return wide if mask is None else mask + wide


def _attention_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Tensor, Tensor]:
    """Return the tuple (attention output, attention weights), computed without :func:`scaled_dot_product_attention`.

    The output has shape (batch * heads, L, size), and the weights have shape (batch * heads, L, S). ``mask`` is None or
    is added to the scores. Each weight is set to 0 with probability ``p``.
    """
    q = q * math.sqrt(1.0 / q._array.shape[-1])
    transposed_key = transpose(k, -2, -1)
    scores = bmm(q, transposed_key) if mask is None else baddbmm(mask, q, transposed_key)
    weights = softmax(scores, -1)
    if p > 0:
        weights = dropout(weights, p)
    return bmm(weights, v), weights


def _attention_output(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, is_causal: bool, batch: int, heads: int
) -> Tensor:
    """Return the attention output as a matrix (L * batch, E), in which the outputs of all heads are concatenated.

    ``q``, ``k`` and ``v`` have shape (batch * heads, length, size). ``mask`` is None or the attention mask. If
    ``is_causal`` is true, query i attends only to keys 0 to i. Each attention weight is set to 0 with probability
    ``p``.
    """
    if mask is not None:
        one = mask._array.shape[0] == 1 and mask._array.ndim == 3
        mask = unsqueeze(mask, 0) if one else view(mask, (batch, heads, -1, k._array.shape[1]))
    q, k, v = (view(each, (batch, heads, *each._array.shape[1:])) for each in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, mask, p, is_causal)
    length, size = q._array.shape[2], v._array.shape[3]
    return view(permute(out, 2, 0, 1, 3).contiguous(), (length * batch, heads * size))


__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]
