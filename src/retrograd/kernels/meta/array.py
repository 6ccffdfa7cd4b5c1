"""The class ``MetaArray``: an array with a shape, a dtype and strides, whose elements are not stored.

The layout is that of a NumPy array that refers to a single element and is never read or written. NumPy computes the
layout of views from it; every function that would read elements is replaced by a rule (``functions.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided as numpy_as_strided

from ...compat.pickle_names import pickled_as
from ...core.devices import NO_DATA, NO_ITEM

#: Rules of NumPy's functions, filled by ``functions.py``: functions of the same parameters.
RULES: dict[Any, Callable[..., Any]] = {}


#: Attribute of the errors of functions that need elements; ``generic_path.run`` then names the operation.
NEEDS_VALUES = "_needs_values"


def needs_values(error: Exception) -> Exception:
    """Return ``error``, marked as the error of a function that needs elements."""
    setattr(error, NEEDS_VALUES, True)
    return error


def no_values(name: str) -> Exception:
    """Return PyTorch's error for the operation ``name``, the shape of whose result depends on elements."""
    if name in ("nonzero", "index"):
        text = (
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct "
            "data-independent implementation does not exist."
        )
    else:
        text = (
            f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
            "registered. The result depends on the elements, which meta tensors do not have."
        )
    return needs_values(NotImplementedError(text))


def _no_data() -> Exception:
    return needs_values(NotImplementedError(NO_DATA))


@cache
def _element(dtype: numpy.dtype[Any]) -> Any:
    return numpy.zeros((), dtype)


