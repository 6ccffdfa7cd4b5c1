"""Classes that bear PyTorch's names: they are shown as PyTorch's, and pickled by where they are."""

from __future__ import annotations

import copyreg
import importlib
from types import ModuleType
from typing import Any


class Borrowed:
    """The base of such classes. Python's pickles name the package's own module of them, checkpoints PyTorch's."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = super().__reduce_ex__(protocol)
        cls = type(self)
        if cls.__module__.startswith("torch.") and reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
            place = "retrograd" + cls.__module__.removeprefix("torch")
            return (blank, (place, cls.__name__, *reduced[1][1:]), *reduced[2:])
        return reduced


def blank(place: str, name: str, *arguments: Any) -> Any:
    """A new instance of one of the package's own classes, which pickles name by where they are."""
    cls = getattr(importlib.import_module(place), name)
    return cls.__new__(cls, *arguments)


def show_as_torch(module: ModuleType) -> None:
    """Show the classes of a module by PyTorch's name for it."""
    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__:
            each.__module__ = module.__name__.replace("retrograd", "torch", 1)


__all__ = ["Borrowed", "blank", "show_as_torch"]
