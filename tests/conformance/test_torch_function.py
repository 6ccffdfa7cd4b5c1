"""``__torch_function__`` and ``torch.overrides``: arguments of handlers, and no cost without overrides.

``scenarios/torch_function.py`` has programs that use it.
"""

from __future__ import annotations

import copy
import gc
import inspect
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.core import torch_function
from retrograd.dispatch import torch_function_overrides
from retrograd.dispatch.intercept import HANDLERS, OVERRIDING
from retrograd.dispatch.operand_promotion import PLAIN
from tests.conformance.torch_function_cases import handler_arguments, recorded, resolve

PLACES = sorted({name.rpartition(".")[0] for name in recorded()} - {"Tensor.__cuda_array_interface__"})
#: Functions with other handler arguments: NumPy's protocol does not dispatch; an inner function may dispatch before the outer one.
OTHERWISE = {"Tensor.__array_wrap__", "split", "split_copy"}


@pytest.mark.parametrize("place", PLACES)
def test_handler_arguments_match_pytorch(place: str) -> None:
    wrong = []
    for name, (arguments, expected) in recorded().items():
        if name.rpartition(".")[0] != place or name in OTHERWISE or resolve(torch, name) is None:
            continue
        of_class = name.startswith("Tensor.")
        for known in (True,) if of_class else (False, True):  # the first override, and others
            if not known:
                torch_function.forget_classes()
            found = handler_arguments(torch, name, arguments, of_class)
            if json.loads(json.dumps(found)) != expected:
                wrong.append((name, arguments, known, found, expected))
    assert wrong == []


def test_python_functions_accept_handler_arguments() -> None:
    for each in torch_function_overrides.every().values():
        if each.hand is None:
            continue
        needed = [one for one in inspect.signature(each.hand).parameters.values() if one.default is one.empty]
        args, kwargs = each.hand(*[object() for one in needed if one.kind is one.POSITIONAL_OR_KEYWORD])
        inspect.signature(each.function).bind(*args, **kwargs)


def codes() -> list[Any]:
    """Return the code objects of functions of every kind."""
    functions = torch.exp, torch.sum, torch.cat, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__pow__
    more = (
        torch.nn.functional.relu,
        torch.linalg.inv,
        torch.Tensor.shape.fget,
        torch.Tensor.__len__,
        torch.zeros,
        torch.fft.fft,
    )
    return [each.__code__ for each in (*functions, *more)]


def use(at: Any = torch) -> list[Any]:
    x = at.ones(2)
    return [
        at.exp(x),
        at.sum(x),
        at.cat([x]),
        x.add(1),
        x + 1,
        x**2,
        at.nn.functional.relu(x),
        x.shape,
        len(x),
        at.zeros(1),
    ]


def test_no_dispatch_without_overrides() -> None:
    use()
    before = codes()
    torch.nn.Parameter(torch.ones(1)), torch.nn.Buffer(torch.ones(1))
    type("Own", (torch.nn.Parameter,), {})
    with torch.no_grad(), torch.device("cpu"):
        pass
    assert codes() == before


def test_nothing_is_left_of_modes_and_classes() -> None:
    use()
    before = codes()
    for _ in range(50):
        with torch.overrides.BaseTorchFunctionMode(), torch.overrides.BaseTorchFunctionMode():
            assert len(HANDLERS) == 2
            use()
    own = type("Own", (torch.Tensor,), {})
    assert len(OVERRIDING) == 1 and type(own([1.0]) * 2) is own
    del own
    gc.collect()
    assert codes() == before and HANDLERS == [] and not OVERRIDING


def test_code_generated_under_a_mode_is_kept() -> None:
    torch.add(torch.ones(1), 1)
    program = """if True:
        import retrograd as torch
        with torch.overrides.BaseTorchFunctionMode():
            first = torch.tanh(torch.ones(2)), torch.ones(2).sum(0), torch.nn.functional.softplus(torch.ones(1))
            torch.clamp(torch.ones(1), min=2)
        assert torch.tanh.op.source
        assert torch.allclose(torch.tanh(torch.ones(2)), first[0]) and torch.clamp(torch.ones(1), min=2) == 2
        with torch.overrides.BaseTorchFunctionMode():
            torch.tanh(torch.ones(1)), torch.sigmoid(torch.ones(1))
        assert torch.sigmoid(torch.zeros(1)) == 0.5 and torch.tanh(torch.zeros(1)) == 0
    """
    exec(program, {})


