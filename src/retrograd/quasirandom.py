"""``torch.quasirandom``: Sobol sequences, whose points fill a cube more evenly than random points."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

import numpy

import retrograd as torch

from .core.dtypes import unsupported
from .core.tensor import Tensor

#: Number of bits of a coordinate, and maximum number of dimensions.
COORDINATE_BITS, MAX_DIMENSION = 30, 21201


@functools.cache
def _polynomials() -> tuple[Any, Any]:
    """Return two integer arrays that define the Sobol sequences of each dimension, read from SciPy's data.

    The first has a primitive polynomial for each dimension, an integer whose bits are the coefficients. The second has
    a row for each dimension with the first direction numbers (see :func:`_direction_numbers`), those of Joe and Kuo
    ("Constructing Sobol sequences with better two-dimensional projections", 2008).
    """
    place = resources.files("scipy.stats") / "_sobol_direction_numbers.npz"
    with place.open("rb") as file, numpy.load(file) as found:
        return found["poly"].astype(numpy.int64), found["vinit"].astype(numpy.int64)


def _direction_numbers(dimension: int) -> Any:
    """Return the integers (direction numbers) whose bitwise XORs are the coordinates of the points of a Sobol sequence.

    The result is an integer array of shape (``dimension``, number of bits of a coordinate).

    Source: Bratley and Fox, "Algorithm 659: Implementing Sobol's quasirandom sequence generator", 1988.
    """
    polynomials, first = (each[:dimension] for each in _polynomials())
    found = numpy.ones((dimension, COORDINATE_BITS), numpy.int64)
    degrees = numpy.frexp(polynomials)[1] - 1
    for degree in range(1, int(degrees.max(initial=0)) + 1):
        rows = numpy.flatnonzero(degrees == degree)
        of_degree, polynomial = found[rows], polynomials[rows]
        of_degree[:, :degree] = first[rows, :degree]
        for bit in range(degree, COORDINATE_BITS):
            new = of_degree[:, bit - degree].copy()
            for back in range(1, degree + 1):
                taken = polynomial >> (degree - back) & 1
                new ^= taken * (of_degree[:, bit - back] << back)
            of_degree[:, bit] = new
        found[rows] = of_degree
    return found << numpy.arange(COORDINATE_BITS - 1, -1, -1)


class SobolEngine:
    """Generator of a Sobol sequence of points in the unit cube of ``dimension`` dimensions.

    If ``scramble`` is true, the bits of each coordinate are multiplied by a random binary matrix, and a random binary
    vector is added, modulo 2. The random bits are drawn from a generator with the seed ``seed`` or, if ``seed`` is
    None, from the default generator.

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])

    Source: Sobol, "On the distribution of points in a cube and the approximate evaluation of integrals", 1967; Owen,
    "Scrambling Sobol and Niederreiter-Xing points", 1998.
    """

    MAXBIT = COORDINATE_BITS
    MAXDIM = MAX_DIMENSION

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > MAX_DIMENSION or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {MAX_DIMENSION}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.from_numpy(_direction_numbers(dimension))
        self.shift = torch.zeros(dimension, dtype=torch.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**COORDINATE_BITS).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        """Draw a random shift of the points, and multiply the direction numbers by random binary matrices.

        A direction number is treated as a vector of bits, and the products are taken modulo 2. There is one lower
        triangular matrix for each dimension.
        """
        generator = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        bits = torch.randint(2, (self.dimension, COORDINATE_BITS), generator=generator)
        self.shift = bits @ 2 ** torch.arange(COORDINATE_BITS)
        matrices = torch.randint(2, (self.dimension, COORDINATE_BITS, COORDINATE_BITS), generator=generator).tril()
        weights = 1 << numpy.arange(COORDINATE_BITS - 1, -1, -1)
        rows = (matrices.numpy() | numpy.eye(COORDINATE_BITS, dtype=numpy.int64)) @ weights
        state = self.sobolstate.numpy()
        odd = numpy.bitwise_count(rows[:, :, None] & state[:, None, :]) & 1
        state[...] = (odd * weights[:, None]).sum(1)

    def _steps(self, count: int) -> Any:
        """Return the bitwise XOR of each of the next ``count`` points and its predecessor.

        The caller computes the points from these. The result is an integer array of shape (``count``, number of
        dimensions). At the beginning of the sequence it has one row less, because the first point has no predecessor.
        """
        if self.num_generated == 0:  # the first point needs no step
            count -= 1
        start = max(self.num_generated - 1, 0)
        numbers = ~numpy.arange(start, start + count, dtype=numpy.int64)
        lowest = numpy.frexp((numbers & -numbers).astype(numpy.float64))[1] - 1  # the lowest bit that is not set
        return self.sobolstate.numpy()[:, lowest].T

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next ``n`` points as the rows of a tensor of ``dtype``, float32 or float64.

        If ``dtype`` is None, the default dtype is used. If ``out`` is passed, it is resized and overwritten by the
        points.
        """
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if dtype not in (torch.float32, torch.float64):
            raise unsupported("_sobol_engine_draw", dtype.numpy)
        if n < (self.num_generated == 0):
            size = n - (self.num_generated == 0)
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: [{size}, {self.dimension}]")
        points = numpy.bitwise_xor.accumulate(self._steps(n), axis=0) ^ self.quasi.numpy()
        if len(points):
            self.quasi.copy_(torch.from_numpy(points[-1]))
        result = torch.from_numpy(points).to(dtype) * 2.0**-COORDINATE_BITS
        if self.num_generated == 0:
            result = torch.cat((self._first_point.to(dtype), result))
        self.num_generated += n
        if out is None:
            return result
        return out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next ``2**m`` points; ``out`` and ``dtype`` have the same meaning as for :meth:`draw`.

        Raises ValueError unless the total number of points drawn, including these, is a power of two.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}."
                " If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Restart the sequence at its first point, and return ``self``."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next ``n`` points of the sequence, and return ``self``."""
        steps = self._steps(n)
        if len(steps):
            self.quasi.copy_(torch.from_numpy(numpy.bitwise_xor.reduce(steps, axis=0) ^ self.quasi.numpy()))
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


__all__ = ["SobolEngine"]
