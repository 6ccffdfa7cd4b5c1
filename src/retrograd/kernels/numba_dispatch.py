"""Dispatch of elementwise ufuncs, copy, fill and broadcasting on large arrays to Numba loops.

A loop is a function compiled by Numba (``kernels/numba``). Numba (the extra ``[fast]``) is imported when the work repays
it (Note [When loops are used] in ``numba_startup.py``). A function returns None if Numba is not used or no loop supports
the arrays; the caller then computes with NumPy.

Note [Threads of loops]. Numba runs loops on OpenMP's threads where available (Linux: libgomp), else on its own thread
pool, which two Python threads must not use at once. After a loop OpenMP's threads by default wait actively for some
milliseconds, in which they compete with NumPy's matrix products for the cores. They are configured to sleep after a
fraction of a millisecond. After a fork OpenMP's threads do not exist in the child process; there loops run on one
thread.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy

from ..core.rule_namespace import arithmetic
from ..runtime import blas_threads
from ..runtime.interrupts import note_return
from .numba_startup import available as available
from .numba_startup import permitted as permitted
from .threaded_ufuncs import by_stretches, by_threads
from .thresholds import LARGE as LARGE
from .thresholds import LOOP_ROW, THREADED_LOOP, WAKE_WORKQUEUE

ndarray, empty = numpy.ndarray, numpy.empty
F32, F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
BOOL = numpy.dtype(numpy.bool_)
#: How often OpenMP's threads look for work before they sleep. By themselves they would for 7 ms, in which they take the
#: cores from BLAS: a step of a small convolutional network took fifteen times as long. If BLAS's threads do the same
#: (Note [Two thread pools] in ``runtime/blas_threads.py``) they look but a little.
PATIENCE, LITTLE = "20000", "1000"


def suits(size: int, *arrays: Any, least: int | None = None) -> bool:
    """Whether Numba loops support ``arrays`` and are faster than NumPy for ``size`` elements to compute.

    ``least`` is the number of elements from which on they are, by default ``LARGE``. Loops support NumPy arrays (not
    subclasses) that all have the dtype float32 or all float64.
    """
    kind = arrays[0].dtype
    if (
        (size < LARGE and (least is None or size < least))
        or (kind is not F32 and kind is not F64)
        or not available(size)
    ):
        return False
    return all(each.__class__ is ndarray and each.dtype is kind for each in arrays)


def on_threads(loop: Any, size: int) -> Any:
    """Return the function of ``loop`` for all threads, or for the calling thread if ``size`` elements are few."""
    return loop if size >= THREADED_LOOP else loop.for_one


@cache
def loops(topic: str) -> Any:
    """Return the module ``retrograd.kernels.numba.<topic>``, which defines Numba loops.

    The first call imports Numba, which takes 0.3 s.
    """
    short = blas_threads.SHORT_SPIN or blas_threads.shorten_spin()
    if "GOMP_SPINCOUNT" not in os.environ and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = PATIENCE if short else LITTLE  # read when the library of threads is loaded
    return import_module(f"retrograd.kernels.numba.{topic}")


def looped(name: str, *arrays: Any, numbers: tuple[Any, ...] = (), kind: Any = None, out: Any = None) -> Any:
    """Return the result of the elementwise Numba loop ``name`` for ``arrays``, or None if they are not supported.

    All arrays must be NumPy arrays of one shape and memory order. They must have one dtype, float32 or float64, except
    that arrays of bool are also allowed. An array may repeat a single element by strides of 0, as the gradient of a sum
    does. ``numbers`` are further arguments of the loop, converted to the dtype of the first array.

    The result is written to ``out``, or to a new array of dtype ``kind`` in the memory order of ``arrays``. If ``kind``
    is None, it has the dtype of the first array.
    """
    first = arrays[0]
    dtype, shape = first.dtype, first.shape
    if (dtype is not F32 and dtype is not F64) or not available(first.size):
        return None
    for array in arrays:
        if array.__class__ is not ndarray or not array.flags.carray:
            return _otherwise(name, arrays, numbers, kind, out)
        if array is not first and (array.shape != shape or (array.dtype is not dtype and array.dtype is not BOOL)):
            return None
    if out is not None and not out.flags.carray:
        return _otherwise(name, arrays, numbers, kind, out)
    loop = LOOPS.get(name) or _find(name)
    found = last = empty(shape, kind or dtype) if out is None else out
    lines: Any = arrays
    if len(shape) != 1:
        lines, last = [array.reshape(-1) for array in arrays], found.reshape(-1)
    if numbers:
        lines = [*lines, *map(dtype.type, numbers)]
    run = loop.for_one if first.size < THREADED_LOOP else loop.for_all if RUNNING.simple else loop
    try:
        run(*lines, last)
    except KeyboardInterrupt as error:
        note_return(error)
        raise
    return found


def _otherwise(name: str, arrays: tuple[Any, ...], numbers: tuple[Any, ...], kind: Any, out: Any) -> Any:
    """Return the result of :func:`looped` for arrays that its fast path does not support, or None.

    These are arrays of the class :class:`Large`, arrays that are not in C order, and arrays that repeat a single
    element. The parameters are those of :func:`looped`. The result is None if no Numba loop supports the arrays.
    """
    if any(array.__class__ is Large for array in arrays):
        return looped(name, *map(plain, arrays), numbers=numbers, kind=kind, out=out)
    first = arrays[0]
    dtype = first.dtype
    for array in arrays:
        if array.__class__ is not ndarray or array.shape != first.shape:
            return None
        if array.dtype is not dtype and array.dtype is not BOOL:
            return None
    model = next((array for array in arrays if any(array.strides)), None)
    if model is None:
        return None
    loop = LOOPS.get(name) or _find(name)
    found = numpy.empty_like(model, kind or dtype) if out is None else out
    lines = in_lines(model, loop.flexible, *arrays, found)
    if not lines:
        return None
    last = lines.pop()
    loop(*lines, *map(dtype.type, numbers), last)
    return found


LOOPS: dict[str, Any] = {}


def _find(name: str) -> Any:
    LOOPS[name] = getattr(loops("elementwise"), name)
    return LOOPS[name]


def in_lines(model: Any, flexible: frozenset[int], *arrays: Any) -> list[Any]:
    """Return ``arrays`` as 1-d arrays in the memory order of ``model``, for an elementwise Numba loop.

    The result is an empty list if an array has another memory order. ``flexible`` holds the positions at which the loop
    also accepts a number. An array at such a position that repeats a single element, by strides of 0, is replaced by
    this element.
    """
    order = sorted(range(model.ndim), key=model.strides.__getitem__, reverse=True)
    lines = []
    for place, array in enumerate(arrays):
        if place in flexible and not any(array.strides):
            lines.append(array[(0,) * array.ndim])
            continue
        line = array.transpose(order)
        if not line.flags.carray:
            return []
        lines.append(line.reshape(-1))
    return lines


#: The loops that do what ufuncs of NumPy do; those of two arrays have a form for an array and a number.
UFUNCS = {
    numpy.add: "add", numpy.subtract: "subtract", numpy.multiply: "multiply", numpy.divide: "divide",
    numpy.negative: "negative", numpy.absolute: "absolute", numpy.sqrt: "sqrt", numpy.exp: "exp",
    numpy.maximum: "maximum", numpy.minimum: "minimum",
}  # fmt: skip


def for_ufunc(ufunc: Any) -> Callable[..., Any] | None:
    """Return a function that computes ``ufunc`` on large arrays, or None if ``ufunc`` is None.

    The function uses a Numba loop if a loop supports its arguments, else NumPy on several threads.
    """
    if ufunc is None:
        return None
    name = UFUNCS.get(ufunc)
    if name is None:
        return lambda *given, out=None: by_threads(ufunc, given, out)

    numbered = f"{name}_number"

    turned = {"add": numbered, "multiply": numbered, "subtract": "subtract_from", "divide": "divide_from"}.get(name)

    def calculate(first: Any, *second: Any, out: Any = None) -> Any:
        if RUNNING.simple and out is None and second and (found := _usual(name, first, second[0])) is not None:
            return found
        if out is not None:
            return out if _into(name, out, first, second) else by_threads(ufunc, (first, *second), out)
        other = second[0] if second else None
        if other.__class__ is numpy.ndarray and first.__class__ is numpy.ndarray and other.shape == first.shape:
            if (found := looped(name, first, other)) is not None:
                return found
            if first.flags.carray is not other.flags.carray and first.dtype is other.dtype:
                relaid = in_order(first), in_order(other)  # laid out otherwise than the other, as in x.t() + y
                if relaid[0] is not None is not relaid[1]:
                    return looped(name, *relaid)
            if not any(first.strides) and first.dtype is other.dtype:  # all elements are the same one
                first = first[(0,) * first.ndim]
            elif not any(other.strides) and first.dtype is other.dtype:
                second = (other[(0,) * first.ndim],)
                other = second[0]
        if not second:
            found = looped(name, first)
        elif first.__class__ is not numpy.ndarray:
            found = looped(turned, other, numbers=(first,)) if turned and other.__class__ is numpy.ndarray else None
        elif other.__class__ is numpy.ndarray and other.ndim:
            found = None if other.shape == first.shape else broadcast(name, first, other)
        elif other.__class__ is not numpy.ndarray or other.dtype is first.dtype:
            found = looped(numbered, first, numbers=second)
        else:
            found = None
        return by_threads(ufunc, (first, *second)) if found is None else found

    return calculate


def stretched(kernel: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function that computes ``kernel`` on several threads if Numba is not available.

    ``kernel(np, *arrays, *params)`` is an elementwise formula of ``count`` arrays. The function has the same
    parameters. Without Numba it divides large arrays into slices, and each thread calls ``kernel`` for some slices.
    With Numba it calls ``kernel`` once.
    """

    def large(np: Any, *given: Any, **named: Any) -> Any:
        found = None
        if not available(given[0].size):
            params = given[count:]
            found = by_stretches(lambda *parts: kernel(np, *parts, *params, **named), given[:count])
        return kernel(np, *given, **named) if found is None else found

    return large


