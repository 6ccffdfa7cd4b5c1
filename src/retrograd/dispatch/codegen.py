"""Functions whose code is generated at their first call: copies of a template for one operation.

A template is an ordinary function of ``dispatch/templates.py``, whose first parameter describes the function to be
generated.
"""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from ..runtime import specialization, user_frame
from ..runtime.codegen import PREFIX, compile_source, compile_tree
from ..runtime.specialization import specialize

#: Whether functions are specialised; otherwise they run the templates as they stand (``RETROGRAD_CODEGEN=0``).
SPECIALIZING = os.environ.get("RETROGRAD_CODEGEN", "1") != "0"


def specialized(
    template: Any, form: Any, name: str, arguments: ast.arguments, parts: dict[str, Any], space: dict[str, Any]
) -> Any:
    """Return a copy of the function ``template`` in which the attributes of its argument ``form`` are constants.

    ``name`` and ``arguments`` are the name and the parameters of the copy, and ``space`` is the dictionary that becomes
    its globals. ``parts`` is a dictionary from parameters of ``template`` to what replaces them in the copy: a list of
    parameter names, or an expression. The syntax tree of the copy is stored as ``form.tree``.
    """
    for key, value in template.__globals__.items():
        space.setdefault(key, value)
    space[user_frame.MARK] = space[user_frame.CALL_MARK] = True
    space["__name__"] = None  # see Note [Silenced modules]
    tree = specialize(template, form, name, arguments, parts, space)
    form.tree = tree
    return compile_tree(tree, template.__code__.co_filename, space)


def binding(template: Any, form: Any, name: str, space: dict[str, Any]) -> Any:
    """Return a function that passes its arguments, and ``form`` as the first, to the function ``template``.

    With ``RETROGRAD_CODEGEN=0``, this function is used in place of :func:`specialized`, so that the template itself
    runs. The returned function is called ``name``, has the parameters ``form.signature()`` and the globals ``space``.
    """
    absent = form.absent()
    args = ast.List([ast.Name(each, ast.Load()) for each in form.args], ast.Load())
    others = [each.arg for each in specialization.template_of(template).tree.args.args[2:]]
    given = [absent.get(each, ast.Name(each, ast.Load())) for each in others]
    call = ast.Call(ast.Name("template", ast.Load()), [ast.Name("form", ast.Load()), args, *given], [])
    tree = specialization.function_definition(name, form.signature(), [ast.Return(call)])
    space.update(
        {user_frame.MARK: True, user_frame.CALL_MARK: True, "__name__": None, "template": template, "form": form}
    )
    return compile_tree(tree, template.__code__.co_filename, space)


def set_code(function: FunctionType, made: Any) -> None:
    """Give ``function`` the code and the defaults of the function ``made``."""
    function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
    function.__code__ = made.__code__.replace(co_name=function.__name__, co_qualname=function.__name__)


#: The file name of the code of functions that are not generated yet.
UNWRITTEN = f"{PREFIX}first call>"


def lazy_function(name: str, write: Callable[[FunctionType], None], space: dict[str, Any]) -> FunctionType:
    """Return a function called ``name`` with the globals ``space``, whose code is generated at its first call.

    The first call runs ``write(function)``, which must set the ``__code__`` of ``function``. The package creates about
    2,500 such functions on import; to generate their code at that time would make the import slow.
    """
    function = FunctionType(_FIRST_CALL.replace(co_name=name, co_qualname=name), space, name)
    space.update(write=write, function=function, generate=generate, brief=user_frame.strip_frames, __name__=None)
    space[user_frame.MARK] = space[user_frame.CALL_MARK] = True
    return function


#: Held while the code of a function is generated, because several threads may call the function first.
_GENERATING = threading.RLock()


def generate(function: FunctionType) -> None:
    """Generate the code of ``function``, which :func:`lazy_function` created, unless another thread has done so."""
    with _GENERATING:
        if function.__code__.co_filename == UNWRITTEN:
            function.__globals__["write"](function)


def is_generated(function: Any) -> bool:
    """Whether ``function`` was created by :func:`lazy_function`."""
    return function.__class__ is FunctionType and function.__globals__.get("function") is function


_FIRST_CALL: CodeType = compile_source(
    UNWRITTEN,
    [
        "def first_call(*args, **kwargs):", "    try:", "        generate(function)", "        return function(*args, **kwargs)",
        "    except Exception as _error:", "        _error = brief(_error)", *("        " + each for each in user_frame.RERAISE),
    ],
    {}, "first_call",
).__code__  # fmt: skip
