"""CUDA kernels generated from the NumPy kernels: their values, their number, and that NVRTC compiles them.

The stand-in for CuPy evaluates the CUDA C++ of each kernel. ``python -m tests.unit.test_cuda_kernels --record FILE``
writes all kernels of these tests for ``scripts/compile_cuda_kernels.py``, which compiles them with CuPy's own source.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest

import retrograd as torch
from tests.cupy_stand_in import host_threads, installed, nvrtc
from tests.cupy_stand_in.kernels import LAST, LAUNCHES, SOURCES, kernel_source

F = torch.nn.functional
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@contextlib.contextmanager
def launches(cupy: Any) -> Iterator[Counter[str]]:
    """Count the generated kernels, and the calls of CuPy's ufuncs, within a block."""
    ufunc = type(cupy.add)
    call, found = ufunc.__call__, Counter[str]()

    def counted(self: Any, *args: Any, **named: Any) -> Any:
        found[self.__name__] += 1
        return call(self, *args, **named)

    LAUNCHES.clear()
    ufunc.__call__ = counted
    try:
        yield found
    finally:
        ufunc.__call__ = call
        found.update(LAUNCHES)


def _of(name: str, shape: tuple[int, ...], dtype: Any, device: str, seed: int = 1) -> Any:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed + len(name)), dtype=torch.float64)
    return values.to(dtype).to(device)


#: Operations whose forward and backward pass are one kernel each, as functions of a tensor (6, 40) and another one.
ONE_KERNEL: dict[str, Callable[[Any, Any], Any]] = {
    "gelu": lambda x, y: F.gelu(x),
    "gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "elu": lambda x, y: F.elu(x, 0.7),
    "softplus": lambda x, y: F.softplus(x, 2.0),
    "hardswish": lambda x, y: F.hardswish(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.3),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
    "sigmoid": lambda x, y: torch.sigmoid(x),
    "softmax": lambda x, y: F.softmax(x, 1),
    "softmax of columns": lambda x, y: F.softmax(x, 0),
    "softmax of a middle axis": lambda x, y: F.softmax(x.reshape(3, 8, 10), 1),
    "log_softmax": lambda x, y: F.log_softmax(x, 1),
    "log_softmax of a transpose": lambda x, y: F.log_softmax(x.t(), 1),
    "layer_norm": lambda x, y: F.layer_norm(x, (40,)),
    "layer_norm of two axes": lambda x, y: F.layer_norm(x.reshape(3, 8, 10), (8, 10)),
    "group_norm": lambda x, y: F.group_norm(x.reshape(2, 4, 30), 2),
    "batch_norm": lambda x, y: F.batch_norm(x.reshape(6, 4, 10), None, None, training=True),
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y, beta=0.5),
    "huber_loss": lambda x, y: F.huber_loss(x, y, delta=0.5),
    "binary_cross_entropy_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y),
}


def _run(function: Callable[[Any, Any], Any], dtype: Any, device: str, cupy: Any) -> tuple[list[Any], list[Any]]:
    x, y = (_of("x", (6, 40), dtype, device, seed) for seed in (1, 2))
    x.requires_grad_()
    with launches(cupy) as forward:
        out = function(x, y)
    g = _of("g", tuple(out.shape), dtype, device)
    node = out.grad_fn
    with launches(cupy) as backward:
        gradient = node(g)
    return [out.detach(), gradient[0] if isinstance(gradient, tuple) else gradient], [forward, backward]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_an_operation_and_its_gradient_are_one_kernel_each(name: str, dtype: Any) -> None:
    with installed() as cupy:
        found, counts = _run(ONE_KERNEL[name], dtype, "cuda", cupy)
        found = [each.cpu() for each in found]
        expected, _ = _run(ONE_KERNEL[name], torch.float32 if dtype.itemsize < 4 else dtype, "cpu", cupy)
    for got, want in zip(found, expected, strict=True):
        assert got.dtype is dtype and got.shape == want.shape
        torch.testing.assert_close(got.to(want.dtype), want, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])
    assert [each.total() for each in counts] == [1, 1], counts