def _usual(name: str, x: Any, y: Any) -> Any:
    """Return ``looped(name, x, y)`` for the most frequent arguments, with fewer checks; None for other arguments.

    The most frequent arguments are contiguous arrays ``x`` and ``y`` of one shape, or a 0-d ``y``. The checks of
    :func:`looped` take 2 of the 8 µs of adding 10⁵ elements.
    """
    if x.__class__ is not ndarray:
        return None
    dtype, shape, kind = x.dtype, x.shape, y.__class__
    if (dtype is not F32 and dtype is not F64) or not x.flags.carray or not available(x.size):
        return None
    if kind is not ndarray:
        return None
    if y.dtype is not dtype or (y.shape != shape and y.shape) or not y.flags.carray:
        return None
    if not y.shape:
        name, y, kind = f"{name}_number", y[()], None
    found, loop = empty(shape, dtype), (LOOPS.get(name) or _find(name)).for_all
    if len(shape) == 1:
        loop(x, y, found)
    else:
        loop(x.reshape(-1), y.reshape(-1) if kind is ndarray else y, found.reshape(-1))
    return found


def _into(name: str, out: Any, first: Any, second: tuple[Any, ...]) -> bool:
    """Compute ``name(first, *second)`` by a Numba loop in place of ``first``; return whether that was possible.

    ``name`` is an elementwise function, and ``second`` a tuple of its other operands. ``out`` is the array to which the
    caller writes the result. If it is not ``first``, the function returns False. If the result is False, ``first`` is
    unchanged.
    """
    if out is not first or not second:
        return False
    other = second[0]
    if other.__class__ is numpy.ndarray and other.ndim:
        return other is not first and name in INTO and into(f"{name}_into", first, other)
    if other.__class__ is numpy.ndarray and other.dtype is not first.dtype:
        return False
    return f"{name}_number" in INTO and into(f"{name}_number_into", first, numbers=second)


