"""Reductions and scans beyond the samples. Values and messages are PyTorch 2.13's."""

from __future__ import annotations

import math

import numpy
import pytest

import retrograd as torch

REFUSED = [
    (lambda: torch.tensor([3, 1]).std(), RuntimeError, "std and var only support floating point and complex dtypes"),
    (
        lambda: torch.var_mean(torch.tensor([3])),
        RuntimeError,
        "var_mean only support floating point and complex dtypes",
    ),
    (
        lambda: torch.zeros(3, 0).argmax(),
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    (lambda: torch.tensor([True]).argmin(0), RuntimeError, "argmin(): does not support bool input"),
    (lambda: torch.tensor([True]).median(), NotImplementedError, "\"median_cpu\" not implemented for 'Bool'"),
    (lambda: torch.tensor([1j]).max(0), RuntimeError, "max(): does not support complex input"),
    (
        lambda: torch.norm(torch.zeros(3, 0), math.inf),
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an "
        "identity",
    ),
    (lambda: torch.norm(torch.ones(2), "bad"), RuntimeError, "linalg.matrix_norm: Order bad not supported."),
    (
        lambda: torch.nanmean(torch.tensor([1])),
        RuntimeError,
        "nanmean(): expected input to have floating point or complex dtype but got Long",
    ),
    (
        lambda: torch.logcumsumexp(torch.tensor([1]), 0),
        NotImplementedError,
        "\"logcumsumexp_out_cpu\" not implemented for 'Long'",
    ),
]


REFUSED += [
    (lambda: torch.trapezoid(torch.tensor([True])), RuntimeError,
     "trapezoid: received a bool input for `y`, but bool is not supported"),
    (lambda: torch.trapezoid(torch.ones(2, 3), torch.ones(2)), RuntimeError,
     "trapezoid: There must be one `x` value for each sample point"),
    (lambda: torch.tensor([1.0]).cumsum_(0, dtype=torch.float64), RuntimeError,
     "Bad in-place call: input tensor dtype float and output tensor dtype double should match"),
    (lambda: torch.cdist(torch.ones(2), torch.ones(2, 2)), RuntimeError,
     "cdist only supports at least 2D tensors, X1 got: 1D"),
    (lambda: torch.cdist(torch.ones(2, 2), torch.ones(2, 3)), RuntimeError,
     "X1 and X2 must have the same number of columns. X1: 2 X2: 3"),
    (lambda: torch.pdist(torch.ones(2)), RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    (lambda: torch.cosine_similarity(torch.tensor([1]), torch.tensor([1]), 0), RuntimeError,
     "expected common dtype to be floating point, yet common dtype is Long"),
    (lambda: torch.renorm(torch.ones(2), 2, 0, 1), RuntimeError, "renorm: input needs at least 2 dimensions, got 1 dimensions"),
    (lambda: torch.renorm(torch.ones(2, 2), 2, 0, -1), RuntimeError, "renorm: expected maxnorm to be >= 0 but got -1"),
    (lambda: torch.quantile(torch.ones(2), 1.4), RuntimeError, "quantile() q must be in the range [0, 1] but got 1.4"),
    (lambda: torch.quantile(torch.tensor([1]), 0.4), RuntimeError,
     "quantile() input tensor must be either float or double dtype"),
    (lambda: torch.quantile(torch.ones(2), 0.4, interpolation="bad"), RuntimeError,
     "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got bad"),
    (lambda: torch.cov(torch.ones(2, 2, 2)), RuntimeError,
     "cov(): expected input to have two or fewer dimensions but got an input with 3 dimensions"),
    (lambda: torch.cov(torch.ones(2), fweights=torch.tensor([-1, 2])), RuntimeError, "cov(): fweights cannot be negative"),
    (lambda: torch.histogram(torch.ones(2), 0), RuntimeError,
     "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
    (lambda: torch.histogram(torch.tensor([1]), 2), NotImplementedError, "\"histogramdd\" not implemented for 'Long'"),
    (lambda: torch.histogram(torch.ones(2), 2, range=(1.0, 0.0)), RuntimeError,
     "torch.histogramdd: min should not exceed max, but got min 1 max 0 for dimension 0"),
    (lambda: torch.histogramdd(torch.ones(2), 2), RuntimeError,
     "torch.histogramdd: input tensor should have at least 2 dimensions"),
    (lambda: torch.empty_permuted((2, 3), (0, 0)), RuntimeError, "Duplicate dim not allowed"),
    (lambda: torch.empty_strided((2, 3), (1,)), RuntimeError,
     "dimensionality of sizes (2) must match dimensionality of strides (1)"),
    (lambda: torch.vander(torch.ones(2, 2)), RuntimeError, "x must be a one-dimensional tensor."),
    (lambda: torch.zeros(-1), RuntimeError, "zeros: Dimension size must be non-negative."),
    (lambda: torch.full((2,), 1j, dtype=torch.float32), RuntimeError,
     "value cannot be converted to type float without overflow"),
    (lambda: torch.arange(3, requires_grad=True), RuntimeError,
     "Only Tensors of floating point and complex dtype can require gradients"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_errors(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm"])
@pytest.mark.parametrize("dim", [0, (0, 1)])
def test_float32_sums_are_accurate_over_any_axis(name, dim):
    drawn = numpy.random.default_rng(0).random((200_000, 3))
    short, long = (torch.tensor(drawn, dtype=kind) for kind in (torch.float32, torch.float64))
    exact = getattr(long.float().double(), name)(dim=dim)
    got = getattr(short, name)(dim=dim).double()
    assert ((got - exact).abs() / exact).max().item() < 1e-6


def test_float32_cumsum_is_accurate():
    drawn = torch.tensor(numpy.random.default_rng(0).random(200_000), dtype=torch.float32)
    exact = drawn.double().sum().item()
    assert abs(drawn.cumsum(0)[-1].item() / exact - 1) < 1e-6


def test_gradient_of_logcumsumexp_does_not_overflow():
    x = torch.tensor([800.0, -800.0, 1000.0, -2000.0], requires_grad=True)
    (first,) = torch.autograd.grad(x.logcumsumexp(0), x, torch.tensor([1.0, -2.0, 3.0, 4.0]), create_graph=True)
    assert first.tolist() == pytest.approx([-1.0, 0.0, 7.0, 0.0], rel=1e-3)  # logarithms near 1000 in float32
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.isfinite().all()


@pytest.mark.parametrize("values", [[2.0, 3.0, 5.0, 7.0], [2.0, 0.0, 5.0, 7.0], [0.0, 0.0, 0.0, 7.0]])
def test_higher_derivatives_of_prod(values):
    """The derivative by each of the first three in turn is the last element, with zeros among them or not."""
    x = torch.tensor(values, requires_grad=True)
    for product in (lambda: x.prod(), lambda: x.prod(0), lambda: x.cumprod(0)[-1]):
        slope = product()
        for place in range(3):
            slope = torch.autograd.grad(slope, x, create_graph=True)[0][place]
        assert slope.item() == values[3]
        assert torch.autograd.grad(slope, x)[0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_gradient_of_long_cumprod_matches_logarithms():
    x = torch.tensor(numpy.random.default_rng(0).uniform(0.9, 1.1, (100, 2)), requires_grad=True)
    weight = torch.arange(200.0).reshape(100, 2)
    (got,) = torch.autograd.grad((x.cumprod(0) * weight).sum(), x)
    (expected,) = torch.autograd.grad((x.log().cumsum(0).exp() * weight).sum(), x)
    assert torch.allclose(got, expected, rtol=1e-10)


def test_cdist_algorithms_agree():
    points = torch.tensor(numpy.random.default_rng(0).standard_normal((300, 3)))
    near = torch.cdist(points, points, 1.0)
    assert near[7, 250].item() == pytest.approx((points[7] - points[250]).abs().sum().item())
    by_product = torch.cdist(points, points)
    one_by_one = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.allclose(by_product, one_by_one, atol=1e-6)


def test_results_are_written_into_out():
    x, values, indices = torch.tensor([[1.0, 3.0], [2.0, 1.0]]), torch.empty(2), torch.empty(2, dtype=torch.int64)
    assert torch.prod(x, 1, out=values) is values
    assert values.tolist() == [3.0, 2.0]
    torch.mode(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([1.0, 1.0], [0, 1])
    assert torch.nansum(x, 0, out=values).tolist() == [3.0, 4.0]


@pytest.mark.parametrize("count", [3, 60, 20_000])
@pytest.mark.parametrize("scale", [1e-30, 1e-21, 1.0, 1e20, 3e37])
def test_std_without_overflow_of_squares(count, scale):
    wide = (numpy.arange(4 * count).reshape(4, count).T / count + 1) * scale
    x = torch.tensor(wide.astype(numpy.float32))
    for dim in (None, 0, 1, (0, 1)):
        expected = numpy.std(wide, dim, ddof=1)
        for found in (x.std(dim), torch.complex(x, x).std(dim) / math.sqrt(2), torch.std_mean(x, dim)[0]):
            numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


NAN, INF = math.nan, math.inf
GRADIENTS = {
    "logcumsumexp": (lambda x: x.logcumsumexp(0), [1.0, INF, 3.0, 2.0], [1.0, NAN, 0.0, 0.0]),
    "logcumsumexp_of_nothing": (lambda x: x.logcumsumexp(0), [-INF, 1.0, 1.0], [0.0, 1.5, 0.5]),
    "amax": (lambda x: x.amax(), [1.0, NAN, 3.0], [NAN, NAN, NAN]),
    "amin": (lambda x: x.amin(0), [1.0, NAN, 3.0], [NAN, NAN, NAN]),
    "aminmax": (lambda x: sum(torch.aminmax(x)), [1.0, NAN, 3.0], [NAN, NAN, NAN]),
    "max": (lambda x: x.max(), [1.0, NAN, 3.0], [0.0, 1.0, 0.0]),
    "min": (lambda x: x.min(0).values, [1.0, NAN, 3.0], [0.0, 1.0, 0.0]),
    "sgn": (lambda x: x.sgn(), [1.0, NAN, 0.0], [0.0, 0.0, 0.0]),
    "prod": (lambda x: x.prod(), [2.0, NAN, 3.0], [NAN, 6.0, NAN]),
    "logit": (lambda x: x.logit(), [0.0, -0.0, 1.0, 2.0], [INF, INF, INF, NAN]),
    "logit_of_a_negative_bound": (lambda x: x.logit(-1.0), [-1.0, 2.0, 0.5], [NAN, NAN, 4.0]),
    "renorm": (lambda x: x[None].renorm(2, 0, 1.0), [1.0, NAN], [1.0, 1.0]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_the_limits_of_float_range(name):
    call, values, expected = GRADIENTS[name]
    x = torch.tensor(values, requires_grad=True)
    (got,) = torch.autograd.grad(call(x).sum(), x)
    assert got.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_reductions_accumulate_in_float32(kind):
    x, at = torch.full((5000,), 1.0, dtype=kind), torch.arange(5000) % 2
    for reduce, expected in (("sum", 2500.0), ("mean", 1.0)):
        found = torch.zeros(2, dtype=kind).scatter_reduce(0, at, x, reduce, include_self=False)
        assert found.dtype is kind and found.tolist() == pytest.approx([expected] * 2, rel=4e-3)
    assert torch.full((300,), 1.0078125, dtype=kind).prod().item() == pytest.approx(1.0078125**300, rel=4e-3)


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool, torch.float16])
def test_dtype_argument(kind):
    for x in (torch.tensor([1, 0, 2], dtype=torch.int8), torch.tensor([1.0, 0.0, 2.0])):
        for found in (x.sum(dtype=kind), x.sum(0, dtype=kind), x.prod(dtype=kind), x.nansum(0, dtype=kind)):
            assert found.dtype is kind
        assert x.sum(dtype=kind) == (True if kind is torch.bool else 3)
        if kind is not torch.bool:
            assert x.cumsum(0, dtype=kind).dtype is x.cumprod(0, dtype=kind).dtype is kind
        else:
            with pytest.raises(NotImplementedError, match="\"cumsum_out_cpu\" not implemented for 'Bool'"):
                x.cumsum(0, dtype=kind)


@pytest.mark.parametrize("x", [torch.tensor(3), torch.tensor(3.0), torch.tensor(3.0, dtype=torch.float64)])
def test_logsumexp_of_one_element_is_exact(x: torch.Tensor) -> None:
    assert x.logsumexp(0).item() == x.logsumexp(-1, True).item() == 3.0


INF, NAN = math.inf, math.nan
#: A function, its operand and the gradient of it if a gradient of inf arrives, and one of nan: PyTorch's.
NOT_FINITE = [
    ("x.max()", [0.0, 3.0, 3.0], [0.0, INF, INF], [0.0, NAN, NAN]),
    ("x.max()", [NAN, 1.0], [INF, 0.0], [NAN, 0.0]),
    ("x.min()", [0.0, -1.0], [0.0, INF], [0.0, NAN]),
    ("x.median()", [0.0, -1.0, 3.0], [INF, 0.0, 0.0], [NAN, 0.0, 0.0]),
    ("x.nanmedian()", [NAN, 1.0, 2.0], [0.0, INF, 0.0], [0.0, NAN, 0.0]),
    ("x.amax()", [0.0, 3.0], [NAN, INF], [NAN, NAN]),
    ("x.max(0)[0]", [0.0, 3.0], [0.0, INF], [0.0, NAN]),
    ("x.nansum()", [NAN, 1.0], [NAN, INF], [NAN, NAN]),
    ("x.cumprod(0)", [0.0, -1.0, 3.0], [NAN, 0.0, 0.0], [NAN, 0.0, 0.0]),
    ("torch.segment_reduce(x, 'max', lengths=torch.tensor([2]))", [0.0, 3.0], [0.0, INF], [0.0, NAN]),
    ("torch.pow(x, torch.tensor([0.0, 2.0]))", [0.0, 1.0], [0.0, INF], [0.0, NAN]),
    ("torch.pow(0.0, x)", [-1.0, 2.0], [-INF, NAN], [NAN, NAN]),
    ("torch.sinc(x)", [0.0, 1.0], [0.0, -INF], [0.0, NAN]),
    ("torch.zeros(3).index_fill(0, torch.tensor([1, 1]), x)", 2.0, INF, NAN),
    ("torch.zeros(3).index_fill(0, torch.tensor([], dtype=torch.int64), x)", 2.0, 0.0, 0.0),
    (
        "torch.nn.functional.embedding(torch.tensor([0, 1]), x, padding_idx=1)",
        [[1.0], [2.0]], [[INF], [0.0]], [[NAN], [0.0]],
    ),
    ("torch.pdist(x)", [[1.0], [1.0], [2.0]], [[-INF], [-INF], [INF]], [[NAN], [NAN], [NAN]]),
    ("torch.cdist(x, torch.ones(2, 1))", [[1.0], [2.0]], [[0.0], [INF]], [[0.0], [NAN]]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "values", "infinite", "undefined"), NOT_FINITE)
def test_a_gradient_that_is_not_finite_reaches_what_it_belongs_to(function, values, infinite, undefined):
    for arriving, expected in ((INF, infinite), (NAN, undefined)):
        x = torch.tensor(values, requires_grad=True)
        y = eval(function, {"torch": torch, "x": x})
        y.backward(torch.full(y.shape, arriving))
        numpy.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_an_extreme_can_be_differentiated_twice_and_in_batches(name):
    x = torch.tensor([1.0, 4.0, 4.0, 1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(getattr(x, name)() ** 2, x, create_graph=True)
    share = [0.0, 0.5, 0.5, 0.0] if name == "max" else [0.5, 0.0, 0.0, 0.5]
    assert slope.tolist() == [(8.0 if name == "max" else 2.0) * each for each in share]
    (slope * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [5.0 * each for each in share]
    given = torch.tensor([1.0, 2.0])
    (rows,) = torch.autograd.grad(getattr(x, name)(), x, given, is_grads_batched=True)
    assert rows.tolist() == [share, [2 * each for each in share]]


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_an_infinite_gradient_of_an_extreme_of_any_size_and_dtype(size, dtype):
    for name in ("max", "min", "median"):
        x = torch.zeros(size, dtype=dtype)
        x[0], x[-1] = 1, -1
        x.requires_grad_()
        getattr(x, name)().backward(torch.tensor(INF, dtype=dtype))
        infinite = {"max": [0], "min": [size - 1], "median": range(1, size - 1)}[name]
        assert x.grad.isinf().nonzero().reshape(-1).tolist() == list(infinite)
        assert int((x.grad == 0).sum()) == size - len(infinite)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_second_derivative_of_scattered_products_with_several_zeros(name: str, include_self: bool) -> None:
    at = torch.tensor([0, 0, 1, 2, 2, 2, 0])
    call = getattr(torch, name)
    for values, others in (
        ([0.0, 2.0, 0.0, 4.0], [2.0, 0.0, 4.0, 5.0, 0.0, 0.0, 2.0]),
        ([1.0, 4.0, 0.0, 4.0], [0.0, 3.0, 4.0, 0.0, 6.0, 5.0, 2.0]),
        ([0.0] * 4, [0.0] * 7),
    ):
        given = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (values, others)]
        assert torch.autograd.gradgradcheck(
            lambda x, y: call(x, 0, at, y, "prod", include_self=include_self), given, fast_mode=False
        )
    x, y = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradgradcheck(
        lambda x, y: x.scatter_reduce(0, torch.tensor(0), y, "prod", include_self=include_self), (x, y)
    )


@pytest.mark.parametrize(
    ("name", "expected", "along"),
    [
        ("sum", 10.0, [3.0, 7.0]), ("mean", 2.5, [1.5, 3.5]), ("prod", 24.0, [2.0, 12.0]), ("max", 4.0, [2.0, 4.0]),
        ("min", 1.0, [1.0, 3.0]), ("amax", 4.0, [2.0, 4.0]), ("std", math.sqrt(1.25), [0.5, 0.5]),
        ("var", 1.25, [0.25, 0.25]), ("any", True, [True, True]), ("all", True, [True, True]),
    ],
)  # fmt: skip
def test_numpys_reductions_of_a_tensor(name: str, expected: object, along: list[object]) -> None:
    """``numpy.sum(x)`` calls ``x.sum(axis=None, out=None)``, which PyTorch refuses."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    function = getattr(numpy, name)
    for found, answer in ((function(x), expected), (function(x, axis=1), along), (function(x, 1, keepdims=True), None)):
        assert type(found) is torch.Tensor
        assert found.grad_fn is not None or found.dtype is torch.bool
        if answer is None:
            assert found.shape == (2, 1)
        else:
            assert found.tolist() == (pytest.approx(answer) if isinstance(answer, float) else answer)


def test_numpys_names_need_numpys_form() -> None:
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"got \(out=NoneType"):
        x.sum(out=None)
    with pytest.raises(TypeError):
        numpy.sum(x, out=torch.ones(()))
