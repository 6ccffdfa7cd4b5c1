"""Benchmarks of compiled functions beside PyTorch's eager ones: pointwise chains, perceptron steps, scientific functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .live import gaussian_process, kepler, least_squares, rosenbrock
from .row import Row, size


def compiled(torch: Any, function: Callable[..., Any], fullgraph: bool = True) -> Callable[..., Any]:
    """Return the function compiled by retrograd; for PyTorch, the function itself."""
    return torch.compile(function, fullgraph=fullgraph) if torch.__name__ == "retrograd" else function


def mixed(torch: Any, x: Any) -> Any:
    """Return seven operations on ``x``, two of them exponentials."""
    return ((x * 2 + 1).tanh() * x).sigmoid() - x.abs()


def gelu(torch: Any, x: Any) -> Any:
    """Return gelu by the formula with tanh."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def normalised(torch: Any, x: Any) -> Any:
    """Return tanh of rows with mean 0 and variance 1 (tanh, because the sum of such rows has no gradient)."""
    rows = x.view(-1, 100)
    centred = rows - rows.mean(1, keepdim=True)
    return (centred * (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()).tanh()


def alone(function: Callable[[Any, Any], Any], count: int) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that calls a function of ``count`` elements, not recorded."""

    def program(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x, run = torch.randn(count), compiled(torch, lambda x: function(torch, x))
        return lambda: run(x)

    return program


def summed(function: Callable[[Any, Any], Any], count: int) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that computes the sum of a function's elements and its backward pass."""

    def program(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.randn(count, requires_grad=True)
        run = compiled(torch, lambda x: function(torch, x).sum())

        def work() -> Any:
            x.grad = None
            total = run(x)
            total.backward()
            return total.detach(), x.grad

        return work

    return program


def perceptron(sizes: tuple[int, int, int], samples: int, whole: bool, kind: str) -> Callable[[Any], Callable[[], Any]]:
    """Return a program of a perceptron's training step; ``whole`` compiles backward pass and optimiser as well as the loss."""

    def program(torch: Any) -> Callable[[], Any]:
        nn = torch.nn
        torch.manual_seed(0)
        first, middle, last = sizes
        model = nn.Sequential(nn.Linear(first, middle), nn.ReLU(), nn.Linear(middle, last))
        x = torch.randn(samples, first)
        y = torch.randn(samples, 1) if last == 1 else torch.randint(0, last, (samples,))
        criterion = nn.MSELoss() if last == 1 else nn.CrossEntropyLoss()
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-3)
        of_loss = (
            (lambda x, y: criterion(model(x), y)) if whole else compiled(torch, lambda x, y: criterion(model(x), y))
        )

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = of_loss(x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = compiled(torch, step, False) if whole else step
        return lambda: (run(x, y), *(each.grad for each in model.parameters()))

    return program


def pure_gradient(function: Callable[[Any, Any], Any], start: list[float]) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that computes a function and its gradient in float64 from an array, as SciPy's optimizers do."""

    def program(torch: Any) -> Callable[[], Any]:
        point = np.array(start)

        def both(point: Any) -> Any:
            x = torch.from_numpy(point).requires_grad_()
            value = function(torch, x)
            (gradient,) = torch.autograd.grad(value, x)
            return value.item(), gradient.numpy()

        if torch.__name__ == "retrograd":
            both = torch.value_and_grad(lambda x: function(torch, x), pure=True)

        def work() -> Any:
            value, gradient = both(point)
            return torch.tensor(value, dtype=torch.float64), torch.from_numpy(gradient)

        return work

    return program


def potential(torch: Any, x: Any) -> Any:
    """Return the output of a small network in float64."""
    for weight in _WEIGHTS[:-1]:
        x = torch.tanh(x @ torch.from_numpy(weight))
    return x @ torch.from_numpy(_WEIGHTS[-1])


_WEIGHTS = [
    np.random.default_rng(seed).standard_normal(shape) * 0.4 for seed, shape in enumerate([(8, 16), (16, 16), (16,)])
]


def pure_hessian(function: Callable[[Any, Any], Any]) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that computes the Hessian of a function of 8 numbers by ``torch.func.hessian``."""

    def program(torch: Any) -> Callable[[], Any]:
        run, x = torch.func.hessian(lambda x: function(torch, x)), torch.linspace(-1, 1, 8, dtype=torch.float64)
        if torch.__name__ == "retrograd":
            run = torch.compile(run, pure=True)
        return lambda: run(x)

    return program


def rows() -> Iterator[Row]:
    """Yield the rows of the group "compile"."""
    for name, function in (
        ("seven operations", mixed),
        ("gelu written out", gelu),
        ("tanh of layer_norm written out", normalised),
    ):
        for count in (1000, 10000, 100000, 1000000):
            yield Row(f"{name}, {size(count)}, forward", alone(function, count), 2)
            yield Row(f"{name}, {size(count)}, and backward", summed(function, count), 2)
    for sizes, samples in (((32, 64, 1), 64), ((784, 128, 10), 64)):
        for kind in ("SGD", "Adam"):
            what = f"perceptron {', '.join(map(str, sizes))} on {samples}, {kind}"
            yield Row(f"{what}, the loss compiled", perceptron(sizes, samples, False, kind), 2, tolerance=1e-3)
            yield Row(f"{what}, the step compiled", perceptron(sizes, samples, True, kind), 2, tolerance=1e-3)
    starts: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
        "Rosenbrock of 8": (rosenbrock, [*np.linspace(-1, 1, 8).tolist()]),
        "least squares, 50 × 3": (least_squares, [1.0] * 3),
        "Kepler, 10 steps": (kepler, [1.0, 0.0, 0.0, 1.1]),
        "Gaussian process of 50 points": (gaussian_process, [-1.0, 0.0, -2.0]),
    }
    for name, (formula, start) in starts.items():
        yield Row(f"{name}, value and gradient, pure", pure_gradient(formula, start), 0.5)
    yield Row("Hessian of Rosenbrock of 8, pure", pure_hessian(rosenbrock), 0.5)
    yield Row("Hessian of a network of 8, 16, 16 and 1, pure", pure_hessian(potential), 0.5)
