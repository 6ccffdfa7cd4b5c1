"""Normalization: batch_norm, layer_norm, group_norm, instance_norm, rms_norm, local_response_norm and normalize.

Batch, layer and group norm share one computation. It first reshapes the input, so that the elements with a common mean
and variance fill whole axes, and reshapes the weight, so that it broadcasts with the input.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy

from ...core.devices import array_module_of
from ...core.dtypes import HALF_PRECISION, dtype_of, finfo, scalar_name, unsupported
from ...core.grad_mode import recording
from ...core.tensor import Tensor, wrap
from ...core.views import assign, bump_version, set_version, version_of
from ...dispatch.declare import op, public
from ...dispatch.form import FIRST
from ...dispatch.operand_promotion import PLAIN
from ...dispatch.transform_tensor import active_levels, innermost_batch
from ...kernels import normalization
from ...kernels.half_precision import upcast_all_half
from ...kernels.normalization import Layout
from ...kernels.reductions import F32
from ..creation.conversion import clone
from ..elementwise.arithmetic import div_true
from ..elementwise.elementary import pow as power
from ..elementwise.elementary import rsqrt
from ..elementwise.rounding import clamp_min
from ..reductions.sums import mean as mean_of
from ..reductions.sums import vector_norm
from ..shape.join import cat
from ..shape.views import expand_as, reshape


@lru_cache(maxsize=64)
def _layer_layout(shape: tuple[int, ...], last: tuple[int, ...]) -> Layout:
    width = math.prod(last)
    rows = math.prod(shape[: len(shape) - len(last)])
    return Layout((rows, width), (1,), (1, width))


@lru_cache(maxsize=64)
def _batch_layout(shape: tuple[int, ...]) -> Layout:
    channels = shape[1]
    return Layout((shape[0], channels, math.prod(shape[2:])), (0, 2), (1, channels, 1))


@lru_cache(maxsize=64)
def _group_layout(shape: tuple[int, ...], groups: int) -> Layout:
    width = shape[1] // groups
    return Layout((shape[0], groups, width, math.prod(shape[2:])), (2, 3), (1, groups, width, 1))


def _floats(name: str, x: Any) -> None:
    if x.dtype.kind in "biuc":
        raise unsupported(name, x.dtype)


# -- Gradients -------------------------------------------------------------------------------------------------------


def _upcast_operands(np: Any, layout: Layout, eps: float | None, x: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """Return the tuple (x, mean, rstd) in the precision in which the gradient of a normalization is computed.

    ``rstd`` is the reciprocal standard deviation. Half-precision arrays are cast to float32. ``x`` is reshaped to
    ``layout.shape``, and ``mean`` and ``rstd`` are reshaped so that they broadcast with it. If ``x`` has half
    precision, ``mean`` and ``rstd`` are computed again from ``x``, because the results of the forward pass were
    rounded. If ``eps`` is None, they are constants such as running statistics, and are not computed again.
    """
    short = x.dtype in HALF_PRECISION and eps is not None
    x, mean, rstd = upcast_all_half(x, mean, rstd)
    x = x.reshape(layout.shape)
    if short:
        mean, variance = normalization.mean_and_variance(np, x, layout.axes)
        return x, mean, 1 / np.sqrt(variance + eps)
    kept = tuple(1 if axis in layout.axes else size for axis, size in enumerate(layout.shape))
    return x, mean.reshape(kept), rstd.reshape(kept)


@op(function=False, method=False, opmath=True, event="retrograd::norm_backward")
def norm_backward(
    np: Any, grad_output: Any, self: Any, weight: Any, mean: Any, rstd: Any, /, layout: Layout, eps: float
) -> Any:
    """Return the gradient of a normalization with respect to its input ``self``.

    ``mean`` and ``rstd`` (the reciprocal standard deviation) are results of the normalization with the same ``layout``
    (the shape and the axes of the normalization) and ``eps``.
    """
    x, mean, rstd = _upcast_operands(np, layout, eps, self, mean, rstd)
    grad_output, weight = upcast_all_half(grad_output, weight)
    weight = None if weight is None else weight.reshape(layout.weight)
    grad = grad_output.reshape(layout.shape)
    return normalization.input_gradient(np, grad, weight, x, mean, rstd, layout.axes).reshape(self.shape)


@op(function=False, method=False, opmath=True, vmap="slices", event="retrograd::norm_weight_backward")
def norm_weight_backward(
    np: Any, grad_output: Any, self: Any, mean: Any, rstd: Any, /, layout: Layout, eps: float | None
) -> Any:
    """Return the gradient of a normalization of ``self`` with respect to its weight, as a 1-d array.

    ``mean`` and ``rstd`` (the reciprocal standard deviation) are those with which ``self`` was normalized. ``eps`` is
    the number that was added to the variance of ``self``, or None if ``mean`` and ``rstd`` are running statistics.
    ``layout`` has the shape and the axes of the normalization.
    """
    x, mean, rstd = _upcast_operands(np, layout, eps, self, mean, rstd)
    grad = upcast_all_half(grad_output)[0].reshape(layout.shape)
    return normalization.weight_gradient(np, grad, x, mean, rstd, layout.axes, layout.weight).reshape(-1)


def _normalized_input(F: Any, self: Any, layout: Layout, eps: float) -> tuple[Any, Any]:
    """Return ``(self - mean) * rstd``, the normalized input, and ``rstd``, the reciprocal standard deviation.

    Mean and ``rstd`` are computed from ``self`` by operations of the namespace ``F``, so that both results can be
    differentiated. The first result has the shape ``layout.shape``. The second one has size 1 along ``layout.axes``.
    """
    x = F.reshape(self, layout.shape)
    gap = x - F.mean_dim(x, layout.axes, True)
    scale = F.rsqrt(F.mean_dim(gap * gap, layout.axes, True) + eps)
    return gap * scale, scale


def _apply_jacobian(F: Any, x: Any, flat: Any, scale: Any, axes: tuple[int, ...]) -> Any:
    """Return the product of ``x`` and the Jacobian matrix of a normalization over ``axes``.

    ``flat`` is the normalized input, and ``scale`` is the reciprocal standard deviation. The Jacobian matrix is
    symmetric. Therefore the result is the vector-Jacobian product and also the Jacobian-vector product.
    """
    return scale * (x - F.mean_dim(x, axes, True) - flat * F.mean_dim(x * flat, axes, True))


def _weighted(F: Any, x: Any, weight: Any, layout: Layout) -> Any:
    return x if weight is None else x * F.reshape(weight, layout.weight)


def _to_weight(F: Any, x: Any, layout: Layout, shape: tuple[int, ...]) -> Any:
    rest = tuple(axis for axis, size in enumerate(layout.weight) if size == 1)
    return F.reshape(F.sum_dim(x, rest, True), shape)


def _norm_grad_rule(F: Any, g: Any, self: Any, weight: Any, grad_output_shape: Any, layout: Layout, eps: float) -> Any:
    flat, scale = _normalized_input(F, self, layout, eps)
    result = _apply_jacobian(F, F.reshape(g, layout.shape), flat, scale, layout.axes)
    return F.reshape(_weighted(F, result, weight, layout), grad_output_shape)


def _norm_weight_rule(
    F: Any, g: Any, grad_output: Any, self: Any, weight_shape: Any, layout: Layout, eps: float
) -> Any:
    flat, scale = _normalized_input(F, self, layout, eps)
    result = _apply_jacobian(F, F.reshape(g, layout.shape), flat, scale, layout.axes)
    return _to_weight(F, result * F.reshape(grad_output, layout.shape), layout, weight_shape)


def _norm_self_rule(
    F: Any, g: Any, grad_output: Any, self: Any, weight: Any, self_shape: Any, layout: Layout, eps: float
) -> Any:
    # n * scale * c is <g, the gradient>; a, b and c are means over the axes. Both flat and scale depend on x.
    axes = layout.axes
    flat, scale = _normalized_input(F, self, layout, eps)
    h, s = F.reshape(g, layout.shape), _weighted(F, F.reshape(grad_output, layout.shape), weight, layout)
    a, b = F.mean_dim(h * flat, axes, True), F.mean_dim(s * flat, axes, True)
    c = F.mean_dim(h * s, axes, True) - F.mean_dim(h, axes, True) * F.mean_dim(s, axes, True) - a * b
    result = -(scale * scale * c) * flat - _apply_jacobian(F, h * (scale * b) + s * (scale * a), flat, scale, axes)
    return F.reshape(result, self_shape)


norm_backward.derivative(grad_output=_norm_grad_rule, self=_norm_self_rule, weight=_norm_weight_rule)


def _weight_grad_rule(
    F: Any, g: Any, self: Any, mean: Any, rstd: Any, self_shape: Any, layout: Layout, eps: float | None
) -> Any:
    if eps is None:
        kept = _statistics_shape(layout)
        flat = (F.reshape(self, layout.shape) - F.reshape(mean, kept)) * F.reshape(rstd, kept)
    else:
        flat, _ = _normalized_input(F, self, layout, eps)
    return F.reshape(F.reshape(g, layout.weight) * flat, self_shape)


def _weight_self_rule(
    F: Any, g: Any, grad_output: Any, self: Any, rstd: Any, self_shape: Any, layout: Layout, eps: float | None
) -> Any:
    slope = F.reshape(g, layout.weight) * F.reshape(grad_output, layout.shape)
    if eps is None:
        return F.reshape(slope * F.reshape(rstd, _statistics_shape(layout)), self_shape)
    flat, scale = _normalized_input(F, self, layout, eps)
    return F.reshape(_apply_jacobian(F, slope, flat, scale, layout.axes), self_shape)


def _statistics_shape(layout: Layout) -> tuple[int, ...]:
    return tuple(1 if axis in layout.axes else size for axis, size in enumerate(layout.shape))


norm_weight_backward.derivative(grad_output=_weight_grad_rule, self=_weight_self_rule)


def _bias_rule(F: Any, g: Any, layout: Layout, bias_shape: tuple[int, ...]) -> Any:
    return _to_weight(F, F.reshape(g, layout.shape), layout, bias_shape)


# -- Layer and group norm --------------------------------------------------------------------------------------------


def _block(backward: str) -> Any:
    return op(
        function=False, method=False, opmath=True, backward=backward, outputs=("out", "mean", "rstd"), differentiable=1,
        optional=("weight", "bias"),
    )  # fmt: skip


@_block("NativeLayerNormBackward0")
def layer_norm_block(np: Any, self: Any, weight: Any, bias: Any, /, layout: Layout, eps: float) -> Any:
    """Return ``self`` normalized over its last dimensions, times ``weight``, plus ``bias``.

    Also return the mean and the reciprocal standard deviation of each row. A row is the set of elements of ``self``
    that are normalized together.
    """
    if self.dtype is not F32:
        _floats("LayerNormKernelImpl", self)
    out, mean, _, rstd = normalization.standardised(np, self, weight, bias, layout, eps)
    return out if out.shape == self.shape else out.reshape(self.shape), mean, rstd


@_block("NativeGroupNormBackward0")
def group_norm_block(np: Any, self: Any, weight: Any, bias: Any, /, layout: Layout, eps: float) -> Any:
    """Return ``self`` normalized over groups of channels of each sample, times ``weight``, plus ``bias``.

    Also return the mean and the reciprocal standard deviation of each group.
    """
    _floats("GroupNormKernelImpl", self)
    out, mean, _, rstd = normalization.standardised(np, self, weight, bias, layout, eps)
    return out.reshape(self.shape), mean.reshape(layout.shape[:2]), rstd.reshape(layout.shape[:2])


for _each in (layer_norm_block, group_norm_block):
    _each.derivative(
        self=lambda F, g, self, weight, mean, rstd, layout, eps: F.norm_backward(
            g, self, weight, mean, rstd, layout, eps
        ),
        weight=lambda F, g, self, mean, rstd, weight_shape, layout, eps: F.reshape(
            F.norm_weight_backward(g, self, mean, rstd, layout, eps), weight_shape
        ),
        bias=lambda F, g, bias_shape, layout: _bias_rule(F, g, layout, bias_shape),
    )


def _check_normalized(input: Tensor, normalized_shape: Any, star: str = "*, ", **given: Tensor | None) -> None:
    """Raise RuntimeError if the last sizes of ``input`` or the shape of a parameter is not ``normalized_shape``.

    ``given`` maps the names of the parameters, such as ``weight``, to tensors or None. ``star`` is the text for the
    first dimensions of ``input`` in the error message, which prints the expected shape as ``[*, 2, 3]``.
    """
    last = tuple(normalized_shape)
    if not last:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, each in given.items():
        if each is not None and tuple(each.shape) != last:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(each.shape)} "
                f"and normalized_shape = {list(last)}"
            )
    if tuple(input.shape[-len(last) :]) != last:
        sizes = ", ".join(map(str, last))
        raise RuntimeError(
            f"Given normalized_shape={list(last)}, expected input with shape [{star}{sizes}], but got input of "
            f"size{list(input.shape)}"
        )


def _sequence(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    return tuple(value)


@public(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`layer_norm` of ``input``, and the mean and the reciprocal standard deviation of each row.

    A row is the set of elements of ``input`` that are normalized together.
    """
    last = _sequence("native_layer_norm", normalized_shape)
    _check_normalized(input, last, weight=weight, bias=bias)
    _check_dtypes(input, weight, bias)
    out, mean, rstd = layer_norm_block(input, weight, bias, _layer_layout(input.shape, last), eps)
    size = (*input.shape[: input.ndim - len(last)], *[1] * len(last))
    return out, reshape(mean, size), reshape(rstd, size)


