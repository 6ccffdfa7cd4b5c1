"""Summaries of arrays for a page: a short text, statistics, the cells of a heat map, and a histogram.

A summary has a bounded size, whatever the size of the array. Small arrays are copied when they are taken and summarised
when the page is written, because a recorded program may run many backward passes and write the page of the last one.
"""

from __future__ import annotations

import base64
import math
from typing import Any, ClassVar

import numpy

from ...core.devices import is_meta
from ...core.dtypes import dtype_of, native
from ...core.tensor import Tensor

ROWS = COLUMNS = 32  # the largest heat map of a matrix
LENGTH = 64  # the largest heat map of a vector
HISTOGRAM = 10_000  # number of elements from which on a summary has a histogram
BINS = 40
COPIED = 1 << 16  # arrays up to this number of elements are copied, and summarised later
HELD = 1 << 26  # bytes of all copies; beyond it, arrays are summarised when they are taken
SMALL = 1024  # arrays up to this number of elements keep their copies
SAMPLED = 1 << 15  # number of elements of which a histogram counts about so many
LINES = 6  # lines of the text
ZERO, NAN = 127, 255  # codes of a cell


class Value:
    """Value of an array at the time when it was taken: a copy of a small array, and the summary of a larger one."""

    __slots__ = ("_summary", "array")
    held: ClassVar[int] = 0  # bytes of the copies of all values

    def __init__(self, array: Any, summary: dict[str, Any] | None = None) -> None:
        self.array: Any = array
        self._summary = summary
        if array is not None:
            Value.held += array.nbytes

    def __del__(self) -> None:
        if self.array is not None:
            Value.held -= self.array.nbytes

    @property
    def summary(self) -> dict[str, Any]:
        """Dictionary for the page with the keys ``shape``, ``dtype``, ``text``, ``min``, ``cells`` and others."""
        if self._summary is None:
            self._summary = summarize(self.array)
            if self.array.size > SMALL:
                Value.held -= self.array.nbytes
                self.array = None
        return self._summary

    def shorten(self) -> None:
        """Summarise a small array by numbers only, without text and heat map, as in a page of very many values."""
        if self._summary is None and self.array.size <= SMALL:
            self._summary = _brief(self.array)

    @property
    def size(self) -> int:
        """Number of elements; 0 if the elements are not known."""
        return 0 if "nan" not in self.summary else math.prod(self.summary["shape"])

    @property
    def is_zero(self) -> bool:
        """Whether the array has elements and all are 0."""
        return self.size > 0 and self.summary["zeros"] == self.size

    @property
    def is_finite(self) -> bool:
        """Whether no element is NaN or infinite; True if the elements are not known."""
        return not self.summary.get("nan") and not self.summary.get("inf")


def take(value: Any) -> Value | None:
    """Return the present value of ``value``, an array, a Tensor or a number, or None if it is None."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        if hasattr(value._array, "not_an_array"):
            return Value(
                None, _without_elements(value, f"a tensor of the layout {value.layout}, whose elements are not shown")
            )
        value = value._array
    if hasattr(value, "not_an_array") or not (
        hasattr(value, "dtype") or isinstance(value, (bool, int, float, complex))
    ):
        return Value(None, {"shape": [], "dtype": type(value).__name__, "text": f"a {type(value).__name__}"})
    if is_meta(value):
        return Value(None, _without_elements(value, "a meta tensor, which has no elements"))
    array = _on_cpu(value)
    if array.size <= SMALL or (array.size <= COPIED and Value.held + array.nbytes <= HELD):
        return Value(array.copy())
    return Value(None, summarize(array))


def _on_cpu(value: Any) -> Any:
    """Return ``value``, an array on any device or a number, as a NumPy array; the dtype may not be one of NumPy's."""
    return value.get() if hasattr(value, "get") and not isinstance(value, numpy.generic) else numpy.asarray(value)


def _without_elements(value: Any, what: str) -> dict[str, Any]:
    dtype = value.dtype if isinstance(value, Tensor) else dtype_of(value.dtype)
    return {"shape": list(value.shape), "dtype": str(dtype).removeprefix("torch."), "text": what}


def number(value: Any) -> Any:
    """Return ``value``, a real number, for JSON: an int, a float of six significant digits, or a word such as ``nan``."""
    if isinstance(value, (bool, numpy.bool_)):
        return int(value)
    if isinstance(value, (int, numpy.integer)):
        return int(value)
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return int(value) if value == int(value) and abs(value) < 1e6 else float(f"{value:.6g}")


