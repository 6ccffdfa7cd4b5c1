"""Interception of calls of public functions: which handlers get a call, and that nothing is left afterwards."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.core import engine
from retrograd.dispatch.intercept import GO_ON, HANDLERS, OVERRIDING, Call, Handler, interceptable
from retrograd.dispatch.op import ARRAYS
from retrograd.profiler import profile
from retrograd.runtime import user_frame


class Log(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int, list[str]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func.__name__, len(args), list(kwargs or {})))
        return func(*args, **(kwargs or {}))


class Count(Handler):
    """Handler that counts the calls of every function, and changes nothing."""

    def __init__(self, *functions: Any) -> None:
        self.names: list[str] = []
        self.functions = functions

    def wanted(self, function: Any) -> Any:
        return function.__name__ if not self.functions or function in self.functions else None

    def around(self, known: Any, call: Call) -> Any:
        self.names.append(known)
        return call.go_on()


def kinds() -> list[Any]:
    """Return functions of every kind: generated, wrapped, operators, properties, and methods written by hand."""
    t, f = torch.Tensor, torch.nn.functional
    functions = [torch.mul, torch.sum, torch.cat, torch.zeros, t.add, t.add_, t.__mul__, t.__pow__, t.__getitem__]
    functions += [t.__setitem__, t.__len__, t.detach, t.requires_grad_, t.shape.fget, t.T.fget, t.is_cuda.fget, f.relu]
    functions += [f.linear, torch.linalg.inv, torch.fft.fft, torch.autograd.backward, torch.optim.SGD.step]
    return [*functions, engine.run_backward, engine._apply, engine._visit, engine.Plan.__init__]


def use() -> Any:
    """Call functions of every kind, and return a number."""
    x = torch.ones(2, 2, requires_grad=True)
    torch.mul(torch.sum(x), 2).add(1)
    y = torch.nn.functional.linear(x * 2 + x.sum(), torch.cat([x, x]).T[:2, :2]) @ x
    y[0] = torch.fft.fft(torch.zeros(2)).real
    torch.linalg.inv(torch.eye(2)).add_(1)
    torch.autograd.backward((y**2).mean())
    optimizer = torch.optim.SGD([x], 0.1)
    optimizer.step()
    optimizer.zero_grad()
    return len(x), x.is_cuda, x.detach().requires_grad_().shape, torch.nn.functional.relu(y).sum().item()


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Fail a test that leaves a handler, a class, or another code object or kernel behind."""
    use()
    before = [each.__code__ for each in kinds()], dict(vars(ARRAYS))
    yield
    gc.collect()
    assert ([each.__code__ for each in kinds()], dict(vars(ARRAYS))) == before
    assert HANDLERS == [] and not OVERRIDING and not engine.observers


def test_nothing_is_left_of_fifty_modes(unchanged: None) -> None:
    for _ in range(50):
        with Log(), Log():
            use()


def test_nothing_is_left_of_a_subclass(unchanged: None) -> None:
    own = type("Own", (torch.Tensor,), {})
    assert type(own([1.0, 2.0]).requires_grad_() * torch.ones(2)) is own and len(OVERRIDING) == 1
    own([[1.0]]).requires_grad_().mm(own([[1.0]])).backward(), torch.cat([own([1.0]), torch.ones(1)])
    use()
    del own


def test_nothing_is_left_of_a_class_that_is_no_tensor(unchanged: None) -> None:
    duck = type("Duck", (), {"__torch_function__": classmethod(lambda cls, func, types, args=(), kwargs=None: 1)})
    assert torch.mul(torch.ones(1), duck()) == 1 == torch.stack([duck()]) and len(OVERRIDING) == 1
    del duck


def test_nothing_is_left_of_a_profiler_and_of_autocast(unchanged: None) -> None:
    with profile(), torch.autocast("cpu"):
        use()
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"), profile():
        _ = use()[0] / 0


def test_all_at_once_get_a_call_once(unchanged: None) -> None:
    """Of a mode, autocast and a profiler each gets every call of the user once, and the kernel runs in bfloat16."""
    x, w = torch.ones(2, 2), torch.ones(2, 2)
    log, count = Log(), Count(torch.mm, torch.sum)
    with torch.autocast("cpu"), profile() as p, log, count:
        y = torch.mm(x, w)
        z = torch.sum(y, dim=1, keepdim=True)
    assert y.dtype is torch.bfloat16 and z.shape == (2, 1)
    assert log.calls == [("mm", 2, []), ("sum", 1, ["dim", "keepdim"])]
    assert count.names == ["mm", "sum"]
    assert [each.name for each in p.events() if each.name in ("aten::mm", "aten::sum")] == ["aten::mm", "aten::sum"]


