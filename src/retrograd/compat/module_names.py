"""Names of modules that print as PyTorch's and lead to the source.

The classes of the package are shown with PyTorch's modules: ``<class 'torch.nn.modules.linear.Linear'>``. ``inspect``,
``pickle`` and editors look up ``sys.modules[cls.__module__]`` to find the source of a class, or the class itself, and there is
no such module.
"""

from __future__ import annotations

from types import ModuleType


class ModuleName(str):
    """Name of a module of PyTorch, which finds the module ``real`` of the package in ``sys.modules``.

    It is the text of PyTorch's name, and equal to both names. Its hash is that of the real name, so that a dictionary with
    the real name as a key has it. A pickle contains the real name.

    >>> import inspect
    >>> from retrograd import nn
    >>> nn.Linear.__module__, nn.Linear.__module__ == "torch.nn.modules.linear"
    ('torch.nn.modules.linear', True)
    >>> print(inspect.getsource(nn.Linear).partition("\\n")[0])
    class Linear(Module):
    """

    __slots__ = ("real",)
    real: str

    def __new__(cls, shown: str, real: str) -> ModuleName:
        name = super().__new__(cls, shown)
        name.real = real
        return name

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or self.real == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.real)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.real,)


def shown_in(shown: str, real: str) -> str:
    """Return the name ``shown`` for the ``__module__`` of a class that the module ``real`` defines."""
    return ModuleName(shown, real)


def shown_as_torch(cls: type) -> ModuleName:
    """Return the name of the module of a class as PyTorch has it, which finds the module that ``cls.__module__`` names."""
    name = cls.__module__
    real = name.real if isinstance(name, ModuleName) else name
    return ModuleName(name.replace("retrograd", "torch", 1), real)


def show_as_torch(module: ModuleType) -> None:
    """Set the ``__module__`` of each class that ``module`` defines to PyTorch's name of the module.

    For example, classes of ``retrograd.nn`` get ``torch.nn``.
    """
    shown = ModuleName(module.__name__.replace("retrograd", "torch", 1), module.__name__)
    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__:
            each.__module__ = shown


__all__ = ["ModuleName", "show_as_torch", "shown_as_torch", "shown_in"]
