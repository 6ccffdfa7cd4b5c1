"""Functions of the stand-in: NumPy's and SciPy's, under the names, signatures and rules recorded from CuPy."""

from __future__ import annotations

import contextlib
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import scipy.fft
import scipy.linalg
import scipy.special

from .array import (
    BFLOAT16,
    CURRENT,
    TRANSFERS,
    checked,
    ndarray,
    place,
    rewrap,
    synchronise,
    unwrap,
    wrap,
    writable,
)

NAMES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
HALF = numpy.dtype(numpy.float16)
SINGLE = numpy.dtype(numpy.float32)
Function = Callable[..., Any]


def unsupported(value: object) -> TypeError:
    """Return CuPy's error for an argument that is neither an array of the device nor a scalar."""
    return TypeError(f"Unsupported type {type(value)}")


def contiguous(result: Any) -> Any:
    """Return a NumPy result in C order, as CuPy's kernels allocate theirs."""
    if isinstance(result, numpy.ndarray) and not result.flags.c_contiguous:
        return result.copy("C")
    return result


# --- ufuncs -----------------------------------------------------------------------------------------------------------

#: The only ufunc methods that CuPy has.
REDUCES = {"cupy_add": "sum", "cupy_multiply": "prod"}
ACCUMULATES = {"cupy_add": "cumsum", "cupy_multiply": "cumprod"}
#: The dtypes of ``at`` with arrays among the indices: those for which CUDA has an atomic function.
SCATTERS = {
    "cupy_add": "int32, int64, float16, float32, float64, uint32, uint64",
    "cupy_subtract": "int32, uint32,",
    **dict.fromkeys(("cupy_maximum", "cupy_minimum"), "int32, int64, float32, float64, uint32, uint64"),
    **dict.fromkeys(("cupy_bitwise_and", "cupy_bitwise_or", "cupy_bitwise_xor"), "int32, int64, uint32, uint64"),
}
SCALARS = (bool, int, float, complex)


def _dtype(char: str) -> numpy.dtype[Any]:
    return BFLOAT16 if char == BFLOAT16.char else numpy.dtype(char)


def _frexp(x: Any) -> Any:
    mantissa, exponent = numpy.frexp(x)
    return mantissa, exponent


def _divide(x: Any, y: Any) -> Any:
    """Return the quotient as CUDA computes it: a complex one is nan if the divisor is 0 or infinite."""
    if numpy.result_type(x, y).kind != "c":
        return numpy.true_divide(x, y)
    kind = numpy.result_type(x, y)
    x, y = numpy.asarray(x, kind), numpy.asarray(y, kind)
    scale = 1 / (abs(y.real) + abs(y.imag))
    a, b, c, d = x.real * scale, x.imag * scale, y.real * scale, y.imag * scale
    scale = 1 / (c * c + d * d)
    found = numpy.empty(numpy.broadcast_shapes(x.shape, y.shape), kind)
    found.real, found.imag = (a * c + b * d) * scale, (b * c - a * d) * scale
    return found


def _power(x: Any, y: Any) -> Any:
    """Return the power as CUDA computes it: a complex one by exponential and logarithm."""
    if numpy.result_type(x, y).kind != "c":
        return numpy.power(x, y)
    product = numpy.log(x) * y
    found = numpy.exp(product)
    found = numpy.where(numpy.isneginf(product.real), 0, found)
    return numpy.where(y == 0, 1, found).astype(numpy.result_type(x, y))


def _xlog1py(x: Any, y: Any) -> Any:
    return numpy.where(x == 0, numpy.zeros((), numpy.result_type(x, y)), x * numpy.log1p(y))


def _bessel_i1(x: Any) -> Any:
    return numpy.where(numpy.isinf(x), x, numpy.copysign(scipy.special.i1(x), x))


def _bessel_i0(x: Any) -> Any:
    return numpy.where(numpy.isinf(x), abs(x), scipy.special.i0(x))


def _limit_0(function: Function) -> Function:
    """Return a Bessel function that is 0 at infinity, where SciPy's is nan."""
    return lambda x: numpy.where(x == numpy.inf, numpy.zeros((), x.dtype), function(x))


#: What NumPy and SciPy lack, or compute with other values.
OWN_UFUNCS: dict[str, Function] = {
    **dict.fromkeys(("divide", "true_divide"), _divide),
    "reciprocal": lambda x: _divide(x.dtype.type(1), x) if x.dtype.kind == "c" else numpy.reciprocal(x),
    **dict.fromkeys(("power", "pow"), _power),
    "xlog1py": _xlog1py,
    "i1": _bessel_i1,
    "i0e": lambda x: numpy.exp(-abs(x)) * _bessel_i0(x),
    "i1e": lambda x: numpy.exp(-abs(x)) * _bessel_i1(x),
    "k0e": lambda x: numpy.exp(x) * scipy.special.k0(x),
    "k1e": lambda x: numpy.exp(x) * scipy.special.k1(x),
    "j0": lambda x: _limit_0(scipy.special.j0)(abs(x)),
    "j1": lambda x: numpy.where(numpy.isinf(x), numpy.copysign(0, x).astype(x.dtype), scipy.special.j1(x)),
    "y0": _limit_0(scipy.special.y0),
    "y1": _limit_0(scipy.special.y1),
    "rsqrt": lambda x: 1 / numpy.sqrt(x),
    "fix": numpy.trunc,
    "sinc": numpy.sinc,
    "i0": _bessel_i0,
    "log_expit": lambda x: -numpy.logaddexp(0, -x),
}


