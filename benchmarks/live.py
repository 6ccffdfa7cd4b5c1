"""Small operations while a graph is alive, small graphs, small training steps, and small scientific functions.

In a program the result of an operation is rarely dropped before the next one is recorded: the leaves are part of another
graph, and its nodes stay alive. The rows of ``operations`` therefore keep each result until the next one replaces it. The
others are whole small programs. Inputs come from NumPy, so that they are the same on both engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .row import Program, Row

#: Repetitions of an operation in one call of a row.
TIMES = 200


def _data(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _leaf(torch: Any, *shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(_data(*shape, seed=seed)).requires_grad_()


# -- Operations --------------------------------------------------------------------------------------------------------


def _single(operation: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that repeats an operation of two leaves of 3 × 3, and keeps its last result."""

    def program(torch: Any) -> Callable[[], Any]:
        x, y = _leaf(torch, 3, 3), _leaf(torch, 3, 3, seed=1)
        kept: list[Any] = [operation(torch, x, y)]

        def work() -> Any:
            for _ in range(TIMES):
                z = operation(torch, x, y)
            kept[0] = z
            return z

        return work

    return program


OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + y": lambda t, x, y: x + y,
    "x * y": lambda t, x, y: x * y,
    "x @ y": lambda t, x, y: x @ y,
    "x.exp()": lambda t, x, y: x.exp(),
    "x.sum()": lambda t, x, y: x.sum(),
    "x.sum(1)": lambda t, x, y: x.sum(1),
    "x.mean()": lambda t, x, y: x.mean(),
    "x[::2, 1:]": lambda t, x, y: x[::2, 1:],
    "x[1]": lambda t, x, y: x[1],
    "x.reshape(9)": lambda t, x, y: x.reshape(9),
    "x.t()": lambda t, x, y: x.t(),
    "relu(x)": lambda t, x, y: t.relu(x),
    "cat([x, y])": lambda t, x, y: t.cat([x, y]),
    "stack([x, y])": lambda t, x, y: t.stack([x, y]),
    "softmax(x, -1)": lambda t, x, y: t.softmax(x, -1),
    "where(x > 0, x, y)": lambda t, x, y: t.where(x > 0, x, y),
}


def operations() -> Iterator[Row]:
    """Yield the rows of single operations."""
    for name, operation in OPERATIONS.items():
        yield Row(name, _single(operation), 1.0, TIMES)


# -- Graphs ------------------------------------------------------------------------------------------------------------


def polynomial(torch: Any) -> Callable[[], Any]:
    def work() -> Any:
        x = torch.tensor(2.0, requires_grad=True)
        y = 2 * x**4 + x**3 + 3 * x**2 + 5 * x + 1
        y.backward()
        return y.detach(), x.grad

    return work


def wide(torch: Any) -> Callable[[], Any]:
    x = _leaf(torch, 3, 3)

    def work() -> Any:
        y = x * 0.5
        total = x
        for _ in range(1000):
            total = total + y
        return torch.autograd.grad(total.sum(), [x])

    return work


