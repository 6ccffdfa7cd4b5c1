"""``Stateful``: the protocol of objects that save and restore themselves by a state dictionary."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """Object with the methods :meth:`state_dict` and :meth:`load_state_dict`, such as a module or an optimiser."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state; it is called before saving and before loading, which fills its tensors in place."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state ``state_dict``."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)

__all__ = ["Stateful", "StatefulT"]
