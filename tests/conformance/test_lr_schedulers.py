"""Learning rate schedulers and averaged models: values, errors and warnings compared with PyTorch."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import pytest

import retrograd as torch
from tests.conformance.lr_scheduler_cases import FAILING, LED, SCHEDULES, error_of, scheduler_of
from tests.conformance.training_comparison import check_schedule, recorded

RECORDED = recorded("lr_schedulers")


def test_everything_is_recorded() -> None:
    assert {*SCHEDULES, *LED} == RECORDED["runs"].keys() and set(FAILING) == RECORDED["errors"].keys()


@pytest.mark.parametrize("call", [*SCHEDULES, *LED])
def test_rates_match_pytorch(call: str) -> None:
    check_schedule(call)


@pytest.mark.parametrize("call", FAILING)
def test_errors_match_pytorch(call: str) -> None:
    assert error_of(torch, call) == RECORDED["errors"][call]


@pytest.mark.parametrize("call", SCHEDULES)
def test_state_dict_resumes_a_scheduler(call: str) -> None:
    first, second = scheduler_of(torch, call), scheduler_of(torch, call)
    for schedule in (first, second):
        schedule.optimizer.step()
    for _ in range(7):
        first.step()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    for _ in range(5):
        first.step()
        second.step()
    assert first.get_last_lr() == second.get_last_lr()


def one() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=1.0)


def told(do: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        do()
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def test_wrong_order_of_steps_warns_once() -> None:
    optimizer = one()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)

    def steps() -> None:
        schedule.step()
        schedule.step()

    [text] = told(steps)
    assert text.startswith(
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later"
    )


def test_replaced_optimizer_step_warns() -> None:
    optimizer = one()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None  # type: ignore[method-assign]
    [text] = told(lambda: schedule.step())
    assert text.startswith("Seems like `optimizer.step()` has been overridden after learning rate scheduler")


def test_get_lr_and_epoch_argument_warn() -> None:
    optimizer = one()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    assert told(lambda: schedule.get_lr()) == [
        "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
    ]
    [text] = told(lambda: schedule.step(3))
    assert text.startswith("The epoch parameter in `scheduler.step()` was not necessary")


def test_warm_restarts_accept_fractional_epochs() -> None:
    optimizer = one()
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult=2)
    for epoch, wave, place in ((0.5, 2, 0.5), (3.5, 4, 1.5), (7, 8, 1)):
        schedule.step(epoch)
        assert schedule.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi * place / wave)) / 2)
    with pytest.raises(ValueError, match="Expected non-negative epoch, but got -1"):
        schedule.step(-1)


def test_averaged_models() -> None:
    swa = torch.optim.swa_utils
    for options, expected in (
        ({}, 7 / 3), ({"avg_fn": swa.get_ema_avg_fn(0.5)}, 2.75), ({"multi_avg_fn": swa.get_ema_multi_avg_fn(0.5)}, 2.75),
        ({"multi_avg_fn": swa.get_swa_multi_avg_fn()}, 7 / 3), ({"use_buffers": True}, 7 / 3),
    ):  # fmt: skip
        model = torch.nn.BatchNorm1d(1)
        averaged = swa.AveragedModel(model, **options)
        for value in (1.0, 2.0, 4.0):
            torch.nn.init.constant_(model.weight, value)
            model.running_mean.fill_(value)
            averaged.update_parameters(model)
        assert averaged.module.weight.item() == pytest.approx(expected)
        assert averaged.module.running_mean.item() == pytest.approx(expected if "use_buffers" in options else 4.0)
        assert averaged.n_averaged.item() == 3 and next(iter(averaged.state_dict())) == "n_averaged"
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        swa.AveragedModel(model, avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match=r"Invalid decay value 2 provided. Please provide a value in \[0,1\] range."):
        swa.get_ema_avg_fn(2)


def test_update_bn_takes_plain_means_over_all_batches() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(1)).eval()
    batches = [torch.tensor([[1.0], [3.0]]), [torch.tensor([[5.0], [9.0]])]]
    torch.optim.swa_utils.update_bn(batches, model)
    assert model[0].running_mean.item() == 4.5 and model[0].running_var.item() == 5.0
    assert model[0].momentum == 0.1 and not model.training
