"""Names in pickles: permanent names of functions that rebuild objects, and PyTorch's names of classes.

A pickle refers to a function or class by the names of its module and of the object. Pickles of tensors, dtypes and
other objects contain the names of functions that rebuild these objects. So that these pickles can be read after a
function has moved to another module, they contain permanent names in the module ``retrograd._rebuild``.
"""

from __future__ import annotations

import copyreg
import importlib
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ..runtime import codegen, user_frame

Function = TypeVar("Function", bound=Callable[..., Any])

#: Objects named in pickles of earlier versions, by module, and the names in the package under which they are now.
FORMER_NAMES = {
    "ops.cast": {"rebuild": "_rebuild.tensor"},
    "ops.named": {"rebuild": "_rebuild.return_type"},
    "ops.random": {"_generator": "_rebuild.generator"},
    "core.borrowed": {"blank": "_rebuild.instance"},
    "core.tree": {"TreeSpec": "utils._pytree.TreeSpec", "LeafSpec": "utils._pytree.LeafSpec"},
}


def pickled_as(name: str) -> Callable[[Function], Function]:
    """Return a decorator that makes pickles refer to the decorated function as ``retrograd._rebuild.<name>``."""

    def rename(function: Function) -> Function:
        function.__module__, function.__qualname__ = "retrograd._rebuild", name
        return function

    return rename


def add_former_modules(package: str) -> None:
    """Add the modules of :data:`FORMER_NAMES` to ``sys.modules``, where ``pickle`` looks for them.

    These modules existed in earlier versions, whose pickles contain their names. ``package`` is the name of the
    package. The modules do not become attributes of the package, because PyTorch uses some of the names for other
    modules (``torch.ops``).
    """
    for module_name, names in FORMER_NAMES.items():
        module = ModuleType(f"{package}.{module_name}", "Names in pickles of earlier versions.")
        module.__spec__ = ModuleSpec(module.__name__, None)
        module.__getattr__ = partial(_object, package, names)  # type: ignore[method-assign]
        vars(module)[user_frame.MARK] = True
        sys.modules[module.__name__] = module


def _object(package: str, names: dict[str, str], name: str) -> Any:
    """Return the object that pickles of earlier versions call ``name`` (``__getattr__`` of a former module).

    ``names`` maps the former names to the present names of the objects in ``package``. Raises AttributeError for a name
    that is not in ``names``.
    """
    if name not in names:
        raise AttributeError(f"no object of this module has been pickled as {name!r}")
    module, _, last = names[name].rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), last)


class TorchNamed:
    """Base class of classes of retrograd whose ``__module__`` is a PyTorch module, such as ``torch.nn``.

    A pickle of an instance contains the name of retrograd's module instead, so that Python can import the class. A
    checkpoint (``torch.save``) contains PyTorch's name.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = super().__reduce_ex__(protocol)
        cls = type(self)
        if cls.__module__.startswith("torch.") and reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
            module = "retrograd" + cls.__module__.removeprefix("torch")
            return (new_instance, (module, cls.__name__, *reduced[1][1:]), *reduced[2:])
        return reduced


@pickled_as("instance")
def new_instance(module: str, name: str, *arguments: Any) -> Any:
    """Return a new instance of the class ``name`` of the module ``module``, without calling ``__init__``.

    ``arguments`` are passed to the ``__new__`` of the class. Pickles call this function.
    """
    cls = getattr(importlib.import_module(module), name)
    return cls.__new__(cls, *arguments)


def name_constructors(namespace: dict[str, Any]) -> None:
    """Give each public class that inherits ``__init__`` from an internal class a copy of this method.

    The copy is named after the public class. Python shows this name in errors: for ``Conv2d(kernal_size=3)`` the error
    must name ``Conv2d.__init__()``. ``namespace`` is the namespace of the module that defines the classes.
    """
    for name in namespace["__all__"]:
        cls = namespace.get(name)
        if not isinstance(cls, type) or "__init__" in vars(cls):
            continue
        base: Any = cls.__init__  # type: ignore[misc]
        if isinstance(base, FunctionType) and base.__qualname__.partition(".")[0] not in base.__globals__["__all__"]:
            cls.__init__ = codegen.renamed(base, "__init__", f"{name}.__init__")  # type: ignore[misc]


__all__ = ["TorchNamed", "add_former_modules", "name_constructors", "new_instance", "pickled_as"]
