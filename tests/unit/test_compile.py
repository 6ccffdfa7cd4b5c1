"""``torch.compile``: deferred operations and their programs give the results of eager mode."""

from __future__ import annotations

import contextvars
import copy
import dis
import importlib
import itertools
import math
import pickle
import signal
import sys
import threading
import time
from functools import partial
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd import nn
from retrograd.compiler import compiled_function, cursor, segments
from retrograd.compiler.cursor import MAX_ENTRIES
from retrograd.compiler.entries import Places, same_constant
from retrograd.compiler.explanation import Explanation
from retrograd.compiler.ir import Step
from retrograd.compiler.scalar_code import element_text, expression_of
from retrograd.core.graph import AccumulateGrad
from retrograd.core.torch_function import HANDLERS
from retrograd.dispatch.op import OPS
from retrograd.kernels import numba_dispatch
from tests.conformance.samples import FAMILIES, samples
from tests.loops import use_loops


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn failures of a program into errors, defer also segments of few steps, and generate comparisons at once."""
    monkeypatch.setattr(segments, "strict", True)
    monkeypatch.setattr(cursor, "MATCHED", 0)
    monkeypatch.setattr(compiled_function, "FEWEST_STEPS", [0, 0, 0])
    monkeypatch.setattr(AccumulateGrad, "hooked", False)  # other tests may have left leaves with hooks


ROW = numpy.array([-1.75, -0.5, -0.1, 0.125, 0.5, 0.75])
#: The functions of the expressions in fused loops, in Python.
SCALARS = {
    "F": numpy.float64, "inf": math.inf, "nan": math.nan, "decay": numpy.exp, "decay_less_one": numpy.expm1,
    "normal_cdf": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), "erf": math.erf,
    **{name: getattr(numpy, name) for name in ("sqrt", "exp", "log", "log1p", "tanh")},
}  # fmt: skip
#: Parameters that have no defaults.
VALUES: dict[str, Any] = {
    "exponent": 3.0, "number": 2.5, "min": -0.5, "max": 0.5, "threshold": 0.25, "approximate": "none", "scale": 2.0,
    "reduction": "mean", "parameter": 0.5, "value": 2.0, "lambd": 0.5, "min_val": -1.0, "max_val": 1.0, "alpha": 1.0,
    "negative_slope": 0.1, "beta": 2.0, "input_scale": 1.0,
}  # fmt: skip


def _name(lines: list[str], text: str) -> str:
    lines.append(text)
    return f"t{len(lines)}"


@numpy.errstate(all="ignore")
def test_expressions_that_follow_from_kernels() -> None:
    """The expression of one element has the value of the kernel, for every operation that has one."""
    seen = set()
    for block in OPS.values():
        if not all(each in block.defaults or each in VALUES for each in block.params):
            continue
        params = tuple(block.defaults.get(each, VALUES.get(each)) for each in block.params)
        for bools in itertools.product([False, True], repeat=len(block.tensors)):
            arrays = [ROW > 0.1 if each else ROW * (i + 1) + i for i, each in enumerate(bools)]
            found = expression_of(Step(block, tuple(arrays), params, (), False), ROW.dtype)
            if found is None or all(bools):
                continue
            lines: list[str] = []
            text = element_text(found, "uvwxyz"[: len(arrays)], partial(_name, lines))
            keywords = dict(zip(block.params[block.positional :], params[block.positional :], strict=True))
            expected = block.kernel(numpy, *arrays, *params[: block.positional], **keywords)
            for i, wanted in enumerate(numpy.broadcast_to(expected, ROW.shape)):
                space = {**SCALARS, **dict(zip("uvwxyz", (each[i] for each in arrays), strict=False))}
                for n, part in enumerate(lines, 1):
                    space[f"t{n}"] = eval(part, space)
                assert eval(text, space) == pytest.approx(wanted.item(), 1e-12, nan_ok=True), (block.name, text)
            seen.add(block.name)
    assert seen > {"add", "relu", "gelu", "elu_backward", "where_block", "mse_loss_backward", "hardswish", "celu"}


def explained(function: Any) -> Any:
    """Return the explanation of a compiled function."""
    held = getattr(function, "_compiled", None) or function._call._compiled
    return Explanation(held)


def agree(function: Any, *tensors: Any, fullgraph: bool = False) -> Any:
    """Compare compiled and eager results and gradients over several calls; return the compiled function."""
    compiled = torch.compile(function, fullgraph=fullgraph)
    for turn in range(3):
        given = [
            each.detach().mul(1 + turn / 8).requires_grad_(each.requires_grad) if each.is_floating_point() else each
            for each in tensors
        ]
        again = [each.detach().clone().requires_grad_(each.requires_grad) for each in given]
        found, expected = compiled(*given), function(*again)
        for one, two in zip(_flat(found), _flat(expected), strict=True):
            close(one, two)
            assert one.requires_grad == two.requires_grad
            assert one.stride() == two.stride()
        if any(each.requires_grad for each in _flat(expected)):
            for outs in (found, expected):
                sum((each * each).sum() for each in _flat(outs) if each.requires_grad).backward()
            for one, two in zip(given, again, strict=True):
                assert (one.grad is None) == (two.grad is None)
                if one.grad is not None:
                    close(one.grad, two.grad)
    return compiled


def close(one: Any, two: Any) -> None:
    """Assert equal structure and values within rounding, relative to the largest element."""
    assert (one.shape, one.dtype) == (two.shape, two.dtype)
    one, two = one.detach().double(), two.detach().double()
    size = two.nan_to_num(0, 0, 0).abs().max().item() if two.numel() else 0
    torch.testing.assert_close(one, two, rtol=1e-5, atol=2e-5 * size, equal_nan=True)


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def x(*shape: int, grad: bool = True) -> Any:
    """Some numbers."""
    numbers = numpy.random.default_rng(len(shape)).standard_normal(shape).astype("float32")
    return torch.tensor(numpy.asarray(numbers)).requires_grad_(grad)


FUNCTIONS: dict[str, Any] = {
    "chain": lambda a: torch.sin(a * 2 + 1).exp() / 3,
    "gelu": lambda a: 0.5 * a * (1 + torch.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    "sum": lambda a: (a * a).sum(),
    "mean of rows": lambda a: (a.exp() - 1).mean(1),
    "softmax": lambda a: torch.softmax(a, -1).log(),
    "own softmax": lambda a: (a - a.amax(-1, keepdim=True)).exp() / (a - a.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True),
    "own layer norm": lambda a: (a - a.mean(-1, keepdim=True)) / (a.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt(),
    "two results": lambda a: (a.tanh(), a.tanh() * 2),
    "used twice": lambda a: a.relu() * a.relu() + a,
    "where": lambda a: torch.where(a > 0, a * 2, a.exp()),
    "clamp": lambda a: a.clamp(-0.5, 0.5).square(),
    "columns": lambda a: a.sum(0) * a.mean(0, keepdim=True),
    "matrix": lambda a: (a @ a.t()).sigmoid(),
    "views": lambda a: a.t().reshape(-1)[2:9].view(7, 1) * 2,
    "cat": lambda a: torch.cat([a, a * 2], 1).cos(),
    "stack": lambda a: torch.stack([a, a.exp()], 1).sum(0),
    "in place": lambda a: (a * 2).add_(1).mul_(a),
    "new tensors": lambda a: a + torch.zeros(3, 4) + torch.arange(4) + torch.ones_like(a),
    "a constant": lambda a: (a, torch.ones(2)),
    "picked rows": lambda a: a[torch.tensor([0, 2, 0])] * 3,
    "detached": lambda a: a * a.detach(),
    "without gradient": lambda a: _half(a) + a,
    "loss": lambda a: nn.functional.cross_entropy(a, torch.tensor([0, 2, 1])),
    "double": lambda a: a.double() * a,
    "integers": lambda a: (a * 100).long() // 3,
    "booleans": lambda a: (a > 0).any(1),
    "half": lambda a: a.half() * 2,
    "a scalar": lambda a: a.sum() * 2 + 1,
    "least": lambda a: torch.minimum(a, a.flip(0)),
    "silu": lambda a: nn.functional.silu(a) * nn.functional.softplus(a) + nn.functional.elu(a),
}  # fmt: skip


INDEX = torch.tensor([2, 0, -1])
SEVERAL: dict[str, Any] = {
    "threshold": lambda a: nn.functional.threshold(a, 0.1, 2.0) * 2,
    "largest": lambda a: a.max(1).values * 2,
    "largest and places": lambda a: [*torch.max(a, 0), *a.min(1, keepdim=True)],
    "named": lambda a: (lambda found: (found.values, found.indices + 1))((a * 2).max(dim=1)),
    "split": lambda a: [b * 2 for b in (a * 3).split(3, 1)],
    "split into views": lambda a: [*a.split([1, 2]), a * 2],
    "views and results": lambda a: (lambda b, c, d: (b * d, c))(*torch.chunk(a.exp(), 3)),
    "chunk": lambda a: (lambda b, c: (b.sigmoid() * c.tanh()).sum())(*(a @ a.t() @ a).chunk(2, 1)),
    "unbind": lambda a: [b * c for b, c in zip(a.unbind(), a.unbind(0), strict=True)],
    "one of several": lambda a: a.chunk(2, 1)[1].exp(),
    "topk": lambda a: [*a.topk(2)],
    "sort": lambda a: a.sort(1, descending=True)[0].cumsum(1) * 2,
    "sorted": lambda a: torch.sort(a.exp()),
    "several": lambda a: [*torch.var_mean(a, 1), *a.aminmax(dim=1), *a.cummax(1), *a.kthvalue(2), *a.median(1), *a.mode(0)],
    "several of one": lambda a: [*torch.std_mean(a), *a.aminmax(), *a.tensor_split(2, 1)],
    "rows": lambda a: (a.exp()[INDEX] * 3, a[SHORT]),
    "elements": lambda a: (a * 2)[INDEX, INDEX] * a[:, INDEX] + a[..., INDEX] - a[INDEX, None, 1:2],
    "index_select": lambda a: a.index_select(1, PLACES) * torch.gather(a, 1, EXPANDED),
    "embedding": lambda a: nn.functional.embedding(PLACES, a) * 2,
}  # fmt: skip
PLACES = torch.tensor([2, 1])
SHORT, EXPANDED = INDEX.int(), PLACES.expand(3, 2)


def _half(a: Any) -> Any:
    with torch.no_grad():
        return a / 2


#: The numbers of segments of those functions that have not one.
SEGMENTS = {"a constant": 0, "without gradient": 2}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("grad", [True, False])
def test_values_and_gradients_match_eager(name: str, grad: bool) -> None:
    compiled = agree(FUNCTIONS[name], x(3, 4, grad=grad))
    assert explained(compiled).graph_count == SEGMENTS.get(name, 1)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("grad", [True, False])
def test_several_results_and_indices_are_deferred(name: str, grad: bool) -> None:
    found = explained(agree(SEVERAL[name], x(3, 4, grad=grad)))
    if grad and name in ("rows", "elements"):
        assert "__getitem__(): its backward pass uses a copy of the indices" in str(found)
        return
    assert found.break_reasons == []
    assert all("all results" in each or "a live view" in each for each in found.eager_reasons), found.eager_reasons


def test_indices_may_be_modified_before_the_backward_pass() -> None:
    def function(a: Any, index: Any) -> Any:
        b = (a * 2)[index]
        index.zero_()
        loss = (b * b).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return a.grad.clone(), b

    compiled = torch.compile(function)
    for _ in range(4):
        results = []
        for each in (compiled, function):
            results.append(each(x(3).detach().requires_grad_(), torch.tensor([2, 0])))
        for one, two in zip(*results, strict=True):
            close(one, two)


def test_indices_that_change_are_checked_in_each_call() -> None:
    def function(a: Any, index: Any) -> Any:
        return (a * 2).exp()[index] * 3, a.index_select(0, index.abs()), nn.functional.embedding(index.abs(), a) * a

    compiled, a = torch.compile(function), x(3, 3)
    for index in ([0, 1, 2], [2, 2, -3], [1, 0, 0], [0, 1, 3], [0, 1, -4], [0, 0, 1]):
        found, expected = [], []
        for each, results in ((compiled, found), (function, expected)):
            try:
                results += each(a, torch.tensor(index))
            except IndexError as error:
                results.append(str(error))
        if isinstance(expected[0], str):
            assert found == expected
        else:
            for one, two in zip(found, expected, strict=True):
                close(one, two)


def test_views_among_several_results_share_memory() -> None:
    def function(a: Any) -> Any:
        b = a * 2
        one, two, three = b.chunk(3)
        kept.append(b)
        return one, two.exp(), three

    kept: list[Any] = []
    compiled = torch.compile(function)
    for _ in range(3):
        one, _, three = compiled(x(3, 4, grad=False))
        one.zero_()
        three.zero_()
        assert kept[-1].count_nonzero() == 4
        assert one._base is kept[-1]


def test_many_results_are_not_deferred() -> None:
    compiled = torch.compile(lambda a: [b * 2 for b in a.unbind()][:2])
    for _ in range(3):
        assert len(compiled(x(40, 3))) == 2
    assert any("more than 32 results" in each for each in explained(compiled).eager_reasons)
    compiled = torch.compile(lambda a, index: (a * 2)[index + 0])
    for _ in range(3):
        compiled(x(3, 4), INDEX)
    assert "__getitem__(): further arguments than the first are tensors, or indices that are not known" in str(
        explained(compiled)
    )


FUSED: dict[str, Any] = {
    "gelu": lambda a, b, c: FUNCTIONS["gelu"](a) * b + c,
    "sums": lambda a, b, c: ((a * b).relu().sum(), (a + c).tanh().mean(1), (a * c).exp().sum(0, keepdim=True)),
    "norm": lambda a, b, c: (a - a.mean(1, keepdim=True)) * (a.square().mean(1, keepdim=True) + 1).rsqrt() * b,
    "activations": lambda a, b, c: torch.where(a > b, a.sigmoid(), a.abs().sqrt()) + a.log1p().nan_to_num() * c.clamp(-1, 1),
    "layer": lambda a, b, c: nn.functional.gelu(nn.functional.linear(a, a[:20] * 1.0, b[:20])).sum(),
    "loss": lambda a, b, c: nn.functional.mse_loss(a * b, c.expand(40, 30)),
    "softmax": lambda a, b, c: (a - a.amax(1, keepdim=True)).exp() / (a - a.amax(1, keepdim=True)).exp().sum(1, keepdim=True),
    "powers": lambda a, b, c: (a**2 + b**3 + 1) ** -0.5 + (c * c + 1) ** 0.5,
    "channels": lambda a, b, c: (a.view(4, 10, 30) * b[:10].view(10, 1) + c.view(4, 10, 1)).tanh(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_fused_loops_match_separate_steps(name: str) -> None:
    compiled = agree(FUSED[name], x(40, 30), x(30), x(40, 1), fullgraph=True)
    assert explained(compiled).graph_count == 1
    assert explained(compiled).loops > 0 or not numba_dispatch.permitted()


def test_fused_loops_handle_nan_and_infinity() -> None:
    odd = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -3.0, 200.0] * 10)
    for function in (
        torch.tanh,
        torch.sigmoid,
        torch.exp,
        torch.log,
        torch.relu,
        nn.functional.silu,
    ):
        compiled = torch.compile(lambda a, function=function: function(a * 1) + 0, fullgraph=True)
        for _ in range(2):
            torch.testing.assert_close(compiled(odd), function(odd), equal_nan=True)


def test_large_arrays_use_several_threads() -> None:
    a = x(200, 300)
    agree(lambda a: ((a * 2).tanh() + a).sum(), a)
    agree(lambda a: ((a * 2).tanh() + a).sum(1), a)
    agree(lambda a: ((a * 2).tanh() + a).mean(0), a)


def test_weight_gradient_has_the_weights_strides() -> None:
    """The gradient of ``x @ weight.t()`` is computed in the weight's own layout; results keep their order."""
    x, weight = torch.randn(64, 300), torch.randn(100, 300, requires_grad=True)
    whole = agree(lambda x, weight: nn.functional.linear(x, weight).sin(), x, weight)
    backward = explained(whole).segments[0].program.programs[1]
    last = next(step for step in reversed(backward.steps) if step.op.name == "mm")
    assert last.results == backward.outputs
    assert "product(" in backward.source

    def both(x: Any, weight: Any) -> Any:
        product = torch.mm(x, weight.t())
        return product.t(), product.t().exp(), torch.mm(product.t(), x).t()

    agree(both, x, weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_checks_its_targets(reduction: str, dtype: Any) -> None:
    """Ignored targets are left to the kernels; invalid targets raise."""

    def loss(x: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(x, target, reduction=reduction)

    x, target = torch.randn(50, 7, dtype=dtype, requires_grad=True), torch.randint(0, 7, (50,))
    whole = agree(loss, x, target)
    skipped = target.clone()
    skipped[::3] = -100
    for each in (skipped, torch.full((50,), -100)):
        mine, theirs = x.detach().requires_grad_(), x.detach().requires_grad_()
        found, expected = whole(mine, each), loss(theirs, each)
        assert torch.allclose(found, expected, equal_nan=True)
        found.sum().backward()
        expected.sum().backward()
        assert torch.allclose(mine.grad, theirs.grad, equal_nan=True)
    skipped[3] = 7
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        whole(x, skipped)


def test_dropout_and_cross_entropy_are_in_one_segment() -> None:
    weight, target = x(4, 6), torch.tensor([0, 5, 2])

    def function(a: Any, target: Any, caught: list[str]) -> Any:
        b = nn.functional.dropout((a @ weight).relu(), 0.4) * 2
        try:
            loss = nn.functional.cross_entropy(b, target)
        except IndexError as error:
            caught.append(str(error))
            return b
        return nn.functional.dropout(loss + torch.rand(()), 0.5, False) + nn.functional.nll_loss(b, target, weight[0])

    compiled = torch.compile(function, fullgraph=True)
    for labels in (
        target,
        target.flip(0),
        torch.tensor([0, -100, 1]),
        torch.tensor([0, 6, 1]),
        torch.tensor([-1, 0, 0]),
        target,
    ):
        results: list[Any] = []
        for each in (compiled, function):
            torch.manual_seed(1)
            a, caught = x(3, 4), list[str]()
            loss = each(a, labels, caught)
            loss.sum().backward()
            results.append((loss, a.grad, torch.rand(1), caught))
        for one, two in zip(results[0][:3], results[1][:3], strict=True):
            close(one, two)
        assert results[0][3] == results[1][3]
    torch.manual_seed(1)
    again = torch.compile(lambda a: function(a, target, []))
    for _ in range(2):
        again(x(3, 4))
    assert explained(again).graph_count == 1
    assert explained(again).break_reasons == []


def test_shared_log_softmax_is_computed_before_the_loss() -> None:
    """log_softmax has other users before the loss and after it."""

    def several(x: Any, target: Any) -> Any:
        logs = nn.functional.log_softmax(x, 1)
        first = logs.exp().max()
        loss = nn.functional.nll_loss(logs, target)
        return loss, first, (logs * logs).sum()

    agree(several, torch.randn(30, 5, requires_grad=True), torch.randint(0, 5, (30,)))


def test_programs_use_numpy_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loops(monkeypatch, False)
    for name in FUSED:
        assert explained(agree(FUSED[name], x(40, 30), x(30), x(40, 1))).loops == 0


def test_gradients_of_broadcast_operands_have_their_shapes() -> None:
    agree(lambda a, b, c: (a * b + c).tanh().sum(), x(5, 4, grad=True), x(4), x(5, 1))


def test_training_a_module_matches_eager() -> None:
    def trained(compiled: bool) -> list[float]:
        torch.manual_seed(0)
        layers = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3)
        model: Any = nn.Sequential(*layers)
        run = torch.compile(model, fullgraph=True) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs, targets, losses = torch.randn(16, 6), torch.randint(0, 3, (16,)), []
        for _ in range(20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(run(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        return [*losses, run(inputs).sum().item(), *(each.sum().item() for each in model.state_dict().values())]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_whole_training_step_matches_eager(kind: str) -> None:
    def trained(compiled: bool) -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Dropout(0.2), nn.Linear(20, 3))
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.05)
        scheduled = torch.optim.lr_scheduler.StepLR(optimizer, 5)

        def step(inputs: Any, targets: Any) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            return loss

        run = torch.compile(step) if compiled else step
        inputs, targets, losses = torch.randn(16, 6), torch.randint(0, 3, (16,)), []
        for _ in range(20):
            loss = run(inputs, targets)
            scheduled.step()
            losses.append(loss.item())
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
        return [*losses, *(each.sum().item() for each in model.parameters())]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5, abs=1e-6)


def test_gradients_of_a_whole_step_accumulate() -> None:
    weight = x(40, 3)
    other = weight.detach().clone().requires_grad_()
    run = torch.compile(lambda a: (weight * a).square().sum().backward())
    for turn in range(4):
        run(x(40, 3, grad=False) + turn)
        (other * (x(40, 3, grad=False) + turn)).square().sum().backward()
        close(weight.grad, other.grad)
    weight.grad = None
    run(x(40, 3, grad=False))
    close(weight.grad, 2 * weight * x(40, 3, grad=False) ** 2)


def _weights() -> tuple[Any, Any]:
    return x(3, 4).clone().detach().requires_grad_(), x(4).clone().detach().requires_grad_()


def _raises(loss: Any) -> str:
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error)[:50]
    return ""


