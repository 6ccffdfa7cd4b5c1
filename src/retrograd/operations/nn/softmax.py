"""Softmax operations: softmax, log_softmax, softmin and gumbel_softmax."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...core.devices import array_module_of
from ...core.dtypes import HALF_PRECISION, bool_, scalar_name
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import exported, public
from ...dispatch.declare import op as declared
from ...dispatch.transform_tensor import draw
from ...kernels import softmax as kernels
from ...kernels.half_precision import upcast_all_half
from ...runtime.user_frame import warn
from ..creation.factory import zeros_like
from ..elementwise.arithmetic import neg
from ..indexing.gather_scatter import scatter_

op = partial(declared, in_order=True)  # results are contiguous; NumPy would keep the operand's memory order


@op(name="softmax_block", backward="SoftmaxBackward0", opmath=True, function=False, method=False)
def softmax_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return ``exp(self)`` divided by its sum along ``dim``, computed without overflow."""
    return kernels.softmax(np, self, dim)


@op(function=False, method=False, opmath=True, vmap="leading", event="_softmax_backward_data")
def softmax_backward_data(np: Any, grad_output: Any, output: Any, /, dim: int) -> Any:
    """Return ``output * (grad_output - sum(grad_output * output, dim))``, the gradient of softmax along ``dim``.

    ``output`` is the softmax.
    """
    if not output.ndim:
        return np.zeros_like(output)
    if output.dtype in HALF_PRECISION:
        grad_output, output = upcast_all_half(grad_output, output)
    return kernels.softmax_gradient(np, output, grad_output, dim)


def _softmax_backward_self(F: Any, g: Any, grad_output: Any, output: Any, output_shape: Any, dim: int) -> Any:
    if not output_shape:
        return F.zeros_as(g)
    along = g * grad_output
    return along - g * F.sum_dim(grad_output * output, dim, True) - grad_output * F.sum_dim(g * output, dim, True)


softmax_backward_data.derivative(
    grad_output=lambda F, g, output, dim: F.softmax_backward_data(g, output, dim), output=_softmax_backward_self
)
softmax_block.derivative(self=lambda F, g, out, dim: F.softmax_backward_data(g, out, dim))


