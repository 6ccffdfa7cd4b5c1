"""Statistics: ``quantile``, ``nanquantile``, ``cov``, ``corrcoef``, ``histogram``, ``histogramdd``, ``histc``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ...core import dtypes
from ...core.devices import on_gpu
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import METHODS, public
from ...dispatch.return_types import named
from ...dispatch.transform_tensor import innermost, slicewise
from ...runtime.user_frame import warn
from ..creation.factory import array_module_for, new_leaf, scalar_tensor
from ..elementwise.arithmetic import div, mul, sub
from ..elementwise.complex import complex_pair, imag, real
from ..elementwise.elementary import sqrt
from ..elementwise.rounding import clamp
from ..indexing.sort import sort
from ..linalg.matmul import mm
from ..shape.join import where_
from ..shape.rearrange import diag
from ..shape.views import flatten, reshape, squeeze, t, transpose, unsqueeze, view
from .sums import sum

# -- Quantiles -------------------------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _levels(name: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    """Check the arguments of ``quantile`` and return ``q``, the probabilities of the quantiles, as a tensor.

    ``q`` is a number or a tensor of numbers from 0 to 1. Raises PyTorch's errors for invalid arguments. ``name`` is the
    name of the function in the error message.
    """
    if isinstance(q, (int, float)):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q = scalar_tensor(float(q), dtype=input.dtype, device=input.device)
    if not isinstance(q, Tensor):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {type(q).__name__}), but expected one "
            "of:"
        )
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not input._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not on_gpu(q._array) and not bool(((q._array >= 0) & (q._array <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _ordered(input: Tensor, axis: int | None, keepdim: bool) -> Tensor:
    """Return ``input`` with a last dimension that holds the elements for one quantile, in ascending order.

    If ``axis`` is None, a quantile is computed of all elements. Otherwise it is computed of the elements along
    ``axis``. The dimensions before the last one are those of the quantiles. If ``keepdim`` is true, they include the
    reduced dimensions with size 1.
    """
    shape = input._array.shape
    if axis is None:
        ordered, kept = sort(flatten(input))[0], (1,) * len(shape) if keepdim else ()
    elif axis == len(shape) - 1 or not shape:
        ordered, kept = sort(input)[0], shape[:-1] + (1,) * (keepdim and bool(shape))
    else:
        ordered = sort(transpose(unsqueeze(input, -1), axis, -1))[0]
        kept = (*shape[:axis], *((1,) if keepdim else ()), *shape[axis + 1 :])
    return view(ordered, *kept, ordered._array.shape[-1] if ordered._array.ndim else 1)


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip: bool
) -> Tensor:
    """Return the result of :func:`quantile`, or the result of :func:`nanquantile` if ``skip`` is true.

    ``name`` is the name of the function in error messages. The other parameters have the same meaning as in
    :func:`quantile`.
    """
    level = _levels(name, input, q, interpolation)
    axis = None if dim is None else normalize_dim(dim, input._array.ndim)
    ordered = _ordered(input, axis, keepdim)
    levels = level if level._array.ndim else reshape(level, (1,))
    nan_mask = METHODS["isnan"](ordered.detach())
    if skip:
        last = sub(sum(nan_mask.logical_not(), -1, True), 1)
        ranks = mul(levels, last)
        ranks = METHODS["masked_fill"](ranks, ranks < 0, 0)
    else:
        last = ordered._array.shape[-1] - 1
        ranks = METHODS["masked_fill"](mul(levels, last), nan_mask.any(-1, True), last)
    rounding = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
    if rounding is not None:
        ranks = METHODS[rounding](ranks)
    detached = ranks.detach()
    below = detached.to(dtypes.int64)
    result = METHODS["gather"](ordered, -1, below)
    if rounding is None:
        above = METHODS["gather"](ordered, -1, detached.ceil().to(dtypes.int64))
        weight = sub(ranks, below) if interpolation == "linear" else new_leaf(numpy.full_like(ranks._array, 0.5))
        result = METHODS["lerp_"](result, above, weight)
    if level._array.ndim:
        result = METHODS["transpose_"](METHODS["unsqueeze_"](result, 0), 0, -1)
    return METHODS["squeeze_"](result, -1)


@public()
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Return the quantiles of ``input`` along ``dim`` at ``q``, or of all elements if ``dim`` is None.

    ``q`` is a probability from 0 to 1 or a 1-d tensor of probabilities. If ``q`` is 1-d, its dimension is the first
    dimension of the result. If a quantile is between two elements, ``interpolation`` determines its value: "linear",
    "lower", "higher", "midpoint" or "nearest". The result is nan if an element is nan.

    >>> import retrograd as torch
    >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 0.75]))
    tensor([2., 3.])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@public()
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Return the quantiles of the elements of ``input`` along ``dim`` that are not nan.

    The parameters have the same meaning as in :func:`quantile`.
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


# -- Covariance and correlation --------------------------------------------------------------------------------------


def _weights(name: str, given: Tensor, count: int, kind: str, right: bool) -> Tensor:
    """Check ``given``, the argument ``fweights`` or ``aweights`` of ``cov``, and return ``given``.

    Raise RuntimeError if ``given`` has more than one dimension, if its number of elements is not ``count``, the number
    of observations, or if an element is negative. Also raise RuntimeError if ``right`` is false, which means that the
    dtype of ``given`` is invalid. ``name``, the name of the argument, and ``kind``, the required kind of dtype, such as
    "integral", are parts of the error message.
    """
    if given._array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {given._array.ndim} dimensions"
        )
    if not right:
        shown = dtypes.scalar_name(given.dtype)
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {shown} dtype")
    if given._array.size != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{given._array.size} != {count}"
        )
    if count and not on_gpu(given._array) and bool((given._array < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return given


@public()
def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Return the covariance matrix of the variables (rows of ``input``) over the observations (columns).

    Without weights, a covariance is the sum of the products of the deviations from the means, divided by the number of
    observations minus ``correction``. ``fweights`` holds the frequency of each observation (integers), and ``aweights``
    its importance (floats).

    >>> import retrograd as torch
    >>> torch.cov(torch.tensor([[0.0, 2.0], [1.0, 1.0]]))
    tensor([[2., 0.],
            [0., 0.]])
    """
    if input._array.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input._array.ndim} dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = view(input, 1, -1) if input._array.ndim < 2 else input
    count = rows._array.shape[1]
    w = None
    if fweights is not None:
        right = fweights.dtype.category == dtypes.INTEGER and fweights.dtype is not dtypes.bool_
        w = _weights("fweights", fweights, count, "integral", right)
    if aweights is not None:
        a = _weights("aweights", aweights, count, "floating point", aweights.dtype.category == dtypes.FLOATING)
        w = a if w is None else mul(w, a)
    total = wrap(numpy.asarray(count)) if w is None else sum(w)
    sliced = innermost((total,)) is not None or total.is_meta  # elements cannot be tested
    if w is not None and not sliced and not bool(total):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    average = div(sum(rows if w is None else mul(rows, w), 1), total)
    if aweights is not None and correction != 0:
        left = sub(total, div(mul(sum(mul(w, aweights)), correction), total))
    else:
        left = sub(total, correction)
    if sliced:
        left = where_(left <= 0, sub(left, left), left)
    elif bool(left <= 0):
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
        )  # fmt: skip
        left = sub(left, left)  # 0, not -0
    centred = sub(rows, unsqueeze(average, 1))
    return squeeze(div(mm(centred, METHODS["conj"](t(centred if w is None else mul(centred, w)))), left))