def _steps() -> dict[str, tuple[Any, bool]]:
    """Return functions of an input and two leaves that call ``backward``, and whether one program computes it."""

    def added(a: Any, v: Any, w: Any) -> Any:
        loss = (a @ v * w).tanh().sum()
        loss.backward()
        return loss, loss.requires_grad, v.grad.clone(), w.grad.clone(), v.grad._version

    def prediction(a: Any, v: Any, w: Any) -> Any:
        predicted = torch.tanh(a @ v + w)
        loss = (predicted - 1).square().mean()
        v.grad = w.grad = None
        loss.backward()
        return predicted.detach(), _raises(loss), _raises(predicted.sum()), v.grad, w.grad

    def other_graph(a: Any, v: Any, w: Any) -> Any:
        shared = (w * 2).tanh()
        loss, other = (shared * shared).sum(), (shared.exp() * v).sum()
        loss.backward()
        return _raises(other), w.grad.clone(), v.grad

    def separate_graph(a: Any, v: Any, w: Any) -> Any:
        loss, other = (w * w).sum(), v.exp()
        loss.backward()
        return _raises(other.sum()), w.grad.clone(), v.grad.clone()

    def nothing_saved(a: Any, v: Any, w: Any) -> Any:
        loss = (w + 1).sum()
        return _raises(loss), _raises(loss), w.grad.clone(), v.grad

    def scalar(a: Any, v: Any, w: Any) -> Any:
        one, two = w[:1].detach().requires_grad_(), w[0].detach().requires_grad_()
        loss = one + two
        loss.backward()
        one.grad.add_(1)
        return one.grad, two.grad, loss

    def result_of_a_graph(a: Any, v: Any, w: Any) -> Any:
        b = w * 3
        b.tolist()
        loss = (b.exp() * w).sum()
        loss.backward()
        return w.grad.clone()

    def hooked(a: Any, v: Any, w: Any) -> Any:
        handle = w.register_hook(lambda grad: grad * 2)
        loss = (w * w).sum()
        loss.backward()
        handle.remove()
        return w.grad.clone()

    def retained(a: Any, v: Any, w: Any) -> Any:
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        loss.backward(torch.tensor(2.0))
        return w.grad.clone()

    def several(a: Any, v: Any, w: Any) -> Any:
        with torch.no_grad():
            message = _raises((w * w).sum())
        return message, _raises(w * w), v.grad

    def twice(a: Any, v: Any, w: Any) -> Any:
        for _ in range(2):
            loss = torch.nn.functional.linear(a, v.t(), w).relu().sum()
            loss.backward()
            with torch.no_grad():
                v.sub_(v.grad * 0.1)
        return v.grad.clone(), v._version, loss.detach()

    merged = added, prediction, nothing_saved, scalar, twice
    found = (*merged, other_graph, separate_graph, result_of_a_graph, hooked, retained, several)
    return {each.__name__: (each, each in merged) for each in found}


