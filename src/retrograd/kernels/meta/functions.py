"""Rules of NumPy's functions for meta arrays: the shape of the result, from the shapes of the arguments.

The dtype and the memory order of a result are those that NumPy's own function gives for prototypes, arrays with at most
two elements in each dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .array import RULES, MetaArray, new_array, new_array_like, no_values, prototype

Rule = Callable[..., Any]
_each: Any


def rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of ``functions``."""

    def register(made: Rule) -> Rule:
        for each in functions:
            RULES[each] = made
        return made

    return register


def shape_of(x: Any) -> Any:
    """Return the shape of an array, a number or a list."""
    return x.shape if hasattr(x, "shape") else numpy.shape(x)


def as_meta(x: Any, dtype: Any = None) -> MetaArray:
    """Return ``x``, an array, a number or a list, as a meta array."""
    if not isinstance(x, MetaArray):
        if isinstance(x, (list, tuple)) and any(isinstance(each, MetaArray) for each in x):
            return stack(x)
        plain = numpy.asarray(x)
        x = new_array_like(prototype(plain) if plain.ndim else plain, plain.shape)
    return x if dtype is None else x.astype(dtype, copy=False)


def as_results(result: Any) -> Any:
    """Return the result of a kernel, an array or a tuple of arrays, as meta arrays."""
    if isinstance(result, tuple):
        return tuple(map(as_results, result))
    return result if result is None else as_meta(result)


