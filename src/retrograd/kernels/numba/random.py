"""Numba loops of rand, randn, randint, bernoulli and randperm: random 32-bit words of MT19937, and their conversion."""

from __future__ import annotations

from math import floor, sqrt
from typing import Any

import numpy
from numba import prange

from .jit import loop, loop_in_order
from .math import cosine_and_sine, like, log_of

F = numpy.float32
U = numpy.uint32
TOGETHER = 64  # blocks of 16 normals that are computed together


@loop_in_order
def words(key: Any, out: Any) -> None:
    """Write the next words of the MT19937 generator with the state ``key`` (624 words) to ``out``, and update ``key``.

    The length of ``out`` is a multiple of 624. Source: Matsumoto and Nishimura, "Mersenne Twister", 1998.
    """
    upper, lower, twist = U(0x80000000), U(0x7FFFFFFF), U(0x9908B0DF)
    for start in range(0, out.size, 624):
        ahead = key[397:]
        for i in range(227):
            y = (key[i] & upper) | (key[i + 1] & lower)
            key[i] = ahead[i] ^ (y >> U(1)) ^ (twist if y & U(1) else U(0))
        rest = key[227:]
        for i in range(396):
            y = (rest[i] & upper) | (rest[i + 1] & lower)
            rest[i] = key[i] ^ (y >> U(1)) ^ (twist if y & U(1) else U(0))
        y = (key[623] & upper) | (key[0] & lower)
        key[623] = key[396] ^ (y >> U(1)) ^ (twist if y & U(1) else U(0))
        into = out[start : start + 624]
        for i in range(624):
            y = key[i]
            y ^= y >> U(11)
            y ^= (y << U(7)) & U(0x9D2C5680)
            y ^= (y << U(15)) & U(0xEFC60000)
            into[i] = y ^ (y >> U(18))


@loop
def singles(words: Any, out: Any) -> None:
    """Write one uniform float32 in [0, 1) to ``out`` for each of ``words``, computed from 24 bits of the word."""
    for i in prange(out.size):
        out[i] = F(numpy.int32(words[i] & U(0xFFFFFF))) * F(2.0**-24)


@loop
def doubles(words: Any, out: Any) -> None:
    """Write one uniform float64 in [0, 1) to ``out`` for every two of ``words``, computed from 53 of their bits.

    The first of the two words is the high half.
    """
    for i in prange(out.size):
        high, low = numpy.int64(words[2 * i] & U(0x1FFFFF)), numpy.int64(words[2 * i + 1])
        out[i] = numpy.float64((high << 32) | low) * 2.0**-53


@loop
def chances(words: Any, chance: Any, value: Any, out: Any) -> None:
    """Write ``value`` to each element of ``out`` with probability ``chance``, else 0 (Bernoulli distribution).

    For each element a uniform float64, computed from two of ``words``, is compared with ``chance``.
    """
    for i in prange(out.size):
        high, low = numpy.int64(words[2 * i] & U(0x1FFFFF)), numpy.int64(words[2 * i + 1])
        out[i] = value if numpy.float64((high << 32) | low) * 2.0**-53 < chance else like(value, 0)


@loop
def remainders(words: Any, span: Any, low: Any, out: Any) -> None:
    """Write ``low + word % span`` to ``out`` for each of ``words``; ``span`` must be below 2**28.

    The quotient is computed in double precision; if its rounding error is 1, the remainder is corrected.
    """
    share = 1.0 / span
    for i in prange(out.size):
        word = numpy.float64(words[i])
        rest = word - floor(word * share) * span
        rest = rest + span if rest < 0 else rest
        out[i] = numpy.int64(rest - span if rest >= span else rest) + low


@loop
def normals(words: Any, out: Any) -> None:
    """Write 16 standard normal float32 numbers to ``out`` for every 16 of ``words``, by the Box-Muller method."""
    whole = out.size // 16
    for piece in prange((whole + TOGETHER - 1) // TOGETHER):
        first, last = piece * TOGETHER, min(whole, (piece + 1) * TOGETHER)
        count = 8 * (last - first)
        radii, angles = numpy.empty(8 * TOGETHER, F), numpy.empty(8 * TOGETHER, F)
        for block in range(last - first):
            start = 16 * (first + block)
            for i in range(8):
                radii[8 * block + i] = F(numpy.int32(words[start + i] & U(0xFFFFFF)))
                angles[8 * block + i] = F(numpy.int32(words[start + i + 8] & U(0xFFFFFF)))
        for i in range(count):
            radius = sqrt(F(-2) * log_of(F(1) - radii[i] * F(2.0**-24)))
            cosine, sine = cosine_and_sine(F(6.283185307179586) * (angles[i] * F(2.0**-24)))
            radii[i], angles[i] = radius * cosine, radius * sine
        for block in range(last - first):
            start = 16 * (first + block)
            for i in range(8):
                out[start + i] = radii[8 * block + i]
                out[start + i + 8] = angles[8 * block + i]


@loop_in_order
def shuffle(steps: Any, order: Any) -> None:
    """Exchange ``order[i]`` with ``order[i + steps[i]]``, in place, for i from 0 upwards (Fisher-Yates shuffle)."""
    for i in range(steps.size):
        there = i + steps[i]
        order[i], order[there] = order[there], order[i]
