"""Random programs of views, in-place operations and reads, for both engines.

A program is a list of statements over the names ``t0, t1 …``; ``run`` returns the state after each: values, grad_fn,
versions, errors, and at the end first and second gradients.
"""

from __future__ import annotations

import random
from typing import Any

VIEWS = [
    "{a}[0]", "{a}[-1]", "{a}[:1]", "{a}[1:]", "{a}[:, 0]", "{a}[:, 1:]", "{a}.view(-1)", "{a}.t()", "{a}.transpose(0, 1)",
    "{a}.unsqueeze(0)", "{a}.detach()", "{a}.diagonal()", "{a}.view_as({a})", "{a}.reshape(-1)", "{a}.squeeze()",
    "{a}.narrow(0, 0, 1)", "{a}.as_strided((2,), (1,))", "{a}.unbind(0)[0]", "{a}.chunk(2)[1]", "{a}.permute(1, 0)",
    "{a}.flatten()", "{a}.expand(2, 2)",
]  # fmt: skip
VALUES = [
    "{a} * 2",
    "{a} + {b}",
    "{a} * {b}",
    "{a}.exp()",
    "{a}.clone()",
    "{a}.sum()",
    "{a}.tanh()",
    "-{a}",
    "{a} ** 2",
]
CHANGES = [
    "{a}.mul_(2)", "{a}.add_({b})", "{a}.mul_({b})", "{a}.sigmoid_()", "{a}.exp_()", "{a}.zero_()", "{a}.copy_({b})",
    "{a}.sub_(0.5)", "{a}[0] = {b}", "{a}[0] = 1.5", "{a}.fill_(0.5)", "{a}.tanh_()", "{a}.neg_()", "{a}.t_()",
    "{a}.unsqueeze_(0)",
    "{a}.clamp_(-1, 1)", "{a}.detach_()",
]  # fmt: skip


def program(seed: int) -> list[str]:
    """Return the statements of program number ``seed``; the first three create the tensors."""
    rng = random.Random(seed)
    lines = [
        "t0 = torch.tensor([[0.5, -0.25], [0.75, 1.0]], dtype=torch.float64, requires_grad=True)",
        "t1 = t0 * 1.5",
        f"t2 = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64{rng.choice(['', ', requires_grad=True'])})",
    ]
    count = 3
    for _ in range(rng.randint(3, 9)):
        a, b = (f"t{rng.choice([rng.randrange(count), count - 1])}" for _ in range(2))
        kind = rng.random()
        if kind < 0.4:
            line, count = f"t{count} = {rng.choice(VIEWS)}", count + 1
        elif kind < 0.6:
            line, count = f"t{count} = {rng.choice(VALUES)}", count + 1
        else:
            line = rng.choice(CHANGES)
        if rng.random() < 0.1 and "=" in line and "] =" not in line:
            name, _, value = line.partition(" = ")
            line = f"with torch.no_grad(): {name} = {value}"
        elif rng.random() < 0.06:
            line = f"with torch.no_grad(): {line}"
        lines.append(line.format(a=a, b=b))
    return lines


def numbers(x: Any) -> Any:
    """Return rounded elements, so that the last bit does not differ between the engines."""
    return [numbers(each) for each in x] if isinstance(x, list) else round(x, 8) + 0.0


def state(x: Any) -> list[Any]:
    """Return the public state of a tensor."""
    node = None
    try:
        node = x.grad_fn
    except RuntimeError as error:
        return [type(error).__name__]
    steps = [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1] if x.numel() else []
    shown = numbers(x.detach().tolist())
    return [shown, type(node).__name__, x.requires_grad, x.is_leaf, x._version, x._is_view(), steps]


def run(torch: Any, lines: list[str]) -> dict[str, Any]:
    """Run a program and return what is observed."""
    names: dict[str, Any] = {"torch": torch}
    seen: dict[str, Any] = {}
    for number, line in enumerate(lines):
        try:
            exec(line, names)
        except Exception as error:
            seen[f"{number}: {line}"] = type(error).__name__
            if line.startswith(("t", "with")) and " = t" in line and "] =" not in line:
                names[line.removeprefix("with torch.no_grad(): ").split(" = ")[0]] = torch.zeros(
                    2, 2, dtype=torch.float64
                )
    tensors = {name: value for name, value in names.items() if name[0] == "t" and name[1:].isdigit()}
    for name, value in tensors.items():
        seen[name] = state(value)
    seen["gradients"] = gradients(torch, tensors)
    return seen


def gradients(torch: Any, tensors: dict[str, Any]) -> Any:
    """Return first and second derivatives of a sum over all tensors by the leaves among the first three."""
    leaves = [tensors[name] for name in ("t0", "t2") if tensors[name].requires_grad and tensors[name].is_leaf]
    try:
        total = sum(((i + 1) * value.cos().sum() for i, value in enumerate(tensors.values())), torch.zeros(()))
        first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        again = sum((each.sin().sum() for each in first if each is not None), torch.zeros(()))
        second = torch.autograd.grad(again, leaves, allow_unused=True) if again.requires_grad else []
    except RuntimeError as error:
        return type(error).__name__
    # No gradient and a zero gradient are equal.
    plain = [[0.0, 0.0], [0.0, 0.0]]
    return [[plain if each is None else numbers(each.tolist()) for each in some] for some in (first, second)]
