"""Custom operations: ``autograd.Function``. Messages and node names are PyTorch 2.13's."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import pytest

import retrograd as torch
from retrograd.autograd import Function
from retrograd.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Exp(Function):
    """Exponential that saves its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.saved_tensors[0]


class Scaled(Function):
    """Multiplication by a number, with separate ``setup_context``."""

    @staticmethod
    def forward(x: Any, factor: float = 2.0) -> Any:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


class Both(Function):
    """Function with two results."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, product: Any, total: Any) -> Any:
        x, y = ctx.saved_tensors
        Both.arrived = product, total  # type: ignore[attr-defined]
        return product * y + total, product * x + total


class AddOne(Function):
    """In-place function."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class Itself(Function):
    """Function that returns its input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 10


def answering(result: Any, arguments: int = 1) -> Any:
    """Return a function whose backward returns ``result``."""

    class Given(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            return args[0] * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return result

    return Given


def leaf(value: Any = 2.0) -> Any:
    return torch.tensor(value, requires_grad=True)


def test_forward_and_backward() -> None:
    x = leaf()
    y = Cube.apply(x)
    assert y.item() == 8 and repr(y) == "tensor(8., grad_fn=<CubeBackward>)"
    assert y.grad_fn.name() == "CubeBackward" and type(y.grad_fn) is Cube._backward_cls
    assert y.grad_fn.next_functions[0][0].variable is x and y.grad_fn.saved_tensors[0] is x
    y.backward()
    assert x.grad.item() == 12


def test_derivatives_of_every_order() -> None:
    x = leaf()
    first, second, third = x, x, x
    for function, expected in ((Cube, (12.0, 12.0, 6.0)), (Exp, (7.389056,) * 3)):
        (first,) = torch.autograd.grad(function.apply(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first, x, create_graph=True)
        (third,) = torch.autograd.grad(second, x)
        assert (first.item(), second.item(), third.item()) == pytest.approx(expected)


def test_forward_is_not_recorded_and_backward_only_with_create_graph() -> None:
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
            seen.append((torch.is_grad_enabled(), ctx.needs_input_grad))
            return x * n

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((torch.is_grad_enabled(), ctx.needs_input_grad))
            return grad * 3, None, None

    x = leaf()
    Look.apply(x, 3, torch.ones(1)).backward()
    torch.autograd.grad(Look.apply(x, 3, None), x, create_graph=True)
    needs = (True, False, False)
    assert seen == [(False, needs), (False, needs), (False, needs), (True, needs)]
    with torch.no_grad():
        assert Cube.apply(x).grad_fn is None
    assert not Cube.apply(x.detach()).requires_grad


def test_setup_context_form_takes_defaults_and_keywords() -> None:
    x = leaf()
    for y, factor in ((Scaled.apply(x), 2), (Scaled.apply(x, 3.0), 3), (Scaled.apply(x, factor=4.0), 4)):
        assert torch.autograd.grad(y, x)[0].item() == factor
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        Scaled.apply(x, m=1)


def test_several_results() -> None:
    x = leaf()
    product, total = Both.apply(x, x * 2)
    assert product.grad_fn is total.grad_fn and (product.output_nr, total.output_nr) == (0, 1)
    total.backward(retain_graph=True)
    assert x.grad.item() == 3 and [each.item() for each in Both.arrived] == [0, 1]  # type: ignore[attr-defined]
    (product + total).backward()
    assert x.grad.item() == 14


def test_non_tensor_and_non_differentiable_results() -> None:
    seen = []

    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            fixed, flags = x * 3, x > 0
            ctx.mark_non_differentiable(fixed)
            return x * 2, "name", fixed, flags

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.extend(grads)
            return grads[0]

    x = leaf([1.0, 2.0])
    out, name, fixed, flags = Mixed.apply(x)
    assert name == "name" and not fixed.requires_grad and flags.dtype is torch.bool
    out.sum().backward()
    assert seen[1] is None and [each.tolist() for each in (seen[0], *seen[2:])] == [[1, 1], [0, 0], [False, False]]


def test_set_materialize_grads_false_passes_none() -> None:
    class Sparing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            assert a is None
            return b * 2

    x = leaf()
    Sparing.apply(x)[1].backward()
    assert x.grad.item() == 2


def test_in_place() -> None:
    x = leaf([1.0, 1.0])
    y = x * 2
    z = AddOne.apply(y)
    assert z is y and y.grad_fn.name() == "AddOneBackward" and y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]
    x.grad = None
    y = x * 2
    AddOne.apply(y[0])
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [4, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        AddOne.apply(leaf())
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        AddOne.apply(leaf([1.0, 2.0])[:1])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_results_under_no_grad_do_not_require_grad(mode: Any) -> None:
    x = leaf([1.0, 2.0])
    y = x * 1
    with mode():
        same, modified = Itself.apply(x), AddOne.apply(y)
    for each, given in ((same, x), (modified, y)):
        assert not each.requires_grad and each.grad_fn is None and not each._is_view()
        assert each.data_ptr() == given.data_ptr() and given.requires_grad


def test_mark_dirty_input_must_be_returned() -> None:
    class Forgetful(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Forgetful.apply(leaf() * 1)


def test_returned_input_and_views_of_it() -> None:
    x = leaf([1.0, 2.0])
    y = Itself.apply(x)
    assert y is not x and y._is_view() and y._base is x and y.grad_fn.name() == "ItselfBackward"
    y.sum().backward()
    assert x.grad.tolist() == [10, 10]
    with pytest.raises(
        RuntimeError,
        match=r"Output 0 of Itself is a view and is being modified inplace. This view was created inside a custom Function",
    ):
        y.mul_(2)


def test_saved_tensors_are_freed_and_version_checked() -> None:
    x = leaf()
    y = Cube.apply(x)
    y.backward()
    for again in (y.backward, lambda: y.grad_fn.saved_tensors):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            again()
    y = Exp.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"which is output 0 of Exp, is at version 1; expected version 0 instead"):
        y.backward()
    source = x * 1
    y = Cube.apply(source)
    source.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize(
    ("result", "given", "text"),
    [
        (3, 1, "expected Variable or None (got int)"),
        ((torch.ones(()), torch.ones(())), 1, "function GivenBackward returned an incorrect number of gradients (expected 1, got 2)"),
        (torch.ones(()), 2, "function GivenBackward returned an incorrect number of gradients (expected 2, got 1)"),
        ((torch.ones(()), torch.ones(())), 2, "function GivenBackward returned a gradient different than None at position 2, but the corresponding forward input was not a Variable"),
    ],
)  # fmt: skip
def test_invalid_results_of_backward_raise(result: Any, given: int, text: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(text)):
        answering(result).apply(leaf(), *(2,) * (given - 1)).backward()


def test_results_of_backward_are_cast_and_reduced() -> None:
    x = leaf([1.0, 2.0])
    text = "Function GivenBackward returned an invalid gradient at index 0 - got [3] but expected shape compatible with [2]"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        answering(torch.ones(3)).apply(x).sum().backward()
    answering((torch.ones(3, 2, dtype=torch.float64), None)).apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3] and x.grad.dtype is torch.float32


def test_one_element_gradient_is_reshaped_to_0d() -> None:
    x = leaf()
    answering(torch.full((1,), 5.0)).apply(x).backward()
    assert x.grad.shape == () and x.grad.item() == 5


def test_misuse_raises() -> None:
    class Saving(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        Saving.apply(leaf())
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        made(leaf())

    class OneWay(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        OneWay.apply(leaf()).backward()
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Function.apply(leaf())


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].exp()

    x = leaf()
    (first,) = torch.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    assert first.item() == pytest.approx(2 * 7.389056**2, rel=1e-5)
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        first.backward()


def test_errors_in_forward_or_backward_restore_state() -> None:
    class Failing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, when: str) -> Any:
            ctx.when = when
            if when == "forward":
                raise ValueError("forward")
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("backward")

    x = leaf()
    for when in ("forward", "backward"):
        with pytest.raises(ValueError, match=when):
            Failing.apply(x, when).backward()
        assert torch.is_grad_enabled() and x.grad is None
    Cube.apply(x).backward()
    assert x.grad.item() == 12


def test_backward_can_run_a_nested_backward_pass() -> None:
    class Nested(Function):
        """Function whose backward differentiates its forward."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with torch.enable_grad():
                inner = ctx.saved_tensors[0].detach().requires_grad_()
                inner.sin().backward(grad)
            return inner.grad

    x = leaf(0.0)
    Nested.apply(x * 1).backward()
    assert x.grad.item() == 1


