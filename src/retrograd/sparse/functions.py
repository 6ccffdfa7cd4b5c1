"""The functions of sparse tensors: elementwise functions, products, sums, softmax, and functions of their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.stored_tensors import implement_gradients
from ..core import dtypes, promotion
from ..core.grad_mode import recording
from ..core.tensor import Tensor, normalize_dim, sparse_coo, sparse_csc, sparse_csr, strided, wrap
from ..core.views import bump_version, check_in_place
from ..dispatch.declare import FUNCTIONS
from ..kernels import sparse as kernels
from .conversion import coalesced, is_coo, like, sparse_mask, to_dense, to_sparse
from .operations import ADD_AT, ADDMM, ALIAS, PRODUCT, sampled
from .operations import log_softmax as log_softmax_of_groups
from .operations import softmax as softmax_of_groups
from .tensor import (
    IMPLEMENTED,
    Compressed,
    Coordinates,
    SparseTensor,
    add_into,
    coo,
    flat_of,
    gather,
    gradient_of,
    implements,
    replace,
    sparse_tensor,
    unsupported,
    values_at,
    with_values,
)

# -- Elementwise functions of one tensor -----------------------------------------------------------------------------

#: Functions with f(0) = 0 that are not linear, so that elements with the same index are added before.
UNARY = (
    "abs", "angle", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac",
    "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg", "relu", "round", "sgn", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
LINEAR = ("neg", "positive", "conj", "conj_physical", "resolve_conj", "resolve_neg")


def _unary(name: str, linear: bool) -> None:
    def call(input: SparseTensor, *args: Any, inplace: bool = False, out: Any = None, **kwargs: Any) -> Any:
        _refuse_out(name, out)
        x = input if linear else coalesced(input)
        made = with_values(x, FUNCTIONS[name](x._stored, *args, **kwargs))
        return replace(input, made, name) if inplace else made

    IMPLEMENTED[name] = call


for _name in UNARY:
    _unary(_name, False)
for _name in LINEAR:
    _unary(_name, True)


def _refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise unsupported(f"{name}() with out=", sparse_coo)


@implements("pow")
def power(input: Any, exponent: Any, *, out: Any = None) -> SparseTensor:
    """Return the elements to the power of the number ``exponent``."""
    _refuse_out("pow", out)
    if not isinstance(input, SparseTensor) or not _is_number(exponent):
        raise unsupported("pow() with a tensor as exponent", sparse_coo)
    exponent = _number(exponent)
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    if not isinstance(exponent, complex) and exponent < 0:
        raise unsupported("pow() with a negative exponent, whose result is not sparse,", input.layout)
    x = coalesced(input)
    return with_values(x, x._stored**exponent)


# -- Arithmetic ------------------------------------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, numpy.generic)) or (
        isinstance(x, Tensor) and x.layout is strided and x.dim() == 0
    )


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


@implements("add", "__radd__", "__iadd__")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Return ``input + alpha * other``; the sum of a dense and a sparse tensor is dense."""
    return _sum("add", "AddBackward0", input, other, alpha, out)


@implements("sub", "__isub__")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Return ``input - alpha * other``; the difference of a dense and a sparse tensor is dense."""
    return _sum("sub", "SubBackward0", input, other, alpha, out)


def _check_sizes(dense: Any, x: SparseTensor) -> None:
    if not isinstance(dense, Tensor) or tuple(dense.shape) != x._sizes:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{list(getattr(dense, 'shape', ()))} while other has size {list(x._sizes)} (FYI: dense-sparse addition does "
            "not currently support broadcasting)"
        )


def _sum(name: str, node: str, a: Any, b: Any, alpha: Any, out: Any) -> Any:
    _refuse_out(name, out)
    if not isinstance(a, SparseTensor):
        _check_sizes(a, b)
        return FUNCTIONS[name](a, to_dense(b), alpha=alpha)
    if not isinstance(b, SparseTensor):
        if is_coo(a) or _is_number(b):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return FUNCTIONS[name](to_dense(a), b, alpha=alpha)
    if a._sizes != b._sizes:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a._sizes)} != {list(b._sizes)}"
        )
    if a._pattern.dims != b._pattern.dims:
        raise RuntimeError(
            "cannot add two sparse tensors with different sparse_dim: "
            f"{a._pattern.dims} and {b._pattern.dims}"
        )  # fmt: skip
    layout = a.layout
    a, b = to_sparse(a), to_sparse(b)
    dtype = promotion.promote_types(a.dtype, b.dtype)
    factor = -alpha if name == "sub" else alpha
    left, right = a._stored.to(dtype), b._stored.to(dtype)
    values = FUNCTIONS["cat"]([left, right if factor == 1 else right * factor])
    made = coo(numpy.concatenate([a._pattern.coordinates(), b._pattern.coordinates()], 1), values, a._sizes, False)
    flat, count = flat_of(made), a._pattern.count
    if all(x._pattern.coalesced or (numpy.diff(part) > 0).all() for x, part in ((a, flat[:count]), (b, flat[count:]))):
        flat, place = numpy.unique(flat, return_inverse=True)
        coordinates = kernels.coordinates_of(flat, a._sizes[: a._pattern.dims])
        known = a._pattern.coalesced and b._pattern.coalesced
        made = coo(coordinates, ADD_AT[node](values, wrap(place), (flat.size,)), a._sizes, known)
    else:
        made = with_values(made, ALIAS[node](values))
    return like(made, layout, node)


@implements("mul", "__rmul__", "__imul__")
def mul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the product, elementwise; that with a dense tensor is sparse."""
    _refuse_out("mul", out)
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if isinstance(other, SparseTensor):
        return _product(input, other)
    if not isinstance(other, Tensor) or other.dim() == 0:
        return with_values(input, input._stored * other)
    return with_values(input, input._stored * _dense_at(other, input))


