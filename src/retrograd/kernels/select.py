"""The choice among the variants of a kernel by the number of elements and the available libraries.

A kernel is declared once. The decorated function is its NumPy implementation; the variants before it are tried in
order::

    @at_most(SMALL)
    def _softmax_small(np, x, axis):
        ...

    @at_least(LARGE, NUMBA)
    def _softmax_loop(np, x, axis):
        ...

    @kernel(_softmax_small, _softmax_loop)
    def softmax(np, x, axis):
        ...

The result of ``kernel`` is a plain function with the parameters of the implementation, all positional. The first is
the array module; the second is the measured array, whose ``size`` is compared with the limits of the variants. A
variant that does not support its arguments (by dtype, layout, memory order or value) returns None; then the next one is
tried. The NumPy implementation supports all arguments. All limits are in ``kernels/thresholds.py``.

Note [Closures of the dispatcher]. Small arrays are computed in less than a microsecond, so a choice must take
nanoseconds. The dispatcher is a closure with a fixed number of parameters: it adds 25 to 50 ns to a call, where
``*args`` would add 100 and an object with ``__call__`` 150. Nearly all kernels have at most one variant for small and
one for large arrays; these use one comparison each. Other kernels use a loop over the variants.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from .numba_dispatch import available, looped
from .thresholds import LARGE

#: Libraries that a variant may need, and the functions that return whether they are installed and enabled.
NUMBA = "numba"
LIBRARIES: dict[str, Callable[[], bool]] = {NUMBA: available}


class Variant(NamedTuple):
    """Implementation of a kernel for a range of sizes: from ``low`` to ``high`` elements, both included.

    ``function`` returns None for arguments that it does not support. ``library`` is the name of a library that the
    implementation needs, or None.
    """

    function: Callable[..., Any]
    low: int
    high: int
    library: str | None


class Kernel(NamedTuple):
    """Declaration of a kernel: the NumPy implementation and the variants that are tried before it, in order."""

    name: str
    numpy: Callable[..., Any]
    variants: tuple[Variant, ...]


#: All kernels with variants, by their dispatching functions.
KERNELS: dict[Callable[..., Any], Kernel] = {}


def at_most(limit: int) -> Callable[[Callable[..., Any]], Variant]:
    """Return a decorator that makes a function a kernel's variant (implementation) for at most ``limit`` elements."""
    return lambda function: Variant(function, 0, limit, None)


def at_least(limit: int, library: str | None = None) -> Callable[[Callable[..., Any]], Variant]:
    """Return a decorator that makes a function a kernel's variant (implementation) for ``limit`` elements or more.

    The variant is used only if ``library`` is None, or installed and enabled.
    """
    return lambda function: Variant(function, limit, sys.maxsize, library)


def elementwise_loop(name: str, arrays: int = 1, *constants: float) -> Variant:
    """Return a variant of a kernel that calls the elementwise Numba loop ``name`` (see :func:`looped`) on large arrays.

    The first ``arrays`` arguments of the kernel are arrays. The others are numbers, which are passed to the loop
    together with ``constants``.
    """

    def loop(np: Any, *given: Any) -> Any:
        if len(given) == arrays:
            return looped(name, *given, numbers=constants)
        return looped(name, *given[:arrays], numbers=(*given[arrays:], *constants))

    return Variant(loop, LARGE, sys.maxsize, NUMBA)


