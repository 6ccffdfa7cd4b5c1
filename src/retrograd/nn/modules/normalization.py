"""Normalisation layers without running statistics: LayerNorm, GroupNorm, RMSNorm and LocalResponseNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .declarative import declares_layer
from .module import Module


@declares_layer(F.local_response_norm, "{size}, alpha={alpha}, beta={beta}, k={k}")
class LocalResponseNorm(Module):
    """Layer that divides each element of its input by ``(k + alpha * mean) ** beta``.

    ``mean`` is the mean of the squared elements at the same position in ``size`` neighbouring channels.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LocalResponseNorm(2, alpha=1.0, beta=1.0)(torch.ones(1, 3, 1, 1)).flatten()
    tensor([0.6667, 0.5000, 0.5000])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0


@declares_layer(F.local_response_norm, "{size}, alpha={alpha}, beta={beta}, k={k}")
class CrossMapLRN2d(Module):
    """Old name of :class:`LocalResponseNorm`; both layers compute the same function.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.CrossMapLRN2d(2)(torch.ones(1, 4, 2, 2)).shape
    torch.Size([1, 4, 2, 2])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1


def _scaling(layer: Any, shape: Any, wanted: dict[str, bool], device: Any, dtype: Any) -> None:
    """Register the parameters of the normalisation layer ``layer``, and call ``layer.reset_parameters()``.

    ``wanted`` maps the names of the parameters (``"weight"``, ``"bias"``) to bools. If the bool is true, a Parameter of
    shape ``shape`` is registered, otherwise None.
    """
    for name, is_wanted in wanted.items():
        parameter = Parameter(empty(shape, device=device, dtype=dtype)) if is_wanted else None
        layer.register_parameter(name, parameter)
    layer.reset_parameters()


def _reset(layer: Any) -> None:
    if layer.weight is not None:
        init.ones_(layer.weight)
    if getattr(layer, "bias", None) is not None:
        init.zeros_(layer.bias)


class LayerNorm(Module):
    """Layer normalisation over the last dimensions, whose sizes are ``normalized_shape`` (Ba et al. 2016).

    The layer returns ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    >>> import retrograd as torch
    >>> torch.nn.LayerNorm(2)(torch.tensor([1.0, 3.0]))
    tensor([-1.0000,  1.0000], grad_fn=<NativeLayerNormBackward0>)
    """

    weight: Any
    bias: Any

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        _scaling(self, self.normalized_shape, wanted, device, dtype)

    def reset_parameters(self) -> None:
        """Set all elements of ``weight`` to 1 and all elements of ``bias`` to 0."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` normalised to mean 0 and variance 1 over the last dimensions, times weight, plus bias."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the constructor arguments as text for the ``repr`` of the layer."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalisation of groups of channels to mean 0 and variance 1, times weight, plus bias (Wu and He 2018).

    The channels of each sample are split into ``num_groups`` groups, and mean and variance are computed for each group.
    Weight and bias have one element per channel.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 10.0, 20.0]]))
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]],
           grad_fn=<NativeGroupNormBackward0>)
    """

    weight: Any
    bias: Any

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _scaling(self, num_channels, {"weight": affine, "bias": affine and bias}, device, dtype)

    def reset_parameters(self) -> None:
        """Set all elements of ``weight`` to 1 and all elements of ``bias`` to 0."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` (N, C, …) normalised in each group of channels, times ``weight``, plus ``bias``.

        Each group of channels of a sample is normalised to mean 0 and variance 1.
        """
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the constructor arguments as text for the ``repr`` of the layer."""
        has_bias = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={has_bias}"


class RMSNorm(Module):
    """Root-mean-square normalisation over the last dimensions (Zhang and Sennrich 2019).

    The layer returns ``input / sqrt(mean(input ** 2) + eps) * weight``. ``normalized_shape`` has the sizes of the
    dimensions over which the mean is taken.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.RMSNorm(2)(torch.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]], grad_fn=<MulBackward0>)
    """

    weight: Any

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _scaling(self, self.normalized_shape, {"weight": elementwise_affine}, device, dtype)

    def reset_parameters(self) -> None:
        """Set all elements of ``weight`` to 1."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input / sqrt(mean(input ** 2) + eps) * weight``, with the mean over the last dimensions."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the constructor arguments as text for the ``repr`` of the layer."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
