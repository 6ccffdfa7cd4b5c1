"""Classes that bear PyTorch's names: they are shown as PyTorch's, and pickled by where they are."""

from __future__ import annotations

import copyreg
import importlib
from types import FunctionType, ModuleType
from typing import Any


class TorchNamed:
    """The base of such classes. Python's pickles name the package's own module of them, checkpoints PyTorch's."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = super().__reduce_ex__(protocol)
        cls = type(self)
        if cls.__module__.startswith("torch.") and reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
            place = "retrograd" + cls.__module__.removeprefix("torch")
            return (new_instance, (place, cls.__name__, *reduced[1][1:]), *reduced[2:])
        return reduced


def new_instance(place: str, name: str, *arguments: Any) -> Any:
    """A new instance of one of the package's own classes, which pickles name by where they are."""
    cls = getattr(importlib.import_module(place), name)
    return cls.__new__(cls, *arguments)


def show_as_torch(module: ModuleType) -> None:
    """Show the classes of a module by PyTorch's name for it."""
    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__:
            each.__module__ = module.__name__.replace("retrograd", "torch", 1)


def name_constructors(namespace: dict[str, Any]) -> None:
    """Give each public class of a module an ``__init__`` by its own name, where it has that of a base for inner use.

    Python names the function in its errors: of ``Conv2d(kernal_size=3)`` it shall say ``Conv2d.__init__()``.
    """
    for name in namespace["__all__"]:
        cls = namespace.get(name)
        if not isinstance(cls, type) or "__init__" in vars(cls):
            continue
        given: Any = cls.__init__  # type: ignore[misc]
        if isinstance(given, FunctionType) and given.__qualname__.partition(".")[0] not in given.__globals__["__all__"]:
            own = FunctionType(given.__code__, given.__globals__, "__init__", given.__defaults__, given.__closure__)
            own.__kwdefaults__, own.__annotations__ = given.__kwdefaults__, given.__annotations__
            own.__qualname__, own.__module__, own.__doc__ = f"{name}.__init__", given.__module__, given.__doc__
            cls.__init__ = own  # type: ignore[misc]


__all__ = ["TorchNamed", "new_instance", "name_constructors", "show_as_torch"]
