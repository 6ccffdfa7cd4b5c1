"""``Module``: a part of a network, with its parameters, its buffers and the parts that it is made of.

Attributes, the tree of modules, conversion, and the call stand here; the state in ``state.py``, hooks in ``hooks.py``.
"""

from __future__ import annotations

import importlib
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

from ...compat.pickle_names import TorchNamed
from ...core.grad_mode import no_grad
from ...core.graph import Handle
from ...core.tensor import Tensor, preserve_format
from ...operations.creation.conversion import conversion, typename
from ...operations.creation.factory import empty_like
from ...runtime.user_frame import warn
from ..parameter import Buffer, Parameter
from . import hooks
from .hooks import (
    BackwardHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import Stateful, WrappedHook

#: The dictionaries of hooks that every module has.
HOOKS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
#: Where registered things lie; what is assigned under a name is taken out of the others.
PLACES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")

_before, _after = hooks.FORWARD_BEFORE, hooks.FORWARD
_backward_before, _backward = hooks.BACKWARD_BEFORE, hooks.BACKWARD


class Module(Stateful, TorchNamed):
    """The base of all modules. A module of one's own makes its parts in ``__init__`` and uses them in ``forward``.

    Parameters, buffers and modules that are assigned as attributes are registered: they move, are trained, saved and
    shown with the module.

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

    # -- the call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _before
            or _after
            or _backward
            or _backward_before
        ):
            return hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

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
                self._forget(name, "_parameters")
                self.register_parameter(name, value)
                return
            if isinstance(value, Buffer) and "_buffers" not in space:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer) and name not in self._parameters and name not in self._modules:
                self._forget(name, "_buffers")
                self.register_buffer(name, value, getattr(value, "persistent", True))
                return
        elif isinstance(value, Module):
            if "_modules" not in space:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if name not in space["_parameters"]:
                self._forget(name, "_modules")
                space["_modules"][name] = hooks.registered(hooks.MODULE_REGISTERED, self, name, value)
                return
        if "_modules" in space and (name in self._parameters or name in self._modules or name in self._buffers):
            self._replace(name, value)
        else:
            object.__setattr__(self, name, value)

    def _replace(self, name: str, value: Any) -> None:
        """Put ``value`` in the place of what is registered under ``name``."""
        space = self.__dict__
        for place, what, expected in (
            ("_parameters", "parameter", "torch.nn.Parameter or None expected"),
            ("_modules", "child module", "torch.nn.Module or None expected"),
            ("_buffers", "buffer", "torch.nn.Buffer, torch.Tensor or None expected"),
        ):
            if name not in space[place]:
                continue
            if value is not None and not (place == "_buffers" and isinstance(value, Tensor)):
                raise TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({expected})")
            if place == "_parameters":
                self.register_parameter(name, value)
            elif place == "_modules":
                space[place][name] = hooks.registered(hooks.MODULE_REGISTERED, self, name, value)
            else:
                space[place][name] = hooks.registered(hooks.BUFFER_REGISTERED, self, name, value)
            return

    def _forget(self, name: str, but: str) -> None:
        """Take ``name`` out of all places but one, into which it is about to come."""
        space = self.__dict__
        space.pop(name, None)
        for place in PLACES:
            if place == "_non_persistent_buffers_set":
                space[place].discard(name)
            elif place != but:
                space[place].pop(name, None)

    def __delattr__(self, name: str) -> None:
        for place in PLACES[:3]:
            if name in self.__dict__[place]:
                del self.__dict__[place][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[0].isdigit()})

    # -- registering

    def _check_name(self, name: Any, what: str, place: str) -> None:
        """Refuse a name under which nothing can be registered."""
        if place not in self.__dict__:
            if place == "_modules":
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '_modules'")
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if place == "_modules" and hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if place == "_modules" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[place]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter (or None: a name without one), which is then an attribute too.

        Raises KeyError for a name that is taken or holds a dot, TypeError for what is no Parameter, ValueError for a
        tensor that was computed from others.
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
            param = hooks.registered(hooks.PARAMETER_REGISTERED, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is no parameter but belongs to the module; ``persistent``: to its state_dict too."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = hooks.registered(hooks.BUFFER_REGISTERED, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module (or None: a name without one) as a child, which is then an attribute too."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, "module", "_modules")
        self._modules[name] = hooks.registered(hooks.MODULE_REGISTERED, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    def _hooked(self, place: str, hook: Any, prepend: bool, *notes: OrderedDict[int, bool]) -> Handle:
        """Register a hook, as the first or the last of its kind."""
        handle = Handle(self.__dict__[place], hook, *notes)
        if prepend:
            self.__dict__[place].move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments.

        ``prepend``: before the hooks registered already. ``with_kwargs``: it is called with ``(module, args, kwargs)`` and
        returns a pair.
        """
        return self._hooked("_forward_pre_hooks", hook, prepend, *[self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        ``with_kwargs``: it is called with ``(module, args, kwargs, output)``. ``always_call``: also if forward fails.
        """
        notes = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return self._hooked("_forward_hooks", hook, prepend, *notes)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_output)`` in backward before this module's; what it returns replaces ``grad_output``."""
        return self._hooked("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` in backward; what it returns replaces ``grad_input``."""
        return self._register_backward(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """The old form of :meth:`register_full_backward_hook`: it sees the module's last operation only."""
        return self._register_backward(hook, False)

    def _register_backward(self, hook: Callable[..., Any], full: bool, prepend: bool = False) -> Handle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = full
        return self._hooked("_backward_hooks", hook, prepend)

    # -- the tree

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that this one is directly made of, with their names; each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules that this one is directly made of; each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their full names (this one's is ``prefix``)."""
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
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What ``members(module).items()`` gives for this module and those below it, each once, with full names."""
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
        """The parameters, with their full names; ``recurse``: also those of the modules below."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, as an optimiser takes them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers, with their full names; ``recurse``: also those of the modules below."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module of this full name. Raises AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` under this full name; ``strict``: only where there is one already."""
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
        """The parameter of this full name. Raises AttributeError if there is none."""
        _, name, found = self._get_tensor(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of this full name. Raises AttributeError if there is none."""
        module, name, found = self._get_tensor(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` with every module below this one and then with this one; returns this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- conversion

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Put ``fn(tensor)`` in the place of each parameter (which stays the same object), gradient and buffer."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is not None:
                with no_grad():
                    param.data = fn(param)
                    if param.grad is not None:
                        param.grad.data = fn(param.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move all parameters and buffers to a device, and those of floating point to a dtype; returns the module.

        ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=…)``.
        """
        device, dtype, _, memory_format = conversion(args, kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warn(COMPLEX)

        def convert(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not preserve_format and tensor.dim() in (4, 5):
                return tensor.to(device or tensor.device, kind or tensor.dtype, memory_format=memory_format)
            return tensor.to(device or tensor.device, kind or tensor.dtype)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move all parameters and buffers to a device without their numbers."""
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floats(self, name: str) -> Self:
        return self._apply(lambda tensor: getattr(tensor, name)() if tensor.is_floating_point() else tensor)

    def float(self) -> Self:
        """Convert parameters and buffers of floating point to float32."""
        return self._floats("float")

    def double(self) -> Self:
        """Convert parameters and buffers of floating point to float64."""
        return self._floats("double")

    def half(self) -> Self:
        """Convert parameters and buffers of floating point to float16."""
        return self._floats("half")

    def bfloat16(self) -> Self:
        """Convert parameters and buffers of floating point to bfloat16."""
        return self._floats("bfloat16")

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to the GPU."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def share_memory(self) -> Self:
        """Return the module: memory is not shared between processes here; children that are forked see a copy."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let the module's forward be recorded and replayed (see ``retrograd.compile``, which gets all arguments)."""
        object.__setattr__(self, "forward", importlib.import_module("retrograd").compile(self.forward, *args, **kwargs))

    # -- training

    def train(self, mode: bool = True) -> Self:
        """Set this module and all below it to training (what dropout and batch normalisation ask for)."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set this module and all below it to evaluation."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say of all parameters whether they require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take the gradients of all parameters away, or set them to zero."""
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

    # -- text and pickles

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the module's text."""
        return ""

    def __repr__(self) -> str:
        own = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if len(own) == 1 and not children:
            return f"{self._get_name()}({own[0]})"
        lines = "\n  ".join([*own, *children])
        return f"{self._get_name()}(\n  {lines}\n)" if lines else f"{self._get_name()}()"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        for name, value in (("_non_persistent_buffers_set", set()), ("_is_full_backward_hook", None)):
            self.__dict__.setdefault(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__
        if hasattr(state.get("forward"), "_compiled"):  # a copy, or what is loaded, is not compiled
            state = {name: value for name, value in state.items() if name != "forward"}
        return state


_WrappedHook = WrappedHook  # as checkpoints name it
for _name, _function in vars(Stateful).items():  # as which errors name them
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