#: What there is in place.
INTO = {"add", "subtract", "multiply", "divide", "add_number", "multiply_number", "divide_number"}


def into(name: str, *arrays: Any, numbers: tuple[Any, ...] = ()) -> bool:
    """Apply the in-place Numba loop ``name``, which modifies the first of ``arrays``; return whether that was possible.

    ``numbers`` are passed to the loop in the dtype of the arrays. If the loop does not support the arrays, they are
    unchanged and the result is False.
    """
    first = arrays[0]
    dtype = first.dtype
    if (dtype is not F32 and dtype is not F64) or not available(first.size):
        return False
    for array in arrays:
        if array.__class__ is not numpy.ndarray or array.shape != first.shape or array.dtype is not dtype:
            return False
        if not array.flags.carray:
            return False
    lines = [array.reshape(-1) for array in arrays]
    (LOOPS.get(name) or _find(name))(*lines, *[dtype.type(number) for number in numbers])
    return True


BROADCAST = {"add", "subtract", "multiply", "divide"}


def broadcast(name: str, x: Any, y: Any) -> Any:
    """Return ``x`` combined with ``y``, which broadcasts to the shape of ``x``, by a Numba loop for arithmetic.

    ``name`` is the operation: "add", "subtract", "multiply" or "divide". The loop reads ``x`` as a matrix. ``y`` must
    have either one row, which is the same for all rows of ``x``, or one number for each row. The result is None if no
    Numba loop supports the arrays.
    """
    if name not in BROADCAST or x.dtype is not y.dtype or (x.dtype is not F32 and x.dtype is not F64):
        return None
    if not (x.__class__ is y.__class__ is ndarray and x.flags.carray and y.size < x.size and available(x.size)):
        return None
    given = _by_rows(y, x.shape)
    if given is None:
        return None
    other, width = given
    out = empty(x.shape, x.dtype)
    getattr(loops("broadcast"), name)(x.reshape(-1, width), other, out.reshape(-1, width))
    return out


