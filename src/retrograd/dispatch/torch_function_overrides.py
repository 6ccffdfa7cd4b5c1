"""The public functions that ``__torch_function__`` can override, and how a handler gets the arguments of a call.

A handler is a method ``__torch_function__`` of a mode or of an argument's class.

Calls are intercepted in ``dispatch/intercept.py``. The functions that PyTorch dispatches, and the form of their
arguments, are recorded in ``overrides.txt``. A class that does not derive from Tensor is registered when a call with an
instance of it fails (``dispatch/argument_errors.py``, ``dispatch/generic_path.py``). The failed call has changed
nothing and is repeated.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING

from ..compat.lazy_imports import ON_LOAD
from ..core import torch_function
from ..core.tensor import Tensor
from ..core.torch_function import ALL, GO_ON, NONE, call_override
from ..runtime.cached_property import cached_property
from ..runtime.codegen import MARK, PREFIX, compile_tree, parse_expression
from .given_arguments import Given
from .signatures import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from ..core.typing import Args, Function, Handler, Intercepted, Kwargs
    from .typing import DeclaredFunction

#: Where public functions are, below the package, and what stands before their names in errors.
PLACES = {
    "": "torch", "nn.functional": "torch.nn", "linalg": "torch.linalg", "fft": "torch.fft", "special": "torch.special",
    "nn.init": "torch.nn.init", "autograd": "torch.autograd",
}  # fmt: skip

# For operators and some methods: the method that is passed to the handler as ``func``.
_ALIASES = {
    "add": "__add__ __radd__", "add_": "__iadd__", "sub": "__sub__", "sub_": "__isub__", "mul": "__mul__ __rmul__",
    "mul_": "__imul__", "div": "__truediv__ __div__", "div_": "__itruediv__ __idiv__", "remainder": "__mod__",
    "remainder_": "__imod__", "floor_divide_": "__ifloordiv__", "matmul": "__matmul__", "bitwise_and": "__rand__",
    "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__",
    "ge": "__ge__", "neg": "__neg__", "positive": "__pos__", "abs": "__abs__", "dim": "ndimension", "numel": "nelement",
}  # fmt: skip
ALIASES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
#: Functions that only call another function in PyTorch, which is passed to the handler.
THROUGH = {
    **{f"nn.functional.{name}": f"Tensor.{name}" for name in ("sigmoid", "tanh")},
    **{f"nn.functional.upsample{kind}": f"nn.functional.upsample{kind}" for kind in ("", "_bilinear", "_nearest")},
}  # fmt: skip

#: Operators, which return NotImplemented where others raise TypeError.
OPERATORS = frozenset({
    *(name for name in ALIASES if name.startswith("__")), "__eq__", "__rsub__", "__rtruediv__", "__rdiv__", "__floordiv__",
    "__rfloordiv__", "__rmod__", "__pow__", "__ipow__", "__rpow__", "__rmatmul__", "__and__", "__iand__", "__or__",
    "__ior__", "__xor__", "__ixor__", "__lshift__", "__rlshift__", "__ilshift__", "__rshift__", "__rrshift__",
    "__irshift__",
} - {"__neg__", "__pos__", "__abs__"})  # fmt: skip

#: Functions that the package's own modules call without the public wrapper.
INSIDE = ("empty", "zeros", "ones", "full", "empty_like")

#: Private attributes of Tensor that are dispatched.
PRIVATE = ("_base", "_version", "_is_view")
#: Methods of Tensor that are never dispatched.
UNSEEN = frozenset(
    {"as_subclass", "__iter__", "__hash__", "__new__", "__copy__", "__init_subclass__", "__array_wrap__"}
)

_state = torch_function.state


class Known:
    """Contents of ``overrides.txt``.

    ``python`` maps each function that PyTorch implements in Python to its module and its parameters. ``names`` maps
    each other section of the file to the names in it.
    """

    def __init__(self) -> None:
        with open(os.path.join(os.path.dirname(__file__), "overrides.txt"), encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line[0] != "#"]
        self.python: dict[str, tuple[str, str]] = {}  # the module of a function of Python, and its parameters
        self.names: dict[str, set[str]] = {}
        title = ""
        for line in lines:
            if line[0] == "[":
                title = line.strip("[]")
            elif "(" in line:
                name, _, parameters = line.rstrip(")").partition("(")
                self.python[name] = title, parameters
            else:
                self.names.setdefault(title, set()).add(line)


known = cache(Known)


class ArgumentForm:
    """Conversion of the arguments of a call to the ``args`` and ``kwargs`` of ``__torch_function__``.

    An instance is called with the arguments of the function whose parameter list is ``parameters``. The parameters
    before the slash become ``args``, the others ``kwargs``.

    >>> ArgumentForm("input, /, inplace=False")(1, True)
    ((1,), {'inplace': True})
    """

    def __init__(self, parameters: str) -> None:
        tree = parse_expression(f"lambda {parameters.replace(', /', '').replace('/, ', '')}: 0")
        assert isinstance(tree, ast.Lambda)
        self.tree = given = tree.args
        names = [each.arg for each in given.args]
        self.spread = "" if given.vararg is None else given.vararg.arg
        free = parameters.partition("/")[0].count(",") if "/" in parameters else len(names) if self.spread else 0
        self.free = names[:free]
        self.named = [*names[free:], *(each.arg for each in given.kwonlyargs)]
        unset = [None] * (len(names) - len(given.defaults))
        made = [
            *_parameters(inspect.Parameter.POSITIONAL_OR_KEYWORD, given.args, [*unset, *given.defaults]),
            *([inspect.Parameter(self.spread, inspect.Parameter.VAR_POSITIONAL)] if self.spread else []),
            *_parameters(inspect.Parameter.KEYWORD_ONLY, given.kwonlyargs, given.kw_defaults),
        ]
        self.__signature__ = inspect.Signature(made)

    def __call__(self, *args: object, **kwargs: object) -> Given:
        return self.convert(*args, **kwargs)

    @cached_property
    def convert(self) -> Callable[..., Given]:
        """Function of the parameters that returns the pair; ``Signature.bind`` would take 3 µs."""
        free = [ast.Name(each, ast.Load()) for each in self.free]
        spread = [ast.Starred(ast.Name(self.spread, ast.Load()), ast.Load())] if self.spread else []
        names = [ast.Name(each, ast.Load()) for each in self.named]
        pair = [
            ast.Tuple([*free, *spread], ast.Load()),
            ast.Dict([ast.Constant(each) for each in self.named], [*names]),
        ]
        result = ast.Return(ast.Tuple([*pair], ast.Load()))
        tree = ast.FunctionDef("arguments", self.tree, [result], [], None, None)
        return compile_tree(tree, f"{PREFIX}arguments>", {MARK: True, "__name__": None})


def _parameters(
    kind: inspect._ParameterKind, names: Sequence[ast.arg], defaults: Sequence[ast.expr | None]
) -> Iterator[inspect.Parameter]:
    """Yield the parameters ``names`` of the given kind; a default is a literal, or None for a required parameter."""
    for each, default in zip(names, defaults, strict=True):
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        yield inspect.Parameter(each.arg, kind, default=value)


class Overridable:
    """Public function whose calls ``__torch_function__`` can override, with the data needed to dispatch them.

    ``func`` is the function that handlers receive, ``name`` is the function's dotted name relative to ``torch``, and
    ``shown`` its name in errors.
    """

    def __init__(self, function: FunctionType, func: Function, name: str, shown: str) -> None:
        self.function, self.func, self.name = function, func, name
        short = name.rpartition(".")[2]
        module, parameters = known().python.get(name, ("", ""))
        self.python = bool(module)
        self.hand = ArgumentForm(parameters) if module else None
        names = known().names
        self.only_modes = name in names["only modes"] or name.startswith("inside.")
        self.property = name.endswith(("__get__", "__set__", "__delete__"))
        self.own = name in names["own type"] or self.property
        self.operator = name.startswith("Tensor.") and short in OPERATORS
        self.shown = f"{module}.{function.__name__}" if module else shown
        #: Whether the handlers get ``func`` with the arguments of the call, and the classes of ``overriding``.
        self.simple = self.hand is None and not self.own and name != "Tensor.__eq__"

    def ask(self, args: Args, kwargs: Kwargs, found: list[Handler] | None = None) -> Intercepted:
        """Pass a call of the function to the active modes and the classes of its arguments, and return the result.

        The result is ``GO_ON`` if none of them overrides the call. ``args`` and ``kwargs`` are the arguments of the
        call, and ``found`` those whose class overrides the call, if they are known.
        """
        level, modes, _, _, _ = _state()
        modes_asked = modes and level < NONE
        if level:
            found = []
        elif found is None:
            values = args[:1] if self.property else (*args, *kwargs.values()) if kwargs else args
            found = torch_function.overriding_arguments(values, Tensor)
        if self.only_modes and found:
            found = []
            if not modes_asked:  # calls inside do not ask the class, either
                return torch_function.call_without_overrides(self.function, args, kwargs)
        if not found and not modes_asked:
            return GO_ON
        try:
            if self.simple:
                types = tuple([each.__class__ for each in found]) if found else ()
                return call_override(self.func, found, types, args, kwargs, self.shown, self.python)
            return self._asked(found, args, kwargs)
        except TypeError:
            if self.operator:
                return NotImplemented
            raise

    def repeat(self, args: Args, kwargs: Kwargs) -> Intercepted:
        """Call the function again, after the class of an argument was registered for overrides, and return the result.

        ``args`` and ``kwargs`` are the arguments of the first call, which failed.
        """
        answer = self.ask(args, kwargs)
        return torch_function.call_without_overrides(self.function, args, kwargs) if answer is GO_ON else answer

    def _asked(self, found: list[Handler], args: Args, kwargs: Kwargs) -> Intercepted:
        """Return the result of the handlers for a call: those of modes are called first, then those of classes.

        ``found`` are the arguments whose class has a handler. The result is ``GO_ON`` if the arguments do not fit
        PyTorch's parameters of the function.
        """
        if self.hand is not None:
            try:
                args, kwargs = self.hand.convert(*args, **kwargs)
            except TypeError:  # no arguments of this function's
                return GO_ON
            if self.name == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
                args = (args[0], *args[1])  # PyTorch's function calls itself with the operands one by one
            if self.name.startswith("autograd."):
                args = tuple([tuple(each) if isinstance(each, (tuple, list)) else (each,) for each in args])
            if torch_function.state()[0] == ALL:
                found = torch_function.overriding_arguments((*args, *kwargs.values()), None)
        types = tuple([each.__class__ for each in found])
        if self.own and not types:
            types = (args[0].__class__,)
        func = self.func
        if self.name == "Tensor.__eq__" and args[0].__class__ is Tensor and not torch_function.state()[1]:
            func = vars(Tensor)["eq"]  # PyTorch's method is written in Python, and asks only for its own tensor
        return call_override(func, found, types, args, kwargs, self.shown, self.python)


# --- All of them ----------------------------------------------------------------------------------------------------


def _module(place: str) -> ModuleType | None:
    """Return the module ``retrograd.<place>``, or ``retrograd`` if ``place`` is empty, or None if it is not loaded."""
    return sys.modules.get(f"{__package__.partition('.')[0]}.{place}".rstrip("."))


def is_overridable(name: str) -> bool:
    """Whether ``__torch_function__`` can override the method or property ``name`` of Tensor."""
    return name not in UNSEEN and (name[0] != "_" or name.endswith("__") or name in PRIVATE)


def public() -> Iterator[tuple[FunctionType, Function, str, str]]:
    """Yield each public function that ``__torch_function__`` can override, with its names.

    Each item is a tuple of the function, the ``func`` that handlers receive, the dotted name relative to ``torch``, and
    the name in errors.
    """
    nobody = known().names["nobody"]
    every = vars(_module(""))
    for place, shown in PLACES.items():
        space = {} if _module(place) is None else vars(_module(place))
        for name in space.get("__all__", ()):
            full = f"{place}.{name}" if place else name
            function = space.get(name)
            if function.__class__ is not FunctionType or name in UNSEEN:
                continue
            if full in THROUGH:
                yield function, at(THROUGH[full]), full, f"torch.{THROUGH[full]}"
            if full in nobody:
                continue
            same = function is every.get(name)
            if place == "autograd" and name not in ("grad", "backward"):
                continue
            yield function, function, full, f"{'torch' if same else shown}.{PREFIXES.get(place, '')}{name}"
    for name in INSIDE:  # only modes
        yield every[name].__globals__["target"], every[name], f"inside.{name}", f"torch.{name}"
    for name, function in list(vars(Tensor).items()):
        if not is_overridable(name):
            continue
        if function.__class__ is property:
            for part, of in (("__get__", function.fget), ("__set__", function.fset), ("__delete__", function.fdel)):
                if of.__class__ is FunctionType and of.__name__ != "refuse":  # what cannot be set
                    yield of, getattr(function, part), f"Tensor.{name}.{part}", f"torch.Tensor.{name}.{part}"
        elif function.__class__ is FunctionType:
            called = ALIASES.get(name, name)
            yield function, vars(Tensor)[called], f"Tensor.{name}", f"torch.Tensor.{called}"


_named: dict[str, Overridable] = {}
_by_function: dict[object, Overridable] = {}
#: Results of :func:`overridable` by its arguments.
_placed: dict[tuple[str, str], Overridable] = {}
#: Whether all functions of the loaded modules are in the two dictionaries.
_complete = False


def _complete_no_more() -> None:
    global _complete
    _complete = False


ON_LOAD.append(_complete_no_more)


def every() -> dict[str, Overridable]:
    """Return a dictionary from the dotted name of each function in a loaded module to its :class:`Overridable`."""
    global _complete
    if not _complete:
        _complete = True
        for function, func, name, shown in public():
            if name not in _named:
                if function not in _by_function:
                    _by_function[function] = Overridable(function, func, name, shown)
                _named[name] = _by_function[function]
    return _named


def overridable(space: str, name: str) -> Overridable | None:
    """Return the :class:`Overridable` of the function ``name`` in the namespace ``space``, or None if it has none."""
    try:
        return _placed[space, name]
    except KeyError:
        place = {"torch": "", "nn": "nn.functional."}.get(space, f"{space}.")
        found = every().get(f"{place}{name}")
        if found is not None:
            _placed[space, name] = found
        return found


def overridable_of(function: object) -> Overridable | None:
    """Return the :class:`Overridable` of ``function``, or None if no handler can override this function."""
    if not _complete:
        every()
    return _by_function.get(function)


def add_overridable(function: FunctionType, name: str) -> None:
    """Let handlers override ``function``, which a program has declared as an operation called ``name``."""
    _named[name] = _by_function[function] = Overridable(function, function, name, name)
    _placed.clear()


def place_of(name: str) -> ModuleType | type[Tensor] | None:
    """Return the module, or the class Tensor, that defines ``torch.<name>``, or None if the module is not loaded."""
    place = name.rpartition(".")[0]
    return Tensor if place.startswith("Tensor") else _module(place)


def at(name: str) -> DeclaredFunction:
    """Return the function ``torch.<name>`` for a name such as ``nn.functional.relu``, or None if there is none."""
    place = place_of(name)
    return None if place is None else vars(place).get(name.rpartition(".")[2])


__all__ = [
    "ArgumentForm",
    "Overridable",
    "add_overridable",
    "at",
    "every",
    "known",
    "overridable",
    "overridable_of",
    "place_of",
]
