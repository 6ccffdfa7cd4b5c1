"""How many floating-point operations a call takes, by the shapes of its arguments: what a profiler calls FLOPs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]


def _product(shapes: list[Shape], first: int) -> int:
    """A product of matrices, or of two batches of them: a multiplication and an addition for each element and term."""
    left, right = shapes[first], shapes[first + 1]
    return 2 * math.prod(left) * right[-1] if len(left) > 1 and len(right) > 1 else 0


def _convolution(shapes: list[Shape], values: list[Any]) -> int:
    """A convolution of images in PyTorch's way: ``values`` are stride, padding, dilation and groups."""
    image, kernel = shapes[0], shapes[1]
    if len(image) != 4 or len(kernel) != 4 or isinstance(values[1], str):
        return 0
    stride, padding, dilation = [[each] * 2 if isinstance(each, int) else list(each) for each in values[:3]]
    sizes = [(image[2 + k] + 2 * padding[k] - dilation[k] * (kernel[2 + k] - 1) - 1) // stride[k] + 1 for k in range(2)]
    return 2 * image[0] * math.prod(sizes) * math.prod(kernel)


def flops_of(name: str, call: Any) -> int:
    """The floating-point operations of a call that was noted as ``name``; 0 if that is not known of this operation."""
    inputs = call.inputs or ()
    shapes = [each[0] for each in inputs if isinstance(each[0], tuple)]
    name = name.removeprefix("aten::")
    try:
        if name in _COUNTS:
            return _COUNTS[name](shapes, call.name.startswith("linear"))
        if name == "conv2d":
            values = [each[1] for each in inputs[2:] if each[0] is None]
            if len(inputs) > 2 and inputs[2][0] is None:  # no bias
                values = values[1:]
            return _convolution(shapes, [*values, *[1, 0, 1, 1][len(values) :]])
    except (IndexError, TypeError):  # a call with other arguments than usual, or one that failed
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
