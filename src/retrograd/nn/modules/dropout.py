"""Dropout layers, which set random elements or channels to 0 in training mode: Dropout, Dropout2d and others."""

from __future__ import annotations

from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer(shown="p={p}, inplace={inplace}")
class _DropoutNd(Module):
    p: float = 0.5
    inplace: bool = False

    def _settle(self) -> None:
        if self.p < 0 or self.p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")


@declares_layer(F.dropout, training="self.training")
class Dropout(_DropoutNd):
    """Layer that in training mode sets each element to 0 with probability ``p`` and divides the others by ``1 - p``.

    In evaluation mode the input is returned unchanged.

    >>> import retrograd as torch
    >>> torch.nn.Dropout(0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """


@declares_layer(F.dropout1d, training="self.training")
class Dropout1d(_DropoutNd):
    """Layer that in training mode sets each channel of signals (N, C, L) to 0 with probability ``p``.

    The other channels are divided by ``1 - p``. In evaluation mode the input is returned unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> _ = torch.manual_seed(0)
    >>> nn.Dropout1d(0.5)(torch.ones(1, 4, 2))
    tensor([[[0., 0.],
             [0., 0.],
             [2., 2.],
             [0., 0.]]])
    """


@declares_layer(F.dropout2d, training="self.training")
class Dropout2d(_DropoutNd):
    """Layer that in training mode sets each channel of images (N, C, H, W) to 0 with probability ``p``.

    The other channels are divided by ``1 - p``. In evaluation mode the input is returned unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> _ = torch.manual_seed(0)
    >>> nn.Dropout2d(0.5)(torch.ones(1, 4, 2, 2)).sum((2, 3))
    tensor([[0., 0., 8., 0.]])
    """


@declares_layer(F.dropout3d, training="self.training")
class Dropout3d(_DropoutNd):
    """Layer that in training mode sets each channel of volumes (N, C, D, H, W) to 0 with probability ``p``.

    The other channels are divided by ``1 - p``. In evaluation mode the input is returned unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> _ = torch.manual_seed(0)
    >>> nn.Dropout3d(0.5)(torch.ones(1, 4, 2, 2, 2)).sum((2, 3, 4))
    tensor([[ 0.,  0., 16.,  0.]])
    """


@declares_layer(F.alpha_dropout, training="self.training")
class AlphaDropout(_DropoutNd):
    """Dropout for use after :class:`SELU`; mean 0 and variance 1 of the input are preserved (Klambauer et al. 2017).

    In training mode each element is replaced with probability ``p`` by the limit of SELU at minus infinity. Then all
    elements are multiplied by a constant, and another constant is added, which restores mean and variance. In
    evaluation mode the input is returned unchanged.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.AlphaDropout(0.5).eval()(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    >>> layer = nn.AlphaDropout(0.5)
    >>> layer(torch.ones(3, 4)).shape
    torch.Size([3, 4])
    """


@declares_layer(F.feature_alpha_dropout, training="self.training")
class FeatureAlphaDropout(_DropoutNd):
    """Variant of :class:`AlphaDropout` that replaces whole channels instead of single elements.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> _ = torch.manual_seed(0)
    >>> nn.FeatureAlphaDropout(0.5)(torch.ones(1, 4, 2, 2))[..., 0, 0]
    tensor([[-0.7792, -0.7792,  1.6656, -0.7792]])
    """


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
