"""Samples of sorting, topk, unique, counting and searchsorted."""

from __future__ import annotations

from . import Sample, distinct, integers, normal

SORTED = (
    "torch.sort(x)", "torch.sort(x, 0, True)", "x.sort(stable=True, dim=1)", "x.sort(descending=True)", "torch.sort(s)", "torch.sort(x.t(), 0)", "torch.sort(x[:0])", "torch.msort(x)", "x.msort()", "torch.msort(x[0])",
    "torch.topk(x, 2)", "torch.topk(x, 1, 0)", "x.topk(2, -1, False, True)", "torch.topk(x, k=3, dim=1, largest=False)", "torch.topk(x, 0)", "torch.topk(s, 1)", "torch.kthvalue(x, 2)", "x.kthvalue(1, 0, True)",
    "x.sort(0)[0].diff(dim=0)", "x.take_along_dim(x.argsort(1), 1)",
)  # fmt: skip
SAMPLES = [Sample("sort", each, x=distinct(3, 4), s=normal()) for each in SORTED]
#: Never differentiated. ``i`` has repetitions; ``x`` is a row of numbers, ``v`` values to be found in it once sorted.
PLAIN = (
    "torch.argsort(x)", "x.argsort(0, True)", "i.argsort(dim=1, descending=True, stable=True)", "torch.argsort(i[0])", "torch.sort(i)", "torch.sort(i > 1)", "torch.sort(i, out=(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)))",
    "torch.topk(x.detach(), 2, out=(torch.zeros(0, dtype=x.dtype), torch.zeros(0, dtype=torch.int64)))", "torch.sort(torch.tensor([1.0, float('nan'), 0.5]))", "torch.topk(torch.tensor([1.0, float('nan'), 0.5]), 2)",
    "torch.unique(i)", "torch.unique(i, sorted=False)", "i.unique(return_inverse=True)", "torch.unique(i, return_counts=True)", "torch.unique(i, True, True, True)", "torch.unique(i, dim=0, return_inverse=True, return_counts=True)",
    "torch.unique(i, dim=-1, return_inverse=True, return_counts=True)", "torch.unique(i[:0])", "torch.unique(i[:0], dim=0)", "torch.unique(i[0, 0], return_inverse=True)", "torch.unique(i > 1)", "torch.unique(x.detach().half())",
    "torch.unique(torch.tensor([1.0, float('nan'), float('nan')]), return_inverse=True, return_counts=True)", "torch.unique(i[None], dim=1, return_inverse=True)",
    "torch.unique_consecutive(i)", "i.unique_consecutive(True, True)", "torch.unique_consecutive(i, return_inverse=True, dim=0)", "torch.unique_consecutive(i, return_counts=True, dim=1)", "torch.unique_consecutive(i[:0], return_counts=True)",
    "torch.unique_consecutive(i[0, 0], True, True)",
    "torch.nonzero(i)", "torch.nonzero(i, as_tuple=True)", "i[0, 0].nonzero()", "torch.nonzero(i[0, 0], as_tuple=True)", "torch.nonzero(i[:0])", "torch.argwhere(i)", "torch.argwhere(x > 0)", "torch.nonzero(i, out=torch.zeros(0, dtype=torch.int64))",
    "torch.nonzero_static(i, size=3)", "i.nonzero_static(size=20, fill_value=9)", "torch.nonzero_static(i[0, 0], size=2)", "torch.nonzero_static(i, size=0)",
    "torch.unravel_index(i, (2, 3))", "torch.unravel_index(i + 30, (2, 3))", "torch.unravel_index(-i, (2, 3, 2))", "torch.unravel_index(i[0, 0], 5)", "torch.unravel_index(i, torch.Size([4]))",
    "torch.searchsorted(x[0].sort()[0], v)", "torch.searchsorted(x[0].sort()[0], v, right=True)", "torch.searchsorted(x[0].sort()[0], v, side='right', out_int32=True)", "torch.searchsorted(x[0], v, sorter=x[0].argsort())",
    "torch.searchsorted(x.sort()[0], x)", "torch.searchsorted(x.sort()[0], x, side='right')", "torch.searchsorted(x, x, sorter=x.argsort())", "torch.searchsorted(x[0].sort()[0], 0.1)", "torch.searchsorted(i.sort()[0], i, right=True)",
    "torch.searchsorted(i[0].sort()[0], i.double())", "torch.searchsorted(x[0, :0], v)", "torch.searchsorted(x[0].sort()[0], v[:0])", "torch.searchsorted(x[0].sort()[0], v, out=torch.zeros(0, dtype=torch.int64))",
    "torch.searchsorted(torch.tensor([1.0, float('nan')]), torch.tensor([float('nan'), 3.0, 0.0]))", "torch.searchsorted(torch.tensor([1.0, float('nan')]), torch.tensor([float('nan'), 3.0, 0.0]), right=True)",
    "torch.bucketize(v, x[0].sort()[0])", "torch.bucketize(v, x[0].sort()[0], right=True, out_int32=True)", "torch.bucketize(0.2, x[0].sort()[0])", "torch.bucketize(i, i[0].sort()[0])", "torch.bucketize(x, v.sort()[0].float())",
    "torch.isin(i, i[0, :2])", "torch.isin(i, 2)", "torch.isin(2, i)", "torch.isin(i, i[0], invert=True)", "torch.isin(i[0], i[1], assume_unique=True)", "torch.isin(x, i)", "torch.isin(i, i[:0])", "torch.isin(i, i[:2], out=torch.zeros(0, dtype=torch.bool))",
    "torch.isin(elements=i, test_element=1)", "torch.isin(element=1, test_elements=i)", "torch.isin(torch.tensor([1.0, float('nan')]), torch.tensor([float('nan')]))",
)  # fmt: skip
SAMPLES += [
    Sample("search", each, smooth=False, i=integers(0, 4, 3, 4), x=distinct(3, 4), v=normal(5)) for each in PLAIN
]
