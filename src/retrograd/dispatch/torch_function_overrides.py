"""Dispatch of public functions to ``__torch_function__``, installed when the first overriding class or mode exists.

Note [Looking for overrides]. As long as no class with a ``__torch_function__`` and no mode exists, public functions do
not check for them. When the first one is registered (``core/torch_function.py``), the code of every public function is
replaced by LOOKING, which checks the arguments and modes, and calls a copy of the function that has the original code.
The functions remain the same objects. Therefore functions imported before (``from torch import add``) check, too, and
handlers may compare ``func is torch.add``. When the last mode ends and no class was registered, the original code is
restored (unless modes are entered often). A class that does not derive from Tensor is registered when a call with an
instance of it fails (``dispatch/argument_errors.py``, ``dispatch/generic_path.py``). The failed call has changed
nothing and is repeated.

The functions that PyTorch dispatches, and the form of their arguments, are recorded in ``overrides.txt``.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from ..core import torch_function
from ..core.tensor import Tensor
from ..core.torch_function import ALL, MODES, NONE, call_override
from ..runtime import user_frame
from .codegen import compile_source
from .operand_promotion import PLAIN
from .signatures import PREFIXES

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


def handing(name: str, parameters: str) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return a function that converts a call's arguments to the ``args`` and ``kwargs`` of ``__torch_function__``.

    The returned function accepts the arguments of the function ``name``, whose parameter list is ``parameters``. The
    parameters before the slash become ``args``, the others ``kwargs``.

    >>> handing("relu", "input, /, inplace=False")(1, True)
    ((1,), {'inplace': True})
    """
    tree = ast.parse(f"def {name}({parameters.replace(', /', '').replace('/, ', '')}): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    given = tree.args
    names = [each.arg for each in given.args]
    free = parameters.partition("/")[0].count(",") if "/" in parameters else len(names) if given.vararg else 0
    handed = [*names[:free], *([f"*{given.vararg.arg}"] if given.vararg else [])]
    named = [*names[free:], *(each.arg for each in given.kwonlyargs)]
    shown = ast.unparse(given)
    result = f"({', '.join(handed)}{',' * (len(handed) > 0)}), {{{', '.join(f'{each!r}: {each}' for each in named)}}}"
    lines = [f"def {name}({shown}): return {result}"]
    return compile_source(f"<arguments of {name}>", lines, {"__name__": None}, name)


LOOKING: CodeType = compile_source(
    "<looking for overrides>",
    [
        "def looking(*args, _look, _brief, **kwargs):", "    try:", "        return _look(args, kwargs)",
        "    except Exception as _error:", "        _error = _brief(_error)", *("        " + each for each in user_frame.RERAISE),
    ],
    {"__name__": None}, "looking",
).__code__  # fmt: skip


class Overridable:
    """Public function whose calls ``__torch_function__`` can override, with the data needed to dispatch them.

    ``func`` is the function that handlers receive, ``name`` is the function's dotted name relative to ``torch``, and
    ``shown`` its name in errors.
    """

    def __init__(self, function: FunctionType, func: Any, name: str, shown: str) -> None:
        self.function, self.func, self.name = function, func, name
        self.plain = plain = _twin(function)
        # A function with cells keeps them, though this code looks at none.
        self.code = LOOKING.replace(
            co_name=plain.__name__, co_qualname=plain.__qualname__, co_freevars=plain.__code__.co_freevars
        )
        short = name.rpartition(".")[2]
        module, parameters = known().python.get(name, ("", ""))
        self.python = bool(module)
        self.hand = handing(short, parameters) if module else None
        names = known().names
        self.only_modes = name in names["only modes"] or name.startswith("inside.")
        self.property = name.endswith(("__get__", "__set__", "__delete__"))
        self.own = name in names["own type"] or self.property
        self.operator = name.startswith("Tensor.") and short in OPERATORS
        self.shown = f"{module}.{function.__name__}" if module else shown

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call of the function with ``args`` and ``kwargs``.

        If the class of an argument or an active mode overrides the call, its handler is called instead of the function.
        """
        level, modes = torch_function.state()
        modes_asked = modes and level < NONE
        if level or (self.only_modes and modes_asked):
            found = []
        elif self.only_modes:
            return torch_function.call_without_overrides(self.plain, args, kwargs)
        else:
            values = args[:1] if self.property else (*args, *kwargs.values()) if kwargs else args
            found = torch_function.overriding_arguments(values, Tensor)
        if not found and not modes_asked:
            return self.plain(*args, **kwargs)
        try:
            return self.asked(found, args, kwargs)
        except TypeError:
            if self.operator:
                return NotImplemented
            raise

    def asked(self, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call that is overridden: call the handlers of modes first, then those of classes.

        ``found`` are the arguments whose class has a handler.
        """
        if self.hand is not None:
            try:
                args, kwargs = self.hand(*args, **kwargs)
                if self.name.startswith("autograd."):
                    args = tuple([tuple(each) if isinstance(each, (tuple, list)) else (each,) for each in args])
            except TypeError:  # no arguments of this function's
                return self.plain(*args, **kwargs)
            if torch_function.state()[0] == ALL:
                found = torch_function.overriding_arguments((*args, *kwargs.values()), None)
        types = tuple([each.__class__ for each in found])
        if self.own and not types:
            types = (args[0].__class__,)
        func = self.func
        if self.name == "Tensor.__eq__" and args[0].__class__ is Tensor and not torch_function.state()[1]:
            func = vars(Tensor)["eq"]  # PyTorch's method is written in Python, and asks only for its own tensor
        return call_override(func, found, types, args, kwargs, self.shown, self.python)

    def put_in(self) -> None:
        """Replace the function's code by code that checks for overrides and then runs the function."""
        function, plain = self.function, self.plain
        plain.__defaults__, plain.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        plain.__code__ = function.__code__
        function.own_code = getattr(function, "own_code", plain.__code__)  # type: ignore[attr-defined] # see public_wrapper.py
        _written_for(function, plain)
        function.__kwdefaults__ = {
            **(plain.__kwdefaults__ or {}),
            "_look": self.look,
            "_brief": user_frame.strip_frames,
        }
        function.__code__ = self.code

    def take_out(self) -> None:
        """Restore the code that the function had before :meth:`put_in`.

        Another thread may call the function at any moment. Therefore the keyword defaults are valid for the old and the
        new code until the code has been replaced.
        """
        function, plain = self.function, self.plain
        function.__defaults__ = plain.__defaults__
        function.__kwdefaults__ = {**(plain.__kwdefaults__ or {}), **(function.__kwdefaults__ or {})}
        function.__code__ = plain.__code__
        function.__kwdefaults__ = plain.__kwdefaults__
        _written_for(plain, function)


def _written_for(before: FunctionType, function: FunctionType) -> None:
    """Make the lazy function ``before`` set the code that it generates at its first call on ``function`` instead."""
    if before.__globals__.get("function") is before:
        before.__globals__["function"] = function


def _twin(function: FunctionType) -> FunctionType:
    """Return a second function with the same code, globals, cells and attributes as ``function``."""
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__qualname__ = function.__qualname__
    twin.__dict__.update(function.__dict__)
    if not hasattr(function, "__wrapped__"):
        function.__wrapped__ = twin  # type: ignore[attr-defined] # whose signature is shown
    return twin


# --- All of them ----------------------------------------------------------------------------------------------------


def _module(place: str) -> Any:
    """Return the module of this package with the dotted name ``place``, or None if it is not loaded."""
    return sys.modules.get(f"{__package__.partition('.')[0]}.{place}".rstrip("."))


def public() -> Iterator[tuple[FunctionType, Any, str, str]]:
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
        if name[0] == "_" and not name.endswith("__") and name not in PRIVATE:
            continue
        if function.__class__ is property:
            for part, of in (("__get__", function.fget), ("__set__", function.fset), ("__delete__", function.fdel)):
                if of.__class__ is FunctionType and of.__name__ != "refuse":  # what can not be set
                    yield of, getattr(function, part), f"Tensor.{name}.{part}", f"torch.Tensor.{name}.{part}"
        elif function.__class__ is FunctionType and name not in UNSEEN:
            called = ALIASES.get(name, name)
            yield function, vars(Tensor)[called], f"Tensor.{name}", f"torch.Tensor.{called}"


_named: dict[str, Overridable] = {}
_looking: list[Overridable] = []


def every() -> dict[str, Overridable]:
    """Return the :class:`Overridable` of each function of the loaded modules, in a dictionary by name."""
    made = {id(each.function): each for each in _named.values()}
    for function, func, name, shown in public():
        if name not in _named:
            if id(function) not in made:
                made[id(function)] = Overridable(function, func, name, shown)
            _named[name] = made[id(function)]
    return _named


def look() -> None:
    """Make every public function check for overrides, after the first class or mode with a handler was registered."""
    if not _looking:
        loaded(True)


def loaded(asked: bool = False) -> None:
    """Make the functions of newly loaded modules check for overrides, if all other functions already check.

    If ``asked`` is true, make all functions check in any case.
    """
    if asked or _looking:
        done = {id(each) for each in _looking}
        for each in {id(each): each for each in every().values() if id(each) not in done}.values():
            each.put_in()
            _looking.append(each)


def rest() -> None:
    """Restore the original code of all functions, which then do not check for overrides."""
    while _looking:
        _looking.pop().take_out()


def overridable(space: str, name: str) -> Overridable | None:
    """Return the :class:`Overridable` of the function ``name`` in the namespace ``space``, or None."""
    place = {"torch": "", "nn": "nn.functional."}.get(space, f"{space}.")
    return _named.get(f"{place}{name}")


def place_of(name: str) -> Any:
    """Return the module, or the class Tensor, that defines ``torch.<name>``, or None if the module is not loaded."""
    place = name.rpartition(".")[0]
    return Tensor if place.startswith("Tensor") else _module(place)


def at(name: str) -> Any:
    """Return the function ``torch.<name>``, for example for the name ``nn.functional.relu``, or None."""
    place = place_of(name)
    return None if place is None else vars(place).get(name.rpartition(".")[2])


def _take(kind: type) -> None:
    if issubclass(kind, Tensor):
        PLAIN.add(kind)


watch = torch_function.installer
watch.look, watch.loaded, watch.rest, watch.take = look, loaded, rest, _take

__all__ = ["ALL", "MODES", "look", "overridable", "rest"]
