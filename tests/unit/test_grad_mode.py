"""Grad mode: no_grad, enable_grad, set_grad_enabled and inference_mode as blocks, decorators and in threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import retrograd as torch


def records() -> bool:
    return bool((torch.ones(1, requires_grad=True) * 2).requires_grad)


def test_no_grad_and_enable_grad_nest() -> None:
    with torch.no_grad():
        assert not records()
        with torch.enable_grad():
            assert records()
        assert not records()
    assert records()


def test_a_mode_ends_with_an_exception() -> None:
    with pytest.raises(ValueError), torch.no_grad():
        raise ValueError
    assert records()


@pytest.mark.parametrize("decorate", [torch.no_grad(), torch.no_grad, torch.autograd.no_grad(), torch.inference_mode()])
def test_as_decorators(decorate: Any) -> None:
    @decorate
    def inside() -> bool:
        return records()

    assert not inside() and records() and inside.__name__ == "inside"


def test_a_decorated_function_may_call_itself() -> None:
    @torch.no_grad()
    def count(n: int) -> int:
        assert not records()
        return 0 if n == 0 else 1 + count(n - 1)

    assert count(3) == 3 and records()


def test_decorated_generator_sets_the_mode_only_while_running() -> None:
    @torch.no_grad()
    def numbers() -> Any:
        got = yield records()
        yield got, records()

    generator = numbers()
    assert next(generator) is False and records()
    assert generator.send("x") == ("x", False) and records()
    assert list(generator) == []


def test_a_decorated_method() -> None:
    class Model:
        @torch.no_grad()
        def predict(self) -> bool:
            return records()

    assert not Model().predict()


def test_set_grad_enabled_as_function_context_and_decorator() -> None:
    torch.set_grad_enabled(False)
    assert not records()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not records()
    assert records()

    @torch.set_grad_enabled(False)
    def inside() -> bool:
        return records()

    assert records() and not inside() and records()


def test_inference_mode_makes_inference_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        y.mul_(3)
    assert y.is_inference() and not y.requires_grad and y.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y * x
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.mul_(2)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        assert y._version
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        y.requires_grad_()
    with torch.inference_mode(False):
        assert records()


def test_threads_have_modes_of_their_own() -> None:
    found: list[bool] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(records()))
        thread.start()
        thread.join()
    assert found == [True]


def test_tasks_have_modes_of_their_own() -> None:
    async def quiet() -> bool:
        with torch.no_grad():
            await asyncio.sleep(0)
            return records()

    async def loud() -> bool:
        await asyncio.sleep(0)
        return records()

    async def both() -> Any:
        return await asyncio.gather(quiet(), loud())

    assert asyncio.run(both()) == [False, True]


def test_backward_passes_in_parallel_threads() -> None:
    shared = torch.ones(50, requires_grad=True)
    errors: list[Any] = []

    def work(scale: float) -> None:
        try:
            own = torch.ones(50, requires_grad=True)
            for _ in range(50):
                ((own * scale).exp().log() * shared).sum().backward()
            assert torch.allclose(own.grad, torch.full((50,), 50 * scale), rtol=1e-4)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(i + 1),)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert torch.allclose(shared.grad, torch.full((50,), 50.0 * (1 + 2 + 3 + 4)), rtol=1e-4)


@pytest.mark.parametrize("form", [lambda function: function, torch.compile], ids=["eager", "compiled"])
def test_inference_tensors_are_written_in_inference_mode(form: Any) -> None:
    """By ``out=``, as running statistics, and by an optimizer; outside of the mode, ``out=`` raises."""
    add = form(lambda y: torch.add(y, 1, out=y))
    exp = form(lambda y: torch.exp(y.flip(0), out=y[1:]))
    normalised = form(lambda x, mean, var: torch.nn.functional.batch_norm(x, mean, var, training=True))
    of_instances = form(lambda x, mean, var: torch.nn.functional.instance_norm(x, mean, var))
    with torch.inference_mode():
        for _ in range(3):
            y, mean, var = torch.ones(3), torch.zeros(3), torch.ones(3)
            assert add(y) is y and y.tolist() == [2.0] * 3
            with pytest.warns(UserWarning, match="resized"):
                exp(y)
            assert normalised(torch.arange(6.0).view(2, 3), mean, var).tolist()[1] == pytest.approx([1.0] * 3, 1e-5)
            assert mean.tolist() == pytest.approx([0.15, 0.25, 0.35]) and var.tolist() == pytest.approx([1.35] * 3)
            of_instances(torch.arange(12.0).view(2, 3, 2), mean, var)
            assert mean.tolist() == pytest.approx([0.485, 0.775, 1.065])
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        add(y)
    normalised(torch.arange(6.0).view(2, 3), mean, var)
    assert mean.tolist() == pytest.approx([0.5865, 0.9475, 1.3085])


def test_inference_mode_does_not_change_grad_enabled_flag() -> None:
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled() and torch.is_inference_mode_enabled() and not records()
            with torch.no_grad():
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled() and records()


def test_the_modes_are_classes_of_grad_mode() -> None:
    assert str(torch.no_grad) == "<class 'torch.autograd.grad_mode.no_grad'>"
    assert not issubclass(torch.enable_grad, torch.no_grad)
    with pytest.raises(
        TypeError, match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not str"
    ):
        torch.set_grad_enabled("on")  # type: ignore[arg-type]


def test_decorated_class_warns_and_applies_to_construction() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Model:
            def __init__(self) -> None:
                self.recorded = records()

    assert not Model().recorded and records()


def test_data_of_tensor_is_not_an_inference_tensor() -> None:
    x = torch.ones(2)
    with torch.inference_mode():
        assert not x.data.is_inference() and not x.detach().is_inference() and torch.ones(2).data.is_inference()


def test_unavailable_default_device_raises_immediately() -> None:
    with pytest.raises(RuntimeError, match="retrograd has no device of type 'xla'"):
        torch.set_default_device("xla")
    assert torch.get_default_device().type == "cpu"