def _dense_at(dense: Tensor, x: SparseTensor) -> Tensor:
    """Return the elements of ``dense``, which is broadcast to the shape of ``x``, at the indices of ``x``."""
    missing = len(x._sizes) - dense.dim()
    shape = (1,) * missing + tuple(dense.shape)
    if missing < 0 or any(a not in (1, b) for a, b in zip(shape, x._sizes, strict=True)):
        raise unsupported(f"A product with a dense tensor of shape {list(dense.shape)}", x.layout)
    dims = x._pattern.dims
    coordinates = x._pattern.coordinates() * (numpy.array(shape[:dims], numpy.int64) != 1)[:, None]
    kernels.check_range(x._pattern.coordinates(), x._sizes[:dims])
    flat = kernels.flat_indices(coordinates, shape[:dims])
    return gather("IndexSelectBackward0", dense.reshape(shape) if missing else dense, flat, dims)


def _product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if a._sizes != b._sizes:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes when both are sparse, but {list(a._sizes)} != "
            f"{list(b._sizes)}"
        )
    if a._pattern.dims != b._pattern.dims:
        raise unsupported("A product of tensors with another number of sparse dimensions", a.layout)
    layout = a.layout
    a, b = coalesced(to_sparse(a)), coalesced(to_sparse(b))
    _, left, right = numpy.intersect1d(flat_of(a), flat_of(b), assume_unique=True, return_indices=True)
    values = gather("IndexSelectBackward0", a._stored, left, 1) * gather("IndexSelectBackward0", b._stored, right, 1)
    return like(coo(a._pattern.coordinates()[:, left], values, a._sizes, True), layout, "MulBackward0")


@implements("div", "__itruediv__")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Return the quotient of a sparse tensor and a number."""
    options = {} if rounding_mode is None else {"rounding_mode": rounding_mode}
    return _quotient("div", input, other, out, **options)


@implements("floor_divide")
def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the quotient of a sparse tensor and a number, rounded down."""
    return _quotient("floor_divide", input, other, out)


def _quotient(name: str, input: Any, other: Any, out: Any, **options: Any) -> SparseTensor:
    _refuse_out(name, out)
    if not isinstance(input, SparseTensor):
        raise unsupported("Division by a sparse tensor", other.layout)
    if not _is_number(other):
        shape = list(other.shape) if isinstance(other, Tensor) else other
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )
    x = coalesced(input) if name == "floor_divide" or options else input
    return with_values(x, FUNCTIONS[name](x._stored, other, **options))


# -- In place --------------------------------------------------------------------------------------------------------


@implements()
def zero_(input: SparseTensor) -> SparseTensor:
    """Remove all elements."""
    if input.__dict__.get("_accumulates"):
        input._stored.zero_()
        return input
    return replace(input, IMPLEMENTED["zeros_like"](input), "zero_")


