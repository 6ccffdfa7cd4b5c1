"""Reduction of a program: statements and blocks are dropped, expressions replaced by their parts, numbers simplified."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

MODULES = ("torch", "F", "fwAD", "contextlib")


def shrink(text: str, differs: Callable[[str], bool], attempts: int = 400) -> str:
    """Return a smaller program for which ``differs`` is true, after at most ``attempts`` executions."""
    text, tried = ast.unparse(ast.parse(text)), set[str]()
    smaller = True
    while smaller:
        smaller = False
        for each in reductions(text):
            if each in tried or len(each) >= len(text):
                continue
            tried.add(each)
            attempts -= 1
            if attempts < 0:
                return text
            if differs(each):
                text, smaller = each, True
                break
    return text


def reductions(text: str) -> Iterator[str]:
    """Yield programs that are one step smaller, those without a statement first."""
    count = sum(isinstance(each, ast.stmt) for each in ast.walk(ast.parse(text)))
    for index in reversed(range(count)):
        for change in (_drop, _unwrap):
            tree = ast.parse(text)
            if change(tree, index):
                yield ast.unparse(tree)
    for index, node in enumerate(ast.walk(ast.parse(text))):
        for choice in range(len(_parts(node))):
            tree = ast.parse(text)
            old = list(ast.walk(tree))[index]
            _replace(tree, old, _parts(old)[choice])
            yield ast.unparse(tree)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "handlers", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _statement(tree: ast.AST, index: int) -> tuple[list[ast.stmt], int]:
    """Return the block and the position of the statement number ``index``."""
    places = [(block, position) for block in _blocks(tree) for position in range(len(block))]
    return places[index]


def _drop(tree: ast.AST, index: int) -> bool:
    block, position = _statement(tree, index)
    del block[position]
    if not block:
        block.append(ast.Pass())
    return True


def _unwrap(tree: ast.AST, index: int) -> bool:
    block, position = _statement(tree, index)
    statement = block[position]
    if isinstance(statement, (ast.With, ast.Try, ast.If, ast.For)):
        block[position : position + 1] = statement.body
        return True
    return False


def _parts(node: ast.AST) -> list[ast.expr]:
    """Return simpler expressions by which an expression may be replaced."""
    if isinstance(node, ast.Call):
        parts = [each for each in node.args if not isinstance(each, (ast.Starred, ast.Lambda))]
        of_tensor = isinstance(node.func, ast.Attribute) and ast.unparse(node.func).partition(".")[0] not in MODULES
        return ([node.func.value] if of_tensor else []) + parts  # type: ignore[union-attr]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return [] if ast.unparse(node.value).partition(".")[0] in MODULES else [node.value]
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        return [type(node)(elts=node.elts[: len(node.elts) // 2], ctx=ast.Load())]
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and len(repr(node.value)) > 3:
        return [ast.Constant(float(f"{node.value:.1g}"))]
    return []


def _replace(tree: ast.AST, old: ast.AST, new: ast.expr) -> None:
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list):
                value[:] = [new if each is old else each for each in value]
