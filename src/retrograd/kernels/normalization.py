"""Kernels of batch_norm, layer_norm, group_norm, instance_norm and rms_norm: statistics over axes, and the gradients.

Small arrays are normalised by products with constant matrices, because a reduction and an operand that has to be
broadcast take NumPy 1 µs each. Large arrays are processed by the Numba loops of ``kernels/numba/normalization.py``, row
by row, where a row holds the elements along the last axis. In batch_norm each row has one mean, one scale and one
weight, so the sums of each row are computed first and each result row is ``x * scale + shift``. NumPy processes arrays
in slices whose temporary arrays stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from ..core.devices import is_meta, on_gpu
from .numba_dispatch import loops
from .reductions import F32, mean_broadcast, rows_of, squares, sum_axes, summed
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import CACHED_PIECE, LARGE, LOOP_ROW, SMALL, SMALL_ROW

#: By the length of a row, the float32 matrices that put the row's mean at every place of it.
MEANS = [numpy.full((n, n), 1 / max(n, 1), F32) for n in range(SMALL_ROW + 1)]


class Layout(NamedTuple):
    """Shapes and axes for one normalization, such as a call of ``layer_norm``.

    The input is reshaped to ``shape`` before it is normalised. The mean and the variance are computed over ``axes`` of
    the reshaped input. ``weight`` is the shape to which the weight and the bias are reshaped, so that they broadcast
    with the input.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    weight: tuple[int, ...]


# -- Slices ----------------------------------------------------------------------------------------------------------


