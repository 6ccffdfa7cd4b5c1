"""Exceptions of ``torch.distributed``."""

from __future__ import annotations


class DistError(RuntimeError):
    """Base class of the errors of ``torch.distributed``."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """Error of a communication backend."""

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """Error of a network connection."""

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """Error of a store, such as a key that is not set before the timeout."""

    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """Error for an empty queue of a store."""

    __module__ = "torch.distributed"


def several_processes_error(world_size: int) -> RuntimeError:
    """Return the error for a process group of ``world_size`` processes without MPI."""
    return RuntimeError(
        f"world_size is {world_size}: several processes need the extra retrograd[distributed] "
        "(pip install 'retrograd[distributed]'). A group of one process works: world_size=1, rank=0."
    )


__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]
