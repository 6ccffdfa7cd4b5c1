"""The backward pass: gradients, accumulation, hooks, freeing, errors, order, and state after a failure."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.autograd import graph
from retrograd.core import engine
from retrograd.core import graph as core_graph
from retrograd.core.grad_mode import recording
from retrograd.core.graph import AccumulateGrad
from tests.unit.interrupts import interrupt_at_every_call


def leaf(*values: float) -> Any:
    return torch.tensor([float(each) for each in values], requires_grad=True)


# -- Values


def test_a_product() -> None:
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (3.0, 4.0, 5.0))
    (w * x + b).backward()
    assert (x.grad.item(), w.grad.item(), b.grad.item()) == (4.0, 3.0, 1.0)


def test_a_polynomial_and_its_derivatives() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = 2 * x**4 + x**3 + 3 * x**2 + 5 * x + 1
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x, create_graph=True)
    (fourth,) = torch.autograd.grad(third, x, create_graph=True)
    (fifth,) = torch.autograd.grad(fourth, x)
    assert [each.item() for each in (y, first, second, third, fourth, fifth)] == [63, 93, 114, 102, 48, 0]


def test_gradients_accumulate_until_they_are_cleared() -> None:
    x = leaf(1, 2)
    for expected in ([2.0, 4.0], [4.0, 8.0]):
        (x * x).sum().backward()
        assert x.grad.tolist() == expected
    x.grad.zero_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_accumulation_is_in_place() -> None:
    x = leaf(1)
    (x * 2).backward()
    held = x.grad
    (x * 2).backward()
    assert x.grad is held and held.tolist() == [4.0]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 3)])
def test_view_as_real_takes_gradients_of_any_layout(dtype: Any, shape: tuple[int, ...]) -> None:
    real = torch.float32 if dtype is torch.complex64 else torch.float64
    gradients = {
        "expanded": torch.ones((), dtype=real).expand(*shape, 2),
        "expanded pairs": torch.tensor([1.0, 1.0], dtype=real).expand(*shape, 2),
        "reversed strides": torch.ones(2, *shape[::-1], dtype=real).permute(*range(len(shape), -1, -1)),
        "odd offset": torch.ones(2 * torch.Size(shape).numel() + 1, dtype=real)[1:].view(*shape, 2),
    }
    for name, gradient in gradients.items():
        x = torch.full(shape, 1 + 2j, dtype=dtype, requires_grad=True)
        torch.view_as_real(x).backward(gradient)
        assert torch.equal(x.grad, torch.full(shape, 1 + 1j, dtype=dtype)), name
    x = torch.full(shape, 1 + 2j, dtype=dtype, requires_grad=True)
    torch.view_as_real(x).sum().backward()
    assert torch.equal(x.grad, torch.full(shape, 1 + 1j, dtype=dtype))
    (first,) = torch.autograd.grad((torch.view_as_real(x).movedim(-1, 0) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(torch.view_as_real(first).sum(), x)
    assert torch.equal(second, torch.full(shape, 6 + 12j, dtype=dtype))


def test_view_as_real_takes_gradients_of_any_layout_in_transforms() -> None:
    x = torch.tensor([[1 + 2j, 3 - 1j]], dtype=torch.complex128)
    gradient = torch.func.grad(lambda x: torch.view_as_real(x).sum())
    assert torch.vmap(gradient)(x).tolist() == [[1 + 1j, 1 + 1j]]
    assert torch.vmap(gradient, in_dims=1)(x).tolist() == [[1 + 1j], [1 + 1j]]
    cubed = torch.func.grad(lambda x: (torch.view_as_real(x).transpose(0, 2) ** 3).sum())
    assert torch.func.jvp(cubed, (x,), (x,))[1].tolist() == [[6 + 24j, 54 + 6j]]


def test_view_as_complex_ignores_strides_of_dimensions_of_one_element() -> None:
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    y = torch.view_as_complex(x.t())
    assert y.tolist() == [1 + 2j]
    torch.view_as_real(y).sum().backward()
    assert x.grad.tolist() == [[1.0], [1.0]]


def test_gradients_of_broadcast_operands_are_summed() -> None:
    a, b = torch.ones(2, 1, requires_grad=True), torch.ones(3, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[3.0], [3.0]] and b.grad.tolist() == [2.0, 2.0, 2.0]


def test_gradients_have_the_dtype_of_their_tensor() -> None:
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.dtype is torch.float32 and b.grad.dtype is torch.float64


def test_gradients_do_not_share_memory() -> None:
    x, y, g = leaf(1, 1), leaf(2, 2), torch.ones(2)
    (x + y).backward(g)
    x.grad.zero_()
    assert y.grad.tolist() == [1.0, 1.0] and g.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(5, 3), (64, 300)])
def test_weight_gradients_have_the_weights_strides_and_own_memory(shape: tuple[int, int]) -> None:
    """Also for a transposed weight of a layer, a reshaped leaf, and a leaf with other views."""
    x, wide = torch.randn(70, shape[1]), torch.randn(shape[1], shape[0], requires_grad=True)
    weight, bias = torch.randn(shape, requires_grad=True), torch.randn(shape[0], requires_grad=True)
    torch.nn.functional.linear(x, weight, bias).sin().sum().backward()
    torch.addmm(bias.detach(), x, wide).sin().sum().backward()
    for leaf, stored, turned in ((weight, weight, True), (wide, wide, False)):
        slope = (x @ (leaf.t() if turned else leaf) + bias).detach().cos()
        expected = slope.t() @ x if turned else x.t() @ slope
        assert stored.grad is not None and stored.grad.stride() == stored.stride()
        assert torch.allclose(stored.grad, expected.detach(), atol=1e-4)
    kept = torch.randn(shape)
    flat = torch.randn(shape[0] * shape[1], requires_grad=True)
    flat.view(shape).backward(kept)
    assert flat.grad is not None
    flat.grad.add_(1)
    assert torch.equal(flat.grad, kept.reshape(-1) + 1)


def test_backward_of_a_leaf() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1.0


def test_diamond_runs_each_node_once() -> None:
    x = leaf(2)
    y = x * x
    z = y + y * y
    calls = []
    y.register_hook(lambda g: calls.append(g.item()))
    z.backward()
    assert calls == [9.0] and x.grad.tolist() == [36.0]


def test_non_scalar_root_needs_a_gradient() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError) as raised:
        (x * 2).backward(torch.ones(3))
    assert str(raised.value) == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2])."
    )
    assert "computed by MulBackward0" in raised.value.__notes__[0] and "Remedy" in raised.value.__notes__[0]
    (x * 2).backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_roots_without_grad_raise() -> None:
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_several_roots() -> None:
    x = leaf(1)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(1), torch.tensor([10.0])])
    assert x.grad.tolist() == [32.0]
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        torch.autograd.backward([x * 2, x * 3], [torch.ones(1)])


# -- grad


def test_grad_does_not_write_to_grad_attributes() -> None:
    x, w = leaf(1), leaf(3)
    (dx,) = torch.autograd.grad(x * w, x)
    assert dx.tolist() == [3.0] and x.grad is None and w.grad is None


def test_grad_of_a_computed_tensor() -> None:
    x = leaf(2)
    y = x * x
    assert torch.autograd.grad((y * 3).sum(), y)[0].tolist() == [3.0]


def test_unused_inputs() -> None:
    x, z = leaf(1), leaf(1)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x * 2, [x, z])
    assert torch.autograd.grad(x * 2, z, allow_unused=True) == (None,)
    assert torch.autograd.grad(x * 2, z, materialize_grads=True)[0].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(x * 2, torch.ones(1))


def test_create_graph_makes_gradients_differentiable() -> None:
    x = leaf(2)
    (first,) = torch.autograd.grad(x * x * x, x, create_graph=True)
    assert first.requires_grad and first.tolist() == [12.0]
    assert torch.autograd.grad(first, x)[0].tolist() == [12.0]


def test_backward_through_gradients_reaches_every_parameter() -> None:
    x, w = leaf(2), leaf(3)
    (slope,) = torch.autograd.grad(w * x * x, x, create_graph=True)
    (slope * slope).backward()
    assert w.grad.tolist() == [96.0] and x.grad.tolist() == [144.0]


def test_is_grads_batched_gives_the_rows_of_the_jacobian() -> None:
    x = leaf(1, 2)
    (rows,) = torch.autograd.grad(x * x, x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_backward_with_inputs_accumulates_only_into_them() -> None:
    x, w = leaf(1), leaf(3)
    (x * w).backward(inputs=[x])
    assert x.grad.tolist() == [3.0] and w.grad is None
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        (x * w).backward(inputs=[])


def test_nodes_that_reach_no_input_do_not_run() -> None:
    x, w = leaf(1), leaf(3)
    y = w * w
    ran: list[Any] = []
    y.register_hook(ran.append)
    torch.autograd.grad(x * y, x)
    assert ran == []


# -- Freeing


def test_backward_frees_the_graph() -> None:
    x = leaf(2)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_the_error_for_a_freed_graph_names_the_users_line() -> None:
    x = leaf(2)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"The values are those of Mul at .*test_backward.py:\d+: y = x \* x"):
        y.backward()


def test_graph_without_saved_tensors_can_run_twice() -> None:
    x = leaf(2)
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_retain_graph_keeps_it() -> None:
    x = leaf(3)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_graph_is_freed_by_reference_counting() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(1, 2)
        y = (x * x).exp().sum()
        y.register_hook(lambda g: g)
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        nodes = [weakref.ref(each.grad_fn) for each in (y, slope)]
        view = slope[0]
        kept = weakref.ref(view)
        del y, slope, view
        assert [each() for each in nodes] == [None, None] and kept() is None
    finally:
        gc.enable()


def test_inplace_operations_on_views_create_no_reference_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        base = leaf(1, 2) * 1
        part = base[0]
        part.mul_(2).exp_()
        held = weakref.ref(base.grad_fn)
        del base, part
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("depth", [1_000_000])
def test_a_deep_graph(depth: int) -> None:
    x = leaf(1)
    y = x
    for _ in range(depth):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]


# -- Hooks


def test_a_hook_sees_the_gradient_and_may_replace_it() -> None:
    x = leaf(1, 2)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]] and x.grad.tolist() == [6.0, 6.0]
    handle.remove()
    handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_gradient_kept_by_a_leaf_hook_is_not_accumulated_into() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen: list[torch.Tensor] = []
    x.register_hook(seen.append)
    y = x + x  # the gradient is a sum, whose buffer becomes the leaf's grad if it is not copied
    y.backward(torch.ones(2), retain_graph=True)
    y.backward(torch.ones(2))
    assert [each.tolist() for each in seen] == [[2.0, 2.0], [2.0, 2.0]]
    assert x.grad is not None and x.grad.tolist() == [4.0, 4.0]


def test_hooks_run_in_the_order_of_registration() -> None:
    x = leaf(1)
    y = x * 1
    order = []
    y.register_hook(lambda g: order.append("first"))
    y.register_hook(lambda g: order.append("second"))
    y.backward()
    assert order == ["first", "second"]


def test_a_handle_is_a_context_manager() -> None:
    x = leaf(1)
    with x.register_hook(lambda g: g * 5):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.tolist() == [6.0]


def test_a_hook_that_removes_itself() -> None:
    x = leaf(1)
    calls = []

    def hook(grad: Any) -> None:
        calls.append(1)
        handle.remove()

    handle = x.register_hook(hook)
    for _ in range(2):
        (x * 1).backward()
    assert calls == [1]


@pytest.mark.parametrize(
    ("hook", "error", "text"),
    [
        (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
        (
            lambda g: g.double(),
            RuntimeError,
            r"has changed the type of value \(was torch.FloatTensor got torch.DoubleTensor\)",
        ),
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
    ],
)
def test_invalid_results_of_hooks_raise(hook: Any, error: Any, text: str) -> None:
    x = leaf(1, 2)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(error, match=text):
        y.sum().backward()
    assert x.grad is None


def test_no_hook_without_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_retain_grad_keeps_the_gradient_of_a_computed_tensor() -> None:
    x = leaf(3)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).backward(retain_graph=True)
    assert y.grad.tolist() == [12.0]
    (y * y).backward()
    assert y.grad.tolist() == [24.0]
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_retain_grad_runs_in_registration_order() -> None:
    x = leaf(1)
    before, after = x * 1, x * 1
    before.retain_grad()
    before.register_hook(lambda g: g * 10)
    after.register_hook(lambda g: g * 10)
    after.retain_grad()
    (before + after).backward()
    assert before.grad.tolist() == [1.0] and after.grad.tolist() == [10.0] and x.grad.tolist() == [20.0]


@pytest.mark.thread_unsafe
def test_the_order_of_pytorch_2_can_be_chosen() -> None:
    graph.set_retain_grad_last(True)
    try:
        x = leaf(1)
        y = x * 1
        y.retain_grad()
        y.register_hook(lambda g: g * 10)
        y.backward()
        assert y.grad.tolist() == [10.0]
    finally:
        graph.set_retain_grad_last(False)


def test_hooks_of_nodes() -> None:
    x = leaf(2)
    y = x * 3
    seen = []
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].tolist(), ins[1], outs[0].tolist())))
    y.backward()
    assert seen == [([6.0], None, [2.0])] and x.grad.tolist() == [6.0]


def test_a_hook_after_accumulation() -> None:
    x = leaf(2)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 3).backward()
    assert seen == [(True, [3.0])]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 1).register_post_accumulate_grad_hook(print)


def test_nodes_run_by_sequence_number_and_leaves_first() -> None:
    order: list[str] = []

    def told(tensor: Any, name: str) -> Any:
        tensor.register_hook(lambda g: order.append(name))
        return tensor

    w1, w2, x = (told(leaf(1), name) for name in ("w1", "w2", "x"))
    first = told(x * w1, "first")
    second = told(first * w2, "second")
    side = told(x * 2, "side")
    (second + side).backward()
    assert order == ["side", "second", "w2", "first", "x", "w1"]


# -- Failures


def test_exception_in_a_hook_restores_state() -> None:
    x, w = leaf(2), leaf(5)
    y = x * w
    z = y * y

    def fail(grad: Any) -> None:
        raise ValueError("mine")

    handle = y.register_hook(fail)
    with pytest.raises(ValueError, match="mine"):
        z.backward(retain_graph=True)
    assert x.grad is None and w.grad is None
    handle.remove()
    z.backward()
    assert x.grad.tolist() == [100.0]


def test_interrupt_restores_state() -> None:
    x = leaf(2)
    y = x * x

    def interrupt(grad: Any) -> None:
        raise KeyboardInterrupt

    handle = y.register_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert torch.is_grad_enabled() and x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [4.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_interrupt_in_any_function_restores_grad_mode(create_graph: bool) -> None:
    def sweep() -> None:
        x = torch.ones(3, requires_grad=True)
        torch.autograd.grad((x * x).exp().sum(), x, create_graph=create_graph)

    for begin in interrupt_at_every_call(sweep):
        assert (torch.ones(1, requires_grad=True) * 2).requires_grad, begin


def test_hook_can_run_a_nested_backward_pass() -> None:
    x = leaf(2)
    inner = x * x
    y = x * 3

    def again(grad: Any) -> None:
        inner.backward()

    y.register_hook(again)
    y.backward()
    assert x.grad.tolist() == [7.0]


def test_hooks_run_in_no_grad_unless_create_graph() -> None:
    x = leaf(2)
    modes = []
    y = x * x
    y.register_hook(lambda g: modes.append(torch.is_grad_enabled()))
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x, create_graph=True)
    assert modes == [False, True]


def test_gradient_edges_replace_tensors() -> None:
    x = leaf(2)
    y = x * x
    edge = graph.get_gradient_edge(y)
    assert torch.autograd.grad(y * 5, [edge])[0].tolist() == [5.0]


def test_gradient_edge_as_root_and_constructed_by_hand() -> None:
    x = leaf(2, 3)
    y = x * x
    edge = graph.GradientEdge(y.grad_fn, 0)
    assert torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True)[0].tolist() == [4.0, 6.0]
    assert torch.autograd.grad((y * 5).sum(), edge)[0].tolist() == [5.0, 5.0]


def test_a_node_can_be_called() -> None:
    x, w = leaf(2), leaf(5)
    y = x * w
    dx, dw = y.grad_fn(torch.ones(1))
    assert dx.tolist() == [5.0] and dw.tolist() == [2.0] and dx.requires_grad
    with torch.no_grad():
        assert not y.grad_fn(torch.ones(1))[0].requires_grad
    accumulate = y.grad_fn.next_functions[0][0]
    assert isinstance(accumulate, graph.Node) and isinstance(y.grad_fn, graph.Node)
    assert accumulate(torch.ones(1)) == () and x.grad.tolist() == [1.0]


def test_a_dictionary_of_inputs() -> None:
    x, w = leaf(2), leaf(5)
    found = torch.autograd.grad(x * w, {"x": x, "w": w})
    assert {name: each.item() for name, each in found.items()} == {"x": 5.0, "w": 2.0}
    (x * w).backward(inputs={"x": x})
    assert x.grad.item() == 5.0 and w.grad is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda y, x: y.backward([1.0, 2.0]), TypeError, "gradients can be either Tensors or None, but got float"),
        (lambda y, x: torch.autograd.backward(None), TypeError, "'NoneType' object is not iterable"),
        (lambda y, x: torch.autograd.backward("y"), AssertionError, "Expected output to be a torch.Tensor"),
        (lambda y, x: torch.autograd.grad(y, 1, y), TypeError, "'int' object is not iterable"),
        (
            lambda y, x: torch.autograd.grad(y, ["x"], y),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got str",
        ),
        (
            lambda y, x: y.backward(y, inputs=[None]),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got NoneType",
        ),
        (
            lambda y, x: y.backward(y, inputs=[torch.ones(1)]),
            RuntimeError,
            "can't retain_grad on Tensor that has requires_grad=False",
        ),
        (
            lambda y, x: torch.autograd.grad(y.sum(), [x, leaf(1)]),
            RuntimeError,
            "The differentiated Tensor at index 1 appears to not have been used in the graph",
        ),
    ],
)
def test_invalid_arguments_of_backward_and_grad(call: Any, error: Any, text: str) -> None:
    x = leaf(1, 2)
    with pytest.raises(error, match=text):
        call(x * 2, x)


def test_non_leaf_input_of_backward_retains_grad() -> None:
    x = leaf(3)
    y = x * 2
    (y * y).backward(inputs=[y])
    assert y.grad.tolist() == [12.0] and x.grad is None and y.retains_grad


def test_materialized_zeros_are_leaves() -> None:
    x, unused = leaf(1), leaf(1)
    (zeros,) = torch.autograd.grad(x * 2, [unused], create_graph=True, materialize_grads=True)
    assert zeros.requires_grad and zeros.item() == 0.0


def test_accumulation_is_out_of_place_with_create_graph() -> None:
    x = leaf(3)
    (x * x).backward(create_graph=True)
    held = x.grad
    assert type(held.grad_fn).__name__ == "CopyBackwards"
    (x * x).backward()
    assert x.grad is held and held.tolist() == [12.0] and held.requires_grad
    (x * x).backward(create_graph=True)
    assert x.grad is not held and held.tolist() == [12.0] and x.grad.tolist() == [18.0]
    x.grad = torch.zeros(1)
    x.grad = None
    given = torch.ones(1, requires_grad=True)
    x.backward(given, create_graph=True)
    assert x.grad is not given and x.grad.data_ptr() != given.data_ptr()


def test_gradients_have_the_strides_of_their_leaf() -> None:
    x = torch.ones(3, 2).t().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == (1, 2)
    x.grad = torch.zeros(1, 1).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to"):
        x.sum().backward()


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (5, TypeError, "expected tuple, but hook returned 'int'"),
        ([torch.ones(2)], TypeError, "expected tuple, but hook returned 'list'"),
        ((), RuntimeError, r"has returned an incorrect number of values \(got 0, but expected 1\)"),
        ((1,), TypeError, "expected Variable, but hook returned 'int'"),
        ((torch.ones(3),), RuntimeError, "has changed the size of value"),
    ],
)
@pytest.mark.parametrize("when", ["register_hook", "register_prehook"])
def test_invalid_results_of_node_hooks_raise(when: str, result: Any, error: Any, text: str) -> None:
    x = leaf(1, 2)
    y = x.exp()
    getattr(y.grad_fn, when)(lambda *given: result)
    with pytest.raises(error, match=text):
        y.sum().backward()


def test_a_hook_after_accumulation_returns_nothing() -> None:
    x = leaf(1)
    x.register_post_accumulate_grad_hook(lambda tensor: tensor)
    with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None"):
        (x * 2).backward()


def test_a_nodes_hook_sees_gradients_in_the_shape_and_dtype_of_its_inputs() -> None:
    a, b = torch.ones(2, 1, requires_grad=True), torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = a * b
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda ins, outs: seen.extend((tuple(each.shape), each.dtype) for each in ins))
    y.sum().backward()
    assert seen == [((2, 1), torch.float32), ((3,), torch.float64)]


def test_hooks_of_deleted_leaves_are_dropped() -> None:
    gc.collect()
    before = AccumulateGrad.hooked
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: None)
    graph.register_multi_grad_hook([y * 2], lambda grads: None)
    assert AccumulateGrad.hooked
    del x
    gc.collect()
    assert AccumulateGrad.hooked is before


FREEZE: dict[str, Any] = {
    "requires_grad_": lambda x: x.requires_grad_(False),
    "requires_grad": lambda x: setattr(x, "requires_grad", False),
    "detach_": lambda x: x.detach_(),
}


@pytest.mark.parametrize("freeze", FREEZE.values(), ids=FREEZE)
def test_a_leaf_frozen_after_its_graph_was_recorded_gets_no_gradient(freeze: Any) -> None:
    """The gradients of other leaves and what hooks see stay as they were: all values are PyTorch's."""
    x, w = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf is x))
    out = (x * x * w).sum()
    part = (x[0] * 3).sum()
    freeze(x)
    out.backward(retain_graph=True)
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 4.0]
    assert seen == [[2.0, 8.0], True]
    out.backward(create_graph=True)
    part.backward()
    assert x.grad is None
    x.grad = torch.ones(2)
    (slope,) = torch.autograd.grad(out, w, create_graph=True)
    slope.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(out, x)


def test_a_leaf_frozen_while_gradients_are_computed_gets_none() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda grad: setattr(x, "requires_grad", False))
    y.sum().backward()
    assert x.grad is None


def test_a_frozen_view_gets_no_gradient() -> None:
    x = torch.zeros(4)[:2].requires_grad_()
    y = (x * x + x).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


@pytest.mark.parametrize("freeze", FREEZE.values(), ids=FREEZE)
def test_a_leaf_that_requires_gradients_again_is_the_same_end_of_its_graphs(freeze: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    y = (x * x).sum()
    freeze(x)
    x.requires_grad_(True)
    assert torch.autograd.grad(y, x, retain_graph=True)[0].tolist() == [2.0, 4.0]
    (y + (x * 3).sum()).backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert seen == [[2.0, 4.0], [5.0, 7.0]]


def test_a_frozen_leaf_goes_with_its_last_reference() -> None:
    x = torch.zeros(3, requires_grad=True)
    x.register_hook(lambda grad: None)
    gone = weakref.ref(x._grad_edge), weakref.ref(x)
    x.requires_grad_(False)
    del x
    assert [each() for each in gone] == [None, None]


def test_a_leaf_that_an_operation_in_place_has_made_a_result_accumulates_nothing() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    x.add_(y)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.sum().backward()


def test_a_frozen_leaf_is_freed_with_its_hooks() -> None:
    layer = torch.nn.Linear(3, 3)
    layer.weight.register_hook(lambda grad, layer=layer: grad)
    layer.requires_grad_(False)
    layer_ref = weakref.ref(layer)
    del layer
    gc.collect()
    assert layer_ref() is None


def test_a_leaf_that_was_computed_in_between_has_lost_its_hooks() -> None:
    x, factor = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    x.requires_grad_(False)
    x.mul_(factor)
    x.detach_()
    x.requires_grad_()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


# -- The same at every size and for every kind of gradient


@pytest.mark.parametrize("size", [2, 40_000])
def test_gradients_are_summed_and_copied_at_every_size(size: int) -> None:
    x = torch.ones(size, requires_grad=True)
    y = x * 1
    (y * 2 + y * 3).sum().backward()
    assert x.grad is not None and x.grad.eq(5).all()
    x.grad = None
    for expected in (7, 14):  # the gradient of a sum is expanded: it must be copied
        (x.sum() * 7).backward()
        assert x.grad is not None and x.grad.eq(expected).all()
    turned, factor = torch.ones(2, size // 2, requires_grad=True), torch.arange(float(size)).view(size // 2, 2)
    (turned.t() * factor).sum().backward()
    assert turned.grad is not None and torch.equal(turned.grad, factor.t())
    w = torch.ones(size, requires_grad=True)
    kept = torch.ones(size)
    for expected in (2, 4):
        (w + w).backward(kept)
        assert w.grad is not None and w.grad.eq(expected).all() and kept.eq(1).all()


def test_gradients_of_one_element_accumulate() -> None:
    for function in (lambda x: x * x, lambda x: x.exp().log() * 4, lambda x: (x * 3).sin().asin() + x):
        x = torch.tensor(0.25, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(function(x), x)
        for count in (1, 2, 3):
            function(x).backward()
            assert isinstance(x.grad, torch.Tensor)
            assert x.grad.shape == () and x.grad.item() == pytest.approx(count * slope.item())


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 2)])
def test_a_gradient_of_another_shape_raises_or_is_summed(shape: tuple[int, ...]) -> None:
    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.ones(4, *shape)

    x = torch.ones(shape, requires_grad=True)
    y = x * 1
    Wide.apply(y).sum().backward()
    assert x.grad is not None and x.grad.shape == shape and x.grad.eq(4).all()


