"""``torch.fx.experimental.proxy_tensor``: a question that libraries ask."""

from __future__ import annotations


def get_proxy_mode() -> None:
    """Return None, because operations below the public functions are never traced."""
    return


__all__ = ["get_proxy_mode"]
