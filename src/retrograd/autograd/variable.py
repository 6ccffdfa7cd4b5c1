"""``Variable`` and ``variable``: deprecated names from PyTorch before 0.4, where a wrapper recorded gradients."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class _TensorInstanceCheck(type):
    """Metaclass that makes ``isinstance(x, Variable)`` true for every Tensor, as in PyTorch since version 0.4."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_TensorInstanceCheck):
    """Deprecated constructor of a Tensor from another Tensor, kept for programs written for PyTorch before 0.4.

    ``Variable(x, requires_grad=True)`` returns a leaf that shares the memory of ``x``.
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Return a leaf that shares the memory of the Tensor ``data``; ``volatile`` has no effect."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise RuntimeError, as in PyTorch; the message recommends ``torch.tensor``."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "variable"]
