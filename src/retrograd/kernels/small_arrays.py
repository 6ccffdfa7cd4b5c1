"""Kernels for small arrays: softmax, logsumexp, var, layer_norm, batch_norm, nll_loss, topk, amax, tril, roll, conv.

There are also kernels for amin, triu and max pooling. The kernels apply to rows of at most 16 elements, where the
overhead of NumPy's calls exceeds the arithmetic. A reduction along an axis takes NumPy 1 µs, and broadcasting an
operand takes another 1 µs. A product with a matrix of ones does both in 0.3 µs. A function returns None if it does not
support its arguments; the caller then uses the general kernel.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy
from numpy import ndarray

from .memory_format import zero_padded
from .reductions import ONES

F32, F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
LONG, MANY = 16, 1024  # elements of a row, and of all rows, up to which these are the shorter ways
#: For a sum of squares below it exponentials neither overflow nor get lost, even added up: of float32, and of float64.
TAME, TAME64 = 40.0**2, 600.0**2
#: By the length of a row, the matrices that put its sum, or mean, at every place of it.
SUMS, WIDE_SUMS = ([numpy.ones((n, n), kind) for n in range(LONG + 1)] for kind in (F32, F64))
MEANS, WIDE_MEANS = ([numpy.full((n, n), 1 / max(n, 1), kind) for n in range(LONG + 1)] for kind in (F32, F64))


def _matrix(x: Any, axis: int) -> tuple[Any, int, int]:
    """Return (matrix, axis, size): ``x`` reshaped to a matrix, the matrix axis that is ``axis`` of ``x``, and its size.

    The size is 0 if the functions of this module do not support the arguments. They support small float32 arrays ``x``
    for which ``axis`` is the first or the last axis and has at most 16 elements.
    """
    if x.__class__ is not ndarray or x.dtype is not F32 or not 0 < x.size <= MANY:
        return x, 0, 0
    shape = x.shape
    rank = len(shape)
    if axis < 0:
        axis += rank
    if not 0 <= axis < rank or 0 < axis < rank - 1 or shape[axis] > LONG:
        return x, 0, 0
    size = shape[axis]
    if rank == 2:
        return x, axis, size
    return (x.reshape(size, -1), 0, size) if axis < rank - 1 else (x.reshape(-1, size), 1, size)


def _left(found: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return ``found``, the results of a reduction of ``x`` along ``axis``, reshaped to the shape of the result.

    In this shape, ``axis`` has size 1 if ``keepdims`` is true, and is removed otherwise.
    """
    if x.ndim == 2 and not keepdims:
        return found
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [1] if keepdims else []
    return found.reshape(shape)


def softmax(x: Any, axis: int) -> Any:
    """Return the softmax of ``x`` along ``axis``, or None if ``x`` is not small or has large elements.

    The row maximum is not subtracted, because exponentials of moderate numbers do not overflow.
    """
    rows, axis, size = _matrix(x, axis)
    if not size or not (flat := x.ravel()).dot(flat) < TAME:
        return None
    found = numpy.exp(rows)
    numpy.divide(found, found.dot(SUMS[size]) if axis else SUMS[size].dot(found), found)
    return found if rows is x else found.reshape(x.shape)


def log_softmax(x: Any, axis: int) -> Any:
    """Return the log-softmax of ``x`` along ``axis``, or None if ``x`` is not small or has large elements.

    The row maximum is not subtracted, because the exponentials do not overflow in double precision.
    """
    rows, axis, size = _matrix(x, axis)
    if not size or not (flat := x.ravel()).dot(flat) < TAME64:
        return None
    wide = rows.astype(F64)
    whole = numpy.exp(wide)
    whole = whole.dot(WIDE_SUMS[size]) if axis else WIDE_SUMS[size].dot(whole)
    found = numpy.subtract(wide, numpy.log(whole, whole), wide).astype(F32)
    return found if rows is x else found.reshape(x.shape)


def logsumexp(x: Any, axis: int, keepdims: bool) -> Any:
    """Return ``log(sum(exp(x)))`` along ``axis``, computed in double precision.

    If ``keepdims`` is true, the axis has size 1 in the result. The result is None if ``x`` is not small or has large
    elements.
    """
    rows, along, size = _matrix(x, axis)
    if not size or not (flat := x.ravel()).dot(flat) < TAME64:
        return None
    found = numpy.exp(rows.astype(F64))
    found = found.dot(ONES[F64][size]) if along else ONES[F64][size].dot(found)
    return _left(numpy.log(found, found).astype(F32), x, axis, keepdims)


