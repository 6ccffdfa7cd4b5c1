"""Averages of weights during training: the counterpart of ``torch.optim.swa_utils``.

Source: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from ..core import dtypes
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler_base import LRScheduler, for_each_group
from .optimizer import Optimizer, step_counter


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """Return a function that updates an exponential moving average.

    The function ``f(average, value, count)`` returns ``decay * average + (1 - decay) * value``; ``count`` is unused.

    >>> import retrograd as torch
    >>> average = torch.optim.swa_utils.get_ema_avg_fn(decay=0.5)
    >>> average(torch.tensor(0.0), torch.tensor(1.0), 1)
    tensor(0.5000)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """Return a function that updates an arithmetic mean.

    The function takes ``(average, value, count)``, where ``average`` is the mean of ``count`` Tensors. It returns the
    mean of these Tensors and ``value``.

    >>> import retrograd as torch
    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor(2.0), torch.tensor(5.0), torch.tensor(2))  # 2.0 is the mean of two values
    tensor(3.)
    """

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _for_lists(average: Callable[..., Tensor]) -> Callable[..., None]:
    """Return a function that updates averages of several Tensors; ``average`` computes the average of one Tensor.

    The function takes ``(averages, values, count)``, where ``averages`` and ``values`` are lists of equal length. It
    overwrites each Tensor ``x`` in ``averages`` by ``average(x, value, count)``, where ``value`` is the corresponding
    Tensor in ``values``.
    """

    @no_grad()
    def update(averages: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        for stored, value in zip(averages, current, strict=True):
            stored.copy_(average(stored, value, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Return a function that updates exponential moving averages of several Tensors.

    The function takes ``(averages, values, count)``. It overwrites each Tensor ``average`` in the list ``averages`` by
    ``decay * average + (1 - decay) * value``, where ``value`` is the corresponding Tensor in ``values``. ``count`` is
    unused.

    >>> import retrograd as torch
    >>> averages = [torch.tensor([0.0]), torch.tensor([4.0])]
    >>> update = torch.optim.swa_utils.get_ema_multi_avg_fn(decay=0.5)
    >>> update(averages, [torch.tensor([1.0]), torch.tensor([2.0])], 1)
    >>> averages
    [tensor([0.5000]), tensor([3.])]
    """
    return _for_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Return a function that updates arithmetic means of several Tensors.

    The function takes ``(averages, values, count)``, where ``averages`` and ``values`` are lists of equal length. Each
    Tensor in ``averages`` is the mean of ``count`` Tensors; it is overwritten by the mean of these Tensors and the
    corresponding Tensor in ``values``.

    >>> import retrograd as torch
    >>> averages = [torch.tensor([2.0]), torch.tensor([4.0])]
    >>> update = torch.optim.swa_utils.get_swa_multi_avg_fn()
    >>> update(averages, [torch.tensor([5.0]), torch.tensor([1.0])], torch.tensor(2))
    >>> averages
    [tensor([3.]), tensor([3.])]
    """
    return _for_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """Copy of ``model`` whose parameters are averages over the calls of :meth:`update_parameters`.

    ``avg_fn(average, value, count)`` returns the new average of a parameter, by default the arithmetic mean.
    Alternatively, ``multi_avg_fn(averages, values, count)`` updates the averages of all parameters in place. If
    ``use_buffers`` is true, buffers are averaged, otherwise copied.

    >>> import retrograd as torch
    >>> model = torch.nn.Linear(1, 1)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Tensor
    module: Module

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        count = step_counter(0, dtypes.int64)
        if device is not None:
            self.module = self.module.to(device)
            count = count.to(device)
        self.register_buffer("n_averaged", count)
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the averaged module for ``args`` and ``kwargs``."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Update the averages with the current parameters of ``model``."""
        if self.use_buffers:
            own, new = (list(chain(each.parameters(), each.buffers())) for each in (self.module, model))
        else:
            own, new = list(self.parameters()), list(model.parameters())
        averages = [each.detach() for each in own]
        current = [each.detach().to(stored.device) for each, stored in zip(new, averages, strict=False)]
        averages = averages[: len(current)]
        if self.n_averaged.item() == 0:
            for stored, value in zip(averages, current, strict=True):
                stored.copy_(value)
        else:
            update = self.multi_avg_fn or _for_lists(self.avg_fn or get_swa_avg_fn())
            update(averages, current, self.n_averaged)
        if not self.use_buffers:
            for stored, value in zip(self.module.buffers(), model.buffers(), strict=True):
                stored.detach().copy_(value.detach().to(stored.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalisation layers of ``model`` over the batches of ``loader``.

    If a batch is a list or tuple, its first element is the input of ``model``. If ``device`` is not None, the input
    is moved to this device.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])], layer)
    >>> layer.running_mean
    tensor([2.5000])
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # cumulative means
    for batch in loader:
        batch = batch[0] if isinstance(batch, list | tuple) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Scheduler that changes the learning rates to ``swa_lr`` within ``anneal_epochs`` epochs.

    The change follows a cosine, or a straight line with ``anneal_strategy="linear"``. Afterwards the learning rates
    are constant.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        #: Progress of the annealing as a function of the fraction of epochs done.
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler, a dict of its attributes."""
        return {key: value for key, value in super().state_dict().items() if key != "anneal_func"}

    def get_lr(self) -> list[Any]:
        """Return the learning rates of this epoch, one per parameter group.

        The result is computed from the current rates, and therefore keeps the changes that another scheduler made to
        them.
        """
        self._warn_if_called_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, each / max(1, self.anneal_epochs)))) for each in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip
