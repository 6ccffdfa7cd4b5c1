"""Random programs of hooks, custom functions, checkpoints and saved-tensor hooks, for both engines.

A program is a list of statements over the tensors ``t0, t1 …``. ``run`` returns the calls of hooks in order, the first
and second gradients of leaves and of tensors that retain theirs, and errors.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

COUNT = 400  # how many programs are recorded

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


def program(seed: int) -> list[str]:
    """Return the statements of program number ``seed``."""
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
    return lines


def rounded(x: Any) -> Any:
    """Round the elements of a tensor, so that the last bits do not differ between the engines; None stays None."""
    if x is None:
        return None
    values = x.detach().tolist()
    return [_short(each) for each in values] if isinstance(values, list) else _short(values)


def _short(number: float) -> float:
    """Round to six digits, and to zero what differs from it by rounding."""
    return float(f"{number:.6g}") if abs(number) > 1e-9 else 0.0


def functions(torch: Any) -> dict[str, Any]:
    """Return the custom functions that programs use."""
    base, once = torch.autograd.Function, torch.autograd.function.once_differentiable

    def forward_cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    def back_cube(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    def forward_product(x: Any, y: Any) -> Any:
        return x * y

    def keep_product(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def back_product(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None

    def forward_two(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y * 0.1, x * 3

    def back_two(ctx: Any, g: Any, h: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y * 0.1 + h * 3

    def forward_half(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(0.5)

    def forward_stingy(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        places = x.argmax().reshape(1)
        ctx.mark_non_differentiable(places)
        return x * 4, places

    def made(name: str, forward: Any, backward: Any, **more: Any) -> Any:
        body = {"forward": forward, "backward": backward, **more}
        return type(name, (base,), {key: staticmethod(value) for key, value in body.items()})

    return {
        "Cube": made("Cube", forward_cube, back_cube), "Two": made("Two", forward_two, back_two),
        "Product": made("Product", forward_product, back_product, setup_context=keep_product),
        "Half": made("Half", forward_half, lambda ctx, g: g * 0.5),
        "Straight": made("Straight", lambda ctx, x: x.round(), once(lambda ctx, g: g * 1)),
        "Stingy": made("Stingy", forward_stingy, lambda ctx, g, h: None if g is None else g * 4),
        "Same": made("Same", lambda ctx, x: x, lambda ctx, g: g * 2),
    }  # fmt: skip


def parts(torch: Any, given: dict[str, Any], saving: Any, see: Any) -> dict[str, Any]:
    """Return the functions that programs checkpoint."""
    checkpoint = torch.utils.checkpoint.checkpoint

    def plain(x: Any, y: Any) -> Any:
        return x.sin() * y.exp() * 0.1

    def deep(x: Any, y: Any) -> Any:
        for _ in range(3):
            x = torch.tanh(x + y)
        return x * x

    def own(x: Any, y: Any) -> Any:
        return given["Product"].apply(given["Cube"].apply(x), y)

    def hooked(x: Any, y: Any) -> Any:
        z = x * y
        if z.requires_grad:
            z.register_hook(see("inside"))
        return z.sin()

    def packed(x: Any, y: Any) -> Any:
        with saving(lambda t: t * 2, lambda t: t / 2):
            return x.exp() * y

    def nested(x: Any, y: Any) -> Any:
        return checkpoint(plain, x, y, use_reentrant=False) * x

    def drawn(x: Any, y: Any) -> Any:
        return x * torch.rand(2, dtype=torch.float64) + y.sin()

    return {
        "plain": plain,
        "deep": deep,
        "own": own,
        "hooked": hooked,
        "packed": packed,
        "nested": nested,
        "drawn": drawn,
    }


def names(torch: Any, log: list[Any]) -> dict[str, Any]:
    """Return the namespace of the programs."""

    def see(name: str) -> Any:
        return lambda g: log.append([name, rounded(g)])

    def node(name: str) -> Any:
        return lambda given, arrived: log.append(
            [f"node {name}", [rounded(g) for g in given], [rounded(g) for g in arrived]]
        )

    def before(name: str) -> Any:
        return lambda arrived: log.append([f"before {name}", [rounded(g) for g in arrived]])

    def accumulated(name: str) -> Any:
        return lambda leaf: log.append([f"accumulated {name}", rounded(leaf.grad)])

    def many(name: str) -> Any:
        return lambda grads: log.append([f"all {name}", [rounded(g) for g in grads]])

    graph, given = torch.autograd.graph, functions(torch)
    return {
        "torch": torch, "checkpoint": torch.utils.checkpoint.checkpoint, "saving": graph.saved_tensors_hooks, "see": see,
        "node": node, "before": before, "accumulated": accumulated, "many": many, "several": graph.register_multi_grad_hook,
        **given, **parts(torch, given, graph.saved_tensors_hooks, see),
        "t0": torch.tensor([0.5, -0.25], dtype=torch.float64, requires_grad=True),
        "t1": torch.tensor([1.5, 0.75], dtype=torch.float64, requires_grad=True),
    }  # fmt: skip


def run(torch: Any, lines: list[str]) -> dict[str, Any]:
    """Run a program, two backward passes and one of second order, and return what was observed."""
    torch.manual_seed(0)
    log: list[Any] = []
    space = names(torch, log)
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, line in enumerate(lines):
            try:
                exec(line, space)
            except Exception as error:
                found[f"{number}: {line}"] = type(error).__name__
                if " = " in line and "gone" not in line:
                    name = line.rpartition(": ")[2].split(" = ")[0] if line.startswith("with") else line.split(" = ")[0]
                    space[name] = torch.ones(2, dtype=torch.float64)
        tensors = {key: value for key, value in space.items() if key[0] == "t" and key[1:].isdigit()}
        leaves = [space["t0"], space["t1"]]
        for name, sweep in (("one", _backward), ("again", _backward), ("orders", _orders)):
            try:
                found[name] = sweep(torch, tensors, leaves)
            except Exception as error:
                found[name] = type(error).__name__
            log.append(name)
    found["grads"] = {
        key: rounded(each.grad) for key, each in tensors.items() if each is leaves[0] or each is leaves[1]
    }
    found["retained"] = {key: rounded(each.grad) for key, each in tensors.items() if each.retains_grad}
    found["log"] = log
    return found


def _total(torch: Any, tensors: dict[str, Any]) -> Any:
    return sum(((1 + 0.1 * i) * each.sin().sum() for i, each in enumerate(tensors.values())), torch.zeros(()))


def _backward(torch: Any, tensors: dict[str, Any], leaves: list[Any]) -> None:
    _total(torch, tensors).backward(retain_graph=True)


def _orders(torch: Any, tensors: dict[str, Any], leaves: list[Any]) -> Any:
    first = torch.autograd.grad(_total(torch, tensors), leaves, create_graph=True, allow_unused=True)
    again = sum((each.cos().sum() for each in first if each is not None and each.requires_grad), torch.zeros(()))
    second = torch.autograd.grad(again, leaves, allow_unused=True) if again.requires_grad else []
    plain = [0.0, 0.0]
    return [[plain if each is None else rounded(each) for each in some] for some in (first, second)]
