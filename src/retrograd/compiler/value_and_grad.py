"""Programs of ``retrograd.value_and_grad`` for functions that the user has declared pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor, leaf_from_array, wrap
from .recorder import Unrecorded
from .segment_program import compile_segment

if TYPE_CHECKING:
    from ..core.typing import Array


def program_of(
    f: Callable[..., Tensor], given: Sequence[object], chosen: Sequence[int]
) -> Callable[[Sequence[Array]], tuple[Any, list[Array]]] | None:  # Note [Any in public signatures]
    """Return a function that computes the value of ``f`` and the gradients of the arguments ``chosen``.

    It takes the arrays among the arguments ``given``, which must have the same shapes and dtypes. Return None if ``f``
    cannot be recorded, for example because it reads elements, or if a gradient is zero.
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
        if not isinstance(result, Tensor) or result.numel() != 1:
            raise Unrecorded("the result is no tensor with one element")
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

    def run(arrays: Sequence[Array]) -> tuple[Any, list[Array]]:
        value, *gradients = forward(*[one if place is None else arrays[place] for place in order])
        return value.item(), [gradients[each] for each in at]

    return run
