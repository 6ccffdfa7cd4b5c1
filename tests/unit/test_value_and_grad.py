"""``retrograd.value_and_grad``: gradients for NumPy programs, recorded in each call or compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as torch
from retrograd.compiler import pure_gradients
from retrograd.func import numpy_functions
from retrograd.kernels.numba_startup import STARTUP

pure = pytest.mark.parametrize("pure", [False, True])
RANDOM = np.random.default_rng(0)
A, B = RANDOM.standard_normal((9, 3)), RANDOM.standard_normal(9)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def least_squares(x: Any) -> Any:
    return ((torch.from_numpy(A) @ x - torch.from_numpy(B)) ** 2).sum()


def orbit(x: Any) -> Any:
    place, speed = x[:2], x[2:]
    for _ in range(5):
        place = place + 0.05 * speed
        speed = speed - 0.1 * place / (place @ place) ** 1.5
    return 0.5 * (speed @ speed) - 1 / (place @ place).sqrt()


def likelihood(x: Any) -> Any:
    points = torch.linspace(0, 1, 6, dtype=torch.float64)
    covariance = torch.exp(-0.5 * ((points[:, None] - points) / x[0].exp()) ** 2) + x[1].exp() * torch.eye(
        6, dtype=x.dtype
    )
    factor = torch.linalg.cholesky(covariance)
    return torch.cholesky_solve(points[:, None], factor).sum() + factor.diagonal().log().sum()


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "rosenbrock": (rosenbrock, np.linspace(-1, 1, 8)),
    "least_squares": (least_squares, np.ones(3)),
    "orbit": (orbit, np.array([1.0, 0.0, 0.0, 1.1])),
    "likelihood": (likelihood, np.array([-1.0, -2.0])),
}


@pure
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, pure: bool) -> None:
    function, start = FUNCTIONS[name]
    both = torch.value_and_grad(function, pure=pure)
    for point in (start, start + 0.125, start * 0.5):
        before = point.copy()
        value, gradient = both(point)
        assert type(value) is float and gradient.dtype == np.float64 and gradient.shape == point.shape
        assert value == pytest.approx(function(torch.from_numpy(point)).item(), rel=1e-12)
        expected = scipy.optimize.approx_fprime(point, lambda x: both(x)[0], 1e-7)
        assert np.allclose(gradient, expected, rtol=1e-4, atol=1e-4 * abs(gradient).max())
        gradient += 1  # belongs to the caller
        assert np.array_equal(point, before) and both(point)[0] == value


def test_a_pure_function_is_called_once_for_a_shape_and_a_dtype() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return (x * x).sum()

    both = torch.value_and_grad(f, pure=True)
    for count in (3, 3, 4, 3, 4):
        assert both(np.ones(count))[1].tolist() == [2.0] * count
    assert len(calls) == 2
    assert both(np.ones(3, np.float32))[1].dtype == np.float32 and len(calls) == 3


@pure
def test_several_arguments(pure: bool) -> None:
    def f(x: Any, y: Any, power: int) -> Any:
        return (x * y**power).sum()

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for _ in range(2):
        value, (of_x, of_y) = torch.value_and_grad(f, (0, 1), pure=pure)(x, y, 2)
        assert (value, of_x.tolist(), of_y.tolist()) == (41.0, [9.0, 16.0], [6.0, 16.0])
        assert torch.value_and_grad(f, 1, pure=pure)(x, y, 2)[1].tolist() == [6.0, 16.0]
        assert torch.value_and_grad(f, -2, pure=pure)(x, y, 2)[1].tolist() == [6.0, 16.0]


@pure
def test_arguments_that_are_no_float64_arrays(pure: bool) -> None:
    square = torch.value_and_grad(lambda x: (x * x).sum(), pure=pure)
    assert square(3.0) == (9.0, 6.0) and square(3) == (9.0, 6.0)
    assert square([1, 2])[1].tolist() == [2.0, 4.0]
    assert square(np.arange(3))[1].tolist() == [0.0, 2.0, 4.0]
    assert square(np.ones(2, ">f8"))[1].tolist() == [2.0, 2.0]
    assert square(np.arange(4.0)[::-2])[1].tolist() == [6.0, 2.0]
    assert square(np.float32(2))[1].dtype == np.float32
    value, gradient = torch.value_and_grad(lambda z: (z * z.conj()).real.sum(), pure=pure)(np.array([1 + 2j]))
    assert value == 5.0 and gradient.tolist() == [2 + 4j]


@pure
def test_a_function_that_does_not_depend_on_the_argument(pure: bool) -> None:
    for f in (lambda x, y: y.sum(), lambda x, y: (x.detach() * y).sum()):
        value, gradient = torch.value_and_grad(f, pure=pure)(np.ones(2), np.ones(2))
        assert value == 2.0 and gradient.tolist() == [0.0, 0.0]
    value, gradients = torch.value_and_grad(lambda x, y: y.sum(), (0, 1), pure=pure)(np.ones(2), np.ones(2))
    assert [each.tolist() for each in gradients] == [[0.0, 0.0], [1.0, 1.0]]


def test_a_function_that_reads_elements_is_called_each_time() -> None:
    both = torch.value_and_grad(lambda x: x.sum() if x[0] > 0 else (x * x).sum(), pure=True)
    assert both(np.array([1.0, 3.0]))[1].tolist() == [1.0, 1.0]
    assert both(np.array([-1.0, 3.0]))[1].tolist() == [-2.0, 6.0]


def test_numbers_that_change_do_not_compile_without_end() -> None:
    both = torch.value_and_grad(lambda x, a: (a * x).sum(), pure=True)
    for k in range(50):
        assert both(np.ones(2), float(k))[1].tolist() == [k, k]


@pure
def test_gradients_are_computed_under_no_grad(pure: bool) -> None:
    with torch.no_grad():
        assert torch.value_and_grad(lambda x: (x * x).sum(), pure=pure)(np.ones(2))[1].tolist() == [2.0, 2.0]


@pure
def test_scipy_minimizes(pure: bool) -> None:
    found = scipy.optimize.minimize(torch.value_and_grad(rosenbrock, pure=pure), np.zeros(5), jac=True)
    assert found.success and np.allclose(found.x, 1, atol=1e-5)


@pure
def test_errors(pure: bool) -> None:
    with pytest.raises(RuntimeError, match=r"one element, but got shape \(2,\)"):
        torch.value_and_grad(lambda x: x * 2, pure=pure)(np.ones(2))
    with pytest.raises(TypeError, match="to return a tensor, but got float"):
        torch.value_and_grad(lambda x: 1.0, pure=pure)(np.ones(2))
    with pytest.raises(TypeError, match="expected an array or a number, but got str"):
        torch.value_and_grad(lambda x: x, pure=pure)("x")
    with pytest.raises(TypeError, match="an array of <U1 cannot become a tensor"):
        torch.value_and_grad(lambda x: x, pure=pure)(np.array(["x"]))
    with pytest.raises(TypeError, match="argnums is 1, but the call has 1 positional"):
        torch.value_and_grad(lambda x: x, 1, pure=pure)(np.ones(2))
    with pytest.raises(ZeroDivisionError):
        torch.value_and_grad(lambda x: x / (1 // 0), pure=pure)(np.ones(2))


@pure
def test_arguments_that_are_equal_but_not_the_same(pure: bool) -> None:
    both = torch.value_and_grad(lambda x, k: (x / torch.tensor(k)).sum(), pure=pure)
    assert [both(np.ones(1), k)[0] for k in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]
    kind = torch.value_and_grad(lambda x, k: x.sum() * (3 if isinstance(k, bool) else 2), pure=pure)
    assert [kind(np.ones(1), k)[0] for k in (1, True, 1.0)] == [2.0, 3.0, 2.0]


@pure
def test_tensors_and_objects_as_arguments_may_change(pure: bool) -> None:
    both = torch.value_and_grad(lambda x, other, options: (x * other * options["scale"]).sum(), pure=pure)
    other, options = torch.ones(2, dtype=torch.float64), {"scale": 1.0}
    assert both(np.ones(2), other, options)[0] == 2.0
    other.mul_(5)
    options["scale"] = 2.0
    assert both(np.ones(2), other, options)[0] == 20.0


@pure
def test_hooks_are_called(pure: bool) -> None:
    def of_result(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()

    def of_argument(x: Any) -> Any:
        x.register_hook(lambda g: g * 10)
        return (x * 2).sum()

    for f in (of_result, of_argument):
        both = torch.value_and_grad(f, pure=pure)
        for _ in range(2):
            assert both(np.ones(3))[1].tolist() == [20.0] * 3


@pure
def test_inference_mode_and_transforms(pure: bool) -> None:
    both = torch.value_and_grad(lambda x: (x * x).sum(), pure=pure)
    with torch.inference_mode():
        assert both(np.ones(2))[1].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="inside of which it is called"):
        torch.func.vmap(lambda s: torch.value_and_grad(lambda x: (x * s).sum(), pure=pure)(np.ones(2)))(torch.ones(2))


@pure
def test_keyword_arguments_and_positions(pure: bool) -> None:
    both = torch.value_and_grad(lambda x, *, a, b: (a * x**b).sum(), pure=pure)
    for _ in range(2):
        assert both(np.ones(2), a=np.array([1.0, 2.0]), b=3)[1].tolist() == [3.0, 6.0]
        assert both(np.ones(2), b=2, a=np.array([1.0, 2.0]))[1].tolist() == [2.0, 4.0]
    square = torch.value_and_grad(lambda x: (x * x).sum(), (0, 0), pure=pure)
    assert [each.tolist() for each in square(np.ones(2))[1]] == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.value_and_grad(lambda x: (x * x).sum(), np.int64(0), pure=pure)(np.ones(1))[1].tolist() == [2.0]  # type: ignore[arg-type]


@pure
def test_large_integers_and_complex_results(pure: bool) -> None:
    assert torch.value_and_grad(lambda x: x.sum(), pure=pure)(np.array([2**63], "u8"))[0] == 2.0**63
    with pytest.raises(OverflowError, match="too large for int64"):
        torch.value_and_grad(lambda x, y: x.sum() + y.sum(), pure=pure)(np.ones(1), np.array([2**63], "u8"))
    with pytest.raises(RuntimeError, match="a real number, but got a complex one"):
        torch.value_and_grad(lambda x: (x * 1j).sum(), pure=pure)(np.ones(2))
    with pytest.raises(TypeError, match="a masked array cannot become a tensor"):
        torch.value_and_grad(lambda x: x.sum(), pure=pure)(np.ma.masked_array([1.0], [True]))
    assert torch.value_and_grad(lambda z: (z * z.conj()).real.sum(), pure=pure)(1 + 2j) == (5.0, 2 + 4j)


# -- Hessians ----------------------------------------------------------------------------------------------------------


@pure
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians(name: str, pure: bool) -> None:
    function, start = FUNCTIONS[name]
    second, gradient = torch.hessian(function, pure=pure), torch.value_and_grad(function)
    for point in (start, start + 0.125):
        found = second(point)
        assert type(found) is np.ndarray and found.dtype == np.float64 and found.shape == point.shape * 2
        expected = torch.func.hessian(function)(torch.from_numpy(point)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * abs(expected).max())
        step = 1e-6
        differences = [
            (gradient(point + step * unit)[1] - gradient(point - step * unit)[1]) / (2 * step)
            for unit in np.eye(len(point))
        ]
        np.testing.assert_allclose(found, differences, rtol=1e-4, atol=1e-5 * abs(expected).max())
        found += 1  # belongs to the caller
        assert np.array_equal(second(point) + 1, found)


def test_a_pure_hessian_is_compiled_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return (x**3).sum()

    second = torch.hessian(f, pure=True)
    for count in (2, 2, 3, 2):
        assert np.array_equal(second(np.ones(count)), 6 * np.eye(count))
    assert len(calls) == 2


@pure
def test_hessians_of_several_arguments_and_of_numbers(pure: bool) -> None:
    def f(x: Any, y: Any, power: int) -> Any:
        return (x**power * y).sum()

    x, y = np.array([1.0, 2.0]), np.array(3.0)
    second = torch.hessian(f, (0, 1), pure=pure)
    for _ in range(2):
        (xx, xy), (yx, yy) = second(x, y, 2)
        assert (xx.tolist(), xy.tolist(), yx.tolist(), yy.tolist()) == ([[6, 0], [0, 6]], [2, 4], [2, 4], 0.0)
        assert torch.hessian(f, 1, pure=pure)(x, 3.0, 2) == 0.0
        assert torch.hessian(lambda x: x**3, pure=pure)(2.0) == 12.0
        assert torch.hessian(lambda x: (x * 2).sum(), pure=pure)(x).tolist() == [[0, 0], [0, 0]]
        assert torch.hessian(lambda x: (x * x).sum()[None], pure=pure)(x).tolist() == [[2, 0], [0, 2]]


@pure
def test_errors_of_hessian(pure: bool) -> None:
    with pytest.raises(
        RuntimeError, match=r"hessian: expected the function to return one element, but got shape \(2,\)"
    ):
        torch.hessian(lambda x: x * 2, pure=pure)(np.ones(2))
    with pytest.raises(TypeError, match="hessian: expected the function to return a tensor, but got float"):
        torch.hessian(lambda x: 1.0, pure=pure)(np.ones(2))
    with pytest.raises(TypeError, match="hessian: argnums is 1, but the call has 1 positional"):
        torch.hessian(lambda x: x, 1, pure=pure)(np.ones(2))
    with pytest.raises(RuntimeError, match=r"hessian: .* inside of which it is called; use torch.func.hessian there"):
        torch.func.vmap(lambda s: torch.hessian(lambda x: (x * x * s).sum(), pure=pure)(np.ones(2)))(torch.ones(2))


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * grad


@pure
def test_hessians_of_functions_that_transforms_do_not_support(pure: bool) -> None:
    branches = torch.hessian(lambda x: (x**3 if x[0] > 0 else x**2).sum() * float(x.detach()[1]), pure=pure)
    custom = torch.hessian(lambda x: Cube.apply(x).prod(), pure=pure)
    for _ in range(2):
        assert branches(np.array([1.0, 2.0])).tolist() == [[12.0, 0.0], [0.0, 24.0]]
        assert branches(np.array([-1.0, 2.0])).tolist() == [[4.0, 0.0], [0.0, 4.0]]
        assert custom(np.array([1.0, 2.0])).tolist() == [[48.0, 36.0], [36.0, 12.0]]

    def several(x: Any, y: Any) -> Any:
        assert x.sum() > 0
        return (x[:, None] ** 2 * y).sum() + x.sum()

    x, y = np.array([1.0, 2.0]), np.ones((2, 3), np.float32)
    found = torch.hessian(several, (0, 1), pure=pure)(x, y)
    of_tensors = torch.func.hessian(lambda x, y: (x[:, None] ** 2 * y).sum() + x.sum(), (0, 1))
    for row, expected in zip(found, of_tensors(torch.from_numpy(x), torch.from_numpy(y)), strict=True):
        for a, b in zip(row, expected, strict=True):
            assert a.dtype == b.numpy().dtype and np.array_equal(a, b.numpy())
    assert torch.hessian(lambda x, y: y.sum() * bool(y.sum()), pure=pure)(x, y).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_by_rows(name: str) -> None:
    function, start = FUNCTIONS[name]
    (found,), (expected,) = (
        method(function, [start], [0]) for method in (numpy_functions._hessian_by_rows, numpy_functions._hessian)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * abs(expected).max())


@pure
@pytest.mark.parametrize("name", ["value_and_grad", "hessian"])
def test_errors_of_arrays_in_the_function(name: str, pure: bool) -> None:
    derivative, data = getattr(torch, name), np.ones(2)
    remedy = r".*Tensor.* Remedy: .* convert its arrays by torch\.from_numpy, .* torch\.sin instead of numpy\.sin"
    for f in (lambda x: (data - x).sum(), lambda x: (x * torch.sin(data)).sum()):
        with pytest.raises(TypeError, match=f"^{name}: {remedy}") as raised:
            derivative(f, pure=pure)(np.ones(2))
        assert "Dual" not in str(raised.value)
    for f in (lambda x: (x - data).sum(), lambda x: np.sin(x).sum()):
        with pytest.raises(RuntimeError, match=f"^{name}: {remedy}") as raised:  # type: ignore[assignment]
            derivative(f, pure=pure)(np.ones(2))
        assert "detach" not in str(raised.value)


@pure
def test_arguments_of_hessian(pure: bool) -> None:
    with pytest.raises(RuntimeError, match=r"^hessian: expected a real argument, but got a complex one"):
        torch.hessian(lambda z: (z * z.conj()).real.sum(), pure=pure)(np.array([1 + 2j]))
    with pytest.raises(TypeError, match=r"^hessian: .* 0 positional arguments; pass the argument by position"):
        torch.hessian(lambda x: x.sum(), pure=pure)(x=np.ones(2))


@pure
def test_scipy_uses_hessians(pure: bool) -> None:
    value, second = torch.value_and_grad(rosenbrock, pure=pure), torch.hessian(rosenbrock, pure=pure)
    found = scipy.optimize.minimize(value, np.zeros(5), jac=True, hess=second, method="trust-exact")
    assert found.success and np.allclose(found.x, 1, atol=1e-5)


FIRST_CALLS = """
import sys
import numpy as np
import retrograd as torch

