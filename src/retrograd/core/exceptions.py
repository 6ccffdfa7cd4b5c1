"""PyTorch's exception classes for errors of a GPU."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """Error reported by a GPU."""

    __module__ = "torch"


class OutOfMemoryError(RuntimeError):
    """Error for a failed allocation of GPU memory."""

    __module__ = "torch"
