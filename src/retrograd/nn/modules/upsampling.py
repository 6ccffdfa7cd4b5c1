"""Upsample, UpsamplingNearest2d and UpsamplingBilinear2d: layers that resize signals, images and volumes."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .module import Module


class Upsample(Module):
    """Layer that resizes the spatial dimensions of its input to ``size``, or multiplies them by ``scale_factor``.

    The input has shape (N, C, L), (N, C, H, W) or (N, C, D, H, W). The interpolation ``mode`` is ``"nearest"``,
    ``"linear"`` (3-d input), ``"bilinear"`` or ``"bicubic"`` (4-d input), or ``"trilinear"`` (5-d input).

    >>> import retrograd as torch
    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` resized to the size ``size`` or, if ``size`` is None, by the factor ``scale_factor``.

        Both are arguments of the constructor.
        """
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the size or scale factor, and the mode, as text for the ``repr`` of the layer."""
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Layer that resizes images by nearest-neighbour interpolation.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 1., 3., 3.],
              [1., 1., 3., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Layer that resizes images by bilinear interpolation.

    The centres of the corner elements of the input and of the output are at the same positions
    (``align_corners=True``).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.UpsamplingBilinear2d(size=(1, 3))(torch.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 2., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
