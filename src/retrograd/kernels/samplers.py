"""Kernels of rand, randn, randint, randperm, bernoulli, multinomial and the other random distributions.

The parameter ``stream``, a :class:`Stream` of ``kernels/random.py``, is the random generator. Random words are drawn in
the same order as in PyTorch, so that the numbers for a seed are the same.
"""

from __future__ import annotations

import math
from contextlib import closing
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy

from ..core.devices import array_module_of, on_gpu
from .numba_dispatch import LARGE, available, loops
from .random import (
    BF16,
    BLOCKS,
    F16,
    F32,
    F64,
    I64,
    PAIRS,
    SHORT_PAIRS,
    SINGLES,
    STRETCH,
    Array,
    Draws,
    Stream,
    WordConverter,
    _count,
    _is_double,
    _long_words,
)
from .select import at_most, kernel
from .thresholds import SMALL


def draw_numbers(stream: Stream, shape: tuple[int, ...], maker: WordConverter) -> Array:
    """Return an array of the given ``shape`` with the next random numbers of ``stream``.

    ``maker`` converts random words to these numbers.
    """
    if len(shape) == 1:
        (count,) = shape
        numbers = stream.numbers(count, maker)
    else:
        count = math.prod(shape)
        numbers = stream.numbers(count, maker).reshape(shape)
    return numbers if count * maker.each > STRETCH else numbers.copy()


def uniform(stream: Stream, shape: tuple[int, ...], dtype: Any, low: float = 0.0, high: float = 1.0) -> Array:
    """Return uniform random numbers in [``low``, ``high``) as an array of the given ``shape`` and ``dtype``."""
    if dtype is F32 and low == 0 and high == 1:
        return draw_numbers(stream, shape, SINGLES)
    dtype = numpy.dtype(dtype)
    if dtype.kind == "c":
        return _complex_of(uniform(stream, (*shape, 2), _part(dtype), low, high), dtype)
    values = stream.doubles(_count(shape)) if _is_double(dtype) else stream.singles(_count(shape))
    if (low, high) != (0, 1):
        # PyTorch's x * (high - low) + low is rounded once, so it is computed here in the next wider type.
        kind, wide = (F64, numpy.longdouble) if _is_double(dtype) else (F32, numpy.float64)
        least = kind.type(low)
        values = (values.astype(wide) * wide(kind.type(high) - least) + wide(least)).astype(kind)
    values = values.reshape(shape).astype(dtype)
    if dtype in (F16, BF16):
        values = numpy.where(values == numpy.asarray(high).astype(dtype), numpy.asarray(low).astype(dtype), values)
    return values


def _part(dtype: Any) -> Any:
    """Return the real dtype of the real and imaginary parts of the complex dtype ``dtype``."""
    return F32 if dtype.itemsize == 8 else F64


def _complex_of(pairs: Array, dtype: Any) -> Array:
    """Return the complex numbers whose real and imaginary parts are the pairs along the last axis of ``pairs``."""
    return numpy.ascontiguousarray(pairs).view(dtype)[..., 0]


def standard_normal_converter(stream: Stream, count: int) -> WordConverter | None:
    """Return the :class:`WordConverter` for ``count`` standard normal float32 numbers, or None if none applies.

    Fewer than 16 numbers are computed in pairs. The result is None if ``count`` is odd, or if ``stream`` has saved the
    second number of an earlier pair. 16 or more numbers are computed in blocks of 16. The result is None if ``count``
    is not a multiple of 16.
    """
    if count < 16:
        return SHORT_PAIRS if stream.kept is None and not count % 2 else None
    return None if count % 16 else BLOCKS[F32]


