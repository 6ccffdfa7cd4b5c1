"""The record of an operation: what its declaration says, read off the kernel and the rules. Knows nothing of calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy

from ..core.graph import Node
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor

Rule = Callable[..., Any] | str | int | float | None


class Level:
    """The names that rules find in ``F``."""

    def __init__(self) -> None:
        self.__dict__: dict[str, Any] = {}


#: Kernels on NumPy arrays, and the public operations on Tensors: the two levels of every rule.
ARRAYS: Any = Level()
TENSORS: Any = Level()
for _scalar in (numpy.ndarray, numpy.generic):
    RULE_NAMESPACES[_scalar] = ARRAYS
RULE_NAMESPACES[Tensor] = TENSORS

OPS: dict[str, Op] = {}
#: What is installed in the package and on Tensor, by name.
FUNCTIONS: dict[str, Any] = {}
METHODS: dict[str, Any] = {}


class _Missing:
    """Stands for an argument that was not given: nothing can compute with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


class Saved:
    """One value that a node keeps: ``kind`` is tensor, result, shape, dtype or parameter; ``index`` which of them.

    ``held``, ``cell``, ``seen``: the node's attributes that have it, and of an array its count of versions and what that was.
    """

    __slots__ = ("cell", "constant", "held", "index", "kind", "name", "rules", "seen")

    def __init__(self, name: str, kind: str, index: int, constant: bool = False) -> None:
        self.name, self.kind, self.index = name, kind, index
        self.held, self.cell, self.seen = f"s_{name}", f"c_{name}", f"v_{name}"
        self.constant = constant  # a result that has no gradient
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
        in_order: bool = False,
        one: bool = False,
        holomorphic: bool = True,
        in_place_backward: str | None = None,
        check: Callable[..., None] | None = None,
        refuses: tuple[str, str] | None = None,
        numbers: bool | str = True,
        inline: tuple[Any, ...] | None = None,
        over: tuple[Any, ...] | None = None,
        optional: Sequence[str] = (),
    ) -> None:
        code: CodeType = kernel.__code__
        self.kernel = kernel
        self.kind = kind  # "pointwise", "view" or "general"
        self.name = name or kernel.__name__
        self.shown = _OVERLOAD.sub("", self.name)  # its name in errors
        self.doc = kernel.__doc__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.tensors = names[1 : code.co_posonlyargcount]
        self.params = names[code.co_posonlyargcount :]
        self.positional = code.co_argcount - code.co_posonlyargcount  # how many of `params` may be positional
        self.defaults: dict[str, Any] = dict(kernel.__kwdefaults__ or {})
        given = kernel.__defaults__ or ()
        for key, value in zip(names[code.co_argcount - len(given) : code.co_argcount], given, strict=True):
            self.defaults[key] = value
        if "out" in self.tensors:
            raise TypeError(f"{self.name}: no tensor can be named out, which is where a caller wants the result")
        self.floats = floats  # integers and booleans are calculated as floats
        self.result = result  # the NumPy dtype of the result where it is not that of the operands
        self.opmath = opmath  # float16 and bfloat16 are calculated in float32
        self.mixes = False  # short floats may stand beside others, which the kernel does not look at
        self.outputs = tuple(outputs)  # names of several results
        self.optional = tuple(optional)  # the tensors in whose place there may be None
        self.one = one  # the result is one number
        self.in_order = in_order  # the result lies in memory row by row, however the kernel leaves it
        self.several = several  # several results, as many as the arguments say
        self.differentiable = differentiable  # how many of the results, from the first, have gradients (None: all)
        self.linear = linear
        self.holomorphic = holomorphic  # its derivative in complex numbers is a limit, and the rules need no conjugate
        self.backward = backward or _camel(self.name) + "Backward0"
        self.in_place_backward = in_place_backward or self.backward  # PyTorch numbers some in-place forms otherwise
        self.check = check  # called with the operands before anything is converted; raises where they do not suit
        self.refuses = refuses  # the name of PyTorch's kernel, and the kinds of numbers for which it has none
        self.numbers = len(self.tensors) > 1 and numbers  # a number may stand where a tensor is expected
        self.inline = inline  # a condition, and what stands for the kernel where it holds, for generated callers
        self.over = over  # likewise a condition, and a statement that overwrites the first tensor with the result
        self.rules: tuple[Rule, ...] = (None,) * len(self.tensors)
        self.nodes: dict[tuple[bool, bool, int | None], type[Node]] = {}
        self.forms: list[tuple[Any, Any]] = []  # its public functions, and what each leaves the rare calls to
        self.has_rules = False
        self._saved: list[Saved] | None = None
        #: The tangents of the results, ``jvp(F, primals, tangents, params, outs)``, where the rules do not serve.
        self.jvp: Callable[..., Any] | None = None

    def derivative(self, /, **rules: Rule) -> None:
        """Give the rule for each tensor by name; a tensor without one gets no gradient."""
        unknown = set(rules) - set(self.tensors)
        if unknown:
            raise TypeError(f"{self.name} has no tensor named {', '.join(sorted(unknown))}")
        self.rules = tuple(rules.get(each) for each in self.tensors)
        self.has_rules = True
        self._saved = None

    def saved(self) -> list[Saved]:
        """What the rules need, in the order in which PyTorch packs it for hooks: operands by their names, then results."""
        if self._saved is None:
            self._saved = self._read_rules()
        return self._saved

    def _read_rules(self) -> list[Saved]:
        found: dict[str, Saved] = {}
        for index, rule in enumerate(self.rules):
            for name in arguments(rule):
                if name in ("F", "g"):
                    continue
                if name not in found:
                    found[name] = self._source(name)
                found[name].rules.append(index)
        return sorted(found.values(), key=lambda each: (each.kind == "result", each.name))

    def _source(self, name: str) -> Saved:
        if name in self.tensors:
            return Saved(name, "tensor", self.tensors.index(name))
        if name == "out":
            return Saved(name, "result", 0)
        if name in self.outputs:
            index = self.outputs.index(name)
            return Saved(name, "result", index, self.differentiable is not None and index >= self.differentiable)
        if name in self.params:
            return Saved(name, "parameter", self.params.index(name))
        tensor, _, what = name.rpartition("_")
        if what in ("shape", "dtype") and tensor == "out":
            return Saved(name, "out_" + what, 0)
        if what in ("shape", "strides", "dtype", "device") and tensor in self.tensors:
            return Saved(name, what, self.tensors.index(tensor))
        raise TypeError(f"the derivative of {self.name} asks for {name!r}, which is nothing that {self.name} has")


def arguments(rule: Rule) -> tuple[str, ...]:
    """The argument names of a rule."""
    if rule is None or isinstance(rule, (int, float)):
        return ()
    if isinstance(rule, str):
        return (rule,)
    code: CodeType = rule.__code__
    return code.co_varnames[: code.co_argcount]


_OVERLOAD = re.compile("_(true|tensor|number|floor|trunc|scalar|block|arrays|all|dim)$")


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def shared(rule: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """Mark a rule that is given to several tensors: it is called once, and returns the tuple of their gradients."""
    _SHARED.add(rule)
    return rule


def is_shared(rule: Rule) -> bool:
    """Whether a rule returns the gradients of all tensors that it is given to."""
    return rule in _SHARED


_SHARED: set[Any] = set()
