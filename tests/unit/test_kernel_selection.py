"""The dispatcher of kernels: which variant runs, in which order, and what the choice costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.core import accumulate
from retrograd.kernels import elementwise, numba_dispatch, select, thresholds
from retrograd.kernels.select import NUMBA, at_least, at_most, elementwise_loop, kernel
from retrograd.operations.linalg.matmul import mm
from retrograd.runtime.lazy_functions import SPECIALIZE_AT
from retrograd.runtime.specialization import returned_expression
from tests.loops import use_loops


def answering(answer: Any) -> Callable[..., Any]:
    return lambda np, x, *others: answer


def declared(*variants: Any, operands: int = 1, count: Any = None) -> Any:
    """Return a kernel with ``operands`` operands whose NumPy implementation returns "numpy"."""
    names = ", ".join(f"x{k}" for k in range(operands))
    function = eval(f"lambda np, {names}: 'numpy'")
    return kernel(*variants, count=count)(function)


def test_kernel_without_variants_calls_numpy() -> None:
    assert declared()(numpy, numpy.ones(3)) == "numpy"


@pytest.mark.parametrize("operands", range(1, 10))
def test_limits_are_included(operands: int) -> None:
    choose = declared(at_most(4)(answering("small")), at_least(8)(answering("large")), operands=operands)
    rest = range(operands - 1)
    found = [choose(numpy, numpy.ones(size), *rest) for size in (0, 4, 5, 7, 8, 9)]
    assert found == ["small", "small", "numpy", "numpy", "large", "large"]


@pytest.mark.parametrize("operands", [1, 9])
def test_variant_that_returns_none_is_skipped(operands: int) -> None:
    choose = declared(at_most(4)(answering(None)), at_least(8)(answering(None)), operands=operands)
    assert [choose(numpy, numpy.ones(size), *range(operands - 1)) for size in (2, 6, 9)] == ["numpy"] * 3


def test_variants_are_tried_in_order() -> None:
    choose = declared(at_most(4)(answering(None)), at_most(8)(answering("second")), at_most(8)(answering("third")))
    assert [choose(numpy, numpy.ones(size)) for size in (2, 6, 9)] == ["second", "second", "numpy"]


def test_overlapping_limits_are_tried_in_order() -> None:
    choose = declared(at_least(2)(answering(None)), at_most(8)(answering("small")))
    assert [choose(numpy, numpy.ones(size)) for size in (1, 6, 9)] == ["small", "small", "numpy"]


def test_variant_of_a_missing_library_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for installed, expected in ((True, "loop"), (False, "numpy")):
        monkeypatch.setitem(select.LIBRARIES, NUMBA, lambda size, installed=installed: installed)
        for operands in (1, 9):
            choose = declared(at_least(4, NUMBA)(answering("loop")), operands=operands)
            assert choose(numpy, numpy.ones(4), *range(operands - 1)) == expected
            assert choose(numpy, numpy.ones(3), *range(operands - 1)) == "numpy"


def test_count_is_a_function_of_all_operands() -> None:
    choose = declared(at_most(4)(answering("small")), operands=2, count=lambda a, b: a.size + b.size)
    assert choose(numpy, numpy.ones(2), numpy.ones(2)) == "small"
    assert choose(numpy, numpy.ones(2), numpy.ones(3)) == "numpy"


def test_elementwise_loop_passes_numbers_and_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(select, "looped", lambda *given, numbers: seen.append((given, numbers)))
    elementwise_loop("name", 2, 7.0).function(numpy, "x", "y", 1, 2)
    assert seen == [(("name", "x", "y"), (1, 2, 7.0))]


def test_kernel_keeps_name_and_docstring() -> None:
    @kernel(at_most(4)(answering("small")))
    def doubled(np: Any, x: Any) -> Any:
        """Return ``2 * x``."""
        return 2 * x

    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Return ``2 * x``.")
    assert select.KERNELS[doubled].name.endswith(".doubled")


def test_engine_uses_the_threshold_of_the_table() -> None:
    assert accumulate.LARGE == thresholds.LARGE


def test_choice_takes_nanoseconds() -> None:
    """The bound is six times what was measured, so that it also holds on a busy machine."""
    small, x = answering(1), numpy.ones(8)
    choose = declared(at_most(4096)(small), operands=3)

    def duration(function: Any) -> float:
        started = time.thread_time()
        for _ in range(20_000):
            function(numpy, x, 0, 1)
        return (time.thread_time() - started) / 20_000

    gap = min(duration(choose) for _ in range(15)) - min(duration(small) for _ in range(15))
    assert gap < (300e-9 if SPECIALIZE_AT == 1 else 2e-6)


def test_dispatcher_keeps_parameters_and_defaults() -> None:
    @kernel(at_most(4)(lambda np, x, a, b: ("small", a, b)))
    def shifted(np: Any, x: Any, a: Any, b: Any = 3) -> Any:
        return "numpy", a, b

    assert shifted(numpy, numpy.ones(2), b=1, a=2) == ("small", 2, 1)
    assert shifted(numpy, numpy.ones(2), 2) == ("small", 2, 3)
    assert shifted(numpy, numpy.ones(9), 2) == ("numpy", 2, 3)


def test_dispatcher_equals_its_template() -> None:
    variants = (at_most(4)(answering("small")), at_least(6)(answering(None)), at_least(8)(answering("large")))
    dispatcher = declared(*variants, operands=2)
    form = select.Form(select.KERNELS[dispatcher].numpy, variants, lambda x: x.size)
    for size in range(10):
        args = (numpy, numpy.ones(size), 0)
        assert dispatcher(*args) == select.choose(form, args)


def test_expression_of_a_dispatcher_equals_its_call() -> None:
    variants = (at_most(4)(answering(None)), at_most(6)(answering("small")), at_least(8)(answering("large")))
    dispatcher = declared(*variants, operands=2, count=lambda a, b: a.size + b)
    found = returned_expression(dispatcher)
    assert found is not None
    names, body = found
    space = {**dispatcher.__globals__, "form_kernel": select.KERNELS[dispatcher].numpy}
    inserted = eval(f"lambda {', '.join(names)}: {ast.unparse(body)}", space)
    for size in range(10):
        args = (numpy, numpy.ones(size), 1)
        assert dispatcher(*args) == inserted(*args)


def test_fast_paths_contain_dispatchers_as_expressions() -> None:
    x = torch.ones(3, 3)
    assert torch.sigmoid(x).shape == x.shape and torch.mm(x, x).sum() == 27
    source = mm.op.source
    assert "looped('sigmoid'" in torch.sigmoid.op.source
    assert "a_0.dot(a_1)" in source and f">= {thresholds.PRODUCT}" in source


def test_dispatchers_are_generated_by_first_calls() -> None:
    """The import generates no dispatcher, and the dispatchers run unspecialised with RETROGRAD_CODEGEN=0."""
    program = """
