"""Benchmarks of overhead: single operations, graphs, hooks and custom functions on tensors of 8 float32.

Times are per operation of a row. Each row has its own target ratio.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

from .row import Program, Row


def recorded_mul(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)
    return lambda: x * y


def recorded_add_number(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x + 2.0


def recorded_tanh(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x.tanh()


def recorded_sum(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: x.sum()


def recorded_index(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, 8, requires_grad=True)
    return lambda: x[3]


def recorded_matmul(torch: Any) -> Callable[[], Any]:
    x, w = torch.ones(4, 8), torch.ones(8, 8, requires_grad=True)
    return lambda: x @ w


def unrecorded_mul(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8), torch.ones(8)
    return lambda: x * y


def chain(torch: Any) -> Callable[[], Any]:
    x, y, g = torch.ones(8, requires_grad=True), torch.ones(8), torch.ones(8)

    def run() -> None:
        z = x
        for _ in range(500):
            z = z * y
            z = z + y
        z.backward(g)
        x.grad = None

    return run


def polynomial(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.tensor(2.0, requires_grad=True)
        y = 2 * x**4 + x**3 + 3 * x**2 + 5 * x + 1
        y.backward()
        return x.grad

    return run


def mean_of_square(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.ones(2, 2, requires_grad=True)
        y = x + 2
        z = y * y * 3
        out = z.mean()
        out.backward()
        return x.grad

    return run


def third_derivative(torch: Any) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.tensor(3.0, requires_grad=True)
        y = x**2
        d1 = torch.autograd.grad((y,), (x,), create_graph=True)
        d2 = torch.autograd.grad(d1, (x,), create_graph=True)
        return torch.autograd.grad(d2, (x,))

    return run


def create_graph(torch: Any) -> Callable[[], Any]:
    x, y, g = torch.ones(8, requires_grad=True), torch.ones(8), torch.ones(8)

    def run() -> Any:
        z = x
        for _ in range(100):
            z = (z * y).tanh()
        return torch.autograd.grad(z, x, g, create_graph=True)

    return run


def gradient_descent(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    x, t = torch.randn(16, 4), torch.randn(16, 1)
    w, b = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)

    def run() -> None:
        loss = ((x @ w + b - t) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
            b.sub_(0.01 * b.grad)
        w.grad.zero_()
        b.grad.zero_()

    return run


def and_backward(program: Callable[[Any], Callable[[], Any]]) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that records another program's result and runs its backward pass with a gradient of ones."""

    def make(torch: Any) -> Callable[[], Any]:
        work = program(torch)
        seed = torch.ones_like(work()).detach()
        return lambda: work().backward(seed)

    return make