def test_weights_are_broadcast_along_rows() -> None:
    with installed() as cupy:
        results = []
        for device in ("cpu", "cuda"):
            x, w, b = (
                _of("x", (5, 7, 12), torch.float32, device),
                *(_of("w", (12,), torch.float32, device, seed) for seed in (3, 4)),
            )
            with launches(cupy) as counts:
                results.append(F.layer_norm(x, (12,), w, b).cpu())
            image = x.reshape(5, 7, 3, 4)
            results.append(F.group_norm(torch.cat([image, image[:, :1]], 1), 2, w[:8], b[:8]).cpu())
    assert counts == {"retrograd_layer_norm_block": 1}
    torch.testing.assert_close(results[0], results[2])
    torch.testing.assert_close(results[1], results[3])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("options", [
    {}, {"ignore_index": 2}, {"reduction": "sum", "ignore_index": 3}, {"weight": True}, {"spatial": True, "weight": True},
], ids=str)  # fmt: skip
def test_cross_entropy_is_two_kernels_in_each_direction(options: dict[str, Any], dtype: Any) -> None:
    named = {name: value for name, value in options.items() if name in ("ignore_index", "reduction")}
    shape = (6, 5, 2, 3) if "spatial" in options else (6, 5)
    with installed() as cupy:
        ends = []
        for device in ("cpu", "cuda"):
            kind = torch.float32 if device == "cpu" and dtype.itemsize < 4 else dtype
            x = _of("x", shape, dtype, device).to(kind).requires_grad_()
            target = torch.arange(x.numel() // 5).reshape(6, *shape[2:]).remainder(5).to(device)
            if "weight" in options:
                named["weight"] = _of("w", (5,), dtype, device).abs().to(kind)
            with launches(cupy) as counts:
                loss = F.cross_entropy(x, target, **named)
            node = loss.grad_fn
            with launches(cupy) as backward:
                (gradient,) = torch.autograd.grad(loss, x)
            ends.append((loss.detach().cpu(), gradient.cpu()))
    assert node is not None
    assert counts.total() == 2 and backward.total() == 2, (counts, backward)
    for got, want in zip(ends[1], ends[0], strict=True):
        torch.testing.assert_close(got.to(want.dtype), want, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("options", [{"reduction": "sum"}, {}, {"weight": True}], ids=str)
def test_cross_entropy_of_one_sample(options: dict[str, Any]) -> None:
    named = {name: value for name, value in options.items() if name != "weight"}
    with installed():
        ends = []
        for device in ("cpu", "cuda"):
            x = _of("x", (4,), torch.float64, device).requires_grad_()
            if "weight" in options:
                named["weight"] = _of("w", (4,), torch.float64, device).abs()
            loss = F.cross_entropy(x, torch.tensor(2, device=device), **named)
            ends.append((loss.detach().cpu(), *(each.cpu() for each in torch.autograd.grad(loss, x))))
    torch.testing.assert_close(ends[1], ends[0])


@pytest.mark.parametrize("name", [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
])  # fmt: skip
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_an_optimizer_step_is_one_kernel(name: str, decay: float) -> None:
    options: dict[str, Any] = {"lr": 0.05} | ({} if name == "Rprop" else {"weight_decay": decay})
    if name == "SGD" and decay:
        options |= {"momentum": 0.9, "nesterov": True}
    with installed() as cupy:
        ends = []
        for device in ("cpu", "cuda"):
            shapes = ((7, 9), (5,), (), (0, 3), (3, 4))
            params = [_of("p", shape, torch.float32, device).requires_grad_() for shape in shapes]
            params[-1] = params[-1].detach().t().requires_grad_()  # the gradient is in another order
            optimizer = getattr(torch.optim, name)(params, **options)
            for step in range(4):
                for each in params:
                    each.grad = _of("g", tuple(each.shape), torch.float32, device, step)
                with launches(cupy) as counts:
                    optimizer.step()
            ends.append([each.detach().cpu() for each in params])
    assert counts.total() == 2
    for got, want in zip(ends[1], ends[0], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {}, "RMSprop": {"momentum": 0.5},
    "NAdam": {}, "ASGD": {}, "Rprop": {}, "Adadelta": {}, "Adagrad": {}, "Adamax": {}, "RAdam": {},
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_are_updated_together_as_each_alone(name: str, dtype: Any) -> None:
    """Values, states and versions are those of steps of one parameter, also if some have more steps behind them."""
    count = 130 if name == "Adam" else 20  # more than the rows of a table
    with installed() as cupy:

        def trained(together: bool) -> Any:
            params = [_of("p", (k % 7 + 1, 3), dtype, "cuda", k).requires_grad_() for k in range(count)]
            groups = [params] if together else [[each] for each in params]
            optimizers = [getattr(torch.optim, name)(each, lr=0.05, **OPTIMIZERS[name]) for each in groups]
            for step in range(4):
                for k, each in enumerate(params):
                    each.grad = None if step == 1 and k % 3 else _of("g", tuple(each.shape), dtype, "cuda", step + k)
                with launches(cupy) as counts:
                    for optimizer in optimizers:
                        optimizer.step()
            states = [optimizer.state[each] for optimizer in optimizers for each in optimizer.param_groups[0]["params"]]
            tensors = [
                each for one, state in zip(params, states, strict=True)
                for each in (one.detach(), *[x for x in state.values() if isinstance(x, torch.Tensor)])
            ]  # fmt: skip
            return [each.cpu() for each in tensors], [each._version for each in params], counts

        try:
            alone, versions, several = trained(False)
        except RuntimeError as error:
            assert "does not support complex" in str(error)
            return
        found, counted, few = trained(True)
    assert several.total() == count and few.total() <= 6
    assert counted == versions
    for got, want in zip(found, alone, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def test_a_parameter_that_occurs_twice_is_updated_twice() -> None:
    ends = []
    with installed():
        for device in ("cpu", "cuda"):
            x, y = (torch.ones(3, device=device, requires_grad=True) for _ in range(2))
            with pytest.warns(UserWarning, match="duplicate"):
                optimizer = torch.optim.SGD([x, y, x], lr=0.1)
            x.grad = y.grad = torch.ones(3, device=device)
            optimizer.step()
            ends.append([x.tolist(), y.tolist()])
    assert ends[0] == ends[1] and ends[0][0] != ends[0][1]


def test_large_parameters_are_updated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed() as cupy:
        from retrograd.kernels.cuda import many

        monkeypatch.setattr(many, "SMALL", 20)
        params = [torch.ones(n, device="cuda", requires_grad=True) for n in (5, 30, 7, 40)]
        for each in params:
            each.grad = torch.ones_like(each)
        with launches(cupy) as counts:
            torch.optim.SGD(params, lr=0.5).step()
        assert [set(each.tolist()) for each in params] == [{0.5}] * 4
    assert counts.total() == 3  # kernels of equal expressions share the first name


def test_numbers_are_arguments_of_one_kernel() -> None:
    with installed():
        x = torch.ones(3, device="cuda")
        before = len(SOURCES)
        found = [(x * number).sum().item() for number in (0.123, 0.456)]
        assert len(SOURCES) - before <= 1
    assert found == pytest.approx([0.369, 1.368])


def test_arrays_without_elements_and_of_other_dtypes_are_left_to_cupy() -> None:
    with installed() as cupy:
        assert F.gelu(torch.zeros(0, 3, device="cuda")).shape == (0, 3)
        assert F.softmax(torch.zeros(0, 3, device="cuda"), 1).shape == (0, 3)
        with launches(cupy) as counts:
            assert (torch.tensor([1, 2], device="cuda") * 2 + 1).tolist() == [3, 5]
            assert (torch.tensor([1j], device="cuda") * 2).tolist() == [2j]
    assert not any(name.startswith("retrograd_") for name in counts)


def test_strides_broadcasting_and_special_values() -> None:
    with installed() as cupy:
        ends = []
        for device in ("cpu", "cuda"):
            x = _of("x", (4, 6, 10), torch.float32, device)
            x[0, 0, :3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
            some = [x[:, ::2, :: -1 + 2], x.permute(2, 0, 1), x[:, :1].expand(4, 6, 10)]
            made = [F.softmax(each, 1) for each in some] + [F.silu(each) for each in some]
            made += [
                torch.lerp(x, x[:, :1], 0.3),
                torch.clamp(x, -0.5, 0.25),
                torch.sign(x),
                x.expand(2, 4, 6, 10).mean((1, 3)),
            ]
            ends.append([each.cpu() for each in made])
    assert cupy is not None
    for got, want in zip(ends[1], ends[0], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("shape", [(40_000,), (3, 33_001), (2, 190, 201)])
def test_a_few_long_rows_are_divided(shape: tuple[int, ...]) -> None:
    with installed() as cupy:
        x, y = (_of("x", shape, torch.float64, "cuda", seed) for seed in (1, 2))
        with launches(cupy) as counts:
            found = F.mse_loss(x, y)
        mean = torch.nn.functional.l1_loss(x, y, reduction="mean")
        expected = F.mse_loss(x.cpu(), y.cpu()), F.l1_loss(x.cpu(), y.cpu())
        assert found.item() == pytest.approx(expected[0].item()) and mean.item() == pytest.approx(expected[1].item())
    assert counts == {"retrograd_mse_loss_block": 1, "retrograd_mse_loss_block_of_parts": 1}


def test_a_kernel_is_derived_once_for_each_shape() -> None:
    with installed() as cupy:
        from retrograd.kernels.cuda import launch

        x = cupy.asarray(numpy.ones((3, 5), numpy.float32))
        calls = []

        def twice(np: Any, x: Any) -> Any:
            calls.append(x.shape)
            return np.exp(x) + np.sqrt(x)

        for array in (x, x, x[:2], x):
            found = launch.computed(twice, "twice", [array], {})
            assert found.get() == pytest.approx(numpy.e + 1)
    assert calls == [(3, 5), (2, 5)]


def test_operands_that_a_kernel_writes_are_written() -> None:
    def kernel(np: Any, x: Any, y: Any, pair: Any = None) -> Any:
        y *= 0.5
        return np.exp(x) * y if pair is None else np.exp(x) * y + pair[0]

    with installed() as cupy:
        from retrograd.kernels.cuda import launch

        x, y = cupy.asarray(numpy.ones(3, numpy.float32)), cupy.asarray(numpy.ones(3, numpy.float32))
        assert launch.computed(kernel, "kernel", [x, y], {}) is None
        assert launch.computed(lambda np, x, pair: np.exp(x) * 2 + pair[0], "pair", [x, (y,)], {}) is None
        assert y.get().tolist() == [1, 1, 1]
        ends = []
        for device in ("cpu", "cuda"):
            mean, variance = torch.zeros(4, device=device), torch.ones(4, device=device)
            for seed in (1, 2):
                F.batch_norm(_of("x", (6, 4, 10), torch.float32, device, seed), mean, variance, training=True)
            ends.append([mean.cpu(), variance.cpu()])
    torch.testing.assert_close(ends[1], ends[0])


def test_random_numbers_are_drawn_in_each_call_and_once() -> None:
    draws = []
    with installed():
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            x = torch.full((1,), 0.5, device=device)
            draws.append([torch.bernoulli(x).item() for _ in range(20)] + [F.dropout(x[0]).item() for _ in range(20)])
    assert draws[0] == draws[1]
    assert len(set(draws[0])) > 1


def test_zeros_of_both_signs_are_different_numbers() -> None:
    with installed():
        x = torch.tensor([-0.0, 1.0], device="cuda")
        assert [torch.copysign(x, number).tolist() for number in (0.0, -0.0)] == [[0.0, 1.0], [-0.0, -1.0]]


def test_reading_a_value_or_a_part_prevents_a_kernel() -> None:
    with installed() as cupy:
        from retrograd.kernels.cuda import launch

        x = cupy.asarray(numpy.ones((3, 5), ml_dtypes.bfloat16))
        for function in (
            lambda np, x: np.exp(x) if (x > 0).all() else x * 2,
            lambda np, x: np.exp(x[1:]) * 2,
            lambda np, x: np.exp(x) * np.cumsum(x),
            lambda np, x: (x * 2).sum(0) + (x * 2).sum(1)[:3],
            lambda np, x: x.sum(0) * x,
            lambda np, x: (x * 2).reshape(5, 3) + np.ones((5, 3), np.float64),
            lambda np, x: np.lib.stride_tricks.as_strided(x, (2, 3), (80, 8)) * 2 + 1,
            lambda np, x: np.asarray([x, x]).sum() * 2,
        ):
            assert launch.computed(function, "f", [x], {}) is None


def test_an_array_that_is_overwritten_keeps_its_former_value_in_expressions() -> None:
    def kernel(np: Any, x: Any) -> Any:
        out = x * x
        total = np.add.reduce(out, axis=1, keepdims=True)
        np.subtract(x, total, out=out)
        out -= total
        out[...] = out * 2
        return out

    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    with installed() as cupy:
        from retrograd.kernels.cuda import launch

        assert launch.computed(kernel, "kernel", [cupy.asarray(x)], {}).get() == pytest.approx(kernel(numpy, x))


@pytest.mark.skipif(host_threads.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("shape", "axis", "blocks", "block"), [
    ((21, 50), 1, 2, (32, 8)), ((3, 1500), 1, 2, (256, 1)), ((2, 40_000), 1, 1, (1024, 1)), ((4100, 3), 0, 1, (256, 1)),
    ((5, 7, 900), 1, 3, (1, 256)),
], ids=str)  # fmt: skip
def test_the_threads_of_blocks_compute_the_rows(
    shape: tuple[int, ...], axis: int, blocks: int, block: tuple[int, int], tmp_path: Path
) -> None:
    def standardise(np: Any, x: Any) -> Any:
        gap = x - x.mean(axis, keepdims=True)
        scale = 1 / np.sqrt((gap * gap).mean(axis, keepdims=True) + 0.5)
        return gap * scale, scale

    with installed() as cupy:
        from retrograd.kernels import softmax
        from retrograd.kernels.cuda import launch

        x = cupy.asarray(numpy.random.default_rng(0).normal(size=shape) * 3)
        function = standardise if len(shape) > 2 or shape[0] == 21 else lambda np, x: softmax.softmax(np, x, axis)
        results = launch.computed(function, "rows", [x], {})
        kernel, _, chosen, args = LAST
    assert chosen == block
    given = [each._a.copy() if hasattr(each, "_a") else each for each in args]
    outputs = results if isinstance(results, tuple) else (results,)
    for each in given[: len(outputs)]:
        each.fill(numpy.nan)
    host_threads.run(kernel.code, kernel.name, kernel.parameters, blocks, block, given, tmp_path)
    for got, want in zip(given, outputs, strict=False):
        assert numpy.allclose(got, want._a, rtol=1e-12, atol=1e-14)


@pytest.mark.skipif(not nvrtc.available(), reason=nvrtc.MISSING)
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_compiles_the_kernels(architecture: str) -> None:
    record((torch.float32, torch.bfloat16))
    kernels = {key: name for key, name in SOURCES.items() if "typedef float F" in kernel_source(key, name)}
    assert len(kernels) > 80
    for key, name in kernels.items():
        assert f".entry {name}" in nvrtc.compiled(kernel_source(key, name), architecture)


def record(dtypes: Sequence[Any] = DTYPES) -> None:
    """Generate the kernels of this module's operations, in ``dtypes``, and optimizers."""
    with installed() as cupy:
        for dtype in dtypes:
            for function in ONE_KERNEL.values():
                _run(function, dtype, "cuda", cupy)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "NAdam", "Rprop"):
        test_an_optimizer_step_is_one_kernel(name, 0.1)
    test_a_few_long_rows_are_divided((3, 33_001))
    test_weights_are_broadcast_along_rows()
    for options in ({}, {"weight": True}):
        for dtype in dtypes:
            test_cross_entropy_is_two_kernels_in_each_direction(options, dtype)


if __name__ == "__main__":
    import json

    record()
    Path(sys.argv[sys.argv.index("--record") + 1]).write_text(json.dumps([*SOURCES.items()]))
