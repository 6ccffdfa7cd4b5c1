"""Grammar of views, in-place operations and reads of one matrix and its views."""

from __future__ import annotations

import random

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


def program(seed: int) -> str:
    """Return the text of program number ``seed``; the first three statements create the tensors."""
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
    return "\n".join(lines)
