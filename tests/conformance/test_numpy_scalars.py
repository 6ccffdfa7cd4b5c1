"""NumPy scalars where a number is taken: they count as Python's numbers, of weak dtype, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch

#: Each scalar with the Python number that it counts as. PyTorch takes a NumPy bool for a float.
SCALARS = [
    (numpy.bool_(True), 1.0), (numpy.int8(3), 3), (numpy.int16(3), 3), (numpy.int32(3), 3), (numpy.int64(3), 3),
    (numpy.uint8(3), 3), (numpy.uint16(3), 3), (numpy.uint32(3), 3), (numpy.uint64(3), 3), (numpy.float16(1.5), 1.5),
    (numpy.float32(1.5), 1.5), (numpy.float64(1.5), 1.5), (numpy.complex64(1.5 + 1j), 1.5 + 1j),
    (numpy.complex128(1.5 + 1j), 1.5 + 1j),
]  # fmt: skip

TENSORS = {
    "float32": torch.tensor([-1.0, 2.0, 0.5]), "float64": torch.tensor([-1.0, 2.0, 0.5], dtype=torch.float64),
    "float16": torch.tensor([-1.0, 2.0, 0.5], dtype=torch.float16), "int64": torch.tensor([-1, 2, 4]),
    "uint8": torch.tensor([1, 2, 4], dtype=torch.uint8), "bool": torch.tensor([True, False, True]),
    "0-d": torch.tensor(2.0), "0-d int64": torch.tensor(2),
}  # fmt: skip

NAMES = """
    add sub mul div true_divide floor_divide remainder fmod pow eq ne lt le gt ge clamp clip clamp_min clamp_max
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift xlogy copysign float_power fill
    full_like result_type
""".split()  # noqa: SIM905
METHODS = """
    add_ sub_ mul_ div_ remainder_ fmod_ pow_ clamp_ clip_ clamp_min_ clamp_max_ fill_ eq_ lt_ xlogy_ copysign_
    bitwise_and_ __add__ __radd__ __rsub__ __rtruediv__ __rpow__ __floordiv__ __mod__ __eq__ __lt__ __and__ __lshift__
""".split()  # noqa: SIM905
CALLS = """
    torch.pow(s, x) | torch.remainder(s, x) | torch.xlogy(s, x) | torch.float_power(s, x) | torch.result_type(s, x)
    torch.result_type(s, s) | torch.clamp(x, max=s) | x.clamp(0, s) | torch.isin(x, s) | torch.special.zeta(s, x)
    torch.where(x == x, x, s) | torch.where(x != x, s, x) | torch.where(x == x, s, s) | torch.where(x == x, s, 1)
    x.where(x != x, s) | torch.add(x, x, alpha=s) | x.sub(x, alpha=s) | torch.rsub(x, x, alpha=s)
    torch.addcmul(x, x, x, value=s) | torch.addcdiv(x, x, x, value=s) | torch.lerp(x, x + 1, s) | x.lerp_(x + 1, s)
    torch.full((2,), s) | torch.full((2,), s, dtype=torch.float32) | x.new_full((2,), s) | torch.scalar_tensor(s)
    x.masked_fill(x == x, s) | x.masked_fill_(x == x, s) | x.reshape(-1).index_fill(0, i, s)
    x.reshape(-1).scatter(0, i, s) | torch.nn.functional.pad(x.reshape(-1), (1, 1), value=s)
    F.leaky_relu(x, s) | F.leaky_relu_(x, s) | F.elu(x, s) | F.elu_(x, s) | F.celu(x, s) | F.hardtanh(x, -1, s)
    F.threshold(x, s, s) | F.threshold_(x, s, 1) | F.softplus(x, s) | F.softshrink(x, s) | F.hardshrink(x, s)
    F.rrelu(x, s, s) | torch.nn.LeakyReLU(s)(x) | torch.arange(s) | torch.arange(0, 4, s) | torch.linspace(0, s, 3)
    torch.norm(x, s) | torch.linalg.vector_norm(x, s) | torch.dist(x, x + 1, s) | torch.std(x, correction=s)
    torch.nan_to_num(x, s) | torch.logit(x, s) | torch.isclose(x, x, s, s) | torch.trapezoid(x.reshape(-1), dx=s)
    F.huber_loss(x, x + 1, delta=s) | F.smooth_l1_loss(x, x + 1, beta=s) | F.normalize(x.reshape(-1), s)
