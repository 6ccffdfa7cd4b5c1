"""``StepLR``, ``LinearLR``, ``ExponentialLR`` and other schedulers whose learning rates depend only on the epoch."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .lr_scheduler_base import LRScheduler, group_values
from .optimizer import Optimizer


class _FactorScheduler(LRScheduler):
    """Base class of StepLR, LinearLR and others, which multiply the learning rates of all groups by the same factor.

    A subclass defines ``factor_now()``, the factor from the previous epoch to the current epoch, and
    ``factor_since()``, the factor from the first epoch to the current epoch.
    """

    def factor_now(self) -> float | None:
        """Return the factor by which the learning rates change from the previous epoch to the epoch ``last_epoch``.

        The result is None if the rates do not change.
        """
        raise NotImplementedError

    def factor_since(self) -> float:
        """Return the factor by which the learning rates change from the first epoch to the epoch ``last_epoch``."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Return the current learning rates times ``factor_now()``, as a list with one rate per parameter group.

        If ``factor_now()`` is None, the rates are returned unchanged.
        """
        self._warn_if_called_outside_step()
        factor = self.factor_now()
        rates = group_values(self.optimizer, "lr")
        return rates if factor is None else [lr * factor for lr in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor_since()
        return [base * factor for base in self.base_lrs]


class StepLR(_FactorScheduler):
    """Scheduler that multiplies the learning rates by ``gamma`` every ``step_size`` epochs.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        return None if self.last_epoch == 0 or self.last_epoch % self.step_size != 0 else self.gamma

    def factor_since(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_FactorScheduler):
    """Scheduler that multiplies the learning rates by ``gamma`` at each epoch in ``milestones``.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        return self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else None

    def factor_since(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_FactorScheduler):
    """Scheduler that multiplies the learning rates by ``factor`` during the first ``total_iters`` epochs.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def factor_since(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_FactorScheduler):
    """Scheduler that multiplies the initial learning rates by a factor that changes linearly with the epoch.

    The factor is ``start_factor`` at the start and ``end_factor`` after ``total_iters`` epochs.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.75, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        climb = self.end_factor - self.start_factor
        return 1.0 + climb / (self.total_iters * self.start_factor + (self.last_epoch - 1) * climb)

    def factor_since(self) -> float:
        climb = self.end_factor - self.start_factor
        return self.start_factor + climb * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_FactorScheduler):
    """Scheduler that multiplies the learning rates by ``gamma`` every epoch.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        return None if self._is_initial else self.gamma

    def factor_since(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_FactorScheduler):
    """Scheduler that multiplies the initial learning rates by ``(1 - epoch / total_iters) ** power``.

    After ``total_iters`` epochs the learning rates are 0.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.75, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float | None:
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        now, before = (1.0 - each / self.total_iters for each in (self.last_epoch, self.last_epoch - 1))
        return (now / before) ** self.power

    def factor_since(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Scheduler whose learning rates fall along a cosine to ``eta_min`` in ``T_max`` epochs and then rise again.

    The rise to the initial learning rates also takes ``T_max`` epochs.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2016.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at ``last_epoch``, one per parameter group.

        The result is computed from the current rates, and therefore keeps the changes that another scheduler made to
        them.
        """
        self._warn_if_called_outside_step()
        rates = group_values(self.optimizer, "lr")
        if self._is_initial:
            return rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the minimum the recurrence divides by zero
            climb = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * climb for base, lr in zip(self.base_lrs, rates, strict=True)]
        factor = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [factor * (lr - self.eta_min) + self.eta_min for lr in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class _LambdaScheduler(LRScheduler):
    """Base class of LambdaLR and MultiplicativeLR, whose factors are computed by functions of the epoch.

    ``lr_lambda`` is one function, or a list with one function per parameter group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, list | tuple):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        self.check()
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        """Do nothing; a subclass may override this method to raise TypeError for an invalid entry of ``lr_lambdas``."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler, a dict of its attributes.

        Functions in ``lr_lambdas`` are not part of the state. For an instance of a class with ``__call__``, the state
        has a copy of its attributes.
        """
        packed = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        packed["lr_lambdas"] = [
            None if isinstance(each, types.FunctionType) else each.__dict__.copy() for each in self.lr_lambdas
        ]
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state_dict`; functions in ``lr_lambdas`` are not changed."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if kept is not None:
                function.__dict__.update(kept)


class LambdaLR(_LambdaScheduler):
    """Scheduler that multiplies the initial learning rates by ``lr_lambda(epoch)``.

    ``lr_lambda`` is a function, or a list with one function per parameter group.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Any]:
        """Return the learning rates at ``last_epoch``, one per parameter group."""
        self._warn_if_called_outside_step()
        return [base * factor(self.last_epoch) for factor, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_LambdaScheduler):
    """Scheduler that multiplies the current learning rates by ``lr_lambda(epoch)`` every epoch.

    ``lr_lambda`` is a function, or a list with one function per parameter group.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.25, 0.125]
    """

    def check(self) -> None:
        for each in self.lr_lambdas:
            if not callable(each):
                raise TypeError(f"lr_lambda should be a function, but got {type(each).__name__}")

    def get_lr(self) -> list[Any]:
        """Return the current learning rates times the factors for ``last_epoch``, one rate per parameter group.

        The first call, by the constructor, returns the current rates unchanged.
        """
        self._warn_if_called_outside_step()
        rates = group_values(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [lr * factor(self.last_epoch) for factor, lr in zip(self.lr_lambdas, rates, strict=True)]


__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "StepLR",
]  # fmt: skip
