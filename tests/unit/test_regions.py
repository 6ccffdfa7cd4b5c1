"""Regions of small arrays: their text, its translation to machine code, and which steps are part of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.compiler import pure_gradients
from retrograd.compiler.pure_gradients import _compile
from retrograd.compiler.regions import Region
from retrograd.kernels import numba_dispatch

pytestmark = pytest.mark.skipif(not numba_dispatch.permitted(), reason="Numba is not installed")
RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((6, 6)) / 2
F = torch.nn.functional


def program_of(f: Callable[..., Any], *arrays: Any) -> Any:
    """Return the program of ``f``, whose attribute ``program`` has the steps."""
    return compiled(lambda *given: [f(*given)], arrays)


def compiled(f: Callable[..., Any], arrays: Any, chosen: Any = ()) -> Any:
    """Return the program of ``f``, which returns a list of tensors; those of ``chosen`` require gradients."""
    program = Context().run(_compile, f, arrays, chosen)
    program.compile()
    return program


def orbit(x: Any) -> Any:
    place, speed = x[:2], x[2:]
    for _ in range(5):
        place = place + 0.05 * speed
        speed = speed - 0.1 * place / (place @ place) ** 1.5
    return 0.5 * (speed @ speed) - 1 / (place @ place).sqrt()


#: One function for each kind of step: elementwise, moved elements, sums, products.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementary": lambda x: x.sin() + x.cos() * x.tanh() + (x.abs() + 0.1).log() + x.exp().sqrt() + x.atan().sinh(),
    "activations": lambda x: F.gelu(x) + F.silu(x) + F.softplus(x) + F.elu(x) + F.leaky_relu(x, 0.1) + x.sigmoid().relu(),
    "powers": lambda x: (x * x + 0.1) ** 1.5 + x**3 + x**2 + (x * x + 1) ** -1 + (x.abs() + 1) ** -0.5 + x**0,
    "where": lambda x: torch.where((x > 0) & (x != 1), x, x * x).clamp(-0.5, 2) + torch.maximum(x, x.flip(0)) + x.sign(),
    "views": lambda x: x[::2].sum() + x.view(2, 3).t().reshape(6)[1:4].sum() * x + x.expand(3, 6)[1] + x[-1] + x[None, :, None].squeeze(),
    "moved": lambda x: torch.cat([x[3:], x[:3]]) * x.roll(1) + F.pad(x, (1, 2))[:6] + torch.stack([x, x * x])[1] + x.diag().sum(0),
    "triangles": lambda x: ((torch.from_numpy(A) * x).tril() @ x + (torch.from_numpy(A) + x).triu().diagonal()),
    "sums": lambda x: x.view(2, 3).sum(0).sum() * x + x.mean() + x.view(3, 2).mean(1, keepdim=True).expand(3, 2).reshape(6),
    "products": lambda x: torch.from_numpy(A) @ x + (x.view(2, 3) @ x.view(3, 2)).sum() + x.view(2, 3, 1).bmm(x.view(2, 1, 3)).sum() * x.dot(x),
    "empty": lambda x: x + (x[:0] * 2).sum() + torch.cat([x.view(6, 1)[:, :0], x.view(6, 1)], 1)[:, 0],
}  # fmt: skip
POINTS = [RANDOM.standard_normal(6), np.zeros(6), -np.zeros(6), np.array([1.0, np.nan, -np.inf, 0.0, -0.0, 2.0])]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_region_computes_the_values_of_eager_mode(name: str, dtype: Any) -> None:
    if dtype == np.float32 and name in ("triangles", "products"):
        pytest.skip("the matrix is of float64")
    f = FUNCTIONS[name]
    program = program_of(f, POINTS[0].astype(dtype))
    assert [type(step) for step in program.program.steps] == [Region]
    for point in POINTS:
        x = point.astype(dtype)
        (found,), expected = program([x]), f(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-13 if dtype == np.float64 else 1e-5, atol=0)
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_functions_of_the_table(dtype: Any) -> None:
    names = "sin cos tan sinh cosh expm1 exp2 log2 log10 floor ceil trunc asin acos atan asinh acosh atanh".split()  # noqa: SIM905
    names += ["erf", "erfc", "exp", "log", "log1p", "sqrt", "tanh", "sigmoid", "abs", "square", "reciprocal", "rsqrt"]

    def f(x: Any) -> Any:
        found = [getattr(torch, name)(x + 1 if name == "acosh" else x) for name in names]
        return torch.stack([*found, torch.atan2(x, 1 - x), torch.hypot(x, x + 1), torch.copysign(x, x - 0.5), x**2.5])

    x = np.linspace(0.05, 0.95, 9, dtype=dtype)
    program = program_of(f, x)
    assert [type(step) for step in program.program.steps] == [Region]
    expected = f(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(program([x])[0], expected, rtol=4 * np.finfo(dtype).eps)


def test_arithmetic_is_exact() -> None:
    program = program_of(lambda x: (x * 0.1 + x / 3 - x * x) * 7.3 + (x * x + 1).sqrt(), RANDOM.standard_normal(50))
    for _ in range(20):
        x = RANDOM.standard_normal(50)
        expected = (x * 0.1 + x / 3 - x * x) * 7.3 + np.sqrt(x * x + 1)  # each operation rounds
        assert np.array_equal(program([x])[0], expected)


def test_the_text_is_python() -> None:
    program = compiled(lambda x: torch.autograd.grad(orbit(x), x), [np.ones(4)], [0])
    (region,) = program.program.steps
    x, found = [1.0, 0.0, 0.25, 1.1], [0.0] * 4
    space = {
        "empty": lambda size, kind=float: [0.0] * size, "constant": lambda *given: list(given), "F": float,
        "plus": lambda a, b: a + b, "pow": math.pow, "sqrt": math.sqrt,
    }  # fmt: skip
    exec(region.source, space)
    space[region.source[4 : region.source.index("(")]](x, found)  # type: ignore[operator]
    np.testing.assert_allclose(program([np.array(x)])[0], found, rtol=1e-15)


def test_steps_on_large_arrays_and_factorizations_are_not_part_of_a_region() -> None:
    def f(x: Any) -> Any:
        factor = torch.linalg.cholesky(x * x + torch.eye(3, dtype=x.dtype))
        return (factor * 2 + 1).sin().sum() * (x - 1).exp() * 3

    x = RANDOM.standard_normal((3, 3)) / 9
    program = program_of(lambda x: f((x + x.t()) / 2), x)
    kinds = [step.op.name.split()[0] for step in program.program.steps]
    assert kinds == ["region", "cholesky_ex_block", "region"]
    np.testing.assert_allclose(program([x])[0], f(torch.from_numpy((x + x.T) / 2)).numpy(), rtol=1e-13)
    large = program_of(lambda x: (x * 2 + 1).sin().sum() * 3 * (x[0] + 1), np.ones(5000))
    assert not any(
        isinstance(step, Region) and any(each.size > 4096 for each in step.reads) for step in large.program.steps
    )


def test_arrays_that_compiled_code_cannot_read_in_place() -> None:
    program = program_of(lambda x: (x * 2 + 1) * x, np.ones(3))
    frozen, shifted = np.arange(3.0), np.zeros(25, np.uint8)[1:].view(np.float64)
    frozen.flags.writeable = False
    shifted[:] = 1.0, 2.0, 3.0
    assert program([frozen])[0].tolist() == [0.0, 3.0, 10.0]
    assert program([shifted])[0].tolist() == [3.0, 10.0, 21.0]
    assert program([np.arange(6.0)[::2]])[0].tolist() == [0.0, 10.0, 36.0]


def test_float32_and_float64_are_in_separate_regions() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = (x * 2 + 1).sin(), (y * 3 - 1).cos()
        c = (a.double() + b) * b * 2
        return c.float() * a + a * x

    x, y = np.linspace(0, 1, 5, dtype=np.float32), np.linspace(0, 2, 5)
    expected = f(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    found = program_of(f, x, y)([x, y])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_regions_are_compiled_after_calls_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pure_gradients, "FIRST_STEPS", 20)
    monkeypatch.setattr(pure_gradients.STARTUP, "ready", False)
    program = Context().run(_compile, lambda x: [((x * 2 + 1) * x - 3) / x], [np.ones(3)], ())
    kinds = []
    for _ in range(7):
        assert program([np.array([1.0, 2.0, 4.0])])[0].tolist() == [0.0, 3.5, 8.25]
        kinds.append(isinstance(program.program.steps[0], Region))
    assert kinds == [False] * 4 + [True] * 3
