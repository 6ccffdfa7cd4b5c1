"""Derivatives of derivatives, and Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .row import Row


def network(torch: Any) -> tuple[Callable[[Any], Any], Any, list[Any]]:
    """Return a perceptron with layers of 32, 64 and 1, an input of 64 samples, and the parameters."""
    torch.manual_seed(0)
    x = torch.randn(64, 32)
    v, w = torch.randn(32, 64) / 6, torch.randn(64, 1) / 8
    v.requires_grad_()
    w.requires_grad_()
    return lambda x: torch.tanh(x @ v) @ w, x, [v, w]


def hessian_vector(torch: Any) -> Callable[[], Any]:
    """Hessian times vector of a perceptron's loss"""
    model, x, parameters = network(torch)
    vectors = [torch.randn_like(each.detach()) for each in parameters]

    def work() -> Any:
        loss = (model(x) ** 2).mean()
        grads = torch.autograd.grad(loss, parameters, create_graph=True)
        return torch.autograd.grad(grads, parameters, vectors)

    return work


def gradient_penalty(torch: Any) -> Callable[[], Any]:
    """Gradient penalty of a critic, and its gradient"""
    model, x, parameters = network(torch)
    x.requires_grad_()

    def work() -> Any:
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        return penalty.detach(), *torch.autograd.grad(penalty, parameters)

    return work


def jacobian(torch: Any) -> Callable[[], Any]:
    """Jacobian of 32 results by 32 inputs, autograd.functional"""
    torch.manual_seed(0)
    x, w = torch.randn(32), torch.randn(32, 32) / 6
    return lambda: torch.autograd.functional.jacobian(lambda x: torch.tanh(w @ x) * x, x)


def jacobian_reverse(torch: Any) -> Callable[[], Any]:
    """Jacobian of 32 results by 32 inputs, func.jacrev"""
    torch.manual_seed(0)
    x, w = torch.randn(32), torch.randn(32, 32) / 6
    return lambda: torch.func.jacrev(lambda x: torch.tanh(w @ x) * x)(x)


def hessian(torch: Any) -> Callable[[], Any]:
    """Hessian of a function of 16 numbers, autograd.functional"""
    torch.manual_seed(0)
    x, w = torch.randn(16), torch.randn(16, 16) / 4
    return lambda: torch.autograd.functional.hessian(lambda x: (torch.tanh(w @ x) * x).sum(), x)


def per_sample(torch: Any) -> Callable[[], Any]:
    """Gradients per sample, vmap of grad, 64 samples"""
    _, x, parameters = network(torch)
    parameters = [each.detach() for each in parameters]

    def loss(parameters: Any, x: Any) -> Any:
        v, w = parameters
        return (torch.tanh(x @ v) @ w).pow(2).sum()

    return lambda: torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)


def forward_mode(torch: Any) -> Callable[[], Any]:
    """Jacobian times vector, forward mode, func.jvp"""
    model, x, parameters = network(torch)
    for each in parameters:
        each.requires_grad_(False)
    tangent = torch.randn_like(x)
    return lambda: torch.func.jvp(model, (x,), (tangent,))


def large_hessian_vector(torch: Any) -> Callable[[], Any]:
    """Hessian times vector of Rosenbrock's function, 10⁵"""
    torch.manual_seed(0)
    x = torch.randn(100_000, requires_grad=True)
    vector = torch.randn(100_000)

    def work() -> Any:
        value = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        return torch.autograd.grad(slope, x, vector)

    return work


def rows() -> Iterator[Row]:
    """Yield the rows of the group "higher"."""
    for program in (
        hessian_vector, large_hessian_vector, gradient_penalty, jacobian, jacobian_reverse, hessian, per_sample,
        forward_mode,
    ):  # fmt: skip
        yield Row(program.__doc__ or "", program, 1.0, tolerance=2e-3)
