"""Programs of segments: random pure straight-line functions give the results and gradients of eager mode."""

from __future__ import annotations

import gc
import itertools
import random
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd import nn
from retrograd.compiler.recorder import Unrecorded
from retrograd.compiler.segment_program import SegmentProgram, compile_segment
from retrograd.core.lazy_tensor import Lazy
from retrograd.core.tensor import new
from tests.conformance.samples import FAMILIES, samples
from tests.loops import use_loops


def ran(program: SegmentProgram, inputs: list[Any]) -> list[Any]:
    """Run ``program`` and return its results."""
    results: list[Any] = [new(Lazy) for _ in program.forward.outputs[: program.count]]
    program.run(inputs, results)
    return results


def copies(inputs: list[Any]) -> list[Any]:
    """Return leaves with the elements of ``inputs``."""
    return [each.detach().clone().requires_grad_(each.requires_grad) for each in inputs]


def close(one: Any, two: Any, where: object = "") -> None:
    """Assert that two tensors, or two absent gradients, agree within rounding."""
    assert (one is None) == (two is None), where
    if one is None:
        return
    assert (one.shape, one.dtype) == (two.shape, two.dtype), where
    rough = one.dtype in (torch.float16, torch.bfloat16)
    one, two = one.detach().double(), two.detach().double()
    size = two.nan_to_num(0, 0, 0).abs().max().item() if two.numel() else 0
    tolerance = 3e-2 if rough else 2e-5
    torch.testing.assert_close(
        one, two, rtol=tolerance, atol=tolerance * size + 1e-7, equal_nan=True, msg=lambda text: f"{where}: {text}"
    )


# -- Random functions --------------------------------------------------------------------------------------------------

UNARY: list[Callable[[Any], Any]] = [
    torch.sin, torch.tanh, torch.sigmoid, torch.relu, torch.neg, torch.square,
    lambda a: a * 2, lambda a: a + 1, lambda a: 3 - a, lambda a: a / 4, lambda a: (a * a + 1).sqrt(), lambda a: a.abs().log1p(),
    lambda a: (-a.abs()).exp(), lambda a: a.clamp(-0.5, 0.5), nn.functional.gelu, nn.functional.silu,
    lambda a: a.detach(), lambda a: a.sign(), lambda a: a**3, lambda a: torch.where(a > 0, a, a * 0.1),
    lambda a: a.double(), lambda a: a.to(torch.float32),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    torch.add, torch.sub, torch.mul, lambda a, b: a / (b * b + 1), torch.maximum, lambda a, b: torch.where(a > b, a, b),
    lambda a, b: torch.add(a, b, alpha=2), lambda a, b: a * b.sigmoid(),
]  # fmt: skip
MATRIX: list[Callable[[Any], Any]] = [
    lambda a: a.softmax(-1), lambda a: a.log_softmax(-1), lambda a: nn.functional.layer_norm(a, a.shape[-1:]),
    lambda a: a.sum(0), lambda a: a.mean(1, keepdim=True), lambda a: a.sum(), lambda a: a.amax(1), lambda a: a.t(),
    lambda a: a.t().reshape(-1), lambda a: a[1:], lambda a: a[0], lambda a: a.var(1), lambda a: a.cumsum(1),
    lambda a: a @ a.t(), lambda a: a[torch.tensor([0, 2, 0])], lambda a: torch.cat([a, a * 2], 0),
    lambda a: torch.stack([a, a], 0).sum(0), lambda a: a.unsqueeze(0).expand(2, *a.shape).sum(0),
    lambda a: nn.functional.cross_entropy(a, torch.arange(a.shape[0]) % a.shape[1]), lambda a: a.t().sin(),
    lambda a: nn.functional.mse_loss(a, a.detach() * 0.5), lambda a: a.reshape(-1, 1) * 2,
]  # fmt: skip