def _needs_no_checks(x: Any, last: tuple[int, ...], weight: Tensor | None, bias: Tensor | None = None) -> bool:
    """Return whether a normalization of ``x`` over its last dimension may omit the checks of its arguments.

    This is the case if ``last``, the normalized shape, has the size of the last dimension of ``x`` as its only item,
    and if ``weight`` and ``bias`` are None or have the shape ``last`` and the dtype of ``x``.
    """
    dtype = x.dtype
    for each in (weight, bias):
        if each is not None and (each._array.shape != last or each._array.dtype is not dtype):
            return False
    return len(last) == 1 and x.shape[-1:] == last


def _fast_path_layout(x: Any, normalized_shape: Any, weight: Any, bias: Any) -> Layout | None:
    """Return the :class:`Layout` (shapes and axes) of ``layer_norm`` if its arguments are simple, else None.

    For simple arguments, the result is computed directly on the arrays. For other arguments, ``layer_norm`` first
    checks and converts them. :func:`_needs_no_checks` determines which arguments are simple.
    """
    last = normalized_shape if normalized_shape.__class__ is tuple else tuple(normalized_shape)
    if not _needs_no_checks(x, last, weight, bias):
        return None
    return _layer_layout(x.shape, last)


@public(
    method=False,
    fast_path=layer_norm_block,
    result_class=FIRST,
    operands=("input", "weight", "bias"),
    layout=_fast_path_layout,
)
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """Return ``input`` with mean 0 and variance 1 over its last dimensions, times ``weight``, plus ``bias``.

    ``normalized_shape`` has the sizes of the normalized dimensions, and is the shape of ``weight`` and ``bias``. The
    variance is the biased one, and ``eps`` is added to it. ``cudnn_enable`` has no effect.

    >>> import retrograd as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    last = _sequence("layer_norm", normalized_shape)
    _check_normalized(input, last, weight=weight, bias=bias)
    _check_dtypes(input, weight, bias)
    if _is_mixed(input, weight, bias):
        return layer_norm(input.float(), last, weight, bias, eps).to(input.dtype)
    result: Tensor = layer_norm_block(input, weight, bias, _layer_layout(input._array.shape, last), eps)[0]
    return result


@public(method=False)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Return ``input`` (N, C, …) with mean 0 and variance 1 over each group of channels of each sample.

    The C channels are split into ``num_groups`` groups. Then each channel is multiplied by its element of ``weight``
    (C,), and its element of ``bias`` (C,) is added. ``eps`` is added to the variance. ``cudnn_enabled`` has no effect.
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if num_groups < 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    _check_dtypes(input, weight, bias)
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and tuple(each.shape) != (shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(each.shape)} and input of shape {list(shape)}"
            )
    _check_values(shape, num_groups)
    if _is_mixed(input, weight, bias):
        return group_norm(input.float(), num_groups, weight, bias, eps).to(input.dtype)
    result: Tensor = group_norm_block(input, weight, bias, _group_layout(shape, num_groups), eps)[0]
    return result


def _check_values(shape: tuple[int, ...], groups: int) -> None:
    sizes = [shape[0] * shape[1] // groups, groups, *shape[2:]]
    if sizes[0] * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {sizes}")


@public(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`group_norm` of ``input``, and the mean and the reciprocal standard deviation of each group.

    ``N`` is the batch size, ``C`` the number of channels, ``HxW`` the number of elements per channel, ``group`` the
    number of groups.
    """
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if input._array.size != N * C * HxW or input._array.shape[:2] != (N, C):
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.")
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and tuple(each.shape) != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(each.shape)} and input of shape {list(input.shape)}"
            )
    if C % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={group}"
        )
    result: tuple[Tensor, Tensor, Tensor] = group_norm_block(
        input, weight, bias, _group_layout(tuple(input.shape), group), eps
    )
    return result