def _of_prototypes(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return the result of NumPy's ``function`` for the prototypes of the arguments."""
    with numpy.errstate(all="ignore"):
        return function(*map(prototype, args), **{key: prototype(each) for key, each in named.items()})


# --- Elementwise functions ------------------------------------------------------------------------------------------


def check_devices(args: Sequence[Any]) -> None:
    """Raise RuntimeError if an argument is a NumPy array with dimensions."""
    first: Any = None
    for each in args:
        if isinstance(each, (MetaArray, numpy.ndarray)) and each.ndim:
            if first is None:
                first = each
            elif isinstance(each, MetaArray) is not isinstance(first, MetaArray):
                raise _other_device(isinstance(first, MetaArray))


def _other_device(expects_meta: bool) -> Exception:
    places = ("cpu", "meta") if expects_meta else ("meta", "cpu")
    error: Any = RuntimeError(f"Tensor on device {places[0]} is not on the expected device {places[1]}!")
    error._on_two_devices = True  # call_errors.repeated: a 0-d tensor on the CPU may be moved
    return error


def _result_or_out(result: MetaArray, out: Any) -> Any:
    """Return ``result``, or the array ``out`` that it is written to."""
    if out is None:
        return result
    out = out[0] if isinstance(out, tuple) else out
    if not isinstance(out, MetaArray):
        raise _other_device(False)
    if out.shape != numpy.broadcast_shapes(out.shape, result.shape):
        raise ValueError(
            f"non-broadcastable output operand with shape {out.shape} doesn't match the broadcast shape {result.shape}"
        )
    return out


@rule("__call__")
def call(ufunc: Any, *inputs: Any, out: Any = None, **named: Any) -> Any:
    """Return the result of a ufunc."""
    named.pop("where", None)
    check_devices(inputs)
    if isinstance(inputs[0], numpy.ndarray):  # a 0-d tensor on the CPU, which the generic path moves
        raise _other_device(False)
    if ufunc.signature is not None:
        return _result_or_out(generalized(ufunc, inputs, **named), out)
    shape = numpy.broadcast_shapes(*[each.shape for each in inputs if hasattr(each, "shape")])
    small = _of_prototypes(ufunc, *inputs, **named)
    if isinstance(small, tuple):
        return tuple(new_array_like(each, shape) for each in small)
    if not shape and (bound := next((each.bound for each in inputs if isinstance(each, MetaArray) and each.bound), "")):
        found = new_array((), small.dtype)
        found.verdict = CHECKS.get((ufunc.__name__, bound if isinstance(inputs[0], MetaArray) else ""))
        return found
    if out is not None:
        target = out[0]
        if not isinstance(target, MetaArray):
            raise _other_device(False)
        if target.dtype != small.dtype and not numpy.can_cast(small.dtype, target.dtype, "same_kind"):
            raise TypeError(f"Cannot cast ufunc '{ufunc.__name__}' output from {small.dtype!r} to {target.dtype!r}")
        return _result_or_out(new_array(shape, small.dtype), target)
    return new_array_like(small, shape)


#: The truth value of a comparison of a maximum or minimum with a bound; see the class ``MetaArray``.
CHECKS = {
    (name, bound): value
    for bound, true, false in (("max", "less", "greater"), ("min", "greater", "less"))
    for name, value in (
        (true, True), (f"{true}_equal", True), (false, False), (f"{false}_equal", False),
    )
} | {
    (name, bound): value
    for bound in ("max", "min", "sum")
    for name, value in (
        ("isnan", False), ("isinf", False), ("isfinite", True),
    )
}  # fmt: skip


def generalized(ufunc: Any, inputs: Sequence[Any], **named: Any) -> Any:
    """Return the result of a generalised ufunc such as ``matmul``, whose signature names the core dimensions."""
    if "axes" in named or "axis" in named:
        raise no_values(f"{ufunc.__name__} with axes")
    left, right = ufunc.signature.split("->")
    sizes: dict[str, int] = {}
    batches = []
    for text, each in zip(left[1:-1].split("),("), inputs, strict=True):
        shape = shape_of(each)
        names = [name for name in text.split(",") if name]
        while len(names) > len(shape) and names and any(name.endswith("?") for name in names):
            names.remove(next(name for name in names if name.endswith("?")))
        names = [name.rstrip("?") for name in names]
        core = shape[len(shape) - len(names) :]
        if len(core) < len(names):
            raise ValueError(f"{ufunc.__name__}: Input operand does not have enough dimensions")
        for name, size in zip(names, core, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(
                    f"{ufunc.__name__}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                    f"{ufunc.signature} (size {size} is different from {sizes[name]})"
                )
        batches.append(shape[: len(shape) - len(names)])
    batch = numpy.broadcast_shapes(*batches)
    small = _of_prototypes(ufunc, *inputs, **named)
    results = []
    for text in right[1:-1].split("),("):
        core = tuple(sizes[name.rstrip("?")] for name in text.split(",") if name and name.rstrip("?") in sizes)
        results.append((*batch, *core))
    if isinstance(small, tuple):
        return tuple(new_array_like(each, shape) for each, shape in zip(small, results, strict=True))
    return new_array_like(small, results[0])


def _reduced_shape(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else normalize_axis_tuple(axis, len(shape))
    if keepdims:
        return tuple([1 if each in axes else size for each, size in enumerate(shape)])
    return tuple([size for each, size in enumerate(shape) if each not in axes])


@rule("reduce")
def reduce(
    ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **named: Any
) -> Any:
    """Return the result of ``ufunc.reduce``."""
    named.pop("where", None)
    x = as_meta(x)
    small = ufunc.reduce(prototype(x), axis=axis, dtype=dtype, keepdims=keepdims, **named)
    found = new_array_like(small, _reduced_shape(x.shape, axis, keepdims))
    found.verdict = {"logical_or": False, "logical_and": True}.get(ufunc.__name__)
    found.bound = {"maximum": "max", "minimum": "min", "add": "sum"}.get(ufunc.__name__, "")
    return _result_or_out(found, out)


@rule("accumulate")
def accumulate(ufunc: Any, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """Return the result of ``ufunc.accumulate``."""
    return _result_or_out(new_array_like(ufunc.accumulate(prototype(x), axis, dtype), x.shape), out)


@rule("reduceat")
def reduceat(ufunc: Any, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """Return the result of ``ufunc.reduceat``."""
    shape = list(x.shape)
    shape[axis] = len(indices)
    return _result_or_out(new_array_like(ufunc.reduceat(prototype(x), [0], axis, dtype), shape), out)


@rule("outer")
def outer(ufunc: Any, a: Any, b: Any, **named: Any) -> Any:
    """Return the result of ``ufunc.outer``."""
    return new_array_like(_of_prototypes(ufunc.outer, a, b, **named), (*shape_of(a), *shape_of(b)))


@rule("at")
def at(ufunc: Any, x: Any, indices: Any, *values: Any) -> None:
    """Do nothing: there are no elements to change."""


@rule(numpy.where)
def where(condition: Any, *branches: Any) -> Any:
    """Return the result of ``numpy.where`` with two branches; with none, the result depends on values."""
    if not branches:
        raise no_values("nonzero")
    check_devices([condition, *branches])
    shape = numpy.broadcast_shapes(*map(shape_of, (condition, *branches)))
    return new_array_like(_of_prototypes(numpy.where, condition, *branches), shape)


@rule(numpy.clip)
def clip(x: Any, low: Any = None, high: Any = None, out: Any = None, **named: Any) -> Any:
    """Return the result of ``numpy.clip``."""
    shape = numpy.broadcast_shapes(*map(shape_of, (x, *[each for each in (low, high) if each is not None])))
    return _result_or_out(new_array_like(_of_prototypes(numpy.clip, x, low, high, **named), shape), out)


def _elementwise(function: Any) -> None:
    def made(x: Any, *args: Any, out: Any = None, **named: Any) -> Any:
        shape = numpy.broadcast_shapes(*[each.shape for each in (x, *args) if hasattr(each, "shape")])
        return _result_or_out(new_array_like(_of_prototypes(function, x, *args, **named), shape), out)

    RULES[function] = made


for _each in (
    numpy.nan_to_num, numpy.isposinf, numpy.isneginf, numpy.angle, numpy.round, numpy.around, numpy.fix, numpy.i0,
    numpy.sinc, numpy.isclose, numpy.isreal, numpy.iscomplex, numpy.unwrap,
):  # fmt: skip
    _elementwise(_each)
RULES[numpy.conjugate] = lambda x, **named: call(numpy.conjugate, x, **named)


@rule(numpy.real)
def real(x: Any) -> Any:
    """Return the real part."""
    return x.real


@rule(numpy.imag)
def imag(x: Any) -> Any:
    """Return the imaginary part."""
    return x.imag


# --- Reductions, scans and orders -----------------------------------------------------------------------------------


def _reduction(function: Any, verdict: bool | None = None, bound: str = "") -> None:
    def made(x: Any, axis: Any = None, *args: Any, out: Any = None, keepdims: bool = False, **named: Any) -> Any:
        x = as_meta(x)
        keep = {"keepdims": True} if keepdims else {}
        named.pop("where", None)
        small = _of_prototypes(function, x, axis, *args, **keep, **named)
        found = new_array_like(small, _reduced_shape(x.shape, axis, keepdims))
        found.verdict, found.bound = verdict, bound
        return _result_or_out(found, out)

    RULES[function] = made


for _each in (
    numpy.sum, numpy.prod, numpy.max, numpy.min, numpy.amax, numpy.amin, numpy.mean, numpy.std, numpy.var,
    numpy.argmax, numpy.argmin, numpy.count_nonzero, numpy.nansum, numpy.nanmean, numpy.median, numpy.ptp,
    numpy.nanmax, numpy.nanmin, numpy.nanmedian,
):  # fmt: skip
    _reduction(_each)
_reduction(numpy.any, False)
_reduction(numpy.all, True)
for _each in (numpy.max, numpy.amax, numpy.argmax, numpy.nanmax):
    _reduction(_each, bound="max")
for _each in (numpy.min, numpy.amin, numpy.argmin, numpy.nanmin):
    _reduction(_each, bound="min")


def _scan(function: Any) -> None:
    def made(x: Any, axis: Any = None, *args: Any, out: Any = None, **named: Any) -> Any:
        if axis is None:
            x, axis = x.reshape(-1), 0
        return _result_or_out(new_array_like(_of_prototypes(function, x, axis, *args, **named), x.shape), out)

    RULES[function] = made


for _each in (numpy.cumsum, numpy.cumprod):
    _scan(_each)


def _order(function: Any) -> None:
    def made(x: Any, axis: Any = -1, *args: Any, **named: Any) -> Any:
        if axis is None:
            x, axis = x.reshape(-1), -1
        return new_array_like(_of_prototypes(function, x, axis, **named), x.shape)

    RULES[function] = made


for _each in (numpy.sort, numpy.argsort):
    _order(_each)


def _partition(function: Any, ordered: Any) -> None:
    RULES[function] = lambda x, kth, axis=-1, *args, **named: RULES[ordered](x, axis)


_partition(numpy.partition, numpy.sort)
_partition(numpy.argpartition, numpy.argsort)


@rule(numpy.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return the order of the last of the keys."""
    return new_array(shape_of(keys[-1]), numpy.int64)


@rule(numpy.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return the positions of ``v``."""
    return new_array(shape_of(v), numpy.int64)


@rule(numpy.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the positions of ``x``."""
    return new_array(shape_of(x), numpy.int64)


@rule(numpy.isin)
def isin(element: Any, test_elements: Any, **named: Any) -> Any:
    """Return a mask of ``element``."""
    return new_array(shape_of(element), bool)


@rule(numpy.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return differences of neighbours."""
    shape, axis = list(a.shape), normalize_axis_index(axis, a.ndim)
    for each in (prepend, append):
        if each is not None:
            shape[axis] += shape_of(each)[axis] if len(shape_of(each)) else 1
    shape[axis] = max(0, shape[axis] - n)
    return new_array(shape, bool if a.dtype.kind == "b" else a.dtype)


def _refusing(name: str) -> Rule:
    def made(*args: Any, **named: Any) -> Any:
        raise no_values(name)

    return made


for _each, _name in {
    numpy.nonzero: "nonzero", numpy.flatnonzero: "nonzero", numpy.argwhere: "nonzero", numpy.unique: "_unique2",
    numpy.bincount: "bincount", numpy.histogram: "histogram", numpy.histogramdd: "histogramdd", numpy.compress: "masked_select",
    numpy.extract: "masked_select", numpy.array_equal: "equal", numpy.allclose: "allclose",
}.items():  # fmt: skip
    RULES[_each] = _refusing(_name)


# --- Shapes ---------------------------------------------------------------------------------------------------------


def _view_rule(function: Any) -> None:
    """Make ``function``, which returns a view, work on the layout."""
    RULES[function] = lambda x, *args, **named: x.view_as(function(x.layout, *args, **named))


for _each in (
    numpy.broadcast_to, numpy.moveaxis, numpy.swapaxes, numpy.expand_dims, numpy.squeeze, numpy.transpose, numpy.flip,
    numpy.fliplr, numpy.flipud, numpy.rot90, numpy.diagonal, numpy.rollaxis, numpy.matrix_transpose, numpy.permute_dims,
):  # fmt: skip
    _view_rule(_each)
for _each in (numpy.atleast_1d, numpy.atleast_2d, numpy.atleast_3d):
    RULES[_each] = lambda *xs, _f=_each: (
        xs[0].view_as(_f(xs[0].layout)) if len(xs) == 1 else [each.view_as(_f(each.layout)) for each in xs]
    )
RULES[numpy.ravel] = lambda x, order="C": x.ravel(order)
RULES[numpy.reshape] = lambda x, shape, order="C", **named: x.reshape(shape, order=order)
RULES[numpy.copy] = lambda x, order="K", **named: x.copy(order)
RULES[numpy.shape] = lambda x: x.shape
RULES[numpy.ndim] = lambda x: x.ndim
RULES[numpy.size] = lambda x, axis=None: x.size if axis is None else x.shape[axis]
RULES[numpy.iscomplexobj] = lambda x: x.dtype.kind == "c"
RULES[numpy.isrealobj] = lambda x: x.dtype.kind != "c"
RULES[numpy.may_share_memory] = RULES[numpy.shares_memory] = lambda a, b, **named: (
    isinstance(a, MetaArray) and isinstance(b, MetaArray) and (a.base or a) is (b.base or b)
)
RULES[numpy.result_type] = lambda *xs: numpy.result_type(*map(prototype, xs))
RULES[numpy.can_cast] = lambda x, to, *rest: numpy.can_cast(x.dtype, to, *rest)
RULES[numpy.copyto] = lambda out, x, **named: out.__setitem__(..., x)
RULES[numpy.put_along_axis] = RULES[numpy.put] = RULES[numpy.place] = RULES[numpy.putmask] = lambda *args, **named: None


@rule(numpy.broadcast_arrays)
def broadcast_arrays(*xs: Any, **named: Any) -> Any:
    """Return views of all arrays in their broadcast shape."""
    shape = numpy.broadcast_shapes(*map(shape_of, xs))
    return tuple(numpy.broadcast_to(as_meta(each), shape) for each in xs)


@rule(numpy.roll)
def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Return a copy."""
    return new_array_like(numpy.empty_like(prototype(x)), x.shape)


@rule(numpy.tril, numpy.triu)
def tril(x: Any, k: int = 0) -> Any:
    """Return a copy."""
    return new_array_like(numpy.tril(prototype(x)), x.shape)


@rule(numpy.concatenate)
def concatenate(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **named: Any) -> Any:
    """Return the arrays joined along an axis."""
    arrays = list(arrays)
    check_devices(arrays)
    if axis is None:
        arrays, axis = [as_meta(each).reshape(-1) for each in arrays], 0
    shapes = [list(shape_of(each)) for each in arrays]
    axis = normalize_axis_index(axis, len(shapes[0]))
    whole = list(shapes[0])
    for each in shapes[1:]:
        if len(each) != len(whole) or any(
            a != b for at, (a, b) in enumerate(zip(each, whole, strict=True)) if at != axis
        ):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    whole[axis] = sum(each[axis] for each in shapes)
    if out is not None:
        return out
    return new_array_like(numpy.concatenate([prototype(each) for each in arrays], axis, dtype=dtype), whole)


@rule(numpy.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, **named: Any) -> Any:
    """Return the arrays stacked along a new axis."""
    arrays = [as_meta(each) for each in arrays]
    if any(each.shape != arrays[0].shape for each in arrays):
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis_index(axis, arrays[0].ndim + 1)
    shape = (*arrays[0].shape[:axis], len(arrays), *arrays[0].shape[axis:])
    return _result_or_out(new_array_like(numpy.stack([prototype(each) for each in arrays], axis), shape), out)


RULES[numpy.append] = lambda a, b, axis=None: concatenate([as_meta(a), as_meta(b)], axis)


@rule(numpy.split, numpy.array_split)
def split(x: Any, sections: Any, axis: int = 0) -> Any:
    """Return views of the parts."""
    return [x.view_as(each) for each in numpy.array_split(x.layout, sections, axis)]


@rule(numpy.repeat)
def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Return each element several times."""
    if axis is None:
        x, axis = as_meta(x).reshape(-1), 0
    if isinstance(repeats, MetaArray):
        raise no_values("repeat_interleave")
    shape, times = list(x.shape), numpy.asarray(repeats)
    shape[axis] = int(times.sum()) if times.ndim and times.size > 1 else shape[axis] * int(times.reshape(()))
    return new_array(shape, x.dtype)


@rule(numpy.tile)
def tile(x: Any, reps: Any) -> Any:
    """Return ``x`` repeated along each axis."""
    times = tuple(reps) if numpy.ndim(reps) else (reps,)
    count = max(len(times), x.ndim)
    shape, times = (1,) * (count - x.ndim) + x.shape, (1,) * (count - len(times)) + times
    return new_array([a * b for a, b in zip(shape, times, strict=True)], x.dtype)


@rule(numpy.pad)
def pad(x: Any, width: Any, mode: str = "constant", **named: Any) -> Any:
    """Return ``x`` with elements added at the ends of its axes."""
    pairs = numpy.broadcast_to(numpy.asarray(width), (x.ndim, 2)).tolist()
    return new_array([size + a + b for size, (a, b) in zip(x.shape, pairs, strict=True)], x.dtype)


@rule(numpy.meshgrid)
def meshgrid(*xs: Any, indexing: str = "xy", **named: Any) -> Any:
    """Return grids of coordinates."""
    sizes = [as_meta(each).size for each in xs]
    if indexing == "xy" and len(sizes) > 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return tuple(new_array(sizes, each.dtype) for each in xs)


# --- Selection ------------------------------------------------------------------------------------------------------


@rule(numpy.take)
def take(x: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Return the elements at ``indices`` along an axis."""
    x = as_meta(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis, chosen = normalize_axis_index(axis, x.ndim), shape_of(indices)
    if not x.shape[axis] and math.prod(chosen):
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return _result_or_out(new_array((*x.shape[:axis], *chosen, *x.shape[axis + 1 :]), x.dtype), out)


@rule(numpy.take_along_axis)
def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Any:
    """Return the elements of ``x`` at ``indices``, which broadcasts with ``x`` outside of the axis."""
    if axis is None:
        return new_array(shape_of(indices), x.dtype)
    axis = normalize_axis_index(axis, x.ndim)
    chosen = shape_of(indices)
    sizes = [*x.shape]
    sizes[axis] = 1
    return new_array(numpy.broadcast_shapes(tuple(sizes), chosen), x.dtype)


# --- Products and linear algebra ------------------------------------------------------------------------------------


@rule(numpy.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return the product over the last axis of ``a`` and the last but one of ``b``."""
    a, b = as_meta(a), as_meta(b)
    if not a.ndim or not b.ndim:
        return call(numpy.multiply, a, b, out=out)
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} != {inner}")
    shape = (*a.shape[:-1], *b.shape[:-2], *b.shape[-1:][: b.ndim - 1])
    return _result_or_out(new_array_like(_of_prototypes(numpy.dot, a, b), shape), out)


@rule(numpy.outer)
def outer_product(a: Any, b: Any, out: Any = None) -> Any:
    """Return the outer product."""
    return _result_or_out(
        new_array((as_meta(a).size, as_meta(b).size), numpy.result_type(prototype(a), prototype(b))), out
    )


@rule(numpy.vdot, numpy.inner)
def vdot(a: Any, b: Any) -> Any:
    """Return the product of two vectors."""
    return new_array_like(_of_prototypes(numpy.vdot, a, b), ())


@rule(numpy.einsum)
def einsum(subscripts: str, *operands: Any, **named: Any) -> Any:
    """Return the sum of products that ``subscripts`` describe."""
    left, right = subscripts.replace(" ", "").split("->")
    sizes: dict[str, int] = {}
    dots: tuple[int, ...] = ()
    for text, each in zip(left.split(","), operands, strict=True):
        before, _, after = text.partition("...")
        shape = each.shape
        if "..." in text:
            dots = numpy.broadcast_shapes(dots, shape[len(before) : len(shape) - len(after)])
            shape = (*shape[: len(before)], *shape[len(shape) - len(after) :])
        for name, size in zip(before + after, shape, strict=True):
            sizes[name] = size if sizes.get(name, 1) == 1 else sizes[name]
    before, _, after = right.partition("...")
    shape = (*[sizes[name] for name in before], *(dots if "..." in right else ()), *[sizes[name] for name in after])
    return new_array_like(_of_prototypes(numpy.einsum, subscripts, *operands, **named), shape)


@rule(numpy.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the product over the given axes."""
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    first, second = [normalize_axis_tuple(each, x.ndim) for each, x in zip(axes, (a, b), strict=True)]
    shape = [n for i, n in enumerate(a.shape) if i not in first] + [n for i, n in enumerate(b.shape) if i not in second]
    return new_array(shape, numpy.result_type(prototype(a), prototype(b)))


@rule(numpy.trace)
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum of the diagonal."""
    return RULES[numpy.sum](x.diagonal(offset, axis1, axis2), -1, dtype=dtype)


@rule(numpy.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Return the cross product of vectors of three elements."""
    return new_array(numpy.broadcast_shapes(a.shape, b.shape), numpy.result_type(prototype(a), prototype(b)))


RULES[numpy.kron] = lambda a, b: new_array(
    [m * n for m, n in zip(a.shape, b.shape, strict=True)], numpy.result_type(prototype(a), prototype(b))
)


def _matrix(x: MetaArray) -> tuple[tuple[int, ...], int, int, Any]:
    """Return the batch shape, rows, columns and the real dtype of a matrix."""
    return x.shape[:-2], x.shape[-2], x.shape[-1], x.dtype.type(0).real.dtype


def _complex(dtype: Any) -> Any:
    return numpy.result_type(dtype, numpy.complex64)


@rule(numpy.linalg.inv, numpy.linalg.cholesky)
def inv(a: Any, **named: Any) -> Any:
    """Return an array of the shape of a matrix."""
    return new_array(a.shape, a.dtype)


@rule(numpy.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Return the solution of linear equations."""
    dtype = numpy.result_type(a.dtype, b.dtype)
    if b.ndim == 1:
        return new_array(a.shape[:-1], dtype)
    return new_array((*numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), dtype)


@rule(numpy.linalg.det)
def det(a: Any) -> Any:
    """Return determinants."""
    return new_array(a.shape[:-2], a.dtype)


@rule(numpy.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Return signs and logarithms of determinants."""
    return new_array(a.shape[:-2], a.dtype), new_array(a.shape[:-2], _matrix(a)[3])


@rule(numpy.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors."""
    return new_array(a.shape[:-1], _matrix(a)[3]), new_array(a.shape, a.dtype)


@rule(numpy.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Return eigenvalues."""
    return new_array(a.shape[:-1], _matrix(a)[3])


@rule(numpy.linalg.eig)
def eig(a: Any) -> Any:
    """Return eigenvalues and eigenvectors, which are complex."""
    return new_array(a.shape[:-1], _complex(a.dtype)), new_array(a.shape, _complex(a.dtype))


@rule(numpy.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Return eigenvalues, which are complex."""
    return new_array(a.shape[:-1], _complex(a.dtype))


@rule(numpy.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return the singular value decomposition."""
    batch, m, n, real = _matrix(a)
    k = min(m, n)
    values = new_array((*batch, k), real)
    if not compute_uv:
        return values
    return (
        new_array((*batch, m, m if full_matrices else k), a.dtype),
        values,
        new_array((*batch, n if full_matrices else k, n), a.dtype),
    )


@rule(numpy.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the QR factorisation."""
    batch, m, n, _ = _matrix(a)
    k = min(m, n)
    if mode == "r":
        return new_array((*batch, k, n), a.dtype)
    if mode == "raw":
        return new_array((*batch, n, m), a.dtype), new_array((*batch, k), a.dtype)
    inner = m if mode == "complete" else k
    return new_array((*batch, m, inner), a.dtype), new_array((*batch, inner, n), a.dtype)


@rule(numpy.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm."""
    return new_array(_reduced_shape(x.shape, axis, keepdims), x.dtype.type(0).real.dtype)


# --- Arrays like others ---------------------------------------------------------------------------------------------


def _empty_like(x: Any, dtype: Any, shape: Any, order: str = "K") -> MetaArray:
    model = as_meta(x)
    dtype = model.dtype if dtype is None else dtype
    if shape is not None:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        keeps = order == "K" and len(sizes) == model.ndim
        return new_array_like(numpy.empty_like(prototype(model), dtype), sizes) if keeps else new_array(sizes, dtype)
    return model.astype(dtype, order)


RULES[numpy.empty_like] = RULES[numpy.zeros_like] = RULES[numpy.ones_like] = (
    lambda x, dtype=None, order="K", subok=True, shape=None, **named: _empty_like(x, dtype, shape, order)
)
RULES[numpy.full_like] = lambda x, fill_value, dtype=None, order="K", subok=True, shape=None, **named: _empty_like(
    x, dtype, shape, order
)
