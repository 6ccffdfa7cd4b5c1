"""Samples of embeddings and linear maps."""

from __future__ import annotations

from tests.conformance.samples import Sample, integers, normal, unique_expressions

F = "torch.nn.functional."
TABLE = {"t": normal(5, 3)}
ROWS = {"i": integers(0, 5, 6), **TABLE}
BAGS = "torch.tensor([0, 2, 2, 5])"

SAMPLES = [
    Sample("embedding", F + "embedding(i, t)", **ROWS),
    Sample("embedding", F + "embedding(i, t)", i=integers(0, 5, 2, 3), **TABLE),
    Sample("embedding", F + "embedding(i, t)", i=integers(0, 5), **TABLE),
    Sample("embedding", F + "embedding(i.int(), t)", i=integers(0, 5, 2, 3), **TABLE),
    Sample("embedding", F + "embedding(i, t, padding_idx=2)", named=True, **ROWS),
    Sample("embedding", F + "embedding(i, t, -2)", named=True, **ROWS),
    Sample("embedding", F + "embedding(i, t, scale_grad_by_freq=True)", named=True, **ROWS),
    Sample("embedding", F + "embedding(i, t, 1, scale_grad_by_freq=True)", named=True, i=integers(0, 3, 3, 3), **TABLE),
    Sample("embedding", F + "embedding(i, t.clone(), max_norm=0.8)", named=True, **ROWS),
    Sample("embedding", F + "embedding(i, t.clone(), max_norm=0.8, norm_type=1)", named=True, **ROWS),
    Sample("embedding", "torch.embedding(t, i, 3, False, False)", named=True, **ROWS),
    Sample("embedding", F + "embedding(i, t.t())", i=integers(0, 3, 4), **TABLE),
    Sample("embedding", F + "embedding(i, j)", smooth=False, i=integers(0, 4, 3), j=integers(0, 9, 4, 2)),
    Sample("embedding_renorm_", "torch.embedding_renorm_(t.clone(), i, 0.7, 2.0)", smooth=False, **ROWS),
]
for mode in ("sum", "mean", "max"):
    SAMPLES += [
        Sample("embedding_bag", f"{F}embedding_bag(i, t, mode='{mode}')", i=integers(0, 5, 2, 3), **TABLE),
        Sample("embedding_bag", f"{F}embedding_bag(i, t, {BAGS}, mode='{mode}')", **ROWS),
        Sample(
            "embedding_bag", f"{F}embedding_bag(i, t, torch.tensor([0, 2, 6]), mode='{mode}', include_last_offset=True)",
            **ROWS,
        ),
        Sample("embedding_bag", f"{F}embedding_bag(i, t, {BAGS}, mode='{mode}', padding_idx=2)",
               i=integers(1, 4, 6), **TABLE),
        Sample("embedding_bag", f"{F}embedding_bag(i, t.clone(), {BAGS}, 0.8, mode='{mode}')", named=True, **ROWS),
    ]  # fmt: skip
SAMPLES += [
    # scale_grad_by_freq: PyTorch divides by the frequency of another row, retrograd by that of the row.
    # Bags: PyTorch's gradient is not differentiable; test_functional.py tests retrograd's.
    Sample(
        "embedding_bag", f"{F}embedding_bag(i, t, {BAGS}, mode='sum', per_sample_weights=w, padding_idx=2)",
        smooth=False, i=integers(1, 4, 6), w=normal(6), **TABLE,
    ),
    Sample("embedding_bag", f"torch.embedding_bag(t, i, {BAGS})[0]", **ROWS),
    Sample("embedding_bag", f"torch.embedding_bag(t, i, {BAGS}, mode=1)[1:3]", smooth=False, **ROWS),
    Sample("one_hot", F + "one_hot(i)", smooth=False, i=integers(0, 4, 5)),
    Sample("one_hot", F + "one_hot(i, num_classes=6)", smooth=False, i=integers(0, 4, 2, 3)),
    Sample("one_hot", F + "one_hot(i)", smooth=False, i=integers(0, 4)),
    Sample("one_hot", F + "one_hot(i[:0], 3)", smooth=False, i=integers(0, 4, 2)),
    Sample("linear", F + "linear(x, w)", x=normal(2, 3), w=normal(4, 3)),
    Sample("linear", F + "linear(x, w, b)", x=normal(2, 3), w=normal(4, 3), b=normal(4)),
    Sample("linear", F + "linear(x, w)", x=normal(3), w=normal(4, 3)),
    Sample("linear", F + "linear(x, w, b)", x=normal(3), w=normal(4, 3), b=normal(4)),
    Sample("linear", F + "linear(x, w, b)", x=normal(2, 2, 3), w=normal(4, 3), b=normal(4)),
    Sample("linear", F + "linear(x, w)", x=normal(2, 2, 3), w=normal(4, 3)),
    Sample("linear", F + "linear(x.mT, w, b)", x=normal(2, 3, 2), w=normal(4, 3), b=normal(4)),
    Sample("linear", F + "linear(x, w, b)", x=normal(2, 1, 2, 3), w=normal(4, 3), b=normal(4)),
    Sample("linear", F + "linear(x, w)", x=normal(2, 3), w=normal(3)),
    Sample("linear", F + "linear(x, w)", x=normal(3), w=normal(3)),
    Sample("linear", F + "linear(x, w, b)", x=normal(2, 3), w=normal(3), b=normal()),
    Sample("bilinear", F + "bilinear(x, y, w)", x=normal(2, 3), y=normal(2, 4), w=normal(2, 3, 4)),
    Sample("bilinear", F + "bilinear(x, y, w, b)", x=normal(2, 3), y=normal(2, 4), w=normal(2, 3, 4), b=normal(2)),
    Sample("bilinear", "torch.bilinear(x, y, w)", x=normal(2, 2, 3), y=normal(2, 2, 2), w=normal(2, 3, 2)),
    Sample("bilinear", "torch.bilinear(x, y, w)", x=normal(3), y=normal(2), w=normal(4, 3, 2)),
]  # fmt: skip
# Squared results make the incoming gradient depend on the inputs, which tests the second derivative by the gradient.
_seen: set[str] = set()
for _each in list(SAMPLES):
    if _each.smooth and _each.op not in {*_seen, "embedding_bag"} and "[:0]" not in _each.expression:
        _seen.add(_each.op)
        SAMPLES.append(Sample(_each.op, f"({_each.expression}).square()", **_each.inputs))
unique_expressions(SAMPLES)
