"""Windows of images on a GPU, by one launch each: copied to columns, columns added to an image, maxima, scattering, and
weighted sums along an axis.

A window is the set of elements of an image (batch, channels, \\*space) that one output position reads. The kernels are
``cupy.ElementwiseKernel`` objects whose text depends on the number of dimensions, on the dtypes, and, where the offsets
in a window are written out, on the size of the window. All other sizes are arguments, so that a new size of image
compiles nothing. Indices are computed in 32 bits if all of them fit, because a GPU divides 64-bit integers slowly.

The index of a ``raw`` argument counts elements in C order, whatever the strides of the array.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy

from .elements import F32, F64
from .source import NAMES, preamble

#: Elements of a window up to which a kernel has a term for each.
MOST_TERMS = 128
#: Bytes of a buffer of columns; larger batches are computed in parts.
COLUMN_BYTES = 2**30
HALF = ("e", "E")


def computing_dtype(dtype: Any) -> Any:
    """Return the dtype in which kernels compute arrays of ``dtype``: float32 for half precision; None if they do not."""
    return dtype if dtype in (F32, F64) else F32 if dtype.char in HALF else None


def _index_type(*counts: int) -> str:
    """Return the type of indices below ``counts``."""
    return "int32" if max(counts) < 2**31 else "int64"


_INTEGERS = {"int32": "int", "int64": "long long"}


@cache
def _kernel(inputs: str, outputs: str, lines: tuple[str, ...], name: str, double: bool) -> Any:
    text = preamble(double, "math.cuh")
    return sys.modules["cupy"].ElementwiseKernel(inputs, outputs, "\n".join(lines), f"retrograd_{name}", preamble=text)


def _coordinates(integer: str, sizes: Sequence[tuple[str, str]], first: str) -> list[str]:
    """Return statements that compute the coordinates of element ``i`` of an array in C order.

    ``sizes`` are pairs of the name of a coordinate and of its size, except for the first axis, which is named ``first``.
    """
    lines, rest = [], "i"
    for k, (name, size) in enumerate(reversed(sizes)):
        lines += [f"const {integer} {name} = {rest} % {size};", f"const {integer} r{k} = {rest} / {size};"]
        rest = f"r{k}"
    return [*lines, f"const {integer} {first} = {rest};"]


@cache
def _column_kernel(rank: int, source: str, index: str, double: bool) -> Any:
    axes, integer = range(rank), _INTEGERS[index]
    names = [f"{name}{k}" for name in ("kernel", "out", "stride", "dilation", "padding", "space") for k in axes]
    lines = _coordinates(
        integer, [*[(f"k{k}", f"kernel{k}") for k in axes], ("sample", "batch"), *[(f"o{k}", f"out{k}") for k in axes]],
        "channel",
    )  # fmt: skip
    lines += [f"const {integer} a{k} = o{k} * stride{k} + k{k} * dilation{k} - padding{k};" for k in axes]
    lines.append(f"const bool inside = {' && '.join([f'a{k} >= 0 && a{k} < space{k}' for k in axes])};")
    place = "(sample * channels + channel)"
    for k in axes:
        place = f"({place} * space{k} + a{k})"
    lines += [f"const {integer} place = inside ? {place} : 0;", "y0 = inside ? F(x[place]) : F(0);"]
    inputs = ", ".join([f"raw {source} x", *[f"{index} {each}" for each in ("batch", "channels", *names)]])
    return _kernel(inputs, f"{'float64' if double else 'float32'} y0", tuple(lines), "columns", double)


def write_columns(x: Any, target: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> None:
    """Write the windows of ``x`` (batch, channels, \\*space), padded with zeros, to ``target`` (im2col).

    ``target`` is a float32 or float64 array of the shape (channels, \\*kernel, batch, \\*out).
    """
    reach = [o * s + k * d for o, s, k, d in zip(out, stride, kernel, dilation, strict=True)]
    index = _index_type(target.size, x.size, *reach)
    call = _column_kernel(len(kernel), NAMES[x.dtype.char], index, target.dtype == F64)
    call(x, *x.shape[:2], *kernel, *out, *stride, *dilation, *padding, *x.shape[2:], target)


@cache
def _adding_kernel(kernel: tuple[int, ...], target: str, index: str, double: bool) -> Any:
    axes, integer = range(len(kernel)), _INTEGERS[index]
    names = [f"{name}{k}" for name in ("out", "stride", "dilation", "padding", "space") for k in axes]
    lines = _coordinates(integer, [("channel", "channels"), *[(f"s{k}", f"space{k}") for k in axes]], "sample")
    for k in axes:
        for at in range(kernel[k]):
            lines += [
                f"const {integer} t{k}_{at} = s{k} + padding{k} - {at} * dilation{k};",
                f"const {integer} o{k}_{at} = t{k}_{at} / stride{k};",
                f"const bool in{k}_{at} = t{k}_{at} >= 0 && t{k}_{at} == o{k}_{at} * stride{k} && o{k}_{at} < out{k};",
            ]
    many, total = math.prod(kernel), "F(0)"
    for number, place in enumerate(product(*map(range, kernel))):
        inside = " && ".join([f"in{k}_{at}" for k, at in enumerate(place)])
        flat = f"((channel * {many} + {number}) * batch + sample)"
        for k, at in enumerate(place):
            flat = f"({flat} * out{k} + o{k}_{at})"
        lines += [f"const bool in_{number} = {inside};",
                  f"const {integer} at_{number} = in_{number} ? {flat} : 0;",
                  f"const F sum_{number} = {total} + (in_{number} ? F(x[at_{number}]) : F(0));"]  # fmt: skip
        total = f"sum_{number}"
    lines.append(f"y0 = {total};")
    source = "float64" if double else "float32"
    inputs = ", ".join([f"raw {source} x", *[f"{index} {each}" for each in ("batch", "channels", *names)]])
    return _kernel(inputs, f"{target} y0", tuple(lines), "add_columns", double)


def added_columns(columns: Any, shape: Any, dtype: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return an array of ``shape`` (batch, channels, \\*space) that sums ``columns`` at the places of windows (col2im).

    ``columns`` is a float32 or float64 array (channels, \\*kernel, batch, \\*out) in C order. The sums are stored as
    ``dtype``. The result is None if the windows have more than ``MOST_TERMS`` elements.
    """
    rank = len(stride)
    kernel, out = columns.shape[1 : 1 + rank], columns.shape[2 + rank :]
    if math.prod(kernel) > MOST_TERMS:
        return None
    made = sys.modules["cupy"].empty(shape, dtype)
    reach = [n + p + k * d for n, p, k, d in zip(shape[2:], padding, kernel, dilation, strict=True)]
    index = _index_type(columns.size, made.size, *reach)
    call = _adding_kernel(kernel, NAMES[numpy.dtype(dtype).char], index, columns.dtype == F64)
    call(columns, *shape[:2], *out, *stride, *dilation, *padding, *shape[2:], made)
    return made


