"""``gradcheck`` and ``gradgradcheck`` in slow and fast mode: results and errors."""

from __future__ import annotations

from typing import Any


def _leaf(torch: Any, *values: Any, dtype: Any = None) -> Any:
    return torch.tensor(list(values), dtype=dtype or torch.float64, requires_grad=True)


def _complex(torch: Any) -> Any:
    return _leaf(torch, 1.0 + 1j, 2.0 - 1j, dtype=torch.complex128)


def _function(torch: Any, forward: Any, backward: Any, materialize: bool = True) -> Any:
    """Return a custom function with ``backward(saved, *grads)``."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.save_for_backward(*args)
            ctx.set_materialize_grads(materialize)
            return forward(*args)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(ctx.saved_tensors, *grads)

    return Made.apply


def _square(torch: Any, slope: Any = 2) -> Any:
    return _function(torch, lambda x: x**2, lambda saved, grad: slope * grad * saved[0])


def _double(torch: Any, backward: Any) -> Any:
    return _function(torch, lambda x: x * 2, lambda saved, grad: backward(grad))


def _uneven(torch: Any) -> Any:
    """Return a custom function whose backward is not deterministic."""
    calls: list[int] = []

    def backward(grad: Any) -> Any:
        calls.append(1)
        return 2 * grad + 1e-7 * len(calls)

    return _double(torch, backward)


def _refuses_none(grad: Any) -> Any:
    if grad is None:
        raise RuntimeError("no")
    return 2 * grad


def _alternating(first: Any, second: Any) -> Any:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        return (first if len(calls) % 2 else second)(x)

    return function


def _makes_something_of_none(torch: Any) -> Any:
    def backward(saved: Any, first: Any, second: Any) -> Any:
        if first is None:
            return torch.ones(2, dtype=torch.float64)
        return 2 * first + (0 if second is None else 3 * second)

    return _function(torch, lambda x: (x * 2, x * 3), backward, materialize=False)


#: The function and its inputs, given ``torch``; and options.
_CHECKS: dict[str, Any] = {
    "right": (lambda t: (_square(t), _leaf(t, 1.0, 2.0)), {}),
    "wrong": (lambda t: (_square(t, 3), _leaf(t, 1.0, 2.0)), {}),
    "wrong, asked": (lambda t: (_square(t, 3), _leaf(t, 1.0, 2.0)), {"raise_exception": False}),
    "wrong within the tolerance": (lambda t: (_square(t, 3), _leaf(t, 1.0, 2.0)), {"atol": 100}),
    "two": (lambda t: (lambda x, y: (x * y, x.sin()), (_leaf(t, 1.0, 2.0), _leaf(t, 3.0, 4.0))), {}),
    "one of two wrong": (
        lambda t: (lambda x, y: (x * y, _square(t, 3)(x) + y), (_leaf(t, 1.0, 2.0), _leaf(t, 3.0, 4.0))),
        {},
    ),
    "nearly": (
        lambda t: (_function(t, lambda x: x**2, lambda s, g: 2.001 * g * s[0] + 1e-5), _leaf(t, 1.0, 2.0)),
        {},
    ),
    "an integer result": (lambda t: (lambda x: (x * 2, x.argmax()), _leaf(t, 1.0, 2.0)), {}),
    "detached": (lambda t: (lambda x: x.detach(), _leaf(t, 1.0, 2.0)), {}),
    "constant": (lambda t: (lambda x: t.ones(2, dtype=t.float64), _leaf(t, 1.0, 2.0)), {}),
    "no input": (lambda t: (lambda x: x, t.ones(2)), {}),
    "single precision": (lambda t: (lambda x: x * 2, _leaf(t, 1.0, dtype=t.float32)), {}),
    "stretched": (lambda t: (lambda x: x * 2, t.ones(1, dtype=t.float64).expand(3).requires_grad_()), {}),
    "of a wrong size": (lambda t: (_double(t, lambda grad: t.cat([grad, grad])), _leaf(t, 1.0, 2.0)), {}),
    "of a wrong dtype": (lambda t: (_double(t, lambda grad: (2 * grad).float()), _leaf(t, 1.0, 2.0)), {"check_grad_dtypes": True}),
    "uneven": (lambda t: (_uneven(t), _leaf(t, 1.0, 2.0)), {}),
    "uneven within the tolerance": (
        lambda t: (_uneven(t), _leaf(t, 1.0, 2.0)),
        {"nondet_tol": 1e-3, "check_undefined_grad": False},
    ),
    "not linear": (lambda t: (_double(t, lambda grad: 2 * grad + 1e-9), _leaf(t, 1.0, 2.0)), {}),
    "not linear, masked": (
        lambda t: (_double(t, lambda grad: 2 * grad + 1e-9), _leaf(t, 1.0, 2.0)),
        {"masked": True, "check_undefined_grad": False},
    ),
    "refuses none": (
        lambda t: (_function(t, lambda x: x * 2, lambda s, g: _refuses_none(g), False), _leaf(t, 1.0, 2.0)),
        {},
    ),
    "refuses none, unchecked": (
        lambda t: (_function(t, lambda x: x * 2, lambda s, g: _refuses_none(g), False), _leaf(t, 1.0, 2.0)),
        {"check_undefined_grad": False},
    ),
    "makes something of none": (lambda t: (_makes_something_of_none(t), _leaf(t, 1.0, 2.0)), {}),
    "of changing shape": (
        lambda t: (_alternating(lambda x: x[:2] * 2, lambda x: x[:1] * 2), _leaf(t, 1.0, 2.0)),
        {},
    ),
    "of changing dtype": (
        lambda t: (_alternating(lambda x: x * 2, lambda x: (x * 2).float()), _leaf(t, 1.0, 2.0)),
        {},
    ),
    "complex": (lambda t: (lambda z: z * z, _complex(t)), {}),
    "complex to real": (lambda t: (lambda z: z.abs(), _complex(t)), {}),
    "real to complex": (lambda t: (t.view_as_complex, t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=t.float64, requires_grad=True)), {}),
    "complex and wrong": (
        lambda t: (_function(t, lambda z: z * z, lambda s, g: 2 * g * s[0]), _complex(t)),
        {},
    ),
    "in batches": (lambda t: (lambda x: x.sin() * x, _leaf(t, 1.0, 2.0)), {"check_batched_grad": True}),
    "0-d": (lambda t: (lambda x: x.exp(), t.tensor(1.0, dtype=t.float64, requires_grad=True)), {}),
    "empty": (lambda t: (lambda x: x.exp(), t.zeros(0, 3, dtype=t.float64, requires_grad=True)), {}),
    "a number among the inputs": (lambda t: (lambda x, n: x * n, (_leaf(t, 1.0, 2.0), 3)), {}),
    "a constant among the inputs": (
        lambda t: (lambda x, y: x * y, (_leaf(t, 1.0, 2.0), t.tensor([3.0, 4.0], dtype=t.float64))),
        {},
    ),
    "an unused input": (lambda t: (lambda x, y: x * 2, (_leaf(t, 1.0, 2.0), _leaf(t, 1.0, 2.0))), {}),
    "a matrix": (lambda t: (t.linalg.inv, t.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=t.float64, requires_grad=True)), {}),
    "in place": (lambda t: (lambda x: x.clone().mul_(2).exp_(), _leaf(t, 1.0, 2.0)), {}),
}  # fmt: skip
_SECOND: dict[str, Any] = {
    "right": (lambda t: (_square(t), _leaf(t, 1.0, 2.0)), {}),
    "two": (lambda t: (lambda x, y: (x.sin() * y, x * x), (_leaf(t, 1.0, 2.0), _leaf(t, 3.0, 4.0))), {}),
    "wrong": (
        lambda t: (
            _function(t, lambda x: x**2, lambda s, g: 2 * g * s[0].detach()), _leaf(t, 1.0, 2.0), _leaf(t, 0.5, 0.25),
        ),
        {},
    ),
    "complex": (lambda t: (lambda z: z * z * z, _complex(t)), {}),
    "with gaps": (lambda t: (lambda x: x.exp(), _leaf(t, 1.0, 2.0)), {"gen_non_contig_grad_outputs": True}),
    "in batches": (lambda t: (lambda x: x.exp(), _leaf(t, 1.0, 2.0)), {"check_batched_grad": True}),
}  # fmt: skip


def _with_tangents(torch: Any, factor: Any) -> Any:
    """Return a custom square with a ``jvp`` that is right for 2 only."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = x
            ctx.save_for_forward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad * ctx.x

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return factor * tangent * ctx.saved_tensors[0]

    return Square.apply


