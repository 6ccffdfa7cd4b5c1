"""Module hooks: functions that register global hooks (hooks for every module), and the call of a module with hooks.

For a module without hooks, ``Module.__call__`` calls ``forward`` directly and does not use this file.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ...autograd.function import Function
from ...core.grad_mode import recording
from ...core.graph import Handle
from ...core.tensor import Tensor
from ...runtime.user_frame import warn

Hooks = OrderedDict[int, Callable[..., Any]]

#: Global hooks (for every module) by kind.
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_buffer_registration_hooks: Hooks = OrderedDict()
_global_module_registration_hooks: Hooks = OrderedDict()
_global_parameter_registration_hooks: Hooks = OrderedDict()
#: True if the global backward hooks are full ones, False if non-full (deprecated) ones, None before the first.
_global_is_full_backward_hook: bool | None = None
#: Names of the dictionaries, which a program may also read and replace in ``torch.nn.modules.module``.
GLOBAL_HOOKS = tuple(name for name, value in list(globals().items()) if name.startswith("_global") and value == {})


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that is called as ``hook(module, args)`` before ``forward`` of every module.

    If the hook returns a value other than None, this value replaces ``args``. The result is a handle, whose method
    ``remove()`` removes the hook.
    """
    return Handle(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> Handle:
    """Register a hook that is called as ``hook(module, args, output)`` after ``forward`` of every module.

    If the hook returns a value other than None, this value replaces ``output``. If ``with_kwargs`` is true, the call is
    ``hook(module, args, kwargs, output)``. If ``always_call`` is true, the hook is also called if ``forward`` raises an
    exception. The result is a handle, whose method ``remove()`` removes the hook.
    """
    return Handle(
        _global_forward_hooks,
        hook,
        *[_global_forward_hooks_with_kwargs] * with_kwargs,
        *[_global_forward_hooks_always_called] * always_call,
    )


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that the backward pass calls before it computes the gradients of the inputs of a module.

    For every module, the call is ``hook(module, grad_output)``, where ``grad_output`` is a tuple of the gradients of
    the module's outputs. If the hook returns a value other than None, this value replaces ``grad_output``. The result
    is a handle, whose method ``remove()`` removes the hook.
    """
    return Handle(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that the backward pass calls after it has computed the gradients of the inputs of a module.

    For every module, the call is ``hook(module, grad_input, grad_output)``. ``grad_input`` and ``grad_output`` are
    tuples of the gradients of the module's inputs and outputs. If the hook returns a value other than None, this value
    replaces ``grad_input``. The result is a handle, whose method ``remove()`` removes the hook.
    """
    return _register_backward(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that is called with the gradients of the last operation of a module (deprecated).

    For every module, the backward pass calls ``hook(module, grad_input, grad_output)``. These are tuples of the
    gradients of the inputs and outputs of the last operation in ``forward``, not of the module. Use
    :func:`register_module_full_backward_hook` for the gradients of the module.
    """
    return _register_backward(hook, False)


def _register_backward(hook: Callable[..., Any], full: bool) -> Handle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one "
            "of them."
        )
    _global_is_full_backward_hook = full
    return Handle(_global_backward_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that is called as ``hook(module, name, buffer)`` when a module registers a buffer.

    If the hook returns a value other than None, this value is registered instead of ``buffer``.
    """
    return Handle(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that is called as ``hook(module, name, submodule)`` when a module registers a child module.

    If the hook returns a value other than None, this value is registered instead of ``submodule``.
    """
    return Handle(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Register a hook that is called as ``hook(module, name, param)`` when a module registers a parameter.

    If the hook returns a value other than None, this value is registered instead of ``param``.
    """
    return Handle(_global_parameter_registration_hooks, hook)


def apply_registration_hooks(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """Call ``hook(module, name, value)`` for each of ``hooks`` and return the resulting value.

    If a hook returns a value other than None, this value replaces ``value``.
    """
    for hook in hooks.values():
        found = hook(module, name, value)
        if found is not None:
            value = found
    return value


# -- A call with hooks -----------------------------------------------------------------------------------------------


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``module.forward(*args, **kwargs)`` and all forward and backward hooks of ``module``; return the output."""
    run = _CallState()
    try:
        return _call(module, args, kwargs, run)
    except Exception:
        _call_always(module, args, kwargs, run)
        raise


class _CallState:
    """State of one call of a module with hooks: the present output, and the hooks that were called.

    ``result`` is the output of ``forward``, or the value with which a hook replaced the output; it is None before
    ``forward`` returns. ``called`` is a set of ids: those of the hooks with ``always_call=True`` that were called.
    """

    def __init__(self) -> None:
        self.result: Any = None
        self.called: set[int] = set()


def _call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: _CallState) -> Any:
    args, kwargs = _before(module, args, kwargs)
    own, old = _backward_hooks(module)
    before = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    around = BackwardHook(module, own, before) if own or before else None
    if around is not None:
        args = around.setup_input_hook(args)
    result = run.result = module.forward(*args, **kwargs)
    for number, hook, with_kwargs, always in _forward_hooks(module):
        if always:
            run.called.add(number)
        found = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if found is not None:
            result = run.result = found
    if around is not None:
        if not isinstance(result, (Tensor, tuple)):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
            )
        result = around.setup_output_hook(result)
    if old:
        _hook_last_node(module, old, args, result)
    return result


def _before(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Call the forward pre-hooks of ``module`` and return the pair ``(args, kwargs)`` for ``forward``.

    ``args`` and ``kwargs`` are the arguments of the call of ``module``. If a hook returns a value other than None, this
    value replaces ``args``, or ``args`` and ``kwargs`` if the hook was registered with ``with_kwargs=True``.
    """
    for number, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if number in module._forward_pre_hooks_with_kwargs:
            found = hook(module, args, kwargs)
            if found is None:
                continue
            if not (isinstance(found, tuple) and len(found) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {found}."
                )
            args, kwargs = found
        else:
            found = hook(module, args)
            if found is not None:
                args = found if isinstance(found, tuple) else (found,)
    return args, kwargs


def _forward_hooks(module: Any) -> Iterator[tuple[int, Callable[..., Any], bool, bool]]:
    """Yield the forward hooks for ``module``: first the global hooks, then the hooks of ``module`` itself.

    For each hook, the tuple ``(id, hook, with_kwargs, always_call)`` is yielded. ``with_kwargs`` and ``always_call``
    are the flags with which the hook was registered.
    """
    for hooks, with_kwargs, always in (
        (_global_forward_hooks, _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called),
        (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
    ):
        for number, hook in list(hooks.items()):
            yield number, hook, number in with_kwargs, number in always


def _call_always(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: _CallState) -> None:
    """Call the hooks that were registered with ``always_call=True``, after a call of ``module`` raised an error.

    ``args`` and ``kwargs`` are the arguments of the call, and ``run`` is its state. Hooks that were called before the
    error (``run.called``) are omitted. An exception that a hook raises is replaced by a warning.
    """
    for number, hook, with_kwargs, always in _forward_hooks(module):
        if not always or number in run.called:
            continue
        try:
            hook(module, args, kwargs, run.result) if with_kwargs else hook(module, args, run.result)
        except Exception as error:
            whose = "global module" if number in _global_forward_hooks else "module"
            warn(
                f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another error "
                f"was raised in forward: {error}",
            )


# -- Backward --------------------------------------------------------------------------------------------------------


def _backward_hooks(module: Any) -> tuple[list[Any], list[Any]]:
    """Return two lists of the backward hooks for ``module``: the full hooks, and the non-full (deprecated) hooks.

    Full hooks are those registered by ``register_full_backward_hook``. Both lists include global hooks, which apply to
    every module.
    """
    full: list[Any] = []
    old: list[Any] = []
    if _global_is_full_backward_hook is not None:
        (full if _global_is_full_backward_hook else old).extend(_global_backward_hooks.values())
    if module._is_full_backward_hook is not None:
        (full if module._is_full_backward_hook else old).extend(module._backward_hooks.values())
    return full, old


class BackwardHookFunction(Function):
    """Identity function of several arguments, which adds a single node to the autograd graph.

    :class:`BackwardHook` registers a hook at this node, which receives the gradients of all arguments.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[each for each in args if not each.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """Caller of the full backward hooks for one call of ``module``.

    ``before`` are the backward pre-hooks, and ``hooks`` the backward hooks. An identity function is applied to the
    arguments before ``forward``, and another one to the outputs after ``forward``; each adds one node to the graph.
    When the backward pass reaches the node of the outputs, the pre-hooks are called with the gradients of the outputs.
    When it reaches the node of the arguments, the backward hooks are called with the gradients of the arguments and of
    the outputs.
    """

    before: list[Any]
    hooks: list[Any]
    module: Any
    n_inputs: int
    n_outputs: int

    def __init__(self, module: Any, hooks: list[Any], before: list[Any]) -> None:
        self.module, self.hooks, self.before = module, hooks, before
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None
        self.n_inputs = self.n_outputs = -1

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return ``args``, the arguments of the module, with each tensor passed through one identity function.

        The backward hooks are called when the backward pass reaches the graph node of this function. If no argument
        requires a gradient, ``args`` itself is returned.
        """
        self.n_inputs = len(args)
        args, self.inputs = _through_identity_node(args, lambda node: node.register_hook(self._inputs_reached))
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """Return ``result``, the output of the module, with each tensor passed through one identity function.

        The backward pre-hooks are called when the backward pass reaches the graph node of this function. If ``result``
        does not require a gradient, it is returned unchanged.
        """
        several = isinstance(result, tuple)
        results = result if several else (result,)
        self.n_outputs = len(results)
        results, self.outputs = _through_identity_node(results, lambda node: node.register_hook(self._outputs_reached))
        return results if several else results[0]

    def _outputs_reached(self, _: Any, grads: tuple[Any, ...]) -> Any:
        given = _scatter_grads(self.outputs or [], grads, self.n_outputs)
        for hook in self.before:
            found = hook(self.module, given)
            if found is not None:
                found = found if isinstance(found, tuple) else (found,)
                _check_count("Backward pre hook", "grad_output", found, given)
                given = found
        if self.inputs is None:
            self._call_without_inputs(given)
        else:
            self.grad_outputs = given
        return tuple(given[index] for index in self.outputs or [])

    def _call_without_inputs(self, given: tuple[Any, ...]) -> None:
        """Call the backward hooks of a module whose arguments do not require gradients.

        The argument ``grad_input`` of the hooks is then a tuple of None. Their argument ``grad_output`` is ``given``,
        the tuple of the gradients of the module's outputs. Raises RuntimeError if a hook returns neither None nor a
        tuple of None.
        """
        if self.hooks:
            warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook "
                "for more details.",
            )
        for hook in self.hooks:
            found = hook(self.module, (None,) * self.n_inputs, given)
            if found is not None and not (isinstance(found, tuple) and all(each is None for each in found)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all "
                    "gradients."
                )

    def _inputs_reached(self, grads: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:  # the gradient did not pass through the module's results
            return None
        given = _scatter_grads(self.inputs or [], grads, self.n_inputs)
        for hook in self.hooks:
            found = hook(self.module, given, self.grad_outputs)
            if found is not None:
                found = found if isinstance(found, tuple) else (found,)
                _check_count("Backward hook", "grad_input", found, given)
                given = found
        self.grad_outputs = None
        return tuple(given[index] for index in self.inputs or [])


def _check_count(who: str, what: str, found: tuple[Any, ...], given: tuple[Any, ...]) -> None:
    if len(found) != len(given):
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(found)}, but expected {len(given)}")


def _scatter_grads(places: list[int], grads: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return a tuple of length ``count`` with ``grads[i]`` at the index ``places[i]`` and None at all other indices."""
    spread = [None] * count
    for place, grad in zip(places, grads, strict=True):
        spread[place] = grad
    return tuple(spread)


def _through_identity_node(
    values: tuple[Any, ...], use: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """Return ``values`` with its tensors passed through one identity function, and the indices of these tensors.

    ``use`` is called with the graph node of the identity function, in order to register a hook at this node. If no
    tensor requires a gradient, or no operations are recorded, ``use`` is not called and the result is ``(values,
    None)``.
    """
    places = [place for place, each in enumerate(values) if isinstance(each, Tensor)]
    tensors = [values[place] for place in places]
    if not recording() or not any(each.requires_grad for each in tensors):
        return values, None
    new = BackwardHookFunction.apply(*tensors)
    use(next(each.grad_fn for each in new if each.requires_grad))
    changed = list(values)
    for place, each in zip(places, new, strict=True):
        changed[place] = each
    return tuple(changed) if type(values) is tuple else type(values)(*changed), places


def _hook_last_node(module: Any, hooks: list[Any], args: tuple[Any, ...], result: Any) -> None:
    """Register the deprecated (non-full) backward ``hooks`` of ``module`` for one call of the module.

    They are registered at the graph node that computed the first tensor of the output ``result``; if there is no such
    node, nothing is registered. A warning is issued if they will not receive all gradients of the module. ``args`` are
    the arguments of the call.
    """
    found = result
    while not isinstance(found, Tensor):
        found = (
            next(each for each in found.values() if isinstance(each, Tensor)) if isinstance(found, dict) else found[0]
        )
    node = found.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    _warn_of_old_hook(args, result, node)


def _warn_of_old_hook(args: tuple[Any, ...], result: Any, node: Any) -> None:
    """Issue a warning if a deprecated (non-full) backward hook will not receive all gradients of a module.

    The hook is registered at ``node``, the graph node of the module's output, and receives only the gradients of this
    node. ``args`` are the arguments of the module, and ``result`` is its output.
    """
    results = result if isinstance(result, tuple) else (result,)
    behind = {each.grad_fn for each in results if isinstance(each, Tensor)} - {None}
    before = {each.grad_fn for each in args if isinstance(each, Tensor)} - {None}
    if not all(isinstance(each, Tensor) for each in results):
        what, lost = "on a Module that does not return a single Tensor or a tuple of Tensors", "some of the grad_output"
    elif not all(isinstance(each, Tensor) for each in args):
        what, lost = (
            "on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "some of the grad_input",
        )
    elif len(behind) > 1:
        what, lost = "when outputs are generated by different autograd Nodes", "some grad_output"
    elif before != {each for each, _ in node.next_functions}:
        what, lost = "when the forward contains multiple autograd Nodes", "some grad_input"
    else:
        return
    which = "non-full backward hooks" if what.startswith("on") else "a non-full backward hook"
    warn(
        f"Using {which} {what} is deprecated and will be removed in future versions. This hook will be missing {lost}. "
        "Please use register_full_backward_hook to get the documented behavior.",
        FutureWarning,
    )