class Program:
    """Random function of tensors, the same in every call: a list of steps, and the places of its results."""

    def __init__(self, seed: int, size: int = 12) -> None:
        self.pick = random.Random(seed)
        numbers = numpy.random.default_rng(seed)

        def leaf(*shape: int, grad: bool = True, dtype: str = "float32") -> Any:
            made = torch.tensor(numpy.asarray(numbers.standard_normal(shape).astype(dtype)))
            return made.requires_grad_(grad)

        wide = "float64" if self.pick.random() < 0.2 else "float32"
        rows = self.pick.choice([3, 4, 20])
        self.inputs = [
            leaf(rows, 5), leaf(5), leaf(5, 5, dtype=wide), leaf(), leaf(rows, 1, grad=False), leaf(rows, 5),
        ]  # fmt: skip
        self.steps: list[tuple[Any, tuple[int, ...]]] = []
        values = list(self.inputs)
        with torch.no_grad():
            while len(self.steps) < size:
                step = self.drawn(values)
                if step is not None:
                    self.steps.append(step)
                    values.append(step[0](*[values[each] for each in step[1]]))
        own = range(len(self.inputs), len(values))
        self.live = sorted(self.pick.sample(own, min(size, self.pick.choice([1, 2, 2, 3, 4]))))
        views = set(self.views(copies(self.inputs)))
        self.live = [each for each in self.live if each not in views] or [own[-1]] * (own[-1] not in views)

    def drawn(self, values: list[Any]) -> Any:
        """Return a random step that the shapes of ``values`` admit, or None."""
        recent = max(0, len(values) - 5)
        a, b = (self.pick.randrange(recent if self.pick.random() < 0.6 else 0, len(values)) for _ in range(2))
        kind = self.pick.random()
        step = (
            (self.pick.choice(UNARY), (a,)) if kind < 0.45
            else (self.pick.choice(BINARY), (a, b)) if kind < 0.75
            else (torch.matmul, (a, b)) if kind < 0.8
            else (self.pick.choice(MATRIX), (a,))
        )  # fmt: skip
        try:
            found = step[0](*[values[each] for each in step[1]])
        except Exception:  # the shapes do not fit
            return None
        return step if found.numel() < 2000 else None

    def values(self, inputs: Any) -> list[Any]:
        """Return ``inputs`` and the results of all steps."""
        found = list(inputs)
        for function, places in self.steps:
            found.append(function(*[found[each] for each in places]))
        return found

    def views(self, inputs: Any) -> list[int]:
        """Return the places of the values that are inputs, views or the same tensor as another."""
        found = self.values(inputs)
        return [
            place
            for place, each in enumerate(found)
            if each._is_view() or any(each is one for one in found[:place])
            or any(numpy.may_share_memory(each._array, one._array) for one in found[:place])
        ]  # fmt: skip

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        found = self.values(inputs)
        return tuple(found[each] for each in self.live)


def attempt(function: Callable[[], Any]) -> Any:
    """Return the result of ``function``, or the beginning of its error's message."""
    try:
        return function()
    except RuntimeError as error:
        return str(error)[:40]


def gradients_of(outs: Any, weights: Any, inputs: Any, which: Any) -> list[Any]:
    for each in inputs:
        each.grad = None
    torch.autograd.backward([outs[k] for k in which], [weights[k] for k in which])
    return [each.grad for each in inputs]


