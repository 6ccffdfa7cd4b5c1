"""Selection of the backend for scaled dot-product attention, as ``torch.nn.attention``.

retrograd has only one implementation of attention, which it uses for every backend. The selected backends are only
recorded and reported.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...compat.module_names import shown_in
from ...operations.nn.attention import ENABLED_BACKENDS


class SDPBackend(enum.Enum):
    """Enumeration of the implementations (backends) of scaled dot-product attention."""

    __module__ = shown_in("torch.nn.attention", __name__)

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
    """Return a context manager that sets the allowed attention backends: ``with sdpa_kernel(SDPBackend.MATH): …``.

    ``backends`` is an SDPBackend or a list of SDPBackend. Only ``torch.backends.cuda.math_sdp_enabled`` and the related
    functions report the setting. Neither ``backends`` nor ``set_priority`` changes how retrograd computes attention.

    >>> from retrograd.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()
    (True, False)
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    allowed = {backends} if isinstance(backends, SDPBackend) else set(backends)
    before = dict(ENABLED_BACKENDS)
    ENABLED_BACKENDS.update({name: each in allowed for each, name in _NAMES.items()})
    try:
        yield
    finally:
        ENABLED_BACKENDS.update(before)


__all__ = ["SDPBackend", "sdpa_kernel"]
