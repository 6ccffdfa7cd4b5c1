"""The table: what declares an operation, and what follows from the declaration.

    @pointwise(lambda F, out: 1 - out * out, floats=True)
    def tanh(np, self, /):
        '''Hyperbolic tangent, element by element.'''
        return np.tanh(self)

The decorated function is the kernel: arrays in, an array out. Its first parameter is the array module; tensors stand
before the slash, parameters after it. A rule is a partial derivative (multiplied by the incoming gradient ``g``) or, if
it names ``g``, the gradient itself. A number stands for a constant partial derivative, a string for one that is a saved
value: ``"out"`` of exp. The names of a rule's arguments say what is kept for the backward pass: a tensor, ``out`` (or the
name of one of several results), ``<tensor>_shape``, ``<tensor>_strides``, ``<tensor>_dtype``, ``<tensor>_device`` or a
parameter. ``F`` is the level (see ``core/rule_namespace.py``), which only a rule that uses it names: in a rule only operators and
names of ``F`` may be used.
How a declaration becomes a fast function is the business of ``dispatch/fast_path.py`` and
``dispatch/node_classes.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from types import FunctionType
from typing import Any, Protocol

import numpy

from . import generic_path, public_wrapper
from .codegen import lazy_function
from .fast_path import specialise
from .fast_path_codegen import AXIS, NEW_AXIS, OPERATOR, Front
from .introspection import Shown
from .op import ARRAYS, FUNCTIONS, METHODS, OPS, TENSORS, Op, Rule, shared
from .signatures import PREFIXES


class Operation(Protocol):
    """The public function of an operation of the table."""

    op: Op

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def derivative(self, /, **rules: Rule) -> None:
        """Give the rule for each tensor by name."""


#: The functions of public namespaces beside ``torch`` and ``Tensor``: by namespace and name.
EXPORTS: dict[str, dict[str, Any]] = {}


def exported(space: str, name: str = "") -> Callable[[Any], Any]:
    """Enter a function in the public namespace ``space``, as ``name`` or under its own name; return it unchanged."""

    def declare(target: Any) -> Any:
        EXPORTS.setdefault(space, {})[name or target.__name__] = target
        return target

    return declare


# --- Declaring ------------------------------------------------------------------------------------------------------


def pointwise(
    *rules: Rule,
    name: str | None = None,
    backward: str | None = None,
    floats: bool = False,
    result: Any = None,
    function: bool = True,
    method: bool = True,
    in_place: bool | str = True,
    holomorphic: bool = True,
    in_place_backward: str | None = None,
    check: Callable[..., None] | None = None,
    refuses: tuple[str, str] | None = None,
    numbers: bool | str = True,
    aliases: Sequence[str] = (),
    inline_expr: tuple[Any, ...] | None = None,
    inplace_stmt: tuple[Any, ...] | None = None,
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare an operation that acts element by element on operands broadcast together.

    ``rules``: one per tensor. ``floats``: integer operands are calculated as floats. ``result``: the dtype of the
    result if it is not that of the operands (``bool`` for comparisons). Operands may be numbers. ``holomorphic=False``:
    the rules do for complex operands what they say, without conjugation. ``in_place_backward``: PyTorch's name for the
    node of the in-place form where it differs. ``check``: called with the operands, as given, to refuse them.
    ``refuses``: the name of PyTorch's kernel, and the kinds of numbers for which there is none (``"b"`` booleans, ``"i"``
    integers, ``"f"`` floats, ``"h"`` floats of 16 bits, ``"c"`` complex). ``numbers``: whether operands may be numbers
    (``"second"``: all but the first). ``in_place``: whether there is a ``name_``, as a method and, of one tensor, as a
    function too (``"method"``, ``"function"``: PyTorch has it otherwise). ``inline_expr``, ``inplace_stmt``: see :func:`op`.
    """

    def declare(kernel: Callable[..., Any]) -> Operation:
        dtype = None if result is None else numpy.dtype(result)
        op = Op(kernel, kind="pointwise", name=name, backward=backward, floats=floats, result=dtype, opmath=True,
                holomorphic=holomorphic, in_place_backward=in_place_backward, check=check,
                refuses=refuses, numbers=numbers, inline=inline_expr, over=inplace_stmt)  # fmt: skip
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
    in_order: bool = False,
    one: bool = False,
    linear: bool = False,
    holomorphic: bool = True,
    in_place_backward: str | None = None,
    function: bool = True,
    method: bool = True,
    in_place: bool | str = False,
    aliases: Sequence[str] = (),
    inline_expr: tuple[Any, ...] | None = None,
    inplace_stmt: tuple[Any, ...] | None = None,
    optional: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare any other operation; its rules are given with ``<operation>.derivative(tensor=rule, …)``.

    ``view``: the result shares the first tensor's memory. ``opmath``: float16 and bfloat16 are calculated in float32.
    ``outputs``: the names of several results (the kernel returns a tuple); ``differentiable``: how many of them, from
    the first, have gradients. ``several``: the kernel returns a tuple of as many results as the arguments say.
    With several differentiable results, ``g`` in a rule is the tuple of their gradients, None where there is none.
    ``in_order``: the elements of the result lie in memory row by row, however the kernel leaves them. ``one``: the result
    is one number.
    ``linear``: linear in each tensor. ``optional``: the tensors in whose place there may be None. ``inline_expr``: a
    condition and an expression, which stands for the kernel where the condition holds for arrays of NumPy (and what names
    in both mean; FLOATS: the first is of float32 or float64); ``inplace_stmt``: likewise a statement that overwrites the first.
    The kernel checks its arguments and raises torch's errors itself.
    """

    def declare(kernel: Callable[..., Any]) -> Operation:
        op = Op(
            kernel, kind="view" if view else "general", name=name, backward=backward, opmath=opmath, outputs=outputs,
            differentiable=differentiable, several=several, linear=linear, in_order=in_order, one=one,
            holomorphic=holomorphic, in_place_backward=in_place_backward, inline=inline_expr, optional=optional,
            over=inplace_stmt,
        )  # fmt: skip
        return _enter(op, function, method, in_place, aliases)

    return declare


def public(
    *,
    name: str | None = None,
    function: bool = True,
    method: bool = True,
    aliases: Sequence[str] = (),
    fast_path: Operation | None = None,
    when: str = "",
    in_place: bool = False,
    result_class: Any = None,
    operands: Sequence[str] = (),
    then_try: Sequence[tuple[Operation, str]] = (),
    array_factory: Callable[..., Any] | None = None,
    identity_if: str = "",
    **fixed: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a plain function public: one that sorts out arguments, or is written in terms of other operations.

    ``fast_path``: the block that it comes down to when all arguments but the block's own are left at their defaults; in
    that case generated code does what the block does, and the function is not called. ``when``: what else must hold for
    that, in Python (``"inline"`` at its beginning: what the block's ``inline_expr`` asks for); ``fixed``: the block's
    parameters that the function does not have or has in another form; ``result_class``, ``operands``, ``identity_if``: what becomes of
    several results, what the function calls the block's tensors, when it gives its argument back (see :class:`Front`);
    ``then_try``: blocks to try next, each with what must hold; ``in_place``: the block's result replaces what its first tensor
    held. ``array_factory``, of a function that makes a tensor of no other: the array of it, called with the arguments without
    names, as they were given (of ``*args`` with the tuple), if there are no others but ``requires_grad=True``; None for
    what is not so common.
    """

    def declare(target: Callable[..., Any]) -> Callable[..., Any]:
        called, shown = name or target.__name__, target
        if fast_path is not None:
            front: Any = None
            for block, what in reversed(((fast_path, when), *then_try)):
                front = Front(block.op, target, what, fixed, result_class, operands, front, in_place, identity_if)
            shown = _fronted(front, called)
            target.front = front  # type: ignore[attr-defined]
        if array_factory is not None:
            target.common = array_factory  # type: ignore[attr-defined]
        for each in (called, *aliases):
            if function:
                FUNCTIONS[each] = shown
            if method:
                METHODS[each] = shown
        return target

    return declare


def fronted(target: Callable[..., Any], fast_path: Operation, when: str, result_class: Any = None, **fixed: Any) -> Any:
    """``target`` with a quick way (see :func:`public`)."""
    return _fronted(Front(fast_path.op, target, when, fixed, result_class), target.__name__)


def _fronted(front: Front, name: str, public_kind: str = "") -> Any:
    """The public function, called ``name``, of a surface with quick ways: each leaves to the next what is not for it."""
    target = front.surface
    if front.other is not None:
        front = front.behind(_fronted(front.other.behind(target), name, public_kind))
    made = _stub(front.op, front, public_kind, name, front.over)
    del made.op, made.derivative, made.over
    made.__doc__, made.__module__, made.__wrapped__, made.front = target.__doc__, target.__module__, target, front
    return made


def _enter(op: Op, function: bool, method: bool, in_place: bool | str, aliases: Sequence[str]) -> Operation:
    function_form, method_form = _stub(op), _stub(op, generic_path.apply_method)
    OPS[op.name] = op
    ARRAYS.__dict__[op.name] = (
        generic_path.exact(op) if op.opmath and op.kind == "general" else partial(op.kernel, numpy)
    )
    TENSORS.__dict__[op.name] = function_form
    names = (op.name, *aliases)
    for each in names:
        if function:
            FUNCTIONS[each] = function_form
        if method:
            METHODS[each] = method_form
        if in_place:
            form = METHODS[each + "_"] = in_place_form(op, each + "_")
            if in_place == "function" or (in_place is True and len(op.tensors) == 1):
                FUNCTIONS[each + "_"] = form
    return function_form


