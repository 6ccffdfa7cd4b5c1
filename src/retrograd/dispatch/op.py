"""``Op``, the record of a declared operation with its kernel and derivative rules, and the dictionaries of operations.

The functions that run operations are in other modules (``fast_path``, ``generic_path``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from ..core.graph import Node
from ..core.rule_namespace import RULE_NAMESPACES, namespace_factory
from ..core.tensor import Tensor

if TYPE_CHECKING:
    from types import FunctionType

    from ..core.typing import ArrayDType, ArrayModule, Function, Gradient
    from .typing import DeclaredFunction, DTypes, Missing, PromotionCache, Slow, VmapRule, Write

Rule = Callable[..., object] | str | int | float | None


class Level:
    """Namespace that derivative rules get as their argument ``F``, with an attribute for each operation.

    The attributes of ``ARRAYS`` are kernels, for rules that compute NumPy arrays. Those of ``TENSORS`` are functions of
    Tensors whose calls are recorded, for ``create_graph=True``. Each other array module has a namespace of kernels, too,
    which :func:`kernel_namespace` creates.
    """

    def __init__(self) -> None:
        self.__dict__: dict[str, Function] = {}


#: The namespaces for rules that run on NumPy arrays (kernels), and on Tensors (recording operations).
ARRAYS: Any = Level()  # Note [Any by attribute name]
TENSORS: Any = Level()  # Note [Any by attribute name]
for _scalar in (numpy.ndarray, numpy.generic):
    RULE_NAMESPACES[_scalar] = ARRAYS
RULE_NAMESPACES[Tensor] = TENSORS

#: All operations by name.
OPS: dict[str, Op] = {}
#: The namespaces of kernels, with their array modules.
KERNEL_NAMESPACES: list[tuple[ArrayModule, Level]] = [(numpy, ARRAYS)]
#: Functions in all namespaces of kernels besides the kernels of operations; they accept arrays of every module.
ARRAY_FUNCTIONS: dict[str, Function] = {}
#: The functions of the package and the methods of Tensor by name, before they get their public forms.
FUNCTIONS: dict[str, DeclaredFunction] = {}
METHODS: dict[str, DeclaredFunction] = {}


def rule_function(name: str, of_arrays: Function, of_tensors: Function | None = None) -> None:
    """Make a function available to derivative rules as the attribute ``name`` of their argument ``F``.

    ``of_arrays`` computes with arrays of any array module. ``of_tensors`` computes the same with Tensors, by recorded
    operations; if it is None, ``name`` is an operation, or exists in ``TENSORS`` already.
    """
    ARRAY_FUNCTIONS[name] = of_arrays
    for _, namespace in KERNEL_NAMESPACES:
        namespace.__dict__[name] = of_arrays
    if of_tensors is not None:
        TENSORS.__dict__[name] = of_tensors


def add_kernel(op: Op) -> None:
    """Add the kernel of ``op`` to all namespaces of kernels."""
    for np, namespace in KERNEL_NAMESPACES:
        namespace.__dict__[op.name] = op.kernel_for_rules(np)


def kernel_namespace(np: ArrayModule) -> Any:  # Note [Any by attribute name]
    """Create the namespace of kernels for derivative rules on the arrays of the array module ``np``."""
    namespace = Level()
    for op in OPS.values():
        namespace.__dict__[op.name] = op.kernel_for_rules(np)
    namespace.__dict__.update(ARRAY_FUNCTIONS)
    KERNEL_NAMESPACES.append((np, namespace))
    return namespace


namespace_factory.append(kernel_namespace)


class _Missing:
    """Class of ``MISSING``, the default of required parameters in generated functions.

    The object supports no operation, so that a call with a missing argument raises an exception.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Missing = _Missing()


class Saved:
    """Description of one value that the nodes of an operation save for the derivative rules.

    name      the name of the parameter by which the rules read the value
    kind      "tensor", "result", "parameter", "shape", "strides", "dtype", "device", "out_shape" or "out_dtype"
    index     the index of the tensor, result or parameter
    constant  whether the value is a result that has no gradient
    rules     the indices of the tensors whose derivative rules need the value
    held      the name of the node's attribute with the value
    cell      for an array, the name of the node's attribute with its version counter
    seen      for an array, the name of the node's attribute with the value of this counter when the array was saved
    """

    __slots__ = ("array", "cell", "constant", "held", "index", "kind", "name", "rules", "seen")
    index: int
    kind: str
    name: str
    cell: str
    held: str
    seen: str

    def __init__(self, name: str, kind: str, index: int, constant: bool = False) -> None:
        self.name, self.kind, self.index = name, kind, index
        self.held, self.cell, self.seen = f"s_{name}", f"c_{name}", f"v_{name}"
        self.constant: bool = constant
        self.array: bool = kind in ("tensor", "result")
        self.rules: list[int] = []