def normal(
    stream: Stream, shape: tuple[int, ...], dtype: Any, mean: float = 0.0, std: float = 1.0, blocks: bool = True
) -> Array:
    """Return normally distributed random numbers with the given ``mean`` and standard deviation ``std``.

    As in PyTorch, fewer than 16 numbers are computed in pairs, and 16 or more in blocks of 16, by different formulas.
    If ``blocks`` is false, all numbers are computed in pairs, as PyTorch does for non-contiguous tensors.
    """
    count = _count(shape)
    if dtype is F32 and mean == 0 and std == 1:  # the most common case
        maker = standard_normal_converter(stream, count if blocks else 0)
        if maker is not None and not count % 2:
            return draw_numbers(stream, shape, maker)
        if count < 16 or not blocks:
            return normals_one_by_one(stream, count).reshape(shape).astype(F32)
    dtype = numpy.dtype(dtype)
    if dtype.kind == "c":
        pairs = normal(stream, (*shape, 2), _part(dtype), mean, std / math.sqrt(2), blocks)
        return _complex_of(pairs, dtype)
    if count >= 16 and blocks:
        return _normal_blocks(stream, shape, dtype, mean, std)
    values = normals_one_by_one(stream, count)
    return (values if mean == 0 and std == 1 else values * std + mean).reshape(shape).astype(dtype)


def normals_one_by_one(stream: Stream, count: int) -> Array:
    """Return ``count`` standard normal numbers as float64, computed in pairs by the Box-Muller method.

    If ``count`` is odd, the stream saves the second number of the last pair for the next call.
    """
    with stream.lock:
        if stream.kept is None and count % 2 == 0:
            return stream.numbers(count, PAIRS)
        out = numpy.empty(count)
        start = 0
        if count and stream.kept is not None:
            out[0], stream.kept, start = stream.kept, None, 1
        both = stream.numbers(count - start + (count - start) % 2, PAIRS)
        out[start:] = both[: count - start]
        if (count - start) % 2:
            stream.kept = float(both[-1])
    return out


def _normal_blocks(stream: Stream, shape: tuple[int, ...], dtype: Any, mean: float, std: float) -> Array:
    """Return 16 or more normal numbers with ``mean`` and ``std``, by the Box-Muller method in blocks of 16.

    PyTorch uses the same method for 16 or more elements.
    """
    short = dtype in (F16, BF16)  # computed in float32, and without draws for the elements that the last 16 replace
    kind, out = F32 if short else dtype, numpy.empty(shape, dtype)
    flat, rest = out.reshape(-1), out.size % 16
    flat[: out.size - rest] = _scaled(stream.numbers(out.size - rest, BLOCKS[kind]), mean, std)
    if rest:
        if not short:
            stream.words(rest * BLOCKS[kind].each)
        flat[-16:] = _scaled(stream.numbers(16, BLOCKS[kind]), mean, std)
    return out


def _scaled(x: Array, mean: float, std: float) -> Array:
    return x if mean == 0 and std == 1 else x * x.dtype.type(std) + x.dtype.type(mean)


@lru_cache(maxsize=8)
def _remainders(span: int) -> WordConverter:
    """Return the :class:`WordConverter` that converts random words to int64 numbers: the words modulo ``span``."""
    return WordConverter(lambda words: (words % numpy.uint64(span)).view(I64), 1, 1)


def integers(stream: Stream, shape: tuple[int, ...], dtype: Any, low: int, high: int) -> Array:
    """Return random integers from ``low`` to ``high - 1``, uniformly distributed.

    If the range has 2**28 or more integers, each number is computed from two 32-bit words.
    """
    span, count = high - low, _count(shape)
    if dtype is I64 and 0 < span < 2**28 and 0 <= low < 2**62 and count < LARGE:
        drawn = draw_numbers(stream, shape, _remainders(span))
        return numpy.add(drawn, low, drawn) if low else drawn
    if 0 < span < 2**28 and -(2**62) < low < 2**62 and (many := stream.many_words(count)) is not None:
        drawn = numpy.empty(shape, numpy.int64)
        loops("random").remainders(many, float(span), numpy.int64(low), drawn.reshape(-1))
        return drawn.astype(dtype, copy=False)
    words = _long_words(stream.words(2 * count)) if span >= 2**28 else stream.words(count)
    # Modulo 2**64, so that sums of int64 are right even if they overflow in between.
    values = words if span >= 2**64 else words % numpy.uint64(span)
    if low and span < 2**64:
        values = values + numpy.uint64(low % 2**64)
    return values.reshape(shape).view(numpy.int64).astype(dtype)


#: The integers up to which a floating-point dtype represents all.
_EXACT = {F16: 2**11, BF16: 2**8, F32: 2**24, F64: 2**53}