def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

value, second = torch.value_and_grad(rosenbrock, pure=True), torch.hessian(rosenbrock, pure=True)
compiled = torch.compile(torch.func.hessian(rosenbrock), pure=True)
for _ in range(3):
    value(np.ones(12)), second(np.ones(12)), compiled(torch.ones(12))
print("numba" in sys.modules)
for _ in range(100_000):
    value(np.ones(12))
    if "numba" in sys.modules:
        break
print("numba" in sys.modules)
"""


def test_the_first_calls_do_not_import_numba() -> None:
    pytest.importorskip("numba")
    environment = {name: value for name, value in os.environ.items() if name != "RETROGRAD_FAST"}
    command = [sys.executable, "-c", FIRST_CALLS]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_large_arrays_are_compiled_after_fewer_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STARTUP, "ready", False)
    monkeypatch.setattr(STARTUP, "never", False)
    small, large = (
        pure_gradients.program_of(lambda x: [(x * 2 + 1).sin()], [np.ones(size)]) for size in (10, 1_000_000)
    )
    assert 0 < large.left < 100 < small.left  # type: ignore[union-attr]


# -- What a program depends on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("derivative", [torch.value_and_grad, torch.hessian])
def test_a_pure_function_sees_changes_of_tensors_that_it_uses(derivative: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    scale = torch.ones(3, dtype=torch.float64)

    def f(x: Any) -> Any:
        return (model(x) * (scale * 2).sum()).sum()

    compiled, x = derivative(f, pure=True), np.array([0.1, -0.2, 0.3])
    for change in [lambda: None, lambda: scale.mul_(3), lambda: model[0].weight.detach().mul_(2)] * 3:
        change()
        for _ in range(2):
            found, expected = compiled(x), derivative(f)(x)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_failed_factorization_is_an_error_in_each_call() -> None:
    def f(x: Any) -> Any:
        return torch.linalg.cholesky(x * torch.eye(2, dtype=x.dtype)).log1p().sum()

    for derivative in (torch.value_and_grad(f, pure=True), torch.hessian(f, pure=True)):
        for _ in range(2):
            derivative(np.array(4.0))
            with pytest.raises(RuntimeError, match="not positive-definite"):
                derivative(np.array(-4.0))


def test_functions_that_check_elements_are_called_each_time() -> None:
    both = torch.value_and_grad(lambda x: torch.nn.functional.gaussian_nll_loss(x, x * 2, x), pure=True)
    assert both(np.array([1.0, 2.0]))[0] > 0
    with pytest.raises(ValueError, match="negative"):
        both(np.array([1.0, -2.0]))


def test_default_dtype_is_part_of_the_key() -> None:
    both = torch.value_and_grad(lambda x: x.sum() * torch.tensor(0.1), pure=True)
    before = both(np.ones(2))[0]
    torch.set_default_dtype(torch.float64)
    try:
        assert both(np.ones(2))[0] == 0.2 != before
    finally:
        torch.set_default_dtype(torch.float32)
    assert both(np.ones(2))[0] == before


@pure
def test_derivatives_within_the_function(pure: bool) -> None:
    def by_func(x: Any) -> Any:
        return (torch.func.grad(lambda y: (y**3).sum())(x) * x).sum() + torch.func.vmap(torch.sin)(x).sum()

    def by_autograd(x: Any) -> Any:
        (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return (slope * x).sum() + x.sin().sum()

    def of_detached(x: Any) -> Any:
        y = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((y**3).sum(), y)
        return (slope * x).sum() + x.sin().sum()

    def by_backward(x: Any) -> Any:
        y = x.detach().requires_grad_()
        (y**3).sum().backward()
        return (y.grad * x).sum() + x.sin().sum()

    for f, factor in ((by_func, 9), (by_autograd, 9), (of_detached, 3), (by_backward, 3)):
        both = torch.value_and_grad(f, pure=pure)
        for x in (np.array([1.0, 2.0]), np.array([0.5, -3.0])):
            value, gradient = both(x)
            assert value == pytest.approx((3 * x**3 + np.sin(x)).sum(), rel=1e-14)
            np.testing.assert_allclose(gradient, factor * x**2 + np.cos(x), rtol=1e-13)


@pytest.mark.parametrize("outer", [torch.func.jacrev, torch.func.jacfwd])
@pytest.mark.parametrize("inner", [torch.func.jacrev, torch.func.jacfwd, torch.func.grad])
def test_nested_transforms_in_a_pure_function(outer: Any, inner: Any) -> None:
    def f(x: Any) -> Any:
        return (x**3).prod() + torch.softmax(x, 0)[0] * x.norm()

    def whole(x: Any) -> Any:
        return (outer(inner(f))(x) * torch.arange(9.0, dtype=x.dtype).view(3, 3)).sum()

    pure, eager = torch.value_and_grad(whole, pure=True), torch.value_and_grad(whole)
    for x in (np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.25, -0.75])):
        for a, b in zip(pure(x), eager(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)


@pure
def test_hooks_in_a_hessian(pure: bool) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return (y * y).sum()

    with torch.no_grad():
        expected = torch.func.hessian(f)(torch.ones(2, dtype=torch.float64)).numpy()
    second = torch.hessian(f, pure=pure)
    for _ in range(2):
        assert second(np.ones(2)).tolist() == expected.tolist()


@pytest.mark.parametrize("second", [torch.func.hessian, lambda f: torch.func.jacrev(torch.func.jacrev(f))])
@pytest.mark.parametrize("name", ["solve", "slogdet", "inv", "cholesky"])
def test_second_derivatives_of_factorizations(name: str, second: Any) -> None:
    def f(x: Any) -> Any:
        matrix = 2 * torch.eye(3, dtype=x.dtype) + 0.1 * torch.outer(x, x) + torch.diag(x * x)
        if name == "solve":
            return torch.linalg.solve(matrix, x).sin().sum()
        found = getattr(torch.linalg, name)(matrix)
        return (found[1] if name == "slogdet" else found.sin()).sum()

    def whole(x: Any) -> Any:
        return (second(f)(x) * torch.arange(9.0, dtype=x.dtype).view(3, 3)).sum()

    pure, eager = torch.value_and_grad(whole, pure=True), torch.value_and_grad(whole)
    for x in (np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.25, -0.75])):
        for a, b in zip(pure(x), eager(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("pure", [False, True])
def test_blocks_of_a_hessian_do_not_share_memory(pure: bool) -> None:
    blocks = torch.hessian(lambda x: (x**3).sum(), (0, 0), pure=pure)(np.ones(2))
    blocks[0][0][:] = 7
    assert blocks[0][1].tolist() == blocks[1][1].tolist() == [[6, 0], [0, 6]]
