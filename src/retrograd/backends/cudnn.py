"""NVIDIA's library of convolutions, as ``torch.backends.cudnn``: it is not used. Settings are kept without effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..compat.config_module import Flag, Group, Precision, flagged, swap, within
from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False: convolutions on GPUs are CuPy's."""
    return False


def version() -> int | None:
    """None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether the library could work on a tensor: False."""
    return False


def _values(*values: Any) -> dict[str, Any]:
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
    return dict(zip(names, values, strict=True))


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set several settings; what they were."""
    given = _values(_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, None)
    return tuple(swap(__name__, given).values())


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """A block with other settings: ``with torch.backends.cudnn.flags(enabled=False): …``."""
    return within(__name__, _values(enabled, benchmark, None, deterministic, allow_tf32, fp32_precision))


__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(
    __name__,
    enabled=Flag(True, "set_enabled_cudnn"),
    benchmark=Flag(False, "set_benchmark_cudnn"),
    benchmark_limit=Flag(None),
    deterministic=Flag(False, "set_deterministic_cudnn"),
    allow_tf32=Flag(True, "set_allow_tf32_cudnn"),
    fp32_precision=Precision(),
    conv=Group(fp32_precision=Precision("tf32")),
    rnn=Group(fp32_precision=Precision("tf32")),
)
