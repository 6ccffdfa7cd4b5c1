"""Operators of compiled libraries of packages, written with NumPy.

A package with a compiled part loads it by ``torch.ops.load_library``, which raises OSError because retrograd has no
compiled operators. For the libraries in ``MODULES`` the call imports a module of this folder instead, which registers
the operators under their names. An operator of the library that the module does not implement raises
NotImplementedError with its name when it is called.
"""

from __future__ import annotations

import importlib
from pathlib import Path

#: The module of this folder for each library: the name of the library's folder, and of its file without suffixes.
MODULES = {("torchvision", "_C"): "torchvision"}


def load(path: str) -> bool:
    """Register the operators of the library at ``path``; return False if there is no module for the library."""
    file = Path(path)
    module = MODULES.get((file.parent.name, file.name.partition(".")[0]))
    if module is None or not file.is_file():
        return False
    importlib.import_module(f"{__name__}.{module}")
    return True