def summarize(array: Any) -> dict[str, Any]:
    """Return the summary of ``array``, a NumPy array of any dtype; see the module's docstring.

    The heat map of a complex array shows absolute values. NaN and infinite elements are counted, and do not enter
    ``min``, ``max`` and ``mean``.
    """
    found: dict[str, Any] = {"shape": list(array.shape), "dtype": dtype_of(array.dtype).name, "text": short_text(array)}
    array = native(array)
    with numpy.errstate(all="ignore"):
        shown = numpy.abs(array) if array.dtype.kind == "c" else array
        shown = shown.astype(numpy.float64 if shown.dtype.itemsize > 4 else numpy.float32, copy=False)
        kept, nan = shown, 0
        if not shown.size or not numpy.isfinite(shown.min()) or not numpy.isfinite(shown.max()):
            kept, nan = shown[numpy.isfinite(shown)], int(numpy.count_nonzero(numpy.isnan(shown)))
        count = kept.size
        found["nan"], found["inf"] = nan, array.size - count - nan
        found["zeros"] = int(array.size - numpy.count_nonzero(array))
        if array.dtype.kind == "c":
            found["of"] = "absolute values"
        if count:
            found["min"], found["max"] = number(kept.min()), number(kept.max())
            found["mean"] = number(kept.mean(dtype=numpy.float64))
        if array.size == 1 and array.dtype.kind != "c" and not count:
            found["mean"] = number(shown.reshape(-1)[0])
        if array.size > 1:
            found["cells"] = _cells(shown)
        if array.size >= HISTOGRAM and count and found["min"] != found["max"]:
            step = -(-kept.size // SAMPLED)
            limits = float(kept.min()), float(kept.max())
            counts, _ = numpy.histogram(kept.reshape(-1)[::step], bins=BINS, range=limits)
            found["histogram"] = {"low": number(limits[0]), "high": number(limits[1]), "counts": counts.tolist()}
            if step > 1:
                found["histogram"]["sampled"] = True
    return found


def _brief(array: Any) -> dict[str, Any]:
    """Return a summary of ``array`` with numbers only; it takes a tenth of the time of :func:`summarize`."""
    if array.dtype.kind not in "biuf" or not array.size:
        found = summarize(array)
        found.pop("cells", None)
        return found
    found = {"shape": list(array.shape), "dtype": array.dtype.name}
    low, high = array.min().item(), array.max().item()
    if not math.isfinite(high - low):  # NaN or infinity
        found = summarize(array)
        found.pop("cells", None)
        return found
    found["text"] = f"tensor({high:.6g})" if not array.ndim else ""
    found.update(nan=0, inf=0, zeros=int(array.size - numpy.count_nonzero(array)), min=number(low), max=number(high))
    found["mean"] = number(array.mean(dtype=numpy.float64))
    if not found["text"]:
        found["text"] = f"{found['min']} … {found['max']}"
    return found


def _cells(array: Any) -> dict[str, Any]:
    """Return the cells of a heat map of ``array``: for a large array, the means of blocks of elements."""
    matrix = array.reshape(1, -1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])
    rows, columns = (min(ROWS, matrix.shape[0]), COLUMNS) if matrix.shape[0] > 1 else (1, LENGTH)
    columns = min(columns, matrix.shape[1])
    sampled = (rows, columns) != matrix.shape
    if sampled:
        matrix = _block_means(_block_means(matrix, rows, 0), columns, 1)
    flat = matrix.astype(numpy.float64).reshape(-1)
    finite = numpy.isfinite(flat)
    scale = float(numpy.abs(flat[finite]).max()) if finite.any() else 0.0
    # Divided first by the scale: 127 * x could overflow.
    codes = numpy.where(finite, numpy.rint(ZERO + 127 * (flat / scale if scale else flat * 0)), ZERO)
    codes = numpy.where(numpy.isnan(flat), NAN, codes).astype(numpy.uint8)
    found: dict[str, Any] = {
        "rows": rows, "columns": columns, "data": base64.b64encode(codes.tobytes()).decode(), "scale": number(scale),
    }  # fmt: skip
    infinite = numpy.flatnonzero(numpy.isinf(flat))
    if infinite.size:
        found["inf"] = [[int(each), 1 if flat[each] > 0 else -1] for each in infinite]
    if sampled:
        found["sampled"] = True
    return found


def _block_means(matrix: Any, blocks: int, axis: int) -> Any:
    """Return ``matrix`` with the items along ``axis`` replaced by the means of ``blocks`` ranges of almost equal length."""
    size = matrix.shape[axis]
    if size <= blocks:
        return matrix
    starts = numpy.arange(blocks) * size // blocks
    lengths = numpy.diff(numpy.append(starts, size))
    sums = numpy.add.reduceat(matrix, starts, axis=axis, dtype=numpy.float64)
    return sums / (lengths if axis == 1 else lengths[:, None])


def short_text(array: Any) -> str:
    """Return a text such as ``tensor([0.5, 1. , ..., 3. ])`` of at most six lines.

    Of an array with more than two dimensions it shows the first matrix, after its index: ``[0, 0]: tensor([[…]])``.

    >>> import numpy
    >>> short_text(numpy.arange(3))
    'tensor([0, 1, 2])'
    """
    name = dtype_of(array.dtype).name
    suffix = "" if name in ("float32", "int64", "bool") else f", dtype={name}"
    array = native(array)
    if array.ndim == 0:
        value = array[()]
        shown = f"{value:.6g}" if array.dtype.kind in "fc" else str(value)
        return f"tensor({shown}{suffix})"
    if not array.size:
        return f"tensor([], size={list(array.shape)}{suffix})"
    options: Any = {"precision": 4, "threshold": 16, "edgeitems": 2, "max_line_width": 76, "separator": ", "}
    first = ""
    if array.ndim > 2 and array.size > options["threshold"]:
        first = f"{[0] * (array.ndim - 2)}: "
        array = array[(0,) * (array.ndim - 2)]
    text = numpy.array2string(array, prefix="tensor(", **options)
    lines = [each for each in text.split("\n") if each]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], " " * 7 + "…"]
    return f"{first}tensor(" + "\n".join(lines) + f"{suffix})"


__all__ = ["Value", "number", "short_text", "summarize", "take"]
