"""``torch.fx.passes.shape_prop``: the shapes and dtypes of the values of a graph."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from typing import Any, NamedTuple

from ...core.dtypes import dtype
from ...core.size import Size
from ...core.tensor import Tensor, channels_last, channels_last_3d, contiguous_format, memory_format, strided
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """Properties of a tensor. ``is_quantized`` is False and ``qparams`` empty, because there are no quantized tensors."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return the properties of the tensor ``result``; without ``include_contiguity``, the memory format is None."""
    dense = result.layout is strided
    strides = result.stride() if dense else ()
    formats = (contiguous_format, channels_last, channels_last_3d) if include_contiguity and dense else ()
    layout = next((each for each in formats if result.is_contiguous(memory_format=each)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, strides, layout, False, {})


class ShapeProp(Interpreter):
    """Interpreter that stores the properties of each value in ``meta`` of its node, by running the graph.

    ``meta["tensor_meta"]`` is a :class:`TensorMetadata`, or a container of them, and ``meta["type"]`` is the class of
    the value. ``fake_mode``, if it is not None, is a context manager whose ``from_tensor`` converts the arguments.

    >>> import retrograd as torch
    >>> from retrograd.fx.passes.shape_prop import ShapeProp
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()))
    >>> _ = ShapeProp(traced).propagate(torch.zeros(2, 3))
    >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in traced.graph.nodes]
    [('input_1', (2, 3)), ('_0', (2, 4)), ('_1', (2, 4)), ('output', (2, 4))]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Run one node and store the properties of its value; RuntimeError states a node that fails."""
        try:
            with nullcontext() if self.fake_mode is None else self.fake_mode:
                result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found: list[Tensor] = []

        def described(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with the arguments ``args``, store the properties of all values, and return the result."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(each) if isinstance(each, Tensor) else each for each in args)
        return self.run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