def test_the_gradient_of_a_caller_is_not_modified() -> None:
    """A gradient may arrive as it is, as a view, or at a node that is called."""
    given = torch.ones(2, 2)
    x = torch.zeros(4, requires_grad=True)
    x.view(2, 2).backward(given)
    assert x.grad is not None
    x.grad.add_(1)
    y = torch.zeros(2, 2, requires_grad=True)
    z = y * 1
    for mode in (torch.enable_grad, torch.no_grad):
        y.grad = None
        with mode():
            z.grad_fn.next_functions[0][0](given)
        assert y.grad is not None
        with torch.no_grad():
            y.grad.add_(1)
    w = torch.zeros(2, requires_grad=True)
    torch.stack([w, w * 2]).backward(given)
    assert given.eq(1).all() and w.grad is not None and w.grad.eq(3).all()


def test_a_gradient_that_a_function_keeps_is_copied() -> None:
    kept: list[Any] = []

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            kept.append(torch.ones(6))
            return kept[-1].view(2, 3)[:, :2].contiguous() if len(kept) == 2 else kept[-1][2:].view(2, 2)

    x = torch.zeros(2, 2, requires_grad=True)
    Keeps.apply(x).sum().backward()
    assert x.grad is not None
    x.grad.zero_()
    assert kept[0].eq(1).all()
    Keeps.apply(x).sum().backward()
    assert kept[1].eq(1).all() and x.grad.eq(1).all()


