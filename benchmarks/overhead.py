"""Single operations, tutorials' graphs and chains on tensors of 8 float32, where all time is overhead.

A row's work is measured per operation of it; what is asked is said row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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


def everyday(call: str) -> Callable[[Any], Callable[[], Any]]:
    """One call, written as in a program, on tensors of 8 or 8 x 8 elements."""

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


#: Recorded where x or w stand in them.
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
    "layer(m)", "Normal(y, y)",
)  # fmt: skip


#: name: (work, operations in it, the ratio asked for)
ROWS: dict[str, tuple[Callable[[Any], Callable[[], Any]], int, float]] = {
    "x * y, recorded": (recorded_mul, 1, 1.5),
    "x + 2.0, recorded": (recorded_add_number, 1, 1.5),
    "tanh, recorded": (recorded_tanh, 1, 1.5),
    "sum, recorded": (recorded_sum, 1, 1.5),
    "x[3], recorded": (recorded_index, 1, 1.5),
    "x @ w, recorded": (recorded_matmul, 1, 1.5),
    "x * y, not recorded": (unrecorded_mul, 1, 1.5),
    "chain of 1000, forward + backward": (chain, 1000, 2.0),
    "polynomial of a tutorial": (polynomial, 1, 2.0),
    "mean of 3 (x + 2)^2": (mean_of_square, 1, 2.0),
    "third derivative of x^2": (third_derivative, 1, 2.0),
    "chain of 200 with create_graph": (create_graph, 200, 1.0),
    "step of gradient descent": (gradient_descent, 1, 1.5),
    **{f"everyday: {call}": (everyday(call), 1, 1.0) for call in EVERYDAY},
}
