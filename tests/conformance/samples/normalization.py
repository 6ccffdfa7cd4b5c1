"""Samples of normalisation.

With a bias and no weight PyTorch has no second derivative, which retrograd has: no sample does that. In PyTorch the
graph also goes through the mean and 1 / standard deviation that the native functions return; in retrograd it does not.
"""

from __future__ import annotations

from tests.conformance.samples import Sample, normal, positive, unique_expressions

F = "torch.nn.functional."
AFFINE = {"w": normal(4), "b": normal(4)}
ONES = "torch.full((4,), 1.5, dtype=x.dtype)"
ZEROS = "torch.full((4,), 0.25, dtype=x.dtype)"

SAMPLES = [
    Sample("layer_norm", F + "layer_norm(x, (4,))", x=normal(3, 4)),
    Sample("layer_norm", F + "layer_norm(x, (4,), w, b)", x=normal(3, 4), **AFFINE),
    Sample("layer_norm", F + "layer_norm(x, [4], w)", x=normal(2, 3, 4), w=normal(4)),
    Sample("layer_norm", F + "layer_norm(x, (4,), w, None, eps=0.1)", x=normal(4), w=normal(4)),
    Sample("layer_norm", F + "layer_norm(x, (3, 2), w, b)", x=normal(2, 3, 2), w=normal(3, 2), b=normal(3, 2)),
    Sample("layer_norm", F + "layer_norm(x.t(), (3,), w, b)", x=normal(3, 2), w=normal(3), b=normal(3)),
    Sample("layer_norm", "torch.layer_norm(x, (4,), w, b, 1e-3)", x=normal(2, 4), **AFFINE),
    Sample("native_layer_norm", "torch.native_layer_norm(x, (4,), w, b, 1e-5)[0]", x=normal(2, 4), **AFFINE),
    Sample(
        "native_layer_norm", "torch.native_layer_norm(x, (3, 2), None, None, 1e-5)", smooth=False, x=normal(2, 3, 2)
    ),
    Sample("group_norm", F + "group_norm(x, 2)", x=normal(2, 4, 3)),
    Sample("group_norm", F + "group_norm(x, 2, w, b)", x=normal(2, 4, 3), **AFFINE),
    Sample("group_norm", F + "group_norm(x, 1, w, b, eps=0.01)", x=normal(2, 4), **AFFINE),
    Sample("group_norm", F + "group_norm(x, 4, w)", x=normal(1, 4, 2, 2), w=normal(4)),
    Sample("group_norm", "torch.group_norm(x, 2, w)", x=normal(2, 4, 1, 2), w=normal(4)),
    Sample("native_group_norm", "torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5)[0]", x=normal(2, 4, 3), **AFFINE),
    Sample(
        "native_group_norm", "torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)", smooth=False, x=normal(2, 4, 3)
    ),
    Sample("batch_norm", F + "batch_norm(x, None, None, training=True)", x=normal(3, 4)),
    Sample("batch_norm", F + "batch_norm(x, None, None, w, b, True)", x=normal(3, 4), **AFFINE),
    Sample("batch_norm", F + "batch_norm(x, None, None, w, b, training=True, eps=0.1)", x=normal(2, 4, 3), **AFFINE),
    Sample("batch_norm", F + "batch_norm(x, None, None, w, training=True)", x=normal(2, 4, 1, 2), w=normal(4)),
    Sample("batch_norm", f"{F}batch_norm(x, {ZEROS}, {ONES}, w, b)", x=normal(3, 4), **AFFINE),
    Sample("batch_norm", f"{F}batch_norm(x, {ZEROS}, {ONES})", x=normal(1, 4, 2)),
    Sample("batch_norm", f"{F}batch_norm(x, {ZEROS}, {ONES}, w, b, True)", x=normal(3, 4), **AFFINE),
    Sample("batch_norm", f"torch.batch_norm(x, w, b, {ZEROS}, {ONES}, True, 0.2, 1e-3, True)", x=normal(3, 4), **AFFINE),
    Sample(
        "batch_norm",
        f"[(m, v) for m, v in [({ZEROS}, {ONES})] if {F}batch_norm(x, m, v, training=True, momentum=0.3) is not None][0]",
        smooth=False, x=normal(3, 4, 2),
    ),
    Sample(
        "native_batch_norm", "torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)[0]", x=normal(3, 4), **AFFINE
    ),
    Sample(
        "native_batch_norm", "torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)", smooth=False,
        x=normal(3, 4, 2),
    ),
    Sample("instance_norm", F + "instance_norm(x)", x=normal(2, 4, 3)),
    Sample("instance_norm", F + "instance_norm(x, weight=w, bias=b)", x=normal(2, 4, 3), **AFFINE),
    Sample("instance_norm", F + "instance_norm(x, eps=0.1)", x=normal(1, 2, 2, 2)),
    Sample("instance_norm", f"{F}instance_norm(x, {ZEROS}, {ONES}, w, b, False)", x=normal(2, 4, 3), **AFFINE),
    Sample("instance_norm", f"{F}instance_norm(x, {ZEROS}, {ONES})", x=normal(2, 4, 3)),
    Sample("instance_norm", "torch.instance_norm(x, w, b, None, None, True, 0.1, 1e-5, True)", x=normal(2, 4, 3),
           **AFFINE),
    Sample(
        "instance_norm",
        f"[(m, v) for m, v in [({ZEROS}, {ONES})] if {F}instance_norm(x, m, v, momentum=0.3) is not None][0]",
        smooth=False, x=normal(3, 4, 2),
    ),
    Sample("rms_norm", F + "rms_norm(x, (4,))", x=normal(3, 4)),
    Sample("rms_norm", F + "rms_norm(x, (4,), w)", x=normal(3, 4), w=normal(4)),
    Sample("rms_norm", F + "rms_norm(x, (3, 2), w, eps=0.1)", x=normal(2, 3, 2), w=normal(3, 2)),
    Sample("rms_norm", "torch.rms_norm(x, [4])", x=normal(3, 4)),
    Sample("local_response_norm", F + "local_response_norm(x, 2)", x=normal(2, 4, 3)),
    Sample("local_response_norm", F + "local_response_norm(x, 3, alpha=0.5, beta=0.6, k=2)", x=normal(2, 4, 2, 2)),
    Sample("local_response_norm", F + "local_response_norm(x, 2, 0.1)", x=normal(1, 3, 2, 1, 2)),
    Sample("normalize", F + "normalize(x)", x=normal(3, 4)),
    Sample("normalize", F + "normalize(x, p=1)", x=normal(3, 4)),
    Sample("normalize", F + "normalize(x, p=3, dim=0)", x=positive(3, 4)),
    Sample("normalize", F + "normalize(x, dim=(0, 2))", x=normal(2, 3, 2)),
    Sample("normalize", F + "normalize(x, dim=-1, eps=10)", x=normal(2, 3)),
]  # fmt: skip
# Squared results make the incoming gradient depend on the inputs, which tests the second derivative by the gradient.
_seen: set[str] = set()
for _each in list(SAMPLES):
    if _each.smooth and _each.op not in _seen and "[:0]" not in _each.expression:
        _seen.add(_each.op)
        SAMPLES.append(Sample(_each.op, f"({_each.expression}).square()", **_each.inputs))
unique_expressions(SAMPLES)
