"""The graph as a user handles it: ``Node``, edges, and the order in which gradients are retained."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import engine
from ..core.node import AccumulateGrad, Node
from ..core.tensor import Tensor
from ..core.views import bump


class GradientEdge(NamedTuple):
    """A place of the graph at which a gradient arrives: result ``output_nr`` of ``node``."""

    node: Any
    output_nr: int
    place: Any


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place at which the gradient of ``tensor`` arrives; ``grad`` and ``backward`` take it as an input."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    place = Tensor.current(tensor)
    return GradientEdge(place.node, place.position, place)


def place_of(edge: GradientEdge) -> Any:
    """The place that an edge names."""
    return edge.place


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
