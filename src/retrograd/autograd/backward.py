"""``backward`` and ``grad``, which run a backward pass, also inside transforms such as ``vmap``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from ..core import engine, gradients
from ..core.devices import array_module_of
from ..core.error_context import describe_origin, with_remedy
from ..core.grad_mode import restore_recording, set_recording
from ..core.graph import AccumulateGrad, dead_ref
from ..core.rule_namespace import rule_namespace_of
from ..core.tensor import Tensor, wrap
from ..core.torch_function import HANDLERS, OVERRIDING
from ..dispatch.intercept import GO_ON, intercept, intercept_locals
from ..dispatch.transform_tensor import active_levels, innermost
from ..operations.linalg.derivative_programs import AUTOGRAD_FUNCTION
from ..operations.tensor_methods import add_method
from ..runtime.timed_functions import profiled
from ..runtime.user_frame import strip_frames, warn
from . import graph


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value.__class__ is tuple:
        return value
    return (value,) if isinstance(value, (Tensor, graph.GradientEdge)) else tuple(value)


def _as_gradients(value: Any, count: int) -> tuple[Any, ...]:
    return (None,) * count if value is None else _as_tuple(value)


def _roots(outputs: Sequence[Any], grads: Sequence[Any], record: bool) -> list[tuple[Any, Any]]:
    """Return the starting points of a backward pass: a list of pairs (place in the graph, gradient) for ``outputs``.

    The place is the gradient edge of the output: a graph node, or one of several results of a node. The gradient is the
    item of ``grads``, or ones if this item is None. The gradients are Tensors if ``record`` is true, because the
    backward pass is then recorded. Otherwise they are arrays.
    """
    roots: list[tuple[Any, Any]] = []
    for index, (out, grad) in enumerate(zip(outputs, grads, strict=False)):
        if out.__class__ is not Tensor and not isinstance(out, (Tensor, graph.GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
        edge = gradient_edge_of(out)
        first = _initial_gradient(index, out, edge, grad)
        if edge is None or edge.variable_ref is dead_ref:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn{_no_graph_hint(out)}"
            )
        if record:
            roots.append((edge, first if isinstance(first, Tensor) else wrap(first)))
        else:
            roots.append((edge, first._array if isinstance(first, Tensor) else first))
    if len(grads) < len(outputs):
        text = f"got {len(outputs)} tensors and {len(grads)} gradients"
        raise RuntimeError(with_remedy(text, "pass one for each tensor, None where it is 1"))
    return roots


def _no_graph_hint(out: Any) -> str:
    """Return the part of an error message that explains why the tensor ``out`` has no graph, and suggests a remedy."""
    if isinstance(out, Tensor) and out._array.dtype.kind not in "fcVW":
        return f". It is of {out.dtype}, which has no gradients. Remedy: compute with floating-point numbers."
    tracing = sys.modules.get("retrograd.inspection.tracing")  # loaded only if a program has used it
    record = tracing.tensor_record(out) if tracing is not None and isinstance(out, Tensor) else None
    if record is not None:
        return f". It was {record.why}. Remedy: requires_grad_() the inputs before computing it, with recording on."
    return (
        ". It is a leaf, or was computed from tensors that require no gradients, or without being recorded (torch.no_grad(), "
        ".detach(), a backward pass without create_graph=True); torch.autograd.tracing() records which. Remedy: "
        "requires_grad_() the inputs before computing it."
    )


_F32, _F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
_ONE32, _ONE64 = numpy.ones((), _F32), numpy.ones((), _F64)


@profiled(lambda index, out, edge, grad: "" if grad is not None else "aten::ones_like", operation=True)
def _initial_gradient(index: int, out: Any, edge: Any, grad: Any) -> Any:
    if HANDLERS and (answer := intercept(_initial_gradient, (index, out, edge, grad), {})) is not GO_ON:
        return answer
    if out.__class__ is not Tensor and isinstance(out, graph.GradientEdge):
        out = graph.zeros_like_edge(out)
    array = out._array
    if grad is None:
        if edge is None:
            return None
        if array.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs{_output_origin(index, array, edge)}. Remedy: "
                "reduce it to one number, as by .sum(), or pass the gradient of the output."
            )
        dtype = array.dtype
        if array.__class__ is numpy.ndarray and not array.ndim and (dtype is _F32 or dtype is _F64):
            return (_ONE32 if dtype is _F32 else _ONE64).copy()  # takes a fifth of the time of numpy.ones
        if dtype.kind == "c":
            text = f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
            text += _output_origin(index, array, edge)
            raise RuntimeError(with_remedy(text, "reduce it to a real number, as by .abs(), or pass its gradient"))
        return array_module_of(array).ones(array.shape, dtype)
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad._array.shape != array.shape:
        error = RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of "
            f"{out.shape}."
        )
        error.add_note(
            f"{_output_origin(index, array, edge)} Remedy: pass a gradient of the shape of the output.".strip()
        )
        raise error
    if (grad._array.dtype.kind == "c") != (array.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {grad.dtype} and output[{index}] has a dtype of {out.dtype}."
            f"{_output_origin(index, array, edge)} Remedy: pass a gradient of {out.dtype}."
        )
    return grad if grad._array.dtype == array.dtype else grad.to(out.dtype)


def _output_origin(index: int, array: Any, edge: Any) -> str:
    origin = describe_origin(edge)
    return f" (output {index} of shape {tuple(array.shape)}{', ' if origin else ''}{origin})"


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of the sum of ``tensors`` to the ``grad`` of the graph's leaves.

    Args:
        tensors: the Tensor or Tensors to differentiate.
        grad_tensors: for each of ``tensors`` the incoming gradient (the vector of the vector-Jacobian product), of the
            tensor's shape; None means 1 and is allowed for tensors of one element.
        retain_graph: keep the saved tensors of the graph for another backward pass; defaults to ``create_graph``.
        create_graph: record the backward pass, so that the gradients can be differentiated again.
        grad_variables: deprecated name of ``grad_tensors``.
        inputs: the Tensor, Tensors, or dictionary of Tensors that receive gradients; by default all leaves do.

    Raises RuntimeError if a tensor of several elements has no incoming gradient, if shapes differ, if a tensor requires
    no gradient, or if the graph was freed before.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html.
    """
    if (HANDLERS or OVERRIDING) and (answer := intercept_locals(backward, locals())) is not GO_ON:
        return
    try:
        _backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
    except KeyboardInterrupt as error:
        strip_frames(error)
        raise
    except Exception as error:
        error = strip_frames(error)  # type: ignore[assignment]
        if error is None:
            raise
        raise error from error.__cause__