def _gradients() -> dict[str, tuple[Any, str]]:
    """Return functions of two leaves that call ``autograd.grad``, and what explain says of it."""
    grad = torch.autograd.grad

    def refused(*args: Any, **options: Any) -> Any:
        try:
            return grad(*args, **options)
        except RuntimeError as error:
            return str(error)[:60]

    def of_one(a: Any, b: Any) -> Any:
        loss = (a.exp() * b).sum()
        return loss.detach(), grad(loss, a)[0], a.grad, refused(loss, b), refused(loss, a)

    def of_both(a: Any, b: Any) -> Any:
        loss = (a[1:] * b[:-1] ** 2).sum() + a.exp().sum()
        return [*grad((loss,), (b, a)), loss]

    def modified(a: Any, b: Any) -> Any:
        found = grad((a + b).sum(), [a, b])
        return [each.clone().add_(1) for each in found], [each.stride() for each in found]

    def unused(a: Any, b: Any) -> Any:
        loss = a.exp().sum()
        return refused(loss, [a, b], retain_graph=True), *grad(loss, [b, a], allow_unused=True)

    def of_a_result(a: Any, b: Any) -> Any:
        c = a.exp()
        return grad((c * c * b).sum(), c)

    def twice(a: Any, b: Any) -> Any:
        (first,) = grad((a.exp() * b).sum(), a, create_graph=True)
        return first, grad(first.sum(), b)

    def scaled(a: Any, b: Any) -> Any:
        return grad((a.exp() * b).sum(), {"a": a}, torch.tensor(2.0))["a"]

    merged, eager = "def forward_and_backward(", "grad(): it needs elements"
    return {
        each.__name__: (each, text)
        for text, functions in ((merged, (of_one, of_both, modified)), (eager, (unused, of_a_result, twice, scaled)))
        for each in functions
    }


