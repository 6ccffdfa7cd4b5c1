"""``graph.page`` and ``graph.recording``: gradients, their order, and the unchanged state of the program."""

from __future__ import annotations

import gc
import json
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.core import engine
from retrograd.core.graph import AccumulateGrad
from retrograd.dispatch.intercept import HANDLERS
from retrograd.inspection.page import recorder as page_recorder

page, recording = torch.autograd.graph.page, torch.autograd.graph.recording
Document = dict[str, Any]

W = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
V = torch.tensor([[1.0], [2.0]], requires_grad=True)


@pytest.fixture(autouse=True)
def _without_gradients() -> Any:
    yield
    W.grad = V.grad = None


def recorded(compute: Callable[[], torch.Tensor]) -> Document:
    """Return the document of a recording of ``compute`` and of a backward pass from its result."""
    with recording() as r:
        y = compute()
        y.backward(torch.ones_like(y))
    assert not r.failure and r.passes == 1
    return dict(r.page().document)


def replayed(compute: Callable[[], torch.Tensor]) -> Document:
    return dict(page(compute()).document)


both = pytest.mark.parametrize("made", [recorded, replayed])


def index_of(document: Document, name: str) -> int:
    (found,) = [index for index, each in enumerate(document["nodes"]) if each["name"] == name]
    return found


def node_of(document: Document, name: str) -> Document:
    return dict(document["nodes"][index_of(document, name)])


def value_of(document: Document, index: int) -> Document:
    return dict(document["values"][index])


def kinds(document: Document) -> list[tuple[str, str]]:
    return [(each["kind"], document["nodes"][each["node"]]["name"]) for each in document["events"]]


def assert_summary(summary: Document, tensor: torch.Tensor) -> None:
    """Assert that ``summary`` is that of the elements of ``tensor``, which is real."""
    assert summary["shape"] == list(tensor.shape)
    assert math.isclose(summary["min"], tensor.min().item(), rel_tol=1e-5, abs_tol=1e-6)
    assert math.isclose(summary["max"], tensor.max().item(), rel_tol=1e-5, abs_tol=1e-6)
    assert math.isclose(summary["mean"], tensor.double().mean().item(), rel_tol=1e-5, abs_tol=1e-6)


# --- The gradients ---------------------------------------------------------------------------------------------------


def product() -> torch.Tensor:
    return (W * V).tanh().sum()


def shared_operand() -> torch.Tensor:
    h = W.exp()
    return (h * h + h.sin()).sum() + V.sum()


def in_place() -> torch.Tensor:
    h = W * 2
    h[0] = 5.0
    h[1:].mul_(V[0])
    return h.pow(2).sum()


def several_results() -> torch.Tensor:
    first, second, _ = (W * 3).unbind()
    return first * second + V.sort(0).values.sum()


def not_scalar() -> torch.Tensor:
    return W * W + V.mean()


def a_module() -> torch.Tensor:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    return net(W.reshape(1, 3) * V).mean()


@both
@pytest.mark.parametrize("compute", [product, shared_operand, in_place, several_results, not_scalar, a_module])
def test_gradients_are_those_of_autograd_grad(
    made: Callable[[Callable[[], torch.Tensor]], Document], compute: Callable[[], torch.Tensor]
) -> None:
    y = compute()
    expected = torch.autograd.grad(y, (W, V), torch.ones_like(y))
    document = made(compute)
    for name, grad in zip("WV", expected, strict=True):
        assert_summary(value_of(document, node_of(document, name)["grad"]), grad)
        assert not torch.equal(grad, torch.zeros_like(grad))


@pytest.mark.parametrize("compute", [product, shared_operand, in_place, several_results, not_scalar, a_module])
def test_values_of_results_are_recorded(compute: Callable[[], torch.Tensor]) -> None:
    y = compute()
    document = recorded(compute)
    assert_summary(value_of(document, document["nodes"][-1]["value"]), y)
    assert not [each for each in document["nodes"] if "missing" in each]
    if compute is shared_operand:
        assert_summary(value_of(document, node_of(document, "exp")["value"]), W.exp())
        assert_summary(value_of(document, node_of(document, "sin")["value"]), W.exp().sin())


