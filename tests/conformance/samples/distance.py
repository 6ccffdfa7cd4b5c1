"""Samples of distances, quantiles, covariances and histograms."""

from __future__ import annotations

from . import Sample, booleans, complexes, distinct, integers, normal, positive

SAMPLES: list[Sample] = []
for p in ("", ", 1", ", 0", ", p=3", ", float('inf')", ", 0.5", ", 1.5"):
    smooth = p != ", 0"
    SAMPLES += [
        Sample("dist", f"torch.dist(x, y{p})", smooth=smooth, x=distinct(2, 3), y=normal(3)),
        Sample("cdist", f"torch.cdist(x, y{p})", beyond=True, smooth=smooth, x=distinct(3, 2), y=normal(4, 2)),
        Sample("pdist", f"torch.nn.functional.pdist(x{p})", beyond=True, smooth=smooth, x=distinct(4, 2)),
        Sample("pairwise_distance", f"torch.nn.functional.pairwise_distance(x, y{p})", smooth=smooth, x=distinct(3, 2),
               y=normal(3, 2)),
    ]  # fmt: skip
SAMPLES += [
    Sample("dist", "x.dist(y, 2)", x=normal(2, 3), y=normal(2, 1)),
    Sample("dist", "torch.dist(z, x)", beyond=True, z=complexes(3), x=normal(3)),
    Sample("dist", "torch.dist(x, y )", x=normal(2, 3), y=normal()),
    Sample("dist", "torch.dist(x, i)", x=normal(3), i=integers(0, 4, 3)),
    Sample("dist", "torch.dist(i, i)", smooth=False, i=integers(0, 4, 3)),
    Sample("cdist", "torch.cdist(x, y, 2, 'use_mm_for_euclid_dist')", x=normal(2, 3), y=normal(4, 3)),
    Sample("cdist", "torch.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", x=normal(2, 2, 3), y=normal(4, 3)),
    Sample("cdist", "torch.cdist(x, y, compute_mode='donot_use_mm_for_euclid_dist')", beyond=True, x=normal(2, 1, 3, 2), y=normal(2, 3, 2)),
    Sample("cdist", "torch.cdist(x, y, 1.0)[0]", beyond=True, x=normal(2, 3, 2), y=normal(1, 3, 2)),
    Sample("cdist", "torch.cdist(x, y )", smooth=False, x=normal(0, 2), y=normal(4, 2)),
    Sample("cdist", "torch.cdist(x.mT, y)", beyond=True, x=normal(2, 3), y=normal(4, 2)),
    Sample("cdist", "torch.cdist(x, y).sum()", x=normal(27, 1), y=normal(2, 1)),
    Sample("pdist", "torch.pdist(x)", beyond=True, x=normal(3, 2)),
    Sample("pdist", "torch.pdist(x[:1])", smooth=False, x=normal(2, 2)),
    Sample("pairwise_distance", "torch.nn.functional.pairwise_distance(x, y, 2, 0.1, True)", x=normal(2, 3), y=normal(3)),
    Sample("pairwise_distance", "torch.pairwise_distance(x, y, keepdim=True)", x=normal(3), y=normal(3)),
    Sample("pairwise_distance", "torch.nn.functional.pairwise_distance(z, y)", z=complexes(2, 2), y=normal(2, 2)),
    Sample("cosine_similarity", "torch.nn.functional.cosine_similarity(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Sample("cosine_similarity", "torch.cosine_similarity(x, y, dim=0)", x=normal(2, 3), y=normal(3)),
    Sample("cosine_similarity", "torch.cosine_similarity(x, y, -1, 1e-3)", x=normal(2, 1, 3), y=normal(2, 3)),
    # Below eps PyTorch's derivative uses the norm without eps, unlike finite differences.
    Sample("cosine_similarity", "torch.cosine_similarity(x.detach(), y.detach(), 0, 9.0)", smooth=False, x=normal(3),
           y=normal(3)),
]  # fmt: skip
for p in ("2", "1", "3", "1.5", "float('inf')"):
    SAMPLES.append(Sample("renorm", f"torch.renorm(x, {p}, 0, 1.0)", x=distinct(3, 2)))
SAMPLES += [
    Sample("renorm", "torch.renorm(x, p=2, dim=-1, maxnorm=1.5)", x=normal(2, 2, 2)),
    Sample("renorm", "x.renorm(2, 1, 100)", x=normal(2, 3)),
    Sample("renorm", "torch.renorm(z, 2, 0, 1)", z=complexes(2, 2)),
    Sample("renorm_", "x.clone().renorm_(2, 0, 1)", x=normal(2, 3)),
]
for q in ("0.3", "q", "q[0]"):
    for dims in ("", ", 0", ", dim=-1", ", 1, True", ", keepdim=True"):
        for name in ("quantile", "nanquantile"):
            SAMPLES.append(
                Sample(name, f"torch.{name}(x, {q}{dims})", x=distinct(2, 3), q=lambda rng: rng.uniform(size=2))
            )
for name in ("quantile", "nanquantile"):
    for how in ("lower", "higher", "midpoint", "nearest"):
        SAMPLES.append(Sample(name, f"x.{name}(0.37, 1, interpolation='{how}')", x=distinct(2, 4)))
        SAMPLES.append(Sample(name, f"torch.{name}(x, q, interpolation='{how}')", x=distinct(4),
                              q=lambda rng: rng.uniform(size=2)))  # fmt: skip
    SAMPLES.append(Sample(name, f"torch.{name}(x.masked_fill(b, float('nan')), 0.4, 1)", smooth=False, x=normal(3, 4),
                          b=booleans(3, 4)))  # fmt: skip
    SAMPLES.append(Sample(name, f"torch.{name}(x[()], 0.4)", x=normal()))
    SAMPLES.append(Sample(name, f"torch.{name}(x, 0.4, out=torch.empty(0, dtype=torch.float64))", smooth=False,
                          x=normal(3)))  # fmt: skip
for arguments in ("", ", correction=0", ", fweights=i", ", aweights=w", ", correction=0, fweights=i, aweights=w"):
    SAMPLES += [
        Sample("cov", f"torch.cov(x{arguments})", x=normal(2, 4), i=integers(1, 4, 4), w=positive(4)),
        Sample("cov", f"x.cov({arguments[2:]})", x=normal(4), i=integers(1, 4, 4), w=positive(4)),
    ]
SAMPLES += [
    Sample("cov", "torch.cov(z)", z=complexes(2, 3)),
    Sample("cov", "torch.cov(i)", smooth=False, i=integers(0, 5, 2, 4)),
    Sample("corrcoef", "torch.corrcoef(x)", x=normal(3, 4)),
    Sample("corrcoef", "x.corrcoef()", smooth=False, x=normal(4)),
    Sample("corrcoef", "torch.corrcoef(z)", z=complexes(2, 3)),
    Sample("histc", "torch.histc(x.float(), 5, -1, 1)", smooth=False, x=normal(12)),
    Sample("histc", "x.histc(bins=3)", smooth=False, x=normal(2, 5)),
    Sample("histc", "torch.histc(x)[:50]", smooth=False, x=normal(0)),
    Sample("histogram", "torch.histogram(x, 4)", smooth=False, x=normal(12)),
    Sample("histogram", "torch.histogram(x, 4, range=(-1.0, 1.0), density=True)", smooth=False, x=normal(12)),
    Sample("histogram", "x.histogram(bins=3, weight=w)", smooth=False, x=normal(2, 4), w=normal(2, 4)),
    Sample("histogram", "torch.histogram(x, w.sort()[0])", smooth=False, x=normal(12), w=normal(4)),
    Sample("histogram", "torch.histogram(x, w.sort()[0], weight=x, density=True)", smooth=False, x=normal(9), w=normal(4)),
    Sample("histogramdd", "torch.histogramdd(x, 2)[0]", smooth=False, x=normal(9, 2)),
    Sample("histogramdd", "torch.histogramdd(x, [2, 3])[1]", smooth=False, x=normal(9, 2)),
    Sample("histogramdd", "torch.histogramdd(x, (2, 3), range=[-1.0, 1.0, 0.0, 2.0], density=True)[0]", smooth=False,
           x=normal(9, 2)),
    Sample("histogramdd", "torch.histogramdd(x, [w.sort()[0], v.sort()[0]], weight=v.new_ones(2, 4))[0]", smooth=False,
           x=normal(2, 4, 2), w=normal(3), v=normal(4)),
]  # fmt: skip
