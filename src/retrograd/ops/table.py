"""The table: what declares an operation, and what follows from the declaration.

    @pointwise(lambda F, out: 1 - out * out, floats=True)
    def tanh(np, self, /):
        '''Hyperbolic tangent, element by element.'''
        return np.tanh(self)

The decorated function is the kernel: arrays in, an array out. Its first parameter is the array module; tensors stand
before the slash, parameters after it. A rule is a partial derivative (multiplied by the incoming gradient ``g``) or, if
it names ``g``, the gradient itself; a number stands for a constant one. The names of its arguments say what is kept
for the backward pass: a tensor, ``out`` (or the name of one of several results), ``<tensor>_shape``, ``<tensor>_dtype``,
``<tensor>_device`` or a parameter. ``F`` is the level (see ``core/levels.py``): in a rule only operators and names of ``F`` may be used.
How a declaration becomes a fast function is the business of ``calls.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Protocol

import numpy

from ..core.levels import LEVEL
from ..core.node import Node
from ..core.tensor import Tensor
from ..core.where import MARK

Rule = Callable[..., Any] | int | float | None


class Operation(Protocol):
    """The public function of an operation of the table."""

    op: Op

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def derivative(self, /, **rules: Rule) -> None:
        """Give the rule for each tensor by name."""


class Level:
    """The names that rules find in ``F``."""

    def __init__(self) -> None:
        self.__dict__: dict[str, Any] = {}


#: Kernels on NumPy arrays, and the public operations on Tensors: the two levels of every rule.
ARRAYS, TENSORS = Level(), Level()
for _scalar in (numpy.ndarray, numpy.generic):
    LEVEL[_scalar] = ARRAYS
LEVEL[Tensor] = TENSORS

OPS: dict[str, Op] = {}
#: What is installed in the package and on Tensor, by name.
FUNCTIONS: dict[str, Any] = {}
METHODS: dict[str, Any] = {}


class Saved:
    """One value that a node keeps: ``kind`` is tensor, result, shape, dtype or parameter; ``index`` which of them."""

    __slots__ = ("index", "kind", "name", "rules")

    def __init__(self, name: str, kind: str, index: int) -> None:
        self.name, self.kind, self.index = name, kind, index
        self.rules: list[int] = []  # the differentiable tensors whose rule needs it


class Op:
    """The record of one operation."""

    def __init__(
        self,
        kernel: Callable[..., Any],
        *,
        kind: str,
        name: str | None = None,
        backward: str | None = None,
        floats: bool = False,
        result: Any = None,
        opmath: bool = False,
        outputs: Sequence[str] = (),
        differentiable: int | None = None,
        linear: bool = False,
        several: bool = False,
        holomorphic: bool = True,
    ) -> None:
        code: CodeType = kernel.__code__  # type: ignore[attr-defined]
        self.kernel = kernel
        self.kind = kind  # "pointwise", "view" or "general"
        self.name = name or kernel.__name__
        self.doc = kernel.__doc__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.tensors = names[1 : code.co_posonlyargcount]
        self.params = names[code.co_posonlyargcount :]
        self.positional = code.co_argcount - code.co_posonlyargcount  # how many of `params` may be positional
        self.defaults: dict[str, Any] = dict(kernel.__kwdefaults__ or {})  # type: ignore[attr-defined]
        given = kernel.__defaults__ or ()  # type: ignore[attr-defined]
        for key, value in zip(names[code.co_argcount - len(given) : code.co_argcount], given, strict=True):
            self.defaults[key] = value
        self.floats = floats  # integers and booleans are calculated as floats
        self.result = result  # the NumPy dtype of the result where it is not that of the operands
        self.opmath = opmath  # float16 and bfloat16 are calculated in float32
        self.outputs = tuple(outputs)  # names of several results
        self.several = several  # several results, as many as the arguments say
        self.differentiable = differentiable  # how many of the results, from the first, have gradients (None: all)
        self.linear = linear
        self.holomorphic = holomorphic  # its derivative in complex numbers is a limit, and the rules need no conjugate
        self.backward = backward or _camel(self.name) + "Backward0"
        self.rules: tuple[Rule, ...] = (None,) * len(self.tensors)
        self.nodes: dict[bool, type[Node]] = {}
        self.has_rules = False

    def derivative(self, /, **rules: Rule) -> None:
        """Give the rule for each tensor by name; a tensor without one gets no gradient."""
        unknown = set(rules) - set(self.tensors)
        if unknown:
            raise TypeError(f"{self.name} has no tensor named {', '.join(sorted(unknown))}")
        self.rules = tuple(rules.get(each) for each in self.tensors)
        self.has_rules = True

    def saved(self) -> list[Saved]:
        """What the rules need, in the order in which they name it."""
        found: dict[str, Saved] = {}
        for index, rule in enumerate(self.rules):
            for name in arguments(rule):
                if name in ("F", "g"):
                    continue
                if name not in found:
                    found[name] = self._source(name)
                found[name].rules.append(index)
        return list(found.values())

    def _source(self, name: str) -> Saved:
        if name in self.tensors:
            return Saved(name, "tensor", self.tensors.index(name))
        if name == "out":
            return Saved(name, "result", 0)
        if name in self.outputs:
            return Saved(name, "result", self.outputs.index(name))
        if name in self.params:
            return Saved(name, "parameter", self.params.index(name))
        tensor, _, what = name.rpartition("_")
        if what in ("shape", "dtype") and tensor == "out":
            return Saved(name, "out_" + what, 0)
        if what in ("shape", "dtype", "device") and tensor in self.tensors:
            return Saved(name, what, self.tensors.index(tensor))
        raise TypeError(f"the derivative of {self.name} asks for {name!r}, which is nothing that {self.name} has")


def arguments(rule: Rule) -> tuple[str, ...]:
    """The argument names of a rule."""
    if rule is None or isinstance(rule, (int, float)):
        return ()
    code: CodeType = rule.__code__  # type: ignore[attr-defined]
    return code.co_varnames[: code.co_argcount]


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


# --- Declaring ------------------------------------------------------------------------------------------------------


def pointwise(
    *rules: Rule,
    name: str | None = None,
    backward: str | None = None,
    floats: bool = False,
    result: Any = None,
    function: bool = True,
    method: bool = True,
    in_place: bool = True,
    holomorphic: bool = True,
    aliases: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare an operation that acts element by element on operands broadcast together.

    ``rules``: one per tensor. ``floats``: integer operands are calculated as floats. ``result``: the dtype of the
    result if it is not that of the operands (``bool`` for comparisons). Operands may be numbers. ``holomorphic=False``:
    the rules do for complex operands what they say, without conjugation.
    """

    def declare(kernel: Callable[..., Any]) -> Operation:
        dtype = None if result is None else numpy.dtype(result)
        op = Op(kernel, kind="pointwise", name=name, backward=backward, floats=floats, result=dtype, opmath=True,
                holomorphic=holomorphic)  # fmt: skip
        if rules:
            op.derivative(**dict(zip(op.tensors, rules, strict=True)))
        return _enter(op, function, method, in_place, aliases)

    return declare


