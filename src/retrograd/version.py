"""Which version this is: of PyTorch by name and behaviour, and retrograd's own.

Programs compare ``torch.__version__`` to find out what they may use. The truthful answer to that is the version of PyTorch
whose names are here; retrograd's own stands behind the plus, where PyTorch says ``cpu`` or ``cu130``.
"""

from __future__ import annotations

from typing import Any

from .torch_version import TorchVersion

OWN = "0.1.0"
PYTORCH = "2.13.0"

__version__: TorchVersion = TorchVersion(f"{PYTORCH}+retrograd.{OWN}")
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: Any = None

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
