"""Operations on the dtypes of ``dtypes.STORED``: five floating dtypes of 8 bits, and complex32.

PyTorch stores and converts such tensors, moves their elements, and supports few operations besides. What it supports is
recorded in ``stored_dtypes.txt``. These operations compute in float32 or complex64, and the results are rounded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from ..core import dtypes
from ..core.devices import is_meta
from ..runtime import user_frame

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType
    from .op import Op
    from .typing import Arrays, KernelResult

_COMPLEX64 = numpy.dtype(numpy.complex64)
_FLOAT32 = numpy.dtype(numpy.float32)
#: Operations whose kernels convert or copy arrays of any dtype.
_UNCHANGED = frozenset(
    {"to_dtype", "copy_block", "fill_block", "zero_block", "clone_block", "view_dtype_block", "to_device"}
)


@cache
def _table() -> dict[tuple[str, str], str]:
    """Return what PyTorch supports: the entry for the name of an operation and the name of a dtype.

    An entry is ``+`` for a supported operation, or the name of the kernel in PyTorch's error.
    """
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    table = {}
    for name, floating, of_complex, *others in (line.split() for line in lines if line and not line.startswith("#")):
        table.update({(name, each.name): floating for each in dtypes.FLOAT8})
        table[name, "complex32"] = of_complex
        table.update({(name, kind): entry for kind, entry in (each.split("=") for each in others)})
    return table


def check_supported(op: Op, kind: ArrayDType) -> None:
    """Raise NotImplementedError if PyTorch's ``op`` does not support the NumPy dtype ``kind``."""
    if op.name in _UNCHANGED:
        return
    entry = _table().get((op.name, dtypes.dtype_of(kind).name), f"{op.shown}_cpu")
    if entry != "+":
        raise dtypes.unsupported(entry, kind)


#: The kernels in PyTorch's errors for functions that create tensors, with the dtypes that they support of ``STORED``.
_CREATION = {
    "arange": ("arange_cpu", ""), "range": ("range_cpu", ""), "linspace": ("linspace_cpu", ""),
    "logspace": ("logspace_cpu", ""), "eye": ("eye", "float8"), "rand": ("check_uniform_bounds", "complex32"),
    "rand_like": ("check_uniform_bounds", "complex32"), "randn": ("normal_kernel_cpu", "complex32"),
    "randn_like": ("normal_kernel_cpu", "complex32"), "normal": ("normal_kernel_cpu", "complex32"),
    "randint": ("random_from_to", ""), "randint_like": ("random_from_to", ""), "randperm": ("randperm", ""),
}  # fmt: skip


def check_created(function: str, kind: dtypes.dtype) -> None:
    """Raise NotImplementedError if PyTorch's ``function`` does not create tensors of ``kind``, a stored dtype.

    Issues PyTorch's warning, once, if ``kind`` is complex32.
    """
    kernel, supported = _CREATION.get(function, ("", kind.name))
    if not supported or not kind.name.startswith(supported):
        raise dtypes.unsupported(kernel, kind.numpy)
    if kind is dtypes.complex32:
        warn_of_complex32()


def warn_of_complex32() -> None:
    """Warn that complex32 is experimental: once, unless :func:`torch.set_warn_always` is set."""
    if not _warned or user_frame.warn_always:
        _warned.append(True)
        user_frame.warn("ComplexHalf support is experimental and many operators don't support it yet.")


_warned: list[bool] = []


def widened(op: Op, arrays: Arrays) -> Arrays:
    """Return ``arrays`` with those of stored dtypes converted to the dtypes in which the kernel of ``op`` computes."""
    return arrays if op.name in _UNCHANGED else tuple([_wide(each) for each in arrays])


def _wide(array: Array) -> Array:
    return dtypes.native(array) if getattr(array, "dtype", None) in dtypes.STORED_NUMPY else array


def narrowed(op: Op, result: KernelResult, kind: ArrayDType) -> KernelResult:
    """Return ``result``, an array or a tuple of arrays, in the dtypes that correspond to operands of the dtype ``kind``.

    Floating results of complex32 operands are float16. Results of other dtypes are unchanged.
    """
    if op.name in _UNCHANGED:
        return result
    if isinstance(result, tuple):
        return tuple(narrowed(op, each, kind) for each in result)
    is_complex = kind == dtypes.complex32.numpy
    meta = is_meta(result)
    array: Array = result if meta else numpy.asarray(result)
    if array.dtype == _COMPLEX64 and is_complex:
        warn_of_complex32()
        return array.astype(kind)
    if array.dtype == _FLOAT32:
        real = dtypes.float16.numpy if is_complex else kind
        return array.astype(real) if meta else dtypes.cast(array, real)
    return array
