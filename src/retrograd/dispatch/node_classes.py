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
from typing import Any

import numpy

from ..core import promotion
from ..core.graph import AccumulateGrad, Node, SingleEdgeNode
from ..core.rule_namespace import RULE_NAMESPACES, rule_namespace_of
from ..core.saved_tensor_hooks import PackedValue
from ..core.tensor import Tensor, at_edge, new, wrap
from ..core.views import freed_error, modified_inplace_error
from ..kernels.numba_dispatch import LARGE, plain, raised
from .codegen import compile_source
from .op import MISSING, arguments, is_shared
from .operand_promotion import NUMBERS
from .saved_values import NodeSavedTensor

#: Types of 0-d gradients. They are NumPy scalars, because arithmetic on these takes a tenth of the time of 0-d arrays.
SCALARS = frozenset({numpy.float32, numpy.float64})
FIXED: list[Any] = [0, None]  # the version counter of saved arrays that cannot be modified


def node_class(op: Any, conjugate: bool = False, in_place: bool = False, only: int | None = None) -> type[Node]:
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


def all_results_class(op: Any, conjugate: bool = False, in_place: bool = False) -> type[Node]:
    """Return the class of the nodes of ``op`` that have one edge for each operand and are the node of all results.

    If several results can have gradients, the class is a subclass created by :func:`counted`. ``conjugate`` and
    ``in_place`` are as for :func:`node_class`.
    """
    kind, count = node_class(op, conjugate, in_place), len(op.outputs)
    return kind if count < 2 or op.differentiable == 1 else counted(kind, count)


def counted(kind: type[Node], outputs: int) -> type[Node]:
    """Return the subclass of the node class ``kind`` for nodes of operations with ``outputs`` results."""
    key = kind, outputs
    if key not in _counted:
        _counted[key] = type(
            kind.__name__,
            (kind,),
            {"__slots__": (), "__module__": "builtins", "outputs": outputs, "single": outputs == 1},
        )
    return _counted[key]


_counted: dict[tuple[type, int], type] = {}


def _is_array(each: Any) -> bool:
    return each.kind in ("tensor", "result")


def _public_name(each: Any) -> str | None:
    """Return the name of a saved value in PyTorch's attribute ``_saved_<name>``, or None if there is no such attribute.

    ``each`` is the :class:`Saved` that describes the value.
    """
    if each.kind == "shape":
        return each.name.removesuffix("_shape") + "_sym_sizes"
    if each.kind in ("strides", "dtype", "device", "out_shape", "out_dtype"):
        return None
    return "result" if each.name == "out" else each.name


def _saved_getter(op: Any, each: Any) -> Callable[[Any], Any]:
    def saved(node: Any) -> Any:
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


def _raw_getter(each: Any) -> Callable[[Any], Any]:
    return lambda node: NodeSavedTensor(node, each.name, lambda: unpack_saved(node, each, getattr(node, each.held)))


def unpack_saved(node: Any, each: Any, value: Any) -> Any:
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
            if edge is None or array.dtype.kind not in "fcV" or each.constant
            else at_edge(array, [0, None], edge)
        )
    if value.__class__ in NUMBERS or value.__class__ is complex:
        return wrap(numpy.asarray(value, promotion.dtype_of_number(value).numpy))
    counter, version = getattr(node, each.cell), getattr(node, each.seen)
    edge = node.edge_of(each.index) if each.kind == "tensor" else node.place(each.index, value)
    if counter[0] != version:
        raise modified_inplace_error(node, value, counter, version, edge)
    if value.dtype.kind not in "fcV" or each.constant:
        edge = None
    leaf = edge.variable_ref() if edge.__class__ is AccumulateGrad else None
    return leaf if leaf is not None and leaf._array is value else at_edge(value, counter, edge)


