"""``torch.func``: compared with PyTorch's record, with loops, and every combination of derivatives with the others."""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.dispatch.op import OPS
from retrograd.dispatch.transform_tensor import active_levels
from retrograd.func import functional_call, hessian, jacfwd, jacrev, stack_module_state, vmap, vmap_rules
from retrograd.utils import _pytree
from retrograd.utils.checkpoint import checkpoint
from tests.conformance.golden import load
from tests.conformance.sample_derivatives import weighted_sum
from tests.conformance.samples import FAMILIES, Sample, samples
from tests.conformance.test_operations import golden
from tests.conformance.transform_cases import EXPRESSIONS, outcome
from tests.unit.interrupts import interrupt_at_every_call

RECORD = load("transforms")


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore")
def test_results_match_pytorch(expression: str) -> None:
    expected, got = RECORD[expression], outcome(torch, expression)
    if expression in BEYOND:
        assert "leaves" in got
        return
    if "error" in expected:
        assert got.get("error", [""])[0] == expected["error"][0], got
        assert got["error"][1].startswith(expected["error"][1].partition("TreeSpec")[0])
        return
    assert "leaves" in got, got
    assert len(got["leaves"]) == len(expected["leaves"])
    for one, wanted in zip(got["leaves"], expected["leaves"], strict=True):
        if isinstance(wanted, str):
            assert one == wanted
            continue
        assert one[:3] == wanted[:3]
        numpy.testing.assert_allclose(one[3], wanted[3], 1e-5, 1e-6)


#: Calls that fail in PyTorch and work in retrograd.
BEYOND = {
    'vmap(lambda a, b: {"s": a + b, "t": (a, b)}, in_dims=({"u": 0}["u"], None), out_dims=1)(x, x[0])',
    "vmap(lambda a, k: a[k], in_dims=(0, 0))(x, i)",
}


# --- vmap and loops ---------------------------------------------------------------------------------------------------

#: Calls that work in a loop and raise under vmap, as in PyTorch: data-dependent shapes, ``item()``.
REFUSED = (
    "dynamic shape|data-dependent|randomness|running_mean or running_var|not implemented for aten|random operation"
)
#: Samples in which slices differ from separate tensors: strides, memory, the order of random numbers.
SKIPPED = (
    "as_strided", "fractional", "manual_seed", "out=", "embedding_renorm_", "empty", "torch.batch_norm(",
    "sqrt(torch.max(x) - 3)",  # an infinite gradient of equal maxima: vmap of max() is amax(), also in PyTorch not the same
)  # fmt: skip


def batches(sample: Sample, count: int = 2) -> list[dict[str, numpy.ndarray]]:
    """Return inputs for several calls of a sample."""
    found = []
    for seed in range(count):
        rng = numpy.random.default_rng(zlib.crc32(sample.expression.encode()) + seed)
        found.append({name: numpy.asarray(recipe(rng)) for name, recipe in sample.inputs.items()})
    return found


def leaves_of(sample: Sample, sets: list[dict[str, numpy.ndarray]], sliced: list[str], dim: int) -> dict[str, Any]:
    found = {}
    for name, array in sets[0].items():
        found[name] = torch.tensor(numpy.stack([each[name] for each in sets], dim) if name in sliced else array)
        if sample.smooth and array.dtype.kind in "fc":
            found[name].requires_grad_()
    return found


def gradients(outs: list[Any], tensors: dict[str, Any]) -> list[Any]:
    total = weighted_sum(torch, outs)
    wanted = [each for each in tensors.values() if each.requires_grad]
    if not wanted or not getattr(total, "requires_grad", False):
        return []
    return list(torch.autograd.grad(total, wanted, allow_unused=True))


