"""What the classes of this package share: they bear PyTorch's names, and are pickled by where they are."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..nn.modules.module import blank


class Named:
    """A class whose instances are pickled by the package's own name of it."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = super().__reduce_ex__(protocol)
        cls = type(self)
        if isinstance(reduced, tuple) and cls.__module__.startswith("torch.") and reduced[1] == (cls,):
            return (blank, ("retrograd" + cls.__module__.removeprefix("torch"), cls.__name__), *reduced[2:])
        return reduced


def show_as_torch(module: ModuleType) -> None:
    """Show the classes of a module by PyTorch's name for it."""
    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__:
            each.__module__ = module.__name__.replace("retrograd", "torch", 1)
