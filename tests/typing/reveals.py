"""Types of expressions: ``python -m tests.typing.reveals PYTHON`` records in ``reveals.txt`` what PyTorch's stubs reveal.

PYTHON is the interpreter of an environment with PyTorch; mypy runs in this one. A line of the file is an expression, the type
that mypy reveals with PyTorch's stubs, and if it is another one, the type with the stubs of the package, separated by `` | ``
with two spaces. The last column is written by hand once it has been read: each is more exact, or is explained in
``docs/types.md``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FILE = Path(__file__).with_name("reveals.txt")
SEPARATOR = "  |  "
PREAMBLE = """\
import numpy
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

a = numpy.ones(3)
x, y, m, t = torch.ones(2, 3), torch.ones(2, 3), torch.ones(3, 3), torch.ones(1, 1, 4, 4)
v, w, p = torch.ones(3), torch.ones(3), torch.ones(3)
i, b, c = torch.tensor([0]), torch.ones(2, 3) > 0, torch.ones(2) + 1j
optimizer = torch.optim.SGD([p], lr=0.1)
dataset = torch.utils.data.TensorDataset(x, y)
normal = torch.distributions.Normal(0.0, 1.0)
"""


def rows() -> list[list[str]]:
    """Return the columns of the lines of the file."""
    return [line.split(SEPARATOR) for line in FILE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


def program(expressions: list[str]) -> str:
    """Return a program that reveals the types of expressions, each in its own line."""
    return PREAMBLE + "".join(f"reveal_type({each})\n" for each in expressions)


def plain(text: str) -> str:
    """Return a revealed type with the last parts of names only, so that it does not depend on modules and packages."""
    text = re.sub(r"Overload\(.*\)|def .*", "def", text)
    text = re.sub(r"[\w.]+\.([\w@]+)", r"\1", text.replace("builtins.", "")).replace("?", "").replace("*", "")
    text = re.sub(r", fallback=(?:[^\[\]]|\[[^\]]*\])*\]", "]", text)
    text = re.sub(r"Literal\[('[^']*'|\w+)\]", lambda match: match[0], text)
    parts = text.split(" | ")
    return " | ".join(sorted(parts)) if "[" not in text else text


def revealed(lines: list[tuple[int, str]]) -> dict[int, str]:
    """Return the revealed types by line, from what mypy reports."""
    return {line: plain(match[1]) for line, text in lines if (match := re.search(r'Revealed type is "(.*)"', text))}


def record(python: str) -> None:
    """Write the types of PyTorch's stubs into the file; the last column is kept."""
    known = rows()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reveals.py"
        path.write_text(program([each[0] for each in known]), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--python-executable", python, "--no-error-summary", "--cache-dir",
             str(Path(tempfile.gettempdir()) / "mypy-of-pytorch"), str(path)],
            capture_output=True, encoding="utf-8", cwd=folder,
        )  # fmt: skip
    found = [
        (int(match[1]), match[2]) for match in re.finditer(r"^reveals\.py:(\d+): (.*)$", done.stdout, re.MULTILINE)
    ]
    types = revealed(found)
    for line, text in found:
        if "error:" in text:
            print(line, text, known[line - 1 - PREAMBLE.count("\n")][0] if line > PREAMBLE.count("\n") else "")
    start = PREAMBLE.count("\n") + 1
    lines = ["# Expression, its type in PyTorch's stubs, and the type here where it differs; see reveals.py."]
    for number, each in enumerate(known):
        lines.append(SEPARATOR.join([each[0], types.get(start + number, "error"), *each[2:]]))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