@public()
def corrcoef(input: Tensor) -> Tensor:
    """Return the Pearson correlation matrix of the variables (rows of ``input``) over the observations (columns).

    >>> import retrograd as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input._array.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input._array.ndim} dimensions"
        )
    covariances = cov(input)
    if not covariances._array.ndim:
        return div(covariances, covariances)
    deviations = sqrt(real(diag(covariances)))
    correlations = div(div(covariances, view(deviations, -1, 1)), view(deviations, 1, -1))
    if correlations.is_complex():
        return complex_pair(clamp(real(correlations), -1, 1), clamp(imag(correlations), -1, 1))
    return clamp(correlations, -1, 1)


# -- Histograms ------------------------------------------------------------------------------------------------------


def _span(name: str, lows: Any, highs: Any, axis: int) -> tuple[float, float]:
    """Return the range of a histogram, from ``lows`` to ``highs``, as the tuple (low, high) of floats.

    If ``lows`` and ``highs`` are equal, the range is extended by 0.5 at both ends. Raises RuntimeError if ``lows`` or
    ``highs`` is not finite, or if ``lows`` is greater than ``highs``. The error message contains ``name``, the name of
    the function, and ``axis``, the dimension of the histogram.
    """
    low, high = float(lows), float(highs)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: dimension {axis}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"{name}: min should not exceed max, but got min {low:g} max {high:g} for dimension {axis}"
        )  # fmt: skip
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _check_points(points: Any, edges: Sequence[Any], weight: Any) -> None:
    """Raise PyTorch's errors for invalid arguments of a histogram of ``points`` (…, D) in D dimensions.

    ``edges`` has a number of bins or a vector of bin edges for each of the D dimensions. ``weight`` has a number for
    each point, or is None.
    """
    kind = dtypes.scalar_name(dtypes.dtype_of(points.dtype)).lower()
    if points.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if len(edges) != points.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {points.shape[-1]} sequences of bin edges for a {points.shape[-1]}-dimensional "
            f"histogram but got {len(edges)}"
        )
    for axis, each in enumerate(edges):
        if isinstance(each, int):
            if each <= 0:
                raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {each} for dimension {axis}")
            continue
        if each.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{kind} and bins for dimension {axis} with dtype {dtypes.scalar_name(dtypes.dtype_of(each.dtype)).lower()}"
            )
        if each.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {each.ndim} dimensions in the bins "
                f"tensor for dimension {axis}"
            )
        if each.size < 2:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {each.size - 1} for dimension {axis}"
            )  # fmt: skip
    if weight is not None:
        if weight.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({kind}), and weight({dtypes.scalar_name(dtypes.dtype_of(weight.dtype)).lower()})"
            )
        if weight.shape != points.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {list(points.shape)} and weight with shape "
                f"{list(weight.shape)}"
            )


def _edges(np: Any, points: Any, bins: Sequence[Any], range: Any) -> list[Any]:
    """Return the bin edges of ``histogramdd``: a list with a vector of edges for each dimension of ``points``.

    ``bins`` has a vector of edges or a number of bins for each dimension. For a number, the bins have equal width. They
    cover the range of the data if ``range`` is None. Otherwise ``range`` is a flat sequence of numbers: the lower and
    the upper limit of the first dimension, then those of the second, and so on.
    """
    if np.__name__ == "meta":
        raise np.no_values("histogram")
    count = points.shape[-1]
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} elements, but got "
            f"{len(range)}"
        )
    edges = []
    for axis, each in enumerate(bins):
        if not isinstance(each, int):
            edges.append(each)
            continue
        if range is None and points.dtype not in (numpy.float32, numpy.float64):
            raise dtypes.unsupported("histogramdd", points.dtype)
        values = points[..., axis]
        if range is not None:
            ends = range[2 * axis], range[2 * axis + 1]
        else:
            ends = (values.min(), values.max()) if values.size else (0, 1)
        low, high = _span("torch.histogramdd", *ends, axis)
        with numpy.errstate(all="ignore"):
            edges.append(np.linspace(low, high, each + 1).astype(points.dtype))
    return edges


def _counted(np: Any, points: Any, edges: Sequence[Any], weight: Any, density: bool) -> Any:
    """Return the histogram of ``points``: the number of points in each bin, or the sum of their ``weight``.

    ``edges`` has a vector of bin edges for each dimension. A bin includes its lower edge, and the last bin of a
    dimension also its upper edge. Points outside all bins are ignored. If ``density`` is true, the histogram is scaled
    so that its integral is 1.
    """
    if points.dtype.kind not in "fV":
        raise dtypes.unsupported("histogram_cpu", points.dtype)
    shape = tuple(each.size - 1 for each in edges)
    rows = points.reshape(-1, points.shape[-1])
    index, inside = np.zeros(rows.shape[0], np.int64), np.ones(rows.shape[0], bool)
    for axis, each in enumerate(edges):
        values = rows[:, axis]
        bin_ = np.minimum(np.searchsorted(each, values, "right") - 1, each.size - 2)
        inside &= (values >= each[0]) & (values <= each[-1])
        index = index * (each.size - 1) + bin_
    count = math.prod(shape)
    if on_gpu(rows):  # points outside all bins are counted behind the last one
        counts = np.zeros(count + 1, points.dtype)
        given = np.ones(len(rows), points.dtype) if weight is None else weight.reshape(-1).astype(points.dtype)
        np.add.at(counts, np.where(inside, index, count), given)
        counts = counts[:count].reshape(shape)
    else:
        weights = None if weight is None else weight.reshape(-1)[inside]
        counts = np.bincount(index[inside], weights, count).astype(points.dtype).reshape(shape)
    if density:
        counts = counts / np.add.reduce(counts, axis=None)
        for axis, each in enumerate(edges):
            counts = counts / (each[1:] - each[:-1]).reshape([-1 if at == axis else 1 for at, _ in enumerate(edges)])
    return counts


_Histogram, _HistogramDD = named("histogram", ("hist", "bin_edges")), named("histogramdd", ("hist", "bin_edges"))


@public()
@slicewise
def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Return the named tuple (hist, bin_edges): the number of elements of ``input`` in each bin, and the bin edges.

    bins     the number of bins of equal width, or a tensor of bin edges
    range    the pair (lower, upper) of the limits of the bins of equal width; by default the extremes of the data
    weight   a tensor with the weight of each element of ``input``; by default all weights are 1
    density  if true, scale the histogram so that its integral is 1

    >>> import retrograd as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 3.0)).hist
    tensor([2., 1.])
    """
    given = isinstance(bins, Tensor)
    if not given and not isinstance(bins, int):
        raise TypeError(
            f"histogram() received an invalid combination of arguments - got (Tensor, {type(bins).__name__}), but expected "
            "one of:"
        )
    if given and range is not None:
        raise TypeError(
            "histogram() received an invalid combination of arguments - got (Tensor, Tensor, range="
            f"{type(range).__name__}), but expected one of:"
        )
    points = input._array.reshape(-1, 1)
    weights = None if weight is None else weight._array.reshape(-1)
    hist, edges = _histogram(input, points, (bins,), range, weights, density)
    return _Histogram((wrap(hist), bins if given else wrap(edges[0])))


