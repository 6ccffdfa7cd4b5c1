"""``default_collate``: combines samples into a batch, and ``default_convert``: converts a single sample to tensors."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor
from ...dispatch.declare import package_function
from ...operations.creation.from_data import as_tensor, tensor

_TEXT = re.compile("[SaUO]")  # NumPy's dtypes of text and objects
_UNSUPPORTED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"

Collators = dict[Any, Callable[..., Any]]


def _like_container(like: Any, parts: Any) -> Any:
    """Return a container of the same class as ``like`` with the elements ``parts``.

    ``parts`` is a dict if ``like`` is a mapping, otherwise a list. If the class cannot be constructed from ``parts``
    (TypeError), ``parts`` itself is returned.
    """
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(parts)
            return clone
        if isinstance(like, MutableSequence):
            filled = copy.copy(like)
            for index, each in enumerate(parts):
                filled[index] = each
            return filled
        return type(like)(parts)
    except TypeError:
        return parts


def default_convert(data: Any) -> Any:
    """Return ``data`` with NumPy arrays and scalars converted to tensors, also within dicts, lists and tuples.

    Other objects are returned unchanged.

    >>> import retrograd as torch
    >>> import numpy
    >>> torch.utils.data.default_convert({"x": numpy.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, numpy.ndarray | numpy.generic):
        unfit = isinstance(data, numpy.str_ | numpy.bytes_) or _TEXT.search(data.dtype.str)
        return data if unfit else as_tensor(data)
    if isinstance(data, Mapping):
        return _like_container(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(each) for each in data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        parts = [default_convert(each) for each in data]
        return parts if isinstance(data, tuple) else _like_container(data, parts)
    return data


def collate(batch: Any, *, collate_fn_map: Collators | None = None) -> Any:
    """Return the list of samples ``batch`` combined into one batch.

    ``collate_fn_map`` maps a type to the function that combines samples of this type. Samples that are dicts, lists or
    tuples are combined elementwise. Raises TypeError for other types, RuntimeError for lists of different lengths.
    """
    first = batch[0]
    kind = type(first)
    found = (collate_fn_map or {}).get(kind)
    if found is None:
        found = next((made for types, made in (collate_fn_map or {}).items() if isinstance(first, types)), None)
    if found is not None:
        return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map) for key in first}
        return _like_container(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(each, collate_fn_map=collate_fn_map) for each in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(each) != len(first) for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(each, collate_fn_map=collate_fn_map) for each in zip(*batch, strict=False)]
        return parts if isinstance(first, tuple) else _like_container(first, parts)
    raise TypeError(_UNSUPPORTED.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Tensor:
    """Return the tensors ``batch`` stacked along a new first dimension."""
    return package_function("stack")(list(batch), 0)  # the public function, because samples may be of a tensor subclass


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Any:
    """Return the NumPy arrays ``batch`` converted to tensors and stacked along a new first dimension."""
    if _TEXT.search(batch[0].dtype.str):
        raise TypeError(_UNSUPPORTED.format(batch[0].dtype))
    return collate([as_tensor(each) for each in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Tensor:
    """Return a 1-d tensor of the NumPy scalars ``batch``, with their dtype."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Tensor:
    """Return a 1-d float64 tensor of the Python floats ``batch``."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Tensor:
    """Return a 1-d tensor of the Python integers ``batch``."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Collators | None = None) -> Any:
    """Return ``batch``, a list of strings or bytes, unchanged."""
    return batch


default_collate_fn_map: Collators = {
    Tensor: collate_tensor_fn, numpy.ndarray: collate_numpy_array_fn,
    (numpy.bool_, numpy.number, numpy.object_): collate_numpy_scalar_fn, float: collate_float_fn, int: collate_int_fn,
    str: collate_str_fn, bytes: collate_str_fn,
}  # fmt: skip


def default_collate(batch: Any) -> Any:
    """Return the list of samples ``batch`` combined into a batch: tensors are stacked, numbers become a tensor.

    Samples that are dicts, lists or tuples are combined elementwise.

    >>> import retrograd as torch
    >>> torch.utils.data.default_collate([(torch.ones(2), 0), (torch.zeros(2), 1)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([0, 1])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