def add_row(x: Any, y: Any) -> bool:
    """Add the 1-d array ``y`` to each row of the matrix ``x`` in place, by a Numba loop.

    Returns False, and leaves ``x`` unchanged, if the loop does not support the arrays.
    """
    if not (suits(x.size, x, y) and x.flags.carray and y.flags.carray and y.shape == x.shape[1:]):
        return False
    loops("broadcast").add_to_rows(x, y)
    return True


def _by_rows(y: Any, shape: tuple[int, ...]) -> tuple[Any, int] | None:
    """Return ``y`` in the form that the Numba loops for broadcasting read, and the length of a row.

    The loops read the other operand, which has the given ``shape``, as a matrix. If ``y`` is the same for all rows of
    the matrix, it is returned as a matrix with one row. If ``y`` has one number for each row, it is returned as a 1-d
    array. The result is None if ``y`` broadcasts in another way, or if rows are short.
    """
    if y.ndim > len(shape) or shape[-1] < LOOP_ROW:
        return None
    of = (1,) * (len(shape) - y.ndim) + y.shape
    if of[-1] == 1:
        if of[:-1] == shape[:-1] and y.flags.c_contiguous:
            return y.reshape(-1), shape[-1]
        if any(have not in (1, size) for have, size in zip(of, shape, strict=True)):
            return None
        return numpy.ascontiguousarray(numpy.broadcast_to(y.reshape(of)[..., 0], shape[:-1])).reshape(-1), shape[-1]
    same = next((k for k, size in enumerate(of) if size != 1), 0)
    return (numpy.ascontiguousarray(y).reshape(1, -1), y.size) if of[same:] == shape[same:] else None


def in_order(x: Any, out: Any = None) -> Any:
    """Return ``x`` in C order, copied by a Numba loop, or None if the loop does not support ``x``.

    The loop supports large arrays whose memory order differs from C order by the exchange of two adjacent groups of
    axes, as in the transpose of a matrix. The copy is written to ``out`` if ``out`` is not None. If ``out`` is None and
    ``x`` is in C order, ``x`` itself is returned.
    """
    if x.flags.carray and out is None:
        return x
    if x.dtype not in (F32, F64) or x.size < LARGE or not available(x.size):
        return None
    order = sorted(range(x.ndim), key=x.strides.__getitem__, reverse=True)
    lead = next((k for k, axis in enumerate(order) if k != axis), x.ndim)
    last = order[lead:]
    cut = last.index(lead) if last else 0
    if not cut or last[cut:] + last[:cut] != sorted(last) or not x.transpose(order).flags.carray:
        return None
    outer, many, inner = (math.prod(x.shape[k] for k in axes) for axes in (order[:lead], last[:cut], last[cut:]))
    if out is None:
        out = empty(x.shape, x.dtype)
    loops("broadcast").exchanged(x.transpose(order).reshape(outer, many, inner), out.reshape(outer, inner, many))
    return out


def copy_into(out: Any, x: Any) -> None:
    """Copy ``x``, broadcast to the shape of ``out``, to ``out``."""
    if out.size >= LARGE and x.dtype is out.dtype and x.__class__ is ndarray and out.flags.carray:
        if x.shape == out.shape and x.flags.carray:
            if looped("copy", x, out=out) is not None:
                return
        elif x.shape == out.shape and 0 not in x.strides:
            if in_order(x, out) is not None:
                return
        elif out.dtype in (F32, F64) and available(out.size):
            if 0 in x.strides:  # seen many times: once is enough
                x = x[tuple([slice(1) if step == 0 else slice(None) for step in x.strides])]
            if x.size == 1:
                fill_by_loop(out, x.item())
                return
            if x.size < out.size and (given := _by_rows(x, out.shape)) is not None:
                loops("broadcast").spread(given[0], out.reshape(-1, given[1]))
                return
    out[...] = x