@pytest.mark.parametrize("name", _gradients())
def test_gradients_of_a_pending_loss(name: str) -> None:
    function, text = _gradients()[name]
    compiled, a, b = torch.compile(function), _weights()[1], _weights()[1] * 1.5
    b = b.detach().requires_grad_()
    expected = torch.utils._pytree.tree_leaves(function(a, b))
    for _ in range(4):
        for one, two in zip(torch.utils._pytree.tree_leaves(compiled(a, b)), expected, strict=True):
            if isinstance(two, torch.Tensor):
                close(one, two)
                assert one.requires_grad == two.requires_grad
            else:
                assert one == two
    assert text in str(explained(compiled))


@pytest.mark.parametrize("keep", [False, True])
def test_equal_gradients_do_not_share_memory(keep: bool) -> None:
    def function(a: Any, b: Any) -> Any:
        c = a.detach() * 2
        one, two = torch.autograd.grad((a * c + b * c).sum(), [a, b], retain_graph=keep)
        one.add_(1)
        return one, two, c

    compiled, (a, _), b = torch.compile(function), _weights(), _weights()[0].detach().requires_grad_()
    expected = function(a, b)
    for _ in range(4):
        for one, two in zip(compiled(a, b), expected, strict=True):
            close(one, two)


def test_embedding_with_sparse_gradients_is_not_deferred() -> None:
    def function(table: Any, index: Any, sparse: bool) -> Any:
        loss = torch.nn.functional.embedding(index, table, None, None, 2.0, False, sparse).exp().sum()
        return torch.autograd.grad(loss * 2, table)[0]

    compiled, table = torch.compile(function), _weights()[0]
    index = torch.tensor([0, 1, 1])
    for turn in range(6):
        found = compiled(table, index, turn % 2 == 0)
        assert found.is_sparse == (turn % 2 == 0)
        close(found.to_dense() if found.is_sparse else found, function(table, index, False))


@pytest.mark.parametrize("name", _steps())
def test_backward_of_a_pending_loss(name: str) -> None:
    function, merged = _steps()[name]
    compiled, (v, w), again = torch.compile(function), _weights(), _weights()
    a = x(5, 3, grad=False)
    for _ in range(4):
        for one, two in zip(_flat(compiled(a, v, w)), _flat(function(a, *again)), strict=True):
            if isinstance(one, torch.Tensor):
                close(one, two)
                assert one.requires_grad == two.requires_grad
            else:
                assert one == two
    assert ("def forward_and_backward(" in str(explained(compiled))) == merged


def test_explain_shows_why_a_program_has_no_backward_pass() -> None:
    v, w = _weights()
    compiled = torch.compile(_steps()["other_graph"][0])
    for _ in range(3):
        compiled(None, v, w)
    reason = "backward() is not part of the program, because another result keeps values that its gradient needs"
    assert reason in explained(compiled).eager_reasons


def test_leaves_that_occur_twice_get_one_gradient() -> None:
    def function(v: Any, w: Any) -> Any:
        loss = (v.exp() * w).sum()
        loss.backward()
        return v.grad.clone(), v.grad._version

    compiled, one, two = torch.compile(function), _weights()[1], _weights()[1]
    for turn in range(4):
        found = compiled(one, one)
        expected = function(two, two)
        close(found[0], expected[0])
        assert found[1] == expected[1] == turn


def test_grad_is_cleared_within_a_segment() -> None:
    v, w = _weights()
    optimizer = torch.optim.SGD([v, w], lr=0.1)
    v.grad, w.grad = torch.ones(3, 4), torch.ones(4)

    def function(a: Any) -> Any:
        old = w.grad * 2
        loss = (a @ v + w).square().sum() + old.sum() * 0
        optimizer.zero_grad()
        w.grad = None
        loss.backward()
        return old, w.grad

    compiled, grads = torch.compile(function), [w.grad]
    for _ in range(3):
        old, new = compiled(x(5, 3, grad=False))
        assert torch.equal(old, grads[-1] * 2)
        grads.append(new)
    found = explained(compiled)
    assert len(found.break_reasons) == 1 and "backward() is called" in found.break_reasons[0]
    v.grad = torch.ones(3, 4)
    compiled = torch.compile(lambda a: ((a @ v).sum() * 2, v.grad, optimizer.zero_grad(False)))
    for _ in range(3):
        v.grad.fill_(1)
        assert not compiled(x(5, 3, grad=False))[1].any()
    assert "zero_grad() is called" in explained(compiled).break_reasons[0]


def test_compiled_call_is_one_node() -> None:
    out = torch.compile(lambda a: (a * 2).exp())
    a = x(3)
    out(a)
    assert type(out(a).grad_fn).__name__ == "CompiledFunctionBackward"
    assert out(a).grad_fn.next_functions[0][0].variable is a


def test_gradients_of_gradients() -> None:
    function = FUNCTIONS["gelu"]
    compiled = torch.compile(function, fullgraph=True)
    a = x(3, 4)
    compiled(a)
    for one in (compiled, function):
        (first,) = torch.autograd.grad(one(a).sum(), a, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), a)
        if one is compiled:
            found = first, second
    torch.testing.assert_close(found[0], first)
    torch.testing.assert_close(found[1], second)


def test_backward_frees_the_graph() -> None:
    compiled = torch.compile(lambda a: (a * a).sum())
    a = x(3)
    compiled(a)
    out = compiled(a)
    out.backward(retain_graph=True)
    out.backward()
    torch.testing.assert_close(a.grad, 4 * a.detach())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_second_backward_pass_through_results_that_save_nothing() -> None:
    compiled = torch.compile(lambda a: (a * 2, a.mean(0)))
    for _ in range(3):
        a = x(3, 4)
        double, mean = compiled(a)
        torch.autograd.backward([double.sum(), mean.sum()])
        mean.sum().backward()
        torch.testing.assert_close(a.grad, torch.full((3, 4), 2 + 2 / 3))