def _backward(
    tensors: Any, grad_tensors: Any, retain_graph: bool | None, create_graph: bool, grad_variables: Any, inputs: Any
) -> None:
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if active_levels() and any(each.strict for each in active_levels()):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms. Remedy: use torch.func.grad within."
        )
    targets = None if inputs is None else _checked_inputs(inputs, "backward")
    outputs = _as_tuple(tensors)
    grads = _as_gradients(grad_tensors, len(outputs))
    retain = create_graph if retain_graph is None else retain_graph
    roots = _roots(outputs, grads, create_graph)
    if targets is None:
        engine.run_backward(roots, retain, create_graph)
        return
    for each in targets:
        if isinstance(each, Tensor):
            each.retain_grad()  # the engine writes ``grad`` of tensors that are no leaves only if they retain it
    engine.run_backward(roots, retain, create_graph, dict.fromkeys(map(gradient_edge_of, targets)))


def _backward_of(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of ``self`` to the ``grad`` of the graph's leaves (see :func:`autograd.backward`).

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x.square().sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    plain = gradient is None or gradient.__class__ is Tensor
    if plain and inputs is None and create_graph is False and self.__class__ is Tensor and not active_levels():
        edge = self._grad_edge if self._view is None else Tensor._current(self)
        if edge is not None and edge.__class__ is not AccumulateGrad:  # the fast path takes half the time
            first = _initial_gradient(0, self, edge, gradient)
            if gradient is not None:
                first = first._array
            elif not first.ndim and first.__class__ is numpy.ndarray and first.dtype in (_F32, _F64):
                first = first[()]  # multiplying a NumPy scalar takes a tenth of the time of a 0-d array
            engine.run_backward([(edge, first)], bool(retain_graph), False)
            return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


add_method("backward", _backward_of)


def gradient_edge_of(tensor: Any) -> Any:
    """Return the place in the autograd graph (gradient edge) at which the gradient of ``tensor`` is computed.

    The result is a graph node, or an OutputEdge (one of several results of a node). It is None for a Tensor that
    requires no gradient. ``tensor`` is a Tensor or a ``GradientEdge``.
    """
    if tensor.__class__ is not Tensor and isinstance(tensor, graph.GradientEdge):
        return graph.engine_edge_of(tensor)
    return tensor._grad_edge if tensor._view is None else Tensor._current(tensor)


def _checked_inputs(value: Any, caller: str) -> tuple[Any, ...]:
    """Return ``value``, the argument ``inputs`` of ``backward`` or ``grad``, as a tuple.

    ``value`` is a Tensor or GradientEdge, a sequence of them, or a dictionary with such values. An error is raised for
    any other value, and its message contains ``caller``, the name of the called function.
    """
    if value.__class__ is not tuple and type(value) not in (list, dict, Tensor) and isinstance(value, Mapping):
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(value).__name__}. Other Mapping types are not "
            "supported."
        )
    inputs = _as_tuple(value.values() if type(value) is dict else value)
    for each in inputs:
        if each.__class__ is not Tensor and not isinstance(each, (Tensor, graph.GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(each).__name__}")
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return inputs


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
) -> Any:
    """Return the gradients of the sum of ``outputs`` with respect to each of ``inputs``, without writing to ``grad``.

    Args:
        outputs: the Tensor or Tensors to differentiate.
        inputs: the Tensor or Tensors to differentiate with respect to; a dictionary returns a dictionary.
        grad_outputs: for each output the incoming gradient; None means 1 and is allowed for outputs of one element.
        retain_graph: keep the saved tensors of the graph for another backward pass; defaults to ``create_graph``.
        create_graph: record the backward pass, so that the result can be differentiated again.
        only_inputs: deprecated, without effect.
        allow_unused: return None for an input on which no output depends, instead of raising RuntimeError.
        is_grads_batched: each of ``grad_outputs`` stacks several gradients along a first dimension, which the results
            also have. With the identity matrix as gradients the result is a Jacobian.
        materialize_grads: return zeros instead of None.

    >>> import retrograd as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (dx,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> dx, torch.autograd.grad(dx, x)
    (tensor(27., grad_fn=<MulBackward0>), (tensor(18.),))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html.
    """
    if HANDLERS or OVERRIDING:
        if inputs.__class__ is dict:  # a handler gets a tuple, as in PyTorch
            found = grad(
                outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                is_grads_batched, materialize_grads,
            )  # fmt: skip
            return dict(zip(inputs, found, strict=True))
        if (answer := intercept_locals(grad, locals())) is not GO_ON:
            return answer
    try:
        return _grad(
            outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched,
            materialize_grads,
        )  # fmt: skip
    except KeyboardInterrupt as error:
        strip_frames(error)
        raise
    except Exception as error:
        error = strip_frames(error)  # type: ignore[assignment]
        if error is None:
            raise
        raise error from error.__cause__


