"""Repeats in a list: where the same stretch stands several times in a row, as the steps of a loop do in a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 128  # the longest stretch that is looked for


@dataclass(frozen=True)
class Stretch:
    """``length`` items from ``start`` on, which stand there ``times`` times in a row."""

    start: int
    length: int
    times: int = 1

    @property
    def end(self) -> int:
        """The index behind the last item."""
        return self.start + self.length * self.times


def folded(keys: Sequence[Any]) -> Iterator[Stretch]:
    """``keys`` as stretches, in order: single items, and what is repeated.

    One item must stand there three times to be folded, several items twice. The longest run that begins at an item is taken.

    >>> [(each.start, each.length, each.times) for each in folded("xabababyzzzz")]
    [(0, 1, 1), (1, 2, 3), (7, 1, 1), (8, 1, 4)]
    """
    numbers: dict[Any, int] = {}
    items = [numbers.setdefault(key, len(numbers)) for key in keys]
    at = 0
    while at < len(items):
        best = Stretch(at, 1)
        for length in range(1, min(LONGEST, (len(items) - at) // 2) + 1):
            times = _times(items, at, length)
            if length * times >= 3 and times > 1 and length * times > best.length * best.times:
                best = Stretch(at, length, times)
        yield best
        at = best.end


def _times(items: list[int], start: int, length: int) -> int:
    """How often the stretch of ``length`` items from ``start`` on stands there in a row."""
    if items[start] != items[start + length]:
        return 1
    stretch, times = items[start : start + length], 1
    while items[start + times * length : start + (times + 1) * length] == stretch:
        times += 1
    return times


__all__ = ["Stretch", "folded"]
