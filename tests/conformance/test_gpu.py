"""The device ``cuda`` on the stand-in for CuPy: samples beside the CPU, what waits for the device, what is refused."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import retrograd as torch
from tests.conformance.gpu_cases import MAY_WAIT, chosen, compare, function_of, today
from tests.conformance.samples import FAMILIES
from tests.cupy_stand_in import counted, installed


@pytest.fixture(autouse=True)
def devices() -> Iterator[Any]:
    with installed(devices=2) as cupy:
        yield cupy


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_agree_with_the_cpu(family: str) -> None:
    """A fifth of the samples, another one each day: values, gradients, their gradients, and tangents, in four dtypes.

    All samples: ``python -m tests.conformance.gpu_cases``.
    """
    may_wait = set(MAY_WAIT.read_text(encoding="utf-8").splitlines())
    wrong, waits = [], Counter[str]()
    for _, sample, dtype in chosen(today(), [family]):
        outcome = compare(sample, dtype)
        if outcome is not None:
            wrong += [
                f"{sample.expression} {dtype} {stage}: {text}" for stage, text in outcome.differences.items() if text
            ]
            for counts in outcome.syncs.values():
                waits.update({function_of(where): count for (_, where), count in counts.items()})
    assert wrong == []
    assert {each: count for each, count in waits.items() if each not in may_wait} == {}


def net(device: str) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Dropout(0.1),
        torch.nn.Linear(16, 5),
    ).to(device)  # fmt: skip


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_training_agrees_with_the_cpu_and_does_not_wait(kind: str) -> None:
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "cuda"):
        model = net(device)
        optimiser = getattr(torch.optim, kind)(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 1, 8, 8).to(device), torch.arange(8).remainder(5).to(device)
        found = []
        with counted() as counts:
            for _ in range(3):
                optimiser.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
                loss.backward()
                optimiser.step()
                found.append(loss)
        assert counts.syncs == Counter()
        losses[device] = [each.item() for each in found]
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-4)


def test_gradients_arrive_on_the_device() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    (x.exp() * x).sum().backward()
    assert x.grad.is_cuda and x.grad.cpu().tolist() == pytest.approx([2 * numpy.e] * 3)
    (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad(slope.sum(), x)
    assert curve.is_cuda and curve.tolist() == [6.0] * 3


def test_indices_out_of_range_do_not_raise() -> None:
    """Nothing waits for the device to look at them; they are taken modulo the size."""
    x = torch.arange(3.0, device="cuda")
    index = torch.tensor([4], device="cuda")
    with counted() as counts:
        picked = x[index], x.index_select(0, index), torch.gather(x, 0, index)
    assert [each.tolist() for each in picked] == [[1.0]] * 3 and counts.syncs == Counter()


def test_indices_of_the_cpu_are_accepted() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    x[torch.tensor([1])] = 0
    assert x[torch.tensor([0, 1]), [2, 2]].tolist() == [2.0, 0.0] and x[[True, False]].tolist() == [[0.0, 1.0, 2.0]]


def test_singular_matrices_do_not_raise() -> None:
    with counted() as counts:
        inverse = torch.linalg.inv(torch.zeros(2, 2, device="cuda"))
    assert counts.syncs == Counter() and not inverse.isfinite().any().item()


def test_a_function_that_cupy_lacks_warns_once() -> None:
    from retrograd.kernels.cuda.functions import warned

    warned.clear()
    x = torch.eye(3, device="cuda")
    with pytest.warns(UserWarning, match="exp is computed on the CPU, because CuPy has no such function"):
        assert torch.matrix_exp(x).is_cuda
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.matrix_exp(x)


def test_methods_of_ufuncs_that_cupy_lacks() -> None:
    from retrograd.kernels.cuda import CUDA

    rng = numpy.random.default_rng(0)
    x = rng.standard_normal((5, 7))
    on_device = CUDA.asarray(x)
    for name in ("maximum", "minimum", "logaddexp"):
        for axis in (0, 1):
            expected = getattr(numpy, name).accumulate(x, axis)
            assert numpy.allclose(getattr(CUDA, name).accumulate(on_device, axis).get(), expected)
        if name != "logaddexp":
            starts = numpy.array([0, 2, 3])
            found = getattr(CUDA, name).reduceat(on_device, CUDA.asarray(starts), 0).get()
            assert (found == getattr(numpy, name).reduceat(x, starts, 0)).all()
    assert (CUDA.maximum.reduce(on_device, axis=0, initial=1.0).get() == numpy.maximum(x.max(0), 1)).all()
    assert CUDA.minimum.reduce(on_device[:0], axis=0, initial=1.0).tolist() == [1.0] * 7
    words = rng.integers(0, 99, (4, 5))
    for axis in (0, 1, (0, 1)):
        assert (CUDA.bitwise_xor.reduce(CUDA.asarray(words), axis).get() == numpy.bitwise_xor.reduce(words, axis)).all()
    index, factors, products = rng.integers(0, 5, 20), rng.uniform(1, 2, (20, 7)), x.copy()
    numpy.multiply.at(products, index, factors)
    CUDA.multiply.at(on_device, CUDA.asarray(index), CUDA.asarray(factors))
    assert numpy.allclose(on_device.get(), products)


REFUSED = {
    "numpy.asarray(x)": TypeError, "x + numpy.ones(3)": TypeError, "numpy.ones(3) * x": TypeError,
    "x * numpy.array(1.0)": TypeError, "cupy.sum(numpy.ones(3))": TypeError, "cupy.sum([1, 2])": TypeError,
    "cupy.maximum.reduce(x)": NotImplementedError, "cupy.multiply.at(x, 0, 2.0)": NotImplementedError,
    "cupy.add(x, x, where=x > 0)": TypeError, "cupy.max(x, initial=0)": TypeError, "range(x.sum())": TypeError,
    "cupy.errstate": AttributeError, "x.flags.writeable": AttributeError, "x.__setitem__(0, numpy.ones(()))": TypeError,
    "cupy.logical_and(x.astype('F'), x)": TypeError, "cupy.lexsort((x, x))": AttributeError,
    "x.reshape(3, 1).T.sort()": None, "cupy.array(['a'])": ValueError,
}  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_the_stand_in_refuses_what_cupy_refuses(expression: str, devices: Any) -> None:
    names = {"numpy": numpy, "cupy": devices, "x": devices.ones(3)}
    if REFUSED[expression] is None:
        eval(expression, names)
    else:
        with pytest.raises(REFUSED[expression]):
            eval(expression, names)


def test_the_stand_in_keeps_the_rules_of_cupy(devices: Any) -> None:
    x = devices.arange(6.0).reshape(2, 3)
    assert type(x.sum()) is type(x[0, 0]) is devices.ndarray and x[0, 0].shape == ()
    x[0, 0][...] = 9  # a view, also of one element
    assert (
        x[0, 0].item() == 9 and (x.T + 1).flags.c_contiguous and x[devices.asarray([2])].tolist() == [[9.0, 1.0, 2.0]]
    )
    with counted() as counts:
        bool(x.any()), int(x[0, 1]), x[x > 1], devices.unique(x), x.get()
        x[x > 1] = 0
    assert sorted(what for what, _ in counts.syncs) == ["bool", *["boolean index"] * 2, "get", "int", "unique"]
    assert all("test_gpu.py" in where for _, where in counts.syncs)
    with devices.cuda.Device(1):
        other = devices.ones(3)
        with pytest.raises(ValueError, match="different from the current device"):
            x + other


def test_memory_in_use_is_that_of_live_arrays(devices: Any) -> None:
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    y = x[10:]
    del x
    assert torch.cuda.memory_allocated() - before == 4096
    del y
    assert torch.cuda.memory_allocated() == before
