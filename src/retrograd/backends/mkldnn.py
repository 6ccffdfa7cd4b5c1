"""Intel's library for neural networks, as ``torch.backends.mkldnn``: it is not used. Settings are kept without effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..compat.config_module import Flag, Group, Precision, flagged, swap, within
from ..compat.missing_names import absent, listed
from .mkl import VERBOSE_OFF, VERBOSE_ON, verbose

VERBOSE_ON_CREATION = 2


def is_available() -> bool:
    """False: convolutions are this package's own."""
    return False


def is_acl_available() -> bool:
    """False."""
    return False


def _values(*values: Any) -> dict[str, Any]:
    return dict(zip(("enabled", "deterministic", "allow_tf32", "fp32_precision"), values, strict=True))


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set several settings; what they were."""
    return tuple(swap(__name__, _values(_enabled, _deterministic, _allow_tf32, None)).values())


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> AbstractContextManager[None]:
    """A block with other settings."""
    return within(__name__, _values(enabled, deterministic, allow_tf32, fp32_precision))


__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_acl_available", "is_available", "set_flags",
           "verbose"]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(
    __name__,
    enabled=Flag(True, "set_enabled_mkldnn"),
    deterministic=Flag(False, "set_deterministic_mkldnn"),
    allow_tf32=Flag(None),
    fp32_precision=Precision(),
    matmul=Group(fp32_precision=Precision()),
    conv=Group(fp32_precision=Precision()),
    rnn=Group(fp32_precision=Precision()),
)
