"""Products of matrices and vectors: ``mm``, ``bmm``, ``matmul``, ``addmm``, ``multi_dot``, ``cross``, ``kron``.

The derivative rules compute gradients by operations on Tensors or on arrays, which are attributes of their argument
``F``. Two examples are ``F.matmul``, and ``F.turned_fast``, the conjugate transpose of the last two dimensions.

The operations have the option ``holomorphic=False``: the complex conjugations are written out in the derivative rules.
The rules hold for real and complex matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy

from ...core import dtypes, promotion
from ...core.dtypes import cpp_name, scalar_name, unsupported
from ...core.rule_namespace import rule_namespace_of
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.argument_errors import ERROR_OVERRIDES
from ...dispatch.declare import TENSORS, exported, op, public, rule_function
from ...dispatch.intercept import GO_ON, HANDLERS, OVERRIDING, ask_classes_of, intercept_locals
from ...dispatch.operand_promotion import PLAIN, broadcast_error, broadcast_mismatch
from ...kernels import matmul as matmul_kernels
from ...kernels.matmul import add_product, batch_product, matrix_product
from ...kernels.matmul import dot as matrix_dot
from ...kernels.numba_dispatch import F32, F64
from ...runtime.user_frame import warn
from ..creation.conversion import clone, contiguous
from ..engine_ops import expand, inexpandable
from ..shape.views import reshape, squeeze, transpose, unsafe_view, unsqueeze, view, view_block

F: Any = TENSORS


def _same_dtype(a: Any, b: Any, *, what: str = "expected m1 and m2 to have the same dtype, but got: {} != {}") -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(what.format(cpp_name(a.dtype), cpp_name(b.dtype)))


# -- Products --------------------------------------------------------------------------------------------------------


def _product(np: Any, a: Any, b: Any, name: str = "addmm_impl_cpu_") -> Any:
    if a.dtype.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    return matrix_product(np, a, b)


def _check_summand(self: Any, shape: tuple[int, ...], first: Any, second: Any, names: tuple[str, str]) -> None:
    """Raise RuntimeError if ``self`` cannot be added to the product of ``first`` and ``second``.

    The shape of ``self`` must broadcast to ``shape``, the shape of the product. All three dtypes must be equal.
    ``names`` are the names of ``first`` and ``second`` in the error message. Functions such as ``addmm`` call this.
    """
    pairs = zip(self.shape[::-1], shape[::-1], strict=False)
    if self.ndim > len(shape) or any(have not in (1, want) for have, want in pairs):
        raise inexpandable(self, list(shape))
    for (a, x), (b, y) in ((("self", self), (names[1], second)), ((names[0], first), (names[1], second))):
        if x.dtype != y.dtype:
            raise RuntimeError(f"{a} and {b} must have the same dtype, but got {_scalar(x)} and {_scalar(y)}")


def _scalar(x: Any) -> str:
    return dtypes.scalar_name(dtypes.dtype_of(x.dtype))


@op(name="mT", view=True, function=False, method=False, holomorphic=False, backward="MtBackward0", vmap="leading")
def turned(np: Any, self: Any, /) -> Any:
    """Return the conjugate transpose of the last two dimensions of ``self``."""
    result = self.swapaxes(-1, -2)
    return result.conj() if self.dtype.kind == "c" else result


turned.derivative(self=lambda F, g: F.mT(g))


@op(
    backward="MmBackward0", opmath=True, holomorphic=False, linear="each",
    inline=lambda self, mat2, _d: matrix_dot(numpy, self, mat2)
    if (_d is F32 or _d is F64) and mat2.dtype is _d and self.ndim == 2 == mat2.ndim else None,
)  # fmt: skip
def mm(np: Any, self: Any, mat2: Any, /) -> Any:
    """Return the product of the matrices ``self`` (n, k) and ``mat2`` (k, m).

    >>> import retrograd as torch
    >>> torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [1]]))
    tensor([[3],
            [7]])
    """
    if self.ndim == 2 == mat2.ndim and self.dtype is mat2.dtype:
        try:
            return matrix_dot(np, self, mat2) if self.dtype is F32 else _product(np, self, mat2)
        except ValueError:  # explained by the checks below
            pass
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x"
            f"{mat2.shape[1]})"
        )
    _same_dtype(self, mat2)
    return _product(np, self, mat2)


mm.derivative(
    self=lambda F, g, mat2: F.mm(g, F.turned_fast(mat2)), mat2=lambda F, g, self: F.mm(F.turned_fast(self), g)
)


def _adjoint_array(x: Any) -> Any:
    result = x.T if x.ndim == 2 else x.swapaxes(-1, -2)
    return result.conj() if x.dtype.kind == "c" else result


def _adjoint_tensor(x: Tensor) -> Tensor:
    result = F.t(x) if x._array.ndim == 2 else transpose(x, -1, -2)
    return result.conj() if x._array.dtype.kind == "c" else result


def _mm_in_memory_order(a: Any, b: Any, strides: tuple[int, ...]) -> Any:
    """Return ``a @ b``, the gradient of a matrix, in the memory order of this matrix.

    ``strides`` are the strides of the matrix. If ``strides[0] < strides[1]``, the result is in column-major order.
    Otherwise it is in row-major order.
    """
    mm = rule_namespace_of(a).mm
    return mm(b.T, a.T).T if strides[0] < strides[1] else mm(a, b)


rule_function("mm_laid_out", _mm_in_memory_order, lambda a, b, strides: F.mm(a, b))
rule_function("turned_fast", _adjoint_array, _adjoint_tensor)


@op(
    backward="BmmBackward0", opmath=True, holomorphic=False,
    inline=lambda self, mat2, _d: batch_product(numpy, self, mat2)
    if (_d is F32 or _d is F64) and mat2.dtype is _d and self.ndim == 3 == mat2.ndim and len(self) == len(mat2) else None,
    linear="each",
)  # fmt: skip
def bmm(np: Any, self: Any, mat2: Any, /) -> Any:
    """Return ``self[i] @ mat2[i]`` for each i, for batches ``self`` (b, n, k) and ``mat2`` (b, k, m) of matrices."""
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(("batch1" if self.ndim != 3 else "batch2") + " must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{self.shape[0]}, {self.shape[2]}] but got: "
            f"[{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    if self.dtype != mat2.dtype:
        raise RuntimeError(f"expected scalar type {_scalar(self)} but found {_scalar(mat2)}")
    return _product(np, self, mat2, "bmm")


bmm.derivative(
    self=lambda F, g, mat2: F.bmm(g, F.turned_fast(mat2)), mat2=lambda F, g, self: F.bmm(F.turned_fast(self), g)
)


@op(
    backward="MvBackward0", opmath=True, holomorphic=False,
    inline=lambda self, vec, _d: self.dot(vec)
    if (_d is F32 or _d is F64) and vec.dtype is _d and self.ndim == 2 and vec.ndim == 1 else None,
    linear="each",
)  # fmt: skip
def mv(np: Any, self: Any, vec: Any, /) -> Any:
    """Return the product of the matrix ``self`` (n, m) and the vector ``vec`` (m,)."""
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {1}, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})"
        )
    if self.dtype != vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {_scalar(vec)}, {_scalar(self)}, and {_scalar(vec)}"
        )
    return _product(np, self, vec, "addmv_impl_cpu")


mv.derivative(
    self=lambda F, g, vec: F.outer_conj(g, vec),
    vec=lambda F, g, self: F.mv(F.turned_fast(self), g),
)


@op(
    backward="DotBackward0", opmath=True, holomorphic=False,
    inline=lambda self, tensor, _d: self.dot(tensor)
    if (_d is F32 or _d is F64) and tensor.dtype is _d and self.ndim == 1 == tensor.ndim else None,
    linear="each",
)  # fmt: skip
def dot(np: Any, self: Any, tensor: Any, /) -> Any:
    """Return the dot product of the vectors ``self`` and ``tensor``, which have the same size.

    >>> import retrograd as torch
    >>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor(11)
    """
    _check_vectors(self, tensor)
    if self.dtype.kind == "b":
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    return np.dot(self, tensor)


def _check_vectors(self: Any, tensor: Any) -> None:
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {dtypes.scalar_name(dtypes.dtype_of(self.dtype))} and "
            f"{dtypes.scalar_name(dtypes.dtype_of(tensor.dtype))}"
        )
    if self.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{tensor.shape[0]}] to have the same "
            f"number of elements, but got {self.shape[0]} and {tensor.shape[0]} elements respectively"
        )


dot.derivative(
    self=lambda F, g, tensor: g * F.conj_physical(tensor), tensor=lambda F, g, self: g * F.conj_physical(self)
)


@op(backward="VdotBackward0", opmath=True, holomorphic=False)
def vdot(np: Any, self: Any, other: Any, /) -> Any:
    """Return the dot product of the vectors ``conj(self)`` and ``other``."""
    _check_vectors(self, other)
    return np.asarray(np.dot(self.conj(), other))


vdot.derivative(self=lambda F, g, other: F.conj_physical(g) * other, other=lambda g, self: g * self)


@op(opmath=True, holomorphic=False, function=False, method=False)
def outer_conj(np: Any, self: Any, other: Any, /) -> Any:
    """Return the matrix with the elements ``self[i] * conj(other[j])``."""
    return matmul_kernels.outer(np, self, other.conj() if other.dtype.kind == "c" else other)


outer_conj.derivative(self=lambda F, g, other: F.mv(g, other), other=lambda F, g, self: F.mv(F.turned_fast(g), self))


@op(name="outer_block", backward="MulBackward0", holomorphic=False, function=False, method=False)
def outer_block(np: Any, self: Any, other: Any, /) -> Any:
    """Return the outer product of ``self``, a matrix with one column, and the vector ``other``, as a matrix.

    The result is equal to ``self * other``, but is computed faster: the rows are computed in parallel, and the
    gradients by matrix products.
    """
    return matmul_kernels.outer_by_loop(self, other)


outer_block.derivative(
    self=lambda F, g, other: F.unsqueeze(F.mv(g, other), 1),
    other=lambda F, g, self: F.mv(F.turned_fast(g), F.reshape(self, (-1,))),
)


@public(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """Return the outer product of two vectors: the matrix with the elements ``input[i] * vec2[j]``.

    >>> import retrograd as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for each in (input, vec2):
        if each._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {'self' if each is input else 'vec2'}, but got {each._array.ndim}-D"
            )
    column = view_block(input, (len(input._array), 1)) if input._array.flags.c_contiguous else reshape(input, (-1, 1))
    a, b = input._array, vec2._array
    if matmul_kernels.has_outer_loop(a, b) and input.__class__ in PLAIN and vec2.__class__ in PLAIN:
        return outer_block(column, vec2)
    return F.mul(column, vec2)


