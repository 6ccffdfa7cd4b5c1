"""Pooling layers: MaxPool, AvgPool, LPPool, FractionalMaxPool, AdaptiveMaxPool, AdaptiveAvgPool and MaxUnpool.

Each layer but MaxUnpool returns one value per window of a signal, an image or a volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .declarative import declares_layer
from .module import Module
from .utils import _pair, _single, _triple

#: One size, or one per spatial dimension.
Sizes = int | Sequence[int]
Ratios = float | Sequence[float]


class _Pooling(Module):
    """Base class of pooling layers; ``stride`` is by default the window size ``kernel_size``."""

    def _settle(self: Any) -> None:
        if self.stride is None:
            self.stride = self.kernel_size


@declares_layer(
    shown="kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
)
class _MaxPoolNd(_Pooling):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


@declares_layer(F.max_pool1d)
class MaxPool1d(_MaxPoolNd):
    """Maximum of each window of a signal (N, C, L)."""


@declares_layer(F.max_pool2d)
class MaxPool2d(_MaxPoolNd):
    """Maximum of each window of an image (N, C, H, W).

    >>> import retrograd as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """


@declares_layer(F.max_pool3d)
class MaxPool3d(_MaxPoolNd):
    """Maximum of each window of a volume (N, C, D, H, W)."""


@declares_layer(shown="kernel_size={kernel_size}, stride={stride}, padding={padding}")
class _MaxUnpoolNd(Module):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0

    def _settle(self) -> None:
        spread = {"1": _single, "2": _pair, "3": _triple}[type(self).__name__[-2]]
        self.kernel_size = spread(self.kernel_size)
        self.stride = self.kernel_size if self.stride is None else spread(self.stride)
        self.padding = spread(self.padding)


def _unpooling(function: Any) -> Any:
    def forward(self: Any, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return zeros in which each element of ``input`` is written at its index in ``indices``.

        The indices are those that max pooling returned. Several output sizes are possible for one input size;
        ``output_size`` selects one of them.
        """
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    return forward


@declares_layer()
class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool1d` from its maxima and their indices; all other elements are 0."""

    forward = _unpooling(F.max_unpool1d)


@declares_layer()
class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool2d` from its maxima and their indices; all other elements are 0."""

    forward = _unpooling(F.max_unpool2d)


@declares_layer()
class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool3d` from its maxima and their indices; all other elements are 0."""

    forward = _unpooling(F.max_unpool3d)


@declares_layer(shown="kernel_size={kernel_size}, stride={stride}, padding={padding}")
class _AvgPoolNd(_Pooling):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@declares_layer(F.avg_pool1d)
class AvgPool1d(_AvgPoolNd):
    """Mean of each window of a signal (N, C, L)."""

    def _settle(self) -> None:
        super()._settle()
        self.kernel_size, self.stride, self.padding = map(_single, (self.kernel_size, self.stride, self.padding))


@declares_layer(F.avg_pool2d)
class AvgPool2d(_AvgPoolNd):
    """Mean of each window of an image (N, C, H, W); ``divisor_override`` replaces the window size as divisor."""

    divisor_override: int | None = None


@declares_layer(F.avg_pool3d)
class AvgPool3d(_AvgPoolNd):
    """Mean of each window of a volume (N, C, D, H, W); ``divisor_override`` replaces the window size as divisor."""

    divisor_override: int | None = None


class _FractionalMaxPoolNd(Module):
    kernel_size: Any
    output_size: Any
    output_ratio: Any
    return_indices: bool
    function: Any

    def __init__(
        self, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        spread = _pair if name.endswith("2d") else _triple
        self.kernel_size = spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window of ``input``, and its index if ``return_indices`` is true."""
        return type(self).function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum of each of a chosen number of windows, at random positions of an image (Graham 2014).

    The number of windows is ``output_size``, or ``output_ratio`` times the size of the image.
    """

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maximum of each of a chosen number of windows, at random positions of a volume.

    The number of windows is ``output_size``, or ``output_ratio`` times the size of the volume.
    """

    function = staticmethod(F.fractional_max_pool3d)


@declares_layer(shown="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}")
class _LPPoolNd(Module):
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


@declares_layer(F.lp_pool1d)
class LPPool1d(_LPPoolNd):
    """p-norm of each window of a signal, where p is ``norm_type``."""


@declares_layer(F.lp_pool2d)
class LPPool2d(_LPPoolNd):
    """p-norm of each window of an image, where p is ``norm_type``."""


@declares_layer(F.lp_pool3d)
class LPPool3d(_LPPoolNd):
    """p-norm of each window of a volume, where p is ``norm_type``."""


@declares_layer(shown="output_size={output_size}")
class _AdaptiveMaxPoolNd(Module):
    output_size: Any
    return_indices: bool = False


@declares_layer(F.adaptive_max_pool1d)
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maximum of each of ``output_size`` windows that cover a signal."""


@declares_layer(F.adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum of each of ``output_size`` windows that cover an image."""


@declares_layer(F.adaptive_max_pool3d)
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum of each of ``output_size`` windows that cover a volume."""


@declares_layer(shown="output_size={output_size}")
class _AdaptiveAvgPoolNd(Module):
    output_size: Any


@declares_layer(F.adaptive_avg_pool1d)
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean of each of ``output_size`` windows that cover a signal."""


@declares_layer(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean of each of ``output_size`` windows that cover an image."""


@declares_layer(F.adaptive_avg_pool3d)
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean of each of ``output_size`` windows that cover a volume."""


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
