"""The class ``Size``, the type of tensors' shapes."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

from ..compat.module_names import shown_in
from ..compat.pickle_names import pickled_as
from ..runtime.user_frame import strip_frames


class Size(tuple[int, ...]):
    """Shape of a tensor, as ``torch.Size``: a tuple of ints.

    >>> import retrograd as torch
    >>> torch.Size([2, 3]), torch.Size([2, 3]).numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()
    __module__ = shown_in("torch", __name__)

    def __new__(cls, sizes: Any = ()) -> Size:  # Note [Any in public signatures]
        """Create a shape from an iterable of ints; raise TypeError for other elements."""
        size = size_of(cls, sizes)
        for position, each in enumerate(size):
            if each.__class__ is not int:
                try:
                    return cls._from_indices(size, position)
                except TypeError as error:
                    raise strip_frames(error) or error from None
        return size

    @classmethod
    def _from_indices(cls, sizes: tuple[SupportsIndex, ...], start: int) -> Size:
        """Create a shape from the elements of ``sizes``, which are converted to ints by their method ``__index__``.

        ``start`` is the index of the first element that is not an int. Raises TypeError for an element without the
        method.
        """
        for position, each in enumerate(sizes):
            if not hasattr(each, "__index__"):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{type(each).__name__}')")
        return size_of(cls, [each.__index__() for each in sizes])

    def __getattr__(self, name: str) -> Any:  # Note [Any in public signatures]
        raise AttributeError(f"'torch.Size' object has no attribute '{name}'")

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, key: Any) -> Any:  # Note [Any in public signatures]
        item = tuple.__getitem__(self, key)
        return size_of(Size, item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:  # Note [Any in public signatures]
        if not isinstance(other, tuple):
            reflected = getattr(type(other), "__radd__", None)
            found = NotImplemented if reflected is None else reflected(other, self)
            if found is not NotImplemented:
                return found
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:  # Note [Any in public signatures]
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: SupportsIndex) -> Size:
        return size_of(Size, tuple.__mul__(self, count))

    def __rmul__(self, count: SupportsIndex) -> Size:
        return self * count

    def __reduce__(self) -> tuple[Any, ...]:  # Note [Any in public signatures]
        return size_from, (tuple(self),)


@pickled_as("size")
def size_from(sizes: tuple[int, ...]) -> Size:
    """Return the Size with the elements ``sizes``; pickles call this function."""
    return size_of(Size, sizes)


#: ``size_of(Size, shape)`` creates a Size from a tuple of ints without checks, in half the time of ``Size(shape)``.
size_of = tuple.__new__