# -- Batch and instance norm -----------------------------------------------------------------------------------------


@_block("NativeBatchNormBackward0")
def batch_norm_block(
    np: Any, self: Any, weight: Any, bias: Any, /, layout: Layout, running: Any, momentum: float, eps: float | None,
    small: float,
) -> Any:  # fmt: skip
    """Return the tuple (output, mean, reciprocal standard deviation) of batch normalization.

    The output is ``self`` normalized over all dimensions except dimension 1 (the channels), times ``weight``, plus
    ``bias``. The other results have one element per channel.

    In training, ``eps`` is added to the variance of the batch, and ``running``, the pair (running mean, running
    variance), is updated in place with ``momentum``. ``running`` is None if there are no running statistics. In
    evaluation, ``eps`` is None: ``self`` is normalized with the running statistics, and ``small`` is added to the
    running variance.
    """
    _floats("batch_norm", self)
    if eps is None:
        return normalization.by_constants(np, self, weight, bias, layout, running, small)
    found = None
    if np.__name__ == "cupy":  # by one CUDA kernel; the running statistics prevent one for this whole function
        named = {"layout": layout, "eps": eps}
        found = np.launch.computed(normalization.standardised, "batch_norm", (self, weight, bias), named)
    out, mean, variance, rstd = found or normalization.standardised(np, self, weight, bias, layout, eps)
    if running is not None:
        if np.__name__ == "cupy" and _update_by_one_kernel(np, running, mean, variance, layout, momentum):
            return out.reshape(self.shape), mean.reshape(-1), rstd.reshape(-1)
        count = layout.shape[0] * layout.shape[2]
        unbiased = variance * self.dtype.type(count / (count - 1) if count > 1 else math.inf)
        for target, fresh in zip(running, (mean, unbiased), strict=True):
            if target is not None:
                np.add(target * (1 - momentum), momentum * fresh.reshape(-1), target)
    return out.reshape(self.shape), mean.reshape(-1), rstd.reshape(-1)


