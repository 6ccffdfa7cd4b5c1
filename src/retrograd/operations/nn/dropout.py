"""Dropout: dropout, dropout1d, dropout2d, dropout3d, alpha_dropout and feature_alpha_dropout.

For the same seed, these functions drop the same elements as PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core.devices import array_module_of
from ...core.lazy_tensor import Lazy
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import op, public
from ...dispatch.operand_promotion import F32, F64
from ...dispatch.transform_tensor import draw, in_vmap
from ...kernels import samplers
from ...runtime.user_frame import warn
from ..creation.factory import empty_array_like
from ..creation.random import bernoulli_, default_generator
from ..elementwise.arithmetic import mul
from ..elementwise.comparison import ne
from ..shape.views import squeeze, unsqueeze

ALPHA = 1.7580993408473766  # minus the limit of selu at minus infinity


def _keep_mask(input: Tensor, p: float, feature: bool) -> Tensor:
    """Return a mask for dropout, whose elements are 1 with probability ``1 - p``, otherwise 0.

    The mask has the dtype of ``input``. If ``feature`` is true, one element is drawn for each channel of each sample,
    and the mask broadcasts to the shape of ``input``.
    """
    np = array_module_of(input._array)
    if feature:
        if input.ndim < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        blank = np.empty((*input.shape[:2], *[1] * (input.ndim - 2)), input._array.dtype)
    else:
        blank = empty_array_like(np, input, input._array.dtype, None)
    if in_vmap():
        return bernoulli_(draw(lambda shape: np.empty(shape, blank.dtype), blank.shape), 1 - p)
    return bernoulli_(wrap(blank), 1 - p)


def _zero(input: Tensor) -> Tensor:
    return wrap(array_module_of(input._array).zeros((), input._array.dtype))


def scaled_keep_mask(input: Tensor, p: float, feature: bool) -> Tensor:
    """Return factors for dropout, which are ``1 / (1 - p)`` with probability ``1 - p``, otherwise 0.

    The factors have the dtype of ``input``. If ``feature`` is true, one factor is drawn for each channel of each
    sample, and the factors broadcast to the shape of ``input``.
    """
    if p == 1:
        return _zero(input)
    array = input._array
    if (
        in_vmap()
        or feature
        or array.dtype not in (F32, F64)
        or not array.flags.c_contiguous
        or array_module_of(array) is not numpy
    ):
        return _keep_mask(input, p, feature).div_(1 - p)
    return _scaled_factors(array.shape, array.dtype, p)


def _lazy_factors(input: Tensor, p: float) -> Tensor | None:
    """Return :func:`scaled_keep_mask` of a lazy tensor, which has no array; None if this needs the array."""
    shape, dtype = tuple(input.shape), input.dtype.numpy
    if p == 1 or 0 in shape or dtype not in (F32, F64) or not input.is_contiguous():
        return None
    return _scaled_factors(shape, dtype, p)


def _scaled_factors(shape: tuple[int, ...], dtype: Any, p: float) -> Tensor:
    scale = dtype.type(1) / dtype.type(1 - p)
    return wrap(samplers.bernoulli(default_generator._stream, shape, dtype, 1 - p, scale))


def _drop(input: Tensor, p: float, train: bool, inplace: bool, feature: bool = False) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train:
        return input
    if input.__class__ is Lazy and not inplace and not feature:
        factor = _lazy_factors(input, p)
        if factor is not None:
            return mul(input, factor)
    if input._array.size == 0:
        return input
    factor = scaled_keep_mask(input, p, feature)
    return input.mul_(factor) if inplace else mul(input, factor)


def _drop_alpha(input: Tensor, p: float, train: bool, inplace: bool, feature: bool = False) -> Tensor:
    """Return ``input`` after alpha dropout with probability ``p``, which preserves mean 0 and variance 1.

    Dropped elements are set to the limit of selu at minus infinity. Then all elements are scaled and shifted. If
    ``feature`` is true, whole channels of each sample are dropped. If ``train`` is false, ``input`` is returned
    unchanged. If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if input._array.size == 0 or p == 0 or not train:
        return input
    if p == 1:
        zero = _zero(input)
        return input.mul_(zero) if inplace else input * zero
    kept = _keep_mask(input, p, feature)
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (kept - 1).mul_(ALPHA * scale).add_(ALPHA * scale * p)
    kept.mul_(scale)
    return input.mul_(kept).add_(shift) if inplace else input * kept + shift


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


# -- torch.* ---------------------------------------------------------------------------------------------------------


def _export(name: str, drop: Any, feature: bool, what: str) -> None:
    def out_of_place(input: Tensor, p: float, train: bool) -> Tensor:
        result: Tensor = drop(input, p, train, False, feature)
        return result

    def in_place(input: Tensor, p: float, train: bool) -> Tensor:
        result: Tensor = drop(input, p, train, True, feature)
        return result

    for function, title in ((out_of_place, name), (in_place, name + "_")):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = (
            f"Return ``input`` {what}.\n\nIf ``train`` is false, ``input`` is returned unchanged."
            + " Otherwise ``input`` is overwritten by the result." * (function is in_place)
        )
        public(name=title, method=False)(function)


