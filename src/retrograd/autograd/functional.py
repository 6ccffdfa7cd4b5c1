"""Jacobians, Hessians, and their products with vectors (``torch.autograd.functional``).

All functions call ``autograd.grad``. ``jvp`` calls it twice: the vector-Jacobian product ``Jᵀ u`` is linear in ``u``,
and the vector-Jacobian product of this linear map with ``v`` is the Jacobian-vector product ``J v``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from ..core.error_context import describe_definition, with_remedy
from ..core.grad_mode import enable_grad, is_grad_enabled, set_grad_enabled
from ..core.tensor import Tensor
from ..operations.shape.join import stack
from . import grad

Tensors = tuple[Tensor, ...]
Function = Callable[..., Any]

# Error messages of strict=True for a result that requires no gradients, by the stage that computed it.
_CONSTANT = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the user-provided function. "
    "This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {i} is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
    "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example).",
}
# Error messages of strict=True for a missing derivative, by function.
_NONE = {
    "vjp": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "jvp": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not "
    "allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}
_CONSTANT_PRODUCT = (
    "The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True."
)
_LENIENT = "pass strict=False, which returns zeros there"
_OF_INPUT = "input to the user-provided function is a single Tensor with a single element"
_OF_OUTPUT = "user-provided function returns a single Tensor with a single element"


# --- Common helpers -------------------------------------------------------------------------------------------------


def _tensors(given: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Return a pair: whether ``given`` is a tuple, and the Tensors in ``given`` as a tuple.

    TypeError is raised if ``given`` is not a Tensor or a tuple of Tensors. ``what`` and ``function`` are the names of
    the argument and of the calling function in the error message.
    """
    several = isinstance(given, tuple)
    tensors = given if several else (given,)
    for index, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            which = f"value at index {index}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(each)}."
            )
    return several, tensors


def _with_new_edges(tensors: Tensors, create_graph: bool, track: bool) -> Tensors:
    """Return tensors that share memory with ``tensors``, but have their own places in the graph.

    The derivatives are computed with respect to the returned tensors. A function that also reads the original tensors,
    for example as global variables, therefore gets the derivative with respect to its arguments only.

    If ``create_graph`` is true, tensors that require gradients stay connected to their graph. The other tensors are
    detached, and require gradients only if ``track`` is true.
    """
    return tuple(
        each.view_as(each) if create_graph and each.requires_grad else each.detach().requires_grad_(track)
        for each in tensors
    )


def _outputs(func: Function, inputs: Tensors, function: str, strict: bool) -> tuple[bool, Tensors]:
    several, outputs = _tensors(func(*inputs), "outputs of the user-provided function", function)
    _require_dependence(outputs, "outputs", strict, func)
    return several, outputs


def _definition_hint(func: Function | None) -> str:
    """Return a sentence with the file and line of the user's function ``func``, or "" if these are unknown."""
    line = describe_definition(func)
    return f" The function is defined{line}." if line else ""


def _scalar_output(func: Function, inputs: Tensors, function: str, strict: bool) -> Tensor:
    """Return the result of ``func`` for ``inputs``; raise RuntimeError unless the result is a Tensor of one element.

    ``function`` is the name of the calling function in error messages. If ``strict`` is true, RuntimeError is also
    raised if the result does not depend on the inputs.
    """
    several, outputs = _outputs(func, inputs, function, strict)
    if several:
        text = f"The function given to {function} should return a single Tensor.{_definition_hint(func)}"
        raise RuntimeError(with_remedy(text, "return one of its results, or their sum"))
    if outputs[0].nelement() != 1:
        text = f"The Tensor returned by the function given to {function} should contain a single element.{_definition_hint(func)}"
        raise RuntimeError(with_remedy(text, "reduce it to one number, as by .sum()"))
    return outputs[0]


def _vector(v: Any, like: Tensors, several: bool, create_graph: bool, function: str, single: str) -> Tensors | None:
    """Check ``v``, the vector in a product with a Jacobian or Hessian, and return it as a tuple of tensors.

    ``v`` must have one tensor for each tensor in ``like``, of the same shape; otherwise RuntimeError is raised. If
    ``like`` is a single tensor of one element, ``v`` may be None, and None is returned. If ``create_graph`` is true,
    the tensors stay connected to the graph of ``v``.

    The other arguments are for error messages. ``several`` is true if the user passed ``like`` as a tuple. ``function``
    is the name of the calling function. ``single`` is the condition under which ``v`` may be None.
    """
    if v is None:
        if len(like) != 1 or like[0].nelement() != 1:
            raise RuntimeError(f"The vector v can only be None if the {single}.")
        return None
    vector = _with_new_edges(_tensors(v, "v", function)[1], create_graph, False)
    if len(vector) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (each, other) in enumerate(zip(vector, like, strict=True)):
        if each.shape != other.shape:
            which = f"Entry {index} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {other.shape} but got {each.shape}.")
    return vector


