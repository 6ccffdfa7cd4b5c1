"""PyTorch's random generator (MT19937) on NumPy: the stream of 32-bit words, and uniform and normal numbers.

For the same seed the numbers are the same as PyTorch's. A uniform float32 uses 24 bits of one word, a uniform float64
uses 53 bits of two words. Normal numbers are computed in pairs by the Box-Muller method. Fewer than 16 normal numbers
are computed in double precision, and the second number of the last pair may be saved for the next call. 16 or more are
computed in blocks of 16, in which one half of the uniform numbers gives the radii and the other half the angles. If
their number is not a multiple of 16, the last 16 are drawn again.

The distributions are in ``kernels/samplers.py``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import ml_dtypes
import numpy

from ..runtime.forks import replace_in_child
from .numba_dispatch import LARGE, available, loops
from .thresholds import DRAWN

Array = Any
Draws = Generator[float, None, None]
F16, F32, F64 = numpy.dtype("f2"), numpy.dtype("f4"), numpy.dtype("f8")
BF16, I64 = numpy.dtype(ml_dtypes.bfloat16), numpy.dtype(numpy.int64)
DEFAULT_SEED = 67280421310721
STATE_BYTES = 5056
_SEED_AT, _LEFT_AT, _NEXT_AT, _KEY_AT, _NORMAL_AT, _VALID_AT = 0, 8, 16, 24, 5024, 5040


WORDS = 624  # words that the generator computes at a time
AHEAD = 8 * WORDS  # words drawn ahead
REMEMBERED = 64 * WORDS  # largest distance in words from the last saved state of the generator
STRETCH = 1024  # words of a request up to which it is served from a table
SHORTEST, LONGEST = 256, AHEAD  # limits of the number of words converted for a table
NO_WORDS = numpy.zeros(0, numpy.uint64)
NO_TABLE: tuple[int, int, Array] = (0, -1, NO_WORDS)


class WordConverter:
    """Conversion of random 32-bit words to the numbers of one distribution, such as uniform float32 numbers.

    ``make`` is a function that converts an array of words to an array of numbers. Each number is made of ``each``
    words. The number of words that are converted must be a multiple of ``together``. ``loop`` is the name of the Numba
    loop that converts at least ``least`` words, and ``dtype`` the dtype of its results.
    """

    __slots__ = ("dtype", "each", "least", "loop", "make", "together")
    each: int
    together: int
    dtype: Any
    loop: str
    least: int

    def __init__(
        self, make: Callable[[Array], Array], each: int, together: int, loop: str = "", dtype: Any = None,
        least: int = DRAWN,
    ) -> None:  # fmt: skip
        self.make, self.each, self.together = make, each, together
        self.loop, self.dtype, self.least = loop, dtype, least  # see kernels/numba/random.py


class Stream:
    """State of a torch.Generator: the MT19937 words drawn ahead, and the normal number saved for the next call.

    A :class:`WordConverter` converts words to the numbers of one distribution. The first request for such numbers
    converts more words than it needs and saves the numbers in a table. The following small requests return slices of
    the table. The next table of a distribution is twice as long if the previous table was used up. It is half as long
    if words were used for another distribution before that.
    """

    __slots__ = (
        "_bit_generator", "_key", "_known", "_lengths", "_passed", "_position", "_tables", "_words", "fresh", "initial_seed",
        "kept",
    )  # fmt: skip

    _bit_generator: Any
    #: State of MT19937 after the words that a Numba loop has drawn, until ``_bit_generator`` gets it: setting the state of
    #: NumPy's generator takes as long as drawing 50,000 words.
    _key: Array | None
    #: Held while numbers are drawn from any stream: no two threads get the same numbers. Replaced in a forked process.
    lock = threading.RLock()

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.seed_with(seed)

    @property
    def _engine(self) -> Any:
        """NumPy's MT19937 generator, created when the first numbers are drawn, because importing ``numpy.random`` is slow."""
        engine = self._bit_generator
        if engine is None:
            engine = self._bit_generator = numpy.random.MT19937(0)
            engine._legacy_seeding(self.initial_seed & 0xFFFFFFFF)
        if self._key is not None:
            engine.state = {"bit_generator": "MT19937", "state": {"key": self._key, "pos": WORDS}}
            self._key = None
        return engine

    def seed_with(self, seed: int) -> None:
        """Restart the stream from ``seed``, an integer of 64 bits. As in PyTorch, 2**64 is added to a negative seed."""
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        with self.lock:
            self.initial_seed: int = seed % 2**64
            self._bit_generator = self._key = None
            self.fresh: bool = True  # nothing drawn yet, which PyTorch's state layout records
            self.kept: float | None = None
            self._known: tuple[Array, int] | None = None
            self._passed, self._words = 0, NO_WORDS
            self._lengths = dict[WordConverter, int]()
            self._go_on(NO_WORDS, 0)

    def _go_on(self, words: Array, position: int, known: tuple[Array, int] | None = None) -> None:
        """Replace the random 32-bit integers that are drawn ahead by ``words``, of which ``position`` are already used.

        ``known`` is the state (key and position) of MT19937 before it drew the first of ``words``. It is None if this
        state has not been read.
        """
        self._passed = 0 if known else self._passed + len(self._words)
        self._known = known or self._known
        self._words, self._position = words, position
        self._tables = dict[WordConverter, tuple[int, int, Array]]()

    def _draw_ahead(self) -> None:
        """Draw the next ``AHEAD`` words from MT19937, to be used by later requests.

        The state of MT19937, from which :meth:`state` is computed, is read only once for every ``REMEMBERED`` words,
        because reading it takes as long as drawing the words.
        """
        known = None
        if self._known is None or self._passed > REMEMBERED:
            known = self._engine.state["state"]["key"], WORDS
        self._go_on(self._engine.random_raw(AHEAD), 0, known)

    def words(self, count: int) -> Array:
        """Return the next ``count`` random 32-bit words, as uint64. The caller must not write to the array."""
        with self.lock:
            start, end = self._position, self._position + count
            if count:
                self.fresh = False
            if (many := self.many_words(count)) is not None:
                return many.astype(numpy.uint64)
            if end <= len(self._words):
                self._position = end
                return self._words[start:end]
            left, more = self._words[start:], end - len(self._words)
            if more <= AHEAD:
                self._draw_ahead()
                self._position = more
                return numpy.concatenate([left, self._words[:more]])
            drawn = self._engine.random_raw(-(-more // WORDS) * WORDS)
            self._go_on(drawn[-WORDS:].copy(), (more - 1) % WORDS + 1, (self._engine.state["state"]["key"], 0))
            return numpy.concatenate([left, drawn[:more]])

    def many_words(self, count: int) -> Array | None:
        """Return the next ``count`` random 32-bit words, as uint32, drawn by a Numba loop.

        The result is None if ``count`` is small or the loop cannot be used.
        """
        if count < DRAWN or not available(count):
            return None
        with self.lock:
            left = len(self._words) - self._position
            more = -(-(count - left) // WORDS) * WORDS
            if more <= 0:
                return None
            if self._key is None:
                state = self._engine.state["state"]
                if state["pos"] != WORDS:
                    return None
                key = numpy.array(state["key"], numpy.uint32)
            else:
                key = self._key.copy()
            drawn = numpy.empty(left + more, numpy.uint32)
            drawn[:left] = self._words[self._position :]
            loops("random").words(key, drawn[left:])
            self._key = key
            self._go_on(drawn[-WORDS:].astype(numpy.uint64), (count - left - 1) % WORDS + 1, (key, 0))
            self.fresh = False
            return drawn[:count]

    def numbers(self, count: int, maker: WordConverter) -> Array:
        """Return the next ``count`` numbers of the distribution to which ``maker`` converts words.

        The caller must not write to the array.
        """
        with self.lock:
            start = self._position
            end = start + count * maker.each
            begun, last, table = self._tables.get(maker, NO_TABLE)
            if not begun <= start < end <= last or (start - begun) % maker.together:
                return self._tabled(count, maker)
            self._position, self.fresh = end, False
            first = (start - begun) // maker.each
            return table[first : first + count]

    def _tabled(self, count: int, maker: WordConverter) -> Array:
        """Return the next ``count`` numbers, converted by ``maker``, from a new table of converted words.

        If ``count`` is large, the words are converted without a table.
        """
        start, words = self._position, count * maker.each
        left = len(self._words) - start
        if words > min(left, STRETCH) or not count:
            if maker.loop and words >= maker.least and (many := self.many_words(words)) is not None:
                out = numpy.empty(count, maker.dtype)
                getattr(loops("random"), maker.loop)(many, out)
                return out
            return maker.make(self.words(words))
        last, length = self._tables.get(maker, NO_TABLE)[1], self._lengths.get(maker, SHORTEST)
        if last >= 0:
            length = min(2 * length, LONGEST) if start + words > last >= start else max(length // 2, SHORTEST)
        self._lengths[maker] = length
        last = start + min(max(length, words), left) // maker.together * maker.together
        table = maker.make(self._words[start:last])
        self._tables[maker] = start, last, table
        self._position, self.fresh = start + words, False
        return table[:count]

    def singles(self, count: int) -> Array:
        """Return ``count`` uniform random float32 numbers in [0, 1). The caller must not write to the array."""
        return self.numbers(count, SINGLES)

    def doubles(self, count: int) -> Array:
        """Return ``count`` uniform random float64 numbers in [0, 1). The caller must not write to the array."""
        return self.numbers(count, DOUBLES)

    def one_by_one(self) -> Generator[float, None, None]:
        """Yield uniform random float64 numbers in [0, 1) one by one, as Python floats.

        Each number is computed from two random 32-bit integers of the stream. The integers are drawn for several
        numbers at once. When the iteration is closed, those of unused numbers are returned to the stream.
        """
        with self.lock:
            while True:
                count = min(max((len(self._words) - self._position) // 2, 1), WORDS)
                drawn = self.doubles(count).tolist()
                taken = 0
                try:
                    for value in drawn:
                        taken += 1
                        yield value
                finally:
                    self._position -= 2 * (count - taken)

    def state(self) -> Array:
        """Return the state of the generator as a uint8 array in the layout of ``torch.get_rng_state``."""
        with self.lock:
            key, position = self._state()
            raw = numpy.zeros(STATE_BYTES, numpy.uint8)
            raw[_SEED_AT:_LEFT_AT].view(numpy.uint64)[0] = self.initial_seed
            raw[_LEFT_AT:_NEXT_AT].view(numpy.int32)[:] = (1 if self.fresh else 625 - position, 1)
            raw[_NEXT_AT:_KEY_AT].view(numpy.uint64)[0] = 0 if self.fresh else position
            raw[_KEY_AT : _KEY_AT + 8 * 624].view(numpy.uint64)[:] = key
            if self.kept is not None:
                raw[_NORMAL_AT : _NORMAL_AT + 8].view(F64)[0] = self.kept
                raw[_VALID_AT : _VALID_AT + 4].view(numpy.int32)[0] = 1
            return raw

    def _state(self) -> tuple[Array, int]:
        """Return the state (key and position) of MT19937 after the words that have been used.

        The words drawn ahead do not count as used. Therefore the state is equal to PyTorch's.
        """
        if self._known is None:
            return self._engine.state["state"]["key"], WORDS
        again = numpy.random.MT19937(0)
        key, position = self._known
        again.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        again.random_raw(self._passed + self._position, output=False)
        state = again.state["state"]
        return state["key"], state["pos"]

    def set_state(self, raw: Array) -> None:
        """Restore ``raw``, a state that :meth:`state` or PyTorch returned."""
        raw = numpy.ascontiguousarray(raw)
        if raw.dtype != numpy.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if raw.size != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be {raw.size}"
            )
        left, seeded = (int(each) for each in raw[_LEFT_AT:_NEXT_AT].view(numpy.int32))
        position = int(raw[_NEXT_AT:_KEY_AT].view(numpy.uint64)[0])
        if seeded != 1 or not 0 < left <= 624 or position > 624:
            raise RuntimeError("Invalid mt19937 state")
        key = raw[_KEY_AT : _KEY_AT + 8 * 624].view(numpy.uint64).astype(numpy.uint32)
        with self.lock:
            self.initial_seed = int(raw[_SEED_AT:_LEFT_AT].view(numpy.uint64)[0])
            self.fresh = left == 1 and position == 0
            position = WORDS if left == 1 else position
            self._engine.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
            self._go_on(self._engine.random_raw(WORDS - position), 0, (key, position))
            valid = int(raw[_VALID_AT : _VALID_AT + 4].view(numpy.int32)[0])
            self.kept = float(raw[_NORMAL_AT : _NORMAL_AT + 8].view(F64)[0]) if valid else None


replace_in_child(Stream, "lock")


def _singles(words: Array) -> Array:
    """Return one uniform float32 in [0, 1) for each of ``words``, random 32-bit words."""
    return (words & numpy.uint64(2**24 - 1)).astype(F32) * numpy.float32(2.0**-24)


def _long_words(words: Array) -> Array:
    """Return one 64-bit word for every two of ``words``; the first of the two words is the high half."""
    return (words[::2] << numpy.uint64(32)) | words[1::2]


def _doubles(words: Array) -> Array:
    """Return one uniform float64 in [0, 1) for every two of ``words``, random 32-bit words."""
    return (_long_words(words) & numpy.uint64(2**53 - 1)).astype(F64) * 2.0**-53


def _pairs(words: Array) -> Array:
    """Return standard normal numbers as float64, computed in pairs by the Box-Muller method from ``words``.

    A pair is computed from two uniform float64, that is, from four of the 32-bit words.
    """
    draws = _doubles(words)
    angles, radii = 2 * math.pi * draws[::2], numpy.sqrt(-2 * numpy.log1p(-draws[1::2]))
    out = numpy.empty((len(radii), 2))
    numpy.multiply(radii, numpy.cos(angles), out[:, 0])
    numpy.multiply(radii, numpy.sin(angles), out[:, 1])
    return out.ravel()


def _short_pairs(words: Array) -> Array:
    """Return standard normal numbers as float32, computed in double precision by :func:`_pairs` and rounded."""
    return _pairs(words).astype(F32)


def _is_double(dtype: Any) -> bool:
    return bool(dtype == F64)


def _blocks(words: Array, dtype: Any) -> Array:
    """Return standard normal numbers of ``dtype``, computed by the Box-Muller method in blocks of 16 from ``words``.

    Each block is computed from 16 uniform numbers of ``dtype``, which are made of random 32-bit words.
    """
    block = (_doubles if _is_double(dtype) else _singles)(words).reshape(-1, 16)
    kind = dtype.type
    radius = numpy.subtract(kind(1), block[:, :8])
    with numpy.errstate(divide="ignore"):
        numpy.log(radius, out=radius)
    radius *= kind(-2)
    numpy.sqrt(radius, out=radius)
    angle = kind(2 * math.pi) * block[:, 8:]
    out = numpy.empty_like(block)
    numpy.multiply(radius, numpy.cos(angle), out=out[:, :8])
    numpy.multiply(radius, numpy.sin(angle, out=angle), out=out[:, 8:])
    return out.ravel()


SINGLES, DOUBLES = WordConverter(_singles, 1, 1, "singles", F32), WordConverter(_doubles, 2, 2, "doubles", F64)
PAIRS, SHORT_PAIRS = WordConverter(_pairs, 2, 4), WordConverter(_short_pairs, 2, 4)
BLOCKS = {
    F32: WordConverter(partial(_blocks, dtype=F32), 1, 16, "normals", F32, LARGE),  # the loop rounds differently
    F64: WordConverter(partial(_blocks, dtype=F64), 2, 32),
}


_count = math.prod
