"""``Join``: training with different numbers of inputs in the ranks of a group.

A rank without further inputs would leave the collective operations of the other ranks without a partner. At the end of
the ``with`` block it therefore takes part in them, by the hooks of the objects that perform them, until all ranks have
no inputs. Whether there are such ranks is known from an all-reduce at the beginning of each iteration: ranks with an
input add 1, the others 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...operations.creation.factory import ones, zeros
from ...runtime.user_frame import warn
from ..collectives import all_reduce
from ..groups import get_rank
from ..work import Work

#: Number of iterations of the other ranks after which a rank without inputs warns.
_MANY = 1000


class JoinHook:
    """Functions that a rank without further inputs calls while other ranks have some."""

    def main_hook(self) -> None:
        """Take part in the operations of one iteration of the other ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what is necessary after the last iteration of all ranks.

        ``is_last_joiner`` is true in the ranks that had inputs until the last iteration.
        """


class _JoinConfig(NamedTuple):
    """Settings of the :class:`Join` in which an object takes part."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return the value outside of a :class:`Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Base class of objects that :class:`Join` gets, such as modules and optimizers.

    A derived class calls ``Joinable.__init__``, and calls :meth:`Join.notify_join_context` at the beginning of each
    iteration, before its own collective operations.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of this object; ``kwargs`` are further arguments of :class:`Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Device of this object."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Process group of this object."""


class Join:
    """Context manager for training loops in which ranks have different numbers of inputs.

    Args:
        joinables: Objects with collective operations, such as a ``DistributedDataParallel``; all with the same group.
        enable: If false, the context manager has no effect.
        throw_on_early_termination: If true, all ranks raise RuntimeError as soon as one has no further inputs.
        kwargs: Further arguments, which are passed to the method ``join_hook`` of each object.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for batch in torch.ones(3, 4, 2):  # another rank may have 5 batches
    ...         model(batch).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: Sequence[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throw = list(joinables), enable, throw_on_early_termination
        self._join_hooks = [each.join_hook(**kwargs) for each in self._joinables]
        for each in self._joinables:
            each._join_config = _JoinConfig(enable, throw_on_early_termination, each is self._joinables[0])
        self._process_group = self._joinables[0].join_process_group
        if any(each.join_process_group != self._process_group for each in self._joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = get_rank(self._process_group)
        self._device = self._joinables[0].join_device

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, *error: object) -> None:
        if not self._enable or kind:
            return
        iterations = 0
        while self._reduced(0):
            if self._throw:
                self._reduced(1)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for each in self._join_hooks:
                each.main_hook()
            iterations += 1
            if iterations == _MANY + 1:
                warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at least "
                    f"{_MANY} fewer inputs than other currently-active ranks. This level of skew could lead to performance "
                    "degradation during training."
                )
        for each in self._join_hooks:
            each.post_hook(iterations == 0)

    def _reduced(self, number: int) -> float:
        """Return the sum of ``number`` over all ranks."""
        total = (ones if number else zeros)(1, device=self._device)
        all_reduce(total, group=self._process_group)
        return float(total.item())

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Tell ranks without inputs that this rank has one; called at the beginning of each iteration.

        Return the Work of an all-reduce, whose result is the number of ranks with inputs. The first object of a
        :class:`Join` does this for all; the result is None for others, and outside of a :class:`Join`.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = all_reduce(ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = zeros(1, device=device)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


__all__ = ["Join", "JoinHook", "Joinable"]