def variance(x: Any, axis: int, left: float, keepdims: bool) -> Any:
    """Return the sum along ``axis`` of ``(x - mean)**2``, divided by ``left``, as float64.

    ``left`` is the number of elements minus the correction. If ``keepdims`` is true, the axis has size 1 in the result.
    The result is None if ``x`` is not small.
    """
    rows, along, size = _matrix(x, axis)
    if not size or not left:
        return None
    gap = rows.astype(F64)
    numpy.subtract(gap, gap.dot(WIDE_MEANS[size]) if along else WIDE_MEANS[size].dot(gap), gap)
    numpy.multiply(gap, gap, gap)
    share = _shares(size, left)
    return _left(gap.dot(share) if along else share.dot(gap), x, axis, keepdims)


@lru_cache(maxsize=64)
def _shares(size: int, parts: float) -> Any:
    return numpy.full(size, 1 / parts)


def variance_of_all(x: Any, left: float) -> Any:
    """Return the sum of ``(x - mean)**2`` over all elements of ``x``, divided by ``left``, as a float64.

    ``left`` is the number of elements minus the correction. ``x`` has at most :data:`LONG` elements.
    """
    values = x.ravel().tolist()
    mean, whole = sum(values) / len(values), 0.0
    for each in values:
        each -= mean
        whole += each * each
    return numpy.float64(whole) / left


@lru_cache(maxsize=64)
def _channels(shape: tuple[int, ...], weight: tuple[int, ...], rows: tuple[int, ...]) -> Any:
    """Return an array of shape ``rows`` that holds, for each element, the flat index of the weight that multiplies it.

    ``shape`` is the original shape of the elements. ``weight`` is the shape of the weight, which broadcasts to
    ``shape``.
    """
    every = numpy.arange(math.prod(weight)).reshape(weight)
    return numpy.ascontiguousarray(numpy.broadcast_to(every, shape)).reshape(rows)


@lru_cache(maxsize=64)
def constant(value: float) -> Any:
    """Return ``value`` as a 0-d float32 array, which NumPy's ufuncs process twice as fast as a Python number."""
    return numpy.asarray(value, F32)


def _rows(x: Any, axes: tuple[int, ...]) -> tuple[Any, int]:
    """Return ``x`` as a matrix that is to be normalised along one axis, and the index of this axis.

    If ``axes``, the normalised axes of ``x``, are its last axes, the index is 1. If they start with axis 0, as in
    batch_norm, the index is 0. In that case ``x`` must have one element per channel. Otherwise the index is 2, which
    means that this module does not support ``x``.
    """
    shape = x.shape
    if axes[0]:
        return x if len(shape) == 2 else x.reshape(-1, math.prod(shape[axes[0] :])), 1
    return x if len(shape) == 2 else x.reshape(len(x), -1), 0 if math.prod(shape[2:]) == 1 else 2


def affine(x: Any, weight: Any, bias: Any, shape: tuple[int, ...], along: tuple[int, ...]) -> Any:
    """Return ``x * weight + bias``, computed in place in ``x``.

    ``shape`` is the shape of ``x`` before it was flattened. ``weight`` and ``bias`` are None or have the shape
    ``along``, which broadcasts to ``shape``.
    """
    channels = _channels(shape, along, x.shape)
    if weight is not None:
        numpy.multiply(x, weight.take(channels), x)
    if bias is not None:
        numpy.add(x, bias.take(channels), x)
    return x


def standardised(x: Any, weight: Any, bias: Any, layout: Any, eps: float) -> Any:
    """Return (output, mean, variance, 1 / standard deviation) of a normalisation of ``x``.

    The output is ``x`` with mean 0 and variance 1 over ``layout.axes``, times ``weight`` plus ``bias``.
    ``layout.weight`` is the shape of the weight. ``eps`` is added to the variance. The third element is the variance
    for batch_norm, and None for other normalisations. Returns None if ``x`` is not small.
    """
    if x.__class__ is not ndarray or x.dtype is not F32 or not 0 < x.size <= MANY:
        return None
    rows, axis = _rows(x, layout.axes)
    if axis > 1 or (size := rows.shape[axis]) > LONG:
        return None
    mean = rows.dot(MEANS[size]) if axis else MEANS[size].dot(rows)
    out = numpy.subtract(rows, mean)
    scale = numpy.multiply(out, out)
    scale = scale.dot(MEANS[size]) if axis else MEANS[size].dot(scale)
    variance = None if axis else scale[:1].copy()
    numpy.add(scale, constant(eps), scale)
    numpy.reciprocal(numpy.sqrt(scale, scale), scale)
    numpy.multiply(out, scale, out)
    if weight is not None or bias is not None:
        affine(out, weight, bias, x.shape, layout.weight)
    return (out, mean.T[0], None, scale.T[0]) if axis else (out, mean[:1], variance, scale[:1])


