"""``Size``: the shape of a tensor, a tuple that can multiply itself out."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex


class Size(tuple[int, ...]):
    """A shape, as ``torch.Size``: a tuple of ints.

    >>> import retrograd as torch
    >>> torch.Size([2, 3]), torch.Size([2, 3]).numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()
    __module__ = "torch"

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return size_of, (tuple(self),)


def size_of(sizes: tuple[int, ...]) -> Size:
    """A Size from what a pickle holds."""
    return Size(sizes)
