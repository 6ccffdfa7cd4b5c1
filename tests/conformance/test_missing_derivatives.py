"""Derivatives that PyTorch lacks, compared with finite differences in first and second order, reverse and forward mode."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.architecture.markdown_pages import ROOT
from tests.conformance.golden import load
from tests.conformance.missing_derivative_cases import GAPS, Gap, as_function, error_of, tensors

SAID = load("missing_derivatives")["said"]
CASES = [pytest.param(gap, kind, id=f"{kind}: {gap.expression}") for gap in GAPS for kind in gap.kinds.split()]


@pytest.mark.parametrize(("gap", "kind"), CASES)
def test_derivative_exists_where_pytorch_raises(gap: Gap, kind: str) -> None:
    assert SAID[f"{kind}: {gap.expression}"], "PyTorch has this derivative"
    assert not error_of(torch, gap, kind)


@pytest.mark.parametrize("gap", [each for each in GAPS if each.kinds != "vmap"], ids=lambda gap: gap.expression)
def test_derivatives_match_finite_differences(gap: Gap) -> None:
    call, given = as_function(torch, gap), tensors(torch, gap, requires_grad=True)
    assert torch.autograd.gradcheck(call, given, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, given, fast_mode=True)


@pytest.mark.parametrize("gap", [each for each in GAPS if each.kinds == "vmap"], ids=lambda gap: gap.expression)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_matches_a_loop(gap: Gap) -> None:
    call = as_function(torch, gap)
    given = [torch.stack([each, each * 0.5 + 0.25]) for each in tensors(torch, gap)]
    randomness = "different" if "rrelu" in gap.expression else "error"
    found = torch.func.vmap(call, randomness=randomness)(*given)
    expected = torch.stack([call(*[each.clone() for each in row]) for row in zip(*given, strict=True)])
    assert found.shape == expected.shape
    assert torch.allclose(found, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_factors_with_2_by_2_blocks_and_pivots(dtype: torch.dtype, hermitian: bool) -> None:
    """Matrices with zeros on the diagonal, for which D has blocks of 2 by 2, and with row exchanges."""
    torch.manual_seed(1)
    for _ in range(3):
        a = torch.randn(4, 4, dtype=dtype)
        a = (a - a.diagonal().diag() * 0.99).requires_grad_()
        _, pivots = torch.linalg.ldl_factor(a, hermitian=hermitian)

        def factors(x: torch.Tensor, hermitian: bool = hermitian) -> torch.Tensor:
            return torch.linalg.ldl_factor(x, hermitian=hermitian)[0]

        assert torch.autograd.gradcheck(factors, a, check_forward_ad=True)
        right = torch.randn(4, 2, dtype=dtype, requires_grad=True)

        def whole(
            x: torch.Tensor, y: torch.Tensor, hermitian: bool = hermitian, pivots: torch.Tensor = pivots
        ) -> torch.Tensor:
            return torch.linalg.ldl_solve(factors(x, hermitian), pivots, y, hermitian=hermitian)

        low = a.tril()
        full = low + (low.tril(-1).mH if hermitian else low.tril(-1).mT)
        if hermitian and dtype.is_complex:
            full = full - 1j * full.diagonal().imag.diag()
        assert torch.allclose(whole(a, right), torch.linalg.solve(full, right))
        assert torch.autograd.gradcheck(whole, (a, right))


def test_orders_far_from_one() -> None:
    """∂P/∂a from mpmath with 40 digits."""
    a = torch.tensor([0.01, 0.3, 7.0, 300.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.2, 0.1, 9.0, 310.0], dtype=torch.float64)
    expected = [-1.2203964926602442, -1.1966608251292228, -0.10549943367004838, -0.01925383837470143]
    found = torch.autograd.grad(torch.igamma(a, x).sum(), a)[0]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def test_differences_page_lists_them() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    for name in {gap.name for gap in GAPS}:
        assert all(part in page for part in name.split(", ")), name
