"""Libraries for quantised numbers, as ``torch.backends.quantized``: there are none, as there are no such tensors."""

from __future__ import annotations

from typing import Any

from ..compat.config_module import Flag, flagged
from ..compat.missing_names import absent, listed


class _Engine(Flag):
    def check(self, value: Any) -> None:
        if value != "none":
            raise RuntimeError(f"{value} is not a valid value for quantized engine")


__all__ = ["engine", "supported_engines"]  # noqa: F822 - settings, of which the class of the module knows
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(__name__, engine=_Engine("none"), supported_engines=property(lambda module: ["none"]))
