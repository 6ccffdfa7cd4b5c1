"""Initialisation of parameters, as ``torch.nn.init``: each function fills a tensor in place and returns the tensor.

If the random generator has the same seed, the values are equal to those that PyTorch draws.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..dispatch.declare import public_form
from ..operations.creation.factory import empty_like
from ..operations.creation.factory import eye as identity
from ..operations.creation.random import Generator, randperm
from ..operations.linalg.factorizations import qr
from ..operations.shape.join import where_ as where
from ..operations.shape.rearrange import diag
from ..runtime.user_frame import warn

Filled = Callable[..., Tensor]
Source = Generator | None

#: Gain of each nonlinearity; where the nonlinearity has a parameter, a function of that parameter.
GAINS: dict[str, Any] = {
    **dict.fromkeys(
        ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"),
        1,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1 + slope**2)),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the recommended gain for the weights of a layer that is followed by the activation ``nonlinearity``.

    Initialisation functions such as :func:`xavier_normal_` multiply the standard deviation of the weights by the gain.
    ``nonlinearity`` is the name of an activation function. ``param`` is the negative slope of ``"leaky_relu"``, and is
    not used for other activations.

    >>> from retrograd import nn
    >>> nn.init.calculate_gain("leaky_relu", 1)
    1.0
    """
    if nonlinearity not in GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    gain = GAINS[nonlinearity]
    if not callable(gain):
        return gain
    if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
        raise ValueError(f"negative_slope {param} not a valid number")
    return gain(0.01 if param is None else param)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Source = None) -> Tensor:
    """Fill ``tensor`` with values from the uniform distribution on [``a``, ``b``).

    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.uniform_(torch.empty(3), -1.0, 1.0)
    tensor([-0.0075,  0.5364, -0.8230])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Source = None) -> Tensor:
    """Fill ``tensor`` with values from the normal distribution with mean ``mean`` and standard deviation ``std``.

    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.normal_(torch.empty(3), mean=10.0)
    tensor([11.5410,  9.7066,  7.8212])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _normal_cdf(x: float) -> float:
    """Return the cumulative distribution function of the standard normal distribution at ``x``."""
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Source = None
) -> Tensor:
    """Fill ``tensor`` with values from a normal distribution that is truncated to [``a``, ``b``].

    ``mean`` and ``std`` are the mean and standard deviation before truncation.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.trunc_normal_(torch.empty(1000), std=0.02, a=-0.04, b=0.04)
    >>> bool(weight.abs().max() <= 0.04)
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    if tensor.is_meta:
        return tensor
    share = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with no_grad():
        if share > 0.3:
            _fill_by_redrawing(tensor, mean, std, a, b, generator)
        else:
            _fill_by_rejection(tensor, mean, std, a, b, generator)
    return tensor


def _fill_by_redrawing(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Source) -> None:
    """Fill ``tensor`` with normal values, and draw each value outside [``a``, ``b``] again until all are inside.

    ``trunc_normal_`` uses this method if the probability of a value inside the interval is greater than 0.3.
    """
    tensor.normal_(mean, std, generator=generator)
    low, high = (tensor.new_tensor(bound).item() for bound in (a, b))
    while True:
        outside = (tensor < low).logical_or(tensor > high)
        if not bool(outside.any()):
            return
        tensor.copy_(where(outside, empty_like(tensor).normal_(mean, std, generator=generator), tensor))


def _fill_by_rejection(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Source) -> None:
    """Fill ``tensor`` from the truncated normal distribution by rejection sampling.

    Values are drawn uniformly from [``a``, ``b``]. Each value is accepted with a probability proportional to the normal
    density at this value, and otherwise drawn again.
    """
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    pending: Any = None
    while pending is None or bool(pending.any()):
        drawn = empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(drawn if pending is None else where(pending, drawn, tensor))
        density = drawn.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = empty_like(tensor).uniform_(generator=generator).log_().gt(density)
        pending = refused if pending is None else where(pending, refused, pending)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill ``tensor`` with ``val``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.init.constant_(torch.empty(3), 0.5)
    tensor([0.5000, 0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with 1.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.init.ones_(torch.empty(3))
    tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with 0.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.init.zeros_(torch.empty(3))
    tensor([0., 0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill the matrix ``tensor`` with ones on the diagonal and zeros elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(identity(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the convolution weight ``tensor`` so that the convolution returns its input channels unchanged.

    The output channels are split into ``groups`` groups of equal size. In each group, output channel i is a copy of
    input channel i: the kernel of this pair of channels is 1 at its centre. All other elements of ``tensor`` are 0.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.init.dirac_(torch.empty(2, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]],
    <BLANKLINE>
            [[0., 0., 0.],
             [0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outs, ins, *kernel = tensor.shape
    if outs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    middle = [size // 2 for size in kernel]
    per_group = outs // groups
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, ins)):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return ``(fan_in, fan_out)`` of a linear or convolution layer with the weight ``tensor``.

    ``fan_in`` is the number of input elements that each output element depends on. ``fan_out`` is the number of output
    elements that each input element affects.
    """
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Source = None) -> Tensor:
    """Fill the weight ``tensor`` with uniform values, so that its layer preserves the variance of its input.

    The variance of the gradients is also preserved. The standard deviation is ``gain * sqrt(2 / (fan_in + fan_out))``,
    where ``fan_in`` and ``fan_out`` are the numbers of inputs and outputs of the layer (Glorot and Bengio 2010).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.xavier_uniform_(torch.empty(300, 300))
    >>> round(weight.max().item(), 2)  # (6 / (300 + 300)) ** 0.5
    0.1
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Source = None) -> Tensor:
    """Fill the weight ``tensor`` with normal values, so that its layer preserves the variance of its input.

    The variance of the gradients is also preserved. The standard deviation is ``gain * sqrt(2 / (fan_in + fan_out))``,
    where ``fan_in`` and ``fan_out`` are the numbers of inputs and outputs of the layer (Glorot and Bengio 2010).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.xavier_normal_(torch.empty(300, 500))
    >>> round(weight.std().item(), 2)  # (2 / (300 + 500)) ** 0.5
    0.05
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return the standard deviation with which Kaiming initialisation draws the elements of the weight ``tensor``.

    It is ``gain / sqrt(fan)``. If ``mode`` is ``"fan_in"``, ``fan`` is the number of inputs on which an output depends;
    if ``mode`` is ``"fan_out"``, it is the number of outputs that an input affects. The gain depends on the activation
    function ``nonlinearity`` and, for ``"leaky_relu"``, on its negative slope ``a``. If ``tensor`` has no elements, a
    warning is issued and None is returned.
    """
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Source = None
) -> Tensor:
    """Fill the weight ``tensor`` with uniform values, so that its layer preserves variances (He et al. 2015).

    With ``mode="fan_in"`` the variance of the activations is preserved, with ``mode="fan_out"`` the variance of the
    gradients. ``nonlinearity`` is the name of the activation after the layer. ``a`` is the negative slope of
    ``"leaky_relu"``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.kaiming_uniform_(torch.empty(200, 600), nonlinearity="relu")
    >>> round(weight.max().item(), 2)  # (6 / 600) ** 0.5
    0.1
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Source = None
) -> Tensor:
    """Fill the weight ``tensor`` with normal values, so that its layer preserves variances (He et al. 2015).

    With ``mode="fan_in"`` the variance of the activations is preserved, with ``mode="fan_out"`` the variance of the
    gradients. ``nonlinearity`` is the name of the activation after the layer. ``a`` is the negative slope of
    ``"leaky_relu"``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.kaiming_normal_(torch.empty(200, 800), nonlinearity="relu")
    >>> round(weight.std().item(), 2)  # (2 / 800) ** 0.5
    0.05
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Source = None) -> Tensor:
    """Fill ``tensor`` with ``gain`` times a random matrix whose rows or columns are orthonormal (Saxe et al. 2013).

    A tensor of shape (n, …) is treated as a matrix with n rows; all other dimensions are flattened to the columns. The
    rows are orthonormal if there are fewer rows than columns. Otherwise the columns are orthonormal.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.orthogonal_(torch.empty(2, 3))
    >>> torch.allclose(weight @ weight.T, torch.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            flat.t_()
        q, r = qr(flat)
        q *= diag(r, 0).sign()
        if rows < columns:
            q.t_()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Source = None) -> Tensor:
    """Fill the matrix ``tensor`` with normal values, and set random elements of each column to 0 (Martens 2010).

    ``sparsity`` is the fraction of the elements of each column that are set to 0. ``std`` is the standard deviation of
    the normal values.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> weight = nn.init.sparse_(torch.empty(10, 2), sparsity=0.5)
    >>> (weight == 0).sum(0)
    tensor([5, 5])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated_alias(function: Any) -> Filled:
    """Return a deprecated alias of ``function``, for example ``eye`` for ``eye_``; each call issues a FutureWarning."""
    new, old = function.__name__, function.__name__[:-1]

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"Deprecated alias of :func:`{new}`; each call issues a FutureWarning."
    return deprecated


# PyTorch passes these functions, not the tensor methods that they call, to ``__torch_function__``.
uniform_, normal_, constant_, kaiming_uniform_ = (
    public_form(each, "nn.init", each.__name__) for each in (uniform_, normal_, constant_, kaiming_uniform_)
)
uniform, normal, constant, eye, dirac = map(_deprecated_alias, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_deprecated_alias, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_deprecated_alias, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_deprecated_alias, (orthogonal_, sparse_))

_no_grad_uniform_, _no_grad_normal_, _no_grad_fill_ = uniform_, normal_, constant_
_no_grad_trunc_normal_, _no_grad_zero_ = trunc_normal_, zeros_

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_",
    "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip
