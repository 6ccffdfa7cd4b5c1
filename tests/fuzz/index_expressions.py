"""Random index expressions, for both engines."""

from __future__ import annotations

import random
from typing import Any

PARTS = [
    "0", "1", "-1", "2", "5", ":", "1:", ":2", "::2", "-2:", "0:0", "3:1", "...", "None", "True", "False", "[0, 1]", "[1]", "[0, -1]",
    "torch.tensor(1)", "torch.tensor([0, 1])", "torch.tensor([[0], [1]])", "torch.tensor([True, False])", "torch.tensor([1, 0, 1])",
    "torch.tensor([True, False, True])", "torch.tensor([[True, False, True], [False, True, False]])", "torch.tensor([3])", "1.5", "[]",
    "torch.tensor([[0, 1], [1, 0]])",
]  # fmt: skip
VALUES = [
    "0.5",
    "torch.tensor(2.5)",
    "torch.arange(4.0)",
    "torch.ones(3, 1)",
    "torch.arange(24.0).reshape(2, 3, 4)",
    "torch.zeros(1, 1, 4)",
]


def programs(count: int) -> list[str]:
    """Return expressions over ``x`` of shape (2, 3, 4): reads, and writes that return the written tensor."""
    rng = random.Random(0)
    found = []
    while len(found) < count:
        parts: list[str] = rng.choices(PARTS, k=rng.choice([1, 1, 2, 2, 3, 3, 4]))
        if parts.count("...") > 1:
            continue
        index = ", ".join(parts)
        if rng.random() < 0.6:
            found.append(f"x[{index}]")
        else:
            found.append(f"write(x, key[{index}], {rng.choice(VALUES)})")
    return found


class Key:
    """Return the index unchanged from ``__getitem__``."""

    def __getitem__(self, index: Any) -> Any:
        return index


def write(x: Any, index: Any, value: Any) -> Any:
    """Return a copy of ``x`` with ``value`` at ``index``."""
    out = x.clone()
    out[index] = value
    return out


def answer(torch: Any, expression: str) -> Any:
    """Return shape, numbers, node and gradient, or the name of the error."""
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    try:
        found = eval(expression, {"torch": torch, "x": x, "key": Key(), "write": write})
    except Exception as error:
        return type(error).__name__
    weights = torch.arange(float(found.numel())).reshape(found.shape) + 1
    (slope,) = torch.autograd.grad((found * weights).sum(), x)
    return [
        list(found.shape),
        found.detach().reshape(-1).tolist(),
        type(found.grad_fn).__name__,
        slope.reshape(-1).tolist(),
    ]
