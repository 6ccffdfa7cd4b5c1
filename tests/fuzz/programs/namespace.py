"""Names that programs use: custom functions, checkpointed functions, hooks that write to the log, copies."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import random
from typing import Any


def rounded(x: Any) -> Any:
    """Return the elements of a tensor as a nested list; None stays None."""
    if x is None:
        return None
    x = x.detach().resolve_conj().clone()
    return [x.real.tolist(), x.imag.tolist()] if x.is_complex() else x.tolist()


def custom_functions(torch: Any) -> dict[str, Any]:
    """Return custom functions."""
    base, once = torch.autograd.Function, torch.autograd.function.once_differentiable

    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    def cube_backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    def product(x: Any, y: Any) -> Any:
        return x * y

    def product_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def product_backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None

    def two(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y * 0.1, x * 3

    def two_backward(ctx: Any, g: Any, h: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y * 0.1 + h * 3

    def half(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(0.5)

    def stingy(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        indices = x.argmax().reshape(1)
        ctx.mark_non_differentiable(indices)
        return x * 4, indices

    def made(name: str, forward: Any, backward: Any, **more: Any) -> Any:
        body = {"forward": forward, "backward": backward, **more}
        return type(name, (base,), {key: staticmethod(value) for key, value in body.items()})

    return {
        "Cube": made("Cube", cube, cube_backward), "Two": made("Two", two, two_backward),
        "Product": made("Product", product, product_backward, setup_context=product_context),
        "Half": made("Half", half, lambda ctx, g: g * 0.5),
        "Straight": made("Straight", lambda ctx, x: x.round(), once(lambda ctx, g: g * 1)),
        "Stingy": made("Stingy", stingy, lambda ctx, g, h: None if g is None else g * 4),
        "Same": made("Same", lambda ctx, x: x, lambda ctx, g: g * 2),
        "View": made("View", lambda ctx, x: x.view(x.shape), lambda ctx, g: g * 3),
    }  # fmt: skip


def checkpointed_functions(torch: Any, custom: dict[str, Any], see: Any) -> dict[str, Any]:
    """Return functions of two tensors that programs checkpoint."""
    checkpoint, saving = torch.utils.checkpoint.checkpoint, torch.autograd.graph.saved_tensors_hooks

    def plain(x: Any, y: Any) -> Any:
        return x.sin() * y.exp() * 0.1

    def deep(x: Any, y: Any) -> Any:
        for _ in range(3):
            x = torch.tanh(x + y)
        return x * x

    def own(x: Any, y: Any) -> Any:
        return custom["Product"].apply(custom["Cube"].apply(x), y)

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
        return x * torch.rand(x.shape, dtype=torch.float64) + y.sin()

    return {each.__name__: each for each in (plain, deep, own, hooked, packed, nested, drawn)}


def program_namespace(torch: Any, log: list[Any], compiler: Any = None) -> dict[str, Any]:
    """Return the namespace of a program, whose hooks write to ``log``; ``compiler`` is the function ``compiled``."""
    graph = torch.autograd.graph

    def see(name: str) -> Any:
        return lambda g: log.append([name, rounded(g)])

    def node(name: str) -> Any:
        return lambda given, arrived: log.append([f"node {name}", [*map(rounded, given)], [*map(rounded, arrived)]])

    def before(name: str) -> Any:
        return lambda arrived: log.append([f"before {name}", [*map(rounded, arrived)]])

    def accumulated(name: str) -> Any:
        return lambda leaf: log.append([f"accumulated {name}", rounded(leaf.grad)])

    def many(name: str) -> Any:
        return lambda grads: log.append([f"all {name}", [*map(rounded, grads)]])

    def saved_and_loaded(x: Any) -> Any:
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        return torch.load(file, weights_only=True)

    def large(x: Any) -> Any:
        if not x.dim() or not x.numel():
            return x
        return x.detach().repeat(40000 // x.numel(), *[1] * (x.dim() - 1)).requires_grad_(x.requires_grad)

    custom = custom_functions(torch)
    return {
        "torch": torch, "F": torch.nn.functional, "fwAD": torch.autograd.forward_ad, "random": random.Random(0),
        "checkpoint": torch.utils.checkpoint.checkpoint, "saving": graph.saved_tensors_hooks, "see": see, "node": node,
        "before": before, "accumulated": accumulated, "many": many, "several": graph.register_multi_grad_hook,
        "deepcopy": copy.deepcopy, "copied": copy.copy, "pickled": lambda x: pickle.loads(pickle.dumps(x)),
        "compiled": compiler or (lambda function: function), "saved": saved_and_loaded,
        "contextlib": contextlib, "large": large, "log": log, "shown": rounded,
        **custom, **checkpointed_functions(torch, custom, see),
    }  # fmt: skip
