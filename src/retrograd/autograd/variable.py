"""``Variable`` and ``variable``, PyTorch's names from before tensors had gradients themselves."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


class _EveryTensor(type):
    """So that ``isinstance(x, Variable)`` is true of tensors: a Variable has been nothing else since PyTorch 0.4."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_EveryTensor):
    """PyTorch's old wrapper: ``Variable(x, requires_grad=True)`` is the tensor ``x``, as a leaf of its own."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        """A leaf on the memory of ``data``."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """PyTorch's old function, which only says what to use."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "variable"]
