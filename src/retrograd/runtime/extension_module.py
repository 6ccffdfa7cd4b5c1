"""Compiled copies of generated functions, if ``scripts/build_compiled.py`` has built the extension module ``_compiled``.

Without the extension module, or with ``RETROGRAD_COMPILED=0``, the package is Python only; ``RETROGRAD_COMPILED`` may also
be the path of an extension module. A compiled copy has the usual path of a specialised function
(``runtime/specialization.py``). It is found by the text of the function, so that a function whose source has changed has
none. The specialised function stays as it is, and calls its compiled copy first. The copy returns ``DECLINED`` for
a call that is not on the usual path, and also if the kernel raises an error: then the specialised function runs itself.
So errors, tracebacks, handlers and frames are those of Python.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .codegen import MARK, parse_module
from .user_frame import passed_user_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from .typing import Function, Namespace

    Binder = Callable[[Namespace], Function | None]

Callee = TypeVar("Callee", bound="Callable[..., Any]")

#: Result of a compiled function that leaves the call to the specialised function.
DECLINED = object()


def default_path() -> str:
    """Return the path at which the extension module is expected: beside this module, with Python's version in its name."""
    return os.path.join(os.path.dirname(__file__), f"_compiled{EXTENSION_SUFFIXES[0]}")


def _load() -> dict[str, tuple[Binder, ...]]:
    """Return a dict from keys of functions to their compiled copies, each a function that binds it to given globals.

    It returns the copy, or None if the copy is bound to other globals.
    """
    setting = os.environ.get("RETROGRAD_COMPILED", "")
    path = default_path() if setting in ("", "1") else setting
    if setting == "0" or not os.path.exists(path):
        return {}
    spec = spec_from_file_location(f"{__package__}._compiled", path)
    assert spec is not None and spec.loader is not None
    _compiled = module_from_spec(spec)
    try:
        spec.loader.exec_module(_compiled)
    except ImportError:  # of another version of NumPy
        return {}
    vars(_compiled)[MARK] = True
    _compiled.set_up(MARK, DECLINED, passed_user_code)
    return cast("dict[str, tuple[Binder, ...]]", _compiled.functions)


_functions = _load()


def describe() -> str:
    """Return what ``retrograd info`` prints about compiled functions."""
    if os.environ.get("RETROGRAD_COMPILED") == "0":
        return "not used (RETROGRAD_COMPILED=0)"
    return f"{len(_functions)} functions" if _functions else "not built"


def key_of_text(text: str) -> str:
    """Return the key of a specialised function with the source ``text``."""
    import hashlib  # slow to import, and rarely needed

    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def key_of_function(function: FunctionType) -> str:
    """Return the key of ``function``, a function of a module: its name with a digest of the source file."""
    return f"{function.__module__}.{function.__name__} {_digest(function.__code__.co_filename)}"


@cache
def _digest(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return key_of_text(opened.read())
    except OSError:  # an installation without sources
        return ""


def compiled_copy(tree: ast.FunctionDef, space: Namespace) -> Function | None:
    """Return the compiled copy of the specialised function ``tree`` with the globals ``space``, or None."""
    if not _functions:
        return None
    binders = _functions.get(key_of_text(ast.unparse(tree)), ())
    return next(filter(None, (bind(space) for bind in binders)), None)


def use_compiled_copy(function: Callee) -> Callee:
    """Return the compiled copy of ``function``, a function at the top level of a module, or else ``function``."""
    if not _functions:
        return function
    binders = _functions.get(key_of_function(cast("FunctionType", function)), ())
    return cast(Callee, next((bind(function.__globals__) for bind in binders), function))


def call_copy(tree: ast.FunctionDef, copy: Function, space: Namespace) -> ast.FunctionDef:
    """Return the specialised function ``tree`` with a call of its compiled ``copy`` before its first statement.

    The call is inside the ``try`` statement of the function. Calls with arguments that the usual path does not have, and
    those that handlers may intercept, do not reach it. ``space`` are the globals of the function.
    """
    space.update(compiled_call=copy, DECLINED=DECLINED)
    args = tree.args
    names = [each.arg for each in (*args.args, *args.kwonlyargs) if each.arg != "out"]
    idle = "(not HANDLERS or (active_cursor() is None and not state()[4]))"  # no handler of this thread
    tests = [idle, *[f"not {each.arg}" for each in (args.vararg, args.kwarg) if each is not None]]
    tests += ["out is None" for each in args.kwonlyargs if each.arg == "out"]
    lines = [
        f"if {' and '.join(tests)}:",
        f"    compiled_result = compiled_call({', '.join(names)})",
        "    if compiled_result is not DECLINED:",
        "        return compiled_result",
    ]
    place, attempt = next((i, each) for i, each in enumerate(tree.body) if isinstance(each, ast.Try))
    started = parse_module("\n".join(lines)).body
    for statement in started:
        for each in ast.walk(statement):
            if hasattr(each, "lineno"):
                ast.copy_location(each, attempt)
    attempt = ast.Try([*started, *attempt.body], attempt.handlers, attempt.orelse, attempt.finalbody)
    ast.copy_location(attempt, attempt.handlers[0])
    body: list[ast.stmt] = [*tree.body[:place], attempt, *tree.body[place + 1 :]]
    return ast.copy_location(ast.FunctionDef(tree.name, args, body, [], None), tree)
