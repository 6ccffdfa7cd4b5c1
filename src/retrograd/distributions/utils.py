"""``broadcast_all``, ``probs_to_logits``, ``lazy_property`` and other helpers for distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

import retrograd as torch
from retrograd import Tensor

#: The ``sample_shape`` of a single draw.
SINGLE_SAMPLE = torch.Size()
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return ``values``, tensors or numbers, as a tuple of tensors broadcast to a common shape.

    Numbers are converted to the dtype of the first tensor or, if there is no tensor, to the default dtype.

    >>> from retrograd.distributions.utils import broadcast_all
    >>> broadcast_all(1, 2.0)
    (tensor(1.), tensor(2.))
    """
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not all(isinstance(each, (Tensor, Number)) for each in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    dtype = tensors[0].dtype if tensors else torch.get_default_dtype()
    device = tensors[0].device if tensors else None
    return torch.broadcast_tensors(
        *(each if isinstance(each, Tensor) else torch.tensor(each, dtype=dtype, device=device) for each in values)
    )


def given_one_of(probs: Any, logits: Any) -> bool:
    """Whether ``probs`` is not None. Raises ValueError unless exactly one of ``probs`` and ``logits`` is None."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


def standard_normal(shape: torch.Size, like: Tensor) -> Tensor:
    """Return a tensor of standard normal samples of shape ``shape``, with the dtype and on the device of ``like``."""
    zeros = torch.zeros(shape, dtype=like.dtype, device=like.device)
    return torch.normal(zeros, torch.ones_like(zeros))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Return a tensor of standard normal samples of shape ``shape``."""
    return standard_normal(shape, torch.empty(0, dtype=dtype, device=device))


def uniform(shape: torch.Size, like: Tensor) -> Tensor:
    """Return a tensor of uniform samples in [0, 1) of shape ``shape``, with the dtype and on the device of ``like``."""
    return torch.rand(shape, dtype=like.dtype, device=like.device)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum of ``value`` over its last ``dims`` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


_sum_rightmost = sum_rightmost


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the softmax of ``logits`` along the last dimension, or their sigmoid if ``is_binary`` is true."""
    return torch.sigmoid(logits) if is_binary else torch.nn.functional.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return ``probs`` clamped to the range from eps to 1 - eps, where eps is the machine epsilon of the dtype."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithms of the clamped ``probs``, or the log-odds if ``is_binary`` is true.

    This function is the inverse of :func:`logits_to_probs`.
    """
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


class lazy_property:
    """Property that is computed on first access, with gradients enabled, and then stored as an instance attribute."""

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _LazyOfClass(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOfClass(lazy_property, property):
    """Object returned if a :class:`lazy_property` is read from the class instead of an instance.

    It is a ``property``, so that documentation tools recognise it.
    """

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        property.__init__(self, wrapped)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return square matrices whose lower triangles are filled, row by row, with the vectors ``vec``.

    The vectors extend along the last dimension of ``vec``; the result has one matrix for each vector.

    ``diag`` is the highest diagonal of the triangles: 0 is the main diagonal and -1 the diagonal below it.
    """
    # With c = |diag| (diag + 1), n rows have (n² + (1 + 2 diag) n - c) / 2 elements; solved for n.
    linear, corner = 1 + 2 * diag, abs(diag) * (diag + 1)
    n = (math.sqrt(linear**2 + 4 * corner + 8 * vec.shape[-1]) - linear) / 2
    size = round(n)
    if size - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    matrix = torch.zeros(*vec.shape[:-1], size, size, dtype=vec.dtype, device=vec.device)
    rows, columns = torch.tril_indices(size, size, diag)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of the lower triangles of ``mat``, row by row along the last dimension.

    ``diag`` is the highest diagonal of the triangles: 0 is the main diagonal and -1 the diagonal below it.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag)
    return mat[..., rows, columns]


__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]