def _histogram(
    input: Tensor, points: Any, bins: Sequence[Any], range: Any, weight: Any, density: bool
) -> tuple[Any, list[Any]]:
    """Return the tuple (histogram, list of bin edges) of ``points`` (…, D) in D dimensions, as arrays.

    The arrays are on the device of ``input``. ``bins`` has a number of bins or a vector of edges for each dimension.
    ``range``, ``weight`` and ``density`` have the same meaning as in :func:`histogramdd`.
    """
    np = array_module_for(input.device)
    given = [each._array if isinstance(each, Tensor) else int(each) for each in bins]
    _check_points(points, given, weight)
    edges = _edges(np, points, given, range)
    return _counted(np, points, edges, weight, density), edges


@public(method=False)
@slicewise
def histogramdd(input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Return the named tuple (hist, bin_edges) of the points whose coordinates are the last dimension of ``input``.

    ``bins`` is the number of bins along all dimensions, or a sequence with a number of bins or a tensor of edges for
    each dimension. ``range`` is a flat sequence of numbers: the lower and the upper limit of the first dimension, then
    those of the second, and so on. ``weight`` is a tensor with the weight of each point, by default 1. If ``density``
    is true, the histogram is scaled so that its integral is 1.

    >>> import retrograd as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=2).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = input._array.shape[-1]
    each = [bins] * count if isinstance(bins, int) else list(bins)
    if len(each) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    hist, edges = _histogram(input, input._array, each, range, None if weight is None else weight._array, density)
    return _HistogramDD(
        (wrap(hist), tuple(b if isinstance(b, Tensor) else wrap(e) for b, e in zip(each, edges, strict=True)))
    )