def _update_by_one_kernel(np: Any, running: Any, mean: Any, variance: Any, layout: Layout, momentum: float) -> bool:
    """Update both running statistics on a GPU by one kernel; return false if there is none for them."""
    if any(each is None or each.dtype != mean.dtype for each in running):
        return False
    count = layout.shape[0] * layout.shape[2]
    factor = count / (count - 1) if count > 1 else math.inf
    arrays = [*running, mean.reshape(-1), variance.reshape(-1)]
    done: bool = np.many.update(partial(_moved_statistics, momentum, factor), [arrays])
    return done


def _moved_statistics(
    momentum: float, factor: float, np: Any, dtype: Any, mean: Any, variance: Any, fresh_mean: Any, fresh_variance: Any
) -> None:
    """Update the running statistics ``mean`` and ``variance`` in place; ``factor`` makes a variance unbiased."""
    np.add(mean * (1 - momentum), momentum * fresh_mean, mean)
    np.add(variance * (1 - momentum), momentum * (fresh_variance * dtype.type(factor)), variance)


#: Mixed dtypes are checked by ``_check_dtypes``. Without this flag the kernel could run twice, and so update the running
#: statistics twice.
batch_norm_block.op.mixes = True


def _batch_self_rule(
    F: Any, g: Any, self: Any, weight: Any, mean: Any, rstd: Any, self_shape: Any, layout: Layout, eps: float | None
) -> Any:
    if eps is not None:
        return F.norm_backward(g, self, weight, mean, rstd, layout, eps)
    scale = _weighted(F, F.reshape(rstd, layout.weight), weight, layout)
    return F.reshape(F.reshape(g, layout.shape) * scale, self_shape)