def _of_block(name: str, block: Any) -> None:
    def function(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
        source = input.float() if half_to_float else input
        result: Tensor = block(source, normalize_dim(dim, input.ndim))
        return result

    function.__doc__ = f"Return ``{name[1:]}`` of ``input`` along ``dim``, as float32 if ``half_to_float`` is true."
    function.__name__ = function.__qualname__ = name
    public(method=False, name=name)(function)


@public(method=False, name="_masked_softmax")
def masked_softmax(input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """Return the softmax of ``input`` along ``dim`` (default: the last), in which elements with a true mask count as 0.

    ``mask`` has the shape of ``input``, (L, L) with ``mask_type=0``, or (B, L) with ``mask_type=1``, where ``input`` has
    the shape (B, heads, L, L). The result is nan where all elements along ``dim`` are masked.
    """
    if mask.dtype is not bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape != input.shape:
        if mask_type not in (0, 1):
            raise RuntimeError("For mask_type == 2 mask shape should match input shape")
        mask = mask if mask_type == 0 else mask.reshape((mask.shape[0], 1, 1, -1))
    result: Tensor = softmax_block(
        input.masked_fill(mask, -math.inf), normalize_dim(-1 if dim is None else dim, input.ndim)
    )
    return result


@op(name="log_softmax_block", backward="LogSoftmaxBackward0", opmath=True, function=False, method=False)
def log_softmax_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return the logarithm of the softmax of ``self`` along ``dim``, computed without overflow."""
    return kernels.log_softmax(np, self, dim)


@op(function=False, method=False, opmath=True, vmap="leading", event="_log_softmax_backward_data")
def log_softmax_backward_data(np: Any, grad_output: Any, output: Any, /, dim: int) -> Any:
    """Return ``grad_output - exp(output) * sum(grad_output, dim)``, the gradient of log-softmax along ``dim``.

    ``output`` is the log-softmax.
    """
    if not output.ndim:
        return np.zeros_like(output)
    if output.dtype in HALF_PRECISION:
        grad_output, output = upcast_all_half(grad_output, output)
    return kernels.log_softmax_gradient(np, output, grad_output, dim)


def _log_softmax_backward_grad(F: Any, g: Any, output: Any, output_shape: Any, dim: int) -> Any:
    if not output_shape:
        return F.zeros_as(g)
    return g - F.sum_dim(g * F.exp(output), dim, True)


def _log_softmax_backward_self(F: Any, g: Any, grad_output: Any, output: Any, output_shape: Any, dim: int) -> Any:
    if not output_shape:
        return F.zeros_as(g)
    return -g * F.exp(output) * F.sum_dim(grad_output, dim, True)


log_softmax_backward_data.derivative(grad_output=_log_softmax_backward_grad, output=_log_softmax_backward_self)
log_softmax_block.derivative(self=lambda F, g, out, dim: F.log_softmax_backward_data(g, out, dim))
_of_block("_softmax", softmax_block)
_of_block("_log_softmax", log_softmax_block)


# -- Public functions ------------------------------------------------------------------------------------------------


def _along(block: Any, input: Tensor, dim: int, dtype: Any) -> Tensor:
    source = input if dtype is None else input.to(dtype)
    result: Tensor = block(source, normalize_dim(dim, source._array.ndim))
    return result


@public(name="softmax", fast_path=softmax_block, when=lambda dim: dim.__class__ is int)
def _softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Any = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along ``dim``: positive elements whose sum is 1.

    If ``dtype`` is not None, ``input`` is first cast to ``dtype``.

    >>> import retrograd as torch
    >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return _along(softmax_block, input, dim, dtype)


@public(name="log_softmax", fast_path=log_softmax_block, when=lambda dim: dim.__class__ is int)
def _log_softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax` of ``input`` along ``dim``, computed without overflow.

    If ``dtype`` is not None, ``input`` is first cast to ``dtype``.
    """
    return _along(log_softmax_block, input, dim, dtype)


@exported("special", "softmax")
def special_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return ``exp(input) / sum(exp(input))`` along ``dim``, in ``dtype`` if it is passed."""
    return _along(softmax_block, input, dim, dtype)


@exported("special", "log_softmax")
def special_log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax` of ``input`` along ``dim``, in ``dtype`` if it is passed."""
    return _along(log_softmax_block, input, dim, dtype)


def _implicit_dim(name: str, ndim: int) -> int:
    """Return the dimension that PyTorch uses if the function ``name`` is called without ``dim``.

    The dimension is 0 if ``ndim`` is 0, 1 or 3, otherwise 1. PyTorch's warning about the missing ``dim`` is issued.
    """
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if ndim in (0, 1, 3) else 1


@public(function=False, method=False, fast_path=softmax_block, when=lambda dim: dim.__class__ is int)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along ``dim``: positive elements whose sum is 1.

    If ``dtype`` is not None, ``input`` is first cast to ``dtype``.
    """
    at = _implicit_dim("softmax", input.ndim) if dim is None else dim
    return _along(softmax_block, input, at, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return :func:`softmax` of ``-input`` along ``dim``."""
    at = _implicit_dim("softmin", input.ndim) if dim is None else dim
    return _along(softmax_block, neg(input), at, dtype)


@public(function=False, method=False, fast_path=log_softmax_block, when=lambda dim: dim.__class__ is int)
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax` of ``input`` along ``dim``, computed without overflow.

    If ``dtype`` is not None, ``input`` is first cast to ``dtype``.
    """
    at = _implicit_dim("log_softmax", input.ndim) if dim is None else dim
    return _along(log_softmax_block, input, at, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a random sample from the categorical distribution with unnormalized log-probabilities ``logits``.

    The sample is a probability vector along ``dim``. The lower the temperature ``tau``, the closer the sample is to a
    one-hot vector (arXiv 1611.01144). If ``hard`` is true, the result is a one-hot vector whose gradient is that of the
    probability vector. ``eps`` has no effect.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    if not logits.is_floating_point():
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {scalar_name(logits.dtype)}"
        )
    samples = draw(lambda shape: array_module_of(logits._array).empty(shape, logits._array.dtype), logits._array.shape)
    noise = -samples.exponential_().log()
    soft = _along(softmax_block, (logits + noise) / tau, dim, None)
    if not hard:
        return soft
    chosen = soft.max(dim, keepdim=True)[1]
    exact = scatter_(zeros_like(soft), dim, chosen, 1.0)
    return exact - soft.detach() + soft


__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]
