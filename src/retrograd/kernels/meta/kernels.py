"""Kernels for meta arrays of the operations whose own kernel decides by values, or counts elements.

The shapes of their results do not depend on values. All other operations use their own kernel.
"""

from __future__ import annotations

from typing import Any

import numpy

from .array import MetaArray, new_array

#: Kernels by the name of the operation, with the parameters of the operation's own kernel.
KERNELS: dict[str, Any] = {}


def _kernel(*names: str) -> Any:
    def register(function: Any) -> Any:
        KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


@_kernel("index_put_block")
def _index_put(np: Any, self: MetaArray, *args: Any, **named: Any) -> MetaArray:
    """Return an array of the shape of ``self`` in C order."""
    return self.copy("C")


@_kernel("masked_scatter_block")
def _masked_scatter(np: Any, self: Any, mask: Any, source: Any) -> MetaArray:
    return new_array(numpy.broadcast_shapes(self.shape, mask.shape), self.dtype)


@_kernel("masked_gather")
def _masked_gather(np: Any, self: MetaArray, mask: Any, shape: tuple[int, ...]) -> MetaArray:
    return new_array(shape, self.dtype)


@_kernel("embedding_bag_backward")
def _embedding_bag_backward(
    np: Any,
    grad_output: MetaArray,
    indices: Any,
    bags: Any,
    sizes: Any,
    weights: Any,
    tops: Any,
    count: int,
    *rest: Any,
) -> MetaArray:
    return new_array((count, grad_output.shape[1]), grad_output.dtype)


@_kernel("masked_product")
def _product(np: Any, self: Any, other: Any) -> Any:
    return numpy.multiply(self, other)


@_kernel("mode_block")
def _mode(np: Any, self: MetaArray, dim: int, keepdim: bool) -> tuple[MetaArray, MetaArray]:
    shape = list(self.shape)
    if shape:
        shape[dim : dim + 1] = [1] if keepdim else []
    return new_array(shape, self.dtype), new_array(shape, numpy.int64)
