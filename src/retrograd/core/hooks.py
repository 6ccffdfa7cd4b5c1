"""Calls of the hooks of tensors and nodes in a backward pass, with checks of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .error_context import describe_definition
from .gradients import as_tensor, unwrap_unless_recorded, validate_gradient
from .graph import Hooks
from .tensor import Retain, Tensor

if TYPE_CHECKING:
    from .graph import AccumulateGrad
    from .typing import EngineNode, Gradient, Gradients, Hook

#: Whether gradients are retained after all hooks of a tensor (PyTorch 2) instead of in the order of registration.
retain_last = False


def run_tensor_hooks(hooks: Hooks, grad: Gradient, record: bool) -> Gradient:
    """Call the hooks of a tensor with its gradient ``grad``, and return the gradient as changed by these hooks.

    ``hooks`` are all hooks of the tensor's gradient edge, of which only the tensor hooks are called. ``record`` is true
    if the backward pass is recorded (``create_graph=True``).
    """
    ordered = list(hooks.tensor.items())
    if retain_last and hooks.retaining is not None:
        ordered.sort(key=lambda item: item[0] == hooks.retaining)
    for _, hook in ordered:
        shown = as_tensor(grad)
        if hook.__class__ is Retain:
            if shown is not None:
                hook(shown)
            continue
        result = hook(shown)
        if result is not None:
            check_hook_result(hook, result, shown)
        grad = unwrap_unless_recorded(shown if result is None else result, record)
    return grad


def run_node_pre_hooks(
    node: EngineNode | AccumulateGrad, grads: tuple[Gradient, ...], record: bool
) -> tuple[Gradient, ...]:
    """Call the hooks that run before ``node``, and return the incoming gradients as changed by these hooks.

    ``grads`` are the incoming gradients, one for each result of the node. ``record`` is true if the backward pass is
    recorded (``create_graph=True``).
    """
    for hook in list(node.hooks.before.values()):  # type: ignore[union-attr]
        shown = tuple(map(as_tensor, grads))
        result = hook(shown)
        if result is not None:
            grads = _checked(hook, result, shown, record)
    return grads


def run_node_post_hooks(node: EngineNode, grads: Gradients, grad: Gradient, record: bool) -> Gradients:
    """Call the hooks that run after ``node``, and return the gradients of its inputs as changed by these hooks.

    ``grads`` are the gradients of the inputs, which the node computed from ``grad``, the gradient of its result. They
    are converted to the shapes and dtypes of the inputs before the hooks are called. A hook gets one gradient for each
    item of ``node.next_functions``. ``record`` is true if the backward pass is recorded (``create_graph=True``).
    """
    outputs = tuple(map(as_tensor, grad if isinstance(grad, (tuple, list)) else (grad,)))
    single = len(node.edges) == 1
    validated = tuple(
        each if each is None or edge is None else validate_gradient(each, edge, node)
        for each, edge in zip((grads,) if single else grads, node.edges, strict=True)
    )
    inputs = list(node.spread(validated[0]) if node.lone else validated)
    listed = node.listed or range(len(inputs))
    for hook in list(node.hooks.after.values()) if node.hooks is not None else ():
        shown = tuple([as_tensor(inputs[index]) for index in listed])
        result = hook(shown, outputs)
        if result is not None:
            for index, each in zip(listed, _checked(hook, result, shown, record), strict=True):
                inputs[index] = each
    return inputs[node.operand] if node.lone else inputs[0] if single else tuple(inputs)


def _checked(hook: Hook, results: object, shown: tuple[Tensor | None, ...], record: bool) -> tuple[Gradient, ...]:
    """Return ``results``, the gradients that the node hook ``hook`` returned, after checks of their types.

    ``shown`` are the gradients that were passed to the hook. Raises TypeError or RuntimeError if ``results`` and
    ``shown`` differ in number, type, shape or dtype. The result contains Tensors if ``record`` is true, that is, if the
    backward pass is recorded. Otherwise it contains arrays.
    """
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'{hook_hint(hook)}")
    if len(results) != len(shown):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(results)}, but expected "
            f"{len(shown)}){hook_hint(hook)}"
        )
    for result, original in zip(results, shown, strict=True):
        if result is not None:
            check_hook_result(hook, result, original)
    return tuple(unwrap_unless_recorded(each, record) for each in results)


def check_hook_result(hook: Hook, result: object, shown: Tensor | None) -> None:
    """Raise TypeError or RuntimeError if ``result``, which ``hook`` returned, cannot replace the gradient ``shown``.

    ``shown`` is the gradient with which the hook was called. If it is None, it cannot be replaced. Otherwise
    ``result`` must be a Tensor of the same dtype and shape.
    """
    error: Exception | None = None
    if not isinstance(result, Tensor):
        error = TypeError(f"expected Variable, but hook returned '{type(result).__name__}'{hook_hint(hook)}")
    elif shown is None:
        error = RuntimeError(f"can't replace a None gradient with a non-None value{hook_hint(hook)}")
    elif result._array.dtype != shown._array.dtype:
        change = f"type of value (was {shown.type()} got {result.type()})"
        error = RuntimeError(f"hook '{_name(hook)}' has changed the {change}{hook_hint(hook)}")
    elif result._array.shape != shown._array.shape:
        error = RuntimeError(f"hook '{_name(hook)}' has changed the size of value{hook_hint(hook)}")
    if error is not None:
        raise error


def hook_hint(hook: Hook) -> str:
    """Return a text with the location where ``hook`` is defined and a remedy, for errors about the hook's result."""
    location = describe_definition(hook)
    remedy = "Remedy: return None, or a gradient of the same shape and dtype"
    return f" (the hook is defined{location}). {remedy}" if location else f". {remedy}"


def _name(hook: Hook) -> str:
    return getattr(hook, "__name__", "<unknown>")
