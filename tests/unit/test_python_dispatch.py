"""``__torch_dispatch__`` of modes and classes; the calls and results are those of PyTorch 2.13 where nothing else is said."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.core.torch_function import HANDLERS, state
from retrograd.nn import functional as F
from retrograd.utils import _python_dispatch as dispatch
from retrograd.utils import checkpoint as checkpoints
from retrograd.utils._pytree import tree_map, tree_map_only
from retrograd.utils.flop_counter import FlopCounterMode, register_flop_formula
from retrograd.utils.module_tracker import ModuleTracker

aten = torch.ops.aten


def shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"T{tuple(value.shape)}"
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, (list, tuple)) else repr(value)


class Log(dispatch.TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert not types and torch.is_grad_enabled() is False
        named = "".join(f", {key}={shown(each)}" for key, each in (kwargs or {}).items())
        self.calls.append(f"{func}({', '.join(map(shown, args))}{named})")
        return func(*args, **(kwargs or {}))


def logged(function: Callable[[], Any]) -> list[str]:
    with Log() as log:
        function()
    return log.calls


X = torch.arange(12.0).reshape(3, 4) / 7
IMAGE, WEIGHT = X.reshape(1, 1, 3, 4), torch.ones(2, 1, 3, 3)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (lambda: X * 2 + 1, ["aten.mul.Tensor(T(3, 4), 2)", "aten.add.Tensor(T(3, 4), 1)"]),
        (lambda: 1 - X, ["aten.rsub.Scalar(T(3, 4), 1)"]),
        (lambda: 2**X, ["aten.pow.Scalar(2, T(3, 4))"]),
        (lambda: X**2, ["aten.pow.Tensor_Scalar(T(3, 4), 2)"]),
        (lambda: X > 1, ["aten.gt.Scalar(T(3, 4), 1)"]),
        (lambda: X.sum(0, keepdim=True), ["aten.sum.dim_IntList(T(3, 4), [0], True)"]),
        (lambda: X.mean(1), ["aten.mean.dim(T(3, 4), [1])"]),
        (lambda: X.max(1), ["aten.max.dim(T(3, 4), 1)"]),
        (lambda: X.var(0), ["aten.var.correction(T(3, 4), [0], correction=1)"]),
        (lambda: X.norm(), ["aten.linalg_vector_norm.default(T(3, 4))"]),
        (lambda: X[0], ["aten.select.int(T(3, 4), 0, 0)"]),
        (
            lambda: X[1:, 2],
            ["aten.slice.Tensor(T(3, 4), 0, 1, 9223372036854775807)", "aten.select.int(T(2, 4), 1, 2)"],
        ),
        (lambda: X[torch.tensor([0, 2])], ["aten.lift_fresh.default(T(2,))", "aten.index.Tensor(T(3, 4), [T(2,)])"]),
        (lambda: X.to(torch.float64), ["aten._to_copy.default(T(3, 4), dtype=torch.float64)"]),
        (
            lambda: X.t().contiguous(),
            ["aten.t.default(T(3, 4))", "aten.clone.default(T(4, 3), memory_format=torch.contiguous_format)"],
        ),
        (lambda: X.detach(), ["aten.detach.default(T(3, 4))"]),
        (lambda: X[0, 1].item(), ["aten.select.int(T(3, 4), 0, 0)", "aten.select.int(T(4,), 0, 1)",
                                  "aten._local_scalar_dense.default(T())"]),
        (lambda: torch.cat([X, X], 1), ["aten.cat.default([T(3, 4), T(3, 4)], 1)"]),
        (lambda: X.split(2, 1), ["aten.split.Tensor(T(3, 4), 2, 1)"]),
        (lambda: X.clone().add_(1), ["aten.clone.default(T(3, 4))", "aten.add_.Tensor(T(3, 4), 1)"]),
        (lambda: torch.softmax(X, 1), ["aten._softmax.default(T(3, 4), 1, False)"]),
        (
            lambda: F.linear(X, torch.ones(2, 4), torch.ones(2)),
            [
                "aten.ones.default([2, 4], device=device(type='cpu'), pin_memory=False)",
                "aten.ones.default([2], device=device(type='cpu'), pin_memory=False)",
                "aten.t.default(T(2, 4))",
                "aten.addmm.default(T(2,), T(3, 4), T(4, 2))",
            ],
        ),
        (
            lambda: X.reshape(1, 3, 4) @ X.t(),
            [
                "aten.view.default(T(3, 4), [1, 3, 4])",
                "aten.t.default(T(3, 4))",
                "aten.view.default(T(1, 3, 4), [3, 4])",
                "aten.mm.default(T(3, 4), T(4, 3))",
                "aten._unsafe_view.default(T(3, 3), [1, 3, 3])",
            ],
        ),
        (
            lambda: F.conv2d(IMAGE, WEIGHT, padding=1),
            ["aten.convolution.default(T(1, 1, 3, 4), T(2, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)"],
        ),
    ],
)  # fmt: skip
def test_forward_calls(function: Callable[[], Any], calls: list[str]) -> None:
    assert logged(function) == calls


def test_calls_of_a_backward_pass() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = (x * x).exp().sum()
    calls = logged(y.backward)
    assert calls[:3] == [
        "aten.ones_like.default(T(), pin_memory=False, memory_format=torch.preserve_format)",
        "aten.expand.default(T(), [2, 3])",
        "aten.mul.Tensor(T(2, 3), T(2, 3))",
    ]
    assert calls[-1] == "aten.detach.default(T(2, 3))"
    assert torch.allclose(x.grad, torch.full((2, 3), 2 * torch.e))
    assert not HANDLERS and not state()[4]


def test_attention_is_one_call_in_both_directions() -> None:
    q = torch.randn(1, 2, 4, 8, requires_grad=True)
    found = [
        each.partition("(")[0] for each in logged(lambda: F.scaled_dot_product_attention(q, q, q).sum().backward())
    ]
    assert found[0] == "aten._scaled_dot_product_flash_attention_for_cpu.default"
    assert found.count("aten._scaled_dot_product_flash_attention_for_cpu_backward.default") == 1
    assert "aten.bmm.default" not in found


def test_results_of_a_mode_are_recorded() -> None:
    class Zeros(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return torch.zeros_like(result) if func is aten.exp.default else result

    x = torch.ones(3, requires_grad=True)
    with Zeros():
        y = x.exp() + 1
    assert torch.equal(y, torch.ones(3)) and y.grad_fn.name() == "AddBackward0"
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(3))  # the derivative of exp is its result


def test_modes_are_nested() -> None:
    with Log() as outer, Log() as inner:
        _ = X * 2
    assert outer.calls == inner.calls == ["aten.mul.Tensor(T(3, 4), 2)"]
    with Log() as outer, dispatch._disable_current_modes():
        _ = X * 2
    assert outer.calls == [] and not HANDLERS
    mode = Log()
    with mode, mode:
        assert dispatch._get_current_dispatch_mode() is mode
    assert dispatch._get_current_dispatch_mode() is None


def test_an_error_ends_the_mode() -> None:
    class Fails(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Fails():
        _ = X + 1
    assert not HANDLERS and torch.is_grad_enabled()


def test_a_training_step_is_the_same_in_a_mode() -> None:
    def trained(mode: Any) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1),
            nn.Linear(36, 5),
        )  # fmt: skip
        x, target = torch.randn(2, 1, 8, 8), torch.tensor([1, 2])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            with mode:
                loss = F.cross_entropy(model(x), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss

    assert torch.allclose(trained(Log()), trained(torch.enable_grad()))


# --- Classes ----------------------------------------------------------------------------------------------------------


class Logging(torch.Tensor):
    """Wrapper that remembers the names of its operations in ``seen``; ``elem`` is in a slot."""

    __slots__ = ["elem"]
    seen: ClassVar[list[str]] = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem: Any, requires_grad: bool = False) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=requires_grad,
        )  # fmt: skip
        made.elem = elem
        return made

    def __init__(self, elem: Any, requires_grad: bool = False) -> None:
        super().__init__()

    def __repr__(self) -> str:
        return f"Logging({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        args, kwargs = tree_map_only(Logging, lambda each: each.elem, (args, kwargs or {}))
        return tree_map(lambda each: Logging(each) if isinstance(each, torch.Tensor) else each, func(*args, **kwargs))


@pytest.fixture(autouse=True)
def _without_handler() -> Any:
    yield
    from retrograd.python_dispatch import calls

    if calls.handler in HANDLERS:
        calls.handler.__exit__(None, None, None)
    Logging.seen.clear()


def test_wrapper_subclass() -> None:
    x = Logging(torch.tensor([3.0, 4.0]), requires_grad=True)
    assert x.shape == (2,) and x.dtype is torch.float32 and x.device == torch.device("cpu") and x.is_leaf
    y = (x * torch.tensor([1.0, 2.0]) + 1).sum()
    assert repr(y) == "Logging(13.0)" and y.requires_grad and y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert type(x.grad) is Logging and torch.equal(x.grad.elem, torch.tensor([1.0, 2.0]))
    assert Logging.seen == [
        "aten.mul.Tensor", "aten.add.Tensor", "aten.sum.default", "aten.ones_like.default", "aten.expand.default",
        "aten.mul.Tensor", "aten.detach.default",
    ]  # fmt: skip


def test_functions_of_wrapper_subclasses() -> None:
    x = Logging(torch.arange(6.0).reshape(2, 3))
    made = [x[0], x[:, 1], torch.cat([x, x]), x.view(-1), x.unbind(0)[0], x.to(torch.float64), x.clone(), x.softmax(1)]
    made += [torch.stack([x, x], 1), x.index_select(0, torch.tensor([0])), torch.zeros_like(x), x.split(2, 1)[1]]
    assert all(type(each) is Logging and each.shape == each.elem.shape for each in made)
    assert x.add_(1) is x and x.elem[0, 0] == 1
    assert x.sum().item() == 21 and bool(x.sum() > 1)
    assert Logging.seen[-4:] == [
        "aten._local_scalar_dense.default", "aten.sum.default", "aten.gt.Scalar", "aten._local_scalar_dense.default",
    ]  # fmt: skip


def test_wrapper_as_parameter() -> None:
    layer = nn.Linear(4, 3, bias=False)
    weight = layer.weight.detach()
    layer.weight = nn.Parameter(Logging(weight))
    x = torch.randn(2, 4, requires_grad=True)
    for _ in range(2):
        layer(x).elem.shape
    y = layer(x)
    y.backward(Logging(torch.ones(2, 3)))
    assert isinstance(layer.weight, nn.Parameter) and type(layer.weight.grad) is Logging
    assert torch.allclose(layer.weight.grad.elem, torch.ones(3, 2) @ x.detach())
    assert torch.allclose(x.grad.elem, torch.ones(2, 3) @ weight)


def test_handlers_may_return_plain_tensors() -> None:
    class Low(torch.Tensor):
        @staticmethod
        def __new__(cls, a: Any, b: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, (len(a), b.shape[1]), dtype=a.dtype)

        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is aten.mm.default and isinstance(args[0], cls):
                return args[0].a @ (args[0].b @ args[1])
            return func(*tree_map_only(cls, lambda each: each.a @ each.b, args), **(kwargs or {}))

    x = torch.ones(3, 2, requires_grad=True)
    low = Low(torch.ones(4, 1), torch.full((1, 3), 2.0))
    y = low @ x
    assert type(y) is torch.Tensor and torch.equal(y, torch.full((4, 2), 6.0))
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3, 2), 8.0))
    assert type(low + 1) is torch.Tensor


def test_not_implemented_by_the_class() -> None:
    class Refuses(torch.Tensor):
        @staticmethod
        def __new__(cls) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, (2,))

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch.ops.aten.exp.default'; all __torch_dis"):
        Refuses().exp()
    with pytest.raises(RuntimeError, match="that does not define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))


def test_subclass_with_its_own_elements() -> None:
    seen = []

    class Data(torch.Tensor):
        @staticmethod
        def __new__(cls, data: Any) -> Any:
            return torch.Tensor._make_subclass(cls, data)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = Data(torch.ones(2))
    assert type(x + 1) is torch.Tensor and (x @ x).item() == 2
    assert seen == ["aten.add.Tensor", "aten.dot.default"]


def test_wrappers_leave_no_cycle() -> None:
    gc.disable()
    try:
        inner = torch.ones(2)
        gone = weakref.ref(inner)
        x = Logging(inner, requires_grad=True)
        (x * 2).sum().backward()
        del x, inner
        assert gone() is None
    finally:
        gc.enable()


def test_helpers() -> None:
    x = Logging(torch.ones(2))
    assert not dispatch.is_traceable_wrapper_subclass(x)
    assert dispatch.return_and_correct_aliasing(aten.add_.Tensor, (x,), {}, None) is x
    assert dispatch.return_and_correct_aliasing(aten.add.Tensor, (x,), {}, 3) == 3
    assert str(aten.add.Tensor) == "aten.add.Tensor" and aten.add.Tensor.overloadpacket is aten.add
    assert aten.add.Tensor._schema.name == "aten::add"
    with pytest.raises(NotImplementedError, match=r"^torch\.ops\.aten\._embedding_bag is not implemented"):
        aten._embedding_bag(x)
    assert torch.equal(aten.linalg_inv.default(torch.eye(2)), torch.eye(2))


# --- Counting and checkpoints -----------------------------------------------------------------------------------------


def counts(counter: FlopCounterMode) -> dict[str, dict[str, int]]:
    return {key: {str(name): count for name, count in each.items()} for key, each in counter.get_flop_counts().items()}


TABLE = """\
Module                          FLOP    % Total
---------------------------  -------  ---------
Sequential                   53.376K    100.00%
- aten.convolution           23.904K     44.78%
- aten.addmm                  0.320K      0.60%
- aten.mm                     0.640K      1.20%
- aten.convolution_backward  28.512K     53.42%"""


def test_flop_counter() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2, groups=2), nn.Flatten(), nn.Linear(16, 5)
    )
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(2, 3, 7, 7)).sum().backward()
    assert counter.get_total_flops() == 53376
    both = {"aten.convolution": 23904, "aten.addmm": 320, "aten.mm": 640, "aten.convolution_backward": 28512}
    assert counts(counter) == {
        "Global": both,
        "Sequential": both,
        "Sequential.0": {"aten.convolution": 21600, "aten.convolution_backward": 21600},
        "Sequential.2": {"aten.convolution": 2304, "aten.convolution_backward": 6912},
        "Sequential.4": {"aten.addmm": 320, "aten.mm": 640},
    }
    assert counter.get_table(1) == TABLE
    with FlopCounterMode(display=False) as counter:
        nn.ConvTranspose1d(2, 3, 3)(torch.randn(1, 2, 5)).sum().backward()
    assert counts(counter)["Global"] == {"aten.convolution": 180, "aten.convolution_backward": 180}
    with FlopCounterMode(display=False, custom_mapping={aten.relu: lambda shape, out_shape: 7 * shape[0]}) as counter:
        torch.relu(torch.ones(3))
    assert counts(counter) == {"Global": {"aten.relu": 21}}
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.mm"):
        register_flop_formula(aten.mm)(lambda *args: 0)


def test_module_tracker() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    seen = []
    with ModuleTracker() as tracker:
        model[1].register_forward_pre_hook(lambda *args: seen.append((sorted(tracker.parents), tracker.is_bw)))
        x = torch.ones(1, 2, requires_grad=True)
        y = model(x)
        y.register_hook(lambda grad: seen.append((sorted(tracker.parents), tracker.is_bw)))
        y.sum().backward()
        assert tracker.parents == {"Global"}
    inside = ["Global", "Sequential", "Sequential.1"]
    assert seen == [(inside, False), (inside, True)]


@pytest.mark.parametrize(
    ("choice", "products", "sines"),
    [
        (None, 8, 2),
        ([aten.sin.default, aten.sigmoid.default], 8, 1),
        (
            lambda context, func, *args, **kwargs: (
                checkpoints.CheckpointPolicy.MUST_SAVE
                if func is aten.mm.default
                else checkpoints.CheckpointPolicy.PREFER_RECOMPUTE
            ),
            6,
            2,
        ),
    ],
)
def test_selective_checkpoints(choice: Any, products: int, sines: int) -> None:
    def function(x: Any, w: Any) -> Any:
        return torch.sigmoid((x @ w).sin() @ w).sum()

    x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    wanted = torch.autograd.grad(function(x, w), (x, w))
    options = (
        {} if choice is None else {"context_fn": partial(checkpoints.create_selective_checkpoint_contexts, choice)}
    )
    with Log() as log:
        checkpoints.checkpoint(function, x, w, use_reentrant=False, **options).backward()
    assert torch.allclose(x.grad, wanted[0]) and torch.allclose(w.grad, wanted[1])
    names = [each.partition("(")[0] for each in log.calls]
    assert (names.count("aten.mm.default"), names.count("aten.sin.default")) == (products, sines)


def test_wrong_choice_of_a_checkpoint() -> None:
    with pytest.raises(ValueError, match=r"Expected op in `op_list` to be an OpOverload but got: aten\.mm of type"):
        checkpoints.create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(TypeError, match=r"^policy_fn_or_list must be either a function or a list of ops\.$"):
        checkpoints.create_selective_checkpoint_contexts(3)  # type: ignore[arg-type]
