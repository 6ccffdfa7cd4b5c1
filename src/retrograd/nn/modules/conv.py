"""Convolution and transposed convolution layers in 1, 2 and 3 dimensions: Conv1d to ConvTranspose3d, and lazy forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

Sizes = int | Sequence[int]
MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """Base class of all convolution layers: stores the arguments, and registers the parameters weight and bias."""

    dimensions: ClassVar[int]
    function: ClassVar[Any]
    transposed: bool = False
    weight: Any
    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        transposed: bool, output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        spread = _ntuple(len(kernel_size), "sizes")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = spread(stride)
        self.padding = padding
        self.dilation = spread(dilation)
        self.transposed = transposed
        self.output_padding = spread(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        if isinstance(padding, str):
            totals = [
                step * (size - 1) * (padding == "same") for step, size in zip(self.dilation, kernel_size, strict=True)
            ]
            self._reversed_padding_repeated_twice: Any = [
                side for total in reversed(totals) for side in (total // 2, total - total // 2)
            ]
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self) -> None:
        """Raise ValueError if a constructor argument is invalid or incompatible with another argument."""
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.out_channels % self.groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of {{'valid', 'same'}}")
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in MODES:
            raise ValueError(f"padding_mode must be one of {MODES}, but got padding_mode='{self.padding_mode}'")

    def reset_parameters(self) -> None:
        """Draw new values of ``weight`` and ``bias``, uniformly between ``-1 / sqrt(fan_in)`` and ``1 / sqrt(fan_in)``.

        ``fan_in`` is the number of input elements that each output element depends on.
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init._calculate_fan_in_and_fan_out(self.weight)[0]
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Return the channels, kernel size and stride, and all arguments that differ from their defaults, as text."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(value):
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """Base class of Conv1d, Conv2d and Conv3d.

    A subclass defines ``dimensions``, the number of spatial dimensions, and ``function``, for example ``F.conv2d``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        spread = _ntuple(self.dimensions, "sizes")
        super().__init__(
            in_channels, out_channels, spread(kernel_size), spread(stride),
            padding if isinstance(padding, str) else spread(padding), spread(dilation), False, spread(0), groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        return type(self).function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of ``input`` (N, C, …) with ``weight``, plus ``bias``."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Layer that returns the convolution of signals (N, C, L) with a trained kernel.

    >>> import retrograd as torch
    >>> torch.nn.Conv1d(16, 33, 3, stride=2)(torch.ones(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    dimensions = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Layer that returns the convolution of images (N, C, H, W) with a trained kernel.

    >>> import retrograd as torch
    >>> torch.nn.Conv2d(3, 8, 3, padding="same")(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    dimensions = 2
    function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Layer that returns the convolution of volumes (N, C, D, H, W) with a trained kernel.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Conv3d(2, 4, kernel_size=3, padding=1, stride=2)(torch.ones(1, 2, 8, 8, 8)).shape
    torch.Size([1, 4, 4, 4, 4])
    """

    dimensions = 3
    function = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """Base class of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.

    A subclass defines ``dimensions``, the number of spatial dimensions, and ``function``, for example
    ``F.conv_transpose2d``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
        output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        spread = _ntuple(self.dimensions, "sizes")
        super().__init__(
            in_channels, out_channels, spread(kernel_size), spread(stride), spread(padding), spread(dilation), True,
            spread(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> Any:
        """Return the output padding for which the output has the size ``output_size``: one int per spatial dimension.

        If ``output_size`` is None, the attribute ``output_padding`` is returned. Raises ValueError if ``output_size``
        is not possible for the size of ``input``.
        """
        if output_size is None:
            return self.output_padding
        count, before = self.dimensions, input.dim() - self.dimensions
        sizes = list(output_size)
        if len(sizes) == before + count:
            sizes = sizes[before:]
        if len(sizes) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {input.dim()}D input, output_size must have {count} or {before + count} "
                f"elements (got {len(sizes)})"
            )
        least = [
            (input.size(place + before) - 1) * self.stride[place]
            - 2 * self.padding[place]
            + self.dilation[place] * (self.kernel_size[place] - 1)
            + 1
            for place in range(count)
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an input of "
                f"{input.size()[2:]})"
            )
        return [size - low for size, low in zip(sizes, least, strict=True)]

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Return the transposed convolution of ``input`` (N, C, …) with ``weight``, plus ``bias``.

        With a stride greater than 1, several output sizes are possible for the same input size. ``output_size`` selects
        the size; by default, the attribute ``output_padding`` determines the size.
        """
        added = self._output_padding(input, output_size)
        return type(self).function(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Layer that returns the transposed convolution of signals (N, C, L) with a trained kernel.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ConvTranspose1d(2, 4, kernel_size=4, stride=2, padding=1)(torch.ones(1, 2, 5)).shape
    torch.Size([1, 4, 10])
    """

    dimensions = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Layer that returns the transposed convolution of images (N, C, H, W) with a trained kernel.

    The sizes are those of a reversed convolution: a :class:`Conv2d` with the same kernel size, stride and padding maps
    an image of the output size to an image of the input size.

    >>> import retrograd as torch
    >>> torch.nn.ConvTranspose2d(8, 3, 2, stride=2)(torch.ones(1, 8, 5, 5)).shape
    torch.Size([1, 3, 10, 10])
    """

    dimensions = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """Layer that returns the transposed convolution of volumes (N, C, D, H, W) with a trained kernel.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ConvTranspose3d(2, 4, kernel_size=2, stride=2)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 4, 8, 8, 8])
    """

    dimensions = 3
    function = staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """Mixin of the lazy convolution layers, whose ``in_channels`` is inferred from the first input."""

    def _begin(self, out_channels: int, kernel_size: Sizes, bias: bool, **given: Any) -> None:
        """Initialise the layer for an unknown number of input channels, with uninitialized parameters.

        The method calls ``__init__`` of the convolution layer, for example Conv2d, with 0 input channels. ``given`` has
        the other keyword arguments of this ``__init__``, including ``device`` and ``dtype``.
        """
        super().__init__(0, 0, kernel_size, bias=False, **given)
        factory: Any = {name: given[name] for name in ("device", "dtype")}
        self.weight = UninitializedParameter(**factory)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(**factory)

    transposed: bool
    dimensions: int
    groups: int
    kernel_size: Any

    def reset_parameters(self) -> None:
        """Draw new values of the parameters; do nothing if the parameters are not allocated yet."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Allocate the parameters for the number of channels of ``input``, unless they are already allocated."""
        if not self.has_uninitialized_params():
            return
        batched = self.dimensions + 2
        if input.dim() not in (batched - 1, batched):
            raise RuntimeError(
                f"Expected {batched - 1}D (unbatched) or {batched}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        self.in_channels = input.shape[1] if input.dim() == batched else input.shape[0]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        ends = self.in_channels, self.out_channels
        first, second = ends if self.transposed else ends[::-1]
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        self._begin(
            out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, groups=groups,
            padding_mode=padding_mode, device=device, dtype=dtype,
        )  # fmt: skip


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
        groups: int = 1, bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        self._begin(
            out_channels, kernel_size, bias, stride=stride, padding=padding, output_padding=output_padding, groups=groups,
            dilation=dilation, padding_mode=padding_mode, device=device, dtype=dtype,
        )  # fmt: skip


class LazyConv1d(_LazyConv, Conv1d):
    """Variant of :class:`Conv1d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConv1d(4, kernel_size=3)
    >>> layer(torch.ones(1, 2, 8)).shape
    torch.Size([1, 4, 6])
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Variant of :class:`Conv2d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConv2d(4, kernel_size=3)
    >>> layer(torch.ones(1, 2, 8, 8)).shape
    torch.Size([1, 4, 6, 6])
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Variant of :class:`Conv3d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConv3d(4, kernel_size=3)
    >>> layer(torch.ones(1, 2, 8, 8, 8)).shape
    torch.Size([1, 4, 6, 6, 6])
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """Variant of :class:`ConvTranspose1d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose1d(4, kernel_size=2, stride=2)
    >>> layer(torch.ones(1, 2, 5)).shape
    torch.Size([1, 4, 10])
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """Variant of :class:`ConvTranspose2d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose2d(4, kernel_size=2, stride=2)
    >>> layer(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 4, 10, 10])
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """Variant of :class:`ConvTranspose3d` whose ``in_channels`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose3d(4, kernel_size=2, stride=2)
    >>> layer(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 4, 10, 10, 10])
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose3d


__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip
