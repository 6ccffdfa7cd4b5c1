"""Annotations: no ``Any`` without a reason; Note [Any in annotations] in ``core/typing.py`` has the rule.

``python -m tests.architecture.test_annotations [folder]`` prints the findings, and the number of annotations with ``Any``
that have a reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import retrograd

PACKAGE = Path(retrograd.__file__).parent
#: The folders that are checked.
FOLDERS = ["runtime", "core", "dispatch", "compiler"]
#: The modules of the aliases, where the comment of an alias is the reason; the first explains the other reasons.
ALIASES = ("core/typing.py", "runtime/typing.py", "dispatch/typing.py", "compiler/typing.py")
NOTE = re.compile(r"#.*Note \[(Any [^\]]+)\]")
#: These reasons.
REASONS = set(re.findall(r"^- Note \[(Any [^\]]+)\]", (PACKAGE / ALIASES[0]).read_text(encoding="utf-8"), re.MULTILINE))

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Expressions that an assignment of a type alias may have.
ALIAS_VALUES = (ast.Subscript, ast.BinOp, ast.Name)


def has_any(annotation: ast.expr | None) -> bool:
    """Whether ``Any`` occurs in an annotation, also within quotes."""
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                if has_any(ast.parse(node.value, mode="eval").body):
                    return True
            except SyntaxError:
                continue
        if getattr(node, "id", getattr(node, "attr", None)) == "Any":
            return True
    return False


def annotated(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every statement with an annotation that contains ``Any``, and the name of what is annotated.

    These are functions with their parameters and results, attributes of classes, instances and modules, type aliases,
    and base classes. Local variables are not included.
    """

    def walk(node: ast.AST, local: bool) -> Iterator[tuple[ast.stmt, str]]:
        if isinstance(node, Function):
            given = node.args
            every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
            yield from ((node, each.arg) for each in every if each is not None and has_any(each.annotation))
            if has_any(node.returns):
                yield node, "return"
        elif isinstance(node, ast.ClassDef) and any(map(has_any, node.bases)):
            yield node, "bases"
        elif isinstance(node, ast.AnnAssign):
            if not (local and isinstance(node.target, ast.Name)) and (
                has_any(node.annotation) or (ast.unparse(node.annotation).endswith("TypeAlias") and has_any(node.value))
            ):
                yield node, ast.unparse(node.target)
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ALIAS_VALUES) and not local and has_any(node.value)
        ):
            yield node, ast.unparse(node.targets[0])
        local = isinstance(node, Function) or (local and not isinstance(node, ast.ClassDef))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, local)

    return walk(tree, False)


def reason(node: ast.stmt, lines: list[str]) -> str | None:
    """Return the title of the Note that the comments of a statement name, or None.

    The comments are those in the lines of the statement (of a function or class: up to its body) and the comment above.
    """
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    body = getattr(node, "body", None)
    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    found = NOTE.search("\n".join(lines[first - 1 : last]))
    return found and found[1]


def findings(source: str, file: str) -> tuple[list[str], int]:
    """Return the annotations with ``Any`` that have no valid reason, and the number of those that have one."""
    lines, wrong, explained = source.split("\n"), [], 0
    for node, name in annotated(ast.parse(source)):
        given = reason(node, lines)
        documented = file in ALIASES and isinstance(node, ast.AnnAssign) and lines[node.lineno - 2].startswith("#")
        if documented or given in REASONS:
            explained += 1
        else:
            wrong.append(f"{file}:{node.lineno}: {name}: Any " + (f"for an unknown reason: {given}" if given else ""))
    return wrong, explained


def files(*folders: str) -> list[str]:
    """Return the Python files below ``folders``, as paths below the package."""
    every = [path for folder in folders or FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [path.relative_to(PACKAGE).as_posix() for path in every]


@pytest.mark.parametrize("file", files())
def test_any_has_a_reason(file: str) -> None:
    assert findings((PACKAGE / file).read_text(encoding="utf-8"), file)[0] == []


def test_aliases_are_not_loaded_at_run_time() -> None:
    """Modules import the aliases for type checkers only."""
    for file in files(""):
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        guarded = {
            id(child)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for child in ast.walk(node)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and node.level
                and (node.module == "typing" or (node.module or "").endswith(".typing"))
            ):
                assert id(node) in guarded, f"{file}:{node.lineno} loads {node.module}"


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("def f(x: Any) -> int: ...", 1),
        ("def f(*x: Any, **y: dict[str, Any]) -> 'list[Any]': ...", 3),
        ("def f(x: object) -> int:\n    y: Any = x\n    return y", 0),
        ("def f(self) -> None:\n    self.x: Any = 1", 1),
        ("class C(dict[str, Any]):\n    x: ClassVar[typing.Any]", 2),
        ("Function = Callable[..., Any]", 1),
        ("x: Any = 1  # Note [Any of declarations]", 0),
        ("x: Any = 1  # Note [Any of laziness]", 1),
        ("# Note [Any of declarations]: compiled.\n@cache\ndef f(x: Any) -> Any:\n    return x", 0),
        ("def f(\n    x: Any,\n) -> Any:  # Note [Any of declarations]\n    return x", 0),
        ("def f(x: Any) -> None:\n    '''Note [Any of declarations]'''", 1),
        ("def f() -> None:\n    def g(x: Any) -> None: ...", 1),
    ],
)
def test_any_without_a_reason_is_found(source: str, wrong: int) -> None:
    assert len(findings(source, "core/a.py")[0]) == wrong


if __name__ == "__main__":
    found = [findings((PACKAGE / file).read_text(encoding="utf-8"), file) for file in files(*sys.argv[1:])]
    print("\n".join(line for wrong, _ in found for line in wrong))
    print(f"{sum(len(wrong) for wrong, _ in found)} without a reason, {sum(count for _, count in found)} with one")
