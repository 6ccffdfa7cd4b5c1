"""``Variable`` and ``variable``: PyTorch's names from the time when gradients belonged to a wrapper of tensors."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class _TensorInstanceCheck(type):
    """Metaclass that makes ``isinstance(x, Variable)`` true for tensors, as since PyTorch 0.4."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_TensorInstanceCheck):
    """PyTorch's old wrapper of tensors; it is called with the same arguments but returns a Tensor.

    ``Variable(x, requires_grad=True)`` returns a leaf that shares the memory of ``x``.
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Return a leaf that shares the memory of ``data``; ``volatile`` has no effect."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise RuntimeError, whose message names ``torch.tensor``, as PyTorch's deprecated function does."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "variable"]
