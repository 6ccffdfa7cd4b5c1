"""Operations that are declared outside of the package (``retrograd.extend``)."""

from __future__ import annotations

import inspect
import math
import pickle
from typing import Any

import pytest

import retrograd as torch
from retrograd.extend import op, pointwise
from retrograd.kernels import numba_dispatch

from ..extension.functions import bent_identity, cbrt, log1mexp, sinpi

FUNCTIONS = [bent_identity, cbrt, log1mexp, sinpi]
NUMBERS = {
    bent_identity: (lambda x: (math.sqrt(x * x + 1) - 1) / 2 + x, [-2.0, 0.0, 3.0]),
    cbrt: (math.cbrt, [0.125, 1.0, 27.0]),
    log1mexp: (lambda x: math.log(-math.expm1(-x)), [1e-5, 0.5, 3.0]),
    sinpi: (lambda x: math.sin(math.pi * x), [0.25, 0.5, 1.25]),
}


def inputs(function: Any) -> Any:
    return torch.tensor(NUMBERS[function][1], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_derivatives(function: Any) -> None:
    exact, numbers = NUMBERS[function]
    x = inputs(function)
    assert torch.allclose(function(x), torch.tensor([exact(each) for each in numbers], dtype=torch.float64))
    y = torch.tensor([0.3, 0.7, 1.6], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (y,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (y,))
    assert (
        type(function(x).grad_fn).__name__ == f"{''.join(map(str.capitalize, function.__name__.split('_')))}Backward0"
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_transformations_and_compile(function: Any) -> None:
    x = inputs(function).detach()
    assert torch.allclose(torch.func.vmap(function)(x.reshape(3, 1)).flatten(), function(x))
    compiled = torch.compile(lambda a: function(a) * 2 + 1)
    for _ in range(3):
        assert torch.allclose(compiled(x), function(x) * 2 + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_block_is_enough_for_a_fused_loop_in_both_directions(dtype: Any) -> None:
    compiled = torch.compile(lambda a: (bent_identity(a) * 2 + 1).sum())
    x = torch.linspace(-3, 3, 3000, dtype=dtype, requires_grad=True)
    for _ in range(3):
        x.grad = None
        compiled(x).backward()
    found, x.grad = x.grad, None
    (bent_identity(x) * 2 + 1).sum().backward()
    assert torch.allclose(found, x.grad)
    if numba_dispatch.permitted():
        (segment,) = compiled._compiled.segments()
        for program in segment.program.programs:
            assert len(program.loops) == 1 and "bent_identity(" not in program.source, program.source


@pytest.mark.filterwarnings("error")
def test_declared_vmap_rules() -> None:
    @op(name="reversed_test", linear=True, vmap="leading")
    def reversed_along(np: Any, self: Any, /, dim: int) -> Any:
        return np.flip(self, dim)

    @op(name="total_test", vmap=lambda F, self, factor: F.sum_all(self) * factor)
    def total(np: Any, self: Any, /, factor: float) -> Any:
        return self.sum() * factor

    x = torch.arange(12.0).reshape(3, 2, 2)
    assert torch.equal(torch.func.vmap(lambda a: reversed_along(a, 0))(x), x.flip(1))
    assert torch.equal(torch.func.vmap(lambda a: total(a, 2.0), 1)(x), 2 * x.sum((0, 2)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_dtypes_out_and_errors(function: Any) -> None:
    assert function(torch.tensor([1, 2])).dtype is torch.float32
    assert function(torch.ones(2, dtype=torch.bfloat16)).dtype is torch.bfloat16
    out = torch.empty(3, dtype=torch.float64)
    with torch.no_grad():
        assert function(inputs(function), out=out) is out
    with pytest.raises(TypeError, match=f"{function.__name__}\\(\\): argument 'input' .* must be Tensor, not str"):
        function("text")
    with pytest.raises(TypeError):
        function()


def test_functions_belong_to_their_module() -> None:
    assert cbrt.__module__ == "tests.extension.functions" and pickle.loads(pickle.dumps(cbrt)) is cbrt
    assert "np.cbrt(self)" in inspect.getsource(cbrt) and "cube root" in (cbrt.__doc__ or "")
    assert sinpi(torch.tensor([1.0, 2.0, 1e6])).tolist() == [0, 0, 0]


def test_names_of_the_package_are_refused() -> None:
    with pytest.raises(ValueError, match="there is an operation named 'tanh' already"):

        @pointwise(1)
        def tanh(np: Any, self: Any, /) -> Any:
            return self

    assert torch.tanh(torch.zeros(1)).item() == 0


def test_a_declaration_may_be_repeated() -> None:
    for factor in (2, 3):

        @pointwise(factor, name="scaled_by_test")
        def scaled(np: Any, self: Any, /, *, by: int = factor) -> Any:
            return self * by

        x = torch.ones(2, requires_grad=True)
        scaled(x).sum().backward()
        assert scaled(x).tolist() == [factor] * 2 and x.grad.tolist() == [factor] * 2


def test_general_operations() -> None:
    @op(name="minmax_test", outputs=("low", "high"))
    def minmax(np: Any, self: Any, /, scale: float = 1.0) -> Any:
        return np.min(self) * scale, np.max(self) * scale

    minmax.derivative(
        self=lambda F, g, self, low, high, scale: sum(
            each * (self == end / scale) * scale for each, end in zip(g, (low, high), strict=True) if each is not None
        )
    )
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    low, high = minmax(x, scale=2.0)
    (high - 3 * low).backward()
    assert (low.item(), high.item()) == (2, 6) and x.grad.tolist() == [2, -6, 0]
