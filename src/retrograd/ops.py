"""``torch.ops``: operations by name; ``torch.ops.aten`` has PyTorch's basic operations, which are those of retrograd.

``torch.ops.aten.add`` calls the function or method ``add`` of retrograd. Its overloads, such as
``torch.ops.aten.add.Tensor``, call the same function. Namespaces of libraries have no operations.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from . import libraries as _libraries
from . import library as _library
from . import nn as _nn
from .compat.lazy_imports import load_part as _load_part
from .core.tensor import Tensor
from .core.torch_function import GO_ON as _GO_ON
from .core.torch_function import overriding_arguments as _overriding_arguments
from .dispatch.op import FUNCTIONS
from .operations import foreach as _foreach

#: Basic operations that are functions or methods of another name here.
_RENAMED = {
    "_to_copy": "to", "_unsafe_view": "reshape", "_reshape_alias": "reshape", "alias": "detach",
    "_local_scalar_dense": "item", "_pin_memory": "pin_memory", "_conj": "conj", "_is_all_true": "all",
    "_is_any_true": "any", "_sparse_addmm": "addmm", "sym_numel": "numel",
}  # fmt: skip

# Basic operations that have no function or method with these arguments.


def _slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Return ``self[start:end:step]`` along the dimension ``dim``."""
    dim = dim + self.dim() if dim < 0 else dim
    return self[(*[slice(None)] * dim, slice(start, end, step))]


def _index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Return ``self`` at the tensors ``indices``, one for each dimension; None takes the whole dimension."""
    return self[tuple(slice(None) if each is None else each for each in indices)]


def _index_put_impl_(
    self: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Write ``values`` to ``self`` at the tensors ``indices``."""
    return self.index_put_(indices, values, accumulate)


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Return ``src`` with the shape and the dtype of ``self``."""
    return src.to(self.dtype).expand_as(self).clone()


def _sym_size(self: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of one dimension."""
    return list(self.shape) if dim is None else self.shape[dim]


def _sym_stride(self: Tensor, dim: int | None = None) -> Any:
    """Return the strides, or the stride of one dimension."""
    return list(self.stride()) if dim is None else self.stride(dim)


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return ``softmax`` along ``dim``, of float16 numbers in float32 if ``half_to_float``."""
    return (self.float() if half_to_float else self).softmax(dim)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return ``log_softmax`` along ``dim``, of float16 numbers in float32 if ``half_to_float``."""
    return (self.float() if half_to_float else self).log_softmax(dim)


def _convolution(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int, *settings: bool) -> Tensor:  # fmt: skip
    """Return ``convolution``; the settings of libraries, which PyTorch's operation has too, have no effect."""
    convolution = FUNCTIONS["convolution"]
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _lift_fresh(self: Tensor) -> Tensor:
    """Return ``self``."""
    return self


_OWN = {
    "lift_fresh": _lift_fresh,
    "slice": _slice, "index": _index, "_index_put_impl_": _index_put_impl_, "copy": _copy, "sym_size": _sym_size,
    "sym_stride": _sym_stride, "_softmax": _softmax, "_log_softmax": _log_softmax, "_convolution": _convolution,
}  # fmt: skip


#: The function that passes calls to modes and classes with ``__torch_dispatch__``, once there are any.
executors: list[Any] = []