@lru_cache
def bounds(dtype: Any) -> tuple[float, float]:
    """Return the lowest and the highest finite number of ``dtype``."""
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "c":
        dtype = _part(dtype)
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return int(info.min), int(info.max)
    greatest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return -greatest, greatest


def largest_integer(dtype: Any) -> int:
    """Return the greatest integer that ``Tensor.random_(low, None)`` may draw for ``dtype``."""
    dtype = numpy.dtype(dtype)
    return _EXACT[dtype] if dtype.kind in "fV" else int(bounds(dtype)[1])


#: Number of integers, from 0 on, that ``random_`` draws from by default: all that the dtype represents without gaps.
_RANGE = {**{kind: top + 1 for kind, top in _EXACT.items()}, numpy.dtype(bool): 2}


def full_range_integers(stream: Stream, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return random integers as ``Tensor.random_()`` draws them, from 0 to a maximum that depends on ``dtype``.

    For an integer dtype, the maximum is that of the dtype. For a floating-point dtype, it is the greatest integer up to
    which all integers can be represented exactly.
    """
    dtype = numpy.dtype(dtype)
    span = _RANGE.get(dtype) or int(numpy.iinfo(dtype).max) + 1
    count = _count(shape)
    words = _long_words(stream.words(2 * count)) if dtype.itemsize == 8 else stream.words(count)
    return (words % numpy.uint64(span)).reshape(shape).astype(dtype)


def permutation(stream: Stream, count: int, dtype: Any) -> Array:
    """Return a random permutation of the integers from 0 to ``count - 1``, by the Fisher-Yates shuffle.

    Each element, from the first on, is exchanged with itself or with a later element.
    """
    if count >= LARGE and available(count):
        spans = numpy.arange(count, 1, -1, dtype=numpy.uint64)
        steps = (stream.words(count - 1) % spans).view(numpy.int64)
        result = numpy.arange(count, dtype=dtype)
        loops("random").shuffle(steps, result)
        return result
    order = list(range(count))
    if count > 1:
        for here, word in enumerate(stream.words(count - 1).tolist()):
            there = here + word % (count - here)
            order[here], order[there] = order[there], order[here]
    return numpy.asarray(order, dtype=dtype)


def bernoulli(stream: Stream, shape: tuple[int, ...], dtype: Any, p: Any, value: float = 1.0) -> Array:
    """Return an array whose elements are ``value`` with probability ``p``, else 0.

    If ``p`` is a Python number, uniform float64 numbers are compared with ``p``. If ``p`` is an array, the uniform
    numbers have its dtype, and the elements of the result are 1 or 0.
    """
    if hasattr(p, "dtype"):
        draws = stream.doubles(p.size) if _is_double(p.dtype) else stream.singles(p.size)
        return (array_module_of(p).asarray(draws.reshape(p.shape)) < p).astype(dtype)
    if dtype in (F32, F64) and (words := stream.many_words(2 * _count(shape))) is not None:
        out = numpy.empty(shape, dtype)
        loops("random").chances(words, float(p), out.dtype.type(value), out.reshape(-1))
        return out
    drawn = (stream.doubles(_count(shape)) < p).astype(dtype)
    if value != 1:
        numpy.multiply(drawn, value, drawn)
    return drawn.reshape(shape)


def exponential(stream: Stream, shape: tuple[int, ...], dtype: Any, rate: float = 1.0) -> Array:
    """Return samples of the exponential distribution with the given ``rate``, of the given ``shape`` and ``dtype``."""
    draws = stream.doubles(_count(shape))
    values = numpy.log1p(numpy.negative(draws))
    values = numpy.negative(values, values) if rate == 1 else values * (-1.0 / rate)
    return values.astype(dtype).reshape(shape)


def cauchy(stream: Stream, shape: tuple[int, ...], dtype: Any, median: float = 0.0, sigma: float = 1.0) -> Array:
    """Return samples of the Cauchy distribution with the given ``median`` and scale ``sigma``."""
    draws = stream.doubles(_count(shape))
    return (median + sigma * numpy.tan(math.pi * (draws - 0.5))).astype(dtype).reshape(shape)


def log_normal(stream: Stream, shape: tuple[int, ...], dtype: Any, mean: float = 1.0, std: float = 2.0) -> Array:
    """Return samples of the log-normal distribution: exponentials of normal numbers with ``mean`` and ``std``."""
    return numpy.exp(normals_one_by_one(stream, _count(shape)) * std + mean).astype(dtype).reshape(shape)


def geometric(stream: Stream, shape: tuple[int, ...], dtype: Any, p: float) -> Array:
    """Return samples of the geometric distribution: the number of trials up to and including the first success.

    Each trial succeeds with probability ``p``.
    """
    draws = stream.doubles(_count(shape))
    with numpy.errstate(divide="ignore"):
        return numpy.ceil(numpy.log(draws) / math.log1p(-p)).astype(dtype).reshape(shape)


def poisson(stream: Stream, rate: Array) -> Array:
    """Return samples of Poisson distributions with the means ``rate``.

    For means below 10 uniform numbers are multiplied; for other means transformed rejection is used.
    """
    out = numpy.empty(rate.shape, rate.dtype)
    flat = out.reshape(-1)
    with closing(stream.one_by_one()) as draws:
        for index, mean in enumerate(rate.astype(F64).ravel().tolist()):
            flat[index] = (_poisson_few if mean < 10 else _poisson_many)(draws, mean)
    return out


def _poisson_few(draws: Draws, mean: float) -> int:
    """Return one sample of the Poisson distribution with ``mean`` below 10, by multiplying uniform numbers.

    ``draws`` yields the uniform numbers.
    """
    if mean == 0:
        return 0
    bound, product, count = math.exp(-mean), 1.0, 0
    while True:
        product *= next(draws)
        if product <= bound:
            return count
        count += 1


def _poisson_many(draws: Draws, mean: float) -> int:
    """Return one sample of the Poisson distribution with ``mean`` of at least 10, by transformed rejection.

    ``draws`` yields uniform numbers. Source: Hörmann's PTRS, The transformed rejection method for generating Poisson
    random variables (1993).
    """
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha, accept = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = next(draws), next(draws)
        u -= 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= accept:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -mean + k * math.log(mean) - math.lgamma(k + 1):
            return k


def binomial(stream: Stream, count: Array, chance: Array) -> Array:
    """Return samples of binomial distributions: the numbers of successes among ``count`` trials.

    ``chance`` is the probability of success. ``count`` and ``chance`` are arrays whose shapes broadcast.
    """
    out = numpy.empty(numpy.broadcast_shapes(count.shape, chance.shape), count.dtype)
    flat = out.reshape(-1)
    pairs = (numpy.broadcast_to(each, out.shape).astype(F64).ravel().tolist() for each in (count, chance))
    with closing(stream.one_by_one()) as draws:
        for index, (trials, p) in enumerate(zip(*pairs, strict=True)):
            flat[index] = _successes(draws, trials, p)
    return out


def _successes(draws: Draws, trials: float, p: float) -> float:
    """Return one sample of the binomial distribution: the number of successes among ``trials`` trials.

    ``p`` is the probability of success. ``draws`` yields uniform numbers.
    """
    if trials <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return trials
    if math.isnan(p):
        return math.nan
    rare = p if p <= 0.5 else 1 - p  # the rarer outcome is counted
    count = (_binomial_many if trials * rare >= 10 else _binomial_few)(draws, trials, rare)
    return count if p <= 0.5 else trials - count


def _binomial_few(draws: Draws, trials: float, p: float) -> float:
    """Return one binomial sample, by adding geometric waiting times between successes until they exceed ``trials``.

    ``p`` is the probability of success. ``draws`` yields uniform numbers.
    """
    waited, count, scale = 0.0, 0, math.log1p(-p)
    while True:
        draw = next(draws)
        waited += math.ceil(math.log(draw) / scale) if draw else math.inf
        if waited > trials:
            return count
        count += 1


def _stirling_rest(k: float) -> float:
    """Return the difference between ``log(k!)`` and Stirling's formula for ``log(k!)``."""
    return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))


