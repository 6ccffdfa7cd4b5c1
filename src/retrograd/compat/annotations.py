"""Annotations as ``help`` shall show them: as they stand in the source.

Of modules that begin with ``from __future__ import annotations`` Python keeps the text, and ``inspect`` shows it in quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any


class Written(str):
    """The text of an annotation, shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


_KNOWN: dict[str, Written] = {}


def show_annotations(shown: Iterable[Any]) -> None:
    """Let functions, and the methods of classes, have annotations that are shown as they are written."""
    for each in shown:
        for function in _functions(each):
            as_written(function)


def as_written(function: Any) -> Any:
    """``function``, whose annotations are shown as they are written from now on."""
    given = function.__annotations__
    for argument, text in given.items():
        if text.__class__ is str:
            given[argument] = _KNOWN.get(text) or _KNOWN.setdefault(text, Written(text))
    return function


def _functions(shown: Any) -> Iterator[FunctionType]:
    """The functions with their arguments as written: of a class, its methods; of a wrapper, what it stands for."""
    kinds = shown.__mro__ if isinstance(shown, type) else ()
    own = [each for kind in kinds if kind is shown or kind.__name__[0] == "_" for each in vars(kind).values()]
    for each in own or [shown]:
        while isinstance(inner := getattr(each, "__wrapped__", None), FunctionType):
            each = inner
        if isinstance(each, FunctionType):
            yield each


__all__ = ["Written", "as_written", "show_annotations"]
