"""nn.functional: errors, warnings, edge values, and cases beyond the samples."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from tests.conformance.functional_cases import CALLS, outcome
from tests.conformance.golden import load

GOLDEN = load("functional")["calls"]
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("call", CALLS)
def test_errors_and_warnings_match_pytorch(call: str) -> None:
    assert outcome(torch, call) == GOLDEN[call]


# PyTorch's values and derivatives at these points, in float64.
PLACES = [-INF, -6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN]
BENDS = [
    ("celu(x, 2.0)", [-2.0, -1.90043, -1.55374, -0.786939, -0.442398, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN], [0.0, 0.0497871, 0.22313, 0.606531, 0.778801, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("elu(x, 0.5)", [-0.5, -0.498761, -0.475106, -0.31606, -0.196735, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN], [0.0, 0.00123938, 0.0248935, 0.18394, 0.303265, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("hardshrink(x)", [-INF, -6.0, -3.0, -1.0, 0.0, 0.0, 0.0, 1.0, 3.0, 6.0, INF, NAN], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("hardsigmoid(x)", [0.0, 0.0, 0.0, 0.333333, 0.416667, 0.5, 0.583333, 0.666667, 1.0, 1.0, 1.0, NAN], [0.0, 0.0, 0.0, 0.166667, 0.166667, 0.166667, 0.166667, 0.166667, 0.0, 0.0, 0.0, 0.0]),
    ("hardswish(x)", [NAN, -0.0, -0.0, -0.333333, -0.208333, 0.0, 0.291667, 0.666667, 3.0, 6.0, INF, NAN], [0.0, 0.0, 0.0, 0.166667, 0.333333, 0.5, 0.666667, 0.833333, 1.0, 1.0, 1.0, 1.0]),
    ("hardtanh(x)", [-1.0, -1.0, -1.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, NAN], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    ("relu6(x)", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0, 6.0, 6.0, NAN], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
    ("leaky_relu(x)", [-INF, -0.06, -0.03, -0.01, -0.005, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN], [0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 1.0, 1.0, 1.0, 1.0, 1.0, 0.01]),
    ("logsigmoid(x)", [-INF, -6.00248, -3.04859, -1.31326, -0.974077, -0.693147, -0.474077, -0.313262, -0.0485874, -0.00247569, 0.0, NAN], [1.0, 0.997527, 0.952574, 0.731059, 0.622459, 0.5, 0.377541, 0.268941, 0.0474259, 0.00247262, 0.0, NAN]),
    ("selu(x)", [-1.7581, -1.75374, -1.67057, -1.11133, -0.691758, 0.0, 0.52535, 1.0507, 3.1521, 6.30421, INF, NAN], [0.0, 0.00435789, 0.0875306, 0.646769, 1.06634, 1.7581, 1.0507, 1.0507, 1.0507, 1.0507, 1.0507, 1.0507]),
    ("softplus(x)", [0.0, 0.00247569, 0.0485874, 0.313262, 0.474077, 0.693147, 0.974077, 1.31326, 3.04859, 6.00248, INF, NAN], [0.0, 0.00247262, 0.0474259, 0.268941, 0.377541, 0.5, 0.622459, 0.731059, 0.952574, 0.997527, 1.0, NAN]),
    ("softshrink(x)", [-INF, -5.5, -2.5, -0.5, 0.0, 0.0, 0.0, 0.5, 2.5, 5.5, INF, NAN], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("threshold(x, 0.5, 7.0)", [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 1.0, 3.0, 6.0, INF, NAN], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("relu(x)", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("prelu(x, torch.tensor(0.3, dtype=x.dtype))", [-INF, -1.8, -0.9, -0.3, -0.15, 0.0, 0.5, 1.0, 3.0, 6.0, INF, NAN], [0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0, 1.0, 1.0, 0.3]),
    ("tanhshrink(x)", [-INF, -5.00001, -2.00495, -0.238406, -0.0378828, 0.0, 0.0378828, 0.238406, 2.00495, 5.00001, INF, NAN], [1.0, 0.999975, 0.990134, 0.580026, 0.213552, 0.0, 0.213552, 0.580026, 0.990134, 0.999975, 1.0, NAN]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "values", "slopes"), BENDS)
def test_values_at_kinks_and_limits(call: str, values: list[float], slopes: list[float]) -> None:
    x = torch.tensor(PLACES, dtype=torch.float64, requires_grad=True)
    y = eval(f"F.{call}", {"F": F, "torch": torch, "x": x})
    y.sum().backward()
    numpy.testing.assert_allclose(y.detach().numpy(), values, 1e-5)
    numpy.testing.assert_allclose(x.grad.numpy(), slopes, 1e-5)


def test_an_activation_in_place_writes_into_its_tensor() -> None:
    for name in ("relu", "elu", "selu", "celu", "silu", "mish", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid"):
        x = torch.tensor([-1.0, 0.5, 2.0])
        out_of_place = getattr(F, name)(x)
        y = getattr(F, name)(x, inplace=True)
        assert y is x, name
        assert torch.equal(x, out_of_place), name


def test_half_precision_gradients_are_computed_in_float32() -> None:
    rng = numpy.random.default_rng(0)
    wide = torch.tensor(rng.standard_normal((4, 64)), dtype=torch.bfloat16).float().requires_grad_()
    short = wide.detach().bfloat16().requires_grad_()
    weight = torch.linspace(0.5, 1.5, 64)
    for call in (
        lambda x, w: F.layer_norm(x, (64,), w),
        lambda x, w: F.group_norm(x, 4, w),
        lambda x, w: F.softmax(x, 1) * w,
        lambda x, w: F.log_softmax(x, 1) * w,
        lambda x, w: F.cross_entropy(x, torch.tensor([0, 5, 9, 63])),
    ):
        (exact,) = torch.autograd.grad((call(wide, weight) * 0.5).sum(), wide)
        (got,) = torch.autograd.grad((call(short, weight.bfloat16()) * 0.5).sum().float(), short)
        assert got.dtype is torch.bfloat16
        assert float((got.float() - exact).abs().max()) < 0.02 * float(exact.abs().max()) + 1e-3


# -- Losses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_rms_norm_uses_eps_of_float32(kind: torch.dtype) -> None:
    """The default eps is that of float32, in which half precision is computed."""
    x = torch.tensor([[0.03125, -0.0625, 0.015625, 0.0625]], dtype=kind)
    expected = F.rms_norm(x.double(), (4,), eps=torch.finfo(torch.float32).eps)
    assert torch.allclose(F.rms_norm(x, (4,)).double(), expected, rtol=4e-3)
    assert torch.allclose(torch.nn.RMSNorm(4, dtype=kind)(x).double(), expected, rtol=4e-3)


def test_sizes_that_differ_are_warned_of_and_broadcast() -> None:
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([0.25, 0.75])
    for loss, expected in ((F.mse_loss, 6.9375), (F.l1_loss, 2.25), (F.smooth_l1_loss, 1.7578125)):
        with pytest.warns(UserWarning, match="Using a target size"):
            assert loss(x, y).item() == expected


def test_older_arguments() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.warns(UserWarning, match="please use reduction='none'"):
        assert F.mse_loss(x, x * 2, reduce=False).tolist() == [[1.0, 4.0], [9.0, 25.0]]
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        assert F.mse_loss(x, x * 2, size_average=False).item() == 39.0
    with pytest.warns(UserWarning, match="please use reduction='mean'"):
        assert F.l1_loss(x, x * 2, True, True).item() == 2.75


def test_kl_div_by_the_mean_of_all() -> None:
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        found = F.kl_div(torch.tensor([[-1.0, -2.0]]), torch.tensor([[0.25, 0.75]]))
    assert found.item() == pytest.approx(0.5938324)


def test_ctc_loss_takes_its_input_to_be_normalised_for_the_gradient() -> None:
    x = (torch.arange(40.0, dtype=torch.float64) * 1.7).sin().view(5, 2, 4).requires_grad_()
    loss = F.ctc_loss(x, torch.tensor([[1, 2], [3, 3]]), (5, 4), (2, 2), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([-5.5169311079674745, -3.2146093683626678])
    expected = [0.80982872, 1.8858899, 0.7744973, 0.3962085, 1.332607, 2.2221765, 0.49664754, -0.1546152, 1.851996, 1.0090384, 0.36947468, 0.86156995, 2.1249184, 0.89705635, 0.37840189, 1.0247809, 1.6439254, 0.42686115, 0.37781172, 2.1669657, 1.0989412, 0.40265842, 0.74477613, 2.2778532, 0.66943955, 0.33073294, 0.65176862, 2.5610798, 0.53265053, 0.43940948, 1.9546852, 1.0144905, 0.33243969, 0.64806418, 1.6844651, 1.2081794, 0.0, 0.0, 0.0, 0.0]  # fmt: skip
    numpy.testing.assert_allclose(x.grad.numpy().ravel(), expected, 1e-7)
    slope = torch.autograd.grad(F.ctc_loss(x, torch.tensor([[1, 2], [3, 3]]), (5, 4), (2, 2)), x, create_graph=True)[0]
    assert torch.autograd.grad(slope.sum(), x)[0].isfinite().all()  # PyTorch refuses


def test_ctc_loss_is_the_sum_over_all_alignments() -> None:
    rng = numpy.random.default_rng(1)
    logs = torch.tensor(rng.standard_normal((4, 1, 3))).log_softmax(2)
    chances = logs.exp().numpy()[:, 0]
    total = 0.0
    for path in numpy.ndindex(3, 3, 3, 3):
        text = [b for a, b in pairwise([-1, *path]) if a != b and b != 0]
        if text == [1, 2]:
            total += float(numpy.prod([chances[t, each] for t, each in enumerate(path)]))
    found = F.ctc_loss(logs, torch.tensor([[1, 2]]), (4,), (2,), reduction="sum")
    assert found.item() == pytest.approx(-math.log(total))


def test_ctc_loss_matches_finite_differences() -> None:
    rng = numpy.random.default_rng(2)
    start, step = rng.standard_normal((5, 2, 4)), rng.standard_normal((5, 2, 4))

    def at(distance: float, grad: bool = False) -> Any:
        x = torch.tensor(start + distance * step, requires_grad=grad)
        text = torch.tensor([[1, 1, 2], [3, 0, 0]])
        loss = F.ctc_loss(x.log_softmax(2), text, torch.tensor([5, 3]), torch.tensor([3, 1]), blank=0)
        if not grad:
            return loss.item()
        loss.backward()
        return float((x.grad * torch.tensor(step)).sum())

    assert at(0.0, True) == pytest.approx((at(1e-6) - at(-1e-6)) / 2e-6, rel=1e-6)


def test_cross_entropy_makes_no_one_hot_rows() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([2, 0]))
    assert loss.grad_fn.name() == "NllLossBackward0"
    assert loss.grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"


# -- Embedding -------------------------------------------------------------------------------------------------------


def _second_order(call: Any, arrays: list[numpy.ndarray]) -> None:
    """Compare the second derivative of the squared result with finite differences of the first."""
    rng = numpy.random.default_rng(3)
    steps = [rng.standard_normal(each.shape) for each in arrays]

    def slope(distance: float, grad: bool = False) -> float:
        given = [torch.tensor(a + distance * s, requires_grad=True) for a, s in zip(arrays, steps, strict=True)]
        found = torch.autograd.grad(call(*given).square().sum(), given, create_graph=grad)
        total: Any = sum((g * torch.tensor(s)).sum() for g, s in zip(found, steps, strict=True))
        if not grad:
            return float(total)
        again = torch.autograd.grad(total, given)
        return float(sum((g * torch.tensor(s)).sum() for g, s in zip(again, steps, strict=True)))

    assert slope(0.0, True) == pytest.approx((slope(1e-5) - slope(-1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_second_derivatives_of_bags(mode: str) -> None:
    rng = numpy.random.default_rng(4)
    table, weights = rng.standard_normal((5, 3)), rng.standard_normal(6)
    index, starts = torch.tensor([0, 4, 1, 1, 3, 4]), torch.tensor([0, 2, 2, 5])
    _second_order(lambda t: F.embedding_bag(index, t, starts, mode=mode), [table])
    if mode == "sum":
        _second_order(
            lambda t, w: F.embedding_bag(index, t, starts, mode="sum", per_sample_weights=w), [table, weights]
        )


def test_gradients_of_weighted_bags() -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    weights = torch.tensor([1.0, -1.0, 2.0], requires_grad=True)
    found = F.embedding_bag(
        torch.tensor([0, 2, 1]), table, torch.tensor([0, 2]), mode="sum", per_sample_weights=weights, padding_idx=2
    )
    assert found.tolist() == [[1.0, 2.0], [6.0, 8.0]]
    found.sum().backward()
    assert table.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]
    assert weights.grad.tolist() == [3.0, 0.0, 7.0]


def test_rows_longer_than_max_norm_are_shortened_in_place() -> None:
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    version = table._version
    found = F.embedding(torch.tensor([0, 1, 0]), table, max_norm=1.0)
    assert table.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [pytest.approx(0.3), pytest.approx(0.4)]]
    assert torch.equal(found[0], table[0])
    assert table._version > version


# -- Normalisation ---------------------------------------------------------------------------------------------------


def test_batch_norm_moves_its_running_values() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 10.0]
    assert var.tolist() == [1.5, 100.5]
    assert mean._version == var._version == 1
    F.batch_norm(x, mean, var, training=False)
    assert mean._version == 1


def test_large_norms_match_chunks() -> None:
    # Results in chunks are those of one call.
    rng = numpy.random.default_rng(5)
    x = torch.tensor(rng.standard_normal((300, 1000)), requires_grad=True)
    weight = torch.tensor(rng.standard_normal(1000), requires_grad=True)
    seed = torch.tensor(rng.standard_normal((300, 1000)))
    for call, axis in (
        (lambda: F.layer_norm(x, (1000,), weight), 1),
        (lambda: F.batch_norm(x, None, None, weight, training=True), 0),
    ):
        y = call()
        got = torch.autograd.grad((y * seed).sum(), (x, weight))
        centred = x - x.mean(axis, keepdim=True)
        exact = centred / (centred.square().mean(axis, keepdim=True) + 1e-5).sqrt() * weight
        wanted = torch.autograd.grad((exact * seed).sum(), (x, weight))
        assert torch.allclose(y, exact)
        for a, b in zip(got, wanted, strict=True):
            assert torch.allclose(a, b, rtol=1e-8, atol=1e-10)


# The loss of operands of two dtypes, recorded from PyTorch: dtype and value of the mean.
MIXED = [
    ("mse_loss", "int64", "float32", "torch.float32", 1.0),
    ("mse_loss", "float16", "float32", "torch.float32", 1.0),
    ("mse_loss", "float16", "bfloat16", "torch.float32", 1.0),
    ("mse_loss", "float32", "float64", "torch.float64", 1.0),
    ("mse_loss", "bool", "float32", "torch.float32", 1.0),
    ("smooth_l1_loss", "int64", "float32", "torch.float32", 0.5),
    ("smooth_l1_loss", "float32", "float16", "torch.float32", 0.5),
    ("huber_loss", "float32", "int64", "torch.float32", 0.5),
    ("huber_loss", "float16", "float32", "torch.float16", 0.5),
    ("soft_margin_loss", "float16", "float32", "torch.float16", 0.693359375),
    ("binary_cross_entropy_with_logits", "float32", "float64", "torch.float64", 1.0032044351100922),
    ("binary_cross_entropy_with_logits", "float64", "float32", "torch.float32", 1.003204345703125),
    ("mse_loss", "int32", "int64", NotImplementedError, "\"mse_cpu\" not implemented for 'Long'"),
    ("huber_loss", "int64", "float32", RuntimeError, "result type Float can't be cast to the desired output type Long"),
    (
        "soft_margin_loss",
        "int32",
        "int64",
        RuntimeError,
        "result type Float can't be cast to the desired output type Int",
    ),
    (
        "binary_cross_entropy_with_logits",
        "float32",
        "int64",
        RuntimeError,
        "result type Float can't be cast to the desi",
    ),
]


@pytest.mark.parametrize(("name", "first", "second", "kind", "expected"), MIXED)
def test_losses_of_two_dtypes(name: str, first: str, second: str, kind: object, expected: object) -> None:
    x, y = torch.tensor([1, 0]).to(getattr(torch, first)), torch.tensor([0, 1]).to(getattr(torch, second))
    if isinstance(kind, str):
        found = getattr(F, name)(x, y)
        assert str(found.dtype) == kind and found.item() == pytest.approx(expected, rel=3e-7)
    else:
        with pytest.raises(kind) as caught:
            getattr(F, name)(x, y)
        assert str(caught.value).startswith(expected)


def test_gradients_of_a_loss_of_two_dtypes_have_their_operands_dtypes() -> None:
    x = torch.tensor([1.0, 0.0], dtype=torch.float16, requires_grad=True)
    y = torch.tensor([0.0, 1.0], requires_grad=True)
    F.mse_loss(x, y).backward()
    assert x.grad.dtype is torch.float16 and x.grad.tolist() == [1.0, -1.0]
    assert y.grad.dtype is torch.float32 and y.grad.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("shape", [(3, 2), (2, 2, 3), (600, 20)])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_targets_that_are_all_ignored_leave_gradients_of_zero(shape: tuple[int, ...], reduction: str) -> None:
    x = torch.zeros(shape, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, torch.full((shape[0], *shape[2:]), -100), reduction=reduction)
    loss.backward()
    assert math.isnan(loss.item()) == (reduction == "mean")
    assert x.grad is not None and not x.grad.any()


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_mean_cross_entropy_of_empty_probabilities_is_nan(shape: tuple[int, ...]) -> None:
    assert math.isnan(torch.nn.functional.cross_entropy(torch.zeros(shape), torch.zeros(shape)).item())
