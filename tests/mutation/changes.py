"""The changes that make a mutant, as replacements of one node of a syntax tree.

The list of changes is fixed:

    sign          ``-x`` becomes ``x``; ``a + b`` and ``a - b`` are exchanged; a returned gradient is negated
    factor        ``a * b`` becomes ``a``, ``b`` or ``a / b``; ``a / b`` becomes ``a`` or ``a * b``; ``a ** b`` becomes
                  ``a``; a number in arithmetic is increased by 1
    operand swap  ``a - b``, ``a / b``, ``a @ b`` and the first two arguments of a call are swapped
    axis          an argument ``dim`` is decreased by 1, the last of several dimensions is left out, an integer or bool in
                  a call or an index is changed
    comparison    ``<`` and ``<=``, ``==`` and ``!=``, ``is`` and ``is not``, ``and`` and ``or``, ``&`` and ``|`` are
                  exchanged; a condition is negated
    missing call  ``F.f(x, …)`` and ``x.f(…)`` become ``x``: a missing cast, reduction or reshape
    statement     (not in rules) a statement is deleted, ``return x`` returns None, ``continue`` becomes ``break``
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
#: Names of arguments that are one dimension, and of arguments that are a tuple of dimensions.
DIMENSION, DIMENSIONS = {"dim", "axis", "dim0", "dim1", "start_dim", "end_dim"}, {"dims", "axes"}
#: Modules: ``math.log(x)`` is not a method of ``math``.
MODULES = {"F", "np", "numpy", "math", "cmath", "dtypes", "promotion"}
#: Functions of which the first two arguments may be exchanged without a change.
SYMMETRIC = {"add_gradients", "broadcast_shapes", "extreme_share", "same", "min", "max", "sum_gradients"}
#: Statements that may be deleted.
DELETED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete)


class Change(NamedTuple):
    """A change of one node: the kind in the list above, the text before and after, and how it is made and undone.

    ``key`` identifies the change in its function, also after unrelated edits.
    """

    kind: str
    key: str
    owner: Any
    field: str
    index: int | None
    node: ast.AST
    replacement: ast.AST

    def make(self) -> None:
        self._set(self.replacement)

    def undo(self) -> None:
        self._set(self.node)

    def _set(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


def changes(tree: ast.Lambda | ast.FunctionDef, statements: bool = False) -> list[Change]:
    """Return all changes of the body of a function; with ``statements``, statements are changed too."""
    found: list[Change] = []
    seen: dict[str, int] = {}
    for owner, field, index, node in _nodes(tree, statements):
        for kind, replacement in _replacements(owner, field, node, statements):
            ast.copy_location(replacement, node)
            ast.fix_missing_locations(replacement)
            key = f"{kind}: {_text(node)} -> {_text(replacement)}"
            seen[key] = count = seen.get(key, 0) + 1
            key += f" #{count}" if count > 1 else ""
            found.append(Change(kind, key, owner, field, index, node, replacement))
    return found


def _text(node: ast.AST) -> str:
    """Return the source of an expression, or of the first line of a statement, on one line and shortened."""
    text = " ".join(ast.unparse(node).partition("\n")[0].split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-27:]}"


def _nodes(tree: ast.AST, errors: bool) -> Iterator[tuple[Any, str, int | None, Any]]:
    """Yield (owner, field, index, node) for all nodes of a function's body, without annotations, texts and docstring.

    Without ``errors``, the arguments of exceptions are left out.
    """
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(tree, ast.Call):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(
                node, ast.JoinedStr if errors else (ast.JoinedStr, ast.Raise)
            ):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip()
                continue
            yield tree, field, index, node
            if not (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)):
                yield from _nodes(node, errors)


def _replacements(owner: Any, field: str, node: Any, statements: bool) -> Iterator[tuple[str, Any]]:
    if statements:
        yield from _changed_statements(node)
    elif (isinstance(owner, (ast.Return, ast.Lambda)) and field in ("value", "body")) or (
        isinstance(owner, ast.Tuple) and field == "elts" and getattr(owner, "returned", False)
    ):
        yield from _negated_result(node)
    if isinstance(node, ast.UnaryOp):
        yield from _changed_unary(owner, node)
    elif isinstance(node, ast.BinOp):
        yield from _changed_arithmetic(node)
    elif isinstance(node, ast.BoolOp):
        yield "comparison", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.Compare):
        changed = COMPARISONS[type(node.ops[0])]()
        yield "comparison", ast.Compare(node.left, [changed, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.Call):
        yield from _changed_call(node)
    elif isinstance(node, ast.Constant):
        yield from _changed_constant(owner, field, node)
    elif isinstance(node, ast.Name) and isinstance(owner, (ast.Call, ast.keyword)):
        if node.id in DIMENSION:
            yield "axis", ast.BinOp(node, ast.Sub(), ast.Constant(1))
        elif node.id in DIMENSIONS:
            yield "axis", ast.Subscript(node, ast.Slice(None, ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.Load())
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    if field == "test" and not negated and not isinstance(node, (ast.Compare, ast.BoolOp)):
        yield "comparison", ast.UnaryOp(ast.Not(), node)


def _changed_statements(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, DELETED):
        yield "statement", ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "statement", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Continue):
        yield "statement", ast.Break()


def _negated_result(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the negative of a returned gradient. The gradients of a returned tuple are negated one by one."""
    if isinstance(node, ast.Tuple):
        node.returned = True  # type: ignore[attr-defined]
    elif isinstance(node, ast.IfExp):
        if not _is_zero(node.body):
            yield "sign", ast.IfExp(node.test, ast.UnaryOp(ast.USub(), node.body), node.orelse)
        if not _is_zero(node.orelse):
            yield "sign", ast.IfExp(node.test, node.body, ast.UnaryOp(ast.USub(), node.orelse))
    elif not _is_zero(node) and not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)):
        yield "sign", ast.UnaryOp(ast.USub(), node)


