"""Steps of small parameters on the CPU, which optimizers compute together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.optim import fused

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1, weight_decay=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": lambda params: torch.optim.Adam(params, lr=0.1, amsgrad=True),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.1, maximize=True),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.1, centered=True, momentum=0.5),
    "nadam": lambda params: torch.optim.NAdam(params, lr=0.1),
    "asgd": lambda params: torch.optim.ASGD(params, lr=0.1),
    "radam": lambda params: torch.optim.RAdam(params, lr=0.1),
    "rprop": lambda params: torch.optim.Rprop(params, lr=0.1),
}
SHAPES = (3,), (), (2, 3), (40, 50), (4, 1), (1,), (5, 2)


def _parameters(shapes: Any = SHAPES) -> list[Any]:
    torch.manual_seed(0)
    made = [torch.randn(shape) for shape in shapes]
    made[2] = made[2].double()
    return [each.requires_grad_() for each in [*made, torch.randn(3, 2).t(), torch.randn(6)[::2]]]


def _trained(make: Callable[[Any], Any], joined: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(fused, "JOINED", joined)
    params = _parameters()
    optimizer = make(params)
    torch.manual_seed(1)
    for step in range(4):
        for place, param in enumerate(params):
            param.grad = None if step == 1 and place == 1 else torch.randn_like(param)
        optimizer.step()
    states = [value for param in params for value in optimizer.state[param].values() if isinstance(value, torch.Tensor)]
    return [*params, *states, torch.tensor([each._version for each in (*params, *states)])]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_joined_parameters_have_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, joined = (_trained(OPTIMIZERS[name], limit, monkeypatch) for limit in (-1, 1000))
    assert len(alone) == len(joined) > len(SHAPES)
    for a, b in zip(alone, joined, strict=True):
        assert a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)


def test_small_parameters_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = fused.ArrayOps.run

    def noting(self: Any, rule: Any, decay: Any, numbers: Any, arrays: Any, resume: bool = False) -> None:
        sizes.append(arrays[0].size)
        run(self, rule, decay, numbers, arrays, resume)

    monkeypatch.setattr(fused.ArrayOps, "run", noting)
    params = _parameters()
    for param in params:
        param.grad = torch.ones_like(param)
    torch.optim.Adam(params).step()
    assert sorted(sizes) == [3, 6, 6, 19, 2000]  # not contiguous; float64; not contiguous; the others; large


def test_parameters_that_share_memory_are_updated_one_after_the_other() -> None:
    memory = torch.zeros(8)
    params = [memory[n : n + 4].requires_grad_() for n in range(4)]
    for param in params:
        param.grad = torch.ones(4)
    torch.optim.SGD(params, lr=1.0).step()
    assert memory.tolist() == [-1, -2, -3, -4, -3, -2, -1, 0]


def test_a_gradient_in_the_memory_of_another_parameter_is_read_in_order() -> None:
    params = [torch.ones(3, requires_grad=True) for _ in range(6)]
    for param in params:
        param.grad = torch.ones(3)
    params[2].grad = params[1].detach()
    params[5].grad = params[2].detach()
    torch.optim.SGD(params, lr=0.5).step()
    assert [param[0].item() for param in params] == [0.5, 0.5, 0.75, 0.5, 0.5, 0.625]


def test_an_invalid_parameter_changes_nothing() -> None:
    params = [torch.ones(3, requires_grad=True) for _ in range(5)]
    optimizer = torch.optim.Adam(params)
    for param in params:
        param.grad = torch.ones(3)
    optimizer.step()
    before = [param.detach().clone() for param in params]
    optimizer.state[params[3]]["step"].requires_grad_()
    with pytest.raises(RuntimeError, match="`requires_grad` is not supported for `step`"):
        optimizer.step()
    assert all(map(torch.equal, before, params))


@pytest.mark.parametrize("count", [2, 6])
def test_options_that_are_lists(count: int) -> None:
    results = []
    for betas in ((0.9, 0.99), [0.9, 0.99]):
        params = [torch.arange(3.0).requires_grad_() for _ in range(count)]
        for param in params:
            param.grad = torch.ones(3)
        optimizer = torch.optim.Adamax(params, lr=0.1, betas=betas)
        optimizer.step()
        optimizer.param_groups[0]["numbers"] = 5  # a key of the user
        optimizer.step()
        results.append(params[-1].tolist())
    assert results[0] == results[1]


def _updated(count: int, gradient: Callable[[Any, Any], Any], make: Callable[[Any], Any]) -> list[float]:
    params = [(torch.arange(3.0) + n).requires_grad_() for n in range(count)]
    optimizer = make(params)
    for step in range(3):
        for param in params:
            param.grad = gradient(optimizer, param) if step else torch.ones(3)
        optimizer.step()
    return list(params[0].tolist())


@pytest.mark.parametrize(
    ("gradient", "make"),
    [
        (lambda _, param: param.detach(), lambda params: torch.optim.AdamW(params, lr=0.1, weight_decay=1.0, eps=1.0)),
        (lambda optimizer, param: optimizer.state[param]["momentum_buffer"], OPTIMIZERS["momentum"]),
        (lambda optimizer, param: optimizer.state[param]["momentum_buffer"], OPTIMIZERS["rmsprop"]),
    ],
)
def test_a_gradient_in_the_memory_of_its_parameter_or_state(gradient: Any, make: Any) -> None:
    assert _updated(1, gradient, make) == _updated(6, gradient, make)


@pytest.mark.parametrize("count", [3, 6])
def test_a_step_counter_of_several_parameters_counts_each(count: int) -> None:
    params = [torch.ones(3, requires_grad=True) for _ in range(count)]
    for param in params:
        param.grad = torch.ones(3)
    optimizer = torch.optim.Adam(params)
    optimizer.step()
    for param in params:
        optimizer.state[param]["step"] = optimizer.state[params[0]]["step"]
    optimizer.step()
    assert optimizer.state[params[0]]["step"] == 1 + count


def test_parameters_that_are_read_only_change_nothing_else() -> None:
    params = [torch.ones(3, requires_grad=True) for _ in range(5)]
    for param in params:
        param.grad = torch.ones(3)

    params[2]._array.flags.writeable = False
    optimizer = torch.optim.Adam(params)
    with pytest.raises(ValueError, match="read-only"):
        optimizer.step()
    assert [param._version for param in params] == [len(optimizer.state.get(param, ())) // 3 for param in params]
