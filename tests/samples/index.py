"""Samples of indexing, assignment, gathering and scattering."""

from __future__ import annotations

from . import Sample, booleans, distinct, integers, normal

READ = [
    "x[0]", "x[-1]", "x[1:]", "x[:, 1]", "x[..., 0]", "x[None]", "x[:, None, 1]", "x[0, 1:3]", "x[::2]", "x[...]", "x[:]",
    "x[i]", "x[:, i]", "x[i, i]", "x[0, i]", "x[:, i, 0]", "x[i, :, 1]", "x[0, :, j]", "x[i[:, None], j]", "x[[0, 1]]",
    "x[[0, 1], [1, 0]]", "x[m]", "x[m, 1]", "x[:, m3]", "x[x > 0]", "x[True]", "x[False]", "x[..., j]", "x[i, ..., j]",
    "x[None, i]", "x[torch.tensor(1)]", "x[1, torch.tensor(0), j]", "x[i][:, j]", "x[0][1][0]", "x[-1, -1, -1]",
    "x[i, None, 1:]", "x[1:, i]", "x[:, 1:][:, 0]",
]  # fmt: skip
WRITE = [
    "0, y[0]", "slice(None), y", "(slice(None), 1), y[:, 0]", "i, y[:1]", "(i, j), y[0, :2, 0]", "m, y[:1]", "..., y",
    "(0, slice(1, 3)), y[0, 1:]", "0, 2.5", "i, 1.5", "m, 0", "(Ellipsis, 1), y[..., 0]", "(slice(None), [0, 2]), y[:, :2]",
    "x > 0, 0.0", "None, y", "(0, 0, 0), y[0, 0, 0]", "slice(None, None, 2), y[:1]",
]  # fmt: skip
INPUTS = {"i": integers(0, 2, 2), "j": integers(0, 2, 2), "m": booleans(2), "m3": booleans(3)}
SAMPLES = [Sample("getitem", each, x=distinct(2, 3, 2), **INPUTS) for each in READ]
SAMPLES += [
    Sample(
        "setitem",
        f"(lambda c: (c.__setitem__({each}), c)[1])(x.clone())",
        x=distinct(2, 3, 2),
        y=normal(2, 3, 2),
        **INPUTS,
    )
    for each in WRITE
    if not each.startswith("m, y")
]
SAMPLES += [
    Sample("index_select", "torch.index_select(x, 1, i)", x=normal(2, 3), i=integers(0, 3, 4)),
    Sample("gather", "torch.gather(x, 1, i)", x=normal(2, 3), i=integers(0, 3, 2, 4)),
    Sample("gather", "x.gather(0, i)", x=normal(2, 3), i=integers(0, 2, 1, 3)),
    Sample("scatter", "torch.scatter(x, 1, i, y)", x=normal(2, 3), i=integers(0, 1, 2, 1), y=normal(2, 1)),
    Sample("scatter", "x.scatter(0, i, 2.5)", x=normal(2, 3), i=integers(0, 2, 1, 3)),
    Sample("scatter", "x.clone().scatter_(1, i, y)", x=normal(2, 3), i=integers(0, 1, 2, 1), y=normal(2, 1)),
    Sample("scatter_add", "x.scatter_add(1, i, y)", x=normal(2, 3), i=integers(0, 3, 2, 3), y=normal(2, 3)),
    Sample("scatter_reduce", "x.scatter_reduce(1, i, y, 'sum')", x=normal(2, 3), i=integers(0, 3, 2, 3), y=normal(2, 3)),
    Sample("scatter_reduce", "x.scatter_reduce(1, i, y, 'mean')", x=normal(2, 3), i=integers(0, 3, 2, 3), y=normal(2, 3)),
    Sample("scatter_reduce", "x.scatter_reduce(1, i, y, 'amax')", x=distinct(2, 3), i=integers(0, 3, 2, 3), y=normal(2, 3)),
    Sample("take", "torch.take(x, i)", x=normal(2, 3), i=integers(0, 6, 4)),
    Sample("take_along_dim", "torch.take_along_dim(x, i, 1)", x=normal(2, 3), i=integers(0, 3, 2, 2)),
    Sample("masked_select", "torch.masked_select(x, m)", x=normal(2, 3), m=booleans(2, 3)),
    Sample("masked_fill", "x.masked_fill(m, 1.5)", x=normal(2, 3), m=booleans(3)),
    Sample("masked_fill", "x.masked_fill(m, y)", x=normal(2, 3), m=booleans(2, 3), y=normal()),
    Sample("masked_fill", "x.clone().masked_fill_(m, 0)", x=normal(2, 3), m=booleans(2, 3)),
    Sample("masked_scatter", "x.masked_scatter(m, y)", x=normal(2, 3), m=booleans(2, 3), y=normal(6)),
    Sample("index_add", "x.index_add(0, i, y)", x=normal(2, 3), i=integers(0, 2, 3), y=normal(3, 3)),
    Sample("index_add", "x.clone().index_add_(1, i, y, alpha=2)", x=normal(2, 3), i=integers(0, 3, 2), y=normal(2, 2)),
    Sample("index_copy", "x.index_copy(0, torch.tensor([1, 0]), y)", x=normal(2, 3), y=normal(2, 3)),
    Sample("index_fill", "x.index_fill(1, i, 0.5)", x=normal(2, 3), i=integers(0, 3, 2)),
    Sample("index_put", "torch.index_put(x, (i,), y)", x=normal(3, 2), i=integers(0, 1, 1), y=normal(1, 2)),
    Sample("index_put", "x.clone().index_put_((i, j), y, accumulate=True)", x=normal(3, 2), i=integers(0, 3, 4), j=integers(0, 2, 4), y=normal(4)),
    Sample("put", "x.put(i, y)", x=normal(2, 3), i=integers(0, 1, 1), y=normal(1)),
    Sample("put", "x.put(i, y, accumulate=True)", x=normal(2, 3), i=integers(0, 6, 4), y=normal(4)),
    Sample("nonzero", "torch.nonzero(i)", smooth=False, i=integers(0, 2, 2, 3)),
    Sample("nonzero", "i.nonzero(as_tuple=True)", smooth=False, i=integers(0, 2, 2, 3)),
    Sample("argwhere", "torch.argwhere(i)", smooth=False, i=integers(0, 2, 2, 3)),
    Sample("where", "torch.where(m)", smooth=False, m=booleans(2, 3)),
    Sample("copy", "x.clone().copy_(y)", x=normal(2, 3), y=normal(3)),
    Sample("copy", "x.clone().copy_(i)", x=normal(2, 3), i=integers(0, 9, 3)),
    Sample("fill", "x.clone().fill_(2.0)", x=normal(2, 3)),
    Sample("fill", "x.clone().fill_(y)", x=normal(2, 3), y=normal()),
    Sample("fill", "torch.fill(x, 3)", x=normal(2, 3)),
    Sample("zero", "x.clone().zero_()", x=normal(2, 3)),
]  # fmt: skip
