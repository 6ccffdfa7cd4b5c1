"""``torch.utils.data._utils.fetch``: objects that load batches."""

from .._dataset_kind import _IterableDatasetFetcher, _MapDatasetFetcher

_all = (_IterableDatasetFetcher, _MapDatasetFetcher)
__all__: list[str] = []