def test_modules_imported_under_a_mode_dispatch() -> None:
    program = """if True:
        import sys
        import retrograd as torch
        class My(torch.Tensor): pass
        assert "retrograd.fft" not in sys.modules and "retrograd.nn" not in sys.modules
        x = My([1.0, 2.0])
        made = x + 1, torch.fft.fft(x), torch.nn.functional.relu(x), torch.linalg.norm(x), torch.special.erf(x)
        assert [type(each) for each in made] == [My] * 5
        names = []
        class Log(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append(func.__name__)
                return func(*args, **(kwargs or {}))
        with Log():
            import retrograd.nn.init
            torch.nn.init.zeros_(torch.nn.functional.relu(torch.ones(1)))
        assert names == ["ones", "relu", "zero_"], names
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_signatures_and_help_under_dispatch() -> None:
    functions = (
        torch.add,
        torch.sum,
        torch.Tensor.size,
        torch.Tensor.__len__,
        torch.nn.functional.relu,
        torch.Tensor.expand,
    )
    before = [str(inspect.signature(each)) for each in functions], [each.__doc__ for each in functions]
    type("Own", (torch.Tensor,), {})
    assert ([str(inspect.signature(each)) for each in functions], [each.__doc__ for each in functions]) == before


@pytest.mark.parametrize(
    "call",
    [
        "torch.exp('a')",
        "torch.add(torch.ones(1), other='a')",
        "torch.sum(torch.ones(1), dim='a')",
        "torch.zeros(2, dtype=3)",
        "torch.ones(1).add(1, alpha='a')",
        "torch.ones(2).view(3)",
        "torch.cat([torch.ones(1), 1])",
        "torch.nn.functional.linear(1, 2)",
        "torch.ones(2) + torch.ones(3)",
        "torch.ones(1).size(4)",
    ],
)
def test_errors_under_dispatch(call: str) -> None:
    def said() -> tuple[type, str, list[str]]:
        with pytest.raises(Exception) as caught:
            eval(call, {"torch": torch})
        frames = [each.name for each in caught.traceback if "<" in str(each.path)]
        return caught.type, str(caught.value), frames[:1]

    before = said()
    type("Own", (torch.Tensor,), {})
    assert said()[:2] == before[:2]


def test_argument_error_shows_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETROGRAD_TRACEBACK")
    type("Own", (torch.Tensor,), {})
    for call in (lambda: torch.exp("a"), lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2).view(3)):
        with pytest.raises((TypeError, RuntimeError)) as caught:
            call()
        below = [each for each in caught.traceback if each.frame.f_globals.get("__retrograd__")]
        assert len(below) == 1


def test_subclasses_leave_the_fast_path() -> None:
    own = type("Own", (torch.Tensor,), {})
    assert own not in PLAIN and torch.nn.Parameter in PLAIN
    y = own([1.0, 2.0]).requires_grad_() * 2
    assert type(y) is own and y.grad_fn is not None


def test_modes_are_per_thread() -> None:
    seen: list[str] = []

    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def work(ready: threading.Barrier, log: bool) -> None:
        for _ in range(50):
            if log:
                with Log():
                    ready.wait()
                    torch.exp(torch.ones(1))
            else:
                ready.wait()
                torch.sin(torch.ones(1))

    ready = threading.Barrier(2, timeout=60)
    threads = [threading.Thread(target=work, args=(ready, log)) for log in (True, False)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(seen) == {"ones", "exp"} and len(seen) == 100


def test_aliases_are_one_function() -> None:
    for name in torch.nn.functional.SHARED:
        assert getattr(torch, name) is getattr(torch.nn.functional, name)


def test_func_transforms_of_subclass() -> None:
    own = type("Own", (torch.Tensor,), {})
    x = own([1.0, 2.0])
    assert torch.func.grad(lambda t: (t * t).sum())(x).tolist() == [2.0, 4.0]
    assert torch.func.vmap(lambda t: t * 2)(x).tolist() == [2.0, 4.0]
    assert torch.func.jvp(torch.sin, (x,), (torch.ones(2),))[1].tolist() == x.cos().tolist()


def test_deepcopy_of_subclass() -> None:
    """PyTorch raises unless ``new_empty`` returns an instance of the class, which it does not by default."""
    x = type("Own", (torch.Tensor,), {})([1.0, 2.0])
    x.note = ["kept"]
    y = copy.deepcopy(x)
    assert type(y) is type(x) and y.note == ["kept"] and y.note is not x.note and y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("make", [lambda: torch.ones(2) * 2, lambda: torch.ones(2, dtype=torch.int64)])
def test_as_subclass_shares_memory(make: Callable[[], Any]) -> None:
    own, x = type("Own", (torch.Tensor,), {}), make()
    for y in (x.as_subclass(own), torch.Tensor._make_subclass(own, x)):
        y.zero_()
        assert type(y) is own and not x.any()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.Tensor._make_subclass(own, torch.ones(2, dtype=torch.int64), True)


def test_warnings_point_to_the_users_line() -> None:
    own = type("Own", (torch.Tensor,), {})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.tensor(own([1.0]).requires_grad_()), (own([1.0]).requires_grad_() * 2).grad
    assert {each.filename for each in caught} == {__file__}
