"""``DistributedSampler``: the part of a data set that one rank loads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

from ..operations.creation.random import Generator, randperm
from ..utils.data.sampler import Sampler
from .groups import get_rank, get_world_size


class DistributedSampler(Sampler[int]):
    """Sampler of the indices of one rank: every ``num_replicas``-th index, beginning with index ``rank``.

    The order is random if ``shuffle`` is true, and the same in all ranks. It depends on ``seed`` and on the epoch, set
    by :meth:`set_epoch`, and is the same as in PyTorch. All ranks get the same number of indices: some indices are
    repeated, or some are left out if ``drop_last`` is true.

    >>> import retrograd as torch
    >>> sampler = torch.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler)
    [1, 3, 0]
    """

    drop_last: bool
    num_replicas: int
    rank: int
    seed: int
    shuffle: bool

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ) -> None:  # fmt: skip
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset: Any = dataset
        self.num_replicas, self.rank, self.shuffle, self.seed, self.drop_last = (
            num_replicas,
            rank,
            shuffle,
            seed,
            drop_last,
        )
        self.epoch: int = 0
        exact = len(dataset) / num_replicas
        self.num_samples: int = math.floor(exact) if drop_last else math.ceil(exact)
        self.total_size: int = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order: list[int] = list(range(count))
        if self.shuffle:
            order = randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        if order:
            order *= math.ceil(self.total_size / count)
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which selects another random order."""
        self.epoch = epoch


DistributedSampler.__module__ = "torch.utils.data.distributed"
__all__ = ["DistributedSampler"]
