"""``show`` and ``parallel_info``: versions and numbers of threads, as ``torch.__config__``."""

from __future__ import annotations

import numpy

from .runtime import blas_threads
from .version import OWN, PYTORCH


def show() -> str:
    """Return a text with the versions of the package, NumPy and its BLAS, one per line."""
    built = numpy.show_config("dicts")
    blas = built["Build Dependencies"]["blas"]
    lines = [
        f"retrograd {OWN}, with the names of PyTorch {PYTORCH}, built with:",
        f"  - NumPy {numpy.__version__}",
        f"  - BLAS and LAPACK: {blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Return a text with the numbers of threads within and between operations."""
    return (
        f"retrograd/Parallel:\n\tget_num_threads() : {blas_threads.get_num_threads()}\n"
        f"\tget_num_interop_threads() : {blas_threads.get_num_interop_threads()}\n"
    )