def _binomial_many(draws: Draws, trials: float, p: float) -> float:
    """Return one binomial sample for at least 10 expected successes, by transformed rejection.

    ``p`` is the probability of success among ``trials`` trials. ``draws`` yields uniform numbers. Source: Hörmann's
    BTRS, The generation of binomial random variates (1993).
    """
    spread = math.sqrt(trials * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds, alpha, middle = p / (1 - p), (2.83 + 5.1 / b) * spread, math.floor((trials + 1) * p)
    while True:
        u, v = next(draws), next(draws)
        u -= 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + trials * p + 0.5) if us else -1
        if us >= 0.07 and v <= 0.92 - 4.2 / b:
            return k
        if k < 0 or k > trials:
            continue
        bound = (
            (middle + 0.5) * math.log((middle + 1) / (odds * (trials - middle + 1)))
            + (trials + 1) * math.log((trials - middle + 1) / (trials - k + 1))
            + (k + 0.5) * math.log(odds * (trials - k + 1) / (k + 1))
            + _stirling_rest(middle) + _stirling_rest(trials - middle)
            - _stirling_rest(k) - _stirling_rest(trials - k)
        )  # fmt: skip
        if (math.log(v * alpha / (a / (us * us) + b)) if v else -math.inf) <= bound:
            return k