def _require_dependence(
    results: Sequence[Tensor | None], stage: str, strict: bool, func: Function | None = None
) -> None:
    for index, each in enumerate(results if strict else ()):
        if each is None:
            raise RuntimeError(with_remedy(_NONE["vjp"].format(i=index) + _definition_hint(func), _LENIENT))
        if not each.requires_grad:
            raise RuntimeError(with_remedy(_CONSTANT[stage].format(i=index) + _definition_hint(func), _LENIENT))


def _gradients(
    outputs: Sequence[Tensor | None],
    inputs: Tensors,
    vector: Sequence[Tensor] | None,
    create_graph: bool,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of ``outputs`` with respect to each of ``inputs``.

    Outputs that require no gradient are skipped. The gradient is None for an input on which no output depends.
    ``vector`` has the incoming gradient of each output; None means gradients of 1. If ``batched`` is true, each
    incoming gradient stacks several gradients along its first dimension.
    """
    weights = vector or (None,) * len(outputs)
    kept = [(out, by) for out, by in zip(outputs, weights, strict=True) if out is not None and out.requires_grad]
    if not kept:
        return (None,) * len(inputs)
    outs, by = zip(*kept, strict=True)
    return grad(outs, inputs, by, retain_graph, create_graph, allow_unused=True, is_grads_batched=batched)


def _zeros_for_none(
    products: Sequence[Tensor | None], like: Tensors, function: str, strict: bool, create_graph: bool
) -> Tensors:
    """Return ``products``, the products of a vector with a Jacobian or Hessian, with zeros in place of None.

    There is one product for each input in ``like``, and the zeros have its shape. A product is None if the function
    does not depend on the input; if ``strict`` is true, RuntimeError is raised instead. If ``strict`` and
    ``create_graph`` are both true, RuntimeError is also raised for a product that requires no gradient. ``function`` is
    the name of the calling function.
    """
    for index, each in enumerate(products if strict else ()):
        if each is None:
            raise RuntimeError(with_remedy(_NONE[function].format(i=index), _LENIENT))
        if create_graph and not each.requires_grad:
            what = "jacobian" if function in ("vjp", "jvp") else "hessian"
            raise RuntimeError(with_remedy(_CONSTANT_PRODUCT.format(what=what, i=index), _LENIENT))
    return tuple(_zeros(other) if each is None else each for each, other in zip(products, like, strict=True))


def _zeros(like: Tensor) -> Tensor:
    return like.new_zeros(like.shape)


def _seeds(like: Tensors) -> Tensors:
    """Return ones shaped like ``like``, with respect to which the caller differentiates a vector-Jacobian product.

    They are the vector of this product. The product is linear in the vector, so that its derivative is the same for
    every vector. Zeros would fail for some gradient rules, such as that of ``logcumsumexp``, which takes the logarithm
    of the gradient.
    """
    return tuple(each.new_ones(each.shape, requires_grad=True) for each in like)


def _as_returned(tensors: Tensors, several: bool, create_graph: bool) -> Any:
    results = tensors if create_graph else tuple(each.detach() for each in tensors)
    return results if several else results[0]


# --- Products -------------------------------------------------------------------------------------------------------


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``(func(inputs), vᵀ J)``, where ``J`` is the Jacobian of ``func`` at ``inputs``.

    Args:
        func: a function that takes Tensors and returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple of Tensors, which need not require gradients.
        v: the vector, of the shapes of the outputs; may be omitted if the output is a single element.
        create_graph: make both results differentiable with respect to inputs and vectors that require gradients.
        strict: raise RuntimeError if an output does not depend on an input, instead of returning zeros.

    >>> import retrograd as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.tensor([1.0, 3.0]))
    (tensor([1., 1.]), tensor([1., 3.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "vjp")
        own = _with_new_edges(given, create_graph, True)
        several_out, outputs = _outputs(func, own, "vjp", strict)
        vector = _vector(v, outputs, several_out, create_graph, "vjp", _OF_OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _zeros_for_none(_gradients(outputs, own, vector, create_graph), own, "vjp", strict, create_graph)
    return _as_returned(outputs, several_out, create_graph), _as_returned(products, several, create_graph)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``(func(inputs), J v)``: the value and the derivative of ``func`` at ``inputs`` in the direction ``v``.

    Args:
        func: a function that takes Tensors and returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple of Tensors, which need not require gradients.
        v: the vector, of the shapes of ``inputs``; may be omitted if the input is a single element.
        create_graph: make both results differentiable with respect to inputs and vectors that require gradients.
        strict: raise RuntimeError if an output does not depend on the inputs, instead of returning zeros.

    >>> import retrograd as torch
    >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "jvp")
        own = _with_new_edges(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "jvp", _OF_INPUT)
        several_out, outputs = _outputs(func, own, "jvp", strict)
        seeds = _seeds(outputs)
        back = _gradients(outputs, own, seeds, True)
        _require_dependence(back, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _zeros_for_none(_gradients(back, seeds, vector, create_graph), outputs, "jvp", strict, create_graph)
    return _as_returned(outputs, several_out, create_graph), _as_returned(products, several_out, create_graph)


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``(func(inputs), vᵀ H)``, where ``H`` is the Hessian of ``func``, which returns a single element.

    The arguments are those of :func:`jvp`. The computation takes two backward passes, for any number of inputs.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "vhp")
        own = _with_new_edges(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "vhp", _OF_INPUT)
        output = _scalar_output(func, own, "vhp", strict)
        slopes = _gradients((output,), own, None, True)
        _require_dependence(slopes, "jacobian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _zeros_for_none(_gradients(slopes, own, vector, create_graph), own, "vhp", strict, create_graph)
    return _as_returned((output,), False, create_graph), _as_returned(products, several, create_graph)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``(func(inputs), H v)``, where ``H`` is the Hessian of ``func``, which returns a single element.

    The arguments are those of :func:`jvp`. The computation takes three backward passes; if the Hessian is symmetric,
    :func:`vhp` returns the same result with two.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "hvp")
        own = _with_new_edges(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "hvp", _OF_INPUT)
        output = _scalar_output(func, own, "hvp", strict)
        slopes = _gradients((output,), own, None, True)
        _require_dependence(slopes, "jacobian", strict)
        seeds = _seeds(own)
        back = _gradients(slopes, own, seeds, True)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _zeros_for_none(_gradients(back, seeds, vector, create_graph), own, "hvp", strict, create_graph)
    return _as_returned((output,), False, create_graph), _as_returned(products, several, create_graph)


# --- Jacobians and Hessians -----------------------------------------------------------------------------------------

Matrix = tuple[Tensors, ...]


def _basis(tensors: Tensors) -> Iterator[Tensors]:
    """Yield a tuple of tensors shaped like ``tensors`` for each of their elements: this element is 1, all others 0."""
    for index, each in enumerate(tensors):
        for row in numpy.eye(each.numel(), dtype=bool):
            unit = each.new_tensor(row).to(each.dtype).reshape(each.shape)
            yield tuple(unit if other == index else _zeros(tensors[other]) for other in range(len(tensors)))


def _by_rows(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> Matrix:
    """Return the Jacobian of ``outputs`` with respect to ``inputs``, computed by a backward pass per output element.

    The result is a tuple with one tuple for each output, which has one Tensor for each input. If ``strict`` is true,
    RuntimeError is raised for an output that does not depend on an input.
    """
    matrix = []
    for index, out in enumerate(outputs):
        flat = out.reshape(-1)
        rows = [_row(flat[each], inputs, index, create_graph, strict) for each in range(out.numel())]
        columns = zip(*rows, strict=True) if rows else [()] * len(inputs)
        matrix.append(
            tuple(
                stack(list(column)).view(out.shape + other.shape) for column, other in zip(columns, inputs, strict=True)
            )
        )
    return tuple(matrix)


def _row(element: Tensor, inputs: Tensors, index: int, create_graph: bool, strict: bool) -> Tensors:
    gradients = _gradients((element,), inputs, None, create_graph, True)
    for which, each in enumerate(gradients if strict else ()):
        if each is None:
            raise RuntimeError(
                f"Output {index} of the user-provided function is independent of input {which}. This is not allowed in "
                "strict mode."
            )
        if create_graph and not each.requires_grad:
            raise RuntimeError(with_remedy(_CONSTANT_PRODUCT.format(what="jacobian", i=index), _LENIENT))
    return _zeros_for_none(gradients, inputs, "vjp", False, create_graph)


def _by_batched_grad(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Matrix:
    """Return the Jacobian of ``outputs`` with respect to ``inputs``, computed by one batched call of ``grad``.

    The result is a tuple with one tuple for each output, which has one Tensor for each input.
    """
    sizes = [out.numel() for out in outputs]
    units = [stack(list(column)) for column in zip(*_basis(outputs), strict=True)]
    gradients = _gradients(outputs, inputs, units, create_graph, batched=True)
    rows = [
        (each.new_zeros((sum(sizes), *each.shape)) if got is None else got).split(sizes)
        for got, each in zip(gradients, inputs, strict=True)
    ]
    return tuple(
        tuple(rows[j][i].view(out.shape + each.shape) for j, each in enumerate(inputs)) for i, out in enumerate(outputs)
    )


def _by_columns(func: Function, inputs: Tensors) -> tuple[bool, Matrix]:
    """Return a pair: whether ``func`` returns a tuple, and the Jacobian of ``func`` at ``inputs``.

    The Jacobian is a tuple with one tuple for each output, which has one Tensor for each input. One Jacobian-vector
    product is computed for each element of ``inputs``.
    """
    record = is_grad_enabled() and any(each.requires_grad for each in inputs)
    with enable_grad():
        own = _with_new_edges(inputs, record, True)
        several, outputs = _outputs(func, own, "jacobian", False)
        seeds = _seeds(outputs)
        back = _gradients(outputs, own, seeds, True)
        columns = [
            _zeros_for_none(_gradients(back, seeds, unit, record, True), outputs, "jvp", False, record)
            for unit in _basis(own)
        ]
    starts = [0, *numpy.cumsum([each.numel() for each in own]).tolist()]
    return several, tuple(
        tuple(
            stack([column[i] for column in columns[start:stop]], -1).reshape(out.shape + each.shape)
            for each, start, stop in zip(own, starts, starts[1:], strict=False)
        )
        for i, out in enumerate(outputs)
    )


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of ``func`` at ``inputs``.

    For each pair of an output and an input, it has a Tensor of shape ``output.shape + input.shape``.

    Args:
        func: a function that takes Tensors and returns a Tensor or a tuple; for a tuple, the result is a tuple too.
        inputs: a Tensor or a tuple of Tensors; for a tuple, the result (or each item of the result) is a tuple too.
        create_graph: make the result differentiable with respect to inputs that require gradients.
        strict: raise RuntimeError if an output does not depend on an input, instead of returning zeros.
        vectorize: compute all rows in one batched call of ``grad``.
        strategy: ``"reverse-mode"`` computes rows; ``"forward-mode"`` computes columns, which are fewer if ``func`` has
            more outputs than inputs (with ``vectorize=True`` only, as in PyTorch).

    >>> import retrograd as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x.sum(), torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _refuse_forward(create_graph, strict, vectorize)
        several, given = _tensors(inputs, "inputs", "jacobian")
        several_out, matrix = _by_columns(func, given)
        rows = [list(row) if several else row[0] for row in matrix]  # lists, as PyTorch returns in this mode
        return (rows if several else tuple(rows)) if several_out else rows[0]
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "jacobian")
        own = _with_new_edges(given, create_graph, True)
        several_out, outputs = _outputs(func, own, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        if vectorize:
            matrix = _by_batched_grad(outputs, own, create_graph)
        else:
            matrix = _by_rows(outputs, own, create_graph, strict)
    return _matrix_as_returned(matrix, several_out, several, create_graph)


def _refuse_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    """Raise an error if one of the options of :func:`jacobian` is not supported with ``strategy="forward-mode"``."""
    for refused, kind, option in (
        (create_graph, NotImplementedError, "create_graph"),
        (strict, RuntimeError, "strict"),
    ):
        if refused:
            raise kind(
                f'torch.autograd.functional.jacobian: `{option}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{option}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )


def _matrix_as_returned(matrix: Matrix, several_out: bool, several: bool, create_graph: bool) -> Any:
    rows = tuple(_as_returned(row, several, create_graph) for row in matrix)
    return rows if several_out else rows[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of ``func`` at ``inputs``.

    For each pair of inputs ``x`` and ``y``, it has a Tensor of shape ``x.shape + y.shape``.

    Args:
        func: a function that takes Tensors and returns a Tensor of one element.
        inputs: a Tensor or a tuple of Tensors; for a tuple, the result is a tuple of tuples.
        create_graph, strict, vectorize: as for :func:`jacobian`.
        outer_jacobian_strategy: the ``strategy`` of :func:`jacobian` for the Jacobian of the gradient.

    >>> import retrograd as torch
    >>> torch.autograd.functional.hessian(lambda x: x[0] * x[1] ** 2, torch.tensor([1.0, 2.0]))
    tensor([[0., 4.],
            [4., 2.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html.
    """
    several, given = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*own: Tensor) -> Tensors:
        slopes = jacobian(lambda *each: _scalar_output(func, each, "hessian", strict).squeeze(), own, create_graph=True)
        _require_dependence(slopes, "jacobian", strict)
        return slopes

    matrix = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return matrix if several else matrix[0][0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
