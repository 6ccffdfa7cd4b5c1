"""``torch._vmap_internals``: ``vmap`` under the names by which older programs import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .func.vmap import vmap as _transform


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return :func:`torch.vmap` of ``func``; results that are None stay None if ``allow_none_pass_through`` is true."""
    if not allow_none_pass_through:
        return _transform(func, in_dims, out_dims)

    def called(*args: Any) -> Any:
        several: list[Any] = []

        def without_none(*given: Any) -> Any:
            found = func(*given)
            several[:] = found if isinstance(found, tuple) else [found]
            return tuple(each for each in several if each is not None)

        results = iter(_transform(without_none, in_dims, out_dims)(*args))
        filled = tuple(None if each is None else next(results) for each in several)
        return filled if len(filled) > 1 else filled[0]

    return called


vmap = _vmap
__all__ = ["vmap"]
