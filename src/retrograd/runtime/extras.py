"""Requirements of the optional parts of the package: those of the extras in ``pyproject.toml``."""

from __future__ import annotations

import os

#: Requirements by extra; those of ``distributed`` are the libraries for MPI that the package index has.
REQUIREMENTS = {
    "fast": ("numba>=0.62",),
    "gpu": ("cupy-cuda13x[ctk]>=14.1",),
    "distributed": ("mpi4py>=4.1", "mpich>=5" if os.name == "posix" else "impi-rt"),
}


def how_to_install(extra: str) -> str:
    """Return the command that installs what ``extra`` needs; it works without a checkout."""
    packages = " ".join([f'"{each}"' for each in REQUIREMENTS[extra]])
    return f"pip install {packages} (the extra [{extra}])"
