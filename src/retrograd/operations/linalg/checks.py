"""Linear algebra: the class LinAlgError, argument checks, and helper functions of derivative rules.

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
    """Error raised for a matrix that has no result, such as the inverse of a singular matrix."""

    __module__ = "torch._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as in PyTorch's tracebacks


def linalg_op(name: str, backward: str | None = None, **options: Any) -> Any:
    """Return a decorator that declares an internal operation of linear algebra under the name ``name``.

    ``backward`` is the name of its node in the graph. ``options`` are further arguments of ``op``.
    """
    return op(name=name, backward=backward, function=False, method=False, holomorphic=False, **options)


# -- Checks ----------------------------------------------------------------------------------------------------------


def scalar_type_name(x: Any) -> str:
    """Return the name of the dtype of ``x`` as in PyTorch's messages, such as ``Float``."""
    return dtypes.scalar_name(dtypes.dtype_of(x.dtype))


def check_tensors(name: str, **given: Any) -> None:
    """Raise TypeError if one of the arguments ``given``, passed by their names, is not a tensor.

    ``name`` is the name of the function in the message.
    """
    for position, (argument, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def check_matrix(name: str, x: Any, what: str = "A") -> None:
    """Raise RuntimeError if ``x`` has fewer than two dimensions.

    ``name`` is the name of the function in the message, and ``what`` the name of the argument.
    """
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_square(name: str, x: Any, separator: str = ": ") -> None:
    """Raise RuntimeError if the matrices ``x`` are not square.

    The message starts with ``name``, the name of the function, and ``separator``. If ``name`` is empty, it has neither.
    """
    if name:
        check_matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}{separator if name else ''}A must be batches of square matrices, but they are "
            f"{x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_floating(name: str, x: Any, short: bool = True) -> None:
    """Raise RuntimeError if the dtype of ``x`` is neither floating-point nor complex.

    If ``short`` is false, half precision raises the error as well. ``name`` is the name of the function in the message.
    """
    if x.dtype in dtypes.HALF_PRECISION:
        if not short:
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_type_name(x)}")
    elif x.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type_name(x)}")


def check_implemented(kernel: str, x: Any) -> None:
    """Raise PyTorch's error if the dtype of ``x`` is one that LAPACK does not support.

    These dtypes are integers, booleans and half precision. ``kernel`` is the name of PyTorch's kernel in the message.
    """
    if x.dtype.kind not in "fc" or x.dtype in dtypes.HALF_PRECISION:
        raise dtypes.unsupported(kernel, x.dtype)


def check_compatible(name: str, a: tuple[int, ...], b: tuple[int, ...], left: bool) -> None:
    """Raise RuntimeError if matrices of the shapes ``a`` and ``b`` do not fit as A and B in the equation ``A X = B``.

    If ``left`` is false, the equation is ``X A = B``. ``name`` is the name of the function in the message.
    """
    if a[-1] != b[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


def first_failure(info: Any) -> tuple[str, int] | None:
    """Return the first nonzero LAPACK code in ``info`` and a prefix for the error message; None if all codes are 0.

    The prefix comes first in the result. It names the matrix by its position in the batch, and is empty if ``info`` is
    0-d.
    """
    flat = info.reshape(-1).tolist()
    for position, code in enumerate(flat):
        if code:
            return (f"(Batch element {position}): " if info.ndim else ""), code
    return None


# -- Helper functions of rules: they take F, and arrays or Tensors ----------------------------------------------------


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of ``x``, an array or a Tensor."""
    return x._array.shape if isinstance(x, Tensor) else x.shape


def array_of(x: Any) -> Any:
    """Return the array of ``x`` if it is a Tensor, otherwise ``x``."""
    return x._array if isinstance(x, Tensor) else x


def as_rows(F: Any, x: Any) -> Any:
    """Return the vectors ``x`` (…, n) as matrices of one row (…, 1, n)."""
    return F.unsqueeze(x, len(shape_of(x)) - 1)


def as_columns(F: Any, x: Any) -> Any:
    """Return the vectors ``x`` (…, n) as matrices of one column (…, n, 1)."""
    return F.unsqueeze(x, len(shape_of(x)))


def diagonal_of(F: Any, x: Any) -> Any:
    """Return the diagonals of the matrices ``x``."""
    last = len(shape_of(x)) - 1
    return F.diagonal(x, 0, last - 1, last)


def with_diagonal(F: Any, x: Any) -> Any:
    """Return square matrices with the diagonals ``x`` (…, n) and zeros elsewhere."""
    size = len(shape_of(x))
    return F.diag_embed_block(x, 0, size - 1, size)


def real_part(F: Any, x: Any) -> Any:
    """Return the real part of ``x``, an array or a Tensor, or ``x`` itself if it is real."""
    return F.real(x) if array_of(x).dtype.kind == "c" else x


def triangle(F: Any, x: Any, upper: bool, strict: bool = False) -> Any:
    """Return the matrices ``x`` with zeros outside the upper triangle, or the lower one if ``upper`` is false.

    If ``strict`` is true, the diagonal is zero, too.
    """
    return F.triu(x, int(strict)) if upper else F.tril(x, -int(strict))


def slice_matrix(F: Any, x: Any, dim: int, start: int, end: int) -> Any:
    """Return the rows (for ``dim`` -2) or columns (for -1) ``start`` to ``end - 1`` of the matrices ``x``."""
    return F.slice(x, len(shape_of(x)) + dim, start, end, 1)


def pad_matrix(F: Any, x: Any, n: int, m: int) -> Any:
    """Return the matrices ``x`` padded with zeros at the bottom and on the right to ``n`` rows and ``m`` columns."""
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.padded_to(x, (*shape[:-2], n, m))


def leading_block(F: Any, x: Any, n: int, m: int) -> Any:
    """Return the first ``n`` rows and ``m`` columns of the matrices ``x``."""
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.corner_of(x, (*shape[:-2], n, m))


def add_gradients(a: Any, b: Any) -> Any:
    """Return the sum ``a + b`` of two gradients; None, which means no gradient, counts as zero."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@op(name="identity_like", function=False, method=False)
def identity_like(np: Any, self: Any, /, n: int, m: int) -> Any:
    """Return the identity matrix of ``n`` rows and ``m`` columns in the dtype and on the device of ``self``."""
    return np.eye(n, m, dtype=self.dtype)


@op(name="per_matrix", function=False, method=False, linear=True)
def per_matrix(np: Any, self: Any, /) -> Any:
    """Return ``self`` with two dimensions of size 1 appended, so that it broadcasts with matrices."""
    return self[..., None, None]


per_matrix.derivative(self=lambda F, g, self_shape: F.reshape(F.sum_to_size(g, (*self_shape, 1, 1)), self_shape))


def _trace_arrays(a: Any, b: Any) -> Any:
    return (a.conj() * b).sum((-1, -2))


def _trace_tensors(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = (a.conj() * b).sum((-1, -2))
    return result


ARRAYS.__dict__["trace_of_product"], TENSORS.__dict__["trace_of_product"] = _trace_arrays, _trace_tensors