def same(one: Any, other: Any) -> bool:
    zero = numpy.zeros(1)
    a, b = (zero if each is None else each.detach().numpy() for each in (one, other))
    return numpy.allclose(a, b, 1e-6, 1e-8, equal_nan=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("first", [False, True], ids=["all", "one"])
@pytest.mark.filterwarnings("ignore")
def test_vmap_matches_a_loop(family: str, first: bool) -> None:
    """Every sample, with all inputs batched along their first dimension, or one along its last; values and gradients."""
    wrong = []
    for sample in samples(family):
        names = list(sample.inputs)
        if not names or (first and len(names) == 1) or any(each in sample.expression for each in SKIPPED):
            continue
        sliced, dim = (names[:1], -1) if first else (names, 0)
        sets = batches(sample)
        tensors = leaves_of(sample, sets, sliced, dim)
        try:
            rows = [
                sample.evaluate(torch, {n: t.select(dim, i) if n in sliced else t for n, t in tensors.items()})
                for i in range(2)
            ]
            expected = [torch.stack(list(column)) for column in zip(*rows, strict=True)]
            slopes = gradients(expected, tensors)
        except Exception:
            continue
        again = leaves_of(sample, sets, sliced, dim)
        try:
            got = vmap(
                lambda *given, sample=sample, names=names: tuple(
                    sample.evaluate(torch, dict(zip(names, given, strict=True)))
                ),
                in_dims=tuple(dim if each in sliced else None for each in names),
            )(*again.values())
        except RuntimeError as error:
            if not any(part in str(error) for part in REFUSED.split("|")):
                wrong.append(f"{sample.expression}: {error}")
            continue
        pairs = [*zip(got, expected, strict=True), *zip(gradients(list(got), again), slopes, strict=False)]
        if not all(same(*pair) for pair in pairs):
            wrong.append(sample.expression)
    assert not wrong


# --- Derivatives in every combination ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_forward_and_reverse_agree_to_second_order(family: str) -> None:
    """Jacobians of both modes, Hessians of all four combinations, on every fourth sample of real numbers."""
    wrong = []
    chosen = [each for each in samples(family) if each.smooth and not each.named][::4]
    for sample in chosen:
        arrays = sample.arrays()
        record = golden(family).get(sample.expression, {})
        names = [name for name, array in arrays.items() if array.dtype.kind == "f"]
        if (
            {"error", "refused"} & record.keys()
            or not names
            or arrays[names[0]].size > 20
            or any(array.dtype.kind == "c" for array in arrays.values())
            or any(each in sample.expression for each in (*SKIPPED, "slice_inverse", "None, None", "sinc"))
        ):
            continue
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}

        def outs(x: Any, sample: Sample = sample, names: list[str] = names, tensors: Any = tensors) -> Any:
            found = sample.evaluate(torch, {**tensors, names[0]: x})
            real = [torch.real(each) + 0.5 * torch.imag(each) if each.is_complex() else each for each in found]
            return tuple(each for each in real if each.is_floating_point())

        def total(x: Any, outs: Any = outs) -> Any:
            return sum(
                ((each * torch.arange(1.0, each.numel() + 1).cos().reshape(each.shape)).sum() for each in outs(x)),
                torch.zeros(()),
            )

        x = tensors[names[0]]
        try:
            found = all(map(same, jacrev(outs)(x), jacfwd(outs)(x)))
            first, *rest = [outer(inner(total))(x) for outer in (jacrev, jacfwd) for inner in (jacrev, jacfwd)]
            if not (found and all(same(first, each) for each in rest)):
                wrong.append(sample.expression)
        except RuntimeError as error:
            if not any(part in str(error) for part in REFUSED.split("|")):
                wrong.append(f"{sample.expression}: {error}")
    assert not wrong


def test_deep_nesting() -> None:
    function, x = torch.sin, torch.tensor(0.7, dtype=torch.float64)
    for order in range(1, 6):
        outer = [torch.func.grad, lambda f: lambda a: torch.func.jvp(f, (a,), (torch.ones_like(a),))[1], jacrev, jacfwd]
        function = outer[order % 4](function)
        assert float(function(x)) == pytest.approx(float(numpy.sin(0.7 + order * numpy.pi / 2)))


