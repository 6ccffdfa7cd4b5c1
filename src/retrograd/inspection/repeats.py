"""``fold_repeats``: detection of consecutive repeats in a list, such as the steps of a loop in a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 128  # maximal length of a repeated stretch


@dataclass(frozen=True)
class Stretch:
    """Part of a list: the ``length`` items from index ``start``, which may occur several times in succession.

    ``times`` is the number of occurrences; it is 1 if the items are not repeated.
    """

    start: int
    length: int
    times: int = 1

    @property
    def end(self) -> int:
        """Index after the last item of the last repeat."""
        return self.start + self.length * self.times


def fold_repeats(keys: Sequence[Any]) -> Iterator[Stretch]:
    """Divide ``keys`` into consecutive parts, and yield a :class:`Stretch` for each: one item or a repeated sequence.

    A single item counts as repeated if it occurs at least three times in a row, a longer sequence if it occurs at least
    twice. If several repeated sequences begin at the same index, the sequence that covers the most items is chosen. In
    the example, the parts are ``x``, three times ``ab``, ``y``, and four times ``z``.

    >>> [(each.start, each.length, each.times) for each in fold_repeats("xabababyzzzz")]
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
    """Return the number of times that ``items[start : start + length]`` occurs in a row from index ``start``."""
    if items[start] != items[start + length]:
        return 1
    stretch, times = items[start : start + length], 1
    while items[start + times * length : start + (times + 1) * length] == stretch:
        times += 1
    return times


__all__ = ["Stretch", "fold_repeats"]
