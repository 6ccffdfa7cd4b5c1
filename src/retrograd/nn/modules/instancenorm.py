"""InstanceNorm1d, InstanceNorm2d, InstanceNorm3d and their lazy forms, which normalise each channel of each sample."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...runtime.user_frame import warn
from .. import functional as F
from .batchnorm import _expects, _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    """Base class of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d.

    ``dimensions`` is the number of spatial dimensions.
    """

    dimensions: ClassVar[int]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self.dimensions + 1

    def forward(self, input: Tensor) -> Tensor:
        """Return ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel of each sample.

        In evaluation mode with ``track_running_stats=True``, mean and variance are the running statistics. Otherwise
        mean and variance are computed over the spatial dimensions of the input.
        """
        self._check_input_dim(input)
        alone = input.dim() == self.dimensions + 1
        place = input.dim() - self.dimensions - 1
        if input.size(place) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={place} to match num_features ({self.num_features}), but got: "
                    f"{input.size(place)}."
                )
            warn(
                f"input's size at dim={place} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
            )
        out = F.instance_norm(
            input.unsqueeze(0) if alone else input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of signals of shape (N, C, L) or (C, L) (Ulyanov et al. 2016).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]], [[10.0, 20.0]]]))
    tensor([[[-1.0000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  1.0000]]])
    """

    dimensions = 1
    _check_input_dim = _expects(2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images of shape (N, C, H, W) or (C, H, W) (Ulyanov et al. 2016).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    dimensions = 2
    _check_input_dim = _expects(3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes of shape (N, C, D, H, W) or (C, D, H, W) (Ulyanov et al. 2016).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    dimensions = 3
    _check_input_dim = _expects(4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """Variant of :class:`InstanceNorm1d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(torch.ones(4, 3, 2)).shape
    torch.Size([4, 3, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = InstanceNorm1d
    dimensions, _check_input_dim = 1, InstanceNorm1d._check_input_dim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """Variant of :class:`InstanceNorm2d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(torch.ones(4, 3, 2, 2)).shape
    torch.Size([4, 3, 2, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = InstanceNorm2d
    dimensions, _check_input_dim = 2, InstanceNorm2d._check_input_dim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """Variant of :class:`InstanceNorm3d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(torch.ones(4, 3, 2, 2, 2)).shape
    torch.Size([4, 3, 2, 2, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = InstanceNorm3d
    dimensions, _check_input_dim = 3, InstanceNorm3d._check_input_dim


__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip
