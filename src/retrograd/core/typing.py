"""Type aliases and protocols for the annotations of ``core`` and the layers above it.

Modules import these names under ``if TYPE_CHECKING``, so this module is not loaded when a program runs. Annotations are
strings (``from __future__ import annotations``), which only type checkers evaluate.

Note [Any in annotations]. ``Any`` disables type checking, so a value that is only passed on is an ``object``, and a value
of several known types has an alias of this module, or of the module ``typing`` in another folder.
``tests/architecture/test_annotations.py`` reports any other use of ``Any`` unless a comment at the function or attribute
names one of these reasons:

- Note [Any in public signatures]: ``help`` and ``inspect.signature`` show the annotations of public functions as they
  are written. ``Any`` is shown for an argument that PyTorch does not restrict, and for a result whose type depends on
  the arguments; callers must be able to use the result without a cast.
- Note [Any by attribute name]: the attributes are installed when the package is imported, or belong to a class that
  imitates another one, so their types depend on names that are known only at run time.
- Note [Any of declarations]: the object is the declaration of an operation or another object of a layer above, which
  this module may not import.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy

    from .devices import device
    from .graph import AccumulateGrad, Hooks, Node, OutputEdge

# --- Arrays and numbers ---------------------------------------------------------------------------------------------

#: Array of NumPy, of any dtype and number of dimensions. An array of CuPy has the same attributes and methods.
Array: TypeAlias = "numpy.ndarray[Any, numpy.dtype[Any]]"
#: dtype of an array, as opposed to the class ``dtype`` of tensors.
ArrayDType: TypeAlias = "numpy.dtype[Any]"
#: The module ``numpy`` or ``cupy``.
ArrayModule: TypeAlias = ModuleType
#: Sizes or strides of a tensor, one per dimension.
Shape: TypeAlias = tuple[int, ...]
#: Python number that is an operand of an operation.
Scalar: TypeAlias = bool | int | float | complex
#: Argument ``device=``: a device, its name, the index of a GPU, or None for the default device.
Device: TypeAlias = "device | str | int | None"

# --- The program ----------------------------------------------------------------------------------------------------

#: Code object and index of an instruction: a location in the user's program.
Location: TypeAlias = tuple[CodeType | None, int]
#: Version counter ``[version, location of the last modification]``. The two items have different types, which a list
#: cannot express: an ``int``, and a ``Location`` or None.
VersionCounter: TypeAlias = list[Any]
#: Function of a user or of another layer, whose parameters and result are not known here.
Function: TypeAlias = Callable[..., Any]
#: Positional arguments that are passed on.
Args: TypeAlias = tuple[Any, ...]
#: Keyword arguments that are passed on.
Kwargs: TypeAlias = dict[str, Any]
#: Active handlers that are no modes. Their class is in ``dispatch/intercept.py``, which ``core`` does not import.
OtherHandlers: TypeAlias = tuple[Any, ...]
#: State of the interception of calls; see ``core/torch_function.py``.
InterceptionState: TypeAlias = "tuple[int, tuple[Handler, ...], OtherHandlers, Args | None, OtherHandlers]"
#: Result of an intercepted call: ``GO_ON``, or the value that a handler returned in place of the function's result. The
#: function returns this value as its own result, whatever its type.
Intercepted: TypeAlias = Any
#: Value of the recording mode (see ``grad_mode``): a bool, ``HOOKED`` or ``INFERENCE``.
Recording: TypeAlias = bool | str | None

# --- The graph ------------------------------------------------------------------------------------------------------

#: Gradient edge: the object at which a gradient arrives.
Edge: TypeAlias = "Node | OutputEdge | AccumulateGrad"
#: Edges of a node, with None for an operand that requires no gradient.
Edges: TypeAlias = "tuple[Edge | None, ...]"
#: Gradient: an array in an ordinary backward pass, a Tensor in one that is recorded. The parameter ``record`` of the
#: engine's functions decides which of the two it is; a type checker cannot follow such a condition.
Gradient: TypeAlias = Any
#: Result of a vjp: the gradient for the only edge, or a tuple with one gradient (or None) for each edge.
Gradients: TypeAlias = Any
#: Value that a node has saved, which depends on the rules: an array, or a number or other parameter of the operation.
Saved: TypeAlias = Any
#: Incoming gradient and its edge, from which a backward pass starts.
Root: TypeAlias = "tuple[Edge, Gradient]"
#: Requested gradients by edge; the engine stores them as the values.
Wanted: TypeAlias = "dict[Edge, Gradient] | None"
#: Method of a node that computes gradients: ``vjp`` or ``vjp_recorded``.
VJP: TypeAlias = "Callable[[Gradient, Edges, bool], Gradients]"
#: Derivative of an operation with respect to one operand, called with ``F`` and the gradient (see ``dispatch/op.py``).
Rule: TypeAlias = Callable[..., Gradient]
#: Hook of a tensor or node. The number of arguments and the result depend on the kind of hook.
Hook: TypeAlias = Callable[..., object]


class RuleNamespace(Protocol):
    """Namespace ``F`` of derivative rules: its attributes are functions (see ``core/rule_namespace.py``)."""

    def __getattr__(self, name: str, /) -> Function: ...


class GradientTarget(Protocol):
    """Object with the shape and dtype to which a gradient is converted, such as a gradient edge."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> ArrayDType: ...


class HasEdges(Protocol):
    """Object that computed a gradient, such as a node; error messages find the index of the gradient in ``edges``."""

    @property
    def edges(self) -> tuple[object, ...]: ...


#: Method of an observer that runs a node in place of ``engine._apply``.
Apply: TypeAlias = "Callable[[Node, Gradient, Edges, bool, bool, dict[Node, list[Gradient]]], Gradients]"


class EngineNode(Protocol):
    """Attributes and methods of a graph node that the backward engine uses.

    The engine can also run other objects that have them. It calls ``vjp``, or ``vjp_recorded`` if the backward pass is
    recorded, and reads the other members.
    """

    number: int
    shape: Shape
    dtype: ArrayDType
    hooks: Hooks | None
    listed: tuple[int, ...] | None
    result_hooks: dict[int, Hooks] | None
    outputs: ClassVar[int]
    single: ClassVar[bool]
    lone: ClassVar[bool]
    takes_none: ClassVar[bool]
    operand: ClassVar[int]
    operands: ClassVar[int]

    @property
    def edges(self) -> Edges: ...
    def name(self) -> str: ...
    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients: ...
    def vjp_recorded(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients: ...
    def spread(self, value: Gradient) -> tuple[Gradient, ...]: ...


class Observer(Protocol):
    """Object, such as that of the profiler, whose methods are called in place of functions of the backward engine.

    ``visit`` replaces ``engine._visit``, and ``leaf`` replaces ``visit_leaf``. ``end`` is called after the backward
    pass.
    """

    def visit(
        self, edge: Edge, grad: Gradient, edges: Edges, keep: bool, record: bool,
        several: dict[Node, list[Gradient]], heap: Heap, wanted: Wanted, inner: Inner,
    ) -> Gradients: ...  # fmt: skip

    def leaf(
        self, leaf: AccumulateGrad, grad: Gradient, owned: bool, record: bool, wanted: Wanted, write: bool
    ) -> None: ...

    def end(self) -> None: ...


#: Whether each requested edge that is not a leaf leads to another requested edge. The key None, which no edge equals,
#: makes the dictionary not empty.
Inner: TypeAlias = "dict[Edge | None, bool | None]"
#: Nodes that wait for their turn, with their numbers.
Heap: TypeAlias = "list[tuple[int, Edge]]"


class Handler(Protocol):
    """Object whose method ``__torch_function__`` overrides calls: a mode, or an argument of an overriding class."""

    @property
    def __torch_function__(self) -> Function: ...


# --- Trees ----------------------------------------------------------------------------------------------------------

#: Nested containers of leaves of any type. The type of a tree that a function returns is that of the caller's tree.
PyTree: TypeAlias = Any
#: Selection of leaves: a type, a tuple of types, or a function that returns True for the leaves to select.
Kinds: TypeAlias = type | tuple[type, ...] | Callable[[Any], bool]

# --- Deferred operations --------------------------------------------------------------------------------------------

#: Entry of a deferred operation (``compiler/entries.py``), in a layer that this one may not import.
LazyEntry: TypeAlias = Any
#: Cursor of a call of a compiled function (``compiler/cursor.py``), in a layer that this one may not import.
Cursor: TypeAlias = Any
