"""Function that prints the shape, the dtype and numbers of a result on one line."""

from __future__ import annotations

from typing import Any

import numpy


def show(name: str, value: Any) -> None:
    """Print a tensor, an array or a number: its shape, dtype, first twelve numbers and the mean of all."""
    array = numpy.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    numbers = " ".join(f"{float(each):.6g}" for each in array.reshape(-1)[:12].astype(numpy.float64))
    mean = float(array.astype(numpy.float64).mean()) if array.size else 0.0
    print(f"{name} {list(array.shape)} {array.dtype}: {numbers} mean {mean:.6g}")