def test_a_gradient_of_none_and_one_of_another_path_meet() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None, grad

    for swap in (False, True):
        x, w = leaf(2), leaf(5)
        a = x * 3
        b, c = w * 1, a * 7
        first = Nothing.apply(a, b)
        total = c + first if swap else first + c
        total.backward()
        assert x.grad.tolist() == [21.0] and w.grad.tolist() == [1.0]


def test_accumulation_counts_as_a_modification() -> None:
    x = leaf(1)
    (x * 2).backward()
    held = x.grad
    for version in (1, 2):
        (x * 2).backward()
        assert x.grad is held and held._version == version


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_same_root_twice(create_graph: bool) -> None:
    x = leaf(1, 2)
    y = x * 3
    one = torch.ones(2)
    torch.autograd.backward([y, y], [one, 2 * one], True, create_graph, inputs=[x])
    assert x.grad.tolist() == [9.0, 9.0]
    x.grad = None
    torch.autograd.backward([y, y], [one, 2 * one], retain_graph=True)
    assert x.grad.tolist() == [9.0, 9.0]
    assert torch.autograd.grad([y, x, x], x, [one, one, one])[0].tolist() == [5.0, 5.0]


def test_a_root_that_reaches_no_input_does_not_run() -> None:
    x, w = leaf(1), leaf(3)
    y = w * w
    ran: list[Any] = []
    y.register_hook(ran.append)
    assert torch.autograd.grad([x * 2, y], x)[0].tolist() == [2.0]
    assert ran == []


