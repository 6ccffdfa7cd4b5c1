"""Forward mode: every smooth sample compared with reverse mode, and ``forward_ad`` with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import retrograd as torch
import retrograd.autograd.forward_ad as fwAD
from tests.conformance.sample_derivatives import weighted_sum
from tests.conformance.samples import FAMILIES, Sample, samples
from tests.conformance.test_operations import golden


def leaves(sample: Sample) -> dict[str, Any]:
    found = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    for each in found.values():
        if each.is_floating_point() or each.is_complex():
            each.requires_grad_()
    return found


def along(slopes: Any, steps: list[Any]) -> Any:
    """Return the derivative in a direction."""
    total: Any = 0
    for slope, step in zip(slopes, steps, strict=True):
        if slope is not None:
            total = total + (torch.real(slope * step.conj()) if slope.is_complex() else slope * step).sum()
    return total


def numbers(x: Any) -> numpy.ndarray:
    return numpy.zeros(1) if x is None else numpy.asarray(getattr(x, "detach", lambda: x)())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_tangents_match_reverse_mode(family: str) -> None:
    """The tangent of every smooth sample, and the tangent of its gradient (forward over reverse)."""
    wrong = []
    for sample in samples(family):
        record = golden(family).get(sample.expression, {})
        if not sample.smooth or sample.named or ({"error", "refused"} & record.keys() and not sample.beyond):
            continue
        rng, steps = numpy.random.default_rng(0), []
        tensors = leaves(sample)
        wanted = [each for each in tensors.values() if each.requires_grad]
        for each in wanted:
            step = rng.standard_normal(each.shape)
            steps.append(torch.tensor(step + 1j * rng.standard_normal(each.shape) if each.is_complex() else step))
        total = weighted_sum(torch, sample.evaluate(torch, tensors))
        if getattr(total, "grad_fn", None) is None:
            continue
        first = torch.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
        slope = along(first, steps)
        curved: Any = [None] * len(wanted)
        if getattr(slope, "requires_grad", False):
            curved = torch.autograd.grad(slope, wanted, allow_unused=True)
        tensors = leaves(sample)
        wanted = [each for each in tensors.values() if each.requires_grad]
        pairs = dict(zip(map(id, wanted), steps, strict=True))
        with fwAD.dual_level():
            duals = {
                name: fwAD.make_dual(each, pairs[id(each)]) if each.requires_grad else each
                for name, each in tensors.items()
            }
            total = weighted_sum(torch, sample.evaluate(torch, duals))
            tangent = fwAD.unpack_dual(total).tangent
            bent = [
                None if each is None else fwAD.unpack_dual(each).tangent
                for each in torch.autograd.grad(total, wanted, allow_unused=True)
            ]
        pairs_found = [(tangent, slope), *zip(bent, curved, strict=True)]
        if not all(numpy.allclose(numbers(a), numbers(b), 1e-6, 1e-8, equal_nan=True) for a, b in pairs_found):
            wrong.append(sample.expression)
    assert not wrong


def dual(*values: float, tangent: Any = None) -> Any:
    x = torch.tensor(values)
    return fwAD.make_dual(x, torch.tensor([1.0, *[0.0] * (len(values) - 1)]) if tangent is None else tangent)


def test_duals_print_their_tangents() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with fwAD.dual_level() as level:
        assert level == 0
        d = fwAD.make_dual(x, torch.tensor([1.0, 0.0]))
        assert repr(d) == "tensor([1., 2.], grad_fn=<ViewBackward0>, tangent=tensor([1., 0.]))"
        assert repr(d * 2) == (
            "tensor([2., 4.], grad_fn=<MulBackward0>,\n       tangent=tensor([2., 0.], grad_fn=<AddBackward0>))"
        )
        assert repr((d.detach() * 2)[0]) == "tensor(2.)"
        c = dual(1.0, 1.0)
        assert repr(c[0]) == "tensor(1., tangent=1.0)"
        assert fwAD.unpack_dual(x).tangent is None
    assert repr(c) == "tensor([1., 1.])"
    assert repr(c * 2) == "tensor([2., 2.])"
    assert fwAD.unpack_dual(c).tangent is None


def test_in_place_and_views_keep_tangents() -> None:
    with fwAD.dual_level():
        c = dual(1.0, 1.0)
        c.mul_(3)
        assert repr(c) == "tensor([3., 3.], tangent=tensor([3., 0.]))"
        view = c[:1]
        view.mul_(c[0].clone())
        assert fwAD.unpack_dual(c).tangent.tolist() == [18.0, 0.0]
        v = torch.zeros(3)
        w = v[1:]
        w.add_(dual(1.0, 1.0))
        assert repr(v) == "tensor([0., 1., 1.], tangent=tensor([0., 1., 0.]))"
        z = torch.zeros(2)
        z[0] = c[0]
        assert fwAD.unpack_dual(z).tangent.tolist() == [18.0, 0.0]
        c.zero_()
        assert repr(c) == "tensor([0., 0.], tangent=tensor([0., 0.]))"
        assert c.tolist() == [0.0, 0.0]
        assert repr(torch.cat([dual(1.0), torch.ones(1)])) == "tensor([1., 1.], tangent=tensor([1., 0.]))"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: fwAD.make_dual(torch.ones(2), torch.ones(3)), RuntimeError,
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            "supported. Tensor is of size [2] while the given forward gradient is of size [3].",
        ),
        (
            lambda: fwAD.make_dual(torch.ones(2, dtype=torch.int64), torch.ones(2)), ValueError,
            "Expected primal to be floating point or complex, but got: torch.int64",
        ),
        (
            lambda: fwAD.make_dual(torch.ones(2), torch.ones(2, dtype=torch.int64)), ValueError,
            "Expected tangent to be floating point or complex, but got: torch.int64",
        ),
        (
            lambda: fwAD.make_dual(dual(1.0), torch.ones(1)), RuntimeError,
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported.",
        ),
        (fwAD.enter_dual_level, RuntimeError, "Nested forward mode AD is not supported at the moment"),
        (lambda: fwAD.unpack_dual(3), TypeError, "_unpack_dual(): argument 'dual' (position 1) must be Tensor, not int"),
        (
            lambda: torch.sin(dual(1.0), out=torch.empty(1)), NotImplementedError,
            "Trying to use forward AD with sin_out that does not support it because it is an out= function",
        ),
        (
            lambda: fwAD.exit_dual_level(level=3), RuntimeError,
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported.",
        ),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with fwAD.dual_level(), pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_errors_outside_a_level() -> None:
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwAD.make_dual(torch.ones(1), torch.ones(1))
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fwAD.exit_dual_level()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Pushed(Cube):
    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2


@pytest.mark.parametrize("function", [Cube, Pushed])
def test_custom_functions(function: Any) -> None:
    """With their ``jvp``; without one PyTorch raises, and retrograd transposes the backward."""
    x = torch.tensor([2.0], requires_grad=True)
    with fwAD.dual_level():
        y = function.apply(fwAD.make_dual(x, torch.ones(1)))
        assert fwAD.unpack_dual(y).tangent.tolist() == [12.0]
        (slope,) = torch.autograd.grad(y, x)
        assert fwAD.unpack_dual(slope).tangent.tolist() == [12.0]


def test_reverse_over_forward() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    t = torch.tensor([1.0, 1.0], requires_grad=True)
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(fwAD.make_dual(x, t).prod() ** 2).tangent
    by_x, by_t = torch.autograd.grad(tangent, (x, t))
    assert by_t.tolist() == [2 * 6 * 3, 2 * 6 * 2]
    assert by_x.tolist() == [2 * 9 + 4 * 6, 2 * 4 + 4 * 6]


#: Name, function of ``a`` and its derivative at (1, 4) in the direction (1, 1) as PyTorch 2.13 gives it.
_HALF = [
    ("product", lambda a: a * a, [2.0, 8.0]),
    ("sum", lambda a: a.sum(), 2.0),
    ("cumsum", lambda a: a.cumsum(0), [1.0, 2.0]),
    ("matmul", lambda a: a.reshape(1, 2) @ a.reshape(2, 1), [[10.0]]),
    ("in place", lambda a: a.clone().mul_(a), [2.0, 8.0]),
    (
        "written into zeros",
        lambda a: torch.zeros(3, dtype=a.dtype).index_put((torch.tensor([0, 1]),), a),
        [1.0, 1.0, 0.0],
    ),
    ("cat", lambda a: torch.cat([a, a * a]), [1.0, 1.0, 2.0, 8.0]),
    ("max", lambda a: a.max(0).values, 1.0),
    ("where", lambda a: torch.where(a > 2, a, a * a), [2.0, 1.0]),
    ("cast", lambda a: a.float() * 2, [2.0, 2.0]),
    ("cast to bfloat16", lambda a: a.to(torch.bfloat16) * 2, [2.0, 2.0]),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("function", "slope"), [each[1:] for each in _HALF], ids=[each[0] for each in _HALF])
def test_every_entry_of_forward_mode_takes_dtypes_of_16_bits(function: Any, slope: Any, dtype: Any) -> None:
    x = torch.tensor([1.0, 4.0], dtype=dtype)
    one = torch.ones_like(x)
    out = function(x)
    with fwAD.dual_level():
        dual = fwAD.unpack_dual(function(fwAD.make_dual(x.clone(), one))).tangent
    found = {
        "func.jvp": torch.func.jvp(function, (x,), (one,))[1],
        "dual": dual,
        "linearize": torch.func.linearize(function, x)[1](one),
        "functional.jvp": torch.autograd.functional.jvp(function, x, one)[1],
        "jacfwd": torch.func.jacfwd(function)(x).sum(-1),
        "jacobian": torch.autograd.functional.jacobian(function, x, vectorize=True, strategy="forward-mode").sum(-1),
        "vmap": torch.func.vmap(lambda a: torch.func.jvp(function, (a,), (one,))[1])(x.expand(2, 2))[0],
    }
    for name, each in found.items():
        assert (name, each.dtype, each.tolist()) == (name, out.dtype, slope)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_forward_over_reverse_takes_dtypes_of_16_bits(dtype: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=dtype)
    hessian = torch.func.hessian(lambda a: (a**3).sum())(x)
    assert (hessian.dtype, hessian.tolist()) == (dtype, [[6.0, 0.0], [0.0, 12.0]])
    pushed = torch.func.jvp(torch.func.grad(lambda a: (a**3).sum()), (x,), (torch.ones_like(x),))
    assert [each.tolist() for each in pushed] == [[3.0, 12.0], [6.0, 12.0]]
