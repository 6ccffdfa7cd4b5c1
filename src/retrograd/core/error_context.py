"""What errors say beside PyTorch's words: where in the program a tensor was made, and what helps. Only for the cold path."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ..runtime import user_frame
from .graph import AccumulateGrad, dead_ref


def describe_origin(place: Any) -> str:
    """How and where the tensor at a place of the graph came to be: ``computed by MulBackward0 at f.py:3: y = x * 2``."""
    node = getattr(place, "node", None)
    if node is None or place.variable_ref is dead_ref:
        return ""
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    by = "a leaf made" if node.__class__ is AccumulateGrad else f"computed by {type(node).__name__}"
    return f"{by} at {line}" if line else by


def with_remedy(text: str, remedy: str, place: Any = None, what: str = "It is") -> str:
    """``text`` (PyTorch's words), then how the tensor at ``place`` came to be, if that is known, and what helps."""
    how = describe_origin(place)
    end = "." if text and not text.endswith((".", "!", "?", ")")) else ""
    return f"{text}{end}{f' {what} {how}.' if how else ''} Remedy: {remedy}."


def describe_node(node: Any) -> str:
    """Whose it is: `` It is of MulBackward0, recorded at f.py:3: y = x * 2.``"""
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    return f" It is of {type(node).__name__}{f', recorded at {line}' if line else ''}."


def describe_recording(node: Any) -> str:
    """Where a node was recorded: `` It was recorded at f.py:3: y = x * 2.``, or nothing."""
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    return f" It was recorded at {line}." if line else ""


def describe_definition(function: Any) -> str:
    """Where a function of the user's is defined: `` at f.py:12``, or nothing."""
    function = getattr(function, "__func__", getattr(function, "__wrapped__", function))
    if not isinstance(function, FunctionType):
        return ""
    return f" at {user_frame.describe(function.__code__, 0)}"


def add_origin_note(error: BaseException, place: Any) -> None:
    """Add to an error from a backward pass which operation's it was, unless the error tells its line already."""
    node = getattr(place, "node", place)
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    if line and line not in str(error) and not any(line in each for each in getattr(error, "__notes__", ())):
        leaf = node.__class__ is AccumulateGrad
        error.add_note(
            f"At the leaf made at {line}"
            if leaf
            else f"In the backward pass of {type(node).__name__}, recorded at {line}"
        )
