"""Random functions, compiled and in eager mode: equal values, gradients, missing gradients, errors and side effects.

A function is generated as source text. Plain functions are straight-line programs of pure operations, which are called
five times, so that all of them are deferred. Disturbed functions also write to tensors, change modes, read elements,
draw random numbers, register hooks, raise exceptions and run backward passes.

``python -m tests.fuzz.compiled_programs [first seed] [count]`` runs functions of these seeds, and prints those that
differ.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd.compiler import compiled_function, segments

#: Operations on tensors of shape (3, 4), with operands of this shape; ``{}`` is replaced by a variable.
SAME = [
    "{} + {}", "{} * {}", "{} - {}", "{} / ({} * {} + 1)", "{} * 2", "0.5 + {}", "1 - {}", "-{}", "{}.tanh()", "{}.exp().clamp(max=5)",
    "{}.sigmoid() * {}", "torch.relu({})", "{}.abs() + 0.1", "{} ** 2", "({}.abs() + 1) ** 0.5", "torch.where({} > 0, {}, {})",
    "{}.softmax(-1)", "torch.log_softmax({}, 0)", "F.gelu({})", "F.silu({})", "{}.cumsum(1)", "{}.clamp(-1, 1)",
    "torch.maximum({}, {})", "{} @ m", "{}.mean(1, keepdim=True) + {}", "{}.sum(0) * {}", "{} - {}.mean()", "{}.flip(0)",
    "F.layer_norm({}, (4,))", "torch.cat([{}, {}], 1)[:, 2:6]", "torch.stack([{}, {}]).sum(0)", "{}.t().contiguous().t()",
    "{}.reshape(2, 6).reshape(3, 4)", "{}[torch.arange(3)]", "{}.roll(1, 1)", "{}.detach() * {}", "torch.lerp({}, {}, 0.3)",
    "({}.double() * 2).float()", "({} > {}).float() + {}", "F.linear({}, m, {}[0])", "{}.chunk(2, 1)[0].repeat(1, 2) + {}",
    "{}.T.mT", "{}.expand(2, 3, 4)[1]", "{}.unsqueeze(0).squeeze(0)", "{}.half().float()", "{}.masked_fill({} > 0, 0.5)",
    "F.dropout({}, 0.5, False)", "torch.addcmul({}, {}, {}, value=0.5)", "{}.amax(1, keepdim=True) - {}",
]  # fmt: skip
#: Results of other shapes, which the function only returns.
LAST = ["{}.sum()", "{}.mean(0)", "F.mse_loss({}, {})", "{}[1:, ::2]", "{}.t()", "{}.max(1)[0]", "{}.var(1)", "{}.argmax(1)", "{} > 0", "{}.view(-1)",
        "{}.norm()", "{}", "{}.logsumexp(1)", "F.cross_entropy({}, torch.tensor([0, 2, 1]))"]  # fmt: skip
#: Statements that end a segment, or change what later operations do.
DISTURBANCES = [
    "{v}.mul_(1.5)", "{v} += {w}", "{v}[0] = 0.25", "{v}[:, 1:].add_({w}[:, 1:])", "torch.relu_({v})", "{v} = {v}.clone(); {v}.zero_()",
    "state.append({v})", "state.append({v}.sum().item())", "state.append(float({v}[0, 0]) > 0)", "state.append(str({v}.shape))",
    "if {v}.sum() > 0: {w} = {w} * 2", "if {v}.mean() < {w}.mean(): {v} = {w} + 1",
    "with torch.no_grad(): {v} = {v} * 3", "with torch.no_grad(): {w} = {v}.exp().clamp(max=5)", "with torch.inference_mode(): state.append({v} * 2)",
    "with torch.enable_grad(): {v} = {v} * {w}", "torch.set_grad_enabled(False); {v} = {v} + 1; torch.set_grad_enabled(True)",
    "{v} = {v} + torch.rand(3, 4)", "{v} = F.dropout({v}, 0.4)", "{v} = {v} + random.random()", "{v} = {v} * next(numbers)",
    "{v}.register_hook(lambda g: g * 2) if {v}.requires_grad else None", "{v}.retain_grad() if {v}.requires_grad else None; state.append({v})",
    "{v} = {v}.detach().requires_grad_()", "{v} = {v}.data * 1", "state.append(torch.autograd.grad({v}.sum(), {w}, allow_unused=True, retain_graph=True)[0] if {v}.requires_grad and {w}.requires_grad else None)",
    "{v}.square().sum().backward(retain_graph=True) if {v}.requires_grad else None",
    "try: {v} @ {w}\nexcept RuntimeError: {v} = {v} + 1", "try:\n    {v} = {v} * 2\n    raise KeyError\nexcept KeyError: pass",
    "with torch.autocast('cpu'): {v} = ({v} @ m).float()", "with torch.autograd.graph.saved_tensors_hooks(lambda x: x * 1, lambda x: x): {v} = {v}.exp().clamp(max=5)",
    "{v} = checkpoint(lambda x: x.tanh() * m[0], {v}, use_reentrant=False)", "{v} = torch.func.vmap(lambda x: x * 2)({v})",
    "m.data.mul_(1.01)", "m.add_(0.01) if not m.requires_grad else None", "{v} = layer({v})", "{v}.copy_({w}.detach())", "torch.exp({w}.detach(), out=buffer); {v} = {v} + buffer",
    "{v}, {w} = {w}, {v}", "{v} = [{v} + 0, {w}][0]", "box.v = {v}; {w} = box.v + 1", "{v} = torch.as_tensor({v}.detach().numpy()) * 2",
]  # fmt: skip


def indented(text: str) -> list[str]:
    return ["    " + line for line in text.split("\n")]


def recent(choose: random.Random, names: list[str]) -> str:
    """Return one of the names, preferably one of the last four."""
    return choose.choice(names[-4:] if choose.random() < 0.7 else names)


def source(seed: int, disturbed: bool) -> str:
    """Return the source text of a function of three tensors."""
    choose = random.Random(seed)
    names, lines = ["a", "b", "c"], []
    for number in range(choose.randint(2, 14)):
        if disturbed and choose.random() < 0.35:
            v, w = (choose.choice(names[3:] or ["a"]) for _ in range(2))
            if v in "abc":
                continue
            lines += indented(choose.choice(DISTURBANCES).format(v=v, w=w))
            continue
        text = choose.choice(SAME)
        lines.append(f"    v{number} = " + text.format(*[recent(choose, names) for _ in range(text.count("{}"))]))
        names.append(f"v{number}")
    outs = []
    for _ in range(choose.randint(1, 3)):
        text = choose.choice(LAST)
        outs.append(text.format(*[recent(choose, names) for _ in range(text.count("{}"))]))
    return "\n".join(["def f(a, b, c):", *lines, f"    return [{', '.join(outs)}]"])


def session(text: str, seed: int, compile: Callable[[Any], Any], calls: int = 5) -> list[Any]:
    """Run the function ``calls`` times with new tensors, and gradients of some results; return what is observed."""
    torch.manual_seed(seed)
    choose = random.Random(seed + 1)
    graded = [choose.random() < 0.6 for _ in range(4)]
    state: list[Any] = []
    m = torch.randn(4, 4, requires_grad=graded[3])
    space: dict[str, Any] = {
        "torch": torch, "F": torch.nn.functional, "m": m, "state": state, "random": random.Random(seed), "numbers": iter(range(1, 99)),
        "checkpoint": torch.utils.checkpoint.checkpoint, "layer": torch.nn.Linear(4, 4), "buffer": torch.zeros(3, 4),
        "box": type("Box", (), {})(),
    }  # fmt: skip
    exec(text, space)
    function, found = compile(space["f"]), []
    for turn in range(calls):
        inputs = [torch.randn(3, 4).mul_(1 + turn / 4).requires_grad_(each) for each in graded[:3]]
        try:
            outs = function(*inputs)
        except Exception as error:
            found.append([type(error).__name__, str(error).splitlines()[0][:60]])
            outs = []
        torch.set_grad_enabled(True)
        found.append([observed(each) for each in outs])
        usable = [each for each in outs if each.requires_grad]
        rounds = [usable[:1], usable[1:]] if choose.random() < 0.5 else [usable]
        for some in rounds:
            if not some:
                continue
            try:
                torch.autograd.backward([each.sum() for each in some])
            except RuntimeError as error:
                found.append(["backward", str(error).splitlines()[0][:60]])
                # Which leaves got gradients before the error depends on the order of independent nodes.
                for each in (*inputs, m):
                    each.grad = None
        found.append([None if each.grad is None else observed(each.grad, False) for each in (*inputs, m)])
        found.append([observed(each) for each in inputs])
    found.append([observed(each, False) if isinstance(each, torch.Tensor) else each for each in state])
    found.append([None if (not each.is_leaf and not each.retains_grad) or each.grad is None else observed(each.grad, False) for each in state
                  if isinstance(each, torch.Tensor) and not each.is_inference()])  # fmt: skip
    return found


def observed(x: Any, strides: bool = True) -> Any:
    """Return what is compared of a tensor; the strides of a gradient may differ."""
    version = 0 if x.is_inference() else x._version
    return [
        str(x.dtype),
        tuple(x.shape),
        x.stride() if strides else None,
        x.requires_grad,
        x.is_leaf,
        version,
        x.tolist(),
    ]


def same(one: Any, two: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return isinstance(two, (list, tuple)) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (one != one and two != two) or abs(one - two) <= 2e-4 * max(1, abs(one), abs(two))
    return bool(one == two)


def differs(seed: int, disturbed: bool) -> str | None:
    """Return the source text of the function of this seed if its compiled form differs, and what differs."""
    text = source(seed, disturbed)
    expected = session(text, seed, lambda function: function)
    before = compiled_function.FEWEST_STEPS[:], segments.strict
    compiled_function.FEWEST_STEPS[:], segments.strict = [0, 0, 0], True
    try:
        found = session(text, seed, torch.compile)
    finally:
        compiled_function.FEWEST_STEPS[:], segments.strict = before
    if same(found, expected):
        return None
    parts = [
        f"{i}: {one}\n   {two}" for i, (one, two) in enumerate(zip(found, expected, strict=False)) if not same(one, two)
    ]
    return f"seed {seed}, disturbed={disturbed}\n{text}\ncompiled, eager:\n" + "\n".join(
        part[:1500] for part in parts[:2]
    )


def main(first: int = 0, count: int = 1000) -> None:
    bad = 0
    for seed in range(first, first + count):
        for disturbed in (False, True):
            try:
                text = differs(seed, disturbed)
            except Exception as error:
                text = f"seed {seed}, disturbed={disturbed}: {type(error).__name__}: {error}\n{source(seed, disturbed)}"
            if text is not None:
                bad += 1
                print(text, end="\n\n", flush=True)
    print(f"{2 * count} functions, {bad} differ")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