import numpy, retrograd
from retrograd.kernels import select, softmax
from retrograd.runtime import lazy_functions, specialization
made = [each for each in select.KERNELS if each.__code__.co_filename != lazy_functions.UNWRITTEN]
assert not any(select.KERNELS[each].variants for each in made), made
assert not specialization._file_templates.cache_info().currsize
print(softmax.softmax(numpy, numpy.zeros((2, 2), numpy.float32), 1).tolist())
"""
    for setting in ("0", "1"):
        environment = {**os.environ, "RETROGRAD_CODEGEN": setting}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert (run.stdout.strip(), run.stderr) == ("[[0.5, 0.5], [0.5, 0.5]]", "")


DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "complex64", "bool"]


def _elements(name: str, shape: tuple[int, ...]) -> Any:
    """Return a tensor with all kinds of values: zeros of both signs, nan, infinities, numbers."""
    values = numpy.random.default_rng(len(shape)).choice([0.0, -0.0, 1.5, -3.0, numpy.nan, numpy.inf, 7.0], shape)
    dtype = getattr(torch, name)
    return torch.tensor(
        values if dtype.is_floating_point or dtype.is_complex else numpy.nan_to_num(values, posinf=9)
    ).to(dtype)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("form", ["contiguous", "transposed", "step", "expanded", "three axes", "mixed"])
def test_elements_chosen_by_bits(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def laid(x: Any) -> Any:
        each = {
            "transposed": x.t(),
            "step": x[:, ::2],
            "expanded": x[:1].expand(80, 80),
            "three axes": x.reshape(16, 5, 80),
        }
        return each.get(form, x)

    use_loops(monkeypatch, False)
    x, y = laid(_elements(name, (80, 80))), laid(_elements(name, (80, 80)).flip(0))
    mask = laid(torch.tensor(numpy.random.default_rng(1).random((80, 80)) < 0.5))
    if form == "mixed":
        x, y = x.t(), y.t()
    value = True if name == "bool" else 3
    calls = (
        lambda: torch.where(mask, x, y),
        lambda: x.masked_fill(mask, value),
        lambda: x.clone().masked_fill_(mask, value),
        lambda: _assigned(x, mask, value),
        lambda: x.masked_fill(mask[..., :1], value),
        lambda: x.masked_fill(mask[0], value),
        lambda: torch.where(mask[0], x, y),
        lambda: torch.where(mask, x, y.contiguous()),
        lambda: torch.where(torch.tensor(True), x, y),
        lambda: x.masked_fill(torch.tensor(True), value),
        lambda: torch.autograd.grad(torch.where(mask, z := x.detach().requires_grad_(), y), z, x)[0]
        if x.is_floating_point() else x,
    )  # fmt: skip
    found = [call() for call in calls]
    with monkeypatch.context() as patch:
        patch.setattr(elementwise, "_all_bits", lambda *given: None)
        patch.setattr(elementwise, "BRANCHES", sys.maxsize)
        expected = [call() for call in calls]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype is other.dtype and one.stride() == other.stride()
        first, second = numpy.ascontiguousarray(one._array), numpy.ascontiguousarray(other._array)
        assert first.tobytes() == second.tobytes()


def test_true_elements_of_a_mask_are_all_bytes_but_0() -> None:
    raw = torch.tensor([0, 1, 2, 128, 255], dtype=torch.uint8).repeat(1000)
    mask, x = raw.view(torch.bool), torch.arange(1, 5001)
    expected = torch.where(raw != 0, 0, x)
    y = x.clone()
    y[mask] = 0
    for found in (x.masked_fill(mask, 0), x.clone().masked_fill_(mask, 0), torch.where(mask, x * 0, x), y):
        assert torch.equal(found, expected)


def _assigned(x: Any, mask: Any, value: Any) -> Any:
    x = x.clone()
    x[mask] = value
    return x


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "hardswish", "hardtanh", "hardshrink", "softshrink",
                                  "softplus", "threshold", "hardsigmoid", "prelu", "clamp"])  # fmt: skip
def test_piecewise_functions_of_many_elements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    special = torch.tensor(
        [0.0, -0.0, torch.nan, torch.inf, -torch.inf, 3.0, -3.0, 1.0, -1.0, 0.5, -0.5, 20.0, 21.0, 6.0]
    )
    functions = {
        "threshold": lambda x: torch.nn.functional.threshold(x, 0.1, 5.0),
        "prelu": lambda x: torch.nn.functional.prelu(x, torch.tensor([0.25])),
        "clamp": lambda x: x.clamp(-1, 1),
    }
    call = functions.get(name) or getattr(torch.nn.functional, name)

    def computed(x: Any) -> list[Any]:
        x = x.clone().requires_grad_()
        out = call(x)
        return [out.detach(), *torch.autograd.grad(out, x, torch.full_like(out, 2.0))]

    few = computed(special)
    for loops in (False, True):
        use_loops(monkeypatch, loops and numba_dispatch.permitted())
        many = computed(special.repeat(400))
        for one, other in zip(few, many, strict=True):
            torch.testing.assert_close(
                other.reshape(400, -1), one.expand(400, -1), rtol=1e-6, atol=1e-6, equal_nan=True
            )
