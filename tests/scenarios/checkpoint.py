"""Checkpoints, reentrant and not: number of recomputations, random state, errors, nesting."""

from __future__ import annotations

from typing import Any


def _leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values) or 2.0, requires_grad=True)


def _function(x: Any, y: Any = None) -> Any:
    z = x.sin().exp() * x
    return z if y is None else z * y


def _both(name: str, scenario: Any) -> dict[str, Any]:
    """Return a scenario for each of the two kinds of checkpoints."""

    def told(reentrant: bool) -> Any:
        def run(torch: Any, log: Any) -> Any:
            def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
                return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=reentrant, **kwargs)

            return scenario(torch, log, checkpoint)

        return run

    return {f"{name}{' (reentrant)' if kind else ''}": told(kind) for kind in (False, True)}


def _counted(torch, log, checkpoint):
    def function(x: Any) -> Any:
        log.append("runs")
        return _function(x)

    x = _leaf(torch, 1.0, 2.0)
    y = checkpoint(function, x)
    log.append(y.grad_fn.name())
    y.sum().backward()
    return x.grad


def _grad(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    return torch.autograd.grad(checkpoint(_function, x).sum(), x)


def _with_inputs(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    checkpoint(_function, x).sum().backward(inputs=[x])
    return x.grad


def _without_gradients(torch, log, checkpoint):
    with torch.no_grad():
        log.append(checkpoint(_function, _leaf(torch, 1.0)).requires_grad)
    return checkpoint(_function, torch.ones(2)).requires_grad


def _two_arguments(torch, log, checkpoint):
    x, y = _leaf(torch, 1.0, 2.0), _leaf(torch, 3.0, 4.0)
    checkpoint(_function, x, y).sum().backward()
    return x.grad, y.grad


def _a_named_argument(torch, log, checkpoint):
    x, y = _leaf(torch, 1.0, 2.0), _leaf(torch, 3.0, 4.0)
    checkpoint(_function, x, y=y).sum().backward()
    return x.grad, y.grad


def _drawn(torch, log, checkpoint, **options):
    torch.manual_seed(0)
    x = _leaf(torch, 1.0, 2.0, 3.0, 4.0)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t) * t, x, **options)
    y.sum().backward()
    return y, x.grad, torch.rand(2)


def _drawn_anew(torch, log, checkpoint):
    return _drawn(torch, log, checkpoint, preserve_rng_state=False)


def _nested(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)

    def inner(t: Any) -> Any:
        log.append("inner")
        return t.sin() * t

    def outer(t: Any) -> Any:
        log.append("outer")
        return checkpoint(inner, t.exp()) * t

    checkpoint(outer, x).sum().backward()
    return x.grad


def _nested_thrice(torch, log, checkpoint):
    x, w = _leaf(torch, 0.5, 0.2), _leaf(torch, 0.3, 0.4)

    def third(t: Any) -> Any:
        return t.sin() * w

    def second(t: Any) -> Any:
        return checkpoint(third, t.cos() * w).exp()

    def first(t: Any) -> Any:
        return checkpoint(second, t.exp()) * t * w

    checkpoint(first, x).sum().backward()
    return x.grad, w.grad


