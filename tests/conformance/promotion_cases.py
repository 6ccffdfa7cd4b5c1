"""Every operator between every two dtypes, for tensors, 0-d tensors and numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "==", "&"]
NUMBERS = ["True", "2", "2.5", "2j"]

EXPRESSIONS = [f"torch.promote_types(torch.{a}, torch.{b})" for a, b in product([*DTYPES, "uint16"], repeat=2)]
EXPRESSIONS += [f"torch.can_cast(torch.{a}, torch.{b})" for a, b in product(DTYPES, repeat=2)]
for _operator in OPERATORS:
    for _a, _b in product(DTYPES, repeat=2):
        if ("float16" in (_a, _b) and "complex" in _a + _b) or (_operator == "**" and "bool" in (_a, _b)):
            continue  # complex32 does not exist here; powers of booleans are listed on the page of differences
        EXPRESSIONS.append(f"torch.tensor([1, 3]).to(torch.{_a}) {_operator} torch.tensor([1, 2]).to(torch.{_b})")
        EXPRESSIONS.append(f"torch.tensor([1, 3]).to(torch.{_a}) {_operator} torch.tensor(2).to(torch.{_b})")
    for _a, _number in product(DTYPES, NUMBERS):
        if (_a == "float16" and _number == "2j") or (_operator == "**" and _a == "bool"):
            continue
        EXPRESSIONS.append(f"torch.tensor([1, 3]).to(torch.{_a}) {_operator} {_number}")
        EXPRESSIONS.append(f"{_number} {_operator} torch.tensor([1, 3]).to(torch.{_a})")


def answer(torch: Any, expression: str) -> str:
    """Return the dtype of the result (or the result itself if it is not a tensor), or the name of the error."""
    try:
        found = eval(expression, {"torch": torch})
    except Exception as error:
        return type(error).__name__
    return str(getattr(found, "dtype", found))
