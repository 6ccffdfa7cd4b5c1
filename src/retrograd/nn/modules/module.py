"""``Module``: base class of neural network modules, with parameters, buffers and child modules.

This file defines the attributes, iteration over submodules, conversion and the call of a module. Saving and loading are
in ``state.py``, and hooks are in ``hooks.py``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from inspect import get_annotations
from typing import Any, ClassVar, Self

from ...compat.lazy_imports import load_part
from ...compat.pickle_names import TorchNamed
from ...core.graph import Handle
from ...core.tensor import Tensor, preserve_format
from ...operations.creation.conversion import parse_to_arguments, typename
from ...operations.creation.factory import empty_like
from ...runtime.user_frame import warn
from ..parameter import Buffer, Parameter
from . import hooks
from .conversion import convert_parameter
from .error_notes import add_module_note
from .hooks import (
    GLOBAL_HOOKS,
    BackwardHook,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import EXTRA, IncompatibleKeys, Stateful, WrappedHook

#: Names of the hook dictionaries that every module has.
HOOKS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
#: Names of the registries; a name that is assigned in one of them is removed from the others.
REGISTRIES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class Module(Stateful, TorchNamed):
    """Base class of all modules. A subclass creates its submodules in ``__init__`` and calls them in ``forward``.

    Parameters, buffers and modules that are assigned as attributes are registered. Methods of the module such as
    :meth:`to`, :meth:`parameters` and :meth:`state_dict` include all registered tensors, also those of submodules.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> class Double(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = nn.Linear(2, 1)
    ...     def forward(self, x):
    ...         return 2 * self.layer(x)
    >>> Double()(torch.ones(3, 2)).shape
    torch.Size([3, 1])
    >>> Double()
    Double(
      (layer): Linear(in_features=2, out_features=1, bias=True)
    )
    """

    training: bool
    _is_full_backward_hook: bool | None
    call_super_init: ClassVar[bool] = False
    dump_patches: ClassVar[bool] = False
    T_destination: ClassVar[Any] = Mapping

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _is_full_backward_hook=None,
            **{name: OrderedDict() for name in HOOKS}, _modules={},
        )  # fmt: skip
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # -- call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute and return the output of the module; every subclass overrides this method."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if (
                self._backward_hooks
                or self._backward_pre_hooks
                or self._forward_hooks
                or self._forward_pre_hooks
                or _global_forward_pre_hooks
                or _global_forward_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            ):
                return hooks.call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except (RuntimeError, ValueError, IndexError, AssertionError) as error:
            add_module_note(error, _CALL, (*args, *kwargs.values()), Module.named_modules)
            raise

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        space = self.__dict__
        try:
            if (
                name in (found := space["_parameters"])
                or name in (found := space["_modules"])
                or name in (found := space["_buffers"])
            ):
                return found[name]
        except KeyError:  # before Module.__init__
            pass
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        space = self.__dict__
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                if "_parameters" not in space:
                    raise AttributeError("cannot assign parameters before Module.__init__() call")
                self._unregister(name, "_parameters")
                self.register_parameter(name, value)
                return
            if isinstance(value, Buffer) and "_buffers" not in space:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer) and name not in self._parameters and name not in self._modules:
                self._unregister(name, "_buffers")
                self._assign_buffer(name, value)
                return
        elif isinstance(value, Module):
            if "_modules" not in space:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if name not in space["_parameters"]:
                self._unregister(name, "_modules")
                space["_modules"][name] = hooks.apply_registration_hooks(
                    hooks._global_module_registration_hooks, self, name, value
                )
                return
        if "_modules" in space and (name in self._parameters or name in self._modules or name in self._buffers):
            self._replace(name, value)
        else:
            object.__setattr__(self, name, value)

    def _assign_buffer(self, name: str, buffer: Buffer) -> None:
        """Call ``register_buffer``, which a subclass may override without the argument ``persistent``."""
        persistent, register = getattr(buffer, "persistent", True), self.register_buffer
        overridden = getattr(register, "__func__", None) is not Module.register_buffer
        if overridden and "persistent" not in inspect.signature(register).parameters:
            if not persistent:
                raise RuntimeError(
                    "Registering a non-persistent buffer using a Buffer is not supported in this class, because its "
                    "register_buffer has no argument persistent. Remedy: add the argument."
                )
            register(name, buffer)
        else:
            register(name, buffer, persistent)

    def _replace(self, name: str, value: Any) -> None:
        """Assign ``value`` to the registered parameter, child module or buffer ``name``.

        A parameter or a child module can be replaced by None, and a buffer by None or a Tensor. Raises TypeError for
        any other value. ``__setattr__`` calls this method only for values that it cannot register.
        """
        space = self.__dict__
        for registry, what, expected in (
            ("_parameters", "parameter", "torch.nn.Parameter or None expected"),
            ("_modules", "child module", "torch.nn.Module or None expected"),
            ("_buffers", "buffer", "torch.nn.Buffer, torch.Tensor or None expected"),
        ):
            if name not in space[registry]:
                continue
            if value is not None and not (registry == "_buffers" and isinstance(value, Tensor)):
                raise TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({expected})")
            if registry == "_parameters":
                self.register_parameter(name, value)
            elif registry == "_modules":
                space[registry][name] = hooks.apply_registration_hooks(
                    hooks._global_module_registration_hooks, self, name, value
                )
            else:
                space[registry][name] = hooks.apply_registration_hooks(
                    hooks._global_buffer_registration_hooks, self, name, value
                )
            return

    def _unregister(self, name: str, but: str) -> None:
        """Remove the name ``name``, so that an object of another kind can be registered under this name.

        The name is deleted from the attributes of the instance and from the dictionaries of parameters, buffers and
        child modules, except from the dictionary ``but``, for example ``"_parameters"``.
        """
        space = self.__dict__
        space.pop(name, None)
        for registry in REGISTRIES:
            if registry == "_non_persistent_buffers_set":
                space[registry].discard(name)
            elif registry != but:
                space[registry].pop(name, None)

    def __delattr__(self, name: str) -> None:
        for registry in REGISTRIES[:3]:
            if name in self.__dict__[registry]:
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[0].isdigit() and name != "_repr_html_"})

    # -- registration

    def _check_name(self, name: Any, what: str, registry: str) -> None:
        """Raise an error if no object can be registered under ``name`` in the dictionary ``registry``.

        ``registry`` is the name of the dictionary, for example ``"_parameters"``. ``what`` is the kind of the object,
        for example ``"parameter"``, for error messages. Raises TypeError if ``name`` is not a string. Raises KeyError
        if ``name`` is empty, contains a dot or is the name of another attribute. Raises AttributeError if
        ``Module.__init__`` was not called.
        """
        if registry not in self.__dict__:
            if registry == "_modules":
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '_modules'")
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if registry == "_modules" and hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if registry == "_modules" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Register ``param`` as a parameter, which becomes the attribute ``name``.

        ``param`` is a Parameter, or None if the module has no such parameter. Raises KeyError if ``name`` is in use or
        contains a dot, TypeError if ``param`` is not a Parameter, and ValueError if ``param`` is not a leaf tensor.
        """
        self._check_name(name, "parameter", "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = hooks.apply_registration_hooks(hooks._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register ``tensor`` as a buffer (a tensor that is not trained), which becomes the attribute ``name``.

        ``tensor`` is a Tensor, or None if the module has no such buffer. If ``persistent`` is true, the buffer is part
        of the ``state_dict``.
        """
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = hooks.apply_registration_hooks(
            hooks._global_buffer_registration_hooks, self, name, tensor
        )
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register ``module`` as a child module, which becomes the attribute ``name``.

        ``module`` is a Module, or None if there is no such child module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, "module", "_modules")
        self._modules[name] = hooks.apply_registration_hooks(
            hooks._global_module_registration_hooks, self, name, module
        )

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of :meth:`add_module`."""
        self.add_module(name, module)

    def _hooked(self, registry: str, hook: Any, prepend: bool, *notes: OrderedDict[int, bool]) -> Handle:
        """Register ``hook`` in the dictionary of hooks ``registry``; return a handle to remove it.

        ``registry`` is the name of the attribute, for example ``"_forward_hooks"``. If ``prepend`` is true, the hook is
        called before all other hooks in the dictionary, otherwise after them. Each dictionary in ``notes`` contains the
        ids of the hooks with a certain option, such as ``always_call``; the id of ``hook`` is added to it.
        """
        handle = Handle(self.__dict__[registry], hook, *notes)
        if prepend:
            self.__dict__[registry].move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Register a hook that is called as ``hook(module, args)`` before ``forward``; return a handle to remove it.

        If the hook returns a value other than None, this value replaces ``args``. If ``prepend`` is true, the hook is
        called before the registered hooks. If ``with_kwargs`` is true, the call is ``hook(module, args, kwargs)``, and
        the hook returns None or the pair of the new ``args`` and ``kwargs``.
        """
        return self._hooked("_forward_pre_hooks", hook, prepend, *[self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Register a hook that is called as ``hook(module, args, output)`` after ``forward``.

        If the hook returns a value other than None, this value replaces ``output``. If ``prepend`` is true, the hook is
        called before the registered hooks. If ``with_kwargs`` is true, the call is ``hook(module, args, kwargs,
        output)``. If ``always_call`` is true, the hook is also called if ``forward`` raises an exception. The result is
        a handle, whose method ``remove()`` removes the hook.
        """
        notes = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return self._hooked("_forward_hooks", hook, prepend, *notes)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Register a hook that is called in the backward pass before the gradients of the module's inputs are computed.

        The call is ``hook(module, grad_output)``, with the gradients of the outputs. If the hook returns a value other
        than None, this value replaces ``grad_output``. If ``prepend`` is true, the hook is called before the registered
        hooks. The result is a handle, whose method ``remove()`` removes the hook.
        """
        return self._hooked("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Register a hook that is called in the backward pass after the gradients of the module's inputs were computed.

        The call is ``hook(module, grad_input, grad_output)``, with the gradients of the inputs and of the outputs. If
        the hook returns a value other than None, this value replaces ``grad_input``. If ``prepend`` is true, the hook
        is called before the registered hooks. The result is a handle, whose method ``remove()`` removes the hook.
        """
        return self._register_backward(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook that is called with the gradients of the last operation in the module (deprecated).

        The backward pass calls ``hook(module, grad_input, grad_output)``. These are tuples of the gradients of the
        inputs and outputs of the last operation in ``forward``, not of the module. Use
        :meth:`register_full_backward_hook` for the gradients of the module.
        """
        return self._register_backward(hook, False)

    def _register_backward(self, hook: Callable[..., Any], full: bool, prepend: bool = False) -> Handle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = full
        return self._hooked("_backward_hooks", hook, prepend)

    # -- traversal of submodules

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the pairs ``(name, module)`` of the direct child modules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the direct child modules, each module once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield the pairs ``(name, module)`` of this module and all submodules; names begin with ``prefix``.

        The name of a submodule is its path, for example ``"encoder.0"``. If ``remove_duplicate`` is true, each module
        is yielded once. ``memo`` is the set of the modules that are to be omitted, by default empty.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all submodules; if ``remove_duplicate`` is true, each module is yielded once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Helper of :meth:`named_parameters` and :meth:`named_buffers`: yield pairs ``(name, value)``.

        ``members`` is a function that returns the pairs of one module, for example its parameters. The yielded names
        begin with ``prefix`` and the path of the module, for example ``"encoder.weight"``. If ``recurse`` is true, the
        pairs of all submodules are also yielded. If ``remove_duplicate`` is true, each value is yielded once. Values
        that are None are omitted.
        """
        seen = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the pairs ``(name, parameter)`` of this module, where names begin with ``prefix``.

        If ``recurse`` is true, the parameters of all submodules are also yielded, with full names such as
        ``"encoder.weight"``. If ``remove_duplicate`` is true, each parameter is yielded once.
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters of this module and, if ``recurse`` is true, of all submodules."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the pairs ``(name, buffer)`` of this module, where names begin with ``prefix``.

        If ``recurse`` is true, the buffers of all submodules are also yielded, with full names such as
        ``"norm.running_mean"``. If ``remove_duplicate`` is true, each buffer is yielded once.
        """
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers of this module and, if ``recurse`` is true, of all submodules."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the submodule with the full name ``target``, for example ``"encoder.0"``.

        Raises AttributeError if there is no submodule with this name.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Register ``module`` as the submodule with the full name ``target``; a present submodule is replaced.

        If there is no submodule with this name, ``module`` is added, or AttributeError is raised if ``strict`` is true.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_tensor(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with the full name ``target``, for example ``"encoder.weight"``.

        Raises AttributeError if there is no parameter with this name.
        """
        _, name, found = self._get_tensor(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the full name ``target``, for example ``"norm.running_mean"``.

        Raises AttributeError if there is no buffer with this name.
        """
        module, name, found = self._get_tensor(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` with every submodule and then with this module; return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- conversion

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of each parameter, each gradient and each buffer by ``fn(tensor)``; return this module.

        The parameters remain the same objects, unless an option of ``torch.__future__`` replaces or swaps them.
        If ``recurse`` is true, the tensors of all submodules are also replaced.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                convert_parameter(self, name, param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move all parameters and buffers to a device, and convert floating-point and complex tensors to a dtype.

        The arguments are ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)`` or
        ``to(memory_format=…)``. Returns this module.
        """
        device, dtype, _, memory_format = parse_to_arguments(args, kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warn(COMPLEX)

        def convert(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            if memory_format is not preserve_format and tensor.dim() in (4, 5):
                return tensor.to(device or tensor.device, kind or tensor.dtype, memory_format=memory_format)
            return tensor.to(device or tensor.device, kind or tensor.dtype)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Allocate all parameters and buffers on ``device`` with uninitialised values; return this module.

        If ``recurse`` is true, the parameters and buffers of all submodules are also allocated.
        """
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to the dtype ``dst_type``; return this module."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floats(self, name: str) -> Self:
        return self._apply(lambda tensor: getattr(tensor, name)() if tensor.is_floating_point() else tensor)

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32; return this module."""
        return self._floats("float")

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64; return this module."""
        return self._floats("double")

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16; return this module."""
        return self._floats("half")

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16; return this module."""
        return self._floats("bfloat16")

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU; return this module."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to the GPU ``device`` (default: the current GPU); return this module."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def _replicate_for_data_parallel(self) -> Self:
        """Return a shallow copy whose parameter dictionary is empty. Replacing its tensors does not change this module."""
        replica: Any = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        replica.__dict__.update(
            _parameters={}, _buffers=self._buffers.copy(), _modules=self._modules.copy(), _is_replica=True
        )
        return replica

    def share_memory(self) -> Self:
        """Return this module unchanged, because retrograd does not share storage between processes.

        A forked process has a copy of the tensors.
        """
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Replace ``forward`` of this module by ``retrograd.compile(forward, *args, **kwargs)``."""
        object.__setattr__(self, "forward", importlib.import_module("retrograd").compile(self.forward, *args, **kwargs))

    # -- training

    def train(self, mode: bool = True) -> Self:
        """Set training mode (evaluation mode if ``mode`` is false) in this module and all submodules.

        Layers such as dropout and batch normalisation depend on the mode. Returns this module.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode in this module and all submodules; return this module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters of this module and its submodules; return this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to 0 in place if ``set_to_none`` is false."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                if parameter.grad.grad_fn is not None:
                    parameter.grad.detach_()
                else:
                    parameter.grad.requires_grad_(False)
                parameter.grad.zero_()

    # -- repr and pickling

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """Return the text that ``repr`` shows in parentheses after the class name; subclasses override this method."""
        return ""

    def __repr__(self) -> str:
        own = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if len(own) == 1 and not children:
            return f"{self._get_name()}({own[0]})"
        lines = "\n  ".join([*own, *children])
        return f"{self._get_name()}(\n  {lines}\n)" if lines else f"{self._get_name()}()"

    def _repr_html_(self) -> str | None:
        """Return a tree with numbers of parameters, which notebooks show (``inspection/notebook.py``), or None."""
        made: str | None = load_part("inspection.notebook").module_html(self)
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        for name, value in (("_non_persistent_buffers_set", set()), ("_is_full_backward_hook", None)):
            self.__dict__.setdefault(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__
        if hasattr(state.get("forward"), "_compiled"):  # copies and loaded modules are not compiled
            state = {name: value for name, value in state.items() if name != "forward"}
        return state


_CALL = Module.__call__.__code__
# ``typing.get_type_hints`` of a subclass would look for the names in the module ``torch.nn.modules.module``.
Module.__annotations__ = get_annotations(Module, eval_str=True)


class _GlobalHooks(types.ModuleType):
    """Class of this module: a dictionary of global hooks (:data:`GLOBAL_HOOKS`) may be replaced by assignment.

    Programs assign an empty dictionary to remove all hooks. ``hooks.py`` gets the new value as well.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in GLOBAL_HOOKS:
            setattr(hooks, name, value)

    @property
    def _global_is_full_backward_hook(self) -> bool | None:
        return hooks._global_is_full_backward_hook

    @_global_is_full_backward_hook.setter
    def _global_is_full_backward_hook(self, value: bool | None) -> None:
        hooks._global_is_full_backward_hook = value


for _name in GLOBAL_HOOKS:
    globals()[_name] = getattr(hooks, _name)
sys.modules[__name__].__class__ = _GlobalHooks
_WrappedHook = WrappedHook  # the name in PyTorch's checkpoints
_IncompatibleKeys, _EXTRA_STATE_KEY_SUFFIX = IncompatibleKeys, EXTRA  # names that packages import
for _name, _function in vars(Stateful).items():  # so that error messages show "Module.…"
    if isinstance(_function, types.FunctionType):
        _function.__qualname__ = f"Module.{_name}"


COMPLEX = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not work as "
    "expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as expected."
)

__all__ = [
    "BackwardHook", "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip
