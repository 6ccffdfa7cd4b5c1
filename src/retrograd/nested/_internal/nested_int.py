"""``NestedInt``: the size of a ragged dimension, a symbol such as ``j1`` that is equal only to itself."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...private_names import SymInt


class NestedInt(SymInt):
    """Symbolic size of a ragged dimension, possibly times an int; it prints as ``j1`` or ``3*j1``.

    Two of them are equal if they belong to the same offsets. They have no value, and count as larger than 1.
    """

    __slots__ = ("coefficient", "number")
    __module__ = "torch"

    def __init__(self, number: int, coefficient: int = 1) -> None:
        self.number, self.coefficient = number, coefficient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and (self.number, self.coefficient) == (other.number, other.coefficient)

    def __hash__(self) -> int:
        return hash((self.number, self.coefficient))

    def __mul__(self, other: int) -> NestedInt:
        return NestedInt(self.number, self.coefficient * other)

    __rmul__ = __mul__

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt):
            return self._same(other) and self.coefficient >= other.coefficient
        if other > 2:
            raise ValueError("nested int relation is indeterminate")
        return True

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        if isinstance(other, NestedInt):
            return self._same(other) and self.coefficient <= other.coefficient
        if other > 1:
            raise ValueError("nested int relation is indeterminate")
        return False

    def _same(self, other: NestedInt) -> bool:
        if self.number != other.number:
            raise ValueError("nested int relation is indeterminate")
        return True

    def __repr__(self) -> str:
        return f"j{self.number}" if self.coefficient == 1 else f"{self.coefficient}*j{self.number}"


NestedInt.__name__ = NestedInt.__qualname__ = "SymInt"


class Registry:
    """Mapping from tensors of offsets or lengths to their symbols, which are stored in the tensors."""

    count = 0
    dummy = False

    def __getitem__(self, tensor: Tensor) -> NestedInt:
        symbol = tensor.__dict__.get("_nested_int")
        if symbol is None:
            symbol = tensor.__dict__["_nested_int"] = NestedInt(Registry.count)
            Registry.count += 1
        return symbol

    def __setitem__(self, tensor: Tensor, symbol: NestedInt) -> None:
        tensor.__dict__["_nested_int"] = symbol

    def get(self, tensor: Tensor, default: Any = None) -> Any:
        """Return the symbol of ``tensor``, or ``default``."""
        return tensor.__dict__.get("_nested_int", default)

    def reserve(self) -> None:
        """Skip the number that PyTorch gives to a tensor of its own, once."""
        if not Registry.dummy:
            Registry.dummy = True
            Registry.count += 1


registry = Registry()
__all__ = ["NestedInt", "registry"]