batch_norm_block.derivative(
    self=_batch_self_rule,
    weight=lambda F, g, self, mean, rstd, layout, eps: F.norm_weight_backward(g, self, mean, rstd, layout, eps),
    bias=lambda F, g, bias_shape, layout: _bias_rule(F, g, layout, bias_shape),
)


def _check_dtypes(input: Tensor, *given: Tensor | None) -> None:
    """Raise RuntimeError if a tensor in ``given`` does not have the dtype of ``input``.

    ``given`` holds parameters and running statistics, or None for those that are missing. If ``input`` has a
    half-precision dtype, all tensors in ``given`` may be float32 instead.
    """
    kind = input._array.dtype
    kinds = [each._array.dtype for each in given if each is not None]
    other = next((each for each in kinds if each != kind), None)
    if other is None:
        return
    if kinds[0] == kind:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(dtype_of(other))}")
    if any(each != numpy.float32 for each in kinds):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if kind not in HALF_PRECISION:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _is_mixed(input: Tensor, *given: Tensor | None) -> bool:
    """Return whether ``input`` has a half-precision dtype, but the parameters ``given`` are float32."""
    kind = input._array.dtype
    return kind in HALF_PRECISION and any(each is not None and each._array.dtype != kind for each in given)


def _check_channels(shape: tuple[int, ...], training: bool, **given: Tensor | None) -> None:
    channels = shape[1] if len(shape) > 1 else 0
    for name, each in given.items():
        if each is None:
            if name.startswith("running") and not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif each._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {each.numel()}")
    if len(shape) < 2 and 0 not in shape:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got 1)"
        )


