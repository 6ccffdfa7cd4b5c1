"""Learning rate schedulers over 22 epochs, and calls that fail, compared with PyTorch's record."""

from __future__ import annotations

import re
import warnings
from typing import Any

#: Schedulers of the optimizers ``o`` (two groups, momentum), ``adam``, ``plain`` (no momentum), ``rate`` (lr a Tensor).
SCHEDULES = (
    "StepLR(o, 3)", "StepLR(o, 2, 0.5)", "MultiStepLR(o, [2, 5, 5, 9])", "ConstantLR(o)", "ConstantLR(o, 0.5, 3)",
    "LinearLR(o)", "LinearLR(o, 0.1, 0.7, 8)", "ExponentialLR(o, 0.9)", "PolynomialLR(o)", "PolynomialLR(o, 7, 2.0)",
    "CosineAnnealingLR(o, 5)", "CosineAnnealingLR(o, 4, 0.01)", "CosineAnnealingLR(rate, 5)", "StepLR(rate, 2)",
    "LambdaLR(o, lambda e: 0.9**e)", "LambdaLR(o, [lambda e: 0.9**e, lambda e: e])",
    "MultiplicativeLR(o, lambda e: 0.95)", "CyclicLR(o, 0.1, 0.2, 4)", "CyclicLR(adam, 0.1, 0.2, 4)",
    "CyclicLR(o, 0.1, 0.2, 4, 6, mode='triangular2')", "CyclicLR(o, 0.1, 0.2, 4, mode='exp_range', gamma=0.9)",
    "CyclicLR(o, [0.1, 0.2], [0.2, 0.4], 4, scale_fn=lambda x: 1 / x)", "OneCycleLR(o, 0.1, 25)",
    "OneCycleLR(adam, 0.1, 25)", "OneCycleLR(plain, 0.1, 25, cycle_momentum=False, pct_start=0.5)",
    "OneCycleLR(o, [0.1, 0.2], epochs=5, steps_per_epoch=5, anneal_strategy='linear', three_phase=True)",
    "CosineAnnealingWarmRestarts(o, 4)", "CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "ChainedScheduler([ConstantLR(o, 0.5, 4), ExponentialLR(o, 0.9)])",
    "SequentialLR(o, [ConstantLR(o, 0.5, 4), ExponentialLR(o, 0.9)], [5])",
    "SequentialLR(o, [LinearLR(o, 0.1, 1.0, 5), CosineAnnealingLR(o, 15), StepLR(o, 2)], [5, 12])",
    "SequentialLR(o, [ChainedScheduler([ConstantLR(o, 0.5, 4), ExponentialLR(o, 0.9)]), StepLR(o, 2)], [5])",
    "SWALR(o, 0.05)", "SWALR(o, [0.05, 0.5], 3, 'linear')", "SWALR(o, 0.05, 0)",
)  # fmt: skip
#: Schedulers that depend on a metric.
LED = (
    "ReduceLROnPlateau(o)", "ReduceLROnPlateau(o, patience=1)", "ReduceLROnPlateau(o, patience=0, cooldown=2, factor=0.5)",
    "ReduceLROnPlateau(o, mode='max', patience=1, threshold_mode='abs', threshold=0.5)",
    "ReduceLROnPlateau(o, patience=0, min_lr=[0.01, 0.02])",
    "ReduceLROnPlateau(o, mode='max', patience=2)", "ReduceLROnPlateau(o, threshold_mode='abs', patience=1)",
)  # fmt: skip
FAILING = (
    "LRScheduler(o)", "StepLR(3, 1)", "StepLR(o, 2, last_epoch=3)", "ConstantLR(o, 2)", "LinearLR(o, 0)",
    "LinearLR(o, 0.5, 3)", "CyclicLR(plain, 0.1, 0.2, 4)", "OneCycleLR(plain, 0.1, 25)", "CyclicLR(o, [1], 0.2)",
    "CyclicLR(o, 0.1, 0.2, mode='x')", "OneCycleLR(o, 0.1)", "OneCycleLR(o, 0.1, -1)",
    "OneCycleLR(o, 0.1, epochs=1.5, steps_per_epoch=3)", "OneCycleLR(o, 0.1, 10, pct_start=2)",
    "OneCycleLR(o, 0.1, 10, anneal_strategy='x')", "OneCycleLR(o, 0.1, 10)", "LambdaLR(o, [1])",
    "MultiplicativeLR(o, 3)", "CosineAnnealingWarmRestarts(o, 0)", "CosineAnnealingWarmRestarts(o, 1, 0)",
    "CosineAnnealingWarmRestarts(o, 1, 1, 'a')", "ChainedScheduler([])", "ChainedScheduler([3])",
    "ChainedScheduler([ReduceLROnPlateau(o)])", "ChainedScheduler([StepLR(o, 2), StepLR(adam, 3)])",
    "SequentialLR(o, [], [])", "SequentialLR(o, [StepLR(o, 2)], [1])", "SWALR(o, 0.1, -1)", "SWALR(o, 0.1, 3, 'x')",
    "SWALR(o, [0.1])", "ReduceLROnPlateau(o, factor=1.0)", "ReduceLROnPlateau(3)", "ReduceLROnPlateau(o, mode='x')",
    "ReduceLROnPlateau(o, threshold_mode='x')", "ReduceLROnPlateau(o, min_lr=[1])",
)  # fmt: skip


