"""Which way attention is computed, as ``torch.nn.attention``: there is one way here; what is chosen is kept and told again."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..operations.nn.attention import ENABLED


class SDPBackend(enum.Enum):
    """Ways to compute attention."""

    __module__ = "torch.nn.attention"

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_NAMES = {
    SDPBackend.MATH: "math", SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.CUDNN_ATTENTION: "cudnn", SDPBackend.OVERRIDEABLE: "overrideable",
}  # fmt: skip


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block in which only some ways to compute attention are allowed: ``with sdpa_kernel(SDPBackend.MATH): …``.

    Attention is computed in the one way that there is; ``torch.backends.cuda.math_sdp_enabled`` and its kin tell the choice.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    allowed = {backends} if isinstance(backends, SDPBackend) else set(backends)
    before = dict(ENABLED)
    ENABLED.update({name: each in allowed for each, name in _NAMES.items()})
    try:
        yield
    finally:
        ENABLED.update(before)


__all__ = ["SDPBackend", "sdpa_kernel"]
