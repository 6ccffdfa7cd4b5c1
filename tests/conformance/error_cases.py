"""Calls that fail (failing_calls.txt, failing_calls_of_classes.txt), their inputs, and the comparison of errors.

Each call gets new inputs: ``x`` 2 by 3, ``v`` of 3, ``s`` 0-d, ``i`` int64, ``b`` bool, ``c`` complex, ``h`` half,
``w`` a leaf that requires grad, ``y`` computed from it, ``e`` without elements, ``m`` 3 by 3, ``t`` of three
dimensions.
"""

from __future__ import annotations

import copy
import io
import math
import operator
import pathlib
import pickle
import re
import warnings
from typing import Any

import numpy

SOURCES = [pathlib.Path(__file__).with_name(name) for name in ("failing_calls.txt", "failing_calls_of_classes.txt")]


def calls(sources: list[pathlib.Path] = SOURCES) -> dict[str, list[str]]:
    """Return the calls by topic."""
    found: dict[str, list[str]] = {}
    for line in (line for each in sources for line in each.read_text(encoding="utf-8").splitlines()):
        if re.fullmatch(r"\[[a-z ]+\]", line):
            topic = found.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            topic.append(line)
    return found


def inputs(torch: Any) -> dict[str, Any]:
    """Return the tensors that the calls use."""
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return {
        "x": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "v": torch.tensor([1.0, 2.0, 3.0]), "w": w,
        "s": torch.tensor(2.0), "i": torch.tensor([0, 1, 2]), "b": torch.tensor([True, False, True]), "y": w * 2,
        "c": torch.tensor([1 + 2j, 3 - 1j]), "h": torch.tensor([1.0, 2.0], dtype=torch.float16),
        "e": torch.empty(0, 3), "m": torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]),
        "t": torch.ones(2, 3, 4),
    }  # fmt: skip


def failure(torch: Any, call: str, given: dict[str, Any]) -> Exception | None:
    """Return the error that ``call`` raises."""
    names = {
        "torch": torch, "np": numpy, "math": math, "operator": operator, "copy": copy, "pickle": pickle, "io": io, "nn": torch.nn,
        "F": torch.nn.functional, "optim": torch.optim, "data": torch.utils.data, **given
    }  # fmt: skip
    torch.manual_seed(0)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(call.replace("\\n", "\n"), names)
        except Exception as error:
            return error
    return None


#: Python's own messages in newer versions, and their text in Python 3.11, in which the answers were recorded.
NEWER = (
    (r"without an implementation for abstract method '(\w+)'", r"with abstract method \1"),  # 3.12
    (r"^(str\(\) argument 'encoding' must be str, not )torch\.", r"\1"),  # 3.13
)


def first_line(error: Exception) -> str:
    """Return the first line of an error, without the differences between runs and between versions of Python."""
    line = re.sub(r"0x[0-9a-f]+", "0x…", (str(error).splitlines() or [""])[0])
    for newer, older in NEWER:
        line = re.sub(newer, older, line)
    return line


def agrees(error: Exception | None, kind: str, text: str) -> bool:
    """Whether an error matches the recorded one: its type or a subclass, and PyTorch's first line contained in its
    text.
    """
    kinds = {each.__name__ for each in type(error).__mro__}
    return error is not None and kind in kinds and text in first_line(error)
