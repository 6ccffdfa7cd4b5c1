"""Derivatives: ``backward``, ``grad`` and what surrounds them, as ``torch.autograd``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..core import engine
from ..core.absent import absent
from ..core.devices import module_of
from ..core.levels import level_of
from ..core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.node import AccumulateGrad
from ..core.tensor import Tensor, wrap
from ..core.views import bare_name
from ..core.where import describe
from ..ops.methods import add_method
from . import graph


class _EveryTensor(type):
    """So that ``isinstance(x, Variable)`` is true of tensors: a Variable has been nothing else since PyTorch 0.4."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_EveryTensor):
    """PyTorch's old wrapper: ``Variable(x, requires_grad=True)`` is the tensor ``x``, as a leaf of its own."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        """A leaf on the memory of ``data``."""
        return data.detach().requires_grad_(requires_grad)


def _several(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _roots(outputs: Sequence[Tensor], grads: Sequence[Any], record: bool) -> list[tuple[Any, Any]]:
    """The places of ``outputs`` with the gradient that the sweep begins with at each."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for index, out in enumerate(outputs):
        place = out._node if out._view is None else Tensor.current(out)
        first = _first_gradient(index, out, place, grads[index])
        if place is None:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        if record:
            roots.append((place, first if isinstance(first, Tensor) else wrap(first)))
        else:
            roots.append((place, first._array if isinstance(first, Tensor) else first))
    return roots


_F32, _F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
_ONE32, _ONE64 = numpy.ones((), _F32), numpy.ones((), _F64)


def _first_gradient(index: int, out: Tensor, place: Any, given: Any) -> Any:
    array = out._array
    if given is None:
        if place is None:
            return None
        if array.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        dtype = array.dtype
        if array.__class__ is numpy.ndarray and not array.ndim and (dtype is _F32 or dtype is _F64):
            return (_ONE32 if dtype is _F32 else _ONE64).copy()  # a fifth of the time that making one takes
        if dtype.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
        return module_of(array).ones(array.shape, dtype)
    if not isinstance(given, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._array.shape != array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {given.shape} and output[{index}] has a shape of "
            f"{out.shape}."
        )
    if (given._array.dtype.kind == "c") != (array.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {given.dtype} and output[{index}] has a dtype of {out.dtype}."
        )
    return given if given._array.dtype == array.dtype else given.to(out.dtype)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to the ``grad`` of the graph's leaves the gradients of the sum of ``tensors``.

    Args:
        tensors: one Tensor or several, of which the derivatives are taken.
        grad_tensors: for each the gradient that arrives there (the vector of the vector-Jacobian product), of the
            tensor's shape; None stands for 1 and is allowed for tensors of one element.
        retain_graph: keep what the graph saved, for another sweep; by default as ``create_graph``.
        create_graph: record the sweep, so that the gradients can be differentiated again.
        inputs: only these get gradients; all leaves by default.

    Raises RuntimeError where a gradient can not be made up, a shape does not fit, or the graph was freed before.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, Tensor) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _several(tensors)
    grads = _several(grad_tensors) or (None,) * len(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    roots = _roots(outputs, grads, create_graph)
    if inputs is None:
        engine.sweep(roots, keep, create_graph)
        return
    places = [_place(each) for each in _several(inputs)]
    wanted: dict[Any, Any] = dict.fromkeys(places)
    engine.sweep(roots, keep, create_graph, wanted)
    for tensor, place in zip(_several(inputs), places, strict=True):
        # A leaf was served by the sweep; a computed tensor gets its gradient here.
        if place.__class__ is not AccumulateGrad and wanted[place] is not None and not tensor.retains_grad:
            found = wanted[place] if create_graph else _lifted(wanted[place])
            tensor._grad = found if tensor._grad is None else tensor._grad + found


def _backward_of(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add to the ``grad`` of the graph's leaves the derivatives of this tensor (see :func:`autograd.backward`)."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


add_method("backward", _backward_of)


def _place(tensor: Any) -> Any:
    if isinstance(tensor, graph.GradientEdge):
        return graph.place_of(tensor)
    place = tensor._node if tensor._view is None else Tensor.current(tensor)
    if place is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return place


def _lifted(grad: Any) -> Tensor:
    if isinstance(grad, Tensor):
        return grad
    return wrap(numpy.asarray(grad) if isinstance(grad, numpy.generic) else grad)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of ``outputs`` with respect to each of ``inputs``; no ``grad`` is touched.

    Args:
        outputs: one Tensor or several, of which the derivatives are taken.
        inputs: the Tensor or Tensors by which to differentiate.
        grad_outputs: for each output the gradient that arrives there; None stands for 1 (outputs of one element).
        retain_graph: keep what the graph saved, for another sweep; by default as ``create_graph``.
        create_graph: record the sweep, so that the result can be differentiated again.
        allow_unused: give None for an input on which no output depends, instead of an error.
        materialize_grads: give zeros instead of None.

    >>> import retrograd as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (dx,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> dx, torch.autograd.grad(dx, x)
    (tensor(27., grad_fn=<MulBackward0>), (tensor(18.),))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outs, given = _several(outputs), _several(inputs)
    if not given:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _several(grad_outputs) or (None,) * len(outs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(outs, given, grads, create_graph, allow_unused)
    roots = _roots(outs, grads, create_graph)
    places = [_place(each) for each in given]
    wanted: dict[Any, Any] = dict.fromkeys(places)
    engine.sweep(roots, keep, create_graph, wanted, write=False)
    results: list[Any] = []
    for place in places:
        found = wanted[place]
        if found is not None:
            results.append(found if create_graph else _lifted(found))
        elif materialize_grads:
            results.append(wrap(numpy.zeros(place.shape, place.dtype)))
        elif allow_unused:
            results.append(None)
        else:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                f"if this is the desired behavior.{_unused_hint(len(results), place)}"
            )
    return tuple(results)


def _unused_hint(index: int, place: Any) -> str:
    made = describe(getattr(place.node, "code", None), getattr(place.node, "instruction", -1))
    return f" (input {index}" + (f", computed by {bare_name(place.node)} at {made})" if made else ", a leaf)")


def _batched(
    outs: Sequence[Tensor], given: Sequence[Tensor], grads: Sequence[Any], create_graph: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """``grad`` for every slice of the grad_outputs along their first dimension, stacked."""
    count = grads[0]._array.shape[0]
    rows = [
        grad(outs, given, [each[i] for each in grads], True, create_graph, allow_unused=allow_unused)
        for i in range(count)
    ]
    stack = level_of(given[0]).stack
    return tuple(None if column[0] is None else stack(list(column)) for column in zip(*rows, strict=True))


__all__ = [
    "Variable", "backward", "enable_grad", "grad", "graph", "inference_mode", "no_grad", "set_grad_enabled",
]  # fmt: skip
__getattr__ = absent(__name__)