def test_modified_saved_tensors_raise() -> None:
    compiled = torch.compile(lambda a, b: (a * b).exp())
    a, b = x(3), x(3, grad=False)
    compiled(a, b)
    out = compiled(a, b)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out = compiled(a, b)
    out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_results_own_their_memory() -> None:
    compiled = torch.compile(lambda a: (a.exp() + 1, torch.zeros(2)))
    first, second = compiled(x(3, grad=False)), compiled(x(3, grad=False))
    for _ in range(3):
        again = compiled(x(3, grad=False))
        again[0].zero_()
        again[1].add_(1)
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_of_samples_match_eager(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record with some inputs and run with others: no value of the recording may be a constant of the program."""
    use_loops(monkeypatch, False)  # each would compile its own loops
    for sample in samples(family)[:: 2 if family == "indexing" else 8]:
        arrays = sample.arrays()
        if any(each.dtype.kind == "c" for each in arrays.values()):
            continue
        others = {name: _moved(each) for name, each in arrays.items()}

        def evaluated(*given: Any, sample: Any = sample, names: Any = tuple(arrays)) -> Any:
            return tuple(sample.evaluate(torch, dict(zip(names, given, strict=True))))

        def found(function: Any, arrays: Any, smooth: bool = sample.smooth) -> list[Any]:
            tensors = [torch.tensor(each) for each in arrays.values()]
            leaves = [each.requires_grad_() for each in tensors if smooth and each.is_floating_point()]
            torch.manual_seed(3)
            outs = [each for each in function(*tensors) if isinstance(each, torch.Tensor)]
            total = sum((each * each).sum() for each in outs if each.requires_grad)
            grads = torch.autograd.grad(total, leaves, allow_unused=True) if isinstance(total, torch.Tensor) else ()
            return [*outs, *(each for each in grads if each is not None)]

        try:
            expected, _ = found(evaluated, others), found(evaluated, arrays)
        except Exception:  # calls that fail
            continue
        compiled = torch.compile(evaluated)
        found(compiled, arrays)
        for one, two in zip(found(compiled, others), expected, strict=True):
            assert one.stride() == two.stride() or not two.requires_grad, sample.expression
            if not two.is_complex():
                close(one, two), sample.expression


@pytest.mark.parametrize("family", FAMILIES)
def test_properties_of_deferred_results_are_those_of_eager_mode(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first call, which is recorded, and in two that are deferred."""
    use_loops(monkeypatch, False)  # each would compile its own loops
    for sample in samples(family)[:: 1 if family in ("pooling", "convolution", "shape") else 4]:
        names = tuple(sample.arrays())

        def evaluated(*given: Any, sample: Any = sample, names: Any = names) -> Any:
            return tuple(sample.evaluate(torch, dict(zip(names, given, strict=True))))

        def found(function: Any, sample: Any = sample) -> list[Any]:
            tensors = [torch.tensor(each) for each in sample.arrays().values()]
            given = [each.requires_grad_() if sample.smooth and each.is_floating_point() else each for each in tensors]
            torch.manual_seed(3)
            outs = [each for each in function(*given) if isinstance(each, torch.Tensor)]
            return [_properties(each, (*given, *outs)) for each in outs]

        try:
            expected = found(evaluated)
        except Exception:  # calls that fail
            continue
        compiled = torch.compile(evaluated)
        for _ in range(3):
            assert found(compiled) == expected, sample.expression


def _properties(x: Any, others: Any) -> list[Any]:
    """Return all that can be observed of ``x`` but its elements, its memory's address and the name of its node."""
    shared = [numpy.may_share_memory(x._array, each._array) for each in others if each._array.size and x._array.size]
    return [
        x.dtype, x.shape, x.stride(), x.storage_offset(), x.is_contiguous(), x.requires_grad, x.is_leaf, x._is_view(),
        x.grad_fn is None, x._base is None or [x._base is each for each in others], shared, x._version, type(x),
    ]  # fmt: skip


def _moved(array: Any) -> Any:
    return array * 1.25 + 0.01 if array.dtype.kind == "f" else numpy.roll(array, 1) if array.size else array


# -- Entries and segments


def test_changed_arguments_are_other_entries() -> None:
    compiled = torch.compile(lambda a, n=1, *, s="": a * n)
    for given in ((x(3),), (x(4),), (x(3).double(),), (x(3), 2), (x(3), 2.0), (x(3, grad=False),), (x(3), True)):
        for _ in range(2):
            assert torch.equal(compiled(*given), given[0] * (given[1] if len(given) > 1 else 1))
    assert explained(compiled).graph_count == 7
    assert torch.equal(compiled(x(3), s="a"), x(3))
    torch.compiler.reset()
    assert explained(compiled).graph_count == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_numbers_that_change_become_inputs(dtype: Any) -> None:
    def function(a: Any, n: Any) -> Any:
        b = torch.add(2 - (n * a - n) / (n + 1.5), n)
        return (n + b * n).tanh(), torch.mul(n / (a * a + 1), 2), torch.div(torch.sub(a, n), 3)

    compiled, given = torch.compile(function), torch.tensor([3, -2, 5], dtype=dtype)
    numbers = (1, 2.5, -0.0, 7, 1e-3, 1 / 3, 2**24 + 1, -4, math.inf, math.nan, 1e300, 2**60, -(2**70), True, 0.1)
    for number in (*numbers, *(each / 8 for each in range(50))):
        one, two = (given.clone().requires_grad_(given.is_floating_point()) for _ in range(2))
        try:
            expected = function(two, number)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(one, number)
            continue
        found = compiled(one, number)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
            assert a.requires_grad == b.requires_grad and a.stride() == b.stride()
        if given.is_floating_point():
            for outs in (found, expected):
                sum(each.sum() for each in outs).backward()
            close(one.grad, two.grad)
    compiled, counts = torch.compile(function), list[int]()
    for number in range(200):
        close(compiled(given, number / 16)[0], function(given, number / 16)[0])
        counts.append(compiled._compiled.count)
    assert counts[50] == counts[-1] < MAX_ENTRIES
    if dtype in (torch.float32, torch.float64):
        assert explained(compiled).eager_reasons == []


def test_arguments_that_change_run_in_eager_mode() -> None:
    """If they are not numbers that may be inputs; the other operations are deferred, and the calls not recorded again."""
    compiled, recorded = torch.compile(lambda a, n: (a.exp() * 2).clamp(max=n) + 1), list[int]()
    for number in range(300):
        assert compiled(torch.zeros(1), number).item() == 1 + min(number, 2)
        recorded.append(compiled._compiled.ends.total())
    assert recorded[10] == recorded[-1]
    assert compiled._compiled.count < 20
    assert explained(compiled).eager_reasons == ["clamp(): it has other arguments in every call"]


def test_constants_are_equal_if_both_are_nan_or_zeros_of_one_sign() -> None:
    compiled = torch.compile(lambda a, text: a.exp().masked_fill(a > 0, float(text)).clamp(-9, float(text)).neg())
    for text in ("nan", "nan", "nan", "0.0", "-0.0", "nan") * 2:
        expected = compiled._compiled.function(x(5, grad=False), text)
        found = compiled(x(5, grad=False), text)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found.signbit(), expected.signbit())
    assert explained(compiled).eager_reasons == []
    assert explained(compiled).graph_count == 3
    nan = [float("nan") for _ in range(2)]
    assert same_constant((1, [nan[0]]), (1, [nan[1]])) and not same_constant((nan[0],), (0.0,))
    assert not same_constant((0.0,), (-0.0,))


def test_functions_with_many_entries_run_in_eager_mode() -> None:
    compiled = torch.compile(lambda a, names: [getattr(a, name)() for name in names][-1])
    names = ["exp", "sin", "cos", "neg", "abs", "tanh", "square", "sigmoid"]
    for chosen in itertools.permutations(names, 3):
        assert torch.equal(compiled(torch.ones(1), chosen), getattr(torch.ones(1), chosen[-1])())
    assert "too many" in explained(compiled).eager_reasons[0]
    assert compiled._compiled.count == MAX_ENTRIES


def test_segments_of_few_steps_run_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_function, "FEWEST_STEPS", [10, 4, 2])
    compiled = torch.compile(lambda a: a * 2 + 1)
    for _ in range(3):
        assert type(compiled(x(3)).grad_fn).__name__ == "AddBackward0"
    assert "few steps" in explained(compiled).eager_reasons[0]
    for _ in range(2):
        large = compiled(x(100_000))
    assert type(large.grad_fn).__name__ == "CompiledFunctionBackward"


