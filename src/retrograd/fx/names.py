"""Names in the texts of graphs: PyTorch's names of functions and types, and unique names of values.

Text that is generated from a graph runs as Python code, in which ``torch`` is this package. A function is therefore
written with the name under which PyTorch writes it (``torch.nn.functional.relu``, ``torch._C._nn.linear``).
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import re
import sys
import types
from typing import Any

from ..compat.missing_names import torch_name
from ..core.devices import device
from ..dispatch.signatures import PREFIXES
from ..dispatch.torch_function_overrides import THROUGH, known
from ..ops import OpOverload, OpOverloadPacket
from ..utils import _pytree
from . import _pytree as fx_pytree

_package = sys.modules[__name__.partition(".")[0]]

#: Where PyTorch has those functions that it implements in C++, by the public module of the function.
_NATIVE = {"torch.nn.functional": "torch._C._nn"} | {f"torch.{part}": f"torch._C._{part}" for part in PREFIXES}


def is_from_torch(value: Any) -> bool:
    """Whether ``value`` is a function or class of the package, which generated code names by its path."""
    module = getattr(value, "__module__", None)
    if isinstance(module, str):
        return module.partition(".")[0] in ("torch", "retrograd")
    return isinstance(value, types.BuiltinFunctionType) and getattr(_package, value.__name__, None) is value


def qualified_name(function: Any) -> str:
    """Return the name by which texts of graphs refer to ``function``.

    >>> import retrograd as torch
    >>> qualified_name(torch.relu), qualified_name(torch.nn.functional.linear), qualified_name(torch.Tensor.add)
    ('torch.relu', 'torch._C._nn.linear', 'torch.Tensor.add')
    >>> import operator
    >>> qualified_name(operator.add), qualified_name(getattr)
    ('_operator.add', 'getattr')
    """
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{function.namespace}.{function.__name__}"
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return str(name)
    path, module = getattr(function, "__qualname__", name), function.__module__
    if module is None:
        raise RuntimeError(f"cannot find module for {function}")
    if module.partition(".")[0] in ("torch", "retrograd"):
        return _package_name(function, torch_name(module), name, path)
    if name == "<lambda>":
        try:
            name = inspect.getsource(function).partition("=")[0].strip()
        except OSError as error:
            raise RuntimeError("Unable to represent lambda") from error
    return f"{module}.{name}"


def _package_name(function: Any, module: str, name: str, path: str) -> str:
    """Return the name of ``function``, which the package defines in ``module`` (PyTorch's name) as ``path``."""
    if path == f"Tensor.{name}":
        return f"torch.Tensor.{name}"
    public = f"{module}.{path}".removeprefix("torch.")
    implemented, _ = known().python.get(public, ("", ""))
    native = module if public in THROUGH else _NATIVE.get(module, "torch")
    places = (implemented or native, "torch", "torch.nn.functional", "torch.nn.init")
    found = (f"{place}.{name}" for place in places if _at(f"{place}.{name}") is function)
    return next(found, f"{module}.{path}")


def _at(path: str) -> Any:
    """Return the object of the package that is called ``path``, which begins with ``torch.``, or None."""
    found: Any = _package
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def type_text(value: Any) -> str:
    """Return the text of an annotation: the name of a class with its module, and the ``repr`` of other objects."""
    if isinstance(value, type):
        return value.__qualname__ if value.__module__ == "builtins" else f"{value.__module__}.{value.__qualname__}"
    if value is ...:
        return "..."
    return value.__name__ if isinstance(value, types.FunctionType) else repr(value)


#: Objects that generated code may use without an import, and the statements that import them in a pickle.
GIVEN: dict[str, tuple[str, Any]] = {
    "inf": ("from math import inf", math.inf),
    "nan": ("from math import nan", math.nan),
    "NoneType": ("NoneType = type(None)", type(None)),
    "torch": ("import torch", _package),
    "device": ("from torch import device", device),
    "fx_pytree": ("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": ("import torch.utils._pytree as pytree", _pytree),
}
#: Names that a value must not have, with the objects that may have them.
_TAKEN: dict[str, Any] = {
    **vars(builtins), **dict.fromkeys(keyword.kwlist, object()), **{name: value for name, (_, value) in GIVEN.items()}
}  # fmt: skip
_NAME = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")


def snake_case(name: str) -> str:
    """Return ``name`` in lower case, with an underscore between a lower-case and an upper-case letter.

    >>> snake_case("pascalCase")
    'pascal_case'
    """
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Namespace:
    """Names of objects, each of which is unique and a valid name of a variable.

    >>> names = Namespace()
    >>> names.create_name("add", None), names.create_name("add", None), names.create_name("layers.0", None)
    ('add', 'add_1', 'layers_0')
    """

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._last_number: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return the name of ``obj``; at the first call, a new one that resembles ``candidate``.

        If ``obj`` is None, every call returns a new name.
        """
        if obj is not None and obj in self._names:
            return self._names[obj]
        found = _NAME.fullmatch(candidate)
        if found is None:
            candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
            found = _NAME.fullmatch(candidate)
            assert found is not None
        base, suffix = found.groups()
        number = int(suffix or 0)
        if suffix is None or candidate in self._used:
            number = self._last_number.get(base, 0)
            if _TAKEN.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used:
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._last_number[base] = number
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    def rename(self, obj: Any, name: str) -> None:
        """Set the name of ``obj`` to ``name``."""
        self._names[obj] = name
        self._used.add(name)