@exported("linalg")
@public(fast_path=mm, inline_only=True, then_try=[(mv, None), (dot, None)])
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """Return the matrix product of ``input`` and ``other``, which are vectors, matrices, or batches of matrices.

    If ``input`` is 1-d, it is a row vector. If ``other`` is 1-d, it is a column vector. Dimensions before the last two
    are batch dimensions, which are broadcast.

    >>> import retrograd as torch
    >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if HANDLERS and (answer := intercept_locals(matmul, locals())) is not GO_ON:
        return answer
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    a, b = input._array.ndim, other._array.ndim
    if a == 2 and b == 2:
        return mm(input, other)
    if a == 2 and b == 1:
        return mv(input, other)
    if a == 1 and b == 1:
        return dot(input, other)
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 2:
        return mm(unsqueeze(input, 0), other).squeeze_(0)
    return _batched_matmul(input, other)


def _batched_matmul(x: Tensor, y: Tensor) -> Tensor:
    """Return ``matmul(x, y)``, where ``x`` or ``y`` has three or more dimensions."""
    x, y = _without_unit_batch(x, y), _without_unit_batch(y, x)
    if y._array.ndim <= 2 <= x._array.ndim and (y.requires_grad or _mergeable(x._array)):
        _check_inner(x._array.shape[-1], y._array.shape[0], x, y)
        return _matmul_folded(x, y)
    if x._array.ndim <= 2 <= y._array.ndim and (x.requires_grad or _mergeable(y._array.swapaxes(-1, -2))):
        _check_inner(x._array.shape[-1], y._array.shape[-2], x, y)
        result = _matmul_folded(transpose(y, -1, -2), F.t(x) if x._array.ndim == 2 else x)
        return result if x._array.ndim == 1 else contiguous(transpose(result, -1, -2))
    left = unsqueeze(x, 0) if x._array.ndim == 1 else x
    right = unsqueeze(y, -1) if y._array.ndim == 1 else y
    _check_inner(left._array.shape[-1], right._array.shape[-2], x, y)
    error = broadcast_error((_batch_only(left), _batch_only(right)))
    if error is not None:
        raise error
    batch = numpy.broadcast_shapes(left._array.shape[:-2], right._array.shape[:-2])
    n, k, m = left._array.shape[-2], left._array.shape[-1], right._array.shape[-1]
    count = math.prod(batch)
    wide_left = reshape(expand(left, (*batch, n, k)), (count, n, k))
    wide_right = reshape(expand(right, (*batch, k, m)), (count, k, m))
    result = bmm(wide_left, wide_right)
    shape = (*batch, *((n,) if x._array.ndim > 1 else ()), *((m,) if y._array.ndim > 1 else ()))
    return unsafe_view(result, shape)


def _without_unit_batch(x: Tensor, other: Tensor) -> Tensor:
    """Return ``x`` without its batch dimension if this makes the product with ``other`` in ``matmul`` faster.

    With a 2-d ``x``, ``matmul`` computes a single matrix product instead of a batch of products. The batch dimension is
    removed if ``x`` and ``other`` are 3-d, only ``x`` has a batch of size 1, and ``x`` requires a gradient. Otherwise
    ``x`` is returned unchanged.
    """
    alone = x._array.ndim == 3 == other._array.ndim and x._array.shape[0] == 1 != other._array.shape[0]
    return squeeze(x, 0) if alone and x.requires_grad else x


def _mergeable(array: Any) -> bool:
    """Return whether all dimensions of ``array`` except the last can be merged into one dimension without a copy."""
    pairs = zip(array.shape[1:-1], array.strides[:-2], array.strides[1:-1], strict=True)
    return bool(array.size == 0 or all(outer == inner * size for size, outer, inner in pairs))


def _matmul_folded(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x @ y`` for a vector or matrix ``y``, computed as one product of a matrix and ``y``.

    The rows of this matrix are the rows of all matrices of the batch ``x``.
    """
    shape = x._array.shape
    rows = reshape(x, (-1 if shape[-1] else math.prod(shape[:-1]), shape[-1]))
    flat = mm(rows, y) if y._array.ndim == 2 else mv(rows, y)
    return unsafe_view(flat, (*shape[:-1], *y._array.shape[1:]))


