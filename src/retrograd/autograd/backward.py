"""Gradients of any tensors by any others, also of those of a transformation: what ``grad`` and forward mode rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import engine
from ..core.devices import module_of
from ..core.grad_mode import restore_recording, set_recording
from ..core.tensor import Tensor, wrap
from ..dispatch.transform_tensor import innermost
from ..operations.linalg.derivative_programs import solve as programs


def place_of(x: Tensor) -> Any:
    """Where the gradient of ``x`` arrives."""
    return x._grad_edge if x._view is None else Tensor._current(x)


def solve(outs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any], keep: bool, record: bool) -> list[Any]:
    """The gradients of ``outs`` (given ``grads``, None for 1) by each of ``inputs`` as Tensors; None where there is none.

    ``keep``: the graph stays usable. ``record``: the gradients can be differentiated again.
    """
    special = innermost([*outs, *inputs])
    if special is not None:
        before = set_recording(True)  # what is done to the outputs on the way must not cut them off
        try:
            return special.gradients(
                outs, inputs, grads, lambda o, i, g, last: solve(o, i, g, keep or not last, record)
            )
        finally:
            restore_recording(before)
    given = [(place_of(out), out, grad) for out, grad in zip(outs, grads, strict=True)]
    tensors = record or innermost(grads) is not None
    roots = [(place, _first(out, grad, tensors)) for place, out, grad in given if place is not None]
    places = [place_of(each) for each in inputs]
    wanted: dict[Any, Any] = {place: None for place in places if place is not None}
    if roots and wanted:
        engine.run_backward(roots, keep, tensors, wanted, write=False, silent=tensors and not record)
    return [engine.as_tensor(wanted.get(place)) for place in places]


def _first(out: Tensor, grad: Any, tensors: bool) -> Any:
    if grad is None:
        ones = module_of(out._array).ones(out._array.shape, out._array.dtype)
        return wrap(ones) if tensors else ones
    return grad if tensors else grad._array


programs.append(solve)
__all__ = ["place_of", "solve"]