def multinomial(stream: Stream, weights: Array, samples: int, replacement: bool) -> Array:
    """Return ``samples`` random int64 indices for each row of ``weights``.

    The probability of an index is proportional to its weight. ``weights`` has one or two dimensions. If ``replacement``
    is false, an index is drawn at most once per row.
    """
    rows = weights if weights.ndim == 2 else weights.reshape(1, -1)
    if replacement and samples != 1:
        picked = numpy.stack([_pick(stream, row, samples) for row in rows])
    else:
        # Without replacement, and for a single draw: the indices by ascending exponential waiting times of these rates.
        waits = exponential(stream, rows.shape, rows.dtype)
        ratio = (rows / waits).astype(F64)
        picked = numpy.negative(ratio, ratio).argsort(1, "stable")[:, :samples]
    return (picked if weights.ndim == 2 else picked[0]).astype(numpy.int64)


def _pick(stream: Stream, row: Array, samples: int) -> Array:
    """Return ``samples`` random indices, drawn with replacement and with probabilities proportional to ``row``."""
    total = numpy.cumsum(row, dtype=row.dtype if row.dtype in (F32, F64) else F32)
    bounds = total / total[-1]
    indices = numpy.searchsorted(bounds.astype(F64), stream.doubles(samples), side="left")
    return numpy.minimum(indices, row.size - 1)


# -- Parameters ------------------------------------------------------------------------------------------------------


def _lies_between(x: Any, low: float, high: float) -> bool:
    """Whether all elements of ``x``, a small floating-point array, are from ``low`` to ``high``.

    The result is False for an empty array and for arrays of other dtypes or of CuPy.
    """
    if x.__class__ is not numpy.ndarray or not x.size or x.dtype.kind != "f":
        return False
    flat = x.ravel()
    return bool(flat.item(flat.argmin()) >= low and flat.item(flat.argmax()) <= high)


@at_most(SMALL)
def _inside_small(np: Any, x: Any, low: float, high: float) -> Any:
    return False if _lies_between(x, low, high) else None


@kernel(_inside_small)
def any_outside(np: Any, x: Any, low: float, high: float) -> Any:
    """Return whether an element of ``x`` is less than ``low``, greater than ``high`` or nan; False on a GPU."""
    return not on_gpu(x) and not ((x >= low) & (x <= high)).all()


@at_most(SMALL)
def _weights_small(np: Any, weights: Any) -> Any:
    usual = weights.ndim == 1 and _lies_between(weights, 0, 1e300) and weights.item(weights.argmax()) > 0
    return weights if usual else None


@kernel(_weights_small)
def check_weights(np: Any, weights: Any) -> Any:
    """Return ``weights``; raise PyTorch's RuntimeError if ``multinomial`` cannot use them.

    ``weights`` is one row or a matrix of rows. The weights must be finite and not negative, and each row must have a
    positive weight.
    """
    if bool(((weights < 0) | ~numpy.isfinite(weights.astype(numpy.float64))).any()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if weights.size and bool((weights.astype(numpy.float64).sum(-1) == 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return weights