def _batch_only(x: Tensor) -> Tensor:
    return wrap(numpy.empty(x._array.shape[:-2], bool))


def _check_inner(a: int, b: int, x: Tensor, y: Tensor) -> None:
    if a != b:
        if y._array.ndim <= 2:
            rows = math.prod(x._array.shape[:-1])
            other = "x".join(map(str, y._array.shape)) if y._array.ndim == 2 else f"{b}"
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a} and {other})"
                               if y._array.ndim == 2 else
                               f"size mismatch, got input ({rows}), mat ({rows}x{a}), vec ({other})")  # fmt: skip
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{math.prod(y._array.shape[:-2])}, {a}] but "
            f"got: [{math.prod(y._array.shape[:-2])}, {b}]."
        )


@public(function=False, name="__matmul__", fast_path=mm, inline_only=True, then_try=[(mv, None), (dot, None)])
def at(input: Tensor, other: Any) -> Any:
    """Return ``input @ other``, the same as ``matmul(input, other)``."""
    if OVERRIDING and (answer := ask_classes_of("__matmul__", input, other)) is not GO_ON:
        return answer
    return matmul(input, other) if isinstance(other, Tensor) else NotImplemented


@public(function=False, name="__rmatmul__")
def reflected_at(input: Tensor, other: Any) -> Any:
    """Return ``other @ input``, or ``NotImplemented`` if ``other`` is not a tensor.

    This is the method ``__rmatmul__``. Python calls it if the left operand ``other`` does not implement ``@``.
    """
    return at(other, input) if isinstance(other, Tensor) else NotImplemented


