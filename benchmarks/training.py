"""Benchmarks of training steps: forward, backward and optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from .row import Row


def stepped(torch: Any, model: Any, loss: Callable[[], Any], optimizer: Any) -> Callable[[], Any]:
    """Return the work of one training step, which returns the loss and the gradients of the first three parameters."""
    first = list(model.parameters())[:3]

    def work() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach(), *(each.grad for each in first)

    return work


def mlp(torch: Any) -> Callable[[], Any]:
    """Training step of a perceptron with layers of 784, 128 and 10, on 64 samples, with Adam."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return stepped(torch, model, lambda: nn.functional.cross_entropy(model(x), y), optimizer)


def wide_mlp(torch: Any) -> Callable[[], Any]:
    """Training step of a perceptron with layers of 512, 1024, 1024 and 10, on 256 samples, SGD with momentum."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Dropout(0.0), nn.Linear(1024, 10)
    )
    x, y = torch.randn(256, 512), torch.randint(0, 10, (256,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return stepped(torch, model, lambda: nn.functional.cross_entropy(model(x), y), optimizer)


def cnn(torch: Any) -> Callable[[], Any]:
    """Two convolutions, two poolings and two linear layers on 32 digits, SGD."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    x, y = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    return stepped(torch, model, lambda: nn.functional.cross_entropy(model(x), y), optimizer)


