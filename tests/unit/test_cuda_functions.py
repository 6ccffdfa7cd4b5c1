"""Functions that ``kernels/cuda`` adds to CuPy: dtypes, shapes and values, on the stand-in (``tests/cupy_stand_in``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy
import pytest
import scipy.special

import retrograd as torch
from retrograd.kernels.scipy_backend import special
from tests.cupy_stand_in import installed

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def cuda() -> Iterator[Any]:
    with installed() as cupy:
        torch.zeros(1, device="cuda")
        from retrograd.kernels.cuda import CUDA

        assert CUDA.asarray([1]).__class__ is cupy.ndarray
        yield CUDA


def numbers(*shape: int) -> Any:
    return numpy.random.default_rng(0).standard_normal(shape)


# -- bfloat16 --------------------------------------------------------------------------------------------------------

CALLS = {
    "where of two arrays": lambda np, x: np.where(x > 0, x, x[::-1]),
    "where beside a number": lambda np, x: np.where(x > 0, x, 0.3),
    "where beside a scalar": lambda np, x: np.where(x.T > 0, x.dtype.type(0.3), x.T),
    "where beside float32": lambda np, x: np.where(x > 0, x, x.astype(np.float32) / 3),
    "tril": lambda np, x: np.tril(x.T, 1),
    "triu": lambda np, x: np.triu(x, -1),
    "clip": lambda np, x: np.clip(x, -0.3, 0.3),
    "clip from below": lambda np, x: np.clip(x, 0, None),
    "cumsum": lambda np, x: np.cumsum(x, 0),
    "cumprod": lambda np, x: np.cumprod(x, 1),
    "argsort": lambda np, x: np.argsort(x, -1),
    "sort": lambda np, x: np.sort(x, 0),
    "einsum": lambda np, x: np.einsum("ij,kj->ik", x, x),
    "diagonal by einsum": lambda np, x: np.einsum("...ii->...i", x[:, :3]),
    "maximum.reduceat": lambda np, x: np.maximum.reduceat(x, np.asarray([0, 2]), 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_bfloat16(cuda: Any, name: str) -> None:
    x = numbers(3, 4).astype(BFLOAT16)
    wanted, found = CALLS[name](numpy, x.astype(float)), CALLS[name](cuda, cuda.asarray(x))
    assert found.dtype == {"where beside float32": numpy.float32, "argsort": numpy.int64}.get(name, BFLOAT16)
    assert numpy.allclose(found.get().astype(float), wanted, rtol=2**-7, atol=2**-7)


def test_a_diagonal_of_bfloat16_is_a_view(cuda: Any) -> None:
    x = cuda.zeros((2, 3, 3), BFLOAT16)
    cuda.einsum("...ii->...i", x)[...] = 1
    assert x.get().astype(float).sum() == 6


# -- Additions at indices --------------------------------------------------------------------------------------------

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
    "complex128",
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["rows", "pairs", "last", "transposed", "scalar"])
def test_add_at_equal_indices(cuda: Any, dtype: str, index: str) -> None:
    kind = BFLOAT16 if dtype == "bfloat16" else numpy.dtype(dtype)
    values = 8 * numbers(3, 4) + (1j * numbers(3, 4) if kind.kind == "c" else 0)
    places = numpy.array([2, 0, 2])
    arrays = {}
    for np in (numpy, cuda):
        x, given = np.asarray(values.astype(kind)).copy(), np.asarray(values.astype(kind))
        i = np.asarray(places)
        if index == "rows":
            np.add.at(x, i, given)
        elif index == "pairs":
            np.add.at(x, (i, i), given[:, 1])
        elif index == "last":
            np.add.at(x, (..., i), given[:, :3])
        elif index == "transposed":
            np.add.at(x.T, (slice(None), i), given.T)
        else:
            np.add.at(x, (i,), 1)
        arrays[np] = numpy.asarray(x if np is numpy else x.get())
    found, wanted = (arrays[np].astype(complex) for np in (cuda, numpy))
    assert numpy.allclose(
        found, wanted, rtol=1e-2 if dtype == "bfloat16" else 1e-3, atol=0.1 if dtype == "bfloat16" else 0
    )


# -- Systems of equations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes", [((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (3,))]
)
def test_solutions_for_several_right_sides(shapes: Any) -> None:
    a, b = torch.tensor(numbers(*shapes[0])), torch.tensor(numbers(*shapes[1]))
    found = torch.linalg.solve(a.cuda(), b.cuda())
    assert found.is_cuda and torch.allclose(found.cpu(), torch.linalg.solve(a, b))


# -- Special functions -----------------------------------------------------------------------------------------------

ARGUMENTS = numpy.concatenate(
    [numpy.linspace(-40, 40, 801), numpy.geomspace(1e-30, 1e30, 301), [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan]]
)


@pytest.mark.parametrize("name", ["i0", "i1", "j0", "j1", "y0", "y1", "i0e", "i1e", "k0e", "k1e"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bessel_functions(cuda: Any, name: str, dtype: str) -> None:
    x = ARGUMENTS.astype(dtype)
    found, wanted = special(cuda, name, cuda.asarray(x)), getattr(scipy.special, name)(x)
    assert found.dtype == x.dtype
    assert numpy.allclose(found.get(), wanted, rtol=1e-14 if dtype == "float64" else 5e-7, atol=0, equal_nan=True)
    same = numpy.isnan(wanted) | (numpy.signbit(found.get()) == numpy.signbit(wanted))
    assert same.all()


def test_xlog1py_of_nan(cuda: Any) -> None:
    found = special(cuda, "xlog1py", cuda.asarray([0.0, 0.0, 2.0]), cuda.asarray([numpy.nan, -1.0, numpy.nan]))
    assert numpy.array_equal(found.get(), [numpy.nan, 0, numpy.nan], equal_nan=True)


# -- Complex numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 3, 4])
def test_gradients_of_norms_of_complex_zeros(p: int) -> None:
    def slopes(device: str) -> list[Any]:
        z = torch.zeros(2, 3, dtype=torch.complex64, device=device, requires_grad=True)
        (first,) = torch.autograd.grad(torch.linalg.vector_norm(z, p, 1).sum(), z, create_graph=True)
        (second,) = torch.autograd.grad(first.real.sum(), z)
        return [each.detach().cpu().numpy() for each in (first, second)]

    for found, wanted in zip(slopes("cuda"), slopes("cpu"), strict=True):
        assert numpy.array_equal(found, wanted) and not wanted.any()


def test_powers_of_integers_are_exact() -> None:
    found = torch.logspace(0, 12, 13, 3, dtype=torch.int64, device="cuda")
    assert found.is_cuda and found.tolist() == [3**k for k in range(13)]
