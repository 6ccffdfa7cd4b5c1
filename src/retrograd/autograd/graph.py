"""The graph as a user handles it: ``Node``, edges, and the order in which gradients are retained."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from ..core import engine
from ..core.absent import absent, listed
from ..core.node import AccumulateGrad, Output
from ..core.node import Node as RecordedNode
from ..core.tensor import Tensor, at_place, wrap
from ..core.views import bump


class _EveryNode(type):
    """So that leaves' ends of the graph count as nodes too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (RecordedNode, AccumulateGrad))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls is subclass or issubclass(subclass, (RecordedNode, AccumulateGrad))


class Node(metaclass=_EveryNode):
    """What every ``grad_fn`` is an instance of."""


class GradientEdge(NamedTuple):
    """A place of the graph at which a gradient arrives: result ``output_nr`` of ``node``."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # the place itself; an edge made by hand has none


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place at which the gradient of ``tensor`` arrives; ``grad`` and ``backward`` take it as an input."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    place = Tensor._current(tensor)
    return GradientEdge(place.node, place.position, place)


def place_of(edge: GradientEdge) -> Any:
    """The place that an edge names."""
    if edge.ownership_token is not None or edge.node.__class__ is AccumulateGrad or edge.node.single:
        return edge.node if edge.ownership_token is None else edge.ownership_token
    return Output(edge.node, edge.output_nr, edge.node.shape, edge.node.dtype)


def like(edge: GradientEdge) -> Tensor:
    """A tensor of the shape and dtype of the gradients that arrive at ``edge``, there in the graph."""
    place = place_of(edge)
    return at_place(numpy.broadcast_to(numpy.zeros((), place.dtype), place.shape), [0, None], place)


def zeros_at(place: Any, require_grad: bool) -> Tensor:
    """The gradient of what did not contribute."""
    return wrap(numpy.zeros(place.shape, place.dtype)).requires_grad_(require_grad)


def increment_version(tensor: Any) -> None:
    """Count a modification of ``tensor`` (or of several) that its version counter could not see."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump(each)


def set_retain_grad_last(last: bool) -> None:
    """Choose when a gradient is retained: after all hooks of its tensor, as PyTorch 2 does, or in its turn (False).

    By default ``retain_grad`` acts among the hooks in the order of registration: hooks registered later do not show in
    the retained gradient. One setting for the process.
    """
    engine.retain_last = bool(last)


__all__ = ["AccumulateGrad", "GradientEdge", "Node", "get_gradient_edge", "increment_version", "set_retain_grad_last"]
__getattr__, __dir__ = absent(__name__), listed(globals())