def test_captured_tensors_get_gradients_outside_and_state_is_kept() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    slope, value = torch.func.grad_and_value(lambda a: (a * w * w).sum())(x)
    assert slope.requires_grad and value.requires_grad and not x.requires_grad
    slope.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]
    with torch.no_grad():
        assert not torch.func.grad(lambda a: (a * w).sum())(x).requires_grad


def test_vmap_fallback_warns_and_names_the_operation() -> None:
    with pytest.warns(UserWarning, match=r"vmap: renorm runs slice by slice"):
        vmap(lambda a: torch.renorm(a, 2, 0, 1.0))(torch.ones(2, 3, 3))


# --- Modules ----------------------------------------------------------------------------------------------------------


def test_functional_call() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 3) for _ in range(3)]
    x = torch.randn(4, 2)
    params, buffers = stack_module_state(layers)
    assert params["weight"].shape == (3, 3, 2) and params["weight"].is_leaf and params["weight"].requires_grad
    got = vmap(lambda p, b: functional_call(layers[0], (p, b), x))(params, buffers)
    assert same(got, torch.stack([each(x) for each in layers]))
    per_sample = vmap(
        torch.func.grad(lambda p, a: functional_call(layers[0], p, (a,)).square().sum()), in_dims=(None, 0)
    )(dict(layers[0].named_parameters()), x)
    for i in range(4):
        layers[0].zero_grad()
        layers[0](x[i]).square().sum().backward()
        assert same(per_sample["weight"][i], layers[0].weight.grad)
    norm = torch.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input"):
        vmap(norm)(torch.randn(2, 4, 3))
    params, buffers = stack_module_state([torch.nn.BatchNorm1d(3) for _ in range(2)])
    vmap(lambda p, b, a: functional_call(norm, (p, b), a))(params, buffers, x := torch.randn(2, 4, 3))
    assert same(buffers["running_mean"], 0.1 * x.mean(1))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m, p, x: functional_call(m, 3, x), ValueError, "Expected parameter_and_buffer_dicts to be a dict"),
        (
            lambda m, p, x: functional_call(m, [p, 3], x),
            ValueError,
            "Expected all elements of parameter_and_buffer_dicts",
        ),
        (lambda m, p, x: functional_call(m, [p, p], x), ValueError, "appeared in multiple dictionaries"),
        (
            lambda m, p, x: functional_call(m, {"weight": p["weight"]}, x, strict=True),
            RuntimeError,
            "Missing key(s): 'bias'.",
        ),
        (lambda m, p, x: functional_call(m, {**p, "z": x}, x, strict=True), RuntimeError, "Unexpected key(s): 'z'."),
        (lambda m, p, x: functional_call(m, {"weight": 3}, x), TypeError, "3 is not an instance of torch.Tensor"),
        (lambda m, p, x: functional_call(m, {"d.q": x}, x), AttributeError, "Linear has no attribute `d`"),
        (lambda m, p, x: stack_module_state([]), RuntimeError, "Expected at least one model, got 0."),
    ],
)
def test_errors_of_functional_call(call: Any, kind: type[Exception], text: str) -> None:
    module = torch.nn.Linear(2, 1)
    before = module.weight
    with pytest.raises(kind) as caught:
        call(module, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(1, 2))
    assert text in str(caught.value)
    assert module.weight is before


# --- Trees ------------------------------------------------------------------------------------------------------------


def test_pytrees() -> None:
    tree = {"b": 1, "a": (2, [3, None])}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, None]
    assert _pytree.tree_unflatten(leaves, spec) == tree
    assert repr(spec) == (
        "TreeSpec(dict, ['b', 'a'], [*,\n  TreeSpec(tuple, None, [*,\n    TreeSpec(list, None, [*,\n      *])])])"
    )
    assert _pytree.treespec_pprint(spec) == "{'b': *, 'a': (*, [*, *])}"
    assert _pytree.tree_map(lambda a, b: a + b, (1, [2]), (3, [4])) == (4, [6])
    with pytest.raises(ValueError, match="Node arity mismatch; expected 2, but got 1"):
        _pytree.tree_map(lambda a, b: a, (1, 2), (3,))
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        _pytree.register_pytree_node(tuple, list, tuple)
    assert _pytree.tree_leaves(torch.max(torch.ones(2, 2), 0))[1].tolist() == [0, 0]