def test_a_compiled_function_beside_the_others(unchanged: None) -> None:
    """A call of a compiled function runs eagerly under a profiler, a mode or autocast, and is recorded afterwards."""
    compiled = torch.compile(lambda x: (x * 2).exp().sum())
    x = torch.ones(3)
    with profile() as p:
        found = compiled(x)
    assert compiled._compiled.count == 0
    assert [each.name for each in p.events()].count("aten::exp") == 1
    log = Log()
    with log, torch.autocast("cpu"), profile() as p:
        assert torch.equal(compiled(x), found)
    assert [name for name, *_ in log.calls].count("exp") == 1
    assert [each.name for each in p.events()].count("aten::exp") == 1
    assert compiled._compiled.count == 0
    assert torch.equal(compiled(x), found) and compiled._compiled.count == 3


@pytest.mark.parametrize("make", [Log, lambda: torch.autocast("cpu"), profile, Count])
def test_another_thread_is_not_intercepted(unchanged: None, make: Any) -> None:
    x, found = torch.ones(2, 2), []

    def work() -> None:
        found.append((x @ x).dtype)

    with make() as handler:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert HANDLERS
    assert found == [torch.float32]
    seen = (
        handler.calls
        if make is Log
        else handler.names
        if make is Count
        else handler.events()
        if make is profile
        else []
    )
    assert list(seen) == []


def test_arguments_arrive_as_they_were_passed(unchanged: None) -> None:
    x, options = torch.ones(2, 2), {"dim": 1}
    log = Log()
    partial = functools.partial(torch.sum, dim=0)
    with log, Log() as inner:
        torch.sum(x, dim=1), torch.sum(x, 1), torch.sum(x, **options), x.sum(0, keepdim=True), torch.sum(input=x)
        torch.sum(*(x, 0)), x.unbind(0), torch.Tensor.sum(x), partial(x)
    expected = [(1, ["dim"]), (2, []), (1, ["dim"]), (2, ["keepdim"]), (0, ["input"]), (2, []), (2, []), (1, [])]
    assert [tuple(each[1:]) for each in inner.calls[:8]] == expected
    assert log.calls == inner.calls  # the inner mode has called the functions with (*args, **kwargs)


def test_errors_of_handlers_end_the_call(unchanged: None) -> None:
    class Failing(Count):
        def around(self, known: Any, call: Call) -> Any:
            raise ValueError(known)

    with Failing(), pytest.raises(ValueError, match="mul"):
        torch.mul(torch.Tensor.mul, 1)
    assert torch.mul(torch.ones(1), 2) == 2


def test_handlers_change_arguments_and_results(unchanged: None) -> None:
    class Doubling(Handler):
        def wanted(self, function: Any) -> Any:
            return True if function is torch.Tensor.add else None

        def around(self, known: Any, call: Call) -> Any:
            call.args = (call.args[0], 2 * call.args[1])
            return -call.go_on()

    with Doubling(), Doubling():
        assert torch.ones(1).add(1) == 5
        assert torch.ones(1) + 1 == 2
    assert torch.ones(1).add(1) == 2


def test_a_handler_may_repeat_a_call(unchanged: None) -> None:
    class Repeating(Count):
        def around(self, known: Any, call: Call) -> Any:
            self.names.append(known)
            return call.go_on() + call.go_on()

    x = torch.ones(1)
    with Repeating(torch.Tensor.exp) as handler:
        y = x.exp()
    assert torch.equal(y, x.exp() + x.exp()) and handler.names == ["exp"]


def test_a_handler_may_ignore_a_call(unchanged: None) -> None:
    class Ignoring(Count):
        def around(self, known: Any, call: Call) -> Any:
            self.names.append(known)
            return GO_ON

    with Ignoring() as handler:
        y = torch.mul(torch.ones(1), 3)
    assert handler.names == ["ones", "mul"] and y == 3


def test_interceptable_functions_keep_name_and_signature() -> None:
    def shown(self: Any, value: int = 1) -> int:
        """Return the value."""
        return value

    made = interceptable(shown)
    assert (
        made.__name__ == "shown"
        and made.__doc__ == "Return the value."
        and inspect.signature(made) == inspect.signature(shown)
    )
    assert made(None) == 1


