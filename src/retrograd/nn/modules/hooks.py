"""Hooks of modules: the registries that hold for every module, and a call of a module that has any hook.

A module without hooks never comes here: see ``Module.__call__``.
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

#: Hooks of all modules, by kind; the names say when they are called.
FORWARD_BEFORE: Hooks = OrderedDict()
FORWARD: Hooks = OrderedDict()
FORWARD_WITH_KWARGS: OrderedDict[int, bool] = OrderedDict()
FORWARD_ALWAYS: OrderedDict[int, bool] = OrderedDict()
BACKWARD_BEFORE: Hooks = OrderedDict()
BACKWARD: Hooks = OrderedDict()
BUFFER_REGISTERED: Hooks = OrderedDict()
MODULE_REGISTERED: Hooks = OrderedDict()
PARAMETER_REGISTERED: Hooks = OrderedDict()
#: Whether the hooks in BACKWARD are full ones (True) or of the old kind (False); None if there never was one.
backward_is_full: bool | None = None


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, args)`` before the forward of every module; what it returns replaces the arguments."""
    return Handle(FORWARD_BEFORE, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> Handle:
    """Call ``hook(module, args, output)`` after the forward of every module; what it returns replaces the output.

    ``with_kwargs``: the hook is called with ``(module, args, kwargs, output)``. ``always_call``: also if forward fails.
    """
    return Handle(FORWARD, hook, *[FORWARD_WITH_KWARGS] * with_kwargs, *[FORWARD_ALWAYS] * always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, grad_output)`` in backward, before the gradients of every module's inputs are computed."""
    return Handle(BACKWARD_BEFORE, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of every module's inputs have been computed."""
    return _register_backward(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> Handle:
    """The old form of :func:`register_module_full_backward_hook`: it sees the last operation of a module only."""
    return _register_backward(hook, False)


def _register_backward(hook: Callable[..., Any], full: bool) -> Handle:
    global backward_is_full
    if backward_is_full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one "
            "of them."
        )
    backward_is_full = full
    return Handle(BACKWARD, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; what it returns is registered in its place."""
    return Handle(BUFFER_REGISTERED, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, submodule)`` when a module is registered; what it returns is registered in its place."""
    return Handle(MODULE_REGISTERED, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(module, name, param)`` when a parameter is registered; what it returns is registered in its place."""
    return Handle(PARAMETER_REGISTERED, hook)


def registered(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """What is to be registered once the hooks have seen ``value``."""
    for hook in hooks.values():
        found = hook(module, name, value)
        if found is not None:
            value = found
    return value


# -- A call with hooks -----------------------------------------------------------------------------------------------


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``module.forward`` with all hooks around it."""
    run = _Run()
    try:
        return _call(module, args, kwargs, run)
    except Exception:
        _call_always(module, args, kwargs, run)
        raise


class _Run:
    """How far a call has come: its result so far, and which of the hooks that are always called have been."""

    def __init__(self) -> None:
        self.result: Any = None
        self.called: set[int] = set()


def _call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
    args, kwargs = _before(module, args, kwargs)
    own, old = _backward_hooks(module)
    before = [*BACKWARD_BEFORE.values(), *module._backward_pre_hooks.values()]
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
    """What the hooks before forward make of the arguments."""
    for number, hook in (*FORWARD_BEFORE.items(), *module._forward_pre_hooks.items()):
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
    """The number of each hook after forward, the hook, whether it takes kwargs and whether it is always called."""
    for hooks, with_kwargs, always in (
        (FORWARD, FORWARD_WITH_KWARGS, FORWARD_ALWAYS),
        (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
    ):
        for number, hook in list(hooks.items()):
            yield number, hook, number in with_kwargs, number in always


def _call_always(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> None:
    """After an error: call those hooks that are to be called even then, and have not been."""
    for number, hook, with_kwargs, always in _forward_hooks(module):
        if not always or number in run.called:
            continue
        try:
            hook(module, args, kwargs, run.result) if with_kwargs else hook(module, args, run.result)
        except Exception as error:
            whose = "global module" if number in FORWARD else "module"
            warn(
                f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another error "
                f"was raised in forward: {error}",
            )


# -- Backward --------------------------------------------------------------------------------------------------------


def _backward_hooks(module: Any) -> tuple[list[Any], list[Any]]:
    """The full backward hooks that a call sets up, and those of the old kind."""
    full: list[Any] = []
    old: list[Any] = []
    if backward_is_full is not None:
        (full if backward_is_full else old).extend(BACKWARD.values())
    if module._is_full_backward_hook is not None:
        (full if module._is_full_backward_hook else old).extend(module._backward_hooks.values())
    return full, old


class BackwardHookFunction(Function):
    """Gives tensors on as they are: a node of the graph at which hooks can be registered."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[each for each in args if not each.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """The nodes around one call of a module, and what happens when a backward pass comes by.

    The node behind the results keeps their gradients until the node before the arguments has its own; then the
    module's hooks are called with both.
    """

    def __init__(self, module: Any, hooks: list[Any], before: list[Any]) -> None:
        self.module, self.hooks, self.before = module, hooks, before
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None
        self.n_inputs = self.n_outputs = -1

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, behind a node of the graph if any of them requires a gradient."""
        self.n_inputs = len(args)
        args, self.inputs = _behind_node(args, lambda node: node.register_hook(self._inputs_reached))
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """The results, behind a node of the graph if any of them requires a gradient."""
        several = isinstance(result, tuple)
        results = result if several else (result,)
        self.n_outputs = len(results)
        results, self.outputs = _behind_node(results, lambda node: node.register_hook(self._outputs_reached))
        return results if several else results[0]

    def _outputs_reached(self, _: Any, grads: tuple[Any, ...]) -> Any:
        given = _spread(self.outputs or [], grads, self.n_outputs)
        for hook in self.before:
            found = hook(self.module, given)
            if found is not None:
                found = found if isinstance(found, tuple) else (found,)
                _check_count("Backward pre hook", "grad_output", found, given)
                given = found
        if self.inputs is None:
            self._without_inputs(given)
        else:
            self.grad_outputs = given
        return tuple(given[index] for index in self.outputs or [])

    def _without_inputs(self, given: tuple[Any, ...]) -> None:
        """Nothing flows to the arguments: the hooks are called at once."""
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
        if self.grad_outputs is None:  # the gradient came by another way than the module's results
            return None
        given = _spread(self.inputs or [], grads, self.n_inputs)
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


def _spread(places: list[int], grads: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Gradients at the places of the tensors, None elsewhere."""
    spread = [None] * count
    for place, grad in zip(places, grads, strict=True):
        spread[place] = grad
    return tuple(spread)


def _behind_node(values: tuple[Any, ...], use: Callable[[Any], Any]) -> tuple[tuple[Any, ...], list[int] | None]:
    """``values`` with the tensors among them behind a node, which ``use`` gets; and where these stand.

    If no gradient is required, the values themselves and None.
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
    return tuple(changed), places


def _hook_last_node(module: Any, hooks: list[Any], args: tuple[Any, ...], result: Any) -> None:
    """Register hooks of the old kind at the node of the (first) result."""
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
    """Say what a hook of the old kind does not see."""
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
