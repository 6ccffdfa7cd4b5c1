"""Numba loops for gather, scatter, sort, scan, random numbers, pooling, convolution and attention match NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels import convolution_numba, numba_dispatch, rearrangement
from tests.loops import use_loops

pytestmark = pytest.mark.skipif(not numba_dispatch.permitted(), reason="Numba is not installed")
F = torch.nn.functional


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """Return the results of a function with Numba loops for arrays of any size, and without."""

    def call(function: Callable[[], Any]) -> tuple[Any, Any]:
        results = []
        for least, there in ((1, True), (1 << 60, False)):
            monkeypatch.setattr(numba_dispatch, "LARGE", least)
            use_loops(monkeypatch, there)
            torch.manual_seed(0)
            results.append(function())
        return results[0], results[1]

    return call


def same(a: Any, b: Any, tolerance: float) -> None:
    if a is None:
        assert b is None
        return
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other, tolerance)
        return
    assert a.dtype is b.dtype
    assert a.shape == b.shape
    if tolerance:
        numpy.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)
    else:
        numpy.testing.assert_array_equal(a.numpy(), b.numpy())


def with_gradients(function: Callable[..., Any], *inputs: Any) -> tuple[Any, ...]:
    """Return the result of ``function`` and its gradients."""
    leaves = [each.clone().requires_grad_() if each.is_floating_point() else each for each in inputs]
    out = function(*leaves)
    out.backward(torch.randn(out.shape, dtype=out.dtype))
    return (out.detach(), *(each.grad for each in leaves if each.requires_grad))


PLACES: dict[str, Callable[..., Any]] = {
    "gather rows": lambda x, i, y: x.gather(1, i),
    "gather columns": lambda x, i, y: x.gather(0, i % 7),
    "gather of a transpose": lambda x, i, y: x.t().gather(0, i.t()),
    "scatter_add rows": lambda x, i, y: x.scatter_add(1, i, y),
    "scatter_add columns": lambda x, i, y: x.scatter_add(0, i % 7, y),
    "index_select": lambda x, i, y: x.index_select(1, i[0]),
    "index_add": lambda x, i, y: x.index_add(1, i[0], y),
    "x[i]": lambda x, i, y: x[i % 7],
    "x[:, i]": lambda x, i, y: x[:, i[1]],
    "x[-i]": lambda x, i, y: x[-(i[0] % 7)],
    "x[mask]": lambda x, i, y: x[y.detach() > 0],
    "embedding": lambda x, i, y: F.embedding(i % 7, x),
    "take_along_dim": lambda x, i, y: torch.take_along_dim(x, i, 1),
    "cumsum rows": lambda x, i, y: x.cumsum(1),
    "cumsum columns": lambda x, i, y: x.cumsum(0),
    "cumprod rows": lambda x, i, y: x.cumprod(1),
    "cumprod columns": lambda x, i, y: x.cumprod(0),
    "topk": lambda x, i, y: x.topk(3, 1)[0],
    "smallest of columns": lambda x, i, y: x.topk(1, 0, largest=False)[0],
    "sort": lambda x, i, y: x.sort(1, descending=True)[0],
    "flip rows": lambda x, i, y: x.flip(1),
    "flip columns": lambda x, i, y: x.flip(0),
    "flip a transpose": lambda x, i, y: x.t().flip(0),
    "flip both": lambda x, i, y: x.flip(0, 1),
    "roll rows": lambda x, i, y: x.roll(-73, 1),
    "roll columns": lambda x, i, y: x.roll(2, 0),
    "roll both": lambda x, i, y: x.roll((2, 3), (0, 1)),
    "roll all": lambda x, i, y: x.roll(100),
    "tril": lambda x, i, y: x.tril(3),
    "triu": lambda x, i, y: x.reshape(7, 10, 7).triu(-2),
    "triu of a transpose": lambda x, i, y: x.t().triu(1),
    "stack": lambda x, i, y: torch.stack((x, y, x), 1),
    "stack transposes": lambda x, i, y: torch.stack((x.t(), y.t()), -1),
}


@pytest.mark.parametrize("name", PLACES)
def test_gather_scatter_scan_and_sort(name: str, both: Any) -> None:
    def run() -> Any:
        x, y = (torch.randn(7, 70) for _ in range(2))
        return with_gradients(PLACES[name], x, torch.randint(0, 70, (7, 70)), y)

    same(*both(run), tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float64", "uint8", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenate(dtype: str, axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [numpy.arange(60).reshape(3, 4, 5).astype(dtype), numpy.arange(60)[::-1].reshape(5, 4, 3).T.astype(dtype)]
    arrays.append(arrays[0][:, :, :].take([], axis))
    monkeypatch.setattr(numba_dispatch, "LARGE", 1)
    found = rearrangement.concatenate_arrays(numpy, arrays, axis)
    assert found.dtype == dtype
    numpy.testing.assert_array_equal(found, numpy.concatenate(arrays, axis))
    with pytest.raises(ValueError, match="must match exactly"):
        rearrangement.concatenate_arrays(numpy, [arrays[0], arrays[0][:2, :3]], axis)


COUNTING: dict[str, Callable[..., Any]] = {
    "unique": lambda i, x, e: i.unique(return_inverse=True, return_counts=True),
    "unique of a table": lambda i, x, e: (i * 100 - 3).view(8, -1).unique(return_inverse=True, return_counts=True),
    "unique of wide ones": lambda i, x, e: (i * 2**50 - 7).unique(return_inverse=True, return_counts=True),
    "unique of bytes": lambda i, x, e: i.to(torch.int8).unique(return_inverse=True, return_counts=True),
    "unique of floats": lambda i, x, e: (i / 7).unique(return_inverse=True, return_counts=True),
    "bincount": lambda i, x, e: i.bincount(minlength=50),
    "bincount of int32": lambda i, x, e: i.int().bincount(),
    "searchsorted": lambda i, x, e: torch.searchsorted(e, x),
    "searchsorted, right": lambda i, x, e: torch.searchsorted(e, e.repeat(3), right=True),
    "searchsorted of nan": lambda i, x, e: torch.searchsorted(e, torch.where(x > 0, x, torch.nan)),
    "searchsorted of integers": lambda i, x, e: torch.searchsorted(i.sort()[0], i),
    "bucketize": lambda i, x, e: torch.bucketize(x.view(8, -1), e),
}


@pytest.mark.parametrize("name", COUNTING)
def test_unique_and_searchsorted(name: str, both: Any) -> None:
    def run() -> Any:
        return COUNTING[name](torch.randint(0, 40, (400,)), torch.randn(400), torch.randn(30).sort()[0])

    same(*both(run), tolerance=0)


def test_unique_matches_numpy() -> None:
    values = torch.tensor([2.0, float("nan"), -0.0, 0.0, float("nan"), 2.0, -float("inf")])
    for x in (values, torch.randint(-9, 9, (100,)), torch.tensor([True, False, True]), torch.tensor([2**62, -(2**62)])):
        found, wanted = x.unique(return_inverse=True, return_counts=True), numpy.unique(
            x.numpy(), return_inverse=True, return_counts=True, equal_nan=False
        )  # fmt: skip
        for one, other in zip(found, wanted, strict=True):
            numpy.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("rows", [1, 3, 4, 6])
def test_cumulative_rows_in_parallel(rows: int, both: Any) -> None:
    """Cumulative sums and products, forward and backward, with a number of rows that is not a multiple of four."""
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        x = torch.randn(rows, 50, dtype=torch.float64) / 10 + 1
        found, expected = both(lambda name=name, x=x: with_gradients(lambda y: getattr(y, name)(1), x))
        same(found, expected, 1e-12)


def test_large_indices_are_checked_in_parallel() -> None:
    """One index out of range anywhere raises the error of a small tensor; rows of every dtype are gathered."""
    x, index = torch.randn(300, 200), torch.randint(0, 200, (300, 200))
    expected = numpy.take_along_axis(x.numpy(), index.numpy(), 1)
    numpy.testing.assert_array_equal(x.gather(1, index).numpy(), expected)
    for place, wrong in ((0, 200), (137, -1), (299, 1 << 40)):
        bad = index.clone()
        bad[place, 7] = wrong
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 200"):
            x.gather(1, bad)
    for dtype in (torch.float32, torch.float64, torch.int16, torch.bool, torch.complex64):
        table, rows = torch.randn(700, 70).to(dtype), torch.randint(0, 700, (900,))
        numpy.testing.assert_array_equal(table.index_select(0, rows).numpy(), table.numpy()[rows.numpy()])
        numpy.testing.assert_array_equal(
            F.embedding(rows.view(9, 100), table).numpy(), table.numpy()[rows.numpy().reshape(9, 100)]
        )


def test_indices_out_of_range() -> None:
    x = torch.randn(200, 200)
    index = torch.zeros(200, 200, dtype=torch.int64)
    index[3, 4] = 200
    before = x.clone()
    for call in (lambda: x.gather(1, index), lambda: x.scatter_add_(1, index, before), lambda: x[index]):
        with pytest.raises((RuntimeError, IndexError), match="200"):
            call()
    assert torch.equal(x, before)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8])
def test_order_of_equal_elements(dtype: Any, descending: bool) -> None:
    values = torch.randint(0, 20, (40, 100)).to(dtype)
    if dtype.is_floating_point:
        values[values == 3] = float("nan")
        values[values == 5] = float("inf")
        values[values == 7] = -float("inf")
        values[::2][values[::2] == 0] = -0.0
    keys = values.double().nan_to_num(nan=1e300, posinf=1e299, neginf=-1e299).tolist()
    wanted = [sorted(range(100), key=lambda k, row=row: -row[k] if descending else row[k]) for row in keys]
    found = values.sort(1, descending=descending)
    assert found[1].tolist() == wanted
    numpy.testing.assert_array_equal(found[0].numpy(), numpy.take_along_axis(values.numpy(), found[1].numpy(), 1))
    for count in (1, 5):
        assert values.topk(count, 1, largest=descending)[1].tolist() == [row[:count] for row in wanted]


@pytest.mark.parametrize("count", [1, 5, 700, 20000])
def test_random_numbers(count: int, both: Any) -> None:
    def run() -> Any:
        torch.rand(3)
        return [
            torch.rand(count), torch.randn(count), torch.randint(-3, 8, (count,)), torch.randperm(count),
            torch.rand(count, dtype=torch.float64), torch.randint(0, 2**40, (count,)), torch.get_rng_state(),
        ]  # fmt: skip

    same(*both(run), tolerance=0)


#: channels, outputs, groups, kernel, stride, padding, dilation
CONVOLUTIONS = [
    (1, 3, 1, (3, 3), 1, 0, 1), (4, 4, 4, (3, 3), 1, 1, 1), (4, 8, 4, (3, 3), 2, 1, 1), (2, 3, 1, (5, 5), 1, 2, 1),
    (3, 4, 1, (3, 2), (2, 3), (1, 0), (1, 2)), (6, 4, 2, (3, 3), 1, 1, 1), (40, 5, 1, (3, 3), 1, 1, 1),
    (40, 5, 1, (3, 3), (2, 1), (2, 3), (2, 1)), (40, 6, 2, (1, 3), 2, 0, 1), (33, 4, 1, (1, 1), 1, 0, 1),
    (3, 3, 3, (4, 4), 3, 3, 2), (40, 2, 1, (3, 5), 1, 1, 1), (1, 40, 1, (3, 3), 1, (1, 3), 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution(case: tuple[Any, ...], both: Any) -> None:
    channels, outputs, groups, kernel, stride, padding, dilation = case

    def run() -> Any:
        x = torch.randn(3, channels, 9, 11)
        w = torch.randn(outputs, channels // groups, *kernel)
        b = torch.randn(outputs)
        turned = torch.randn(3, outputs, 9, 8)
        return (
            with_gradients(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), x, w, b),
            with_gradients(
                lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, 0, groups, dilation), turned, w
            ),
        )

    same(*both(run), tolerance=1e-4)


@pytest.mark.parametrize("samples", [None, 1], ids=["whole", "by samples"])
@pytest.mark.parametrize(
    ("groups", "kernel", "stride", "padding", "dilation"),
    [(1, (3, 3, 3), 1, 1, 1), (2, (2, 3, 1), (2, 1, 2), (1, 0, 0), 1), (1, (3, 2, 2), 1, (2, 1, 0), (2, 1, 1)),
     (1, (1, 1, 1), 2, 0, 1), (4, (3, 3, 3), (1, 2, 1), 1, 1)],
)  # fmt: skip
def test_convolution_of_volumes(
    groups: int, kernel: Any, stride: Any, padding: Any, dilation: Any, samples: int | None, both: Any, monkeypatch: Any
) -> None:
    if samples is not None:
        monkeypatch.setattr(convolution_numba, "_samples", lambda count, size: (slice(k, k + 1) for k in range(count)))

    def run() -> Any:
        x, w, b = torch.randn(3, 4, 7, 8, 9), torch.randn(8, 4 // groups, *kernel), torch.randn(8)
        turned = torch.randn(2, 8, 3, 4, 5)
        return (
            with_gradients(lambda x, w, b: F.conv3d(x, w, b, stride, padding, dilation, groups), x, w, b),
            with_gradients(
                lambda x, w: F.conv_transpose3d(x, w, None, stride, padding, 0, groups, dilation), turned, w
            ),
        )

    same(*both(run), tolerance=1e-4)


@pytest.mark.parametrize("rows", [None, 5], ids=["whole", "in pieces"])
def test_convolution_1d_strided_and_transposed(rows: int | None, both: Any, monkeypatch: Any) -> None:
    if rows is not None:
        monkeypatch.setattr(convolution_numba.Shape, "rows", lambda *_: rows)

    def run() -> Any:
        x, w, b = torch.randn(2, 12, 50), torch.randn(10, 12, 5), torch.randn(10)
        image, v = torch.randn(2, 12, 17, 40), torch.randn(10, 12, 3, 3)
        turned = torch.randn(2, 10, 9, 20)
        return (
            with_gradients(lambda x, w, b: F.conv1d(x, w, b, padding=2), x, w, b),
            with_gradients(lambda x, w, b: F.conv1d(x, w, b, stride=3, dilation=2), x, w, b),
            with_gradients(lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), image, v, b),
            with_gradients(lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, (1, 0)), turned, v),
            with_gradients(lambda x: F.max_pool2d(x, 3, 2, 1), image),
        )

    same(*both(run), tolerance=1e-4)


@pytest.mark.parametrize(
    "how",
    [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "stride": 3},
     {"kernel_size": (3, 2), "stride": (1, 3), "dilation": (2, 1)},
     {"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": True}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("special", [None, float("nan"), -float("inf")])
def test_max_pool(how: dict[str, Any], special: Any, both: Any) -> None:
    def run() -> Any:
        x = torch.randint(-3, 3, (2, 3, 9, 11)).float()
        if special is not None:
            x[torch.rand(x.shape) < 0.3] = special
            x[0, 0] = special
        return [*F.max_pool2d(x, **how, return_indices=True), *with_gradients(lambda x: F.max_pool2d(x, **how), x)]

    same(*both(run), tolerance=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.bool], ids=str)
def test_slices(dtype: Any, both: Any) -> None:
    def run() -> Any:
        i, x = torch.randint(0, 7, (3, 200)), torch.randn(7, 3, 7, 19).to(dtype)
        found = [F.embedding(i, x[0, 0]), x.index_select(0, i[0]), x.index_select(2, i.flatten()), x[:, :, i - 7]]
        with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 2 with size 7"):
            x[:, :, i + 1]
        with pytest.raises(IndexError, match="index out of range in self"):
            F.embedding(i + 1, x[0, 0])
        return found

    same(*both(run), tolerance=0)


MAPS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "nearest": (lambda x: F.interpolate(x, (9, 5)), (2, 3, 7, 11)),
    "linear": (lambda x: F.interpolate(x, 29, mode="linear"), (2, 3, 11)),
    "bilinear": (lambda x: F.interpolate(x, (13, 6), mode="bilinear"), (2, 3, 7, 11)),
    "bilinear, corners": (lambda x: F.interpolate(x, (5, 31), mode="bilinear", align_corners=True), (2, 3, 7, 11)),
    "bicubic": (lambda x: F.interpolate(x, (13, 6), mode="bicubic"), (2, 3, 7, 11)),
    "trilinear": (lambda x: F.interpolate(x, (6, 8, 3), mode="trilinear"), (2, 3, 4, 5, 6)),
    "averages": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), (2, 3, 8, 12)),
    "averages of a line": (lambda x: F.avg_pool1d(x, 4), (2, 3, 12)),
    "adaptive averages": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 8, 12)),
    "mirrored": (lambda x: F.pad(x, (2, 3, 1, 2), mode="reflect"), (2, 3, 8, 12)),
}


@pytest.mark.parametrize("how", MAPS)
def test_interpolation(how: str, both: Any) -> None:
    function, shape = MAPS[how]
    for each in (torch.float32, torch.float64):
        same(*both(lambda each=each: with_gradients(function, torch.randn(shape, dtype=each))), tolerance=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 2, 300, 8)], ids=str)
def test_attention(shape: tuple[int, ...], causal: bool, both: Any) -> None:
    def run() -> Any:
        q, k, v = (torch.randn(shape) * 3 for _ in range(3))
        k[..., -1, :] *= 5  # exponentials of very different magnitude
        return with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), q, k, v)

    same(*both(run), tolerance=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_strided_inputs(causal: bool, both: Any) -> None:
    def run() -> Any:
        def attended(x: Any, k: Any) -> Any:
            q, v = (each.view(1, 70, 6, 8).transpose(1, 2) for each in x.split(48, 2))
            k, v = k.view(1, 90, 2, 8).transpose(1, 2), v[:, ::3].repeat(1, 1, 2, 1)[:, :, :90]
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

        return with_gradients(attended, torch.randn(1, 70, 96), torch.randn(1, 90, 16))

    same(*both(run), tolerance=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_attention_in_other_dtypes(dtype: Any, both: Any) -> None:
    def run() -> Any:
        q, k, v = (torch.randn(1, 1, 100, 8, dtype=dtype) for _ in range(3))
        return with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)

    same(*both(run), tolerance=5e-3 if dtype is torch.float16 else 1e-12)


def test_attention_with_nan(both: Any) -> None:
    def run() -> Any:
        q, k, v = (torch.randn(1, 2, 40, 4) for _ in range(3))
        q[0, 0, 3, 0] = float("nan")
        k[0, 1, 30, 0] = float("inf")
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    same(*both(run), tolerance=1e-5)


def test_double_precision(both: Any) -> None:
    def run() -> Any:
        x, w = torch.randn(2, 4, 9, 11, dtype=torch.float64), torch.randn(4, 1, 3, 3, dtype=torch.float64)
        found = with_gradients(lambda x, w: F.max_pool2d(F.conv2d(x, w, groups=4), 2).cumsum(1), x, w)
        return [*found, *with_gradients(lambda x: x.topk(2)[0], x)]

    same(*both(run), tolerance=1e-12)


def test_layouts(both: Any) -> None:
    def run() -> Any:
        found = []
        for channels, groups in itertools.product((4, 40), (1, 4)):
            x = torch.randn(2, channels, 9, 11).to(memory_format=torch.channels_last)
            w = torch.randn(4, channels // groups, 3, 3).transpose(2, 3)
            found += with_gradients(lambda x, w, groups=groups: F.conv2d(x, w, padding=1, groups=groups), x, w)
            found += with_gradients(lambda x: F.max_pool2d(x, 2), x)
        return found

    same(*both(run), tolerance=1e-4)