def optimisers(torch: Any) -> dict[str, Any]:
    """Return an optimizer of each kind."""

    def groups() -> list[dict[str, Any]]:
        first, second = (torch.ones(2, requires_grad=True) for _ in range(2))
        return [{"params": [first]}, {"params": [second], "lr": 0.3}]

    return {
        "o": torch.optim.SGD(groups(), lr=0.1, momentum=0.5), "adam": torch.optim.Adam(groups(), lr=0.1),
        "plain": torch.optim.Adagrad(groups(), lr=0.1),
        "rate": torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=torch.tensor(0.1, dtype=torch.float64)),
    }  # fmt: skip


def scheduler_of(torch: Any, call: str) -> Any:
    """Return the scheduler of a call."""
    module = torch.optim.lr_scheduler
    names = {name: getattr(module, name) for name in dir(module) if name[0].isupper()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a chain within a sequence steps twice before any optimiser does
        return eval(call, {"torch": torch, "SWALR": torch.optim.swa_utils.SWALR, **names, **optimisers(torch)})


def numbers(value: Any) -> Any:
    """Return a value of a state or group as JSON; functions are left out."""
    if isinstance(value, dict):
        return {str(key): numbers(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def schedule_run(torch: Any, call: str) -> dict[str, Any]:
    """Return rates, groups and state over 22 epochs, and the closed form's rates at epoch 7."""
    led = call in LED
    schedule = scheduler_of(torch, call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rates = [numbers(schedule.get_last_lr())]
        for epoch in range(22):
            schedule.optimizer.step()
            if led:
                schedule.step(float(epoch * 7 % 5 + max(10 - epoch, 0)))
            else:
                schedule.step()
            rates.append(numbers(schedule.get_last_lr()))
        state = schedule.state_dict()
        groups = [
            {key: each for key, each in group.items() if key != "params"} for group in schedule.optimizer.param_groups
        ]
        closed = None
        if hasattr(schedule, "_get_closed_form_lr"):
            schedule.step(7)
            closed = numbers(schedule.get_last_lr())
    return {"rates": rates, "state": numbers(state), "groups": numbers(groups), "closed": closed}  # fmt: skip


def error_of(torch: Any, call: str) -> str:
    """Return the error of a call, or of a step too many."""
    try:
        schedule = scheduler_of(torch, call)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(12):
                schedule.step()
    except Exception as error:
        return re.sub(r"<class '.*?'>", "", f"{type(error).__name__}: {error}")
    return "no error"
