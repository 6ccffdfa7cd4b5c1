"""``flops_of``: the number of floating-point operations (FLOPs) of a call, computed from its arguments' shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]


def _product(shapes: list[Shape], first: int) -> int:
    """Return the FLOPs of the (batched) matrix product of the shapes ``shapes[first]`` and ``shapes[first + 1]``.

    A product of an ``(n, k)`` and a ``(k, m)`` matrix has ``2 n k m`` FLOPs.
    """
    left, right = shapes[first], shapes[first + 1]
    return 2 * math.prod(left) * right[-1] if len(left) > 1 and len(right) > 1 else 0


def _convolution(arguments: dict[str, Any]) -> int:
    """Return the FLOPs of a 2-d convolution, computed from its ``arguments`` by PyTorch's formula.

    The formula is 2 times the batch size, the number of positions in the output image, and the number of elements of
    the weight.
    """
    image, kernel = arguments["input"][0], arguments["weight"][0]
    values = {key: each[1] for key, each in arguments.items()}
    if len(image) != 4 or isinstance(values.get("padding"), str):
        return 0
    stride, padding, dilation = (_pair(values.get(name, default)) for name, default in _DEFAULTS.items())
    sizes = [(image[2 + k] + 2 * padding[k] - dilation[k] * (kernel[2 + k] - 1) - 1) // stride[k] + 1 for k in (0, 1)]
    return 2 * image[0] * math.prod(sizes) * math.prod(kernel)


_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1}
_PARAMETERS = ("input", "weight", "bias", *_DEFAULTS, "groups")


def _pair(value: Any) -> Any:
    return [value] * 2 if isinstance(value, int) else list(value) * (2 if len(value) == 1 else 1)


def flops_of(name: str, call: Any) -> int:
    """Return the FLOPs of the recorded call ``call`` of the operation ``name``, or 0 if unknown."""
    inputs: Any = call.inputs or ()
    shapes = [each[0] for each in inputs if isinstance(each[0], tuple)]
    name = name.removeprefix("aten::")
    try:
        if name in _COUNTS:
            return _COUNTS[name](shapes, call.name.startswith("linear"))
        if name == "conv2d":
            free = len(inputs) - len(call.keywords)
            return _convolution(dict(zip((*_PARAMETERS[:free], *call.keywords), inputs, strict=True)))
    except (IndexError, KeyError, TypeError, ValueError):  # arguments of another form, or a call that failed
        pass
    return 0


_COUNTS: dict[str, Callable[[list[Shape], bool], int]] = {
    "mm": lambda shapes, linear: _product(shapes, 0),
    "bmm": lambda shapes, linear: _product(shapes, 0),
    "addmm": lambda shapes, linear: 2 * math.prod(shapes[0]) * shapes[1][0] if linear else _product(shapes, 1),
    "baddbmm": lambda shapes, linear: _product(shapes, 1),
    "mul": lambda shapes, linear: math.prod(shapes[0]),
    "add": lambda shapes, linear: math.prod(shapes[0]),
}
