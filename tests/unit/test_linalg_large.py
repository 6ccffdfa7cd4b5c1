"""Linear algebra of matrices that are large enough for blocked algorithms, compared with identities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.runtime import blas_threads

KINDS = [numpy.float32, numpy.float64, numpy.complex64, numpy.complex128]
#: Rows: LAPACK for one matrix, and right-hand sides distributed over threads.
SIZES = [40, 300]


@pytest.fixture(autouse=True, params=[1, 2])
def count(request: Any) -> Iterator[None]:
    """One thread and two: right-hand sides are distributed only with several threads."""
    before = torch.get_num_threads()
    if list(blas_threads._controls()):
        torch.set_num_threads(request.param)
    yield
    if list(blas_threads._controls()):
        torch.set_num_threads(before)


def matrix(kind: Any, *shape: int, seed: int = 0) -> Any:
    """Return random numbers; square matrices are well conditioned."""
    generator = numpy.random.default_rng(seed)
    x = generator.standard_normal(shape)
    if numpy.dtype(kind).kind == "c":
        x = x + 1j * generator.standard_normal(shape)
    if shape[-1] == shape[-2]:
        x = x / numpy.sqrt(shape[-1]) + 3 * numpy.eye(shape[-1])
    return torch.from_numpy(x.astype(kind))


def close(kind: Any, found: Any, wanted: Any) -> None:
    """Assert that two tensors are equal within rounding."""
    numpy.testing.assert_allclose(found.resolve_conj().numpy(), wanted.resolve_conj().numpy(),
                                  atol=2000 * numpy.finfo(kind).eps, rtol=0)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_solve(kind: Any, size: int) -> None:
    a, b = matrix(kind, size, size), matrix(kind, size, size - 20, seed=1)
    close(kind, a @ torch.linalg.solve(a, b), b)
    close(kind, torch.linalg.solve(a, b.mT, left=False) @ a, b.mT)
    close(kind, a @ torch.linalg.solve(a, b[:, 0]), b[:, 0])
    identity = torch.eye(size, dtype=a.dtype)
    close(kind, a @ torch.linalg.inv(a), identity)
    factors, pivots = torch.linalg.lu_factor(a)
    close(kind, a.mH @ torch.linalg.lu_solve(factors, pivots, b, adjoint=True), b)
    close(kind, torch.linalg.lu_solve(factors, pivots, b.mT, left=False) @ a, b.mT)
    p, low, high = torch.linalg.lu(a)
    close(kind, p @ low @ high, a)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("by_rows", [False, True])
def test_solve_triangular(kind: Any, size: int, upper: bool, by_rows: bool) -> None:
    half = matrix(kind, size, size) / 3
    a = half @ half.mH + torch.eye(size, dtype=half.dtype)
    b = matrix(kind, size, size - 20, seed=1)
    factor = torch.linalg.cholesky(a, upper=upper)
    factor = factor.contiguous() if by_rows else factor
    close(kind, factor.mH @ factor if upper else factor @ factor.mH, a)
    close(kind, torch.tril(factor, -1) if upper else torch.triu(factor, 1), torch.zeros_like(factor))
    close(kind, factor @ torch.linalg.solve_triangular(factor, b, upper=upper), b)
    close(kind, torch.linalg.solve_triangular(factor, b.mT, upper=upper, left=False) @ factor, b.mT)
    close(kind, a @ torch.cholesky_solve(b, factor, upper=upper), b)
    close(kind, a @ torch.cholesky_inverse(factor, upper=upper), torch.eye(size, dtype=a.dtype))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40, 40), (150, 40), (40, 150)])
def test_decompositions(kind: Any, shape: tuple[int, int]) -> None:
    a = matrix(kind, *shape)
    for mode in ("reduced", "complete"):
        q, r = torch.linalg.qr(a, mode)
        close(kind, q @ r, a)
        close(kind, q.mH @ q, torch.eye(q.shape[1], dtype=a.dtype))
        assert not torch.tril(r, -1).any()
    assert torch.equal(torch.linalg.qr(a, "r")[1], torch.linalg.qr(a)[1])
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    close(kind, (u * s) @ vh, a)
    close(kind, torch.linalg.svdvals(a), s)
    values, vectors = torch.linalg.eigh(a @ a.mH)
    close(kind, vectors * (values / 100) @ vectors.mH, a @ a.mH / 100)
    close(kind, torch.linalg.eigvalsh(a @ a.mH) / 100, values / 100)


@pytest.mark.parametrize("kind", KINDS)
def test_determinants(kind: Any) -> None:
    a = matrix(kind, 2, 40, 40) / 3
    sign, log = torch.linalg.slogdet(a)
    close(kind, sign * log.exp(), torch.from_numpy(numpy.linalg.det(a.numpy())))
    close(kind, torch.linalg.det(a), sign * log.exp())


def test_gradients_of_block_diagonal_system_match_its_blocks() -> None:
    """The gradients of a block-diagonal system, from LAPACK's factors, are those of each block."""
    parts = [matrix(numpy.float64, 30, 30, seed=seed) for seed in (0, 1)]
    b = matrix(numpy.float64, 60, 5, seed=2)

    def both(function: Any) -> tuple[Any, Any]:
        whole = torch.block_diag(*parts).requires_grad_()
        (large,) = torch.autograd.grad(function(whole, b), whole)
        small = [each.clone().requires_grad_() for each in parts]
        value = sum(function(each, b[30 * i : 30 * i + 30]) for i, each in enumerate(small))
        grads = torch.autograd.grad(value, small)
        return torch.block_diag(large[:30, :30], large[30:, 30:]), torch.block_diag(*grads)

    for function in (
        lambda a, b: (torch.linalg.solve(a, b) ** 2).sum(),
        lambda a, b: (torch.linalg.solve(a, b[:, 0]) ** 2).sum(),
        lambda a, b: (torch.linalg.solve(a, b.mT, left=False) ** 2).sum(),
        lambda a, b: torch.linalg.slogdet(a)[1],
        lambda a, b: (torch.linalg.inv(a) ** 2).sum(),
    ):
        close(numpy.float64, *both(function))


def test_second_derivatives_of_solve() -> None:
    """Second derivatives do not use the factors; they are compared with those of the inverse."""
    a, b = matrix(numpy.float64, 34, 34), matrix(numpy.float64, 34, 2, seed=1)

    def second(function: Any) -> Any:
        x = a.clone().requires_grad_()
        (slope,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad((slope**2).sum(), x)[0]

    close(numpy.float64, second(lambda x: torch.linalg.solve(x, b)), second(lambda x: torch.linalg.inv(x) @ b))
