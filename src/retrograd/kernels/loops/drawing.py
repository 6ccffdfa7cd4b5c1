"""Loops of the random generator MT19937 (Matsumoto and Nishimura 1998), and of what is made of its words."""

from __future__ import annotations

from typing import Any

import numpy
from numba import njit, prange

from .compile import loop

SIZE, FAR = 624, 397
UPPER, LOWER = numpy.uint32(0x80000000), numpy.uint32(0x7FFFFFFF)
TWIST, ONE = numpy.uint32(0x9908B0DF), numpy.uint32(1)
FIRST, SECOND = numpy.uint32(0x9D2C5680), numpy.uint32(0xEFC60000)


@njit(forceinline=True)
def _twisted(out: Any, far: Any, near: Any, following: Any) -> None:
    for k in range(out.size):
        both = (near[k] & UPPER) | (following[k] & LOWER)
        odd = TWIST if both & ONE else numpy.uint32(0)
        out[k] = far[k] ^ (both >> ONE) ^ odd


@loop
def words(key: Any, out: Any) -> None:
    """The next words of the generator, as many times 624 as ``out`` has room for; ``key`` is its state, and moves on.

    Each part of the next state depends on parts of the last that are far from it, so it is made several at once.
    """
    for _ in prange(1):  # one thread: each state is made of the one before
        state, made = key, numpy.empty(SIZE, numpy.uint32)
        part = SIZE - FAR
        for block in range(out.size // SIZE):
            _twisted(made[:part], state[FAR:], state[:part], state[1 : part + 1])
            _twisted(made[part : 2 * part], made[:part], state[part : 2 * part], state[part + 1 : 2 * part + 1])
            last = SIZE - 1 - 2 * part
            _twisted(
                made[2 * part : SIZE - 1], made[part : part + last], state[2 * part : SIZE - 1], state[2 * part + 1 :]
            )
            _twisted(made[SIZE - 1 :], made[FAR - 1 : FAR], state[SIZE - 1 :], made[:1])
            state[:] = made
            given = out[block * SIZE : (block + 1) * SIZE]
            for k in range(SIZE):
                word = state[k]
                word ^= word >> numpy.uint32(11)
                word ^= (word << numpy.uint32(7)) & FIRST
                word ^= (word << numpy.uint32(15)) & SECOND
                given[k] = word ^ (word >> numpy.uint32(18))


@loop
def singles(drawn: Any, out: Any) -> None:
    """Uniform float32 in [0, 1) of the last 24 bits of each word."""
    for k in prange(drawn.size):
        out[k] = numpy.float32(numpy.int32(drawn[k] & numpy.uint64(0xFFFFFF))) * numpy.float32(2.0**-24)


@loop
def remainders(drawn: Any, span: Any, low: Any, out: Any) -> None:
    """``low`` and what is left of each word below 2**32 when it is divided by ``span``."""
    by = numpy.uint32(span)
    for k in prange(drawn.size):
        out[k] = numpy.int64(numpy.uint32(drawn[k]) % by) + low


@loop
def exchanged(steps: Any, order: Any) -> None:
    """Exchange each element with the one so many steps behind it, one after the other."""
    for _ in prange(1):
        for here in range(steps.size):
            there = here + numpy.int64(steps[here])
            kept = order[here]
            order[here] = order[there]
            order[there] = kept