# -- Products added to a tensor --------------------------------------------------------------------------------------


def _scaled(F: Any, g: Any, factor: Any) -> Any:
    return g if factor == 1 else g * factor.conjugate()


@op(
    backward="AddmmBackward0", opmath=True, holomorphic=False, in_place=True,
    inline=lambda self, mat1, mat2, beta, alpha, _d: add_product(numpy, self, mat1, mat2)
    if (_d is F32 or _d is F64) and beta == 1 == alpha and mat1.ndim == 2 == mat2.ndim and mat1.dtype is _d is mat2.dtype
    else None,
)  # fmt: skip
def addmm(np: Any, self: Any, mat1: Any, mat2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * mat1 @ mat2``; ``self`` broadcasts to the shape of the product."""
    for name, each in (("mat1", mat1), ("mat2", mat2)):
        if each.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {each.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x"
            f"{mat2.shape[1]})"
        )
    _check_summand(self, (mat1.shape[0], mat2.shape[1]), mat1, mat2, ("mat1", "mat2"))
    return _combine(np, self, _product(np, mat1, mat2), beta, alpha)


def _combine(np: Any, self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product = product * np.asarray(alpha).astype(product.dtype)
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * np.asarray(beta).astype(self.dtype))


addmm.derivative(
    self=lambda F, g, beta: _scaled(F, g, beta),
    mat1=lambda F, g, mat2, alpha: _scaled(F, F.mm(g, F.turned_fast(mat2)), alpha),
    mat2=lambda F, g, mat1, mat2_strides, alpha: _scaled(F, F.mm_laid_out(F.turned_fast(mat1), g, mat2_strides), alpha),
)


@op(backward="AddmvBackward0", opmath=True, holomorphic=False, in_place="function")
def addmv(np: Any, self: Any, mat: Any, vec: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * mat @ vec``; ``self`` broadcasts to the shape of the product."""
    if mat.ndim != 2 or vec.ndim != 1 or self.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or self.size not in (1, mat.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({self.size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if not self.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {_scalar(self)}, {_scalar(mat)}, and {_scalar(vec)}"
        )
    return _combine(np, self, _product(np, mat, vec, "addmv_impl_cpu"), beta, alpha)


addmv.derivative(
    self=lambda F, g, beta: _scaled(F, g, beta),
    mat=lambda F, g, vec, alpha: _scaled(F, F.outer_conj(g, vec), alpha),
    vec=lambda F, g, mat, alpha: _scaled(F, F.mv(F.turned_fast(mat), g), alpha),
)


@op(backward="AddrBackward0", holomorphic=False, in_place=True)
def addr(np: Any, self: Any, vec1: Any, vec2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * outer(vec1, vec2)``, in the promoted dtype of the three tensors.

    ``self`` broadcasts to the shape of the outer product.
    """
    if vec1.ndim != 1 or vec2.ndim != 1:
        name, wrong = ("vec1", vec1) if vec1.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {wrong.ndim}-D")
    _check_summand(self, (vec1.shape[0], vec2.shape[0]), self, self, ("vec1", "vec2"))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if self.dtype.kind in "iu" and vec1.dtype.kind in "iu" and isinstance(factor, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    kind = reduce(promotion.promote_types, (dtypes.dtype_of(each.dtype) for each in (self, vec1, vec2))).numpy
    wide = F32 if kind in dtypes.HALF_PRECISION else kind
    self, vec1, vec2 = (each.astype(wide, copy=False) for each in (self, vec1, vec2))
    return _combine(np, self, vec1[:, None] * vec2[None, :], beta, alpha).astype(kind, copy=False)


addr.derivative(
    self=lambda F, g, beta: _scaled(F, g, beta),
    vec1=lambda F, g, vec2, alpha: _scaled(F, F.mv(g, F.conj_physical(vec2)), alpha),
    vec2=lambda F, g, vec1, alpha: _scaled(F, F.mv(F.transpose(g, 0, 1), F.conj_physical(vec1)), alpha),
)


@op(backward="BaddbmmBackward0", opmath=True, holomorphic=False, in_place=True)
def baddbmm(np: Any, self: Any, batch1: Any, batch2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * bmm(batch1, batch2)``; ``self`` broadcasts to the shape of the product."""
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"{'batch1' if batch1.ndim != 3 else 'batch2'} must be a 3D tensor")
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    if not self.dtype == batch1.dtype == batch2.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {cpp_name(self.dtype)}, batch1: {cpp_name(batch1.dtype)}, batch2: "
            f"{cpp_name(batch2.dtype)}"
        )
    _check_summand(self, shape, batch1, batch2, ("batch1", "batch2"))
    if batch1.shape[0] != batch2.shape[0] or batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch1.shape[0]}, {batch1.shape[2]}] but "
            f"got: [{batch2.shape[0]}, {batch2.shape[1]}]."
        )
    return _combine(np, self, _product(np, batch1, batch2, "bmm"), beta, alpha)


