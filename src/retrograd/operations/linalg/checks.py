"""Linear algebra: the class LinAlgError, argument checks, and helper functions of derivative rules.

A derivative rule is a function that computes gradients. It calls operations as attributes of its first argument ``F``.
``F`` is the namespace ``ARRAYS``, whose operations take NumPy arrays, or the namespace ``TENSORS``, whose operations
take Tensors. With ``TENSORS``, gradients can be differentiated again. ``F.turned_fast`` is the conjugate transpose of
the last two dimensions.

The operations have the option ``holomorphic=False``: the complex conjugations are written out in the derivative rules.
The rules hold for real and complex matrices.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.devices import is_meta, on_gpu
from ...core.tensor import Tensor
from ...dispatch.declare import exported, op, rule_function


@exported("linalg")
class LinAlgError(RuntimeError):
    """Error raised if a result does not exist for a matrix, such as the inverse of a singular matrix.

    >>> import retrograd as torch
    >>> torch.linalg.inv(torch.zeros(2, 2))
    Traceback (most recent call last):
        ...
    torch._C._LinAlgError: linalg.inv: The diagonal element 1 is zero, ...
    """

    __module__ = "torch._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as in PyTorch's tracebacks


def linalg_op(name: str, backward: str | None = None, vmap: Any = "leading", **options: Any) -> Any:
    """Return a decorator that makes a function of arrays an internal operation of linear algebra.

    The operation is neither a public function nor a method of Tensor. ``name`` is its name, and ``backward`` is the
    name of its node in the autograd graph, such as "LinalgQrBackward0". ``vmap`` selects how ``torch.vmap`` runs the
    operation: "leading" means that the function accepts further batch dimensions. ``options`` are further keyword
    arguments of ``dispatch.declare.op``.
    """
    return op(name=name, backward=backward, function=False, method=False, holomorphic=False, vmap=vmap, **options)


# -- Checks ----------------------------------------------------------------------------------------------------------


def scalar_type_name(x: Any) -> str:
    """Return the name that PyTorch's error messages use for the dtype of ``x``, such as "Float" for float32."""
    return dtypes.scalar_name(dtypes.dtype_of(x.dtype))


def check_tensors(name: str, **given: Any) -> None:
    """Raise TypeError if a value in ``given``, which maps argument names to arguments, is not a tensor.

    ``name`` is the name of the function in the error message.
    """
    for position, (argument, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def check_matrix(name: str, x: Any, what: str = "A") -> None:
    """Raise RuntimeError if ``x`` has fewer than two dimensions.

    In the error message, ``name`` is the name of the function, and ``what`` the name of the argument.
    """
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_square(name: str, x: Any, separator: str = ": ") -> None:
    """Raise RuntimeError if the last two dimensions of ``x`` have different sizes.

    ``name`` is the name of the function. The error message starts with ``name`` and ``separator``. If ``name`` is
    empty, the message has no such prefix. If ``name`` is not empty, also raise RuntimeError if ``x`` has fewer than two
    dimensions.
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

    If ``short`` is false, half precision (float16 and bfloat16) also raises RuntimeError. ``name`` is the name of the
    function in the error message.
    """
    if x.dtype in dtypes.HALF_PRECISION:
        if not short:
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_type_name(x)}")
    elif x.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type_name(x)}")


def check_implemented(kernel: str, x: Any) -> None:
    """Raise PyTorch's error if LAPACK does not support the dtype of ``x``.

    The unsupported dtypes are integers, bool, float16 and bfloat16. ``kernel`` is the name of PyTorch's kernel in the
    error message.
    """
    if x.dtype.kind not in "fc" or x.dtype in dtypes.HALF_PRECISION:
        raise dtypes.unsupported(kernel, x.dtype)


