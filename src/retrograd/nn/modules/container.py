"""Containers: Sequential, ModuleList and ModuleDict of modules, ParameterList and ParameterDict of parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import index as as_index
from typing import Any, Self, overload

from ...core.tensor import Tensor
from ...operations.creation.conversion import typename
from ..parameter import Parameter
from .module import Module


class _IndexedContainer(Module):
    """Base class of Sequential and ModuleList, which register their modules under the names ``"0"``, ``"1"``, …"""

    def _place(self, index: Any) -> int:
        """Return ``index`` as a non-negative index: a negative ``index`` counts from the end, as for a list.

        Raises IndexError if ``index`` is out of range.
        """
        size, index = len(self), as_index(index)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return index % size

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(place): module for place, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_IndexedContainer):
    """Sequence of modules; the output of each module is the input of the next module.

    The arguments are modules, or a single OrderedDict that maps names to modules.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))(torch.ones(5, 2)).shape
    torch.Size([5, 1])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named: Any = args[0] if len(args) == 1 and isinstance(args[0], OrderedDict) else None
        if named is None:
            named = {str(place): module for place, module in enumerate(args)}
        for name, module in named.items():
            self.add_module(name, module)

    def _name(self, index: Any) -> str:
        return next(islice(self._modules, self._place(index), None))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for name in list(self._modules)[idx]:
                delattr(self, name)
        else:
            delattr(self, self._name(idx))
        self._renumber(list(self._modules.values()))

    def __add__(self, other: Any) -> Sequential:
        _check_sequential(other, "add")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        _check_sequential(other, "add")
        for module in list(other):
            self.append(module)
        return self

    def __mul__(self, other: int) -> Sequential:
        _check_times(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        _check_times(other)
        for module in list(self) * (other - 1):
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Remove and return the module at the index ``key``, or the modules of the slice ``key``."""
        result = self[key]
        del self[key]
        return result

    def append(self, module: Module) -> Self:
        """Append ``module`` and return this container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert ``module`` before the module at ``index`` and return this container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Append the modules in ``sequential`` and return this container."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input: Any) -> Any:
        """Call the modules in order and return the output of the last module.

        The first module is called with ``input``, and each following module with the output of the previous module.
        """
        for module in self._modules.values():
            input = module(input)
        return input


def _check_sequential(other: Any, what: str) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(f"{what} operator supports only objects of Sequential class, but {type(other)} is given.")


def _check_times(other: Any) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {Sequential}")


class ModuleList(_IndexedContainer):
    """List of modules that are registered as child modules. The ModuleList itself cannot be called.

    >>> from retrograd import nn
    >>> nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(list(self)[idx])
        return self._modules[str(self._place(idx))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(self._place(idx)), module)

    def __delitem__(self, idx: Any) -> None:
        modules = list(self)
        del modules[idx if isinstance(idx, slice) else self._place(idx)]
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Insert ``module`` before the module at ``index``."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Append ``module`` and return this list."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Remove and return the module at the index ``key``, or the modules of the slice ``key``."""
        result = self[key]
        del self[key]
        return result

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append the modules in ``modules`` and return this list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for offset, module in enumerate(modules, len(self)):
            self.add_module(str(offset), module)
        return self

    def __repr__(self) -> str:
        """Return the text of the list; consecutive modules with equal text are shown once, with their count."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines: list[str] = []
        start = 0
        for place in range(1, len(texts) + 1):
            if place < len(texts) and texts[place] == texts[start]:
                continue
            many = place - start > 1
            name, times = (f"{start}-{place - 1}", f"{place - start} x ") if many else (str(start), "")
            lines.append(f"({name}): {times}{texts[start]}".replace("\n", "\n  "))
            start = place
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Dictionary of modules that are registered as child modules. The ModuleDict itself cannot be called.

    >>> from retrograd import nn
    >>> choices = nn.ModuleDict({"relu": nn.ReLU()})
    >>> choices["tanh"] = nn.Tanh()
    >>> list(choices)
    ['relu', 'tanh']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module with the name ``key`` and return this module."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """Return the names of the modules."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return the pairs ``(name, module)``."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules in order of insertion."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules in ``modules``, a dictionary or an iterable of pairs ``(name, module)``."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(given: Any, who: str) -> list[tuple[Any, Any]]:
    """Return a list of the pairs ``(key, value)`` in ``given``, a dictionary or an iterable of pairs.

    If ``given`` is a plain dict and ``who`` is ``"ParameterDict"``, the pairs are sorted by key, as in PyTorch.
    Otherwise they have the order of ``given``. ``who`` is the name of the class that calls this function,
    ``"ModuleDict"`` or ``"ParameterDict"``; error messages contain it. Raises TypeError or ValueError if an item of
    ``given`` is not a pair.
    """
    if not isinstance(given, Iterable):
        shown = who.replace("ParameterDict", "ParametersDict")  # the spelling in PyTorch's error message
        raise TypeError(
            f"{shown}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        ordered = isinstance(given, (OrderedDict, ModuleDict, ParameterDict)) or who == "ModuleDict"
        return list(given.items()) if ordered else sorted(given.items())
    pairs = []
    for place, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{who} update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        items = list(pair)
        if len(items) != 2:
            raise ValueError(f"{who} update sequence element #{place} has length {len(items)}; 2 is required")
        pairs.append((items[0], items[1]))
    return pairs


def _shown_parameter(key: Any, value: Any, place: str = "") -> str:
    """Return one line of the ``repr`` of a ParameterList or ParameterDict, which describes the item ``value``.

    ``key`` is the index or the name of the item. If ``place`` is ``"list"`` (for a ParameterList), the line shows the
    dtype of a tensor, such as ``torch.float32``. If ``place`` is empty (for a ParameterDict), it shows the type, such
    as ``torch.FloatTensor``.
    """
    if not isinstance(value, Tensor):
        return f"({key}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value._array.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    if place == "list":
        return f"({key}): {kind} containing: [{value.dtype} of size {size}{device}]"
    return f"({key}): {kind} containing: [{typename(value)} of size {size}{device}]"


class ParameterList(Module):
    """List of parameters. Tensors are converted to parameters; values of other types are stored unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ParameterList([torch.ones(2), torch.ones(2, 3)])
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Parameter containing: [torch.float32 of size 2x3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _place(self, index: Any) -> int:
        index = as_index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return index % len(self)

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> ParameterList: ...
    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            created = self.__class__()
            for place in range(*idx.indices(len(self))):
                created.append(self[place])
            return created
        return getattr(self, str(self._place(idx)))

    def __setitem__(self, idx: int, param: Any) -> None:
        if isinstance(param, Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(self._place(idx)), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[place] for place in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Append ``value`` and return this list."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Append the values in ``values`` and return this list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        """Return the text for the ``repr`` of the container, with one line per value."""
        return "\n".join("  " + _shown_parameter(place, value, "list") for place, value in enumerate(self))


class ParameterDict(Module):
    """Ordered dictionary of parameters. Tensors are converted to parameters; other values are stored unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ParameterDict({"weight": torch.ones(2)})
    ParameterDict(  (weight): Parameter containing: [torch.FloatTensor of size 2])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._name(key))

    def __setitem__(self, key: str, value: Any) -> None:
        key = self._name(key)
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Return a new ParameterDict with the same keys and the same parameter objects."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value under ``key``; if ``key`` is missing, first insert ``default`` under ``key``."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove ``key`` and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the item that was inserted last and return the pair ``(key, value)``."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under ``key``, or ``default`` if ``key`` is missing."""
        return self[key] if key in self else default  # noqa: SIM401 - this is get

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with ``default`` under each key in ``keys``."""
        return ParameterDict(OrderedDict((key, default) for key in keys))

    def keys(self) -> Any:
        """Return the keys in order of insertion."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the pairs ``(key, value)`` in order of insertion."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values in order of insertion."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values in ``parameters``, a dictionary or an iterable of pairs ``(key, value)``."""
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        created = self.copy()
        created.update(other)
        return created

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        created = other.copy()
        created.update(self)
        return created

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def extra_repr(self) -> str:
        """Return the text for the ``repr`` of the container, with one line per value."""
        return "\n".join("  " + _shown_parameter(key, value) for key, value in self.items())


class Container(Module):
    """Module whose keyword arguments become child modules; deprecated in PyTorch.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Container(first=nn.Linear(2, 3), second=nn.ReLU())
    Container(
      (first): Linear(in_features=2, out_features=3, bias=True)
      (second): ReLU()
    )
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
