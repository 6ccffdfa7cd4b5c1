"""Results of LAPACK's routines for meta arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .array import MetaArray, new_array, no_values


def map_matrices(function: Callable[..., tuple[Any, ...]], *stacks: tuple[MetaArray, int]) -> tuple[MetaArray, ...]:
    """Return the results of ``kernels.lapack.map_matrices``.

    Every size of a result is one of the sizes of the matrices. ``function`` is called for small matrices, in which
    smaller sizes stay smaller and equal ones equal; this tells which.
    """
    cores = [array.shape[array.ndim - count :] for array, count in stacks]
    sizes = sorted({0, 1, *[size for core in cores for size in core]})
    small = {size: place for place, size in enumerate(sizes)}
    items = []
    for core, (array, _) in zip(cores, stacks, strict=True):
        shape = [small[size] for size in core]
        items.append(numpy.eye(*shape, dtype=array.dtype) if len(shape) == 2 else numpy.ones(shape, array.dtype))
    batch = numpy.broadcast_shapes(*[array.shape[: array.ndim - count] for array, count in stacks])
    results = []
    for part in map(numpy.asarray, function(*items)):
        if not all(size < len(sizes) for size in part.shape):
            raise no_values(function.__qualname__.partition(".")[0])
        core = [sizes[size] for size in part.shape]
        found = new_array((*batch, *core[::-1]), part.dtype)
        results.append(found.swapaxes(-1, -2).as_owner() if len(core) > 1 else found)
    return tuple(results)
