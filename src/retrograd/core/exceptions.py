"""PyTorch's own kinds of error: of a device, and of its memory. Knows nothing."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """A GPU says that something went wrong."""

    __module__ = "torch"


class OutOfMemoryError(RuntimeError):
    """A GPU's memory is not enough."""

    __module__ = "torch"