@public()
@slicewise
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Tensor:
    """Return the number of elements of ``input`` in each of ``bins`` bins of equal width from ``min`` to ``max``.

    Elements outside this range are ignored. If ``min`` and ``max`` are equal, the bins cover the range of the data.

    >>> import retrograd as torch
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    array = input._array
    if array.dtype.kind not in "fV":
        raise dtypes.unsupported("histogram_cpu", array.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if input.is_meta:
        return wrap(array_module_for(input.device).empty(bins, array.dtype))
    low, high = float(min), float(max)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        # PyTorch's text shows a nan of the data as -nan, one that was passed as nan.
        shown = ["-nan" if min == max and math.isnan(bound) else f"{bound:g}" for bound in (low, high)]
        raise RuntimeError(f"torch.histc: range of [{shown[0]}, {shown[1]}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high:
        low, high = low - 1, high + 1
    return wrap(_evenly_counted(array_module_for(input.device), array.reshape(-1), bins, low, high))


def _evenly_counted(np: Any, values: Any, bins: int, low: float, high: float) -> Any:
    """Return the number of ``values`` in each of ``bins`` bins of equal width from ``low`` to ``high``, for ``histc``.

    As in PyTorch, bin indices are computed in the dtype of ``values``. In another dtype, a value close to the edge of a
    bin could be rounded into the next bin.
    """
    kind = values.dtype.type
    first, last = kind(low), kind(high)
    if on_gpu(values):  # values outside the range are counted behind the last bin
        index = ((values - first) * kind(bins) / (last - first)).astype(np.int64)
        fits = (values >= first) & (values <= last) & (index >= 0)
        counts = np.zeros(bins + 1, np.int64)
        np.add.at(counts, np.where(fits, np.minimum(index, bins - 1), bins).reshape(-1), 1)
        return counts[:bins].astype(values.dtype)
    inside = values[(values >= first) & (values <= last)]
    index = ((inside - first) * kind(bins) / (last - first)).astype(np.int64)
    index = index[index >= 0]  # a product above the range of floats has no bin
    return np.bincount(np.minimum(index, bins - 1), minlength=bins).astype(values.dtype)