@implements()
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Replace the elements by those of ``src``, a tensor of the same layout and shape."""
    if not isinstance(input, SparseTensor) or not isinstance(src, SparseTensor):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    return replace(input, IMPLEMENTED["clone"](src), "copy_")


def _scaled(name: str) -> None:
    def call(input: Any, other: Any, **options: Any) -> Any:
        if isinstance(input, SparseTensor) and _is_number(other) and not (input.is_leaf and input.requires_grad):
            getattr(input._stored, name)(other, **options)  # also in memory that is shared with the values
            return input
        made = IMPLEMENTED[name[:-1]](input, other, **options)
        if not isinstance(input, SparseTensor):
            raise unsupported(f"{name}() of a dense tensor that would become sparse", made.layout)
        return replace(input, made, name)

    IMPLEMENTED[name] = call


_scaled("mul_")
_scaled("div_")
IMPLEMENTED["__imul__"], IMPLEMENTED["__itruediv__"] = IMPLEMENTED["mul_"], IMPLEMENTED["div_"]


def _in_place_sum(name: str) -> None:
    def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(input, SparseTensor):
            if recording() or input._array.__class__ is not numpy.ndarray or input.dtype is not other.dtype:
                return getattr(input, name)(to_dense(other), alpha=alpha)
            check_in_place(input, False)
            _check_sizes(input, other)
            add_into(input._array, other, -alpha if name == "sub_" else alpha)
            bump_version(input)
            return input
        return replace(input, IMPLEMENTED[name[:-1]](input, other, alpha=alpha), name)

    IMPLEMENTED[name] = call


_in_place_sum("add_")
_in_place_sum("sub_")
IMPLEMENTED["__iadd__"], IMPLEMENTED["__isub__"] = IMPLEMENTED["add_"], IMPLEMENTED["sub_"]

# -- Products --------------------------------------------------------------------------------------------------------


def _check_matrix(x: Any, name: str) -> None:
    if x.dim() != 2:
        raise RuntimeError(f"{name}: Expected 2D tensors, but got a tensor of {x.dim()} dimensions")
    if isinstance(x, SparseTensor) and x._pattern.dims != 2:
        raise unsupported(f"{name}() of a tensor with dense dimensions", x.layout)


def _check_factors(name: str, a: Any, b: Any) -> None:
    if a.shape[1] != b.shape[0]:
        if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x"
            f"{'x'.join(map(str, b.shape[1:]))})"
        )
    if a.dtype is not b.dtype:
        names = dtypes.scalar_name(a.dtype), dtypes.scalar_name(b.dtype)
        raise RuntimeError(f"expected scalar type {names[0].capitalize()} but found {names[1].capitalize()}")


def _lines(x: SparseTensor) -> tuple[Tensor, Tensor]:
    """Return the rows and the columns of the elements of a sparse matrix, as tensors."""
    lines = x._pattern.coordinates()
    kernels.check_range(lines, x._sizes)
    return wrap(numpy.ascontiguousarray(lines[0])), wrap(numpy.ascontiguousarray(lines[1]))


def _times(x: SparseTensor, dense: Tensor, node: str) -> Tensor:
    rows, columns = _lines(x)
    return PRODUCT[node](x._stored, rows, columns, dense, x._sizes[0])


@implements()
def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the product of two matrices, one or both sparse; that of two sparse matrices is sparse."""
    return _written(out, _mm(input, mat2, "MmBackward0"))


def _written(out: Any, result: Any) -> Any:
    """Return ``result``, written into the dense tensor ``out`` if this is not None."""
    if out is None:
        return result
    if out.layout is not strided or result.layout is not strided or out.shape != result.shape:
        raise unsupported("out= of another layout or shape", result.layout)
    return out.copy_(result)


def _mm(a: Any, b: Any, node: str) -> Any:
    _check_matrix(a, "mm")
    _check_matrix(b, "mm")
    _check_factors("mm", a, b)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return _sparse_product(a, b, "SparseSparseMatmulBackward0" if node == "SparseAddmmBackward0" else node)
    if isinstance(a, SparseTensor):
        return _times(a, b, node)
    return ALIAS[node](_times(transpose(b, 0, 1), a.t(), node).t())


def _sparse_product(a: SparseTensor, b: SparseTensor, node: str) -> SparseTensor:
    layout = sparse_coo if is_coo(a) else sparse_csr
    b = coalesced(to_sparse(b))
    (rows, columns), (inner, outer) = a._pattern.coordinates(), b._pattern.coordinates()
    kernels.check_range(a._pattern.coordinates(), a._sizes)
    kernels.check_range(b._pattern.coordinates(), b._sizes)
    first, second = kernels.pairs(columns, kernels.compressed(inner, b._sizes[0]))
    sizes = (a._sizes[0], b._sizes[1])
    flat, place = numpy.unique(rows[first] * sizes[1] + outer[second], return_inverse=True)
    terms = gather("IndexSelectBackward0", a._stored, first, 1) * gather("IndexSelectBackward0", b._stored, second, 1)
    values = ADD_AT[node](terms, wrap(place), (flat.size,))
    return like(coo(kernels.coordinates_of(flat, sizes), values, sizes, True), layout, node)


