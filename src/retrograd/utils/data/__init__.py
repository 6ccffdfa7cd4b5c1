"""``Dataset``, ``Sampler``, ``DataLoader`` and others: loading of samples in batches, as in ``torch.utils.data``."""

from ...compat.lazy_imports import module_getattr
from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .worker import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip
_PIPES = (
    "DFIterDataPipe", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
)  # fmt: skip
__getattr__ = module_getattr(
    __name__,
    {each: each for each in ("_utils", "datapipes", "distributed", "graph", "graph_settings")}
    | {"DistributedSampler": "distributed", "DataChunk": "datapipes.iter", "_DatasetKind": "_dataset_kind"}
    | dict.fromkeys(_PIPES, "datapipes.datapipe"),
)
