"""Write docs/errors.md: what PyTorch and retrograd say about the same mistakes.

``python3 scripts/error_messages.py --pytorch <python with PyTorch>`` runs each program in both and writes the page. The
test ``tests/architecture/test_error_page.py`` compares the page with what retrograd says today.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"
#: A title and a program that raises an error.
PROGRAMS = [
    ("Shapes that do not broadcast", "x = torch.ones(3)\ny = torch.ones(4)\nx + y"),
    ("A matrix product of wrong shapes", "torch.ones(2, 3) @ torch.ones(2, 3)"),
    ("A layer of another width", "layer = torch.nn.Linear(10, 2)\nlayer(torch.ones(4, 8))"),
    ("Two floating-point types", "torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64)"),
    ("backward() of many elements", "x = torch.ones(3, requires_grad=True)\n(x * 2).backward()"),
    ("backward() without a graph", "x = torch.ones(3, requires_grad=True)\ny = x.detach().sum()\ny.backward()"),
    ("backward() twice", "x = torch.ones(3, requires_grad=True)\ny = (x * x).sum()\ny.backward()\ny.backward()"),
    ("A leaf changed in place", "x = torch.ones(3, requires_grad=True)\nx += 1"),
    ("A saved tensor changed in place",
     "x = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()"),
    ("An input that is not part of the graph",
     "x = torch.ones(3, requires_grad=True)\nw = torch.ones(3, requires_grad=True)\n"
     "torch.autograd.grad((x * 2).sum(), w)"),
    ("numpy() of a tensor that requires a gradient", "torch.ones(3, requires_grad=True).numpy()"),
    ("A gradient of integers", "torch.tensor([1, 2], requires_grad=True)"),
    ("An index out of range", "x = torch.arange(5)\nx[7]"),
    ("A dimension that does not exist", "torch.ones(2, 3).sum(dim=2)"),
    ("A view of a transposed tensor", "torch.ones(2, 3).t().view(6)"),
    ("item() of many elements", "torch.ones(3).item()"),
    ("Tensors of several shapes stacked", "torch.stack([torch.ones(2), torch.ones(3)])"),
    ("Class labels as floats", "loss = torch.nn.CrossEntropyLoss()\nloss(torch.ones(2, 3), torch.tensor([0.0, 1.0]))"),
    ("A class out of range", "torch.nn.functional.nll_loss(torch.zeros(2, 3), torch.tensor([0, 3]))"),
    ("A word that the embedding lacks", "torch.nn.Embedding(10, 4)(torch.tensor([3, 10]))"),
    ("An image without the channel dimension", "torch.nn.Conv2d(3, 8, 3)(torch.ones(1, 1, 28, 28))"),
    ("A state of another model", "torch.nn.Linear(2, 1).load_state_dict({'weigth': torch.ones(1, 2)})"),
    ("A misspelt function", "torch.sofmax(torch.ones(3), dim=0)"),
    ("A misspelt argument", "torch.softmax(torch.ones(3), dims=0)"),
]  # fmt: skip
#: Runs the programs of a JSON file and prints a JSON list of their errors.
RUNNER = """
import json, linecache, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[2] == "torch":
    import torch
else:
    import retrograd as torch
found = []
for title, text in json.load(open(sys.argv[1])):
    torch.manual_seed(0)
    linecache.cache["program.py"] = (len(text), None, [line + "\\n" for line in text.split("\\n")], "program.py")
    try:
        exec(compile(text, "program.py", "exec"), {"torch": torch, "__name__": "program"})
    except Exception as error:
        found.append("\\n".join([type(error).__name__ + ": " + str(error), *getattr(error, "__notes__", [])]))
    else:
        found.append("")
print(json.dumps(found))
"""


def messages(python: str, engine: str) -> list[str]:
    """Return the errors of all programs under ``engine``, ``"torch"`` or ``"retrograd"``, run by ``python``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "programs.json")
        path.write_text(json.dumps(PROGRAMS), encoding="utf-8")
        command = [python, "-c", RUNNER, str(path), engine]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = [re.sub(r"\(not in retrograd; see .*?\)", "", each).rstrip() for each in json.loads(answer.stdout)]
    return [each.replace(str(ROOT), "") for each in found]


def page(pytorch: list[str], retrograd: list[str]) -> str:
    """Return the text of the page."""
    parts = [
        "# PyTorch says, retrograd says",
        "Written by `scripts/error_messages.py`, which runs each program in both. retrograd raises PyTorch's exception\n"
        "type with PyTorch's words, and adds what it knows: the line, the name, the remedy.",
    ]
    for (title, text), theirs, ours in zip(PROGRAMS, pytorch, retrograd, strict=True):
        parts += [
            f"## {title}",
            f"```text\n{text}\n```",
            f"PyTorch 2.13:\n\n```text\n{theirs}\n```",
            f"retrograd:\n\n```text\n{ours}\n```" if ours != theirs else "retrograd: the same.",
        ]
    return "\n\n".join(parts) + "\n"


def recorded(text: str) -> list[str]:
    """Return PyTorch's messages of a page."""
    return re.findall(r"PyTorch 2\.13:\n\n```text\n(.*?)\n```", text, re.DOTALL)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--pytorch", help="a Python with PyTorch; without it the page's messages of PyTorch are kept")
    chosen = options.parse_args()
    theirs = messages(chosen.pytorch, "torch") if chosen.pytorch else recorded(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page(theirs, messages(sys.executable, "retrograd")), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written.")
