"""Common parts of linear algebra: the error class, argument checks, and helper functions of derivative rules.

Rules use ``F.matmul`` and ``F.turned_fast`` (the conjugate transpose of the last two dimensions). They hold for real
and complex matrices alike, so operations are declared ``holomorphic=False`` and conjugate where needed.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor
from ...dispatch.declare import ARRAYS, TENSORS, exported, op


@exported("linalg")
class LinAlgError(RuntimeError):
    """Error for a matrix without a result: singular for an inverse, not positive definite for a Cholesky factor, …"""

    __module__ = "torch._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as in PyTorch's tracebacks


def linalg_op(name: str, backward: str | None = None, **options: Any) -> Any:
    """Declare an operation of linear algebra that is not public under its own name."""
    return op(name=name, backward=backward, function=False, method=False, holomorphic=False, **options)


# -- Checks ----------------------------------------------------------------------------------------------------------


def scalar_type_name(x: Any) -> str:
    """Return the name of an array's dtype as in error messages, such as ``Float``."""
    return dtypes.scalar_name(dtypes.of(x.dtype))


def check_tensors(name: str, **given: Any) -> None:
    """Raise TypeError if an argument is not a tensor."""
    for position, (argument, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def check_matrix(name: str, x: Any, what: str = "A") -> None:
    """Raise if ``x`` is not a matrix or a batch of matrices."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_square(name: str, x: Any, separator: str = ": ") -> None:
    """Raise if ``x`` is not a square matrix or a batch of square matrices."""
    if name:
        check_matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}{separator if name else ''}A must be batches of square matrices, but they are "
            f"{x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_floating(name: str, x: Any, short: bool = True) -> None:
    """Raise for integers and booleans, and for half precision unless ``short``."""
    if x.dtype in dtypes.SHORT:
        if not short:
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_type_name(x)}")
    elif x.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type_name(x)}")


def check_implemented(kernel: str, x: Any) -> None:
    """Raise for dtypes that LAPACK does not support: integers, booleans and half precision."""
    if x.dtype.kind not in "fc" or x.dtype in dtypes.SHORT:
        raise dtypes.unsupported(kernel, x.dtype)


def check_compatible(name: str, a: tuple[int, ...], b: tuple[int, ...], left: bool) -> None:
    """Raise if a right side of shape ``b`` does not fit a matrix of shape ``a``."""
    if a[-1] != b[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


def first_failure(info: Any) -> tuple[str, int] | None:
    """Return the prefix of an error message for the first batch element that failed, and its LAPACK code, or None."""
    flat = info.reshape(-1).tolist()
    for position, code in enumerate(flat):
        if code:
            return (f"(Batch element {position}): " if info.ndim else ""), code
    return None


# -- Helper functions of rules: they take F, and arrays or Tensors ----------------------------------------------------


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array or a Tensor."""
    return x._array.shape if isinstance(x, Tensor) else x.shape


def array_of(x: Any) -> Any:
    """Return the array of a Tensor, or an array itself."""
    return x._array if isinstance(x, Tensor) else x


def as_rows(F: Any, x: Any) -> Any:
    """Return vectors as matrices of one row."""
    return F.unsqueeze(x, len(shape_of(x)) - 1)


def as_columns(F: Any, x: Any) -> Any:
    """Return vectors as matrices of one column."""
    return F.unsqueeze(x, len(shape_of(x)))


def diagonal_of(F: Any, x: Any) -> Any:
    """Return the diagonals of matrices."""
    last = len(shape_of(x)) - 1
    return F.diagonal(x, 0, last - 1, last)


def with_diagonal(F: Any, x: Any) -> Any:
    """Return matrices with the diagonals ``x`` and zeros elsewhere."""
    size = len(shape_of(x))
    return F.diag_embed_block(x, 0, size - 1, size)


def real_part(F: Any, x: Any) -> Any:
    """Return the real part of an array or a Tensor, or ``x`` itself if it is real."""
    return F.real(x) if array_of(x).dtype.kind == "c" else x


def triangle(F: Any, x: Any, upper: bool, strict: bool = False) -> Any:
    """Return the upper or lower triangle of matrices, without their diagonal if ``strict``."""
    return F.triu(x, int(strict)) if upper else F.tril(x, -int(strict))


def slice_matrix(F: Any, x: Any, dim: int, start: int, end: int) -> Any:
    """Return the rows (``dim`` -2) or columns (-1) from ``start`` to ``end`` (exclusive)."""
    return F.slice(x, len(shape_of(x)) + dim, start, end, 1)


def pad_matrix(F: Any, x: Any, n: int, m: int) -> Any:
    """Return matrices padded with zeros to n rows and m columns."""
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.padded_to(x, (*shape[:-2], n, m))


def leading_block(F: Any, x: Any, n: int, m: int) -> Any:
    """Return the upper left n × m submatrices."""
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.corner_of(x, (*shape[:-2], n, m))


def add_gradients(a: Any, b: Any) -> Any:
    """Return the sum of two gradients, each of which may be None."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@op(name="identity_like", function=False, method=False)
def identity_like(np: Any, self: Any, /, n: int, m: int) -> Any:
    """Return the n × m identity matrix, of the dtype and on the device of ``self``."""
    return np.eye(n, m, dtype=self.dtype)


@op(name="per_matrix", function=False, method=False, linear=True)
def per_matrix(np: Any, self: Any, /) -> Any:
    """Return ``self`` with two dimensions of size 1 appended."""
    return self[..., None, None]


per_matrix.derivative(self=lambda F, g, self_shape: F.reshape(F.sum_to_size(g, (*self_shape, 1, 1)), self_shape))


def _trace_arrays(a: Any, b: Any) -> Any:
    return (a.conj() * b).sum((-1, -2))


def _trace_tensors(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = (a.conj() * b).sum((-1, -2))
    return result


ARRAYS.__dict__["trace_of_product"], TENSORS.__dict__["trace_of_product"] = _trace_arrays, _trace_tensors