def test_errors_leave_no_transform_active() -> None:
    def fails(a: Any) -> Any:
        raise ArithmeticError

    for run in (lambda: vmap(fails)(torch.ones(2)), lambda: hessian(fails)(torch.ones(2))):
        with pytest.raises(ArithmeticError):
            run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (torch.ones(2, requires_grad=True) * 2).sum().backward()


@pytest.mark.parametrize("name", ["grad", "vmap", "jvp"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a generator that is closed
def test_interrupts_leave_no_transform_active(name: str) -> None:
    def run() -> None:
        x = torch.ones(2)
        if name == "jvp":
            torch.func.jvp(torch.sin, (x,), (x,))
        else:
            (torch.func.grad(torch.sum) if name == "grad" else vmap(torch.sin))(x)

    for begin in interrupt_at_every_call(run):
        assert not active_levels(), begin


def test_overlapping_slices_have_separate_gradients() -> None:
    def square(x: Any) -> Any:
        return (x.as_strided((2, 2), (1, 2)) ** 2).sum()

    x = torch.tensor([[0.3, -0.7, 1.2], [-0.4, 0.9, 0.5]])
    expected = torch.diag(torch.tensor([2.0, 2.0, 2.0, 2.0, 0.0, 0.0])).reshape(2, 3, 2, 3)
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            assert torch.equal(outer(inner(square))(x), expected)


def test_shared_mask_selects_from_each_slice() -> None:
    mask = torch.tensor([True, False, True])
    x = torch.arange(12.0).reshape(2, 2, 3)
    assert torch.equal(vmap(lambda row: row.masked_select(mask))(x), x[:, :, mask].reshape(2, -1))
    grad = vmap(torch.func.grad(lambda row: (row.masked_select(mask) ** 2).sum()))(x)
    assert torch.equal(grad, 2 * x * mask)
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(torch.masked_select)(x, x > 3)


@pytest.mark.parametrize("computed", [False, True])
def test_forward_over_reverse_of_a_tangent_in_the_outer_graph_can_be_differentiated(computed: bool) -> None:
    """The values are PyTorch's; a part that does not depend on what requires gradients is outside the graph."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    given = x * 1 if computed else x
    gradient = torch.func.grad(lambda a: (a**3).sum())
    both = torch.func.jvp(gradient, (given,), (given,))
    assert [each.requires_grad for each in both] == [True, True]
    assert torch.autograd.grad(both[0].sum(), x, retain_graph=True)[0].tolist() == [6.0, 12.0]
    assert torch.autograd.grad(both[1].sum(), x, retain_graph=True)[0].tolist() == [12.0, 24.0]
    constant = torch.tensor([1.0, 2.0])
    pushed = torch.func.jvp(gradient, (constant,), (given,))
    assert [each.requires_grad for each in pushed] == [False, True]
    assert torch.autograd.grad(pushed[1].sum(), x, retain_graph=True)[0].tolist() == [6.0, 12.0]
    rows = torch.func.vmap(lambda step: torch.func.jvp(gradient, (constant,), (step,))[1])(given.expand(2, 2))
    assert torch.autograd.grad(rows.sum(), x)[0].tolist() == [12.0, 24.0]


def test_nested_gradients_of_a_tensor_whose_leaf_is_gone() -> None:
    x = torch.tensor(2.0, requires_grad=True).exp()
    second = torch.func.grad(lambda b: torch.func.grad(lambda a: a**3)(b))(x)
    assert second.item() == pytest.approx(44.334335)
    third = torch.func.grad(torch.func.grad(torch.func.grad(lambda a: a**4)))(x)
    assert third.item() == pytest.approx(24 * x.item())


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("grad(lambda a: (a**3).sum())(x)", [3.0, 12.0]),
        ("jvp(lambda a: a**3, (x,), (x,))[1]", [3.0, 24.0]),
        ("hessian(lambda a: (a**3).sum())(x)", [[6.0, 0.0], [0.0, 12.0]]),
        ("vmap(torch.func.grad(lambda a: a**3))(x)", [3.0, 12.0]),
        ("jacrev(lambda a: a**3)(x)", [[3.0, 0.0], [0.0, 12.0]]),
        ("jacfwd(lambda a: a**3)(x)", [[3.0, 0.0], [0.0, 12.0]]),
        ("vjp(lambda a: a**3, x)[1](x)[0]", [3.0, 24.0]),
        ("linearize(lambda a: a**3, x)[1](x)", [3.0, 24.0]),
        ("grad(torch.func.grad(lambda a: a**3))(x[0])", 6.0),
    ],
)
def test_transforms_within_inference_mode(call: str, values: Any) -> None:
    """The values are PyTorch's, but for ``linearize``, which gives zeros there."""
    x = torch.tensor([1.0, 2.0])
    with torch.inference_mode():
        found = eval(f"torch.func.{call}", {"torch": torch, "x": x})
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
    assert found.tolist() == values
    assert not found.requires_grad


def test_transforms_differentiate_tensors_created_in_inference_mode() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        assert torch.func.grad(lambda a: (a**2).sum())(x).tolist() == [2.0, 2.0]
        assert torch.func.vjp(lambda a: a * 3, x)[1](x)[0].tolist() == [3.0, 3.0]
        assert torch.func.hessian(lambda a: (a**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 6.0]]
        assert torch.vmap(torch.func.grad(lambda a: a**2))(x).tolist() == [2.0, 2.0]


def test_every_vmap_rule_is_of_an_operation_or_a_kind() -> None:
    """A rule whose name is misspelt would never be used, and the operation would run slice by slice."""
    kinds = {each.vmap for each in OPS.values() if isinstance(each.vmap, str)}
    undeclared = {"elementwise", "leading", "matrices", "rows", "shared", "unknown"}
    assert set(vmap_rules.RULES) <= set(OPS) | kinds | undeclared


def test_hessian_of_a_function_of_captured_tensors() -> None:
    x = torch.tensor([[0.5, -0.25, 1.25], [0.75, 1.5, -0.5]], dtype=torch.float64)
    w = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64, requires_grad=True)

    def cube(a: Any) -> Any:
        return (a * a * a + w[0]).sum()

    expected = torch.autograd.functional.hessian(cube, x)
    assert expected.abs().sum() > 0 and torch.allclose(torch.func.hessian(cube)(x), expected)


def test_writes_through_views_of_slices_that_are_numbers() -> None:
    def written(a: Any) -> Any:
        b = a.squeeze(0).transpose(0, 0).reshape(())
        b.mul_(3)
        return a * 1

    assert torch.equal(vmap(written)(torch.ones(3)), torch.full((3,), 3.0))


def test_dropout_of_a_number() -> None:
    assert torch.nn.functional.dropout(torch.tensor(2.0), 0.5).item() in (0.0, 4.0)


def test_checkpoints_in_reverse_mode_transforms() -> None:
    """PyTorch refuses saved-tensor hooks in ``torch.func.grad``, and so these checkpoints."""

    def plain(x: Any) -> Any:
        return (x.exp() * x.sin()).sum()

    def with_checkpoint(x: Any) -> Any:
        return checkpoint(plain, x, use_reentrant=False)

    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    for transform in (torch.func.grad, torch.func.jacrev, torch.func.hessian):
        assert torch.equal(transform(with_checkpoint)(x), transform(plain)(x))