baddbmm.derivative(
    self=lambda F, g, beta: _scaled(F, g, beta),
    batch1=lambda F, g, batch2, alpha: _scaled(F, F.bmm(g, F.turned_fast(batch2)), alpha),
    batch2=lambda F, g, batch1, alpha: _scaled(F, F.bmm(F.turned_fast(batch1), g), alpha),
)


@op(backward="AddbmmBackward0", opmath=True, holomorphic=False, in_place=True)
def addbmm(np: Any, self: Any, batch1: Any, batch2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self`` plus ``alpha`` times the sum of ``batch1[i] @ batch2[i]`` over all i.

    ``self`` broadcasts to the shape of the sum.
    """
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"{'batch1' if batch1.ndim != 3 else 'batch2'} must be a 3D tensor")
    _check_summand(self, (batch1.shape[1], batch2.shape[2]), batch1, batch2, ("batch1", "batch2"))
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
            f"{batch2.shape[1]}x{batch2.shape[2]})"
        )
    return _combine(np, self, np.add.reduce(_product(np, batch1, batch2, "bmm")), beta, alpha)


def _inplace_shape_error(name: str) -> Callable[[dict[str, Any]], Exception | None]:
    """Return a function that checks the shapes in a call of an in-place method, such as ``addmm_``.

    ``name`` is the name of the method. The returned function takes the arguments of the method as a dictionary. If the
    result has another shape than the tensor that the method overwrites, it returns PyTorch's error. If the shapes
    agree, it returns None. If the operands do not fit together, it also returns None, because the operation then raises
    an error.
    """

    def instead(given: dict[str, Any]) -> Exception | None:
        x, first, second = (each._array.shape for each in list(given.values())[:3])
        if name == "addr_":
            if len(x) != 2:
                return RuntimeError(f"2D tensor expected, got {len(x)}D tensor for input")
            if len(first) == len(second) == 1 and x != first + second:
                return RuntimeError(f"size mismatch, input: {list(x)}, v1: {list(first)}, v2: {list(second)}")
            return None
        fits = len(first) == {"addmm_": 2, "addmv_": 2, "baddbmm_": 3}[name] and first[-1] == second[-2:][0]
        target = (*first[:-1], *second[-1:]) if len(first) == len(second) else first[:-1]
        broadcast = name == "addmm_" or (len(x) <= len(target) and broadcast_mismatch(x, target) is None)
        if not fits or x == target or not broadcast or (name == "addmv_" and len(x) > 1):
            return None
        return RuntimeError(
            f"Bad in-place call: input tensor size {list(x)} and output tensor size {list(target)} should match"
        )

    return instead


ERROR_OVERRIDES.update((name, _inplace_shape_error(name)) for name in ("addmm_", "addmv_", "addr_", "baddbmm_"))


def _batch_gradient(F: Any, g: Any, other: Any) -> Any:
    return F.expand(g, (_shape(other)[0], *_shape(g)))


def _shape(x: Any) -> tuple[int, ...]:
    return x._array.shape if isinstance(x, Tensor) else x.shape


addbmm.derivative(
    self=lambda F, g, beta: _scaled(F, g, beta),
    batch1=lambda F, g, batch2, alpha: _scaled(F, F.bmm(_batch_gradient(F, g, batch2), F.turned_fast(batch2)), alpha),
    batch2=lambda F, g, batch1, alpha: _scaled(F, F.bmm(F.turned_fast(batch1), _batch_gradient(F, g, batch1)), alpha),
)


# -- Chains and other products -----------------------------------------------------------------------------------------


@public(method=False)
def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """Return the product of ``matrices``, multiplied in the order that needs the fewest scalar multiplications."""
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for each in matrices:
        if each._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {each._array.ndim}, expected 2 instead.")
    return clone(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


@exported("linalg")
def multi_dot(tensors: Any, *, out: Any = None) -> Tensor:
    """Return the product of the matrices ``tensors``, multiplied in the order with the fewest multiplications.

    The first tensor may be a vector, which is a matrix with one row. The last tensor may be a vector, which is a matrix
    with one column. The dimension of size 1 of such a row or column is removed from the result.

    >>> import retrograd as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
    tensor([12., 12.])
    """
    if isinstance(tensors, Tensor):
        raise TypeError("linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    _check_chain(given)
    first, last = given[0]._array.ndim == 1, given[-1]._array.ndim == 1
    if first:
        given[0] = unsqueeze(given[0], 0)
    if last:
        given[-1] = unsqueeze(given[-1], 1)
    for i, (a, b) in enumerate(pairwise(given)):
        if a._array.shape[1] != b._array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a._array.shape)} and {list(b._array.shape)} "
                "cannot be multiplied"
            )
    shape = (given[0]._array.shape[0],) * (not first) + (given[-1]._array.shape[1],) * (not last)
    sizes = [*(each._array.shape[0] for each in given), given[-1]._array.shape[1]]
    result: Tensor = view(_chain(given, _splits(sizes), 0, len(given) - 1), shape)
    return result


def _check_chain(given: list[Tensor]) -> None:
    count = len(given)
    for i, each in enumerate(given):
        ndim = each._array.ndim
        if i in (0, count - 1) and ndim not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {ndim}D"
            )
        if 0 < i < count - 1 and ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {ndim}D")
        if each._array.dtype != given[0]._array.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{cpp_name(given[0].dtype)} and tensor {i} {cpp_name(each.dtype)}"
            )


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Helper of :func:`multi_dot`: return the cheapest order in which a chain of matrices is multiplied.

    Matrix i of the chain has ``sizes[i]`` rows and ``sizes[i + 1]`` columns. The result is a dictionary with a key
    ``(i, j)`` for each part of the chain, from matrix i to matrix j. The value k is the best position to split this
    part: the product of matrices i to k is multiplied by the product of matrices k + 1 to j. The values are computed by
    dynamic programming.
    """
    count = len(sizes) - 1
    cost: dict[tuple[int, int], float] = {(i, i): 0.0 for i in range(count)}
    best: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], best[i, j] = min(options)
    return best