def op(
    *,
    view: bool = False,
    name: str | None = None,
    backward: str | None = None,
    opmath: bool = False,
    outputs: Sequence[str] = (),
    differentiable: int | None = None,
    several: bool = False,
    linear: bool = False,
    holomorphic: bool = True,
    function: bool = True,
    method: bool = True,
    in_place: bool = False,
    aliases: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare any other operation; its rules are given with ``<operation>.derivative(tensor=rule, …)``.

    ``view``: the result shares the first tensor's memory. ``opmath``: float16 and bfloat16 are calculated in float32.
    ``outputs``: the names of several results (the kernel returns a tuple); ``differentiable``: how many of them, from
    the first, have gradients. ``several``: the kernel returns a tuple of as many results as the arguments say.
    With several differentiable results, ``g`` in a rule is the tuple of their gradients, None where there is none.
    ``linear``: linear in each tensor. The kernel checks its arguments and raises torch's errors itself.
    """

    def declare(kernel: Callable[..., Any]) -> Operation:
        op = Op(
            kernel, kind="view" if view else "general", name=name, backward=backward, opmath=opmath, outputs=outputs,
            differentiable=differentiable, several=several, linear=linear,
            holomorphic=holomorphic,
        )  # fmt: skip
        return _enter(op, function, method, in_place, aliases)

    return declare


def surface(
    *, name: str | None = None, function: bool = True, method: bool = True, aliases: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a plain function public: one that sorts out arguments, or is written in terms of other operations."""

    def declare(target: Callable[..., Any]) -> Callable[..., Any]:
        for each in (name or target.__name__, *aliases):
            if function:
                FUNCTIONS[each] = target
            if method:
                METHODS[each] = target
        return target

    return declare


def _enter(op: Op, function: bool, method: bool, in_place: bool, aliases: Sequence[str]) -> Operation:
    from . import calls

    public = _stub(op)
    OPS[op.name] = op
    ARRAYS.__dict__[op.name] = partial(op.kernel, numpy)
    TENSORS.__dict__[op.name] = public
    names = (op.name, *aliases)
    for each in names:
        if function:
            FUNCTIONS[each] = public
        if method:
            METHODS[each] = public
        if in_place:
            METHODS[each + "_"] = FUNCTIONS[each + "_"] = calls.in_place_form(op, each + "_")
    return public


def _first_call(*args: Any, **kwargs: Any) -> Any:
    specialise(operation)  # type: ignore[name-defined] # noqa: F821 - found in the globals that _stub gives it
    return function(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821


def _stub(op: Op) -> Any:
    """The public function of ``op``. Its code is generated when it is first called (see ``calls.py``)."""
    from . import calls

    space: dict[str, Any] = {
        "operation": op, "specialise": calls.specialise, "__name__": "retrograd.ops.table", MARK: True,
    }  # fmt: skip
    made = FunctionType(_first_call.__code__, space, op.name)
    space["function"] = made
    made.__doc__ = op.doc
    made.__module__ = "retrograd"
    made.__qualname__ = op.name
    made.op = op  # type: ignore[attr-defined]
    made.derivative = op.derivative  # type: ignore[attr-defined]
    op.function = made  # type: ignore[attr-defined]
    return made