@public(method=False)
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float, *, out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return :func:`batch_norm` of ``input``, and the mean and the reciprocal standard deviation of each channel.

    If ``training`` is false, the second and the third result are empty tensors.
    """
    if active_levels() and (special := innermost_batch((running_mean, running_var))) is not None:
        given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
        return special.by_slices(native_batch_norm, given, {})
    running = (running_mean, running_var)
    if active_levels() and hasattr(input, "_tangent") and any(hasattr(each, "_tangent") for each in running):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )
    _check_channels(
        input._array.shape, training, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    _check_dtypes(input, weight, bias, running_mean, running_var)
    if input._array.ndim < 2:
        empty = wrap(input._array.copy())
        return clone(input), empty, empty
    kept = [each for each in (running_mean, running_var) if each is not None]
    arrays = tuple(None if each is None else each._array for each in running) if kept else None
    layout = _batch_layout(input._array.shape)
    before = [(each, each._array.copy(), version_of(each)) for each in kept] if training else []
    try:
        out, mean, rstd = batch_norm_block(
            input, weight, bias, layout, arrays, momentum, float(eps) if training else None, float(eps)
        )
        if not training:
            empty = wrap(input._array[:0].reshape(-1).copy())
            return out, empty, empty
        for each in kept:
            bump_version(each)
    except KeyboardInterrupt:
        for each, values, version in before:
            each._array[...] = values
            set_version(each, version)
        raise
    return out, mean, rstd


@public(method=False)
def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of each channel of ``input``, and update the running statistics by them.

    The shape of ``input`` is (batch, channels, …). Each of ``running_mean`` and ``running_var`` moves to the new value by
    the share ``momentum``; ``running_var`` to the unbiased variance. Raise RuntimeError if ``input`` has no elements.

    >>> import retrograd as torch
    >>> torch.batch_norm_update_stats(torch.tensor([[1.0], [3.0]]), None, None, 0.1)
    (tensor([2.]), tensor([1.]))
    """
    shape, array = input._array.shape, input._array
    if not array.size:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(shape)}")
    if len(shape) < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(len(shape), 1)}, {max(len(shape) - 1, 0)}], but got 1)"
        )
    if array.dtype.kind not in "fV":
        raise unsupported("batch_norm_update_stats_cpu", array.dtype)
    _check_channels(shape, True, running_mean=running_mean, running_var=running_var)
    wide = input.detach().float() if array.dtype in HALF_PRECISION else input.detach()
    dims = [0, *range(2, len(shape))]
    mean, var, count = wide.mean(dims), wide.var(dims, correction=0), array.size // shape[1]
    for running, new in ((running_mean, mean), (running_var, var * count / (count - 1) if count > 1 else var / 0)):
        if running is not None:
            running.mul_(1 - momentum).add_(momentum * new)
    return mean.to(input.dtype), var.to(input.dtype)


