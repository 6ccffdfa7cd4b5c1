"""Flatten, a layer that merges consecutive dimensions, and Unflatten, a layer that splits a dimension."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .declarative import declares_layer
from .module import Module


@declares_layer(shown="start_dim={start_dim}, end_dim={end_dim}")
class Flatten(Module):
    """Layer that merges the dimensions ``start_dim`` to ``end_dim`` (inclusive) of its input into one dimension.

    >>> import retrograd as torch
    >>> torch.nn.Flatten()(torch.ones(8, 3, 4)).shape
    torch.Size([8, 12])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the dimensions ``start_dim`` to ``end_dim`` (inclusive) merged into one dimension."""
        return input.flatten(self.start_dim, self.end_dim)


@declares_layer(shown="dim={dim}, unflattened_size={unflattened_size}")
class Unflatten(Module):
    """Layer that splits the dimension ``dim`` of its input into dimensions of the sizes ``unflattened_size``.

    >>> import retrograd as torch
    >>> torch.nn.Unflatten(1, (3, 4))(torch.ones(8, 12)).shape
    torch.Size([8, 3, 4])
    """

    dim: int
    unflattened_size: Any

    def _settle(self) -> None:
        sizes = self.unflattened_size
        if not isinstance(sizes, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
        for index, size in enumerate(sizes):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{index}"
                )

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the dimension ``dim`` split into dimensions of the sizes ``unflattened_size``."""
        return input.unflatten(self.dim, self.unflattened_size)


__all__ = ["Flatten", "Unflatten"]
