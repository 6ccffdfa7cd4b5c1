"""Benchmarks beside other autodiff libraries, if installed: JAX (jit), autograd, tinygrad (TinyJit).

    python -m benchmarks.peers       prints the table, and writes it to benchmarks/results/peers.md

All libraries compute the same formulas from the same data, each in its own process, in turn. A time is that of a loss
and all its gradients. Libraries that can compile do so before the measurement. "pure" is retrograd.value_and_grad with
the promise that the formula is pure, on NumPy arrays.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy

from . import page, trees
from .engine import Engine, serve
from .measure import Process

TITLE = "Comparison with other libraries"
ROUNDS = 7
THREADS = 2
#: Required module of each library, by the library's name in the table.
PEERS = {
    "retrograd": "retrograd", "compiled": "retrograd", "pure": "retrograd", "PyTorch": "torch", "JAX, jit": "jax",
    "autograd": "autograd", "tinygrad": "tinygrad",
}  # fmt: skip


# -- Formulas: ``m`` has the functions that the libraries name differently ---------------------------------------------


def tutorial(m: Any, x: Any) -> Any:
    """Return the mean of 3 (x + 2)²."""
    return (3 * (x + 2) ** 2).mean()


def mixed(m: Any, x: Any) -> Any:
    """Return the sum of seven operations, two of them exponentials."""
    return (m.sigmoid(m.tanh(x * 2 + 1) * x) - m.abs(x)).sum()


def fit(m: Any, a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    """Return the mean squared error of a perceptron with one hidden layer."""
    return ((m.relu(x @ a + b) @ c + d - y) ** 2).mean()


def classify(m: Any, a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    """Return the cross-entropy of a perceptron with one hidden layer; ``y`` is the one-hot target."""
    scores = m.relu(x @ a + b) @ c + d
    return (m.logsumexp(scores) - (scores * y).sum(1)).mean()


def rosenbrock(m: Any, x: Any) -> Any:
    """Return Rosenbrock's function of a vector."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def kepler(m: Any, x: Any) -> Any:
    """Return the energy of a body around a centre after 10 steps of leapfrog; ``x`` is position and velocity."""
    place, speed = x[:2], x[2:]
    for _ in range(10):
        place = place + 0.05 * speed
        speed = speed - 0.1 * place / (place * place).sum() ** 1.5
        place = place + 0.05 * speed
    return 0.5 * (speed * speed).sum() - 1 / (place * place).sum() ** 0.5


def _network(first: int, middle: int, last: int) -> list[Any]:
    draw = numpy.random.RandomState(0)
    sizes = ((first, middle), (middle,), (middle, last), (last,))
    weights = [draw.randn(*size) / size[0] ** 0.5 for size in sizes]
    wanted = draw.randn(64, 1) if last == 1 else numpy.eye(last)[draw.randint(0, last, 64)]
    return [*weights, draw.randn(64, first), wanted]


#: name: (formula, its arguments, number of arguments by which it is differentiated)
WORKS: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]], int]] = {
    "mean of 3 (x + 2)², 2 × 2": (tutorial, lambda: [numpy.ones((2, 2))], 1),
    "Rosenbrock's function of 8": (rosenbrock, lambda: [numpy.linspace(-1, 1, 8)], 1),
    "Kepler's problem, 10 steps": (kepler, lambda: [numpy.array([1.0, 0.0, 0.0, 1.1])], 1),
    "seven operations, 10³": (mixed, lambda: [numpy.random.RandomState(0).randn(1000)], 1),
    "seven operations, 10⁶": (mixed, lambda: [numpy.random.RandomState(0).randn(1000000)], 1),
    "perceptron 32, 64, 1 on 64": (fit, lambda: _network(32, 64, 1), 4),
    "perceptron 784, 128, 10 on 64": (classify, lambda: _network(784, 128, 10), 4),
}


# -- Loss and gradients in each library --------------------------------------------------------------------------------


def _of_torch(
    torch: Any, formula: Callable[..., Any], given: list[Any], count: int, compiled: bool
) -> Callable[[], Any]:
    m = SimpleNamespace(
        sigmoid=torch.sigmoid,
        tanh=torch.tanh,
        abs=torch.abs,
        relu=torch.relu,
        logsumexp=lambda x: torch.logsumexp(x, 1),
    )
    tensors = [torch.from_numpy(each) for each in given]
    leaves = [each.requires_grad_() for each in tensors[:count]]

    def loss(*tensors: Any) -> Any:
        return formula(m, *tensors)

    run = torch.compile(loss, fullgraph=True) if compiled else loss

    def work() -> Any:
        for each in leaves:
            each.grad = None
        value = run(*tensors)
        value.backward()
        return value.detach(), *(each.grad for each in leaves)

    return work


def _of_arrays(torch: Any, formula: Callable[..., Any], given: list[Any], count: int) -> Callable[[], Any]:
    m = SimpleNamespace(
        **{name: getattr(torch, name) for name in ("sigmoid", "tanh", "abs", "relu")},
        logsumexp=lambda x: torch.logsumexp(x, 1),
    )
    run = torch.value_and_grad(lambda *tensors: formula(m, *tensors), tuple(range(count)), pure=True)

    def work() -> Any:
        value, gradients = run(*given)
        return value, *gradients

    return work


