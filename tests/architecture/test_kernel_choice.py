"""The choice of a kernel by size or library is made in ``kernels/``, never in the body of an operation.

``kernels/select.py`` chooses among the variants of a kernel, and ``kernels/thresholds.py`` has all thresholds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import retrograd
from retrograd.kernels import select, thresholds

OPERATIONS = Path(retrograd.__file__).parent / "operations"
KERNELS = Path(retrograd.__file__).parent / "kernels"
FILES = sorted(path.relative_to(OPERATIONS).as_posix() for path in OPERATIONS.rglob("*.py"))

#: Functions that return whether a library is installed or supports arrays.
QUESTIONS = {"available", "suits", "looped", "find_spec"}
#: Comparisons that are part of the meaning of an operation, with the reason.
EXCEPTIONS = {
    ("creation/factory.py", "math.prod(sizes) >= 2 ** 61"): "the size in bytes overflows int64, which PyTorch reports",
    ("creation/from_data.py", "len(shape) > _MAX_DEPTH"): "the depth of nested lists, which PyTorch limits",
    ("reductions/statistics.py", "each.size < 2"): "histogramdd raises PyTorch's error for fewer than two edges",
}


def is_count(node: ast.AST, names: set[str], lengths: bool) -> bool:
    """Whether an expression contains a number of elements; ``names`` are variables that hold one.

    The length of a sequence is such a number only if ``lengths`` is true; it may also be a rank.
    """
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and each.attr in ("size", "prod", "numel"):
            return True
        if isinstance(each, ast.Name) and (each.id in names or (each.id == "len" and lengths)):
            return True
    return False


def is_limit(node: ast.AST) -> bool:
    """Whether an expression is a constant greater than 1, or the upper-case name of one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 1
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(is_limit, sides)) and all(is_limit(each) or isinstance(each, ast.Constant) for each in sides)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.isupper()


def counted_names(function: ast.AST) -> set[str]:
    """Return the local variables of a function that are assigned a number of elements."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr) and isinstance(node.value, ast.Attribute | ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            counted = node.value.attr == "size" if isinstance(node.value, ast.Attribute) else is_product(node.value)
            found |= {target.id for target in targets if counted and isinstance(target, ast.Name)}
    return found


def is_product(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "math.prod" or ast.unparse(node.func).endswith(".numel")


def bodies(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions and lambda expressions of a module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
        else:
            yield from bodies(node)
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                yield from bodies(decorator)


def chooses_by_size(node: ast.Compare, names: set[str]) -> bool:
    """Whether a comparison compares a number of elements with a limit."""
    sides = [node.left, *node.comparators]
    limits = [each for each in sides if is_limit(each)]
    named = any(not isinstance(each, ast.Constant) for each in limits)
    return bool(limits) and any(is_count(each, names, named) for each in sides if each not in limits)


def choices(source: str) -> Iterator[str]:
    """Yield the expressions in function bodies that choose a kernel by size or library."""
    for function in bodies(ast.parse(source)):
        names = counted_names(function)
        body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
        for node in (each for statement in body for each in ast.walk(statement)):
            if (isinstance(node, ast.Compare) and chooses_by_size(node, names)) or (
                isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in QUESTIONS
            ):
                yield ast.unparse(node)


@pytest.mark.parametrize("file", FILES)
def test_operations_do_not_choose_kernels(file: str) -> None:
    found = [
        each for each in choices((OPERATIONS / file).read_text(encoding="utf-8")) if (file, each) not in EXCEPTIONS
    ]
    assert found == []


def test_exceptions_are_still_needed() -> None:
    found = {(file, each) for file in FILES for each in choices((OPERATIONS / file).read_text(encoding="utf-8"))}
    assert set(EXCEPTIONS) <= found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x if x.size >= LARGE else y", ["x.size >= LARGE"]),
        ("return x if 0 < x.size <= 64 else y", ["0 < x.size <= 64"]),
        ("n = x.size\n    return x if n < thresholds.LARGE else y", ["n < thresholds.LARGE"]),
        ("return math.prod(shape) >= 1 << 15", ["math.prod(shape) >= 1 << 15"]),
        ("return x.numel() > 100", ["x.numel() > 100"]),
        ("return len(x) < LARGE", ["len(x) < LARGE"]),
        (
            "return looped('exp', x) if numba_dispatch.available() else x",
            ["looped('exp', x)", "numba_dispatch.available()"],
        ),
        ("return x.size == 0 or x.size > 1 or len(shape) == 2 or len(shape) > 3", []),
    ],
)
def test_the_walk_finds_what_it_names(body: str, expected: list[str]) -> None:
    assert set(choices(f"def f(np, x, shape):\n    {body}")) == set(expected)


def test_lambda_expressions_of_declarations_are_walked() -> None:
    declaration = "@op(inline=lambda x: x.size < 64, write=(lambda x: x.size < 9, lambda x: x))\ndef f(np, x): ..."
    assert list(choices(declaration)) == ["x.size < 64", "x.size < 9"]


def test_limits_of_variants_are_in_the_table() -> None:
    """Every limit of a declared kernel is a threshold of ``kernels/thresholds.py``."""
    table = {value for name, value in vars(thresholds).items() if name.isupper()} | {0, -1}
    for kernel in select.KERNELS.values():
        if not kernel.name.startswith("retrograd."):
            continue
        for variant in kernel.variants:
            limit = variant.high if variant.low == 0 else variant.low
            assert limit in table, f"{kernel.name}: {limit}"


def test_every_threshold_is_used_and_explained() -> None:
    """Every threshold has a comment above it and is imported by a kernel."""
    source = (KERNELS / "thresholds.py").read_text(encoding="utf-8")
    lines = source.splitlines()
    used = "".join(path.read_text(encoding="utf-8") for path in KERNELS.glob("*.py") if path.name != "thresholds.py")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            assert lines[node.lineno - 2].startswith("#:"), ast.unparse(node)
            for name in (each.id for each in ast.walk(node) if isinstance(each, ast.Name)):
                assert name in used, name