class Pair:
    """A random program run by the segment's program and in eager mode, on equal inputs."""

    def __init__(self, seed: int, size: int = 12) -> None:
        self.seed = seed
        self.function = Program(seed, size)
        self.program = compile_segment(self.function, copies(self.function.inputs)) if self.function.live else None

    def turn(self) -> list[tuple[list[Any], list[Any]]]:
        """Return inputs and results, of the segment's program and of eager mode."""
        mine, theirs = copies(self.function.inputs), copies(self.function.inputs)
        assert self.program is not None
        return [(mine, ran(self.program, mine)), (theirs, list(self.function(*theirs)))]

    def check(self) -> None:
        if self.program is None:
            return
        ((_, outs), (_, expected)) = self.turn()
        for one, two in zip(outs, expected, strict=True):
            close(one, two, self.seed)
            assert one.requires_grad == two.requires_grad and one.stride() == two.stride()
            assert one.is_leaf == two.is_leaf
        graded = [index for index, each in enumerate(expected) if each.requires_grad]
        weights = [torch.randn_like(each) if each.is_floating_point() else None for each in expected]
        for count in range(1, len(graded) + 1):
            for which in itertools.combinations(graded, count):
                found = [gradients_of(outs, weights, inputs, which) for inputs, outs in self.turn()]
                self.same(found, ("gradients", which))
        if graded:
            self.check_order(graded, weights)
            self.check_hooks(graded, weights)
            self.check_second(graded, weights)
            self.check_writes(graded, weights)

    def same(self, found: list[list[Any]], where: object) -> None:
        for place, (one, two) in enumerate(zip(*found, strict=True)):
            if isinstance(one, str) or isinstance(two, str):
                assert isinstance(one, str) and isinstance(two, str) and one == two, (self.seed, where, one, two)
            else:
                close(one, two, (self.seed, where, place))

    def check_order(self, graded: list[int], weights: Any) -> None:
        """One backward pass after another, with and without ``retain_graph``."""
        for retain in (False, True):
            found = []
            for inputs, outs in self.turn():
                texts = [attempt(partial(outs[k].backward, weights[k], retain)) for k in (*graded, graded[0])]
                found.append([*texts, *[each.grad for each in inputs]])
            self.same(found, ("in turn", retain))

    def check_hooks(self, graded: list[int], weights: Any) -> None:
        """Hooks of results, retained gradients, and gradients of one result with respect to another."""
        found = []
        for inputs, outs in self.turn():
            seen: list[Any] = []
            for k in graded:
                outs[k].retain_grad()
                outs[k].register_hook(lambda g, seen=seen, k=k: (seen.append((k, g)), g * 2)[1])
            gradients_of(outs, weights, inputs, graded)
            inner = [outs[k].grad for k in graded]
            order = [k for k, _ in seen]
            found.append(
                [*[g for _, g in sorted(seen, key=lambda each: each[0])], *inner, *[each.grad for each in inputs]]
            )
        self.same(found, "hooks")
        del order
        for k in graded[:-1]:
            found = [
                list(
                    torch.autograd.grad(
                        [outs[graded[-1]]], [outs[k], *[each for each in inputs if each.requires_grad]],
                        [weights[graded[-1]]], allow_unused=True,
                    )
                )
                for inputs, outs in self.turn()
            ]  # fmt: skip
            self.same(found, ("gradients of a result", k))

    def check_second(self, graded: list[int], weights: Any) -> None:
        """Gradients of gradients."""
        for which in [*[[k] for k in graded], graded]:
            found = []
            for inputs, outs in self.turn():
                leaves = [each for each in inputs if each.requires_grad]
                first = torch.autograd.grad(
                    [outs[k] for k in which], leaves, [weights[k] for k in which], create_graph=True, allow_unused=True
                )
                total = sum((each.double() ** 2).sum() for each in first if each is not None)
                second = (
                    torch.autograd.grad(total, leaves, allow_unused=True)
                    if isinstance(total, torch.Tensor) and total.requires_grad
                    else [None]
                )
                found.append([*first, *second])
            self.same(found, ("second", which))

    def check_writes(self, graded: list[int], weights: Any) -> None:
        """A write to an input or a result before the backward pass."""
        count = len(self.function.inputs)
        for place in range(count + len(self.function.live)):
            found = []
            for inputs, outs in self.turn():
                with torch.no_grad():
                    ([*inputs, *outs][place]).mul_(2)
                texts = attempt(partial(gradients_of, outs, weights, inputs, graded))
                found.append([texts] if isinstance(texts, str) else texts)
            self.same(found, ("write", place))


@pytest.mark.parametrize("seed", range(30))
def test_random_functions_match_eager(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 10:  # loops take a second to compile
        use_loops(monkeypatch, False)
    torch.manual_seed(seed)
    Pair(seed, 4 + seed % 12).check()


def program_of(function: Callable[..., Any], *inputs: Any) -> SegmentProgram:
    return compile_segment(function, list(inputs))


def leaves(*shapes: tuple[int, ...]) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def test_results_with_separate_graphs_have_separate_nodes() -> None:
    """A backward pass of one result neither passes zeros to the inputs of another nor frees what it has saved."""
    x, y = leaves((3,), (3,))
    program = program_of(lambda x, y: (x.exp() * 2, y.exp() * 3), x, y)
    one, two = ran(program, [x, y])
    one.sum().backward()
    close(x.grad, one)
    assert y.grad is None
    two.sum().backward()
    close(y.grad, two)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        one.sum().backward()


def test_results_of_one_node_have_programs_of_their_own() -> None:
    x, y = leaves((3,), (3,))
    program = program_of(lambda x, y: (lambda a: (a.sin() * y, a.cos()))(x + 1), x, y)
    assert len(program.parts) == 1
    one, two = ran(program, [x, y])
    two.sum().backward()
    assert y.grad is None
    one.sum().backward()  # the addition, which both share, saves nothing
    close(y.grad, (x + 1).sin())
    assert sorted(program.parts[0].programs) == [(0,), (0, 1), (1,)]
    for each in (one, two):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            each.sum().backward()
    assert one.grad_fn.saved is None


def test_result_without_saved_values_is_differentiated_after_others_are_freed() -> None:
    (x,) = leaves((3,))
    program = program_of(lambda x: (lambda a: (a.exp(), a - 2, -a))(x + 1), x)
    outs = ran(program, [x])
    outs[0].sum().backward()
    assert outs[0].grad_fn.saved is None
    (outs[1] + outs[2] * 2).sum().backward()
    outs[1].sum().backward()
    close(x.grad, (x + 1).exp())


def test_nodes_that_would_depend_on_each_other_are_cut() -> None:
    """Between ``y`` and ``z`` there is a path through a result and one without."""

    def function(x: Any) -> Any:
        a = x.exp()
        y = a * 2
        w = y.sin()
        return y, w, a * y, (w + a).cos()

    (x,) = leaves((4,))
    program = program_of(function, x)
    assert len(program.parts) > 1
    outs, (again,) = ran(program, [x]), copies([x])
    expected = function(again)
    for each in (outs[0], expected[0]):
        each.retain_grad()
        each.register_hook(lambda g: g * 3)
    torch.autograd.backward(outs, [torch.ones_like(x)] * 4)
    torch.autograd.backward(expected, [torch.ones_like(x)] * 4)
    close(x.grad, again.grad)
    close(outs[0].grad, expected[0].grad)


def test_saved_values_are_those_that_writes_protect() -> None:
    """A value that only the program reads is not taken from an input, which may be written to before the backward pass."""
    (x,) = leaves((100,))
    program = program_of(lambda x: ((x + 1).exp().tanh(),), x)
    (y,) = ran(program, [x])
    before = x.detach().clone()
    with torch.no_grad():
        x.zero_()
    y.sum().backward(create_graph=True)
    other = before.requires_grad_()
    (other + 1).exp().tanh().sum().backward()
    close(x.grad, other.grad)


def test_gradient_hooks_of_inputs_run_once() -> None:
    (x,) = leaves((3,))
    program = program_of(lambda x: ((x * x).sum(),), x)
    seen = []
    x.register_hook(lambda g: (seen.append(g), g * 2)[1])
    (y,) = ran(program, [x])
    y.backward(create_graph=True)
    assert len(seen) == 1
    close(x.grad, 4 * x)


def test_run_changes_no_result_if_it_fails() -> None:
    scores, target = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    program = program_of(lambda s, t: (s * 2, nn.functional.cross_entropy(s, t)), scores, target)
    results: list[Any] = [new(Lazy), new(Lazy)]
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        program.run([scores, torch.tensor([0, 7, 0, 0])], results)
    assert all(each.__class__ is Lazy for each in results)


def test_samples_are_freed_without_the_garbage_collector() -> None:
    (x,) = leaves((3,))
    program_of(lambda x: (x.exp(), x.sin()), *copies([x]))
    gc.collect()
    gc.disable()
    try:
        counts = [sys.getrefcount(x._array)]
        program = program_of(lambda x: (x.exp(), x.sin()), x)
        counts.append(sys.getrefcount(x._array))
        outs = ran(program, [x])
        outs[1].sum().backward()
        node = weakref.ref(outs[0].grad_fn)
        del outs
        counts.append(sys.getrefcount(x._array))
        assert len(set(counts)) == 1
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (x.t(),), "result 0 is an input or a view of one"),
        (lambda x: (x,), "result 0 is an input"),
        (lambda x: (lambda y: (y, y.t()))(x * 2), "result 1 shares its memory"),
        (lambda x: (x[x > 0],), "indexing by a mask"),
        (lambda x: (x * x.sum().item(),), "reads elements by item"),
        (lambda x: (x * 2 if x.sum() > 0 else x,), "reads elements by __bool__"),
        (lambda x: ((x * 2).add_(1),), "add_\\(\\) modifies a tensor"),
        (lambda x: (nn.functional.dropout(x),), "random numbers"),
        (lambda x: (torch.rand(2),), "random numbers"),
        (lambda x: (torch.complex(x, x),), "complex numbers"),
    ],
)
def test_functions_that_are_refused(function: Any, reason: str) -> None:
    with pytest.raises(Unrecorded, match=reason):
        program_of(function, torch.ones(2, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (20, 5)])