_export(
    "dropout",
    _drop,
    False,
    "with each element set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p)",
)
_export(
    "feature_dropout",
    _drop,
    True,
    "with each channel set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p)",
)
_export(
    "alpha_dropout",
    _drop_alpha,
    False,
    "after alpha dropout of elements with probability ``p``, which preserves mean 0 and variance 1",
)
_export(
    "feature_alpha_dropout",
    _drop_alpha,
    True,
    "after alpha dropout of channels with probability ``p``, which preserves mean 0 and variance 1",
)


@op(function=False, method=False, backward="NativeDropoutBackward0", vmap="elementwise")
def native_dropout_block(np: Any, self: Any, mask: Any, /, scale: float) -> Any:
    """Return ``self * scale`` where ``mask`` is True, and 0 elsewhere."""
    return self * mask * np.asarray(scale, self.dtype)


native_dropout_block.derivative(self=lambda F, g, mask, scale: F.native_dropout_block(g, mask, scale))


@public(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return ``input`` after dropout, and the boolean mask of the elements that were not dropped.

    Each element is set to 0 with probability ``p``. The other elements are multiplied by 1 / (1 - p). If ``train`` is
    false, no element is dropped.
    """
    if p == 0 or not train or input._array.size == 0:
        every = wrap(array_module_of(input._array).ones(input.shape, bool))
        return native_dropout_block(input, every, 1.0), every
    mask = ne(_keep_mask(input, p, False), 0)
    return native_dropout_block(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


# -- nn.functional ---------------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with each element set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p).

    If ``training`` is false, ``input`` is returned unchanged. If ``inplace`` is true, ``input`` is overwritten by the
    result.

    >>> import retrograd as torch
    >>> seed = torch.manual_seed(0)
    >>> torch.nn.functional.dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    _check(p)
    return _drop(input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return ``input``, an output of selu, with elements dropped with probability ``p`` (arXiv 1706.02515).

    Dropped elements are set to the limit of selu at minus infinity instead of 0. Then all elements are scaled and
    shifted, so that mean 0 and variance 1 are preserved. If ``training`` is false, ``input`` is returned unchanged. If
    ``inplace`` is true, ``input`` is overwritten by the result.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.alpha_dropout(torch.zeros(4), p=0.5, training=True)
    tensor([-0.7792, -0.7792,  0.7792, -0.7792])
    """
    _check(p)
    return _drop_alpha(input, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return ``input`` after :func:`alpha_dropout`, with whole channels dropped instead of single elements.

    Each channel of each sample is dropped with probability ``p``.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.feature_alpha_dropout(torch.zeros(1, 4, 2), training=True)[0]
    tensor([[-0.7792, -0.7792],
            [-0.7792, -0.7792],
            [ 0.7792,  0.7792],
            [-0.7792, -0.7792]])
    """
    _check(p)
    return _drop_alpha(input, p, training, inplace, True)


def _deprecated(name: str, ndim: int, spatial: int, kinds: str) -> None:
    warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
        "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {kinds} inputs).",
    )


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    if batched:
        return _drop(input, p, training, inplace, True)
    lifted = input.unsqueeze_(0) if inplace else unsqueeze(input, 0)
    result = _drop(lifted, p, training, inplace, True)
    return result.squeeze_(0) if inplace else squeeze(result, 0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with each channel set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p).

    ``input`` has shape (N, C, L) or (C, L). If ``training`` is false, ``input`` is returned unchanged. If ``inplace``
    is true, ``input`` is overwritten by the result.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout1d(torch.ones(1, 4, 2))[0]
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.],
            [0., 0.]])
    """
    _check(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, input.ndim == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with each channel set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p).

    ``input`` has shape (N, C, H, W), or (N, C, L) with a warning. If ``training`` is false, ``input`` is returned
    unchanged. If ``inplace`` is true, ``input`` is overwritten by the result.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout2d(torch.ones(1, 4, 2, 2)).sum((2, 3))
    tensor([[0., 0., 8., 0.]])
    """
    _check(p)
    if input.ndim not in (3, 4):
        _deprecated("dropout2d", input.ndim, 2, "3D or 4D")
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
        )
    return _drop(input, p, training, inplace, True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with each channel set to 0 with probability ``p``, and the others multiplied by 1 / (1 - p).

    ``input`` has shape (N, C, D, H, W) or (C, D, H, W). If ``training`` is false, ``input`` is returned unchanged. If
    ``inplace`` is true, ``input`` is overwritten by the result.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.dropout3d(torch.ones(1, 4, 2, 2, 2)).sum((2, 3, 4))
    tensor([[ 0.,  0., 16.,  0.]])
    """
    _check(p)
    if input.ndim not in (4, 5):
        _deprecated("dropout3d", input.ndim, 3, "4D or 5D")
    return _drop_channels(input, p, training, inplace, input.ndim == 5)


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]
