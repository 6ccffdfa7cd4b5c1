"""Module from which ``nn`` loads ``SyncBatchNorm`` on demand."""

from ...distributed.sync_batchnorm import SyncBatchNorm

__all__ = ["SyncBatchNorm"]