def test_dtypes_and_shapes(dtype: Any, shape: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        a = (x * 2 + y).tanh()
        return a.sum() * 3, a * x, (a.float() * y.double()).exp()

    inputs = [torch.randn(shape).to(dtype).requires_grad_(), torch.randn(()).to(dtype).requires_grad_()]
    program = program_of(function, *inputs)
    for which in ([0], [1], [2], [0, 1, 2]):
        found = []
        for run in (lambda given: ran(program, given), lambda given: function(*given)):
            given = copies(inputs)
            outs = run(given)
            grads = torch.autograd.grad(
                [outs[k] for k in which], given, [torch.ones_like(outs[k]) for k in which], allow_unused=True
            )
            found.append([*outs, *grads])
        for one, two in zip(*found, strict=True):
            close(one, two)


@pytest.mark.parametrize("recorded", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_modes(recorded: Any) -> None:
    (x,) = leaves((3,))
    with recorded():
        (y,) = ran(program_of(lambda x: (x * 2,), x), [x])
        expected = x * 2
    assert (y.requires_grad, y.is_inference()) == (expected.requires_grad, expected.is_inference())


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_match_eager(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record each sample with some inputs and run it with others: no value may be a constant of the program."""
    use_loops(monkeypatch, False)  # each would compile its own loops
    for sample in samples(family)[:: 4 if family == "indexing" else 12]:
        arrays = sample.arrays()
        if "rand" in sample.expression or "norm(x, m, v" in sample.expression:  # writes running statistics
            continue

        def function(*given: Any, sample: Any = sample, names: Any = tuple(arrays)) -> Any:
            return tuple(sample.evaluate(torch, dict(zip(names, given, strict=True))))

        def inputs(change: Callable[[Any], Any], sample: Any = sample, arrays: Any = arrays) -> list[Any]:
            found = [torch.tensor(change(each)) for each in arrays.values()]
            return [each.requires_grad_(sample.smooth and each.is_floating_point()) for each in found]

        try:
            function(*inputs(_moved))
            program = compile_segment(function, inputs(lambda each: each))
        except Exception:  # calls that fail or cannot be recorded
            continue
        mine, theirs = inputs(_moved), inputs(_moved)
        outs, expected = ran(program, mine), function(*theirs)
        for one, two in zip(outs, expected, strict=True):
            close(one, two, sample.expression)
            assert one.stride() == two.stride() and one.requires_grad == two.requires_grad, sample.expression
        graded = [k for k, each in enumerate(expected) if each.requires_grad]
        for which in [*[[k] for k in graded], graded] if graded else []:
            found = []
            for results, given in ((outs, mine), (expected, theirs)):
                ends, start = [each for each in given if each.requires_grad], [results[k] for k in which]
                weights = [torch.ones_like(each) for each in start]
                grads = [
                    torch.autograd.grad(start, ends, weights, retain_graph=True, create_graph=twice, allow_unused=True)
                    for twice in (False, True)
                ]
                found.append([*grads[0], *grads[1]])
            for one, two in zip(*found, strict=True):
                close(one, two, sample.expression)


def _moved(array: Any) -> Any:
    return array * 1.25 + 0.01 if array.dtype.kind == "f" else numpy.roll(array, 1) if array.size else array
