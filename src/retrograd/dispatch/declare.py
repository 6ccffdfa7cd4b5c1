"""Decorators that declare operations: ``pointwise``, ``op`` and ``public``.

A declaration consists of a kernel and derivative rules::

    @pointwise(lambda F, out: 1 - out * out, floats=True)
    def tanh(np, self, /):
        '''Hyperbolic tangent, elementwise.'''
        return np.tanh(self)

The decorated function is the kernel: a function from arrays to an array. Its first parameter is the array module (NumPy
or CuPy). The parameters before the slash are tensors, which are called *operands* in retrograd. The parameters after
the slash are other values; only these are called *parameters*. The kernel's docstring becomes the docstring of the
public function.

A derivative rule computes the gradient of one tensor. A rule is one of:

    a function with an argument ``g``        the gradient; ``g`` is the incoming gradient
    a function without an argument ``g``     the partial derivative, by which ``g`` is multiplied
    a number                                 a constant partial derivative
    a string                                 a partial derivative that is a saved value: ``"out"`` for ``exp``
    ``None``                                 the tensor gets no gradient

The names of a rule's arguments determine what a node saves for the backward pass:

    ``F``                                    nothing: ``F`` is the namespace of kernels or of public operations
    ``g``                                    nothing: ``g`` is the incoming gradient
    the name of a tensor                     the operand, after promotion
    ``out``, or a name of ``outputs``        the result, or one of several results
    ``<tensor>_shape``, ``_strides``, ``_dtype``, ``_device``    this property of the operand
    ``out_shape``, ``out_dtype``             this property of the result
    the name of a parameter                  the parameter

A rule may use only operators and names of ``F`` (``core/rule_namespace.py``), because it runs on arrays, on tensors
(with ``create_graph=True``), and on the values of a trace.

From a declaration, ``dispatch/fast_path.py`` generates the public functions, and ``dispatch/node_classes.py`` the
classes of the nodes. Forward mode, ``vmap`` and ``torch.compile`` read the same rules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy

from ..runtime.lazy_functions import lazy_function
from . import generic_path, public_wrapper
from .fast_path import install_fast_path
from .form import AXIS, NEW_AXIS, OPERATOR, FastPathSpec
from .introspection import DeclaredSignature, with_first_parameter
from .op import ARRAYS, FUNCTIONS, METHODS, OPS, TENSORS, Op, Rule, add_kernel, rule_function, shared
from .signatures import PREFIXES

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..core.typing import Function
    from .typing import DeclaredFunction, Result, ResultClass, Slow, Target, VmapRule, Write


class Operation(Protocol):
    """Type of the functions that the decorators ``pointwise`` and ``op`` return, for annotations."""

    op: Op

    def __call__(self, *args: object, **kwargs: object) -> Result: ...

    def derivative(self, /, **rules: Rule) -> None:
        """Set the derivative rules: each keyword in ``rules`` is the name of a tensor, and its value is the rule.

        A tensor without a rule gets no gradient.
        """


#: The functions of public namespaces beside ``torch`` and ``Tensor``: by namespace and name.
EXPORTS: dict[str, dict[str, DeclaredFunction]] = {}


def exported(space: str, *names: str) -> Callable[[Target], Target]:
    """Return a decorator that adds a function to the public namespace ``space`` and returns the function unchanged.

    The public names of the function are ``names``, or its ``__name__`` if ``names`` is empty. If the function is also a
    function of ``torch``, its errors show PyTorch's name for the function in ``space``, for example ``special_expit``.
    """

    def declare(target: Target) -> Target:
        for name in names or (target.__name__,):
            shown = PREFIXES.get(space, "") + name
            other = names and hasattr(target, "op") and target.op.shown != shown
            EXPORTS.setdefault(space, {})[name] = with_error_name(target, shown) if other else target
        return target

    return declare


# --- Declarations ---------------------------------------------------------------------------------------------------


def pointwise(
    *rules: Rule,
    name: str | None = None,
    backward: str | None = None,
    floats: bool = False,
    result: DTypeLike | None = None,
    function: bool = True,
    method: bool = True,
    in_place: bool | str = True,
    holomorphic: bool = True,
    linear: bool | str = False,
    in_place_backward: str | None = None,
    check: Callable[..., None] | None = None,
    refuses: tuple[str, str] | None = None,
    numbers: bool | str = True,
    aliases: Sequence[str] = (),
    inline: Function | None = None,
    write: Write | None = None,
    scalar: Function | None = None,
    event: str | None = None,
) -> Callable[[Function], Operation]:
    """Return a decorator that declares an elementwise operation on broadcastable operands.

    The decorated function is the kernel. The operands are promoted to a common dtype before the kernel runs; float16
    and bfloat16 are computed in float32.

    rules              one derivative rule per tensor, in the order of the tensors; without rules, no gradient
    name               the operation's name; the kernel's name by default. Suffixes such as ``_tensor``, ``_number`` and
                       ``_block`` distinguish overloads and are left out in errors
    backward           the name of PyTorch's node; ``<Name>Backward0`` by default
    floats             if true, integer and bool operands are converted to the default floating dtype
    result             the dtype of the result if it is not the operands' dtype: ``bool`` for comparisons
    function           if true, the operation is a function of ``torch``
    method             if true, the operation is a method of Tensor
    in_place           if true, ``<name>_`` is created as a method, and for an operation of one tensor also as a
                       function; ``"method"``: only as a method; ``"function"``: always as a function too; False: not
                       at all
    aliases            further public names of the operation
    holomorphic        if true, the rules compute the complex derivative, and saved values are conjugated for complex
                       operands; if false, the rules compute the complex gradient themselves
    in_place_backward  the name of PyTorch's node of the in-place operation; that of ``backward`` by default
    check              function called with the operands before promotion; raises if PyTorch does not accept them
    refuses            (name of PyTorch's kernel, kinds of dtypes for which it raises "not implemented"): ``b`` bool,
                       ``i`` integers, ``f`` floating, ``h`` float16 and bfloat16, ``c`` complex
    numbers            if true, operands may be Python numbers; ``"second"``: all operands but the first
    scalar             function of the operands and parameters that is equal to the kernel, from which the expression in
                       fused loops is derived instead of the kernel (``kernels/scalar_code.py``)
    event              the name in a profile; by default that of the public function, or from ``backward``
    inline, linear, write    see :func:`op`
    """

    def declare(kernel: Function) -> Operation:
        dtype = None if result is None else numpy.dtype(result)
        op = Op(kernel, kind="pointwise", name=name, backward=backward, floats=floats, result=dtype, opmath=True,
                holomorphic=holomorphic, in_place_backward=in_place_backward, check=check,
                refuses=refuses, numbers=numbers, inline=inline, over=write, linear=linear, scalar=scalar,
                event=event)  # fmt: skip
        if rules:
            op.derivative(**dict(zip(op.tensors, rules, strict=True)))
        return _register(op, function, method, in_place, aliases)

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
    linear: bool | str = False,
    connected: str = "",
    holomorphic: bool = True,
    in_place_backward: str | None = None,
    function: bool = True,
    method: bool = True,
    in_place: bool | str = False,
    aliases: Sequence[str] = (),
    inline: Function | None = None,
    write: Write | None = None,
    optional: Sequence[str] = (),
    vmap: VmapRule = None,
    scalar: Function | None = None,
    event: str | None = None,
) -> Callable[[Function], Operation]:
    """Return a decorator that declares an operation that is not elementwise.

    The decorated function is the kernel. The derivative rules are set with ``<operation>.derivative(tensor=rule, …)``.
    Operands are neither promoted nor broadcast: the kernel checks its arguments and raises PyTorch's errors itself. In
    the rules of an operation with several differentiable results, ``g`` is the tuple of their gradients, with None for
    a result without a gradient.

    view            if true, the result shares the first tensor's memory
    opmath          if true, float16 and bfloat16 operands are converted to float32 for the kernel, and its results back
    outputs         the names of a fixed number of results; the kernel returns a tuple
    differentiable  the number of ``outputs``, from the first, that have gradients; all by default
    several         if true, the kernel returns a tuple whose length depends on the arguments
    in_order        if true, the result is made C-contiguous if the kernel's result is not
    one             if true, the result is a 0-d tensor
    linear          if true, the operation is linear in all tensors that have a rule together, as a copy of one into
                    another; ``"each"``: in each of them alone, as a product
    connected       "zero": each gradient has an edge to its tensor, along which its derivative is zero. So it is in
                    PyTorch if the function that computes the gradient takes the tensor. "none": no derivative is passed
                    along this edge, but a backward pass to the tensor does not fail
    optional        the names of the tensors for which None may be passed
    vmap            how vmap runs the operation for all slices at once. By default, an operation of one tensor that has a
                    parameter ``dim`` is ``"leading"``, and any other runs slice by slice with a warning:
                    ``"leading"``      the kernel accepts dimensions before those that it works on; the slices are the
                                       first one, and parameters that are dimensions or shapes are changed to fit
                    ``"elementwise"``  the operands broadcast
                    ``"samples"``      the first dimension of all operands is a batch of independent samples
                    ``"loss"``         elementwise, with a parameter ``reduction``
                    ``"slices"``       slice by slice without a warning, in operations that users do not call
                    ``"unknown"``      slice by slice, with a warning
                    ``"random"``       draws random numbers, also for slices that are equal
                    ``"dynamic"``      raises, because the shape of the result depends on the elements
                    set of names       ``"leading"``, if these tensors are the same for all slices
                    tuple of ints      for each tensor, the number of its last dimensions that the kernel works on; the
                                       dimensions before them broadcast
                    (name, *params)    the operation that computes for the rows of a matrix what this one computes for
                                       all elements
                    function           an equal expression of other operations; its arguments have the names of tensors
                                       and parameters, and ``F``. It may return one of the values above instead
    scalar, event   see :func:`pointwise`
    inline          a lambda expression that the specialised functions run instead of the kernel for NumPy arrays. Its
                    parameters are some of the kernel's tensors (as arrays) and parameters, and ``_d``, the dtype of the
                    first array. It returns the result, or None (by ``… if condition else None``) if it does not apply
    write           (condition, action): lambda expressions with such parameters. If the condition holds or is None, the
                    action writes the result of the in-place operation into the first array; writing it twice has no
                    other effect than writing it once
                    (condition, term, ufunc) or (condition, term, ufunc, large): the result is written by
                    ``ufunc(self, term, out=self)``. For large arrays the expression ``large`` may write it instead, and
                    returns whether it has
    name, backward, function, method, in_place, aliases, holomorphic, in_place_backward    see :func:`pointwise`
    """

    def declare(kernel: Function) -> Operation:
        op = Op(
            kernel, kind="view" if view else "general", name=name, backward=backward, opmath=opmath, outputs=outputs,
            differentiable=differentiable, several=several, linear=linear, in_order=in_order, one=one,
            connected=connected, holomorphic=holomorphic, in_place_backward=in_place_backward, inline=inline, optional=optional,
            over=write, vmap=vmap, scalar=scalar, event=event,
        )  # fmt: skip
        return _register(op, function, method, in_place, aliases)

    return declare


def public(
    *,
    name: str | None = None,
    function: bool = True,
    method: bool = True,
    aliases: Sequence[str] = (),
    fast_path: Operation | None = None,
    when: Function | None = None,
    if_arrays: Function | None = None,
    inline_only: bool = False,
    in_place: bool = False,
    result_class: ResultClass = None,
    operands: Sequence[str] = (),
    then_try: Sequence[tuple[Operation, Function | None]] = (),
    array_factory: Function | None = None,
    fast_function: Function | None = None,
    identity_if: Function | None = None,
    **fixed: object,
) -> Callable[[Function], Function]:
    """Return a decorator that makes a Python function public; the function combines operations or prepares arguments.

    ``fast_path`` is an operation that the function is equivalent to for common arguments. The generated public function
    calls the operation directly, without the decorated function, if the condition ``when`` holds and the arguments that
    the operation does not use have their default values.

    name           the public name; the function's name by default
    function       if true, the function is added to ``torch``
    method         if true, the function becomes a method of Tensor
    aliases        further public names
    fast_path      the operation that the function is equivalent to in the common case
    when           a further condition for the fast path: a function of some of the function's arguments, as passed
    if_arrays      a condition on the operands: a function of some of the operation's tensors (as arrays) and parameters,
                   and of ``_d``, the dtype of the first array
    inline_only    if true, the fast path applies only if the operation's ``inline`` does
    in_place       if true, the result of ``fast_path`` is written into its first tensor
    result_class   the tuple class of several results, or ``FIRST``: return only the first result
    operands       the names of the function's arguments that are the operation's tensors; the first ones by default
    then_try       further pairs (operation, condition), tried in this order if the condition ``when`` is false
    array_factory  for functions without tensor operands (``zeros``): a function that returns the new tensor's array,
                   or None for arguments that it does not support. It is called with the positional arguments
                   (``*args`` as a tuple) if no keyword argument but ``requires_grad=True`` is passed
    fast_function  a function that returns the result for the usual arguments, and None for arguments that it does not
                   support. It is called before all checks, with the positional arguments, if no keyword argument is
                   passed that the function names after ``*``. It must not change its arguments
    identity_if    a condition like ``if_arrays``; if it holds, the fast path returns its first operand itself
    fixed          values for the operation's parameters that the function does not have under the same name: a value,
                   the name of an argument of the function, a function that computes the value (see
                   :class:`FastPathSpec`), or ``AXIS`` or ``NEW_AXIS`` for a dimension that may be negative
    """

    def declare(target: Target) -> Target:
        called, shown = name or target.__name__, target
        if fast_path is not None:
            front: Any = None
            for block, what in reversed(((fast_path, when), *then_try)):
                front = FastPathSpec(
                    block.op, target, what, if_arrays, inline_only, fixed, result_class, operands, front, in_place,
                    identity_if,
                )  # fmt: skip
            shown = _fronted(front, called)
            target.front = front  # type: ignore[attr-defined]
        if array_factory is not None:
            target.common = array_factory  # type: ignore[attr-defined]
        if fast_function is not None:
            target.fast_function = fast_function  # type: ignore[attr-defined]
        for each in (called, *aliases):
            if function:
                FUNCTIONS[each] = shown
            if method:
                METHODS[each] = shown
        return target

    return declare


def with_fast_path(
    target: Function,
    fast_path: Operation,
    if_arrays: Function,
    result_class: ResultClass = None,
    **fixed: object,
) -> DeclaredFunction:
    """Return a function that calls the operation ``fast_path`` if ``if_arrays`` holds, and otherwise ``target``.

    The function is for use inside retrograd and does not become public. The condition ``if_arrays``, ``result_class``
    and ``fixed`` are as for :func:`public`.
    """
    spec = FastPathSpec(fast_path.op, target, None, if_arrays, False, fixed, result_class)
    return _fronted(spec, target.__name__)


def _fronted(front: FastPathSpec, name: str, public_kind: str = "", space: str = "torch") -> DeclaredFunction:
    """Return a function called ``name`` that calls an operation directly if the fast path ``front`` applies.

    A call to which ``front`` does not apply is passed to the next fast path, ``front.other``, if there is one, and
    finally to the ordinary Python function, ``front.surface``. The code of the function is generated at its first call.
    ``public_kind`` and ``space`` are as for :func:`_stub`.
    """
    target = front.surface
    if front.other is not None:
        front = front.behind(_fronted(front.other.behind(target), name, public_kind, space))
    function = _stub(front.op, front, public_kind, name, front.over, space)
    del function.op, function.derivative, function.over
    function.__doc__, function.__module__, function.__wrapped__ = target.__doc__, target.__module__, target
    function.front = front
    return function


def _register(op: Op, function: bool, method: bool, in_place: bool | str, aliases: Sequence[str]) -> Operation:
    """Add ``op`` to the dictionaries of operations, kernels, functions and methods, and return the function of ``op``.

    ``function``, ``method``, ``in_place`` and ``aliases`` are as for :func:`pointwise`.
    """
    function_form, method_form = _stub(op), _stub(op, generic_path.apply_method)
    op.function = function_form
    OPS[op.name] = op
    add_kernel(op)
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


def in_place_form(op: Op, name: str) -> DeclaredFunction:
    """Return the in-place function of ``op``, which writes the result into its first argument; ``name`` is its name."""
    function = _stub(op, generic_path.apply_in_place, name=name, over=True)
    function.__doc__ = f"In-place version of :func:`{op.name}`: the result is written into the tensor."
    return function


def _stub(
    op: Op,
    slow: Slow = generic_path.apply,
    public_kind: str = "",
    name: str = "",
    over: bool = False,
    space: str = "torch",
) -> DeclaredFunction:
    """Return a function that calls the operation ``op``; its code is generated at its first call (``fast_path.py``).

    slow         the fallback for calls that the generated code does not support
    public_kind  "function" or "method" if users call it, so that its arguments must be checked; "operator" for a method
                 such as ``__add__``; "" for a function that only retrograd calls
    name         the function's name; the operation's name by default
    over         if true, the result is written into the first tensor
    space        the namespace of the function in errors: ``torch``, ``Tensor``, …
    """
    called = name or op.name
    function = lazy_function(called, partial(install_fast_path, op, slow, public_kind, over, space, called), {})
    function.__doc__ = op.doc
    function.__module__ = "retrograd"
    form = "in place" if over else "method" if public_kind == "method" else "function"
    function.__wrapped__ = DeclaredSignature(op, form)  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    function.derivative = op.derivative  # type: ignore[attr-defined]
    function.over = over  # type: ignore[attr-defined]
    op.forms.append((function, slow))
    return function


def public_form(function: DeclaredFunction, space: str, name: str) -> DeclaredFunction:
    """Return the function that users call as ``name`` in the namespace ``space`` (``torch``, ``Tensor``, …).

    It calls ``function``, and raises PyTorch's errors for wrong arguments. Methods such as ``__add__``, and objects
    that are not functions, are returned unchanged.
    """
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
        public_function = _stub(
            op, public_wrapper.public_fallback(run, function, space, name), public_kind, name, over, space
        )
        shown_doc = function.__doc__
        if "self" in op.tensors and public_kind == "function" and not over:
            shown_doc = with_first_parameter(shown_doc, "self", "input")
        public_function.__doc__ = shown_doc
        return public_function
    if front is not None:
        wrapper = public_wrapper.public_wrapper(front.target, space, name, fallback=True)
        return _fronted(front.behind(wrapper), name, public_kind, space)
    return public_wrapper.public_wrapper(function, space, name)


def package_function(name: str) -> DeclaredFunction:
    """Return the public function ``name`` of the top-level package ``retrograd``, which must have been imported."""
    return vars(sys.modules[str(__package__).partition(".")[0]])[name]


def publish(namespace: dict[str, DeclaredFunction], space: str, shared: Sequence[str] = ()) -> None:
    """Replace each function listed in ``namespace["__all__"]`` by the result of :func:`public_form` for it.

    ``namespace`` is the dictionary of a module, and ``space`` the name of the public namespace. Each function gets the
    names of the module and its own, by which ``pickle`` refers to it. A function whose name
    is in ``shared`` is replaced by the function of the same name in the top-level package.
    """
    for name in namespace["__all__"]:
        function = namespace[name] = (
            package_function(name) if name in shared else public_form(namespace[name], space, name)
        )
        if name not in shared and function.__class__ is FunctionType:
            function.__module__, function.__qualname__ = namespace["__name__"], name  # where pickle finds it
            if space in PREFIXES:
                function.__name__ = PREFIXES[space] + name  # PyTorch's name: linalg_inv


def with_error_name(function: DeclaredFunction, shown: str) -> DeclaredFunction:
    """Return a function for the same operation as ``function`` whose errors show the name ``shown``."""
    return _stub(variant(function, shown=shown))


def variant(function: DeclaredFunction, **changes: object) -> Op:
    """Return a copy of the :class:`Op` of ``function``; ``changes`` are new values of attributes of the copy."""
    op = copy(function.op)
    op.forms, op.nodes, op.function = [], {}, None
    for name, value in changes.items():
        setattr(op, name, value)
    return op


def operator_form(function: DeclaredFunction, name: str) -> DeclaredFunction:
    """Return the operator method ``name``, such as ``__add__``, that calls ``function``.

    The method returns NotImplemented if an operand has a class that the operator does not support.
    """
    op, front = getattr(function, "op", None), getattr(function, "front", None)
    if front is not None and not front.over:
        wrapper = generic_path.operator_wrapper(front.target, name, fallback=True)
        return _fronted(front.before_operator(wrapper), name, OPERATOR)
    if op is None:
        return generic_path.operator_wrapper(function, name)
    if function.over:
        return _stub(
            op, generic_path.operator_fallback(generic_path.apply_in_place_operator, name), OPERATOR, name, over=True
        )
    apply = generic_path.apply_equality if op.name in ("eq", "ne") else generic_path.apply_operator
    return _stub(op, generic_path.operator_fallback(apply, name), OPERATOR, name)


__all__ = [
    "ARRAYS", "AXIS", "FUNCTIONS", "METHODS", "NEW_AXIS", "OPS", "TENSORS", "Operation", "with_fast_path", "in_place_form",
    "package_function", "op", "operator_form", "pointwise", "public_form", "publish", "rule_function", "with_error_name",
    "shared", "public", "variant",
]  # fmt: skip