def test_hooks_and_complex_numbers() -> None:
    seen = []
    y = Cube.apply(leaf())
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].item(), outs[0].item())))
    y.backward()
    assert seen == [(12, 1)]
    assert Cube.apply(leaf([1 + 2j])).tolist() == [-11 - 2j]


def test_graph_is_freed_with_its_last_reference() -> None:
    gc.disable()
    try:
        for make in (
            lambda: Exp.apply(leaf()),
            lambda: AddOne.apply(leaf() * 1),
            lambda: Both.apply(leaf(), leaf())[1],
        ):
            y = make()
            node = weakref.ref(y.grad_fn)
            del y
            assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "function",
    [
        Cube.apply, Exp.apply, Scaled.apply, lambda x: Scaled.apply(x, 3.0), lambda x: Both.apply(x, x * 2),
        lambda x: Both.apply(x, Cube.apply(x))[0], lambda x: Cube.apply(Exp.apply(x)), lambda x: Exp.apply(x[:2]).sum(),
    ],
)  # fmt: skip
def test_gradcheck_passes(function: Any) -> None:
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for fast in (False, True):
        assert torch.autograd.gradcheck(function, x, fast_mode=fast, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(function, x, fast_mode=fast)


def test_gradcheck_finds_wrong_derivative() -> None:
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    for function in (lambda x: AddOne.apply(x * 1), Itself.apply):
        assert not torch.autograd.gradcheck(function, x, raise_exception=False)


NAMES_OF_THE_ENGINE = (
    "arguments", "code", "dtype", "edge_of", "edges", "forms", "hooks", "instruction", "listed", "lone", "merged", "name",
    "node", "number", "operation", "outputs", "place", "position", "result_hooks", "run", "saved", "shape", "single",
    "spread", "takes_none", "variable_ref", "vjp", "vjp_recorded",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_THE_ENGINE)
@pytest.mark.parametrize("recorded", [False, True])
def test_attributes_of_ctx_may_have_names_of_the_engine(name: str, recorded: bool) -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            setattr(ctx, name, (name, k))
            ctx.save_for_backward(x)
            return x * k, x * 2 * k

        @staticmethod
        def backward(ctx, first, second):
            assert getattr(ctx, name)[0] == name and ctx.saved_tensors[0].shape == (2, 3)
            k = getattr(ctx, name)[1]
            setattr(ctx, name, (name, k))
            return first * k + second * 2 * k, None

    x = torch.ones(2, 3, requires_grad=True)
    first, second = Scaled.apply(x, 5)
    total = (first * second).sum()
    for _ in range(2):
        (gradient,) = torch.autograd.grad(total, x, retain_graph=True, create_graph=recorded)
        assert gradient.tolist() == [[100.0] * 3] * 2
        assert gradient.requires_grad is recorded
    one = Scaled.apply(x, 3)[0].sum()
    assert "Scaled" in str(torch.autograd.explain(one))
