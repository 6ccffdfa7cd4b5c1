"""``torch.utils.flop_counter``: ``FlopCounterMode``, which counts floating-point operations."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Self

from ..profiler.autograd_profiler import profile


class FlopCounterMode:
    """Context manager that counts the floating-point operations of the matrix products and 2-d convolutions in it.

    The profiler counts them (``with_flops=True``), in the whole context together. Operations of backward passes are not
    counted, which PyTorch counts as well. If ``display`` is true, the counts are printed at the end.

    >>> import retrograd as torch
    >>> from retrograd.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        self.display, self.depth = display, depth
        self.flop_counts: dict[str, dict[str, int]] = {}
        self._profile: Any = None

    def __enter__(self) -> Self:
        self._profile = profile(with_flops=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        counts: defaultdict[str, int] = defaultdict(int)
        for event in self._profile.function_events:
            if event.flops and event.name not in ("aten::add", "aten::mul"):  # PyTorch counts products only
                counts[event.name] += event.flops
        self.flop_counts = {"Global": dict(counts)}
        if self.display:
            print(self.get_table())

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers by name of the operation, in a dictionary with the only key "Global"."""
        return {key: dict(value) for key, value in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the numbers as text, one line for each operation."""
        rows = [("Global", self.get_total_flops()), *self.flop_counts.get("Global", {}).items()]
        return "\n".join(f"{name:<32}{count:>16,}" for name, count in rows)


__all__ = ["FlopCounterMode"]