@pytest.mark.parametrize("compute", [product, shared_operand, in_place, several_results, a_module])
def test_the_order_is_that_of_the_engine(compute: Callable[[], torch.Tensor]) -> None:
    y = compute()
    order: list[str] = []
    handles: list[Any] = []
    stack, seen = [y.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = "leaf" if isinstance(node, AccumulateGrad) else node.name()
        handles.append(node.register_hook(lambda inputs, outputs, name=name: order.append(name)))
        stack += [each for each, _ in node.next_functions]
    y.backward()
    for each in handles:
        each.remove()
    for made in (recorded, replayed):
        document = made(compute)
        nodes = document["nodes"]
        found = [nodes[each["node"]]["node"] for each in document["events"] if each["kind"] == "node"]
        assert found == [name for name in order if name != "leaf"]
        assert sum(each["kind"] == "leaf" for each in document["events"]) == order.count("leaf")


def test_sums_have_their_parts() -> None:
    for made in (recorded, replayed):
        document = made(shared_operand)
        (event,) = [each for each in document["events"] if each["kind"] == "sum"]
        exp = index_of(document, "exp")
        assert event["node"] == exp and len(event["parts"]) == 3
        names = [document["nodes"][each["from"]]["name"] for each in event["parts"]]
        assert sorted(names) == ["mul", "mul", "sin"]
        assert_summary(value_of(document, event["incoming"]), 2 * W.exp() + W.exp().cos())
        after = document["events"][document["events"].index(event) + 1]
        assert (after["kind"], after["node"], after["incoming"]) == ("node", exp, event["incoming"])


def test_outgoing_gradients_lead_to_operands_and_are_summed_over_broadcast_dimensions() -> None:
    document = recorded(product)
    (event,) = [each for each in document["events"] if each["node"] == index_of(document, "mul")]
    assert [(document["nodes"][each["to"]]["name"], each["name"]) for each in event["outgoing"]] == [
        ("W", "input"), ("V", "other"),
    ]  # fmt: skip
    assert event["outgoing"][0]["note"] == "summed over the broadcast dimensions: [2, 3] → [3]"
    assert event["outgoing"][1]["formula"] == "grad * input"


# --- The program is unchanged ----------------------------------------------------------------------------------------


def test_a_page_leaves_the_program_as_it_was() -> None:
    calls: list[str] = []
    h = W * 2
    h.retain_grad()
    h.register_hook(lambda grad: calls.append("tensor"))
    handle = W.register_hook(lambda grad: calls.append("leaf"))
    y = nn.functional.dropout(h.exp(), 0.5).sum()
    y.grad_fn.register_hook(lambda inputs, outputs: calls.append("node"))
    before = torch.get_rng_state(), W._version, h._version, torch.is_grad_enabled(), AccumulateGrad.hooked
    document = page(y).document
    assert [each for each in kinds(document) if each[0] == "leaf"]
    after = torch.get_rng_state(), W._version, h._version, torch.is_grad_enabled(), AccumulateGrad.hooked
    assert torch.equal(before[0], after[0]) and before[1:] == after[1:]
    assert W.grad is None and h.grad is None and not calls
    assert not HANDLERS and not engine.observers
    y.backward()
    assert W.grad is not None and h.grad is not None and sorted(calls) == ["leaf", "node", "tensor"]
    handle.remove()


def test_a_page_under_no_grad_restores_the_mode() -> None:
    y = product()
    with torch.no_grad():
        page(y)
        assert not torch.is_grad_enabled()
    assert W.grad is None


def test_a_recorded_program_computes_the_same() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 2))
    x, state = torch.randn(5, 3), torch.get_rng_state()
    losses, grads = [], []
    for recorder in (recording, None):
        torch.set_rng_state(state)
        model.zero_grad()
        if recorder is not None:
            with recorder():
                loss = model(x).square().mean()
                loss.backward()
        else:
            loss = model(x).square().mean()
            loss.backward()
        losses.append(loss.item())
        grads.append([each.grad.clone() for each in model.parameters()])
    assert losses[0] == losses[1]
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))


def test_the_search_for_names_looks_up_no_attributes_of_variables() -> None:
    class Answering:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was looked up")

    answering, model = Answering(), nn.Linear(3, 1)
    document = recorded(lambda: model(W).sum())
    assert answering is not None and node_of(document, "model.weight")["kind"] == "leaf"


def test_a_recording_keeps_no_tensor_alive() -> None:
    with recording() as r:
        h = W.exp()
        kept = weakref.ref(h._array)
        (h * h).sum().backward()
        del h
        gc.collect()
        assert kept() is None
        assert not r.forward.results
    assert "exp" in [each["name"] for each in r.page().document["nodes"]]


