"""Training runs of a hundred steps with every optimizer, and calls that fail, compared with PyTorch's record."""

from __future__ import annotations

import re
import warnings
from typing import Any

#: Optimizers of the parameters ``p``.
OPTIMISERS = (
    "SGD(p, lr=0.05)", "SGD(p, lr=0.05, momentum=0.9)", "SGD(p, lr=0.05, momentum=0.9, nesterov=True, foreach=True)",
    "SGD(p, lr=0.05, momentum=0.5, dampening=0.2, weight_decay=0.1)", "SGD(p, lr=0.01, maximize=True, fused=True)",
    "SGD([{'params': p[:1], 'lr': 0.1}, {'params': p[1:]}], lr=0.02, momentum=0.3)",
    "Adam(p, lr=0.05)", "Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1)", "Adam(p, lr=torch.tensor(0.05, dtype=torch.float64))",
    "Adam(p, lr=0.02, maximize=True, foreach=True)", "Adam(p, lr=0.05, decoupled_weight_decay=True, weight_decay=0.1)",
    "AdamW(p, lr=0.05, betas=(0.8, 0.99))", "AdamW(p, lr=0.05, amsgrad=True, weight_decay=0.3, fused=True)",
    "Adamax(p, lr=0.05)", "Adamax(p, lr=0.02, weight_decay=0.1, maximize=True)",
    "NAdam(p, lr=0.05)", "NAdam(p, lr=0.02, weight_decay=0.1, maximize=True)",
    "NAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(p, lr=0.05)", "RAdam(p, lr=0.02, betas=(0.9, 0.9), weight_decay=0.1, maximize=True)",
    "RAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True)",
    "RMSprop(p)", "RMSprop(p, lr=0.01, centered=True, weight_decay=0.1)", "RMSprop(p, lr=0.005, momentum=0.5)",
    "RMSprop(p, lr=0.005, momentum=0.5, centered=True, maximize=True)",
    "Adagrad(p, lr=0.1)", "Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)",
    "Adadelta(p)", "Adadelta(p, lr=0.5, rho=0.8, weight_decay=0.1, maximize=True)",
    "ASGD(p, lr=0.05, t0=10)", "ASGD(p, lr=0.05, lambd=0.01, weight_decay=0.1, t0=50)", "ASGD(p, maximize=True)",
    "Rprop(p)", "Rprop(p, lr=0.1, etas=(0.4, 1.3), step_sizes=(1e-3, 2), maximize=True)",
    "Adafactor(p, lr=0.02)", "Adafactor(p, lr=0.02, weight_decay=0.1, eps=(1e-3, 1e-2), d=1.5, maximize=True)",
    "LBFGS(p, lr=0.3, max_iter=5)", "LBFGS(p, max_iter=3, line_search_fn='strong_wolfe')",
    "LBFGS(p, lr=0.3, history_size=2, max_iter=4, max_eval=3)",
    "Muon(p[:1])", "Muon(p[:1], lr=0.004, momentum=0.8, nesterov=False, weight_decay=0.0)",
    "Muon(p[:1], lr=0.02, ns_steps=3, adjust_lr_fn='match_rms_adamw')",
)  # fmt: skip
#: Further options of each optimizer; those that select an implementation must not change results.
OPTIONS = ("maximize=True", "weight_decay=0.1", "foreach=True", "foreach=False", "fused=True")
_ELEMENTWISE = (
    "SGD",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "ASGD",
    "Rprop",
    "Adafactor",
)
_WITHOUT = {
    "weight_decay=0.1": ("Rprop",),
    "fused=True": _ELEMENTWISE[3:7] + _ELEMENTWISE[8:],
    "foreach=True": ("Adafactor", "ASGD"),
}
OPTIMISERS += tuple(
    f"{name}(p, {option}, lr=0.02)"
    for option in OPTIONS
    for name in _ELEMENTWISE
    if name not in _WITHOUT.get(option, ())
)

