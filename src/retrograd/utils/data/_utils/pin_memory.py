"""``torch.utils.data._utils.pin_memory``: memory is not pinned, so that batches are returned unchanged."""

from __future__ import annotations

from typing import Any


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return ``data``."""
    return data


def _pin_memory_loop(in_queue: Any, out_queue: Any, device_id: int, done_event: Any, device: Any) -> None:
    """Pass batches from one queue to another until ``done_event`` is set."""
    import queue

    while not done_event.is_set():
        try:
            out_queue.put(in_queue.get(timeout=5.0))
        except queue.Empty:
            continue


__all__ = ["pin_memory"]
