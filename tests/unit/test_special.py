"""Special functions and related pointwise operations: identities, errors and edge cases. Expectations are PyTorch
2.13's.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import retrograd as torch

inf, nan = math.inf, math.nan
X = torch.tensor([0.3, 1.4])
I = torch.tensor([1, 2])  # noqa: E741


def same(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    assert torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True), (a, b)


def refusal(make: Any) -> str:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        make()
    return f"{caught.type.__name__}: {str(caught.value).splitlines()[0]}"


REFUSED = [
    (lambda: torch.mvlgamma(X, 0), "RuntimeError: p has to be greater than or equal to 1"),
    (lambda: torch.mvlgamma(X > 0, 1), "RuntimeError: The input tensor may not be a boolean tensor."),
    (
        lambda: (I + 4).mvlgamma_(2),
        "RuntimeError: mvlgamma: result type Long can't be cast to the desired output type Float",
    ),
    (lambda: torch.polygamma(-1, X), "RuntimeError: polygamma(n, x) does not support negative n."),
    (lambda: torch.polygamma(1.5, X), "TypeError: polygamma(): argument 'n' (position 1) must be int, not float"),
    (lambda: I.clone().polygamma_(1), "RuntimeError: result type Float can't be cast to the desired output type Long"),
    (lambda: torch.gcd(X, X), "NotImplementedError: \"gcd_cpu\" not implemented for 'Float'"),
    (lambda: torch.gcd(I, 2), "TypeError: gcd(): argument 'other' (position 2) must be Tensor, not int"),
    (
        lambda: torch.heaviside(X, I),
        "RuntimeError: heaviside is not yet implemented for tensors with different dtypes.",
    ),
    (lambda: torch.heaviside(X, 2), "TypeError: heaviside(): argument 'values' (position 2) must be Tensor, not int"),
    (lambda: torch.deg2rad(X + 0j), "RuntimeError: deg2rad is not supported for complex tensors."),
    (
        lambda: torch.polar(X, X.double()),
        "RuntimeError: Expected object of scalar type Float but got scalar type Double for second argument",
    ),
    (
        lambda: torch.polar(X, X, out=torch.empty(0)),
        "RuntimeError: Expected object of scalar type ComplexFloat but got scalar type Float for argument 'out'",
    ),
    (
        lambda: torch.complex(I, I),
        "RuntimeError: Expected both inputs to be Half, Float or Double tensors but got Long and Long",
    ),
    (lambda: torch.frexp(I), "RuntimeError: torch.frexp() only supports floating-point dtypes"),
    (lambda: torch.ldexp(X, I > 1), "NotImplementedError: \"ldexp_cpu_exp\" not implemented for 'Bool'"),
    (lambda: I.clone().ldexp_(I), "RuntimeError: ldexp can't be cast to the desired output type Long"),
    (lambda: torch.igamma(I, I), "NotImplementedError: \"igamma_cpu\" not implemented for 'Long'"),
    (lambda: torch.nextafter(I, I), "NotImplementedError: \"nextafter_cpu\" not implemented for 'Long'"),
    (
        lambda: torch.special.bessel_j0(X.half()),
        "NotImplementedError: \"bessel_j0_cpu\" not implemented for 'Half'",
    ),
    (lambda: torch.special.zeta(X + 0j, X), "NotImplementedError: \"zeta_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: torch.special.erfcx(X.bfloat16()), "NotImplementedError: \"erfcx_cpu\" not implemented for 'BFloat16'"),
    (
        lambda: torch.special.airy_ai(2.0),
        "TypeError: special_airy_ai(): argument 'x' (position 1) must be Tensor, not float",
    ),
    (lambda: torch.special.erf(2.0), "TypeError: special_erf(): argument 'input' (position 1) must be Tensor, not float"),
    (lambda: torch.erf(2.0), "TypeError: erf(): argument 'input' (position 1) must be Tensor, not float"),
    (
        lambda: torch.special.zeta(2, 3),
        "TypeError: special_zeta() received an invalid combination of arguments - got (int, int), but expected one of:",
    ),
    (
        lambda: torch.copysign(2, X),
        "TypeError: copysign() received an invalid combination of arguments - got (int, Tensor), but expected one of:",
    ),
    (
        lambda: X.clone().float_power_(2),
        "RuntimeError: the base given to float_power_ has dtype Float but the operation's result requires dtype Double",
    ),
    (
        lambda: torch.sign(X + 0j),
        "NotImplementedError: Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
        "instead.",
    ),
    (lambda: torch.round(X + 0j), "NotImplementedError: \"round_vml_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: torch.special.round(I), "NotImplementedError: \"round_vml_cpu\" not implemented for 'Long'"),
    (lambda: (X > 0).square_(), "RuntimeError: result type Long can't be cast to the desired output type Bool"),
    (lambda: torch.clamp_min(X + 0j, 1), "NotImplementedError: clamp is not supported for complex types"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_errors_match_pytorch(number: int) -> None:
    make, words = REFUSED[number]
    assert refusal(make) == words


def test_non_differentiable_functions() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    for name in (
        "airy_ai", "bessel_y1", "modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
    ):  # fmt: skip
        assert not getattr(torch.special, name)(x).requires_grad
    assert not torch.special.hermite_polynomial_h(x, I).requires_grad


def test_values_at_edges() -> None:
    edges = torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, nan], dtype=torch.float64)
    for function, expected in (
        (torch.erfinv, [0.0, -0.0, inf, -inf, nan, nan, nan]),
        (torch.lgamma, [inf, inf, 0.0, inf, inf, inf, nan]),
        (torch.digamma, [-inf, inf, -0.5772156649015329, nan, inf, nan, nan]),
        (torch.special.entr, [0.0, 0.0, -0.0, -inf, -inf, -inf, nan]),
        (torch.special.ndtri, [-inf, -inf, inf, nan, nan, nan, nan]),
        (torch.sinc, [1.0, 1.0, 3.8981718325193755e-17, 3.8981718325193755e-17, nan, nan, nan]),
        (torch.logit, [-inf, -inf, inf, nan, nan, nan, nan]),
    ):
        found = function(edges)
        same(found, torch.tensor(expected, dtype=torch.float64))
        zeros = [(a, b) for a, b in zip(found.tolist(), expected, strict=True) if a == b == 0]
        assert all(math.copysign(1, a) == math.copysign(1, b) for a, b in zeros), function
    assert math.copysign(1, torch.remainder(torch.tensor(0.0), -1.0).item()) == 1
    assert math.copysign(1, torch.relu(torch.tensor(-0.0)).item()) == -1


def test_limits_depend_on_dtype() -> None:
    assert torch.nan_to_num(torch.tensor(inf, dtype=torch.float16)).item() == 65504
    assert torch.nan_to_num(torch.tensor(-inf, dtype=torch.bfloat16)).item() == torch.finfo(torch.bfloat16).min
    one = torch.tensor(1.0, dtype=torch.float16)
    assert torch.nextafter(one, one * 2).item() == 1 + 2**-10


def test_polynomials_of_every_degree() -> None:
    x = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64)
    angle = torch.acos(x)
    special = torch.special
    for n in (0, 1, 2, 5, 6, 7, 8, 9, 30):
        same(special.chebyshev_polynomial_t(x, n), torch.cos(n * angle))
        same(special.chebyshev_polynomial_u(x, n), torch.sin((n + 1) * angle) / torch.sin(angle), 1e-11)
        same(special.shifted_chebyshev_polynomial_t((x + 1) / 2, n), special.chebyshev_polynomial_t(x, n), 1e-11)
    degrees = torch.tensor([[-1], [0], [1], [2], [3]])
    same(special.legendre_polynomial_p(x, degrees)[4], (5 * x**3 - 3 * x) / 2)
    same(special.hermite_polynomial_h(x, degrees)[4], 8 * x**3 - 12 * x)
    same(special.hermite_polynomial_he(x, degrees)[4], x**3 - 3 * x)
    same(special.laguerre_polynomial_l(x, degrees)[3], (x**2 - 4 * x + 2) / 2)
    assert special.hermite_polynomial_h(x, degrees)[0].tolist() == [0.0] * 7
    ends = torch.tensor([1.0, -1.0])
    assert special.chebyshev_polynomial_t(ends.double(), 10**9 + 1).tolist() == [1.0, -1.0]
    assert special.chebyshev_polynomial_t(ends, 10**9 + 1).tolist() == [1.0, 1.0]  # float32 has no such number
    assert math.isnan(special.hermite_polynomial_he(torch.tensor(0.5, dtype=torch.float64), 513).item())
    assert special.legendre_polynomial_p(torch.tensor([]), torch.tensor([])).shape == (0,)


def test_names_of_nodes() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    for call, name in (
        (torch.clamp_min(x, 1), "ClampMinBackward0"), (torch.clamp_min(x, X), "ClampMinBackward1"),
        (torch.clamp_max(x, 1), "ClampMaxBackward0"), (torch.clamp_max(x, X), "ClampMaxBackward1"),
        (torch.clamp(x, min=X), "ClampBackward0"), (torch.copysign(x, -1), "CopysignBackward1"),
        (torch.xlogy(2, x), "XlogyBackward1"), (torch.xlogy(x, 2), "XlogyBackward2"),
        (torch.special.zeta(2, x), "SpecialZetaBackward1"), (torch.special.xlog1py(x, 2), "SpecialXlog1PyBackward2"),
        (x.clone().eq_(1), "EqBackward0"), (x.clone().less_(X), "LtBackward1"),
        (torch.div(x, 2, rounding_mode=None), "DivBackward2"), (torch.div(x, 2), "DivBackward0"),
        (x.clone().polygamma_(1), "PolygammaBackward1"), (torch.special.i1e(x), "SpecialI1EBackward0"),
        (torch.special.psi(x), "DigammaBackward0"), (torch.special.round(x), "RoundBackward1"),
    ):  # fmt: skip
        assert type(call.grad_fn).__name__ == name


def test_scalars_take_the_tensors_dtype() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([0.5, 1.5], dtype=dtype)
        assert torch.xlogy(x, 2).dtype is torch.xlogy(2.5, x).dtype is dtype
    assert torch.xlogy(I, 2.5).dtype is torch.float32
    assert torch.square(X > 0).dtype is torch.int64


def test_inplace_forms_that_are_functions() -> None:
    for name in ("erf_", "i0_", "sinc_", "logit_", "gcd_", "ldexp_", "xlogy_", "nan_to_num_", "deg2rad_", "addmv_"):
        assert hasattr(torch, name)
    for name in ("add_", "mul_", "sgn_", "lgamma_", "erfinv_", "igamma_", "eq_", "pow_", "copysign_", "bitwise_not_"):
        assert not hasattr(torch, name)
        assert hasattr(torch.Tensor, name)


def test_out_of_non_differentiable_functions_may_require_grad() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    assert torch.eq(x, 0.5, out=torch.empty(0, dtype=torch.bool)).tolist() == [True, False]
    assert torch.special.bessel_j0(x, out=torch.empty(2)).shape == (2,)
    with pytest.raises(RuntimeError, match=r"^erf\(\): functions with out=\.\.\. arguments don't support automatic"):
        torch.erf(x, out=torch.empty(2))


def test_gradient_of_angle_at_zero_is_zero() -> None:
    for tiny in (0.0, 1e-30):  # the square of the second underflows
        x, y = (torch.tensor([tiny, 1.0], requires_grad=True) for _ in range(2))
        torch.atan2(x, y).sum().backward()
        assert x.grad.tolist() == [0.0, 0.5] and y.grad.tolist() == [0.0, -0.5]
