"""Derivative rules as text: a formula such as ``grad / (input + 1)``, the same with numbers, and their source blocks.

A rule is a function in the source of the package (``dispatch/declare.py``). Its syntax tree is read from the source
file, so the formula is the code that runs. A formula with numbers is computed from one element of each operand.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from itertools import islice
from types import CodeType
from typing import Any

from ...dispatch.op import ARRAYS, OPS, arguments, is_shared
from ...runtime import codegen

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # of the package
LONGEST = 60  # lines of a source block
MANY = 10_000  # formulas that are kept
_MARKED = re.compile("\x01(.*?)\x02")
#: Names in rules, and in formulas.
NAMES = {"g": "grad", "self": "input", "out": "result", "self_shape": "input_shape"}
#: Functions of rules, and what formulas show for them; the words are the arguments. ``F`` and shapes are left out.
READABLE = {
    "where_else": ("condition grad", "where(condition, grad, 0)"),
    "masked_fill_scalar": ("grad mask value", "masked_fill(grad, mask, value)"),
    "masked_fill_number": ("grad mask value", "masked_fill(grad, mask, value)"),
    "masked_product": ("grad other", "grad * other"),
    "turned_fast": ("matrix", "matrix.mT"),
    "mm_laid_out": ("a b strides", "mm(a, b)"),
    "_scaled": ("F grad factor", "grad * factor"),
    "restore_dims": ("F grad shape dim keepdim", "unsqueeze(grad, dim)"),
    "evenly_spread": ("grad shape count", "expand(grad / count, shape)"),
    "zeros_as": ("grad", "zeros_like(grad)"),
    "conj_block": ("grad", "conj(grad)"),
    "as_complex": ("grad", "view_as_complex(grad)"),
    "sum_all": ("grad", "sum(grad)"),
}


def shown_name(name: str) -> str:
    """Return the name in formulas for ``name``, a name in rules.

    >>> shown_name("self"), shown_name("other")
    ('input', 'other')
    """
    return NAMES.get(name, name)


@functools.cache
def _tree(file: str) -> ast.Module | None:
    try:
        with open(file, encoding="utf-8") as stream:
            return codegen.parse_module(stream.read())
    except (OSError, SyntaxError):
        return None


@functools.cache
def _functions(file: str) -> dict[int, list[Any]]:
    """Return the syntax trees of the functions and lambda expressions in ``file``, by their first lines."""
    found: dict[int, list[Any]] = {}
    tree = _tree(file)
    for each in ast.walk(tree) if tree is not None else ():
        if isinstance(each, (ast.Lambda, ast.FunctionDef)):
            first = min([each.lineno, *(one.lineno for one in getattr(each, "decorator_list", ()))])
            found.setdefault(first, []).append(each)
    return found


def _function_of(code: CodeType) -> Any:
    """Return the syntax tree of the function with the code object ``code``, or None if its source is not found."""
    names = list(code.co_varnames[: code.co_argcount])
    found = [
        each for each in _functions(code.co_filename).get(code.co_firstlineno, ())
        if [one.arg for one in (*each.args.posonlyargs, *each.args.args)] == names
        and isinstance(each, ast.Lambda) == (code.co_name == "<lambda>")
    ]  # fmt: skip
    if len(found) > 1:
        columns = {(line, column) for line, _, column, _ in islice(code.co_positions(), 1, None)}
        inside = [each for each in found if isinstance(each, ast.Lambda) and _spans(each.body, columns)]
        found = inside or found
    return found[0] if len(found) == 1 else None


def _spans(body: ast.expr, columns: set[tuple[Any, Any]]) -> bool:
    """Whether one of ``columns``, pairs (line, column) of instructions, is the beginning of a part of ``body``."""
    return any((each.lineno, each.col_offset) in columns for each in ast.walk(body) if isinstance(each, ast.expr))


class _Shown(ast.NodeTransformer):
    """Replace the names of rules by those of formulas, and ``F.tanh`` by ``tanh``; ``values`` decide conditions."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(shown_name(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "F":
            return ast.Name(node.attr)
        return ast.Attribute(self.visit(node.value), node.attr)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        names = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
        calls = any(isinstance(each, (ast.Call, ast.Attribute)) for each in ast.walk(node.test))
        if not calls and names <= self.values.keys():
            try:
                test = compile(ast.fix_missing_locations(ast.Expression(node.test)), "<rule>", "eval")
                chosen = eval(test, {"__builtins__": {}}, dict(self.values))
            except Exception:  # a comparison of other types
                return ast.IfExp(self.visit(node.test), self.visit(node.body), self.visit(node.orelse))
            found: ast.expr = self.visit(node.body if chosen else node.orelse)
            return found
        return ast.IfExp(self.visit(node.test), self.visit(node.body), self.visit(node.orelse))


class _Renamed(ast.NodeTransformer):
    """Replace the names of values by the expressions that ``replace`` returns; names of called functions stay."""

    def __init__(self, replace: Callable[[str], ast.expr]) -> None:
        self.replace = replace

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.replace(node.id)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        return ast.Call(called, [self.visit(each) for each in node.args], node.keywords)


class _Expanded(ast.NodeTransformer):
    """Replace calls of functions of rules by the expressions that their docstrings begin with, or by :data:`READABLE`.

    For example, ``tanh_backward(grad, result)`` becomes ``grad * (1 - result * result)``: the docstring of the function
    begins with "Return ``slope * (1 - value * value)``". Factors that are 1 in this call are left out, and so is the
    insertion of dimensions that were kept.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in READABLE and not node.keywords:
            return self._readable(node, *READABLE[node.func.id])
        if not isinstance(node.func, ast.Name) or node.keywords or not node.func.id.endswith(_GRADIENTS):
            return node
        operation = OPS.get(node.func.id)
        function = ARRAYS.__dict__.get(node.func.id) if operation is None else operation.kernel
        found = _DOCUMENTED.match(getattr(function, "__doc__", None) or "")
        if found is None or not hasattr(function, "__code__"):
            return node
        names = function.__code__.co_varnames[operation is not None : function.__code__.co_argcount]
        if len(names) != len(node.args):
            return node
        given = dict(zip(names, node.args, strict=True))
        try:
            expression = codegen.parse_expression(found[1])
            used = {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}
            if not used >= given.keys():
                return node
            replaced: ast.expr = _Renamed(given.__getitem__).visit(expression)
        except (SyntaxError, KeyError):
            return node
        return replaced

    def _readable(self, node: ast.Call, words: str, text: str) -> ast.expr:
        given = dict(zip(words.split(), node.args, strict=False))
        if len(given) != len(node.args) or set(given) != set(words.split()):
            return node
        decided = {"factor": 1, "keepdim": True}
        for name, each in given.items():
            if name in decided and isinstance(each, ast.Name) and self.values.get(each.id) == decided[name]:
                return given["grad"]
        replaced: ast.expr = _Renamed(given.__getitem__).visit(codegen.parse_expression(text))
        return replaced


#: Ends of the names of functions that compute gradients.
_GRADIENTS = ("_backward", "_backward_data", "_slope")
_DOCUMENTED = re.compile(r"Return ``([^`]+)``")


def formula_tree(op: Any, index: int, parameters: Mapping[str, Any]) -> ast.expr | None:
    """Return the syntax tree of the formula for the gradient of operand ``index`` of the operation ``op``, or None.

    ``parameters`` are the parameters of the call, by name; conditions that depend on them alone are decided.
    """
    rule = op.rules[index] if index < len(op.rules) else None
    if rule is None:
        return None
    grad = ast.Name("grad")
    if isinstance(rule, (int, float)):
        if rule in (1, -1):
            return grad if rule == 1 else ast.UnaryOp(ast.USub(), grad)
        return ast.BinOp(grad, ast.Mult(), ast.Constant(rule))
    if isinstance(rule, str):
        return ast.BinOp(grad, ast.Mult(), ast.Name(shown_name(rule)))
    function = _function_of(rule.__code__)
    if function is None:
        return None
    body = function.body if isinstance(function, ast.Lambda) else _only_expression(function)
    if body is None or is_shared(rule):
        names = [shown_name(each) for each in arguments(rule) if each != "F"]
        return ast.Call(ast.Name(rule.__name__.lstrip("_")), [ast.Name(each) for each in names], [])
    shown: ast.expr = _Expanded(parameters).visit(_Shown(parameters).visit(_copied(body)))
    return shown if "g" in arguments(rule) else ast.BinOp(grad, ast.Mult(), shown)


def _copied(body: ast.expr) -> ast.expr:
    return codegen.parse_expression(ast.unparse(body))


def _only_expression(function: ast.FunctionDef) -> ast.expr | None:
    """Return the expression of ``function`` if it consists of one ``return`` statement after its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


_texts: dict[Any, tuple[str, str, frozenset[str]]] = {}


def _text(op: Any, index: int, parameters: Mapping[str, Any]) -> tuple[str, str, frozenset[str]]:
    """Return the formula, the same with marked names, and these names; "" if the source of the rule is not found."""
    try:
        key = op, index, tuple(sorted(parameters.items()))
        if key in _texts:
            return _texts[key]
    except TypeError:  # parameters that have no order or no hash
        key = None
    tree = formula_tree(op, index, parameters)
    shown = marked = ""
    if tree is not None:
        shown = ast.unparse(tree)
        marked = ast.unparse(_Renamed(lambda name: ast.Name(f"\x01{name}\x02")).visit(_copied(tree)))
    found = shown, marked, frozenset(each[1] for each in _MARKED.finditer(marked))
    if key is not None and len(_texts) < MANY:
        _texts[key] = found
    return found


def formula(op: Any, index: int, parameters: Mapping[str, Any]) -> str:
    """Return the formula for the gradient of operand ``index`` of the operation ``op``, "" if its source is not found.

    >>> import retrograd as torch
    >>> formula(torch.log1p.op, 0, {})
    'grad / (input + 1)'
    """
    return _text(op, index, parameters)[0]


def numbers(op: Any, index: int, parameters: Mapping[str, Any], values: Mapping[str, Any], result: Any) -> str:
    """Return the formula with numbers, such as ``0.5 / (1 + 1) = 0.25``, "" if a name in it has no number.

    ``values`` are the numbers by the names of the rule, including ``g``, and ``result`` is the computed gradient.
    """
    shown, marked, names = _text(op, index, parameters)
    given = {shown_name(name): each for name, each in {**parameters, **values}.items() if _is_number(each)}
    texts = {name: number_text(each) for name, each in given.items()}
    compares = "<" in shown or ">" in shown
    if compares and any(texts[a] == texts[b] and given[a] != given[b] for a in texts for b in texts):
        texts = {name: number_text(each, 8) for name, each in given.items()}  # rounded more, they would be equal
    if not shown or not names <= texts.keys():
        return ""
    if shown in ("grad", "-grad"):
        return number_text(result)
    for name, text in texts.items():
        marked = marked.replace(f"\x01{name}\x02", f"({text})" if text[0] == "-" else text)
    return f"{marked} = {number_text(result)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) or (
        hasattr(value, "dtype") and not getattr(value, "shape", 1)
    )


def number_text(value: Any, digits: int = 4) -> str:
    """Return ``value``, a number, as text with ``digits`` significant digits.

    >>> number_text(0.123456), number_text(-2.0)
    ('0.1235', '-2')
    """
    if isinstance(value, (bool, int)):
        return str(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, complex):
        return f"({value:.{digits}g})"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


# --- Source blocks --------------------------------------------------------------------------------------------------


def source_block(op: Any) -> dict[str, Any] | None:
    """Return the source of the declaration of ``op`` with its rules: a dictionary with the file, the line and the text."""
    block = _block(op.kernel, op.name)
    if block is None:
        return None
    names = {each.__code__ for each in op.rules if callable(each) and each.__code__.co_name != "<lambda>"}
    for code in sorted(names, key=lambda each: each.co_firstlineno):
        more = _block(code, op.name)
        if more is not None and more["source"] not in block["source"]:
            block["source"] += f"\n\n# {more['file']}:{more['line']}\n{more['source']}"
    return block


def function_block(function: Any, name: str) -> dict[str, Any] | None:
    """Return the source of ``function``, a function of the program, as :func:`source_block` does."""
    return _block(function, name)


def _block(function: Any, name: str) -> dict[str, Any] | None:
    try:
        lines, line = inspect.getsourcelines(inspect.unwrap(function) if callable(function) else function)
        file = inspect.getsourcefile(function) or ""
    except (OSError, TypeError, SyntaxError):
        return None
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], "…\n"]
    inside = file.startswith(ROOT + os.sep)
    file = os.path.relpath(file, ROOT) if inside else os.path.basename(file)
    return {
        "operation": name, "file": file.replace(os.sep, "/"), "line": line,
        "source": textwrap.dedent("".join(lines)).rstrip(),
    }  # fmt: skip


__all__ = ["formula", "function_block", "number_text", "numbers", "shown_name", "source_block"]
