"""Random programs that combine hooks, custom functions, checkpoints, in-place operations and saved-tensor hooks."""

from __future__ import annotations

import contextlib
import random
from typing import Any

COUNT = 200


def _square(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square.apply


def _step(torch: Any, draw: random.Random, values: list[Any]) -> Any:
    """Return one step of a program: a function of the values so far. Its choices are made now, not when it runs."""
    a, b = draw.randrange(len(values)), draw.randrange(len(values))
    kind = draw.choice(
        ["mul", "add", "sin", "exp", "square", "div", "where", "view", "sum", "in place", "stack", "matmul"]
    )
    square = _square(torch)
    steps = {
        "mul": lambda v: v[a] * v[b],
        "add": lambda v: v[a] + 2 * v[b],
        "sin": lambda v: v[a].sin(),
        "exp": lambda v: (v[a] / 4).exp(),
        "square": lambda v: square(v[a]) / 4,
        "div": lambda v: v[a] / (v[b] * v[b] + 1),
        "where": lambda v: torch.where(v[a] > 0, v[a], v[b]),
        "view": lambda v: v[a].t().flip(0),
        "sum": lambda v: v[a].sum(0, keepdim=True) / 2 + v[b] * 0.5,
        "in place": lambda v: v[a].clone().mul_(v[b]).add_(1),
        "stack": lambda v: torch.stack([v[a], v[b]]).mean(0),
        "matmul": lambda v: v[a] @ v[b] / 2,
    }
    return steps[kind]


def _hooked(draw: random.Random, log: Any, value: Any, name: str) -> None:
    """Register hooks on a value, or not, by chance."""
    if not value.requires_grad:
        return
    kind = draw.choice(["none", "none", "note", "scale", "retain", "node", "before", "removed"])
    if kind == "note":
        value.register_hook(log.hook(name))
    elif kind == "scale":
        value.register_hook(log.hook(name, lambda grad: grad * 2))
    elif kind == "retain":
        value.retain_grad()
    elif kind == "node" and value.grad_fn is not None:
        value.grad_fn.register_hook(lambda sent, arrived: log.append((name, "sent", [g is not None for g in sent])))
    elif kind == "before" and value.grad_fn is not None:
        value.grad_fn.register_prehook(lambda arrived: log.append((name, "before", len(arrived))))
    elif kind == "removed":
        value.register_hook(log.hook(name)).remove()


def _context(torch: Any, draw: random.Random, log: Any) -> Any:
    """Return a block of saved-tensor hooks, or none, by chance."""
    kind = draw.choice(["none", "lists", "count", "cpu"])
    if kind == "lists":
        return torch.autograd.graph.saved_tensors_hooks(
            lambda t: (t.tolist(), t.dtype), lambda kept: torch.tensor(kept[0], dtype=kept[1])
        )
    if kind == "count":

        def pack(t: Any) -> Any:
            log.append(("pack", list(t.shape)))
            return t

        return torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    return torch.autograd.graph.save_on_cpu() if kind == "cpu" else contextlib.nullcontext()


def _program(seed: int) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        draw = random.Random(seed)
        leaves = [
            torch.tensor([[draw.uniform(-1, 1) for _ in range(2)] for _ in range(2)], dtype=torch.float64)
            for _ in range(3)
        ]
        for leaf in leaves[:2]:
            leaf.requires_grad_()
        leaves[0].register_post_accumulate_grad_hook(log.hook("accumulated"))
        values = list(leaves)
        for number in range(draw.randrange(4, 9)):
            step = _step(torch, draw, values)
            way = draw.choice(["plain", "plain", "checkpoint", "nested", "packed"])
            if way == "checkpoint":
                made = torch.utils.checkpoint.checkpoint(lambda *v, f=step: f(v), *values, use_reentrant=False)
            elif way == "nested":
                inner = lambda *v, f=step: torch.utils.checkpoint.checkpoint(
                    lambda *w: f(w).sin(), *v, use_reentrant=False
                )
                made = torch.utils.checkpoint.checkpoint(inner, *values, use_reentrant=False)
            elif way == "packed":
                with _context(torch, draw, log):
                    made = step(values)
            else:
                made = step(values)
            values.append(made)
            _hooked(draw, log, made, f"v{number}")
        several = [each for each in values if each.requires_grad]
        if draw.random() < 0.5:
            mode = draw.choice(["all", "any"])
            computed = [
                each for each in several if each.grad_fn is not None
            ]  # PyTorch's grad() does not take leaves here
            torch.autograd.graph.register_multi_grad_hook(computed[-3:], log.hook(mode), mode=mode)
        total = sum(each.sum() for each in several[-2:])
        if draw.random() < 0.5:
            asked = draw.sample(several, min(2, len(several)))
            log.append(torch.autograd.grad(total, asked, create_graph=True, allow_unused=True, materialize_grads=True))
        (slope,) = torch.autograd.grad(total, leaves[0], create_graph=True, allow_unused=True)
        if slope is not None and slope.requires_grad and draw.random() < 0.5:
            slope.sum().backward(retain_graph=True)
        total.backward(retain_graph=draw.random() < 0.3)
        return [each.grad for each in leaves[:2]], [each.grad for each in several if each.retains_grad]

    return scenario


SCENARIOS = {f"program {seed}": _program(seed) for seed in range(COUNT)}