FAILING = (
    "SGD(w)", "SGD([])", "SGD([3])", "SGD([w * 2])", "SGD([{'params': {w}}])", "SGD([w, w])",
    "SGD([{'params': [w]}, {'params': [w]}])", "SGD([('w', w), v])", "SGD([w]).add_param_group(3)",
    "SGD([w]).add_param_group({'params': [('v', v)]})", "SGD([w], lr=-1)", "SGD([w], lr=torch.ones(2))",
    "SGD([w], momentum=-1)", "SGD([w], weight_decay=-1)", "SGD([w], nesterov=True)",
    "SGD([w], fused=True, foreach=True)", "SGD([w], fused=True, differentiable=True)",
    "Adam([w], betas=(1.0, 0.9))", "Adam([w], betas=(0.9, -1.0))", "Adam([w], betas=(0, 0))", "Adam([w], eps=-1)",
    "Adam([w], lr=torch.tensor(0.1), foreach=True)", "Adam([w], capturable=True)",
    "Adam([w], foreach=True, differentiable=True)", "Adam([c], fused=True)", "NAdam([w], capturable=True)",
    "NAdam([w], momentum_decay=-1)", "ASGD([w], capturable=True)", "Adadelta([w], capturable=True)",
    "Adadelta([w], rho=2)", "RMSprop([w], alpha=-1)", "Adagrad([w], lr_decay=-1)",
    "Adagrad([w], initial_accumulator_value=-1)", "Rprop([w], etas=(2, 3))", "Adafactor([w], lr=-1)",
    "Adafactor([w], d=0.5)", "Adafactor([w], beta2_decay=1)", "Adafactor([c])", "Muon([w])",
    "Muon([m], adjust_lr_fn='x')", "LBFGS([{'params': [w]}, {'params': [v]}])", "LBFGS([w], line_search_fn='x')",
    "Optimizer([w], {})", "Optimizer([w], {'lr': optimizer.required})",
    "Adam([w]).load_state_dict(Adam([w, v]).state_dict())",
    "Adam([w]).load_state_dict(Adam([{'params': [w]}, {'params': [v]}]).state_dict())",
)  # fmt: skip


def optimizer_of(torch: Any, call: str, **names: Any) -> Any:
    """Return the optimizer of a call."""
    from_optim = {name: getattr(torch.optim, name) for name in dir(torch.optim) if name[0].isupper()}
    return eval(call, {"torch": torch, **from_optim, **names})


def training_run(torch: Any, call: str) -> dict[str, Any]:
    """Return losses, parameters and state of a hundred steps in float64."""
    p = [
        torch.tensor(start, dtype=torch.float64, requires_grad=True)
        for start in ([[1.5, -0.7], [0.2, 2.0]], [0.5], 1.2)
    ]
    goals = (0.3, 0.8, -0.5)
    optimizer = optimizer_of(torch, call, p=p)
    upwards = optimizer.param_groups[0].get("maximize")

    def closure() -> Any:
        optimizer.zero_grad()
        parts = [((x - goal) ** 2 + (2 * x * x + 1).log()).sum() for x, goal in zip(p, goals, strict=True)]
        loss = (parts[0] + parts[1] * parts[2].sin() + parts[2]) * (-1 if upwards else 1)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(100)]
    packed = optimizer.state_dict()
    return {
        "losses": losses[::11],
        "params": [x.tolist() for x in p],
        "state": {str(key): {name: plain(value) for name, value in each.items()} for key, each in packed["state"].items()},
        "groups": [{name: plain(value) for name, value in group.items()} for group in packed["param_groups"]],
    }  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value of a state as JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value if each is not None]
    return value.tolist() if hasattr(value, "tolist") else value


def error_of(torch: Any, call: str) -> str:
    """Return the error and the warnings of a call and of the first step."""
    w, v = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    c, m = torch.tensor([1j], requires_grad=True), torch.ones(2, 2, requires_grad=True)
    for each in (w, v, c, m):
        each.grad = torch.ones_like(each)
    required = __import__(f"{torch.__name__}.optim.optimizer", fromlist=["required"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = optimizer_of(torch, call, w=w, v=v, c=c, m=m, optimizer=required)
            found.step(lambda: (w * w).sum())
            said = "no error"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    said = re.sub(r" \(at .*clone\)|<function .*>", "", said)
    return "\n".join([said, *(f"{each.category.__name__}: {each.message}" for each in caught)])