class MetaArray(NDArrayOperatorsMixin):
    """Array without elements. Its attributes and methods are those of a ``numpy.ndarray``.

    ``layout`` is a NumPy array with the shape, the dtype and the strides, whose elements must not be accessed.
    ``base`` is the array that a view belongs to.

    Kernels check values, in conditions such as ``(index < 0).any()`` and ``index.max() >= size``. On a meta array the
    checks find nothing: ``any`` is false, ``all`` is true, a maximum is below every bound and a minimum above.
    ``verdict`` is this truth value, or None; ``bound`` is "max" or "min" if the array is the result of that reduction.
    All other conditions raise RuntimeError.
    """

    __slots__ = ("__weakref__", "base", "bound", "layout", "verdict")
    layout_only = True  # devices.is_meta
    place: Any = None  # the device, if it is another one (python_dispatch)

    def __init__(self, layout: Any, base: MetaArray | None = None, verdict: bool | None = None) -> None:
        self.layout, self.base, self.verdict, self.bound = layout, base, verdict, ""

    shape = property(lambda self: self.layout.shape)
    dtype = property(lambda self: self.layout.dtype)
    strides = property(lambda self: self.layout.strides)
    ndim = property(lambda self: self.layout.ndim)
    size = property(lambda self: self.layout.size)
    itemsize = property(lambda self: self.layout.itemsize)
    nbytes = property(lambda self: self.layout.nbytes)
    flags = property(lambda self: self.layout.flags)

    @property
    def offset(self) -> int:
        """Offset of the first element from the start of the memory, in bytes."""
        owner = self if self.base is None else self.base
        return int(self.layout.ctypes.data - owner.layout.ctypes.data)

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, dtype={self.dtype})"

    # -- NumPy's protocols

    def __array__(self, *args: Any, **named: Any) -> Any:
        raise _no_data()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return RULES[method](ufunc, *inputs, **named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        rule = RULES.get(function)
        if rule is None:
            raise no_values(function.__name__)
        return rule(*args, **named)

    # -- values

    def item(self, *index: Any) -> Any:
        if index and isinstance(index[0], MetaArray) and index[0].bound:  # the element at the position of the maximum
            found = new_array((), self.dtype)
            found.bound = index[0].bound
            return found
        raise needs_values(RuntimeError(NO_ITEM))

    __float__ = __int__ = __index__ = __complex__ = item

    def __bool__(self) -> bool:
        if self.verdict is None:
            return bool(self.item())
        return self.verdict

    def tolist(self) -> Any:
        raise _no_data()

    tobytes = tolist

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[MetaArray]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # -- views

    def view_as(self, layout: Any) -> MetaArray:
        """Return the view of this array that has ``layout``, a view of its layout."""
        return MetaArray(layout, self if self.base is None else self.base)

    def view(self, dtype: Any = None, *_: Any) -> MetaArray:
        """Return a view of another dtype."""
        return self.view_as(self.layout.view() if dtype is None else self.layout.view(dtype))

    def transpose(self, *axes: Any) -> MetaArray:
        """Return a view with permuted axes."""
        return self.view_as(self.layout.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> MetaArray:
        """Return a view with two axes exchanged."""
        return self.view_as(self.layout.swapaxes(a, b))

    def squeeze(self, axis: Any = None) -> MetaArray:
        """Return a view without axes of size 1."""
        return self.view_as(self.layout.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> MetaArray:
        """Return a view of the diagonals."""
        return self.view_as(self.layout.diagonal(offset, axis1, axis2))

    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))  # noqa: N815  (NumPy's name)

    @property
    def real(self) -> MetaArray:
        """Real part, a view."""
        return self.view_as(self.layout.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> MetaArray:
        """Imaginary part, a view."""
        return self.view_as(self.layout.imag) if self.dtype.kind == "c" else new_array(self.shape, self.dtype)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> MetaArray:
        """Return a view of another shape if the layout allows it, else a new array."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, numpy.integer)) else shape
        wanted = inferred_shape([int(each) for each in sizes], self.size)
        if order == "F":
            return self.transpose().reshape(wanted[::-1]).transpose()
        strides = strides_of_view(self.shape, self.strides, wanted, self.itemsize)
        return (
            new_array(wanted, self.dtype) if strides is None else self.view_as(as_strided(self.layout, wanted, strides))
        )

    def ravel(self, order: str = "C") -> MetaArray:
        """Return the elements in one dimension, as a view if possible."""
        if order == "K":
            axes = sorted(range(self.ndim), key=lambda axis: -abs(self.strides[axis]))
            return self.transpose(axes).reshape(self.size)
        return self.reshape(self.size, order=order)

    def flatten(self, order: str = "C") -> MetaArray:
        """Return a new array of the elements in one dimension."""
        return new_array((self.size,), self.dtype)

    def __getitem__(self, index: Any) -> MetaArray:
        return indexed(self, index)

    # -- new arrays

    def copy(self, order: str = "C") -> MetaArray:
        """Return a new array of the same shape."""
        return self.astype(self.dtype, order)

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> Any:
        """Return a new array of another dtype."""
        target = numpy.dtype(dtype)
        if not copy and target == self.dtype and (order != "C" or self.flags.c_contiguous):
            return self
        if order == "C" or (order == "A" and not (self.flags.f_contiguous and not self.flags.c_contiguous)):
            return new_array(self.shape, target)
        if order in ("F", "A"):
            return new_array(self.shape[::-1], target).transpose().as_owner()
        small = prototype(self)
        return new_array_like(numpy.empty_like(small, target), self.shape)

    def as_owner(self) -> MetaArray:
        """Return this array as the owner of its memory, in place of the one that it was made from."""
        return MetaArray(self.layout)

    def fill(self, value: Any) -> None:
        """Do nothing: there are no elements."""

    def sort(self, *args: Any, **named: Any) -> None:
        """Do nothing: there are no elements."""

    def partition(self, *args: Any, **named: Any) -> None:
        """Do nothing: there are no elements."""

    def setflags(self, *args: Any, **named: Any) -> None:
        """Do nothing: whether the array may be written does not matter."""

    def __setitem__(self, index: Any, value: Any) -> None:
        shape = getattr(value, "shape", None)
        if shape is None or not len(shape):
            return
        try:
            place = indexed(self, index).shape
        except NotImplementedError:  # a mask
            return
        extra = len(shape) - len(place)
        if (
            any(each != 1 for each in shape[: max(extra, 0)])
            or numpy.broadcast_shapes(shape[max(extra, 0) :], place) != place
        ):
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {place}")

    def __reduce__(self) -> Any:
        return rebuild, (self.shape, self.dtype, self.strides)

    def __copy__(self) -> MetaArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> MetaArray:
        return self.copy("K")


def _in_place(name: str) -> Callable[[MetaArray, Any], MetaArray]:
    """Return the method ``name`` of an operator that writes its result into the array."""
    ufunc = getattr(numpy, name)

    def method(self: MetaArray, other: Any) -> MetaArray:
        RULES["__call__"](ufunc, self, other, out=(self,))
        return self

    return method


for _operator, _ufunc in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul",
}.items():  # fmt: skip
    setattr(MetaArray, f"__i{_operator}__", _in_place(_ufunc))


def _by_rule(name: str) -> Callable[..., Any]:
    """Return the method ``name``, which NumPy's function of this name computes."""
    function = getattr(numpy, name)
    return lambda self, *args, **named: RULES[function](self, *args, **named)


for _method in (
    "sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "argsort",
    "take", "repeat", "nonzero", "clip", "round", "dot", "searchsorted", "trace", "conjugate", "argpartition",
):  # fmt: skip
    setattr(MetaArray, _method, _by_rule(_method))
_conjugate = MetaArray.conjugate  # type: ignore[attr-defined]
MetaArray.conj = MetaArray.conjugate = lambda self: _conjugate(self) if self.dtype.kind == "c" else self  # type: ignore[attr-defined]


@pickled_as("meta_array")
def rebuild(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> MetaArray:
    """Return an array of the given layout; pickles call this function."""
    return MetaArray(_layout(tuple(shape), numpy.dtype(dtype), tuple(strides)))


def new_array(shape: Sequence[int], dtype: Any) -> MetaArray:
    """Return a new array of ``shape`` in C order."""
    dtype = numpy.dtype(dtype)
    return MetaArray(_layout(tuple(shape), dtype, _c_strides(shape, dtype.itemsize)))


def _c_strides(shape: Sequence[int], step: int) -> tuple[int, ...]:
    strides = []
    empty = 0 in shape  # NumPy's strides of an empty array
    for size in shape[::-1]:
        strides.append(0 if empty else step)
        step *= size
    return tuple(strides[::-1])


def as_strided(x: Any, shape: Any, strides: Any, writeable: bool = True) -> Any:
    """Return a view of a NumPy array, also of a dtype that NumPy's ``as_strided`` does not know, such as complex32."""
    dtype = x.dtype
    if dtype.num < 256 and dtype.names is None:  # those of ml_dtypes have larger numbers
        return numpy_as_strided(x, shape, strides, writeable=writeable)
    return numpy_as_strided(x.view(f"V{dtype.itemsize}"), shape, strides, writeable=writeable).view(dtype)


def _layout(shape: tuple[int, ...], dtype: numpy.dtype[Any], strides: tuple[int, ...]) -> Any:
    """Return a NumPy array of this layout that refers to one element."""
    if math.prod(shape) * dtype.itemsize >= 1 << 63:
        raise RuntimeError("Storage size calculation overflowed with sizes=" + str(list(shape)))
    return as_strided(_element(dtype), shape, strides)


def new_array_like(small: Any, shape: Sequence[int]) -> MetaArray:
    """Return a new array of ``shape``, with the dtype and the memory order of ``small``.

    ``small`` is the result of a function for prototypes.
    """
    shape, small = tuple(shape), numpy.asarray(small)
    dtype = small.dtype
    if 0 in shape or len(shape) < 2 or small.flags.c_contiguous:
        return new_array(shape, dtype)
    order = sorted(range(len(shape)), key=lambda axis: -abs(small.strides[axis]))
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in order[::-1]:
        strides[axis] = step
        step *= shape[axis]
    return MetaArray(_layout(shape, dtype, tuple(strides)))


#: The number of elements of a prototype in each dimension.
CLIPPED = 2


@cache
def _prototype(shape: tuple[int, ...], order: tuple[int, ...], repeated: tuple[bool, ...], dtype: Any) -> Any:
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in order[::-1]:
        if not repeated[axis]:
            strides[axis] = step
            step *= CLIPPED  # also of a single element: no two strides are equal, so that the order is not lost
    count = step // dtype.itemsize
    memory = numpy.zeros(count, dtype) if dtype.kind in "iu" else numpy.ones(count, dtype)
    return as_strided(memory, shape, tuple(strides), writeable=False)


def prototype(x: Any) -> Any:
    """Return a NumPy array in place of ``x`` that has at most two elements in each dimension.

    It has the dtype and the memory order of ``x``. Objects that are no arrays are returned unchanged.
    """
    if isinstance(x, MetaArray):
        x = x.layout
    elif not isinstance(x, numpy.ndarray) or not x.ndim:
        return x
    shape = tuple([each if each < CLIPPED else CLIPPED for each in x.shape])
    strides = x.strides
    order = tuple(sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])))
    repeated = tuple([not step and size > 1 for step, size in zip(strides, x.shape, strict=True)])
    return _prototype(shape, order, repeated, x.dtype)


