"""Intel's library of linear algebra, as ``torch.backends.mkl``: NumPy's may be it."""

from __future__ import annotations

from typing import Self

import numpy

from ..compat.missing_names import absent, listed

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether NumPy calculates with it."""
    built = numpy.show_config("dicts")
    return "mkl" in str(built["Build Dependencies"]["blas"].get("name"))


class verbose:
    """A block in which PyTorch's library would print what it does; nothing is printed."""

    def __init__(self, enable: int | bool) -> None:
        self.enable = enable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]
__getattr__, __dir__ = absent(__name__), listed(globals())
