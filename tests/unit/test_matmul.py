"""Products of float32 matrices with few rows and a transposed matrix, as ``linear`` computes them for small batches."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels import matmul
from retrograd.kernels.thresholds import TRANSPOSED_ROWS, TRANSPOSED_WORK


def _operands(rows: int, inner: int, columns: int) -> tuple[Any, Any, Any]:
    source = numpy.random.default_rng(rows)
    shapes = (rows, inner), (columns, inner), (columns,)
    return tuple(source.standard_normal(shape).astype(numpy.float32) for shape in shapes)  # type: ignore[return-value]


@pytest.mark.parametrize("rows", [1, TRANSPOSED_ROWS[0], 9, TRANSPOSED_ROWS[1], TRANSPOSED_ROWS[1] + 1])
@pytest.mark.parametrize("columns", [40, 700])
def test_products_with_a_transposed_matrix_match_float64(rows: int, columns: int) -> None:
    a, b, bias = _operands(rows, 512, columns)
    exact = a.astype(numpy.float64) @ b.T.astype(numpy.float64)
    usual = TRANSPOSED_ROWS[0] <= rows <= TRANSPOSED_ROWS[1] and rows * b.size >= TRANSPOSED_WORK
    assert (matmul._transposed_product(a, b.T) is not None) is usual
    for found, expected in (
        (matmul.dot(numpy, a, b.T), exact),
        (matmul.matrix_product(numpy, a, b.T), exact),
        (matmul.add_product(numpy, bias, a, b.T), exact + bias),
    ):
        assert found.flags.c_contiguous
        assert found.dtype == numpy.float32
        assert abs(found - expected).max() < 1e-4


@pytest.mark.parametrize(
    "change", [lambda a, b: (a[::2], b), lambda a, b: (a, b.copy()), lambda a, b: (a.astype("f8"), b.astype("f8"))]
)
def test_other_operands_are_multiplied_as_they_are(change: Any) -> None:
    a, b, _ = _operands(16, 512, 700)
    a, b = change(a, b.T)
    assert matmul._transposed_product(a, b) is None


def test_summands_and_shapes_that_do_not_fit() -> None:
    a, b, bias = map(torch.from_numpy, _operands(16, 512, 700))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        torch.nn.functional.linear(a[:, 1:], b, bias)
    with pytest.raises(RuntimeError, match="must match"):
        torch.nn.functional.linear(a, b, bias[1:])
    full = torch.addmm(torch.ones(16, 700), a, b.t())
    assert torch.allclose(full, torch.addmm(torch.ones(1), a, b.t()))
    assert full.is_contiguous()
