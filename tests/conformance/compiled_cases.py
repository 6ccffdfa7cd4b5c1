"""Programs whose compiled functions depend on more than their arguments, or do more than return a result.

A case is a function ``case(torch, compile)``, which returns what it observes, as numbers, strings and lists. It is run
with ``torch.compile`` and with a function that returns its argument, and both must observe the same.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import functools
import itertools
import logging
import os
import random
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy

CASES: dict[str, Callable[[Any, Any], Any]] = {}


def case(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    CASES[function.__name__] = function
    return function


def three(torch: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


def shown(value: Any) -> Any:
    """Return ``value`` with its tensors as lists."""
    if hasattr(value, "tolist"):
        return [str(value.dtype), getattr(value, "requires_grad", None), value.tolist()]
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return [shown(each) for each in value] if isinstance(value, (list, tuple)) else value


def changing(change: Callable[[int], None], call: Callable[[], Any], count: int = 6) -> list[Any]:
    """Call ``change(i)`` and then ``call()``, ``count`` times, and return the results."""
    found = []
    for turn in range(count):
        change(turn // 2)  # twice unchanged
        found.append(shown(call()))
    return found


# -- Memory


@case
def arguments_share_memory(torch: Any, compile: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        y.add_(1)
        return x * y

    f, found = compile(f), []
    for _ in range(4):
        b = three(torch)
        found += [
            shown(f(b[:2], b[1:])),
            shown(b),
            shown(f(b, b)),
            shown(f(b.detach(), b)),
            shown(f(b.view(3), b)),
            shown(b),
        ]
    return found


@case
def arguments_are_written(torch: Any, compile: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        z = x * y + 1
        x.mul_(2)
        y.add_(1)
        return z * x

    f, found = compile(f), []
    x, y = three(torch), three(torch)
    for _ in range(4):
        found += [shown(f(x, y)), shown(x), shown(y), x._version]
    return found


@case
def view_of_a_global(torch: Any, compile: Any) -> Any:
    held = three(torch)

    def f(x: Any) -> Any:
        y = held * 2
        x.add_(1)
        return y + held

    f = compile(f)
    return [[shown(f(held[1:])), shown(held)] for _ in range(4)]


@case
def writes_to_pending_results_and_views(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        v = y[1:]
        w = v + 1
        v.mul_(3)
        y[0] = 7
        z = y * 2
        z += w.sum()
        return y, v, w, z

    f = compile(f)
    return [shown(f(three(torch) + i)) for i in range(4)]


@case
def results_that_alias(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.exp()
        return x, y, y, y.view(3, 1), y.unsqueeze(0).T, x[1:], y.detach(), x.contiguous()

    f, found = compile(f), []
    for _ in range(4):
        x = three(torch).requires_grad_()
        outs = f(x)
        found.append([outs[0] is x, outs[1] is outs[2], outs[3]._base is outs[1], outs[5]._base is x, outs[7] is x,
                      [each._version for each in outs], [type(each.grad_fn).__name__.startswith("View") for each in outs[3:4]]])  # fmt: skip
        outs[6].mul_(2)
        found.append([shown(each) for each in outs])
    return found


@case
def data_and_set(torch: Any, compile: Any) -> Any:
    w = three(torch).requires_grad_()

    def f(x: Any) -> Any:
        y = w * x
        w.data = w.data * 2
        z = w * x
        w.data.add_(1)
        return y, z, w * 1

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(4)]


@case
def numpy_memory(torch: Any, compile: Any) -> Any:
    numbers = numpy.ones(3, "f")
    t = torch.from_numpy(numbers)

    def f(x: Any) -> Any:
        y = t * x
        numbers[1] += 1
        return y, t + 1, y + t

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(4)]


@case
def numpy_memory_of_a_tensor(torch: Any, compile: Any) -> Any:
    t = three(torch)
    numbers = t.detach().numpy()[1:]

    def f(x: Any) -> Any:
        y = t[:2] * x
        numbers[...] = 5
        numbers[0] += y.numel()
        return y, t + 1

    f = compile(f)
    return [shown(f(torch.ones(2) + i)) for i in range(4)]


@case
def storage_memory(torch: Any, compile: Any) -> Any:
    t = three(torch)
    storage = t.untyped_storage()

    def f(x: Any) -> Any:
        y = t * x
        storage.fill_(0)
        return y, t + 1

    f, found = compile(f), []
    for _ in range(4):
        t.copy_(three(torch))
        found.append(shown(f(three(torch))))
    return found


@case
def iadd_of_a_list_element(torch: Any, compile: Any) -> Any:
    held = [three(torch)]

    def f(x: Any) -> Any:
        held[0] += x
        return held[0] * 2

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(4)]


@case
def out_arguments(torch: Any, compile: Any) -> Any:
    buffer = torch.zeros(3)

    def f(x: Any) -> Any:
        y = buffer * 2
        torch.exp(x, out=buffer)
        return y, buffer + 1

    f = compile(f)
    return [shown(f(three(torch) + i)) for i in range(4)]


# -- Modes and settings


@case
def autocast_between_calls(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x: (x @ x).relu()), []
    x = torch.ones(2, 2)
    for on in (False, False, True, True, False, True):
        with torch.autocast("cpu", enabled=on):
            found.append(shown(f(x)))
    return found


@case
def autocast_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any, on: bool) -> Any:
        y = x * 2
        with torch.autocast("cpu", enabled=on):
            z = y @ y
        return z, (y @ y) + 1

    f = compile(f)
    return [shown(f(torch.ones(2, 2), on)) for on in (True, True, False, False, True)]


@case
def grad_modes_between_calls(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x: x * 2 + 1), []
    x = three(torch).requires_grad_()
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad):
        for _ in range(2):
            with mode():
                y = f(x)
                found.append([shown(y), y.is_inference(), y.is_leaf])
    return found


@case
def grad_modes_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        a = x * 2
        with torch.no_grad():
            b = a * 3
            with torch.enable_grad():
                c = a * b
        d = torch.no_grad()(lambda: a + c)()
        return a, b, c, d

    f, found = compile(f), []
    for _ in range(4):
        x = three(torch).requires_grad_()
        outs = f(x)
        found.append([shown(each) for each in outs])
        (outs[0] + outs[2]).sum().backward()
        found.append(shown(x.grad))
    return found


@case
def set_grad_enabled_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any, on: bool) -> Any:
        a = x * 2
        torch.set_grad_enabled(on)
        b = a * 3
        torch.set_grad_enabled(True)
        return a, b

    f = compile(f)
    return [shown(f(three(torch).requires_grad_(), on)) for on in (True, False, False, True, False)]


@case
def inference_mode_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        a = x * 2
        with torch.inference_mode():
            b = a * 3
            with torch.inference_mode(False):
                c = a * 4
        return a, b, c, [each.is_inference() for each in (a, b, c)]

    f = compile(f)
    return [shown(f(three(torch).requires_grad_())) for _ in range(4)]


@case
def mode_left_on(torch: Any, compile: Any) -> Any:
    def f(x: Any, on: bool) -> Any:
        y = x * 2
        torch.set_grad_enabled(on)
        return y + 1

    f, found = compile(f), []
    for on in (False, True, False, True, True):
        found += [shown(f(three(torch).requires_grad_(), on)), torch.is_grad_enabled()]
    torch.set_grad_enabled(True)
    return found


@case
def default_dtype(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x: (x / 2, torch.zeros(1) + x, x.sqrt() * 0.5)), []
    x = torch.tensor([1, 2])
    for kind in (torch.float32, torch.float32, torch.float64, torch.float64, torch.float32):
        torch.set_default_dtype(kind)
        found.append(shown(f(x)))
    torch.set_default_dtype(torch.float32)
    return found


@case
def default_dtype_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        a = x / 2
        torch.set_default_dtype(torch.float64)
        b = x / 2
        torch.set_default_dtype(torch.float32)
        return a, b, x / 4

    f = compile(f)
    return [shown(f(torch.tensor([1, 2]))) for _ in range(4)]


@case
def saved_tensor_hooks(torch: Any, compile: Any) -> Any:
    f, found, packed = compile(lambda x: x.exp() * x), [], []

    def pack(x: Any) -> Any:
        packed.append(x.shape)
        return x

    for on in (False, False, True, True, False):
        x = three(torch).requires_grad_()
        if on:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
                y = f(x)
        else:
            y = f(x)
        y.sum().backward()
        found.append([shown(x.grad), len(packed)])
    return found


@case
def saved_tensor_hooks_inside(torch: Any, compile: Any) -> Any:
    packed = []

    def f(x: Any) -> Any:
        y = x * 2
        with torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(1) or x, lambda x: x):
            z = y.exp()
        return z * y

    f, found = compile(f), []
    for _ in range(4):
        x = three(torch).requires_grad_()
        f(x).sum().backward()
        found.append([shown(x.grad), len(packed)])
    return found


@case
def torch_function_modes(torch: Any, compile: Any) -> Any:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def f(x: Any) -> Any:
        y = x * 2
        with Mode():
            z = y.exp() + 1
        return z * y

    f, found = compile(f), []
    for _ in range(3):
        found.append(shown(f(three(torch))))
    with Mode():
        found.append(shown(f(three(torch))))
    return found, len(seen)


@case
def anomaly_mode(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x: x.sqrt() * 0), []
    for on in (False, False, True, True):
        x = torch.zeros(2, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.set_detect_anomaly(on):
                y = f(x).sum()
            try:
                with torch.autograd.set_detect_anomaly(on):
                    y.backward()
                found.append(shown(x.grad.isnan()))
            except RuntimeError as error:
                found.append("nan" in str(error))
    return found


@case
def transforms(torch: Any, compile: Any) -> Any:
    w = three(torch)
    f = compile(lambda x: (x * w).sin().sum())
    g = compile(lambda x: torch.func.grad(lambda a: (a * w * 2).exp().sum())(x) * w)
    h = compile(lambda x: torch.func.vmap(lambda a: (a * w).sum() + w[0])(x * 2))
    found = []
    for i in range(3):
        x = three(torch) + i
        found += [shown(f(x)), shown(torch.func.grad(f)(x)), shown(g(x)), shown(h(torch.stack([x, x]))),
                  shown(torch.func.jvp(f, (x,), (w,)))]  # fmt: skip
    return found


# -- What Python code reads


class Box:
    kind = 1.0

    def __init__(self) -> None:
        self.v = 1.0

    def __len__(self) -> int:
        return int(self.v)

    def __float__(self) -> float:
        return self.v


@case
def attributes_by_getattr(torch: Any, compile: Any) -> Any:
    k = Box()
    f = compile(lambda x: x * getattr(k, "v") + vars(k)["v"] + len(k) * float(k))  # noqa: B009
    return changing(lambda i: setattr(k, "v", float(i)), lambda: f(three(torch)))


@case
def class_attributes(torch: Any, compile: Any) -> Any:
    class Own(Box):
        pass

    k = Own()
    f = compile(lambda x: x * type(k).kind + k.kind)
    return changing(lambda i: setattr(Own, "kind", i + 0.5), lambda: f(three(torch)))


@case
def dataclasses_and_slots(torch: Any, compile: Any) -> Any:
    @dataclasses.dataclass
    class Data:
        v: float = 1.0

    class Slots:
        __slots__ = ("v",)

    d, s = Data(), Slots()
    s.v = 1.0

    def change(i: int) -> None:
        d.v, s.v = i + 1.0, i * 2.0

    f = compile(lambda x, d=d: x * d.v + s.v)
    return changing(change, lambda: f(three(torch), d))


@case
def computed_attributes(torch: Any, compile: Any) -> Any:
    state = {"v": 1.0}

    class Computed:
        def __getattr__(self, name: str) -> float:
            return state["v"]

        @property
        def p(self) -> float:
            return state["v"] * 2

    k = Computed()
    f = compile(lambda x: x * k.anything + k.p)
    return changing(lambda i: state.update(v=float(i)), lambda: f(three(torch)))


@case
def partial_weakref_contextvar(torch: Any, compile: Any) -> Any:
    k, var = Box(), contextvars.ContextVar("var", default=1.0)
    held = weakref.ref(k)
    scale = functools.partial(lambda a, b: a * b[0], b=[1.0])

    def change(i: int) -> None:
        k.v = float(i)
        var.set(i + 0.5)
        scale.keywords["b"][0] = i * 3.0

    f = compile(lambda x: scale(x) + held().v + var.get())
    return changing(change, lambda: f(three(torch)))


@case
def environment_and_numpy(torch: Any, compile: Any) -> Any:
    numbers, letters, packed = numpy.ones(2), bytearray(b"\1"), array.array("d", [1.0])

    def change(i: int) -> None:
        os.environ["RETROGRAD_CASE"] = str(i)
        numbers[0], letters[0], packed[0] = i, i, i * 0.5

    f = compile(
        lambda x: (
            x * int(os.environ["RETROGRAD_CASE"]) + float(numbers[0]) + float(numbers.sum()) + letters[0] + packed[0]
        )
    )
    found = changing(change, lambda: f(three(torch)))
    del os.environ["RETROGRAD_CASE"]
    return found


@case
def globals_and_eval(torch: Any, compile: Any) -> Any:
    space: dict[str, Any] = {"torch": torch, "scale": 1.0}
    exec("def f(x):\n    return x * scale + eval('scale') + globals()['scale']\ndef g(x):\n    return f(x) * 2", space)
    f = compile(space["g"])

    def change(i: int) -> None:
        space["scale"] = float(i)
        if i == 2:
            exec("def f(x):\n    return x - scale", space)

    return changing(change, lambda: f(three(torch)))


@case
def closures_and_defaults(torch: Any, compile: Any) -> Any:
    k = 1.0

    def inner(x: Any, s: float = 1.0) -> Any:
        return x * k + s

    def change(i: int) -> None:
        nonlocal k
        k = float(i)
        inner.__defaults__ = (i * 2.0,)

    f = compile(lambda x: inner(x) * 2)
    return changing(change, lambda: f(three(torch)))


@case
def replaced_code(torch: Any, compile: Any) -> Any:
    def inner(x: Any) -> Any:
        return x * 2

    def other(x: Any) -> Any:
        return x + 100

    f = compile(lambda x: inner(x) + 1)
    codes = [inner.__code__, other.__code__]
    return changing(lambda i: setattr(inner, "__code__", codes[i % 2]), lambda: f(three(torch)))


@case
def random_numbers(torch: Any, compile: Any) -> Any:
    f = compile(lambda x: x * random.random() + float(numpy.random.rand()) + torch.rand(3) + torch.randn(3) * x)
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    found = [shown(f(three(torch))) for _ in range(4)]
    return found, shown(torch.rand(2))


@case
def dropout(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = torch.nn.functional.dropout(x * 2, 0.5) + 1
        return torch.nn.functional.dropout(y.tanh(), 0.3), torch.rand(1)

    torch.manual_seed(0)
    f, found = compile(f), []
    for _ in range(4):
        x = torch.ones(4, 5, requires_grad=True)
        y, z = f(x)
        y.sum().backward()
        found.append([shown(y), shown(z), shown(x.grad)])
    return found


@case
def seeding_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        torch.manual_seed(3)
        return y + torch.rand(3), torch.nn.functional.dropout(y)

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(3)]


@case
def generators_of_numbers(torch: Any, compile: Any) -> Any:
    g = torch.Generator().manual_seed(1)
    f = compile(lambda x: x + torch.rand(3, generator=g) * x.exp().bernoulli(generator=g).clamp(0, 1)
                if x[0] <= 1 else torch.normal(0.0, 1.0, (3,), generator=g) * x)  # fmt: skip
    return [shown(f(three(torch) * scale)) for scale in (0.0, 0.0, 2.0, 2.0)]


@case
def iterators(torch: Any, compile: Any) -> Any:
    counter, numbers = itertools.count(), iter(range(100))

    def steps() -> Any:
        yield from range(100)

    generator = steps()
    f = compile(lambda x: x * next(counter) + next(numbers) - next(generator) * 2)
    return [shown(f(three(torch))) for _ in range(5)]


@case
def branches_on_elements(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        if y.sum() > 5:
            return y + 1
        while y.max() < 10:
            y = y * 2 + 1
        return y - x.mean().item()

    f = compile(f)
    return [shown(f(three(torch) * scale)) for scale in (1.0, 1.0, 0.1, 0.1, 0.01, 0.4, 1.0)]


@case
def element_reads(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        n = int(y[1]) + float(y[0]) + y.tolist()[2] + y.numpy()[0] + len(y)
        _, *rest = y
        return y + n, rest, str(y), f"{y.sum():.2f}", y[0].item() in y, bool(y[0]), [each.item() for each in y + 1]

    f = compile(f)
    return [shown(f(three(torch) + i)) for i in range(4)]


@case
def shapes_that_depend_on_elements(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x - 2
        return y[y > 0] * 2, y.nonzero(), torch.unique(y.round()), y[y != 0].sum() + y.shape[0]

    f = compile(f)
    return [shown(f(three(torch) + i)) for i in (0, 0, 1, -1, 1)]


@case
def shapes_and_metadata(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = (x * 2).unsqueeze(0).expand(2, 3)
        z = y.t()
        facts = [*y.shape, y.dim(), y.ndim, y.size(0), y.size(-1), y.numel(), len(y), str(y.dtype), y.is_contiguous(),
                 y.stride(), z.stride(), y.requires_grad, y.is_leaf, str(y.device), y.is_floating_point(), y.element_size()]  # fmt: skip
        return facts, y + len(facts), z.contiguous().stride()

    f = compile(f)
    return [shown(f(three(torch).requires_grad_(i < 2))) for i in range(4)]


# -- Effects


@case
def effects_on_containers(torch: Any, compile: Any) -> Any:
    ordered, seen, counts, queue = [], set(), collections.Counter(), collections.deque(maxlen=3)
    grouped, table = collections.defaultdict(list), {}
    add = ordered.append

    def f(x: Any, given: list[Any]) -> Any:
        y = x * 2
        add(len(ordered))
        seen.add(len(seen))
        counts["calls"] += 1
        queue.append(counts["calls"])
        grouped["a"].append(1)
        table[len(table)] = 1
        given.append(y)
        return y

    f, given = compile(f), []
    for _ in range(4):
        f(three(torch), given)
    return ordered, sorted(seen), dict(counts), list(queue), dict(grouped), table, shown(given)


@case
def effects_on_attributes(torch: Any, compile: Any) -> Any:
    class Counting:
        total = 0

    k = Counting()

    def f(x: Any) -> Any:
        Counting.total += 1
        setattr(k, "n", getattr(k, "n", 0) + 1)  # noqa: B010
        k.__dict__["m"] = k.n * 2
        k.last = x * k.m
        return k.last + 1

    f, found = compile(f), []
    for _ in range(4):
        found += [shown(f(three(torch))), shown(k.last), k.n, k.m, Counting.total]
    return found


@case
def effects_without_result(torch: Any, compile: Any) -> Any:
    held: list[Any] = []

    def f(x: Any) -> None:
        held.append(torch.nn.functional.dropout(x))

    torch.manual_seed(0)
    f = compile(f)
    for _ in range(4):
        f(torch.ones(3))
    return shown(held)


@case
def logging_calls(torch: Any, compile: Any) -> Any:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: Any) -> None:
            lines.append(record.getMessage())

    log = logging.Logger("case")
    log.addHandler(Lines())

    def f(x: Any) -> Any:
        y = x * 2
        log.warning("y is %s", y)
        return y + 1

    f = compile(f)
    return [shown(f(three(torch) + i)) for i in range(3)], lines


@case
def keeps_pending_results_outside(torch: Any, compile: Any) -> Any:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "y" not in cache:
            cache["y"] = x.exp()
        cache["z"] = cache["y"] * x
        return cache["z"] + 1

    f, found = compile(f), []
    for i in range(4):
        found.append(shown(f(three(torch) + i)))
        found.append(shown(cache))
        if i == 1:
            cache.clear()
    return found


# -- Hooks


@case
def hooks_of_modules(torch: Any, compile: Any) -> Any:
    layer, seen = torch.nn.Linear(3, 3), []
    for each in layer.parameters():
        torch.nn.init.constant_(each, 0.5)
    f, removed = compile(lambda x: layer(x)), []

    def change(i: int) -> None:
        if i == 1:
            removed.append(layer.register_forward_hook(lambda module, args, out: out * 2))
        if i == 2:
            removed.append(layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,)))
        if i == 3:
            removed.append(torch.nn.modules.module.register_module_forward_hook(lambda *given: seen.append(1)))

    found = changing(change, lambda: f(torch.ones(2, 3)), 8)
    for each in removed:
        each.remove()
    return found, len(seen)


@case
def hooks_on_gradients(torch: Any, compile: Any) -> Any:
    w = three(torch).requires_grad_()
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = w * x
        y.register_hook(lambda g: seen.append(shown(g)))
        z = y.exp()
        z.retain_grad()
        seen.append(z)
        return z.sum()

    f, found = compile(f), []
    for turn in range(5):
        if turn == 2:
            w.register_hook(lambda g: g * 10)
        if turn == 3:
            w.register_post_accumulate_grad_hook(lambda p: seen.append(shown(p.grad)))
        f(three(torch)).backward()
        found.append(shown(w.grad))
    return found, [each if isinstance(each, list) else shown(each.grad) for each in seen]


@case
def hooks_in_a_whole_step(torch: Any, compile: Any) -> Any:
    w, seen = three(torch).requires_grad_(), []
    optimizer = torch.optim.SGD([w], lr=0.1)

    def doubled(p: Any) -> None:
        p.grad.mul_(2)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    step, found = compile(step), []
    for turn in range(6):
        if turn == 2:
            w.register_hook(lambda g: seen.append(1))
        if turn == 4:
            w.register_post_accumulate_grad_hook(doubled)
            optimizer.register_step_post_hook(lambda *given: seen.append(2))
        found += [shown(step(three(torch))), shown(w)]
    return found, seen


# -- Modules and optimisers


def network(torch: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


@case
def replaced_forward(torch: Any, compile: Any) -> Any:
    net = network(torch)
    f = compile(net)
    original = net[1].forward
    replaced = [original, lambda x: x * 2, lambda x: x.exp()]
    return changing(lambda i: setattr(net[1], "forward", replaced[i]), lambda: f(torch.ones(1, 3)))


@case
def changed_modules(torch: Any, compile: Any) -> Any:
    net = network(torch)
    f, x = compile(net), torch.ones(1, 3)
    changes = [
        lambda: None, lambda: net[0].weight.data.mul_(2), lambda: setattr(net[0], "weight", torch.nn.Parameter(torch.ones(4, 3))),
        lambda: net.append(torch.nn.Tanh()), lambda: setattr(net[0].bias, "data", torch.zeros(4)),
        lambda: net[0].requires_grad_(False), lambda: net.double(), lambda: net.float(),
        lambda: net.load_state_dict({key: each + 1 for key, each in net.state_dict().items()}),
    ]  # fmt: skip
    found = []
    for change in changes:
        change()
        for _ in range(2):
            found.append(shown(f(x.to(net[0].weight.dtype))))
    return found


@case
def batch_norm(torch: Any, compile: Any) -> Any:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    f, found = compile(net), []
    for turn in range(6):
        net.train(turn < 4)
        found += [shown(f(torch.randn(5, 3))), shown(net[1].running_mean), shown(net[1].num_batches_tracked)]
    return found


@case
def training_steps(torch: Any, compile: Any) -> Any:
    found = []
    for kind, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.05}), ("RMSprop", {"lr": 0.01})):
        net = network(torch)
        optimizer = getattr(torch.optim, kind)(net.parameters(), **options)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(x: Any, y: Any, net: Any = net, optimizer: Any = optimizer, scheduler: Any = scheduler) -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            return loss.detach()

        run = compile(step)
        for _ in range(5):
            found.append(shown(run(torch.ones(2, 3), torch.zeros(2, 2))))
        found += [shown(each) for each in net.parameters()]
    return found


@case
def accumulated_gradients(torch: Any, compile: Any) -> Any:
    w = three(torch).requires_grad_()
    f = compile(lambda x: (w * x).square().sum().backward())
    found = []
    for turn in range(5):
        f(three(torch) + turn)
        found.append(shown(w.grad))
        if turn == 2:
            w.grad = None
    return found


@case
def two_graphs_in_a_call(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x, y: (x.exp() * 2, y.exp() * 3)), []
    for _ in range(4):
        x, y = three(torch).requires_grad_(), three(torch).requires_grad_()
        a, b = f(x, y)
        a.sum().backward()
        found.append([shown(x.grad), shown(y.grad)])
        b.sum().backward()
        found.append([shown(x.grad), shown(y.grad)])
    return found


@case
def gradients_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g * g).sum() + y

    f, found = compile(f), []
    for _ in range(4):
        x = three(torch).requires_grad_()
        y = f(x)
        y.backward()
        found.append([shown(y), shown(x.grad)])
    return found


@case
def graph_inspection(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        fn = y.grad_fn
        z = y + 1
        return z, fn is not None, fn.next_functions[0][0].variable is x

    f = compile(f)
    return [shown(f(three(torch).requires_grad_())) for _ in range(4)]


@case
def changed_requires_grad(torch: Any, compile: Any) -> Any:
    w = three(torch)

    def f(x: Any) -> Any:
        a = x * w
        w.requires_grad_(not w.requires_grad)
        b = x * w
        x2 = (x * 2).requires_grad_() if not x.requires_grad else x * 2
        return a, b, x2

    f, found = compile(f), []
    for _ in range(4):
        found.append(shown(f(three(torch))))
        w.requires_grad_(False)
    return found


@case
def custom_functions_and_checkpoints(torch: Any, compile: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    def f(x: Any) -> Any:
        y = Twice.apply(x * 1) + 1
        return torch.utils.checkpoint.checkpoint(lambda a: a.exp() * y, x, use_reentrant=False)

    f, found = compile(f), []
    for _ in range(4):
        x = three(torch).requires_grad_()
        f(x).sum().backward()
        found.append(shown(x.grad))
    return found


# -- Control flow


@case
def exceptions_in_the_middle(torch: Any, compile: Any) -> Any:
    held: list[Any] = []

    def f(x: Any, fail: bool) -> Any:
        y = x * 2
        held.append(y)
        z = y + 1
        if fail:
            raise ValueError("middle")
        try:
            z @ torch.ones(7)
        except RuntimeError:
            z = z * 3
        return z + 1

    f, found = compile(f), []
    for fail in (False, True, True, False, True, False):
        try:
            found.append(shown(f(three(torch), fail)))
        except ValueError as error:
            found.append(str(error))
        found.append(shown(held[-1]))
    return found


@case
def errors_of_operations(torch: Any, compile: Any) -> Any:
    def f(x: Any, i: Any) -> Any:
        y = x * 2
        return y[i] + y.view(3)[torch.tensor([0, 1])].sum() + torch.arange(4)[: len(y)] // i

    f, found = compile(f), []
    for i in ([1], [1], [2], [5], [0], [1]):
        try:
            found.append(shown(f(three(torch), torch.tensor(i))))
        except (IndexError, RuntimeError, ZeroDivisionError) as error:
            found.append(str(error).splitlines()[0])
    return found


@case
def changing_numbers(torch: Any, compile: Any) -> Any:
    f = compile(lambda x, n: x * n + n)
    return [shown(f(three(torch), n)) for n in (1, 1, True, True, 1.0, 0.0, -0.0, 2**40, float("nan"), 1e300, 3, 1)]


@case
def signs_of_zero(torch: Any, compile: Any) -> Any:
    f = compile(lambda x, n: 1 / torch.clamp(x, max=n))
    return [shown(f(torch.ones(2), n)) for n in (0.0, 0.0, -0.0, -0.0, 0.0)]


@case
def kinds_of_arguments(torch: Any, compile: Any) -> Any:
    f = compile(lambda x, *more, scale=1, **rest: x * scale + sum(rest.values()) + len(more))
    x = three(torch)
    found = []
    for _ in range(2):
        for args, kwargs in (((x,), {}), ((x, 1), {"scale": 2}), ((x,), {"a": 1, "b": x}), ((x.double(),), {"scale": x}),
                             ((x[::2],), {}), ((x.requires_grad_(),), {}), ((x.detach().expand(2, 3),), {}), ((torch.ones(0),), {})):  # fmt: skip
            found.append(shown(f(*args, **kwargs)))
    return found


@case
def structures(torch: Any, compile: Any) -> Any:
    Pair = collections.namedtuple("Pair", "a b")

    @dataclasses.dataclass
    class Out:
        loss: Any
        parts: dict[str, Any]

    def f(batch: dict[str, Any]) -> Any:
        y = batch["x"] * batch["n"]
        return Out(y.sum(), {"y": y, "pair": Pair(y + 1, [y, {"z": y.exp()}]), "none": None, "text": "a"})

    f, found = compile(f), []
    for n in (1, 1, 2, 2):
        out = f({"x": three(torch), "n": n})
        found += [shown(out.loss), shown(out.parts), type(out.parts["pair"]).__name__, type(out).__name__]
    return found


@case
def generators(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        for i in range(3):
            x = x * 2 + i
            yield x

    def g(x: Any) -> Any:
        return sum(f(x)) + next(held)

    held = f(three(torch))
    f2, g2 = compile(f), compile(g)
    return [[shown(each) for each in f2(three(torch))] for _ in range(3)], [shown(g2(three(torch))) for _ in range(3)]


@case
def nested_compiled_functions(torch: Any, compile: Any) -> Any:
    inner = compile(lambda x, n: x * n + 1)
    outer = compile(lambda x, n: inner(x * 2, n).exp() + inner(x, n + 1))
    return [[shown(outer(three(torch), n)), shown(inner(three(torch), n))] for n in (1, 1, 2, 2, 1)]


@case
def recursion(torch: Any, compile: Any) -> Any:
    def f(x: Any, n: int) -> Any:
        return x if n == 0 else f(x * 2, n - 1) + x

    compiled = compile(f)
    f = compiled
    return [shown(compiled(three(torch), n)) for n in (2, 2, 3, 3, 0, 2)]


@case
def compiled_methods(torch: Any, compile: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.scale, self.calls = scale, 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.inner(x) + self.calls

        def inner(self, x: Any) -> Any:
            return x * self.scale

    one, two = Net(1.0), Net(2.0)
    Net.inner = compile(Net.inner)
    f, g = compile(one), compile(two.forward)
    found = []
    for _ in range(3):
        found += [shown(f(three(torch))), shown(g(three(torch))), shown(two(three(torch))), one.calls, two.calls]
        one.scale += 1
    return found


@case
def excluded_functions(torch: Any, compile: Any) -> Any:
    state = {"n": 0}

    @torch.compiler.disable
    def plain(x: Any) -> Any:
        state["n"] += 1
        return x * state["n"]

    f = compile(lambda x: plain(x * 2) + plain(x))
    return [shown(f(three(torch))) for _ in range(4)]


@case
def threads(torch: Any, compile: Any) -> Any:
    f, found = compile(lambda x, n: (x * n + 1).exp().sum() * n), {}

    def work(n: int) -> None:
        found[n] = [shown(f(three(torch) / (i + 1), n)) for i in range(20)]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return [found[n] for n in range(4)]


@case
def threads_inside(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        found = []
        y = x * 2
        shape = y.tolist()  # a pending result is not given to another thread
        worker = threading.Thread(target=lambda: found.append((torch.ones(3) * len(shape) + y).exp()))
        worker.start()
        worker.join()
        return y + found[0]

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(4)]


@case
def copied_contexts(torch: Any, compile: Any) -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        kept.append(contextvars.copy_context())
        return y + 1

    f, found = compile(f), []
    for _ in range(4):
        found.append(shown(f(three(torch))))
        found.append(shown(kept[-1].run(lambda: (three(torch) * 2 + 1) * 3)))
        found.append(shown(kept[-1].run(f, three(torch))))
    return found


@case
def results_that_are_dropped(torch: Any, compile: Any) -> Any:
    """They are freed in the call, once the segment is computed."""

    def function(x: Any) -> Any:
        a = x * 2
        b = a + 1
        dead = weakref.ref(a)
        b.tolist()
        del a
        return b, dead() is None

    run = compile(function)
    return [shown(run(three(torch))) for _ in range(4)]


@case
def copies_and_pickles(torch: Any, compile: Any) -> Any:
    import copy
    import pickle

    def f(x: Any) -> Any:
        y = x * 2
        return (
            copy.copy(y),
            copy.deepcopy(y + 1),
            pickle.loads(pickle.dumps(y - 1)),
            y.clone(),
            torch.nn.Parameter(y * 3).data,
        )

    f = compile(f)
    return [shown(f(three(torch))) for _ in range(3)]


@case
def attributes_of_results(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        y.tag = "a"
        y.other = y + 1
        return y

    f, found = compile(f), []
    for _ in range(3):
        y = f(three(torch))
        found += [
            shown(y),
            y.tag,
            shown(y.other),
            hasattr(y, "missing"),
            isinstance(y, torch.Tensor),
            type(y) is torch.Tensor,
        ]
    return found


@case
def strided_inputs(torch: Any, compile: Any) -> Any:
    f = compile(lambda a, b: ((a * 2 + b).t().reshape(-1) * a.sum()).view(3, 3))
    a, b = torch.arange(9.0).view(3, 3), torch.arange(9.0).view(3, 3) + 1
    return [
        shown(f(*given)) for given in ((a, a), (a, b), (a.t(), b), (a, b.t()), (a[:, :1].expand(3, 3), b), (a, a)) * 2
    ]


@case
def tuples_of_results(torch: Any, compile: Any) -> Any:
    def f(x: Any) -> Any:
        a, b = (x * 2).chunk(2)
        values, places = (a + b).max(0)
        parts = torch.stack([a, b]).unbind(1)
        return a * b, values, places, parts[0] + 1, torch.cat([b, a]).split(3)[1], (x * 1).topk(2).values

    f = compile(f)
    return [shown(f(torch.tensor([3.0, 1.0, 2.0, 5.0]) + i)) for i in range(4)]


@case
def dynamic_types(torch: Any, compile: Any) -> Any:
    f = compile(
        lambda x: types.SimpleNamespace(y=x.to(torch.float64) * 2, z=x.long() // 2, w=(x > 1) & (x < 3)).__dict__
    )
    return [shown(f(three(torch) + i)) for i in range(3)]


@case
def many_paths(torch: Any, compile: Any) -> Any:
    def f(x: Any, n: int) -> Any:
        for i in range(n % 7):
            x = x * (n % 5) + i if n % 3 else (x - n).tanh()
        return x

    f = compile(f)
    return [shown(f(three(torch), n)) for n in [*range(60), *range(30)]]
