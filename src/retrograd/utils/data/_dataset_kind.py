"""Parts of the ``DataLoader`` by PyTorch's private names, which loaders of other packages use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...compat.lazy_imports import load_part
from .dataset import fetch_samples
from .worker import get_worker_info


class _Fetcher:
    """Loader of batches of ``dataset``; ``fetch`` takes the indices of a batch, or one index without batches."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = (
            dataset,
            auto_collation,
            collate_fn,
            drop_last,
        )

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch of the samples at the indices."""
        raise NotImplementedError


class _MapDatasetFetcher(_Fetcher):
    def fetch(self, possibly_batched_index: Any) -> Any:
        index = possibly_batched_index
        return self.collate_fn(fetch_samples(self.dataset, index) if self.auto_collation else self.dataset[index])


class _IterableDatasetFetcher(_Fetcher):
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter: Iterator[Any] = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _DatasetKind:
    """Kinds of data sets; :meth:`create_fetcher` returns an object that loads the batches of one."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> _Fetcher:
        """Return an object whose ``fetch(indices)`` returns a batch of ``dataset``."""
        made = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)


def _sharding_worker_init_fn(
    worker_init_fn: Callable[[int], Any] | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """Give the data pipe of this worker its part of the items, and call ``worker_init_fn``."""
    info = get_worker_info()
    if info is not None:
        load_part("utils.data.graph_settings").apply_sharding(
            info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id
        )
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


__all__: list[str] = []
