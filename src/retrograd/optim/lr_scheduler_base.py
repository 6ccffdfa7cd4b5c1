"""``LRScheduler``: base class of all learning rate schedulers. Users may derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from ..runtime.user_frame import warn
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form "
    "is used instead of the new chainable form, where available. Please open an issue if you are unable to replicate "
    "your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_SEE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    f"to call `optimizer.step()` before `lr_scheduler.step()`. {_SEE}"
)
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them "
    "in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch "
    f"skipping the first value of the learning rate schedule. {_SEE}"
)


def copy_if_tensor(value: Any) -> Any:
    """Return a copy of ``value`` if it is a Tensor, otherwise ``value`` itself.

    Schedulers overwrite a learning rate that is a Tensor in place. The copy keeps the present value.
    """
    return value.clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """Return a list of the values of the option ``key`` in all parameter groups of ``optimizer``."""
    return [copy_if_tensor(group[key]) for group in optimizer.param_groups]


def set_option(group: dict[str, Any], key: str, value: Any) -> None:
    """Set the option ``key`` of ``group`` to ``value``; an option that is a Tensor is overwritten in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return a list with one value per parameter group of ``optimizer``.

    If ``value`` is a list or tuple, the result contains its elements; otherwise ``value`` is used for every group.
    Raises ValueError if the number of elements differs from the number of groups. The error message refers to ``value``
    by the name ``name``.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return [copy_if_tensor(each) for each in value]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError if ``optimizer`` is not an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Base class of schedulers, which set the learning rates of an optimiser's parameter groups at every ``step()``.

    The constructor also calls ``step()``.

    A subclass defines ``get_lr()``, which returns the learning rates of all groups at ``self.last_epoch``, computed
    from ``self.base_lrs`` or from the current rates. The default ``last_epoch=-1`` starts the schedule. To resume a
    schedule, pass the number of the last epoch; every parameter group must then have the entry ``"initial_lr"``.

    >>> import retrograd as torch
    >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base / 2**self.last_epoch for base in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = Halving(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    optimizer: Optimizer
    base_lrs: list[Any]
    last_epoch: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_if_tensor(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a "
                    "fresh training run (not recommended)"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer.watch_steps()
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state: all attributes except the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the learning rates set by the last :meth:`step`, one per parameter group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Return the learning rates at ``self.last_epoch``, one per parameter group.

        Every subclass overrides this method.
        """
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advance by one epoch and set the learning rates; must be called after ``optimizer.step()``.

        The deprecated argument ``epoch`` sets the number of the new epoch.
        """
        if self._step_count == 1:
            if self.optimizer.step_was_replaced():
                warn(_OVERRIDDEN)
            elif not self.optimizer._opt_called:
                warn(_TOO_EARLY)
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._get_lr_context():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed: Callable[[], list[Any]] | None = getattr(self, "_get_closed_form_lr", None)
            found = self.get_lr() if epoch is None or closed is None else closed()
        self._set(found)

    def _set(self, rates: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", lr)
        self._last_lr = group_values(self.optimizer, "lr")

    @contextmanager
    def _get_lr_context(self) -> Iterator[None]:
        """Return a context manager in which :meth:`get_lr` does not warn that it was called outside of :meth:`step`."""
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_if_called_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            )


__all__ = ["LRScheduler"]
