"""The printed text of a tensor, PyTorch's to the letter: arrays in, text out.

How it goes: one format is chosen for all numbers shown (whole, fixed or scientific; the width of the widest finite one),
rows are broken at the line width, and what a reader should know besides (dtype, graph) follows the numbers.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy


class PrintOptions:
    """How tensors are printed: the state that :func:`set_printoptions` changes."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth: float = 80
        self.sci_mode: bool | None = None


OPTIONS = PrintOptions()
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the point (4).
        threshold: tensors of more elements are summarised (1000).
        edgeitems: how many elements a summary shows at each end of a dimension (3).
        linewidth: characters per line (80).
        profile: ``"default"``, ``"short"`` or ``"full"``, overridden by the other arguments.
        sci_mode: scientific notation always (True), never (False), or when the numbers ask for it (None).

    >>> import retrograd as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile="default")
    """
    if profile is not None and profile in _PROFILES:
        OPTIONS.precision, OPTIONS.threshold, OPTIONS.edgeitems, OPTIONS.linewidth = _PROFILES[profile]
    if precision is not None:
        OPTIONS.precision = precision
    if threshold is not None:
        OPTIONS.threshold = threshold
    if edgeitems is not None:
        OPTIONS.edgeitems = edgeitems
    if linewidth is not None:
        OPTIONS.linewidth = linewidth
    OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options as a dictionary."""
    return dict(vars(OPTIONS))


@contextlib.contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Print with other options for a block; takes what :func:`set_printoptions` takes.

    As there, ``sci_mode`` is chosen anew (None) unless it is given.

    >>> import retrograd as torch
    >>> with torch._tensor_str.printoptions(profile="short"):
    ...     print(torch.tensor([1.12345]))
    tensor([1.12])
    """
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        vars(OPTIONS).update(before)


class _Format:
    """One format for all the numbers of a tensor."""

    def __init__(self, values: Any) -> None:
        # bfloat16 is of ml_dtypes, and of kind "V" to NumPy
        self.floating = values.dtype.kind in "fV"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(each)) for each in values.ravel().tolist()), default=1)
            return
        finite = values[numpy.isfinite(values) & (values != 0)].astype(numpy.float64)
        if finite.size:
            self._choose(finite)

    def _choose(self, finite: Any) -> None:
        sizes = numpy.abs(finite)
        small, large = float(sizes.min()), float(sizes.max())
        self.whole = bool(numpy.all(finite == numpy.ceil(finite)))
        with numpy.errstate(over="ignore"):
            self.scientific = bool(numpy.float64(large) / small > 1000.0) or large > 1.0e8
        if not self.whole and small < 1.0e-4:
            self.scientific = True
        if OPTIONS.sci_mode is not None:
            self.scientific = OPTIONS.sci_mode
        if self.scientific:
            self.width = max(len(f"{each:.{OPTIONS.precision}e}") for each in finite.tolist())
        elif self.whole:
            self.width = max(len(f"{each:.0f}") for each in finite.tolist()) + 1
        else:
            self.width = max(len(f"{each:.{OPTIONS.precision}f}") for each in finite.tolist())
        self.width = max(self.width, 1)

    def __call__(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:.{OPTIONS.precision}e}"
        elif self.whole:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{OPTIONS.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """One format for the real parts, one for the imaginary parts."""

    def __init__(self, values: Any) -> None:
        self.real, self.imag = _Format(values.real), _Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _edges(array: Any) -> Any:
    """The elements that a summary shows, picked in one step: a large array is not copied, whatever its strides."""
    if array.ndim == 0:
        return array
    edge = OPTIONS.edgeitems
    picked = [[*range(edge), *range(size - edge, size)] if size > 2 * edge else range(size) for size in array.shape]
    return array[numpy.ix_(*picked)]


def _row(array: Any, indent: int, summarise: bool, form: Any) -> str:
    per_line = max(1, math.floor((OPTIONS.linewidth - indent) / (form.width + 2)))
    edge = OPTIONS.edgeitems
    if summarise and not edge:
        shown = ["..."]
    elif summarise and array.shape[0] > 2 * edge:
        shown = [*map(form, array[:edge].tolist()), " ...", *map(form, array[-edge:].tolist())]
    else:
        shown = list(map(form, array.tolist()))
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: Any, indent: int, summarise: bool, form: Any) -> str:
    if array.ndim == 0:
        return str(form(array.item()))
    if array.ndim == 1:
        return _row(array, indent, summarise, form)
    edge = OPTIONS.edgeitems
    if summarise and array.shape[0] > 2 * edge:
        first = [_nested(each, indent + 1, summarise, form) for each in array[:edge]]
        last = [_nested(each, indent + 1, summarise, form) for each in array[array.shape[0] - edge :]]
        rows = [*first, "...", *last]
    else:
        rows = [_nested(each, indent + 1, summarise, form) for each in array]
    return "[" + (",\n" + "\n" * (array.ndim - 2) + " " * (indent + 1)).join(rows) + "]"


def _numbers(array: Any, indent: int) -> str:
    """The numbers alone, in brackets."""
    summarise = array.size > OPTIONS.threshold
    shown = _edges(array) if summarise else array
    form = _ComplexFormat(shown) if array.dtype.kind == "c" else _Format(shown)
    return _nested(array, indent, summarise, form)


def tensor_text(
    array: Any,
    *,
    dtype: str,
    default_dtype: str,
    default_complex: str,
    device: str | None = None,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    prefix: str = "tensor(",
    contents: str | None = None,
    more: Sequence[str] = (),
) -> str:
    """The text of a tensor with the numbers of ``array`` (a NumPy array).

    ``dtype`` and the defaults are named as torch prints them (``torch.float32``); ``device`` is None for the CPU;
    ``grad_fn`` is the name of the node; ``contents`` stands where the numbers would; ``more`` is said behind all else.
    """
    indent = len(prefix)
    suffixes = [] if device is None else [f"device='{device}'"]
    if array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype != default_dtype:
            suffixes.append(f"dtype={dtype}")
        numbers = "[]" if contents is None else contents
    else:
        if not OPTIONS.edgeitems:  # a summary may show no number at all: the size is then said
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype not in (default_dtype, default_complex, "torch.int64", "torch.bool"):
            suffixes.append(f"dtype={dtype}")
        numbers = _numbers(array, indent) if contents is None else contents
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + numbers, [*suffixes, *more], indent)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    used = len(text) - text.rfind("\n") + 1
    parts = [text]
    for each in suffixes:
        if used + len(each) + 2 > OPTIONS.linewidth:
            parts.append(",\n" + " " * indent + each)
            used = indent + len(each)
        else:
            parts.append(", " + each)
            used += len(each) + 2
    return "".join(parts) + ")"