def _retained(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    y = checkpoint(_function, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def _freed(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    y = checkpoint(_function, x).sum()
    y.backward()
    y.backward()


def _second_derivative(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    (slope,) = torch.autograd.grad(checkpoint(_function, x).sum(), x, create_graph=True)
    slope.sum().backward()
    return x.grad


def _several_results(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    first, second, third = checkpoint(lambda t: (t.sin(), t * 2, 3), x)
    (first * second).sum().backward()
    return x.grad, third


def _detached(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0)
    checkpoint(lambda t: t.sin().detach(), x).sum().backward()


def _input_modified(torch, log, checkpoint):
    x = _leaf(torch, 1.0, 2.0) * 1
    y = checkpoint(_function, x)
    x.mul_(2)
    y.sum().backward()


def _raises(torch, log, checkpoint):
    checkpoint(lambda t: 1 / 0, _leaf(torch))


def _unknown_argument(torch, log, checkpoint):
    checkpoint(lambda t: t, _leaf(torch), something=1)


SCENARIOS: dict[str, Any] = {}
for _each in (
    _counted, _grad, _with_inputs, _without_gradients, _two_arguments, _a_named_argument, _drawn, _drawn_anew, _nested,
    _nested_thrice, _retained, _freed, _second_derivative, _several_results, _detached, _input_modified, _raises,
):  # fmt: skip
    SCENARIOS |= _both(_each.__name__.strip("_"), _each)


def _in_segments(segments: int) -> Any:
    def scenario(torch: Any, log: Any, checkpoint: Any) -> Any:
        x = _leaf(torch, 0.1, 0.2)
        steps = [torch.sin, torch.exp, torch.cos, torch.sin, torch.cos]
        reentrant = checkpoint(lambda t: t * 1, x).grad_fn.name() == "CheckpointFunctionBackward"
        y = torch.utils.checkpoint.checkpoint_sequential(steps, segments, x, use_reentrant=reentrant)
        y.sum().backward()
        return y, x.grad

    return scenario


for _count in (1, 2, 3, 5):
    SCENARIOS |= _both(f"{_count} segments", _in_segments(_count))


# --- Without reentrance only ----------------------------------------------------------------------------------------


def _checkpoint(torch: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **kwargs)


def _changing(first: Any, second: Any, **options: Any) -> Any:
    """Return a function that computes something else the second time it runs."""

    def scenario(torch: Any, log: Any) -> Any:
        runs: list[int] = []

        def function(x: Any) -> Any:
            runs.append(1)
            return (first if len(runs) == 1 else second)(x)

        x = _leaf(torch, 1.0, 2.0)
        _checkpoint(torch, function, x, **options).sum().backward()
        return x.grad

    return scenario


_LONG, _SHORT = (lambda x: x.sin().cos().exp().sum()), (lambda x: x.sin().cos().sum())
_PART = lambda x: x[:1].sin().sum()
SCENARIOS |= {
    "saves more": _changing(_SHORT, _LONG),
    "saves more, to the end": _changing(_SHORT, _LONG, early_stop=False),
    "saves other shapes": _changing(lambda x: x.sin().sum(), _PART),
    "saves other shapes, unchecked": _changing(lambda x: x.sin().sum(), _PART, determinism_check="none"),
    "saves other dtypes": _changing(lambda x: x.sin().sum(), lambda x: x.double().sin().sum()),
}


def recomputation_saves_fewer_tensors(torch, log):
    try:
        _changing(_LONG, _SHORT)(torch, log)
    except torch.utils.checkpoint.CheckpointError as error:
        return str(error).splitlines()[:3]


class _Context:
    def __init__(self, log: Any, name: str, suppress: bool = False) -> None:
        self.log, self.name, self.suppress = log, name, suppress

    def __enter__(self) -> None:
        self.log.append(f"in {self.name}")

    def __exit__(self, kind: Any, *error: Any) -> bool:
        self.log.append(f"out of {self.name}{' early' if kind is not None else ''}")
        return self.suppress


def context_fn(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = _checkpoint(torch, _function, x, context_fn=lambda: (_Context(log, "first"), _Context(log, "second")))
    log.append("backward")
    y.sum().backward()
    return x.grad


def context_fn_that_suppresses_errors(torch, log):
    def contexts() -> Any:
        return _Context(log, "first", True), _Context(log, "second")

    _checkpoint(torch, lambda x: 1 / 0, _leaf(torch), context_fn=contexts)


def context_fn_with_debug(torch, log):
    def contexts() -> Any:
        return _Context(log, "first"), _Context(log, "second")

    _checkpoint(torch, _function, _leaf(torch), context_fn=contexts, debug=True)


def context_fn_reentrant(torch, log):
    torch.utils.checkpoint.checkpoint(_function, _leaf(torch), use_reentrant=True, context_fn=lambda: (1, 2))


def unknown_arguments(torch, log):
    torch.utils.checkpoint.checkpoint(_function, _leaf(torch), use_reentrant=True, something=2)


def unknown_arguments_in_segments(torch, log):
    torch.utils.checkpoint.checkpoint_sequential([torch.sin], 1, _leaf(torch), use_reentrant=False, something=1)


def unknown_determinism_check(torch, log):
    _checkpoint(torch, _function, _leaf(torch), determinism_check="x")


def use_reentrant_not_given(torch, log):
    return torch.utils.checkpoint.checkpoint(_function, _leaf(torch))


def use_reentrant_not_given_in_segments(torch, log):
    return torch.utils.checkpoint.checkpoint_sequential([torch.sin], 1, _leaf(torch))


def detached_inside(torch, log):
    x = _leaf(torch, 1.0) * 2
    one, two, three = torch.utils.checkpoint.detach_variable((x, torch.ones(1), 3))
    log.append((one.is_leaf, one.requires_grad, two.requires_grad, three))
    torch.utils.checkpoint.detach_variable([1])


def _slope_inside(retain: bool, stop: bool = True) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        def function(t: Any) -> Any:
            y = t.sin()
            z = y.cos()
            (slope,) = torch.autograd.grad(z.sum(), t, retain_graph=retain)
            return t.cos() * slope + (z if retain else 0)

        x = _leaf(torch, 1.0, 2.0)
        with torch.utils.checkpoint.set_checkpoint_early_stop(stop):
            y = _checkpoint(torch, function, x)
        y.sum().backward()
        return x.grad

    return scenario


SCENARIOS |= {
    "a derivative inside": _slope_inside(True),
    "a derivative inside, freed": _slope_inside(False),
    "a derivative inside, to the end": _slope_inside(True, False),
    "a derivative inside, freed, to the end": _slope_inside(False, False),
}


def early_stop(torch, log):
    def function(t: Any) -> Any:
        y = t.sin()
        log.append("after sin")
        return y

    x = _leaf(torch, 1.0, 2.0)
    for stop in (True, False):
        _checkpoint(torch, function, x, early_stop=stop).sum().backward()
        log.append("done")


def custom_functions(torch, log):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = _leaf(torch, 0.1, 0.2)
    _checkpoint(torch, lambda t: Square.apply(t.exp()).sin(), x).sum().backward()
    return x.grad


def in_place(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    _checkpoint(torch, lambda t: t.clone().sin_().mul_(3), x).sum().backward()
    return x.grad


def reading_saved_attributes(torch, log):
    return _checkpoint(torch, lambda t: t.exp(), _leaf(torch, 1.0, 2.0)).grad_fn._saved_result


def inside_saved_tensor_hooks(torch, log):
    def pack(t: Any) -> Any:
        log.append(("pack", t.tolist()))
        return t

    x = _leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = _checkpoint(torch, lambda t: t.exp() * t, x * 2)
        z = y * y
    z.sum().backward()
    return x.grad


def hooks_on_tensors_inside(torch, log):
    def function(t: Any) -> Any:
        y = t.exp()
        if y.requires_grad:
            y.register_hook(log.hook("y"))
        return y * t

    x = _leaf(torch, 1.0, 2.0)
    _checkpoint(torch, function, x).sum().backward()
    return x.grad
