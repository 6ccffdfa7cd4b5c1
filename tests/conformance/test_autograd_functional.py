"""``torch.autograd.functional``: compared with PyTorch's record and with identities."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.conformance.autograd_functional_cases import answer, calls
from tests.conformance.golden import load

RECORDED = load("autograd_functional")["answers"]
EXPECTED = {call: text for text, found in RECORDED.items() for call in found}
functional = torch.autograd.functional


def test_every_call_is_recorded() -> None:
    assert set(calls()) == EXPECTED.keys()


@pytest.mark.parametrize("name", ["jacobian", "hessian", "jvp", "vjp", "hvp", "vhp", "torch.no_grad"])
def test_results_match_pytorch(name: str) -> None:
    wrong = {}
    for call, expected in EXPECTED.items():
        if call.startswith(f"{name}("):
            got = answer(torch, call)
            if not (
                got.startswith(expected) if "Error: " in expected else got == expected
            ):  # retrograd's error may be longer
                wrong[call] = (got, expected)
    assert not wrong


def field(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sin(x).sum(0) * y, torch.einsum("ij,j->i", x, y).exp()


def energy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (torch.cos(x) * y).prod(1).sum()


@pytest.fixture
def places() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randn(3, 2).double(), torch.randn(2).double()


def test_products_are_products_with_the_jacobian(places: tuple[torch.Tensor, ...]) -> None:
    matrix = functional.jacobian(field, places)
    step = tuple(torch.randn_like(each) for each in places)
    outs, tangents = functional.jvp(field, places, step)
    for row, tangent in zip(matrix, tangents, strict=True):
        expected = sum(torch.tensordot(each, by, by.ndim) for each, by in zip(row, step, strict=True))
        assert torch.allclose(tangent, expected)
    weights = tuple(torch.randn_like(each) for each in outs)
    _, slopes = functional.vjp(field, places, weights)
    # <w, J v> is <Jᵀ w, v>
    left = sum((w * t).sum() for w, t in zip(weights, tangents, strict=True))
    assert torch.allclose(left, sum((s * v).sum() for s, v in zip(slopes, step, strict=True)))


@pytest.mark.parametrize("how", [{"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobian_strategies_agree(places: tuple[torch.Tensor, ...], how: dict[str, object]) -> None:
    for row, other in zip(functional.jacobian(field, places), functional.jacobian(field, places, **how), strict=True):
        assert all(torch.allclose(a, b) for a, b in zip(row, other, strict=True))


def test_hessian_is_symmetric_and_its_products_are_products(places: tuple[torch.Tensor, ...]) -> None:
    matrix = functional.hessian(energy, places)
    assert torch.allclose(matrix[0][1], matrix[1][0].permute(1, 2, 0))
    step = tuple(torch.randn_like(each) for each in places)
    expected = [sum(torch.tensordot(each, by, by.ndim) for each, by in zip(row, step, strict=True)) for row in matrix]
    for product in (functional.hvp, functional.vhp):
        value, found = product(energy, places, step)
        assert torch.equal(value, energy(*places))
        assert all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))


def test_jvp_matches_finite_differences(places: tuple[torch.Tensor, ...]) -> None:
    step = tuple(torch.randn_like(each) for each in places)
    above, below = (field(*(p + h * s for p, s in zip(places, step, strict=True))) for h in (1e-5, -1e-5))
    for a, b, tangent in zip(above, below, functional.jvp(field, places, step)[1], strict=True):
        assert torch.allclose((a - b) / 2e-5, tangent, rtol=1e-6)


def test_captured_tensors_get_no_gradient() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert torch.equal(functional.jacobian(lambda p: p * x, x), torch.diag(x.detach()))
    assert x.grad is None


def test_create_graph_leads_back_to_the_inputs() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([1.0, 3.0], requires_grad=True)
    _, tangent = functional.jvp(lambda p: p**3, x, v, create_graph=True)
    dx, dv = torch.autograd.grad(tangent.sum(), (x, v))
    assert torch.equal(dx, (6 * x * v).detach()) and torch.equal(dv, (3 * x * x).detach())


def test_errors_restore_grad_mode() -> None:
    with torch.no_grad():
        with pytest.raises(ZeroDivisionError):
            functional.jvp(lambda p: 1 / 0, torch.ones(1), torch.ones(1))
        assert not torch.is_grad_enabled()