def test_nothing_stays_active_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), recording() as r:
        product().backward()
        raise ZeroDivisionError
    assert not HANDLERS and not engine.observers
    assert r.page().document["events"]


# --- Which pass is shown ---------------------------------------------------------------------------------------------


def test_the_last_backward_pass_is_shown() -> None:
    with recording() as r:
        product().backward()
        torch.autograd.grad(W.exp().sum(), W)
    assert r.passes == 2
    document = r.page().document
    assert kinds(document) == [("start", "result"), ("node", "sum"), ("node", "exp"), ("leaf", "W")]
    assert document["events"][-1]["text"] == "The gradient is returned; .grad is unchanged."
    source, number = document["line"]
    lines = {
        part["first"] + index: line
        for part in document["sources"][source]["parts"] for index, line in enumerate(part["lines"])
    }  # fmt: skip
    assert "torch.autograd.grad(W.exp()" in lines[number] and 30 < len(lines) < 400


def test_without_a_backward_pass_there_is_no_page() -> None:
    with recording() as r:
        product()
    with pytest.raises(RuntimeError, match="No backward pass was recorded"):
        r.page()


def test_passes_of_other_threads_are_not_recorded() -> None:
    with recording() as r:
        thread = threading.Thread(target=lambda: product().backward())
        thread.start()
        thread.join()
    assert r.passes == 0


def test_a_pass_inside_a_pass_is_part_of_it() -> None:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                return torch.autograd.grad((y * 2).sum(), y)[0] * grad

    document = recorded(lambda: Inner.apply(W).sum())
    assert kinds(document) == [("start", "y"), ("node", "sum"), ("node", "Inner"), ("leaf", "W")]
    assert_summary(value_of(document, node_of(document, "W")["grad"]), torch.tensor([2.0, 2.0, 2.0]))


def test_a_page_does_not_take_part_in_passes_of_other_threads() -> None:
    other = torch.tensor([5.0], requires_grad=True)

    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            thread = threading.Thread(target=lambda: (other * other).sum().backward())
            thread.start()
            thread.join()
            return grad * 2

    document = replayed(lambda: Elsewhere.apply(W).sum())
    assert other.grad is not None and other.grad.tolist() == [10.0]
    assert [each for each, _ in kinds(document)] == ["start", "node", "node", "leaf"]
    assert not any("could not" in each or "stopped" in each for each in document["notes"])


def test_passes_inside_that_of_a_page_compute_their_gradients_and_restore_grad() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.grad = torch.ones(2, 3)
    before = layer.weight.grad
    calls: list[int] = []

    def compute(x: torch.Tensor) -> torch.Tensor:
        y = layer(x).sin()
        if y.requires_grad:
            y.register_hook(lambda grad: calls.append(1))
        return y

    y = torch.utils.checkpoint.checkpoint(compute, W * 2, use_reentrant=True).sum()
    document = dict(page(y).document)
    assert not any("could not" in each or "stopped" in each for each in document["notes"])
    assert calls == [1] and W.grad is None and layer.bias.grad is None
    assert layer.weight.grad is before and before.tolist() == torch.ones(2, 3).tolist() and before._version == 0
    y.backward()
    assert W.grad is not None
    assert_summary(value_of(document, node_of(document, "W")["grad"]), W.grad)


def test_a_profiler_in_another_thread_does_not_end_a_recording() -> None:
    begun, done = threading.Event(), threading.Event()

    def profile() -> None:
        with torch.profiler.profile():
            begun.set()
            done.wait(30)

    thread = threading.Thread(target=profile)
    with recording() as r:
        thread.start()
        begun.wait(30)
        product().backward()
        done.set()
        thread.join()
    assert r.passes == 1


def test_sparse_tensors_among_the_variables() -> None:
    matrix = torch.eye(3).to_sparse()
    document = recorded(lambda: torch.sparse.mm(matrix, W[:, None]).sum())
    assert_summary(value_of(document, node_of(document, "W")["grad"]), torch.ones(3))
    assert "W" in str(torch.autograd.explain(torch.sparse.mm(matrix, W[:, None]).sum()))


def test_an_error_of_the_recording_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> Any:
        raise ValueError("a defect")

    monkeypatch.setattr(page_recorder, "read_edges", fails)
    with recording() as r:
        product().backward()
    with pytest.raises(RuntimeError, match="could not be recorded: ValueError: a defect"):
        r.page()


