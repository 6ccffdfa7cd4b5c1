"""Version numbers of retrograd and of the PyTorch release whose names and behaviour retrograd implements.

Programs compare ``torch.__version__`` to find out which features exist. Therefore ``torch.__version__`` begins with the
version of PyTorch. After a plus sign, where PyTorch has ``cpu`` or ``cu130``, follows the version of retrograd.
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
