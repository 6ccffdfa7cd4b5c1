"""Samples of attention."""

from __future__ import annotations

from . import Sample, booleans, normal

F = "torch.nn.functional"
S = f"{F}.scaled_dot_product_attention"
Q = {"q": normal(2, 2, 3, 2), "k": normal(2, 2, 4, 2), "v": normal(2, 2, 4, 2)}
FEW = {"q": normal(1, 4, 3, 2), "k": normal(1, 2, 3, 2), "v": normal(1, 2, 3, 2)}
FLAT = {"q": normal(2, 3, 2), "k": normal(2, 4, 2), "v": normal(2, 4, 3)}
SAMPLES = [
    Sample("attention", f"{S}(q, k, v)", **Q),
    Sample("attention", f"{S}(q, k, v, is_causal=True)", **Q),
    Sample("attention", f"{S}(q, k, v, scale=0.3)", **Q),
    Sample("attention", f"{S}(q, k, v, m)", **Q, m=booleans(3, 4)),
    Sample("attention", f"{S}(q, k, v, m )", **Q, m=booleans(2, 1, 1, 4)),
    Sample("attention", f"{S}(q, k, v, torch.arange(12, dtype=q.dtype).reshape(3, 4) / 9)", **Q),
    Sample("attention", f"{S}(q, k, v, n)", **Q, n=normal(2, 1, 3, 4)),
    Sample("attention", f"{S}(q, k, v, m, is_causal=True)", **Q, m=booleans(3, 4)),
    Sample("attention", f"{S}(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))", q=normal(1, 3, 2, 2),
           k=normal(1, 2, 2, 2), v=normal(1, 2, 2, 2)),
    Sample("attention", f"{S}(q, k, v, enable_gqa=True)", **FEW),
    Sample("attention", f"{S}(q, k, v, enable_gqa=True, is_causal=True)", **FEW),
    Sample("attention", f"{S}(q[0], k[0], v[0], enable_gqa=True)", **FEW),
    Sample("attention", f"{S}(q[0], k[0], v[0])", **Q),
    Sample("attention", f"{S}(q, k, v[..., :1])", **Q),
    Sample("attention", f"{S}(q[0, 0], k[0, 0], v[0, 0], is_causal=True)", **Q),
    Sample("attention", f"{S}(q, k[:1], v[:1])", **Q),
    Sample("attention", f"{S}(q, k, v )", **FLAT),
    Sample("attention", f"{S}(q, k, v, m  )", **FLAT, m=booleans(3, 4)),
]  # fmt: skip
M = f"{F}.multi_head_attention_forward"
X = {"x": normal(3, 2, 4), "w": normal(12, 4), "b": normal(12), "u": normal(4, 4), "c": normal(4)}
Y = {**X, "y": normal(2, 2, 4), "z": normal(2, 2, 4)}
for how in (
    "", ", need_weights=False", ", average_attn_weights=False", ", attn_mask=torch.ones(3, 3).tril() == 0",
    ", attn_mask=torch.ones(3, 3).tril() == 0, is_causal=True, need_weights=False",
    ", key_padding_mask=torch.tensor([[False, False, True], [False, True, False]])",
    ", key_padding_mask=torch.tensor([[False, False, True], [False, True, False]]), need_weights=False",
    ", attn_mask=torch.ones(4, 3, 3, dtype=x.dtype), need_weights=False",
):  # fmt: skip
    SAMPLES.append(Sample("multi_head", f"{M}(x, x, x, 4, 2, w, b, None, None, False, 0., u, c{how})", **X))
SAMPLES += [
    Sample("multi_head", f"{M}(x, y, y, 4, 2, w, b, None, None, False, 0., u, c)", **Y),
    Sample("multi_head", f"{M}(x, y, z, 4, 2, w, None, None, None, False, 0., u, None)", **Y),
    Sample("multi_head", f"{M}(x, y, z, 4, 2, w, b, None, None, True, 0., u, c)", **Y),
    Sample("multi_head", f"{M}(x, y, z, 4, 2, w, b, c[None, None], c[None, None] * 2, False, 0., u, c)", **Y),
    Sample("multi_head", f"{M}(x[:, 0], y[:, 0], z[:, 0], 4, 2, w, b, None, None, False, 0., u, c)", **Y),
    Sample("multi_head", f"{M}(x, y, z, 4, 2, None, b, None, None, False, 0., u, c, use_separate_proj_weight=True, "
           "q_proj_weight=w[:4], k_proj_weight=w[4:8], v_proj_weight=w[8:])", **Y),
]  # fmt: skip
