"""Sessions as text files, one topic each: every line is an expression or, after ``X ``, a statement.

``answers`` returns for each line the text of its value or error, and its warnings. The lines of a topic share a
namespace.
"""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TOPICS = sorted(path.stem for path in HERE.glob("*.txt"))


def lines(topic: str) -> list[str]:
    """Return the lines of a topic; lines that begin with ``#`` are comments."""
    text = (HERE / f"{topic}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def entered(context: Any) -> Any:
    """Enter and leave a context manager, and return its value."""
    with context as value:
        return value


def answers(torch: Any, topic: str) -> list[list[Any]]:
    """Return for each line of a topic the line, its output and its warnings."""
    space = {
        "torch": torch, "entered": entered, "part": lambda name: importlib.import_module(f"{torch.__name__}.{name}"), "nn": torch.nn, "F": torch.nn.functional,
        "x": torch.arange(6.0).reshape(2, 3), "i": torch.arange(3), "w": torch.ones(3, 2, requires_grad=True),
    }  # fmt: skip
    return [[line, *_answer(line, space)] for line in lines(topic)]


def _answer(line: str, space: dict[str, Any]) -> tuple[str, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            if line.startswith("X "):
                exec(line[2:].replace("; ", "\n") if ":" not in line else line[2:], space)
                shown = "done"
            else:
                shown = repr(eval(line, space))
        except Exception as error:
            shown = f"!{type(error).__name__}: {str(error).partition('Exception raised')[0].strip()}"
    shown = re.sub(r"0x[0-9a-f]+", "0x", shown)
    return shown, [f"{each.category.__name__}: {_words(each.message)}" for each in said]


def _words(message: Any) -> str:
    """Return the text of a warning without the position in PyTorch's C++ sources."""
    return re.sub(r" ?\(Triggered internally at .*", "", str(message), flags=re.DOTALL).strip()