def custom_function(torch: Any) -> Callable[[], Any]:
    class Cube(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x = _leaf(torch, 3, 3)

    def work() -> Any:
        y = x
        for _ in range(20):
            y = Cube.apply(y * 0.5)
        return torch.autograd.grad(y.sum(), x)

    return work


def third_derivative(torch: Any) -> Callable[[], Any]:
    def work() -> Any:
        x = torch.tensor(3.0, requires_grad=True)
        y = x**2 * x.sin()
        for _ in range(3):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
        return y.detach()

    return work


def saved_tensor_hooks(torch: Any) -> Callable[[], Any]:
    x = _leaf(torch, 3, 3)

    def work() -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x
            for _ in range(20):
                y = y * y.tanh()
        return torch.autograd.grad(y.sum(), x)

    return work


def graphs() -> Iterator[Row]:
    """Yield the rows of small graphs, forward and backward."""
    yield Row("a polynomial of a scalar", polynomial, 1.0)
    yield Row("a sum of 1000 branches", wide, 1.0)
    yield Row("20 custom functions", custom_function, 1.0)
    yield Row("a third derivative by create_graph", third_derivative, 1.0)
    yield Row("20 products with saved-tensor hooks", saved_tensor_hooks, 1.0)


# -- Training steps ----------------------------------------------------------------------------------------------------


def _train(torch: Any, model: Any, loss_of: Callable[[], Any], optimizer: Callable[[Any], Any]) -> Callable[[], Any]:
    with torch.no_grad():
        for place, each in enumerate(model.parameters()):
            each.copy_(torch.from_numpy(_data(*each.shape, seed=place, scale=0.05)))
    steps = optimizer(model.parameters())

    def work() -> Any:
        steps.zero_grad()
        loss = loss_of()
        loss.backward()
        steps.step()
        return loss.detach()

    return work


def perceptron(name: str, width: int = 784, **options: Any) -> Program:
    """Return the program of a perceptron with a batch of 64."""

    def program(torch: Any) -> Callable[[], Any]:
        nn = torch.nn
        model = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        x = torch.from_numpy(_data(64, width))
        y = torch.from_numpy(np.random.default_rng(1).integers(0, 10, 64))
        return _train(
            torch, model, lambda: nn.functional.cross_entropy(model(x), y),
            lambda given: getattr(torch.optim, name)(given, **options),
        )  # fmt: skip

    return program


def small_perceptron(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    x, y = torch.from_numpy(_data(32, 2)), torch.from_numpy(_data(32, 1, seed=1))
    return _train(
        torch, model, lambda: nn.functional.mse_loss(model(x), y), lambda given: torch.optim.Adam(given, lr=1e-3)
    )  # fmt: skip


def convolutional(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip
    x = torch.from_numpy(_data(64, 1, 28, 28))
    y = torch.from_numpy(np.random.default_rng(1).integers(0, 10, 64))
    return _train(
        torch, model, lambda: nn.functional.cross_entropy(model(x), y), lambda given: torch.optim.SGD(given, lr=0.01)
    )  # fmt: skip


def recurrent(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    cell = nn.GRUCell(32, 128)
    x = torch.from_numpy(_data(50, 32, 32))

    def loss() -> Any:
        h = torch.zeros(32, 128)
        for t in range(50):
            h = cell(x[t], h)
        return h.pow(2).mean()

    return _train(torch, cell, loss, lambda given: torch.optim.Adam(given, lr=1e-3))


def steps() -> Iterator[Row]:
    """Yield the rows of small training steps."""
    yield Row("perceptron of 784, batch 64, SGD", perceptron("SGD", lr=0.01, momentum=0.9), 1.0, tolerance=1e-3)
    yield Row("perceptron of 784, batch 64, Adam", perceptron("Adam", lr=1e-3), 1.0, tolerance=1e-3)
    yield Row("perceptron of 2, batch 32, Adam", small_perceptron, 1.0, tolerance=1e-3)
    yield Row("two convolutions, batch 64, SGD", convolutional, 1.0, tolerance=1e-3)
    yield Row("GRU cell over 50 steps, Adam", recurrent, 1.0, tolerance=1e-3)


# -- Scientific functions: value and gradient in float64 ---------------------------------------------------------------


def _value_and_grad(function: Callable[[Any, Any], Any], start: Callable[[], Any]) -> Program:
    def program(torch: Any) -> Callable[[], Any]:
        point = start()

        def work() -> Any:
            x = torch.from_numpy(point).requires_grad_()
            value = function(torch, x)
            (gradient,) = torch.autograd.grad(value, x)
            return value.detach(), gradient

        return work

    return program


def rosenbrock(torch: Any, x: Any) -> Any:
    """Return Rosenbrock's function of a vector."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def least_squares(torch: Any, x: Any) -> Any:
    """Return the sum of squared residuals of 50 equations with 3 unknowns."""
    a, b = torch.from_numpy(_A), torch.from_numpy(_B)
    return ((a @ x - b) ** 2).sum()


_A = np.random.default_rng(2).standard_normal((50, 3))
_B = np.random.default_rng(3).standard_normal(50)


def kepler(torch: Any, x: Any) -> Any:
    """Return the energy of a body around a centre after 10 steps of leapfrog; ``x`` is position and velocity."""
    place, speed = x[:2], x[2:]
    for _ in range(10):
        place = place + 0.05 * speed
        speed = speed - 0.1 * place / (place @ place) ** 1.5
        place = place + 0.05 * speed
    return 0.5 * (speed @ speed) - 1 / (place @ place).sqrt()


def gaussian_process(torch: Any, x: Any) -> Any:
    """Return the negative log likelihood of a Gaussian process of 50 points; ``x`` is length, scale and noise, as logs."""
    length, scale, noise = x.exp()
    points, values = torch.from_numpy(_POINTS), torch.from_numpy(np.sin(6 * _POINTS))
    apart = points[:, None] - points[None]
    covariance = scale * torch.exp(-0.5 * (apart / length) ** 2) + (noise + 1e-6) * torch.eye(50, dtype=x.dtype)
    factor = torch.linalg.cholesky(covariance)
    solved = torch.cholesky_solve(values[:, None], factor)
    return 0.5 * (values @ solved[:, 0]) + factor.diagonal().log().sum() + 25 * math.log(2 * math.pi)


_POINTS = np.linspace(0, 1, 50)


def hessian(torch: Any) -> Callable[[], Any]:
    point = np.linspace(-1, 1, 8)

    def work() -> Any:
        return torch.func.hessian(lambda x: rosenbrock(torch, x))(torch.from_numpy(point))

    return work


def science() -> Iterator[Row]:
    """Yield the rows of small scientific functions."""
    yield Row("Rosenbrock of 8", _value_and_grad(rosenbrock, lambda: np.linspace(-1, 1, 8)), 1.0)
    yield Row("least squares, 50 × 3", _value_and_grad(least_squares, lambda: np.ones(3)), 1.0)
    yield Row("Kepler, 10 steps", _value_and_grad(kepler, lambda: np.array([1.0, 0.0, 0.0, 1.1])), 1.0)
    yield Row(
        "Gaussian process of 50 points", _value_and_grad(gaussian_process, lambda: np.array([-1.0, 0.0, -2.0])), 1.0
    )  # fmt: skip
    yield Row("Hessian of Rosenbrock of 8", hessian, 1.0)


def rows() -> Iterator[Row]:
    """Yield all rows."""
    yield from operations()
    yield from graphs()
    yield from steps()
    yield from science()