def test_numpys_warnings_are_off_in_a_backward_pass_only() -> None:
    x = leaf(0, 1)
    y, z = x.sqrt(), x.sqrt()
    with numpy.errstate(all="raise"):
        y.sum().backward()
        z.grad_fn(torch.ones(2))
        with pytest.raises(FloatingPointError):
            numpy.ones(1) / numpy.zeros(1)
        with pytest.raises(RuntimeError, match="second time"):
            y.sum().backward()
        with pytest.raises(FloatingPointError):
            numpy.ones(1) / numpy.zeros(1)
    assert x.grad.tolist() == [float("inf"), 0.5]


def test_a_prehook_of_a_leaf_runs_only_if_grad_is_written() -> None:
    x = leaf(1, 2)
    seen: list[Any] = []
    accumulate = (x * 1).grad_fn.next_functions[0][0]
    handle = accumulate.register_prehook(lambda grads: seen.append(grads[0]))
    torch.autograd.grad((x * 2).sum(), x)
    assert seen == []
    for _ in range(2):
        (x + x).backward(torch.ones(2))
    assert [each.tolist() for each in seen] == [[2.0, 2.0], [2.0, 2.0]]
    assert x.grad.tolist() == [4.0, 4.0]
    handle.remove()


def test_a_tensor_hook_of_a_leaf_runs_in_both() -> None:
    x = leaf(1)
    x.register_hook(lambda grad: grad * 10)
    assert torch.autograd.grad(x * 2, x)[0].tolist() == [20.0]
    (x * 2).backward()
    assert x.grad.tolist() == [20.0]