def _lazy_vjp(op: Any, saved: Sequence[Any], conjugate: bool, record: bool, only: int | None) -> Any:
    """Return a method that, at its first call, is replaced by the generated vjp of the node class.

    The parameters are those of :func:`_compile_vjp`, which generates the vjp.
    """

    def first_call(node: Any, grad: Any, edges: Any, keep: bool) -> Any:
        vjp = _compile_vjp(op, saved, conjugate, record, only)
        kind = next(each for each in type(node).__mro__ if ("vjp_recorded" if record else "vjp") in each.__dict__)
        setattr(kind, "vjp_recorded" if record else "vjp", vjp)
        return vjp(node, grad, edges, keep)

    return first_call


def _compile_vjp(op: Any, saved: Sequence[Any], conjugate: bool, record: bool, only: int | None) -> Any:
    """Return a generated method ``vjp(node, g, edges, keep)``, which computes the gradients of the operands.

    ``g`` is the incoming gradient, or a tuple of gradients for an operation with several results. The method returns a
    tuple of gradients, or a single gradient if there is only one. If ``keep`` is false, the method releases the saved
    arrays. The parameters of this function:

    saved      the saved values of the node class
    conjugate  whether saved values are conjugated, because an operand or the result is complex
    record     whether gradients are Tensors, so that saved arrays become Tensors of the graph
    only       the index of the only operand with a gradient edge, or None
    """
    live = range(len(op.rules)) if only is None else (only,)
    rules = [op.rules[i] for i in live]
    space: dict[str, Any] = {
        "freed": freed_error, "stale": modified_inplace_error, "level_of": rule_namespace_of,
        "NUMBERS": NUMBERS, "new": new, "Tensor": Tensor,
        "ndarray": numpy.ndarray, "ARRAYS": RULE_NAMESPACES[numpy.ndarray], "TENSORS": RULE_NAMESPACES[Tensor], "raised": raised,
        "plain": plain, "SCALARS": SCALARS,
        "__name__": None,  # see Note [Silenced modules]
    }  # fmt: skip
    lines = ["def vjp(node, g, edges, keep):"]
    if only is None:
        lines.append("    " + ", ".join(f"e{i}" for i in live) + (",", "")[len(live) > 1] + " = edges")
    if not (conjugate or any("F" in arguments(rule) for rule in rules)):
        lines.append("    F = None")
    elif op.several or (op.outputs and op.differentiable != 1):
        lines.append("    F = TENSORS" if record else "    F = level_of(next(each for each in g if each is not None))")
    else:
        lines.append("    F = TENSORS" if record else "    F = ARRAYS if g.__class__ is ndarray else level_of(g)")
    for each in saved:
        lines += _load(each, record, conjugate and op.holomorphic, only)
    arrays = [each for each in saved if _is_array(each)]
    large = (
        not record
        and any(map(uses_arithmetic, rules))
        and (op.kind == "pointwise" or (len(op.tensors) == 1 and arrays))
    )
    if large:
        sample = "g" if op.kind == "pointwise" else arrays[0].name
        lines.append(f"    large = {sample}.__class__ is ndarray and {sample}.size >= {LARGE}")
        lines += ["    if large:", "        if g.__class__ is ndarray: g = raised(g)"]
        for each in arrays:
            bound = f"if {_any_edge(each.rules)}: " if only is None else ""
            lines.append(f"        {bound}{each.name} = raised({each.name})")
    if op.kind == "pointwise" and arrays and not record:
        lines.append("    if g.__class__ is not ndarray and g.__class__ in SCALARS:")
        for each in arrays:
            bound = f"({_any_edge(each.rules)}) and " if only is None else ""
            lines.append(f"        if {bound}{each.name}.__class__ is ndarray: {each.name} = {each.name}[()]")
    for i, rule in zip(live, rules, strict=True):
        value = "None" if rule is None else _rule(i, rule, space)
        if is_shared(rule):
            sharing = [k for k, each in enumerate(op.rules) if each is rule]
            if i == sharing[0] or only is not None:
                lines.append(f"    t{sharing[0]} = {value}" + f" if {_any_edge(sharing)} else None" * (only is None))
            value = f"t{sharing[0]}[{sharing.index(i)}]"
        lines.append(f"    d{i} = {value}" + f" if e{i} is not None else None" * (rule is not None and only is None))
    if large:
        lines.append("    if large: " + "; ".join(f"d{i} = plain(d{i})" for i in live))
    release = [f"node.s_{each.name}" for each in saved if _is_array(each)]
    if release:
        lines.append("    if not keep: " + " = ".join([*release, "None"]))
    lines.append("    return " + ", ".join(f"d{i}" for i in live))
    return compile_source(f"<{op.backward}{'recorded' if record else ''}>", lines, space, "vjp")


