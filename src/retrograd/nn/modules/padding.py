"""Padding layers: ConstantPad, ZeroPad, ReflectionPad, ReplicationPad and CircularPad in 1, 2 and 3 dimensions."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple


class _Padding(Module):
    """Base class of layers that pad the last ``dimensions`` dimensions of their input.

    ``padding`` is one int for all sides, or two ints (before, after) per dimension, beginning with the last dimension.
    """

    dimensions: int
    mode: str
    value: Any = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        count = 2 * self.dimensions
        self.padding = _ntuple(count, "padding")(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` padded on both sides of the last ``dimensions`` dimensions, by the sizes in ``padding``."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Return the argument ``padding`` as text for the ``repr`` of the layer."""
        return f"{self.padding}"


class _ConstantPadNd(_Padding):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """Return the arguments ``padding`` and ``value`` as text for the ``repr`` of the layer."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Layer that pads the last dimension with ``value``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ConstantPad1d((1, 2), 9.0)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[9., 1., 2., 3., 9., 9.]])
    """

    dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """Layer that pads the last two dimensions with ``value``.

    >>> import retrograd as torch
    >>> torch.nn.ConstantPad2d((1, 0, 0, 0), 9.0)(torch.ones(1, 1, 2))
    tensor([[[9., 1., 1.]]])
    """

    dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """Layer that pads the last three dimensions with ``value``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ConstantPad3d((0, 0, 1, 1, 2, 2), 9.0)(torch.ones(1, 2, 3, 4)).shape
    torch.Size([1, 6, 5, 4])
    """

    dimensions = 3


class _ZeroPadNd(_ConstantPadNd):
    """Base class of ZeroPad1d, ZeroPad2d and ZeroPad3d, which pad with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the argument ``padding`` as text for the ``repr`` of the layer."""
        return f"{self.padding}"


def _family(prefix: str, base: type, what: str, kinds: tuple[type, ...] = (object,) * 3) -> list[type]:
    """Return the three classes of padding layers ``<prefix>Pad1d``, ``<prefix>Pad2d`` and ``<prefix>Pad3d``.

    The classes are subclasses of ``base``. The class for n dimensions is also a subclass of ``kinds[n - 1]``. The
    docstring of a class is "Layer that pads images ``what``.", where ``what`` is for example ``"with zeros"``.
    """
    created = []
    for dimensions, (of, also) in enumerate(zip(("signals", "images", "volumes"), kinds, strict=True), 1):
        body = {"__doc__": f"Layer that pads {of} {what}.", "dimensions": dimensions, "__module__": __name__}
        bases = (base,) if also is object else (base, also)
        created.append(type(f"{prefix}Pad{dimensions}d", bases, body))
    return created


class _ReflectionPadNd(_Padding):
    mode = "reflect"


class _ReplicationPadNd(_Padding):
    mode = "replicate"


class _CircularPadNd(_Padding):
    mode = "circular"


ZeroPad1d, ZeroPad2d, ZeroPad3d = _family(
    "Zero", _ZeroPadNd, "with zeros", (ConstantPad1d, ConstantPad2d, ConstantPad3d)
)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(
    "Reflection", _ReflectionPadNd, "by reflection at the borders; the border elements are not repeated"
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(
    "Replication", _ReplicationPadNd, "with copies of the border elements"
)
CircularPad1d, CircularPad2d, CircularPad3d = _family("Circular", _CircularPadNd, "periodically")

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
