"""Samples of reductions, sorting and softmax."""

from __future__ import annotations

from . import Sample, booleans, complexes, distinct, integers, normal, positive

DIMS = ["", "0", "-1", "1, True", "(0, 2)", "(0, -1), True"]
SAMPLES: list[Sample] = []
for name in ("sum", "mean", "var", "std", "nansum"):
    for dims in DIMS:
        arguments = dims.replace("True", "keepdim=True")
        SAMPLES.append(Sample(name, f"torch.{name}(x{', ' if dims else ''}{arguments})", x=normal(2, 3, 2)))
    SAMPLES.append(Sample(name, f"x.transpose(0, 2).{name}(1)", x=normal(2, 3, 2)))
for name in ("amax", "amin", "logsumexp"):
    SAMPLES += [
        Sample(name, f"torch.{name}(x, {dims})", x=distinct(2, 3, 2)) for dims in ("0", "-1", "1, True", "(0, 2)")
    ]
for name in ("sum", "mean", "prod"):
    SAMPLES.append(Sample(name, f"torch.{name}(z)", z=complexes(2, 2)))
    SAMPLES.append(Sample(name, f"torch.{name}(x )", x=normal()))
    SAMPLES.append(Sample(name, f"torch.{name}(x, dtype=torch.float32)", smooth=False, x=normal(3)))
