"""Products with Jacobians and Hessians, and both whole, as ``torch.autograd.functional``.

Everything here is made of ``autograd.grad``. A forward derivative is had by differentiating twice: the product of a
vector with the Jacobian is linear in the vector, so the derivative of that product by its vector is the Jacobian's
product with another one. Knows no operation.
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

# What strict=True says of a result (of some stage) that does not require gradients.
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
# What strict=True says where there is no derivative at all.
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
_LENIENT = "say strict=False, which gives zeros there"
_OF_INPUT = "input to the user-provided function is a single Tensor with a single element"
_OF_OUTPUT = "user-provided function returns a single Tensor with a single element"


# --- What all have in common ----------------------------------------------------------------------------------------


def _tensors(given: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Whether a tuple was given, and the tuple."""
    several = isinstance(given, tuple)
    found = given if several else (given,)
    for index, each in enumerate(found):
        if not isinstance(each, Tensor):
            which = f"value at index {index}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(each)}."
            )
    return several, found


def _own(tensors: Tensors, create_graph: bool, track: bool) -> Tensors:
    """Tensors of our own on the same memory.

    The user's function may use the inputs in other ways too (as variables from around it): those do not count, and
    only a new place in the graph tells them apart.
    """
    return tuple(
        each.view_as(each) if create_graph and each.requires_grad else each.detach().requires_grad_(track)
        for each in tensors
    )


def _outputs(func: Function, inputs: Tensors, function: str, strict: bool) -> tuple[bool, Tensors]:
    several, outputs = _tensors(func(*inputs), "outputs of the user-provided function", function)
    _must_depend(outputs, "outputs", strict, func)
    return several, outputs


def _defined(func: Function | None) -> str:
    """Where the user's function is defined, if that is known."""
    line = describe_definition(func)
    return f" The function is defined{line}." if line else ""


def _number(func: Function, inputs: Tensors, function: str, strict: bool) -> Tensor:
    """What ``func`` gives, which must be one number."""
    several, outputs = _outputs(func, inputs, function, strict)
    if several:
        text = f"The function given to {function} should return a single Tensor.{_defined(func)}"
        raise RuntimeError(with_remedy(text, "return one of its results, or their sum"))
    if outputs[0].nelement() != 1:
        text = (
            f"The Tensor returned by the function given to {function} should contain a single element.{_defined(func)}"
        )
        raise RuntimeError(with_remedy(text, "reduce it to one number, as by .sum()"))
    return outputs[0]


def _vector(v: Any, like: Tensors, several: bool, create_graph: bool, function: str, single: str) -> Tensors | None:
    """The given vector, which must fit ``like``; None stands for 1 where that is a single number."""
    if v is None:
        if len(like) != 1 or like[0].nelement() != 1:
            raise RuntimeError(f"The vector v can only be None if the {single}.")
        return None
    vector = _own(_tensors(v, "v", function)[1], create_graph, False)
    if len(vector) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (each, other) in enumerate(zip(vector, like, strict=True)):
        if each.shape != other.shape:
            which = f"Entry {index} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {other.shape} but got {each.shape}.")
    return vector


def _must_depend(results: Sequence[Tensor | None], stage: str, strict: bool, func: Function | None = None) -> None:
    for index, each in enumerate(results if strict else ()):
        if each is None:
            raise RuntimeError(with_remedy(_NONE["vjp"].format(i=index) + _defined(func), _LENIENT))
        if not each.requires_grad:
            raise RuntimeError(with_remedy(_CONSTANT[stage].format(i=index) + _defined(func), _LENIENT))


