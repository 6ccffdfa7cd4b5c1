"""Linear algebra (``torch.linalg``): the functions that are declared with ``@exported("linalg")``."""

from typing import TYPE_CHECKING, Any

from .dispatch.declare import EXPORTS, publish

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update(EXPORTS["linalg"])
__all__ = sorted(EXPORTS["linalg"])
publish(globals(), "linalg")
