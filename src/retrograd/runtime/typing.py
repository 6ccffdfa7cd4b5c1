"""Type aliases for the annotations of ``runtime``, the lowest layer, which may not import those of ``core/typing.py``.

No module loads this module at run time; Note [Any in annotations] in ``core/typing.py`` has the rule for ``Any``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

#: Function whose parameters and result are not known here.
Function: TypeAlias = Callable[..., Any]
#: Class of a function that a decorator returns unchanged.
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
#: Lock, reentrant or not: the classes are no types in all versions of Python.
Lock: TypeAlias = Any
#: Class of a syntax node.
Node = TypeVar("Node", bound=ast.AST)
#: Syntax node whose class is tested by ``match``, or by the class of another node; for some fields, a list of nodes.
SyntaxNode: TypeAlias = Any
#: Global variables of a function, by name.
Namespace: TypeAlias = dict[str, Any]
#: Value of a static expression, which may have any type. The operators of the expression are applied to it.
Static: TypeAlias = Any
#: List created by ``slots``. Its items are None at first, and then values of any type.
Slots: TypeAlias = list[Any]
#: What replaces a parameter of a template: a list of names or expressions for a list of arguments, or an expression.
Part: TypeAlias = list[Any] | ast.expr
#: Attributes ``known``, ``lists``, ``special`` and ``renamed`` of a ``_Specializer``.
Replacements: TypeAlias = tuple[dict[str, object], dict[str, list[ast.expr]], set[str], dict[str, ast.expr]]
#: Function of a C library, or the library with its functions as attributes. ``ctypes`` has no types for them.
CFunction: TypeAlias = Any
#: Functions that get and set the number of threads of a library.
ThreadControl: TypeAlias = tuple[Callable[[], int], Callable[[int], object]]
#: Setting of NumPy's floating-point error handling: a private object of NumPy, or a dictionary.
ErrorHandling: TypeAlias = Any
#: Function created from source text or a syntax tree. Callers know its parameters.
Compiled: TypeAlias = Any