def in_place_form(op: Op, name: str) -> Any:
    """The function ``name``, which writes the result of ``op`` into its first tensor."""
    made = _stub(op, generic_path.apply_in_place, name=name, over=True)
    made.__doc__ = f"In-place version of :func:`{op.name}`: the result replaces what the tensor held."
    return made


def _stub(op: Op, slow: Any = generic_path.apply, public_kind: str = "", name: str = "", over: bool = False) -> Any:
    """A function of ``op``, called ``name``. Its code is generated when it is first called (see ``dispatch/fast_path.py``).

    ``public_kind``: whether it is what users call as a ``"function"`` or ``"method"``, with whatever arguments; ``over``:
    whether it overwrites its first tensor.
    """
    space = {"public": public_kind, "over": over, "watched": generic_path.watched}
    made = lazy_function(name or op.name, lambda function: specialise(op, function, slow), space)
    made.__doc__ = op.doc
    made.__module__ = "retrograd"
    made.__wrapped__ = Shown(op, "in place" if over else "method" if public_kind == "method" else "function")  # type: ignore[attr-defined]
    made.op = op  # type: ignore[attr-defined]
    made.derivative = op.derivative  # type: ignore[attr-defined]
    made.over = over  # type: ignore[attr-defined]
    op.forms.append((made, slow))
    return made


def public_form(function: Any, space: str, name: str) -> Any:
    """``function`` as users have it: as ``name`` in ``space`` (``torch``, ``Tensor``, ``linalg`` …), explaining errors."""
    if function.__class__ is not FunctionType or name.startswith("__"):
        return function
    op, front, public_kind = getattr(function, "op", None), getattr(function, "front", None), "function"
    if op is not None:
        public_kind, over = "method" if space == "Tensor" else "function", getattr(function, "over", False)
        run = (
            generic_path.apply_in_place
            if over
            else generic_path.apply_method
            if space == "Tensor"
            else generic_path.apply
        )
        made = _stub(op, public_wrapper.explained(run, op, space, name), public_kind, name, over)
        made.__doc__ = function.__doc__
        return made
    if front is not None:
        return _fronted(front.behind(public_wrapper.guarded(front.target, space, name)), name, public_kind)
    return public_wrapper.guarded(function, space, name)


def of_package(name: str) -> Any:
    """A function of the package as users have it (for parts that are loaded after it)."""
    return vars(sys.modules[str(__package__).partition(".")[0]])[name]


def publish(namespace: dict[str, Any], space: str, shared: Sequence[str] = ()) -> None:
    """Put the public forms of its functions in a module that names them in ``__all__``.

    ``shared``: those that are the functions of the package itself (which is loaded before its parts).
    """
    for name in namespace["__all__"]:
        made = namespace[name] = of_package(name) if name in shared else public_form(namespace[name], space, name)
        if name not in shared and made.__class__ is FunctionType and space in PREFIXES:
            made.__name__ = PREFIXES[space] + name  # as PyTorch's are called


def renamed(function: Any, shown: str) -> Any:
    """The same operation for a caller who knows it by another name, which its errors then say."""
    return _stub(variant(function, shown=shown))


def variant(function: Any, **changes: Any) -> Op:
    """The operation of a function with other properties, for a form that PyTorch names or refuses otherwise."""
    op = copy(function.op)
    op.forms, op.nodes = [], {}
    for name, value in changes.items():
        setattr(op, name, value)
    return op


def operator_form(function: Any, name: str) -> Any:
    """What stands for ``function`` as the operator ``name``: NotImplemented, not an error, for operands of foreign classes."""
    op, front = getattr(function, "op", None), getattr(function, "front", None)
    if front is not None and not front.over:
        return _fronted(front.before_operator(generic_path.guarded(front.target, name)), name, OPERATOR)
    if op is None:
        return generic_path.guarded(function, name)
    if function.over:
        return _stub(op, generic_path.operating(generic_path.apply_in_place_operator, name), OPERATOR, name, over=True)
    apply = generic_path.apply_equality if op.name in ("eq", "ne") else generic_path.apply_operator
    return _stub(op, generic_path.operating(apply, name), OPERATOR, name)


__all__ = [
    "ARRAYS", "AXIS", "FUNCTIONS", "METHODS", "NEW_AXIS", "OPS", "TENSORS", "Operation", "fronted", "in_place_form",
    "of_package", "op", "operator_form", "pointwise", "public_form", "publish", "renamed", "shared", "public",
    "variant",
]  # fmt: skip
