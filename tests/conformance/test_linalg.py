"""Linear algebra: types, shapes, strides, nodes and errors as recorded, and identities of factorisations."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.operations.linalg import einsum
from tests.conformance.golden import load
from tests.conformance.linalg_cases import CALLS, EMPTY, answer

ANSWERS = load("linalg")["answers"]


@pytest.mark.parametrize("call", [*CALLS, *EMPTY])
def test_answers_match_pytorch(call: str) -> None:
    assert answer(torch, call) == ANSWERS[call]


def drawn(*shape: int, kind: str = "float64") -> Any:
    rng = numpy.random.default_rng(0)
    values = rng.standard_normal(shape)
    return torch.tensor(values + 1j * rng.standard_normal(shape) if kind == "complex128" else values)


SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3, 3)]


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...], kind: str) -> None:
    x = drawn(*shape, kind=kind)
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    assert torch.allclose((u * s.unsqueeze(-2)) @ vh, x)
    q, r = torch.linalg.qr(x, mode="complete")
    assert torch.allclose(q @ r, x) and torch.allclose(q.mH @ q, torch.eye(shape[-2], dtype=x.dtype).expand_as(q))
    p, low, high = torch.linalg.lu(x)
    assert torch.allclose(p @ low @ high, x)
    assert torch.allclose(torch.linalg.pinv(torch.linalg.pinv(x)), x)
    again = torch.linalg.householder_product(*torch.geqrf(x)) if shape[-2] >= shape[-1] else q
    assert torch.allclose(again @ again.mH @ x, x)
    if shape[-1] == shape[-2]:
        values, vectors = torch.linalg.eig(x)
        assert torch.allclose(vectors * values.unsqueeze(-2), x.to(vectors.dtype) @ vectors)
        whole = x @ x.mH
        values, vectors = torch.linalg.eigh(whole)
        assert torch.allclose((vectors * values.unsqueeze(-2)) @ vectors.mH, whole)
        factors, pivots = torch.linalg.ldl_factor(whole, hermitian=True)
        assert torch.allclose(torch.linalg.ldl_solve(factors, pivots, whole @ x, hermitian=True), x)
        root = torch.linalg.cholesky(whole)
        assert torch.allclose(root @ root.mH, whole) and torch.allclose(torch.cholesky_solve(whole @ x, root), x)


def test_repr_of_named_results() -> None:
    found = torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    assert repr(found) == (
        "torch.return_types.linalg_eigh(\neigenvalues=tensor([2., 3.]),\neigenvectors=tensor([[1., 0.],\n"
        "        [0., 1.]]))"
    )


def test_out_arguments() -> None:
    x = torch.tensor([[4.0, 2.0], [2.0, 5.0]])
    values, vectors = torch.empty(0), torch.empty(0)
    found = torch.linalg.eigh(x, out=(values, vectors))
    assert found.eigenvalues is values and found.eigenvectors is vectors and values.shape == (2,)
    low = torch.empty(2, 2)
    assert torch.linalg.cholesky(x, out=low) is low and low.tolist() == [[2.0, 0.0], [1.0, 2.0]]
    for name in ("inv", "det", "eigvalsh", "svdvals", "pinv", "cond", "matrix_norm"):
        target = torch.empty(0)
        given = getattr(torch.linalg, name)(x, out=target)
        assert given is target and torch.allclose(target, getattr(torch.linalg, name)(x)), name


@pytest.mark.parametrize(
    "call",
    [
        "torch.linalg.eigh(z @ z.mH)[1].real.sum()",
        "torch.linalg.eig(z)[1].real.sum()",
        "torch.linalg.svd(z, full_matrices=False)[0].real.sum()",
    ],
)
def test_phase_dependent_gradients_raise(call: str) -> None:
    z = drawn(3, 3, kind="complex128").requires_grad_()
    with pytest.raises(RuntimeError, match="ill-defined"):
        eval(call, {"torch": torch, "z": z}).backward()


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_determinants_of_singular_matrices_have_derivatives(matrix: list[list[float]]) -> None:
    x = torch.tensor(matrix, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.linalg.det(x), x, create_graph=True)
    (a, b), (c, d) = matrix
    assert torch.allclose(first, torch.tensor([[d, -c], [-b, a]], dtype=torch.float64))
    (second,) = torch.autograd.grad(first.pow(2).sum(), x)
    assert torch.allclose(second, 2 * x)


def test_the_third_derivative_of_singular_values() -> None:
    x = drawn(3, 2).requires_grad_()
    (first,) = torch.autograd.grad(torch.linalg.svdvals(x).pow(4).sum(), x, create_graph=True)
    gram = x.mT @ x  # the sum of fourth powers is the squared norm of the Gram matrix: its derivatives are polynomials
    (known,) = torch.autograd.grad(gram.pow(2).sum(), x, create_graph=True)
    for _ in range(2):
        assert torch.allclose(first, known)
        (first,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        (known,) = torch.autograd.grad(known.pow(2).sum(), x, create_graph=True)
    assert torch.allclose(first, known)


def test_einsum_uses_the_order_of_opt_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Known:
        @staticmethod
        def contract_path(equation: str, *operands: Any, optimize: str, shapes: bool) -> Any:
            assert shapes and operands == ((2, 3), (3, 4), (4, 2))
            asked.append(equation)
            return [(1, 2), (0, 1)], ""

    monkeypatch.setitem(__import__("sys").modules, "opt_einsum", Known)
    einsum._contraction_path.cache_clear()
    a, b, c = drawn(2, 3), drawn(3, 4), drawn(4, 2)
    assert torch.allclose(torch.einsum("ij,jk,kl->il", a, b, c), a @ b @ c)
    assert torch.allclose(torch.einsum("ij,jk,kl->il", a, b, c), a @ b @ c)
    assert asked == ["ij,jk,kl->il"]  # once for these shapes
    torch.einsum("ij,jk->ik", a, b)
    assert len(asked) == 1


def test_einsum_finds_a_cheap_order() -> None:
    long, row = torch.ones(300, 1), torch.ones(1, 300)
    # from left to right this is a product of 300 by 300 matrices; the small ones first cost little
    assert torch.einsum("ij,jk,kl->il", long, row, long).sum().item() == 300.0 * 300


@pytest.mark.parametrize(
    ("pivots", "words"),
    [
        ([5, 7], "must all satisfy |pivot| <= LD.size(-2)"),
        ([-9, -9], "must all satisfy |pivot| <= LD.size(-2)"),
        ([0, 1], "must all satisfy |pivot| >= 1"),
        ([1, 1, 1], "LD.shape[:-1] and pivots.shape to be the same"),
        ([1.0, 1.0], "Expected pivots to be integers. Got Float"),
    ],
)
def test_ldl_solve_refuses_wrong_pivots(pivots: Any, words: str) -> None:
    """LAPACK would write outside the matrix."""
    given = torch.tensor(pivots) if isinstance(pivots[0], float) else torch.tensor(pivots, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=re.escape(words)):
        torch.linalg.ldl_solve(torch.eye(2), given, torch.eye(2))
