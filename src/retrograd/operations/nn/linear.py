"""Linear and bilinear layers: ``linear`` and ``bilinear``."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core.tensor import Tensor
from ...dispatch.declare import op, public
from ...dispatch.intercept import GO_ON, HANDLERS, intercept_locals
from ..linalg.matmul import addmm, matmul
from ..shape.views import reshape, t, t_block, view


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    ``input`` has shape (…, in), ``weight`` (out, in), ``bias`` (out,) and the result (…, out). If ``weight`` has shape
    (in,) and ``bias`` is 0-d, the result has shape (…).
    """
    if HANDLERS and (answer := intercept_locals(linear, locals())) is not GO_ON:
        return answer
    ndim = input._array.ndim
    if bias is not None and weight._array.ndim <= 2:
        if ndim == 2:
            return addmm(bias, input, t_block(weight) if weight._array.ndim == 2 else t(weight))
        if bias._array.size in bias._array.shape and (ndim == 1 or (ndim > 2 and input._array.flags.c_contiguous)):
            sizes = input.shape[:-1]
            flat = addmm(bias, view(input, (math.prod(sizes), input.shape[-1])), t(weight))
            return view(flat, (*sizes, weight.shape[0]))
    result = matmul(input, t(weight))
    if bias is None:
        return result
    total = result + bias
    if total._array.shape != result._array.shape:  # PyTorch adds the bias in place
        text = f"output with shape {list(result.shape)} doesn't match the broadcast shape {list(total.shape)}"
        raise RuntimeError(text)
    return total


@op(function=False, method=False, opmath=True, backward="TrilinearBackward0")
def trilinear(np: Any, first: Any, second: Any, third: Any, /, text: str) -> Any:
    """Return the Einstein summation of ``first``, ``second`` and ``third`` by the equation ``text``.

    The equation is that of ``einsum``, for example ``"bj,ojk,bk->bo"``.
    """
    with numpy.errstate(all="ignore"):
        return np.ascontiguousarray(np.einsum(text, first, second, third, optimize=True))


def _gradient_equation(text: str, which: int) -> str:
    """Return the equation with which :func:`trilinear` computes the gradient of its operand with the index ``which``.

    ``text`` is the equation of the forward operation, for example ``"bj,ojk,bk->bo"``. The operands of the returned
    equation are the gradient of the result and the two other operands. For ``which=0`` it is ``"bo,ojk,bk->bj"``.
    """
    given, out = text.split("->")
    names = given.split(",")
    rest = [each for k, each in enumerate(names) if k != which]
    return f"{out},{rest[0]},{rest[1]}->{names[which]}"


trilinear.derivative(
    first=lambda F, g, second, third, text: F.trilinear(g, second, third, _gradient_equation(text, 0)),
    second=lambda F, g, first, third, text: F.trilinear(g, first, third, _gradient_equation(text, 1)),
    third=lambda F, g, first, second, text: F.trilinear(g, first, second, _gradient_equation(text, 2)),
)


@public(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input1 @ weight[o] @ input2 + bias[o]`` for each output feature o.

    ``input1`` has shape (…, in1), ``input2`` (…, in2), ``weight`` (out, in1, in2), ``bias`` (out,) and the result (…,
    out).
    """
    if weight.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-weight.ndim}, {weight.ndim - 1}], but got 2)"
        )
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for at, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {at}: got {a} and {b}")
    for number, each in ((1, input1), (2, input2)):
        if each.shape[-1] != weight.shape[number]:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {each.shape[-1]} but expected "
                f"{weight.shape[number]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )
    flat = [reshape(each, (-1, each.shape[-1])) for each in (input1, input2)]
    result = trilinear(flat[0], weight, flat[1], "bj,ojk,bk->bo")
    result = view(result, (*input1.shape[:-1], weight.shape[0]))
    return result if bias is None else result + bias


__all__ = ["bilinear", "linear"]
