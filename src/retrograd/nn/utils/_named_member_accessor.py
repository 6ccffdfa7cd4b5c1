"""``torch.nn.utils._named_member_accessor``: parameters and buffers of a module by their dotted names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...core.tensor import Tensor


class NamedMemberAccessor:
    """Access to the parameters, buffers and submodules of ``module`` by names such as ``"layers.0.weight"``."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Any:
        """Return the submodule ``name``."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Replace the submodule ``path`` by ``value``, and return it."""
        prefix, _, name = path.rpartition(".")
        owner = self.get_submodule(prefix)
        before = owner._modules[name]
        owner._modules[name] = value
        return before

    def _place(self, name: str) -> tuple[dict[str, Any], Any, str]:
        prefix, _, last = name.rpartition(".")
        owner = self.get_submodule(prefix)
        held = next((each for each in (owner._parameters, owner._buffers) if last in each), None)
        return owner.__dict__ if held is None else held, owner, last

    def get_tensor(self, name: str) -> Tensor:
        """Return the tensor ``name``.

        Raises:
            AttributeError: There is none.
            TypeError: It is no tensor.
        """
        _, owner, last = self._place(name)
        found = getattr(owner, last)
        if not isinstance(found, Tensor):
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        """Replace the tensor ``name`` by ``value``."""
        held, _, last = self._place(name)
        held[last] = value

    def del_tensor(self, name: str) -> None:
        """Remove the tensor ``name``."""
        _, owner, last = self._place(name)
        delattr(owner, last)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Replace the tensor ``name`` by ``value``, and return it; a missing one may be added if ``allow_missing``."""
        held, owner, last = self._place(name)
        if last not in held and not hasattr(owner, last):
            if not allow_missing:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            before = None
        else:
            before = held.get(last)
        held[last] = value
        return before

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """Return the tensors ``names``."""
        return [self.get_tensor(each) for each in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Replace the tensors ``names`` by ``values``."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Replace tensors by those of a dictionary."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Remove the tensors ``names``."""
        for each in names:
            self.del_tensor(each)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Replace the tensors ``names`` by ``values``, and return them."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Replace tensors by those of a dictionary; return those before, and the names that were missing."""
        before = {name: self.swap_tensor(name, value, allow_missing) for name, value in named_tensors.items()}
        return before, [name for name, value in before.items() if value is None]

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the names of tensors that are not in ``keys``, and those of ``keys`` that are no tensors."""
        given, known = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Return an iterator over the names and parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Return an iterator over the names and buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Return an iterator over the names and tensors, parameters first."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Return an iterator over the names and submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Replace the tensor ``name`` of ``module``."""
    NamedMemberAccessor(module).set_tensor(name, tensor)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace the tensor ``name`` of ``module``, and return it."""
    return NamedMemberAccessor(module).swap_tensor(name, tensor, allow_missing)


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Replace the submodule ``name`` of ``module``, and return it."""
    return NamedMemberAccessor(module).swap_submodule(name, submodule)


__all__: list[str] = []
