"""``torch.ao.nn.quantized``: operations as a module, for models that can be quantized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...nn import Identity, Module
from ...nn.functional import relu
from ...operations.shape.join import cat


class FloatFunctional(Module):
    """Operations on floats as methods, whose results ``activation_post_process`` observes.

    >>> import retrograd as torch
    >>> torch.ao.nn.quantized.FloatFunctional().add_relu(torch.tensor([-3.0, 2.0]), torch.ones(2))
    tensor([0., 3.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Module = Identity()

    def forward(self, x: Any) -> NoReturn:
        """Raise RuntimeError; call the operation instead."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Any, y: Any) -> Any:
        """Return ``x + y``."""
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Any, y: float) -> Any:
        """Return ``x + y`` for a number ``y``, which is not observed."""
        return x + y

    def mul(self, x: Any, y: Any) -> Any:
        """Return ``x * y``."""
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Return ``x * y`` for a number ``y``, which is not observed."""
        return x * y

    def cat(self, x: Sequence[Any], dim: int = 0) -> Any:
        """Return the tensors ``x`` joined along the dimension ``dim``."""
        return self.activation_post_process(cat(x, dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return ``relu(x + y)``."""
        return self.activation_post_process(relu(x + y))

    def matmul(self, x: Any, y: Any) -> Any:
        """Return ``x @ y``."""
        return self.activation_post_process(x @ y)


__all__ = ["FloatFunctional"]
