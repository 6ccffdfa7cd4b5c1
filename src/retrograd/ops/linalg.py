"""Linear algebra: products, norms of matrices, inverses, solves.

Rules use ``F.mT`` (the last two dimensions exchanged, conjugated) and ``F.matmul``; they hold for real and complex
matrices alike, so the blocks here are declared ``holomorphic=False`` and conjugate themselves.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, dimension, wrap
from . import reduce as _reduce
from .calls import broadcast_error
from .cast import contiguous
from .inner import expand
from .join import where_
from .named import named
from .shape import permute_block, reshape, squeeze, transpose, unsafe_view, unsqueeze, view
from .table import ARRAYS, TENSORS, op, surface

F: Any = TENSORS


class LinAlgError(RuntimeError):
    """A matrix that has no answer: singular where an inverse is asked for, not positive definite …"""

    __module__ = "torch._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as PyTorch's tracebacks show it


def _block(name: str, backward: str | None = None, **options: Any) -> Any:
    return op(name=name, backward=backward, function=False, method=False, holomorphic=False, **options)


def _same_dtype(a: Any, b: Any, *, what: str = "expected m1 and m2 to have the same dtype, but got: {} != {}") -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(what.format(_c_name(a), _c_name(b)))


def _c_name(x: Any) -> str:
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "float16": "c10::Half",
            "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "bool": "bool",
            "bfloat16": "c10::BFloat16"}.get(str(x.dtype), str(x.dtype))  # fmt: skip


# -- Products --------------------------------------------------------------------------------------------------------


def _product(np: Any, a: Any, b: Any, name: str = "addmm_impl_cpu_") -> Any:
    if b.ndim == 2 and a.dtype.kind == "f":
        return np.dot(a, b)  # BLAS at once: matmul takes 0.5 µs longer to find it
    if a.dtype.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    return np.matmul(a, b)


def _summand(self: Any, shape: tuple[int, ...], first: Any, second: Any, names: tuple[str, str]) -> None:
    """Refuse what can not be added to a product of that shape."""
    lead = len(shape) - self.ndim
    for i, (have, want) in enumerate(zip(self.shape, shape[max(lead, 0) :], strict=False)):
        if lead < 0 or have not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i + lead}.  Target sizes: {list(shape)}.  Tensor sizes: {list(self.shape)}"
            )
    for (a, x), (b, y) in ((("self", self), (names[1], second)), ((names[0], first), (names[1], second))):
        if x.dtype != y.dtype:
            raise RuntimeError(f"{a} and {b} must have the same dtype, but got {_scalar(x)} and {_scalar(y)}")


def _scalar(x: Any) -> str:
    return dtypes.scalar_name(dtypes.of(x.dtype))


@op(name="mT", view=True, function=False, method=False, holomorphic=False, backward="MtBackward0")
def turned(np: Any, self: Any, /) -> Any:
    """The last two dimensions exchanged, complex numbers conjugated."""
    found = self.swapaxes(-1, -2)
    return found.conj() if self.dtype.kind == "c" else found


turned.derivative(self=lambda F, g: F.mT(g))


@op(
    backward="MmBackward0", opmath=True, holomorphic=False, name="mm",
    inline=("self.ndim == 2 == mat2.ndim", "self.dot(mat2)"),
)  # fmt: skip
def mm(np: Any, self: Any, mat2: Any, /) -> Any:
    """The product of two matrices."""
    if self.ndim == 2 == mat2.ndim and self.dtype is mat2.dtype:
        try:
            return _product(np, self, mat2)
        except ValueError:  # told below
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


def _turned_array(x: Any) -> Any:
    found = x.swapaxes(-1, -2)
    return found.conj() if x.dtype.kind == "c" else found


def _turned_tensor(x: Tensor) -> Tensor:
    found = F.t(x) if x._array.ndim == 2 else transpose(x, -1, -2)
    return found.conj() if x._array.dtype.kind == "c" else found


ARRAYS.__dict__["turned_fast"], TENSORS.__dict__["turned_fast"] = _turned_array, _turned_tensor


@op(backward="BmmBackward0", opmath=True, holomorphic=False)
def bmm(np: Any, self: Any, mat2: Any, /) -> Any:
    """The products of matrices in two batches."""
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


@op(backward="MvBackward0", opmath=True, holomorphic=False)
def mv(np: Any, self: Any, vec: Any, /) -> Any:
    """The product of a matrix and a vector."""
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


@op(backward="DotBackward0", opmath=True, holomorphic=False)
def dot(np: Any, self: Any, tensor: Any, /) -> Any:
    """The sum of the products of two vectors."""
    _check_vectors(self, tensor)
    if self.dtype.kind == "b":
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    return np.dot(self, tensor)


def _check_vectors(self: Any, tensor: Any) -> None:
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{tensor.shape[0]}] to have the same "
            f"number of elements, but got {self.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    if self.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {dtypes.scalar_name(dtypes.of(self.dtype))} and "
            f"{dtypes.scalar_name(dtypes.of(tensor.dtype))}"
        )


dot.derivative(
    self=lambda F, g, tensor: g * F.conj_physical(tensor), tensor=lambda F, g, self: g * F.conj_physical(self)
)


@op(backward="VdotBackward0", opmath=True, holomorphic=False)
def vdot(np: Any, self: Any, other: Any, /) -> Any:
    """The sum of the products of two vectors, the first conjugated."""
    _check_vectors(self, other)
    return np.asarray(np.dot(self.conj(), other))


vdot.derivative(self=lambda F, g, other: F.conj_physical(g) * other, other=lambda F, g, self: g * self)


@op(name="outer_conj", opmath=True, holomorphic=False, function=False, method=False)
def outer_conj(np: Any, self: Any, other: Any, /) -> Any:
    """``self[i] * conj(other[j])`` for every i and j."""
    return self[:, None] * other.conj()[None, :]


outer_conj.derivative(self=lambda F, g, other: F.mv(g, other), other=lambda F, g, self: F.mv(F.turned_fast(g), self))


@surface(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """``input[i] * vec2[j]`` for every i and j."""
    for each in (input, vec2):
        if each._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {'self' if each is input else 'vec2'}, but got {each._array.ndim}-D"
            )
    return F.mul(reshape(input, (-1, 1)), vec2, out=out)


@surface()
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products over the last dimension of both."""
    if input._array.ndim == 0 or other._array.ndim == 0:
        return F.mul(input, other, out=out)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._array.shape)} and {list(other._array.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@surface(quick=mm, guard="inline")
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The product of matrices, vectors, or batches of matrices whose batch dimensions broadcast.

    >>> import retrograd as torch
    >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    a, b = input._array.ndim, other._array.ndim
    if a == 2 and b == 2:
        return mm(input, other, out=out)
    if a == 2 and b == 1:
        return mv(input, other, out=out)
    if a == 1 and b == 1:
        return dot(input, other, out=out)
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 2:
        return mm(unsqueeze(input, 0), other).squeeze_(0)
    return _batched(input, other)


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """``matmul`` where one side has three dimensions or more."""
    x, y = _lone(x, y), _lone(y, x)
    if y._array.ndim <= 2 <= x._array.ndim and (y.requires_grad or _one_memory(x._array)):
        _check_inner(x._array.shape[-1], y._array.shape[0], x, y)
        return _folded(x, y)
    if x._array.ndim <= 2 <= y._array.ndim and (x.requires_grad or _one_memory(y._array.swapaxes(-1, -2))):
        _check_inner(x._array.shape[-1], y._array.shape[-2], x, y)
        found = _folded(transpose(y, -1, -2), F.t(x) if x._array.ndim == 2 else x)
        return found if x._array.ndim == 1 else contiguous(transpose(found, -1, -2))
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
    found = bmm(wide_left, wide_right)
    shape = (*batch, *((n,) if x._array.ndim > 1 else ()), *((m,) if y._array.ndim > 1 else ()))
    return unsafe_view(found, shape)


def _lone(x: Tensor, other: Tensor) -> Tensor:
    """``x`` without a batch dimension of size 1, if it has one, the other has more, and that serves the gradient."""
    alone = x._array.ndim == 3 == other._array.ndim and x._array.shape[0] == 1 != other._array.shape[0]
    return squeeze(x, 0) if alone and x.requires_grad else x


def _one_memory(array: Any) -> bool:
    """Whether all dimensions but the last can be seen as one without copying."""
    pairs = zip(array.shape[1:-1], array.strides[:-2], array.strides[1:-1], strict=True)
    return bool(array.size == 0 or all(outer == inner * size for size, outer, inner in pairs))


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """``x @ y`` with at most one matrix on the right: the batch of ``x`` is folded into its rows."""
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


@surface(function=False, name="__matmul__", quick=mm, guard="inline")
def at(input: Tensor, other: Any) -> Any:
    """The operator ``@``."""
    return matmul(input, other) if isinstance(other, Tensor) else NotImplemented


@surface(function=False, name="__rmatmul__")
def reflected_at(input: Tensor, other: Any) -> Any:
    """The operator ``@`` with the tensor on the right of something else, which torch does not take."""
    return at(other, input) if isinstance(other, Tensor) else NotImplemented


# -- Products added to something -------------------------------------------------------------------------------------


def _times(F: Any, g: Any, factor: Any) -> Any:
    return g if factor == 1 else g * factor


@op(backward="AddmmBackward0", opmath=True, holomorphic=False, in_place=True)
def addmm(np: Any, self: Any, mat1: Any, mat2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * self + alpha * mat1 @ mat2``."""
    for name, each in (("mat1", mat1), ("mat2", mat2)):
        if each.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {each.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x"
            f"{mat2.shape[1]})"
        )
    _summand(self, (mat1.shape[0], mat2.shape[1]), mat1, mat2, ("mat1", "mat2"))
    return _added(np, self, _product(np, mat1, mat2), beta, alpha)


def _added(np: Any, self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product = product * np.asarray(alpha).astype(product.dtype)
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * np.asarray(beta).astype(self.dtype))


addmm.derivative(
    self=lambda F, g, beta: _times(F, g, beta),
    mat1=lambda F, g, mat2, alpha: _times(F, F.mm(g, F.turned_fast(mat2)), alpha),
    mat2=lambda F, g, mat1, alpha: _times(F, F.mm(F.turned_fast(mat1), g), alpha),
)


@op(backward="AddmvBackward0", opmath=True, holomorphic=False, in_place="function")
def addmv(np: Any, self: Any, mat: Any, vec: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * self + alpha * mat @ vec``."""
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or self.ndim > 1 or self.size not in (1, mat.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({self.size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    return _added(np, self, _product(np, mat, vec, "addmv_impl_cpu"), beta, alpha)


addmv.derivative(
    self=lambda F, g, beta: _times(F, g, beta),
    mat=lambda F, g, vec, alpha: _times(F, F.outer_conj(g, vec), alpha),
    vec=lambda F, g, mat, alpha: _times(F, F.mv(F.turned_fast(mat), g), alpha),
)


@op(backward="AddrBackward0", opmath=True, holomorphic=False, in_place=True)
def addr(np: Any, self: Any, vec1: Any, vec2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * self + alpha * outer(vec1, vec2)``."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        name, wrong = ("vec1", vec1) if vec1.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {wrong.ndim}-D")
    _summand(self, (vec1.shape[0], vec2.shape[0]), self, self, ("vec1", "vec2"))
    return _added(np, self, vec1[:, None] * vec2[None, :], beta, alpha)


addr.derivative(
    self=lambda F, g, beta: _times(F, g, beta),
    vec1=lambda F, g, vec2, alpha: _times(F, F.mv(g, F.conj_physical(vec2)), alpha),
    vec2=lambda F, g, vec1, alpha: _times(F, F.mv(F.transpose(g, 0, 1), F.conj_physical(vec1)), alpha),
)


@op(backward="BaddbmmBackward0", opmath=True, holomorphic=False, in_place=True)
def baddbmm(np: Any, self: Any, batch1: Any, batch2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * self + alpha * bmm(batch1, batch2)``."""
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"{'batch1' if batch1.ndim != 3 else 'batch2'} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0] or batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch1.shape[0]}, {batch1.shape[2]}] but "
            f"got: [{batch2.shape[0]}, {batch2.shape[1]}]."
        )
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    _summand(self, shape, batch1, batch2, ("batch1", "batch2"))
    return _added(np, self, _product(np, batch1, batch2, "bmm"), beta, alpha)


baddbmm.derivative(
    self=lambda F, g, beta: _times(F, g, beta),
    batch1=lambda F, g, batch2, alpha: _times(F, F.bmm(g, F.turned_fast(batch2)), alpha),
    batch2=lambda F, g, batch1, alpha: _times(F, F.bmm(F.turned_fast(batch1), g), alpha),
)


@op(backward="AddbmmBackward0", opmath=True, holomorphic=False, in_place=True)
def addbmm(np: Any, self: Any, batch1: Any, batch2: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * self + alpha *`` the sum of the products of the matrices in two batches."""
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"{'batch1' if batch1.ndim != 3 else 'batch2'} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
            f"{batch2.shape[1]}x{batch2.shape[2]})"
        )
    _summand(self, (batch1.shape[1], batch2.shape[2]), batch1, batch2, ("batch1", "batch2"))
    return _added(np, self, _product(np, batch1, batch2, "bmm").sum(0), beta, alpha)


def _batch_gradient(F: Any, g: Any, other: Any) -> Any:
    return F.expand(g, (_shape(other)[0], *_shape(g)))


def _shape(x: Any) -> tuple[int, ...]:
    return x._array.shape if isinstance(x, Tensor) else x.shape


addbmm.derivative(
    self=lambda F, g, beta: _times(F, g, beta),
    batch1=lambda F, g, batch2, alpha: _times(F, F.bmm(_batch_gradient(F, g, batch2), F.turned_fast(batch2)), alpha),
    batch2=lambda F, g, batch1, alpha: _times(F, F.bmm(F.turned_fast(batch1), _batch_gradient(F, g, batch1)), alpha),
)


# -- Contractions ----------------------------------------------------------------------------------------------------


@surface(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """The sum of products over pairs of dimensions: the last of ``a`` with the first of ``b``, or as ``dims`` lists them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    else:
        pair = [each if isinstance(each, (list, tuple)) else [each] for each in dims]
        first = [dimension(each, a._array.ndim) for each in pair[0]]
        second = [dimension(each, b._array.ndim) for each in pair[1]]
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    for x, y in zip(first, second, strict=True):
        if a._array.shape[x] != b._array.shape[y]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._array.shape[x]} in dim "
                f"{x - a._array.ndim if isinstance(dims, int) else x} and second has "
                f"size {b._array.shape[y]} in dim {y}"
            )
    left = [axis for axis in range(a._array.ndim) if axis not in first]
    right = [axis for axis in range(b._array.ndim) if axis not in second]
    size = math.prod(a._array.shape[axis] for axis in first)
    rows = reshape(
        permute_block(a, (*left, *first)), (-1 if size else math.prod(a._array.shape[i] for i in left), size)
    )
    columns = reshape(
        permute_block(b, (*second, *right)), (size, -1 if size else math.prod(b._array.shape[i] for i in right))
    )
    shape = (*(a._array.shape[i] for i in left), *(b._array.shape[i] for i in right))
    return reshape(mm(rows, columns), shape)


@surface(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by Einstein's convention: ``einsum("ij,jk->ik", a, b)``; also ``einsum(a, [0, 1], b, [1, 2])``.

    >>> import retrograd as torch
    >>> torch.einsum("ij,j->i", torch.eye(2), torch.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    labels, result = _parsed(equation, operands)
    terms = list(zip(operands, labels, strict=True))
    diagonals = [_with_diagonals(each, names, position) for position, (each, names) in enumerate(terms)]
    x, names = diagonals[0]
    for i, (y, others) in enumerate(diagonals[1:], 1):
        later = set(result).union(*(rest for _, rest in diagonals[i + 1 :]))
        x, names = _contract(x, names, y, others, later)
    return _finished(x, names, result, len(operands) == 1)


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Tensor, ...]]:
    operands, parts = given[0::2], given[1::2]
    result = None
    if len(given) % 2:
        operands, result, parts = given[:-1:2], given[-1], given[1:-1:2]
    text = ",".join("".join("..." if each is Ellipsis else chr(each + (65 if each < 26 else 71)) for each in part)
                    for part in parts)  # fmt: skip
    if result is not None:
        text += "->" + "".join("..." if each is Ellipsis else chr(each + (65 if each < 26 else 71)) for each in result)
    return text, operands


def _parsed(equation: str, operands: tuple[Any, ...]) -> tuple[list[list[str]], list[str]]:
    """The names of each operand's dimensions, and of the result's; those of an ellipsis are ``.0 .1 …`` from the right."""
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        more = "more" if len(operands) > len(terms) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation"
                           if more == "fewer" else
                           "einsum(): more operands were provided than specified in the equation")  # fmt: skip
    labels, widest = [], 0
    for position, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        for letter in term.replace("...", "", 1):
            if letter == ".":
                raise RuntimeError(f"einsum(): found '.' for operand {position} that is not part of any ellipsis")
            if not letter.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {inputs.index(letter)} in the equation "
                    "string, subscripts must be in [a-zA-Z]"
                )
        own = len(term.replace("...", ""))
        rest = operand._array.ndim - own
        if rest < 0 or (rest and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({own}) does not match the number of dimensions "
                f"({operand._array.ndim}) for operand {position} and no ellipsis was given"
            )
        widest = max(widest, rest)
        labels.append(_names(term, rest))
    if not arrow:
        flat = [name for each in labels for name in each]
        single = sorted(name for name in set(flat) if flat.count(name) == 1 and name[0] != ".")
        _check_extents(labels, operands)
        return labels, [f".{i}" for i in range(widest - 1, -1, -1)] + single
    result = _names(output, widest if "..." in output else 0)
    for name in result:
        if name[0] != "." and not any(name in each for each in labels):
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
        if result.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
    _check_extents(labels, operands)
    return labels, result


def _names(term: str, hidden: int) -> list[str]:
    head, dots, tail = term.partition("...")
    return [*head, *([f".{i}" for i in range(hidden - 1, -1, -1)] if dots else []), *tail]


def _check_extents(labels: list[list[str]], operands: tuple[Any, ...]) -> None:
    sizes: dict[str, int] = {}
    for position, (names, operand) in enumerate(zip(labels, operands, strict=True)):
        for name, size in zip(names, operand._array.shape, strict=True):
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {position} which does not broadcast with "
                    f"previously seen size {sizes[name]}"
                )
            sizes[name] = max(sizes.get(name, 1), size)


def _with_diagonals(x: Tensor, names: list[str], position: int) -> tuple[Tensor, list[str]]:
    """A name that stands twice in one operand means its diagonal."""
    names = list(names)
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x._array.shape[first] != x._array.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {position} but the sizes don't match, "
                    f"{x._array.shape[second]} != {x._array.shape[first]}"
                )
            x = F.diagonal(x, 0, first, second)
            names = [each for i, each in enumerate(names) if i not in (first, second)] + [name]
    return x, names


def _contract(x: Tensor, a: list[str], y: Tensor, b: list[str], later: set[str]) -> tuple[Tensor, list[str]]:
    """The product of two operands, summed over the names that nobody needs later, as one batched matrix product."""
    x, a = _summed(x, a, {name for name in a if name not in b and name not in later})
    y, b = _summed(y, b, {name for name in b if name not in a and name not in later})
    batch = [name for name in a if name in b and name in later]
    inner = [name for name in a if name in b and name not in later]
    left, right = [name for name in a if name not in b], [name for name in b if name not in a]
    sizes = {name: max(_extent(x, a, name), _extent(y, b, name)) for name in {*a, *b}}
    if not inner:
        wide = [*batch, *left, *right]
        return _aligned(x, a, wide) * _aligned(y, b, wide), wide
    rows = _spread(x, a, [*batch, *left, *inner], sizes)
    columns = _spread(y, b, [*batch, *inner, *right], sizes)
    count, n, k, m = (math.prod(sizes[name] for name in group) for group in (batch, left, inner, right))
    found = bmm(reshape(rows, (count, n, k)), reshape(columns, (count, k, m)))
    names = [*batch, *left, *right]
    return reshape(found, tuple(sizes[name] for name in names)), names


def _extent(x: Tensor, names: list[str], name: str) -> int:
    return int(x._array.shape[names.index(name)]) if name in names else 1


def _summed(x: Tensor, names: list[str], gone: set[str]) -> tuple[Tensor, list[str]]:
    axes = tuple(i for i, name in enumerate(names) if name in gone)
    if not axes:
        return x, names
    return _reduce.sum(x, axes), [name for name in names if name not in gone]


def _aligned(x: Tensor, names: list[str], wanted: list[str]) -> Tensor:
    """``x`` with its dimensions in the wanted order, of size 1 where it lacks one."""
    order = tuple(names.index(name) for name in wanted if name in names)
    found = permute_block(x, order) if order != tuple(range(len(order))) else x
    for i, name in enumerate(wanted):
        if name not in names:
            found = unsqueeze(found, i)
    return found


def _spread(x: Tensor, names: list[str], wanted: list[str], sizes: dict[str, int]) -> Tensor:
    found = _aligned(x, names, wanted)
    shape = tuple(sizes[name] for name in wanted)
    return expand(found, shape) if found._array.shape != shape else found


def _finished(x: Tensor, names: list[str], result: list[str], alone: bool) -> Tensor:
    x, names = _summed(x, names, set(names) - set(result))
    if names != result:
        x = _aligned(x, names, result)
        return x if alone else view(x, x._array.shape)
    seen = type(x.grad_fn).__name__ if x.grad_fn is not None else ""
    return permute_block(x, tuple(range(len(names)))) if alone and not seen.startswith("Sum") else x


@surface(method=False)
def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    return multi_dot(matrices) if len(matrices) != 1 else matrices[0]


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices (the first and last may be vectors), in the cheapest order."""
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(given)))
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
    found = _chain(
        given, _splits([*(each._array.shape[0] for each in given), given[-1]._array.shape[1]]), 0, len(given) - 1
    )
    return view(found, shape)


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each product of a chain of matrices of these sizes (dynamic programming)."""
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


@op(backward="LinalgCrossBackward0", name="cross_block", function=False, method=False, holomorphic=False)
def cross_block(np: Any, self: Any, other: Any, /, dim: int) -> Any:
    """The cross product along a dimension of size 3."""
    return np.cross(self, other, axis=dim)


cross_block.derivative(
    self=lambda F, g, other, dim: F.cross_block(F.conj_physical(other), g, dim),
    other=lambda F, g, self, dim: F.cross_block(g, F.conj_physical(self), dim),
)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of size 3 along ``dim``."""
    if input._array.ndim != other._array.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    error = broadcast_error((input, other))
    if error is not None:
        raise error
    shape = numpy.broadcast_shapes(input._array.shape, other._array.shape)
    at = dimension(dim, len(shape))
    if shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input._array.shape[dim]} and "
            f"{other._array.shape[dim]}"
        )
    return cross_block(expand(input, shape), expand(other, shape), at)


def _torch_cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of size 3 along ``dim`` (by default the first dimension of size 3)."""
    if dim is None:
        dim = next((i for i, size in enumerate(input._array.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return cross(input, other, dim=dim)


surface(name="cross")(_torch_cross)


# -- Inverses and solutions ------------------------------------------------------------------------------------------


def _square(name: str, x: Any, floating: bool = True) -> None:
    if x.ndim < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    if floating and x.dtype in dtypes.SHORT:
        if name == "inv":
            raise RuntimeError(f"linalg.inv: Low precision dtypes not supported. Got {_scalar(x)}")
        raise dtypes.unsupported("lu_cpu", x.dtype)
    if floating and x.dtype.kind not in "fc":
        raise RuntimeError(f"linalg.{name}: Expected a floating point or complex tensor as input. Got "
                           f"{dtypes.scalar_name(dtypes.of(x.dtype))}")  # fmt: skip


def _singular(np: Any, name: str, x: Any) -> LinAlgError:
    """The error for a batch in which a matrix is singular, naming the first zero pivot."""
    import scipy.linalg

    flat = x.reshape(-1, *x.shape[-2:])
    for i, matrix in enumerate(flat):
        pivots = numpy.diag(scipy.linalg.lu(numpy.asarray(matrix))[2])
        if (pivots == 0).any():
            at = int(numpy.flatnonzero(pivots == 0)[0]) + 1
            batch = f"(Batch element {i}): " if x.ndim > 2 else ""
            what = {
                "inv": f"The diagonal element {at} is zero, the inversion could not be completed because the input matrix "
                "is singular.",
                "solve": "The solver failed because the input matrix is singular.",
            }[name]
            return LinAlgError(f"{'torch.' if name == 'solve' else ''}linalg.{name}: {batch}{what}")
    return LinAlgError(f"linalg.{name}: The input matrix is singular.")


def _by_columns(np: Any, x: Any) -> Any:
    """``x`` with the columns of its matrices lying together, as LAPACK leaves them."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


@_block("inv", "LinalgInvExBackward0")
def inv_block(np: Any, self: Any, /) -> Any:
    """The inverses of square matrices."""
    _square("inv", self)
    try:
        return _by_columns(np, np.linalg.inv(self))
    except np.linalg.LinAlgError:
        raise _singular(np, "inv", self) from None


inv_block.derivative(self=lambda F, g, out: -F.matmul(F.turned_fast(out), F.matmul(g, F.turned_fast(out))))
ARRAYS.__dict__["matmul"] = numpy.matmul
TENSORS.__dict__["matmul"] = matmul


@surface(aliases=("inverse",), function=False, method=False)
def inv(A: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of a square matrix, or of each of a batch; LinAlgError if there is none."""
    return inv_block(A, out=out)


surface(name="inverse")(inv)


@_block("solve_block", "LinalgSolveExBackward0")
def solve_block(np: Any, self: Any, B: Any, /, left: bool, vector: bool) -> Any:
    """The X with ``self @ X = B`` (or ``X @ self = B``)."""
    _square("solve", self)
    if self.dtype != B.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{_scalar(self)} and B of type {_scalar(B)} instead"
        )
    right = B[..., None] if vector else B
    try:
        if left:
            found = _by_columns(np, np.linalg.solve(self, right))
        else:
            found = np.linalg.solve(self.swapaxes(-1, -2), right.swapaxes(-1, -2)).swapaxes(-1, -2)
            found = np.ascontiguousarray(found)
    except np.linalg.LinAlgError:
        raise _singular(np, "solve", self) from None
    return found[..., 0] if vector else found


def _solve_right(F: Any, g: Any, self: Any, left: bool, vector: bool) -> Any:
    return F.solve_block(F.turned_fast(self), g, left, vector)


def _solve_matrix(F: Any, g: Any, self: Any, out: Any, self_shape: Any, left: bool, vector: bool) -> Any:
    slope = F.solve_block(F.turned_fast(self), g, left, vector)
    if vector:
        slope, out = F.unsqueeze(slope, len(_shape(slope))), F.unsqueeze(out, len(_shape(out)))
    return -F.matmul(slope, F.turned_fast(out)) if left else -F.matmul(F.turned_fast(out), slope)


solve_block.derivative(self=_solve_matrix, B=_solve_right)


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """The X with ``A @ X = B`` (``X @ A = B`` if not ``left``); B a matrix or, batched, a vector."""
    a, b = A._array.shape, B._array.shape
    vector = len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])
    if len(a) >= 2 and a[-1] == a[-2]:
        rows = b[-1] if vector else b[-2 if left else -1]
        if rows != a[-1]:
            raise RuntimeError(
                f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                f"({a[-2]}x{a[-1]} and {b[-2] if not vector else rows}x{b[-1] if not vector else 1})"
            )
    return solve_block(A, B, left, vector, out=out)


@_block("det_block", "LinalgDetBackward0")
def det_block(np: Any, self: Any, /) -> Any:
    """The determinants of square matrices."""
    _square("det", self)
    return np.linalg.det(self)


det_block.derivative(self=lambda F, g, self: F.per_matrix(g) * F.cofactors(self))


@op(name="per_matrix", function=False, method=False, linear=True)
def per_matrix(np: Any, self: Any, /) -> Any:
    """Numbers with two more dimensions of size 1 at the end."""
    return self[..., None, None]


per_matrix.derivative(self=lambda F, g, self_shape: F.reshape(F.sum_to_size(g, (*self_shape, 1, 1)), self_shape))


@op(name="cofactors", function=False, method=False, opmath=True, holomorphic=False)
def cofactors(np: Any, self: Any, /) -> Any:
    """The gradient of the determinant, right for singular matrices too: from the singular values, leaving out one each."""
    u, s, vh = np.linalg.svd(self)
    size = s.shape[-1]
    others = np.ones_like(s)
    for i in range(size):
        keep = [j for j in range(size) if j != i]
        others[..., i] = np.multiply.reduce(s[..., keep], axis=-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return np.conj(phase)[..., None, None] * np.matmul(u * others[..., None, :], vh)


def _cofactors_rule(F: Any, g: Any, self: Any) -> Any:
    inverse = F.turned_fast(F.inv(self))
    scale = F.conj_physical(F.det_block(self))
    trace = F.per_matrix(F.trace_of_product(inverse, g))
    return F.per_matrix(scale) * (trace * inverse - F.matmul(inverse, F.matmul(F.turned_fast(g), inverse)))


cofactors.derivative(self=_cofactors_rule)


def _trace_arrays(a: Any, b: Any) -> Any:
    return (a.conj() * b).sum((-1, -2))


def _trace_tensors(a: Tensor, b: Tensor) -> Tensor:
    return _reduce.sum(a.conj() * b, (-1, -2))


ARRAYS.__dict__["trace_of_product"], TENSORS.__dict__["trace_of_product"] = _trace_arrays, _trace_tensors


@surface()
def det(input: Tensor, *, out: Any = None) -> Tensor:
    """The determinant of a square matrix, or of each of a batch."""
    return det_block(input, out=out)


@_block("slogdet_block", "LinalgSlogdetBackward0", outputs=("sign", "logabsdet"))
def slogdet_block(np: Any, self: Any, /) -> Any:
    """Sign and logarithm of the absolute value of determinants."""
    _square("slogdet", self)
    sign, log = np.linalg.slogdet(self)
    return np.asarray(sign), np.asarray(log)


def _slogdet_rule(F: Any, g: Any, self: Any) -> Any:
    # Real matrices: the sign is piecewise constant. Complex signs have a part along the phase, which PyTorch has too.
    _, log = g
    return None if log is None else F.per_matrix(log) * F.turned_fast(F.inv(self))


slogdet_block.derivative(self=_slogdet_rule)
_Slogdet = named("linalg_slogdet", ("sign", "logabsdet"))


@surface()
def slogdet(input: Tensor) -> Any:
    """Sign and logarithm of the absolute value of the determinant."""
    return _Slogdet(slogdet_block(input))


@surface()
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan if that is negative."""
    sign, log = slogdet_block(input)
    return where_(sign == -1, math.nan, log) if not input.is_complex() else log + sign.log().detach()


@_block("svdvals", "LinalgSvdBackward0", differentiable=1)
def svdvals(np: Any, self: Any, /) -> Any:
    """The singular values of matrices, in descending order."""
    return np.linalg.svd(self, compute_uv=False)


def _svdvals_rule(F: Any, g: Any, self: Any) -> Any:
    return F.singular_slope(g, self)


svdvals.derivative(self=_svdvals_rule)


@op(name="singular_slope", function=False, method=False, opmath=True, holomorphic=False)
def singular_slope(np: Any, weights: Any, self: Any, /) -> Any:
    """The gradient of the singular values: U diag(weights) Vᴴ."""
    u, _, vh = np.linalg.svd(self, full_matrices=False)
    return np.matmul(u * weights[..., None, :], vh)


@op(name="singular_part", function=False, method=False, opmath=True, holomorphic=False)
def singular_part(np: Any, self: Any, matrix: Any, /) -> Any:
    """The diagonal of Uᴴ self V, with U and V of ``matrix``."""
    u, _, vh = np.linalg.svd(matrix, full_matrices=False)
    return (u.conj() * np.matmul(self, _turned_array(vh))).sum(-2).real


singular_slope.derivative(
    weights=lambda F, g, self: F.singular_part(g, self),
    self=lambda F, g, weights, self: F.singular_slope_backward(g, weights, self),
)


@op(name="singular_slope_backward", function=False, method=False, opmath=True, holomorphic=False)
def singular_slope_backward(np: Any, h: Any, weights: Any, self: Any, /) -> Any:
    """The gradient by the matrix of ``<h, U diag(weights) Vᴴ>``: the derivative of the singular vectors (Townsend, 2016)."""
    u, s, vh = np.linalg.svd(self, full_matrices=False)
    uh, v = _turned_array(u), _turned_array(vh)
    gu, gv = np.matmul(h, v) * weights[..., None, :], np.matmul(_turned_array(h), u) * weights[..., None, :]
    gap = s[..., None, :] ** 2 - s[..., :, None] ** 2
    gap = np.where(gap == 0, np.inf, gap)
    skew_u, skew_v = np.matmul(uh, gu), np.matmul(vh, gv)
    skew_u, skew_v = skew_u - _turned_array(skew_u), skew_v - _turned_array(skew_v)
    middle = skew_u / gap * s[..., None, :] + s[..., :, None] * (skew_v / gap)
    found = np.matmul(u, np.matmul(middle, vh))
    found = found + np.matmul(gu - np.matmul(u, np.matmul(uh, gu)), vh / s[..., :, None])
    return found + np.matmul(u / s[..., None, :], _turned_array(gv - np.matmul(v, np.matmul(vh, gv))))


def _third(F: Any, g: Any) -> Any:
    raise RuntimeError("the third derivative of singular values is not available")


singular_slope_backward.derivative(h=_third, weights=_third, self=_third)
singular_part.derivative(self=_third, matrix=_third)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: ``fro``, ``nuc``, 2, -2 (by singular values), 1, -1 (columns), inf, -inf (rows)."""
    if dtype is not None:
        A = A.to(dtype)
    ndim = A._array.ndim
    if ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    rows, columns = (dimension(each, ndim) for each in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return _reduce.vector_norm(A, 2, (rows, columns), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        over, then = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = _reduce.vector_norm(A, 1, over, True)
        return (_reduce.amax if ord > 0 else _reduce.amin)(sums, (rows, columns), keepdim) if then >= 0 else sums
    order = (*(axis for axis in range(ndim) if axis not in (rows, columns)), rows, columns)
    values = svdvals(permute_block(A, order))
    if ord == "nuc":
        found = _reduce.sum(values, -1)
    elif ord in (2, -2):
        found = (_reduce.amax if ord > 0 else _reduce.amin)(values, -1)
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not keepdim:
        return found
    for axis in sorted((rows, columns)):
        found = unsqueeze(found, axis)
    return found


def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Tensor:
    """The norm of a vector or a matrix, as ``ord`` and ``dim`` say (see ``vector_norm`` and ``matrix_norm``)."""
    if isinstance(dim, (tuple, list)) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is not None and ((isinstance(dim, (tuple, list)) and len(dim) == 2) or (dim is None and A._array.ndim == 2) or
                            isinstance(ord, str)):  # fmt: skip
        if dim is None and A._array.ndim > 2:
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A._array.ndim}D."
            )
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if ord is not None and dim is None and A._array.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A._array.ndim}D."
        )
    return _reduce.vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of products along ``dim``, the first operand conjugated."""
    return _reduce.sum(x.conj() * y, dim)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix multiplied with itself ``n`` times (its inverse if ``n`` is negative)."""
    _square("matrix_power", A._array, False)
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return wrap(numpy.broadcast_to(numpy.eye(A._array.shape[-1], dtype=A._array.dtype), A._array.shape).copy())
    result: Tensor | None = None
    power = A
    while n:
        if n & 1:
            result = power if result is None else matmul(result, power)
        n >>= 1
        if n:
            power = matmul(power, power)
    assert result is not None
    return result


surface(name="matrix_power")(matrix_power)
