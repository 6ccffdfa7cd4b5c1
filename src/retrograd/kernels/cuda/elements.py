"""Symbolic elements of CuPy arrays: a NumPy kernel called with them returns the expressions of a CUDA kernel.

Unlike the elements of a Numba loop they have the shape of the array, and may be reduced along axes by a sum, maximum or
minimum. Half-precision arrays are read as float32. A number that is not a small integer is an argument of the CUDA
kernel, so that one kernel serves all values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy

from ..reductions import axes_of
from ..scalar_code import ARITHMETIC, BOOL, COMPARISONS, ArrayModule, Element

F32, F64, INT = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64), numpy.dtype(numpy.int64)
#: Text of an element that is read at an index: ``operands`` are the index and the array.
PICKED = "picked"
#: Integers up to this absolute value are part of the text of a kernel.
LITERALS = 16
#: Reductions, by the names of their ufuncs.
REDUCTIONS = ("add", "maximum", "minimum")
#: Functions of numbers besides those of :data:`ARITHMETIC`, by the names of the ufuncs.
FUNCTIONS = {
    **{name: f"{name}({{0}})" for name in (
        "sin", "cos", "tan", "sinh", "cosh", "expm1", "exp2", "log2", "log10", "floor", "ceil", "trunc", "rint", "erfc",
    )},
    "arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})", "arcsinh": "asinh({0})",
    "arccosh": "acosh({0})", "arctanh": "atanh({0})", "arctan2": "atan2({0}, {1})", "hypot": "hypot({0}, {1})",
    "power": "pow({0}, {1})", "fabs": "abs({0})", "logaddexp": "logaddexp({0}, {1})", "expit": "sigmoid({0})",
    "xlogy": "xlogy({0}, {1})", "copysign": "copysign({0}, {1})",
}  # fmt: skip
#: Functions of numbers with bool results.
TESTS = {"isfinite": "{0} - {0} == F(0)", "isinf": "abs({0}) == INFINITE"}


class _Few(int):
    """Number of elements, for which variants of kernels for small arrays are tried: they accept only NumPy arrays."""

    def __le__(self, other: int) -> bool:
        return True

    def __ge__(self, other: int) -> bool:
        return False

    __lt__, __gt__ = __le__, __ge__


class DeviceElement(Element):
    """One element of a CuPy array of the given ``shape``, in the expression of a CUDA kernel.

    ``place`` is the index of the array among the kernel's arguments, ``value`` a number, ``positions`` the length of an
    array of the integers from 0, and ``over`` are the axes of a reduction whose ufunc is ``text``; each is None for
    other elements. If ``text`` is PICKED, ``axes`` has the axis of the array for each axis of the index, or None, and
    ``axis`` is the axis that the index selects from. ``current`` is the element of what was
    last written to the array, the element itself before.
    """

    functions: ClassVar[dict[str, str]] = {**ARITHMETIC, **FUNCTIONS}
    operands: Sequence[Any]
    place: Any = None
    value: float | None = None
    positions: int | None = None
    axes: tuple[int | None, ...] = ()
    axis = 0
    over: tuple[int, ...] | None = None
    dropped = False  # whether the axes are not those of the loop: reduced axes are missing, or the array is reshaped
    flags = SimpleNamespace(c_contiguous=True, carray=True, f_contiguous=False, writeable=True)

    def __init__(
        self, dtype: Any, shape: tuple[int, ...], text: str | None = None, operands: Sequence[Any] = ()
    ) -> None:
        self.dtype, self.text, self._shape = numpy.dtype(dtype), text, tuple(shape)
        self.operands = tuple([each.current for each in operands])
        self.current = self

    shape: Any = property(lambda self: self._shape)
    ndim: Any = property(lambda self: len(self._shape))
    size: Any = property(lambda self: _Few(numpy.prod(self._shape, dtype=numpy.int64)))
    itemsize: Any = property(lambda self: self.dtype.itemsize)
    real: Any = property(lambda self: self)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides for which NumPy kernels sum all axes at once."""
        return (self.itemsize,) * self.ndim

    @classmethod
    def combined(cls, dtype: Any, text: str, operands: Sequence[Any]) -> DeviceElement:
        operands = [each.current for each in operands]
        shape = numpy.broadcast_shapes(*[each.shape for each in operands])
        made = cls(dtype, shape, text, operands)
        made.dropped = any(each.dropped for each in operands)
        if made.dropped and any(each.shape != (shape if each.dropped else ()) for each in operands):
            raise TypeError("a reduced or reshaped array beside another one")
        return made

    @classmethod
    def number(cls, value: Any, dtype: Any) -> DeviceElement:
        if dtype == BOOL:
            return cls(dtype, (), "true" if value else "false")
        if dtype == INT:
            return cls(dtype, (), str(int(value)))
        if abs(value) == numpy.inf:
            return cls(dtype, (), "INFINITE" if value > 0 else "-INFINITE")
        if value != value or abs(value) > LITERALS or value != int(value) or str(value).startswith("-0"):
            made = cls(dtype, ())
            made.value = value
            return made
        return cls(dtype, (), f"F({int(value)})")

    @classmethod
    def call(cls, name: str, inputs: Sequence[object]) -> Any:
        given = cls.elements(inputs)
        integers = {each.dtype == INT for each in given if each.dtype != BOOL}
        if True in integers and (name not in COMPARISONS or False in integers):
            raise TypeError("arithmetic of integers")
        if name in TESTS:
            return cls.combined(BOOL, TESTS[name], given)
        return super().call(name, given)

    @classmethod
    def elements(cls, values: Sequence[object]) -> list[Any]:
        if any(isinstance(each, numpy.ndarray) and each.ndim for each in values):
            raise TypeError("an array that is not on the GPU")
        return super().elements(values)

    def overwrite(self, value: Any) -> Any:
        if value.shape != self.shape:
            value = value.seen_as(self.shape)
        if value.dtype != self.dtype:
            raise TypeError("a conversion")
        self.current = value.current
        return self

    def seen_as(self, shape: tuple[int, ...]) -> DeviceElement:
        """Return this element for an array that is broadcast to ``shape``."""
        if numpy.broadcast_shapes(self.shape, shape) != tuple(shape) or self.current.dropped:
            raise TypeError("not broadcastable")
        return DeviceElement(self.dtype, shape, "{0}", (self,))

    def reduce(self, name: str, axis: Any = 0, keepdims: bool = False) -> DeviceElement:
        """Return the reduction of the array over ``axis`` by the ufunc ``name``."""
        if name not in REDUCTIONS or self.dtype in (BOOL, INT) or self.current.dropped:
            raise TypeError("no reduction of a CUDA kernel")
        axes = axes_of(axis, self.ndim)
        kept = [1 if k in axes else n for k, n in enumerate(self.shape)]
        made = DeviceElement(self.dtype, tuple(kept), name, (self,))
        made.over = axes
        if not keepdims:
            made = DeviceElement(
                self.dtype, tuple(n for k, n in enumerate(self.shape) if k not in axes), "{0}", (made,)
            )
            made.dropped = True
        return made

    def __array_ufunc__(self, ufunc: numpy.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "reduce":
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        axis = options.pop("axis", inputs[1] if len(inputs) > 1 else 0)
        keepdims = options.pop("keepdims", False)
        if any(each is not None for each in options.values()):
            return NotImplemented
        return inputs[0].reduce(ufunc.__name__, axis, keepdims)

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: dict[str, Any]) -> Any:
        name = function.__name__
        if name in METHODS:
            return getattr(args[0], METHODS[name])(*args[1:], **kwargs)
        if name == "empty_like":
            return DeviceElement(kwargs.get("dtype") or self.dtype, self.shape, "F(0)")
        if name == "expand_dims":
            return args[0].current.with_axis(args[1] % (self.ndim + 1), self.ndim, True)
        if name == "broadcast_to":
            return args[0].seen_as(args[1])
        if name == "copyto":
            target, value = self.elements(args)
            where = kwargs.get("where")
            chosen: Any = value if where is None else numpy.where(where, value, target)
            target.overwrite(chosen)
            return None
        if name == "clip":
            out = kwargs.get("out")
            return numpy.minimum(numpy.maximum(args[0], args[1]), args[2], **({} if out is None else {"out": out}))
        return super().__array_function__(function, types, args, kwargs)

    def sum(self, axis: Any = None, keepdims: bool = False) -> DeviceElement:
        """Return the sum over ``axis``."""
        return self.reduce("add", axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> DeviceElement:
        """Return the maximum over ``axis``."""
        return self.reduce("maximum", axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> DeviceElement:
        """Return the minimum over ``axis``."""
        return self.reduce("minimum", axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the mean over ``axis``."""
        found: Any = self.sum(axis, keepdims)
        return found / (int(self.size) / max(1, int(found.size)))

    def reshape(self, *shape: Any) -> DeviceElement:
        """Return the array in another shape: an argument of the kernel, or its result."""
        size = numpy.empty(self.shape, bool).reshape(*shape).shape if 0 not in self.shape else shape
        if size == self.shape:
            return self
        place = self.current.place
        made = DeviceElement(self.dtype, size, "{0}" if place is None else None, (self,) if place is None else ())
        made.place, made.dropped = place, place is None
        return made

    def squeeze(self, axis: Any = None) -> DeviceElement:
        """Return the array without the axes ``axis``, which have size 1."""
        gone = [k for k in axes_of(axis, self.ndim) if self.shape[k] == 1]
        if self.current.dropped or self.current.over is not None:
            return self.reshape(tuple(n for k, n in enumerate(self.shape) if k not in gone))
        found = self.current
        for k in reversed(gone):
            found = found.with_axis(k, found.ndim, False)
        return found

    def with_axis(self, axis: int, ndim: int, added: bool) -> DeviceElement:
        """Return this element of an array with a new axis of size 1 at ``axis``, or without this axis.

        ``axis`` counts the axes of an array of ``ndim`` dimensions to which this one is broadcast.
        """
        at = axis - (ndim - self.ndim)
        if at < 0 or not self.ndim:
            return self
        if self.over is not None or self.dropped:
            raise TypeError("a reduced array in another shape")
        shape, axes = list(self.shape), list(self.axes)
        for each in (shape, axes) if self.text == PICKED else (shape,):
            each[at : at + (not added)] = [1 if each is shape else None] if added else []
        parts = self.operands[:1] if self.text == PICKED else self.operands
        moved = [each.with_axis(axis, ndim, added) for each in parts]
        made = DeviceElement(self.dtype, tuple(shape), self.text, [*moved, *self.operands[len(parts) :]])
        made.place, made.value, made.positions, made.axis = self.place, self.value, self.positions, self.axis
        made.axes = tuple(axes)
        return made

    def picked(self, index: tuple[Any, ...]) -> DeviceElement:
        """Return the elements at ``index``: one element in it is an array of integers, the others count positions."""
        (axis,) = [k for k, each in enumerate(index) if isinstance(each, DeviceElement)]
        places = index[axis].current
        several = self.ndim != 1 or len(index) != 1
        if self.current.place is None or places.dtype != INT or len(index) != self.ndim:
            raise TypeError("a part of an array")
        if several and places.ndim != self.ndim:
            raise TypeError("a part of an array")
        for k, each in enumerate(index):
            if k != axis:
                line = numpy.arange(places.shape[k]).reshape((-1,) + (1,) * (self.ndim - k - 1))
                if not numpy.array_equal(each, line):
                    raise TypeError("a part of an array")
        made = DeviceElement(self.dtype, places.shape, PICKED, (places, self))
        made.axis, made.axes = axis, tuple([None if k == axis or not several else k for k in range(places.ndim)])
        return made

    def __getitem__(self, index: Any) -> DeviceElement:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(each, DeviceElement) for each in parts):
            return self.picked(parts)
        if any(each.__class__ is not slice or each != slice(None) for each in parts if each is not Ellipsis):
            raise TypeError("a part of an array")
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        (value,) = [self.elements((self, value))[1]]
        parts = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(each, DeviceElement) for each in parts):
            self[index].overwrite(value)
            return
        argument = DeviceElement(self.dtype, self.shape)
        argument.place = 0  # the index is that of an array
        made = argument.picked(parts)
        axis, places = made.axis, made.operands[0]
        if places.shape != tuple(1 if k == axis else n for k, n in enumerate(self.shape)):
            raise TypeError("several or not all places are written")
        places = self.combined(INT, f"within({{0}}, {self.shape[axis]})", (places,))
        positions = DeviceElement(INT, (self.shape[axis], *(1,) * (self.ndim - axis - 1)))
        positions.positions = self.shape[axis]
        self.overwrite(numpy.where(places == positions, value, self))


#: Methods that compute functions of NumPy.
METHODS = {
    "sum": "sum", "mean": "mean", "max": "max", "amax": "max", "min": "min", "amin": "min", "reshape": "reshape",
    "squeeze": "squeeze",
}  # fmt: skip


class DeviceModule(ArrayModule):
    """NumPy, with functions that accept elements and return new arrays as elements."""

    ndarray = DeviceElement

    def empty(self, shape: Any, dtype: Any = F64) -> DeviceElement:
        """Return the element of an array without values."""
        return DeviceElement(dtype, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), "F(0)")

    zeros = empty

    def ones(self, shape: Any, dtype: Any = F64) -> DeviceElement:
        """Return the element of an array of ones."""
        found = self.empty(shape, dtype)
        found.text = "F(1)"
        return found

    def ascontiguousarray(self, value: Any, dtype: Any = None) -> Any:
        """Return ``value`` if it is an element, else an array."""
        return self.asarray(value, dtype)


MODULE = DeviceModule()


def traced(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the results of ``function(np, *args, **named)`` as elements, or None if there is no CUDA kernel for it.

    ``args`` holds elements in place of arrays.
    """
    try:
        found = function(MODULE, *args, **named)
    except Exception:  # the kernel is more than functions of the tables
        return None
    results = tuple([_as_element(each) for each in (found if isinstance(found, tuple) else (found,))])
    return tuple([each.current for each in results]) if all(map(_is_element, results)) else None


def _as_element(value: Any) -> Any:
    """Return a result of no dimension that does not depend on an array as an element."""
    constant = isinstance(value, (numpy.ndarray, numpy.generic)) and not value.ndim and value.dtype in (F32, F64)
    return DeviceElement.number(value.item(), value.dtype) if constant else value


def _is_element(value: object) -> bool:
    return isinstance(value, DeviceElement)
