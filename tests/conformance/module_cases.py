"""Sessions with modules, containers, hooks, states and utilities (module_sessions.txt), and how they are run.

The lines of a topic are one program. For each statement the value or error, the warnings and the entries of ``log`` are
recorded.
"""

from __future__ import annotations

import copy
import pathlib
import pickle
import re
import sys
import warnings
from collections import OrderedDict
from typing import Any

SOURCE = pathlib.Path(__file__).with_name("module_sessions.txt")


def programs(source: pathlib.Path = SOURCE) -> dict[str, list[str]]:
    """Return the statements by topic."""
    found: dict[str, list[str]] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"\[[a-z' ]+\]", line):
            topic = found.setdefault(line.strip("[]"), [])
        elif line.startswith(" ") or not line:
            topic[-1] += "\n" + line
        elif not line.startswith("#"):
            topic.append(line)
    return found


def shown(torch: Any, statements: list[str]) -> list[str]:
    """Return the output of each statement, without addresses."""
    log: list[Any] = []
    space = {
        "torch": torch, "nn": torch.nn, "copy": copy, "pickle": pickle, "OD": OrderedDict, "warnings": warnings, "log": log,
        "__name__": "session",
    }  # fmt: skip
    torch.manual_seed(0)
    found = []
    for each in statements:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            text = run(each, space)
        if log:
            text += f" | log {log!r}"
            log.clear()
        # PyTorch adds the position in its sources to some.
        texts = [f" | {each.category.__name__}: {str(each.message).partition(' (Triggered')[0]}" for each in warned]
        found.append(re.sub(r" at 0x[0-9a-f]+", "", text + "".join(texts)))
    return found


def newer(text: str) -> str:
    """Return a recorded text with ordered dicts as this Python shows them: ``{key: value}`` from 3.12 on."""
    before, found, rest = text.partition("OrderedDict([")
    if not found or sys.version_info < (3, 12):
        return text
    pairs, start, depth = [], 0, 0
    for place, sign in enumerate(rest):
        if sign in "([{":
            depth += 1
            start = place + 1 if depth == 1 else start
        elif sign in ")]}":
            depth -= 1
            if depth == 0:
                pairs.append(newer(rest[start:place].replace(", ", ": ", 1)))
            elif depth < 0:
                return f"{before}OrderedDict({{{', '.join(pairs)}}}{newer(rest[place + 1 :])}"
    raise ValueError(f"an OrderedDict without an end: {text}")


def run(statement: str, space: dict[str, Any]) -> str:
    """Run a statement and return its value, if it has one, or its error."""
    try:
        code = compile(statement, "<module_sessions.txt>", "eval")
    except SyntaxError:
        code = compile(statement, "<module_sessions.txt>", "exec")
    try:
        value = eval(code, space)
        return "" if value is None else repr(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
