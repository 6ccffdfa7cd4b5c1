"""``shortened`` and ``shortened_text``: texts of limited length for error messages about values from a file.

Python's ``repr`` is not limited: a file of 845 bytes can describe nested tuples whose ``repr`` has 2**60 elements.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

_DEPTH, _WIDTH, _TEXT, _BITS, _LENGTH = 3, 6, 60, 128, 200


def shortened(value: Any, depth: int = _DEPTH) -> str:
    """Return a text similar to the ``repr`` of ``value``, of at most 200 characters.

    The text contains at most 6 items of each container, and containers up to the nesting depth ``depth``.
    """
    return _text(value, depth)[:_LENGTH]


def shortened_text(text: str, length: int = _LENGTH) -> str:
    """Return ``text``; if it is longer than ``length`` characters, its beginning followed by an ellipsis."""
    return text if len(text) <= length else f"{text[:length]}..."


def _text(value: Any, depth: int) -> str:
    if isinstance(value, (str, bytes, bytearray)):
        return repr(value[:_TEXT]) + "..." * (len(value) > _TEXT)
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"<int of {value.bit_length()} bits>"
    if value is None or type(value) in (bool, int, float, complex):
        return repr(value)
    if isinstance(value, dict):
        items = [f"{_inner(key, depth)}: {_inner(each, depth)}" for key, each in islice(value.items(), _WIDTH)]
        return _enclosed("{", items, "}", len(value))
    if isinstance(value, (tuple, list, set, frozenset)):
        items = [_inner(each, depth) for each in islice(value, _WIDTH)]
        if isinstance(value, tuple):
            return _enclosed("(", items, ",)" if len(value) == 1 else ")", len(value))
        return _enclosed(*(("[", items, "]") if isinstance(value, list) else ("{", items, "}")), len(value))
    return f"<{type(value).__name__}>"


def _inner(value: Any, depth: int) -> str:
    if isinstance(value, (tuple, list, set, frozenset, dict)) and value and depth <= 1:
        return "..."
    return _text(value, depth - 1)


def _enclosed(begin: str, items: list[str], end: str, length: int) -> str:
    return begin + ", ".join([*items, "..."] if length > _WIDTH else items) + end