@public(method=False, name="batch_norm")
def _batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Return ``nn.functional.batch_norm`` of the arguments. ``cudnn_enabled`` has no effect."""
    if not input._array.size:  # no statistics; the parameters may have another dtype
        result = input.clone() if weight is None else input * weight[0]
        return result if bias is None else result + bias[0]
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Return ``input`` (N, C, …) with mean 0 and variance 1 in each channel, times ``weight`` (C,), plus ``bias`` (C,).

    If ``training`` is true, ``input`` is normalized with the mean and the variance of the batch. The running statistics
    are set to ``(1 - momentum) * running + momentum * batch`` in place, with the unbiased variance. If ``training`` is
    false, ``input`` is normalized with the running statistics. ``eps`` is added to the variance.
    """
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if training and input.ndim and input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@public(method=False, name="instance_norm")
def _instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Return ``nn.functional.instance_norm`` of the arguments. ``cudnn_enabled`` has no effect."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if (special := innermost_batch((running_mean, running_var))) is not None:
        given = (input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)
        return special.by_slices(_instance_norm, given, {})
    batch, channels = input.shape[:2]
    scale, shift, mean, var = (
        None if each is None else each.repeat(batch) for each in (weight, bias, running_mean, running_var)
    )
    mean, var = (None if each is None else each.to(input.dtype) for each in (mean, var))
    reshaped = input.contiguous().view(1, batch * channels, *input.shape[2:])
    out = native_batch_norm(reshaped, scale, shift, mean, var, use_input_stats, momentum, eps)[0]
    for target, fresh in ((running_mean, mean), (running_var, var)):
        if target is not None and fresh is not None:
            assign(target, numpy.add.reduce(fresh._array.reshape(batch, channels)) / batch)
    return out.view(input.shape)


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Return ``input`` (N, C, …) with mean 0 and variance 1 in each channel of each sample.

    Then each channel is multiplied by its element of ``weight`` (C,), and its element of ``bias`` (C,) is added. If
    ``use_input_stats`` is false, ``input`` is normalized with the running mean and variance (C,) instead.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


# -- Normalizations without a mean -----------------------------------------------------------------------------------


@public(method=False)
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Return ``weight * input / sqrt(mean(input**2) + eps)``, with the mean over the last dimensions.

    ``normalized_shape`` has the sizes of these dimensions, and is the shape of ``weight``. The default of ``eps`` is
    the machine epsilon of the dtype.
    """
    last = _sequence("rms_norm", normalized_shape)
    _check_normalized(input, last, "*", weight=weight)
    _check_rms(input)
    kind = input.dtype
    wide = input.float() if kind.numpy in HALF_PRECISION else input
    small = finfo(wide.dtype).eps if eps is None else eps
    if (result := _root_mean_square(input, last, weight, small)) is not None:
        return result
    axes = tuple(range(-len(last), 0))
    result = wide * rsqrt(mean_of(power(wide, 2), axes, True) + small)
    if weight is not None:
        result = result * weight
    return result.to(kind)


def _root_mean_square(input: Tensor, last: tuple[int, ...], weight: Tensor | None, eps: float) -> Tensor | None:
    """Return :func:`rms_norm` of ``input``, computed by a loop that is compiled to machine code, or None.

    ``last`` holds the sizes of the normalized dimensions. The result is None if a gradient is required, if the
    arguments need checks, or if there is no compiled loop for the arrays. Then the caller uses other operations.
    """
    given = [input] if weight is None else [input, weight]
    if len(last) != 1 or any(each.__class__ not in PLAIN for each in given):
        return None
    if not _needs_no_checks(input._array, last, weight) or (recording() and any(each.requires_grad for each in given)):
        return None
    result = normalization.root_mean_square(numpy, input._array, None if weight is None else weight._array, eps)
    return None if result is None else wrap(result)


def _check_rms(input: Tensor) -> None:
    if input._array.dtype.kind in "biu":
        raise unsupported("rms_norm", input._array.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return ``input`` (N, C, …) divided by ``(k + alpha * mean) ** beta``.

    ``mean`` is the mean of the squares of ``size`` neighbouring channels. Before the first and after the last channel,
    the squares count as zeros.
    """
    if input.ndim < 3:
        raise ValueError("Expected 3D or higher dimensionality" + " " * 26 + f"input (got {input.ndim} dimensions)")
    if not input.numel():
        return input
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    square = input * input
    before, after = size // 2, (size - 1) // 2
    np = array_module_of(input._array)
    edges = [wrap(np.zeros((input.shape[0], n, *input.shape[2:]), input._array.dtype)) for n in (before, after)]
    windows = cat([edges[0], square, edges[1]], 1).unfold(1, size, 1)
    return div_true(input, power(mean_of(windows, -1) * alpha + k, beta))


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Return ``input`` divided by its norm of order ``p`` along ``dim``, or by ``eps`` if the norm is smaller.

    >>> import retrograd as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = expand_as(clamp_min(vector_norm(input, p, dim, True), eps), input)
    return div_true(input, length)


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]