for name in ("sum", "prod"):
    SAMPLES.append(Sample(name, f"torch.{name}(i)", smooth=False, i=integers(1, 4, 2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(b, 0)", smooth=False, b=booleans(2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(x, 0 )", smooth=False, x=normal(0, 3)))
for name in ("max", "min"):
    SAMPLES += [
        Sample(name, f"torch.{name}(x)", x=distinct(3, 4)),
        Sample(name, f"torch.{name}(x, 1)", x=distinct(3, 4)),
        Sample(name, f"torch.{name}(x, 0, True)", x=distinct(3, 4)),
        Sample(name, f"torch.{name}(x, y)", x=distinct(3, 4), y=normal(4)),
        Sample(name, f"torch.{name}(i, -1)", smooth=False, i=integers(0, 4, 3, 4)),
        Sample(f"arg{name}", f"torch.arg{name}(x)", smooth=False, x=distinct(3, 4)),
        Sample(f"arg{name}", f"torch.arg{name}(x, 1, keepdim=True)", smooth=False, x=distinct(3, 4)),
        Sample(f"arg{name}", f"torch.arg{name}(i, 0)", smooth=False, i=integers(0, 3, 3, 4)),
    ]
for name in ("median", "nanmedian"):
    SAMPLES += [
        Sample(name, f"torch.{name}(x)", x=distinct(3, 4)),
        Sample(name, f"torch.{name}(x, 1)", x=distinct(3, 4)),
        Sample(name, f"torch.{name}(x, 0, keepdim=True)", x=distinct(3, 4)),
    ]
SAMPLES += [
    Sample("prod", "torch.prod(x)", x=positive(2, 3)),
    Sample("prod", "torch.prod(x, 1)", x=positive(2, 3)),
    Sample("prod", "x.prod(0, keepdim=True)", x=positive(2, 3)),
    Sample("prod", "torch.prod(x * i)", x=positive(4), i=integers(0, 2, 4)),
    Sample("var", "torch.var(x, unbiased=False)", x=normal(2, 3)),
    Sample("var", "torch.var(x, 1, correction=0)", x=normal(2, 3)),
    Sample("std", "torch.std(x, 0, False)", x=normal(2, 3)),
    Sample("var_mean", "torch.var_mean(x, 1)", x=normal(2, 3)),
    Sample("std_mean", "torch.std_mean(x)", x=normal(2, 3)),
    Sample("amax", "torch.amax(x)", x=distinct(2, 3)),
    Sample("aminmax", "torch.aminmax(x, dim=1)", x=distinct(2, 3)),
    Sample("mode", "torch.mode(i)", smooth=False, i=integers(0, 3, 3, 5)),
    Sample("mode", "torch.mode(x, 0)", x=distinct(3, 2)),
    Sample("all", "torch.all(b)", smooth=False, b=booleans(2, 3)),
    Sample("all", "torch.all(b, 1)", smooth=False, b=booleans(2, 3)),
    Sample("any", "torch.any(b, 0, keepdim=True)", smooth=False, b=booleans(2, 3)),
    Sample("any", "torch.any(i)", smooth=False, i=integers(0, 2, 2, 3)),
    Sample("count_nonzero", "torch.count_nonzero(i, 1)", smooth=False, i=integers(0, 2, 2, 3)),
    Sample("norm", "torch.norm(x)", x=normal(2, 3)),
    Sample("norm", "torch.norm(x, 1, 1)", x=distinct(2, 3)),
    Sample("norm", "x.norm(3, dim=0)", x=normal(2, 3)),
    Sample("norm", "x.norm(2, dim=1, keepdim=True)", x=normal(2, 3)),
    Sample("norm", "x.norm(float('inf'))", x=distinct(2, 3)),
    Sample("norm", "torch.norm(z)", z=complexes(3)),
    Sample("nanmean", "torch.nanmean(x, 1)", x=normal(2, 3)),
    Sample("sort", "torch.sort(x)", x=distinct(3, 4)),
    Sample("sort", "torch.sort(x, 0, descending=True)", x=distinct(3, 4)),
    Sample("sort", "torch.sort(i, stable=True)", smooth=False, i=integers(0, 3, 3, 4)),
    Sample("argsort", "torch.argsort(x, 1, True)", smooth=False, x=distinct(3, 4)),
    Sample("msort", "torch.msort(x)", x=distinct(3, 4)),
    Sample("topk", "torch.topk(x, 2)", x=distinct(3, 4)),
    Sample("topk", "torch.topk(x, 2, 0, largest=False)", x=distinct(3, 4)),
    Sample("kthvalue", "torch.kthvalue(x, 2, 0)", x=distinct(3, 4)),
    Sample("unique", "torch.unique(i)", smooth=False, i=integers(0, 4, 3, 4)),
    Sample("unique", "torch.unique(i, return_inverse=True, return_counts=True)", smooth=False, i=integers(0, 4, 3, 4)),
    Sample("unique", "torch.unique(i, dim=0)", smooth=False, i=integers(0, 2, 5, 2)),
    Sample("unique_consecutive", "torch.unique_consecutive(i, return_counts=True)", smooth=False, i=integers(0, 2, 9)),
    Sample("bincount", "torch.bincount(i)", smooth=False, i=integers(0, 5, 9)),
    Sample("bincount", "torch.bincount(i, x, minlength=8)", smooth=False, i=integers(0, 5, 9), x=positive(9)),
    Sample("histc", "torch.histc(x, 4, -2, 2)", smooth=False, x=normal(12)),
    Sample("histc", "torch.histc(x, 3)", smooth=False, x=normal(12)),
    Sample("searchsorted", "torch.searchsorted(x.sort()[0], y)", smooth=False, x=normal(6), y=normal(3)),
    Sample("bucketize", "torch.bucketize(y, x.sort()[0], right=True)", smooth=False, x=normal(6), y=normal(3)),
    Sample("isin", "torch.isin(i, j)", smooth=False, i=integers(0, 5, 6), j=integers(0, 5, 2)),
    Sample("softmax", "torch.softmax(x, 1)", x=normal(3, 4)),
    Sample("softmax", "x.softmax(0)", x=normal(3, 4)),
    Sample("log_softmax", "torch.log_softmax(x, -1)", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.cross_entropy(x, i)", x=normal(3, 4), i=integers(0, 4, 3)),
    *(
        Sample("segment_reduce", f"torch.segment_reduce(x, '{kind}', lengths=torch.tensor([2, 3]))", x=distinct(5, 2))
        for kind in ("sum", "mean", "max", "min", "prod")
    ),
    Sample("segment_reduce", "torch.segment_reduce(x, 'sum', offsets=torch.tensor([0, 1, 1, 5]))", x=normal(5)),
    Sample(
        "segment_reduce", "torch.segment_reduce(x, 'max', lengths=torch.tensor([2, 3]), initial=0.1)", x=distinct(5)
    ),
    Sample(
        "segment_reduce",
        "torch.segment_reduce(x, 'prod', lengths=torch.tensor([[2, 1], [0, 3]]), axis=1)",
        x=normal(2, 3),
    ),
    Sample("nn", "torch.nn.functional.mse_loss(x, y).sqrt()", x=normal(3, 4), y=normal(3, 4)),
    Sample("nn", "torch.nn.functional.gelu(x)", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.gelu(x, approximate='tanh')", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.silu(x)", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.softplus(x)", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.elu(x)", x=distinct(3, 4)),
    Sample("nn", "torch.nn.functional.leaky_relu(x, 0.1)", x=distinct(3, 4)),
    Sample("nn", "torch.nn.functional.hardtanh(x)", x=distinct(3, 4)),
    Sample("nn", "torch.nn.functional.logsigmoid(x)", x=normal(3, 4)),
    Sample("nn", "torch.nn.functional.linear(x, y, w)", x=normal(2, 3), y=normal(4, 3), w=normal(4)),
    Sample("nn", "torch.nn.functional.linear(x, y)", x=normal(2, 2, 3), y=normal(4, 3)),
]