_FORWARD: dict[str, Any] = {
    "right": (lambda t: (lambda x: x.sin() * x, _leaf(t, 1.0, 2.0)), {}),
    "two": (lambda t: (lambda x, y: (x * y, x.sin()), (_leaf(t, 1.0, 2.0), _leaf(t, 3.0, 4.0))), {}),
    "custom": (lambda t: (_with_tangents(t, 2), _leaf(t, 1.0, 2.0)), {}),
    "wrong": (lambda t: (_with_tangents(t, 3), _leaf(t, 1.0, 2.0)), {}),
    "wrong, this mode only": (lambda t: (_with_tangents(t, 3), _leaf(t, 1.0, 2.0)), {"check_backward_ad": False}),
    "complex": (lambda t: (lambda z: z * z, _complex(t)), {}),
    "complex to real": (lambda t: (lambda z: z.abs(), _complex(t)), {}),
    "a constant among the inputs": (
        lambda t: (lambda x, y: x * y, (_leaf(t, 1.0, 2.0), t.tensor([3.0, 4.0], dtype=t.float64))),
        {},
    ),
    "an unused input": (lambda t: (lambda x, y: x * 2, (_leaf(t, 1.0, 2.0), _leaf(t, 1.0, 2.0))), {}),
    "detached": (lambda t: (lambda x: x.detach() * 1, _leaf(t, 1.0, 2.0)), {}),
    "an integer result": (lambda t: (lambda x: (x * 2, x.argmax()), _leaf(t, 1.0, 2.0)), {}),
    "in batches": (lambda t: (lambda x: x.sin() * x, _leaf(t, 1.0, 2.0)), {"check_batched_forward_grad": True}),
}
for _case, (_make, _given) in list(_FORWARD.items()):
    _FORWARD[_case] = (_make, {**_given, "check_forward_ad": True})
