"""Handles of registered hooks, as in ``torch.utils.hooks``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.graph import Handle as RemovableHandle
from ..core.tensor import Tensor
from ..runtime.user_frame import warn

Hook = TypeVar("Hook", bound=Callable[..., Any])


def unserializable_hook(f: Hook) -> Hook:
    """Mark the tensor hook ``f`` such that :func:`warn_if_has_hooks` does not warn about it; return ``f``."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Issue one warning for each hook of ``tensor``, because hooks are not serialised with the tensor.

    Hooks marked by :func:`unserializable_hook` are omitted.
    """
    hooks = getattr(tensor._grad_edge, "hooks", None)
    if hooks is None:
        return
    for number, hook in list(hooks.tensor.items()):
        if number != hooks.retaining and not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
            )


__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
