"""Count the package's lines of code, comment, docstring and blank by layer and file, and list its long functions.

``python3 scripts/size.py [folder]``; the default folder is ``src/retrograd``.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "retrograd"
LAYERS = [
    "runtime", "compat", "core", "kernels", "dispatch", "operations", "autograd", "inspection", "func", "profiler", "nn", "optim",
    "compiler",
]  # fmt: skip
KINDS = ["code", "comment", "docstring", "blank"]
SCREEN = 60

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the line numbers of all docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def count(source: str) -> Counter[str]:
    """Return the number of lines of each kind; a line of code with a trailing comment is code."""
    docstrings = docstring_lines(ast.parse(source))
    code: set[int] = set()
    comments: set[int] = set()
    silent = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in silent:
            code.update(range(token.start[0], token.end[0] + 1))
    total = len(source.splitlines())
    code -= docstrings
    comments -= code | docstrings
    return Counter(
        code=len(code),
        comment=len(comments),
        docstring=len(docstrings),
        blank=total - len(code) - len(comments) - len(docstrings),
    )


def long_functions(source: str) -> Iterator[tuple[int, str]]:
    """Yield length and name of the functions that are longer than a screen."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > SCREEN:
                yield length, node.name


def layer_of(path: Path, package: Path) -> str:
    """Return the layer of a file: its folder, or ``top``."""
    first = path.relative_to(package).parts[0]
    return first if (package / first).is_dir() else "top"


def row(title: str, counts: Counter[str]) -> str:
    numbers = "".join(f"{counts[kind]:>11,}" for kind in KINDS)
    return f"{title:<36}{numbers}{counts.total():>11,}"


def report(package: Path) -> str:
    """Return the report as text."""
    files: dict[str, dict[str, Counter[str]]] = {}
    long: list[tuple[int, str]] = []
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        files.setdefault(layer_of(path, package), {})[name] = count(source)
        long += [(length, f"{name}: {function}") for length, function in long_functions(source)]
    lines = [f"{'':<36}" + "".join(f"{kind:>11}" for kind in [*KINDS, "all"])]
    everything: Counter[str] = Counter()
    for layer in sorted(files, key=lambda name: (LAYERS.index(name) if name in LAYERS else len(LAYERS), name)):
        whole = sum(files[layer].values(), Counter[str]())
        lines += ["", row(layer, whole), *(row(f"  {name}", counts) for name, counts in files[layer].items())]
        everything += whole
    lines += ["", row("all", everything), "", f"{len(long)} functions of more than {SCREEN} lines"]
    lines += [f"  {length:4d}  {where}" for length, where in sorted(long, reverse=True)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PACKAGE))