_SECOND["forward over reverse"] = (lambda t: (lambda x: x.sin() * x, _leaf(t, 1.0, 2.0)), {"check_fwd_over_rev": True})


def _told(check: str, make: Any, options: dict[str, Any]) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        torch.manual_seed(0)
        return getattr(torch.autograd, check)(*make(torch), **options)

    return scenario


SCENARIOS = {
    f"{prefix}{name}{', fast' * fast}": _told(check, make, {**options, "fast_mode": fast})
    for check, prefix, cases in (
        ("gradcheck", "", _CHECKS),
        ("gradcheck", "forward: ", _FORWARD),
        ("gradgradcheck", "second: ", _SECOND),
    )
    for name, (make, options) in cases.items()
    for fast in (False, True)
}
for _name, _check, _options in (
    ("no mode", "gradcheck", {"check_backward_ad": False}),
    ("batches without backward", "gradcheck", {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}),
    ("forward batches without forward", "gradcheck", {"check_batched_forward_grad": True}),
    ("second: no mode", "gradgradcheck", {"check_rev_over_rev": False}),
    ("second: undefined without backward", "gradgradcheck", {"check_rev_over_rev": False, "check_fwd_over_rev": True}),
):  # fmt: skip
    SCENARIOS[_name] = _told(_check, _CHECKS["right"][0], _options)