@cache
def _maximum_kernel(kernel: tuple[int, ...], dtype: str, index: str, double: bool, indices: bool) -> Any:
    axes, integer = range(len(kernel)), _INTEGERS[index]
    names = [f"{name}{k}" for name in ("out", "stride", "dilation", "padding", "space") for k in axes]
    lines = _coordinates(integer, [("channel", "channels"), *[(f"o{k}", f"out{k}") for k in axes]], "sample")
    for k in axes:
        for at in range(kernel[k]):
            lines += [
                f"const {integer} a{k}_{at} = o{k} * stride{k} - padding{k} + {at} * dilation{k};",
                f"const bool in{k}_{at} = a{k}_{at} >= 0 && a{k}_{at} < space{k};",
            ]
    size = " * ".join(f"space{k}" for k in axes)
    lines.append(f"const {integer} plane = (sample * channels + channel) * {size};")
    best, where = "-INFINITE", "-1"
    for number, place in enumerate(product(*map(range, kernel))):
        inside = " && ".join([f"in{k}_{at}" for k, at in enumerate(place)])
        flat = ""
        for k, at in enumerate(place):
            flat = f"({flat} * space{k} + a{k}_{at})" if flat else f"a{k}_{at}"
        lines += [f"const bool in_{number} = {inside};",
                  f"const {integer} at_{number} = in_{number} ? {flat} : 0;",
                  f"const F v_{number} = in_{number} ? F(x[plane + at_{number}]) : -INFINITE;",
                  f"const bool more_{number} = in_{number} && ({where} < 0 || v_{number} > {best} || v_{number} != v_{number});",
                  f"const F best_{number} = more_{number} ? v_{number} : {best};",
                  f"const {integer} where_{number} = more_{number} ? at_{number} : {where};"]  # fmt: skip
        best, where = f"best_{number}", f"where_{number}"
    lines.append(f"y0 = {best};")
    outputs = f"{dtype} y0"
    if indices:
        lines.append(f"y1 = {where};")
        outputs += ", int64 y1"
    inputs = ", ".join([f"raw {dtype} x", *[f"{index} {each}" for each in ("channels", *names)]])
    return _kernel(inputs, outputs, tuple(lines), "maxima", double)


