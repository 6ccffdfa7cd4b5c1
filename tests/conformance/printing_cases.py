"""Tensors to print: an expression in NumPy, a dtype, print options, and requires_grad or grad_fn."""

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
_DRAWN = "(numpy.arange({}) * 7919 % 1009 - 500)"  # scattered numbers, the same under every NumPy
_SHAPED = [
    _DRAWN.format(60) + ".reshape(3, 20) / 8",
    _DRAWN.format(60) + ".reshape(2, 2, 15) * 1e6",
    _DRAWN.format(48) + ".reshape(4, 12).T[::2] / 1024",
    _DRAWN.format(1008) + ".reshape(7, 8, 18) / 4",
    _DRAWN.format(9) + " * 2.0**-40",
    "[65504.0, 0.0]",
    "[9.9999e-5, 1.0]",
    "[1e-4, 0.1]",
    "[0.99995, -0.00001]",
    "[1e300, -1e-300]",
    "[5e-324, 1.0]",
    "[0.0, -0.0]",
]
for _dtype in ("float32", "float64", "float16", "bfloat16", "complex64", "complex128"):
    CASES += [(each, _dtype, {}, "") for each in _SHAPED]
    CASES += [(each, _dtype, {"edgeitems": 2, "threshold": 20, "linewidth": 60}, "grad_fn") for each in _SHAPED[:5]]
for _dtype in ("uint16", "uint32", "uint64", "int16"):
    CASES += [(each, _dtype, {}, "") for each in _WHOLE if "-2" not in each]
for _options in (
    {"edgeitems": 0}, {"edgeitems": 0, "threshold": 5}, {"linewidth": 33.3}, {"linewidth": 1}, {"precision": 0}, {"threshold": 10.5},
    {"profile": "short", "linewidth": 120}, {"edgeitems": 10, "threshold": 20}, {"precision": 1, "sci_mode": True},
):  # fmt: skip
    for _dtype in ("int64", "float64", "bfloat16", "complex64"):
        CASES += [
            (each, _dtype, _options, "") for each in ["3", "[]", "[1, 2, 3]", "numpy.zeros((2, 0))", *_SHAPED[:3]]
        ]


def array_of(expression: str) -> Any:
    """Return the array of a case."""
    with numpy.errstate(all="ignore"):
        return numpy.asarray(eval(expression, {"numpy": numpy, "float": float}))