@pytest.mark.parametrize("kind", [FloatingPointError, ValueError, RuntimeError])
def test_an_error_of_user_code_is_raised_once(kind: type[Exception]) -> None:
    """A call is not repeated if a mode, a class or a saved-tensor hook raises an error."""
    calls: list[str] = []

    def fail_first(*args: object) -> None:
        calls.append("called")
        if len(calls) == 1:
            raise kind("first")

    class Guard(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            fail_first()
            return result

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            fail_first()
            return "second"

    def pack(x: torch.Tensor) -> torch.Tensor:
        fail_first()
        return x

    own = torch.ones(2).as_subclass(Own)
    for call in (
        lambda a: a.add_(1),
        lambda a: a.exp_(),
        lambda a: a + 1,
        lambda a: a.sum(),
        lambda a: torch.softmax(a, 0),
    ):
        a = torch.zeros(2)
        calls.clear()
        with pytest.raises(kind, match="first"), Guard():
            call(a)
        assert len(calls) == 1 and a._version <= 1 and a.max().item() <= 1
    for call in (
        lambda a: torch.add(a, own),
        lambda a: a.mul_(own),
        lambda a: torch.where(a > 0, own, 1),
        lambda a: own + a,
    ):
        calls.clear()
        with pytest.raises(kind, match="first"):
            call(torch.ones(2))
        assert len(calls) == 1
    for call in (lambda a: a.exp_(), lambda a: a.prod(0), lambda a: torch.where(a > 0, a, 1.0), lambda a: a.mul_(2.0)):
        a = torch.zeros(2, requires_grad=True).clone()
        calls.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            try:
                call(a)
            except kind:
                assert len(calls) == 1
        assert a._version <= 1 and a.max().item() <= 1


def test_numpy_errors_do_not_repeat_in_place_operations() -> None:
    big = torch.full((2,), 3e38)
    with numpy.errstate(all="raise"):
        x = torch.full((2,), 3e38)
        x.add_(big, alpha=2.0)
        assert x.tolist() == [float("inf")] * 2
        y = torch.ones(2)
        y.add_(torch.tensor([1e300, 1.0], dtype=torch.float64), alpha=2.0)
        assert y.tolist() == [float("inf"), 3.0]
        z = torch.ones(2)
        z.addcmul_(big, big, value=0.5)
        assert z.tolist() == [float("inf")] * 2


def test_a_call_from_c_is_not_the_expression_around_it() -> None:
    """``functools.reduce(add, values, first)`` has three arguments, the calls of ``add`` have two."""
    matrices = [torch.eye(2) for _ in range(4)]
    for _ in range(3):
        with torch.autocast("cpu"):
            assert functools.reduce(torch.matmul, matrices, torch.eye(2)).dtype is torch.bfloat16
        with Log():
            assert next(map(torch.abs, matrices), None).sum() == 2


def test_a_call_from_c_passes_no_defaults() -> None:
    """The expression around such a call has other arguments than the call."""
    x, log = torch.ones(()), Log()
    with log:
        functools.reduce(torch.dist, [x, x], x)
        max([x, x], key=torch.sum)
        list(map(torch.std, [torch.eye(2)], [0]))
    calls = [each for each in log.calls if each[0] in ("dist", "sum", "std")]
    assert calls == [("dist", 2, []), ("dist", 2, []), ("sum", 1, []), ("sum", 1, []), ("std", 2, [])]


def test_a_repeated_call_arrives_as_the_mode_has_made_it() -> None:
    class Naming(Log):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = {"input": args[0], **(kwargs or {})}
            given: tuple[Any, ...] = ()
            return func(*given, **named)

    class Repeating(Log):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            func(*args, **kwargs)
            return func(args[0], *args[1:], **kwargs)

    x = torch.eye(2)
    for kind, expected in ((Naming, (0, {"input", "dim"})), (Repeating, (1, {"dim"}))):
        log = Log()
        with log, kind():
            torch.sum(x, dim=1)
        assert {(count, frozenset(names)) for name, count, names in log.calls if name == "sum"} == {
            (expected[0], frozenset(expected[1]))
        }


def test_reading_arguments_keeps_no_variables_alive() -> None:
    log = Log()
    with log:
        x = torch.ones(2)
        x.mul_(2).add(x, alpha=2)
        torch.sum(x, dim=0)
        reference = weakref.ref(x)
        log.calls.clear()
        del x
    assert reference() is None


def test_code_that_outlives_the_package_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    function = eval("lambda: torch.sum(torch.ones(2), dim=0)", {"torch": torch})
    with Log():
        function()
    before, key = user_frame.expressions, id(function.__code__)
    assert key in before
    monkeypatch.setattr(user_frame, "expressions", None)  # as the interpreter does when it exits
    del function
    assert key not in before


def test_instances_take_the_fast_path_inside_their_class() -> None:
    own = type("Own", (torch.Tensor,), {})
    x = own([1.0, 2.0]).requires_grad_()
    y = x * 2 + torch.ones(2)
    z = x.detach().mul_(3)[0]
    assert type(y) is type(z) is own and z == 3
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert torch.equal(torch.add(x, x, alpha=2).as_subclass(torch.Tensor), torch.tensor([9.0, 18.0]))


def test_a_profiler_shows_the_conversions_of_autocast() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu"), torch.profiler.profile() as shown:
        torch.mm(x, x)
    assert {"aten::to", "aten::_to_copy", "aten::mm"} <= {each.key for each in shown.key_averages()}
