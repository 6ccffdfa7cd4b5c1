"""Type aliases for the annotations of ``dispatch``, in addition to those of ``core/typing.py``.

No module loads this module at run time; Note [Any in annotations] in ``core/typing.py`` has the rule for ``Any``.

Note [Classes tested by identity]. An operation tests ``x.__class__ is Tensor``, because this is faster than
``isinstance``. A type checker cannot conclude from the test that ``x`` is a Tensor. Therefore the operands,
arguments and results of operations have aliases of ``Any``, whose comments list the classes of the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy

    from ..core.typing import Edges, Function, Gradient, Gradients
    from .form import Form, PublicForm

# --- Calls ----------------------------------------------------------------------------------------------------------

#: Operand of an operation: a Tensor, a number, None for an optional tensor, or an object of an overriding class (Note
#: [Classes tested by identity]).
Operand: TypeAlias = Any
#: Operands of a call, in the order of the operation's tensors.
Operands: TypeAlias = tuple[Any, ...]
#: Operands in a list or another sequence.
OperandSequence: TypeAlias = Sequence[Any]
#: Arrays of the operands of a call; an operand that is a number is itself.
Arrays: TypeAlias = Sequence[Any]
#: Parameters of an operation by position. Their types are those of the operation's declaration.
Params: TypeAlias = tuple[Any, ...]
#: Result of an operation or a public function: a Tensor or a tuple of Tensors, for an operator also NotImplemented.
Result: TypeAlias = Any
#: Result of a kernel: an array, or a tuple of arrays if the operation has several results.
KernelResult: TypeAlias = Any
#: Local variables of a called function at its beginning, by name: its parameters.
Locals: TypeAlias = dict[str, Any]
#: Number that an operation accepts, or another object, which is returned unchanged.
Number: TypeAlias = Any
#: Object that ``Handler.wanted`` returns for a function, and that is passed to ``Handler.around``.
Known: TypeAlias = Any

#: Declaration of an operation's rule for ``vmap``, which ``func/vmap_rules.py`` interprets: a name, or a set, tuple or
#: function, as described at :func:`~.declare.op`.
VmapRule: TypeAlias = object

# --- Lists of the templates, which are local variables in the generated functions -----------------------------------

#: Values of the named parameters of a generated function (Note [Classes tested by identity]).
ArgumentList: TypeAlias = list[Any]
#: ``x``: the operands of the call.
OperandList: TypeAlias = list[Any]
#: ``a``: the arrays of the operands, or the operand itself if it is a number.
ArrayList: TypeAlias = list[Any]
#: ``e``: the gradient edges of the operands, or None. Which of these it is follows from attributes of ``form``.
EdgeList: TypeAlias = list[Any]
#: ``p``: the parameters of the operation.
ParamList: TypeAlias = list[Any]
#: ``r``: the arrays of the results; for an operation with a variable number of results, a tuple of them in one item.
ResultArrays: TypeAlias = list[Any]
#: ``y``: the results as Tensors; for an operation with a variable number of results, a tuple of them in one item.
ResultList: TypeAlias = list[Any]
#: ``v``: the values that a node has saved.
SavedList: TypeAlias = list[Any]
#: List of one item, which an inlined helper sets or reads.
Cell: TypeAlias = list[Any]

# --- Declarations ---------------------------------------------------------------------------------------------------

#: Function of a declared operation, or of the package. The attributes of the first, such as ``op``, depend on its
#: declaration; a type checker knows no attributes of functions.
DeclaredFunction: TypeAlias = Any
#: Argument of a call, of any class.
Argument: TypeAlias = Any
#: Class or function that a decorator returns unchanged.
Target = TypeVar("Target", bound=Callable[..., Any])
#: Type of the result of a function that is called.
Returned = TypeVar("Returned")
#: Fallback of a generated function, or a ``FastPathSpec``, whose attribute ``surface`` is the fallback.
Slow: TypeAlias = Any
#: Source of a parameter in ``Form.parameters``: an index, a function or a constant, which the kind determines.
ParameterSource: TypeAlias = Any
#: Tuple class of several results, whose attributes depend on the function.
ResultTuple: TypeAlias = type[Any]
#: Class of a function's result: a tuple class, ``form.FIRST`` or None.
ResultClass: TypeAlias = Any
#: Argument ``write`` of a declaration: a condition or None, and a function that writes the result; or the condition, a
#: function that returns a term, the ufunc that writes the result, and optionally a function for large arrays.
Write: TypeAlias = (
    tuple["Function | None", "Function"]
    | tuple["Function | None", "Function", "Function"]
    | tuple["Function | None", "Function", "Function", "Function"]
)
#: Value of ``MISSING``, the default of required parameters, which have parameters of all types.
Missing: TypeAlias = Any
#: Description of a function that users call.
CallForm: TypeAlias = "Form | PublicForm"
#: Positional arguments of a call by name, its keyword arguments, and all default values.
GivenByName: TypeAlias = "tuple[dict[str, object], dict[str, object], dict[str, object]]"
#: NumPy dtypes that a kernel supports.
DTypes: TypeAlias = "frozenset[numpy.dtype[Any]]"
#: NumPy dtypes in which an operation computes, by the dtypes of the operands; None before the first function is generated.
PromotionCache: TypeAlias = Any
#: Derivative rules by operand. Other attributes of the description of a vjp determine which of them are functions.
Rules: TypeAlias = tuple[Any, ...]
#: For each operand, the indices of the operands with the same shared derivative rule, or None if its rule is not shared.
Sharing: TypeAlias = list[Any]
#: ``F``: the namespace of operations, or None if no derivative rule uses it.
OptionalNamespace: TypeAlias = Any
#: Result of a trial call of a kernel or rule, which supports any attribute or call.
Symbol: TypeAlias = Any
#: Contents of ``outs.txt``; the type of the inner dictionary depends on the section.
OutTable: TypeAlias = dict[str, dict[str, Any]]

# --- Nodes and tensors ----------------------------------------------------------------------------------------------

#: Node of a declared operation. Its attributes, such as ``s_self``, depend on the derivative rules.
DeclaredNode: TypeAlias = Any
#: Method of a node class that computes gradients, called with the node.
VJPMethod: TypeAlias = "Callable[[DeclaredNode, Gradient, Edges, bool], Gradients]"
#: Value that a node has saved: an array, a PackedValue in place of it, or a number or other parameter.
SavedValue: TypeAlias = Any
#: Value of a saved tensor in public: a Tensor, a PackedValue, None, or ``FREED`` (Note [Classes tested by identity]).
HeldTensor: TypeAlias = Any
#: Property or method of a class of tensors in place of an attribute or method of Tensor, whose type may differ.
Override: TypeAlias = Any
#: Number by which wrapper tensors are compared; the class of the tensor defines it as an attribute or a property.
Depth: TypeAlias = Any
#: Tensor of the class that the method or function belongs to, whose attributes depend on the transformation.
Wrapped: TypeAlias = Any
