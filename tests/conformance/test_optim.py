"""Optimizers: training runs and errors compared with PyTorch; state dicts, hooks and differentiable steps."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.optim import fused
from retrograd.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from tests.conformance.optimizer_cases import FAILING, OPTIMISERS, error_of
from tests.conformance.training_comparison import check_optimiser, recorded

RECORDED = recorded("optim")
ELEMENTWISE = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop"]


def test_everything_is_recorded() -> None:
    assert set(OPTIMISERS) == RECORDED["runs"].keys() and set(FAILING) == RECORDED["errors"].keys()


@pytest.mark.parametrize("call", OPTIMISERS)
def test_hundred_steps_match_pytorch(call: str) -> None:
    check_optimiser(call)


@pytest.mark.parametrize("call", FAILING)
def test_errors_match_pytorch(call: str) -> None:
    assert error_of(torch, call) == RECORDED["errors"][call]


def test_muon_step_has_nearly_equal_singular_values() -> None:
    torch.manual_seed(1)
    w = torch.randn(4, 6, requires_grad=True)
    start = w.detach().clone()
    w.grad = torch.randn(4, 6)
    torch.optim.Muon([w], lr=1.0, weight_decay=0).step()
    values = torch.linalg.svdvals(start - w.detach())
    assert values.min() > 0.5 and values.max() < 1.5


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_large_parameters_match_small_ones(name: str) -> None:
    torch.manual_seed(0)
    size = 2 * fused.STRIDE // 4 + 77
    whole = torch.randn(size).requires_grad_()
    grads = [torch.randn(size) for _ in range(3)]
    few = whole.detach()[::1000].clone().requires_grad_()
    for w, pick in ((whole, slice(None)), (few, slice(None, None, 1000))):
        optimizer = getattr(torch.optim, name)([w], maximize=True)
        for grad in grads:
            w.grad = grad[pick].clone()
            optimizer.step()
    # Compiled loops use fused multiply-add, which rounds once where NumPy rounds twice.
    assert torch.allclose(whole.detach()[::1000], few.detach(), rtol=4e-7, atol=4e-7)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("form", ["transposed", "sliced", "half", "complex", "scalar"])
def test_every_layout_and_dtype_matches_float64(name: str, form: str) -> None:
    torch.manual_seed(0)
    dtype = {"half": torch.bfloat16, "complex": torch.complex128}.get(form, torch.float64)
    made = {
        "transposed": lambda: torch.randn(3, 2, dtype=dtype).t(),
        "sliced": lambda: torch.randn(4, 6, dtype=dtype)[::2, 1::2],
        "scalar": lambda: torch.randn((), dtype=dtype),
    }.get(form, lambda: torch.randn(3, 2).to(dtype) * (1 + 0.5j if form == "complex" else 1))
    w = made().detach().requires_grad_()
    as_real = torch.view_as_real if form == "complex" else torch.clone
    plain = as_real(w.detach()).double().clone().contiguous().requires_grad_()
    options = {"weight_decay": 0.1} if name != "Rprop" else {}
    one, other = (getattr(torch.optim, name)([x], **options) for x in (w, plain))
    for _ in range(5):
        grad = torch.randn(plain.shape).bfloat16().double()
        w.grad = torch.view_as_complex(grad) if form == "complex" else grad.to(dtype)
        plain.grad = grad
        one.step()
        other.step()
    assert torch.allclose(as_real(w.detach()).double(), plain.detach(), atol=3e-2 if form == "half" else 1e-12)


@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor", "Muon", "LBFGS"])
def test_state_dict_resumes_training(name: str) -> None:
    torch.manual_seed(0)
    start = torch.randn(3, 2)
    first, second, third = (start.clone().requires_grad_() for _ in range(3))
    kind = getattr(torch.optim, name)

    def steps(optimizer: Any, w: torch.Tensor, count: int) -> None:
        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (w**4).sum() + w.exp().sum()
            loss.backward()
            return loss

        for _ in range(count):
            optimizer.step(closure)

    optimizer = kind([first])
    steps(optimizer, first, 4)
    with torch.no_grad():
        second.copy_(first)
        third.copy_(first)
    resumed = kind([second])
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    unpickled = pickle.loads(pickle.dumps(optimizer))
    again = unpickled.param_groups[0]["params"][0]
    for each, w in ((optimizer, first), (resumed, second), (unpickled, again)):
        steps(each, w, 3)
    assert torch.equal(first, second) and torch.equal(first, again)


def test_legacy_state_dicts() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([w])
    w.grad = torch.ones(2)
    optimizer.step()
    packed = optimizer.state_dict()
    packed["state"][0]["step"] = 1
    del packed["param_groups"][0]["maximize"], packed["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(packed)
    optimizer.step()
    assert optimizer.state[w]["step"].item() == 2 and optimizer.param_groups[0]["maximize"] is False


class _Counting(torch.optim.Optimizer):
    """An optimiser from outside that counts its steps with an int."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["step"] = self.state[param].get("step", 0) + 1


