"""Reductions of masked tensors: the result of a row without valid elements is masked out."""

from __future__ import annotations

from typing import Any

from ...core.tensor import normalize_dim, sparse_coo, strided
from ...dispatch.declare import FUNCTIONS as F
from .. import _ops
from .core import IMPLEMENTED, MaskedTensor, _values_of, constructed, implements, make, unsupported

NAMES = ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "var", "std")


def _all(data: Any, dim: Any = None, *, keepdim: bool = False, mask: Any, dtype: Any = None) -> Any:
    filled = data.masked_fill(~mask, True)
    return filled.all() if dim is None else F["all"](filled, dim=dim, keepdim=keepdim)


def _over_all(name: str, x: MaskedTensor) -> MaskedTensor:
    data, mask = x._masked_data, x._masked_mask
    if data.layout is not strided:
        if name in ("argmin", "argmax"):
            return _index_in_sparse(name, x)
        data, mask = _values_of(data), _values_of(mask)
        x = make(data, mask)
    result = _all(data, mask=mask) if name == "all" else getattr(_ops, name)(x, mask=mask)
    return constructed(result, F["any"](mask))


def _index_in_sparse(name: str, x: MaskedTensor) -> MaskedTensor:
    """Return the flat index of an extreme element among those that are stored."""
    data = x._masked_data if x.layout is sparse_coo else x._masked_data.to_sparse_coo()
    mask = _values_of(x._masked_mask)
    place = getattr(_ops, name)(_values_of(data), mask=mask).long()
    flat: Any = 0
    for index, size in zip(data.coalesce().indices(), data.shape, strict=True):
        flat = flat * size + index[place]
    return make(flat.double() if x.dtype.is_floating_point else flat, F["any"](mask))


@implements()
def norm(
    input: MaskedTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> MaskedTensor:  # fmt: skip
    """Return the norm of order ``p`` of the valid elements along ``dim``."""
    if input.layout is not strided:
        raise unsupported("norm() of sparse data")
    mask = input._masked_mask
    result = _ops.norm(input, 2.0 if p in (None, "fro") else p, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return constructed(result, _ops._any(mask, _ops._canonical_dim(dim, mask.dim()), keepdim))


def _reduction(name: str) -> None:
    def call(input: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        return _along(name, input, *args, **kwargs) if args or kwargs else _over_all(name, input)

    IMPLEMENTED[name] = call


def _along(name: str, input: MaskedTensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> MaskedTensor:
    if input.layout is not strided:
        raise unsupported(f"{name}() along a dimension of sparse data")
    mask = input._masked_mask
    function: Any = _all if name == "all" else getattr(_ops, name)
    data = input._masked_data if name == "all" else input
    result = function(data, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    dims = [dim] if isinstance(dim, int) else dim
    dims = sorted([normalize_dim(each, mask.dim()) for each in dims])
    return constructed(result, _ops._any(mask, dims, keepdim))


for _name in NAMES:
    _reduction(_name)


@implements()
def sum_to_size(self: MaskedTensor, *size: Any) -> MaskedTensor:
    """Return the sum over the dimensions that were broadcast from ``size``."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    extra = self.dim() - len(wanted)
    result: Any = self.sum(tuple(range(extra))) if extra else self
    ones = tuple(k for k, n in enumerate(wanted) if n == 1 != result.shape[k])
    return result.sum(ones, keepdim=True) if ones else result