def _call(operation: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(*args, **kwargs)``, or what ``__torch_function__`` of an argument returns for ``operation``."""
    if executors and (answer := executors[0](operation, args, kwargs)) is not _GO_ON:
        return answer
    others = _overriding_arguments((*args, *kwargs.values()), Tensor)
    if others and not any(isinstance(each, Tensor) for each in others):
        return _load_part("overrides").handle_torch_function(operation, others, *args, **kwargs)
    return function(*args, **kwargs)


class OpOverload:
    """One overload of an operation; it calls the operation."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.namespace = packet.namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self._overloadpacket, self._opname = packet, packet.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self.overloadpacket._function, args, kwargs)

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return getattr, (self.overloadpacket, self._overloadname)

    def name(self) -> str:
        """Return the full name, such as ``"aten::add.Tensor"``."""
        overload = "" if self._overloadname == "default" else "." + self._overloadname
        return f"{self.namespace}::{self.overloadpacket.__name__}{overload}"

    @property
    def _schema(self) -> SimpleNamespace:
        """The name and the overload; ``is_mutable`` is true for operations that overwrite their first operand."""
        written = self._opname.endswith("_") and not self._opname.endswith("__")
        full = f"{self.namespace}::{self._opname}"
        overload = "" if self._overloadname == "default" else self._overloadname
        return SimpleNamespace(name=full, overload_name=overload, is_mutable=written)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """Operation of a namespace; its attributes are its overloads."""

    __module__ = "torch._ops"

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self.namespace, self.__name__, self._function = namespace, name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self._function, args, kwargs)

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _packet, (self.namespace, self.__name__)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__") or "namespace" not in vars(self):
            raise AttributeError(f"'{self.namespace}.{self.__name__}' has no attribute {overload!r}")
        found = OpOverload(self, overload)
        setattr(self, overload, found)
        return found

    @property
    def _qualified_op_name(self) -> str:
        """The full name, such as ``"aten::add"``."""
        return f"{self.namespace}::{self.__name__}"

    def overloads(self) -> list[str]:
        """Return the names of the overloads that were used."""
        return [key for key, value in vars(self).items() if isinstance(value, OpOverload)] or ["default"]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"


def _packet(namespace: str, name: str) -> Any:
    """Return ``torch.ops.<namespace>.<name>``; pickles of operations contain this function."""
    return getattr(getattr(sys.modules[__name__], namespace), name)


class _OpNamespace(ModuleType):
    """Namespace of operations, such as ``torch.ops.aten``."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.__file__ = "torch.ops"

    def __getattr__(self, name: str) -> Any:
        space = self.__name__.rpartition(".")[2]
        function = None
        if not name.startswith("__"):
            function = _function(name) if space == "aten" else _library._OPERATIONS.get(f"{space}::{name}")
        if function is None and space == "aten" and name in _names_without_function():
            function = _refusing(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        return self._add(name, function)

    def _add(self, name: str, function: Any) -> OpOverloadPacket:
        """Add the operation ``name``, which calls ``function``."""
        packet = OpOverloadPacket(self.__name__.rpartition(".")[2], name, function)
        setattr(self, name, packet)
        return packet


@functools.cache
def _names_without_function() -> frozenset[str]:
    """Return the names of PyTorch's basic operations that are no functions here; tables of handlers contain them."""
    with open(os.path.join(os.path.dirname(__file__), "python_dispatch", "aten_names.txt"), encoding="utf-8") as file:
        return frozenset(file.read().split())


def _refusing(name: str) -> Any:
    """Return a function that raises the error for the basic operation ``name``."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.ops.aten.{name} is not implemented. Remedy: call the public function of torch that contains it."
        )

    return refuse


def _function(name: str) -> Any:
    """Return the function of retrograd for the name of a basic operation of PyTorch, or None."""
    if name.startswith("_foreach_") and name in _foreach.NAMES:
        return getattr(_foreach, name)
    space, _, rest = name.partition("_")
    if space in ("linalg", "fft", "special") and rest in (module := _load_part(space)).__all__:
        return getattr(module, rest)
    name = _RENAMED.get(name, name)
    places = (_OWN, _PUBLIC, FUNCTIONS, vars(Tensor), vars(_nn.functional))
    return next((each[name] for each in places if callable(each.get(name))), None)


#: The functions of ``torch`` that are operations, which take sparse tensors and subclasses too.
_PUBLIC = {name: value for name, value in vars(sys.modules[__package__]).items() if name in FUNCTIONS}

aten = _OpNamespace("aten")
loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Load the operators of a compiled library that ``libraries`` implements; otherwise raise OSError."""
    if not _libraries.load(str(path)):
        raise OSError(f"Could not load this library: {path}")
    loaded_libraries.add(str(path))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    found = _OpNamespace(name)
    setattr(sys.modules[__name__], name, found)
    return found


__all__ = ["aten", "load_library", "loaded_libraries"]