def test_numbers_in_the_state_of_other_optimizers_stay_numbers() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = _Counting([w])
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert type(optimizer.state[w]["step"]) is int
    restored = pickle.loads(pickle.dumps(optimizer))
    (state,) = restored.state.values()
    assert type(state["step"]) is int


def test_loaded_state_is_cast_to_the_parameters_dtype_except_steps() -> None:
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    optimizer = torch.optim.Adam([w])
    optimizer.step()
    double = torch.ones(2, dtype=torch.float64, requires_grad=True)
    other = torch.optim.Adam([double])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[double]["exp_avg"].dtype == torch.float64
    assert other.state[double]["step"].dtype == torch.float32


def test_zero_grad() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w])
    (w * w).sum().backward()
    grad = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is grad and grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert w.grad is None


def test_step_increments_version_counters() -> None:
    w = torch.ones(2, requires_grad=True)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        loss = (w * w).sum()
        w.grad = torch.ones(2)
        before = w._version
        kind([w]).step()
        assert w._version > before
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*optimised|kind\(\[w\]\).step"):
            loss.backward()


def test_hooks_of_steps() -> None:
    w = torch.ones(1, requires_grad=True)
    w.grad = torch.ones(1)
    optimizer = torch.optim.SGD([w], lr=1.0)
    seen: list[str] = []
    handles = [
        register_optimizer_step_pre_hook(lambda *_: seen.append("every before")),
        register_optimizer_step_post_hook(lambda *_: seen.append("every after")),
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
    ]
    optimizer.step()
    assert seen == ["every before", "before", "after", "every after"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4
    with optimizer.register_step_pre_hook(lambda self, args, kwargs: ((self, lambda: 7), {})):
        assert optimizer.step() == 7
    with (
        optimizer.register_step_pre_hook(lambda *_: 3),
        pytest.raises(RuntimeError, match="must return None or a tuple of"),
    ):
        optimizer.step()


def test_hooks_of_a_subclass_run_once() -> None:
    class Mine(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    w = torch.ones(1, requires_grad=True)
    w.grad = torch.ones(1)
    optimizer = Mine([w], lr=1.0)
    seen: list[int] = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert seen == [1] and w.item() == 0


def test_hooks_of_state_dicts() -> None:
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda self: seen.append("save"))
    optimizer.register_state_dict_pre_hook(lambda self: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda self, found: {**found, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda self, found: {**found, "state": {"mine": 2}})
    optimizer.register_load_state_dict_post_hook(lambda self: seen.append("loaded"))
    packed = optimizer.state_dict()
    assert packed["more"] == 1
    optimizer.load_state_dict(packed)
    assert seen == ["first", "save", "loaded"] and optimizer.state["mine"] == 2


def test_named_parameters() -> None:
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([("a", a), ("b", b)])
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    assert optimizer.param_groups[0]["params"][1] is b


def test_invalid_parameter_groups_change_nothing() -> None:
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w])
    group = {"params": [w]}
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1 and group == {"params": [w]}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_steps_are_differentiable(name: str) -> None:
    """The derivative of a training run by its initial parameters matches finite differences."""

    def end(start: torch.Tensor) -> torch.Tensor:
        p = start.clone()
        optimizer = getattr(torch.optim, name)([p], differentiable=True, lr=0.1)
        for _ in range(4):
            here = p.clone()
            loss = (here**4).sum() + (here * here.flip(0)).sin().sum()
            (p.grad,) = torch.autograd.grad(loss, here, create_graph=True)
            optimizer.step()
        return (p * torch.tensor([1.0, 2.0], dtype=torch.float64)).sum()

    start = torch.tensor([0.7, -1.3], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(end(start), start)
    for index, step in enumerate(torch.eye(2, dtype=torch.float64) * 1e-6):
        with torch.no_grad():
            ends = [start + step, start - step]
        difference = [end(each.requires_grad_()).item() for each in ends]
        assert slope[index].item() == pytest.approx((difference[0] - difference[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_learning_rate_tensor_gets_a_gradient() -> None:
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    p = torch.tensor([2.0], dtype=torch.float64, requires_grad=True).clone()
    optimizer = torch.optim.SGD([p], lr=lr, differentiable=True)
    p.grad = p.detach() * 3
    optimizer.step()
    p.sum().backward()
    assert lr.grad.item() == -6


def test_temporaries_of_a_step_are_smaller_than_the_parameter(tmp_path: Path) -> None:
    """No temporary of a step is as large as the parameter."""
    import tracemalloc

    w = torch.zeros(4_000_000, requires_grad=True)
    w.grad = torch.ones(4_000_000)
    optimizer = torch.optim.Adam([w])
    optimizer.step()
    tracemalloc.start()
    optimizer.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    assert np.isfinite(w._array).all()
