"""Generated code: the files that may compile it or replace code objects, and its file names.

Calls of the builtins ``compile``, ``exec`` and ``eval`` and of ``types.FunctionType``, and assignments to ``__code__``,
are found in the syntax trees of the package's files.
"""

from __future__ import annotations

import ast
import linecache
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.runtime.codegen import PARSE_ATTEMPTS, PREFIX, compile_source, parse_expression, parse_module, renamed

PACKAGE = Path(torch.__file__).parent
BUILTINS = ("compile", "exec", "eval")
MAKERS = ("types.FunctionType", "types.LambdaType")

#: Files that compile source text or syntax trees, or make functions from code objects.
COMPILES = {
    "runtime/codegen.py",
    "runner.py",  # runs the user's program
    "runtime/lazy_functions.py",  # functions whose code is generated at their first call
    "fx/graph_module.py",  # code of a graph, which belongs to the user's program
    "fx/_symbolic_trace.py",  # a traced function without *args
    "inspection/page/formulas.py",  # conditions of derivative rules, which a page decides
}
#: Files that assign to ``__code__``.
ASSIGNS_CODE = {"runtime/lazy_functions.py"}


def imported(tree: ast.AST) -> dict[str, str]:
    """Return a dictionary from each name that ``from module import name`` defines to ``module.name``."""
    return {
        alias.asname or alias.name: f"{'.' * node.level}{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def compiling(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each use of compile, exec or eval, and of each call of FunctionType.

    A builtin counts without a call, too: ``run = exec``, or ``builtins.exec``. FunctionType in a type check does not.
    """
    origins = {each: f"builtins.{each}" for each in BUILTINS}
    origins |= {node.name: node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} | imported(tree)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            name = origins.get(ast.unparse(node), ast.unparse(node))
            if name in {f"builtins.{each}" for each in BUILTINS} or (node in called and name in MAKERS):
                yield node.lineno


def assigning(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each assignment to an attribute ``__code__``, also by ``setattr``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "__code__" and not isinstance(node.ctx, ast.Load):
            yield node.lineno
        setter = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("setattr", "__setattr__"))
        if setter and "'__code__'" in map(ast.unparse, node.args):
            yield node.lineno


def trees() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_few_files_compile_code() -> None:
    assert {file for file, tree in trees() if any(compiling(tree))} == COMPILES


def test_few_files_replace_code_objects() -> None:
    assert {file for file, tree in trees() if any(assigning(tree))} == ASSIGNS_CODE


def test_one_file_parses_source() -> None:
    """``ast.parse`` may fail while another thread parses (``codegen.parse_module``); the stubs are a tool."""
    uses = {file for file, tree in trees() if "ast.parse(" in ast.unparse(tree) and not file.startswith("stubs/")}
    assert uses == {"runtime/codegen.py"}


def test_a_source_is_parsed_again_if_another_thread_disturbed_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    left, parse = [3], ast.parse

    def disturbed(*args: Any, **kwargs: Any) -> ast.AST:
        left[0] -= 1
        if left[0] >= 0:
            raise SystemError("AST constructor recursion depth mismatch (before=117, after=107)")
        return parse(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert ast.unparse(parse_expression("a+b")) == "a + b"
    left[0] = 3
    assert [type(each) for each in parse_module("a = 1").body] == [ast.Assign]
    with pytest.raises(SyntaxError):
        parse_module("a = ")
    left[0] = PARSE_ATTEMPTS
    with pytest.raises(SystemError):
        parse_module("a = 1")


@pytest.mark.parametrize(
    ("source", "compiles", "assigns"),
    [
        ("exec(compile(text, name, 'exec'), space)", 2, 0),
        ("import builtins\nbuiltins.eval('1')", 1, 0),
        ("from builtins import exec as run\nrun('1')", 1, 0),
        ("import ast\nast.literal_eval('1')", 0, 0),
        ("run = exec", 1, 0),
        ("from types import FunctionType\nf = FunctionType(code, {})", 1, 0),
        ("from types import FunctionType as F\nf = F(code, {})", 1, 0),
        ("import types\nf = types.FunctionType(code, {})", 1, 0),
        ("from types import FunctionType\nisinstance(f, FunctionType)", 0, 0),
        ("ir.FunctionType(kind, [kind])", 0, 0),
        ("re.compile('a'); model.eval(); torch.compile(f)", 0, 0),
        ("from .compiled_function import compile\ncompile(f)", 0, 0),
        ("f.__code__ = g.__code__", 0, 1),
        ("f.__code__, x = g.__code__, 1", 0, 1),
        ("setattr(f, '__code__', code)", 0, 1),
        ("code = f.__code__.replace(co_name='g')", 0, 0),
    ],
)
def test_the_search_finds_what_it_names(source: str, compiles: int, assigns: int) -> None:
    tree = ast.parse(source)
    assert (len([*compiling(tree)]), len([*assigning(tree)])) == (compiles, assigns)


def test_code_of_the_user_is_never_shown_with_lines_of_the_package() -> None:
    """A program may compile code under any name in angle brackets, such as the name of an operation."""
    x = torch.ones(2, 2, requires_grad=True)
    torch.t(x), torch.mul(x, x).sum().backward(), torch.nn.Linear(2, 2)(x)
    torch.compile(lambda x: x.exp() * 2)(x)
    for title in (
        "t",
        "mul",
        "Linear.forward",
        "compiled forward",
        "compiled call",
        "compiled guard",
        "string",
        "stdin",
    ):
        # Python 3.13 stores the text of `python -c` as <string>: that of a test process is no definition.
        assert not any(each.startswith("def ") for each in linecache.getlines(f"<{title}>"))
    space = {"x": x, "torch": torch}
    with pytest.raises(IndexError) as seen:
        exec(compile("def f(x):\n    return torch.cat([x], 9)\n\n\nf(x)\n", "<t>", "exec"), space)
    own = [each for each in traceback.extract_tb(seen.tb) if each.filename == "<t>"]
    assert [(each.name, each.line) for each in own] == [("<module>", ""), ("f", "")]


def test_generated_code_has_file_names_of_its_own() -> None:
    first = compile_source("<same title>", ["def f(): return 1"], {}, "f")
    second = compile_source("<same title>", ["def f(): return 2"], {}, "f")
    again = compile_source("<same title>", ["def f(): return 1"], {}, "f")
    names = [each.__code__.co_filename for each in (first, second, again)]
    assert names == [f"{PREFIX}same title>", f"{PREFIX}same title 2>", f"{PREFIX}same title>"]
    assert linecache.getline(names[1], 1) == "def f(): return 2\n"
    assert compile_source(f"{PREFIX}other>", ["def f(): pass"], {}, "f").__code__.co_filename == f"{PREFIX}other>"


def test_renamed_functions_are_copies_under_another_name() -> None:
    cell = 3

    def original(a: int, /, b: int = 2, *, c: int = 4) -> int:
        """Return a sum."""
        return a + b + c + cell

    made = renamed(original, "shown", "Class.shown")
    assert (made(1), made.__name__, made.__qualname__, made.__doc__) == (10, "shown", "Class.shown", "Return a sum.")
    assert (made.__module__, made.__annotations__) == (original.__module__, original.__annotations__)
    assert (made.__code__.co_name, original.__code__.co_name) == ("shown", "original")
    with pytest.raises(TypeError, match=r"^Class\.shown\(\) missing 1 required positional argument: 'a'$"):
        made()
