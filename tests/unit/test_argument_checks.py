"""Arguments that a function could compute with, although PyTorch refuses them."""

from __future__ import annotations

import numpy
import pytest

import retrograd as torch

F = torch.nn.functional
INF = float("inf")
REFUSED = """
F.softplus(x, (0,))
F.threshold(x, [1], torch.tensor(1.0))
F.poisson_nll_loss(x, x, 2**63, -1)
torch.clamp(x, [1], True)
torch.clamp(x, numpy.ones(3))
torch.movedim(x, 0, (0,))
x.movedim([1], 1)
x.movedim(0, True)
x.swapdims(0.5, 0)
torch.matrix_power(x, torch.tensor([1, 2]))
torch.pow(x, (1, 2))
torch.pow(torch.ones(0), None)
torch.trapezoid(x, 0)
torch.prod(x, 1, -1)
torch.svd(x, (0, 1))
torch.qr(x, 0)
torch.float_power(x, (0,))
torch.all(x, False)
torch.renorm(x, 3, 0.5, torch.tensor(1.0))
torch.amin(x, [0], 0)
torch.median(x, -1, 3)
torch.sort(x, stable=1)
torch.Tensor.add(5, x)
x.unsqueeze_(True)
x.unsqueeze(True)
x.transpose_(torch.tensor(True), 1)
x.squeeze([True])
x.numpy(force=2)
x.cumsum(torch.tensor(True))
torch.selu(x, (0, 1))
torch.eye(3, pin_memory=())
torch.hann_window(4, layout=0.5)
torch.linalg.svd(x, 0)
torch.fft.rfftfreq(True)
torch.isin(x, 2, assume_unique=())
x.sum(0, 1)
torch.addcmul(x, 2, x)
x.addcdiv_(x, 2)
x.unique(0.5)
F.dropout(x, 0.5, 1)
F.max_pool2d(x[None], 1, ceil_mode=1)
x.geometric_()
torch.where(x > 0, 2, loop)
x.tile(True)
torch.ones({})
torch.arange(0.5, step=2)
F.adaptive_avg_pool2d(x[None], True)
F.adaptive_max_pool3d(x[None, None], True)
F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 3), 3)
""".strip().splitlines()
ACCEPTED = """
torch.clamp(x, 0, 1)
torch.clamp(x, torch.zeros(3), torch.ones(3))
x.clamp(numpy.int64(1))
x.movedim((0, 1), (1, 0))
x.movedim(numpy.int64(0), torch.tensor(1))
x.sum(None, True)
x.sum(axis=0, keepdims=True)
x.var(0, correction=0)
x.all(0, True)
x.view(numpy.int64(9))
x.view(torch.tensor(9))
x.to(torch.float64)
x.flip(0, 1)
x.flip((0, 1))
torch.zeros(2, dtype=float)
torch.zeros((2, 3), device="cpu", pin_memory=False)
torch.zeros(2, requires_grad=True)
torch.full((2,), numpy.float32(1))
torch.norm(x, "fro")
torch.add(x, 1, alpha=2)
F.softplus(x, torch.tensor(2.0))
F.threshold(x, 1, 2, False)
F.poisson_nll_loss(x, x, reduction="sum")
F.leaky_relu(x, torch.tensor(0.5))
torch.instance_norm(x[None], None, None, None, None, True, 0.1, 1e-5, True)
torch.nanquantile(x, False, 0)
torch.polygamma(torch.tensor(1), x)
x.amax(torch.tensor(True))
F.max_pool1d(x, numpy.int64(1))
F.max_pool3d(x[None, None], numpy.int64(1))
F.avg_pool2d(x[None], torch.tensor(1))
F.adaptive_max_pool1d(x, numpy.int64(1))
F.unfold(x[None, None], numpy.int64(1))
F.conv1d(x[None], torch.ones(1, 3, 1), None, numpy.int64(1), torch.tensor(1))
torch.fft.fftn(x, numpy.int64(1))
x.split(torch.tensor(1))
x.chunk(torch.tensor(2))
x.tensor_split(numpy.int64(2))
torch.isclose(x, x, rtol=torch.tensor(0.1))
x.sum(dtype=float)
torch.rsub(x, 2, -0.5)
x.narrow(numpy.int64(0), torch.tensor(0), numpy.int64(1))
torch.special.softmax(x, 0, torch.float64)
""".strip().splitlines()