class Op:
    """Record of one operation: its kernel, derivative rules and properties.

    ``kind`` is "pointwise", "view" or "general". The other arguments of the constructor have the same meaning as for
    the decorators ``pointwise`` and ``op`` in ``dispatch/declare.py``, where ``over`` is called ``write``.
    """

    dtypes: DTypes  # the dtypes that the kernel supports besides float32 and float64
    compile_vjp: ClassVar[Function]  # generates the vjp of a node class; set by fast_path.py
    kernel_for_rules: ClassVar[Function]  # the kernel as derivative rules call it; set by fast_path.py

    def __init__(
        self,
        kernel: Function,
        *,
        kind: str,
        name: str | None = None,
        backward: str | None = None,
        floats: bool = False,
        result: ArrayDType | None = None,
        opmath: bool = False,
        outputs: Sequence[str] = (),
        differentiable: int | None = None,
        linear: bool | str = False,
        connected: str = "",
        several: bool = False,
        in_order: bool = False,
        one: bool = False,
        holomorphic: bool = True,
        in_place_backward: str | None = None,
        check: Callable[..., None] | None = None,
        refuses: tuple[str, str] | None = None,
        numbers: bool | str = True,
        inline: Function | None = None,
        over: Write | None = None,
        optional: Sequence[str] = (),
        vmap: VmapRule = None,
        scalar: Function | None = None,
        event: str | None = None,
    ) -> None:
        code: CodeType = kernel.__code__
        self.kernel = kernel
        self.kind = kind  # "pointwise", "view" or "general"
        self.name: str = name or kernel.__name__
        self.shown: str = _OVERLOAD.sub("", self.name)  # its name in errors
        self.doc: str | None = kernel.__doc__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.tensors: tuple[str, ...] = names[1 : code.co_posonlyargcount]
        self.params: tuple[str, ...] = names[code.co_posonlyargcount :]
        self.positional: int = code.co_argcount - code.co_posonlyargcount  # how many of `params` may be positional
        self.defaults: dict[str, object] = dict(kernel.__kwdefaults__ or {})
        given = kernel.__defaults__ or ()
        for key, value in zip(names[code.co_argcount - len(given) : code.co_argcount], given, strict=True):
            self.defaults[key] = value
        if "out" in self.tensors:
            raise TypeError(f"{self.name}: no tensor can be named out, because callers pass out= for the result")
        self.floats = floats
        self.result = result  # a NumPy dtype, or None: the dtype of the operands
        self.opmath: bool = opmath
        self.mixes = False  # half-precision operands may be mixed with others, because the kernel does not check that
        self.outputs: tuple[str, ...] = tuple(outputs)
        self.optional: tuple[str, ...] = tuple(optional)
        self.one = one
        self.in_order = in_order
        self.several = several
        self.differentiable = differentiable  # None: all results
        self.linear = linear
        self.connected = connected
        self.holomorphic = holomorphic
        self.backward: str = backward or _camel(self.name) + "Backward0"
        self.in_place_backward: str = in_place_backward or self.backward
        self.check = check
        self.refuses = refuses
        self.numbers: bool | str = len(self.tensors) > 1 and numbers
        self.inline = inline
        self.over = over  # write
        self.vmap = vmap
        self.scalar = scalar
        self.event = event
        self.ufunc: numpy.ufunc | None = None  # set with `dtypes` and `united` when the first function is specialised
        self.united: PromotionCache = None
        self.tree: Callable[[], ast.FunctionDef] | None = None  # returns the code that was generated last
        self.function: DeclaredFunction = None  # the function that the package calls
        self.rules: tuple[Rule, ...] = (None,) * len(self.tensors)
        self.nodes: dict[tuple[bool, bool, int | None], type[Node]] = {}  # see node_class
        self.forms: list[tuple[FunctionType, Slow]] = []  # its public functions, each with its fallback
        self.has_rules: bool = False
        self._saved: list[Saved] | None = None
        #: ``jvp(F, primals, tangents, params, outs)`` returns the results' tangents; None: derived from the rules.
        self.jvp: Function | None = None

    @property
    def source(self) -> str:
        """Source text of the specialised function of this operation that was called last for the first time."""
        return "" if self.tree is None else ast.unparse(self.tree())

    def derivative(self, /, **rules: Rule) -> None:
        """Set the derivative rules: each keyword in ``rules`` is the name of a tensor, and its value is the rule.

        A tensor without a rule gets no gradient.
        """
        unknown = set(rules) - set(self.tensors)
        if unknown:
            raise TypeError(f"{self.name} has no tensor named {', '.join(sorted(unknown))}")
        self.rules = tuple(rules.get(each) for each in self.tensors)
        self.has_rules = True
        self._saved = None

    def saved(self) -> list[Saved]:
        """Return a list with a description of each value that the derivative rules need.

        The list has PyTorch's order: first the operands, sorted by name, then the results.
        """
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
        raise TypeError(
            f"a rule of {self.name} has an argument {name!r}, which is no tensor, result or parameter of it"
        )


def arguments(rule: Rule) -> tuple[str, ...]:
    """Return the names of the arguments of a derivative rule.

    If the rule is a string, it is the name of a saved value and the only name in the result. A constant rule has no
    arguments.
    """
    if rule is None or isinstance(rule, (int, float)):
        return ()
    if isinstance(rule, str):
        return (rule,)
    code: CodeType = rule.__code__
    return code.co_varnames[: code.co_argcount]


_OVERLOAD = re.compile("_(true|tensor|number|floor|trunc|scalar|block|arrays|all|dim)$")


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def shared(rule: Callable[..., tuple[Gradient, ...]]) -> Callable[..., tuple[Gradient, ...]]:
    """Mark ``rule`` as a shared derivative rule of several tensors, and return it.

    A shared rule is called once for all these tensors, and returns the tuple of their gradients.
    """
    _SHARED.add(rule)
    return rule


def is_shared(rule: Rule) -> bool:
    """Whether the derivative rule ``rule`` is marked by :func:`shared`."""
    return rule in _SHARED


_SHARED: set[object] = set()
