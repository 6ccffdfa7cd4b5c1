"""Node classes of declared operations, and the generation of their vjps.

A node class has ``__slots__`` for the values that the operation's derivative rules need, PyTorch's attributes
``_saved_…`` and ``_raw_saved_…``, and two methods that compute vector-Jacobian products (vjps): ``vjp`` for gradients
that are arrays, and ``vjp_recorded`` for gradients that are Tensors (``create_graph=True``). Their code is generated at
their first call. A vjp loads the saved values, checks that they have not been modified since they were saved, and calls
the rules of the operands that have a gradient edge. ``vjp_recorded`` also attaches saved tensors to their gradient
edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..core import promotion
from ..core.grad_mode import in_inference
from ..core.graph import AccumulateGrad, Node, SingleEdgeNode, next_number
from ..core.rule_namespace import rule_namespace_of
from ..core.saved_tensor_hooks import PackedValue
from ..core.tensor import Tensor, at_edge, wrap
from ..core.views import freed_error, modified_inplace_error
from ..runtime import user_frame
from .op import MISSING, arguments
from .operand_promotion import NUMBERS
from .saved_values import NodeSavedTensor

if TYPE_CHECKING:
    from ..core.typing import Edge, Edges, Gradient, Gradients, VersionCounter
    from .op import Op, Rule, Saved
    from .typing import DeclaredNode, SavedValue, Symbol, VJPMethod

#: Types of 0-d gradients. They are NumPy scalars, because arithmetic on these takes a tenth of the time of 0-d arrays.
SCALAR_GRADIENTS = frozenset({numpy.float32, numpy.float64})
FIXED: VersionCounter = [0, None]  # the version counter of saved arrays that cannot be modified


def node_class(op: Op, conjugate: bool = False, in_place: bool = False, only: int | None = None) -> type[Node]:
    """Return the class of the nodes of ``op``; it is created once for each combination of the arguments.

    conjugate  whether an operand or the result is complex, so that saved values are conjugated
    in_place   whether the nodes are those of the in-place operation, whose name differs for some operations
    only       the index of the operand that has a gradient edge, if there is only one; such a node stores this edge as
               ``edge``, and the values that the rule of this operand needs. None: the node has an edge for each operand
    """
    key = conjugate, in_place and op.in_place_backward != op.backward, only
    try:
        return op.nodes[key]
    except KeyError:
        pass
    all_saved = op.saved()
    saved = all_saved if only is None else [each for each in all_saved if only in each.rules]
    slots: list[str] = []
    body: dict[str, Any] = {"__module__": "builtins", "operation": op}
    for each in saved:
        slots += [each.held, each.cell, each.seen] if _is_array(each) else [each.held]
    for each in all_saved:
        if (public_name := _public_name(each)) is not None:
            body[f"_saved_{public_name}"] = property(_saved_getter(op, each))
            if _is_array(each):
                body[f"_raw_saved_{public_name}"] = property(_raw_getter(each))
    body["arrays"] = [each for each in saved if _is_array(each)]
    if None in op.rules:
        body["listed"] = tuple(index for index, rule in enumerate(op.rules) if rule is not None)
    base = Node
    if only is not None:
        base, slots = SingleEdgeNode, [*slots, "edge"]
        body["operand"], body["operands"] = only, len(op.tensors)
    body["__slots__"] = tuple(slots)
    if op.has_rules:
        for record in (False, True):
            body["vjp_recorded" if record else "vjp"] = _lazy_vjp(op, saved, conjugate, record, only)
    op.nodes[key] = type(op.in_place_backward if key[1] else op.backward, (base,), body)
    return op.nodes[key]


def all_results_class(op: Op, conjugate: bool = False, in_place: bool = False) -> type[Node]:
    """Return the class of the nodes of ``op`` that have one edge for each operand.

    If several results can have gradients, they have a common node, whose class is a subclass created by
    :func:`counted`. ``conjugate`` and ``in_place`` are as for :func:`node_class`.
    """
    kind, count = node_class(op, conjugate, in_place), len(op.outputs)
    return kind if count < 2 or op.differentiable == 1 else counted(kind, count)


def counted(kind: type[Node], outputs: int) -> type[Node]:
    """Return the subclass of the node class ``kind`` for a node that is common to ``outputs`` results of a call."""
    key = kind, outputs
    if key not in _counted:
        _counted[key] = type(
            kind.__name__,
            (kind,),
            {"__slots__": (), "__module__": "builtins", "outputs": outputs, "single": outputs == 1},
        )
    return _counted[key]


_counted: dict[tuple[type, int], type] = {}


def _is_array(each: Saved) -> bool:
    return each.kind in ("tensor", "result")


def _public_name(each: Saved) -> str | None:
    """Return the name of a saved value in PyTorch's attribute ``_saved_<name>``, or None if there is no such attribute.

    ``each`` is the :class:`Saved` that describes the value. For example, the name is ``self_sym_sizes`` for the shape
    of the operand ``self``, and ``result`` for the result.
    """
    if each.kind == "shape":
        return each.name.removesuffix("_shape") + "_sym_sizes"
    if each.kind in ("strides", "dtype", "device", "out_shape", "out_dtype"):
        return None
    return "result" if each.name == "out" else each.name


def _saved_getter(op: Op, each: Saved) -> Callable[[DeclaredNode], SavedValue]:
    def saved(node: DeclaredNode) -> SavedValue:
        value = getattr(node, each.held, MISSING)
        if value is MISSING:
            return None  # no gradient needs it
        if not _is_array(each):
            return value
        if value is None:
            if getattr(node, each.cell, None) is not None:
                raise freed_error(node)
            return None
        return unpack_saved(node, each, value)

    return saved


def _raw_getter(each: Saved) -> Callable[[DeclaredNode], SavedValue]:
    return lambda node: NodeSavedTensor(node, each.name, lambda: unpack_saved(node, each, getattr(node, each.held)))


def unpack_saved(node: DeclaredNode, each: Saved, value: SavedValue) -> Tensor:
    """Return ``value``, which ``node`` has saved, as a Tensor with its gradient edge.

    ``each`` is the :class:`Saved` that describes the value. If the value is the array of a leaf that still exists, this
    leaf is returned. Raises RuntimeError if the value was modified in place since it was saved.
    """
    if value.__class__ is PackedValue:
        tensor = value.unpack()
        array = tensor._array
        edge = node.edge_of(each.index) if each.kind == "tensor" else node.place(each.index, array)
        return (
            tensor
            if edge is None or array.dtype.kind not in "fcVW" or each.constant
            else at_edge(array, [0, None], edge)
        )
    if value.__class__ in NUMBERS or value.__class__ is complex:
        return wrap(numpy.asarray(value, promotion.dtype_of_number(value).numpy))
    counter, version = getattr(node, each.cell), getattr(node, each.seen)
    edge = node.edge_of(each.index) if each.kind == "tensor" else node.place(each.index, value)
    if counter[0] != version:
        raise modified_inplace_error(node, value, counter, version, edge)
    if value.dtype.kind not in "fcVW" or each.constant:
        edge = None
    leaf = edge.variable_ref() if edge.__class__ is AccumulateGrad else None
    return leaf if leaf is not None and leaf._array is value else at_edge(value, counter, edge)


def _lazy_vjp(op: Op, saved: Sequence[Saved], conjugate: bool, record: bool, only: int | None) -> VJPMethod:
    """Return the method that computes gradients in a node class whose vjp is not generated yet.

    At its first call, the method generates the vjp by ``Op.compile_vjp``, which has the same parameters, and the vjp
    takes its place in the class. It is the method ``vjp_recorded`` if ``record`` is true, and otherwise ``vjp``. See
    :class:`VjpForm` for the other parameters.
    """

    def first_call(node: DeclaredNode, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        vjp = op.compile_vjp(op, saved, conjugate, record, only)
        if record and op.connected:
            vjp = _connecting(vjp, op.backward.removesuffix("0") + "Backward0", _CONNECTED[op.connected])
        kind = next(each for each in type(node).__mro__ if ("vjp_recorded" if record else "vjp") in each.__dict__)
        setattr(kind, "vjp_recorded" if record else "vjp", vjp)
        return vjp(node, grad, edges, keep)

    return first_call


def _connecting(vjp: VJPMethod, name: str, kind: type[_ConnectedGradient]) -> VJPMethod:
    """Return a method ``vjp_recorded`` that calls ``vjp`` and gives each gradient an edge to its operand.

    The edges belong to graph nodes of a subclass of ``kind`` with the name ``name``.
    """
    kind = type(name, (kind,), {"__slots__": (), "__module__": "builtins"})

    def connecting(node: DeclaredNode, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        grads = vjp(node, grad, edges, keep)
        if grads.__class__ is not tuple:
            return _connected(kind, grads, node.edge if node.lone else edges[0])
        return tuple([_connected(kind, each, edge) for each, edge in zip(grads, edges, strict=True)])

    return connecting


def _connected(kind: type[Node], gradient: Gradient, operand: Edge | None) -> Gradient:
    """Return ``gradient`` with a node of the class ``kind``, which has an edge to its operand, if it is a Tensor.

    Tensors of transforms are returned unchanged.
    """
    if gradient.__class__ is not Tensor:
        return gradient
    node, array = kind(), gradient._array
    node.edges, node.number = (gradient._grad_edge, operand), next_number()
    node.shape, node.dtype, node.hooks = array.shape, array.dtype, None
    node.code, node.instruction = user_frame.user_location()
    return at_edge(array, None if in_inference() else [0, None], node)


class _ConnectedGradient(Node):
    """Node of a gradient that has an edge to the operand, on which the gradient does not depend: it passes on zeros."""

    __slots__ = ()

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        return grad, rule_namespace_of(grad).zeros_as(grad)

    vjp_recorded = vjp


class _UnusedGradient(_ConnectedGradient):
    """Node as :class:`_ConnectedGradient` that passes on nothing."""

    __slots__ = ()

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        return grad, None

    vjp_recorded = vjp


#: The base classes of the nodes of gradients, by the property ``connected`` of the operation.
_CONNECTED = {"zero": _ConnectedGradient, "none": _UnusedGradient}


class _Symbol:
    """Argument for a trial call of a derivative rule (see :func:`uses_arithmetic`).

    It supports comparison, indexing, attributes and calls, but no arithmetic.
    """

    __iter__ = None

    def __getattr__(self, name: str) -> Symbol:
        return self

    def _same(self, *args: object, **kwargs: object) -> Symbol:
        return self

    __call__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _same

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError("a symbol is neither true nor false")


def uses_arithmetic(rule: Rule) -> bool:
    """Whether the derivative rule ``rule`` uses arithmetic operators, and not only functions of ``F``.

    The rule is called with :class:`_Symbol` arguments, which support no arithmetic. The result is also True for a rule
    that branches on values. The result affects only speed: for rules with arithmetic, large arrays get operators that
    use several threads.
    """
    if not callable(rule):
        return rule not in (None, 0, 1)
    names = arguments(rule)
    if "g" not in names:
        return True
    try:
        rule(*[_Symbol()] * len(names))
    except Exception:
        return True
    return False