def _of_jax(formula: Callable[..., Any], given: list[Any], count: int) -> Callable[[], Any]:
    jax: Any = import_module("jax")
    nn, jnp = jax.nn, jax.numpy
    m = SimpleNamespace(
        sigmoid=nn.sigmoid, tanh=jnp.tanh, abs=jnp.abs, relu=nn.relu, logsumexp=lambda x: nn.logsumexp(x, 1)
    )
    run = jax.jit(jax.value_and_grad(lambda *arrays: formula(m, *arrays), tuple(range(count))))
    arrays = [jnp.asarray(each) for each in given]
    return lambda: jax.block_until_ready(run(*arrays))


def _of_autograd(formula: Callable[..., Any], given: list[Any], count: int) -> Callable[[], Any]:
    np: Any = import_module("autograd.numpy")
    value_and_grad: Any = import_module("autograd").value_and_grad
    logsumexp = import_module("autograd.scipy.special").logsumexp
    m = SimpleNamespace(
        sigmoid=lambda x: 1 / (1 + np.exp(-x)), tanh=np.tanh, abs=np.abs, relu=lambda x: np.maximum(x, 0),
        logsumexp=lambda x: logsumexp(x, axis=1),
    )  # fmt: skip
    run = value_and_grad(lambda leaves: formula(m, *leaves, *given[count:]))
    leaves = tuple(given[:count])
    return lambda: run(leaves)


def _of_tinygrad(formula: Callable[..., Any], given: list[Any], count: int) -> Callable[[], Any]:
    tinygrad: Any = import_module("tinygrad")
    m = SimpleNamespace(
        **{name: (lambda x, name=name: getattr(x, name)()) for name in ("sigmoid", "tanh", "abs", "relu")}
    )
    m.logsumexp = lambda x: x.logsumexp(1)
    tensors = [tinygrad.Tensor(each).realize() for each in given]

    @tinygrad.TinyJit
    def run(*tensors: Any) -> Any:
        value = formula(m, *tensors)
        gradients = value.gradient(*tensors[:count])
        return [each.realize() for each in (value, *gradients)]

    def work() -> Any:
        found = run(*tensors)
        tinygrad.Device[tinygrad.Device.DEFAULT].synchronize()
        return found

    return work


class Peer(Engine):
    """Library in its own process."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__("retrograd" if PEERS[name] == "retrograd" else "torch" if name == "PyTorch" else "", THREADS)

    def prepare(self, work: str) -> list[Any]:  # type: ignore[override]
        """Prepare a work; return its loss and gradients."""
        formula, make, count = WORKS[work]
        given = [numpy.asarray(each, numpy.float32) for each in make()]
        if self.name == "pure":
            run = _of_arrays(self.module, formula, given, count)
        elif self.module is not None:
            run = _of_torch(self.module, formula, given, count, self.name == "compiled")
        else:
            run = {"JAX, jit": _of_jax, "autograd": _of_autograd, "tinygrad": _of_tinygrad}[self.name](
                formula, given, count
            )
        return self.settle({"program": run})


# -- The table ---------------------------------------------------------------------------------------------------------


def _flat(found: list[Any]) -> Any:
    return numpy.concatenate([numpy.asarray(each).ravel() for each in found])


def prepared(peers: dict[str, Process], work: str) -> dict[str, Process]:
    """Return the libraries that support a work. Raises AssertionError if their results differ."""
    able, first = {}, None
    for name, peer in peers.items():
        try:
            found = _flat(peer.ask("prepare", work))
        except Exception as error:  # any error of the library, such as a missing compiler
            print(f"{name}: {error}", file=sys.stderr)
            continue
        first = found if first is None else first
        assert numpy.allclose(found, first, rtol=1e-3, atol=1e-4), f"{name} differs in {work}"
        able[name] = peer
    return able


def main() -> None:
    """Measure the installed libraries, print the table and write it."""
    parent = trees.package_parent(trees.ROOT)
    peers = {
        name: Process(module, "benchmarks.peers", name, parent=parent)
        for name, module in PEERS.items()
        if module == "retrograd" or find_spec(module)
    }
    peers = prepared(peers, next(iter(WORKS)))
    lines = ["| | " + " | ".join(peers) + " |", "| --- |" + " --- |" * len(peers)]
    for work in WORKS:
        taken: dict[str, list[float]] = {name: [] for name in prepared(peers, work)}
        for _ in range(ROUNDS):
            for name, seconds in taken.items():
                seconds.append(peers[name].ask("turn", "program"))
        cells = [page.readable(statistics.median(taken[name])) if name in taken else "" for name in peers]
        lines.append("| " + " | ".join((work, *cells)) + " |")
        print(lines[-1], flush=True)
    how = f"{THREADS} threads each. The medians of {ROUNDS} rounds."
    page.write("peers", TITLE, "python -m benchmarks.peers", "\n".join([how, "", *lines]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(Peer(sys.argv[1]))
    else:
        main()
