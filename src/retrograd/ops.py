"""``torch.ops``: operations by name; ``torch.ops.aten`` has PyTorch's basic operations, which are those of retrograd.

``torch.ops.aten.add`` calls the function or method ``add`` of retrograd. Its overloads, such as
``torch.ops.aten.add.Tensor``, call the same function. Namespaces of libraries have no operations.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import library as _library
from . import nn as _nn
from .core.tensor import Tensor
from .dispatch.op import FUNCTIONS

#: Basic operations without a function or method of their name.
_RENAMED = {"_to_copy": "to", "_unsafe_view": "reshape", "_reshape_alias": "reshape", "alias": "detach"}


class OpOverload:
    """One overload of an operation; it calls the operation."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.namespace = packet.namespace
        self.__name__ = f"{packet.__name__}.{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Return the full name, such as ``"aten::add.Tensor"``."""
        overload = "" if self._overloadname == "default" else "." + self._overloadname
        return f"{self.namespace}::{self.overloadpacket.__name__}{overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """Operation of a namespace; its attributes are its overloads."""

    __module__ = "torch._ops"

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self.namespace, self.__name__, self._function = namespace, name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(f"'{self.namespace}.{self.__name__}' has no attribute {overload!r}")
        found = OpOverload(self, overload)
        setattr(self, overload, found)
        return found

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"


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
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        packet = OpOverloadPacket(space, name, function)
        setattr(self, name, packet)
        return packet


def _function(name: str) -> Any:
    """Return the function of retrograd for the name of a basic operation of PyTorch, or None."""
    name = _RENAMED.get(name, name)
    places = (FUNCTIONS, vars(Tensor), vars(_nn.functional))
    return next((each[name] for each in places if callable(each.get(name))), None)


aten = _OpNamespace("aten")
loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Raise OSError, because no libraries of PyTorch's operations are loaded."""
    raise OSError(f"Could not load this library: {path}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    found = _OpNamespace(name)
    setattr(sys.modules[__name__], name, found)
    return found


__all__ = ["aten", "load_library", "loaded_libraries"]