class ufunc:
    """``cupy.ufunc``: loops for the recorded dtypes only, no ``where=``, and hardly any methods."""

    def __init__(self, public: str, entry: dict[str, Any], function: Function) -> None:
        self.name = self.__name__ = entry["name"]
        self.nin, self.nout, self.types = entry["nin"], entry["nout"], entry["types"]
        self.nargs = self.nin + self.nout
        self.function = function
        self.loops = []
        for text in self.types:
            first, _, last = text.partition("->")
            self.loops.append((tuple(map(_dtype, first)), tuple(map(_dtype, last))))
        self.found: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def loop(self, kinds: tuple[Any, ...], dtype: Any) -> Any:
        """Return the dtypes of inputs and outputs of the first loop that fits, as CuPy guesses it."""
        key = kinds, dtype
        if key not in self.found:
            self.found[key] = self._loop(kinds, dtype)
        return self.found[key]

    def _loop(self, kinds: tuple[Any, ...], dtype: Any) -> Any:
        if dtype is not None:
            for loop in self.loops:
                if all(each == dtype for each in loop[1]):
                    return loop
        else:
            strong = [each for each in kinds if isinstance(each, numpy.dtype)]
            weak = [each for each in kinds if not isinstance(each, numpy.dtype)]
            common = numpy.result_type(*strong) if strong else None
            for kind in weak:
                if common == BFLOAT16 and kind in (float, complex):
                    common = SINGLE  # a Python float is one of float16, with which bfloat16 has float32 in common
                common = numpy.dtype(kind) if common is None else numpy.result_type(common, kind(0))
            wanted = [each if isinstance(each, numpy.dtype) else common for each in kinds]
            for loop in self.loops:
                if all(map(numpy.can_cast, wanted, loop[0])):
                    return loop
        raise TypeError(f"Wrong type ({kinds}) of arguments for {self.name}")

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", **named: Any) -> Any:
        where = named.pop("_where", None)
        if named:
            raise TypeError(f"Wrong arguments {named}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} "
                f"(with outputs), but given {len(args)}."
            )
        outs = args[self.nin :]
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outs = out if isinstance(out, tuple) else (out,)
        for each in outs:
            if each is not None and type(each) is not ndarray:
                raise TypeError("Output arguments type must be cupy.ndarray")
        kinds, values = [], []
        for each in args[: self.nin]:
            if type(each) is ndarray:
                kinds.append(each._a.dtype)
                values.append(unwrap(each))
            elif type(each) in SCALARS:
                kinds.append(type(each))
                values.append(each)
            elif isinstance(each, numpy.generic):
                kinds.append(each.dtype)
                values.append(each)
            else:
                raise unsupported(each)
        ins, results = self.loop(tuple(kinds), None if dtype is None else numpy.dtype(dtype))
        given = []
        for value, kind in zip(values, ins, strict=True):
            if type(value) is int and kind.kind in "iu" and not numpy.iinfo(kind).min <= value <= numpy.iinfo(kind).max:
                raise OverflowError(f"Python integer {value} out of bounds for {kind}")
            array = numpy.asarray(value)
            given.append(array if array.dtype == kind else array.astype(kind))
        if outs:
            shape = numpy.broadcast_shapes(
                *(each.shape for each in given), *(each.shape for each in outs if each is not None)
            )
            for each in outs:
                if each is not None and each.shape != shape:
                    raise ValueError("Out shape is mismatched")
        with numpy.errstate(all="ignore"):
            found = self._computed(given)
        found = found if isinstance(found, tuple) else (found,)
        answers = []
        for at, (value, kind) in enumerate(zip(found, results, strict=True)):
            value = numpy.asarray(value)
            target = outs[at] if at < len(outs) else None
            if target is None:
                if where is not None:
                    value = numpy.where(unwrap(where), value, numpy.zeros_like(value))
                answers.append(wrap(contiguous(value if value.dtype == kind else value.astype(kind))))
                continue
            if not numpy.can_cast(kind, target._a.dtype, casting):  # type: ignore[arg-type]
                raise TypeError(
                    f"output (typecode {kind.char!r}) could not be coerced to provided output parameter "
                    f"(typecode {target._a.dtype.char!r}) according to the casting rule {casting!r}"
                )
            with numpy.errstate(all="ignore"):
                numpy.copyto(unwrap(target), value, casting="unsafe", where=True if where is None else unwrap(where))
            answers.append(target)
        return answers[0] if self.nout == 1 else tuple(answers)

    def _computed(self, given: list[Any]) -> Any:
        try:
            return self.function(*given)
        except TypeError:
            if not any(each.dtype in (HALF, BFLOAT16) for each in given):
                raise
            return self.function(*(each.astype(SINGLE) if each.dtype in (HALF, BFLOAT16) else each for each in given))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.name in REDUCES:
            return getattr(array, REDUCES[self.name])(axis, dtype, out, keepdims)
        raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name in ACCUMULATES:
            return getattr(array, ACCUMULATES[self.name])(axis, dtype, out)
        raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")

    def reduceat(self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name != "cupy_add":
            raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")
        if out is not None:
            raise ValueError("`out` is not supported")
        return rewrap(numpy.add.reduceat(unwrap(array), unwrap(indices), axis, dtype))

    def outer(self, a: Any, b: Any, **named: Any) -> Any:
        return self(a.reshape(a.shape + (1,) * b.ndim), b.reshape((1,) * a.ndim + b.shape), **named)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if self.name not in SCATTERS:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        scatter(self.name, a, indices, b)


def scatter(name: str, a: Any, indices: Any, b: Any) -> None:
    """Apply a ufunc's ``at`` as CuPy does: for a few dtypes, with indices modulo the size."""
    from .array import prepared

    if type(a) is not ndarray or isinstance(b, numpy.ndarray):
        raise unsupported(a if type(a) is not ndarray else b)
    short = name.removeprefix("cupy_")
    advanced = prepared(indices, a.shape)
    atomic = advanced is not None and not (advanced.masks and advanced.count == 1)
    if atomic and a.dtype.name not in SCATTERS[name].replace(",", "").split():
        raise TypeError(f"cupy.{short}.at only supports {SCATTERS[name]} as data type")
    if advanced is not None and advanced.masks:
        synchronise("boolean index")
    key = indices if advanced is None else advanced.key
    getattr(numpy, short).at(a._a, key, numpy.asarray(unwrap(b)).astype(a.dtype))


# --- Functions --------------------------------------------------------------------------------------------------------

#: Functions that take no array of the device, or none of necessity.
FREE = frozenset({
    "arange", "array", "array_equal", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "asnumpy",
    "bartlett", "blackman", "broadcast_shapes", "can_cast", "copy", "diag_indices", "dtype", "empty", "eye",
    "finfo", "from_dlpack", "fromDlpack", "frombuffer", "full", "hamming", "hanning", "identity", "indices", "isdtype",
    "isscalar", "issubdtype", "kaiser", "linspace", "logspace", "min_scalar_type", "ndim", "ones", "promote_types",
    "result_type", "tri", "tril_indices", "triu_indices", "where", "zeros", "get_array_module", "mask_indices",
    "fftfreq", "rfftfreq", "next_fast_len", "mgrid", "ndindex", "size", "shape", "isrealobj", "iscomplexobj",
    "typename", "memoize", "clear_memo", "get_printoptions", "set_printoptions", "hilbert", "hadamard", "dft",
})  # fmt: skip
#: Functions that convert a NumPy array: a copy to the device.
FROM_HOST = frozenset({"array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite"})
#: Functions whose result's shape depends on values, or that look at values on the host.
WAITING = frozenset({
    "nonzero", "argwhere", "flatnonzero", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "bincount", "histogram", "histogram2d", "histogramdd", "extract", "compress", "trim_zeros", "setdiff1d",
    "setxor1d", "intersect1d", "union1d", "lstsq", "delete", "array_repr", "array_str", "array2string", "save",
    "savez", "byte_bounds", "digitize", "average", "roots", "corrcoef", "tril_indices", "triu_indices", "mask_indices",
})  # fmt: skip
#: Dtypes that CuPy's sorting (Thrust) lacks.
UNSORTABLE = (BFLOAT16,)
SORTING = frozenset({"sort", "argsort", "lexsort", "partition", "argpartition", "unique", "median", "msort",
                     "percentile", "quantile", "nanmedian"})  # fmt: skip


def bound(parameters: Any, name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """Return a function that checks the arguments of a call by the recorded parameters, and returns the keywords."""
    if not isinstance(parameters, list):
        return lambda args, named: named
    anything = any(each.startswith("**") for each in parameters)
    star = next((at for at, each in enumerate(parameters) if each.startswith("*") and not each.startswith("**")), None)
    plain = [each.rstrip("=") for each in parameters if not each.startswith("*")]
    most = len(plain) if star is None else (None if len(parameters[star]) > 1 else star)
    accepted = frozenset(plain)

    def check(args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if most is not None and len(args) > most:
            raise TypeError(f"{name}() takes at most {most} positional arguments but {len(args)} were given")
        if named and not anything and not accepted.issuperset(named):
            raise TypeError(f"{name}() got an unexpected keyword argument {(set(named) - accepted).pop()!r}")
        return named

    return check


def devices(values: Any, found: list[Any]) -> None:
    """Append the stand-in's arrays in ``values`` to ``found``; raise TypeError if there is one of NumPy."""
    for each in values:
        if type(each) is ndarray:
            found.append(each)
        elif isinstance(each, numpy.ndarray):
            raise unsupported(each)
        elif type(each) is tuple or type(each) is list:
            devices(each, found)


def function(path: str, name: str, entry: Any, numpys: Function) -> Function:
    """Return the stand-in for one function: ``numpys`` after the checks."""
    check = bound(entry, name)
    shown = f"{path}.{name}"
    special = SPECIAL.get(shown)

    def call(*args: Any, **named: Any) -> Any:
        check(args, named)
        arrays: list[Any] = []
        if name not in FROM_HOST:
            devices(args, arrays)
            devices(named.values(), arrays)
            if not arrays and name not in FREE:
                raise TypeError(f"{shown} expects cupy.ndarray, not {[type(each).__name__ for each in args]}")
        if name in WAITING:
            synchronise(name)
        if name in SORTING and any(each.dtype in UNSORTABLE for each in arrays):
            raise NotImplementedError(f"Sorting arrays with dtype '{arrays[0].dtype}' is not supported")
        with numpy.errstate(all="ignore"):
            if special is not None:
                return special(*args, **named)
            keywords = {key: unwrap(value) for key, value in named.items()}
            result = numpys(*map(unwrap, args), **keywords)
        out = named.get("out")
        return out if type(out) is ndarray else rewrap(result if name in VIEWS else contiguous(result))

    call.__name__ = call.__qualname__ = name
    call.__module__ = path
    return call


#: Functions whose result may be a view, or has the order of the argument.
VIEWS = frozenset({
    "transpose", "swapaxes", "moveaxis", "rollaxis", "reshape", "ravel", "squeeze", "expand_dims", "diagonal", "diag",
    "real", "imag", "flip", "fliplr", "flipud", "rot90", "broadcast_arrays", "split", "array_split", "hsplit",
    "vsplit", "dsplit", "atleast_1d", "atleast_2d", "atleast_3d", "permute_dims", "matrix_transpose", "empty_like",
    "zeros_like", "ones_like", "full_like", "astype", "copy", "as_strided", "sliding_window_view", "asfortranarray",
    "array", "asarray", "asanyarray", "empty", "zeros", "ones", "full", "real_if_close", "einsum",
})  # fmt: skip

SPECIAL: dict[str, Function] = {}


def special(*names: str) -> Callable[[Function], Function]:
    def register(target: Function) -> Function:
        for each in names:
            SPECIAL[each] = target
        return target

    return register


def moved(value: Any, *, order: str | None = None, dtype: Any = None) -> Any:
    """Return the NumPy array for an argument of ``array``: a copy to the device if it is not there."""
    if isinstance(value, (list, tuple)):
        if any(isinstance(each, ndarray) for each in value):
            return numpy.stack([numpy.asarray(unwrap(each)) for each in value])
        return numpy.asarray(value, dtype)
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        if isinstance(value, numpy.ndarray) and value.ndim:
            TRANSFERS["array", place()] += 1
        return value
    if not isinstance(value, SCALARS):
        raise unsupported(value)
    return value


@special("cupy.array")
def _array(
    obj: Any, dtype: Any = None, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
) -> Any:  # fmt: skip
    if blocking:
        synchronise("array")
    if type(obj) is ndarray:
        here = obj._device == CURRENT.device
        if (
            here
            and not copy
            and (dtype is None or obj.dtype == dtype)
            and order in ("K", "A", None)
            and obj.ndim >= ndmin
        ):
            return obj
        source = obj._a  # copied from another device, too
        copy = copy or not here
    else:
        source, copy = moved(obj), True
    order = "C" if order is None else order
    found = (
        numpy.array(source, dtype, order=order, ndmin=ndmin)
        if copy
        else numpy.array(source, dtype, copy=None, order=order, ndmin=ndmin)
    )
    return obj if type(obj) is ndarray and found is source else wrap(found)


@special("cupy.asarray", "cupy.asanyarray")
def _asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> Any:
    return _array(a, dtype, bool(copy), order or "K", blocking=blocking)


@special("cupy.ascontiguousarray")
def _ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    found = _array(a, dtype, False, "C")
    return found if found.ndim else wrap(found._a.reshape(1))


@special("cupy.asfortranarray")
def _asfortranarray(a: Any, dtype: Any = None) -> Any:
    return wrap(numpy.asfortranarray(unwrap(_array(a, dtype, False))))


@special("cupy.asnumpy")
def _asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    if type(a) is ndarray:
        return a.get(stream, order, out, blocking)
    return numpy.asarray(a, order=order)  # type: ignore[call-overload]


@special("cupy.get_array_module")
def _get_array_module(*args: Any) -> Any:
    return sys.modules["cupy"] if any(type(each) is ndarray for each in args) else numpy


def _wrapped(indices: Any, size: int) -> Any:
    given = numpy.asarray(unwrap(indices))
    if given.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {given.dtype} to int64 according to the rule 'safe'")
    return given % numpy.int64(size) if size else given


@special("cupy.take", "cupy.ndarray.take")
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    source = unwrap(a)
    size = source.size if axis is None else source.shape[axis]
    found = numpy.asarray(numpy.take(source, _wrapped(indices, size), axis))
    if out is None:
        return wrap(contiguous(found))
    if out.dtype != a.dtype:
        raise TypeError("Output dtype mismatch")
    if out.shape != found.shape:
        raise ValueError("Output shape mismatch")
    out._a[...] = found
    return out


@special("cupy.take_along_axis")
def _take_along_axis(a: Any, indices: Any, axis: Any) -> Any:
    source = unwrap(a)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    source, axis = (source.ravel(), 0) if axis is None else (source, axis)
    return wrap(contiguous(numpy.take_along_axis(source, _wrapped(indices, source.shape[axis]), axis)))


@special("cupy.put", "cupy.ndarray.put")
def _put(a: Any, indices: Any, values: Any, mode: str = "wrap") -> None:
    if mode not in ("wrap", "clip"):
        raise ValueError("clipmode must be clip or wrap")
    numpy.put(unwrap(a), unwrap(indices), unwrap(values), mode)  # type: ignore[arg-type]


@special("cupy.put_along_axis")
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    numpy.put_along_axis(unwrap(arr), _wrapped(indices, arr.shape[axis]), unwrap(values), axis)


@special("cupy.broadcast_to")
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    if type(array) is not ndarray:
        raise unsupported(array)
    return wrap(writable(numpy.broadcast_to(unwrap(array), shape)))


@special("cupy.where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        synchronise("where")
        return rewrap(numpy.where(unwrap(condition)))
    for each in (condition, x, y):
        if type(each) is not ndarray and not isinstance(each, (*SCALARS, numpy.generic)):
            raise unsupported(each)
    if type(condition) is not ndarray:
        raise AttributeError(f"'{type(condition).__name__}' object has no attribute 'astype'")
    return WHERE(condition.astype(bool, copy=False), x, y)


def _loops(name: str, kinds: str, before: str, count: int, computed: Function) -> ufunc:
    """Return a function that CuPy has as a ufunc for the dtypes ``kinds`` only: none of bfloat16."""
    types = [f"{before}{kind * count}->{kind}" for kind in kinds]
    return ufunc(name, {"name": f"cupy_{name}", "nin": len(before) + count, "nout": 1, "types": types}, computed)


WHERE = _loops("where", "?bBhHiIlLqQefdFD", "?", 2, numpy.where)
CLIP = _loops("clip", "?bBhHiIlLqQefd", "", 3, numpy.clip)


@special("cupy.tril")
def _tril(m: Any, k: int = 0) -> Any:
    return WHERE(wrap(numpy.tri(*m.shape[-2:], k=k, dtype=bool)), m, m.dtype.type(0))


@special("cupy.triu")
def _triu(m: Any, k: int = 0) -> Any:
    return WHERE(wrap(numpy.tri(*m.shape[-2:], k=k - 1, dtype=bool)), m.dtype.type(0), m)


def _scan(name: str) -> Function:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if BFLOAT16 in (a.dtype if dtype is None else numpy.dtype(dtype), None if out is None else out.dtype):
            raise RuntimeError("CompileException: no operator matches these operands")  # CUDA C++ of a scan
        found = rewrap(contiguous(getattr(numpy, name)(unwrap(a), axis, dtype)))
        if out is None:
            return found
        out._a[...] = found._a
        return out

    return call


for _name in ("cumsum", "cumprod"):
    SPECIAL[f"cupy.{_name}"] = _scan(_name)


def _moment(name: str) -> Function:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False
    ) -> Any:
        kind = numpy.float64 if dtype is None and a.dtype == BFLOAT16 else dtype
        found = rewrap(getattr(numpy, name)(unwrap(a), axis, kind, None, ddof, keepdims))
        if out is None:
            return found
        out._a[...] = found._a
        return out

    return call


for _name in ("var", "std"):
    SPECIAL[f"cupy.{_name}"] = _moment(_name)


@special("cupy.einsum")
def _einsum(*operands: Any, **named: Any) -> Any:
    if any(type(each) is ndarray and each.dtype == BFLOAT16 for each in operands):
        raise TypeError(f"data type {BFLOAT16.char!r} not understood")
    return rewrap(numpy.einsum(*map(unwrap, operands), **named))


@special("cupy.choose")
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if type(choices) is not ndarray:
        raise AttributeError(f"{type(choices).__name__!r} object has no attribute 'shape'")
    if mode == "raise":
        raise TypeError("clipmode must be clip or wrap")
    return wrap(numpy.choose(unwrap(a), unwrap(choices), mode=mode))  # type: ignore[call-overload]


@special("cupy.repeat", "cupy.ndarray.repeat")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if isinstance(repeats, numpy.ndarray):
        raise unsupported(repeats)
    if type(repeats) is ndarray:
        synchronise("repeat")
    return wrap(numpy.repeat(unwrap(a), unwrap(repeats), axis))


@special("cupy.lexsort")
def _lexsort(keys: Any) -> Any:
    if type(keys) is not ndarray:
        raise AttributeError(f"'{type(keys).__name__}' object has no attribute 'ndim'")
    if keys.ndim > 2:
        raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
    if keys.dtype == BFLOAT16:
        raise NotImplementedError("lexsort of bfloat16")
    return wrap(numpy.lexsort(unwrap(keys)))


@special("cupy.argsort", "cupy.ndarray.argsort")
def _argsort(a: Any, axis: Any = -1, kind: Any = None) -> Any:
    if a.dtype in UNSORTABLE:
        raise NotImplementedError(f"Sorting arrays with dtype '{a.dtype}' is not supported")
    if kind not in (None, "stable"):
        raise NotImplementedError(f"kind {kind!r}")
    return wrap(contiguous(numpy.argsort(numpy.atleast_1d(unwrap(a)), axis, kind="stable")))


@special("cupy.sort")
def _sort(a: Any, axis: Any = -1, kind: Any = None) -> Any:
    if kind not in (None, "stable"):
        raise NotImplementedError(f"kind {kind!r}")
    if not a.ndim:
        raise numpy.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")
    return wrap(contiguous(numpy.sort(unwrap(a), axis, kind="stable")))


@special("cupy.ndarray.sort")
def _sort_in_place(a: Any, axis: int = -1, *, kind: Any = None) -> None:
    if not a.ndim:
        raise numpy.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")
    if not a._a.flags.c_contiguous:
        raise NotImplementedError("Sorting non-contiguous array is not supported.")
    if a.dtype in UNSORTABLE:
        raise NotImplementedError(f"Sorting arrays with dtype '{a.dtype}' is not supported")
    unwrap(a).sort(axis, kind="stable")


@special("cupy.copyto")
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if type(dst) is not ndarray or isinstance(src, numpy.ndarray) or isinstance(where, numpy.ndarray):
        raise unsupported(src)
    numpy.copyto(unwrap(dst), unwrap(src), casting, True if where is None else unwrap(where))  # type: ignore[arg-type]


@special("cupy.clip", "cupy.ndarray.clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> Any:
    if a_min is None and a_max is None:
        raise ValueError("array_clip: must set either max or min")
    cupy = sys.modules["cupy"]
    if a_min is None:
        return cupy.minimum(a, a_max, out=out)
    if a_max is None:
        return cupy.maximum(a, a_min, out=out)
    return CLIP(a, a_min, a_max, out=out)


@special("cupy.lib.stride_tricks.as_strided")
def _as_strided(x: Any, shape: Any = None, strides: Any = None) -> Any:
    return wrap(numpy.lib.stride_tricks.as_strided(unwrap(x), shape, strides))


@special("cupy.copy", "cupy.ndarray.copy")
def _copy(a: Any, order: str = "C") -> Any:
    return wrap(unwrap(a).copy(order))


@special("cupy.from_dlpack", "cupy.fromDlpack")
def _from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> Any:
    if not hasattr(array, "__dlpack_device__"):
        return wrap(numpy.from_dlpack(_Capsule(array)))
    kind, index = array.__dlpack_device__()
    if device is not None:
        raise NotImplementedError("from_dlpack() does not support device yet.")
    if kind == 1:
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    if kind != 2:
        raise TypeError(f"Unsupported array type: {kind}")
    cuda = sys.modules["cupy"].cuda
    with cuda.Device(index):
        stream = cuda.get_current_stream().ptr or 1
        return wrap(numpy.from_dlpack(_Capsule(array.__dlpack__(stream=stream, max_version=(1, 0), copy=copy))))


class _Capsule:
    """Object with a DLPack capsule of memory of the host, which the stand-in's arrays are in."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **named: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def scattered(name: str) -> Function:
    return lambda a, slices, value: scatter(f"cupy_{name}", a, slices, value)


for _name, _function in {"add": "add", "max": "maximum", "min": "minimum"}.items():
    SPECIAL[f"cupyx.scatter_{_name}"] = SPECIAL[f"cupy.ndarray.scatter_{_name}"] = scattered(_function)


# --- Linear algebra: errors are not reported, because nothing waits for them ------------------------------------------


def quiet(solve: Function) -> Function:
    """Return ``solve`` without LinAlgError: matrices that it can not handle give nan, slice by slice."""

    def call(*args: Any, **named: Any) -> Any:
        for each in args:
            if isinstance(each, numpy.ndarray) and each.dtype in (HALF, BFLOAT16):
                raise TypeError(f"array type {each.dtype} is unsupported in linalg")
        try:
            return solve(*args, **named)
        except numpy.linalg.LinAlgError as error:
            if not any(each in str(error).lower() for each in ("singular", "definite", "converge")):
                raise
            safe = [numpy.where(numpy.isfinite(each), each, 0) for each in args if isinstance(each, numpy.ndarray)]
            first = safe[0]
            several = (
                first.ndim > 2 and first.shape[0] and all(each.ndim > 2 and len(each) == len(first) for each in safe)
            )
            if several:
                arrays = [at for at, each in enumerate(args) if isinstance(each, numpy.ndarray)]
                slices = []
                for row in range(len(first)):
                    parts = list(args)
                    for at in arrays:
                        parts[at] = args[at][row]
                    slices.append(call(*parts, **named))
                if isinstance(slices[0], tuple):
                    return tuple(map(numpy.stack, zip(*slices, strict=True)))
                return numpy.stack(slices)
            identity = numpy.broadcast_to(numpy.eye(first.shape[-1], dtype=first.dtype), first.shape)
            result = solve(identity, *args[1:], **named)
            return (
                tuple(numpy.full_like(each, numpy.nan) for each in result)
                if isinstance(result, tuple)
                else numpy.full_like(result, numpy.nan)
            )

    return call


@special("cupy.linalg.solve")
def _solve(a: Any, b: Any) -> Any:
    for each in (a, b):
        if type(each) is not ndarray:
            raise unsupported(each)
    if b.ndim == 1:
        if a.shape[-1] != b.size:
            raise ValueError("a must have (..., M, M) shape and b must have (M,) for one-dimensional b")
        return wrap(quiet(numpy.linalg.solve)(a._a, numpy.broadcast_to(b._a, a.shape[:-1])[..., None])[..., 0])
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    return wrap(contiguous(quiet(numpy.linalg.solve)(unwrap(a), unwrap(b))))


@special("cupyx.scipy.linalg.solve_triangular")
def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    check_finite: bool = False,
) -> Any:  # fmt: skip
    if type(a) is not ndarray or type(b) is not ndarray:
        raise unsupported(a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError("expected a batch of square matrices")
    if a.shape[:-2] != b.shape[: a.ndim - 2]:
        raise ValueError("incompatible batch count")
    trsm = scipy.linalg.blas.get_blas_funcs("trsm", (a._a, b._a))
    flat = a._a.reshape(-1, *a.shape[-2:]), b._a.reshape(-1, *b.shape[a.ndim - 2 :])
    found = [trsm(1, *items, lower=lower, trans_a=trans, diag=unit_diagonal) for items in zip(*flat, strict=True)]
    return wrap(numpy.stack(found).reshape(b.shape))


# --- Modules ----------------------------------------------------------------------------------------------------------

SOURCES: dict[str, Any] = {
    "cupy": numpy,
    "cupy.linalg": numpy.linalg,
    "cupy.fft": numpy.fft,
    "cupy.lib.stride_tricks": numpy.lib.stride_tricks,
    "cupyx": None,
    "cupyx.scipy.special": scipy.special,
    "cupyx.scipy.fft": scipy.fft,
    "cupyx.scipy.linalg": scipy.linalg,
}


def module(path: str) -> types.ModuleType:
    """Return the stand-in for one module, with the recorded names that NumPy or SciPy has, too."""
    made = types.ModuleType(path)
    made.__path__ = []
    source = SOURCES[path]
    for name, entry in NAMES[path].items():
        theirs = getattr(source, name, None)
        if isinstance(entry, dict):
            theirs = OWN_UFUNCS.get(name, theirs)
            if theirs is not None:
                setattr(made, name, ufunc(name, entry, theirs))
        elif isinstance(entry, list) or entry == "function":
            if f"{path}.{name}" in SPECIAL or (theirs is not None and callable(theirs)):
                theirs = quiet(theirs) if path.endswith("linalg") else theirs
                setattr(made, name, function(path, name, entry, theirs))
        elif theirs is not None and not isinstance(theirs, types.ModuleType):
            setattr(made, name, theirs)  # dtypes, constants
    return made


#: Operators of arrays, by the ufunc that computes them.
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "divmod": "divmod", "matmul": "matmul",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
#: Methods that are functions of the module, with the array as first argument.
SAME = (
    "all", "any", "argmax", "argmin", "choose", "compress", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod",
    "ptp", "round", "std", "sum", "trace", "var", "searchsorted", "argpartition",
)  # fmt: skip
#: Methods of NumPy's arrays.
PLAIN = (
    "byteswap", "diagonal", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "transpose", "view",
)  # fmt: skip


def add_methods(cupy: Any) -> None:
    """Add the methods and operators that CuPy's arrays have to :class:`ndarray`."""
    recorded = NAMES["cupy.ndarray"]
    for name in SAME:
        target = getattr(cupy, name)
        check = bound(recorded[name], f"ndarray.{name}")
        setattr(ndarray, name, _method(target, check))
    for name in PLAIN:
        target = getattr(numpy.ndarray, name)
        setattr(ndarray, name, _plain(target, bound(recorded[name], f"ndarray.{name}")))
    for name in (
        "take",
        "put",
        "repeat",
        "argsort",
        "sort",
        "clip",
        "copy",
        "scatter_add",
        "scatter_max",
        "scatter_min",
    ):
        setattr(ndarray, name, _special_method(SPECIAL[f"cupy.ndarray.{name}"]))
    for short, long in OPERATORS.items():
        target = getattr(cupy, long)
        setattr(ndarray, f"__{short}__", _operator(target))
        setattr(ndarray, f"__r{short}__", _operator(target, swapped=True))
        if f"__i{short}__" in recorded:
            setattr(ndarray, f"__i{short}__", _in_place(target))
    for short, long in COMPARISONS.items():
        setattr(ndarray, f"__{short}__", _comparison(getattr(cupy, long)))
    for short, long in UNARY.items():
        setattr(ndarray, f"__{short}__", _unary(getattr(cupy, long)))
    ndarray.conj = ndarray.conjugate = lambda self: cupy.conjugate(self) if self.dtype.kind == "c" else self  # type: ignore[attr-defined]
    ndarray.astype, ndarray.fill, ndarray.nonzero = _astype, _fill, lambda self: cupy.nonzero(self)  # type: ignore[attr-defined]
    missing = [
        name for name in recorded
        if not name.startswith("_") and not hasattr(ndarray, name)
        and name not in ("cstruct", "mdspan", "dump", "dumps", "tofile", "reduced_view", "toDlpack", "partition")
    ]  # fmt: skip
    assert not missing, missing


def _method(target: Function, check: Function) -> Function:
    def method(self: Any, *args: Any, **named: Any) -> Any:
        check(args, named)
        return target(self, *args, **named)

    return method


def _special_method(target: Function) -> Function:
    def method(self: Any, *args: Any, **named: Any) -> Any:
        found: list[Any] = []
        devices(args, found)
        return target(self, *args, **named)

    return method


def _plain(target: Function, check: Function) -> Function:
    def method(self: Any, *args: Any, **named: Any) -> Any:
        check(args, named)
        found: list[Any] = []
        devices(args, found)
        return rewrap(target(self._a, *args, **named))

    return method


def _operand(other: Any) -> bool:
    return isinstance(other, (ndarray, numpy.ndarray, numpy.generic, *SCALARS))


def _operator(target: Function, swapped: bool = False) -> Function:
    def operator(self: Any, other: Any, modulo: Any = None) -> Any:
        if not _operand(other):
            if hasattr(other, "__array_ufunc__") or not isinstance(other, (list, tuple)):
                return NotImplemented
            raise unsupported(other)
        return target(other, self) if swapped else target(self, other)

    return operator


def _in_place(target: Function) -> Function:
    def operator(self: Any, other: Any) -> Any:
        return target(self, other, out=self) if _operand(other) else NotImplemented

    return operator


def _comparison(target: Function) -> Function:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, numpy.ndarray) and not other.ndim:
            other = other.item()
        return target(self, other) if _operand(other) else NotImplemented

    return operator


def _unary(target: Function) -> Function:
    return lambda self: target(self)


def _astype(self: Any, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> Any:
    if subok is not None:
        raise TypeError("subok is not supported yet")
    dtype = numpy.dtype(dtype)
    checked(dtype)
    if not copy and dtype == self.dtype and (order == "K" or self._a.flags[f"{order}_CONTIGUOUS"]):
        return self
    source = unwrap(self)
    if source.dtype.kind == "c" and dtype.kind not in "cb":
        source = source.real
    with numpy.errstate(all="ignore"):
        return wrap(source.astype(dtype, order, casting or "unsafe"))


def _fill(self: Any, value: Any) -> None:
    if isinstance(value, numpy.ndarray):
        if value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        value = value.item()
    if type(value) is ndarray:
        if value.ndim:
            raise ValueError("non-scalar cupy.ndarray cannot be used for fill")
        value = value._a
    with numpy.errstate(all="ignore"):
        self._a.fill(value)


@contextlib.contextmanager
def errstate(**named: Any) -> Iterator[None]:
    """``cupyx.errstate``: CuPy reports nothing but errors of ``linalg``, on request."""
    yield


def build() -> dict[str, types.ModuleType]:
    """Return the stand-in's modules by name."""
    from . import cuda, kernels, solvers

    made = {path: module(path) for path in SOURCES if path not in ("cupy.lib.stride_tricks",)}
    made["cupyx.scipy"] = types.ModuleType("cupyx.scipy")
    made["cupy.lib"] = types.ModuleType("cupy.lib")
    made["cupy.lib.stride_tricks"] = module("cupy.lib.stride_tricks")
    made["cupy.random"] = types.ModuleType("cupy.random")
    for path, each in made.items():
        each.__path__ = []
        parent, _, name = path.rpartition(".")
        if parent:
            setattr(made[parent], name, each)
    cupy, cupyx = made["cupy"], made["cupyx"]
    cupy.ndarray, cupy.ufunc, cupy.generic = ndarray, ufunc, numpy.generic  # type: ignore[attr-defined]
    cupy.__version__ = NAMES["versions"]["cupy"]  # type: ignore[attr-defined]
    cupyx.errstate = errstate  # type: ignore[attr-defined]
    made["cupy.cuda"] = cupy.cuda = cuda.build(cupy)  # type: ignore[attr-defined]
    made["cupy.cuda.runtime"] = cupy.cuda.runtime
    made["cupy._core.syncdetect"] = cuda.SYNCDETECT
    kernels.add(cupy, cupyx)
    solvers.add(cupy.cuda)
    add_methods(cupy)
    return made


__all__ = ["NAMES", "build", "ufunc"]