def _load(each: Any, record: bool, conjugate: bool, only: int | None) -> list[str]:
    """Return the source lines of a vjp that load the saved value ``each`` and check its version.

    ``each`` is the :class:`Saved` that describes the value. If ``record`` is true, the lines make the value a Tensor.
    ``only`` is the index of the operand with a gradient edge if there is only one, or None.

    If ``conjugate`` is true, the lines conjugate the value, because the vjp of a holomorphic function multiplies by the
    conjugate of its derivative. For every holomorphic operation of retrograd, the conjugate of the
    derivative is the derivative at the conjugated value. Therefore the rules themselves need no conjugation.
    """
    name = each.name
    lines = [f"{name} = node.s_{name}"]
    if _is_array(each):
        if each.kind != "tensor":
            edge = "None" if each.constant else f"node.place({each.index}, {name})"
        else:
            edge = f"node.edges[{each.index}]" if only is None else "node.edge" if each.index == only else "None"
        lines.append(f"c = node.c_{name}")
        lines.append(f"if {name} is None:")
        lines.append("    if c is not None: raise freed(node)")  # c is None: None was passed for an optional tensor
        lines.append(f"elif c[0] != node.v_{name}: raise stale(node, {name}, c, node.v_{name}, {edge})")
        if record:
            # at_edge inlined, because a call costs more than the stores.
            lines.append(f"if {name}.__class__ not in NUMBERS and {name}.__class__ is not complex and c is not None:")
            lines.append(f"    a, {name} = {name}, new(Tensor)")
            lines.append(f"    {name}._array, {name}._counter, {name}._view = a, c, None")
            lines.append(f"    {name}._grad, {name}._grad_edge = None, {edge.replace(', ' + name, ', a')}")
            if each.kind != "tensor" or edge != "None":
                lines.append(f"    if a.dtype.kind not in 'fcV': {name}._grad_edge = None")
        if conjugate:
            lines.append(f"if {name}.__class__ not in NUMBERS and c is not None: {name} = F.conj_physical({name})")
    if only is not None:
        return ["    " + line for line in lines]
    return [f"    if {_any_edge(each.rules)}:", *("        " + line for line in lines)]


def _any_edge(rules: Sequence[int]) -> str:
    """Return a condition, as source text: whether an operand with an index in ``rules`` has a gradient edge."""
    return " or ".join(f"e{i} is not None" for i in rules)


def _rule(i: int, rule: Any, space: dict[str, Any]) -> str:
    """Return the source text of an expression for the gradient of operand ``i``, from its derivative rule ``rule``.

    If the rule is a function, the function is added to ``space``, the globals of the vjp.
    """
    if isinstance(rule, (int, float)):
        constants: dict[float, str] = {1: "g", -1: "-g", 0: "None"}
        return constants.get(rule, f"g * {rule}")
    if isinstance(rule, str):
        return f"g * {rule}"
    space[f"rule{i}"] = rule
    names = arguments(rule)
    partial = f"rule{i}({', '.join(names)})"
    return partial if "g" in names else f"g * {partial}"


class _Symbol:
    """Argument for a trial call of a derivative rule (see :func:`uses_arithmetic`).

    It supports comparison, indexing, attributes and calls, but no arithmetic.
    """

    __iter__ = None

    def __getattr__(self, name: str) -> Any:
        return self

    def _same(self, *args: Any, **kwargs: Any) -> Any:
        return self

    __call__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _same

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError("a symbol is neither true nor false")


def uses_arithmetic(rule: Any) -> bool:
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