def _grad(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool, only_inputs: bool,
    allow_unused: bool | None, is_grads_batched: bool, materialize_grads: bool,
) -> Any:  # fmt: skip
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outs, targets = _as_tuple(outputs), _checked_inputs(inputs, "grad")
    grads = _as_gradients(grad_outputs, len(outs))
    keep = create_graph if retain_graph is None else retain_graph
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if is_grads_batched:
        gradients = _stacked_gradients(outs, targets, grads, keep, create_graph, allow_unused, materialize_grads)
    else:
        gradients = _gradients_of(outs, targets, grads, keep, create_graph, allow_unused, materialize_grads)
    return dict(zip(inputs, gradients, strict=True)) if type(inputs) is dict else gradients


def _gradients_of(
    outs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grads: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    roots = _roots(outs, grads, create_graph)
    edges = [gradient_edge_of(each) for each in inputs]
    if None in edges:
        raise RuntimeError(
            f"One of the differentiated Tensors does not require grad (input {edges.index(None)})"
            f"{_no_graph_hint(inputs[edges.index(None)])}"
        )
    if active_levels() and innermost([*outs, *inputs, *grads]) is not None:
        computed = gradients_of_tensors(outs, inputs, grads, keep, create_graph)
    else:
        wanted: dict[Any, Any] = dict.fromkeys([edge for edge in edges if edge.variable_ref is not dead_ref])
        engine.run_backward(roots, keep, create_graph, wanted, write=False)
        computed = [wanted.get(edge) for edge in edges]
    results: list[Any] = []
    for edge, gradient in zip(edges, computed, strict=True):
        if edge.variable_ref is dead_ref:
            gradient = None
        if gradient is not None:
            results.append(gradient if create_graph else gradients.as_tensor(gradient))
        elif materialize_grads:
            results.append(graph.zero_gradient(edge, create_graph))
        elif allow_unused:
            results.append(None)
        else:
            raise RuntimeError(
                f"The differentiated Tensor at index {len(results)} appears to not have been used in the graph. Set "
                f"allow_unused=True if this is the desired behavior.{_unused_hint(len(results), edge)}"
            )
    return tuple(results)


def _unused_hint(index: int, edge: Any) -> str:
    origin = f" (input {index}, {describe_origin(edge)})"
    return f"{origin}. Remedy: compute the output from it, or pass materialize_grads=True to get zeros."


def _stacked_gradients(
    outs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grads: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    """Return the gradients of ``outs`` with respect to each of ``inputs`` for stacked incoming gradients ``grads``.

    This function implements :func:`grad` with ``is_grads_batched=True``. Each Tensor in ``grads`` stacks several
    incoming gradients of one output along its first dimension, and so does each returned gradient. If ``keep`` is true,
    the graph is retained. ``create_graph``, ``allow_unused`` and ``materialize_grads`` are as for :func:`grad`.
    """
    rows = range(_batch_size(outs, grads))
    by_row = [
        _gradients_of(
            outs,
            inputs,
            tuple(each[row] for each in grads),
            keep or row != rows[-1],
            create_graph,
            allow_unused,
            False,
        )
        for row in rows
    ]
    stack = rule_namespace_of(grads[0]).stack
    results = [None if column[0] is None else stack(list(column)) for column in zip(*by_row, strict=True)]
    if materialize_grads:
        return tuple(
            graph.zero_gradient(gradient_edge_of(by), create_graph) if each is None else each
            for by, each in zip(inputs, results, strict=True)
        )
    return tuple(results)


def _batch_size(outs: tuple[Any, ...], grads: tuple[Any, ...]) -> int:
    """Return the number of incoming gradients that each Tensor in ``grads`` stacks along its first dimension.

    ``grads`` has one Tensor for each of ``outs``. An error is raised if a Tensor is missing or has a wrong shape.
    """
    for index, (out, grad) in enumerate(zip(outs, grads, strict=False)):
        if not isinstance(grad, Tensor):
            _initial_gradient(index, out, gradient_edge_of(out), grad)
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not grad._array.ndim:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
        if not grad._array.shape[0]:
            raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
        like = graph.zeros_like_edge(out) if isinstance(out, graph.GradientEdge) else out
        expected = like.shape
        if grad.shape[1:] != expected:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{index}] has a shape of {grad.shape[2:]} and output[{index}] has a "
                f"shape of {expected}. If you only want some tensors in `grad_output` to be considered batched, consider "
                f"using vmap.{_output_origin(index, like._array, gradient_edge_of(out))} "
                "Remedy: stack the gradients along a first "
                "dimension."
            )
    sizes = [each._array.shape[0] for each in grads]
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def gradients_of_tensors(
    outs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any], keep: bool, record: bool
) -> list[Any]:
    """Return the gradients of ``outs`` with respect to each of ``inputs`` as Tensors, None for an unused input.

    Unlike ``grad``, this function can be called inside a transform such as ``vmap``, and it returns None instead of
    raising an error for inputs that require no gradient.

    Args:
        outs: the Tensors to differentiate; those that require no gradient are skipped.
        inputs: the Tensors to differentiate with respect to.
        grads: for each of ``outs`` the incoming gradient; None means ones.
        keep: keep the saved tensors of the graph for another backward pass.
        record: record the backward pass, so that the result can be differentiated again.
    """
    special = innermost([*outs, *inputs])
    if special is not None:
        before = set_recording(True)  # the transform's operations on the outputs belong to the graph
        try:
            return special.gradients(
                outs,
                inputs,
                grads,
                lambda o, i, g, last: gradients_of_tensors(o, i, g, keep or not last, record),
                record,
            )
        finally:
            restore_recording(before)
    triples = [(gradient_edge_of(out), out, grad) for out, grad in zip(outs, grads, strict=True)]
    as_tensors = record or innermost(grads) is not None
    roots = [(edge, _initial_value(out, grad, as_tensors)) for edge, out, grad in triples if edge is not None]
    edges = [gradient_edge_of(each) for each in inputs]
    wanted: dict[Any, Any] = {edge: None for edge in edges if edge is not None}
    if roots and wanted:
        engine.run_backward(roots, keep, as_tensors, wanted, write=False, silent=as_tensors and not record)
    return [gradients.as_tensor(wanted.get(edge)) for edge in edges]


def _initial_value(out: Tensor, grad: Any, as_tensors: bool) -> Any:
    if grad is None:
        ones = array_module_of(out._array).ones(out._array.shape, out._array.dtype)
        return wrap(ones) if as_tensors else ones
    return grad if as_tensors else grad._array


AUTOGRAD_FUNCTION.append(gradients_of_tensors)
__all__ = ["backward", "grad", "gradient_edge_of", "gradients_of_tensors"]