def kernel(*variants: Variant, count: Callable[..., int] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a NumPy implementation a kernel, which tries ``variants`` first, in order.

    ``count`` is a function of the kernel's arguments after the array module. It returns the number that is compared
    with the size limits of the variants. If ``count`` is None, this number is the ``size`` of the first argument.
    """

    def declare(function: Callable[..., Any]) -> Any:
        operands = len(signature(function).parameters) - 1
        choose = _specialised(function, variants, operands, count) or _general(function, variants, count or _size)
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(choose, name, getattr(function, name))
        KERNELS[choose] = Kernel(f"{function.__module__}.{function.__name__}", function, variants)
        return choose

    return declare


def _size(x: Any, *others: Any) -> Any:
    return x.size


def _general(numpy: Callable[..., Any], variants: tuple[Variant, ...], count: Callable[..., int]) -> Any:
    """Return a dispatcher, which selects an implementation, for any number of variants and of parameters.

    The dispatcher calls, in order, the variants whose size limits include ``count(*arguments)``, until one returns a
    result other than None. If all return None, it calls ``numpy``, the NumPy implementation.
    """
    tried = [(*variant[:3], LIBRARIES[variant.library] if variant.library else None) for variant in variants]

    def choose(np: Any, *given: Any) -> Any:
        size = count(*given)
        for function, low, high, installed in tried:
            if low <= size <= high and (installed is None or installed()):
                found = function(np, *given)
                if found is not None:
                    return found
        return numpy(np, *given)

    return choose


def _specialised(
    numpy: Callable[..., Any], variants: tuple[Variant, ...], operands: int, count: Callable[..., int] | None
) -> Any:
    """Return a fast dispatcher, which selects an implementation by size, or None if a general one is needed.

    The dispatcher has a fixed parameter list, and at most one variant for small arrays and one for large ones.
    ``numpy`` is the NumPy implementation and ``operands`` the number of its arguments after the array module. The
    result is None for other variants, if ``count`` is not None, and if no closure has so many operands (Note [Closures
    of the dispatcher]).
    """
    below = [each for each in variants if each.low == 0 and each.library is None]
    above = [each for each in variants if each.high == sys.maxsize]
    if count is not None or len(below) > 1 or len(above) > 1 or len(below) + len(above) < len(variants):
        return None
    if not variants:
        return numpy
    few, small = (below[0].high, below[0].function) if below else (-1, None)
    many, large, library = (above[0].low, above[0].function, above[0].library) if above else (sys.maxsize, None, None)
    shape = _SMALL if large is None else _LARGE if small is None else _BOTH
    if few >= many or operands not in shape:
        return None
    return shape[operands](numpy, few, small, many, large, LIBRARIES[library] if library else _always)


def _always() -> bool:
    return True


# -- Closures --------------------------------------------------------------------------------------------------------
#
# The dispatcher for kernels with a variant for small arrays, with one for large arrays, and with both, for the numbers
# of operands that occur. ``few`` and ``many`` are the limits of the variants ``small`` and ``large``, and ``installed``
# returns whether the library of ``large`` is installed.


def _small_1(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any) -> Any:
        if x.size <= few and (found := small(np, x)) is not None:
            return found
        return numpy(np, x)

    return choose


def _large_1(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x)) is not None:
            return found
        return numpy(np, x)

    return choose


def _both_1(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any) -> Any:
        size = x.size
        if size <= few:
            if (found := small(np, x)) is not None:
                return found
        elif size >= many and installed() and (found := large(np, x)) is not None:
            return found
        return numpy(np, x)

    return choose


def _small_2(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any) -> Any:
        if x.size <= few and (found := small(np, x, a)) is not None:
            return found
        return numpy(np, x, a)

    return choose


def _large_2(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x, a)) is not None:
            return found
        return numpy(np, x, a)

    return choose


def _both_2(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any) -> Any:
        size = x.size
        if size <= few:
            if (found := small(np, x, a)) is not None:
                return found
        elif size >= many and installed() and (found := large(np, x, a)) is not None:
            return found
        return numpy(np, x, a)

    return choose


def _small_3(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any) -> Any:
        if x.size <= few and (found := small(np, x, a, b)) is not None:
            return found
        return numpy(np, x, a, b)

    return choose


def _large_3(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x, a, b)) is not None:
            return found
        return numpy(np, x, a, b)

    return choose


def _both_3(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any) -> Any:
        size = x.size
        if size <= few:
            if (found := small(np, x, a, b)) is not None:
                return found
        elif size >= many and installed() and (found := large(np, x, a, b)) is not None:
            return found
        return numpy(np, x, a, b)

    return choose


def _small_4(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
        if x.size <= few and (found := small(np, x, a, b, c)) is not None:
            return found
        return numpy(np, x, a, b, c)

    return choose


def _large_4(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x, a, b, c)) is not None:
            return found
        return numpy(np, x, a, b, c)

    return choose


def _both_4(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
        size = x.size
        if size <= few:
            if (found := small(np, x, a, b, c)) is not None:
                return found
        elif size >= many and installed() and (found := large(np, x, a, b, c)) is not None:
            return found
        return numpy(np, x, a, b, c)

    return choose


def _small_5(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        if x.size <= few and (found := small(np, x, a, b, c, d)) is not None:
            return found
        return numpy(np, x, a, b, c, d)

    return choose


def _large_5(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x, a, b, c, d)) is not None:
            return found
        return numpy(np, x, a, b, c, d)

    return choose


def _both_5(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        size = x.size
        if size <= few:
            if (found := small(np, x, a, b, c, d)) is not None:
                return found
        elif size >= many and installed() and (found := large(np, x, a, b, c, d)) is not None:
            return found
        return numpy(np, x, a, b, c, d)

    return choose


def _small_6(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        if x.size <= few and (found := small(np, x, a, b, c, d, e)) is not None:
            return found
        return numpy(np, x, a, b, c, d, e)

    return choose


def _large_6(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        if x.size >= many and installed() and (found := large(np, x, a, b, c, d, e)) is not None:
            return found
        return numpy(np, x, a, b, c, d, e)

    return choose


def _small_8(numpy: Any, few: int, small: Any, many: int, large: Any, installed: Any) -> Any:
    def choose(np: Any, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
        if x.size <= few and (found := small(np, x, a, b, c, d, e, f, g)) is not None:
            return found
        return numpy(np, x, a, b, c, d, e, f, g)

    return choose


_SMALL = {1: _small_1, 2: _small_2, 3: _small_3, 4: _small_4, 5: _small_5, 6: _small_6, 8: _small_8}
_LARGE = {1: _large_1, 2: _large_2, 3: _large_3, 4: _large_4, 5: _large_5, 6: _large_6}
_BOTH = {1: _both_1, 2: _both_2, 3: _both_3, 4: _both_4, 5: _both_5}