def test_short_segments_within_a_call_run_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_function, "FEWEST_STEPS", [10, 4, 2])

    def function(a: Any) -> Any:
        b = a
        for _ in range(12):
            b = b * 0.5 + a
        held.append(b.tolist())
        return (a * 2).exp(), b

    held: list[Any] = []
    compiled = torch.compile(function)
    for _ in range(4):
        for one, two in zip(compiled(x(3)), function(x(3)), strict=True):
            close(one, two)
    assert type(compiled(x(3))[0].grad_fn).__name__ == "ExpBackward0"
    assert explained(compiled).graph_count == 1
    assert any("segments of few steps" in each for each in explained(compiled).eager_reasons)
    assert all(each == held[0] for each in held)


def test_only_reachable_results_are_computed() -> None:
    held = []

    def function(a: Any, keep: bool) -> Any:
        b = a * 2
        c = b.exp()
        if keep:
            held.append(c)
        return c + 1

    compiled = torch.compile(function)
    for keep in (False, False, True, True, False):
        assert torch.equal(compiled(x(3), keep), (x(3) * 2).exp() + 1)
    assert torch.equal(held[0], held[1])
    found = sorted(len(each.results) for each in explained(compiled).segments)
    assert found == [1, 2]


def test_interrupted_calls_leave_tensors_that_raise() -> None:
    held = []

    def function(a: Any) -> Any:
        held.append(a * 2)
        return held[-1] + 1

    compiled = torch.compile(function)
    compiled(x(3))
    compiled(x(3))
    (segment,) = explained(compiled).segments
    program, segment.program = segment.program, None
    segment.entries, entries = None, segment.entries
    with pytest.raises(TypeError):
        compiled(x(3))
    with pytest.raises(RuntimeError, match="was interrupted"):
        held[-1].tolist()
    segment.program, segment.entries = program, entries
    assert torch.equal(compiled(x(3)), x(3) * 2 + 1)


def test_writes_that_the_library_does_not_see_raise() -> None:
    """The second check: the version of each input is compared before a segment runs."""

    def function(a: Any) -> Any:
        b = a * 2
        a._counter[0] += 1
        return b

    compiled = torch.compile(function)
    a = x(3)
    assert torch.equal(compiled(a), a * 2)
    with pytest.raises(RuntimeError, match="was modified"):
        compiled(a)


# -- Graph breaks


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda a: a * (a * 1).sum().item(), "item"),
        (lambda a: a * 2 if (a * 2).sum() > 0 else a, "__bool__"),
        (lambda a: (a * 2)[a > 0], "__getitem__"),
        (lambda a: torch.tensor((a * 1).numpy()), "numpy"),
        (lambda a: (a * 1).nonzero(), "nonzero"),
        (lambda a: (a * 1)[a * 2 > 0], "__getitem__"),
        (lambda a: (str(a * 1), a * 2)[1], "__repr__"),
        (lambda a: _excluded(a * 2), "_excluded"),
    ],
)
def test_break_reasons(function: Any, reason: str) -> None:
    a = x(3, grad=False)
    compiled = torch.compile(function)
    for _ in range(3):
        assert compiled(a).shape == function(a).shape
    found = explained(compiled)
    assert reason in found.break_reasons[0]
    assert "test_compile.py" in found.break_reasons[0]
    compiled, told = torch.compile(function, fullgraph=True), set[str]()
    if reason in ("item", "__getitem__", "numpy", "nonzero"):  # accepted, as by PyTorch
        for _ in range(3):
            assert torch.equal(compiled(a), function(a))
        return
    for _ in range(3):
        with pytest.raises(Exception, match=r"Remedy: remove this operation or fullgraph=True") as error:
            compiled(a)
        assert type(error.value).__name__ == "Unsupported"
        told.add(str(error.value))
    (text,) = told  # the same when operations are deferred
    assert text.startswith(f"The function calls {reason}() at ")
    assert "test_compile.py" in text


@torch.compiler.disable
def _excluded(a: Any) -> Any:
    return a + 1


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + torch.rand(3), lambda a: (a * 2).add_(1), lambda a: a[1:], lambda a: _half(a) * 2,
        lambda a: torch.exp(a, out=torch.empty(3)) + 1, lambda a: (print(end=""), a * time.time() * 0)[1],
        lambda a: nn.functional.dropout(a), lambda a: (a * 2).clone().requires_grad_() * 2,
    ],
)  # fmt: skip
def test_whole_graphs_may_write_and_draw_numbers(function: Any) -> None:
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        assert compiled(x(3, grad=False)).shape == function(x(3, grad=False)).shape


def test_pure_functions_are_replayed_without_their_python() -> None:
    calls = []
    weight = x(3, 3)

    def function(a: Any, n: float = 2.0) -> Any:
        calls.append(1)
        b = (a @ weight).tanh() * n
        return {"b": b, "sum": (b.sum(), None, n)}

    compiled = torch.compile(function, pure=True)
    for turn in range(6):
        a = x(2, 3) + turn
        found, expected = compiled(a), function(a)
        close(found["b"], expected["b"])
        close(found["sum"][0], expected["sum"][0])
        assert found["sum"][1:] == (None, 2.0)
        (one,), (two,) = (torch.autograd.grad(each["sum"][0], weight) for each in (found, expected))
        close(one, two)
    assert len(calls) == 6 + 2
    close(compiled(x(2, 3), 3.0)["b"], function(x(2, 3), 3.0)["b"])
    with torch.no_grad():
        assert not compiled(x(2, 3))["b"].requires_grad
    assert compiled(x(4, 3))["b"].shape == (4, 3)


def test_hooks_are_called() -> None:
    layer, seen = nn.Linear(3, 3), []
    compiled = torch.compile(layer)
    compiled(x(2, 3))
    layer.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    for _ in range(3):
        compiled(x(2, 3))
    assert len(seen) == 3


def test_custom_functions_hooks_and_subclasses() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    compiled = torch.compile(lambda a: Twice.apply(a) * 1)
    for _ in range(2):
        a = x(3)
        compiled(a).sum().backward()
        assert a.grad.tolist() == [3.0, 3.0, 3.0]


def test_errors_match_eager() -> None:
    compiled = torch.compile(lambda a, i: a[i])
    a = x(3, grad=False)
    for index in ([0], [1], [2]):
        assert compiled(a, torch.tensor(index)).item() == a[index].item()
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        compiled(a, torch.tensor([5]))


# -- Forms of compile()


