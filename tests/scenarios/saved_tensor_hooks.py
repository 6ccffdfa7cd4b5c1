"""Saved-tensor hooks, and the ``_saved_…`` attributes of nodes."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import Any

import numpy


def _leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values) or 2.0, requires_grad=True)


def _noting(torch: Any, log: Any, name: str = "") -> Any:
    """Return hooks that log what is packed and unpacked."""

    def pack(t: Any) -> Any:
        log.append((f"pack{name}", t.tolist(), t.requires_grad, t.is_leaf, torch.is_grad_enabled()))
        return t

    def unpack(t: Any) -> Any:
        log.append((f"unpack{name}", t.tolist(), torch.is_grad_enabled()))
        return t

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _as_lists(torch: Any) -> Any:
    """Return hooks that pack tensors as lists."""
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: torch.tensor(kept))


def _of(expression: str) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        x, y = _leaf(torch, 1.0, 2.0), _leaf(torch, 3.0, 4.0)
        with _noting(torch, log):
            z = eval(expression, {"torch": torch, "x": x, "y": y})
        z.sum().backward()
        return x.grad, y.grad

    return scenario


SCENARIOS = {
    f"of {each}": _of(each)
    for each in (
        "x * y", "x * x", "x * 3", "x / y", "x / 2", "x + y", "x - y", "x**2", "x**y", "x @ y", "x.exp()", "x.sin()",
        "(x * 2).exp()", "x.tanh() * y", "x * y.detach()", "x.detach() * y", "torch.where(x > 0, x, y)", "x.clamp(0, 1)",
        "torch.stack([x, y])", "torch.cat([x, x])", "x.sum()", "x.view(2, 1) * y", "x[0] * y", "x.log() + y.sqrt()",
        "torch.sigmoid(x) * y", "x.clone().mul_(y)", "x.clone().exp_()", "x.relu()", "x.atan2(y)", "torch.outer(x, y)",
    )
}  # fmt: skip


def nested(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with _noting(torch, log, " outer"):
        y = x * x
        with _noting(torch, log, " inner"):
            z = y.exp()
            with torch.no_grad():
                x.exp()
        w = z * z
    total = w.sin().sum()
    total.backward(retain_graph=True)
    total.backward()


def backward_with_create_graph_packs_too(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with _noting(torch, log):
        torch.autograd.grad(x.exp().sum(), x, create_graph=True)


def unpack_returns_another_tensor(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 10):
        y = x.exp()
    y.sum().backward()
    return x.grad


def version_check_is_off_with_hooks(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z, w = y.exp(), y * y
    y.mul_(3)
    z.mul_(2)
    (z + w).sum().backward()
    return x.grad


def saved_attributes_unpack(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with _as_lists(torch):
        y, z, w = x.exp(), x * x, x * 2
    return y.grad_fn._saved_result, z.grad_fn._saved_self, z.grad_fn._saved_self is x, w.grad_fn._saved_other


def second_derivatives(torch, log):
    x = _leaf(torch, 1.0, 0.5)
    with _as_lists(torch):
        y = (x.exp() * x).sin().sum()
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    return slope, torch.autograd.grad(slope.sum(), x)


def _saves_both(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            out = x.exp()
            ctx.save_for_backward(x, out, None, y)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, out, _, _ = ctx.saved_tensors
            return grad * out * x, None

    return Exp.apply


def custom_functions(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with _noting(torch, log):
        y = _saves_both(torch)(x * 1, torch.ones(2))
    return y.grad_fn.saved_tensors, torch.autograd.grad(y.sum(), x)


def second_derivatives_of_custom_functions(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with _as_lists(torch):
        y = _saves_both(torch)(x * 1, torch.ones(2))
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return slope, torch.autograd.grad(slope.sum(), x)


def raw_saved_tensors_of_custom_functions(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = _saves_both(torch)(x * 1, torch.ones(2))
    raw = y.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda t: t.tolist(), lambda kept: torch.tensor(kept) * 100)
    raw[1].register_hooks(lambda t: t.tolist(), lambda kept: torch.tensor(kept))
    log.append([type(each).__name__ for each in raw])
    log.append(y.grad_fn.saved_tensors)
    y.sum().backward()
    return x.grad


def raw_saved_none(torch, log):
    y = _saves_both(torch)(_leaf(torch) * 1, torch.ones(2))
    y.grad_fn._raw_saved_tensors[2].register_hooks(lambda t: t, lambda t: t)


def raw_saved_of_freed_custom_function(torch, log):
    y = _saves_both(torch)(_leaf(torch) * 1, torch.ones(2))
    y.backward()
    return y.grad_fn._raw_saved_tensors


def raw_saved_tensors(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    log.append((raw.data, raw.unpack_hook))
    raw.register_hooks(lambda t: t.tolist(), lambda kept: torch.tensor(kept) * 3)
    log.append((raw.data, type(raw.unpack_hook).__name__, y.grad_fn._saved_self))
    y.sum().backward()
    return x.grad


def _raw(change: Any) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        y = _leaf(torch, 1.0, 2.0).exp()
        return change(torch, y, y.grad_fn._raw_saved_result)

    return scenario


def _same(t: Any) -> Any:
    return t


SCENARIOS |= {
    "raw: twice": _raw(lambda torch, y, raw: [raw.register_hooks(_same, _same) for _ in range(2)]),
    "raw: freed": _raw(lambda torch, y, raw: (y.sum().backward(), raw.register_hooks(_same, _same))),
    "raw: freed, looked at": _raw(lambda torch, y, raw: (y.sum().backward(), y.grad_fn._saved_result)),
    "raw: modified": _raw(lambda torch, y, raw: raw.register_hooks(lambda t: t.add_(1), _same)),
    "raw: unpacked to no tensor": _raw(
        lambda torch, y, raw: (raw.register_hooks(lambda t: 1, _same), y.sum().backward())
    ),
    "raw: nothing there": lambda torch, log: (_leaf(torch) * 3).grad_fn._raw_saved_self.register_hooks(_same, _same),
}


def block_hooks_and_register_hooks(torch, log):
    with torch.autograd.graph.saved_tensors_hooks(_same, _same):
        y = _leaf(torch).exp()
    y.grad_fn._raw_saved_result.register_hooks(_same, _same)


def _packing(pack: Any, unpack: Any = _same) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = _leaf(torch, 1.0, 2.0).exp()
        y.sum().backward()

    return scenario


SCENARIOS |= {
    "packing modifies": _packing(lambda t: t.add_(1)),
    "packing raises": _packing(lambda t: 1 / 0),
    "unpacking raises": _packing(_same, lambda t: 1 / 0),
    "unpacking gives no tensor": _packing(lambda t: 1),
}


def error_leaves_the_block(torch, log):
    try:
        with _noting(torch, log):
            raise KeyError(1)
    except KeyError:
        pass
    _leaf(torch).exp()


def disabled(torch, log):
    graph = torch.autograd.graph

    def enter(context: Any) -> None:
        try:
            with context:
                log.append("entered")
        except RuntimeError as error:
            log.append(str(error))

    with graph.disable_saved_tensors_hooks("first"):
        enter(graph.saved_tensors_hooks(_same, _same))
        with graph.disable_saved_tensors_hooks("second"):
            enter(graph.save_on_cpu())
        enter(graph.save_on_cpu(pin_memory=False))
        _leaf(torch).exp().backward()
    with graph.saved_tensors_hooks(_same, _same):
        enter(graph.disable_saved_tensors_hooks("third"))
    enter(graph.save_on_cpu())


def grad_mode_inside_hooks(torch, log):
    with _noting(torch, log):
        log.append(torch.is_grad_enabled())
        with torch.no_grad():
            log.append(torch.is_grad_enabled())
            with torch.enable_grad():
                log.append((torch.is_grad_enabled(), _leaf(torch).exp().requires_grad))
        torch.set_grad_enabled(False)
        log.append(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        log.append(torch.is_grad_enabled())
        with torch.inference_mode():
            log.append((_leaf(torch) * 2).requires_grad)
    log.append(torch.is_grad_enabled())


def other_threads(torch, log):
    with _noting(torch, log):
        thread = threading.Thread(target=lambda: _leaf(torch).exp())
        thread.start()
        thread.join()


def save_on_disk(torch, log):
    folder = tempfile.mkdtemp()

    class Kept:
        def __init__(self, tensor: Any) -> None:
            self.path, self.shape = os.path.join(folder, str(len(os.listdir(folder)))), tensor.shape
            tensor.detach().numpy().tofile(self.path)

        def read(self) -> Any:
            return torch.from_numpy(numpy.fromfile(self.path, numpy.float32).reshape(self.shape))

        def __del__(self) -> None:
            os.remove(self.path)

    x = _leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(Kept, Kept.read):
        y = (x * x).exp().sum()
    log.append(len(os.listdir(folder)))
    y.backward()
    log.append(len(os.listdir(folder)))
    return x.grad


def save_on_cpu(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


def _mutable(change: Any) -> Any:
    def scenario(torch: Any, log: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            change(torch, x).sum().backward()
        return x.grad

    return scenario


def _values_that_are_overwritten(torch: Any, x: Any) -> Any:
    y = x * 2
    part, first, second = y[:2], y.exp(), y * y
    part.mul_(5)
    third = y * y
    y.zero_()
    return first * second * third


def _a_leaf_that_is_overwritten(torch: Any, x: Any) -> Any:
    y = x * x
    with torch.no_grad():
        x.mul_(7)
    return y


def _a_constant_that_is_overwritten(torch: Any, x: Any) -> Any:
    w = torch.ones(3)
    y = x * w
    w[0] = 5
    w += 1
    w.fill_(3)
    torch.add(w, w, out=w)
    return y


def _a_result_that_is_overwritten(torch: Any, x: Any) -> Any:
    y = x.exp()
    y.mul_(2)
    return y


SCENARIOS |= {
    f"mutable: {each.__name__.strip('_')}": _mutable(each)
    for each in (
        _values_that_are_overwritten, _a_leaf_that_is_overwritten, _a_constant_that_is_overwritten,
        _a_result_that_is_overwritten,
    )
}  # fmt: skip


def allow_mutation_outside_of_the_block(torch, log):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        total = (y**2).sum()
        y.sin_()
    total.backward()


def allow_mutation_nested(torch, log):
    with (
        torch.autograd.graph.allow_mutation_on_saved_tensors(),
        torch.autograd.graph.allow_mutation_on_saved_tensors(),
    ):
        pass


def versions_with_allow_mutation(torch, log):
    a, b = torch.ones(2), torch.ones(2)
    torch.autograd.graph.increment_version(a)
    torch.autograd.graph.increment_version([a, b])
    x = _leaf(torch, 1.0, 2.0) * 1
    y = x * x
    torch.autograd.graph.increment_version(x)
    log.append((a._version, b._version, x._version))
    y.sum().backward()


def nodes(torch, log):
    node = (_leaf(torch) * 2).grad_fn
    graph = torch.autograd.graph
    return isinstance(node, graph.Node), issubclass(type(node), graph.Node), isinstance(3, graph.Node)
