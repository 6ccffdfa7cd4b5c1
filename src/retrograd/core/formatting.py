"""The printed text of a tensor, identical to PyTorch's.

All shown elements have the same format (integer, fixed-point or scientific) and the width of the widest finite element.
Rows are wrapped at the line width; dtype, device and gradient function follow the elements. The functions work on NumPy
arrays.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from .devices import is_meta
from .dtypes import native

if TYPE_CHECKING:
    from .typing import Array


class PrintOptions:
    """Options for printing tensors: the settings that :func:`set_printoptions` changes."""

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
    """Set the options of printing tensors.

    Args:
        precision: Number of digits after the decimal point (by default 4).
        threshold: Number of elements above which a tensor is summarised (by default 1000).
        edgeitems: Number of elements that a summary shows at each end of an axis (by default 3).
        linewidth: Number of characters per line (by default 80).
        profile: Values for the options above: ``"default"``, ``"short"`` or ``"full"``. Options that are passed override it.
        sci_mode: True for scientific notation, False for none, None to choose by the range of the elements.

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


def get_printoptions() -> dict[str, Any]:  # Note [Any in public signatures]
    """Return the options of printing tensors as a dictionary."""
    return dict(vars(OPTIONS))


@contextlib.contextmanager
def printoptions(**changes: Any) -> Iterator[None]:  # Note [Any in public signatures]
    """Return a context manager in which tensors are printed with the options ``changes``.

    The arguments are those of :func:`set_printoptions`. As in that function, ``sci_mode`` is reset to None unless it is
    passed.

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
    """Function object that converts an element of one tensor to text, for printing.

    The texts of all elements have the same notation and width, which are chosen for the array ``values``.
    """

    def __init__(self, values: Array) -> None:
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(each)) for each in values.ravel().tolist()), default=1)
            return
        finite = values[numpy.isfinite(values) & (values != 0)].astype(numpy.float64)
        if finite.size:
            self._choose(finite)

    def _choose(self, finite: Array) -> None:
        """Choose the notation and the width for ``finite``, the array of the finite, nonzero elements."""
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

    def __call__(self, value: float) -> str:
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
    """Format for the elements of a complex tensor, with one format for real parts and one for imaginary parts."""

    def __init__(self, values: Array) -> None:
        self.real, self.imag = _Format(values.real), _Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _edges(array: Array) -> Array:
    """Return the elements of ``array`` that are printed if the text is summarised, as a new array.

    These are the first and the last elements along each axis. Only they are copied.
    """
    if array.ndim == 0:
        return array
    edge = OPTIONS.edgeitems
    indices = [[*range(edge), *range(size - edge, size)] if size > 2 * edge else range(size) for size in array.shape]
    return array[numpy.ix_(*indices)]


def _row(array: Array, indent: int, summarise: bool, form: _Format | _ComplexFormat) -> str:
    """Return the text of the 1-d array ``array`` in brackets, wrapped at the line width.

    Lines after the first are indented by ``indent`` characters. If ``summarise`` is true, only the elements at the two
    ends are shown. ``form`` converts an element to text.
    """
    per_line = max(1, math.floor((OPTIONS.linewidth - indent) / (form.width + 2)))
    edge = OPTIONS.edgeitems
    if summarise and not edge:
        shown = ["..."]
    elif summarise and array.shape[0] > 2 * edge:
        shown = [*map(form, native(array[:edge]).tolist()), " ...", *map(form, native(array[-edge:]).tolist())]
    else:
        shown = list(map(form, native(array).tolist()))
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: Array, indent: int, summarise: bool, form: _Format | _ComplexFormat) -> str:
    """Return the text of ``array`` in nested brackets, indented by ``indent`` characters.

    If ``summarise`` is true, only the elements at the two ends of each axis are shown. ``form`` converts an element to
    text.
    """
    if array.ndim == 0:
        return str(form(native(array).item()))
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


def elements_text(array: Array, indent: int) -> str:
    """Return the text of the elements of ``array``, summarised if it has more elements than the option ``threshold``.

    Lines after the first are indented by ``indent`` characters.
    """
    summarise = array.size > OPTIONS.threshold
    shown = native(_edges(array) if summarise else array)
    form = _ComplexFormat(shown) if shown.dtype.kind == "c" else _Format(shown)
    return _nested(array, indent, summarise, form)


def tensor_text(
    array: Array,
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
    """Return the text of a tensor.

    Args:
        array: The elements, as a NumPy array, or a meta array, which has none.
        dtype: Name of the dtype as PyTorch prints it (``torch.float32``); shown unless it is one of the defaults.
        default_dtype: Name of the default floating dtype.
        default_complex: Name of the default complex dtype.
        device: Name of the device, or None for the CPU.
        requires_grad: Whether to show ``requires_grad=True``, if there is no ``grad_fn``.
        grad_fn: Name of the tensor's graph node, or None.
        prefix: Text before the elements.
        contents: Text that is shown instead of the elements, or None to show the elements.
        more: Further texts after the elements.
    """
    indent = len(prefix)
    suffixes = [] if device is None else [f"device='{device}'"]
    if is_meta(array):
        numbers = "..." if contents is None else contents
        suffixes.append(f"size={tuple(array.shape)}")
        if dtype != default_dtype:
            suffixes.append(f"dtype={dtype}")
    elif array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype != default_dtype:
            suffixes.append(f"dtype={dtype}")
        numbers = "[]" if contents is None else contents
    else:
        if not OPTIONS.edgeitems:  # a summary without elements shows the size
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype not in (default_dtype, default_complex, "torch.int64", "torch.bool"):
            suffixes.append(f"dtype={dtype}")
        numbers = elements_text(array, indent) if contents is None else contents
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return with_suffixes(prefix + numbers, [*suffixes, *more], indent)


def with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Return ``text`` followed by ``suffixes`` and the closing parenthesis, wrapped at the line width.

    Further lines are indented by ``indent`` characters. If ``new_line`` is true, the first suffix begins one.
    """
    used = len(text) - text.rfind("\n") + 1
    parts = [text]
    for each in suffixes:
        if new_line or used + len(each) + 2 > OPTIONS.linewidth:
            parts.append(",\n" + " " * indent + each)
            used, new_line = indent + len(each), False
        else:
            parts.append(", " + each)
            used += len(each) + 2
    return "".join(parts) + ")"
