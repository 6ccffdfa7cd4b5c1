"""Calls of ``torch.autograd.functional`` as expressions; their results and errors are recorded."""

from __future__ import annotations

import itertools
import re
from typing import Any

#: Functions of one or two tensors.
FUNCTIONS = {
    "product": "lambda p, q=1.0: p * p * q",
    "two": "lambda p, q=1.0: (p.exp(), (p * q).sum())",
    "linear": "lambda p, q=1.0: p * 2",
    "same": "lambda p, q=1.0: (p,)",
    "constant": "lambda p, q=1.0: torch.ones(2)",
    "nothing": "lambda p, q=1.0: 3",
    "number": "lambda p, q=1.0: (p**3 * q).sum()",
    "number2": "lambda p, q=1.0: (p.exp() * q).prod().reshape(1, 1)",
    "slope": "lambda p, q=1.0: p.sum()",
    "packed": "lambda p, q=1.0: (p.sum(),)",
    "fixed": "lambda p, q=1.0: torch.ones(())",
    "matrix": "lambda p, q=1.0: (y @ p).tanh()",
    "square": "lambda p, q=1.0: p * p.conj()",
}
INPUTS = ("x", "d", "(x,)", "(x, d)")
GRAPH = ("", ", create_graph=True", ", strict=True", ", strict=True, create_graph=True")
MODES = (*GRAPH[:3], ", vectorize=True", ", vectorize=True, create_graph=True")


def calls() -> list[str]:
    """Return all expressions."""
    found = [
        *(f"jacobian({f}, {inputs}{how})" for f, inputs, how in itertools.product(
            ("product", "two", "linear", "same", "constant", "slope", "nothing", "matrix"), INPUTS,
            (*MODES, ", strategy='forward-mode', vectorize=True"))),
        *(f"hessian({f}, {inputs}{how})" for f, inputs, how in itertools.product(
            ("number", "number2", "slope", "packed", "fixed", "nothing", "product"), INPUTS,
            (*MODES, ", outer_jacobian_strategy='forward-mode', vectorize=True"))),
        *(f"{name}({f}, {inputs}, {inputs}{how})" for name, f, inputs, how in itertools.product(
            ("hvp", "vhp"), ("number", "number2", "slope", "packed", "fixed", "nothing", "product"), INPUTS, GRAPH)),
        *(f"{name}({f}, {inputs}, {v}{how})" for name, f, inputs, v, how in itertools.product(
            ("jvp", "vjp"), ("product", "two", "linear", "same", "constant"), INPUTS,
            ("x", "(x, x.sum())", "(x, d)", "(x,)"), GRAPH)),
        *(f"{name}({f}, {inputs})" for name, f, inputs in itertools.product(
            ("jvp", "vjp", "hvp", "vhp"), ("product", "number"),
            ("x[0]", "d[1:]", "x", "(x, d)", "3", "[x]", "(x, 2)", "d.long()"))),
        *(f"{name}({f}, {inputs}, {v})" for name, (f, inputs, v) in itertools.product(("jvp", "vjp", "hvp", "vhp"), (
            ("product", "x", "3"), ("product", "x", "y"), ("product", "(x, d)", "(d, y)"), ("square", "c", "c"),
            ("product", "d.double()", "d.double()")))),
        "jacobian(product, x, strategy='sideways')", "hessian(number, x, outer_jacobian_strategy='sideways')",
        "jacobian(product, x, strategy='forward-mode')", "jacobian(product, x, strict=True, vectorize=True)",
        "jacobian(product, x, strict=True, strategy='forward-mode')", "jacobian(product, d.double())",
        "jacobian(product, x, create_graph=True, strategy='forward-mode')", "jacobian(square, c, vectorize=True)",
    ]  # fmt: skip
    # If a function returns no Tensor, forward mode's error says "given to None".
    found = [each for each in found if "nothing" not in each or "forward-mode" not in each]
    return [*found, *(f"torch.no_grad()(lambda: {each})()" for each in found[::7])]


def answer(torch: Any, call: str) -> str:
    """Return the result or error of a call as text, without the names of nodes."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    names = {
        "torch": torch, "x": x, "d": x.detach(), "y": torch.tensor([[1.0, 0.5], [-1.0, 2.0], [0.3, 0.7]]),
        "c": torch.tensor([1.0 + 2.0j, 3.0]), **vars(torch.autograd.functional),
    }  # fmt: skip
    names |= {name: eval(text, names) for name, text in FUNCTIONS.items()}
    try:
        shown = repr(eval(call, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    # In forward mode PyTorch's results have a grad_fn although they do not depend on inputs.
    if "forward-mode" in call:
        return re.sub(r",\s+(grad_fn=<\w+>|requires_grad=True)", "", shown)
    return re.sub(r"grad_fn=<\w+>", "grad_fn", shown)
