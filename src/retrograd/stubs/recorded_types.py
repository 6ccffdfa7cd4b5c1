"""Types where the sources of the package say ``Any`` or nothing: what PyTorch declares, as ``types.txt`` records it.

``by_hand.txt`` has complete declarations, which replace all others. In both files a line is the declaration of a
function, or of an attribute, under PyTorch's name. Types are written with their full names.
Of a function whose signatures are in ``dispatch/signatures.txt`` only the result is recorded, if it is not a Tensor:

    torch.max(input, dim, keepdim) -> torch.return_types.max
    torch.nn.functional.cosine_embedding_loss(margin: float) -> torch.Tensor
    torch.Tensor.names: tuple[str, ...]
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from ..runtime.codegen import parse_expression

#: Requested parts of declarations: names of parameters, ``return``, or an empty text for an attribute.
asked: dict[str, set[str]] = {}
#: Files that are not read, while they are recorded.
ignored: set[str] = set()


@cache
def _lines(file: str = "types.txt") -> dict[str, list[str]]:
    """Return the lines of a file without the names, by name."""
    found: dict[str, list[str]] = {}
    path = Path(__file__).with_name(file)
    for line in path.read_text(encoding="utf-8").splitlines() if file not in ignored else ():
        if line and line[0] != "#":
            stop = min(place for place in (line.find("("), line.find(": ")) if place > 0)
            found.setdefault(line[:stop], []).append(line[stop:])
    return found


def by_hand(name: str) -> list[ast.FunctionDef]:
    """Return the declarations of a function in ``by_hand.txt``, as definitions."""
    lines = [line for line in _lines("by_hand.txt").get(name, ()) if line[0] == "("]
    found = [ast.parse(f"def f{line}: ...").body[0] for line in lines]
    return [each for each in found if isinstance(each, ast.FunctionDef)]


def attribute_by_hand(name: str) -> ast.expr | None:
    """Return the type of an attribute in ``by_hand.txt``, or None."""
    line = _lines("by_hand.txt").get(name, [""])[0]
    return parse_expression(line[2:]) if line[:1] == ":" else None


def members_by_hand(name: str) -> list[str]:
    """Return the names of the methods of a class that ``by_hand.txt`` declares."""
    found = _lines("by_hand.txt").items()
    return [each.rpartition(".")[2] for each, lines in found if each.rpartition(".")[0] == name and lines[0][0] == "("]


def result(name: str, parameters: list[str]) -> ast.expr | None:
    """Return the type of the result of a function, called with the parameters, or None if it is a Tensor.

    Example: ``result("torch.max", ["input", "dim", "keepdim"])``.
    """
    lines = _lines().get(name, ())
    for line in lines:
        shown, _, kind = line.rpartition(") -> ")
        if shown == "(" + ", ".join(parameters):
            return parse_expression(kind)
    kinds = {line.rpartition(") -> ")[2] for line in lines if line.startswith("(*)")}
    return parse_expression(kinds.pop()) if len(kinds) == 1 else None


def declared(name: str, part: str) -> ast.expr | None:
    """Return the type of a parameter of a function, of its result (``return``), or of an attribute (an empty text)."""
    if not part and (known := attribute_by_hand(name)) is not None:
        return known
    asked.setdefault(name, set()).add(part)
    for line in _lines().get(name, ()):
        if not part and line[0] == ":":
            return parse_expression(line[2:])
        if part and line[0] == "(":
            node = ast.parse(f"def f{line}: ...").body[0]
            assert isinstance(node, ast.FunctionDef)
            if part == "return":
                return node.returns
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            for each in every:
                if each is not None and each.arg == part:
                    return each.annotation
    return None
