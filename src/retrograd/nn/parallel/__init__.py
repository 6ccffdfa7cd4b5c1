"""``torch.nn.parallel``: modules and functions that spread calls of a module over devices or processes."""

from __future__ import annotations

from ...compat.lazy_imports import module_getattr
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "scatter"]
__getattr__ = module_getattr(__name__, {"DistributedDataParallel": "distributed", "distributed": "distributed"})