def run(call: str) -> None:
    loop: list[object] = [1]
    loop.append(loop)
    eval(call, {"torch": torch, "F": F, "numpy": numpy, "x": torch.ones(3, 3), "loop": loop})


@pytest.mark.parametrize("call", REFUSED)
def test_argument_of_wrong_type_is_refused(call: str) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r".+"):
            run(call)


@pytest.mark.parametrize("call", ACCEPTED)
def test_argument_of_unusual_type_is_accepted(call: str) -> None:
    for _ in range(2):
        run(call)


@pytest.mark.parametrize("alpha", [True, numpy.bool_(True), 1.0])
def test_alpha_of_another_kind_is_refused(alpha: object) -> None:
    for x in (torch.arange(3), torch.arange(3.0)):
        if not (alpha.__class__ is float or isinstance(alpha, numpy.bool_)) or x.dtype is torch.int64:
            for name in ("add", "add_", "sub", "sub_"):
                with pytest.raises(RuntimeError, match="alpha"):
                    getattr(x, name)(x, alpha=alpha)
            assert x.tolist() == [0, 1, 2]
            assert x._version == 0


@pytest.mark.parametrize(
    "call",
    [
        "x.diag(2**63)", "x.flatten(2**63)", "x.unsqueeze(-(2**63) - 1)", "x.chunk(2**63)", "x.split(2**63)",
        "x.unsafe_split(2**63)", "x.tensor_split(2**63)",
    ],
)  # fmt: skip
def test_int_of_more_than_64_bits(call: str) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        run(call)


def test_refused_argument_follows_accepted_one() -> None:
    x = torch.ones(3)
    for good, bad in (((0, True), (0, 1)), (([0], True), ([None], True)), ((0, False), (False, False))):
        assert x.amin(*good) is not None
        with pytest.raises(TypeError, match="amin"):
            x.amin(*bad)


def test_any_and_all_over_no_dimensions_test_each_element() -> None:
    x = torch.tensor([[0, 1], [2, 0]])
    for function in (torch.any, torch.all):
        for dim in ((), []):
            for keepdim in (False, True):
                assert function(x, dim, keepdim).tolist() == [[False, True], [True, False]]
        assert function(x.to(torch.uint8), ()).dtype is torch.uint8
        assert torch.vmap(lambda row, function=function: function(row, ()))(x).tolist() == [
            [False, True],
            [True, False],
        ]


def test_number_is_subtracted_with_a_positional_factor() -> None:
    x = torch.ones(2)
    for number in (3, 3.0, numpy.int64(3)):
        assert x.subtract(number, 2).tolist() == torch.subtract(x, number, 2).tolist() == [-5.0, -5.0]
        assert x.clone().subtract_(number, 2).tolist() == [-5.0, -5.0]
    with pytest.raises(TypeError, match="subtract"):
        x.subtract(x, 2)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_maxima_of_no_windows_are_empty(rank: int) -> None:
    x = torch.ones(1, 2, *[5] * rank)
    values, indices = getattr(F, f"adaptive_max_pool{rank}d")(x, [0] * rank, return_indices=True)
    assert values.shape == indices.shape == (1, 2, *[0] * rank)
    assert indices.dtype is torch.int64


def test_memory_format_none_preserves_the_format() -> None:
    x = torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)
    for y in (x.double(memory_format=None), x.to(torch.float64, memory_format=None)):
        assert y.dtype is torch.float64
        assert y.stride() == x.stride()


def test_module_of_no_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Invalid value of device '0'"):
        torch.get_device_module(0)


def test_randint_like_takes_a_generator_and_a_tensor() -> None:
    x = torch.ones(2, 3)

    def generator() -> torch.Generator:
        return torch.Generator().manual_seed(3)

    expected = [[5.0, 3.0, 3.0], [4.0, 0.0, 6.0]]  # PyTorch 2.13
    assert torch.randint_like(x, torch.tensor(7), generator=generator()).tolist() == expected
    assert torch.randint_like(x, 0, 7, generator=generator(), pin_memory=False).tolist() == expected
