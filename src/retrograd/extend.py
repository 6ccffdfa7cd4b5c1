"""Declaration of new operations outside of the package.

An operation declared here is a function of tensors like those of ``torch``: it broadcasts and promotes its operands, is
recorded, differentiated to any order, in reverse and forward mode, mapped by ``vmap`` and fused by ``torch.compile``. A
declaration is a kernel, which computes with arrays, and one derivative rule for each tensor::

    from retrograd.extend import pointwise

    @pointwise(lambda g, out: g / (3 * out * out), floats=True)
    def cbrt(np, self, /):
        '''Return the cube root of each element of ``self``.'''
        return np.cbrt(self)

The first parameter of the kernel is the array module, NumPy or CuPy. The parameters before the slash are tensors, which
the kernel gets as arrays; those after it are other values. The result must depend on these arguments alone.

The names of a rule's arguments determine what it gets. ``g`` is the incoming gradient, and ``out`` is the result of the
operation. The name of a tensor or of a parameter is its value. ``F`` is a namespace of functions, which also contains
the declared operations; a rule calls these functions because it runs on arrays and on tensors. docs/design.md,
"Declaring an operation", explains the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .dispatch import declare
from .dispatch.op import OPS, Rule
from .dispatch.torch_function_overrides import add_overridable

__all__ = ["Operation", "op", "pointwise"]

Operation = declare.Operation
#: The names of the operations that were declared by this module, with the modules that declared them.
_DECLARED: dict[str, str] = {}


def pointwise(
    *rules: Rule, name: str | None = None, backward: str | None = None, floats: bool = False, result: Any = None,
    holomorphic: bool = True, numbers: bool | str = True,
) -> Callable[[Callable[..., Any]], Operation]:  # fmt: skip
    """Return a decorator that declares an elementwise operation; the decorated function is its kernel.

    Args:
        rules: One derivative rule per tensor, in their order; without rules the result requires no gradient. A rule is
            a function, a number (a constant derivative), the string ``"out"`` or the name of a tensor (the derivative
            is this value), or None (no gradient). A function with an argument ``g`` returns the gradient, another one
            the derivative.
        name: Name of the operation; by default that of the kernel.
        backward: Name of its graph node; by default ``<Name>Backward0``.
        floats: If true, integer and bool tensors are converted to the default floating dtype.
        result: Dtype of the result, if it is not that of the operands: ``bool`` for a comparison.
        holomorphic: If false, the rules compute PyTorch's gradient for complex tensors themselves. Otherwise the values
            that a rule gets are conjugated.
        numbers: If true, operands but the first may be Python numbers; if false, all must be tensors.

    Raises:
        ValueError: The package or another module has an operation of this name.

    >>> import retrograd as torch
    >>> from retrograd.extend import pointwise
    >>> @pointwise(lambda g, self: g * (3 * self * self))
    ... def cube(np, self, /):
    ...     return self * self * self
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> cube(x).sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    return _declaring(
        declare.pointwise(
            *rules, name=name, backward=backward, floats=floats, result=result, holomorphic=holomorphic, numbers=numbers,
            function=False, method=False, in_place=False,
        ),
        name,
    )  # fmt: skip


def op(
    *, name: str | None = None, backward: str | None = None, view: bool = False, opmath: bool = False, linear: bool | str = False,
    outputs: Sequence[str] = (), differentiable: int | None = None, optional: Sequence[str] = (), holomorphic: bool = True,
    vmap: Any = "unknown",
) -> Callable[[Callable[..., Any]], Operation]:  # fmt: skip
    """Return a decorator that declares an operation which is not elementwise; the decorated function is its kernel.

    ``<operation>.derivative(tensor=rule, …)`` sets the derivative rules. Operands are neither promoted nor broadcast.
    The kernel has to raise an error for invalid arguments.

    Args:
        name: Name of the operation; by default that of the kernel.
        backward: Name of its graph node; by default ``<Name>Backward0``.
        view: If true, the result shares the memory of the first tensor.
        opmath: If true, float16 and bfloat16 operands are converted to float32 for the kernel, and its results back.
        linear: If true, the operation is linear in all its tensors together; ``"each"``: in each of them alone.
        outputs: Names of a fixed number of results; the kernel returns a tuple, and ``g`` is a tuple in the rules.
        differentiable: Number of ``outputs``, from the first, that have gradients; all by default.
        optional: Names of the tensors for which None may be passed.
        holomorphic: See :func:`pointwise`.
        vmap: How ``vmap`` runs the operation for all slices at once; by default slice by slice, with a warning.
            ``"leading"``: the kernel accepts further dimensions before the others, and parameters named ``dim`` or
            ``dims`` count all dimensions. ``"samples"``: the first dimension of every tensor is a batch. A function:
            an equal expression of other operations, ``lambda F, self: …``.

    Raises:
        ValueError: The package or another module has an operation of this name.

    >>> import retrograd as torch
    >>> from retrograd import extend
    >>> @extend.op(linear=True)
    ... def reversed_rows(np, self, /):
    ...     return self[::-1]
    >>> reversed_rows.derivative(self=lambda F, g: F.reversed_rows(g))
    >>> x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    >>> (reversed_rows(x) * torch.tensor([[1.0], [5.0]])).sum().backward()
    >>> x.grad
    tensor([[5.],
            [1.]])
    """
    return _declaring(
        declare.op(
            name=name, backward=backward, view=view, opmath=opmath, linear=linear, outputs=outputs,
            differentiable=differentiable, optional=optional, holomorphic=holomorphic, function=False, method=False, vmap=vmap,
        ),
        name,
    )  # fmt: skip


def _declaring(decorator: Callable[..., Any], name: str | None) -> Callable[[Callable[..., Any]], Operation]:
    """Return the decorator that :func:`pointwise` and :func:`op` return: it turns a kernel into a public operation.

    ``decorator`` is the corresponding decorator of the package, which declares an internal operation. The public
    operation becomes a function of the module that defines the kernel. ``name`` is the name of the operation; None
    means the name of the kernel.
    """

    def declared(kernel: Callable[..., Any]) -> Operation:
        called, module = name or kernel.__name__, kernel.__module__
        if called in OPS and _DECLARED.get(called) != module:  # a cell of a notebook may be run again
            raise ValueError(f"there is an operation named {called!r} already; pass another name=")
        function = decorator(kernel)
        _DECLARED[called] = module
        public = declare.public_form(function, "extend", called)
        public.__module__, public.__qualname__ = module, kernel.__qualname__
        add_overridable(public, f"{module}.{called}")
        return public

    return declared
