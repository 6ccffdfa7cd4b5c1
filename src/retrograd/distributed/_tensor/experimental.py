"""``torch.distributed._tensor.experimental``: a context manager for distributed tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Return a context manager without effect; in PyTorch, tensors are treated as replicated in it."""
    yield


__all__ = ["implicit_replication"]
