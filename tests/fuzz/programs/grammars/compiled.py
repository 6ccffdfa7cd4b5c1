"""Grammar of functions that are compiled and called several times.

Plain functions are straight-line programs of pure operations, so that all of them are deferred. Disturbed functions also
write to tensors, change modes, read elements, draw random numbers, register hooks, raise exceptions and run backward
passes.
"""

from __future__ import annotations

import random

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


PRELUDE = """\
state, numbers, buffer = [], iter(range(1, 99)), torch.zeros(3, 4)
m = torch.randn(4, 4, requires_grad={graded})
layer, box = torch.nn.Linear(4, 4), type('Box', (), {{}})()
"""
CALLS = """
f = compiled(f)
for turn in range({calls}):
    inputs = [torch.randn(3, 4).mul_(1 + turn / 4).requires_grad_(each) for each in {inputs}]
    try:
        outs = f(*inputs)
    except Exception as error:
        log.append(type(error).__name__)
        outs = []
    torch.set_grad_enabled(True)
    log.append([shown(each) for each in outs])
    usable = [each for each in outs if each.requires_grad]
    for some in ([usable[:1], usable[1:]] if {apart} else [usable]):
        try:
            torch.autograd.backward([each.sum() for each in some])
        except RuntimeError as error:
            log.append('backward')
            # Which leaves got gradients before the error depends on the order of independent nodes.
            for each in (*inputs, m):
                each.grad = None
    log.append([shown(each.grad) for each in (*inputs, m)])
    log.append([shown(each) for each in inputs])
"""
RESULTS = """
log.append([shown(each) if isinstance(each, torch.Tensor) else each for each in state])
t0, t1, t2 = inputs
log.append([[each.requires_grad, each.is_leaf, list(each.shape), str(each.dtype)] for each in outs])
t3, t4, t5 = ([each.detach() for each in outs] * 3)[:3] or (None, None, None)
"""


def program(seed: int) -> str:
    """Return the text of program number ``seed``; every second one is disturbed."""
    rng = random.Random(seed)
    inputs = [rng.random() < 0.6 for _ in range(3)]
    calls = CALLS.format(calls=5, inputs=inputs, apart=rng.random() < 0.5)
    return PRELUDE.format(graded=rng.random() < 0.6) + source(seed // 2, seed % 2 == 1) + calls + RESULTS