def check_compatible(name: str, a: tuple[int, ...], b: tuple[int, ...], left: bool) -> None:
    """Raise RuntimeError if A of shape ``a`` and B of shape ``b`` do not fit in the equation ``A X = B``.

    If ``left`` is false, the equation is ``X A = B``. ``name`` is the name of the function in the error message.
    """
    if a[-1] != b[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


def first_failure(info: Any) -> tuple[str, int] | None:
    """Return ``(prefix, code)`` for the first nonzero code in ``info``, or None if all codes are 0.

    ``info`` is an integer array with the return code of LAPACK for each matrix of a batch. ``prefix`` is the start of
    an error message, such as "(Batch element 2): ". For a single matrix, whose ``info`` is 0-d, ``prefix`` is empty.
    On a GPU the codes are not read, because that would wait for the device (see :func:`codes_on_cpu`).
    """
    if is_meta(info) or on_gpu(info):
        return None
    flat = info.reshape(-1).tolist()
    for position, code in enumerate(flat):
        if code:
            return (f"(Batch element {position}): " if info.ndim else ""), code
    return None


def codes_on_cpu(info: Tensor) -> Tensor:
    """Return ``info``, which the program asks to check: if it is on a GPU, a copy on the CPU."""
    return info.cpu() if on_gpu(info._array) else info


# -- Helper functions of rules: they take F, and arrays or Tensors ----------------------------------------------------


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of ``x``, an array or a Tensor."""
    return x._array.shape if isinstance(x, Tensor) else x.shape


def array_of(x: Any) -> Any:
    """Return the NumPy array of ``x`` if ``x`` is a Tensor, otherwise ``x`` itself."""
    return x._array if isinstance(x, Tensor) else x


def as_rows(F: Any, x: Any) -> Any:
    """Return the vectors ``x`` of shape (…, n) as matrices with one row, of shape (…, 1, n).

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.unsqueeze(x, len(shape_of(x)) - 1)


def as_columns(F: Any, x: Any) -> Any:
    """Return the vectors ``x`` of shape (…, n) as matrices with one column, of shape (…, n, 1).

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.unsqueeze(x, len(shape_of(x)))


def diagonal_of(F: Any, x: Any) -> Any:
    """Return the main diagonals of the matrices ``x``, of shape (…, n, m), as vectors.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    last = len(shape_of(x)) - 1
    return F.diagonal(x, 0, last - 1, last)


def with_diagonal(F: Any, x: Any) -> Any:
    """Return square matrices with ``x``, of shape (…, n), on the main diagonals and zeros elsewhere.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    size = len(shape_of(x))
    return F.diag_embed_block(x, 0, size - 1, size)


def real_part(F: Any, x: Any) -> Any:
    """Return the real part of ``x``, an array or a Tensor, or ``x`` itself if it is real.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.real(x) if array_of(x).dtype.kind == "c" else x


def triangle(F: Any, x: Any, upper: bool, strict: bool = False) -> Any:
    """Return the matrices ``x`` with zeros outside the upper triangle, or the lower one if ``upper`` is false.

    If ``strict`` is true, the diagonal is also set to zero. ``F`` is a namespace of operations (``F.matmul``, …) on
    tensors or on arrays.
    """
    return F.triu(x, int(strict)) if upper else F.tril(x, -int(strict))


def slice_matrix(F: Any, x: Any, dim: int, start: int, end: int) -> Any:
    """Return rows ``start`` to ``end - 1`` of the matrices ``x`` if ``dim`` is -2, or columns if ``dim`` is -1.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.slice(x, len(shape_of(x)) + dim, start, end, 1)


def pad_matrix(F: Any, x: Any, n: int, m: int) -> Any:
    """Return the matrices ``x`` padded with zeros at the bottom and on the right to ``n`` rows and ``m`` columns.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.padded_to(x, (*shape[:-2], n, m))


def leading_block(F: Any, x: Any, n: int, m: int) -> Any:
    """Return the first ``n`` rows and ``m`` columns of the matrices ``x``.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    shape = shape_of(x)
    return x if shape[-2:] == (n, m) else F.corner_of(x, (*shape[:-2], n, m))


def add_gradients(a: Any, b: Any) -> Any:
    """Return the sum ``a + b`` of two gradients. None means that there is no gradient, and counts as zero."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@op(name="identity_like", function=False, method=False)
def identity_like(np: Any, self: Any, /, n: int, m: int) -> Any:
    """Return the ``n`` × ``m`` identity matrix in the dtype and on the device of ``self``."""
    return np.eye(n, m, dtype=self.dtype)


@op(function=False, method=False, linear=True, vmap="leading")
def per_matrix(np: Any, self: Any, /) -> Any:
    """Return ``self``, which has one number per matrix, in the shape (…, 1, 1).

    The result broadcasts with the matrices, which have the shape (…, n, m).
    """
    return self[..., None, None]


per_matrix.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


def _trace_arrays(a: Any, b: Any) -> Any:
    return (a.conj() * b).sum((-1, -2))


def _trace_tensors(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = (a.conj() * b).sum((-1, -2))
    return result


rule_function("trace_of_product", _trace_arrays, _trace_tensors)
