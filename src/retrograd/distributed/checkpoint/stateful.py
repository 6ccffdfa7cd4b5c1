"""``Stateful``: the protocol of objects that save and restore themselves by a state dictionary."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """Object with the methods :meth:`state_dict` and :meth:`load_state_dict`, such as a module or an optimiser.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> class Counter:
    ...     count = 0
    ...     def state_dict(self):
    ...         return {"count": self.count}
    ...     def load_state_dict(self, state_dict):
    ...         self.count = state_dict["count"]
    >>> counter = Counter()
    >>> isinstance(counter, Stateful)
    True
    >>> counter.count = 5
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"counter": counter}, checkpoint_id=folder, no_dist=True)
    ...     counter.count = 0
    ...     checkpoint.load({"counter": counter}, checkpoint_id=folder, no_dist=True)
    >>> counter.count
    5
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state; it is called before saving and before loading, which fills its tensors in place."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state ``state_dict``."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)

__all__ = ["Stateful", "StatefulT"]
