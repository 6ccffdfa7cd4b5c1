"""Pooling layers: MaxPool, AvgPool, LPPool, FractionalMaxPool, AdaptiveMaxPool, AdaptiveAvgPool and MaxUnpool.

A pooling layer returns one value per window of a signal, an image or a volume. MaxUnpool is the inverse of MaxPool.
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
    """Base class of pooling layers. The default of ``stride`` is the window size ``kernel_size``."""

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
    """Layer that returns the maximum of each window of signals (N, C, L).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.MaxPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[2., 4.]])
    """


@declares_layer(F.max_pool2d)
class MaxPool2d(_MaxPoolNd):
    """Layer that returns the maximum of each window of images (N, C, H, W).

    >>> import retrograd as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """


@declares_layer(F.max_pool3d)
class MaxPool3d(_MaxPoolNd):
    """Layer that returns the maximum of each window of volumes (N, C, D, H, W).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.MaxPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """


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
        """Return a tensor of zeros in which each element of ``input`` is written at its index in ``indices``.

        ``input`` and ``indices`` are the results of max pooling. Several output sizes are possible for the same input
        size; ``output_size`` selects the size.
        """
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    return forward


@declares_layer()
class MaxUnpool1d(_MaxUnpoolNd):
    """Partial inverse of :class:`MaxPool1d`: writes each maximum at its original index, and 0 at all other indices.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> maxima, indices = nn.MaxPool1d(2, return_indices=True)(torch.tensor([[1.0, 2.0, 4.0, 3.0]]))
    >>> nn.MaxUnpool1d(2)(maxima, indices)
    tensor([[0., 2., 4., 0.]])
    """

    forward = _unpooling(F.max_unpool1d)


@declares_layer()
class MaxUnpool2d(_MaxUnpoolNd):
    """Partial inverse of :class:`MaxPool2d`: writes each maximum at its original index, and 0 at all other indices.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> maxima, indices = nn.MaxPool2d(2, return_indices=True)(torch.arange(8.0).reshape(1, 2, 4))
    >>> nn.MaxUnpool2d(2)(maxima, indices)
    tensor([[[0., 0., 0., 0.],
             [0., 5., 0., 7.]]])
    """

    forward = _unpooling(F.max_unpool2d)


@declares_layer()
class MaxUnpool3d(_MaxUnpoolNd):
    """Partial inverse of :class:`MaxPool3d`: writes each maximum at its original index, and 0 at all other indices.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> maxima, indices = nn.MaxPool3d(2, return_indices=True)(torch.arange(8.0).reshape(1, 2, 2, 2))
    >>> nn.MaxUnpool3d(2)(maxima, indices).flatten()
    tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """

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
    """Layer that returns the mean of each window of signals (N, C, L).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AvgPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[1.5000, 3.5000]])
    """

    def _settle(self) -> None:
        super()._settle()
        self.kernel_size, self.stride, self.padding = map(_single, (self.kernel_size, self.stride, self.padding))


@declares_layer(F.avg_pool2d)
class AvgPool2d(_AvgPoolNd):
    """Layer that returns the mean of each window of images (N, C, H, W).

    The sum of each window is divided by ``divisor_override``, by default by the number of elements of the window.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AvgPool2d(2)(torch.arange(8.0).reshape(1, 2, 4))
    tensor([[[2.5000, 4.5000]]])
    """

    divisor_override: int | None = None


@declares_layer(F.avg_pool3d)
class AvgPool3d(_AvgPoolNd):
    """Layer that returns the mean of each window of volumes (N, C, D, H, W).

    The sum of each window is divided by ``divisor_override``, by default by the number of elements of the window.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AvgPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

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
        """Return the maxima of the windows of ``input``; if ``return_indices`` is true, also return their indices."""
        return type(self).function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Fractional max pooling: layer that returns the maximum of windows at random positions of images (Graham 2014).

    ``kernel_size`` is the size of the windows. The number of windows per dimension is ``output_size``, or
    ``output_ratio`` times the size of the image.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.FractionalMaxPool2d(2, output_ratio=0.7)(torch.ones(1, 3, 10, 10)).shape
    torch.Size([1, 3, 7, 7])
    """

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional max pooling: layer that returns the maximum of windows at random positions of volumes.

    ``kernel_size`` is the size of the windows. The number of windows per dimension is ``output_size``, or
    ``output_ratio`` times the size of the volume.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.FractionalMaxPool3d(2, output_size=(2, 3, 4))(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 2, 3, 4])
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
    """Layer that returns the p-norm of each window of signals (N, C, L), where p is ``norm_type``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LPPool1d(norm_type=2, kernel_size=2)(torch.tensor([[3.0, 4.0, 6.0, 8.0]]))
    tensor([[ 5., 10.]])
    """


@declares_layer(F.lp_pool2d)
class LPPool2d(_LPPoolNd):
    """Layer that returns the p-norm of each window of images (N, C, H, W), where p is ``norm_type``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LPPool2d(norm_type=1, kernel_size=2)(torch.arange(8.0).reshape(1, 2, 4))
    tensor([[[10., 18.]]])
    """


@declares_layer(F.lp_pool3d)
class LPPool3d(_LPPoolNd):
    """Layer that returns the p-norm of each window of volumes (N, C, D, H, W), where p is ``norm_type``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LPPool3d(norm_type=1, kernel_size=2)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[28.]]]])
    """


@declares_layer(shown="output_size={output_size}")
class _AdaptiveMaxPoolNd(Module):
    output_size: Any
    return_indices: bool = False


@declares_layer(F.adaptive_max_pool1d)
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Layer that divides signals (N, C, L) into ``output_size`` windows and returns the maximum of each window.

    The windows have about equal lengths and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[2., 4.]])
    """


@declares_layer(F.adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Layer that divides images (N, C, H, W) into windows and returns the maximum of each window.

    ``output_size`` is the number of windows per spatial dimension. The windows have about equal sizes and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool2d((1, 2))(torch.arange(8.0).reshape(1, 2, 4))
    tensor([[[5., 7.]]])
    """


@declares_layer(F.adaptive_max_pool3d)
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Layer that divides volumes (N, C, D, H, W) into windows and returns the maximum of each window.

    ``output_size`` is the number of windows per spatial dimension. The windows have about equal sizes and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool3d(2)(torch.ones(1, 3, 4, 6, 8)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


@declares_layer(shown="output_size={output_size}")
class _AdaptiveAvgPoolNd(Module):
    output_size: Any


@declares_layer(F.adaptive_avg_pool1d)
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Layer that divides signals (N, C, L) into ``output_size`` windows and returns the mean of each window.

    The windows have about equal lengths and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[1.5000, 3.5000]])
    """


@declares_layer(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Layer that divides images (N, C, H, W) into windows and returns the mean of each window.

    ``output_size`` is the number of windows per spatial dimension. The windows have about equal sizes and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool2d((1, 2))(torch.arange(8.0).reshape(1, 2, 4))
    tensor([[[2.5000, 4.5000]]])
    """


@declares_layer(F.adaptive_avg_pool3d)
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Layer that divides volumes (N, C, D, H, W) into windows and returns the mean of each window.

    ``output_size`` is the number of windows per spatial dimension. The windows have about equal sizes and may overlap.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool3d(2)(torch.ones(1, 3, 4, 6, 8)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