def _chain(given: list[Tensor], best: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return given[i]
    k = best[i, j]
    return mm(_chain(given, best, i, k), _chain(given, best, k + 1, j))


def _scalar_name(array: Any) -> str:
    return scalar_name(dtypes.dtype_of(array.dtype))


@op(backward="LinalgCrossBackward0", function=False, method=False, holomorphic=False, vmap=(0, 0))
def cross_block(np: Any, self: Any, other: Any, /, dim: int) -> Any:
    """Return the cross product of ``self`` and ``other`` along the dimension ``dim``, which has size 3."""
    if self.dtype.kind == "b":
        raise unsupported("cross", self.dtype)
    if other.dtype != self.dtype:
        raise RuntimeError(f"expected scalar type {_scalar_name(self)} but found {_scalar_name(other)}")
    with numpy.errstate(all="ignore"):
        return np.ascontiguousarray(np.cross(self, other, axis=dim))


cross_block.derivative(
    self=lambda F, g, other, dim: F.cross_block(F.conj_physical(other), g, dim),
    other=lambda F, g, self, dim: F.cross_block(g, F.conj_physical(self), dim),
)


@exported("linalg")
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """Return the cross product of ``input`` and ``other`` along ``dim``, which has size 3.

    All dimensions except ``dim`` are broadcast.
    """
    if input._array.ndim != other._array.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = normalize_dim(dim, input._array.ndim)
    if input._array.shape[at] != 3 or other._array.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input._array.shape[at]} and "
            f"{other._array.shape[at]}"
        )
    error = broadcast_error((input, other))
    if error is not None:
        raise error
    shape = numpy.broadcast_shapes(input._array.shape, other._array.shape)
    result: Tensor = cross_block(expand(input, shape), expand(other, shape), at)
    return result


def _torch_cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """Return the cross product of ``input`` and ``other`` along ``dim``, which has size 3.

    If ``dim`` is None, the first dimension of size 3 is used, with PyTorch's deprecation warning.
    """
    if dim is None:
        warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a "
            "future release."
        )
        dim = next((i for i, size in enumerate(input._array.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return cross(input, other, dim=dim)


public(name="cross")(_torch_cross)


@public()
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """Return the Kronecker product of ``input`` and ``other``.

    For matrices, the result is the block matrix whose block (i, j) is ``input[i, j] * other``.

    >>> import retrograd as torch
    >>> torch.kron(torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([[1., 2., 0., 0.],
            [0., 0., 1., 2.]])
    """
    ndim = max(input._array.ndim, other._array.ndim)
    a, b = ((1,) * (ndim - each._array.ndim) + each._array.shape for each in (input, other))
    wide = [size for pair in zip(a, (1,) * ndim, strict=True) for size in pair]
    long = [size for pair in zip((1,) * ndim, b, strict=True) for size in pair]
    result: Tensor = unsafe_view(
        F.mul(reshape(input, tuple(wide)), reshape(other, tuple(long))),
        tuple(x * y for x, y in zip(a, b, strict=True)),
    )
    return result
