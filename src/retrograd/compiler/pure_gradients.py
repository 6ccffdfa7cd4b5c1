"""Programs of ``retrograd.value_and_grad`` for functions that the user has declared pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy

from ..core.grad_mode import enable_grad
from ..core.graph import OutputEdge
from ..core.tensor import Tensor, leaf_from_array, wrap
from .recorder import Traced, Unrecorded
from .segment_program import compile_segment

if TYPE_CHECKING:
    from ..core.typing import Array, Edge


def program_of(
    f: Callable[..., Tensor], given: Sequence[object], chosen: Sequence[int]
) -> Callable[[Sequence[Array]], tuple[object, list[Array]]] | None:
    """Return a function that computes the value of ``f`` and the gradients of the arguments ``chosen``.

    It takes the arrays among the arguments ``given``, which must have the same shapes and dtypes. Return None if ``f``
    cannot be recorded, for example because it reads elements or registers hooks, or if a gradient is zero.
    """
    places = [place for place, each in enumerate(given) if isinstance(each, numpy.ndarray)]
    inputs = [
        leaf_from_array(given[place]) if place in chosen else wrap(given[place])  # type: ignore[arg-type]
        for place in places
    ]

    def recorded(*tensors: Tensor) -> list[Tensor]:
        arguments = list(given)
        for place, each in zip(places, tensors, strict=True):
            arguments[place] = each
        result = f(*arguments)
        if not isinstance(result, Traced) or result.numel() != 1 or result.is_complex():
            raise Unrecorded("the result is not a real tensor with one element")
        if _has_hooks(result._inner):
            raise Unrecorded("registers hooks")
        return [result]

    wanted = [places.index(place) for place in chosen]
    try:
        with enable_grad():
            segment = compile_segment(recorded, inputs, 0, wanted)
    except Unrecorded:
        return None
    if sorted(segment.leaves) != sorted(wanted):
        return None
    forward = segment.forward.run
    names = [each.name for each in segment.forward.inputs]
    by_name = {value.name: place for place, value in enumerate(segment.inputs)}
    order = [by_name.get(name) for name in names]
    one = numpy.ones(segment.outs[0].shape, segment.outs[0].dtype)
    at = [segment.leaves.index(each) for each in wanted]

    def run(arrays: Sequence[Array]) -> tuple[object, list[Array]]:
        value, *gradients = forward(*[one if place is None else arrays[place] for place in order])
        return value.item(), [gradients[each] for each in at]

    return run


def _has_hooks(result: Tensor) -> bool:
    """Whether a node of the graph of ``result`` has hooks."""
    pending: list[Edge | None] = [result._grad_edge]
    seen = set()
    while pending:
        edge = pending.pop()
        node = edge.node if isinstance(edge, OutputEdge) else edge
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.hooks:
            return True
        pending += [each for each, _ in node.next_functions]
    return False