def maxima(x: Any, how: Sequence[Sequence[int]], out: Sequence[int], indices: bool) -> tuple[Any, Any] | None:
    """Return the maximum of each window over the last dimensions of ``x``, and its flat index in these dimensions.

    ``how`` holds a tuple (size, kernel, stride, padding, dilation) for each of these dimensions, and ``out`` the numbers
    of windows. Of equal elements the first is selected, of several nan the last. The result is None if there is no
    kernel for the dtype or for windows of this size. Every window must contain an element.
    """
    space, kernel, stride, padding, dilation = zip(*how, strict=True)
    kind, rank = computing_dtype(x.dtype), len(out)
    if kind is None or math.prod(kernel) > MOST_TERMS or not x.size:
        return None
    lead = x.shape[: x.ndim - rank]
    if len(lead) != 2:
        x = x.reshape(math.prod(lead[:-1]), *x.shape[len(lead) - 1 :]) if lead else x.reshape(1, 1, *x.shape)
    cupy, shape = sys.modules["cupy"], (*x.shape[:2], *out)
    reach = [o * s + k * d for o, s, k, d in zip(out, stride, kernel, dilation, strict=True)]
    index = _index_type(math.prod(shape), x.size, *reach)
    call = _maximum_kernel(kernel, NAMES[x.dtype.char], index, kind == F64, indices)
    values = cupy.empty(shape, x.dtype)
    places = [cupy.empty(shape, numpy.int64)] if indices else []
    call(x, x.shape[1], *out, *stride, *dilation, *padding, *space, values, *places)
    whole = (*lead, *out)
    if shape != whole:
        values, places = values.reshape(whole), [each.reshape(whole) for each in places]
    return values, places[0] if indices else None


@cache
def _scatter_kernel(source: str, target: str, index: str, once: bool) -> Any:
    place = "i / count * size + within(place, size)"
    line = f"y0[{place}] = F(x);" if once else f"atomicAdd(&y0[{place}], F(x));"
    inputs = f"{source} x, int64 place, {index} count, {index} size"
    return _kernel(inputs, f"raw {target} y0", (line,), "scatter", target == "float64")


