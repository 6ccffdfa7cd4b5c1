"""Reductions and normalizations that ignore masked-out elements: ``torch.masked.sum``, ``softmax`` and others.

Each function replaces the masked-out elements by the identity of the reduction and calls the ordinary function, so the
gradients of masked-out elements are zero. ``mask`` is broadcast to the shape of the input; ``True`` keeps an element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..compat.missing_names import torch_name
from ..core import dtypes
from ..core.dtypes import iinfo
from ..core.tensor import Tensor, sparse_coo, sparse_csr, strided
from ..dispatch.declare import FUNCTIONS as F
from .operations import masked_combine

_SMALL = frozenset({dtypes.uint8, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32})
#: The identity of each reduction: a number, or whether it is the smallest or the largest number of the dtype.
_IDENTITIES: dict[str, Any] = {
    "sum": 0, "cumsum": 0, "prod": 1, "cumprod": 1, "amax": "min", "argmax": "min", "logaddexp": "min",
    "logsumexp": "min", "amin": "max", "argmin": "max", "norm": 0,
}  # fmt: skip
#: Reductions, whose output mask is true where an element is left, and functions that keep the shape.
_REDUCTIONS = frozenset(
    {"sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"}
)
_NORMALIZATIONS = frozenset({"softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"})


# -- Masks and identities ----------------------------------------------------------------------------------------------


def _identity(name: str, x: Tensor, *args: Any) -> Any:
    """Return the number that does not change the result of the reduction ``name``, or None if there is none."""
    dtype = x.dtype
    if name in ("mean", "var", "std"):
        return None
    if name == "median":
        return math.nan
    if name == "norm" and args and args[0] == -math.inf:
        return math.inf
    value = _IDENTITIES[name]
    if value not in ("min", "max"):
        return value
    if dtype.is_floating_point:
        return -math.inf if value == "min" else math.inf
    if dtype.is_complex and name == "logsumexp":
        return complex(-math.inf, 0)
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return getattr(iinfo(dtype), value)


def _reduction_identity(op_name: str, input: Any, *args: Any) -> Any:
    """Return the identity of the reduction ``op_name`` as a 0-d tensor, or None if there is none."""
    value = _identity(op_name.rpartition(".")[2], input, *args)
    dtype = dtypes.float32 if op_name == "median" and not input.dtype.is_floating_point else input.dtype
    return None if value is None else F["tensor"](value, dtype=dtype)


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return ``dim`` as a sorted tuple of dimensions from 0; None and () mean all dimensions."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims: list[int] = []
    for each in (dim,) if isinstance(dim, (int, numpy.integer)) else dim:
        if each in dims:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        if not -ndim <= each < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {each})"
            )
        dims.append(int(each) % ndim)
    return tuple(sorted(dims))


def _input_mask(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the keyword argument ``mask`` as a bool tensor of the shape and the layout of ``input``."""
    if input.layout not in (strided, sparse_coo, sparse_csr):
        raise ValueError(
            f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}"
        )  # fmt: skip
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if tuple(mask.shape) != tuple(input.shape):
        if mask.dim() > input.dim():
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        layout = mask.layout
        mask = F["broadcast_to"](mask if layout is strided else mask.to_dense(), input.shape)
    if mask.layout is not input.layout:
        mask = mask if mask.layout is strided else mask.to_dense()
        if input.layout is sparse_coo:
            mask = mask.to_sparse(input.sparse_dim())
        elif input.layout is sparse_csr:
            mask = mask.to_sparse_csr()
    if mask.layout is sparse_coo:
        mask = mask.coalesce()
    return mask.to(dtypes.bool_)


