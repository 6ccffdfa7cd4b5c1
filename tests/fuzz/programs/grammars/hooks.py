"""Grammar of hooks, custom functions, checkpoints and saved-tensor hooks."""

from __future__ import annotations

import random

LEAVES = [
    "t0 = torch.tensor([0.5, -0.25], dtype=torch.float64, requires_grad=True)",
    "t1 = torch.tensor([1.5, 0.75], dtype=torch.float64, requires_grad=True)",
]
PLAIN = [
    "{a}.sin()", "{a} * {b}", "{a} + {b}", "{a}.exp() * 0.1", "{a} * 2", "{a}.tanh()", "{a} - {b}", "{a}.flip(0)", "{a}[0] * {b}",
    "{a}.sigmoid()", "{a}.detach() * {b}", "torch.stack([{a}, {b}]).sum(0)", "{a}.clone().mul_({b})", "torch.cat([{a}[:1], {b}[1:]])",
    "{a}.unbind()[0] + {b}", "{a} / (1 + {b} ** 2)", "{a}.cumsum(0)", "{a}.softmax(0)",
]  # fmt: skip
CUSTOM = [
    "Cube.apply({a})", "Product.apply({a}, {b})", "Two.apply({a})[0]", "Two.apply({a})[1] * {b}", "sum(Two.apply({a}))",
    "Half.apply({a} * 1)", "Straight.apply({a})", "Product.apply({a}.detach(), {b})", "Product.apply(Cube.apply({a}), {b})",
    "Stingy.apply({a})[0]", "Same.apply({a})",
]  # fmt: skip
PARTS = ["plain", "deep", "own", "hooked", "packed", "nested", "drawn"]
HOOKS = [
    "{a}.register_hook(see('{a}'))", "{a}.register_hook(lambda g: g * 2)", "{a}.register_hook(see('again {a}'))", "{a}.retain_grad()",
    "{a}.grad_fn.register_hook(node('{a}'))", "{a}.grad_fn.register_prehook(before('{a}'))",
    "{a}.grad_fn.register_prehook(lambda gs: tuple(g * 0.5 for g in gs))",
    "t0.register_post_accumulate_grad_hook(accumulated('t0'))", "t1.register_hook(see('t1'))",
    "several([{a}, {b}], many('{a} {b}'))", "several([{a}, {b}], see('any {a} {b}'), mode='any')",
    "gone = {a}.register_hook(see('gone')); gone.remove()",
]  # fmt: skip
PACKING = ["lambda t: t * 2, lambda t: t / 2", "lambda t: t.tolist(), lambda p: torch.tensor(p, dtype=torch.float64)",
           "lambda t: (t,), lambda p: p[0]"]  # fmt: skip


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    rng = random.Random(seed)
    lines, count = [], 2
    for _ in range(rng.randint(4, 10)):
        a, b = (f"t{rng.choice([rng.randrange(count), count - 1])}" for _ in range(2))
        kind = rng.random()
        if kind < 0.3:
            lines.append(f"t{count} = {rng.choice(PLAIN)}")
        elif kind < 0.5:
            lines.append(f"t{count} = {rng.choice(CUSTOM)}")
        elif kind < 0.65:
            reentrant = rng.random() < 0.2
            lines.append(f"t{count} = checkpoint({rng.choice(PARTS)}, {{a}}, {{b}}, use_reentrant={reentrant})")
        elif kind < 0.75:
            what = rng.choice(PLAIN + CUSTOM)
            lines.append(f"with saving({rng.choice(PACKING)}): t{count} = {what}")
        else:
            lines.append(rng.choice(HOOKS))
            if lines[-1].startswith("several") and {a, b} & {"t0", "t1"}:  # an internal error of PyTorch's in grad
                lines[-1] = "{a}.register_hook(see('{b}'))"
        lines[-1] = lines[-1].format(a=a, b=b)
        count += f"t{count} = " in lines[-1]
    if rng.random() < 0.15:
        lines.append(f"with torch.no_grad(): t{rng.randrange(2, count) if count > 2 else 0}.mul_(1.5)")
    return "\n".join([*LEAVES, *lines])
