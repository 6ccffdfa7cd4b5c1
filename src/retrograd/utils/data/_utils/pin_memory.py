"""``torch.utils.data._utils.pin_memory``: copies of batches in pinned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return ``data`` with each tensor in it in pinned memory; ``device`` has no effect.

    Tensors are looked for in mappings, sequences and named tuples. Other objects with a method ``pin_memory`` are
    replaced by its result. Raises RuntimeError if there is no GPU.
    """
    if isinstance(data, Tensor):
        return data.pin_memory() if data.is_cpu else data
    if isinstance(data, (str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        pinned: Any = {key: pin_memory(value) for key, value in data.items()}
    elif isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    elif isinstance(data, Sequence):
        pinned = [pin_memory(each) for each in data]
    else:
        return data
    try:
        return type(data)(pinned)
    except TypeError:  # a class that is not made of its elements
        return pinned


def _pin_memory_loop(in_queue: Any, out_queue: Any, device_id: int, done_event: Any, device: Any) -> None:
    """Pass batches from one queue to another, with their tensors in pinned memory, until ``done_event`` is set."""
    import queue

    while not done_event.is_set():
        try:
            out_queue.put(pin_memory(in_queue.get(timeout=5.0)))
        except queue.Empty:
            continue


__all__ = ["pin_memory"]
