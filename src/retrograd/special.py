"""Special functions, as ``torch.special``: the functions that are declared with ``@exported("special")``."""

from typing import TYPE_CHECKING, Any

from .dispatch.declare import EXPORTS, publish

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update(EXPORTS["special"])
__all__ = sorted(EXPORTS["special"])
publish(globals(), "special")