def _any(mask: Any, dims: Sequence[int], keepdim: bool) -> Any:
    for dim in reversed(dims):
        mask = mask.any(dim=dim, keepdim=keepdim)
    return mask


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the mask of the result of ``op``, a function of this module, called with these arguments."""
    name = getattr(op, "__name__", "")
    if not callable(op) or name not in _REDUCTIONS | _NORMALIZATIONS:
        got = f"callable {torch_name(op.__module__)}.{name}" if callable(op) else f"{type(op).__name__} object"
        raise ValueError(f"_output_mask expected masked operation (got {got})")
    mask = _input_mask(input, *args, **kwargs)
    if name in _NORMALIZATIONS:
        return mask
    rest = args[1:] if name == "norm" else args
    dim = rest[0] if rest else kwargs.get("dim")
    return _any(mask, _canonical_dim(dim, input.dim()), bool(kwargs.get("keepdim", False)))


def _where(mask: Any, input: Any, fill_value: Any) -> Any:
    """Return ``input`` with ``fill_value`` where ``mask`` is false; of a sparse ``input``, only the elements of the mask."""
    return F["where"](mask, input, fill_value) if mask.layout is strided else input.sparse_mask(mask)


def _combine_input_and_mask(op: Any, input: Any, mask: Any, *args: Any) -> Any:
    """Return ``input``, a tensor or masked tensor, with the identity of ``op`` where it is masked out."""
    name = op if isinstance(op, str) else op.__name__
    if hasattr(input, "_masked_data"):
        data = input._masked_data
        return masked_combine(data, input._masked_mask, _identity(name, data, *args))
    if mask is None:
        return input
    return _where(_input_mask(input, mask=mask), input, _reduction_identity(name, input, *args))


def _plain(input: Any) -> Any:
    """Return ``input`` without its mask."""
    return input._masked_data if hasattr(input, "_masked_data") else input


def _check_strided(name: str, x: Any) -> None:
    if x.layout is not strided:
        raise ValueError(f"masked {name} expects strided tensor (got {x.layout} tensor)")


# -- Reductions --------------------------------------------------------------------------------------------------------


def _promoted(input: Any, dtype: Any) -> Any:
    return dtype or (dtypes.int64 if input.dtype in _SMALL else input.dtype)


def _of_sparse(name: str, input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """Return a reduction of the sparse tensor ``input``, which has an element wherever one is left."""
    if mask is None and name != "sum":
        layout = str(input.layout).removeprefix("torch.")
        raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")
    ones = F["ones"](tuple(_pattern(input).shape), dtype=dtypes.bool_)
    pattern = _like(input, ones) if mask is None else _input_mask(input, mask=mask)
    dims = _canonical_dim(dim, input.dim())
    if input.layout is sparse_csr and not keepdim:
        raise AssertionError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dense = pattern.to_dense()
    result = globals()[name](input.to_dense(), dims, keepdim=keepdim, dtype=dtype, mask=dense)
    left = _any(dense, dims, keepdim)
    return result.sparse_mask(left.to_sparse_csr() if input.layout is sparse_csr else left.to_sparse().coalesce())


def _pattern(x: Any) -> Any:
    return x._values() if x.layout is sparse_coo else x.values()


def _like(x: Any, values: Any) -> Any:
    """Return a sparse tensor with the indices of ``x`` and the given values."""
    from ..sparse.creation import sparse_coo_tensor, sparse_csr_tensor

    if x.layout is sparse_coo:
        return sparse_coo_tensor(x._indices(), values, x.shape)
    return sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


def sum(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the sum of the elements along ``dim`` at which ``mask`` is true; 0 if there are none.

    Integers of less than 64 bits are summed as int64. ``dim`` is a dimension, a tuple of them, or None for all.

    >>> import retrograd as torch
    >>> torch.masked.sum(torch.tensor([[-3, -2, -1], [0, 1, 2]]), 1, mask=torch.tensor([[True, False, True], [False] * 3]))
    tensor([-4,  0])
    """
    dtype = _promoted(input, dtype)
    dims = _canonical_dim(dim, input.dim())
    if _plain(input).layout is not strided:
        return _of_sparse("sum", _plain(input), dim, bool(keepdim), dtype, mask)
    return F["sum"](_combine_input_and_mask("sum", input, mask), dims, bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the product of the elements along ``dim`` at which ``mask`` is true; 1 if there are none.

    >>> import retrograd as torch
    >>> torch.masked.prod(torch.tensor([[-3, -2, -1], [0, 1, 2]]), 1, mask=torch.tensor([[True, False, True], [False] * 3]))
    tensor([3, 1])
    """
    dtype = _promoted(input, dtype)
    dims = _canonical_dim(dim, input.dim())
    if _plain(input).layout is not strided:
        return _of_sparse("prod", _plain(input), dim, bool(keepdim), dtype, mask)
    result = _combine_input_and_mask("prod", input, mask).to(dtype=dtype)
    for each in reversed(dims):
        result = result.prod(dim=each, keepdim=bool(keepdim))
    return result


def _extreme(name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    if _plain(input).layout is not strided:
        return _of_sparse(name, _plain(input), dim, bool(keepdim), dtype or input.dtype, mask)
    x = _combine_input_and_mask(name, input, mask)
    return F[name](x, _canonical_dim(dim, x.dim()), bool(keepdim)).to(dtype=dtype or input.dtype)


def amax(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the largest element along ``dim`` at which ``mask`` is true; the smallest number if there is none.

    >>> import retrograd as torch
    >>> torch.masked.amax(torch.tensor([1.0, 5.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(3.)
    """
    return _extreme("amax", input, dim, keepdim, dtype, mask)


def amin(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the smallest element along ``dim`` at which ``mask`` is true; the largest number if there is none.

    >>> import retrograd as torch
    >>> torch.masked.amin(torch.tensor([1.0, 5.0, 3.0]), mask=torch.tensor([False, True, True]))
    tensor(3.)
    """
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def _index(name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    _check_strided(name, _plain(input))
    x = _combine_input_and_mask(name, input, mask)
    return F[name](x, dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(input: Any, dim: int | None = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the index of the largest element along ``dim`` at which ``mask`` is true, in the dtype of ``input``.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.argmax(x, 1, mask=mask)
    tensor([2., 0.])
    """
    return _index("argmax", input, dim, keepdim, dtype, mask)


def argmin(input: Any, dim: int | None = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the index of the smallest element along ``dim`` at which ``mask`` is true, in the dtype of ``input``.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.argmin(x, 1, mask=mask)
    tensor([0., 1.])
    """
    return _index("argmin", input, dim, keepdim, dtype, mask)


def _total_and_count(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Return the sum and the number of the elements that are left, and the mask."""
    if mask is None:
        count = sum(F["ones"](tuple(input.shape), dtype=dtypes.int64), dim, keepdim=keepdim)
        return sum(input, dim, keepdim=keepdim, dtype=dtype), count, None
    inmask = _input_mask(_plain(input), mask=mask)
    count = sum(inmask, dim, keepdim=keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=inmask), count, inmask


def mean(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the mean of the elements along ``dim`` at which ``mask`` is true; nan if there are none.

    Raises ValueError for integers without ``dtype``.

    >>> import retrograd as torch
    >>> torch.masked.mean(torch.tensor([1.0, 5.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    source = "Input" if dtype is None else "Optional"
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    layout = _plain(input).layout
    if layout is sparse_csr:
        return _of_sparse("mean", _plain(input), dim, bool(keepdim), dtype, mask)
    if layout is not strided:
        raise ValueError(f"masked mean expects strided or sparse_csr tensor (got {layout} tensor)")
    total, count, _ = _total_and_count(input, dim, bool(keepdim), dtype, mask)
    return total / count


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the lower median of the elements along ``dim`` at which ``mask`` is true; nan if there are none.

    Raises ValueError for integers if a row is masked out.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.median(x, 1, mask=mask)
    tensor([1., 0.])
    """
    _check_strided("median", _plain(input))
    place = _canonical_dim(dim, input.dim())[0]
    floating = input.is_floating_point()
    x = _combine_input_and_mask("median", input if floating else input.to(dtypes.float32), mask)
    result = F["nanmedian"](x, place, keepdim).values
    if floating:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype=dtype or input.dtype)


def norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the norm of order ``ord`` of the elements along ``dim`` at which ``mask`` is true; 0 if there are none.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.norm(x, 2, 1, mask=mask)
    tensor([2.2361, 3.0000])
    """
    from ..linalg import vector_norm

    _check_strided("norm", _plain(input))
    x = _combine_input_and_mask("norm", input, mask, ord)
    return vector_norm(x, ord, _canonical_dim(dim, input.dim()), bool(keepdim), dtype=dtype or input.dtype)


def _variance(
    input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any, dtype: Any, mask: Any, name: str
) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else dtypes.float32
    computed = dtype if dtype.is_floating_point or dtype.is_complex else dtypes.float32
    if _plain(input).layout is not strided:
        raise ValueError(f"masked std/var expects strided tensor (got {_plain(input).layout} tensor)")
    total, count, inmask = _total_and_count(input, dim, True, dtype, mask)
    difference = input - total / count
    squares = sum(difference * difference.conj(), dim, keepdim=keepdim, dtype=computed, mask=inmask)
    if not keepdim:
        count = count.reshape(squares.shape)
    if correction != 0:
        count = (count.to(computed.to_real() if computed.is_complex else computed) - float(correction)).clamp(min=0)
    result = (squares / count).to(dtype=dtype)
    return result.sqrt() if name == "std" else result


def var(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: Any = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the variance of the elements along ``dim`` at which ``mask`` is true; nan if there are none.

    The sum of squares is divided by the number of elements minus ``correction``: 1, or 0 if ``unbiased`` is false.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.var(x, 1, unbiased=False, mask=mask)
    tensor([0.2500, 2.2500])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, "var")


def std(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: Any = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the standard deviation of the elements along ``dim`` at which ``mask`` is true; see :func:`var`.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.std(x, 1, mask=mask)
    tensor([0.7071, 2.1213])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, "std")


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials along ``dim`` where ``mask`` is true; -inf if there are none.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.logsumexp(x, 1, mask=mask)
    tensor([2.3133, 3.0486])
    """
    _check_strided("logsumexp", _plain(input))
    dims = _canonical_dim(dim, input.dim())
    x = _combine_input_and_mask("logsumexp", input, mask)
    return F["logsumexp"](x, dims, keepdim=keepdim).to(dtype=dtype or input.dtype)


# -- Functions that keep the shape -------------------------------------------------------------------------------------


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:  # fmt: skip
    """Return ``log(exp(input) + exp(other))`` elementwise; a masked-out element counts as minus infinity.

    >>> x, y = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0])
    >>> mask = torch.tensor([True, False])
    >>> torch.masked.logaddexp(x, y, input_mask=mask, other_mask=torch.tensor([True, True]))
    tensor([0.6931, 2.0000])
    """
    if _plain(input).layout is not strided or _plain(other).layout is not strided:
        raise ValueError(
            f"masked logaddexp expects strided tensors (got {input.layout} tensor for input, {other.layout} for other)"
        )
    a = _combine_input_and_mask("logaddexp", input, input_mask)
    b = _combine_input_and_mask("logaddexp", other, other_mask)
    return F["logaddexp"](a, b).to(dtype=dtype or input.dtype)


def _cumulative(name: str, input: Any, dim: int, dtype: Any, mask: Any) -> Any:
    _check_strided(name, _plain(input))
    dtype = dtype or input.dtype
    place = _canonical_dim(dim, input.dim())[0]
    return F[name](_combine_input_and_mask(name, input, mask), place, dtype=dtype).to(dtype=dtype)


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the cumulative sum along ``dim``; a masked-out element counts as 0.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.cumsum(x, 1, mask=mask)
    tensor([[1., 1., 3.],
            [3., 3., 3.]])
    """
    return _cumulative("cumsum", input, dim, dtype, mask)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the cumulative product along ``dim``; a masked-out element counts as 1.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.cumprod(x, 1, mask=mask)
    tensor([[1., 1., 2.],
            [3., 0., 0.]])
    """
    return _cumulative("cumprod", input, dim, dtype, mask)


def _normalized(name: str, identity: str, input: Any, dim: int, dtype: Any, mask: Any) -> Any:
    from ..nn import functional

    _check_strided(name, _plain(input))
    place = _canonical_dim(dim, input.dim())[0]
    x = _combine_input_and_mask(identity, input, mask)
    return getattr(functional, name)(x, place, dtype=dtype or input.dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmax along ``dim`` of the elements at which ``mask`` is true; nan if there are none.

    Masked-out elements of the result are 0.

    >>> import retrograd as torch
    >>> torch.masked.softmax(torch.tensor([0.0, 9.0, 0.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _normalized("softmax", "amax", input, dim, dtype, mask)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of the softmax along ``dim`` of the elements at which ``mask`` is true.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.log_softmax(x, 1, mask=mask)
    tensor([[-1.3133,    -inf, -0.3133],
            [-0.0486, -3.0486,    -inf]])
    """
    return _normalized("log_softmax", "amax", input, dim, dtype, mask)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmax of the negated elements along ``dim`` at which ``mask`` is true.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.softmin(x, 1, mask=mask)
    tensor([[0.7311, 0.0000, 0.2689],
            [0.0474, 0.9526, 0.0000]])
    """
    return _normalized("softmin", "amin", input, dim, dtype, mask)


def normalize(
    input: Any, ord: Any, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:  # fmt: skip
    """Return the elements divided by the norm of order ``ord`` along ``dim``, or by ``eps`` if that is larger.

    >>> x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]])
    >>> mask = torch.tensor([[True, False, True], [True, True, False]])
    >>> torch.masked.normalize(x, 2.0, 1, mask=mask)
    tensor([[0.4472, 0.0000, 0.8944],
            [1.0000, 0.0000, 0.0000]])
    """
    _check_strided("normalize", _plain(input))
    x = _combine_input_and_mask("sum", input, mask)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return F["div"](x, F["maximum"](size, F["tensor"](eps, dtype=size.dtype)))


#: The public functions of ``torch.masked`` in this module.
NAMES = (
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
)  # fmt: skip
__all__ = list(NAMES)