def gru_loop(torch: Any) -> Callable[[], Any]:
    """Training step of a GRU as a loop of cells over 32 steps of 32 sequences, hidden size 64, with Adam."""
    nn = torch.nn
    torch.manual_seed(0)
    cell, head = nn.GRUCell(16, 64), nn.Linear(64, 16)
    model = nn.ModuleList([cell, head])
    x, y = torch.randn(32, 32, 16), torch.randn(32, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss() -> Any:
        hidden = torch.zeros(32, 64)
        for step in range(32):
            hidden = cell(x[step], hidden)
        return ((head(hidden) - y) ** 2).mean()

    return stepped(torch, model, loss, optimizer)


def gru(torch: Any) -> Callable[[], Any]:
    """Training step of ``nn.GRU`` with two layers on the same data."""
    nn = torch.nn
    torch.manual_seed(0)
    layer, head = nn.GRU(16, 64, num_layers=2), nn.Linear(64, 16)
    model = nn.ModuleList([layer, head])
    x, y = torch.randn(32, 32, 16), torch.randn(32, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return stepped(torch, model, lambda: ((head(layer(x)[0][-1]) - y) ** 2).mean(), optimizer)


def char_gpt(torch: Any) -> Callable[[], Any]:
    """Training step of a character transformer: 2 layers, 4 heads, 128 channels, 8 texts of 64 characters, AdamW."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(128), nn.LayerNorm(128)
            self.attend, self.project = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            q, k, v = self.attend(self.before(x)).split(width, dim=2)
            q, k, v = (each.view(batch, length, 4, 32).transpose(1, 2) for each in (q, k, v))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.down(F.gelu(self.up(self.after(x))))

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(Block(), Block())
            self.last, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, text: Any) -> Any:
            x = self.tokens(text) + self.places(torch.arange(text.shape[1]))
            return self.head(self.last(self.blocks(x)))

    torch.manual_seed(0)
    model = Model()
    text = torch.randint(0, 65, (8, 65))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    x, y = text[:, :-1], text[:, 1:].reshape(-1)
    return stepped(torch, model, lambda: F.cross_entropy(model(x).view(-1, 65), y), optimizer)


def logistic(torch: Any) -> Callable[[], Any]:
    """Logistic regression on 1000 samples of 20, written with tensors alone."""
    torch.manual_seed(0)
    x, y = torch.randn(1000, 20), (torch.rand(1000) > 0.5).float()
    w, b = torch.zeros(20, requires_grad=True), torch.zeros(1, requires_grad=True)

    def work() -> Any:
        p = torch.sigmoid(x @ w + b)
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
        w.grad = b.grad = None
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
            b.sub_(0.1 * b.grad)
        return loss.detach(), w.grad, b.grad

    return work


def factorisation(torch: Any) -> Callable[[], Any]:
    """Training step that fits a 2000 × 1000 matrix of rank 16 to 10000 of its elements, with Adam."""
    nn = torch.nn
    torch.manual_seed(0)
    rows, columns = nn.Embedding(2000, 16), nn.Embedding(1000, 16)
    model = nn.ModuleList([rows, columns])
    i, j, y = torch.randint(0, 2000, (10000,)), torch.randint(0, 1000, (10000,)), torch.randn(10000)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return stepped(torch, model, lambda: (((rows(i) * columns(j)).sum(1) - y) ** 2).mean(), optimizer)


def mlp_of_tensors(torch: Any) -> Callable[[], Any]:
    """Perceptron of 64, 32 and 1 on 32 samples without modules; ``mlp_by_hand`` is the same step in NumPy."""
    torch.manual_seed(0)
    x, y = torch.randn(32, 64), torch.randn(32, 1)
    v, w = torch.randn(64, 32) / 8, torch.randn(32, 1) / 6
    v.requires_grad_()
    w.requires_grad_()

    def work() -> Any:
        loss = ((torch.tanh(x @ v) @ w - y) ** 2).mean()
        v.grad = w.grad = None
        loss.backward()
        with torch.no_grad():
            v.sub_(0.01 * v.grad)
            w.sub_(0.01 * w.grad)
        return loss.detach(), v.grad, w.grad

    return work


def mlp_by_hand() -> Callable[[], Any]:
    """The step of ``mlp_of_tensors`` in NumPy, with explicit gradients."""
    draw = numpy.random.default_rng(0)
    x, y = draw.normal(size=(32, 64)).astype("f"), draw.normal(size=(32, 1)).astype("f")
    v, w = draw.normal(size=(64, 32)).astype("f") / 8, draw.normal(size=(32, 1)).astype("f") / 6

    def work() -> Any:
        hidden = numpy.tanh(x @ v)
        gap = hidden @ w - y
        loss = (gap * gap).mean()
        slope = gap * numpy.float32(2 / 32)
        w_grad = hidden.T @ slope
        v_grad = x.T @ ((slope @ w.T) * (1 - hidden * hidden))
        v.__isub__(numpy.float32(0.01) * v_grad)
        w.__isub__(numpy.float32(0.01) * w_grad)
        return loss

    return work


def optimised(name: str, **options: Any) -> Callable[[Any], Callable[[], Any]]:
    """Step of an optimiser alone: 10 parameters of 10⁵ elements."""

    def program(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        parameters = [torch.randn(100_000, requires_grad=True) for _ in range(10)]
        for each in parameters:
            each.grad = torch.randn(100_000)
        optimizer = getattr(torch.optim, name)(parameters, lr=1e-3, **options)

        def work() -> Any:
            optimizer.step()
            return parameters[0].detach()

        return work

    return program


STEPS = {
    "perceptron 784, 128, 10 on 64 samples, Adam": mlp,
    "perceptron 512, 1024, 1024, 10 on 256, SGD": wide_mlp,
    "convolutions on 32 digits, SGD": cnn,
    "GRU cells in a loop, 32 steps of 32, Adam": gru_loop,
    "GRU of two layers, 32 steps of 32, Adam": gru,
    "transformer for characters, 8 × 64, AdamW": char_gpt,
    "logistic regression on 1000 × 20": logistic,
    "factorisation of 2000 × 1000, rank 16, Adam": factorisation,
}


def rows() -> Iterator[Row]:
    """Yield the rows of the group "training"."""
    for name, program in STEPS.items():
        yield Row(name, program, 1.0, tolerance=2e-3)
    yield Row("step of SGD with momentum, 10 × 10⁵", optimised("SGD", momentum=0.9), 1.0)
    yield Row("step of Adam, 10 × 10⁵", optimised("Adam"), 1.0)
    yield Row("step of AdamW, 10 × 10⁵", optimised("AdamW"), 1.0)
    yield Row("step of RMSprop, 10 × 10⁵", optimised("RMSprop"), 1.0)