def fill_by_loop(out: Any, value: Any) -> None:
    """Set all elements of the contiguous float32 or float64 array ``out`` to ``value`` by a Numba loop."""
    (LOOPS.get("fill") or _find("fill"))(out.reshape(-1), out.dtype.type(value))


multiply: Any = for_ufunc(numpy.multiply)
negative: Any = for_ufunc(numpy.negative)


class Large(numpy.ndarray[Any, Any]):
    """Class of large arrays during backward: its arithmetic operators run Numba loops on all threads.

    Derivatives of operations are written with operators. With this class an expression such as ``g / (2 * out)`` runs
    as Numba loops. Gradients and the tensors saved for backward are viewed as this class during backward.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        given = [each.view(numpy.ndarray) if each.__class__ is Large else each for each in inputs]
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(each.view(numpy.ndarray) if each.__class__ is Large else each for each in out)
        loop = CALCULATORS.get(ufunc)
        if method == "__call__" and loop is not None and not options:
            found = loop(*given)
        else:
            found = getattr(ufunc, method)(*given, **options)
        return raised(found) if out is None else out[0]


def raised(x: Any) -> Any:
    """Return ``x`` viewed as :class:`Large` if it is a large NumPy array; any other ``x`` is returned unchanged."""
    return x.view(Large) if x.__class__ is numpy.ndarray and x.size >= LARGE else x


def plain(x: Any) -> Any:
    """Return ``x`` as an ordinary NumPy array if ``x`` is a :class:`Large`; any other ``x`` is returned unchanged."""
    if x.__class__ is not Large:
        return x
    below: Any = x.base
    same = below.__class__ is numpy.ndarray and below.shape == x.shape and below.strides == x.strides
    return below if same and below.dtype is x.dtype else x.view(numpy.ndarray)


CALCULATORS = {ufunc: for_ufunc(ufunc) for ufunc in UFUNCS}

# -- Running loops ---------------------------------------------------------------------------------------------------


class Running:
    """State of the threads on which Numba runs parallel loops (Note [Threads of loops]).

    ``layer`` is the name of Numba's threading layer, or empty before the first loop. If ``simple`` is true, a loop may
    always run on all threads, so that no further checks are needed.
    """

    def __init__(self) -> None:
        self.layer, self.simple, self.forked = "", False, False
        self.busy = threading.Lock()
        self.told = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def together(self, loop: Callable[..., Any], size: int, args: tuple[Any, ...]) -> tuple[bool, Any]:
        """Run ``loop(*args)`` on all threads if possible.

        Returns (True, result of the loop), or (False, None) if the caller has to run the loop on its own thread.
        ``size`` is the number of elements to compute.
        """
        count = blas_threads.max_threads()
        if count == 1 or self.forked or (self.layer == "workqueue" and size < WAKE_WORKQUEUE):
            return False, None
        if getattr(self.told, "count", 0) != count:
            self._tell(count)
        if self.layer in ("omp", "tbb"):
            try:
                return True, loop(*args)
            except KeyboardInterrupt as error:
                note_return(error)
                raise
        if not self.busy.acquire(blocking=False):
            return False, None
        try:
            return True, loop(*args) if self.layer else self._first(loop, args)
        finally:
            self.busy.release()

    def _tell(self, count: int) -> None:
        import numba

        most = numba.config.NUMBA_NUM_THREADS
        numba.set_num_threads(min(count, most))
        self.told.count = count
        self.simple = count >= most and self.layer in ("omp", "tbb") and not self.forked

    def _first(self, loop: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return ``loop(*args)``, run as the first loop of the process; record the name of Numba's threading layer."""
        import numba

        found = loop(*args)
        self.layer = numba.threading_layer()
        self._tell(blas_threads.max_threads())
        blas_threads.on_change.append(self._count_changed)
        return found

    def _count_changed(self) -> None:
        self.simple = False

    def _after_fork(self) -> None:
        used = bool(self.layer) or self.busy.locked()  # otherwise the threads do not exist yet
        self.forked, self.simple, self.busy = self.forked or used, False, threading.Lock()


RUNNING = Running()

arithmetic.add, arithmetic.copy_into = CALCULATORS[numpy.add], copy_into
