"""The processor, as ``torch.backends.cpu``."""

from __future__ import annotations

from typing import Any

import numpy

from ..compat.missing_names import absent, listed


def get_cpu_capability() -> str:
    """The widest vectors that NumPy has found on the processor: ``"AVX512"``, ``"AVX2"``, ``"DEFAULT"`` …"""
    simd: Any = numpy.show_config("dicts")["SIMD Extensions"]
    names = " ".join([*simd.get("baseline", []), *simd.get("found", [])])
    return next((short for short, name in (("AVX512", "AVX512"), ("AVX2", "AVX2")) if name in names), "DEFAULT")


__all__ = ["get_cpu_capability"]
__getattr__, __dir__ = absent(__name__), listed(globals())
