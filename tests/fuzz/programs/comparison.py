"""Comparison of what two engines observe of the same program."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Relative tolerances by the least precise dtype that the text of a program names.
TOLERANCES = {"bfloat16": 6e-2, "autocast": 6e-2, "float16": 1e-2, "float": 3e-4, "complex64": 3e-4}
#: Errors of PyTorch that refuse to modify a tensor in place; without them, a program fails only after it.
REFUSED = re.compile("in-place operation|refers? to a single memory location")
#: Relative tolerances for the values of tensors.
BY_DTYPE = {"bfloat16": 6e-2, "float16": 1e-2, "float32": 3e-4, "complex64": 3e-4}
STATE = ("dtype", "shape", "requires_grad", "leaf", "node", "view", "strides", "version", "retains", "values")


class Difference(NamedTuple):
    """A difference of two observations: its kind, where it is, and what the engines observe there."""

    kind: str
    where: str
    found: Any
    expected: Any


def tolerance_of(text: str) -> float:
    """Return the relative tolerance for the numbers of a program."""
    names = re.sub("float64|complex128", "", text)
    exact = "64" in text and not re.search("int|bool|torch\\.zeros|torch\\.ones|torch\\.arange", names)
    return next((value for name, value in TOLERANCES.items() if name in names), 1e-7 if exact else 3e-4)


def differences(found: Any, expected: Any, tolerance: float) -> Iterator[Difference]:
    """Yield the differences of two observations of a program, in the order of its statements."""
    if "failed" in found or "failed" in expected:
        one, two = (each.get("failed", "finishes") for each in (found, expected))
        if one != two and not two.startswith("Exit"):  # the oracle has crashed
            yield Difference("failed", "", one, two)
        return
    for number in sorted({*found["errors"], *expected["errors"]}, key=int):
        one, two = (each["errors"].get(number) for each in (found, expected))
        if _type(one) != _type(two):
            kind = "spurious error" if two is None else "missing error" if one is None else "type of error"
            yield Difference(kind, number, one, two)
        elif two is not None and REFUSED.search(two) and not REFUSED.search(one):
            yield Difference("reason", number, one, two)
    for name in expected["tensors"]:
        one, two = found["tensors"].get(name), expected["tensors"][name]
        if not isinstance(one, dict) or not isinstance(two, dict):
            if not same(one, two, tolerance, _scale(two)):
                yield Difference("value", name, one, two)
            continue
        for key in STATE:
            if key == "version" and expected["errors"]:  # an operation that fails may have counted
                continue
            limit = max(tolerance, BY_DTYPE.get(two["dtype"], 0)) if key == "values" else tolerance
            if not same(one.get(key), two.get(key), limit, _scale(two["values"])):
                yield Difference(key, name, one.get(key), two.get(key))
    for key in sorted(each for each in {*found, *expected} if each not in ("errors", "tensors", "log")):
        one, two = found.get(key), expected.get(key)
        if isinstance(one, str) or isinstance(two, str):
            if _type(one) != _type(two):
                yield Difference("backward", key, one, two)
        elif isinstance(one, dict) and isinstance(two, dict):  # another leaf has been a difference before
            common = {each: one[each] for each in one if each in two}, {each: two[each] for each in two if each in one}
            if not same(*common, 20 * tolerance, _scale(two)):
                yield Difference("derivative", key, *common)
        elif not same(one, two, 20 * tolerance, _scale(two)):
            yield Difference("derivative", key, one, two)
    if not same(found["log"], expected["log"], 20 * tolerance, _scale(expected["log"])):
        yield Difference("log", "", found["log"], expected["log"])


def _type(error: Any) -> Any:
    """Return the type of a described exception."""
    return error.partition(":")[0] if isinstance(error, str) else None


def _scale(values: Any) -> float:
    """Return the largest finite number of a nested list, at least 1."""
    if isinstance(values, dict):
        return _scale(list(values.values()))
    if isinstance(values, list):
        return max(map(_scale, values), default=1.0)
    return max(1.0, abs(values)) if isinstance(values, (int, float)) and math.isfinite(values) else 1.0


def same(one: Any, two: Any, tolerance: float, scale: float) -> bool:
    """Whether two values are equal, floats within ``tolerance`` times ``scale``."""
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (one != one and two != two) or abs(one - two) <= tolerance * scale
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(same(a, b, tolerance, scale) for a, b in zip(one, two, strict=True))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key], tolerance, scale) for key in one)
    if isinstance(one, str) and isinstance(two, str) and ": " in one and ": " in two:
        return _type(one) == _type(two)
    return bool(one == two)
