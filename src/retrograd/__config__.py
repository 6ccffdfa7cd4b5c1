"""``torch.__config__``: ``show`` returns library versions, and ``parallel_info`` numbers of threads, as text."""

from __future__ import annotations

import numpy

from .runtime import blas_threads
from .version import OWN, PYTORCH


def show() -> str:
    """Return a text with the versions of retrograd, NumPy and NumPy's BLAS, one per line."""
    built = numpy.show_config("dicts")
    blas = built["Build Dependencies"]["blas"]
    lines = [
        f"retrograd {OWN}, with the names of PyTorch {PYTORCH}, built with:",
        f"  - NumPy {numpy.__version__}",
        f"  - BLAS and LAPACK: {blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Return a text with the number of threads within operations and the number of threads between operations."""
    return (
        f"retrograd/Parallel:\n\tget_num_threads() : {blas_threads.get_num_threads()}\n"
        f"\tget_num_interop_threads() : {blas_threads.get_num_interop_threads()}\n"
    )
