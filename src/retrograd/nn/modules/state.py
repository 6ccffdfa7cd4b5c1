"""``state_dict`` and ``load_state_dict`` of modules: saving and loading parameters and persistent buffers by name."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...compat.pickle_names import TorchNamed
from ...core.grad_mode import no_grad
from ...core.graph import Handle
from ...core.tensor import Tensor
from ...runtime.user_frame import warn
from ..parameter import Parameter, is_lazy
from . import conversion

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Named tuple that ``load_state_dict`` returns: the lists of the missing keys and of the unexpected keys."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


IncompatibleKeys.__name__ = IncompatibleKeys.__qualname__ = "_IncompatibleKeys"


class WrappedHook(TorchNamed):
    """Callable that calls ``hook(*args)`` or, if ``module`` is not None, ``hook(module, *args)``.

    ``hook`` is a hook of ``load_state_dict``. The reference to ``module`` is weak, which avoids a reference cycle:
    ``module`` stores the WrappedHook in its dictionary of hooks. A call raises RuntimeError if ``module`` no longer
    exists.
    """

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if self.with_module:
            self.module: weakref.ref[Any] = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        found: dict[str, Any] = {"hook": self.hook, "with_module": self.with_module}
        return {**found, "module": self.module()} if self.with_module else found

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["with_module"] and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            self.module = weakref.ref(state["module"])


WrappedHook.__name__ = WrappedHook.__qualname__ = "_WrappedHook"
WrappedHook.__module__ = "torch.nn.modules.module"


class Stateful:
    """Base class of Module that defines ``state_dict``, ``load_state_dict`` and the registration of their hooks."""

    _version: int = 1  # version of the class's state format, stored in the metadata of a state_dict
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    # -- hooks

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook that :meth:`state_dict` calls at its end.

        The call is ``hook(module, state_dict, prefix, local_metadata)``. If the hook returns a value other than None,
        this value replaces ``state_dict``.
        """
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return Handle(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> Handle:
        """Register a hook that :meth:`state_dict` calls at its end.

        The call is ``hook(module, state_dict, prefix, local_metadata)``. The hook may change ``state_dict`` in place,
        and must return None.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return Handle(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> Handle:
        """Register a hook that :meth:`state_dict` calls at its beginning: ``hook(module, prefix, keep_vars)``."""
        return Handle(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., None], with_module: bool = False) -> Handle:
        return Handle(self._load_state_dict_pre_hooks, WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> Handle:
        """Register a hook that is called before the state of this module is loaded.

        The arguments of ``hook`` are ``(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> Handle:
        """Register a hook that is called after the state of this module is loaded: ``hook(module, incompatible_keys)``.

        The hook may change the lists ``incompatible_keys.missing_keys`` and ``incompatible_keys.unexpected_keys`` in
        place.
        """
        return Handle(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self) -> Any:
        """Return additional state that is saved in the ``state_dict``.

        A subclass with additional state overrides this method and :meth:`set_extra_state`.
        """
        raise _unreachable_error("get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the additional state ``state``, a value that :meth:`get_extra_state` returned."""
        raise _unreachable_error("set_extra_state")

    # -- saving

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return an ordered dictionary of the parameters and persistent buffers of this module and all submodules.

        The keys are the full names of the tensors, which begin with ``prefix``. The values share storage with the
        tensors of the module. If ``keep_vars`` is false, the values are detached from the graph. If ``destination`` is
        a dictionary, the items are added to this dictionary, which is returned.

        >>> from retrograd import nn
        >>> list(nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given["destination"] if destination is None else destination
            prefix = given.get("prefix", prefix) if prefix == "" else prefix
            keep_vars = given.get("keep_vars", keep_vars) if keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            found = hook(self, destination, prefix, metadata)
            if found is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = found
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add the parameters and persistent buffers of this module to ``destination``, without those of child modules.

        The keys are the names, with ``prefix`` prepended. If ``keep_vars`` is false, the tensors are detached from the
        graph.
        """
        for name, tensor in self._own_state().items():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> dict[str, Any]:
        """Return a dictionary of the parameters and persistent buffers of this module, without its child modules."""
        volatile = self._non_persistent_buffers_set
        return {**self._parameters, **{key: each for key, each in self._buffers.items() if key not in volatile}}

    # -- loading

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy parameters and buffers from ``state_dict`` into this module and all submodules.

        If ``assign`` is true, the tensors in ``state_dict`` become the tensors of the module and are not copied.
        Returns a named tuple of the missing keys and the unexpected keys. If ``strict`` is true, RuntimeError is raised
        if there are such keys. RuntimeError is also raised if a tensor has another shape than in the module. All
        matching items are loaded before the error is raised.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]
        _load(self, state_dict, metadata, "", strict, assign, (missing, unexpected, errors))
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    shown = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {shown}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load the parameters and buffers of this module from ``state_dict``, without those of child modules.

        The key of a tensor is its name, with ``prefix`` prepended. Missing keys, unexpected keys and error messages are
        appended to the lists ``missing_keys``, ``unexpected_keys`` and ``error_msgs``.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        state = {name: own for name, own in self._own_state().items() if own is not None}
        for name, own in state.items():
            key = prefix + name
            if key in state_dict:
                problem = _load_tensor(self, name, own, key, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if prefix + EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                missing_keys.append(prefix + EXTRA)
        elif strict and prefix + EXTRA in state_dict:
            unexpected_keys.append(prefix + EXTRA)
        if strict:
            for key in state_dict:
                first, _, rest = key[len(prefix) :].partition(".")
                known = first in self._modules if rest else first in state or first == EXTRA
                if key.startswith(prefix) and not known:
                    unexpected_keys.append(key)


def _load(
    module: Any, state: Any, metadata: Any, prefix: str, strict: bool, assign: bool, found: tuple[list[str], ...]
) -> None:
    """Load ``state``, a result of ``state_dict``, into ``module`` and recursively into all submodules.

    ``metadata`` is the attribute ``_metadata`` of the state, or None. ``prefix`` is the path of ``module``, for example
    ``"encoder."``. ``found`` is a tuple of three lists, to which missing keys, unexpected keys and error messages are
    appended.
    """
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, local, True, *found)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = OrderedDict((key, value) for key, value in state.items() if key.startswith(below))
            _load(child, part, metadata, below, strict, assign, found)
    keys = IncompatibleKeys(found[0], found[1])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                "incompatible_keys need to be modified, it should be done inplace."
            )


def _load_tensor(module: Any, name: str, own: Any, key: str, value: Any, assign: bool) -> str | None:
    """Load ``value``, a value of a state dict, into ``own``, the parameter or buffer ``name`` of ``module``.

    If ``assign`` is false, the elements of ``value`` are copied into ``own``. If ``assign`` is true, ``own`` is
    replaced by ``value`` without a copy. If ``value`` cannot be loaded, the result is an error message, otherwise
    None. ``key`` is the full name of ``own`` for this message.
    """
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
            f"received {type(value)}"
        )
    if not is_lazy(own):
        if not own.ndim and len(value.shape) == 1 and not assign:
            value = value[0]
        if value.shape != own.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
                f"model is {own.shape}."
            )
    if own.is_meta and not value.is_meta and not assign and not is_lazy(own):
        warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
            "corresponding key in the module instead of copying them in place?)"
        )
    try:
        with no_grad():
            if conversion.swap_parameters:
                conversion.swap_loaded(own, value, assign)
            elif assign:
                if isinstance(own, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=own.requires_grad)
                    else:
                        value.requires_grad_(own.requires_grad)
                setattr(module, name, value)
            else:
                own.copy_(value)
    except Exception as error:
        action = "swapping" if conversion.swap_parameters else "copying"
        return (
            f'While {action} the parameter named "{key}", whose dimensions in the model are {own.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
    return None


def _unreachable_error(name: str) -> RuntimeError:
    return RuntimeError(
        f"Reached a code path in Module.{name}() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )
