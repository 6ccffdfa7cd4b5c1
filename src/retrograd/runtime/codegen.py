"""Compilation of generated source text, and copies of functions under other names.

All generated code of the package is compiled here, so that it has uniform file names and entries in ``linecache``, and
so that its frames are marked as frames of the package, which tracebacks leave out (tests/architecture/test_codegen.py).
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .typing import Compiled, Function, Namespace

Tree = TypeVar("Tree", bound=ast.AST)

#: Name in the globals of all modules and generated functions of the package.
MARK = "__retrograd__"
#: Prefix of the file names of generated code. A plain name such as ``<t>`` could also be the name of a user's code,
#: whose tracebacks would then show lines of the package.
PREFIX = "<retrograd:"

#: How often a text is parsed before a SystemError is passed on.
PARSE_ATTEMPTS = 100


def compile_source(filename: str, lines: Sequence[str], space: Namespace, name: str) -> Compiled:
    """Compile the source ``lines``, with ``space`` as globals, and return the function ``name`` that they define.

    ``filename`` is the path of a file that has these lines, or a title such as ``<mul>``, from which the file name
    ``<retrograd:mul>`` is made. The source is added to ``linecache`` under this name, so that tracebacks and debuggers
    show it. If another source has the same title, a number is appended: ``<retrograd:mul 2>``.
    """
    source = "\n".join(lines) + "\n"
    source_lines = source.splitlines(keepends=True)
    if filename.startswith("<"):
        filename = first_filename = PREFIX + filename.removeprefix(PREFIX).removeprefix("<")
        count = 1
        while filename in linecache.cache and linecache.cache[filename][2:3] != (source_lines,):
            count += 1  # a public function with two fast paths has two sources
            filename = f"{first_filename[:-1]} {count}>"
    space[MARK] = True  # marks frames of the package, which tracebacks leave out
    exec(compile(source, filename, "exec"), space)
    linecache.cache[filename] = (len(source), None, source_lines, filename)
    return space[name]


def parse_module(source: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of ``source``, the text of a module."""
    return _repeated(lambda: ast.parse(source, filename))


def parse_expression(source: str | bytes) -> ast.expr:
    """Return the syntax tree of ``source``, an expression."""
    return _repeated(lambda: ast.parse(source, mode="eval").body)


def _repeated(parse: Callable[[], Tree]) -> Tree:
    """Return ``parse()``, repeated if it fails because another thread parses at the same time.

    In Python 3.11 and 3.12 all threads share one counter of the depth of syntax trees, and ``ast.parse`` raises a
    SystemError if another thread, of any library, has changed the counter meanwhile.
    """
    for _ in range(PARSE_ATTEMPTS - 1):
        with suppress(SystemError):
            return parse()
    return parse()


def compile_tree(tree: ast.FunctionDef, filename: str, space: Namespace) -> Compiled:
    """Compile the syntax tree of a function, with ``space`` as globals, and return the function.

    Nodes of ``tree`` that have positions refer to lines of the file ``filename``, which tracebacks and debuggers show.
    """
    defined: dict[str, Any] = {}  # not `space`: several threads may compile the same function at once
    exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), filename, "exec"), space, defined)
    return defined[tree.name]


def renamed(function: Function, name: str, qualname: str | None = None) -> Compiled:
    """Return a copy of the Python function ``function`` called ``name``, also in tracebacks.

    ``qualname`` is the qualified name, which Python shows in errors about arguments; by default it is ``name``. The
    copy has the module, defaults, docstring and attributes of ``function``.
    """
    qualname = name if qualname is None else qualname
    code = function.__code__.replace(co_name=name, co_qualname=qualname)
    made = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    made.__qualname__, made.__module__, made.__doc__ = qualname, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made


__all__ = ["MARK", "PREFIX", "compile_source", "compile_tree", "parse_expression", "parse_module", "renamed"]
