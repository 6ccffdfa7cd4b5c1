"""``ChainedScheduler`` and ``SequentialLR``, which combine other schedulers, and ``ReduceLROnPlateau``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..runtime.user_frame import warn
from .lr_scheduler_base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, group_values, set_option
from .optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Scheduler that multiplies the learning rates by ``factor`` when a metric stops improving.

    The rates are reduced after more than ``patience`` epochs without improvement. With ``mode="min"`` a smaller metric
    is better, with ``mode="max"`` a larger one. An improvement must exceed ``threshold``, which is relative to the best
    metric, or absolute with ``threshold_mode="abs"``. The first ``cooldown`` epochs after a reduction do not count
    towards ``patience``.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        self.mode_worse = float("inf") if mode == "min" else -float("inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advance by one epoch with the metric ``metrics``; reduce the learning rates if the metric stopped improving.

        ``metrics`` is one number. The deprecated ``epoch`` sets the number of the epoch.
        """
        current = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = group_values(self.optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether fewer than ``cooldown`` epochs have passed since the last reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        """Whether the metric ``value`` is better than ``best`` by more than the attribute ``threshold``."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            goal = best * (1.0 + sign * self.threshold)
        else:
            goal = best + sign * self.threshold
        return value < goal if self.mode == "min" else value > goal

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being "
                    "added to the optimizer. Please modify the `min_lrs` field to match the length of the `optimizer` "
                    "param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_option(group, "lr", after)


class _SchedulerGroup(LRScheduler):
    """Base class of ChainedScheduler and SequentialLR, which combine several schedulers."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this scheduler and of the schedulers that it contains."""
        packed = {key: value for key, value in super().state_dict().items() if key != "_schedulers"}
        return packed | {"_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state_dict`."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, packed in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(packed)

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer | None, to_be: str) -> Optimizer:
        name = self.__class__.__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{to_be}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{scheduler.__class__.__name__} at index {index} has {scheduler.optimizer}, which is different from "
                    f"{optimizer.__class__.__name__}."
                )
        return optimizer


class ChainedScheduler(_SchedulerGroup):
    """Scheduler that combines several schedulers: each ``step()`` calls ``step()`` of all ``schedulers`` in order.

    >>> import retrograd as torch
    >>> from retrograd.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [lr_scheduler.ExponentialLR(optimizer, gamma=0.5), lr_scheduler.StepLR(optimizer, step_size=2)]
    >>> scheduler = lr_scheduler.ChainedScheduler(parts)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.5, 0.025, 0.0125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        optimizer = self._check(schedulers, optimizer, " to be chained")
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = group_values(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Call ``step()`` of every scheduler, in order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")


class SequentialLR(_SchedulerGroup):
    """Scheduler that uses several schedulers one after another.

    At the epoch ``milestones[i]``, the scheduler ``schedulers[i + 1]`` replaces ``schedulers[i]``.

    >>> import retrograd as torch
    >>> from retrograd.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [lr_scheduler.ConstantLR(optimizer, factor=0.1), lr_scheduler.ExponentialLR(optimizer, gamma=0.5)]
    >>> scheduler = lr_scheduler.SequentialLR(optimizer, parts, milestones=[2])
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 4))
    >>> rates
    [0.1, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._check(schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every scheduler made its first step on construction, each on the previous one's rates: undo all of them and
        # step only the first.
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Undo the first step of the scheduler ``sched``: subtract 1 from its attribute ``last_epoch``.

        If ``sched`` contains schedulers, their first steps are undone instead. By default ``sched`` is this scheduler.
        The constructor of SequentialLR calls this method, because every contained scheduler has made a first step when
        it was constructed.
        """
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for each in sched._schedulers:
                self.recursive_undo(each)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Advance by one epoch and call the scheduler for the new epoch, which sets the learning rates."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


__all__ = ["ChainedScheduler", "ReduceLROnPlateau", "SequentialLR"]
