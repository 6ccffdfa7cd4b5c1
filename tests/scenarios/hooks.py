"""Hooks on tensors, nodes, leaves and several tensors: order, return values and removal."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any


def _leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values) or 2.0, requires_grad=True)


def _pair(torch: Any) -> tuple[Any, Any]:
    return _leaf(torch, 1.0, 2.0), _leaf(torch, 3.0, 4.0)


def order_of_all_kinds(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 3
    y.register_hook(log.hook("tensor 1"))
    y.grad_fn.register_prehook(log.hook("before"))
    y.grad_fn.register_hook(log.hook("after"))
    y.register_hook(log.hook("tensor 2"))
    x.register_hook(log.hook("leaf"))
    x.register_post_accumulate_grad_hook(log.hook("accumulated"))
    y.retain_grad()
    (y * 2).sum().backward()
    return x.grad, y.grad


def replacing_gradients(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 3
    y.register_hook(log.hook("a", lambda grad: grad * 10))
    y.register_hook(log.hook("b", lambda grad: grad + 1))
    y.grad_fn.register_prehook(log.hook("before", lambda grads: (grads[0] * 2,)))
    y.grad_fn.register_hook(log.hook("after", lambda sent, arrived: (sent[0] * 5, *sent[1:])))
    y.sum().backward()
    return x.grad


def removal_during_backward(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 3
    handles: list[Any] = []
    handles.append(y.register_hook(log.hook("a", lambda grad: handles[1].remove())))
    handles.append(y.register_hook(log.hook("b")))
    handles.append(y.register_hook(log.hook("c", lambda grad: handles[2].remove())))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad


def leaf_hook_that_removes_itself(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    handles: list[Any] = []
    handles.append(x.register_post_accumulate_grad_hook(log.hook("a", lambda t: handles[0].remove())))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    return x.grad


def handle_as_context(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    with x.register_hook(log.hook("a")) as handle:
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    return x.grad


def _with_hook(register: Any, result: Any) -> Any:
    """Return a scenario in which a hook returns something or raises."""

    def scenario(torch: Any, log: Any) -> Any:
        x = _leaf(torch, 1.0, 2.0)
        y = x * 2
        register(x, y)(lambda *args: result(torch, *args))
        y.sum().backward()
        return x.grad

    return scenario


def _divide(*args: Any) -> Any:
    raise ZeroDivisionError("division by zero")


_ON_LEAF = lambda x, y: x.register_hook
_ON_RESULT = lambda x, y: y.register_hook
_ACCUMULATED = lambda x, y: x.register_post_accumulate_grad_hook
_BEFORE = lambda x, y: y.grad_fn.register_prehook
_AFTER = lambda x, y: y.grad_fn.register_hook
_KINDS = {"leaf": _ON_LEAF, "result": _ON_RESULT, "accumulated": _ACCUMULATED, "before": _BEFORE, "after": _AFTER}
_RESULTS = {
    "raises": _divide,
    "an int": lambda torch, *args: 3,
    "a tensor": lambda torch, *args: torch.ones(2),
    "of another shape": lambda torch, *args: torch.ones(3),
    "of another dtype": lambda torch, *args: torch.ones(2).double(),
    "a tuple of one": lambda torch, *args: (torch.ones(2),),
    "a tuple of two": lambda torch, *args: (torch.ones(2) * 5, None),
    "a tuple of wrong shapes": lambda torch, *args: (torch.ones(4), None),
    "a tuple of None": lambda torch, *args: (None,),
    "two None": lambda torch, *args: (None, None),
    "three None": lambda torch, *args: (None, None, None),
}
SCENARIOS = {
    f"{kind}: {what}": _with_hook(register, result)
    for kind, register in _KINDS.items()
    for what, result in _RESULTS.items()
}


def register_hook_on_invalid_tensor(torch, log):
    said = []
    for call in (
        lambda: (_leaf(torch) * 2).register_post_accumulate_grad_hook(print),
        lambda: torch.ones(1).register_post_accumulate_grad_hook(print),
        lambda: torch.ones(1).register_hook(print),
        lambda: torch.ones(1).retain_grad(),
    ):
        try:
            call()
        except RuntimeError as error:
            said.append(str(error).partition(". ")[0])  # retrograd's error is longer
    return said


def post_accumulate_hook_clears_grad(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    x.register_post_accumulate_grad_hook(log.hook("a", lambda t: setattr(t, "grad", None)))
    (x * 2).sum().backward()
    return x.grad


def optimizer_step_in_post_accumulate_hook(torch, log):
    x = _leaf(torch, 1.0, 2.0)

    def step(t: Any) -> None:
        with torch.no_grad():
            t.sub_(0.5 * t.grad)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    return x, x.grad


def post_accumulate_hook_is_not_called_by_grad(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    x.register_post_accumulate_grad_hook(log.hook("a"))
    torch.autograd.grad((x * 2).sum(), x)
    return x.grad


def grad_sees_hooks(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(log.hook("y"))
    x.register_hook(log.hook("x", lambda grad: grad * 3))
    return torch.autograd.grad(y.sum(), [x, y])


def grad_of_a_hooked_intermediate_tensor(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(log.hook("y", lambda grad: grad * 7))
    y.grad_fn.register_prehook(log.hook("before", lambda grads: (grads[0] * 3,)))
    return torch.autograd.grad((y * 3).sum(), [x, y])


def grad_of_a_hooked_leaf(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(log.hook("y", lambda grad: grad * 7))
    y.grad_fn.register_prehook(log.hook("before", lambda grads: (grads[0] * 3,)))
    return torch.autograd.grad((y * 3).sum(), y)


def backward_with_inputs(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    for name, each in (("x", x), ("y", y)):
        each.register_hook(log.hook(name))
    x.register_post_accumulate_grad_hook(log.hook("accumulated"))
    y.sum().backward(inputs=[x], retain_graph=True)
    y.sum().backward(inputs=[y])
    return x.grad, y.grad


def hooks_before_and_after_inplace_operation(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(log.hook("old"))
    y.mul_(3)
    y.register_hook(log.hook("new"))
    y.sum().backward()
    return x.grad


def retain_grad_before_inplace_operation(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return y.grad


def hooks_on_views(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 1
    v = y[0]
    v.register_hook(log.hook("v"))
    y.mul_(3)
    w = y[1]
    w.register_hook(log.hook("w"))
    (v * w).backward()
    return x.grad


def hooks_on_one_of_several_results(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    first, second = (x * 2).unbind()
    first.register_hook(log.hook("first"))
    second.register_hook(log.hook("second"))
    (first * 3).backward()
    return x.grad


def _two(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx: Any, product: Any, total: Any) -> Any:
            a, b = ctx.saved_tensors
            return product * b + total, product * a + total

    return Two.apply


def hooks_on_a_custom_function(torch, log):
    a, b = _pair(torch)
    product, total = _two(torch)(a, b)
    product.register_hook(log.hook("product", lambda grad: grad * 2))
    total.register_hook(log.hook("total"))
    product.grad_fn.register_hook(log.hook("after"))
    product.grad_fn.register_prehook(log.hook("before"))
    (product + total).sum().backward()
    return a.grad, b.grad


def hooks_on_accumulate_grad(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    x.register_hook(log.hook("x 1"))
    end = (x * 1).grad_fn.next_functions[0][0]
    end.register_prehook(log.hook("before"))
    end.register_hook(log.hook("after"))
    x.register_hook(log.hook("x 2"))
    x.register_post_accumulate_grad_hook(log.hook("accumulated"))
    (x * 2).sum().backward()
    return x.grad


def _passes(torch: Any, result: Any) -> Any:
    class Pass(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return result(grad)

    return Pass.apply


def none_gradient_at_custom_function(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    stop = _passes(torch, lambda grad: None)
    seen = _passes(torch, log.hook("seen", lambda grad: grad))
    stop(seen(x)).sum().backward()
    return x.grad


def none_gradient_at_hooks(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(log.hook("y"))
    y.grad_fn.register_prehook(log.hook("before"))
    y.grad_fn.register_hook(log.hook("after"))
    y.retain_grad()
    x.register_hook(log.hook("x"))
    x.register_post_accumulate_grad_hook(log.hook("accumulated"))
    _passes(torch, lambda grad: None)(y).sum().backward()
    return x.grad, y.grad


def none_gradient_cannot_be_replaced(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: torch.ones(2))
    _passes(torch, lambda grad: None)(y).sum().backward()


def nested_backward_pass_in_a_hook(torch, log):
    x = _leaf(torch, 1.0, 2.0)

    def inner(grad: Any) -> Any:
        y = _leaf(torch, 3.0)
        y.register_hook(log.hook("inner"))
        (y * y).sum().backward()
        return grad * y.grad

    x.register_hook(inner)
    (x * 2).sum().backward()
    return x.grad


def grad_mode_in_hooks(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * x
    y.register_hook(lambda grad: log.append((torch.is_grad_enabled(), grad.requires_grad)))
    torch.autograd.grad(y.sum(), x, create_graph=True)
    y.sum().backward()


def second_derivative_through_a_hook(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return slope.detach(), torch.autograd.grad(slope.sum(), x)


def multi_grad_hook(torch, log):
    a, b = _pair(torch)
    c = a * b
    d, e = c.sin(), c.exp()
    for mode in ("all", "any"):
        torch.autograd.graph.register_multi_grad_hook([a, b, c, d, e], log.hook(mode), mode=mode)
    d.sum().backward(retain_graph=True)
    (d + e).sum().backward(retain_graph=True)
    torch.autograd.grad((d * e).sum(), [c])


def multi_grad_hook_that_raises(torch, log):
    a, b = _pair(torch)
    torch.autograd.graph.register_multi_grad_hook([a, b], log.hook("all", _divide))
    (a * b).sum().backward()


def multi_grad_hook_that_removes_itself(torch, log):
    a, b = _pair(torch)
    handles: list[Any] = []
    register = torch.autograd.graph.register_multi_grad_hook
    handles.append(register([a, b], log.hook("all", lambda grads: handles[0].remove())))
    (a * b).sum().backward()
    (a * b).sum().backward()


def multi_grad_hook_on_results_of_one_node(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    first, second = (x * 2).unbind()
    torch.autograd.graph.register_multi_grad_hook([first, second, x], log.hook("all"))
    (first * 3).backward()


def multi_grad_hook_with_invalid_mode(torch, log):
    torch.autograd.graph.register_multi_grad_hook([_leaf(torch)], print, mode="some")


def multi_grad_hook_without_gradient(torch, log):
    torch.autograd.graph.register_multi_grad_hook([_leaf(torch), torch.ones(1)], print)


def removable_handles(torch, log):
    hooks, extra = OrderedDict(), OrderedDict()
    handle = torch.utils.hooks.RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = extra[handle.id] = print
    state = handle.__getstate__()
    before = len(hooks), len(extra)
    handle.remove()
    again = torch.utils.hooks.RemovableHandle(hooks)
    again.__setstate__(state)
    return before, len(hooks), len(extra), again.id == handle.id, state[0] is hooks


def handles_of_plain_dictionaries(torch, log):
    torch.utils.hooks.RemovableHandle({})
