"""Tests of what the host does for operations on a GPU: launches and calls of Python functions, on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.check_gpu import steps
from retrograd.core.graph import AccumulateGrad
from tests.cupy_stand_in import installed, nvrtc
from tests.cupy_stand_in.calls import Calls, counted_calls
from tests.cupy_stand_in.kernels import SOURCES, kernel_source

F = torch.nn.functional


def _counted(function: Callable[..., Any], *tensors: Any) -> tuple[Calls, Calls]:
    """Return the calls of ``function`` and of its backward pass, when they are called for the second time."""
    for _ in range(2):
        with counted_calls() as forward:
            out = function(*tensors)
        g = torch.ones_like(out)
        with counted_calls() as backward:
            out.grad_fn(g)
    return forward, backward


def _random(*shape: int, dtype: Any = torch.float32) -> Any:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)
    return values.to(dtype)


LAUNCHES: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "conv2d": (3, 7, lambda x, w, b, *_: F.conv2d(x, w, b, padding=1)),
    "conv2d without bias": (3, 6, lambda x, w, b, *_: F.conv2d(x, w, padding=1)),
    "conv2d, groups": (3, 10, lambda x, w, b, *_: F.conv2d(x, w[:, :2], b, stride=2, dilation=2, groups=2)),
    "conv2d, kernel of one element": (3, 7, lambda x, w, b, *_: F.conv2d(x, w[:, :, :1, :1], b)),
    "conv_transpose2d": (4, 7, lambda x, w, b, *_: F.conv_transpose2d(x, w[:4], b[:4], stride=2)),
    "max_pool2d": (1, 2, lambda x, w, b, *_: F.max_pool2d(x, 2)),
    "max_pool2d, overlapping": (1, 2, lambda x, w, b, *_: F.max_pool2d(x, 3, 2, 1)),
    "avg_pool2d": (2, 2, lambda x, w, b, *_: F.avg_pool2d(x, 2)),
    "avg_pool2d, overlapping": (2, 2, lambda x, w, b, *_: F.avg_pool2d(x, 3, 2, 1, True, False)),
    "adaptive_avg_pool2d": (2, 2, lambda x, w, b, *_: F.adaptive_avg_pool2d(x, 3)),
    "interpolate": (2, 2, lambda x, w, b, *_: F.interpolate(x, 5, mode="bilinear")),
    "interpolate, one axis": (1, 1, lambda x, w, b, *_: F.interpolate(x, (8, 5), mode="bilinear")),
    "pad": (2, 2, lambda x, w, b, *_: F.pad(x, (1, 2, 2, 0), "reflect")),
    "batch_norm": (4, 4, lambda x, w, b, *running: F.batch_norm(x, *running, b[:4], b[4:], training=True)),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(name: str) -> None:
    most_forward, most_backward, function = LAUNCHES[name]
    with installed():
        tensors = [each.cuda().requires_grad_() for each in (_random(2, 4, 8, 8), _random(8, 4, 3, 3), _random(8))]
        forward, backward = _counted(function, *tensors, torch.zeros(4).cuda(), torch.ones(4).cuda())
    assert forward.count <= most_forward, forward.launches
    assert backward.count <= most_backward, backward.launches


CONVOLUTIONS = [
    ((2, 4, 9), (8, 4, 3), {"padding": 1}),
    ((2, 4, 9, 7), (8, 2, 3, 2), {"padding": (1, 0), "stride": 2, "groups": 2}),
    ((3, 4, 9, 8), (8, 1, 2, 3), {"dilation": 2, "groups": 4, "padding": 2}),
    ((2, 4, 6, 5, 7), (4, 4, 3, 2, 2), {"stride": (1, 2, 3), "padding": 1}),
    ((4, 9, 7), (8, 4, 1, 1), {}),
]


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16, torch.complex64), ids=str)
@pytest.mark.parametrize(("shape", "weight", "options"), CONVOLUTIONS, ids=str)
def test_convolutions_of_one_product(shape: Any, weight: Any, options: Any, dtype: Any) -> None:
    function = (F.conv1d, F.conv2d, F.conv3d)[len(weight) - 3]
    results = []
    with installed():
        for device in ("cpu", "cuda"):
            given = [_random(*shape, dtype=dtype), _random(*weight, dtype=dtype), _random(weight[0], dtype=dtype)]
            tensors = [each.to(device).requires_grad_() for each in given]
            out = function(*tensors, **options)
            g = torch.arange(out.numel(), device=device).reshape(out.shape).to(dtype) / out.numel()
            results.append([each.detach().cpu() for each in (out, *torch.autograd.grad(out, tensors, g))])
    tolerance = 3e-2 if dtype is torch.bfloat16 else 2e-5
    for got, want in zip(results[1], results[0], strict=True):
        assert got.stride() == want.stride()
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def test_a_large_batch_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    with installed():
        from retrograd.kernels.cuda import windows

        for size in (2**30, 1):
            monkeypatch.setattr(windows, "COLUMN_BYTES", size)
            tensors = [each.cuda().requires_grad_() for each in (_random(3, 4, 6, 6), _random(8, 4, 3, 3), _random(8))]
            out = F.conv2d(*tensors, padding=1)
            results.append([each.detach().cpu() for each in (out, *torch.autograd.grad(out.square().sum(), tensors))])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16, torch.int32), ids=str)
@pytest.mark.parametrize("options", (
    (2,), (3, 2, 1), (3, 1, 1, 2), (2, 3, 0, 1, True), (12, 1, 6),
), ids=str)  # fmt: skip
def test_maxima_of_windows(options: Any, dtype: Any) -> None:
    results = []
    with installed():
        for device in ("cpu", "cuda"):
            x = (3 * _random(2, 3, 9, 8)).to(dtype)
            if dtype.is_floating_point:
                x[0, 0, :, 2], x[0, 1, 1], x[1, 0] = float("nan"), float("-inf"), float("-inf")
            x = x.to(device)
            out, places = F.max_pool2d(x.requires_grad_(dtype.is_floating_point), *options, return_indices=True)
            results.append([out.detach().cpu(), places.cpu()])
            if dtype.is_floating_point:
                g = (torch.arange(out.numel(), device=device).reshape(out.shape) % 7).to(dtype)
                results[-1].append(torch.autograd.grad(out, x, g)[0].cpu())
    for got, want in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


MAPS: dict[str, Callable[[Any], Any]] = {
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "windows of unequal sizes": lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
    "elements in no window": lambda x: F.avg_pool2d(x, 2, 3),
    "divisor": lambda x: F.avg_pool2d(x, (2, 3), divisor_override=5),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "one axis": lambda x: F.avg_pool1d(x[0], 3, 1, 1),
    "nearest": lambda x: F.interpolate(x, (5, 17)),
    "bicubic": lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    "antialiased": lambda x: F.interpolate(x, (4, 3), mode="bilinear", antialias=True),
    "channels last": lambda x: F.avg_pool2d(x.to(memory_format=torch.channels_last), 2),
    "circular": lambda x: F.pad(x, (-1, 2, 3, 0), "circular"),
    "same size": lambda x: F.interpolate(x, (9, 8), mode="bilinear"),
}


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_maps_along_axes(name: str, dtype: Any) -> None:
    results = []
    with installed():
        for device in ("cpu", "cuda"):
            if dtype is torch.bfloat16 and name == "antialiased":  # not on the CPU, as in PyTorch
                continue
            x = _random(2, 3, 9, 8).to(dtype)
            x[0, 0, 4, 4], x[1, 0, 1, 6] = float("inf"), float("nan")
            x = x.to(device).requires_grad_()
            out = MAPS[name](x)
            g = (torch.arange(out.numel(), device=device).reshape(out.shape) % 7).to(dtype)
            (grad,) = torch.autograd.grad(out, x, g)
            results.append([out.detach().cpu(), grad.cpu()])
    for got, want in zip(*results[::-1], strict=True):
        assert got.stride() == want.stride()
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("part", (2**28, 120), ids=str)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
@pytest.mark.parametrize(("mask", "causal"), [(None, False), (None, True), ("bool", False), ("number", False)])
def test_attention_is_two_products(mask: str | None, causal: bool, dtype: Any, part: int) -> None:
    results = []
    with installed(), pytest.MonkeyPatch.context() as monkeypatch:
        from retrograd.kernels.cuda import attention

        monkeypatch.setattr(attention, "PART", part)
        for device in ("cpu", "cuda"):
            given = [_random(2, 3, *shape, dtype=dtype) for shape in ((5, 8), (7, 8), (7, 8))]
            tensors = [each.to(device).requires_grad_() for each in given]
            chosen = None if mask is None else _random(2, 3, 5, 7, dtype=dtype).to(device)
            if mask == "bool":
                chosen = chosen > 0
                chosen[0, 0, 0] = False
            with counted_calls() as forward:
                out = F.scaled_dot_product_attention(*tensors, chosen, is_causal=causal)
            g = torch.arange(out.numel(), device=device).reshape(out.shape).to(dtype) / out.numel()
            with counted_calls() as backward:
                grads = torch.autograd.grad(out, tensors, g)
            results.append([each.detach().cpu() for each in (out, *grads)])
    tolerance = 3e-2 if dtype is torch.bfloat16 else 2e-5
    for got, want in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    if part > 120:
        assert forward.launches["matmul"] == 2 and backward.launches["matmul"] == 5
        assert forward.launches["retrograd_attention"] == 1 and backward.launches["retrograd_attention_grad"] == 1


@pytest.mark.skipif(not nvrtc.available(), reason=nvrtc.MISSING)
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_compiles_the_kernels_of_windows(architecture: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for convolution in CONVOLUTIONS[1:4]:
            test_convolutions_of_one_product(*convolution, dtype)
        for options in ((2,), (3, 2, 1)):
            test_maxima_of_windows(options, dtype)
        for name in MAPS:
            test_maps_along_axes(name, dtype)
        test_attention_is_two_products(None, False, dtype, 2**28)
    for most in (2**24, 30):
        with pytest.MonkeyPatch.context() as monkeypatch:
            test_clipping_takes_one_norm(most, monkeypatch)
    for name in IN_PLACE:
        test_gradients_are_modified_together(name, torch.float32, 1.0)
    names = {f"retrograd_{each}" for each in (
        "columns", "add_columns", "maxima", "map", "scatter", "scale", "clamp", "zero", "unscale", "attention", "row_product",
        "attention_grad",
    )}  # fmt: skip
    kernels = {key: name for key, name in SOURCES.items() if name in names}
    kernels = {key: name for key, name in kernels.items() if "typedef float F" in kernel_source(key, name)}
    assert set(kernels.values()) == names
    for key, name in kernels.items():
        assert f".entry {name}" in nvrtc.compiled(kernel_source(key, name), architecture)


@pytest.mark.parametrize("most", (2**24, 30), ids=str)
def test_clipping_takes_one_norm(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    with installed():
        from retrograd.kernels.cuda import many

        monkeypatch.setattr(many, "TOGETHER", most)
        monkeypatch.setattr(many, "SMALL", most)
        for device in ("cpu", "cuda"):
            params = [torch.zeros(shape, device=device) for shape in ((3, 4), (5,), (), (2, 20))]
            for each in params:
                each.grad = _random(*each.shape).to(device)
            with counted_calls() as calls:
                norm = torch.nn.utils.clip_grad_norm_(params, 2.0)
            results.append([norm.cpu(), *[each.grad.cpu() for each in params]])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want)
    assert calls.launches["retrograd_scale"] == (1 if most > 30 else 2)  # one of a large array
    assert calls.count == (5 if most > 30 else 8), calls.launches


def _parameters(device: str, dtype: Any = torch.float32) -> list[Any]:
    params = [torch.zeros(shape, device=device, dtype=dtype) for shape in ((3, 4), (5,), (), (0,), (2, 20))]
    for each in params:
        each.grad = (3 * _random(*each.shape, dtype=dtype)).to(device)
    params[0].grad = params[0].grad.t().contiguous().t().clone()  # in column-major order
    return params


def _unscaled(params: list[Any]) -> Any:
    optimizer, scaler = torch.optim.SGD(params, lr=1.0), torch.amp.GradScaler(params[0].device.type, init_scale=8.0)
    scaler.scale(torch.ones((), device=params[0].device))
    scaler.unscale_(optimizer)
    return bool(scaler._per_optimizer_states[id(optimizer)]["infinite"])


IN_PLACE: dict[str, tuple[int, Callable[[list[Any]], Any]]] = {
    "zero_grad": (1, lambda params: torch.optim.SGD(params, lr=1.0).zero_grad(set_to_none=False)),
    "clip_grad_value_": (1, lambda params: torch.nn.utils.clip_grad_value_(params, 0.5)),
    "clip_grad_norm_": (6, lambda params: torch.nn.utils.clip_grad_norm_(params, 0.5)),
    "unscale_": (9, _unscaled),
}


@pytest.mark.parametrize("value", (1.0, float("nan"), float("-inf")), ids=str)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("name", IN_PLACE)
def test_gradients_are_modified_together(name: str, dtype: Any, value: float) -> None:
    most, function = IN_PLACE[name]
    results, versions = [], []
    with installed():
        for device in ("cpu", "cuda"):
            params = _parameters(device, dtype)
            params[0].grad[1, 2] = params[4].grad[0, 3] = value
            before = [each.grad._version for each in params]
            with counted_calls() as calls:
                found = function(params)
            versions.append([each.grad._version - one for each, one in zip(params, before, strict=True)])
            results.append([each.grad.cpu() for each in params])
            assert isinstance(found, torch.Tensor) or found is None or found == (value != 1)
    assert calls.count <= most, calls.launches
    assert versions[1] == [1] * 5 == versions[0]
    tolerance = 1e-6 if name == "clip_grad_norm_" else 0
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=0, equal_nan=True)


#: Operations of half precision that are one function, with their launches: the last one of in-place operations copies.
SINGLE: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "add_": (2, lambda x, y: x.add_(y)),
    "iadd": (2, lambda x, y: x.__iadd__(y)),
    "relu_": (2, lambda x, y: x.relu_()),
    "pow": (1, lambda x, y: x**2),
    "add": (1, lambda x, y: x + y),
    "add of a number": (1, lambda x, y: x + 1),
}


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=str)
@pytest.mark.parametrize("name", SINGLE)
def test_single_functions_of_half_precision_convert_nothing(name: str, dtype: Any) -> None:
    most, function = SINGLE[name]
    results = []
    with installed():
        for device in ("cpu", "cuda"):
            for _ in range(2):
                x, y = (_random(*shape, dtype=dtype).to(device) for shape in ((4, 5), (5,)))
                with counted_calls() as calls:
                    found = function(x, y)
            results.append(found.cpu())
    assert calls.count <= most, calls.launches
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_gradients_in_a_graph_are_modified_alone() -> None:
    with installed():
        params = _parameters("cuda")
        source = torch.ones(5, device="cuda", requires_grad=True)
        params[1].grad = source * 2
        torch.nn.utils.clip_grad_value_(params, 0.5)
        assert params[1].grad.tolist() == [0.5] * 5 and params[1].grad.grad_fn is not None
        torch.optim.SGD(params, lr=1.0).zero_grad(set_to_none=False)
        assert params[1].grad.tolist() == [0.0] * 5 and params[1].grad.grad_fn is None
        whole = torch.ones(8, device="cuda")
        params[2].grad, params[1].grad = whole[0], whole[1:6]  # views share the version of their base
        before = whole._version
        torch.nn.utils.clip_grad_value_(params, 0.5)
        assert whole.tolist() == [0.5] * 6 + [1.0] * 2 and whole._version == before + 2


#: Launches and calls of Python functions in a step: at most those that were counted, and a tenth.
STEPS = {"MLP": (31, 665), "CNN": (71, 1980), "GPT": (248, 5672)}


@pytest.mark.parametrize("name", STEPS)
def test_a_training_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # While any leaf has hooks, the engine visits leaves in PyTorch's order, which makes it copy their gradients.
    monkeypatch.setattr(AccumulateGrad, "hooked", False)
    most_launches, most_calls = STEPS[name]
    with installed():
        step = steps.STEPS[name](torch, "cuda")
        for _ in range(3):
            step()
        with counted_calls() as calls:
            step()
    assert calls.count <= 1.1 * most_launches, calls.launches
    assert calls.python <= 1.1 * most_calls, calls.functions.most_common(20)
