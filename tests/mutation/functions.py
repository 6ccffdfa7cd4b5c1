"""Functions, their syntax trees, and the exchange of the code of a function by that of a mutant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Tree = ast.Lambda | ast.FunctionDef


@cache
def _trees(file: str) -> dict[tuple[str, int], list[Tree]]:
    """Return the functions in a source file by name and first line, as a code object states them."""
    found: dict[tuple[str, int], list[Tree]] = {}
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"), file)):
        if isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault((node.name, line), []).append(node)
    return found


def tree_of(code: CodeType) -> Tree | None:
    """Return the syntax tree of a function with the code ``code``, or None if there is not exactly one."""
    fits = _trees(code.co_filename).get((code.co_name, code.co_firstlineno), [])
    if len(fits) > 1:
        fits = [tree for tree in fits if _body_place(tree) == _place(code)]
    return fits[0] if len(fits) == 1 else None


def _place(code: CodeType) -> tuple[int, int]:
    return min(
        ((line, column) for line, _, column, end in code.co_positions() if line and column is not None and end),
        default=(0, 0),
    )


def _body_place(tree: Tree) -> tuple[int, int]:
    return (tree.body.lineno, tree.body.col_offset) if isinstance(tree, ast.Lambda) else (0, 0)


def compiled(tree: Tree, code: CodeType) -> CodeType:
    """Return the code of ``tree``, with the free variables of ``code``, which it takes the place of."""
    free = ast.Tuple([ast.Name(each, ast.Load()) for each in code.co_freevars], ast.Load())
    made: Any
    if isinstance(tree, ast.Lambda):
        body = ast.IfExp(ast.Constant(True), tree.body, free) if code.co_freevars else tree.body
        made = ast.Return(ast.Lambda(tree.args, body))
    else:
        unused = [ast.If(ast.Constant(False), [ast.Expr(free)], [])] if code.co_freevars else []
        made = ast.FunctionDef(tree.name, tree.args, [*tree.body, *unused], [])
        made.type_params = []
    ast.copy_location(made, tree)
    arguments = ast.arguments([], [ast.arg(each) for each in code.co_freevars], None, [], [], None, [])
    outer: Any = ast.FunctionDef("outer", arguments, [made], [], lineno=1, col_offset=0)
    outer.type_params = []
    module = compile(
        ast.fix_missing_locations(ast.Module([outer], [])), code.co_filename, "exec", flags=_FUTURE, dont_inherit=True
    )
    function = next(each for each in module.co_consts if isinstance(each, CodeType))
    inner = next(each for each in function.co_consts if isinstance(each, CodeType) and each.co_name == code.co_name)
    assert inner.co_freevars == code.co_freevars, (inner.co_freevars, code.co_freevars)
    return inner


_FUTURE = __import__("__future__").annotations.compiler_flag


@contextmanager
def exchanged(functions: list[FunctionType], code: CodeType) -> Iterator[None]:
    """Let ``functions``, which have the same code, run ``code``."""
    before = functions[0].__code__
    for each in functions:
        each.__code__ = code
    try:
        yield
    finally:
        for each in functions:
            each.__code__ = before