def test_an_interrupt_at_the_beginning_of_a_pass_does_not_end_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(*args: Any) -> Any:
        raise KeyboardInterrupt

    with recording() as r:
        with monkeypatch.context() as patched:
            patched.setattr(page_recorder, "read_edges", interrupts)
            with pytest.raises(KeyboardInterrupt):
                product().backward()
        product().backward()
    assert r.trace is not None


def test_only_requested_gradients() -> None:
    with recording() as r:
        h = W.exp()
        torch.autograd.grad((h * V).sum(), h)
    document = r.page().document
    assert kinds(document)[-1] == ("node", "exp")
    assert "requested" in document["events"][-1]["text"]
    assert "grad" not in node_of(document, "W")
    assert "computes the requested gradients only" in node_of(document, "W")["explain"][0]


def test_a_graph_that_is_freed_is_shown_without_a_backward_pass() -> None:
    y = (W.exp() * 2).sum()
    y.backward()
    document = page(y).document
    assert not document["events"] and "freed the saved values" in document["notes"][0]
    assert [each["name"] for each in document["nodes"] if each["kind"] == "operation"] == ["exp", "mul", "sum"]
    assert node_of(document, "exp")["saved"][0]["state"].startswith("freed")


def test_freed_memory_is_part_of_a_recorded_pass() -> None:
    document = recorded(lambda: W.exp().sum())
    (event,) = [each for each in document["events"] if each["node"] == index_of(document, "exp")]
    assert event["freed"] == 12
    with recording() as r:
        W.exp().sum().backward(retain_graph=True)
    assert not any("freed" in each for each in r.page().document["events"])
    assert not any("freed" in each for each in replayed(lambda: W.exp().sum())["events"])


def test_memory_is_freed_once_and_by_the_last_operation_that_keeps_it() -> None:
    def shared() -> torch.Tensor:
        h = (W * V).exp()  # kept by exp, by the product and by sin
        return (h * h.sin()).sum()

    document = recorded(shared)
    freed = [(document["nodes"][each["node"]]["name"], each["freed"]) for each in document["events"] if "freed" in each]
    assert freed == [("mul", 24), ("exp", 24)]
    assert sum(each.get("bytes", 0) for each in document["nodes"]) == 48


@pytest.mark.parametrize("compute", [product, shared_operand, in_place, several_results, a_module])
def test_all_memory_that_is_kept_is_freed(compute: Callable[[], torch.Tensor]) -> None:
    document = recorded(compute)
    freed = sum(each.get("freed", 0) for each in document["events"])
    assert freed == sum(each.get("bytes", 0) for each in document["nodes"]) > 0


def test_a_pass_that_fails_is_shown_up_to_the_error() -> None:
    def changed() -> torch.Tensor:
        h = W.exp()
        y = h.sum()
        h.mul_(2)
        return y

    document = page(changed()).document
    assert kinds(document) == [("start", "result"), ("node", "sum"), ("node", "exp")]
    assert document["notes"][0].startswith("The backward pass stopped with RuntimeError: one of the variables")
    assert node_of(document, "exp")["saved"][0]["state"].startswith("changed in place at")
    with recording() as r, pytest.raises(RuntimeError):
        changed().backward()
    assert any("stopped with RuntimeError" in each for each in r.page().document["notes"])


def test_a_second_order_pass() -> None:
    with recording() as r:
        (grad,) = torch.autograd.grad(W.pow(3).sum(), W, create_graph=True)
        grad.sum().backward()
    document = r.page().document
    assert_summary(value_of(document, node_of(document, "W")["grad"]), 6 * W)
    with recording() as r:
        torch.autograd.grad(W.pow(3).sum(), W, create_graph=True)
    assert any("create_graph=True" in each for each in r.page().document["notes"])


# --- Kinds of nodes and values ---------------------------------------------------------------------------------------


def test_hooks_are_events_with_the_gradient_before_and_after() -> None:
    def hooked() -> torch.Tensor:
        h = W * 2
        h.register_hook(lambda grad: grad * 10)
        return h.sum()

    document = recorded(hooked)
    assert kinds(document)[2:4] == [("hook", "mul"), ("node", "mul")]
    event = document["events"][2]
    assert "<lambda>" in event["text"]
    assert [value_of(document, event[each])["mean"] for each in ("before", "after")] == [1, 10]
    assert value_of(document, node_of(document, "mul")["grad"])["mean"] == 10
    assert value_of(document, node_of(document, "W")["grad"])["mean"] == 20
    document = replayed(hooked)
    assert "not called" in document["events"][2]["text"]
    assert value_of(document, node_of(document, "W")["grad"])["mean"] == 2
    assert any("Hooks were not called" in each for each in document["notes"])