def by_constants(x: Any, weight: Any, bias: Any, layout: Any, running: tuple[Any, Any], eps: float) -> Any:
    """Return (output, mean, 1 / standard deviation), where the output is ``x`` normalised with running statistics.

    The output is multiplied by ``weight`` and increased by ``bias``. ``running`` holds the mean and the variance, with
    one element for each element of ``weight``; ``eps`` is added to the variance. ``layout.shape`` is the shape of ``x``
    and ``layout.weight`` that of the weight. Returns None if an array is not float32.
    """
    mean, variance = running
    if not all(each.__class__ is ndarray and each.dtype is F32 for each in (x, mean, variance)) or not x.size:
        return None
    rstd = numpy.reciprocal(numpy.sqrt(numpy.add(variance, constant(eps))))
    scale = rstd if weight is None else rstd * weight
    shift = numpy.negative(mean * scale) if bias is None else bias - mean * scale
    channels = _channels(layout.shape, layout.weight, x.shape)
    out = numpy.multiply(x, scale.take(channels))
    return numpy.add(out, shift.take(channels), out), mean.copy(), rstd


@lru_cache(maxsize=64)
def _starts(rows: int, size: int) -> Any:
    return numpy.arange(0, rows * size, size)


def chosen(x: Any, target: Any, ignored: int) -> float | None:
    """Return the sum of ``x[row, target[row]]`` over all rows of the matrix ``x``, for nll_loss.

    The result is None if ``x`` is not small, if a target is not a valid class, or if ``ignored`` is a valid class.
    """
    rows, size = x.shape
    if not 0 < rows <= LONG or x.__class__ is not ndarray or x.dtype is not F32 or 0 <= ignored < size:
        return None
    whole, number = 0.0, x.item
    for row, place in enumerate(target.tolist()):
        if not 0 <= place < size:
            return None
        whole += number(row, place)
    return whole


def extreme(x: Any, axis: int, keepdims: bool, largest: bool) -> Any:
    """Return the maximum of ``x`` along ``axis`` if ``largest`` is true, else the minimum.

    The result is nan where an element is nan. If ``keepdims`` is true, the axis has size 1. The result is None if ``x``
    is not small or ``axis`` is not the last axis.
    """
    rows, along, size = _matrix(x, axis)
    if not (size and along) or not x.flags.c_contiguous:
        return None
    return _left(x.take(_starts(len(rows), size) + (rows.argmax(1) if largest else rows.argmin(1))), x, axis, keepdims)


@lru_cache(maxsize=64)
def _outside(name: str, shape: tuple[int, ...], diagonal: int) -> Any:
    return numpy.flatnonzero(getattr(numpy, name)(numpy.ones(shape, bool), diagonal) == 0)


def triangle(name: str, x: Any, diagonal: int) -> Any:
    """Return ``numpy.triu(x, diagonal)`` or ``numpy.tril(x, diagonal)``, or None if ``x`` is not small.

    ``name`` is "triu" or "tril".
    """
    if x.__class__ is not ndarray or x.size > MANY:
        return None
    out = x.copy()
    out.put(_outside(name, x.shape, diagonal), 0)
    return out


@lru_cache(maxsize=64)
def _offsets(rows: int, size: int, each: int) -> Any:
    return numpy.arange(0, rows * size, size)[:, None].repeat(each, 1)


def topk(x: Any, count: int, dim: int, largest: bool) -> Any:
    """Return the ``count`` largest elements of ``x`` along the last dimension, sorted, and their indices.

    If ``largest`` is false, the smallest elements are returned. Equal elements keep their order. The result is None if
    ``x`` is not small, has more than two dimensions or has elements that are not finite.
    """
    if x.__class__ is not ndarray or not 0 < x.size <= MANY or x.dtype.kind != "f" or dim not in (-1, x.ndim - 1):
        return None
    flat = x.ravel()
    if x.ndim > 2 or not flat.dot(flat) < math.inf:
        return None
    order = (numpy.negative(x) if largest else x).argsort(-1, "stable")
    if x.ndim == 1:
        found = order[:count].copy()
        return flat.take(found), found
    found = order[:, :count].copy()
    return flat.take(_offsets(len(x), x.shape[1], count) + found), found


def lie_between(x: Any, low: float, high: float) -> bool:
    """Whether ``x`` is a small array whose elements are all from ``low`` to ``high``.

    For a large array the result is always False.
    """
    if x.__class__ is not ndarray or not 0 < x.size <= MANY or x.dtype.kind != "f":
        return False
    flat = x.ravel()
    return bool(flat.item(flat.argmin()) >= low and flat.item(flat.argmax()) <= high)


def are_weights(x: Any) -> bool:
    """Whether ``x`` is a small array of finite non-negative elements, at least one of which is positive."""
    return lie_between(x, 0, 1e300) and x.item(x.argmax()) > 0


