"""Operations of masked tensors whose gradients are masked tensors.

In a backward pass that starts at a masked tensor, gradients are masked tensors. ``masked_gradient`` is where they get
their mask; for a dense gradient it replaces the masked-out elements by zeros instead.
"""

from __future__ import annotations

from typing import Any

from ..dispatch.declare import op


@op(function=False, method=False, name="masked_gradient", backward="WhereBackward0", linear=True)
def masked_gradient(np: Any, self: Any, mask: Any, /) -> Any:
    """Return ``self`` with zeros where ``mask`` is false."""
    return np.where(mask, self, np.zeros((), self.dtype))


@op(function=False, method=False, name="masked_combine", backward="CombineBackward")
def masked_combine(np: Any, self: Any, mask: Any, /, value: Any) -> Any:
    """Return ``self`` with ``value`` where ``mask`` is false."""
    return np.where(mask, self, np.asarray(value, self.dtype))


@op(function=False, method=False, name="masked_construct", backward="ConstructorBackward", linear=True)
def masked_construct(np: Any, self: Any, mask: Any, /) -> Any:
    """Return a copy of ``self``: the data of a masked tensor with the mask ``mask``."""
    return self.copy()


@op(function=False, method=False, name="masked_get_data", backward="GetDataBackward", linear=True)
def masked_get_data(np: Any, self: Any, mask: Any, /) -> Any:
    """Return a copy of ``self``, the data of a masked tensor."""
    return self.copy()


@op(function=False, method=False, name="masked_where", backward="_MaskedWhereBackward")
def masked_where(np: Any, condition: Any, self: Any, other: Any, /) -> Any:
    """Return the elements of ``self`` where ``condition`` is true, and those of ``other`` elsewhere."""
    return np.where(condition, self, other)


masked_where.derivative(
    self=lambda F, g, condition: F.masked_gradient(g, condition),
    other=lambda F, g, condition: F.masked_gradient(g, ~condition),
)
for _operation in (masked_gradient, masked_combine, masked_construct, masked_get_data):
    _operation.derivative(self=lambda F, g, mask: F.masked_gradient(g, mask))

__all__ = ["masked_combine", "masked_construct", "masked_get_data", "masked_gradient", "masked_where"]
