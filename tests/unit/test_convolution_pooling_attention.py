"""Convolution, pooling, interpolation and attention beyond the samples. Numbers were recorded from PyTorch 2.13."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels import attention, convolution

F: Any = torch.nn.functional
SHAPES = [
    ((3, 4, 9, 7), (6, 2, 3, 2), (2, 1), (1, 2), (1, 2), 2), ((2, 3, 8, 5), (4, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 7, 6), (8, 1, 3, 3), (1, 2), (1, 1), (2, 1), 4), ((2, 3, 11), (2, 3, 4), (3,), (2,), (1,), 1),
]  # fmt: skip


def _maps(x_shape: Any, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> list[Any]:
    """Return the output and the gradients of input and weight, for the same random numbers at each call."""
    rng = numpy.random.default_rng(0)
    x, w = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    how = (stride, padding, dilation, groups)
    sizes = zip(x_shape[2:], padding, dilation, w_shape[2:], stride, strict=True)
    shape = (x_shape[0], w_shape[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in sizes))
    y = rng.standard_normal(shape)
    return [
        convolution.convolve(numpy, x, w, shape, *how, None), convolution.input_adjoint(numpy, y, w, x_shape, *how),
        convolution.weight_adjoint(numpy, y, x, w_shape, *how),
    ]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("block", [1, 40, 300])
def test_convolution_block_size_does_not_change_results(
    monkeypatch: pytest.MonkeyPatch, shapes: Any, block: int
) -> None:
    whole = _maps(*shapes)
    monkeypatch.setattr(convolution, "BLOCK", block)
    for one, other in zip(_maps(*shapes), whole, strict=True):
        numpy.testing.assert_allclose(one, other, 1e-12, 1e-12)


@pytest.mark.parametrize("block", [1, 7, 100])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_block_size_does_not_change_results(
    monkeypatch: pytest.MonkeyPatch, block: int, causal: bool
) -> None:
    rng = numpy.random.default_rng(0)
    q, k, v = rng.standard_normal((2, 4, 5, 3)), rng.standard_normal((2, 2, 6, 3)), rng.standard_normal((2, 2, 6, 3))
    mask = rng.standard_normal((2, 1, 5, 6))

    def run() -> list[Any]:
        out, sums = attention.forward(numpy, q, k, v, mask, causal, 0.5)
        return [out, sums, *attention.backward(numpy, numpy.cos(out), q, k, v, mask, out, sums, causal, 0.5)]

    whole = run()
    monkeypatch.setattr(attention, "BLOCK", block)
    for one, other in zip(run(), whole, strict=True):
        numpy.testing.assert_allclose(one, other, 1e-12, 1e-12)


def _peak(action: Any) -> int:
    action()  # exclude imports and compilation of the first call
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_convolution_peak_memory() -> None:
    # im2col would take 19 MB.
    x, w = torch.zeros(2, 16, 128, 128, requires_grad=True), torch.zeros(16, 16, 3, 3, requires_grad=True)
    size = x.numel() * 4
    assert _peak(lambda: F.conv2d(x, w, padding=1)) < size + 4_000_000
    y, ones = F.conv2d(x, w, padding=1), torch.ones(2, 16, 128, 128)
    assert _peak(lambda: torch.autograd.grad(y, (x, w), ones, retain_graph=True)) < size + 4_000_000


def test_attention_peak_memory_without_score_matrix() -> None:
    # All scores would take 32 MB.
    q = torch.zeros(1, 8, 1024, 8, requires_grad=True)
    assert _peak(lambda: F.scaled_dot_product_attention(q, q, q)) < 8_000_000
    y, ones = F.scaled_dot_product_attention(q, q, q), torch.ones(1, 8, 1024, 8)
    assert _peak(lambda: torch.autograd.grad(y, q, ones, retain_graph=True)) < 12_000_000


def test_empty_batch() -> None:
    x, w = torch.zeros(0, 3, 5, 5, requires_grad=True), torch.ones(4, 3, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    y.sum().backward()
    assert (y.shape, x.grad.shape) == ((0, 4, 3, 3), (0, 3, 5, 5))
    assert not w.grad.any()
    assert F.max_pool2d(x, 2).shape == F.avg_pool2d(x, 2).shape == (0, 3, 2, 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gradients_are_rounded_float32(dtype: Any) -> None:
    def gradients(kind: Any) -> list[Any]:
        torch.manual_seed(0)
        x = torch.randn(2, 2, 6, 6).to(dtype).to(kind).requires_grad_()
        w = torch.randn(2, 2, 3, 3).to(dtype).to(kind).requires_grad_()
        y = F.avg_pool2d(F.interpolate(F.conv2d(x, w, padding=1), 8, mode="bilinear"), 2)
        z = F.scaled_dot_product_attention(y, y, y)
        z.sum().backward()
        return [x.grad, w.grad]

    for short, wide in zip(gradients(dtype), gradients(torch.float32), strict=True):
        assert short.dtype is dtype
        assert torch.allclose(short.float(), wide, 0.1, 0.2)


def test_fractional_pooling_and_dropout_use_pytorchs_random_numbers() -> None:
    x = torch.arange(50.0, dtype=torch.float64).reshape(1, 2, 5, 5).sin()
    torch.manual_seed(0)
    drawn = F.fractional_max_pool2d(x, 2, output_size=2).flatten().tolist()
    assert drawn == pytest.approx([
        0.8414709848078965, 0.9893582466233818, 0.9129452507276277, 0.14987720966295234, 0.7625584504796027,
        0.9999118601072672, 0.9017883476488092, 0.017701925105413577,
    ])  # fmt: skip
    torch.manual_seed(0)
    q = torch.arange(24.0, dtype=torch.float64).reshape(1, 2, 3, 4).cos()
    got = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).flatten().tolist()
    wanted = [-0.05349183777179915, -0.3349692153461668, -0.3084774411209516, 0.0016270698542598942, 0.0, 0.0, 0.0, 0.0]
    assert got[:8] == pytest.approx(wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.filterwarnings("error")
def test_of_several_nan_the_last_is_selected(dtype: Any) -> None:
    x = torch.tensor([[[1.0, math.nan, 3.0, math.nan, math.nan, 0.0]]], dtype=dtype)
    for size, expected in ((2, [1, 1, 3, 4, 4]), (3, [1, 3, 4, 4]), (4, [3, 4, 4])):
        assert F.max_pool1d(x, size, 1, return_indices=True)[1].tolist() == [[expected]]
        assert F.max_pool2d(x[None], (1, size), 1, return_indices=True)[1].tolist() == [[[expected]]]
        assert F.max_pool3d(x[None, None], (1, 1, size), 1, return_indices=True)[1].tolist() == [[[[expected]]]]
    assert F.adaptive_max_pool1d(x, 2, return_indices=True)[1].tolist() == [[[1, 4]]]
    last = torch.nn.functional.pad(x, (0, 0, 0, 1))[None].to(memory_format=torch.channels_last)
    assert F.max_pool2d(last, (2, 4), 1, return_indices=True)[1].tolist() == [[[[3, 4, 4]]]]


def test_pooling_propagates_nan_and_infinity() -> None:
    nan = math.nan
    values, indices = F.max_pool1d(torch.tensor([[[1.0, nan, 3.0, 2.0, nan, nan]]]), 3, return_indices=True)
    assert values.isnan().all()
    assert indices.tolist() == [[[1, 5]]]
    values, indices = F.max_pool1d(torch.full((1, 1, 4), -math.inf), 2, return_indices=True)
    assert (values.tolist(), indices.tolist()) == ([[[-math.inf, -math.inf]]], [[[0, 2]]])


def test_uint8_interpolation_rounds() -> None:
    x = torch.arange(12, dtype=torch.uint8).reshape(1, 1, 3, 4) * 20
    got = F.interpolate(x, (2, 5), mode="bilinear")
    assert got.flatten().tolist() == [20, 34, 50, 66, 80, 140, 154, 170, 186, 200]
    assert F.interpolate(x, (2, 2), mode="bilinear", antialias=True).flatten().tolist() == [44, 76, 144, 176]


@pytest.mark.parametrize(
    ("mode", "antialias", "size", "expected"),
    [
        ("bilinear", False, (3, 4), [85, 145, 142, 106, 89, 149, 114, 78, 157, 121, 118, 146]),
        ("bilinear", True, (3, 4), [93, 121, 121, 100, 120, 126, 122, 117, 130, 133, 128, 128]),
        ("bicubic", False, (4, 3), [76, 125, 58, 26, 103, 61, 166, 116, 163, 129, 217, 132]),
        ("bicubic", True, (4, 3), [91, 128, 94, 116, 117, 121, 136, 121, 129, 120, 147, 118]),
    ],
)
def test_uint8_interpolation_rounds_along_each_axis(mode: str, antialias: bool, size: Any, expected: list[int]) -> None:
    x = (torch.arange(60) * 37 % 256).to(torch.uint8).reshape(1, 1, 6, 10)  # results are PyTorch's
    assert F.interpolate(x, size, mode=mode, antialias=antialias).flatten().tolist() == expected


def test_unfold_copies() -> None:
    x = torch.zeros(1, 2, 3, 3)
    F.unfold(x, 1).add_(1)
    assert not x.any()


@pytest.mark.parametrize("name", ["upsample", "upsample_nearest", "upsample_bilinear"])
def test_old_names_warn(name: str) -> None:
    x = torch.arange(4.0).reshape(1, 1, 2, 2)
    with pytest.warns(UserWarning, match=f"`nn.functional.{name}` is deprecated"):
        old = getattr(F, name)(x, 4)
    mode = ("bilinear", True) if name.endswith("bilinear") else ("nearest", None)
    assert torch.equal(old, F.interpolate(x, 4, None, *mode))


def test_same_padding_with_even_kernel_warns() -> None:
    x, w = torch.ones(1, 1, 4, 5, requires_grad=True), torch.ones(1, 1, 2, 4)
    with pytest.warns(UserWarning, match="Using padding='same' with even kernel lengths"):
        y = F.conv2d(x, w, padding="same")
    assert y.tolist() == [[[[6, 8, 8, 6, 4]] * 3 + [[3, 4, 4, 3, 2]]]]
    assert type(y.grad_fn).__name__ == "ConvolutionBackward0"


def test_attention_with_fully_masked_query_is_zero() -> None:
    q = torch.randn(1, 1, 2, 3, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False]])
    for dropout in (0.0, 1e-9):  # in blocks, and at once
        y = F.scaled_dot_product_attention(q, q, q, mask, dropout)
        assert not y[0, 0, 1].any()
        (g,) = torch.autograd.grad(y.sum(), q)
        assert not g.isnan().any()


def test_attention_gradients_are_computed_together() -> None:
    q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    together = torch.autograd.grad(out.cos().sum(), (q, k, v))
    for leaf, wanted in zip((q, k, v), together, strict=True):
        others = [each if each is leaf else each.detach() for each in (q, k, v)]
        out = F.scaled_dot_product_attention(*others, is_causal=True)
        assert torch.allclose(torch.autograd.grad(out.cos().sum(), leaf)[0], wanted)


def test_fractional_pooling_windows_of_maximal_size() -> None:
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert torch.nn.functional.fractional_max_pool2d(x, 3, output_size=2).tolist() == [[[[10.0, 11.0], [14.0, 15.0]]]]
    with pytest.raises(RuntimeError, match="pool height 4 too large relative to input height 4"):
        torch.nn.functional.fractional_max_pool2d(x, 4, output_size=2)
    with pytest.raises(RuntimeError, match="too large relative to input"):  # PyTorch requires one more here
        torch.nn.functional.fractional_max_pool3d(x[None].expand(1, 1, 4, 4, 4), 3, output_size=2)


@pytest.mark.parametrize("call", ["F.avg_pool2d(x, 2)", "F.avg_pool2d(x, 3, 1, 1)", "F.adaptive_avg_pool2d(x, (3, 4))",
    "F.interpolate(x, size=(9, 4))", "F.interpolate(x, size=(3, 9))", "F.pad(x, (1, 1, 1, 1), mode='reflect')",
    "F.lp_pool2d(x, 3, 3)", "F.avg_pool2d(F.pad(x, (9, 9)), (1, 9), 1)"])  # fmt: skip
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_nonfinite_inputs_affect_only_their_windows(call: str, value: float) -> None:
    def gradient(place: int, value: float) -> Any:
        y = eval(call, {"x": x, "F": torch.nn.functional})
        given = torch.ones_like(y)
        given.view(-1)[place] = value
        return torch.autograd.grad(y, x, given)[0]

    x = (torch.arange(35.0).reshape(1, 1, 5, 7) / 10 + 1).requires_grad_()
    for place in (0, 1, -1):
        touched = gradient(place, 2.0) != gradient(place, 1.0)
        found = gradient(place, value)
        assert torch.equal(found.isfinite(), ~touched) and torch.equal(found.isnan(), touched & math.isnan(value))
    plain = eval(call, {"x": x, "F": torch.nn.functional})
    x.data[0, 0, 0, 0] = value
    now = eval(call, {"x": x, "F": torch.nn.functional})
    x.data[0, 0, 0, 0] = 99.0
    assert torch.equal(~now.isfinite(), eval(call, {"x": x, "F": torch.nn.functional}) != plain)


def test_adaptive_softmax_of_one_sample_per_cluster_equals_log_prob():
    _ = torch.manual_seed(0)
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2, 5], div_value=2.0)
    targets = torch.tensor([0, 3, 7])
    output, loss = layer(torch.ones(3, 4), targets)
    expected = layer.log_prob(torch.ones(3, 4)).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(loss, -expected.mean())


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolution_of_one_element_with_output_padding(dims: int) -> None:
    convolve = getattr(F, f"conv_transpose{dims}d")
    x = torch.arange(2 * 3 * 4**dims, dtype=torch.float64).reshape(2, 3, *(4,) * dims).requires_grad_()
    w = torch.arange(6.0, dtype=torch.float64).reshape(3, 2, *(1,) * dims).requires_grad_()
    y = convolve(x, w, output_padding=1, dilation=2)
    plain = convolve(x, w)
    assert y.shape == (2, 2, *(5,) * dims)
    assert torch.equal(F.pad(plain, (0, 1) * dims), y)
    for got, want in zip(torch.autograd.grad(y.sum(), [x, w]), torch.autograd.grad(plain.sum(), [x, w]), strict=True):
        assert torch.equal(got, want)