def test_only_leaves_with_hooks_need_a_plan() -> None:
    gc.collect()
    before = AccumulateGrad.hooked, len(core_graph._planned)
    x = leaf(1)
    handle = x.register_hook(lambda grad: None)
    assert AccumulateGrad.hooked and len(core_graph._planned) == before[1] + 1
    del x, handle
    gc.collect()
    assert (AccumulateGrad.hooked, len(core_graph._planned)) == before
    if not before[1]:
        assert not AccumulateGrad.hooked


def test_the_state_of_a_handle_holds_its_dictionaries() -> None:
    layer = torch.nn.Linear(1, 1)
    handle = layer.register_forward_hook(lambda *args, **kwargs: None, with_kwargs=True)
    for parts in (2, 3):
        again = object.__new__(type(handle))
        again.__setstate__(handle.__getstate__()[:parts])
        assert again.id == handle.id
        again.remove()
        assert not layer._forward_hooks and len(layer._forward_hooks_with_kwargs) == 3 - parts
    lost = object.__new__(type(handle))
    lost.__setstate__((None, handle.id + 10))
    lost.remove()
    assert layer.register_forward_hook(lambda *args: None).id > lost.id


def test_a_backward_pass_leaves_no_plan_behind() -> None:
    x = leaf(1)
    handle = x.register_hook(lambda grad: None)  # makes a plan necessary
    running: list[Any] = []
    y = x * 2
    y.register_hook(lambda grad: running.append(engine._running.get()))
    y.backward()
    handle.remove()
    assert isinstance(running[0], engine.Plan) and engine._running.get() is None