def test_what_methods_read_in_code_without_a_file() -> None:
    space: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    exec(
        compile(
            "scale = 2.0\n"
            "class Scaled:\n"
            "    def __call__(self, x): return call(self, x)\n"
            "    def times(self, x): return x * scale\n"
            "def call(each, x): return getattr(each, ''.join(['times']))(x)\n"
            "table = {'a': Scaled()}\n"
            "@torch.compile\n"
            "def f(x): return table['a'](x)\n",
            "<prompt>", "exec",
        ),
        space,
    )  # fmt: skip
    assert [space["f"](torch.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    space["scale"] = 5.0
    assert space["f"](torch.ones(1)).item() == 5.0


def test_what_compile_gives() -> None:
    @torch.compile
    def one(a: Any) -> Any:
        """Adds one."""
        return a + 1

    assert one.__name__ == "one"
    assert one.__doc__ == "Adds one."

    @torch.compile(fullgraph=True, dynamic=False, mode="reduce-overhead")
    def two(a: Any) -> Any:
        return a + 2

    assert two(torch.ones(1)).item() == 3

    class Thing:
        @torch.compile
        def method(self, a: Any) -> Any:
            return a + 3

    thing = Thing()
    for _ in range(2):
        assert thing.method(torch.ones(1)).item() == 4
    for name in ("eager", "eager_noexcept", "aot_eager"):
        assert torch.compile(len, backend=name) is len
    with pytest.raises(RuntimeError) as error:
        torch.compile(len, backend="nonsense", disable=True)
    assert str(error.value) == (
        "Invalid backend: 'nonsense', see `torch._dynamo.list_backends()` for available backends."
    )
    assert f"{type(error.value).__module__}.{type(error.value).__name__}" == "torch._dynamo.exc.InvalidBackend"
    assert torch.compile(len, disable=True) is len


def test_unknown_options_are_refused() -> None:
    with pytest.raises(
        RuntimeError, match=r"^Unexpected optimization option foo, known options are \['TYPE_CHECKING', "
    ):
        torch.compile(len, options={"foo": 1})
    assert (
        torch.compile(lambda a: a + 1, options={"max_autotune": True, "triton.cudagraphs": False})(torch.ones(1)) == 2
    )


def test_errors_are_those_of_dynamo() -> None:
    exc = importlib.import_module("retrograd._dynamo.exc")
    assert torch._dynamo.exc is exc
    with pytest.raises(exc.Unsupported) as error:
        torch.compile(lambda a: a if a.sum() > 0 else -a, fullgraph=True)(torch.ones(2))
    assert isinstance(error.value, exc.TorchDynamoException) and isinstance(error.value, RuntimeError)
    with pytest.raises(exc.InvalidBackend):
        torch.compile(len, backend="nonsense")
    assert all(
        issubclass(getattr(exc, name), exc.TorchDynamoException) for name in ("UserError", "BackendCompilerFailed")
    )


def test_compiled_modules_keep_their_interface() -> None:
    net: Any = nn.Linear(3, 2)
    compiled = torch.compile(net)
    assert type(compiled).__name__ == "OptimizedModule"
    assert compiled._orig_mod is net
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    net.compile(fullgraph=True)
    a = x(2, 3)
    for _ in range(2):
        torch.testing.assert_close(net(a), nn.functional.linear(a, net.weight, net.bias))
    assert explained(net.forward).graph_count == 1
    other = copy.deepcopy(net)
    assert "forward" not in vars(other)
    assert "forward" not in vars(pickle.loads(pickle.dumps(net)))


def test_disable() -> None:
    @torch.compiler.disable
    def plain(a: Any) -> Any:
        assert not torch.compiler.is_compiling()
        return a * 2

    seen = []

    def function(a: Any) -> Any:
        seen.append(torch.compiler.is_compiling()) if torch.compiler.is_compiling() else None
        return plain(a) + 1

    compiled = torch.compile(function)
    for _ in range(2):
        assert compiled(torch.ones(1)).item() == 3
    assert seen


def test_explain_shows_generated_code() -> None:
    found = torch._dynamo.explain(lambda a: (a * 2).exp())(x(3))
    text = str(found)
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2)
    assert "def forward(" in text
    assert "def backward(" in text


def _under_autocast(a: Any) -> Any:
    with torch.autocast("cpu"):
        return a.exp().sin()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda a: a, "calls with no operation to defer"),
        (lambda a: torch.rand(3), "calls with no operation to defer"),
        (lambda a: (a.exp(), None)[1], "calls with no result that is used"),
        (lambda a: a[1:], "all results of a segment are views"),
        (lambda a: a.unique(), "unique(): it needs elements"),
        (lambda a: torch.linalg.svd(a.view(1, 3)), "linalg_svd(): it is not a known pure function"),
        (lambda a: _excluded(a), "_excluded(): it is excluded from compilation"),
        (_under_autocast, "operations while a mode, a handler or a transformation is active"),
    ],
)
def test_explain_has_a_reason_if_nothing_is_compiled(function: Any, reason: str) -> None:
    for each in (function, torch.compile(function)):
        found = torch.compiler.explain(each)(x(3, grad=False))
        assert found.graph_count == 0
        assert any(text.startswith(reason) for text in found.eager_reasons), str(found)


def test_explain_of_calls_that_are_not_compiled() -> None:
    compiled, found = torch.compile(lambda a: a * 2), []
    with torch.autocast("cpu"):
        assert "such as autocast" in torch.compiler.explain(compiled)(x(3)).eager_reasons[0]
    torch.compile(lambda a: (a * 2, found.append(torch.compiler.explain(torch.compile(torch.exp))(a))))(x(3))
    assert found[0].eager_reasons == ["calls within another compiled function, which defers their operations"]
    compiled = torch.compile(lambda a: a * 2)
    for number in range(compiled_function.MAX_ROOTS + 2):
        compiled(x(number + 1))
    assert "calls with other shapes" in explained(compiled).eager_reasons[-1]


def test_compiled_functions_nest_and_work_under_transforms() -> None:
    inner = torch.compile(lambda a: a * 2)
    outer = torch.compile(lambda a: inner(a) + 1, fullgraph=True)
    for _ in range(2):
        assert outer(torch.ones(1)).item() == 3
    assert torch.func.grad(lambda a: inner(a).sum())(torch.ones(2)).tolist() == [2, 2]
    assert torch.func.vmap(inner)(torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]


needs_numba = pytest.mark.skipif(
    not numba_dispatch.permitted(), reason="needs Numba: loops of torch.compile are not tested"
)


def third_call(function: Any, *given: Any) -> Any:
    """Return the result of the third call of the compiled ``function``, which is deferred."""
    compiled = torch.compile(function)
    return [compiled(*given) for _ in range(3)][2]


@needs_numba
def test_loops_distinguish_zeros_by_sign() -> None:
    ones, zeros = torch.ones(40_000), torch.full((40_000,), -0.0)
    for bound in (0.0, -0.0, 0.0):
        shown = third_call(lambda a, bound=bound: 1 / torch.clamp(a, max=bound), ones)
        assert shown[0].item() == math.copysign(math.inf, bound)
    for slope in (0.0, -0.0):
        shown = third_call(lambda a, slope=slope: torch.nn.functional.threshold(a, 2.0, slope), ones)
        assert math.copysign(1, shown[0].item()) == math.copysign(1, slope)
    assert math.copysign(1, third_call(lambda a: torch.clamp(a, min=0), zeros)[0].item()) == -1


@needs_numba
@pytest.mark.parametrize("function", [torch.nn.functional.elu, torch.nn.functional.celu])
def test_loops_of_elu_keep_nan(function: Any) -> None:
    compiled = torch.compile(function)
    for _ in range(3):
        a = torch.full((40_000,), math.nan, requires_grad=True)
        compiled(a).backward(torch.ones(40_000))
    assert a.grad is not None and bool(a.grad.isnan().all())


def test_loops_of_the_logarithm_take_the_largest_numbers() -> None:
    for value in (2.0**125, 2.0**126, 2.0**127, 3e38, float(numpy.finfo("f").max), 1e-45, 1e-38):
        a = torch.full((40_000,), value)
        assert third_call(torch.log, a)[0].item() == pytest.approx(math.log(a[0].item()), rel=2e-7)


def test_writes_of_inference_tensors_are_repeated() -> None:
    compiled = torch.compile(lambda x: torch.nn.functional.relu(x, inplace=True) * 2 - 1)
    with torch.inference_mode():
        for _ in range(4):
            x = torch.full((40_000,), -1.0)
            assert compiled(x)[0] == -1 and x[0] == 0


def test_replay_of_a_pure_function_requires_the_same_identities() -> None:
    compiled = torch.compile(lambda q, k: (q * k).tanh() + q, pure=True)
    a, b = torch.ones(40_000), torch.zeros(40_000)
    for _ in range(4):
        assert compiled(a, a)[0].item() == pytest.approx(1 + math.tanh(1))
    assert compiled(a, b)[0] == 1


def test_replay_of_a_pure_function_creates_its_results() -> None:
    def function(x: Any) -> Any:
        zeros = torch.zeros(40_000)
        return (x + zeros) * 2, zeros

    compiled = torch.compile(function, pure=True)
    for _ in range(4):
        doubled, zeros = compiled(torch.ones(40_000))
        assert doubled[0] == 2
        zeros.add_(1)


def test_arguments_that_are_not_used_may_be_stale_views() -> None:
    base = torch.ones(2, 3, requires_grad=True) * 1
    view = base.unbind(0)[0]
    base.mul_(2)
    assert torch.equal(torch.compile(lambda v, w: w * 2)(view, torch.ones(3)), torch.full((3,), 2.0))


# -- Re-entrancy, interrupts and threads


def _deferred(a: Any, held: list[Any]) -> Any:
    """Return a function of ``a`` with two segments; ``held`` gets a pending result, which handlers read."""
    b = a * 2
    held[:] = [b]
    c = (b + 1).exp() + torch.arange(3)
    first, rest = c.split([1, 2])
    d = rest.sum() * a + first * 0
    a.add_(1)
    return (d + a).tanh() + b, c