def _is_zero(node: Any) -> bool:
    """Whether a returned gradient is None or zeros, which have no sign."""
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zeros_as"
    )


def _changed_unary(owner: Any, node: ast.UnaryOp) -> Iterator[tuple[str, Any]]:
    if isinstance(node.op, ast.USub):
        place = isinstance(owner, (ast.Call, ast.keyword, ast.Subscript, ast.Tuple, ast.Slice))
        yield "axis" if place and isinstance(node.operand, ast.Constant) else "sign", node.operand
    elif isinstance(node.op, (ast.Not, ast.Invert)):
        yield "comparison", node.operand


def _changed_arithmetic(node: ast.BinOp) -> Iterator[tuple[str, Any]]:
    left, op, right = node.left, node.op, node.right
    if isinstance(op, ast.Add):
        yield "sign", ast.BinOp(left, ast.Sub(), right)
    elif isinstance(op, ast.Sub):
        yield "sign", ast.BinOp(left, ast.Add(), right)
        yield "operand swap", ast.BinOp(right, ast.Sub(), left)
    elif isinstance(op, ast.Mult):
        yield "factor", left
        yield "factor", right
        yield "factor", ast.BinOp(left, ast.Div(), right)
    elif isinstance(op, (ast.Div, ast.FloorDiv)):
        yield "factor", left
        yield "factor", ast.BinOp(left, ast.Mult(), right)
        yield "operand swap", ast.BinOp(right, op, left)
    elif isinstance(op, (ast.Pow, ast.Mod)):
        yield "factor", left
    elif isinstance(op, ast.MatMult):
        yield "operand swap", ast.BinOp(right, op, left)
    elif isinstance(op, (ast.BitAnd, ast.BitOr)):
        yield "comparison", ast.BinOp(left, ast.BitAnd() if isinstance(op, ast.BitOr) else ast.BitOr(), right)


def _changed_call(node: ast.Call) -> Iterator[tuple[str, Any]]:
    first = [each for each in node.args if not (isinstance(each, ast.Name) and each.id == "F")]
    skipped = len(node.args) - len(first)
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    fixed = name in SYMMETRIC or any(isinstance(each, (ast.Starred, ast.Constant)) for each in first[:2])
    if len(first) > 1 and not fixed and ast.unparse(first[0]) != ast.unparse(first[1]):
        yield "operand swap", ast.Call(node.func, [*node.args[:skipped], first[1], first[0], *first[2:]], node.keywords)
    if isinstance(node.func, ast.Attribute):
        of = node.func.value
        if node.func.attr == "format":  # of a text
            return
        if not (isinstance(of, ast.Name) and of.id in MODULES):
            yield "missing call", of
        elif isinstance(of, ast.Name) and of.id == "F" and first and not isinstance(first[0], ast.Starred):
            yield "missing call", first[0]


def _changed_constant(owner: Any, field: str, node: ast.Constant) -> Iterator[tuple[str, Any]]:
    value = node.value
    if isinstance(value, bool):
        if isinstance(owner, (ast.Call, ast.keyword)):
            yield "axis", ast.Constant(not value)
    elif isinstance(value, (int, float)):
        place = isinstance(owner, (ast.Call, ast.keyword, ast.Subscript, ast.Tuple, ast.Slice))
        yield "axis" if place else "factor", ast.Constant(value + 1)
