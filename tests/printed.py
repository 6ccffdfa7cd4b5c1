"""What the tests of printing print: an expression in NumPy, a dtype, print options, and what hangs on the tensor."""

from __future__ import annotations

from typing import Any

import numpy

_SPECIAL = "[0.0, -0.0, 1.5, float('nan'), float('inf'), -float('inf')]"
_EXPRESSIONS = [
    "2.0", "-0.125", "1e10", "1e-10", "float('nan')", "[1.0, 2.0, 3.0]", "[1.0, 2.5]", "[1e-5, 1.0]", "[1e5, 0.1]", "[1e8, 1.0]",
    "[1e9, 2e9]", "[1000.0, 0.5]", "[1001.0, 0.5]", "[]", "[[]]", "numpy.zeros((0, 3))", "numpy.zeros((2, 0, 2))", _SPECIAL,
    "[float('nan'), 1.0]", "[float('inf'), 0.5]", "numpy.arange(12.0).reshape(3, 4)", "numpy.arange(24.0).reshape(2, 3, 4) / 7",
    "numpy.arange(30.0)", "numpy.arange(30.0) / 3", "numpy.arange(1001.0)", "numpy.arange(1200.0).reshape(30, 40) - 600",
    "numpy.sin(numpy.arange(2000.0)).reshape(2, 10, 100)", "numpy.arange(16.0).reshape(2, 2, 2, 2)", "[[-1.0], [20.0], [300.0]]",
    "numpy.exp(numpy.arange(6.0) * 4)", "numpy.arange(4.0).reshape(2, 2).T", "[123456789.0]", "[0.99999]", "[-1e-8, 1e-8]",
]  # fmt: skip
_WHOLE = [
    "5",
    "[1, -2, 300]",
    "[]",
    "numpy.arange(40)",
    "numpy.arange(1100)",
    "[[1, 2], [30, 4]]",
    "numpy.zeros((2, 0))",
    "[0, 1, 1]",
]
_COMPLEX = ["1 + 2j", "[1 + 2j, -3.5 - 0.25j]", "[1e6 + 1e-6j]", "[]", "numpy.arange(4) * (1 - 1j)"]

CASES: list[tuple[str, str, dict[str, Any], str]] = []
for _dtype in ("float32", "float64", "float16", "bfloat16"):
    CASES += [(each, _dtype, {}, "") for each in _EXPRESSIONS]
for _dtype in ("int64", "int32", "uint8", "int8", "bool"):
    CASES += [(each, _dtype, {}, "") for each in _WHOLE]
for _dtype in ("complex64", "complex128"):
    CASES += [(each, _dtype, {}, "") for each in _COMPLEX]
for _extra in ("requires_grad", "grad_fn"):
    CASES += [(each, "float32", {}, _extra) for each in _EXPRESSIONS]
    CASES += [(each, "float64", {}, _extra) for each in _EXPRESSIONS[:8]]
for _options in (
    {"precision": 2}, {"precision": 8}, {"threshold": 5}, {"edgeitems": 1, "threshold": 5}, {"linewidth": 40}, {"sci_mode": True},
    {"sci_mode": False}, {"profile": "short"}, {"profile": "full"},
):  # fmt: skip
    CASES += [
        (each, "float32", _options, "") for each in _EXPRESSIONS if "2000" not in each or "profile" not in _options
    ]


def array_of(expression: str) -> Any:
    """The numbers of a case."""
    with numpy.errstate(all="ignore"):
        return numpy.asarray(eval(expression, {"numpy": numpy, "float": float}))