"""
EXPRESSIONS = [
    *[f"torch.{each}(x, s)" for each in NAMES], *[f"x.{each}(s)" for each in METHODS],
    *[each.strip() for line in CALLS.strip().splitlines() for each in line.split("|")],
]  # fmt: skip


def answer(code: Any, x: Any, s: Any) -> Any:
    """Return the dtype and the values that an expression gives, or the class of its error."""
    space = {"torch": torch, "F": torch.nn.functional, "x": x.clone(), "s": s, "i": torch.tensor([0])}
    try:
        found = eval(code, space)
    except Exception as error:
        return type(error)
    if not isinstance(found, torch.Tensor):
        return found
    return str(found.dtype), tuple(found.shape), repr(found.tolist())


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_numpy_scalars_count_as_python_numbers(expression: str) -> None:
    code = compile(expression, expression, "eval")
    for name, x in TENSORS.items():
        for scalar, number in SCALARS:
            assert answer(code, x, scalar) == answer(code, x, number), (name, type(scalar))


#: What PyTorch 2.13 gives for float32 [-1, 2, 0.5] and int64 [-1, 2, 4] beside bool True, int32 3, float32 1.5.
UNKNOWN, REFUSED = ("raises", NotImplementedError), ("raises", RuntimeError)
RECORDED: dict[str, list[tuple[str, Any]]] = {
    "x + s": [
        ("float32", [0.0, 3.0, 1.5]),
        ("float32", [2.0, 5.0, 3.5]),
        ("float32", [0.5, 3.5, 2.0]),
        ("float32", [0.0, 3.0, 5.0]),
        ("int64", [2, 5, 7]),
        ("float32", [0.5, 3.5, 5.5]),
    ],
    "x - s": [
        ("float32", [-2.0, 1.0, -0.5]),
        ("float32", [-4.0, -1.0, -2.5]),
        ("float32", [-2.5, 0.5, -1.0]),
        ("float32", [-2.0, 1.0, 3.0]),
        ("int64", [-4, -1, 1]),
        ("float32", [-2.5, 0.5, 2.5]),
    ],
    "x // s": [
        ("float32", [-1.0, 2.0, 0.0]),
        ("float32", [-1.0, 0.0, 0.0]),
        ("float32", [-1.0, 1.0, 0.0]),
        ("float32", [-1.0, 2.0, 4.0]),
        ("int64", [-1, 0, 1]),
        ("float32", [-1.0, 1.0, 2.0]),
    ],
    "x.clamp(s)": [
        ("float32", [1.0, 2.0, 1.0]),
        ("float32", [3.0, 3.0, 3.0]),
        ("float32", [1.5, 2.0, 1.5]),
        ("float32", [1.0, 2.0, 4.0]),
        ("int64", [3, 3, 4]),
        ("float32", [1.5, 2.0, 4.0]),
    ],
    "torch.clamp(x, max=s)": [
        ("float32", [-1.0, 1.0, 0.5]),
        ("float32", [-1.0, 2.0, 0.5]),
        ("float32", [-1.0, 1.5, 0.5]),
        ("float32", [-1.0, 1.0, 1.0]),
        ("int64", [-1, 2, 3]),
        ("float32", [-1.0, 1.5, 1.5]),
    ],
    "torch.where(x > 0, x, s)": [
        ("float32", [1.0, 2.0, 0.5]),
        ("float32", [3.0, 2.0, 0.5]),
        ("float32", [1.5, 2.0, 0.5]),
        ("float32", [1.0, 2.0, 4.0]),
        ("int64", [3, 2, 4]),
        ("float32", [1.5, 2.0, 4.0]),
    ],
    "torch.where(x > 0, s, s)": [
        ("float32", [1.0, 1.0, 1.0]),
        ("int64", [3, 3, 3]),
        ("float32", [1.5, 1.5, 1.5]),
        ("float32", [1.0, 1.0, 1.0]),
        ("int64", [3, 3, 3]),
        ("float32", [1.5, 1.5, 1.5]),
    ],
    "torch.full((2,), s)": [
        ("float32", [1.0, 1.0]),
        ("int64", [3, 3]),
        ("float32", [1.5, 1.5]),
        ("float32", [1.0, 1.0]),
        ("int64", [3, 3]),
        ("float32", [1.5, 1.5]),
    ],
    "torch.full_like(x, s)": [
        ("float32", [1.0, 1.0, 1.0]),
        ("float32", [3.0, 3.0, 3.0]),
        ("float32", [1.5, 1.5, 1.5]),
        ("int64", [1, 1, 1]),
        ("int64", [3, 3, 3]),
        ("int64", [1, 1, 1]),
    ],
    "x.masked_fill(x > 0, s)": [
        ("float32", [-1.0, 1.0, 1.0]),
        ("float32", [-1.0, 3.0, 3.0]),
        ("float32", [-1.0, 1.5, 1.5]),
        ("int64", [-1, 1, 1]),
        ("int64", [-1, 3, 3]),
        ("int64", [-1, 1, 1]),
    ],
    "x.fill_(s)": [
        ("float32", [1.0, 1.0, 1.0]),
        ("float32", [3.0, 3.0, 3.0]),
        ("float32", [1.5, 1.5, 1.5]),
        ("int64", [1, 1, 1]),
        ("int64", [3, 3, 3]),
        ("int64", [1, 1, 1]),
    ],
    "torch.lerp(x, x + 1, s)": [
        ("float32", [0.0, 3.0, 1.5]),
        ("float32", [2.0, 5.0, 3.5]),
        ("float32", [0.5, 3.5, 2.0]),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ],
    "F.leaky_relu(x, s)": [
        ("float32", [-1.0, 2.0, 0.5]),
        ("float32", [-3.0, 2.0, 0.5]),
        ("float32", [-1.5, 2.0, 0.5]),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ],
    "F.leaky_relu_(x, s)": [
        ("float32", [-1.0, 2.0, 0.5]),
        ("float32", [-3.0, 2.0, 0.5]),
        ("float32", [-1.5, 2.0, 0.5]),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ],
    "F.elu(x, s)": [
        ("float32", [-0.6321205496788025, 2.0, 0.5]),
        ("float32", [-1.8963615894317627, 2.0, 0.5]),
        ("float32", [-0.9481807947158813, 2.0, 0.5]),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ],
    "x.clamp_max_(s)": [
        ("float32", [-1.0, 1.0, 0.5]),
        ("float32", [-1.0, 2.0, 0.5]),
        ("float32", [-1.0, 1.5, 0.5]),
        REFUSED,
        ("int64", [-1, 2, 3]),
        REFUSED,
    ],
    "x.clamp_min_(s)": [
        ("float32", [1.0, 2.0, 1.0]),
        ("float32", [3.0, 3.0, 3.0]),
        ("float32", [1.5, 2.0, 1.5]),
        REFUSED,
        ("int64", [3, 3, 4]),
        REFUSED,
    ],
    "F.softshrink(x, s)": [
        ("float32", [-0.0, 1.0, 0.0]),
        ("float32", [-0.0, 0.0, 0.0]),
        ("float32", [-0.0, 0.5, 0.0]),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ],
}


@pytest.mark.parametrize("expression", RECORDED)
def test_numpy_scalars_give_what_torch_gives(expression: str) -> None:
    scalars = (numpy.bool_(True), numpy.int32(3), numpy.float32(1.5))
    operands = [(TENSORS[name], each) for name in ("float32", "int64") for each in scalars]
    for (x, scalar), (dtype, values) in zip(operands, RECORDED[expression], strict=True):
        space = {"torch": torch, "F": torch.nn.functional, "x": x.clone(), "s": scalar}
        if dtype == "raises":
            with pytest.raises(values):
                eval(expression, space)
            continue
        found = eval(expression, space)
        assert (str(found.dtype), found.tolist()) == (f"torch.{dtype}", pytest.approx(values, rel=1e-6))


def test_extended_precision_scalars_are_python_numbers() -> None:
    x = torch.tensor([1.0])
    for number in (numpy.longdouble(0.5), numpy.float32(0.5)):
        assert (x * number).dtype is torch.float32
        assert x.clamp(number).dtype is torch.float32
        assert torch.nn.functional.leaky_relu(-x, number).tolist() == [-0.5]
    assert (x * numpy.clongdouble(1j)).dtype is torch.complex64