@implements("spmm")
def spmm(input: Any, mat2: Any) -> Any:
    """Return the product of two matrices, as :func:`mm`.

    >>> import retrograd as torch
    >>> torch.dsmm(torch.eye(2), torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return mm(input, mat2) if _is_sparse(input, mat2) else FUNCTIONS["mm"](input, mat2)


def _is_sparse(*tensors: Any) -> bool:
    return any(isinstance(each, SparseTensor) for each in tensors)


@implements("mv", "__mv__")
def mv(input: Any, vec: Any, *, out: Any = None) -> Tensor:
    """Return the product of a sparse matrix and a dense vector."""
    if not isinstance(input, SparseTensor) or isinstance(vec, SparseTensor):
        raise unsupported("mv() with a sparse vector", sparse_coo)
    _check_matrix(input, "mv")
    if vec.dim() != 1 or input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    _check_factors("mv", input, vec)
    return _written(out, _times(input, vec, "MvBackward0"))


@implements("matmul", "__rmatmul__")
def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the product of matrices, of a matrix and a vector, or of batches of matrices."""
    kinds = input.dim(), other.dim()
    if kinds == (2, 2):
        return mm(input, other, out=out)
    if kinds == (2, 1):
        return mv(input, other, out=out)
    if kinds == (1, 2) and not isinstance(input, SparseTensor):
        return mv(transpose(other, 0, 1), input, out=out)
    if kinds == (3, 3):
        return bmm(input, other, out=out)
    if kinds[0] == 2 and kinds[1] > 2 and not isinstance(other, SparseTensor):
        moved = other.movedim(-2, 0)
        product = mm(input, moved.reshape(moved.shape[0], -1))
        return _written(out, product.reshape(-1, *moved.shape[1:]).movedim(0, -2))
    if kinds[0] > 2 and kinds[1] == 2 and not isinstance(input, SparseTensor):
        product = mm(input.reshape(-1, input.shape[-1]), other)
        return _written(out, product.reshape(*input.shape[:-1], product.shape[-1]))
    raise unsupported(f"matmul() of tensors of {kinds[0]} and {kinds[1]} dimensions", sparse_coo)


def _reversed_matmul(self: Any, other: Any) -> Any:
    return matmul(other, self)


IMPLEMENTED["__rmatmul__"] = _reversed_matmul


@implements()
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Tensor:
    """Return the products of the sparse matrices ``input[i]`` and the dense matrices ``mat2[i]``."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor) or input._pattern.dims != 3:
        raise unsupported("bmm() of these tensors", sparse_coo)
    (count, rows, columns), (other, inner, width) = input._sizes, mat2.shape
    if (count, columns) != (other, inner):
        raise RuntimeError(f"bmm: batches of shapes {list(input._sizes)} and {list(mat2.shape)} cannot be multiplied")
    batch, row, column = input._pattern.coordinates()
    lines = numpy.stack([batch * rows + row, batch * columns + column])
    large = coo(lines, input._stored, (count * rows, count * columns), False)
    products = _mm(large, mat2.reshape(-1, width), "MmBackward0").reshape(count, rows, width)
    return _written(out, ALIAS["BmmBackward0"](products))


@implements("addmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)``."""
    return _written(out, _addmm(input, mat1, mat2, beta, alpha, "AddmmBackward0"))


def _addmm(input: Any, a: Any, b: Any, beta: Any, alpha: Any, node: str) -> Any:
    if isinstance(a, SparseTensor) and not _is_sparse(input, b):
        _check_matrix(a, "addmm")
        _check_matrix(b, "addmm")
        _check_factors("addmm", a, b)
        rows, columns = _lines(a)
        return ADDMM[node](input, a._stored, rows, columns, b, a._sizes[0], beta, alpha)
    if not _is_sparse(input, a, b):
        return FUNCTIONS["addmm"](input, a, b, beta=beta, alpha=alpha)
    return add(input if beta == 1 else mul(input, beta), _mm(a, b, node), alpha=alpha)