def _gradients(
    outputs: Sequence[Tensor | None],
    inputs: Tensors,
    vector: Sequence[Tensor] | None,
    create_graph: bool,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """``grad`` of those outputs that have one; None for an input on which none of them depends."""
    weights = vector or (None,) * len(outputs)
    kept = [(out, by) for out, by in zip(outputs, weights, strict=True) if out is not None and out.requires_grad]
    if not kept:
        return (None,) * len(inputs)
    outs, by = zip(*kept, strict=True)
    return grad(outs, inputs, by, retain_graph, create_graph, allow_unused=True, is_grads_batched=batched)


def _filled(
    products: Sequence[Tensor | None], like: Tensors, function: str, strict: bool, create_graph: bool
) -> Tensors:
    """Zeros instead of None; with strict, an error instead of either."""
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
    """What stands for the vector by which a product is differentiated.

    The product is linear, so any value would do; but a rule may be written with a logarithm of the gradient, or with
    branches on its sign (``logcumsumexp``), and those are differentiable only away from zero.
    """
    return tuple(each.new_ones(each.shape, requires_grad=True) for each in like)


def _given_back(tensors: Tensors, several: bool, create_graph: bool) -> Any:
    found = tensors if create_graph else tuple(each.detach() for each in tensors)
    return found if several else found[0]


# --- Products -------------------------------------------------------------------------------------------------------


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(func(inputs), vᵀ J)``: the product of a vector with the Jacobian of ``func`` at ``inputs``.

    Args:
        func: takes Tensors, gives a Tensor or a tuple of them.
        inputs: a Tensor or a tuple of them; they need not require gradients.
        v: of the shape of what ``func`` gives; may be left out where that is a single number.
        create_graph: both results can be differentiated, by inputs and vectors that require gradients.
        strict: a RuntimeError where an output does not depend on an input, instead of zeros.

    >>> import retrograd as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.tensor([1.0, 3.0]))
    (tensor([1., 1.]), tensor([1., 3.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "vjp")
        own = _own(given, create_graph, True)
        several_out, outputs = _outputs(func, own, "vjp", strict)
        vector = _vector(v, outputs, several_out, create_graph, "vjp", _OF_OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _filled(_gradients(outputs, own, vector, create_graph), own, "vjp", strict, create_graph)
    return _given_back(outputs, several_out, create_graph), _given_back(products, several, create_graph)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(func(inputs), J v)``: the derivative of ``func`` at ``inputs`` in the direction ``v``.

    Args:
        func: takes Tensors, gives a Tensor or a tuple of them.
        inputs: a Tensor or a tuple of them; they need not require gradients.
        v: of the shape of ``inputs``; may be left out where they are a single number.
        create_graph: both results can be differentiated, by inputs and vectors that require gradients.
        strict: a RuntimeError where an output does not depend on the inputs, instead of zeros.

    >>> import retrograd as torch
    >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "jvp")
        own = _own(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "jvp", _OF_INPUT)
        several_out, outputs = _outputs(func, own, "jvp", strict)
        seeds = _seeds(outputs)
        back = _gradients(outputs, own, seeds, True)
        _must_depend(back, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _filled(_gradients(back, seeds, vector, create_graph), outputs, "jvp", strict, create_graph)
    return _given_back(outputs, several_out, create_graph), _given_back(products, several_out, create_graph)


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(func(inputs), vᵀ H)``: the product of a vector with the Hessian of ``func``, which gives one number.

    Args: as :func:`jvp`; ``v`` has the shape of ``inputs``. Two sweeps, whatever the number of inputs.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "vhp")
        own = _own(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "vhp", _OF_INPUT)
        output = _number(func, own, "vhp", strict)
        slopes = _gradients((output,), own, None, True)
        _must_depend(slopes, "jacobian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _filled(_gradients(slopes, own, vector, create_graph), own, "vhp", strict, create_graph)
    return _given_back((output,), False, create_graph), _given_back(products, several, create_graph)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(func(inputs), H v)``: the Hessian of ``func``, which gives one number, times a vector.

    Args: as :func:`jvp`. Three sweeps: where the Hessian is symmetric, :func:`vhp` gives the same with two.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html.
    """
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "hvp")
        own = _own(given, create_graph, True)
        vector = _vector(v, own, several, create_graph, "hvp", _OF_INPUT)
        output = _number(func, own, "hvp", strict)
        slopes = _gradients((output,), own, None, True)
        _must_depend(slopes, "jacobian", strict)
        seeds = _seeds(own)
        back = _gradients(slopes, own, seeds, True)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _filled(_gradients(back, seeds, vector, create_graph), own, "hvp", strict, create_graph)
    return _given_back((output,), False, create_graph), _given_back(products, several, create_graph)


# --- Whole matrices -------------------------------------------------------------------------------------------------

Matrix = tuple[Tensors, ...]


def _basis(tensors: Tensors) -> Iterator[Tensors]:
    """The unit vectors of the space of ``tensors``, one after the other."""
    for index, each in enumerate(tensors):
        for row in numpy.eye(each.numel(), dtype=bool):
            unit = each.new_tensor(row).to(each.dtype).reshape(each.shape)
            yield tuple(unit if other == index else _zeros(tensors[other]) for other in range(len(tensors)))


def _by_rows(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> Matrix:
    """A sweep for every element of the outputs."""
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
    found = _gradients((element,), inputs, None, create_graph, True)
    for which, each in enumerate(found if strict else ()):
        if each is None:
            raise RuntimeError(
                f"Output {index} of the user-provided function is independent of input {which}. This is not allowed in "
                "strict mode."
            )
        if create_graph and not each.requires_grad:
            raise RuntimeError(with_remedy(_CONSTANT_PRODUCT.format(what="jacobian", i=index), _LENIENT))
    return _filled(found, inputs, "vjp", False, create_graph)


def _at_once(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Matrix:
    """One batched sweep for all elements of all outputs."""
    sizes = [out.numel() for out in outputs]
    units = [stack(list(column)) for column in zip(*_basis(outputs), strict=True)]
    found = _gradients(outputs, inputs, units, create_graph, batched=True)
    rows = [
        (each.new_zeros((sum(sizes), *each.shape)) if got is None else got).split(sizes)
        for got, each in zip(found, inputs, strict=True)
    ]
    return tuple(
        tuple(rows[j][i].view(out.shape + each.shape) for j, each in enumerate(inputs)) for i, out in enumerate(outputs)
    )


def _by_columns(func: Function, inputs: Tensors) -> tuple[bool, Matrix]:
    """A forward derivative for every element of the inputs."""
    record = is_grad_enabled() and any(each.requires_grad for each in inputs)
    with enable_grad():
        own = _own(inputs, record, True)
        several, outputs = _outputs(func, own, "jacobian", False)
        seeds = _seeds(outputs)
        back = _gradients(outputs, own, seeds, True)
        columns = [
            _filled(_gradients(back, seeds, unit, record, True), outputs, "jvp", False, record) for unit in _basis(own)
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
    """The Jacobian of ``func`` at ``inputs``: for each output and input a Tensor of the shape of both together.

    Args:
        func: takes Tensors, gives a Tensor or a tuple of them; where a tuple, so is the result.
        inputs: a Tensor or a tuple of them; where a tuple, so is the result (or each of its members).
        create_graph: the result can be differentiated by inputs that require gradients.
        strict: a RuntimeError where an output does not depend on an input, instead of zeros.
        vectorize: all rows in one batched call of ``grad``.
        strategy: ``"reverse-mode"`` computes rows; ``"forward-mode"`` columns, which are fewer where ``func`` has more
            outputs than inputs (with ``vectorize=True`` only, as in PyTorch).

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
        rows = [list(row) if several else row[0] for row in matrix]  # lists, as PyTorch gives in this mode
        return (rows if several else tuple(rows)) if several_out else rows[0]
    with enable_grad():
        several, given = _tensors(inputs, "inputs", "jacobian")
        own = _own(given, create_graph, True)
        several_out, outputs = _outputs(func, own, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        if vectorize:
            matrix = _at_once(outputs, own, create_graph)
        else:
            matrix = _by_rows(outputs, own, create_graph, strict)
    return _unnested(matrix, several_out, several, create_graph)


def _refuse_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    """PyTorch's refusals of forward mode with other options."""
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


def _unnested(matrix: Matrix, several_out: bool, several: bool, create_graph: bool) -> Any:
    rows = tuple(_given_back(row, several, create_graph) for row in matrix)
    return rows if several_out else rows[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of ``func``, which gives one number: for each pair of inputs a Tensor of the shape of both together.

    Args:
        func: takes Tensors, gives a Tensor of one element.
        inputs: a Tensor or a tuple of them; where a tuple, the result is a tuple of tuples.
        create_graph, strict, vectorize: as for :func:`jacobian`.
        outer_jacobian_strategy: how the Jacobian of the gradient is computed (``strategy`` of :func:`jacobian`).

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
        slopes = jacobian(lambda *each: _number(func, each, "hessian", strict).squeeze(), own, create_graph=True)
        _must_depend(slopes, "jacobian", strict)
        return slopes

    matrix = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return matrix if several else matrix[0][0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