@pytest.mark.parametrize("hooks", [(1, print), (print, 1)])
def test_saved_tensor_hooks_must_be_callable(hooks: Any) -> None:
    with pytest.raises(TypeError, match="must be callable"), graph.saved_tensors_hooks(*hooks):
        pass


def test_a_node_without_a_derivative() -> None:
    with pytest.raises(RuntimeError, match="has no derivative"):
        core_graph.Node().vjp(None, (), False)


@pytest.mark.parametrize("inner", [(), (1,), (3,)])
def test_gradients_of_0d_tensors_are_0d(inner: tuple[int, ...]) -> None:
    """A gradient of another shape is summed also where a node's shape is that of its edge."""

    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.ones(inner)

    x = torch.tensor(2.0, requires_grad=True)
    y = x.sin()
    shapes: list[Any] = []
    y.register_hook(lambda grad: shapes.append(grad.shape))
    Wide.apply(y).backward()
    assert shapes == [()] and x.grad is not None and x.grad.shape == ()
    z = torch.tensor(2.0, requires_grad=True)
    Wide.apply(z.sin()).backward()
    assert z.grad is not None and z.grad.shape == ()


def test_saved_tensor_hooks_end_with_their_block() -> None:
    before = recording()
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            assert recording() is not before
        assert recording() is not before
    assert recording() is before is True


