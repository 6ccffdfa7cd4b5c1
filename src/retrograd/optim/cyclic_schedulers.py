"""Cyclic schedulers: ``CyclicLR``, ``OneCycleLR``, ``CosineAnnealingWarmRestarts``."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

from .lr_scheduler_base import LRScheduler, check_optimizer, for_each_group, set_option
from .optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """Base class of CyclicLR and OneCycleLR, which can lower the momentum (or ``beta1``) as the learning rate rises."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: list[Any], greatest: list[Any], fresh: bool) -> None:
        for group, low, high in zip(self.optimizer.param_groups, base, greatest, strict=True) if fresh else ():
            self._put_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low

    def _check_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults

    def _put_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Scheduler that raises the learning rates from ``base_lr`` to ``max_lr`` and lowers them again, in cycles.

    The rise takes ``step_size_up`` steps and the fall ``step_size_down`` steps.

    ``mode`` selects the amplitude of the cycles: constant (``"triangular"``), halved after each cycle
    (``"triangular2"``), or multiplied by ``gamma`` at every step (``"exp_range"``). The function ``scale_fn`` replaces
    ``mode``: it returns the factor of the amplitude. The argument of ``scale_fn`` is the number of the cycle or, with
    ``scale_mode="iterations"``, the number of the step.

    Source: Smith, "Cyclical Learning Rates for Training Neural Networks", 2015.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> options = {"base_lr": 0.5, "max_lr": 1.0, "step_size_up": 2, "cycle_momentum": False}
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, **options)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.75, 1.0, 0.75]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._scale_fn_ref: Callable[[float], float] | None = None
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
            by_mode = {"triangular": self._triangular_scale_fn, "triangular2": self._triangular2_scale_fn}
            self._scale_fn_ref = by_mode.get(mode) or functools.partial(self._exp_range_scale_fn, gamma)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum()
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(self.base_momentums, self.max_momentums, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the factor by which the amplitude is multiplied; ``x`` is the number of the cycle or of the step."""
        function = self._scale_fn_custom or self._scale_fn_ref
        assert function is not None
        return function(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Any]:
        """Return the learning rates at step ``last_epoch``, one per parameter group; also set the momentum."""
        self._warn_if_called_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                self._put_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler, a dict of its attributes.

        If ``scale_fn`` is a function, it is not part of the state. If it is an instance of a class with ``__call__``,
        the dict has a copy of its attributes.
        """
        packed = super().state_dict()
        packed.pop("_scale_fn_ref", None)
        function = packed.pop("_scale_fn_custom")
        kept = None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()
        return packed | {"_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state_dict`; if ``scale_fn`` is a function, it is not changed."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(_WithMomentum):
    """Scheduler with one cycle: the learning rate rises to ``max_lr`` and then falls until the last step.

    The rate rises from ``max_lr / div_factor`` to ``max_lr`` during the fraction ``pct_start`` of the steps. The final
    rate is the initial rate divided by ``final_div_factor``. If ``three_phase`` is true, the rate falls in two phases:
    to the initial rate, in as many steps as it rose, and then to the final rate.

    The number of steps is ``total_steps``, or ``epochs * steps_per_epoch``.

    Source: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates",
    2017.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.8117, 0.2831, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        highest = for_each_group("max_lr", optimizer, max_lr)
        for group, high in zip(optimizer.param_groups, highest, strict=True) if last_epoch == -1 else ():
            group["initial_lr"] = high / div_factor
            group["max_lr"] = high
            group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum()
            most = for_each_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(for_each_group("base_momentum", optimizer, base_momentum), most, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, way: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * way + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * way) + 1)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at step ``last_epoch``, one per parameter group; also set the momentum."""
        self._warn_if_called_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        way = (step - begin) / (phase["end_step"] - begin)
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
            self._put_momentum(group, self._between(start, end, way))
        groups = self.optimizer.param_groups
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], way) for group in groups]


def _steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    given = {"total_steps": total_steps}
    if total_steps is None:
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total_steps: int, share: float, three: bool) -> list[dict[str, Any]]:
    up = float(share * total_steps)
    ways = [(up - 1, "initial", "max", "max", "base")]
    if three:
        ways += [(2 * up - 2, "max", "initial", "base", "max"), (total_steps - 1, "initial", "min", "max", "max")]
    else:
        ways += [(total_steps - 1, "max", "min", "base", "max")]
    return [
        {
            "end_step": end, "start_lr": f"{first}_lr", "end_lr": f"{last}_lr", "start_momentum": f"{before}_momentum",
            "end_momentum": f"{after}_momentum",
        }
        for end, first, last, before, after in ways
    ]  # fmt: skip


class CosineAnnealingWarmRestarts(LRScheduler):
    """Scheduler whose learning rates fall along a cosine to ``eta_min`` and then restart at their initial values.

    The first period has ``T_0`` epochs. Each later period is ``T_mult`` times as long as the previous period.

    ``step`` accepts fractional epochs. Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm
    Restarts", 2016.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the learning rates ``T_cur`` epochs after the start of the current period, one per parameter group."""
        self._warn_if_called_outside_step()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance by one epoch, or to ``epoch`` if it is passed, and set the learning rates.

        ``epoch`` may be fractional, for example ``epoch + batch / batches`` to advance after every batch.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        with self._get_lr_context():
            rates = self.get_lr()
        self._set(rates)

    def _find(self, epoch: float) -> None:
        """Set ``T_i``, the length of the period that contains ``epoch``, and ``T_cur``, the epochs since its start."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**waves


__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]
