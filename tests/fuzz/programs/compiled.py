"""Grammar of functions that are called several times, compiled and in eager mode."""

from __future__ import annotations

import random

from ..compiled_programs import source

PRELUDE = """\
state, numbers, buffer = [], iter(range(1, 99)), torch.zeros(3, 4)
m = torch.arange(16.0).reshape(4, 4).div(8).sub(1).requires_grad_({0})
layer, box = torch.nn.Linear(4, 4), type('Box', (), {{}})()
"""
CALLS = """
f = compiled(f)
for i in range(3):
    inputs = [torch.arange(12.0).add(i + k).cos().reshape(3, 4).requires_grad_(k % {0} == 0) for k in range(3)]
    log.append([shown(each) for each in f(*inputs)])
"""


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    rng = random.Random(seed)
    lines = PRELUDE.format(rng.random() < 0.5) + source(seed, rng.random() < 0.7) + CALLS.format(rng.choice([1, 2]))
    return lines + "t0, t1, t2 = inputs\nt3 = sum(each.double().sum() for each in f(t0, t1, t2))"
