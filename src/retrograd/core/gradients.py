"""Gradients at an edge of the graph: conversion to its shape and dtype, and between arrays and Tensors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

from .dtypes import of
from .error_context import describe_recording
from .rule_namespace import rule_namespace_of
from .tensor import Tensor, wrap


def validate_gradient(grad: Any, place: Any, node: Any) -> Any:
    """``grad`` in the shape and dtype of ``place``: broadcast dimensions summed, cast, imaginary part dropped."""
    level = rule_namespace_of(grad)
    shape = grad.shape if grad.__class__ is not Tensor else grad._array.shape
    if shape != place.shape:
        if not _reaches(place.shape, shape):
            index = next((i for i, edge in enumerate(node.edges) if edge is place), 0)
            raise RuntimeError(
                f"Function {type(node).__name__} returned an invalid gradient at index {index} - got {list(shape)} but "
                f"expected shape compatible with {list(place.shape)}.{describe_recording(node)} Remedy: let its backward give each "
                "input a gradient of that input's shape."
            )
        grad = level.sum_to_size(grad, place.shape)
    dtype = grad._array.dtype if isinstance(grad, Tensor) else grad.dtype
    if dtype != place.dtype:
        if dtype.kind == "c" and place.dtype.kind != "c":
            grad = level.real(grad)
        grad = level.to_dtype(grad, of(place.dtype))
    return grad


@lru_cache(maxsize=256)
def _reaches(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a tensor of shape ``small`` can be broadcast to ``large``."""
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(reversed(small), reversed(large), strict=False))


def as_tensor(grad: Any) -> Any:
    """A gradient as hooks and users see it: a Tensor (None where there is none)."""
    if grad is None or isinstance(grad, Tensor):
        return grad
    return wrap(numpy.asarray(grad) if isinstance(grad, numpy.generic) else grad)


def _as_level(value: Any, record: bool) -> Any:
    return value._array if isinstance(value, Tensor) and not record else value