def iterate_slices(x: Any, axes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield index tuples that divide ``x`` into slices along the first axis that is not in ``axes``.

    The slices can be normalised over ``axes`` independently of each other, and each slice fits the cache. An array on a
    GPU is one slice.
    """
    at = next((axis for axis in range(x.ndim) if axis not in axes), None)
    if at is None or x.size <= CACHED_PIECE or is_meta(x) or on_gpu(x):
        yield (slice(None),)
        return
    step = max(1, CACHED_PIECE * x.shape[at] // x.size)
    for start in range(0, x.shape[at], step):
        yield (*[slice(None)] * at, slice(start, start + step))


def _within(x: Any, piece: tuple[slice, ...]) -> Any:
    """Return the elements of ``x``, such as a mean or a weight, that belong to one slice of the normalised array.

    ``piece`` is the index of the slice. Axes along which ``x`` has size 1 are not sliced.
    """
    return x[tuple(slice(None) if size == 1 else part for size, part in zip(x.shape, piece, strict=False))]


# -- Statistics ------------------------------------------------------------------------------------------------------


def _mean(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean of ``x`` over ``axes``, which have size 1 in the result."""
    result = sum_axes(np, x, axes, True)
    return result / math.prod(x.shape[axis] for axis in axes) if x.size else result


def _spread(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean of ``x`` over ``axes``, in a shape that broadcasts with ``x``.

    In the result each of ``axes`` has size 1, or the size that it has in ``x``, with each mean repeated, where this is
    faster.
    """
    return mean_broadcast(np, x, axes[0]) if len(axes) == 1 else _mean(np, x, axes)


@at_least(LARGE, NUMBA)
def _moments_by_loop(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    given = _by_places(x, axes)
    if given is None:
        return None
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    count = x.size // math.prod(kept)
    mean = (_gathered(summed(x, (x.ndim - 1,), False), x, axes, kept) / count).astype(x.dtype)
    centre = numpy.broadcast_to(mean, (*x.shape[:-1], 1))
    variance = _gathered(squares(x, centre, (x.ndim - 1,), False), x, axes, kept) / count
    return mean, variance.astype(x.dtype)


@kernel(_moments_by_loop)
def mean_and_variance(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean and the biased variance of ``x`` over ``axes``, which have size 1 in the results."""
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    mean, variance = np.empty(kept, x.dtype), np.empty(kept, x.dtype)
    for piece in iterate_slices(x, axes):
        part = x[piece]
        mean[piece] = centre = _mean(np, part, axes)
        gap = part - centre
        variance[piece] = _mean(np, np.multiply(gap, gap, out=gap), axes)
    return mean, variance


def _by_places(x: Any, axes: tuple[int, ...], *others: Any) -> list[Any] | None:
    if x.ndim < 3 or x.ndim - 1 not in axes or x.shape[-1] < LOOP_ROW:
        return None
    return rows_of(x, x.shape[-1], *others)


def _of_rows(values: Any, x: Any) -> Any:
    """Return ``values`` as a 1-d array with one number for each row of ``x``.

    A row holds the elements along the last axis. ``values`` broadcasts to ``x`` and has size 1 along the last axis.
    """
    found = numpy.empty(x.shape[:-1], x.dtype)
    found[...] = values[..., 0]  # broadcast_to takes 10 µs
    return found.reshape(-1)


def _gathered(of_rows: Any, x: Any, axes: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """Return the sums of ``x`` over ``axes``, computed from ``of_rows``, the sums over the last axis only.

    The last axis is one of ``axes``. ``of_rows`` is summed over the other axes, in double precision. The result has the
    shape ``kept``.
    """
    rest = tuple(axis for axis in axes if axis != x.ndim - 1)
    return numpy.add.reduce(of_rows.reshape(x.shape[:-1]), axis=rest, dtype=numpy.float64).reshape(kept)


# -- Normalization ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _channels(np: Any, shape: tuple[int, ...], weight: tuple[int, ...], rows: tuple[int, ...]) -> Any:
    """Return, for each element of an array, the flat index of the weight that multiplies the element.

    The array has the shape ``shape``. The weights have the shape ``weight``, which broadcasts to ``shape``. The result
    is reshaped to ``rows``.
    """
    every = np.arange(math.prod(weight)).reshape(weight)
    return np.ascontiguousarray(np.broadcast_to(every, shape)).reshape(rows)


@lru_cache(maxsize=64)
def _constant(np: Any, value: float) -> Any:
    """Return ``value`` as a 0-d float32 array, which NumPy's ufuncs process twice as fast as a Python number."""
    return np.asarray(value, F32)


def _rows(x: Any, axes: tuple[int, ...]) -> tuple[Any, int]:
    """Return ``x`` as a matrix that is to be normalised along one axis, and the index of that axis.

    If ``axes`` are the last axes of ``x``, the index is 1. If ``axes`` begin with the first axis, as in batch_norm, the
    index is 0, provided that the axes after the second have one element in total. Otherwise the index is 2, which means
    that ``x`` cannot be normalised as a matrix.
    """
    shape = x.shape
    if axes[0]:
        return x if len(shape) == 2 else x.reshape(-1, math.prod(shape[axes[0] :])), 1
    return x if len(shape) == 2 else x.reshape(len(x), -1), 0 if math.prod(shape[2:]) == 1 else 2


def _affine_of_rows(np: Any, x: Any, weight: Any, bias: Any, shape: tuple[int, ...], along: tuple[int, ...]) -> Any:
    """Return ``x * weight + bias``, computed in place in ``x``.

    ``shape`` is the shape of ``x`` before it was flattened. ``weight`` and ``bias`` are None or have the shape
    ``along``, which broadcasts to ``shape``.
    """
    channels = _channels(np, shape, along, x.shape)
    if weight is not None:
        np.multiply(x, weight.take(channels), x)
    if bias is not None:
        np.add(x, bias.take(channels), x)
    return x


@at_most(SMALL)
def _standardised_small(np: Any, x: Any, weight: Any, bias: Any, layout: Layout, eps: float) -> Any:
    if x.__class__ is not ndarray or x.dtype is not F32 or not x.size:
        return None
    x = x if x.shape == layout.shape else x.reshape(layout.shape)
    rows, axis = _rows(x, layout.axes)
    if axis > 1 or (size := rows.shape[axis]) > SMALL_ROW:
        return None
    mean = rows.dot(MEANS[size]) if axis else MEANS[size].dot(rows)
    out = np.subtract(rows, mean)
    scale = np.multiply(out, out)
    scale = scale.dot(MEANS[size]) if axis else MEANS[size].dot(scale)
    variance = None if axis else scale[:1].copy()
    np.add(scale, _constant(np, eps), scale)
    np.reciprocal(np.sqrt(scale, scale), scale)
    np.multiply(out, scale, out)
    if weight is not None or bias is not None:
        _affine_of_rows(np, out, weight, bias, x.shape, layout.weight)
    return (out, mean.T[0], None, scale.T[0]) if axis else (out, mean[:1], variance, scale[:1])


@at_least(LARGE, NUMBA)
def _standardised_by_loop(np: Any, x: Any, weight: Any, bias: Any, layout: Layout, eps: float) -> Any:
    if not layout.axes[0]:
        return None
    by = _layer_by_loop if len(layout.shape) == 2 else _group_by_loop
    return by(x if x.shape == layout.shape else x.reshape(layout.shape), weight, bias, eps)


@kernel(_standardised_small, _standardised_by_loop)
def standardised(np: Any, x: Any, weight: Any, bias: Any, layout: Layout, eps: float) -> Any:
    """Return (output, mean, variance, 1 / standard deviation) of a normalization of ``x``.

    The output is ``x`` normalized, times ``weight``, plus ``bias``; the caller reshapes it to the shape of ``x``.
    ``layout`` holds the axes of the statistics. ``eps`` is added to the variance. The returned variance may be None,
    except for batch_norm.
    """
    x = x if x.shape == layout.shape else x.reshape(layout.shape)
    mean, variance = mean_and_variance(np, x, layout.axes)
    rstd = 1 / np.sqrt(variance + eps)
    affine = [None if each is None else each.reshape(layout.weight) for each in (weight, bias)]
    return _normalised(np, x, mean, rstd, *affine), mean, variance, rstd


def _layer_by_loop(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any, Any] | None:
    """Return (output, mean, None, 1 / standard deviation) of layer_norm for the matrix ``x`` (rows, columns).

    Each row is normalised, multiplied by ``weight`` and increased by ``bias``. ``eps`` is added to the variance, which
    is not returned: None is the third element instead. The result is None if no Numba loop supports ``x``.
    """
    width = x.shape[1]
    if rows_of(x, width) is None:
        return None
    kind = x.dtype
    weight = numpy.ones(width, kind) if weight is None else numpy.ascontiguousarray(weight, kind).reshape(-1)
    bias = numpy.zeros(width, kind) if bias is None else numpy.ascontiguousarray(bias, kind).reshape(-1)
    mean, rstd, out = numpy.empty((len(x), 1), kind), numpy.empty((len(x), 1), kind), numpy.empty(x.shape, kind)
    loops("normalization").layer_norm(x, weight, bias, kind.type(eps), mean.reshape(-1), rstd.reshape(-1), out)
    return out, mean, None, rstd


def _group_by_loop(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any, Any] | None:
    """Return (output, mean, None, 1 / standard deviation) of group_norm for ``x`` (batch, groups, channels, elements).

    Each group is normalised; each channel is multiplied by its element of ``weight`` and increased by its element of
    ``bias``. ``eps`` is added to the variance, which is not returned: None is the third element instead. The result is
    None if no Numba loop supports ``x``.
    """
    images, groups, channels, places = x.shape
    if places < LOOP_ROW or rows_of(x, places) is None:
        return None
    kind, form = x.dtype, (images * groups, channels * places)
    weight = numpy.ones((groups, channels), kind) if weight is None else numpy.ascontiguousarray(weight, kind)
    bias = numpy.zeros((groups, channels), kind) if bias is None else numpy.ascontiguousarray(bias, kind)
    mean, rstd, out = numpy.empty(form[0], kind), numpy.empty(form[0], kind), numpy.empty(x.shape, kind)
    affine = weight.reshape(groups, channels), bias.reshape(groups, channels)
    loops("normalization").group_norm(x.reshape(form), *affine, kind.type(eps), mean, rstd, out.reshape(form))
    kept = (images, groups, 1, 1)
    return out, mean.reshape(kept), None, rstd.reshape(kept)


@at_least(LARGE, NUMBA)
def _normalised_by_loop(np: Any, x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    given = _by_places(x, (x.ndim - 1,))
    if given is None or mean.shape[-1] != 1:
        return None
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    out = numpy.empty(x.shape, x.dtype)
    loops("normalization").scaled_rows(given[0], _of_rows(scale, x), _of_rows(shift, x), out.reshape(given[0].shape))
    return out


@kernel(_normalised_by_loop)
def _normalised(np: Any, x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    """Return ``(x - mean) * rstd * weight + bias``. ``weight`` and ``bias`` may be None."""
    out = normalise(np, x, mean, rstd)
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out


def normalise(np: Any, x: Any, mean: Any, rstd: Any) -> Any:
    """Return ``(x - mean) * rstd`` in C order, where ``rstd`` is 1 / standard deviation."""
    out = np.subtract(x, mean, out=np.empty(x.shape, x.dtype))  # contiguous, as PyTorch's
    out *= rstd
    return out


@at_most(SMALL)
def _by_constants_small(
    np: Any, x: Any, weight: Any, bias: Any, layout: Layout, running: tuple[Any, Any], eps: float
) -> Any:
    mean, variance = running
    if not all(each.__class__ is ndarray and each.dtype is F32 for each in (x, mean, variance)) or not x.size:
        return None
    rstd = np.reciprocal(np.sqrt(np.add(variance, _constant(np, eps))))
    scale = rstd if weight is None else rstd * weight
    shift = np.negative(mean * scale) if bias is None else bias - mean * scale
    channels = _channels(np, layout.shape, layout.weight, x.shape)
    out = np.multiply(x, scale.take(channels))
    return np.add(out, shift.take(channels), out), mean.copy(), rstd


@kernel(_by_constants_small)
def by_constants(np: Any, x: Any, weight: Any, bias: Any, layout: Layout, running: tuple[Any, Any], eps: float) -> Any:
    """Return (output, mean, 1 / standard deviation) of a normalization of ``x`` with running statistics.

    The output is ``x`` normalized, times ``weight``, plus ``bias``. ``running`` is the pair (mean, variance); both have
    the size of the weight. ``layout`` holds the shapes to which ``x`` and the weight are reshaped. ``eps`` is added to
    the variance.
    """
    mean, variance = (each.astype(x.dtype).reshape(layout.weight) for each in running)
    rstd = 1 / np.sqrt(variance + eps)
    out = normalise(np, x.reshape(layout.shape), mean, rstd)
    if weight is not None:
        out *= weight.reshape(layout.weight)
    if bias is not None:
        out += bias.reshape(layout.weight)
    return out.reshape(x.shape), mean.reshape(-1), rstd.reshape(-1)


@at_least(LARGE, NUMBA)
def _root_mean_square_by_loop(np: Any, x: Any, weight: Any, eps: float) -> Any:
    width = x.shape[-1]
    given = rows_of(x, width)
    if given is None:
        return None
    weight = numpy.ones(width, x.dtype) if weight is None else numpy.ascontiguousarray(weight, x.dtype)
    out = numpy.empty(x.shape, x.dtype)
    loops("normalization").rms_norm(given[0], weight, x.dtype.type(eps), out.reshape(given[0].shape))
    return out


@kernel(_root_mean_square_by_loop)
def root_mean_square(np: Any, x: Any, weight: Any, eps: float) -> Any:
    """Return ``x / sqrt(mean(x**2) + eps) * weight``, with the mean over the last axis.

    Only a Numba loop computes this. If it does not support the arrays, the result is None, and the caller computes
    rms_norm by several operations on tensors.
    """
    return None


# -- The gradient of the input ---------------------------------------------------------------------------------------


@at_least(LARGE, NUMBA)
def _input_gradient_by_loop(
    np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]
) -> Any:
    out = numpy.empty(x.shape, x.dtype)
    if x.ndim == 2 and axes == (1,):
        given = rows_of(x, x.shape[1], grad)
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


@kernel(_input_gradient_by_loop)
def input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """Return the gradient of ``x`` in ``(x - mean) * rstd * weight``, given ``grad``, the gradient of this product.

    ``mean`` and ``rstd`` (1 / standard deviation) are computed from ``x`` over ``axes``; their dependence on ``x`` is
    included in the gradient.
    """
    if x.size <= CACHED_PIECE:
        return _input_gradient(np, grad, weight, x, mean, rstd, axes)
    out = np.empty(x.shape, x.dtype)
    for piece in iterate_slices(x, axes):
        within = None if weight is None else _within(weight, piece)
        moments = _within(mean, piece), _within(rstd, piece)
        out[piece] = _input_gradient(np, grad[piece], within, x[piece], *moments, axes)
    return out


def _input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """Return the result of :func:`input_gradient`, which calls this function for pieces that fit the cache.

    The operands are slices of those of :func:`input_gradient`.
    """
    flat = normalise(np, x, mean, rstd)
    slope = grad if weight is None else grad * weight
    out = slope * flat
    flat *= _spread(np, out, axes)
    np.subtract(slope, _spread(np, slope, axes), out=out)
    out -= flat
    out *= rstd
    return out


# -- The gradient of the weight --------------------------------------------------------------------------------------


def _sums_with(given: list[Any], x: Any, mean: Any) -> Any:
    sums = numpy.empty((len(given[0]), 2), x.dtype)
    loops("normalization").sums_with(given[1], given[0], _of_rows(mean, x), sums)
    return sums


@at_least(LARGE, NUMBA)
def _weight_gradient_by_loop(
    np: Any, grad: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...], shape: tuple[int, ...]
) -> Any:
    if x.ndim == 2 and axes == (1,):
        given = rows_of(x, x.shape[1], grad)
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


@kernel(_weight_gradient_by_loop)
def weight_gradient(
    np: Any, grad: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...], shape: tuple[int, ...]
) -> Any:
    """Return ``grad * (x - mean) * rstd`` summed to ``shape``, the shape of the weight.

    ``mean`` and ``rstd`` (1 / standard deviation) are the statistics of ``x`` over ``axes``.
    """
    rest = tuple([axis for axis, size in enumerate(shape) if size == 1])
    if x.size <= CACHED_PIECE:
        return sum_axes(np, normalise(np, x, mean, rstd) * grad, rest, True)
    out = np.zeros(shape, x.dtype)
    for piece in iterate_slices(x, axes):
        flat = normalise(np, x[piece], _within(mean, piece), _within(rstd, piece))
        flat *= grad[piece]
        target = _within(out, piece)
        target += sum_axes(np, flat, rest, True)
    return out
