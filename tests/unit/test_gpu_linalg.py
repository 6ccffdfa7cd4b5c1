"""Tests of factorizations and solutions of linear systems on a GPU: results, ``info``, and no waits, on the stand-in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import retrograd as torch
from tests.cupy_stand_in import counted, installed

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
SHAPES = ((5, 5), (3, 5, 5), (2, 3, 5, 5), (0, 5, 5), (0, 0), (2, 0, 0))


def _random(*shape: int, dtype: Any, seed: int = 0) -> Any:
    generator = numpy.random.default_rng(seed)
    values = generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    return torch.tensor(values if dtype.is_complex else values.real).to(dtype)


def _singular(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return matrices of which every second has a row of zeros."""
    x = _random(*shape, dtype=dtype)
    x.reshape(-1, *shape[-2:])[::2, 3:4] = 0
    return x


def _hermitian(shape: tuple[int, ...], dtype: Any) -> Any:
    x = _random(*shape, dtype=dtype)
    return x @ x.mH + torch.eye(shape[-1], dtype=dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inv": lambda x, b: [torch.linalg.inv(x)],
    "solve": lambda x, b: [torch.linalg.solve(x, b), torch.linalg.solve(x, b.mT.contiguous(), left=False)],
    "det": lambda x, b: [torch.linalg.det(x)],
    "slogdet": lambda x, b: list(torch.linalg.slogdet(x)),
    "lu_factor": lambda x, b: list(torch.linalg.lu_factor(x)),
    "lu": lambda x, b: list(torch.linalg.lu(x)),
    "lu of rectangles": lambda x, b: [
        each for y in (x[..., :2], x[..., :2, :]) for each in (*torch.linalg.lu_factor(y), *torch.linalg.lu(y))
    ],
    "lu_solve": lambda x, b: [
        torch.linalg.lu_solve(*torch.linalg.lu_factor(x), b if left else b.mT, left=left, adjoint=adjoint)
        for left in (True, False)
        for adjoint in (True, False)
    ],
    "cholesky": lambda x, b: [torch.linalg.cholesky(x @ x.mH, upper=upper) for upper in (True, False)],
    "cholesky_inverse": lambda x, b: [torch.cholesky_inverse(torch.linalg.cholesky(x @ x.mH))],
    "geqrf": lambda x, b: list(torch.geqrf(x)),
    "householder_product": lambda x, b: [
        torch.linalg.householder_product(*torch.geqrf(each)) for each in (x, x[..., :3])
    ],
    "orgqr of fewer reflectors": lambda x, b: [
        torch.orgqr(factors, tau[..., :count]) for factors, tau in [torch.geqrf(x)] for count in (2, 0)
    ],
    "ormqr": lambda x, b: [
        torch.ormqr(*torch.geqrf(each), b if left else b.mT, left, transpose)
        for each in (x, x[..., :3])
        for left in (True, False)
        for transpose in (True, False)
    ],
}


@pytest.mark.parametrize("rows", (512, 2), ids=("in batches", "one by one"))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_factorizations_agree_with_the_cpu_and_do_not_wait(
    name: str, dtype: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tolerance = 2e-4 if dtype in (torch.float32, torch.complex64) else 1e-9
    with installed():
        from retrograd.kernels.cuda import lapack

        monkeypatch.setattr(lapack, "LARGE_ROWS", rows)
        for shape in SHAPES:
            x, b = _random(*shape, dtype=dtype), _random(*shape[:-1], 2, dtype=dtype, seed=1)
            wanted = FUNCTIONS[name](x, b)
            with counted() as counts:
                found = FUNCTIONS[name](x.cuda(), b.cuda())
            assert counts.syncs == Counter()
            for got, want in zip(found, wanted, strict=True):
                assert got.is_cuda and got.stride() == want.stride()
                torch.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", (512, 2), ids=("in batches", "one by one"))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_info_stays_on_the_device(shape: Any, dtype: Any, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, b = _singular(shape, dtype), _random(*shape[:-1], 2, dtype=dtype)
    indefinite = _hermitian(shape, dtype)
    indefinite.reshape(-1, 5, 5)[::2, 2, 2] = -1
    functions: list[Callable[[Any, Any, Any], Any]] = [
        lambda x, b, h: torch.linalg.inv_ex(x),
        lambda x, b, h: torch.linalg.solve_ex(x, b),
        lambda x, b, h: torch.linalg.lu_factor_ex(x),
        lambda x, b, h: torch.linalg.cholesky_ex(h),
        lambda x, b, h: torch.linalg.cholesky_ex(h, upper=True),
    ]
    with installed():
        from retrograd.kernels.cuda import lapack

        monkeypatch.setattr(lapack, "LARGE_ROWS", rows)
        for function in functions:
            wanted = function(x, b, indefinite).info
            with counted() as counts:
                found = function(x.cuda(), b.cuda(), indefinite.cuda()).info
            assert counts.syncs == Counter() and found.is_cuda
            torch.testing.assert_close(found.cpu(), wanted)
            assert not shape[0] or wanted.any()


def test_factors_are_used_in_the_backward_pass() -> None:
    x, b = _random(4, 4, dtype=torch.float64), _random(3, 4, 2, dtype=torch.float64)
    results = []
    with installed():
        for device in ("cpu", "cuda"):
            tensors = [each.to(device).requires_grad_() for each in (x, b)]
            with counted() as counts:
                out = torch.linalg.solve(*tensors).square().sum() + torch.linalg.slogdet(tensors[0])[1]
                grads = torch.autograd.grad(out, tensors)
            assert counts.syncs == Counter()
            results.append([each.cpu() for each in grads])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


def test_factors_are_broadcast() -> None:
    x, b = _random(4, 4, dtype=torch.float64), _random(3, 4, 2, dtype=torch.float64)
    with installed():
        factors, pivots = torch.linalg.lu_factor(x.cuda())
        found = torch.linalg.lu_solve(factors, pivots, b.cuda()).cpu()
        both = torch.linalg.lu_factor(torch.stack([x, x.mT]).cuda())
        several = torch.linalg.lu_solve(*both, b[0].cuda()).cpu()
    torch.testing.assert_close(found, torch.linalg.solve(x, b))
    torch.testing.assert_close(several, torch.linalg.solve(torch.stack([x, x.mT]), b[0]))


def test_the_determinant_of_a_singular_matrix_is_zero() -> None:
    with installed():
        x = torch.ones(2, 3, 3, device="cuda")
        assert torch.linalg.det(x).tolist() == [0.0, 0.0]
        assert torch.linalg.slogdet(x).logabsdet.tolist() == [float("-inf")] * 2


@pytest.mark.usefixtures("gpu")
def test_check_errors_waits_and_raises() -> None:
    x = torch.zeros(2, 3, 3)
    x[0] = torch.eye(3)
    for function in (
        lambda x: torch.linalg.inv_ex(x, check_errors=True),
        lambda x: torch.linalg.solve_ex(x, x, check_errors=True),
        lambda x: torch.linalg.lu_factor_ex(x, check_errors=True),
        lambda x: torch.linalg.cholesky_ex(x, check_errors=True),
    ):
        with pytest.raises(RuntimeError) as expected:
            function(x)
        with pytest.raises(RuntimeError) as found:
            function(x.cuda())
        assert str(found.value) == str(expected.value) and "(Batch element 1)" in str(found.value)
        function(x[0].cuda())
