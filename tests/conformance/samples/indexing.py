"""Samples of indexing, assignment, gathering and scattering."""

from __future__ import annotations

from . import Sample, booleans, complexes, distinct, integers, normal

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
#: ``x`` (3, 4) with slices of ``y`` (2, 4) at ``r`` along dimension 0, with elements of ``w`` (2, 3) at ``k`` along 1.
ALONG = {
    "index_add": ("torch.index_add(x, 0, r, y)", "x.index_add(-2, r, y, alpha=2.5)", "x.index_add(0, r.int(), y)", "x.clone().index_add_(0, r, y)", "x.t().index_add(1, r, y.t())", "s.index_add(0, o, s * 2)"),
    "index_copy": ("torch.index_copy(x, 0, u, y)", "x.clone().index_copy_(0, u, y)", "x.t().index_copy(-1, u, y.t())", "s.index_copy(0, o, s * 2)", "x.index_copy(0, u[0], y[:1])"),
    "index_fill": ("torch.index_fill(x, 0, r, 2.5)", "x.index_fill(-1, r, s)", "x.clone().index_fill_(0, r, 1)", "x.clone().index_fill_(1, r, s)", "s.index_fill(0, o, 2)"),
    "index_reduce": (
        *(
            f"x.index_reduce(0, r, y, '{reduce}', include_self={include})" for reduce in ("prod", "mean", "amax", "amin") for include in (True, False)
        ),
        "torch.index_reduce(x, 1, r, x[:, :2] * 2, 'prod')", "x.clone().index_reduce_(0, r, y, 'mean')"),
    "index_select": ("torch.index_select(x, 0, r)", "x.index_select(-1, r.int())", "x.index_select(0, r[0])", "s.index_select(0, o)", "x.t().index_select(0, r)"),
    "gather": ("torch.gather(x, 0, k)", "x.gather(-1, k)", "x.gather(1, k.int())", "s.gather(0, o)", "s.gather(0, o[0])", "x.gather(0, torch.zeros(0, dtype=torch.long))", "x.gather(1, k[:1, :1])", "x.t().gather(0, k)"),
    "scatter": (
        "torch.scatter(x, 0, l, w)", "x.scatter(1, l.t(), w.t())", "x.scatter(1, k, 1.5)", "x.scatter(1, k, value=1.5)", "x.clone().scatter_(0, l, w)", "x.clone().scatter_(1, k, 2.5)",
        "s.scatter(0, o, s * 2)", "x.scatter(0, torch.zeros(0, dtype=torch.long), 1.0)", "x.t().scatter(1, l, w)", "x.scatter(dim=0, index=l, src=w)",
    ),
    "scatter_add": ("torch.scatter_add(x, 0, k, w)", "x.scatter_add(-1, k, w)", "x.clone().scatter_add_(0, k, w)", "x.scatter_add(0, k, x[:2, :3])", "s.scatter_add(0, o, s * 2)", "x.t().scatter_add(1, k, w)"),
    "scatter_reduce": (
        *(
            f"x.scatter_reduce(0, k, w, '{reduce}', include_self={include})" for reduce in ("sum", "prod", "mean", "amax", "amin") for include in (True, False)
        ),
        "torch.scatter_reduce(x, 1, k, w, reduce='prod')", "x.clone().scatter_reduce_(1, k, w, 'mean')", "(x * (x > 0)).scatter_reduce(0, k, w, 'prod')", "s.scatter_reduce(0, o, s * 2, 'prod')"),
    "take": ("torch.take(x, k)", "x.take(-k - 1)", "x.t().take(k)", "x.take(o[0])"),
    "take_along_dim": ("torch.take_along_dim(x, k)", "x.take_along_dim(k[:1, :1], 1)", "x.take_along_dim(torch.argsort(x, 0), dim=0)", "x.take_along_dim(torch.argsort(x, 1)[:1], 1)"),
    "put": ("torch.put(x, u, w[0, :2])", "x.put(-u - 1, w[0, :2], accumulate=True)", "x.clone().put_(u, w[0, :2])", "x.clone().put_(k, w, True)", "x.t().put(u, w[0, :2])"),
    "masked_fill": ("torch.masked_fill(x, x > 0, 2)", "x.masked_fill(x > 0, s)", "x.masked_fill((x > 0)[:1], 2.5)", "x[0].masked_fill(x > 0, 2.5)", "x.clone().masked_fill_(x > 0, s)", "x.t().masked_fill(x.t() > 0, 0)"),
    "masked_scatter": ("torch.masked_scatter(x, x > 0, y.repeat(2, 1))", "x.masked_scatter((x > 0)[:1], x * 2)", "x.clone().masked_scatter_(x > 0, x * 2)", "x[0].masked_scatter(x > 0, x * 2)"),
    "masked_select": ("x.masked_select(x > 0)", "x.masked_select((x > 0)[:1])", "x[0].masked_select(x > 0)", "x.t().masked_select(x.t() > 0)"),
    "index_put": (
        "torch.index_put(x, (u,), y)", "x.index_put((u, u), s)", "x.index_put((r, r), y[0, :2], accumulate=True)", "x.index_put((x > 0,), s)", "x.clone().index_put_((u,), y[0])", "x.index_put((u[:, None], r), s, True)",
        "x.clone().index_put_((r,), y, accumulate=True)",
    ),
    "fill": ("torch.fill(x, s)", "x.clone().fill_(s)", "x.clone().fill_(True)", "x.clone()[0].fill_(s)", "x.clone().t().zero_()", "torch.zero_(x.clone())", "(lambda c: (c[1:].fill_(s), c)[1])(x.clone())"),
}  # fmt: skip
SAMPLES += [
    Sample(
        name, each, x=distinct(3, 4), y=normal(2, 4), w=normal(2, 3), s=normal(), r=integers(0, 2, 2), k=integers(0, 3, 2, 3),
        l=lambda rng: rng.permutation([[0, 1], [1, 2], [2, 0]]).T, u=lambda rng: rng.permutation(3)[:2], o=integers(0, 1, 1),
    )
    for name, several in ALONG.items() for each in several
]  # fmt: skip
COMPLEX = (
    "z.index_add(0, r, y)", "z.index_copy(0, torch.tensor([1, 0]), y)", "z.index_fill(0, r, 1j)", "z.gather(1, k)", "z.scatter_add(1, k, y)", "z.scatter(1, k[:, :1], y[:, :1])", "z.take(k)", "z.put(k[0, :1], y[0, :1])", "z.masked_fill(m, 2j)",
    "z.masked_scatter(m, y)", "z.masked_select(m)", "z.index_put((r,), y, True)", "z.index_select(1, r)", "z[r, 1]", "z[m]",
    "(lambda c: (c.__setitem__(0, y[1]), c)[1])(z.clone())", "z.clone().copy_(y)", "z.clone().fill_(1j)",
)  # fmt: skip
SAMPLES += [
    Sample("complex " + each.split("(")[0], each, z=complexes(2, 3), y=complexes(2, 3), r=integers(0, 2, 2), k=integers(0, 3, 2, 3), m=booleans(2, 3))
    for each in COMPLEX
]  # fmt: skip
#: Without derivatives: integers, booleans, out= and what is chosen by rounding.
PLAIN = (
    "i.index_add(0, r, j, alpha=3)", "i.index_copy(0, torch.tensor([1, 0]), j)", "i.index_fill(0, r, 7)", "i.index_fill(0, -r - 1, 7)", "i.index_fill(0, r, 7.9)", "i.gather(1, k)", "i.scatter(1, k, j)", "i.scatter(1, k, 7)", "i.scatter(1, k, j, reduce='add')",
    "i.scatter(1, k, 3, reduce='multiply')", "i.scatter_add(1, k, j)", "i.bool().scatter_add(1, k, j.bool())", "i.bool().index_add(0, r, j.bool())", "i.bool().index_put((r,), torch.tensor(True), accumulate=True)",
    "i.scatter_reduce(1, k, j, 'mean')", "(-i).scatter_reduce(1, k, -j, 'mean')", "i.scatter_reduce(1, k, j, 'prod', include_self=False)", "i.scatter_reduce(1, k, j, 'amin', include_self=False)", "i.bool().scatter_reduce(1, k, j.bool(), 'amax')",
    "i.index_reduce(0, r, j, 'mean')", "i.index_reduce(0, r, j, 'amax', include_self=False)", "i.take(k)", "i.put(k, j, accumulate=True)", "i.masked_fill(i > 2, 9.7)", "i.bool().masked_fill(i > 2, 7)", "i.masked_scatter(i > 2, j)",
    "i.masked_select(i > 2)", "i.byte().fill_(-1)", "i.bool().fill_(2.5)", "i.clone().fill_(2.7)", "i.double().masked_fill(i > 2, float('inf'))",
    "torch.gather(i, 1, k, out=torch.zeros(0, dtype=torch.int64))", "torch.index_select(i, 1, r, out=torch.zeros(0, dtype=torch.int64))", "torch.scatter(i, 1, k, j, out=torch.zeros(0, dtype=torch.int64))", "torch.take(i, k, out=torch.zeros(0, dtype=torch.int64))",
    "torch.masked_select(i, i > 2, out=torch.zeros(0, dtype=torch.int64))", "torch.index_add(i, 0, r, j, out=torch.zeros(0, dtype=torch.int64))", "torch.take_along_dim(i, k, 1, out=torch.zeros(0, dtype=torch.int64))",
    "torch.scatter_add(i, 1, k, j, out=torch.zeros(0, dtype=torch.int64))", "torch.scatter_reduce(i, 1, k, j, 'amax', out=torch.zeros(0, dtype=torch.int64))", "torch.index_copy(i, 0, torch.tensor([1, 0]), j, out=torch.zeros(0, dtype=torch.int64))",
)  # fmt: skip
SAMPLES += [
    Sample("plain", each, smooth=False, i=integers(0, 6, 2, 3), j=integers(0, 6, 2, 3), r=integers(0, 2, 2), k=integers(0, 3, 2, 3))
    for each in PLAIN
]  # fmt: skip
SAMPLES += [
    Sample("complex scatter_reduce", f"z.scatter_reduce(1, k, y, '{each}')", smooth=False, z=complexes(2, 3), y=complexes(2, 3), k=integers(0, 3, 2, 3))
    for each in ("sum", "mean", "prod")
]  # fmt: skip
