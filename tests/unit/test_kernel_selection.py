"""The dispatcher of kernels: which variant runs, in which order, and what the choice costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from retrograd.core import accumulate
from retrograd.kernels import select, thresholds
from retrograd.kernels.select import NUMBA, at_least, at_most, elementwise_loop, kernel


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
        monkeypatch.setitem(select.LIBRARIES, NUMBA, lambda installed=installed: installed)
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
        started = time.perf_counter()
        for _ in range(20_000):
            function(numpy, x, 0, 1)
        return (time.perf_counter() - started) / 20_000

    gap = min(duration(choose) for _ in range(15)) - min(duration(small) for _ in range(15))
    assert gap < 300e-9
