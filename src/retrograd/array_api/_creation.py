"""Creation functions of the array API standard."""

from __future__ import annotations

from typing import Any, Literal

import numpy

import retrograd as torch
from retrograd import Tensor

from ._dtypes import ANY, Device, Dtype, check

Shape = int | tuple[int, ...]


def asarray(
    obj: Any, /, *, dtype: Dtype | None = None, device: Device | None = None, copy: bool | None = None
) -> Tensor:
    """Return ``obj`` as a tensor: a tensor, a Python scalar, a nested sequence, a NumPy array.

    Unlike ``torch.asarray``, the result is connected to the graph of a tensor ``obj``. ``copy=False`` raises ValueError
    if a copy is needed.
    """
    if not isinstance(obj, Tensor):
        # Memory that a tensor cannot share: PyTorch warns of the first and refuses the second.
        if (
            copy is None
            and isinstance(obj, numpy.ndarray)
            and (not obj.flags.writeable or min(obj.strides, default=0) < 0)
        ):
            obj = obj.copy()
        return torch.asarray(obj, dtype=dtype, device=device, copy=copy)
    converted = obj.to(obj.device if device is None else device, obj.dtype if dtype is None else dtype)
    if converted is obj:
        return obj.clone() if copy else obj
    if copy is False:
        raise ValueError("asarray() with copy=False cannot convert a tensor to another dtype or device")
    return converted


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Tensor:
    """Return evenly spaced numbers over the interval [start, stop), at distances ``step``."""
    if stop is None:
        start, stop = 0, start
    if step != 0 and (stop - start) * step <= 0:  # PyTorch raises an error for some of these empty ranges
        integers = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
        return torch.empty(0, dtype=dtype or (torch.int64 if integers else None), device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return an uninitialized tensor."""
    return torch.empty(shape, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of zeros."""
    return torch.zeros(shape, dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of ones."""
    return torch.ones(shape, dtype=dtype, device=device)


def full(shape: Shape, fill_value: complex, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of elements that equal ``fill_value``."""
    return torch.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return an uninitialized tensor of the shape of ``x``."""
    check("empty_like", ANY, x)
    return torch.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of zeros, in the shape of ``x``."""
    check("zeros_like", ANY, x)
    return torch.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of ones, in the shape of ``x``."""
    check("ones_like", ANY, x)
    return torch.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of elements that equal ``fill_value``, in the shape of ``x``."""
    check("full_like", ANY, x)
    return torch.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype | None = None, device: Device | None = None
) -> Tensor:
    """Return a matrix of zeros with ones on the ``k``-th diagonal."""
    matrix = torch.zeros(n_rows, n_rows if n_cols is None else n_cols, dtype=dtype, device=device)
    if -matrix.shape[0] <= k <= matrix.shape[1]:
        matrix.diagonal(k).fill_(1)
    return matrix


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Return ``num`` evenly spaced numbers over the interval [start, stop], or [start, stop) if ``endpoint`` is false."""
    return torch.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return coordinate matrices of one-dimensional coordinates."""
    check("meshgrid", ANY, *arrays)
    return torch.meshgrid(*arrays, indexing=indexing) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the lower triangle of matrices; the elements above the ``k``-th diagonal are zero."""
    check("tril", ANY, x)
    return torch.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the upper triangle of matrices; the elements below the ``k``-th diagonal are zero."""
    check("triu", ANY, x)
    return torch.triu(x, k)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of ``x``, an object with the method ``__dlpack__``."""
    return torch.from_dlpack(x, device=device, copy=copy)