def inferred_shape(shape: list[int], size: int) -> tuple[int, ...]:
    """Return ``shape`` with the size in place of -1; raise ValueError if it does not fit ``size`` elements."""
    if -1 in shape:
        known = math.prod(each for each in shape if each != -1)
        if shape.count(-1) == 1 and known and not size % known:
            shape[shape.index(-1)] = size // known
    if math.prod(shape) != size or -1 in shape:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(shape)}")
    return tuple(shape)


def strides_of_view(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int], step: int
) -> tuple[int, ...] | None:
    """Return the strides with which a view of ``shape`` and ``strides`` has the shape ``wanted``, or None if none exist.

    ``step`` is the size of an element.
    """
    if 0 in shape:
        return _c_strides(wanted, step)
    # Runs of axes that are contiguous among themselves, innermost first: number of elements and innermost stride.
    runs: list[list[int]] = []
    for size, stride in zip(shape[::-1], strides[::-1], strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        else:
            runs.append([size, stride])
    found: list[int] = []
    run = iter(runs)
    left, stride = next(run, (1, step))
    for size in wanted[::-1]:
        if size == 1:
            found.append(stride)
            continue
        if left == 1:
            left, stride = next(run, (1, step))
        if left % size:
            return None
        found.append(stride)
        left //= size
        stride *= size
    return tuple(found[::-1])


def indexed(x: MetaArray, index: Any) -> MetaArray:
    """Return ``x[index]``: a view, or a new array if ``index`` has arrays or lists."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(isinstance(each, (MetaArray, numpy.ndarray, list)) for each in parts):
        return x.view_as(x.layout[(*parts, ...)] if Ellipsis not in parts else x.layout[tuple(parts)])
    arrays: list[Any] = []
    for each in parts:
        if isinstance(each, list):
            each = numpy.asarray(each)
        if isinstance(each, (MetaArray, numpy.ndarray)) and each.dtype.kind == "b":
            if isinstance(each, MetaArray):
                raise no_values("nonzero")
            arrays += each.nonzero()
        else:
            arrays.append(each)
    given = sum(each is not None and each is not Ellipsis for each in arrays)
    if given > x.ndim:
        raise IndexError("too many indices for array")
    at = next((place for place, each in enumerate(arrays) if each is Ellipsis), len(arrays))
    arrays[at : at + 1] = [slice(None)] * (x.ndim - given)
    advanced = [each is not None and not isinstance(each, slice) for each in arrays]
    view = x.layout[tuple(slice(None) if picks else each for picks, each in zip(advanced, arrays, strict=True))]
    picked = [numpy.asarray(each) if not hasattr(each, "shape") else each for each in arrays]
    run = numpy.broadcast_shapes(*[each.shape for each, picks in zip(picked, advanced, strict=True) if picks])
    small = tuple(
        numpy.zeros([min(size, CLIPPED) for size in each.shape], int) if picks else slice(None)
        for each, picks in zip(picked, advanced, strict=True)
    )
    model = prototype(view)
    if run and 0 not in run and any(not view.shape[axis] for axis, picks in enumerate(advanced) if picks):
        raise IndexError("index is out of bounds for an axis with size 0")
    rest = [size for size, picks in zip(view.shape, advanced, strict=True) if not picks]
    first, last = advanced.index(True), len(advanced) - advanced[::-1].index(True)
    start = first if all(advanced[first:last]) else 0
    shape = (*rest[:start], *run, *rest[start:])
    return new_array(shape, x.dtype) if 0 in shape else new_array_like(model[small], shape)
