"""Running the hooks of tensors and nodes during a backward pass."""

from __future__ import annotations

from typing import Any

from .error_context import describe_definition
from .gradients import _as_level, as_tensor, validate_gradient
from .graph import Hooks
from .tensor import Retain, Tensor

#: Whether retaining a gradient acts after all hooks of a tensor (PyTorch 2) and not in the order of registration.
retain_last = False


def _run_pre_hooks(hooks: Hooks, grad: Any, record: bool) -> Any:
    """Run the hooks of a tensor, which see its gradient as it arrives, in their order."""
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
            _check_hook(hook, result, shown)
        grad = _as_level(shown if result is None else result, record)
    return grad


def _run_node_pre_hooks(node: Any, grads: tuple[Any, ...], record: bool) -> tuple[Any, ...]:
    for hook in list(node.hooks.before.values()):
        shown = tuple(map(as_tensor, grads))
        result = hook(shown)
        if result is not None:
            grads = _checked(hook, result, shown, record)
    return grads


def _run_post_hooks(node: Any, grads: Any, grad: Any, record: bool) -> Any:
    """Run a node's hooks on what it sends: they see a gradient for each of ``next_functions``."""
    outputs = tuple(map(as_tensor, grad if isinstance(grad, (tuple, list)) else (grad,)))
    single = len(node.edges) == 1
    fitted = tuple(
        each if each is None or edge is None else validate_gradient(each, edge, node)
        for each, edge in zip((grads,) if single else grads, node.edges, strict=True)
    )
    inputs = list(node.spread(fitted[0]) if node.lone else fitted)
    listed = node.listed or range(len(inputs))
    for hook in list(node.hooks.after.values()) if node.hooks is not None else ():
        shown = tuple([as_tensor(inputs[index]) for index in listed])
        result = hook(shown, outputs)
        if result is not None:
            for index, each in zip(listed, _checked(hook, result, shown, record), strict=True):
                inputs[index] = each
    return inputs[node.operand] if node.lone else inputs[0] if single else tuple(inputs)


def _checked(hook: Any, results: Any, shown: tuple[Any, ...], record: bool) -> tuple[Any, ...]:
    """What a node's hook returned in the place of the gradients that it was ``shown``."""
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'{_hook_hint(hook)}")
    if len(results) != len(shown):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(results)}, but expected "
            f"{len(shown)}){_hook_hint(hook)}"
        )
    for result, given in zip(results, shown, strict=True):
        if result is not None:
            _check_hook(hook, result, given)
    return tuple(_as_level(each, record) for each in results)


def _check_hook(hook: Any, result: Any, shown: Tensor | None) -> None:
    said: Exception | None = None
    if not isinstance(result, Tensor):
        said = TypeError(f"expected Variable, but hook returned '{type(result).__name__}'{_hook_hint(hook)}")
    elif shown is None:
        said = RuntimeError(f"can't replace a None gradient with a non-None value{_hook_hint(hook)}")
    elif result._array.dtype != shown._array.dtype:
        change = f"type of value (was {shown.type()} got {result.type()})"
        said = RuntimeError(f"hook '{_name(hook)}' has changed the {change}{_hook_hint(hook)}")
    elif result._array.shape != shown._array.shape:
        said = RuntimeError(f"hook '{_name(hook)}' has changed the size of value{_hook_hint(hook)}")
    if said is not None:
        raise said


def _hook_hint(hook: Any) -> str:
    place = describe_definition(hook)
    remedy = "Remedy: return None, or a gradient of the same shape and dtype"
    return f" (the hook is defined{place}). {remedy}" if place else f". {remedy}"


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")