def _handlers(held: list[Any]) -> dict[str, Any]:
    """Return functions that compute with tensors within the library: as operations of the program, or otherwise."""
    x, y = torch.ones(3), torch.zeros(3)
    return {
        "equal": lambda: (held[0] + 1).exp() if held else x * 2,
        "other": lambda: (x * 3).sin() @ x,
        "read": lambda: held[0].tolist() if held else None,
        "write": lambda: held[0].add_(0) if held else y.add_(1),
        "mode": lambda: _half(x) if torch.is_grad_enabled() else x,
        "compiled": torch.compile(lambda: (x * 2 + 1).tanh()),
    }


class _Calls:
    """Trace function that calls ``handler`` at the n-th of the places in the package where the interpreter may do so.

    It runs signal handlers after calls, at the start of a function and at the end of a loop, and collects garbage when
    it allocates a container.
    """

    PLACES = ("CALL", "RESUME", "JUMP_BACKWARD", "BUILD_")

    def __init__(self, n: int, handler: Any) -> None:
        self.n, self.count, self.handler = n, 0, handler
        self.last: dict[Any, int] = {}

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if "__retrograd__" not in frame.f_globals:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "opcode":
            before = self.last.get(frame)
            self.last[frame] = frame.f_code.co_code[frame.f_lasti]
            if before is not None and dis.opname[before].startswith(self.PLACES):
                self.count += 1
                if self.count == self.n:
                    self.last.clear()
                    self.handler()
        elif event == "return":
            self.last.pop(frame, None)
        return self.step


def _matches(found: Any, held: list[Any], expected: Any) -> None:
    for one, two in zip((*found, *held), (*expected, torch.full((3,), 2.0)), strict=True):
        close(one, two)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", _handlers([]))
def test_handlers_that_compute_at_any_place(name: str, recorded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_loops(monkeypatch, False)
    held: list[Any] = []
    compiled, handler = torch.compile(_deferred), _handlers(held)[name]
    expected, before = _deferred(torch.ones(3), []), sys.gettrace()
    for _ in range(3):
        _matches(compiled(torch.ones(3), held), held, expected)
    calls, n = _Calls(0, None), 1
    while calls.count >= calls.n:
        if recorded:
            compiled._compiled.forget()
        held.clear()
        calls = _Calls(n, handler)
        sys.settrace(calls)
        try:
            found = compiled(torch.ones(3), held)
        finally:
            sys.settrace(before)
        _matches(found, held, expected)
        assert not HANDLERS
        n += 17 if recorded else 3


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("name", _handlers([]))
def test_signal_handlers_that_compute(name: str) -> None:
    held: list[Any] = []
    compiled, handler = torch.compile(_deferred), _handlers(held)[name]
    expected = _deferred(torch.ones(3), [])
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    try:
        for turn in range(150):
            held.clear()
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + turn))
            _matches(compiled(torch.ones(3), held), held, expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_contexts_of_a_call_in_other_threads() -> None:
    """A thread runs the context of the call, and calls the function that the call is expected to call."""
    found: list[Any] = []

    def elsewhere(a: Any) -> None:
        b = a * 2
        with torch.no_grad(), torch.inference_mode(), torch.autocast("cpu"):
            found.append(type(b) is torch.Tensor and (b + 1).tolist())

    def function(a: Any) -> Any:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(elsewhere, a))
        thread.start()
        thread.join()
        b = a * 2
        thread = threading.Thread(target=contextvars.copy_context().run, args=(elsewhere, a))
        thread.start()
        thread.join()
        return b + 1

    compiled = torch.compile(function)
    for _ in range(3):
        assert compiled(torch.ones(3)).tolist() == [3.0] * 3
    assert found == [[3.0] * 3] * 6


def test_calls_of_one_function_in_several_threads() -> None:
    compiled, failures = torch.compile(_deferred), []

    def calls(seed: int) -> None:
        try:
            for turn in range(60):
                a, held = torch.full((3,), float(seed)), []
                again = a.clone()
                with torch.set_grad_enabled(turn % 2 == 0):
                    for one, two in zip(compiled(a, held), _deferred(again, []), strict=True):
                        close(one, two)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert not HANDLERS


def test_long_functions_are_recorded_in_linear_time() -> None:
    def function(a: Any, count: int) -> Any:
        kept = [a]
        for _ in range(count):
            kept.append(kept[-1] * 1.5)
        return kept[-1]

    compiled = torch.compile(function)
    a = torch.ones(2) / 8
    for _ in range(3):
        assert torch.equal(compiled(a, 3000), function(a, 3000))
    assert compiled._compiled.count == MAX_ENTRIES
    assert "too many" in explained(compiled).eager_reasons[0]
    places = Places([])
    for each in range(2000):
        places.add(a * each)  # freed at once: the next tensor has the same identity
    assert len(places._by_id) < 100
    assert places.find(a, [a]) == 2000


# -- Whole calls -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [torch.func.hessian, torch.func.grad, torch.func.jacrev, torch.func.jacfwd])
def test_pure_transforms_are_replayed_without_their_python(transform: Any) -> None:
    calls = []

    def f(x: Any, power: int = 2) -> Any:
        calls.append(power)
        return (x**power).sum() * x[0].exp() + x.sin().prod()

    derivative = torch.compile(transform(f), pure=True)
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    derivative(x)
    count = len(calls)
    for point in (x, x * 2, x + 1):
        found, expected = derivative(point), transform(f)(point)
        assert found.stride() == expected.stride() and not found.requires_grad and type(found) is torch.Tensor
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
        assert derivative(point).data_ptr() != found.data_ptr()
    assert len(calls) == count + 3  # those without compilation
    torch.testing.assert_close(derivative(x, 3), transform(f)(x, 3), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(derivative(x), transform(f)(x), rtol=1e-13, atol=1e-13)


def test_whole_calls_see_changes_of_tensors_and_modes() -> None:
    scale = torch.ones(3)
    frozen = torch.nn.Linear(3, 3).requires_grad_(False)

    def f(x: Any) -> Any:
        return (frozen(x * scale).tanh() ** 2).sum()

    derivative = torch.compile(torch.func.hessian(f), pure=True)
    x = torch.tensor([0.5, -1.0, 2.0])
    for change in (lambda: None, lambda: scale.mul_(2), lambda: frozen.weight.mul_(0.5), lambda: None):
        change()
        for _ in range(2):
            torch.testing.assert_close(derivative(x), torch.func.hessian(f)(x))
    with torch.no_grad():
        torch.testing.assert_close(derivative(x), torch.func.hessian(f)(x))
    for batch in (
        torch.func.vmap(derivative)(torch.stack([x, x])),
        torch.func.vmap(torch.func.hessian(f))(torch.stack([x, x])),
    ):
        torch.testing.assert_close(batch[0], torch.func.hessian(f)(x))


def test_whole_calls_keep_the_graph() -> None:
    weight = torch.ones(3, requires_grad=True)
    derivative = torch.compile(torch.func.grad(lambda x: (weight * x**3).sum()), pure=True)
    for _ in range(3):
        found = derivative(torch.ones(3))
        assert found.requires_grad
        assert torch.autograd.grad(found.sum(), weight)[0].tolist() == [3.0] * 3
    leaf = torch.ones(3, requires_grad=True)
    cubes = torch.compile(torch.func.grad(lambda x: (x**3).sum()), pure=True)
    cubes(torch.ones(3))
    for _ in range(2):
        assert torch.autograd.grad(cubes(leaf).sum(), leaf)[0].tolist() == [6.0] * 3


def test_results_of_pure_functions_have_the_order_of_the_arguments() -> None:
    def f(a: torch.Tensor) -> torch.Tensor:
        return (a * 2 + 1) * a

    compiled = torch.compile(f, pure=True)
    rows = torch.arange(6.0).reshape(2, 3)
    for given in (rows, rows.t().contiguous().t(), rows):
        for _ in range(3):
            assert compiled(given).stride() == f(given).stride() and torch.equal(compiled(given), f(given))
