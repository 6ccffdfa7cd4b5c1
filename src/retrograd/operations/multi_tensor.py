"""Functions that modify several tensors on a GPU by few launches, where in-place operations take one for each tensor.

They return None or false for tensors for which an in-place operation does more than modify the array: tensors that are
in a graph, views, subclasses, and tensors of several dtypes or on several GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from ..compat.lazy_imports import load_part
from ..core import devices
from ..core.saved_tensor_hooks import before_modification
from ..core.tensor import Tensor, wrap
from ..core.torch_function import HANDLERS
from ..core.views import bump_version, check_in_place


def arrays_on_gpu(tensors: Sequence[Tensor]) -> list[Any] | None:
    """Return the arrays of ``tensors`` if they are on the only GPU, of one dtype, and in no graph; else None."""
    if tensors[0]._array.__class__ is numpy.ndarray or devices.several_gpus or not devices.on_gpu(tensors[0]._array):
        return None
    if HANDLERS or any(
        each.__class__ is not Tensor or each._grad_edge is not None or each._view is not None for each in tensors
    ):
        return None
    arrays: list[Any] = [each._array for each in tensors]
    return arrays if load_part("kernels.cuda.many").same_floats(arrays) else None


def _modified(tensors: Sequence[Tensor], modify: Callable[[], Any]) -> Any:
    """Return ``modify()``, which modifies the arrays of ``tensors``, and count the modification."""
    for each in tensors:
        check_in_place(each, False)
    found = modify()
    for each in tensors:
        bump_version(each)
    return found


def _without_gaps(arrays: list[Any]) -> bool:
    flags = [each.flags for each in arrays]
    return all(each.c_contiguous or each.f_contiguous for each in flags)


def zero_(tensors: Sequence[Tensor]) -> bool:
    """Set all elements of ``tensors`` to 0; return whether it was done."""
    arrays = None if before_modification else arrays_on_gpu(tensors)
    if arrays is None or not _without_gaps(arrays):
        return False
    _modified(tensors, lambda: load_part("kernels.cuda.many").zero(arrays))
    return True


def clamp_(tensors: Sequence[Tensor], low: float, high: float) -> bool:
    """Clamp the elements of ``tensors`` to the range from ``low`` to ``high``; return whether it was done."""
    arrays = None if before_modification else arrays_on_gpu(tensors)
    return arrays is not None and _update(tensors, partial(_clamped, low, high), arrays, [], "clamp")


def _clamped(low: float, high: float, np: Any, dtype: Any, x: Any) -> None:
    np.clip(x, low, high, out=x)


def scale_(tensors: Sequence[Tensor], arrays: list[Any], factor: Any) -> bool:
    """Multiply ``tensors`` by ``factor``, an array of no dimension; return whether it was done.

    ``arrays`` is the result of :func:`arrays_on_gpu`.
    """
    return _update(tensors, partial(_scaled), arrays, [factor], "scale")


def _scaled(np: Any, dtype: Any, x: Any, factor: Any) -> None:
    np.multiply(x, factor, x)


def _update(tensors: Sequence[Tensor], rule: partial[None], arrays: list[Any], shared: list[Any], name: str) -> bool:
    launches = load_part("kernels.cuda.many").update_calls(rule, [(each,) for each in arrays], shared, name)
    if launches is None:
        return False
    _modified(tensors, lambda: [call(*given) for call, given in launches])
    return True


def unscale_(tensors: Sequence[Tensor], inverse: Tensor) -> Tensor | None:
    """Multiply ``tensors`` by ``inverse``, a float32 tensor; return whether an element was infinite or nan, or None.

    The result is a tensor, so that the program does not wait for it.
    """
    arrays = None if before_modification else arrays_on_gpu(tensors)
    if arrays is None or not _without_gaps(arrays) or not devices.on_gpu(inverse._array):
        return None
    found = _modified(tensors, lambda: load_part("kernels.cuda.many").unscale(arrays, inverse._array))
    return wrap(found)


__all__ = ["arrays_on_gpu", "clamp_", "scale_", "unscale_", "zero_"]