@lru_cache(maxsize=64)
def _moved_on(shape: tuple[int, ...], shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return numpy.roll(numpy.arange(math.prod(shape)).reshape(shape), shifts, axes or None)


def rolled(x: Any, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return ``torch.roll(x, shifts, axes)`` for a small array ``x``, or None if ``x`` is not small."""
    if x.__class__ is not ndarray or not 0 < x.size <= MANY:
        return None
    return x.take(_moved_on(x.shape, shifts, axes))


# -- Windows ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def seen_by(space: tuple[int, ...], places: tuple[tuple[tuple[int, ...], ...], ...]) -> Any:
    """Return a table of flat indices: element (k, o) is the input that kernel element k reads for output position o.

    ``space`` is the shape of the input. ``places[d][k]`` lists, for dimension d and offset k along the kernel, the
    input index that each output reads.
    """
    found = numpy.zeros((1, 1), numpy.int64)
    for size, along in zip(space, places, strict=True):
        here = numpy.array(along)
        found = found[:, None, :, None] * size + here[None, :, None, :]
        found = found.reshape(found.shape[0] * len(along), -1)
    return found


@lru_cache(maxsize=64)
def _columns(x: tuple[int, ...], w: tuple[int, ...], stride: Any, dilation: Any, out: tuple[int, ...]) -> Any:
    """Return a table of shape (weights, outputs): the flat index of the input that a weight multiplies for an output.

    ``x``, ``w`` and ``out`` are the shapes of the input, the weight and the output. A flat index is within one sample.
    The result is None if the table would have more than 2**14 elements.
    """
    if math.prod(w[1:]) * math.prod(out[2:]) > 1 << 14 or 0 in out:
        return None
    every = zip(w[2:], stride, dilation, out[2:], strict=True)
    places = tuple([tuple([tuple([k * d + s * o for o in range(n)]) for k in range(size)]) for size, s, d, n in every])
    one = seen_by(x[2:], places)
    return (numpy.arange(x[1])[:, None, None] * math.prod(x[2:]) + one).reshape(-1, one.shape[1])


def convolved(x: Any, w: Any, shape: Any, stride: Any, padding: Any, dilation: Any, bias: Any) -> Any:
    """Return the convolution of ``x`` with ``w`` plus ``bias``, by im2col, or None if ``x`` is not small.

    The result has the given ``shape``. The windows are gathered by a cached table of indices and multiplied as a
    matrix.
    """
    if x.__class__ is not ndarray or x.dtype is not F32 or w.dtype is not F32 or not 0 < x.size <= MANY:
        return None
    if any(padding):
        x = zero_padded(numpy, x, padding)
    table = _columns(x.shape, w.shape, stride, dilation, shape)
    if table is None:
        return None
    outputs, rows = len(w), len(x)
    matrix = w.reshape(outputs, -1)
    if rows == 1:
        found = matrix.dot(x.take(table))
    else:
        found = numpy.matmul(matrix, x.reshape(rows, -1).take(table, 1))
    if bias is not None:
        numpy.add(found, bias.reshape(-1, 1), found)
    return found.reshape(shape)


class Windows:
    """Max pooling of small inputs by cached tables of the flat indices in each window.

    ``seen`` (windows, kernel elements) holds the flat indices of each window within a plane. A plane is one channel of
    one sample. There is one table for each number of planes.
    """

    def __init__(self, seen: Any) -> None:
        self.seen = seen
        self._tables: dict[int, tuple[Any, Any, Any]] = {}

    def _table(self, size: int, planes: int) -> tuple[Any, Any, Any]:
        """Return three index arrays for an input of ``size`` elements in ``planes`` planes.

        The first array holds the flat indices of the elements of all windows. The second holds the position at which
        each row of the first begins. The third holds the flat indices within the plane.
        """
        if planes not in self._tables:
            windows, places = self.seen.shape
            every = (numpy.arange(planes)[:, None, None] * (size // planes) + self.seen).reshape(-1, places)
            own = numpy.concatenate([self.seen.ravel()] * planes)
            self._tables[planes] = every, numpy.arange(planes * windows) * places, own
        return self._tables[planes]

    def maxima(self, x: Any, out: list[int]) -> Any:
        """Return the maximum of each window of ``x`` and its flat index in the plane; None if a maximum is nan.

        ``out`` is the number of windows along each pooled dimension.
        """
        lead = x.shape[: -len(out)]
        every, rows, own = self._table(x.size, math.prod(lead))
        seen = x.take(every)
        best = seen.argmax(1) + rows
        values = seen.take(best)
        top = values.item(values.argmax()) if values.dtype.kind == "f" else 0
        if top != top:
            return None
        shape = (*lead, *out)
        return values.reshape(shape), own.take(best).reshape(shape)
