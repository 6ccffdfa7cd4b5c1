"""Display of annotations without quotes in ``help`` and ``inspect.signature``.

In modules with ``from __future__ import annotations`` Python stores an annotation as a string, and ``inspect`` shows it
in quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any


class UnquotedAnnotation(str):
    """Text of an annotation that ``help`` and ``inspect.signature`` show without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


_KNOWN: dict[str, UnquotedAnnotation] = {}


def show_annotations(shown: Iterable[Any]) -> None:
    """Replace the annotations of functions and methods by text that is shown without quotes.

    ``shown`` is an iterable of functions, and of classes whose methods are changed.
    """
    for each in shown:
        for function in _functions(each):
            unquote_annotations(function)


def unquote_annotations(function: Any) -> Any:
    """Replace the annotations of ``function`` by text that is shown without quotes, and return the function."""
    annotations = function.__annotations__
    for argument, text in annotations.items():
        if text.__class__ is str:
            annotations[argument] = _KNOWN.get(text) or _KNOWN.setdefault(text, UnquotedAnnotation(text))
    return function


def _functions(shown: Any) -> Iterator[FunctionType]:
    """Yield the functions whose annotations ``help(shown)`` shows, where ``shown`` is a function or a class.

    For a class, these are its methods and those of its internal base classes, whose names begin with an underscore. If
    a function is a wrapper, the wrapped function is yielded instead.
    """
    kinds = shown.__mro__ if isinstance(shown, type) else ()
    own = [each for kind in kinds if kind is shown or kind.__name__[0] == "_" for each in vars(kind).values()]
    for each in own or [shown]:
        while isinstance(inner := getattr(each, "__wrapped__", None), FunctionType):
            each = inner
        if isinstance(each, FunctionType):
            yield each


__all__ = ["UnquotedAnnotation", "unquote_annotations", "show_annotations"]
