"""Text that errors append to PyTorch's message: the origin of a tensor in the user's program, and a remedy."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

from ..runtime import user_frame
from .graph import AccumulateGrad, dead_ref

if TYPE_CHECKING:
    from .typing import Edge


def describe_origin(edge: Edge | None) -> str:
    """Return a text about the operation or leaf at ``edge``, the gradient edge of a tensor, for error messages.

    For the result of an operation, the text is similar to ``computed by MulBackward0 at f.py:3: y = x * 2``. It is
    empty if the origin of the tensor is not known.
    """
    node = getattr(edge, "node", None)
    if node is None or edge.variable_ref is dead_ref:  # type: ignore[union-attr]
        return ""
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    origin = "a leaf made" if node.__class__ is AccumulateGrad else f"computed by {type(node).__name__}"
    return f"{origin} at {line}" if line else origin


def with_remedy(text: str, remedy: str, edge: Edge | None = None, subject: str = "It is") -> str:
    """Return an error message: PyTorch's message ``text``, the origin of a tensor, and the advice ``remedy``.

    ``edge`` is the gradient edge of the tensor. The origin, such as ``computed by MulBackward0 at f.py:3``, is preceded
    by the words ``subject``. If the origin is not known, the origin and ``subject`` are left out.
    """
    origin = describe_origin(edge)
    end = "." if text and not text.endswith((".", "!", "?", ")")) else ""
    return f"{text}{end}{f' {subject} {origin}.' if origin else ''} Remedy: {remedy}."


def describe_node(node: object) -> str:
    """Return a sentence that names ``node``, such as `` It is of MulBackward0, recorded at f.py:3: y = x * 2.``

    The sentence is appended to error messages about a value or a call that belongs to ``node``.
    """
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    return f" It is of {type(node).__name__}{f', recorded at {line}' if line else ''}."


def describe_recording(node: object) -> str:
    """Return the sentence `` It was recorded at f.py:3: y = x * 2.`` with the user's line that recorded ``node``.

    The text is empty if the line is not known.
    """
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    return f" It was recorded at {line}." if line else ""


def describe_definition(function: object) -> str:
    """Return the location where a user's function is defined, such as `` at f.py:12``, for an error message.

    The text is empty if ``function`` is not a Python function.
    """
    function = getattr(function, "__func__", getattr(function, "__wrapped__", function))
    if not isinstance(function, FunctionType):
        return ""
    return f" at {user_frame.describe(function.__code__, 0)}"


def add_origin_note(error: BaseException, edge: object) -> None:
    """Add to ``error`` a note with the operation at the gradient edge ``edge`` and its line in the user's program.

    Nothing is added if another note of ``error`` already shows this line.
    """
    node = getattr(edge, "node", edge)
    line = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
    if line and line not in str(error) and not any(line in each for each in getattr(error, "__notes__", ())):
        leaf = node.__class__ is AccumulateGrad
        error.add_note(
            f"At the leaf made at {line}"
            if leaf
            else f"In the backward pass of {type(node).__name__}, recorded at {line}"
        )
