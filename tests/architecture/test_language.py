"""Docstrings and comments are plain technical English; docs/design.md ("Language") has the rules.

``python -m tests.architecture.test_language [folder]`` prints the findings by file.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "scripts", "benchmarks", "examples")
#: Files of recorded words and of samples, whose text is data.
DATA = ("tests/conformance/golden/", "tests/conformance/samples/", "tests/programs/typical/")

#: A docstring opens with an imperative or a noun phrase, not with one of these.
OPENINGS = re.compile(r"(What|How|Who|Whom|Whose|Where|Which)\b")
#: Phrases that paraphrase a standard term or make a person of the code.
PHRASES = (
    r"(no|some|every|any)body", r"everyone", r"who(ever|m)?", r"(is|are|was|were|be|been|being) (asked|told)",
    r"asks? (for it|it|them)", r"tells? (it|them|how|what|whether)", r"anew", r"(lies|lie|lay|lain) (in|at|on|there|together)",
    r"(no )?business of", r"no business", r"(of )?one's own", r"(short|quick|long) ways?", r"sweeps?", r"swept", r"gives? back",
    r"sorts? out", r"stands? (for|in|on|at|here|there|beside|between)", r"let go", r"(says|said) (so|that|what|how|it)",
    r"few numbers", r"hand(s|ed) over", r"in the name of", r"crew", r"homely", r"likewise",
)  # fmt: skip
PHRASE = re.compile(r"\b(" + "|".join(PHRASES) + r")\b", re.IGNORECASE)
#: Findings that stay: a file with the exact words, and the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("tests/scenarios/torch_function.py", "one-word docstring: Twice."): "the docstring is part of the recorded answer",
}

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def returns_bool(node: ast.AST) -> bool:
    """Whether a function is annotated as returning a bool, or has no annotation."""
    returns = getattr(node, "returns", None)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
        returns is None or "bool" in ast.unparse(returns)
    )


def prose(text: str) -> str:
    """Return ``text`` without code: doctest lines, literal blocks and words in backticks."""
    lines = []
    for block in re.split(r"\n\s*\n", re.sub(r"`+[^`]+`+", "``", text)):
        if not block.lstrip().startswith(">>>"):
            lines.append(block)
    return "\n\n".join(lines)


def docstring_findings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of every docstring that breaks a rule."""
    for node in ast.walk(tree):
        if not isinstance(node, Documented) or (text := ast.get_docstring(node)) is None:
            continue
        line = node.body[0].lineno
        first = text.strip().split("\n")[0]
        if re.fullmatch(r"\W*\w+\W*", text.strip()):
            yield line, f"one-word docstring: {first}"
        elif OPENINGS.match(first):
            yield line, f"opens with {first.split()[0]}: {first}"
        elif first.startswith("Whether") and not returns_bool(node):
            yield line, f"Whether, but no bool is returned: {first}"
        yield from ((line, f"phrase {found[0]!r}") for found in PHRASE.finditer(prose(text)))


def comment_findings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of every comment that breaks a rule."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = re.sub(r"`+[^`]+`+", "", token.string)
            yield from ((token.start[0], f"phrase {found[0]!r}") for found in PHRASE.finditer(text))


def findings(path: Path) -> list[str]:
    """Return the findings of a file, each with its line."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    found = [*docstring_findings(ast.parse(source)), *comment_findings(source)]
    return [f"{name}:{line}: {fault}" for line, fault in sorted(found) if (name, fault) not in EXCEPTIONS]


def files(*folders: str) -> list[Path]:
    """Return the Python files below ``folders``, without those whose text is data."""
    every = [path for folder in folders or FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    own = Path(__file__).resolve()
    return [path for path in every if path != own and not path.relative_to(ROOT).as_posix().startswith(DATA)]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_and_comments_are_plain(path: Path) -> None:
    assert findings(path) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ('def f():\n    """Nothing."""', 1),
        ('def f():\n    """What is added."""', 1),
        ('def f() -> int:\n    """Whether x is set."""', 1),
        ('def f() -> bool:\n    """Whether x is set."""', 0),
        ('def f():\n    """Return the sum.\n\n    >>> what = "whoever"\n    """', 0),
        ("x = 1  # nobody is asked", 2),
        ("x = 1  # the edge's version", 0),
    ],
)
def test_the_lint_finds_what_it_names(source: str, faults: int) -> None:
    assert len([*docstring_findings(ast.parse(source)), *comment_findings(source)]) == faults


if __name__ == "__main__":
    every = [line for path in files(*sys.argv[1:]) for line in findings(path)]
    print("\n".join([*every, f"{len(every)} findings"]))
