"""Anomaly detection and batched gradients: results, warnings and errors."""

from __future__ import annotations

from typing import Any


def _leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values) or 2.0, requires_grad=True)


def _detecting(program: Any, **options: Any) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        x = _leaf(torch, 0.0, 1.0)
        with torch.autograd.detect_anomaly(**options):
            program(torch, x).sum().backward()
        return x.grad

    return scenario


class _Failing:
    """Return a custom function whose backward raises."""

    def __new__(cls, torch: Any) -> Any:
        class Failing(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                raise ValueError("mine")

        return Failing.apply


def _overwritten(torch: Any, x: Any) -> Any:
    y = x.sqrt()
    y.mul_(2)
    return y


SCENARIOS = {
    "nothing wrong": _detecting(lambda torch, x: x.exp()),
    "nan": _detecting(lambda torch, x: x.sqrt() * 0),
    "nan of the second operand": _detecting(lambda torch, x: (torch.zeros(2) / x) * 0),
    "nan, unchecked": _detecting(lambda torch, x: x.sqrt() * 0, check_nan=False),
    "infinite": _detecting(lambda torch, x: x.sqrt()),
    "overwritten": _detecting(_overwritten),
    "a custom function fails": _detecting(lambda torch, x: _Failing(torch)(x)),
    "nan of several results": _detecting(lambda torch, x: x.sqrt().unbind()[0] * 0),
}


def nan_from_a_hook(torch, log):
    x = _leaf(torch, 0.0, 1.0)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 1
        y.register_hook(lambda grad: grad * float("nan"))
        y.sum().backward()


def second_derivative(torch, log):
    x = _leaf(torch, 0.0, 1.0)
    with torch.autograd.set_detect_anomaly(True):
        (slope,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (again,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        log.append(again.detach())
        torch.autograd.grad((again * 0).sum(), x)


def stack_in_node_metadata(torch, log):
    x = _leaf(torch, 1.0)
    with torch.autograd.set_detect_anomaly(True):
        y = x.exp()
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    remembered = y.grad_fn.metadata
    log.append((list(remembered), len(remembered["traceback_"]) > 0))
    log.append("y = x.exp()" in remembered["traceback_"][-1])
    log.append(slope.grad_fn.metadata["parent_"].name())
    log.append(dict(x.exp().grad_fn.metadata))


def set_detect_anomaly_and_detect_anomaly(torch, log):
    def state() -> Any:
        return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    log.append(state())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        log.append(state())
        with torch.autograd.detect_anomaly():
            log.append(state())
        log.append(state())
        with torch.autograd.set_detect_anomaly(False):
            log.append(state())
    log.append(state())
    torch.autograd.set_detect_anomaly(True)
    log.append(state())
    torch.autograd.set_detect_anomaly(False)
    log.append(state())
    torch.set_anomaly_enabled(True, False)
    log.append(state())
    torch.set_anomaly_enabled(False)
    log.append(state())


def invalid_argument_of_set_detect_anomaly(torch, log):
    torch.autograd.set_detect_anomaly("a")


def threads(torch, log):
    told = torch.autograd.is_multithreading_enabled
    log.append(told())
    with torch.autograd.set_multithreading_enabled(False):
        log.append(told())
    log.append(told())
    torch.autograd.grad_mode.set_multithreading_enabled(False)
    log.append(told())
    torch.autograd.set_multithreading_enabled(True)
    log.append(torch.autograd.set_multithreading_enabled(False)(told)())
    torch.autograd.set_multithreading_enabled(3)


# --- Gradients in batches -------------------------------------------------------------------------------------------


def _batched(outputs: Any, given: Any, **options: Any) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        x, unused = _leaf(torch, 1.0, 2.0), _leaf(torch, 1.0)
        inputs = (x, unused) if options.get("unused") else x
        kept = {name: value for name, value in options.items() if name != "unused"}
        return torch.autograd.grad(outputs(x), inputs, given(torch), is_grads_batched=True, **kept)

    return scenario


_SQUARE, _TWO = (lambda x: x**2), (lambda x: (x**2, x * 2))
SCENARIOS |= {
    "batch: three": _batched(_SQUARE, lambda torch: torch.arange(6.0).view(3, 2)),
    "batch: of two": _batched(_TWO, lambda torch: (torch.ones(3, 2), torch.arange(6.0).view(3, 2))),
    "batch: recorded": _batched(lambda x: x.sin(), lambda torch: torch.ones(3, 2), allow_unused=True),
    "batch: none given": _batched(_SQUARE, lambda torch: None),
    "batch: one of two given": _batched(_TWO, lambda torch: (torch.ones(3, 2), None)),
    "batch: too few dimensions": _batched(_SQUARE, lambda torch: torch.ones(2)),
    "batch: of a wrong size": _batched(_SQUARE, lambda torch: torch.ones(3, 3)),
    "batch: of size 0": _batched(_SQUARE, lambda torch: torch.ones(0, 2)),
    "batch: 0-d": _batched(_SQUARE, lambda torch: torch.tensor(1.0)),
    "batch: of different sizes": _batched(_TWO, lambda torch: (torch.ones(3, 2), torch.ones(2, 2))),
    "batch: complex": _batched(_SQUARE, lambda torch: torch.ones(3, 2, dtype=torch.complex64)),
    "batch: unused": _batched(_SQUARE, lambda torch: torch.ones(3, 2), unused=True),
    "batch: unused, allowed": _batched(_SQUARE, lambda torch: torch.ones(3, 2), unused=True, allow_unused=True),
    "batch: unused, zeros": _batched(_SQUARE, lambda torch: torch.ones(3, 2), unused=True, materialize_grads=True),
}


def batched_backward_frees_the_graph(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x**2
    torch.autograd.grad(y, x, torch.ones(3, 2), is_grads_batched=True)
    torch.autograd.grad(y, x, torch.ones(3, 2), is_grads_batched=True)
