"""``get_pretty_env_info``: description of the environment for bug reports, as in ``torch.utils.collect_env``."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys

import numpy

from ..core import devices
from ..runtime import blas_threads


def get_pretty_env_info() -> str:
    """Return a text with versions, devices and number of threads, one per line."""
    package = sys.modules[__name__.partition(".")[0]]
    lines = [
        ("PyTorch version", str(getattr(package, "__version__", ""))),
        ("Is debug build", "False"),
        ("CUDA used to build PyTorch", "None"),
        ("OS", platform.platform()),
        ("Python version", f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)"),
        ("Is CUDA available", str(devices.gpu_count() > 0)),
        ("CPU", f"{platform.machine()}, {os.cpu_count()} logical cores"),
        ("Threads", str(blas_threads.get_num_threads())),
        ("NumPy", numpy.__version__),
        *((name, _version(name)) for name in ("scipy", "ml_dtypes", "numba", "cupy")),
    ]
    return "\n".join(f"{name}: {value}" for name, value in lines)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "Could not collect"


def main() -> None:
    """Print the result of :func:`get_pretty_env_info`."""
    print(get_pretty_env_info())


__all__ = ["get_pretty_env_info", "main"]

if __name__ == "__main__":
    main()