def scattered(g: Any, indices: Any, planes: int, size: int, once: bool) -> Any:
    """Return zeros (planes, size) to which the elements of ``g`` are added at ``indices``, in float32 or float64.

    ``g`` and ``indices`` have one shape and ``planes`` planes; an index counts the elements of its plane. If ``once`` is
    true, no index occurs twice in a plane, and the result has the dtype of ``g``. The result is None for other dtypes
    than those of floating-point numbers.
    """
    kind = computing_dtype(g.dtype)
    if kind is None or indices.dtype != numpy.int64:
        return None
    made = sys.modules["cupy"].zeros((planes, size), g.dtype if once else kind)
    call = _scatter_kernel(NAMES[g.dtype.char], NAMES[made.dtype.char], _index_type(made.size, g.size), once)
    call(g, indices, g.size // planes, size, made)
    return made


# -- Linear maps along axes ------------------------------------------------------------------------------------------


@lru_cache(256)
def _tables(taps: Any, kind: Any, device: int) -> tuple[Any, Any]:
    """Return the indices and the weights of ``taps`` on a GPU; the indices of an output without inputs are -1."""
    cupy, index = sys.modules["cupy"], taps.index.astype(numpy.int32)
    if taps.empty is not None:
        index[taps.empty] = -1
    with cupy.cuda.Device(device):
        return cupy.asarray(index), None if taps.weight is None else cupy.asarray(taps.weight.astype(kind))


@cache
def _map_kernel(
    width: int, weighted: bool, some_empty: bool, source: str, target: str, index: str, double: bool
) -> Any:
    integer, total = _INTEGERS[index], ""
    lines = _coordinates(integer, [("o", "out"), ("a", "after")], "b")
    for k in range(width):
        lines.append(f"const {integer} at_{k} = index[o * {width} + {k}];")
        place = f"at_{k} < 0 ? 0 : at_{k}" if some_empty else f"at_{k}"
        term = f"F(x[(b * size + ({place})) * after + a])"
        term += f" * F(weight[o * {width} + {k}])" if weighted else ""
        lines.append(f"const F sum_{k} = {total}{term};")
        total = f"sum_{k} + "
    result = f"sum_{width - 1}"
    lines.append(f"y0 = at_0 < 0 ? F(0) : {result};" if some_empty else f"y0 = {result};")
    inputs = [f"raw {source} x", "raw int32 index", *([f"raw {'float64' if double else 'float32'} weight"] * weighted)]
    inputs += [f"{index} {each}" for each in ("out", "after", "size")]
    return _kernel(", ".join(inputs), f"{target} y0", tuple(lines), "map", double)


def mapped(x: Any, maps: Sequence[tuple[int, Any]]) -> Any:
    """Return ``x`` with linear maps along axes, by one launch for each.

    ``maps`` are pairs of an axis and a ``Taps`` of ``kernels/interpolation.py``, in the order in which they are applied.
    The result is None if there is no kernel for the dtype or for so many taps.
    """
    kind, dtype = computing_dtype(x.dtype), x.dtype
    if kind is None or not x.size or not maps or any(taps.index.shape[1] > MOST_TERMS for _, taps in maps):
        return None
    cupy = sys.modules["cupy"]
    for number, (axis, taps) in enumerate(maps, 1):
        shape, width = x.shape, taps.index.shape[1]
        before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        target = dtype if number == len(maps) else kind
        made = cupy.empty((*shape[:axis], taps.out, *shape[axis + 1 :]), target)
        given = [each for each in _tables(taps, kind, x.device.id) if each is not None]
        index = _index_type(x.size, made.size, taps.out * width)
        call = _map_kernel(
            width, len(given) > 1, taps.empty is not None, NAMES[x.dtype.char], NAMES[target.char], index, kind == F64
        )
        call(x, *given, taps.out, after, taps.size, made.reshape(before, taps.out, after))
        x = made
    return x


# -- Convolutions ----------------------------------------------------------------------------------------------------


class _Sizes:
    """Sizes of a convolution: ``plan`` is that of ``kernels/convolution.py``."""

    def __init__(self, plan: Any, dtype: Any) -> None:
        self.plan, self.dtype = plan, dtype
        self.window = math.prod(plan.kernel) * plan.channels // plan.groups
        self.places = math.prod(plan.out)
        sample = self.window * plan.groups * self.places * dtype.itemsize
        self.step = max(1, min(plan.batch, COLUMN_BYTES // sample))

    def parts(self) -> list[slice]:
        """Return the parts of the batch whose columns are computed at once."""
        return [slice(first, min(first + self.step, self.plan.batch)) for first in range(0, self.plan.batch, self.step)]

    def columns(self, x: Any) -> Any:
        """Return the windows of the samples ``x`` as matrices (groups, elements of a window, places of all samples)."""
        plan = self.plan
        made = sys.modules["cupy"].empty((plan.channels, *plan.kernel, len(x), *plan.out), self.dtype)
        write_columns(x, made, plan.kernel, plan.stride, plan.padding, plan.dilation, plan.out)
        return made.reshape(plan.groups, self.window, -1)

    def outputs(self, y: Any) -> Any:
        """Return the gradient ``y`` of the output as matrices (groups, channels of a group, places of all samples)."""
        plan = self.plan
        y = y.astype(self.dtype, copy=False).swapaxes(0, 1)
        return sys.modules["cupy"].ascontiguousarray(y).reshape(plan.groups, plan.single, -1)


def _multiplied(x: Any, y: Any) -> Any:
    """Return the products of the matrices ``x`` and ``y`` (groups, rows, columns)."""
    # One product is computed without a copy of a transposed matrix.
    return x[0].dot(y[0])[None] if len(x) == 1 else sys.modules["cupy"].matmul(x, y)


def convolved(plan: Any, x: Any, w: Any, shape: Any, bias: Any) -> Any:
    """Return the convolution of ``x`` with ``w``, plus ``bias`` if that is not None; None for integers and complex numbers.

    The result has the dtype of ``x``.
    """
    kind = computing_dtype(x.dtype)
    if kind is None:
        return None
    cupy, sizes = sys.modules["cupy"], _Sizes(plan, kind)
    matrix = w.astype(kind, copy=False).reshape(plan.groups, plan.single, -1)
    if bias is not None:
        bias = bias.astype(kind, copy=False).reshape(-1, *(1,) * len(plan.out))
    parts = sizes.parts()
    y = cupy.empty(shape, x.dtype)
    for part in parts:
        found = _multiplied(matrix, sizes.columns(x[part]))
        found = found.reshape(plan.outputs, -1, *plan.out).swapaxes(0, 1)
        target = y if len(parts) == 1 else y[part]
        if bias is not None and x.dtype == kind:
            cupy.add(found, bias, out=target)
        else:
            target[...] = found if bias is None else found + bias
    return y


def input_gradient(plan: Any, y: Any, w: Any, shape: Any) -> Any:
    """Return the gradient of the input of a convolution; None for dtypes and windows for which there is no kernel."""
    kind = computing_dtype(y.dtype)
    if kind is None or math.prod(plan.kernel) > MOST_TERMS:
        return None
    cupy, sizes = sys.modules["cupy"], _Sizes(plan, kind)
    matrix = w.astype(kind, copy=False).reshape(plan.groups, plan.single, -1).swapaxes(1, 2)
    found = []
    for part in sizes.parts():
        columns = _multiplied(matrix, sizes.outputs(y[part])).reshape(plan.channels, *plan.kernel, -1, *plan.out)
        size = columns.shape[1 + len(plan.kernel)], *shape[1:]
        found.append(added_columns(columns, size, y.dtype, plan.stride, plan.padding, plan.dilation))
    return found[0] if len(found) == 1 else cupy.concatenate(found)


def weight_gradient(plan: Any, y: Any, x: Any, shape: Any) -> Any:
    """Return the gradient of the weight of a convolution; None for integers and complex numbers."""
    kind = computing_dtype(x.dtype)
    if kind is None:
        return None
    sizes = _Sizes(plan, kind)
    total: Any = None
    for part in sizes.parts():
        found = _multiplied(sizes.outputs(y[part]), sizes.columns(x[part]).swapaxes(1, 2))
        total = found if total is None else total + found
    return total.reshape(shape).astype(y.dtype, copy=False)


__all__ = [
    "added_columns", "convolved", "input_gradient", "mapped", "maxima", "scattered", "weight_gradient", "write_columns",
]  # fmt: skip
