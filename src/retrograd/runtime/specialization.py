"""Specialisation of templates: partial evaluation of a Python function for one value of its first argument.

A template is an ordinary function ``template(form, …)``, which can be called as it is. :func:`specialize` returns the
syntax tree of a copy of the function for one value of ``form``. In the copy, attributes of ``form`` are replaced by
their values, branches whose condition depends only on ``form`` are selected, and loops over attributes of ``form`` are
unrolled. The items of lists created by :func:`slots` become local variables. The code of the copy keeps the file and
the lines of the template, so that debuggers, tracebacks and coverage show the template.

An expression is static if its value is known when the copy is generated. Static expressions consist of ``form``,
variables of loops over static values, constants, and calls of ``len``, ``range``, ``enumerate`` and ``zip`` with static
arguments. The following code is reduced if the named parts are static:

    if, and, or, not, x if c else y     to the part that applies
    for x in static                     to one copy of the body for each item
    any([… for x in static])            to ``or``; ``all`` to ``and``, ``tuple`` to a tuple
    s = slots(n), s[i], f(*s[i:])       to variables; ``bind(s, i, name)`` makes ``s[i]`` another name for a variable
    f(**dict(zip(names, s)))            to keyword arguments
    getattr(x, name), setattr(x, name, value)    to ``x.name`` and an assignment
    form.function(a, b)                 to the expression that the function returns, if it is a lambda expression of the
                                        package, or a kernel without other statements; in it, calls of functions in
                                        ``EXPRESSIONS`` are also replaced
    helper(form, a, b)                  to the body of the helper, if it is marked with :func:`inlined`: the call must be a
                                        statement, the value of ``return``, or of a helper that only returns an
                                        expression

Any other static value becomes a global variable of the copy.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import linecache
import operator
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .codegen import MARK, parse_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .typing import AnyFunction, Function, Namespace, Node, Part, Replacements, Slots, Static, SyntaxNode

FOLDED = (bool, int, float, str, type(None))
PURE = {"enumerate": enumerate, "len": len, "range": range, "zip": zip}
COMPARISONS: dict[type, Callable[[Static, Static], Static]] = {
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
ARITHMETIC: dict[type, Callable[[Static, Static], Static]] = {ast.Add: operator.add, ast.Sub: operator.sub}
REDUCTIONS = ("any", "all", "tuple")


def slots(count: int) -> Slots:
    """Return a list of ``count`` times None.

    In a specialised function (a copy that :func:`specialize` makes of a template), each item is a local variable
    instead, and there is no list.
    """
    return [None] * count


def bind(values: Slots, index: int, value: Static) -> None:
    """Set ``values[index]`` to ``value``.

    A specialised function (a copy that :func:`specialize` makes of a template) has no code for this call if ``value``
    is a variable or a constant: ``values[index]`` is then replaced by this variable or constant.
    """
    values[index] = value


def inlined(function: AnyFunction) -> AnyFunction:
    """Mark ``function``, which templates call, and return it.

    The copies that :func:`specialize` makes of the templates contain the body of ``function`` instead of a call.
    """
    INLINED.add(function)
    INLINED_CODE.add(function.__code__)
    return function


INLINED: set[Function] = set()
INLINED_CODE: set[CodeType] = set()


#: Sets of names by value. Few of them are different, and each object makes every garbage collection slower.
_shared: dict[frozenset[str], frozenset[str]] = {}


class Template:
    """Syntax tree ``tree`` of a template function, with the variables that occur in it.

    ``names`` is a dict from the ``id`` of each node of the tree to the names of the variables that occur in the node.
    """

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.tree = tree
        self.names: dict[int, frozenset[str]] = {}
        self._collect(tree)

    def _collect(self, node: ast.AST) -> frozenset[str]:
        found = {node.id} if isinstance(node, ast.Name) else set()
        for each in ast.iter_child_nodes(node):
            found |= self._collect(each)
        names = frozenset(found)
        names = self.names[id(node)] = _shared.setdefault(names, names)
        return names


@cache
def _file_templates(file: str) -> dict[str, Template]:
    """Return a dict from the names of the top-level functions in a source file to their :class:`Template`."""
    tree = parse_module("".join(linecache.getlines(file)), file)
    return {each.name: Template(each) for each in tree.body if isinstance(each, ast.FunctionDef)}


@cache
def _file_names(file: str) -> dict[int, frozenset[str]]:
    """Return a dict from the ``id`` of each syntax node to the names of the variables that occur in the node.

    The dict has the nodes of all top-level functions in the source file.
    """
    found: dict[int, frozenset[str]] = {}
    for each in _file_templates(file).values():
        found.update(each.names)
    return found


@cache
def _names_in(file: str) -> frozenset[str]:
    """Return the names of all variables that occur in the top-level functions of a source file."""
    return frozenset().union(*_file_names(file).values())


def template_of(function: Function) -> Template:
    """Return the :class:`Template` of ``function``, a function at the top level of a source file."""
    return _file_templates(function.__code__.co_filename)[function.__name__]


#: The first line of a statement at the top level of a module: neither blank, indented, a bracket that closes nor a comment.
STATEMENT = re.compile(r"[^\s)\]}#]")


def _lambdas(file: str, line: int) -> list[ast.Lambda]:
    """Return the lambda expressions in a source file that begin in the line number ``line``.

    Only the top-level statement that has the line is parsed, because parsing a file takes 5 to 20 ms.
    """
    lines = linecache.getlines(file)
    first = line
    while first > 1 and not STATEMENT.match(lines[first - 1]):
        first -= 1
    return _statement_lambdas(file, first, line).get(line) or _statement_lambdas(file, 1, len(lines)).get(line, [])


@lru_cache(16)
def _statement_lambdas(file: str, first: int, line: int) -> dict[int, list[ast.Lambda]]:
    """Return a dict from line numbers to the lambda expressions in a statement that begin in this line.

    The statement is that from the line number ``first`` on which contains ``line``. The dict is empty if it has a syntax
    error, because ``first`` is not really its first line.
    """
    lines = linecache.getlines(file)
    ends = [each for each in range(line, len(lines)) if STATEMENT.match(lines[each])]
    for end in (*ends[:2], len(lines)):  # a decorator needs the definition after it
        try:
            tree = parse_module("\n" * (first - 1) + "".join(lines[first - 1 : end]), file)
        except SyntaxError:
            continue
        found: dict[int, list[ast.Lambda]] = {}
        for each in ast.walk(tree):
            if isinstance(each, ast.Lambda):
                found.setdefault(each.lineno, []).append(each)
        return found
    return {}


def lambda_tree(function: object) -> ast.Lambda | None:
    """Return the syntax tree of the lambda expression that created ``function``.

    The result is None if ``function`` was not created by a lambda expression, if its source is not available, or if it
    has ``*args``, ``**kwargs`` or keyword-only parameters.
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_name != "<lambda>":
        return None
    same = _lambdas(code.co_filename, code.co_firstlineno)
    if len(same) > 1:  # several begin in this line: compare positions in it
        spots = [spot for spot in code.co_positions() if None not in spot and spot[2:] != (0, 0)]
        if not spots:  # from Python 3.12 on, for `lambda: None`
            return None
        first = min((spot[0], spot[2]) for spot in spots)
        same = [
            each for each in same
            if (each.body.lineno, each.body.col_offset) <= first <= (each.body.end_lineno, each.body.end_col_offset)
        ][-1:]  # fmt: skip
    if not same or same[0].args.vararg or same[0].args.kwonlyargs or same[0].args.kwarg:
        return None
    return same[0] if [each.arg for each in same[0].args.args] == [*code.co_varnames[: code.co_argcount]] else None


@cache
def returned_expression(function: object) -> tuple[list[str], ast.expr] | None:
    """Return the names of the parameters of ``function``, and the expression that it returns.

    ``function`` is a lambda expression, or a ``def`` of positional parameters whose only statement is ``return``. For
    any other function, or if the source is not available, the result is None.
    """
    if (known := EXPRESSIONS.get(function)) is not None:
        return known()
    tree: Any = lambda_tree(function)
    if tree is not None:
        return [each.arg for each in tree.args.args], tree.body
    code: Any = getattr(function, "__code__", None)
    if code is None or code.co_kwonlyargcount or code.co_flags & LOOSE:
        return None
    tree, names = _definition(code), [*code.co_varnames[: code.co_argcount]]
    if (
        tree is None
        or tree.name != code.co_name
        or [each.arg for each in (*tree.args.posonlyargs, *tree.args.args)] != names
    ):
        return None
    final = tree.body[-1]
    if len(tree.body) != 1 + (ast.get_docstring(tree) is not None) or not isinstance(final, ast.Return):
        return None
    if final.value is None or any(isinstance(each, UNMOVED) for each in ast.walk(final)):
        return None
    return names, final.value


def _definition(code: CodeType) -> ast.FunctionDef | None:
    """Return the syntax tree of the ``def`` statement with the code object ``code``, or None if it is not found.

    The statement may end after the last line that has code, with closing brackets. ``inspect.getblock`` would find its
    end in 0.7 ms, because it has a tokenizer written in Python.
    """
    lines = linecache.getlines(code.co_filename)
    last = max([line for _, _, line in code.co_lines() if line is not None], default=0)
    for end in range(last, min(last + 4, len(lines) + 1)):
        try:
            body = parse_module(textwrap.dedent("".join(lines[code.co_firstlineno - 1 : end]))).body
        except (SyntaxError, ValueError):
            continue
        return body[0] if len(body) == 1 and isinstance(body[0], ast.FunctionDef) else None
    return None


#: Functions that are inserted as expressions wherever an inserted lambda expression or kernel calls them: a dictionary to
#: functions that return what :func:`returned_expression` returns, or to None if that function itself finds it.
EXPRESSIONS: dict[object, Callable[[], tuple[list[str], ast.expr]] | None] = {}


class _FirstUse(ast.NodeTransformer):
    """Replacement of the first use of the variable ``name``, in the order of evaluation, by the expression ``value``."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value, self.done = name, value, False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name or self.done:
            return node
        self.done = True
        return self.value


def as_expression(statements: Sequence[ast.stmt]) -> ast.expr:
    """Return an expression with the value that the body ``statements`` of a function returns.

    The body consists of an assignment to a variable, statements ``if test: return value``, and ``return value``. The
    assigned value replaces the first use of the variable, which must be the first that is evaluated.
    """
    first, *rest = statements
    match first:
        case ast.Return(value=value) if value is not None:
            return value
        case ast.If(test=test, body=[ast.Return(value=value)], orelse=[]) if value is not None:
            return _at(ast.IfExp(test, value, as_expression(rest)), first)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            found = copy.deepcopy(as_expression(rest))  # parts of it belong to the template
            uses = sum([isinstance(each, ast.Name) and each.id == name for each in ast.walk(found)])
            target = _at(ast.Name(name, ast.Store()), first)
            return _FirstUse(name, value if uses == 1 else _at(ast.NamedExpr(target, value), first)).visit(found)
    raise TypeError(f"no expression: {ast.unparse(first)}")


#: Parts of an expression that refer to the function that has them.
UNMOVED = (ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.GeneratorExp)
LOOSE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _at(made: Node, place: ast.AST) -> Node:
    """Copy the line and column of the syntax node ``place`` to the syntax node ``made``, and return ``made``."""
    return ast.copy_location(made, place)


def _global_value(node: ast.expr, space: Namespace) -> Static:
    """Return the function to which ``node`` refers in code with the globals ``space``, or None.

    ``node`` must be a name, or an attribute of a module, such as ``module.name``.
    """
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = space.get(node.value.id)
        found = getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    else:
        found = space.get(node.id) if isinstance(node, ast.Name) else None
    return found if isinstance(found, FunctionType) else None


def _is_simple(node: ast.expr) -> bool:
    """Whether the expression ``node`` may be evaluated more than once, because it is short and has no effects.

    It consists of names, constants, attributes, subscripts and calls of ``len``.
    """
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[value], keywords=[]):
            return _is_simple(value)
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value):
            return _is_simple(value)
        case ast.Subscript(value=value, slice=index):
            return _is_simple(value) and _is_simple(index)
    return False


class _Specializer:
    """Generator of a specialised function from the syntax tree of a template.

    An expression is static if its value is known when the function is generated. ``known`` maps the names of static
    variables to their values. ``lists`` maps the names of variables that :func:`slots` creates to the expressions that
    replace the list's items. ``renamed`` maps the names of other variables to the expressions that replace them.
    ``space`` collects the global variables of the specialised function. ``names`` maps the ``id`` of each syntax node
    to the names of the variables in it, and ``arguments`` has the names of the parameters of the specialised function.
    """

    def __init__(
        self, known: dict[str, object], lists: dict[str, list[ast.expr]], renamed: dict[str, ast.expr], space: Namespace,
        names: dict[int, frozenset[str]], arguments: frozenset[str],
    ) -> None:  # fmt: skip
        self.known, self.lists, self.renamed, self.space = known, lists, renamed, space
        self.names, self.arguments = names, arguments
        functions = {name for name, value in space.items() if isinstance(value, FunctionType) and value in INLINED}
        constants = {name: value for name, value in space.items() if name.isupper() and value.__class__ in FOLDED}
        self.inlined, self.constants = functions, constants
        self.special = {
            "getattr",
            "setattr",
            "bind",
            "slots",
            *REDUCTIONS,
            *known,
            *lists,
            *renamed,
            *functions,
            *constants,
        }

    # -- Static expressions

    def untouched(self, node: ast.AST) -> bool:
        names = self.names.get(id(node))
        return names is not None and self.special.isdisjoint(names)

    def is_static(self, node: ast.AST) -> bool:
        """Whether the value of the expression ``node`` is known when the specialised function is generated."""
        names = self.names.get(id(node))
        if names is not None:  # a part of a template
            for name in names:
                if not (name in self.known or name in PURE or name in self.constants or name == "getattr"):
                    return False
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.known or name in PURE or name in self.constants
            case ast.Attribute(value=value):
                return self.is_static(value)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in PURE:
                return all([self.is_static(each) for each in args])
            case ast.Call(func=ast.Name(id="getattr"), args=args, keywords=[]):
                return all([self.is_static(each) for each in args])
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.Tuple() | ast.Subscript() | ast.BinOp():
                return all([self.is_static(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])
            case ast.Slice(lower=lower, upper=upper, step=None):
                return all([each is None or self.is_static(each) for each in (lower, upper)])
        return False

    def value(self, node: ast.expr) -> Static:
        """Return the value of the static expression ``node``; raise TypeError for an expression that is not static."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.known[name] if name in self.known else self.constants.get(name, PURE.get(name))
            case ast.Attribute(value=value, attr=attr):
                return getattr(self.value(value), attr)
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                return COMPARISONS[operation.__class__](self.value(left), self.value(right))
            case ast.UnaryOp(op=operation, operand=operand):
                return not self.value(operand) if isinstance(operation, ast.Not) else -self.value(operand)
            case ast.BoolOp(op=operation, values=values):
                found = None
                for each in values:
                    found = self.value(each)
                    if bool(found) is isinstance(operation, ast.Or):
                        break
                return found
            case ast.BinOp(left=left, op=operation, right=right):
                return ARITHMETIC[operation.__class__](self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id="getattr"), args=args):
                return getattr(*map(self.value, args))
            case ast.Call(func=function, args=args):
                return self.value(function)(*map(self.value, args))
            case ast.Tuple(elts=elements):
                return tuple(map(self.value, elements))
            case ast.Slice(lower=low, upper=high):
                return slice(*[None if each is None else self.value(each) for each in (low, high)])
            case ast.Subscript(value=value, slice=index):
                return self.value(value)[self.value(index)]
        raise TypeError(f"no static expression: {ast.unparse(node)}")

    def constant(self, value: object, node: ast.expr) -> ast.expr:
        """Return the syntax node of an expression with the value ``value``, which replaces the expression ``node``.

        The expression is a constant for a number, string, bool or None, and otherwise the name of a global variable of
        the specialised function.
        """
        if value.__class__ in FOLDED:
            return _at(ast.Constant(value), node)
        name = "".join(each if each.isalnum() else "_" for each in ast.unparse(node)).strip("_")
        return self.global_variable(name, value, node)

    def global_variable(self, name: str, value: object, node: ast.expr) -> ast.expr:
        """Return the syntax node of a global variable of the specialised function that has the value ``value``.

        The variable is called ``name``, with a number appended if the name is used for another value. The node gets the
        position of ``node``.
        """
        first, count = name, 1
        while name in self.arguments or self.space.setdefault(name, value) is not value:
            count += 1
            name = f"{first}_{count}"
        return _at(ast.Name(name, ast.Load()), node)

    # -- Expressions

    def expr(self, node: SyntaxNode) -> SyntaxNode:
        """Return the expression that replaces the expression ``node`` in the specialised function."""
        if self.untouched(node):
            return node
        if isinstance(node, ast.Name):
            if node.id in self.known:
                return self.constant(self.value(node), node)
            if node.id in self.lists:
                return _at(ast.List([*self.lists[node.id]], ast.Load()), node)
            if node.id in self.renamed:
                found = self.renamed[node.id]
                return _at(ast.Name(found.id, node.ctx), node) if isinstance(found, ast.Name) else found
            return self.constant(self.value(node), node) if node.id in self.constants else node
        if self.is_static(node) and not isinstance(node, (ast.Constant, ast.Slice)):
            return self.constant(self.value(node), node)
        match node:
            case ast.BoolOp():
                return self.boolean(node)
            case ast.UnaryOp(op=ast.Not()):
                inner = self.expr(node.operand)
                if isinstance(inner, ast.Constant):
                    return _at(ast.Constant(not inner.value), node)
                return _at(ast.UnaryOp(node.op, inner), node)
            case ast.IfExp():
                test = self.expr(node.test)
                if isinstance(test, ast.Constant):
                    return self.expr(node.body if test.value else node.orelse)
                return _at(ast.IfExp(test, self.expr(node.body), self.expr(node.orelse)), node)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.lists and self.is_static(node.slice):
                return self.item(node, name)
            case ast.Call():
                return self.call(node)
            case ast.ListComp(elt=elt, generators=[ast.comprehension(target, values, [], 0)]) if self.is_static(values):
                return _at(
                    ast.List([self.with_item(target, each, elt) for each in self.value(values)], ast.Load()), node
                )
            case ast.Tuple() | ast.List():
                return _at(node.__class__(self.several(node.elts), node.ctx), node)
        return self.rebuilt(node)

    def item(self, node: ast.Subscript, name: str) -> ast.expr:
        """Return the expression that replaces ``node``, an index expression of a list created by :func:`slots`.

        ``name`` is the name of the list. The expression is a variable or constant, or for a slice a tuple of them.
        """
        if isinstance(node.slice, ast.Slice):
            low, high = (None if each is None else self.value(each) for each in (node.slice.lower, node.slice.upper))
            chosen = self.lists[name][low:high]
            if isinstance(node.ctx, ast.Store):
                chosen = [_at(ast.Name(each.id, ast.Store()), node) for each in chosen if isinstance(each, ast.Name)]
            return _at(ast.Tuple([*chosen], node.ctx), node)
        found: SyntaxNode = self.lists[name][self.value(node.slice)]
        if isinstance(node.ctx, ast.Store):
            assert isinstance(found, ast.Name), "only variables can be assigned to"
            return _at(ast.Name(found.id, ast.Store()), node)
        return found if isinstance(found, ast.Constant) else _at(ast.Name(found.id, ast.Load()), node)

    def boolean(self, node: ast.BoolOp) -> ast.expr:
        """Return the expression that replaces ``node``, an ``and`` or ``or``, in the specialised function.

        A static operand becomes True or False, also where the value of the expression is used and not only its truth.
        """
        stops, left = isinstance(node.op, ast.Or), list[ast.expr]()
        for value in node.values:
            each = self.expr(value)
            if self.is_static(value):
                each = _at(ast.Constant(bool(self.value(value))), value)
            if not isinstance(each, ast.Constant) or bool(each.value) is stops:
                left.append(each)
            if isinstance(each, ast.Constant) and bool(each.value) is stops:
                break
        if not left:
            return _at(ast.Constant(not stops), node)
        return left[0] if len(left) == 1 else _at(ast.BoolOp(node.op, left), node)

    def several(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Return a list of the expressions that replace ``nodes``, the items of a tuple or the arguments of a call.

        A starred list ``*s`` is replaced by its items.
        """
        found: list[ast.expr] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                inner = self.expr(each.value)
                found += (
                    inner.elts
                    if isinstance(inner, (ast.Tuple, ast.List))
                    else [_at(ast.Starred(inner, each.ctx), each)]
                )
            else:
                found.append(self.expr(each))
        return found

    def with_item(self, target: ast.expr, value: object, node: ast.expr) -> ast.expr:
        """Return the expression that replaces ``node``, the element of a list comprehension, for one item.

        ``target`` is the loop variable, or a tuple of loop variables, and ``value`` is the item.
        """
        before, special = self.known, self.special
        self.bind(target, value)
        try:
            return self.expr(node)
        finally:
            self.known, self.special = before, special

    def bind(self, target: ast.expr, value: Static) -> None:
        """Make a loop variable static, with the value ``value``.

        ``target`` is the variable, or a tuple of variables, to which the items of ``value`` are assigned.
        """
        if isinstance(target, ast.Name):
            self.known, self.special = {**self.known, target.id: value}, {*self.special, target.id}
        else:
            assert isinstance(target, ast.Tuple)
            for each, part in zip(target.elts, value, strict=True):
                self.bind(each, part)

    def keywords(self, nodes: Sequence[ast.keyword]) -> list[ast.keyword]:
        """Return a list of the keyword arguments that replace ``nodes``, the keyword arguments of a call.

        An argument ``**dict(zip(names, values))`` with static names is replaced by one keyword argument for each name.
        """
        found = []
        for each in nodes:
            match each:
                case ast.keyword(
                    arg=None, value=ast.Call(func=ast.Name(id="dict"), args=[ast.Call(args=[names, values])])
                ) if self.is_static(names):
                    inner = self.expr(values)
                    pairs = zip(self.value(names), inner.elts, strict=True)
                    found += [_at(ast.keyword(name, value), each) for name, value in pairs]
                case _:
                    inner = self.expr(each.value)
                    if each.arg is not None or not isinstance(inner, ast.Dict) or inner.keys:
                        found.append(_at(ast.keyword(each.arg, inner), each))
        return found

    def call(self, node: ast.Call) -> ast.expr:
        """Return the expression that replaces the call ``node`` in the specialised function."""
        if isinstance(node.func, ast.Name) and node.func.id in self.inlined:
            return self.inlined_value(self.space[node.func.id], node.args)
        args, keywords = self.several(node.args), self.keywords(node.keywords)
        if isinstance(node.func, ast.Name) and node.func.id not in self.known:
            if node.func.id == "getattr" and isinstance(args[1], ast.Constant):
                return _at(ast.Attribute(args[0], str(args[1].value), ast.Load()), node)
            if node.func.id in REDUCTIONS and len(args) == 1 and isinstance(args[0], ast.List):
                return self.reduction(node.func.id, args[0].elts, node)
        elif self.is_static(node.func) and not keywords:
            function = self.value(node.func)
            # Not a function of the program: its globals may change, and its file. An error in it shows its own line.
            inserted = MARK in getattr(function, "__globals__", ()) and (
                function.__name__ == "<lambda>" or ast.unparse(node.func).endswith("kernel")
            )
            found = returned_expression(function) if inserted else None
            simple = all([isinstance(each, (ast.Name, ast.Constant)) for each in args])
            if found is not None and simple and len(args) == len(found[0]):
                return self.spliced(function, *found, args, node)
        return _at(ast.Call(self.expr(node.func), args, keywords), node)

    def reduction(self, name: str, elements: list[ast.expr], node: ast.expr) -> ast.expr:
        """Return the expression that replaces ``any``, ``all`` or ``tuple`` of a list of ``elements``.

        ``name`` is the name of the function. The expression is an ``or``, an ``and`` or a tuple; it is a constant if a
        constant element decides the value.
        """
        if name == "tuple":
            return _at(ast.Tuple(elements, ast.Load()), node)
        stops = name == "any"
        left = [each for each in elements if not isinstance(each, ast.Constant) or bool(each.value) is stops]
        if not left or any(isinstance(each, ast.Constant) for each in left):
            return _at(ast.Constant(stops if left else not stops), node)
        return left[0] if len(left) == 1 else _at(ast.BoolOp(ast.Or() if stops else ast.And(), left), node)

    def spliced(
        self, function: FunctionType, names: list[str], body: ast.expr, args: list[ast.expr], hole: ast.expr
    ) -> ast.expr:
        """Return ``body``, the expression that ``function`` returns, with ``args`` in place of its parameters ``names``.

        The global and captured variables of ``function`` become global variables of the specialised function. All nodes
        get the position of ``hole``, the call that the body replaces.
        """
        values = dict(zip(names, args, strict=True))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        outer = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}

        def moved(node: SyntaxNode, own: frozenset[str]) -> SyntaxNode:
            if isinstance(node, list):
                return [moved(each, own) for each in node]
            if not isinstance(node, ast.AST):
                return node
            if isinstance(node, ast.Name) and node.id not in own:
                if node.id in values:
                    return values[node.id]
                if isinstance(node.ctx, ast.Load) and node.id in outer:
                    value = outer[node.id]
                    if value.__class__ in FOLDED:
                        return _at(ast.Constant(value), hole)
                    return self.global_variable(node.id, value, hole)
                if not isinstance(node.ctx, ast.Load) or not hasattr(builtins, node.id):
                    return _at(ast.Name(f"_{node.id.lstrip('_')}", node.ctx), hole)  # set by := in the lambda
            if isinstance(node, ast.Call) and not (own or node.keywords):
                called, args = _global_value(node.func, outer), [moved(each, own) for each in node.args]
                simple = called in EXPRESSIONS and all(map(_is_simple, args))
                found = returned_expression(called) if simple else None
                if found is not None and len(args) == len(found[0]):
                    return self.spliced(called, *found, args, hole)
            if isinstance(node, ast.Lambda):
                own = own.union(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
            if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
                own = own.union(
                    each.id for one in node.generators for each in ast.walk(one.target) if isinstance(each, ast.Name)
                )
            made = node.__class__(**{key: moved(value, own) for key, value in ast.iter_fields(node)})
            if isinstance(made, ast.Compare) and self.is_static(made) and len(made.ops) == 1:
                made = ast.Constant(self.value(made))
            elif isinstance(made, ast.IfExp) and isinstance(made.test, ast.Constant):
                return made.body if made.test.value else made.orelse
            elif isinstance(made, ast.Attribute) and isinstance(made.value, ast.Name):
                module = self.space.get(made.value.id)
                if isinstance(module, ModuleType):  # numpy.asarray: 30 ns faster as a global variable
                    return self.global_variable(f"{made.value.id}_{made.attr}", getattr(module, made.attr), hole)
            return _at(made, hole) if "lineno" in node._attributes else made

        return moved(body, frozenset())

    def rebuilt(self, node: SyntaxNode) -> SyntaxNode:
        """Return a copy of ``node`` in which the expressions and statements that it contains have been replaced.

        ``node`` itself is returned if nothing in it has to be replaced.
        """

        def part(each: SyntaxNode) -> SyntaxNode:
            if isinstance(each, list):
                return self.body(each) if each and isinstance(each[0], ast.stmt) else [part(one) for one in each]
            if isinstance(each, ast.expr):
                return self.expr(each)
            return self.rebuilt(each) if isinstance(each, ast.AST) else each

        if not node._fields or self.untouched(node):
            return node
        made = node.__class__(**{key: part(value) for key, value in ast.iter_fields(node)})
        return _at(made, node) if "lineno" in node._attributes else made

    # -- Statements

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return a list of the statements that replace ``statements`` in the specialised function."""
        left: list[ast.stmt] = []
        for each in statements:
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                continue  # a docstring
            left += [each] if self.untouched(each) else self.statement(each)
            if len(left) > 1:
                left[-2:] = self.joined(left[-2], left[-1])
            if left and isinstance(left[-1], (ast.Return, ast.Raise, ast.Continue)):
                break
        return left

    def joined(self, first: ast.stmt, second: ast.stmt) -> list[ast.stmt]:
        """Return the statements that replace ``first`` and ``second``, two successive statements.

        If they are ``x = value if test else None`` and ``if x is None: …``, one ``if test`` replaces them. Otherwise
        they are returned unchanged.
        """
        match first, second:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.IfExp(test=test, body=value, orelse=ast.Constant(value=None))
                ),
                ast.If(
                    test=ast.Compare(left=ast.Name(id=same), ops=[ast.Is()], comparators=[ast.Constant(value=None)]),
                    body=otherwise,
                    orelse=[],
                ),
            ) if name == same and not isinstance(value, ast.IfExp):
                assign = _at(ast.Assign([_at(ast.Name(name, ast.Store()), first)], value), first)
                return [_at(ast.If(test, [assign], otherwise), first)]
        return [first, second]

    def is_inlined(self, node: ast.stmt) -> bool:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                return name in self.inlined
        return False

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return a list of the statements that replace the statement ``node`` in the specialised function."""
        match node:
            case ast.If():
                test = self.expr(node.test)
                if isinstance(test, ast.Constant):
                    return self.body(node.body if test.value else node.orelse)
                body, other = self.body(node.body), self.body(node.orelse)
                if not body and not other:
                    return []
                return [_at(ast.If(test, body or [_at(ast.Pass(), node)], other), node)]
            case ast.For() if self.is_static(node.iter):
                left = []
                before, special = self.known, self.special
                for each in self.value(node.iter):
                    self.bind(node.target, each)
                    left += self.body(node.body)
                self.known, self.special = before, special
                return left
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="slots"), args=[count])):
                self.lists[name] = [ast.Name(f"{name}_{k}", ast.Load()) for k in range(self.value(count))]
                self.special = {*self.special, name}
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id="bind"), args=[ast.Name(id=name), index, value])):
                remains, at = self.expr(value), self.value(index)
                if isinstance(remains, (ast.Name, ast.Constant)):
                    self.lists[name][at] = remains
                    return []
                variable = f"{name}_{at}"
                self.lists[name][at] = ast.Name(variable, ast.Load())
                return [_at(ast.Assign([_at(ast.Name(variable, ast.Store()), node)], remains), node)]
            case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, key, value])):
                place = _at(ast.Attribute(self.expr(target), self.expr(key).value, ast.Store()), node)
                return [_at(ast.Assign([place], self.expr(value)), node)]
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args)) if self.is_inlined(node):
                return self.inlined_body(self.space[name], args)
            case ast.Return(value=ast.Call(func=ast.Name(id=name), args=args)) if name in self.inlined:
                return self.inlined_body(self.space[name], args)
        made = self.rebuilt(node)
        return [made]

    def inlined_body(self, function: FunctionType, args: Sequence[ast.expr]) -> list[ast.stmt]:
        """Return a list of the statements that replace a call of the inlined helper ``function`` with ``args``."""
        tree, before = self.enter(function, args)
        left = self.body(tree.body)
        self.known, self.lists, self.special, self.renamed = before
        return left

    def inlined_value(self, function: FunctionType, args: Sequence[ast.expr]) -> ast.expr:
        """Return the expression that replaces a call of the inlined helper ``function`` with ``args``.

        The only statement of the helper must be ``return``.
        """
        tree, before = self.enter(function, args)
        final = tree.body[-1]
        assert isinstance(final, ast.Return), "an inlined helper in an expression must only return a value"
        result = self.expr(final.value)
        self.known, self.lists, self.special, self.renamed = before
        return result

    def enter(self, function: FunctionType, args: Sequence[ast.expr]) -> tuple[ast.FunctionDef, Replacements]:
        """Bind the parameters of the inlined helper ``function`` to ``args``, the arguments of its call.

        Return the syntax tree of the helper, and the previous values of the attributes ``known``, ``lists``,
        ``special`` (all names with a replacement) and ``renamed``, which the caller restores. An argument must be a
        variable, a constant, a tuple, a dict, a static expression, or a list created by :func:`slots`.
        """
        tree = template_of(function).tree
        if id(tree) not in self.names:
            self.names = {**self.names, **_file_names(function.__code__.co_filename)}
            for name, value in function.__globals__.items():
                if isinstance(value, FunctionType) and value in INLINED and self.space.setdefault(name, value) is value:
                    self.inlined = {*self.inlined, name}
            self.special = {*self.special, *self.inlined}
        before = self.known, self.lists, self.special, self.renamed
        known, lists, renamed = dict(self.known), dict(self.lists), dict(self.renamed)
        for parameter, given in zip(tree.args.args, args, strict=True):
            name = parameter.arg
            known.pop(name, None), lists.pop(name, None), renamed.pop(name, None)
            if isinstance(given, ast.Name) and given.id in before[1]:
                lists[name] = before[1][given.id]
            elif self.is_static(given):
                known[name] = self.value(given)
            else:
                remains = self.expr(given)
                assert isinstance(remains, (ast.Name, ast.Constant, ast.Tuple, ast.Dict)), ast.unparse(remains)
                if not (isinstance(remains, ast.Name) and remains.id == name):
                    renamed[name] = remains
        self.known, self.lists, self.renamed = known, lists, renamed
        self.special = {*self.special, *known, *lists, *renamed}
        return tree, before


def function_definition(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """Return the syntax tree of a function with the parameters ``arguments`` and the statements ``body``.

    The fields of the node depend on Python's version.
    """
    made: Any = ast.FunctionDef(name, arguments, body, [])
    if "type_params" in made._fields:
        made.type_params = []
    return made


def specialize(
    template: Function, form: object, name: str, arguments: ast.arguments, parts: Mapping[str, Part], space: Namespace,
) -> ast.FunctionDef:  # fmt: skip
    """Return the syntax tree of the function ``name``, a copy of ``template`` for one value of its first argument.

    Args:
        template: Template, a Python function at the top level of a source file.
        form: Value of the first argument of the template.
        name: Name of the returned function.
        arguments: Parameters of the returned function.
        parts: Dict by names of parameters of the template. For a parameter that is a list of arguments, the value is
            the list of their names in ``arguments``, or of the expressions that replace them. For a parameter that the
            returned function does not have, the value is the expression that replaces it.
        space: Global variables of the returned function: initially those that the template uses. Static values are
            added to this dict.
    """
    tree = template_of(template).tree
    known = {tree.args.args[0].arg: form}
    lists: dict[str, list[ast.expr]] = {
        key: [each if isinstance(each, ast.expr) else ast.Name(each, ast.Load()) for each in items]
        for key, items in parts.items()
        if isinstance(items, list)
    }
    renamed = {key: value for key, value in parts.items() if not isinstance(value, list)}
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    own = frozenset([name, *[each.arg for each in every]])
    names = _file_names(template.__code__.co_filename)
    shared = {each.arg for each in tree.args.args}
    for each in own.intersection(_names_in(template.__code__.co_filename)).difference(shared):
        # A variable of the template with the name of a parameter of the result gets another name.
        renamed[each] = ast.Name(f"{each}_", ast.Load())
        if each in space:
            space[f"{each}_"] = space[each]
    worker = _Specializer(known, lists, renamed, space, names, own)
    body = worker.body(tree.body)
    made = _at(function_definition(name, arguments, body or [_at(ast.Pass(), tree)]), tree)
    return made