def test_hooks_after_a_node_are_events_and_its_formulas_show_what_the_rule_gave() -> None:
    def hooked() -> torch.Tensor:
        h = W.exp()
        y = h.sin()
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0,))
        return y.sum()

    document = recorded(hooked)
    assert kinds(document)[2:5] == [("node", "sin"), ("hook", "sin"), ("node", "exp")]
    node, hook = document["events"][2:4]
    (outgoing,) = node["outgoing"]
    assert_summary(value_of(document, outgoing["value"]), W.exp().cos())
    assert outgoing["value"] == hook["before"] and "a hook after the step <lambda>" in hook["text"]
    assert (
        value_of(document, hook["after"])["zeros"] == value_of(document, node_of(document, "exp")["grad"])["zeros"] == 3
    )
    assert "the gradient becomes 0 in sin" in " ".join(node_of(document, "W")["explain"])
    assert document["nodes"][node_of(document, "W")["cause"]]["name"] == "sin"


def test_hooks_of_leaves_are_events() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda grad: -grad)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    document = recorded(lambda: (x * 3).sum())
    assert kinds(document)[-2:] == [("hook", "x"), ("leaf", "x")]
    hook, leaf = document["events"][-2:]
    assert [value_of(document, hook[each])["mean"] for each in ("before", "after")] == [3, -3]
    assert "after accumulating" not in hook["text"] and "a hook after accumulating" in leaf["text"]
    assert leaf["incoming"] == leaf["after"] == hook["after"]
    assert x.grad is not None and x.grad.tolist() == [-3, -3]


def test_hooks_of_an_operation_with_several_results() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def hooked() -> torch.Tensor:
        first, second = (x * 1).unbind()
        second.register_hook(lambda grad: grad * 10)
        assert first.grad_fn is not None
        first.grad_fn.register_prehook(lambda grads: (grads[0] * 2, grads[1]))
        return first + second

    document = recorded(hooked)
    events = [each for each in document["events"] if document["nodes"][each["node"]]["name"] == "unbind"]
    assert [each["kind"] for each in events] == ["hook", "hook", "node"]
    changes = [[value_of(document, each[key])["mean"] for key in ("before", "after")] for each in events[:2]]
    assert changes == [[1, 2], [1, 10]] and "result 1" in events[1]["text"]
    assert [value_of(document, each)["mean"] for each in events[2]["incoming"]] == [2, 10]


def test_hooks_make_gradients_zero_or_nan() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda grad: grad * 0)
    assert "Its gradient is 0 because of a hook" in node_of(recorded(lambda: (x * 3).sum()), "x")["explain"][0]
    assert "Its gradient is 0 because of a hook" in node_of(recorded(lambda: (x * x).sum()), "x")["explain"][0]
    z = torch.tensor([1.0, 2.0], requires_grad=True)
    z.register_hook(lambda grad: grad * torch.nan)
    assert "Its gradient is not finite because of a hook" in node_of(recorded(lambda: (z * 3).sum()), "z")["explain"][0]


def test_accumulation_shows_grad_before_and_after() -> None:
    W.grad = torch.tensor([1.0, 1.0, 1.0])
    document = recorded(lambda: (W * 2).sum())
    event = document["events"][-1]
    assert [value_of(document, event[each])["mean"] for each in ("incoming", "before", "after")] == [2, 1, 3]
    assert any(".grad existed before" in each for each in node_of(document, "W")["explain"])


def test_custom_functions_show_their_backward_and_missing_gradients() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x + y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad, None

    def compute() -> torch.Tensor:
        return Square.apply(W, V.exp().sum()).sum()

    for made in (recorded, replayed):
        document = made(compute)
        node = node_of(document, "Square")
        assert "return 2 * x * grad, None" in document["rules"][node["rule"]]["source"]
        assert "No gradient is passed on to `argument 1`: its backward returned None." in node["explain"]
        exp = node_of(document, "exp")
        assert exp["cause"] == index_of(document, "Square") or "sum" in exp["explain"][0]
        assert "grad" not in exp


