"""Exceptions of ``torch.distributed``."""

from __future__ import annotations


class DistError(RuntimeError):
    """Base class of the errors of ``torch.distributed``.

    >>> from retrograd import distributed as dist
    >>> try:
    ...     dist.HashStore().queue_pop("jobs", block=False)
    ... except dist.DistError as error:
    ...     print(type(error).__name__, error, sep=": ")
    QueueEmptyError: queue is empty
    """

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """Error of a communication backend.

    >>> from retrograd import distributed as dist
    >>> issubclass(dist.DistBackendError, dist.DistError), issubclass(dist.DistBackendError, RuntimeError)
    (True, True)
    """

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """Error of a network connection.

    >>> from retrograd import distributed as dist
    >>> issubclass(dist.DistNetworkError, dist.DistError), issubclass(dist.DistNetworkError, RuntimeError)
    (True, True)
    """

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """Error of a store, such as a key that is not set before the timeout.

    >>> from datetime import timedelta
    >>> from retrograd import distributed as dist
    >>> store = dist.HashStore()
    >>> store.set_timeout(timedelta(seconds=0.01))
    >>> store.get("key")
    Traceback (most recent call last):
        ...
    torch.distributed.DistStoreError: Wait timeout
    """

    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """Error for an empty queue of a store.

    >>> from retrograd import distributed as dist
    >>> dist.HashStore().queue_pop("jobs", block=False)
    Traceback (most recent call last):
        ...
    torch.distributed.QueueEmptyError: queue is empty
    """

    __module__ = "torch.distributed"


__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]