@implements()
def hspmm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    """Return the product of a sparse and a dense matrix with one sparse dimension: the rows that ``mat1`` has.

    >>> import retrograd as torch
    >>> a = torch.sparse_coo_tensor([[0, 2], [1, 0]], [3.0, 4.0], (3, 2))
    >>> torch.hspmm(a, torch.eye(2))
    tensor(indices=tensor([[0, 2]]),
           values=tensor([[0., 3.],
                          [4., 0.]]),
           size=(3, 2), nnz=2, layout=torch.sparse_coo)
    """
    if not is_coo(mat1) or _is_sparse(mat2):
        raise unsupported("hspmm() of these tensors", sparse_coo)
    if mat2.dim() != 2:
        raise RuntimeError(f"hspmm: Argument #3: matrices expected, got {mat2.dim()}D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"hspmm: Argument #3: Expected dim 0 size {mat1.shape[1]}, got {mat2.shape[0]}")
    dense = _mm(mat1, mat2, "MmBackward0")
    rows = numpy.unique(mat1._pattern.coordinates()[0])
    return coo(rows[None], gather("IndexSelectBackward0", dense, rows, 1), tuple(dense.shape), False)


@implements()
def smm(input: SparseTensor, mat2: Tensor) -> SparseTensor:
    """Return the product of a sparse and a dense matrix as a sparse matrix.

    >>> import retrograd as torch
    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2)).to_dense()
    tensor([[1., 1.],
            [1., 1.]])
    """
    _check_sparse(input)
    dense = _mm(input, mat2, "MmBackward0")
    rows = numpy.unique(input._pattern.coordinates()[0])
    flat = (rows[:, None] * dense.shape[1] + numpy.arange(dense.shape[1])).reshape(-1)
    stored = gather("IndexSelectBackward0", dense, flat, 2)
    return coo(kernels.coordinates_of(flat, tuple(dense.shape)), stored, tuple(dense.shape), True)


@implements()
def sspaddmm(input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> SparseTensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` for sparse ``input`` and ``mat1``, as a sparse matrix.

    >>> import retrograd as torch
    >>> matrix = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(matrix, matrix, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    _check_sparse(input)
    return add(mul(input, beta), smm(mat1, mat2), alpha=alpha)


def _check_sparse(input: Tensor) -> None:
    if not isinstance(input, SparseTensor):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


@implements()
def linear(input: Tensor, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias``."""
    result = matmul(input, transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.t())
    return result if bias is None else result + bias


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> SparseTensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` at the indices of ``input``, a sparse matrix.

    >>> import retrograd as torch
    >>> input = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(input, torch.ones(2, 3), torch.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    _refuse_out("sampled_addmm", out)
    _check_matrix(input, "sampled_addmm")
    if input._sizes != (mat1.shape[0], mat2.shape[1]) or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: shapes {list(input._sizes)}, {list(mat1.shape)} and {list(mat2.shape)} do not fit"
        )
    rows, columns = _lines(input)
    products = sampled(mat1, mat2.t(), rows, columns)
    return with_values(input, products * alpha if beta == 0 else input._stored * beta + products * alpha)


# -- Sums ------------------------------------------------------------------------------------------------------------


def _sum_dims(x: SparseTensor, dim: Any) -> list[int]:
    given = [dim] if isinstance(dim, int) else list(dim)
    dims = [normalize_dim(each, len(x._sizes)) for each in given]
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    return sorted(dims)


def _summed(x: SparseTensor, dims: Sequence[int], dtype: Any, node: str) -> Any:
    sparse = x._pattern.dims
    if dtype is None and node == "SumBackward1" and x._stored._array.dtype.kind in "biu":
        dtype = dtypes.int64
    stored = x._stored if dtype is None else x._stored.to(dtype)
    inner = [dim - sparse + 1 for dim in dims if dim >= sparse]
    if inner:
        stored = stored.sum(inner)
    kept = [dim for dim in range(sparse) if dim not in dims]
    sizes = tuple(size for dim, size in enumerate(x._sizes) if dim not in dims)
    if len(kept) == sparse:
        return sparse_tensor(x._pattern, ALIAS[node](stored), sizes)
    if not kept:
        return ADD_AT[node](stored, wrap(numpy.zeros(len(stored), numpy.int64)), ())
    coordinates = x._pattern.coordinates()[kept]
    flat, place = numpy.unique(kernels.flat_indices(coordinates, sizes[: len(kept)]), return_inverse=True)
    values = ADD_AT[node](stored, wrap(place), (flat.size,))
    return coo(kernels.coordinates_of(flat, sizes[: len(kept)]), values, sizes, True)


@implements("sum")
def sum_of(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """Return the sum of all elements, a dense number, or of the dimensions ``dim``, a sparse tensor."""
    _refuse_out("sum", out)
    if keepdim.__class__ is not bool:
        raise TypeError(f"sum(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return input._stored.sum() if dtype is None else input._stored.sum(dtype=dtype)
    if not is_coo(input):
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return like(sum_of(to_sparse(input), dim, True, dtype=dtype), input.layout, "SumBackward1")
    dims = _sum_dims(input, dim)
    result = _summed(input, dims, dtype, "SumBackward1")
    if not isinstance(result, SparseTensor):
        return result.reshape([1 if k in dims else size for k, size in enumerate(input._sizes)]) if keepdim else result
    if keepdim:
        for each in dims:
            result = unsqueeze(result, each, "SumBackward1")
    return result


def sparse_sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum of all elements, or of the dimensions ``dim``; it is dense if these are all sparse dimensions.

    >>> import retrograd as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.sum(x), torch.sparse.sum(x, 0).to_dense()
    (tensor(7.), tensor([4., 0., 3.]))
    """
    input = IMPLEMENTED["coalesce"](input)
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return sum_of(input, dtype=dtype)
    return _summed(input, _sum_dims(input, dim), dtype, "SparseSumBackward0")


@implements()
def norm(
    input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, out: Any = None
) -> Tensor:
    """Return the norm of all elements."""
    _refuse_out("norm", out)
    if dim is not None and len(_sum_dims(input, dim)) != len(input._sizes):
        raise unsupported("norm() of some dimensions", input.layout)
    values = coalesced(input)._stored.reshape(-1)
    values = values if dtype is None else values.to(dtype)
    return values.norm(2 if p in ("fro", None) else p)


IMPLEMENTED["native_norm"] = norm


@implements("any")
def any_of(input: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return whether any element is not zero."""
    if args or kwargs:
        raise unsupported("any() of some dimensions", input.layout)
    return coalesced(input)._stored.any()


def _softmax(name: str, function: Callable[..., Any], input: Any, dim: int, dtype: Any) -> SparseTensor:
    if not isinstance(input, SparseTensor) or not is_coo(input):
        raise unsupported(f"torch.sparse.{name}()", input.layout)
    x = coalesced(input)
    x = x if dtype is None else with_values(x, x._stored.to(dtype))
    dim, dims = normalize_dim(dim, len(x._sizes)), x._pattern.dims
    if dim >= dims:
        node = "SparseSoftmaxBackward0" if name == "softmax" else "SparseLogSoftmaxBackward0"
        return with_values(x, ALIAS[node](FUNCTIONS[name](x._stored, dim - dims + 1)))
    kept = [each for each in range(dims) if each != dim]
    flat = kernels.flat_indices(x._pattern.coordinates()[kept], [x._sizes[each] for each in kept])
    groups, group = numpy.unique(flat, return_inverse=True)
    return with_values(x, function(x._stored, wrap(group), groups.size))


def softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the softmax of the stored elements along ``dim``; elements that are not stored count as minus infinity.

    >>> x = torch.tensor([[1.0, 0.0, 1.0], [0.0, 5.0, 0.0]]).to_sparse()
    >>> torch.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """
    return _softmax("softmax", softmax_of_groups, input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the logarithm of :func:`softmax`.

    >>> x = torch.tensor([[1.0, 0.0, 1.0], [0.0, 5.0, 0.0]]).to_sparse()
    >>> torch.sparse.log_softmax(x, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return _softmax("log_softmax", log_softmax_of_groups, input, dim, dtype)


# -- Dimensions ------------------------------------------------------------------------------------------------------


@implements()
def transpose(input: SparseTensor, dim0: int, dim1: int, node: str = "TransposeBackward0") -> SparseTensor:
    """Return the tensor with two sparse, or two dense, dimensions exchanged."""
    ndim, dims, pattern = len(input._sizes), input._pattern.dims, input._pattern
    dim0, dim1 = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    sizes = list(input._sizes)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    if dim0 == dim1:
        return with_values(input, ALIAS[node](input._stored))
    if (dim0 < dims) != (dim1 < dims):
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {dims}, d0: {dim0}, d1: {dim1}"
        )
    if dim0 >= dims:
        return sparse_tensor(pattern, input._stored.transpose(dim0 - dims + 1, dim1 - dims + 1), sizes)
    values = ALIAS[node](input._stored)
    if isinstance(pattern, Compressed):
        layout = sparse_csc if pattern.layout is sparse_csr else sparse_csr
        return sparse_tensor(Compressed(layout, pattern.starts, pattern.plain), values, sizes)
    order = list(range(dims))
    order[dim0], order[dim1] = dim1, dim0
    return coo(pattern.indices[order], values, sizes, False)


@implements()
def t(input: SparseTensor) -> SparseTensor:
    """Return the transposed matrix."""
    if len(input._sizes) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input._pattern.dims} sparse and "
            f"{len(input._sizes) - input._pattern.dims} dense dimensions"
        )
    return transpose(input, 0, len(input._sizes) - 1, "TBackward0") if input._sizes else input


@implements("permute")
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """Return the tensor with its dimensions in the order ``dims``; sparse dimensions stay before dense ones."""
    listed = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [normalize_dim(each, len(input._sizes)) for each in listed]
    if sorted(order) != list(range(len(input._sizes))):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(input._sizes)} is not equal to len(dims) = {len(order)}"
        )
    count, sizes = input._pattern.dims, [input._sizes[each] for each in order]
    if isinstance(input._pattern, Compressed):
        if order == [1, 0]:
            return transpose(input, 0, 1, "PermuteBackward0")
        raise unsupported("permute()", input.layout)
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError("permute(sparse_coo): sparse dimensions must stay before dense dimensions")
    stored = ALIAS["PermuteBackward0"](input._stored)
    if order[count:] != list(range(count, len(order))):
        stored = stored.permute(0, *[each - count + 1 for each in order[count:]])
    return coo(
        input._pattern.coordinates()[order[:count]], stored, sizes, order == sorted(order) and input._pattern.coalesced
    )


IMPLEMENTED["T"] = lambda input: permute(input, *reversed(range(len(input._sizes))))
IMPLEMENTED["mT"] = lambda input: transpose(input, -2, -1)
IMPLEMENTED["H"] = IMPLEMENTED["mH"] = IMPLEMENTED["adjoint"] = lambda input: IMPLEMENTED["conj"](
    transpose(input, -2, -1)
)


@implements()
def unsqueeze(input: SparseTensor, dim: int, node: str = "UnsqueezeBackward0") -> SparseTensor:
    """Return the tensor with a dimension of size 1 before ``dim``."""
    dim, dims = normalize_dim(dim, len(input._sizes) + 1), input._pattern.dims
    sizes = (*input._sizes[:dim], 1, *input._sizes[dim:])
    if not is_coo(input):
        raise unsupported("unsqueeze()", input.layout)
    if dim > dims:
        return sparse_tensor(input._pattern, input._stored.unsqueeze(dim - dims + 1), sizes)
    coordinates = numpy.insert(input._pattern.coordinates(), dim, 0, 0)
    return coo(coordinates, ALIAS[node](input._stored), sizes, input._pattern.coalesced)


def _check_list(name: str, tensors: Any) -> None:
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors")


@implements("cat")
def cat(tensors: Any, dim: int = 0, *, axis: Any = None, out: Any = None) -> SparseTensor:
    """Return the concatenation of sparse tensors along ``dim``."""
    _refuse_out("cat", out)
    _check_list("cat", tensors)
    for index, each in enumerate(tensors):
        if not isinstance(each, SparseTensor):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {index}.")
        if not is_coo(each):
            raise unsupported("cat()", each.layout)
    first = tensors[0]
    dims = first._pattern.dims
    dim = normalize_dim(dim if axis is None else axis, len(first._sizes))
    dtype = tensors[0].dtype
    for index, each in enumerate(tensors):
        dtype = promotion.promote_types(dtype, each.dtype)
        rest = [(a, b) for k, (a, b) in enumerate(zip(first._sizes, each._sizes, strict=False)) if k != dim]
        if each._pattern.dims != dims or len(each._sizes) != len(first._sizes) or any(a != b for a, b in rest):
            raise RuntimeError(
                "All tensors must have the same shape: "
                f"{list(first._sizes)} (except in the concatenating dimension), but found shape: {list(each._sizes)} at "
                f"position {index}."
            )
    lengths = [each._sizes[dim] for each in tensors]
    sizes = (*first._sizes[:dim], int(numpy.sum(lengths)), *first._sizes[dim + 1 :])
    starts = numpy.cumsum([0, *lengths])
    parts, values = [], []
    for each, start in zip(tensors, starts, strict=False):
        coordinates, stored = each._pattern.coordinates(), each._stored.to(dtype)
        if dim < dims:
            coordinates = coordinates.copy()
            coordinates[dim] += start
        elif len(tensors) > 1:  # a dense dimension: the rest of it is zero
            before, after = int(start), int(sizes[dim] - start - each._sizes[dim])
            pad = [0, 0] * (len(sizes) - 1 - dim) + [before, after]
            stored = FUNCTIONS["constant_pad_nd"](stored, pad, 0)
        parts.append(coordinates)
        values.append(stored)
    return coo(numpy.concatenate(parts, 1), FUNCTIONS["cat"](values), sizes, False)


@implements()
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> SparseTensor:
    """Return sparse tensors of the same shape, stacked along a new sparse dimension."""
    _check_list("stack", tensors)
    for index, each in enumerate(tensors):
        if tuple(each.shape) != tuple(tensors[0].shape):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(each.shape)} at entry {index}"
            )
        if not isinstance(each, SparseTensor):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {index}.")
    dim = normalize_dim(dim, tensors[0].dim() + 1)
    made = cat([unsqueeze(each, dim) for each in tensors], dim, out=out)
    return with_values(made, ALIAS["StackBackward0"](made._stored))


def _kept(x: SparseTensor, picked: Any, coordinates: Any, sizes: Sequence[int], node: str, order: bool) -> SparseTensor:
    """Return the elements ``picked`` of ``x`` with new coordinates, coalesced if ``order`` is true and ``x`` is."""
    values = gather(node, x._stored, picked, 1)
    return coo(coordinates, values, sizes, order and x._pattern.coalesced)


@implements()
def select(input: SparseTensor, dim: int, index: int) -> Any:
    """Return the slice at ``index`` of dimension ``dim``; that of the only sparse dimension is dense."""
    given, ndim = index, len(input._sizes)
    if not ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normalize_dim(dim, ndim)
    size = input._sizes[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {given} out of range for tensor of size {list(input._sizes)} at dimension {dim}"
        )
    index = index + size if index < 0 else index
    x = to_sparse(input)
    dims, sizes = x._pattern.dims, x._sizes[:dim] + x._sizes[dim + 1 :]
    if dim >= dims:
        return sparse_tensor(x._pattern, x._stored.select(dim - dims + 1, index), sizes)
    lines = x._pattern.coordinates()
    picked = numpy.flatnonzero(lines[dim] == index)
    if dims == 1:
        chosen = gather("IndexSelectBackward0", x._stored, picked, 1)
        return ADD_AT["SelectBackward0"](chosen, wrap(numpy.zeros(picked.size, numpy.int64)), ())
    return _kept(x, picked, numpy.delete(lines[:, picked], dim, 0), sizes, "SelectBackward0", True)


@implements("narrow", "narrow_copy")
def narrow(input: SparseTensor, dim: int, start: Any, length: int) -> SparseTensor:
    """Return the part of ``length`` indices of dimension ``dim`` that begins at ``start``."""
    dim, start = normalize_dim(dim, len(input._sizes)), int(start)
    size = input._sizes[dim]
    start = start + size if start < 0 else start
    if length < 0 or start < 0 or start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    if not is_coo(input):
        raise unsupported("narrow()", input.layout)
    dims, sizes = input._pattern.dims, (*input._sizes[:dim], length, *input._sizes[dim + 1 :])
    if dim >= dims:
        return sparse_tensor(input._pattern, input._stored.narrow(dim - dims + 1, start, length), sizes)
    lines = input._pattern.coordinates()
    picked = numpy.flatnonzero((lines[dim] >= start) & (lines[dim] < start + length))
    coordinates = lines[:, picked]
    coordinates[dim] -= start
    return _kept(input, picked, coordinates, sizes, "NarrowCopyBackward0", True)


@implements()
def index_select(input: SparseTensor, dim: int, index: Tensor, *, out: Any = None) -> SparseTensor:
    """Return the slices of dimension ``dim`` at the integers ``index``."""
    _refuse_out("index_select", out)
    if not isinstance(input, SparseTensor) or isinstance(index, SparseTensor) or not is_coo(input):
        raise unsupported("index_select() of these tensors", sparse_coo)
    dim, dims = normalize_dim(dim, len(input._sizes)), input._pattern.dims
    wanted = index._array.reshape(-1).astype(numpy.int64)
    size = input._sizes[dim]
    if wanted.size and not (wanted.min() >= -size and wanted.max() < size):
        raise IndexError(
            f"index_select(): index contains an index that is out of range for tensor of size {list(input._sizes)}"
        )
    wanted = numpy.where(wanted < 0, wanted + size, wanted)
    sizes = (*input._sizes[:dim], wanted.size, *input._sizes[dim + 1 :])
    if dim >= dims:
        return sparse_tensor(input._pattern, input._stored.index_select(dim - dims + 1, wrap(wanted)), sizes)
    lines = input._pattern.coordinates()
    order = numpy.argsort(lines[dim], kind="stable")
    starts = kernels.compressed(lines[dim], size)
    place, found = kernels.pairs(wanted, starts)
    picked = order[found]
    coordinates = lines[:, picked]
    coordinates[dim] = place
    ordered = numpy.argsort(kernels.flat_indices(coordinates, sizes[:dims]), kind="stable")
    return _kept(input, picked[ordered], coordinates[:, ordered], sizes, "IndexSelectBackward0", True)


@implements("__getitem__")
def getitem(input: Any, index: Any) -> Any:
    """Return the part of the tensor for an index of integers, slices of step 1, ``None`` and ``...``."""
    if not isinstance(input, SparseTensor):
        raise unsupported("Indexing by a sparse tensor", sparse_coo)
    items = list(index) if isinstance(index, tuple) else [index]
    if any(each is Ellipsis for each in items):
        used = len([each for each in items if each is not None and each is not Ellipsis])
        place = next(k for k, each in enumerate(items) if each is Ellipsis)
        items[place : place + 1] = [slice(None)] * (len(input._sizes) - used)
    result: Any = input
    dim = 0
    for each in items:
        if each is None:
            result, dim = result.unsqueeze(dim), dim + 1
        elif isinstance(each, slice):
            start, stop, step = each.indices(result.shape[dim])
            if step != 1:
                raise unsupported("Indexing by a slice with a step", input.layout)
            if (start, stop) != (0, result.shape[dim]):
                result = result.narrow(dim, start, max(0, stop - start))
            dim += 1
        elif isinstance(each, (int, numpy.integer)) and not isinstance(each, bool):
            if dim >= result.dim():
                raise IndexError(f"too many indices for tensor of dimension {len(input._sizes)}")
            result = result.select(dim, int(each))
        else:
            raise unsupported(f"Indexing by an object of type {type(each).__name__}", input.layout)
    return result


@implements()
def is_same_size(input: Any, other: Any) -> bool:
    """Return whether the tensors have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


@implements()
def is_nonzero(input: SparseTensor) -> bool:
    """Return whether the only element is not zero."""
    return input.__bool__()


# -- The graph -------------------------------------------------------------------------------------------------------


def _incoming(out: Any, grad: Any) -> Any:
    """Return ``grad``, the incoming gradient of ``out``, as that of the values if ``out`` is sparse."""
    if isinstance(out, SparseTensor):
        return values_at(grad, out)
    return to_dense(grad) if isinstance(grad, SparseTensor) else grad


implement_gradients(IMPLEMENTED, gradient_of, _incoming)


def rows_gradient(values: Any, index: Any, sizes: tuple[int, ...]) -> SparseTensor:
    """Return the gradient of ``embedding(sparse=True)``: the sparse tensor with the rows ``values`` at ``index``.

    The arguments are arrays.
    """
    return sparse_tensor(Coordinates(index.reshape(1, -1).astype(numpy.int64), False), wrap(values), sizes)


__all__ = ["IMPLEMENTED", "SparseTensor", "addmm", "mm", "rows_gradient", "sampled_addmm", "sparse_mask", "sparse_sum"]