def test_a_grad_of_a_subclass_is_accumulated_into() -> None:
    class Marked(torch.Tensor):
        pass

    x = leaf(1, 2)
    x.grad = torch.ones(2).as_subclass(Marked)
    (x * 3).sum().backward()
    assert type(x.grad) is Marked and x.grad.tolist() == [4.0, 4.0] and x.grad._version == 1


def test_gradient_of_a_leaf_that_no_longer_exists() -> None:
    def result() -> Any:
        x = torch.ones(2, requires_grad=True)
        return (x * 2).sum()

    y = result()
    accumulate = y.grad_fn.next_functions[0][0].next_functions[0][0]
    y.backward(retain_graph=True)
    assert accumulate.variable.grad.tolist() == [2, 2]
    y.backward()
    assert accumulate.variable.grad.tolist() == [4, 4]
    leaf = accumulate.variable
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [7, 7] and accumulate.variable is leaf


def _nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, requires_grad=True)


def _sparse() -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2), (2,), requires_grad=True)


@pytest.mark.parametrize("make", [_nested, _sparse])
def test_grad_accepts_stored_tensors_in_a_dictionary(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    dense = x.to_padded_tensor(0.0) if x.is_nested else x.to_dense()
    loss = (dense * 2).sum()
    (expected,) = torch.autograd.grad(loss, [x], retain_graph=True)
    found = torch.autograd.grad(loss, {"x": x}, retain_graph=True)
    assert list(found) == ["x"]
    assert type(found["x"]) is type(x)
    assert repr(found["x"]) == repr(expected)
    loss.backward(inputs={"x": x})
    assert type(x.grad) is type(x)


def test_overridden_grad_gets_a_tuple_of_inputs() -> None:
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.autograd.grad:
                calls.append(args[1])
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, requires_grad=True)
    logged = x.as_subclass(Logged)
    found = torch.autograd.grad((logged * 3).sum(), {"logged": logged})
    assert [type(each) for each in calls] == [tuple]
    assert found["logged"].tolist() == [3.0, 3.0]
