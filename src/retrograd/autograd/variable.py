"""``Variable`` and ``variable``: deprecated names from PyTorch before 0.4, where a wrapper recorded gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.engine import queue_callback, running_plan
from ..core.tensor import Tensor


class _TensorInstanceCheck(type):
    """Metaclass that makes ``isinstance(x, Variable)`` true for every Tensor, as in PyTorch since version 0.4."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class ImperativeEngine:
    """Class of ``Variable._execution_engine``, by which programs run functions at the end of a backward pass."""

    __module__ = "torch._C"

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Call ``callback()`` at the end of the backward pass that is running; raise RuntimeError if there is none."""
        queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the running backward pass computes the gradients of all leaves, not only of requested inputs."""
        plan = running_plan()
        return plan is None or plan.flow is None


ImperativeEngine.__name__ = ImperativeEngine.__qualname__ = "_ImperativeEngine"


class Variable(metaclass=_TensorInstanceCheck):
    """Deprecated constructor of a Tensor from another Tensor, kept for programs written for PyTorch before 0.4.

    ``Variable(x, requires_grad=True)`` returns a leaf that shares the memory of ``x``.

    >>> import retrograd as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Return a leaf that shares the memory of the Tensor ``data``; ``volatile`` has no effect."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise RuntimeError, as in PyTorch; the message recommends ``torch.tensor``."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "variable"]
