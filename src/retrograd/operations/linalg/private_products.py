"""Products of matrices by PyTorch's private names: of scaled float8 numbers, of int8 numbers, and of groups of rows.

``torch`` loads them on demand. They compute in float32 (integers in int32), and are differentiable where their dtype is.
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32, int8, int32
from ...core.tensor import Tensor
from ..shape.join import cat, stack


def _scaled_mm(
    input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: Any = None, use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``(input * scale_a) @ (mat2 * scale_b) + bias``, for matrices of float8 numbers.

    ``scale_a`` and ``scale_b`` have one element, or one for each row of ``input`` and column of ``mat2``. The result has
    the dtype ``out_dtype``, by default that of ``input``.

    Raises:
        RuntimeError: The operands are no matrices of fitting shapes.
    """
    for name, each in (("mat1", input), ("mat2", mat2)):
        if each.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    result = (input.to(float32) @ mat2.to(float32)) * scale_a * scale_b
    if bias is not None:
        result = result + bias
    if scale_result is not None:
        result = result * scale_result
    return result.to(input.dtype if out_dtype is None else out_dtype)


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices of int8 numbers, in int32.

    Raises:
        RuntimeError: The operands are no matrices of int8 numbers of fitting shapes.
    """
    for name, each in (("self", self), ("mat2", mat2)):
        if each.dim() != 2:
            raise RuntimeError(f"Expected {name} to be of dimension 2 but got {each.dim()}")
        if each.dtype is not int8:
            raise RuntimeError(f"Expected {name} dtype to be of type int8 but got {each.dtype}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}")
    return self.to(int32) @ mat2.to(int32)


def _grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Return the products of groups of ``mat_a`` and ``mat_b``, matrices or batches of matrices.

    ``offs`` has the end of each group: of the rows of ``mat_a`` if only ``mat_b`` is a batch, of the columns of ``mat_b`` if
    only ``mat_a`` is one, and of the inner dimension if none is. Two batches are multiplied by ``bmm``.

    Raises:
        RuntimeError: ``offs`` is missing, or is given for two batches.
    """
    batches = mat_a.dim() == 3, mat_b.dim() == 3
    if (offs is None) != all(batches):
        raise RuntimeError("Have to provide offsets for 2d or jagged matrices, and none for two batches")
    if offs is None:
        result = mat_a.bmm(mat_b)
    else:
        ends = offs.tolist()
        parts = list(zip([0, *ends], ends, strict=False))
        if batches[1]:
            result = cat([mat_a[first:last] @ mat_b[i] for i, (first, last) in enumerate(parts)], 0)
        elif batches[0]:
            result = cat([mat_a[i] @ mat_b[:, first:last] for i, (first, last) in enumerate(parts)], 1)
        else:
            result = stack([mat_a[:, first:last] @ mat_b[first:last] for first, last in parts])
    if bias is not None:
        result = result + bias
    return result.to(out_dtype or mat_a.dtype)


__all__: list[str] = []
