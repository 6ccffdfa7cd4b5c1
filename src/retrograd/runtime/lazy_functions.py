"""Functions that are generated from templates, and functions whose code is generated at their first call.

A template is an ordinary function whose first parameter, ``form``, describes the function to be generated
(``runtime/specialization.py``).
"""

from __future__ import annotations

import ast
import math
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Protocol

from . import user_frame
from .codegen import PREFIX, compile_source, compile_tree
from .extension_module import call_copy, compiled_copy
from .forks import replace_in_child
from .specialization import specialize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .typing import Compiled, Function, Namespace

#: The call of a function at which it is specialised: before that it runs its template. Specialising takes 2 to 6 ms,
#: which only pays for a function that is called often. RETROGRAD_CODEGEN=1: at the first call; 0: never.
SPECIALIZE_AT = {"0": math.inf, "1": 1}.get(os.environ.get("RETROGRAD_CODEGEN", ""), 32)


class Form(Protocol):
    """Description of a function to be generated."""

    #: The function whose code is replaced when it is specialised; by default the one that :func:`generated` returns.
    function: FunctionType | None
    #: Function that returns the syntax tree of the specialised function.
    tree: Callable[[], ast.FunctionDef]
    #: Function that puts a compiled function in the place of ``function``, or None if it is the code that is replaced.
    replace: Callable[[Function], None] | None

    def signature(self) -> ast.arguments:
        """Return the parameters of the function."""

    def parts(self) -> Mapping[str, list[str] | ast.expr]:
        """Return a dictionary from parameters of the template to their replacements in the function.

        A replacement is a list of names of the function's parameters, or an expression. A parameter of the template
        that is not in the dictionary is a parameter of the function, too.
        """

    def default_values(self) -> Namespace:
        """Return a dictionary of the globals in which the function finds its default values."""


def generated(template: Function, form: Form, name: str, space: Namespace) -> Compiled:
    """Return a function called ``name`` that runs ``template`` for the description ``form`` of the function.

    The function calls the template. At its call number ``SPECIALIZE_AT`` it becomes a copy of the template in which the
    attributes of ``form`` are constants. ``space`` is the dictionary of its globals.
    """
    arguments, parts = form.signature(), form.parts()
    code = template.__code__
    names = code.co_varnames[1 : code.co_argcount]  # not from the syntax tree: a short program parses no template
    space.update(form.default_values())
    space.update({user_frame.MARK: True, user_frame.CALL_MARK: True, "__name__": None})  # see Note [Silenced modules]
    space["__tracebackhide__"] = True  # pytest shows no frame of the function
    space["form"] = form

    def tree() -> ast.FunctionDef:
        for key, value in template.__globals__.items():
            space.setdefault(key, value)
        own = {key: parts[key] for key in names if key in parts}
        return specialize(template, form, name, form.signature(), own, space)

    def specialized() -> Compiled:
        made = tree()
        copy = compiled_copy(made, space)
        if copy is not None:
            if form.replace is not None:
                return copy
            made = call_copy(made, copy, space)
        return compile_tree(made, code.co_filename, space)

    def specialize_now() -> None:
        with _GENERATING:
            try:
                made = specialized()
            except (RecursionError, MemoryError):  # the template needs less: try again later
                calls_left[0] = SPECIALIZE_AT
                return
            assert form.function is not None
            if made.__class__ is not FunctionType and form.replace is not None:
                form.replace(made)
            else:
                _replace_code(form.function, made)

    form.tree = tree
    if SPECIALIZE_AT == 1:
        return specialized()
    values = [parts.get(each, ast.Name(each, ast.Load())) for each in names]
    values = [
        ast.List([ast.Name(one, ast.Load()) for one in each], ast.Load()) if isinstance(each, list) else each
        for each in values
    ]
    calls_left = [SPECIALIZE_AT]
    space.update(
        template=template,
        strip_frames=user_frame.strip_frames,
        calls_left=calls_left,
        specialize_now=specialize_now,
    )
    generic = specialize(_run_template, form, name, arguments, {"values": values}, space)
    made = compile_tree(generic, _run_template.__code__.co_filename, space)
    form.function = form.function or made
    return made


def _run_template(form: Form, values: Sequence[object]) -> object:
    """Template of the functions that are not specialised yet: they call another template.

    That template is the global variable ``template`` of the function, and ``values`` are its arguments after ``form``.
    The other names that are not defined here are global variables of the function, too.
    """
    calls_left[0] -= 1  # type: ignore[name-defined]  # noqa: F821
    if calls_left[0] <= 0:  # type: ignore[name-defined]  # noqa: F821
        specialize_now()  # type: ignore[name-defined]  # noqa: F821
    try:
        return template(form, *values)  # type: ignore[name-defined]  # noqa: F821
    except KeyboardInterrupt as error:
        strip_frames(error)  # type: ignore[name-defined]  # noqa: F821
        raise
    except Exception as error:
        error = strip_frames(error)  # type: ignore[name-defined]  # noqa: F821
        if error is None:
            raise
        raise error from error.__cause__  # RETROGRAD_TRACEBACK=full shows how it came to this


def set_code(function: FunctionType, made: FunctionType) -> None:
    """Give ``function`` the code and the defaults of the function ``made``."""
    function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
    _replace_code(function, made)


def _replace_code(function: FunctionType, made: FunctionType) -> None:
    function.__code__ = made.__code__.replace(co_name=function.__name__, co_qualname=function.__name__)


#: The file name of the code of functions that are not generated yet.
UNWRITTEN = f"{PREFIX}first call>"


def lazy_function(name: str, write: Callable[[FunctionType], None], space: Namespace) -> FunctionType:
    """Return a function called ``name`` with the globals ``space``, whose code is generated at its first call.

    The first call runs ``write(function)``, which must set the ``__code__`` of ``function``. The package creates about
    2,500 such functions on import; to generate their code at that time would make the import slow.
    """
    function = FunctionType(_FIRST_CALL.replace(co_name=name, co_qualname=name), space, name)
    space.update(write=write, function=function, generate=generate, brief=user_frame.strip_frames, __name__=None)
    space[user_frame.MARK] = space[user_frame.CALL_MARK] = space["__tracebackhide__"] = True
    return function


#: Held while the code of a function is generated, because several threads may call the function first.
_GENERATING = threading.RLock()

replace_in_child(sys.modules[__name__], "_GENERATING")


def generate(function: FunctionType) -> None:
    """Generate the code of ``function``, which :func:`lazy_function` created, unless another thread has done so."""
    with _GENERATING:
        if function.__code__.co_filename == UNWRITTEN:
            function.__globals__["write"](function)


def is_generated(function: object) -> bool:
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