def test_results_of_an_operation_with_several() -> None:
    def compute() -> torch.Tensor:
        first, _ = (W * 2)[:2].unbind()
        return first * 3

    document = recorded(compute)
    node = node_of(document, "unbind")
    assert [value_of(document, each)["mean"] for each in node["values"]] == [1, -2]
    assert node["grads"][1] is None and value_of(document, node["grads"][0])["mean"] == 3


def test_packed_values_are_named_as_such() -> None:
    def compute() -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.tolist(), torch.tensor):
            return W.exp().sum()

    document = replayed(compute)
    assert node_of(document, "exp")["saved"][0]["state"] == "packed by hooks"
    assert_summary(value_of(document, node_of(document, "W")["grad"]), W.exp())


def test_tensors_without_gradient_have_names_values_and_reasons() -> None:
    x = torch.ones(3)

    def compute() -> torch.Tensor:
        with torch.no_grad():
            scale = W.exp()
        return (W * x.pow(2) + W.detach() + scale + 3).sum()

    nodes = {each["name"]: each for each in recorded(compute)["nodes"] if each["kind"] == "constant"}
    assert set(nodes) == {"pow", "constant", "exp"} and all("value" in each for each in nodes.values())
    assert "from tensors that require no gradient" in nodes["pow"]["explain"][0]
    assert "under no_grad" in nodes["exp"]["explain"][0] and "detached" in nodes["constant"]["explain"][0]
    assert nodes["pow"]["line"][1] == compute.__code__.co_firstlineno + 3
    assert {each["name"] for each in replayed(lambda: (W * x).sum())["nodes"]} == {"W", "x", "mul", "sum", "result"}


@both
def test_numbers_are_parameters_and_not_nodes(made: Callable[[Callable[[], torch.Tensor]], Document]) -> None:
    document = made(lambda: ((W * 2.5) ** 3).sum(0))
    assert [each["kind"] for each in document["nodes"]] == ["leaf", "operation", "operation", "operation", "result"]
    assert node_of(document, "mul")["parameters"]["other"] == "2.5"
    assert node_of(document, "pow")["parameters"]["exponent"] == "3"


def complex_numbers() -> torch.Tensor:
    z = torch.tensor([1 + 1j, 2], requires_grad=True)
    return (z * z.conj()).real.sum()


def short_floats() -> torch.Tensor:
    z = torch.tensor([1.0, 2.0], dtype=torch.bfloat16, requires_grad=True)
    return (z * z).sum()


def sparse_gradients() -> torch.Tensor:
    return nn.Embedding(5, 2, sparse=True)(torch.tensor([1, 2])).sum()


def no_elements() -> torch.Tensor:
    return (torch.ones(0, 3, requires_grad=True) * 2).sum()


def meta_tensors() -> torch.Tensor:
    z = torch.ones(3, device="meta", requires_grad=True)
    return (z * z).sum()


@both
@pytest.mark.parametrize(
    ("compute", "text"),
    [
        (complex_numbers, "tensor([1.+1.j, 2.+0.j], dtype=complex64)"),
        (short_floats, "tensor([2., 4.], dtype=bfloat16)"),
        (sparse_gradients, "a tensor of the layout torch.sparse_coo, whose elements are not shown"),
        (no_elements, "tensor([], size=[0, 3])"),
        (meta_tensors, "a meta tensor, which has no elements"),
    ],
)
def test_every_kind_of_tensor_has_a_statement(
    made: Callable[[Callable[[], torch.Tensor]], Document], compute: Callable[[], torch.Tensor], text: str
) -> None:
    document = made(compute)
    assert text in [each["text"] for each in document["values"]]
    assert kinds(document)[-1][0] == "leaf" and not [each for each in document["notes"] if "could not" in each]
    json.dumps(document, allow_nan=False)


@both
def test_a_leaf_and_a_tensor_without_a_graph(made: Callable[[Callable[[], torch.Tensor]], Document]) -> None:
    document = made(lambda: W)
    assert [each[0] for each in kinds(document)] == ["start", "leaf"]
    document = page(torch.ones(3)).document
    assert "has no graph" in document["notes"][0]
    assert "requires_grad=False" in document["nodes"][0]["explain"][0]


def test_unused_parameters_are_mentioned() -> None:
    model = nn.ModuleDict({"used": nn.Linear(3, 1), "other": nn.Linear(3, 1)})
    notes = page(model["used"](W).sum(), params=dict(model.named_parameters())).document["notes"]
    assert any("other.weight, other.bias" in each and "not in this graph" in each for each in notes)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match=r"page\(\): argument 'tensor' must be a Tensor"):
        page(3)
