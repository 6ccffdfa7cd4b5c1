"""Kernels of layer_norm, group_norm, rms_norm and batch_norm for large arrays, by compiled Numba loops.

The loops are in ``kernels/numba/normalization.py``. A function returns None if no loop supports its arrays; the caller
then computes with NumPy. Arrays are processed row by row, where a row holds the elements along the last axis. In
batch_norm each row has one mean, one scale and one weight, so the sums of each row are computed first and each result
row is ``x * scale + shift``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from .numba_dispatch import loops
from .reductions_numba import rows, squares, summed

SHORT = 16  # rows of fewer places are not worth a loop of their own


def by_layer(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any, Any] | None:
    """Return (output, mean, None, 1 / standard deviation) of layer_norm for the matrix ``x`` (rows, columns).

    Each row is normalised, multiplied by ``weight`` and increased by ``bias``. ``eps`` is added to the variance, which
    is not returned: None is the third element instead. The result is None if no Numba loop supports ``x``.
    """
    width = x.shape[1]
    if rows(x, width) is None:
        return None
    kind = x.dtype
    weight = numpy.ones(width, kind) if weight is None else numpy.ascontiguousarray(weight, kind).reshape(-1)
    bias = numpy.zeros(width, kind) if bias is None else numpy.ascontiguousarray(bias, kind).reshape(-1)
    mean, rstd, out = numpy.empty((len(x), 1), kind), numpy.empty((len(x), 1), kind), numpy.empty(x.shape, kind)
    loops("normalization").layer_norm(x, weight, bias, kind.type(eps), mean.reshape(-1), rstd.reshape(-1), out)
    return out, mean, None, rstd


def by_group(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any, Any] | None:
    """Return (output, mean, None, 1 / standard deviation) of group_norm for ``x`` (batch, groups, channels, elements).

    Each group is normalised; each channel is multiplied by its element of ``weight`` and increased by its element of
    ``bias``. ``eps`` is added to the variance, which is not returned: None is the third element instead. The result is
    None if no Numba loop supports ``x``.
    """
    images, groups, channels, places = x.shape
    if places < SHORT or rows(x, places) is None:
        return None
    kind, form = x.dtype, (images * groups, channels * places)
    weight = numpy.ones((groups, channels), kind) if weight is None else numpy.ascontiguousarray(weight, kind)
    bias = numpy.zeros((groups, channels), kind) if bias is None else numpy.ascontiguousarray(bias, kind)
    mean, rstd, out = numpy.empty(form[0], kind), numpy.empty(form[0], kind), numpy.empty(x.shape, kind)
    affine = weight.reshape(groups, channels), bias.reshape(groups, channels)
    loops("normalization").group_norm(x.reshape(form), *affine, kind.type(eps), mean, rstd, out.reshape(form))
    kept = (images, groups, 1, 1)
    return out, mean.reshape(kept), None, rstd.reshape(kept)


def by_mean_square(x: Any, weight: Any, eps: float) -> Any:
    """Return ``x / sqrt(mean(x**2) + eps) * weight``, with the mean over the last axis.

    The result is None if no Numba loop supports ``x``.
    """
    width = x.shape[-1]
    given = rows(x, width)
    if given is None:
        return None
    weight = numpy.ones(width, x.dtype) if weight is None else numpy.ascontiguousarray(weight, x.dtype)
    out = numpy.empty(x.shape, x.dtype)
    loops("normalization").rms_norm(given[0], weight, x.dtype.type(eps), out.reshape(given[0].shape))
    return out


def _by_places(x: Any, axes: tuple[int, ...], *others: Any) -> list[Any] | None:
    if x.ndim < 3 or x.ndim - 1 not in axes or x.shape[-1] < SHORT:
        return None
    return rows(x, x.shape[-1], *others)


def _of_rows(values: Any, x: Any) -> Any:
    """Return ``values`` as a 1-d array with one number for each row of ``x``.

    A row holds the elements along the last axis. ``values`` broadcasts to ``x`` and has size 1 along the last axis.
    """
    return numpy.ascontiguousarray(numpy.broadcast_to(values[..., 0], x.shape[:-1]), x.dtype).reshape(-1)


def _gathered(of_rows: Any, x: Any, axes: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """Return the sums of ``of_rows`` over ``axes`` of ``x``, in the shape ``kept``.

    ``of_rows`` has one number for each row of ``x``, such as the sum of the row. Therefore the last axis is ignored if
    ``axes`` includes it. The sums are computed in double precision.
    """
    rest = tuple(axis for axis in axes if axis != x.ndim - 1)
    return numpy.add.reduce(of_rows.reshape(x.shape[:-1]), axis=rest, dtype=numpy.float64).reshape(kept)


def moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any] | None:
    """Return the mean and the biased variance of ``x`` over ``axes``, which have size 1 in the results.

    The result is None if no Numba loop supports ``x``.
    """
    given = _by_places(x, axes)
    if given is None:
        return None
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    count = x.size // math.prod(kept)
    mean = (_gathered(summed(x, (x.ndim - 1,), False), x, axes, kept) / count).astype(x.dtype)
    centre = numpy.broadcast_to(mean, (*x.shape[:-1], 1))
    variance = _gathered(squares(x, centre, (x.ndim - 1,), False), x, axes, kept) / count
    return mean, variance.astype(x.dtype)


def scaled(x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    """Return ``(x - mean) * rstd * weight + bias``, where all operands but ``x`` have size 1 along the last axis.

    ``weight`` and ``bias`` may be None. The result is None if no Numba loop supports the arrays.
    """
    given = _by_places(x, (x.ndim - 1,))
    if given is None or mean.shape[-1] != 1:
        return None
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    out = numpy.empty(x.shape, x.dtype)
    loops("normalization").scaled_rows(given[0], _of_rows(scale, x), _of_rows(shift, x), out.reshape(given[0].shape))
    return out


def input_gradient(grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """Return the gradient of ``x`` in ``(x - mean) * rstd * weight``, or None if no Numba loop supports the arrays.

    ``grad`` is the gradient of this product. ``mean`` and ``rstd`` (1 / standard deviation) are computed from ``x``
    over ``axes``; their dependence on ``x`` is included in the gradient.
    """
    out = numpy.empty(x.shape, x.dtype)
    if x.ndim == 2 and axes == (1,):
        given = rows(x, x.shape[1], grad)
        if given is None:
            return None
        scale = numpy.ones(x.shape[1], x.dtype) if weight is None else numpy.ascontiguousarray(weight).reshape(-1)
        moments = (numpy.ascontiguousarray(each).reshape(-1) for each in (mean, rstd))
        loops("normalization").layer_norm_backward(given[1], scale, given[0], *moments, out)
        return out
    given = _by_places(x, axes, grad)
    if given is None:
        return None
    if x.ndim == 4 and axes == (2, 3):
        form = (x.shape[0] * x.shape[1], x.shape[2], x.shape[3])
        scale = numpy.ones(x.shape[1:3], x.dtype) if weight is None else numpy.ascontiguousarray(weight)
        lines = [each.reshape(form) if each.shape else each for each in (given[1], given[0])]
        moments = (numpy.ascontiguousarray(each).reshape(-1) for each in (mean, rstd))
        loops("normalization").group_norm_backward(
            lines[0], scale.reshape(x.shape[1:3]), lines[1], *moments, out.reshape(form)
        )
        return out
    sums = _sums_with(given, x, mean)
    if weight is not None:
        sums = sums * _of_rows(weight, x)[:, None]
    count = x.size // mean.size
    level, slope = (_gathered(sums[:, k], x, axes, mean.shape) / count for k in (0, 1))
    slope = slope * rstd * rstd
    first = rstd if weight is None else rstd * weight
    numbers = first, -rstd * slope, rstd * (slope * mean - level)
    loops("normalization").blended_rows(
        given[1], given[0], *(_of_rows(each, x) for each in numbers), out.reshape(given[0].shape)
    )
    return out


def _sums_with(given: list[Any], x: Any, mean: Any) -> Any:
    sums = numpy.empty((len(given[0]), 2), x.dtype)
    loops("normalization").sums_with(given[1], given[0], _of_rows(mean, x), sums)
    return sums


def weight_gradient(grad: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the gradient of the weight: ``grad * (x - mean) * rstd`` summed to ``shape``, the shape of the weight.

    ``mean`` and ``rstd`` (1 / standard deviation) are the statistics of ``x`` over ``axes``. The result is None if no
    Numba loop supports the arrays.
    """
    if x.ndim == 2 and axes == (1,):
        given = rows(x, x.shape[1], grad)
        if given is None:
            return None
        parts = numpy.empty((min(len(x), 16), x.shape[1]), x.dtype)
        moments = (numpy.ascontiguousarray(each).reshape(-1) for each in (mean, rstd))
        loops("normalization").layer_norm_weight_backward(given[1], given[0], *moments, parts)
        return numpy.add.reduce(parts, 0, dtype=numpy.float64).astype(x.dtype).reshape(shape)
    given = _by_places(x, axes, grad)
    if given is None:
        return None
    found = _sums_with(given, x, mean)[:, 1] * _of_rows(rstd, x)
    rest = tuple(axis for axis, size in enumerate(shape[:-1]) if size == 1)
    whole = numpy.add.reduce(found.reshape(x.shape[:-1]), axis=rest, dtype=numpy.float64)
    return whole.astype(x.dtype).reshape(shape)