def deep(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> None:
        z = x
        for _ in range(100_000):
            z = z * y
        z.backward(y)
        x.grad = None

    return run


def wide(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> Any:
        z = y
        for _ in range(300):
            z = z + x * y
        x.grad = None
        z.backward(y)
        return x.grad

    return run


def many_leaves(torch: Any) -> Callable[[], Any]:
    leaves, y = [torch.ones(8, requires_grad=True) for _ in range(300)], torch.ones(8)

    def run() -> Any:
        z = y
        for leaf in leaves:
            z = z + leaf * y
        z.backward(y)
        for leaf in leaves:
            leaf.grad = None

    return run


def ladder(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> Any:
        a = b = x
        for _ in range(300):
            a, b = a * y, a + b
        x.grad = None
        a.backward(y)
        return x.grad

    return run


def gradient_of_norm(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    w, x = torch.randn(4, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)

    def run() -> Any:
        (dx,) = torch.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
        w.grad = None
        dx.pow(2).sum().backward(inputs=[w])
        return w.grad

    return run


def grad_by_leaf(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)
    return lambda: torch.autograd.grad((x * x).sum(), x)


def grad_by_leaves(torch: Any) -> Callable[[], Any]:
    leaves = [torch.ones(8, requires_grad=True) for _ in range(20)]

    def run() -> Any:
        z = leaves[0]
        for leaf in leaves:
            z = z * leaf
        return torch.autograd.grad(z.sum(), leaves)

    return run


def grad_by_inner(torch: Any) -> Callable[[], Any]:
    x = torch.ones(8, requires_grad=True)

    def run() -> Any:
        y = x.exp()
        return torch.autograd.grad((y * y).sum(), (x, y))

    return run


def marked(mark: Callable[[Any], Any]) -> Callable[[Any], Callable[[], Any]]:
    """Return a chain with an action on each of its tensors."""

    def make(torch: Any) -> Callable[[], Any]:
        x, y = torch.ones(8, requires_grad=True), torch.ones(8)

        def run() -> Any:
            z = x
            for _ in range(200):
                z = z * y
                mark(z)
            x.grad = None
            z.backward(y)
            return x.grad

        return run

    return make


def accumulated(torch: Any) -> Callable[[], Any]:
    leaves, y = [torch.ones(8, requires_grad=True) for _ in range(20)], torch.ones(8)

    def step(leaf: Any) -> None:
        leaf.grad = None

    for leaf in leaves:
        leaf.register_post_accumulate_grad_hook(step)

    def run() -> Any:
        z = y
        for leaf in leaves:
            z = z * leaf
        z.backward(y)

    return run


def own_function(torch: Any) -> Callable[[], Any]:
    class Square(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> Any:
        z = x
        for _ in range(100):
            z = Square.apply(z)
        x.grad = None
        z.backward(y)
        return z.detach()

    return run


def saved_through_hooks(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda each: each, lambda each: each):
            z = x
            for _ in range(50):
                z = z * z
        x.grad = None
        z.backward(y)
        return z.detach()

    return run


def after_interception(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)
    for _ in range(50):
        with torch.overrides.BaseTorchFunctionMode():
            x * y
    own: Any = type("Own", (torch.Tensor,), {})
    y.as_subclass(own) * x
    del own
    gc.collect()
    with torch.profiler.profile(), torch.autocast("cpu"):
        x * y
    return lambda: x * y


def handled(enter: Callable[[Any], Any], call: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that calls ``call(torch, x, y)`` 1000 times inside the context manager ``enter(torch)``."""

    def program(torch: Any) -> Callable[[], Any]:
        x, y = torch.ones(8, 8), torch.ones(8, 8)

        def run() -> Any:
            with enter(torch):
                for _ in range(1000):
                    out = call(torch, x, y)
            return out.float()

        return run

    return program


def mode(torch: Any) -> Any:
    return torch.overrides.BaseTorchFunctionMode()


def half(torch: Any) -> Any:
    return torch.autocast("cpu")


def profiled(torch: Any) -> Any:
    return torch.profiler.profile()


def added_to_subclass(torch: Any) -> Callable[[], Any]:
    own: Any = type("Own", (torch.Tensor,), {})
    x, y = torch.ones(8).as_subclass(own), torch.ones(8)
    return lambda: torch.add(x, y)


def everyday(call: str) -> Callable[[Any], Callable[[], Any]]:
    """Return a program of one call on tensors of 8 or 8 x 8 elements."""

    def make(torch: Any) -> Callable[[], Any]:
        names = {
            "torch": torch, "F": torch.nn.functional, "x": torch.ones(8, requires_grad=True), "y": torch.ones(8),
            "w": torch.ones(8, 8, requires_grad=True), "m": torch.arange(64.0).view(8, 8), "i": torch.arange(8),
            "places": torch.zeros(8, 8, dtype=torch.int64), "b": torch.ones(8) > 0, "image": torch.ones(1, 3, 8, 8),
            "kernel": torch.ones(4, 3, 3, 3, requires_grad=True), "layer": torch.nn.Linear(8, 8),
            "Normal": torch.distributions.Normal,
        }  # fmt: skip
        work: Callable[[], Any] = eval(f"lambda: {call}", names)
        return work

    return make


#: Calls; those with ``x`` or ``w`` are recorded.
EVERYDAY = (
    "w.sum(1)", "w.sum(dim=0, keepdim=True)", "i.sum()", "w.mean(1)", "w.max()", "w.max(1)", "w.amax(1)",
    "w.argmax(1)", "b.any()", "x.std()", "w.var(1)", "x.norm()", "x.cumsum(0)", "m.sort(1)", "m.topk(2)",
    "torch.logsumexp(w, 1)", "F.softmax(w, 1)", "F.log_softmax(w, 1)", "F.cross_entropy(w, i)", "F.mse_loss(x, y)",
    "F.linear(m, w, y)", "F.relu(x)", "F.dropout(x)", "F.layer_norm(w, (8,), y, y)", "F.embedding(i, w)", "w @ y",
    "torch.bmm(m[None], w[None])", "torch.einsum('ij,jk->ik', m, w)", "x.clamp(min=0)", "torch.where(b, x, y)",
    "m.gather(1, places)", "torch.index_select(w, 0, i)", "i.float()", "x.to(torch.float64)", "torch.randn(8)",
    "torch.rand(8)", "torch.randint(0, 10, (8,))", "y.normal_()", "torch.zeros(8)", "torch.ones(8, 8)", "torch.arange(8)",
    "torch.tensor([1.0, 2.0])", "m.view(-1)", "m.reshape(4, 16)", "m.t()", "m.permute(1, 0)", "x.unsqueeze(0)", "m[:, 1]",
    "x.exp()", "x ** 2", "x > 0", "x.masked_fill(b, 0.0)", "torch.cat([x, y])", "torch.stack([x, y])", "y.sum().item()",
    "(i == i).sum()", "w.std(1)", "F.gelu(x)", "F.nll_loss(w, i)", "F.conv2d(image, kernel)", "F.max_pool2d(image, 2)",
    "layer(m)", "Normal(y, y)", "F.softmax(w, -1)", "w.max(dim=1, keepdim=True)", "torch.sigmoid(x)", "torch.sin(x)",
    "torch.zeros(8, requires_grad=True)", "torch.zeros_like(y)", "torch.linspace(0, 1, 8)", "torch.eye(8)",
    "torch.randperm(8)", "torch.bernoulli(y)", "torch.multinomial(y, 2)", "torch.full((8,), 2.0)", "m.expand(2, 8, 8)",
    "m.transpose(0, 1)", "m.flatten()", "m.chunk(2, 1)", "m.contiguous()", "torch.tril(m)", "torch.diag(y)", "torch.roll(y, 1)",
    "torch.meshgrid(y, y, indexing='ij')", "m.scatter(1, places, m)", "F.one_hot(i)", "torch.outer(x, y)", "y.float()",
    "y.clone()", "y.detach()", "y.zero_()", "y.add_(1)", "y.copy_(x.detach())", "y.tolist()", "y.size(0)", "y.shape",
    "torch.from_numpy(y.numpy())", "torch.allclose(y, y)",
)  # fmt: skip


def rows() -> Iterator[Row]:
    """Yield single operations, recorded and with a backward pass, and first-order graphs."""
    for name, program in {
        "x * y": recorded_mul, "x + 2.0": recorded_add_number, "tanh": recorded_tanh, "sum": recorded_sum,
        "x[3]": recorded_index, "x @ w": recorded_matmul,
    }.items():  # fmt: skip
        yield Row(f"{name}, recorded", program, 1.5)
        yield Row(f"{name}, and backward", and_backward(program), 1.5)
    yield Row("x * y, not recorded", unrecorded_mul, 1.5)
    yield Row("polynomial of a tutorial", polynomial, 2.0)
    yield Row("mean of 3 (x + 2)^2", mean_of_square, 2.0)
    yield Row("step of gradient descent", gradient_descent, 1.5)
    yield Row("chain of 1000, and backward", chain, 2.0, 1000)
    yield Row("chain of 10⁵, and backward", deep, 1.5, 100_000)
    yield Row("sum of 300 branches of a leaf, and backward", wide, 1.5, 600)
    yield Row("300 leaves, and backward", many_leaves, 1.5, 600)
    yield Row("ladder of 300 rungs, and backward", ladder, 1.5, 600)


def again() -> Iterator[Row]:
    """Yield recorded backward passes, hooks, custom functions, and ``autograd.grad``."""
    yield Row("third derivative of x^2", third_derivative, 1.0)
    yield Row("chain of 200 with create_graph", create_graph, 1.0, 200)
    yield Row("gradient of a gradient's norm", gradient_of_norm, 1.0)
    yield Row("autograd.grad by a leaf", grad_by_leaf, 1.0)
    yield Row("autograd.grad by 20 leaves", grad_by_leaves, 1.0)
    yield Row("autograd.grad by what is inside", grad_by_inner, 1.0)
    yield Row("chain of 200, each with a hook", marked(lambda z: z.register_hook(lambda grad: None)), 1.0, 200)
    yield Row("chain of 200, each gradient retained", marked(lambda z: z.retain_grad()), 1.0, 200)
    yield Row("a hook after accumulation on 20 leaves", accumulated, 1.0)
    yield Row("chain of 100 of a function of one's own", own_function, 1.0, 100)
    yield Row("chain of 50 saved through hooks", saved_through_hooks, 1.0, 50)
    yield Row("x * y after modes, a subclass and a profiler have gone", after_interception, 1.5)
    yield Row("x * y inside a mode", handled(mode, lambda torch, x, y: x * y), 1.5, 1000)
    yield Row("torch.add(x, y) inside a mode", handled(mode, lambda torch, x, y: torch.add(x, y)), 1.5, 1000)
    yield Row("torch.add(x, y) of a subclass", added_to_subclass, 1.5)
    yield Row("torch.mm(x, y) inside autocast", handled(half, lambda torch, x, y: torch.mm(x, y)), 4.0, 1000)
    yield Row("x * y inside a profiler", handled(profiled, lambda torch, x, y: x * y), 1.5, 1000)


def calls() -> Iterator[Row]:
    """Yield single calls as programs write them."""
    for call in EVERYDAY:
        yield Row(call, everyday(call), 1.0)
