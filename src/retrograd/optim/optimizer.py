"""``Optimizer``: base class of all optimisers, with parameter groups, state and hooks. Users may derive from it.

The update rules are in the file of each optimiser; ``fused.py`` executes them.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from ..compat.lazy_imports import load_part, module_getattr
from ..core import dtypes
from ..core.grad_mode import restore_recording, set_recording
from ..core.graph import Handle
from ..core.tensor import Tensor
from ..dispatch.intercept import GO_ON, HANDLERS, intercept
from ..operations.creation.conversion import typename
from ..operations.creation.from_data import tensor
from ..operations.multi_tensor import zero_
from ..runtime.fp_warnings import IGNORED, errors
from ..runtime.timed_functions import profiled
from ..runtime.user_frame import MARK, warn

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


class _Required:
    """Class of the marker ``required``, the default of an option that every parameter group must specify."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Register ``hook``, which is called as ``hook(optimizer, args, kwargs)`` before every step of every optimiser.

    Return a handle that removes the hook.
    """
    return Handle(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Register ``hook``, which is called as ``hook(optimizer, args, kwargs)`` after every step of every optimiser.

    Return a handle that removes the hook.
    """
    return Handle(_post_hooks, hook)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of the method ``step`` that also calls the registered hooks before and after ``step``.

    If ``step`` of a subclass calls ``step`` of its base class, the hooks are called only once, for the subclass. NumPy's
    floating-point errors are ignored in a ``step`` of retrograd.
    """
    ignored = IGNORED if MARK in step.__globals__ else None

    @profiled(lambda self, *args, **kwargs: f"Optimizer.step#{type(self).__name__}.step")
    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if HANDLERS and (answer := intercept(wrapper, args, kwargs)) is not GO_ON:
            return answer
        self = args[0]
        # A subclass may wrap another optimiser without calling __init__; PyTorch calls no hooks for it either.
        outermost = type(self).step is wrapper and "_optimizer_step_pre_hooks" in self.__dict__
        for hook in (*_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()) if outermost else ():
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
        if self._opt_called is False:
            self._opt_called = True
        before = errors.get()
        try:
            errors.set(ignored or before)
            out = step(*args, **kwargs)
        finally:
            errors.set(before)
        for hook in (*self._optimizer_step_post_hooks.values(), *_post_hooks.values()) if outermost else ():
            hook(self, args, kwargs)
        return out

    return wrapper


class Optimizer:
    """Base class of optimisers.

    ``params`` is an iterable of Tensors, of pairs ``(name, Tensor)``, or of dicts. A dict defines a parameter group: it
    has the entry ``"params"`` and may contain options. ``defaults`` contains the default values of all options. A
    subclass passes its defaults to ``__init__`` and defines ``step``.

    >>> import retrograd as torch
    >>> class Descent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.data.sub_(p.grad, alpha=group["lr"])
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> x.square().backward()
    >>> Descent([x], lr=0.5).step()
    >>> x
    tensor([0.], requires_grad=True)
    """

    defaults: dict[str, Any]
    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _step_watched: Any = None

    #: Options missing in old pickles and checkpoints, with the values they had implicitly.
    later_options: dict[str, Any] = {}
    #: State entries that are Tensors now and were numbers in old checkpoints.
    counted: tuple[str, ...] = ()
    #: Whether a step was made since ``watch_steps()`` was called; None before that call.
    _opt_called: bool | None = None

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._without_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{typename(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _without_hooks(self) -> None:
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._without_hooks()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self.later_options.items():
                group.setdefault(name, value)
            for param in group["params"]:
                for name in self.counted if self.state.get(param) else ():
                    value = self.state[param].get(name)
                    if isinstance(value, int | float):
                        self.state[param][name] = step_counter(float(value))

    def __repr__(self) -> str:
        shown = f"{self.__class__.__name__} ("
        for index, group in enumerate(self.param_groups):
            options = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            shown += f"\nParameter Group {index}\n{''.join(options)}"
        return shown + ")"

    # -- groups

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> Any:
        """Return ``torch.utils._foreach_utils._group_tensors_by_device_and_dtype`` of the arguments."""
        return load_part("optim.private_names")._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add the parameter group ``param_group``, a dict of ``"params"`` and options.

        Options missing in ``param_group`` are set to their defaults. Raises TypeError for parameters that are not
        Tensors, and ValueError for non-leaf Tensors and for parameters that are already in a group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        listed = _as_list(param_group["params"])
        params = [each[1] if isinstance(each, tuple) else each for each in listed]
        names = [each[0] for each in listed if isinstance(each, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        for param in params:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        named = bool(names) or "param_names" in param_group
        self._check_new(params, named)
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(param)}")
        if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_new(self, params: list[Tensor], named: bool) -> None:
        if len(params) != len(set(params)):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
            )
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with names' if named else 'without names'} to the optimizer"
                )
        if not set(params).isdisjoint(parameters(self.param_groups)):
            raise ValueError("some parameters appear in more than one parameter group")

    # -- steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; return the result of ``closure``.

        ``closure``, if passed, recomputes the loss and its gradients and returns the loss.
        """
        raise NotImplementedError

    def watch_steps(self) -> None:
        """Start to record whether ``step`` is called.

        Learning rate schedulers call this method. They warn if ``scheduler.step()`` is called before
        ``optimizer.step()``.
        """
        if self._opt_called is None:
            self._opt_called = False
            self._step_watched = self.__dict__.get("step")

    def step_was_replaced(self) -> bool:
        """Whether the attribute ``step`` of this optimiser was replaced since the call of ``watch_steps()``."""
        return self.__dict__.get("step") is not self._step_watched

    @profiled(lambda self, *args, **kwargs: f"Optimizer.zero_grad#{type(self).__name__}.zero_grad")
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zero if ``set_to_none`` is false."""
        if HANDLERS and intercept(Optimizer.zero_grad, (self, set_to_none), {}) is not GO_ON:
            return
        if set_to_none:
            for param in parameters(self.param_groups):
                param._grad = None
            return
        grads = [grad for param in parameters(self.param_groups) if (grad := param.grad) is not None]
        for grad in grads:
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
        if len(grads) < 2 or not zero_(grads):
            for grad in grads:
                grad.zero_()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register ``hook``, which is called as ``hook(optimizer, args, kwargs)`` before every step of this optimiser.

        The hook may return a pair of new ``args`` and ``kwargs`` for the step. Return a handle that removes the hook.
        """
        return Handle(self._hooks("step_pre"), hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> Handle:
        """Register ``hook``, which is called as ``hook(optimizer, args, kwargs)`` after every step of this optimiser.

        Return a handle that removes the hook.
        """
        return Handle(self._hooks("step_post"), hook)

    # -- saving

    def register_state_dict_pre_hook(self, hook: Callable[[Any], None], prepend: bool = False) -> Handle:
        """Register ``hook``, which is called as ``hook(optimizer)`` at the start of :meth:`state_dict`.

        If ``prepend`` is true, the hook is called before the hooks that are registered already. Return a handle that
        removes the hook.
        """
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Register ``hook``, which is called as ``hook(optimizer, state_dict)`` at the end of :meth:`state_dict`.

        If the hook returns a value other than None, this value replaces the result of :meth:`state_dict`. If
        ``prepend`` is true, the hook is called before the hooks that are registered already. Return a handle that
        removes the hook.
        """
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Register ``hook``; :meth:`load_state_dict` first calls it as ``hook(optimizer, state_dict)``.

        If the hook returns a value other than None, this value is loaded instead of ``state_dict``. If ``prepend`` is
        true, the hook is called before the hooks that are registered already. Return a handle that removes the hook.
        """
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[[Any], None], prepend: bool = False) -> Handle:
        """Register ``hook``, which is called as ``hook(optimizer)`` at the end of :meth:`load_state_dict`.

        If ``prepend`` is true, the hook is called before the hooks that are registered already. Return a handle that
        removes the hook.
        """
        return self._register("load_state_dict_post", hook, prepend)

    def _hooks(self, kind: str) -> OrderedDict[int, Callable[..., Any]]:
        hooks: OrderedDict[int, Callable[..., Any]] = getattr(self, f"_optimizer_{kind}_hooks")
        return hooks

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool) -> Handle:
        hooks = self._hooks(kind)
        handle = Handle(hooks, hook)
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimiser as a dict with the keys ``"state"`` and ``"param_groups"``.

        ``"state"`` maps the index of each parameter to a dict of its state. ``"param_groups"`` is a list with one dict
        for each group, which has the options and, under ``"params"``, the indices of the parameters. The Tensors in the
        result are not copied: the next step modifies them in place.
        """
        for hook in self._hooks("state_dict_pre").values():
            hook(self)
        numbers: dict[int, int] = {}
        groups: list[dict[str, Any]] = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            first = sum(len(each["params"]) for each in groups)
            for index, param in enumerate(group["params"], first):
                numbers.setdefault(id(param), index)
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        packed_state: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks("state_dict_post").values():
            result = hook(self, packed_state)
            packed_state = packed_state if result is None else result
        return packed_state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state ``state_dict``, which :meth:`state_dict` returned.

        Raises ValueError, and leaves this optimiser unchanged, if ``state_dict`` has another number of groups, or of
        parameters in a group.
        """
        state_dict = state_dict.copy()
        for hook in self._hooks("load_state_dict_pre").values():
            result = hook(self, state_dict)
            state_dict = state_dict if result is None else result
        groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(own["params"]) != len(new["params"]) for own, new in zip(self.param_groups, groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owners: dict[Any, tuple[Tensor, bool]] = {}
        for own, new in zip(self.param_groups, groups, strict=True):
            counted_there = bool(new.get("fused") or new.get("capturable"))
            owners |= {number: (each, counted_there) for number, each in zip(new["params"], own["params"], strict=True)}
            new["params"] = own["params"]
            if "param_names" in own:
                new.setdefault("param_names", own["param_names"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                param, counted_there = owners[key]
                state[param] = _convert_state_value(value, param, counted_there, None)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._hooks("load_state_dict_post").values():
            hook(self)


_HOOKS = tuple(
    f"_optimizer_{kind}_hooks"
    for kind in (
        "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"
    )
)  # fmt: skip


def _as_list(params: Any) -> list[Any]:
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
            "change between runs. Please use a list instead."
        )
    return list(params)


def _convert_state_value(value: Any, param: Tensor, counted_there: bool, key: Any) -> Any:
    """Return ``value``, a part of a loaded optimiser state, converted to the device and dtype of ``param``.

    ``param`` is the parameter to which the state belongs; if it is not floating-point, only the device is converted. If
    ``value`` is a dict or another container, each element is converted. ``key`` is the key of ``value`` in its dict, or
    None if it has no key.

    The step counter has the key ``"step"``. If ``counted_there`` is true, it is converted to float32 on the device of
    ``param``. Otherwise it is returned unchanged.
    """
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=dtypes.float32, device=param.device) if counted_there else value
        return value.to(dtype=param.dtype, device=param.device) if param.is_floating_point() else value.to(param.device)
    if isinstance(value, dict):
        return {key: _convert_state_value(each, param, counted_there, key) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_convert_state_value(each, param, counted_there, None) for each in value)  # type: ignore[call-arg]
    return value


# -- Shared helpers --------------------------------------------------------------------------------------------------


def step_counter(start: float = 0.0, floats: Any = None) -> Tensor:
    """Return a 0-d Tensor with value ``start`` that counts steps.

    ``floats`` is the dtype of the result. If it is None, the result has the dtype float64 if the default dtype is
    float64, and otherwise float32, which represents all integers up to 2**24.
    """
    if floats is None:
        floats = dtypes.float64 if dtypes.get_default_dtype() is dtypes.float64 else dtypes.float32
    return tensor(start, dtype=floats)


def evaluate_closure(closure: Callable[[], Any] | None) -> Any:
    """Return the result of ``closure``, called with gradients enabled, or None if ``closure`` is None."""
    if closure is None:
        return None
    before = set_recording(True)
    try:
        return closure()
    finally:
        restore_recording(before)


def check_rate(lr: Any, words: str = "Invalid learning rate: {}") -> None:
    """Raise ValueError if the learning rate ``lr`` is negative, or a Tensor with several elements.

    ``words`` is the text of the error; ``{}`` in it is replaced by the rate.
    """
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(words.format(lr))


def check_option(name: str, value: Any) -> None:
    """Raise ValueError if ``value``, the value of the option ``name``, is outside the usual range of this option.

    The range is ``[0, 1)`` for each of the two ``betas``, ``0 < etas[0] < 1 < etas[1]`` for ``etas``, ``[0, 1]`` for
    ``rho``, and the numbers from 0 on for other options. ``"lr"`` may also be a Tensor with one element.
    """
    if name == "lr":
        check_rate(value)
    elif name == "betas":
        for index in (0, 1):
            if not 0.0 <= value[index] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {value[index]}")
    elif name == "etas":
        if not 0.0 < value[0] < 1.0 < value[1]:
            raise ValueError(f"Invalid eta values: {value[0]}, {value[1]}")
    elif not (0.0 <= value <= 1.0 if name == "rho" else value >= 0.0):
        raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def options(arguments: dict[str, Any], **before: str) -> dict[str, Any]:
    """Return a dict of the options of an optimiser, in the order in which PyTorch stores them.

    ``arguments`` are the local variables of the optimiser's constructor, that is, its arguments. The result contains
    them in order, without ``self`` and ``params``. Where the order of PyTorch differs, a keyword argument
    ``name="other"`` moves the key ``name`` to the position before the key ``other``.
    """
    names = [name for name in arguments if name not in ("self", "params", "__class__")]
    for name, follower in before.items():
        names.remove(name)
        names.insert(names.index(follower), name)
    return {name: arguments[name] for name in names}


def parameters(groups: list[dict[str, Any]]) -> Iterator[Tensor]:
    """Return an iterator over the parameters of all ``groups``, in order."""
    return chain.from_iterable(group["params"] for group in groups)


_PRIVATE = (
    "_capturable_doc", "_default_to_fused_or_foreach", "_differentiable_doc", "_disable_dynamo_if_unsupported",
    "_foreach_doc", "_fused_doc", "_get_capturable_supported_devices", "_get_scalar_dtype", "_get_value", "_maximize_doc",
    "_params_doc", "_stack_if_compiling", "_to_scalar", "_use_grad_for_differentiable", "_view_as_real",
)  # fmt: skip
__getattr__ = module_getattr(__name__, dict.fromkeys(_PRIVATE, ".private_names"))
__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]
