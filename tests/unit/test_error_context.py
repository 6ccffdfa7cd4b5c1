"""Context in autograd's errors: the operation, the program's line and a remedy.

A table of programs that fail. ``LINE`` is the text of the line that the error must name (where the tensor was created,
saved or modified, or where the hook or function was defined); it is empty where only the call itself matters, which the
traceback shows. Other tests compare the type and the first line with PyTorch's.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import retrograd as torch
from retrograd.autograd import Function, forward_ad, grad
from retrograd.autograd.function import once_differentiable

graph, checkpoint = torch.autograd.graph, torch.utils.checkpoint.checkpoint


def leaf(*values: float) -> Any:
    return torch.tensor(list(values) or [1.0, 2.0], requires_grad=True)


def custom(forward: Any = None, backward: Any = None, **more: Any) -> Any:
    """Return a custom Function."""
    body = {
        "forward": forward or (lambda ctx, *args: args[0] * 1),
        "backward": backward or (lambda ctx, *grads: grads[0]),
    }
    return type("Mine", (Function,), {key: staticmethod(value) for key, value in {**body, **more}.items()})


class Case(NamedTuple):
    """A program that fails."""

    run: Callable[[], Any]
    operation: str
    line: str


CASES: dict[str, Case] = {}


def case(operation: str = "", line: str = "") -> Any:
    """Register a program with the operation and the line that its error must name."""

    def enter(function: Any) -> Any:
        CASES[function.__name__.replace("_", " ")] = Case(function, operation, line)
        return function

    return enter


def keeps(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x * 1


def keeps_result(ctx: Any, x: Any) -> Any:
    y = x.exp()
    ctx.save_for_backward(y)
    return y


def uses(ctx: Any, g: Any) -> Any:
    return ctx.saved_tensors[0] * g


def in_inference() -> Any:
    with torch.inference_mode():
        return torch.ones(2)


# --- Saved tensors


@case("Exp", "y = leaf().exp()")
def a_saved_result_is_modified() -> None:
    y = leaf().exp()
    y += 1
    y.sum().backward()


@case("Exp", "y += 1  # here")
def the_line_that_modified_it() -> None:
    y = leaf().exp()
    y += 1  # here
    y.sum().backward()


@case("Mine", "y = custom(keeps, uses).apply(z)")
def what_a_custom_function_saved_is_modified() -> None:
    z = leaf() * 1
    y = custom(keeps, uses).apply(z)
    z += 1
    y.sum().backward()


@case("Mine", "y.mul_(2)  # here")
def its_own_result_is_modified() -> None:
    y = custom(keeps_result, uses).apply(leaf())
    y.mul_(2)  # here
    y.sum().backward()


@case("Exp", "y = leaf().exp().sum()")
def a_second_backward_pass() -> None:
    y = leaf().exp().sum()
    y.backward()
    y.backward()


@case("Mine", "y = custom(keeps, uses).apply(leaf())")
def a_second_backward_pass_through_a_custom_function() -> None:
    y = custom(keeps, uses).apply(leaf())
    y.sum().backward()
    y.sum().backward()


@case("Exp", "y = leaf().exp()")
def a_freed_value_is_read() -> None:
    y = leaf().exp()
    y.sum().backward()
    _ = y.grad_fn._saved_result


@case("ExpBackward0", "y = leaf().exp()")
def hooks_for_a_freed_value() -> None:
    y = leaf().exp()
    raw = y.grad_fn._raw_saved_result
    y.sum().backward()
    raw.register_hooks(lambda t: t, lambda t: t)


@case("ExpBackward0", "y = leaf().exp()")
def hooks_for_a_value_that_has_some() -> None:
    y = leaf().exp()
    for _ in range(2):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)


@case("ExpBackward0", "with graph.saved_tensors_hooks(lambda t: 1, lambda p: 1):")
def an_unpack_hook_gives_no_tensor() -> None:
    with graph.saved_tensors_hooks(lambda t: 1, lambda p: 1):
        y = leaf().exp()
    y.sum().backward()


@case("", "with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda p: p):")
def a_pack_hook_modifies() -> None:
    with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda p: p):
        (leaf() * 1).exp() * 1


@case("ExpBackward0", "y = leaf().exp()")
def allowed_mutation_is_over() -> None:
    with graph.allow_mutation_on_saved_tensors():
        y = leaf().exp()
    y.sum().backward()


# --- Arguments of backward and grad


@case("MulBackward0", "y = leaf() * 2")
def more_than_one_number() -> None:
    y = leaf() * 2
    y.backward()


@case("MulBackward0", "y = torch.tensor(1j, requires_grad=True) * 2")
def a_complex_number() -> None:
    y = torch.tensor(1j, requires_grad=True) * 2
    y.backward()


@case("MulBackward0", "y = leaf() * 2")
def a_gradient_of_another_shape() -> None:
    y = leaf() * 2
    y.backward(torch.ones(3))


@case("MulBackward0", "y = leaf() * 2")
def a_complex_gradient() -> None:
    y = leaf() * 2
    y.backward(torch.ones(2, dtype=torch.complex64))


@case("MulBackward0", "y = leaf() * 2")
def gradients_that_are_no_batch() -> None:
    y = leaf() * 2
    grad(y, leaf(), torch.ones(2, 3), is_grads_batched=True)


@case()
def too_few_gradients() -> None:
    torch.autograd.backward([leaf() * 2, leaf() * 3], [torch.ones(2)])


@case("exp under no_grad", "y = leaf().exp()")
def no_graph_and_tracing_knows_why() -> None:
    with torch.autograd.tracing(), torch.no_grad():
        y = leaf().exp()
    y.backward(torch.ones(2))


@case()
def no_graph() -> None:
    torch.ones(1).backward()


@case()
def integers() -> None:
    torch.ones(1, dtype=torch.int64).backward()


@case("MulBackward0", "other = leaf() * 2")
def an_input_that_was_not_used() -> None:
    other = leaf() * 2
    grad(leaf().sum(), other)


@case()
def an_input_that_requires_no_gradient() -> None:
    grad(leaf().sum(), torch.ones(1))


@case()
def an_edge_of_what_requires_no_gradient() -> None:
    graph.get_gradient_edge(torch.ones(1))


# --- In place, and flags


@case("a leaf", "return torch.tensor(list(values)")
def a_leaf_is_modified() -> None:
    leaf().mul_(2)


@case("a leaf", "return torch.tensor(list(values)")
def a_view_of_a_leaf_is_modified() -> None:
    leaf()[0].mul_(2)


@case("MulBackward0", "y = leaf() * 2")
def a_view_made_under_no_grad_is_modified() -> None:
    y = leaf() * 2
    with torch.no_grad():
        view = y[0]
    view.mul_(leaf(3.0)[0])


@case("Unbind", "a, _ = (leaf() * 2).unbind()")
def one_of_several_views_is_modified() -> None:
    a, _ = (leaf() * 2).unbind()
    a.mul_(2)


@case("Unbind", "y.mul_(2)  # here")
def the_base_of_several_views_is_modified() -> None:
    y = leaf() * 2
    a, _ = y.unbind()
    y.mul_(2)  # here
    a + 1


@case("Mine", "y = custom(lambda ctx, x: x.view(-1)).apply(leaf() * 1)")
def a_view_by_a_custom_function_is_modified() -> None:
    y = custom(lambda ctx, x: x.view(-1)).apply(leaf() * 1)
    y.mul_(2)


@case()
def an_inference_tensor_is_modified() -> None:
    in_inference().mul_(2)


@case("MulBackward0")
def an_inference_tensor_is_saved() -> None:
    leaf() * in_inference()


@case()
def an_inference_tensor_is_saved_by_a_custom_function() -> None:
    custom(lambda ctx, x, y: keeps(ctx, y) * x).apply(leaf(), in_inference())


@case()
def an_inference_tensor_shall_require_a_gradient() -> None:
    in_inference().requires_grad_()


@case("torch.int64")
def integers_shall_require_a_gradient() -> None:
    torch.ones(2, dtype=torch.int64).requires_grad_()


@case("MulBackward0", "y = leaf() * 2")
def a_result_shall_require_none() -> None:
    y = leaf() * 2
    y.requires_grad_(False)


@case("MulBackward0", "y = leaf() * 2")
def a_result_shall_require_none_by_assignment() -> None:
    y = leaf() * 2
    y.requires_grad = False


@case("SelectBackward0", "y = (leaf() * 2)[0]")
def a_view_is_detached_in_place() -> None:
    y = (leaf() * 2)[0]
    y.detach_()


@case("a leaf", "x = torch.ones(2, requires_grad=True)")
def a_grad_of_another_shape() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(4)


@case("a leaf", "x = torch.ones(2, requires_grad=True)")
def a_grad_of_another_dtype() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2, dtype=torch.float64)


@case("a leaf", "x = torch.ones(2, requires_grad=True)")
def data_of_integers() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.ones(2, dtype=torch.int64)


@case("MulBackward0", "y = leaf() * 2")
def to_numpy() -> None:
    y = leaf() * 2
    y.numpy()


@case("MulBackward0", "y = leaf() * 2")
def a_deep_copy() -> None:
    y = leaf() * 2
    copy.deepcopy(y)


@case("mul")
def into_a_given_tensor() -> None:
    torch.mul(leaf(), 2, out=torch.ones(2))


# --- Hooks


@case()
def retaining_where_there_is_no_gradient() -> None:
    torch.ones(1).retain_grad()


@case()
def a_hook_where_there_is_no_gradient() -> None:
    torch.ones(1).register_hook(print)


@case("MulBackward0", "y = leaf() * 2")
def a_leafs_hook_on_a_result() -> None:
    y = leaf() * 2
    y.register_post_accumulate_grad_hook(print)


@case("MulBackward0", "y.register_hook(lambda g: 3)")
def a_hook_returns_a_number() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: 3)
    y.sum().backward()


@case("MulBackward0", "y.register_hook(lambda g: g[:1])")
def a_hook_changes_the_shape() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: g[:1])
    y.sum().backward()


@case("MulBackward0", "y.register_hook(lambda g: g.double())")
def a_hook_changes_the_dtype() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: g.double())
    y.sum().backward()


@case("MulBackward0", "y.grad_fn.register_hook(lambda given, arrived: given[0])")
def a_nodes_hook_returns_no_tuple() -> None:
    y = leaf() * 2
    y.grad_fn.register_hook(lambda given, arrived: given[0])
    y.sum().backward()


@case("MulBackward0", "y.grad_fn.register_prehook(lambda arrived: arrived * 2)")
def a_nodes_prehook_returns_too_many() -> None:
    y = leaf() * 2
    y.grad_fn.register_prehook(lambda arrived: arrived * 2)
    y.sum().backward()


@case("leaf", "x.register_post_accumulate_grad_hook(lambda t: t)")
def a_leafs_hook_returns_something() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: t)
    (x * 2).sum().backward()


# --- Custom functions


@case("Mine", "y = custom(None, lambda ctx, g: (g, g)).apply(leaf())")
def too_many_gradients() -> None:
    y = custom(None, lambda ctx, g: (g, g)).apply(leaf())
    y.sum().backward()


@case("Mine", "y = custom(None, lambda ctx, g: (g, g)).apply(leaf(), 3)")
def a_gradient_for_a_number() -> None:
    y = custom(None, lambda ctx, g: (g, g)).apply(leaf(), 3)
    y.sum().backward()


@case("Mine", "y = custom(None, lambda ctx, g: 3).apply(leaf())")
def a_gradient_that_is_a_number() -> None:
    y = custom(None, lambda ctx, g: 3).apply(leaf())
    y.sum().backward()


@case("Mine", "y = custom(None, lambda ctx, g: torch.ones(3, 3)).apply(leaf())")
def a_gradient_that_does_not_fit() -> None:
    y = custom(None, lambda ctx, g: torch.ones(3, 3)).apply(leaf())
    y.sum().backward()


@case("Mine", "y = Mine.apply(leaf())")
def no_backward() -> None:
    Mine = type("Mine", (Function,), {"forward": staticmethod(lambda ctx, x: x * 1)})
    y = Mine.apply(leaf())
    y.sum().backward()


@case()
def no_forward() -> None:
    type("Mine", (Function,), {}).apply(leaf())


@case("Mine", "y = custom(None, None, vjp=lambda ctx, g: g).apply(leaf())")
def two_backwards() -> None:
    y = custom(None, None, vjp=lambda ctx, g: g).apply(leaf())
    y.sum().backward()


@case()
def saving_a_number() -> None:
    custom(lambda ctx, x: (ctx.save_for_backward(3), x * 1)[1]).apply(leaf())


@case()
def a_number_is_dirty() -> None:
    custom(lambda ctx, x: (ctx.mark_dirty(3), x * 1)[1]).apply(leaf())


@case("Mine", "custom(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]).apply(leaf() * 1)")
def what_is_dirty_is_not_returned() -> None:
    custom(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]).apply(leaf() * 1)


@case("a leaf", "return torch.tensor(list(values)")
def a_leaf_is_dirty() -> None:
    custom(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1]).apply(leaf())


@case()
def an_instance_is_called() -> None:
    Function()(leaf())


@case("", "return once_differentiable(lambda ctx, g: g * 2)")
def twice_what_is_differentiable_once() -> None:
    def made() -> Any:
        return once_differentiable(lambda ctx, g: g * 2)

    x = leaf()
    weight = leaf()
    y = (custom(None, made()).apply(x) * weight).sum()
    (first,) = grad(y, x, create_graph=True)
    first.sum().backward()


@case("Mine", "forward_ad.make_dual(leaf(), torch.ones(2))")
def too_many_tangents() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(), torch.ones(2))
        custom(None, None, jvp=lambda ctx, g: (g, g)).apply(x)  # forward_ad.make_dual(leaf(), torch.ones(2))


@case("Mine", "custom(None, None, jvp=lambda ctx, g: 3).apply(x)")
def a_tangent_that_is_a_number() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(), torch.ones(2))
        custom(None, None, jvp=lambda ctx, g: 3).apply(x)


@case("Mine", "custom(None, None, jvp=lambda ctx, g: g[:1]).apply(x)")
def a_tangent_that_does_not_fit() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(), torch.ones(2))
        custom(None, None, jvp=lambda ctx, g: g[:1]).apply(x)


# --- Forward mode, transformations, checkpoints


@case()
def a_dual_without_a_level() -> None:
    forward_ad.make_dual(leaf(), torch.ones(2))


@case("a leaf", "x = torch.ones(2, requires_grad=True)")
def a_tangent_of_another_shape() -> None:
    x = torch.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        forward_ad.make_dual(x, torch.ones(3))


@case("torch.int64")
def a_dual_of_integers() -> None:
    with forward_ad.dual_level():
        forward_ad.make_dual(torch.tensor([1]), torch.ones(1))


@case()
def a_dual_of_a_dual() -> None:
    with forward_ad.dual_level():
        forward_ad.make_dual(forward_ad.make_dual(leaf(), torch.ones(2)), torch.ones(2))


@case()
def a_level_in_a_level() -> None:
    with forward_ad.dual_level(), forward_ad.dual_level():
        pass


@case("mul")
def a_dual_into_a_given_tensor() -> None:
    with forward_ad.dual_level():
        torch.mul(forward_ad.make_dual(torch.ones(2), torch.ones(2)), 2, out=torch.ones(2))


@case("Mine", "legacy = custom(lambda ctx, x: x * 1)")
def a_transformed_function_without_setup_context() -> None:
    legacy = custom(lambda ctx, x: x * 1)
    torch.func.grad(lambda x: legacy.apply(x).sum())(torch.ones(2))


@case("MulBackward0", "torch.func.grad(lambda x: x * 2)(torch.ones(2))")
def the_gradient_of_several_numbers() -> None:
    torch.func.grad(lambda x: x * 2)(torch.ones(2))


@case()
def the_gradient_of_no_tensor() -> None:
    torch.func.grad(lambda x: 3)(torch.ones(2))


@case()
def the_gradient_by_integers() -> None:
    torch.func.grad(lambda x: x.sum())(torch.ones(2, dtype=torch.int64))


@case()
def backward_within_grad() -> None:
    torch.func.grad(lambda x: x.sum().backward())(torch.ones(2))


@case("jvp", "torch.func.jvp(lambda x: torch.ones(2), (torch.ones(2),), (torch.ones(2),), strict=True)")
def a_strict_jvp() -> None:
    torch.func.jvp(lambda x: torch.ones(2), (torch.ones(2),), (torch.ones(2),), strict=True)


@case("item")
def a_number_out_of_vmap() -> None:
    torch.func.vmap(lambda x: x.sum().item())(torch.ones(2, 2))


@case()
def a_choice_in_vmap() -> None:
    torch.func.vmap(lambda x: x if x.sum() > 0 else -x)(torch.ones(2, 2))


@case()
def randomness_in_vmap() -> None:
    torch.func.vmap(lambda x: x + torch.rand(2))(torch.ones(2, 2))


@case()
def writing_to_what_slices_share() -> None:
    y = torch.ones(2)
    torch.func.vmap(y.mul_)(torch.ones(3, 2))


@case("nonzero")
def a_shape_that_the_numbers_decide() -> None:
    torch.func.vmap(lambda x: x.nonzero())(torch.ones(3, 2))


@case()
def slices_of_different_number() -> None:
    torch.func.vmap(torch.add)(torch.ones(3, 2), torch.ones(4, 2))


@case("Mine", "mine = custom(lambda x: x * 1, None, setup_context=lambda ctx, given, out: None)")
def a_function_without_a_rule_of_vmap() -> None:
    mine = custom(lambda x: x * 1, None, setup_context=lambda ctx, given, out: None)
    torch.func.vmap(mine.apply)(torch.ones(3))


@case("hvp", "torch.autograd.functional.hvp(lambda x: x * 2, torch.ones(2), torch.ones(2))")
def a_hessian_of_several_numbers() -> None:
    torch.autograd.functional.hvp(lambda x: x * 2, torch.ones(2), torch.ones(2))


@case("Output 0", "torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2), strict=True)")
def a_strict_jacobian() -> None:
    torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2), strict=True)


@case("", "y = checkpoint(part, leaf(), use_reentrant=False, early_stop=False)")
def a_checkpoint_that_does_something_else() -> None:
    runs: list[int] = []

    def part(x: Any) -> Any:
        runs.append(1)
        return x.exp() if len(runs) == 1 else x.exp().sin()

    y = checkpoint(part, leaf(), use_reentrant=False, early_stop=False)
    y.sum().backward()


@case("Checkpoint", "y = checkpoint(torch.exp, x, use_reentrant=True)")
def grad_of_a_reentrant_checkpoint() -> None:
    x = leaf()
    y = checkpoint(torch.exp, x, use_reentrant=True)
    grad(y.sum(), x)


@case("Checkpoint", "y = checkpoint(lambda x: x.detach(), leaf(), use_reentrant=True)")
def a_checkpoint_without_a_gradient() -> None:
    y = checkpoint(lambda x: x.detach(), leaf(), use_reentrant=True)
    y.sum().backward()


@case("SqrtBackward0", "y = leaf(0.0).sqrt() * 0")
def not_a_number() -> None:
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(0.0).sqrt() * 0
        y.sum().backward()


@pytest.mark.parametrize("name", CASES)
def test_error_names_operation_line_and_remedy(name: str) -> None:
    run, operation, line = CASES[name]
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        run()
    whole = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "Remedy: " in whole, whole
    assert operation in whole, whole
    if line:
        assert any("test_error_context.py:" in each and line in each for each in whole.splitlines()), whole


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.ModuleDict({"linear1": torch.nn.Linear(30, 3)}) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[1]["linear1"](x)


class Program(torch.nn.Module):
    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)


def notes_of(call: Callable[[], object]) -> tuple[str, list[str]]:
    with pytest.raises(Exception) as caught:
        call()
    return str(caught.value), list(getattr(caught.value, "__notes__", ()))


def test_a_shape_error_in_a_module_names_its_path() -> None:
    program = Program(Encoder())
    expected = ["encoder.layers.1.linear1: Linear(in_features=30) got 256 × 352"]
    words = "mat1 and mat2 shapes cannot be multiplied (256x352 and 30x3)"
    assert notes_of(lambda: program(torch.ones(256, 352))) == (words, expected)
    program.encoder.register_forward_hook(lambda *_: None)
    assert notes_of(lambda: program(torch.ones(256, 352))) == (words, expected)
    embedding = torch.nn.Embedding(3, 2)
    for indices, got in (
        (torch.tensor(5), "index 5"),
        (torch.tensor([[0, -1], [2, 3]]), "indices from -1 to 3"),
        (torch.tensor([1.0]), "elements of dtype float32"),
    ):
        assert notes_of(lambda: embedding(indices))[1] == [f"Embedding(num_embeddings=3) got {got}"]  # noqa: B023
    assert notes_of(lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1))(torch.ones(1, 2, 4, 4)))[1] == [
        "0: Conv2d(in_channels=3) got 1 × 2 × 4 × 4"
    ]


def test_errors_of_the_users_code_in_a_module_get_no_note() -> None:
    class Refusing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("no")

    assert notes_of(lambda: Program(Refusing())(torch.ones(2))) == ("no", [])
