"""Operators with tensors, numbers, NumPy scalars and foreign types on either side. Expectations are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch


def inputs() -> dict[str, Any]:
    return {
        "torch": torch,
        "numpy": numpy,
        "d": torch.tensor([1.5, 2.0]),
        "i": torch.tensor([1, 2]),
        "b": torch.tensor([True, False]),
        "z": torch.tensor([1 + 2j]),
    }


ANSWERS = {
    "d == None": "False",
    "d != None": "True",
    "None == d": "False",
    "i / 0": "tensor([inf, inf])",
    "2 // i": "tensor([2, 1])",
    "7 % i": "tensor([0, 1])",
    "2 << i": "tensor([4, 8])",
    "9 >> i": "tensor([4, 2])",
    "2 ** i": "tensor([2, 4])",
    "2.5 ** i": "tensor([2.5000, 6.2500])",
    "2 - i": "tensor([1, 0])",
    "2 / i": "tensor([2., 1.])",
    "True & b": "tensor([ True, False])",
    "numpy.float64(2) * d": "tensor([3., 4.])",
    "numpy.int64(2) + i": "tensor([3, 4])",
    "numpy.float64(2) - d": "tensor([0.5000, 0.0000])",
    "numpy.float32(2) / d": "tensor([1.3333, 1.0000])",
    "numpy.float64(2) < d": "tensor([False, False])",
    "d * numpy.float64(2)": "tensor([3., 4.])",
    "d + numpy.ones(2)": "tensor([2.5000, 3.0000], dtype=torch.float64)",
    "d == numpy.ones(2)": "tensor([False, False])",
    "numpy.sin(d)": "tensor([0.9975, 0.9093])",
    "torch.add(d, 2, alpha=2)": "tensor([5.5000, 6.0000])",
    "torch.sub(d, 2, alpha=0.5)": "tensor([0.5000, 1.0000])",
    "torch.lerp(d, d, 0.25)": "tensor([1.5000, 2.0000])",
    "d // 0": "tensor([inf, inf])",
    "-d // 0": "tensor([-inf, -inf])",
    "d % 0": "tensor([nan, nan])",
    "(-d) % float('inf')": "tensor([inf, inf])",
    "torch.tensor(200, dtype=torch.uint8) + 100": "tensor(44, dtype=torch.uint8)",
    "torch.tensor([1], dtype=torch.int8) + 1000": "tensor([-23], dtype=torch.int8)",
    "torch.tensor([2]) ** torch.tensor([-1])": "tensor([0])",
}

REFUSALS = {
    "d + None": ("TypeError", "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    "None - d": ("TypeError", "unsupported operand type(s) for -: 'NoneType' and 'Tensor'"),
    "d * {}": ("TypeError", "unsupported operand type(s) for *: 'Tensor' and 'dict'"),
    "d // 'a'": ("TypeError", "unsupported operand type(s) for //: 'Tensor' and 'str'"),
    "d < 'a'": ("TypeError", "'<' not supported between instances of 'Tensor' and 'str'"),
    "~d": ("TypeError", "~ (operator.invert) is only implemented on integer and Boolean-type tensors"),
    "+b": ("RuntimeError", "The `+` operator, on a bool tensor is not supported."),
    "-b": (
        "RuntimeError",
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
    ),
    "b - b": (
        "RuntimeError",
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
    ),
    "d - b": (
        "RuntimeError",
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
    ),
    "d - True": (
        "RuntimeError",
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
    ),
    "1 - b": (
        "RuntimeError",
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
    ),
    "abs(b)": ("NotImplementedError", "\"abs_cpu\" not implemented for 'Bool'"),
    "i // 0": ("RuntimeError", "ZeroDivisionError"),
    "i % 0": ("RuntimeError", "ZeroDivisionError"),
    "i & 2.5": ("NotImplementedError", "\"bitwise_and_cpu\" not implemented for 'Float'"),
    "i << 2.5": ("NotImplementedError", "\"lshift_cpu\" not implemented for 'Float'"),
    "b << b": ("NotImplementedError", "\"lshift_cpu\" not implemented for 'Bool'"),
    "b // b": ("NotImplementedError", "\"div_floor_cpu\" not implemented for 'Bool'"),
    "b % b": ("NotImplementedError", "\"remainder_cpu\" not implemented for 'Bool'"),
    "z // z": ("NotImplementedError", "\"div_floor_cpu\" not implemented for 'ComplexFloat'"),
    "z < z": ("NotImplementedError", "\"lt_cpu\" not implemented for 'ComplexFloat'"),
    "z % 2": ("NotImplementedError", "\"remainder_cpu\" not implemented for 'ComplexFloat'"),
    "z.floor()": ("NotImplementedError", "floor is not supported for complex inputs"),
    "b.floor()": ("NotImplementedError", "\"floor_vml_cpu\" not implemented for 'Bool'"),
    "b.round()": ("NotImplementedError", "\"round_vml_cpu\" not implemented for 'Bool'"),
    "i.frac()": ("NotImplementedError", "\"frac_cpu\" not implemented for 'Long'"),
    "torch.hypot(i, i)": ("NotImplementedError", "\"hypot_cpu\" not implemented for 'Long'"),
    "torch.logaddexp(i, i)": ("NotImplementedError", "\"logaddexp_cpu\" not implemented for 'Long'"),
    "torch.maximum(d, 2)": ("TypeError", "maximum(): argument 'other' (position 2) must be Tensor, not int"),
    "torch.maximum(z, z)": ("RuntimeError", "maximum not implemented for complex tensors."),
    "torch.atan2(2, d)": ("TypeError", "atan2(): argument 'input' (position 1) must be Tensor, not int"),
    "torch.logical_and(d, 2)": ("TypeError", "logical_and(): argument 'other' (position 2) must be Tensor, not int"),
    "torch.exp(2)": ("TypeError", "exp(): argument 'input' (position 1) must be Tensor, not int"),
    "d.add([1])": ("TypeError", "add(): argument 'other' (position 1) must be Tensor, not list"),
    "torch.add(d, [1])": ("TypeError", "add(): argument 'other' (position 2) must be Tensor, not list"),
    "d.add_(None)": ("TypeError", "add_(): argument 'other' (position 1) must be Tensor, not NoneType"),
    "i.add_(1.5)": ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
    "i.div_(2)": ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
    "i.pow_(-1)": ("RuntimeError", "Integers to negative integer powers are not allowed."),
    "b.add_(1)": ("RuntimeError", "result type Long can't be cast to the desired output type Bool"),
    "d.add_(torch.ones(3))": (
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    "d.add_(torch.ones(3, 2))": ("RuntimeError", "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    "i.bitwise_and_(d)": ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
    "d.clone().bitwise_and_(i)": ("NotImplementedError", "\"bitwise_and_cpu\" not implemented for 'Float'"),
    "z.abs_()": ("RuntimeError", "In-place abs is not supported for complex tensors."),
    "i ** -1": ("RuntimeError", "Integers to negative integer powers are not allowed."),
    "torch.add(i, i, alpha=2.5)": (
        "RuntimeError",
        "For integral input tensors, argument alpha must not be a floating point number.",
    ),
    "torch.add(d, d, alpha=2j)": (
        "RuntimeError",
        "For non-complex input tensors, argument alpha must not be a complex number.",
    ),
    "torch.lerp(i, i, 0.5)": ("NotImplementedError", "\"lerp_kernel_scalar\" not implemented for 'Long'"),
    "torch.lerp(d, d.double(), 0.5)": ("RuntimeError", "expected dtype float for `end` but got dtype double"),
    "torch.div(d, 2, rounding_mode='up')": (
        "RuntimeError",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    "torch.addcdiv(i, i, i)": (
        "RuntimeError",
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.",
    ),
    "torch.relu(b)": ("RuntimeError", "Boolean inputs not supported for relu"),
    "torch.round(i, decimals=1)": ("NotImplementedError", "\"round_cpu\" not implemented for 'Long'"),
}


@pytest.mark.parametrize("expression", ANSWERS)
def test_results(expression: str) -> None:
    assert repr(eval(expression, inputs())) == ANSWERS[expression]


@pytest.mark.parametrize("expression", REFUSALS)
def test_errors(expression: str) -> None:
    kind, text = REFUSALS[expression]
    with pytest.raises(Exception) as caught:
        eval(expression, inputs())
    assert (type(caught.value).__name__, str(caught.value).splitlines()[0]) == (kind, text)


def test_failed_inplace_operation_changes_nothing() -> None:
    for refused in ("x.add_(1.5)", "x.div_(2)", "x.add_(torch.ones(3, 2))", "x.pow_(-1)", "x.bitwise_and_(2.5)"):
        x = torch.tensor([1, 2])
        with pytest.raises(RuntimeError):
            eval(refused, {"torch": torch, "x": x})
        assert x.tolist() == [1, 2] and x._version == 0


def test_inplace_comparison_cuts_the_graph() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone().lt_(1.5)
    assert type(y.grad_fn).__name__ == "LtBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_derivatives_missing_in_pytorch_use_its_node_names() -> None:
    x = torch.tensor([1.5, 0.4], requires_grad=True)
    for y, expected in ((x // 2, [0, 0]), (2 % x, [-1, -5])):
        assert type(y.grad_fn).__name__ == "NotImplemented"
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == expected


def test_integer_division_of_empty_tensor_by_zero() -> None:
    for divide in (torch.floor_divide, torch.remainder, torch.fmod):
        assert divide(torch.empty(0, dtype=torch.int64), 0).shape == (0,)
        assert divide(torch.empty(0, 3, dtype=torch.int64), torch.tensor([0, 1, 2])).shape == (0, 3)
        with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
            divide(torch.tensor([1]), 0)


@pytest.mark.parametrize(
    ("base", "slope"),
    [
        (2j, [-0.68650639 + 0.19560744j, -2.77258825 + 6.28318596j]),
        (-2, [0.12740850 + 0.24714294j, 2.77258658 - 12.5663719j]),
    ],
)
def test_the_gradient_of_a_number_to_a_complex_power(base: complex, slope: list[complex]) -> None:
    x = torch.tensor([1 + 1j, 2], requires_grad=True)
    y = torch.pow(base, x)
    y.backward(torch.ones_like(y))
    numpy.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-5)
    pushed = torch.func.jvp(lambda power: torch.pow(base, power), (x.detach(),), (torch.ones_like(y),))[1]
    numpy.testing.assert_allclose(pushed.numpy(), numpy.conj(slope), rtol=1e-5)


#: Calls of ``a`` and ``w`` with a number ``s`` that PyTorch also takes as a tensor without dimensions.
SCALARS = """
    torch.add(a, w, alpha=s); torch.sub(a, w, alpha=s); a.add(w, alpha=s); (a * 1).add_(w, alpha=s); torch.rsub(a, w, alpha=s)
    torch.addmm(a, w, w, alpha=s); torch.addmm(a, w, w, beta=s, alpha=s); (a * 1).addmm_(w, w, beta=s)
    torch.addmv(a[0], w, a[1], alpha=s, beta=s); torch.addr(a, w[0], w[1], alpha=s, beta=s)
    torch.baddbmm(a[None], w[None], w[None], alpha=s, beta=s); torch.addbmm(a, w[None], w[None], alpha=s, beta=s)
    torch.addcmul(a, w, w, value=s); torch.addcdiv(a, w, w, value=s); (a * 1).addcmul_(w, w, value=s)
    (a * 1).addcdiv_(w, w, value=s); torch.lerp(a, w, s); (a * 1).lerp_(w, s); torch.lerp(a, w, torch.as_tensor(s).double())
    torch.clamp(a, s); torch.clamp(a, max=s); torch.clamp(a, 0.1, s); torch.clamp(a, s, 3); F.leaky_relu(a, s)
    F.leaky_relu_(a * 1, s); F.elu(a, s); F.celu(a, s); F.hardtanh(a, -1, s); F.hardtanh(a, s, 9); F.threshold(a, s, 1)
    F.threshold(a, 1, s); F.softplus(a, s); F.softplus(a, 1, s); F.hardshrink(a, s); F.softshrink(a, s); F.rrelu(a, s, s)
    torch.logit(a, s); torch.index_add(a, 0, torch.tensor([1]), w[:1], alpha=s); a.renorm(2, 0, s); a.norm(s); a.norm(s, 1)
    torch.linalg.vector_norm(a, s); torch.dist(a, w, s); F.multi_margin_loss(a, torch.tensor([0, 1]), margin=s)
    torch.trapezoid(a, dx=s); torch.cumulative_trapezoid(a, dx=s); a.var(0, correction=s * 0); a.std(0, correction=s * 0)
    F.pad(a, (1, 1), value=s); a.index_fill(0, torch.tensor([1]), s); a.masked_fill(w > 1, s); F.huber_loss(a, w, delta=s)
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("number", [0.5, 1.0, 2])
@pytest.mark.parametrize("call", [each.strip() for each in SCALARS if each.strip()])
def test_a_tensor_without_dimensions_stands_for_a_number(call: str, number: float) -> None:
    """Forward and backward; in PyTorch 2.13 the two agree in each of these calls."""
    found = []
    for scalar in (number, torch.tensor(number)):
        a = torch.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=True)
        w = torch.tensor([[2.0, 1.0], [-1.0, 3.0]], requires_grad=True)
        y = eval(call, {"torch": torch, "F": torch.nn.functional, "a": a, "w": w, "s": scalar})
        y.sum().backward()
        found.append([each if each is None else each.detach().numpy() for each in (y, a.grad, w.grad)])
    for one, other in zip(*found, strict=True):
        numpy.testing.assert_array_equal(one, other)
    assert found[0][0].dtype == found[1][0].dtype == numpy.float32


def test_the_gradient_of_a_sum_with_a_factor_given_as_a_tensor() -> None:
    a, b = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    torch.add(a, b, alpha=torch.tensor(3.0)).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 1.0], [3.0, 3.0])


@pytest.mark.parametrize("value", ["torch.tensor(3.0, requires_grad=True)", "torch.tensor([3.0])"])
def test_a_tensor_that_is_no_number_is_refused(value: str) -> None:
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"add\(\): argument 'alpha' must be Number, not Tensor"):
        torch.add(a, a, alpha=eval(value))
    with pytest.raises(TypeError, match=r"addcmul\(\): argument 'value' must be Number, not Tensor"):
        torch.addcmul(a, a, a, value=eval(value))
