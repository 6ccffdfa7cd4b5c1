"""Deprecated ways to call a function, such as ``x.add_(2, y)``, which PyTorch accepts with a warning."""

import pytest

import retrograd as torch
from retrograd.dispatch import call_errors

M, N = torch.arange(4.0).reshape(2, 2), torch.ones(2, 2)
#: The deprecated and the usual form of a call.
FORMS = [
    (lambda: torch.add(M, 2, N), lambda: torch.add(M, N, alpha=2)),
    (lambda: M.add(2, N), lambda: M.add(N, alpha=2)),
    (lambda: M.clone().add_(2, N), lambda: M.clone().add_(N, alpha=2)),
    (lambda: M.clone().sub_(2, N), lambda: M.clone().sub_(N, alpha=2)),
    (lambda: torch.addcmul(M, 2, N, M), lambda: torch.addcmul(M, N, M, value=2)),
    (lambda: M.clone().addcdiv_(2, M, N), lambda: M.clone().addcdiv_(M, N, value=2)),
    (lambda: torch.addmm(2, N, 3, M, M), lambda: torch.addmm(N, M, M, beta=2, alpha=3)),
    (lambda: torch.addmm(2, N, M, M), lambda: torch.addmm(N, M, M, beta=2)),
    (lambda: N.clone().addmm_(2, 3, M, M), lambda: N.clone().addmm_(M, M, beta=2, alpha=3)),
    (lambda: torch.addr(2, N, 3, M[0], M[1]), lambda: torch.addr(N, M[0], M[1], beta=2, alpha=3)),
]


@pytest.mark.filterwarnings("ignore:This overload")
@pytest.mark.parametrize("index", range(len(FORMS)))
def test_result_is_that_of_the_usual_call(index):
    deprecated, usual = FORMS[index]
    assert torch.equal(deprecated(), usual())


def test_warning_is_issued_once(monkeypatch):
    monkeypatch.setattr(call_errors, "_warned_of", [])
    with pytest.warns(UserWarning) as record:
        M.clone().add_(2, N)
        torch.add(M, 2, N)
    assert [str(each.message) for each in record] == [
        "This overload of add_ is deprecated:\n\tadd_(Number alpha, Tensor other)\n"
        "Consider using one of the following signatures instead:\n\tadd_(Tensor other, *, Number alpha = 1)"
    ]
    assert record[0].filename == __file__


def test_gradient():
    x = torch.ones(2, requires_grad=True)
    torch.add(torch.ones(2), 3, x).sum().backward()
    assert torch.equal(x.grad, torch.tensor([3.0, 3.0]))
