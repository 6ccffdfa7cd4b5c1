"""Specialised functions: the same as the templates that run as they stand, with true lines, without hidden calls."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.dispatch import fast_path, templates
from retrograd.dispatch.declare import _stub, variant
from retrograd.dispatch.op import OPS
from retrograd.extend import pointwise
from retrograd.runtime import lazy_functions
from retrograd.runtime.codegen import compile_tree
from retrograd.runtime.specialization import bind, inlined, lambda_tree, slots, specialize

LIMIT = 3


@inlined
def twice(value: Any) -> Any:
    return value * 2


@inlined
def store(form: Any, target: Any, value: Any) -> None:
    setattr(target, form.name, value)


def example(form: Any, args: Any, target: Any) -> Any:
    """A template with every construct that is reduced."""
    values = slots(form.count)
    for i, factor in enumerate(form.factors):
        if factor == 1:
            bind(values, i, args[i])
        else:
            values[i] = args[i] * factor
    if form.stores and args[0] is not None:
        store(form, target, values[0])
    if any([values[k] is None for k in range(form.count)]):  # noqa: C419
        return None
    chosen = form.choose(values[0], values[1])
    return (twice(chosen), *values) if form.count < LIMIT else dict(zip(form.names, values))  # noqa: B905


def forms() -> Iterator[Any]:
    for stores in (False, True):
        yield SimpleNamespace(
            count=2, factors=[1, 3], stores=stores, name="kept", names=("a", "b"),
            choose=lambda a, b: max(value for value in (a, b)) if a else b,
        )  # fmt: skip
        yield SimpleNamespace(
            count=3, factors=[2, 1, 1], stores=stores, name="kept", names=("a", "b", "c"), choose=lambda a, b: a
        )


@pytest.mark.parametrize("form", list(forms()))
def test_specialised_template_is_equivalent(form: Any) -> None:
    names = ["values", "i", "b"][: form.count]  # two are names of variables of the template
    arguments = ast.arguments([], [ast.arg(each) for each in (*names, "target")], None, [], [], None, [])
    space = dict(globals())
    tree = specialize(example, form, "made", arguments, {"args": names}, space)
    assert "form." not in ast.unparse(tree) and "slots" not in ast.unparse(tree)
    made = compile_tree(tree, __file__, space)
    for values in ([2, 5, 7], [0, 1, 2]):
        targets = SimpleNamespace(), SimpleNamespace()
        given = values[: form.count]
        assert made(*given, targets[0]) == example(form, list(given), targets[1])
        assert vars(targets[0]) == vars(targets[1])


def test_lambda_expressions_are_found_by_their_position() -> None:
    first, second = (lambda a: a + 1), (lambda a: a + 2)
    assert ast.unparse(lambda_tree(first).body) == "a + 1"  # type: ignore[union-attr]
    assert ast.unparse(lambda_tree(second).body) == "a + 2"  # type: ignore[union-attr]
    nothing, other = (lambda a: None), (lambda a: None)
    assert {tree and ast.unparse(tree.body) for tree in map(lambda_tree, (nothing, other))} <= {None, "None"}
    assert lambda_tree(len) is None and lambda_tree(eval("lambda: 1")) is None


def test_tracebacks_and_debuggers_see_the_template() -> None:
    torch.tanh(torch.ones(1))
    template = templates.call if lazy_functions.SPECIALIZE_AT == 1 else lazy_functions._run_template
    assert torch.tanh.__code__.co_filename == template.__code__.co_filename
    lines, first = inspect.getsourcelines(template)
    assert first <= torch.tanh.__code__.co_firstlineno < first + len(lines)
    compile(torch.tanh.op.source, "<source>", "exec")


RIGHT = "x * x; x + 1; x.tanh(); x.sum(); x @ x; x.view(2, 2); x[0]; z.add_(z); z.mul_(2); x.relu()"
WRONG = "x + y; x @ y.view(1, 3); x.view(3, 3); z.add_(y); torch.where(x > 0, x, y); x.permute(0, 0); torch.mm(x, y)"
REPLACED = ["add", "mul", "tanh", "sum_all", "dot", "mm", "mv", "view", "select", "relu", "where_block", "permute"]
#: Operations whose inline variant is disabled, so that the kernel runs.
WITHOUT_INLINE = ("sum_all", "select", "view", "where_block")


@pytest.mark.parametrize("statement", [each.strip() for each in f"{RIGHT};{WRONG}".split(";")])
def test_a_kernel_runs_once_in_a_call(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a call that succeeds nor one that fails runs the same kernel twice."""
    space = {"torch": torch, "x": torch.ones(4, requires_grad=True), "y": torch.ones(3), "z": torch.ones(4)}
    counts: list[str] = []
    replaced = [op for op in OPS.values() if op.name in REPLACED]

    def counted(name: str, kernel: Any) -> Any:
        def run(np: Any, *args: Any, **kwargs: Any) -> Any:
            if np is not numpy:
                raise TypeError  # not a ufunc
            counts.append(name)
            return kernel(np, *args, **kwargs)

        return run

    def call() -> None:
        with contextlib.suppress(RuntimeError, IndexError, TypeError):
            exec(statement, space)

    try:
        for op in replaced:
            monkeypatch.setattr(op, "kernel", counted(op.name, op.kernel))
            if op.name in WITHOUT_INLINE:
                monkeypatch.setattr(op, "inline", None)
            fast_path.install_all_fast_paths(op)
        call()  # generates the code, for which kernels are tried
        counts.clear()
        call()
        assert len(set(counts)) == len(counts)
    finally:
        monkeypatch.undo()
        for op in replaced:
            fast_path.install_all_fast_paths(op)


def test_an_error_of_a_kernel_is_not_hidden() -> None:
    """An error that the arguments do not explain is raised as it is; the kernel is not called again."""
    calls = []

    def kernel(np: Any, self: Any, /) -> Any:
        calls.append(self)
        raise LookupError("a defect")

    broken = _stub(variant(torch.tanh, kernel=kernel, ufunc=None, united=None))
    for count in (1, 2):
        with pytest.raises(LookupError, match="a defect"):
            broken(torch.ones(2))
        assert len(calls) == count + 1  # and one call that finds out whether the kernel is a ufunc


def test_numpy_errors_do_not_change_results() -> None:
    with numpy.errstate(all="raise"):
        assert (torch.ones(2) / 0).tolist() == [float("inf")] * 2
        x = torch.ones(2)
        x.div_(0)
        assert x.tolist() == [float("inf")] * 2


def test_programs_run_without_specialisation() -> None:
    """With RETROGRAD_CODEGEN=0 no function is specialised, with 1 all are, by default those that are called often."""
    program = (
        "import retrograd as torch\n"
        "for count in range(40):\n"
        "    x = torch.ones(3, requires_grad=True)\n"
        "    y = (torch.cat([x, x]).view(2, 3) * x).tanh().sum() + x[0]\n"
        "    y.backward()\n"
        "    z = torch.zeros(3).add_(x.grad, alpha=2)\n"
        "    print([round(each, 4) for each in z.tolist()])\n"
        "try:\n    x + torch.ones(2)\nexcept RuntimeError as error:\n    print(error)\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "RETROGRAD_CODEGEN": value},
            capture_output=True,
            text=True,
        )
        for value in ("0", "1", "")
    ]
    assert len({each.stdout for each in outputs}) == 1, [each.stderr for each in outputs]
    assert "must match" in outputs[0].stdout, outputs[0].stderr


def test_functions_are_specialised_at_a_later_call() -> None:
    program = (
        "import retrograd as torch\n"
        "from retrograd.dispatch import templates\n"
        "from retrograd.runtime.lazy_functions import SPECIALIZE_AT\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "for count in range(1, 40):\n"
        "    y = torch.tanh(x)\n"
        "    y.sum().backward()\n"
        "    assert (torch.tanh.__code__.co_filename == templates.__file__) is (count >= SPECIALIZE_AT), count\n"
        "    vjp = type(y.grad_fn).vjp.__code__.co_filename\n"
        "    assert (vjp == templates.__file__) is (count >= SPECIALIZE_AT), count\n"
        "assert 'tanh' in torch.tanh.op.source\n"
        "print(round(x.grad[0].item(), 2))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RETROGRAD_CODEGEN": "", "RETROGRAD_COMPILED": "0"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "16.38\n", done.stderr


def test_threads_may_call_a_function_first_at_the_same_time() -> None:
    program = (
        "import sys, threading\n"
        "import retrograd as torch\n"
        "sys.setswitchinterval(1e-6)\n"
        "x = torch.ones(3)\n"
        "errors, barrier = [], threading.Barrier(4)\n"
        "def work():\n"
        "    for name in ('tanh', 'mul', 'add', 'cat', 'sum', 'relu', 'exp', 'softmax', 'sigmoid', 'sin', 'cos', 'sqrt'):\n"
        "        barrier.wait()\n"
        "        given = {'cat': ([x, x],), 'mul': (x, x), 'add': (x, x), 'softmax': (x, 0)}.get(name, (x,))\n"
        "        try:\n"
        "            getattr(torch, name)(*given)\n"
        "        except BaseException as error:\n"
        "            errors.append((name, repr(error)))\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[each.start() for each in threads], [each.join() for each in threads]\n"
        "print(errors)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_a_global_variable_of_a_programs_kernel_may_change() -> None:
    """The expressions of the program's functions are not inserted: their globals would be constants."""
    space: dict[str, Any] = {"pointwise": pointwise, "SCALE": 1.0, "OFFSET": 0.0}
    exec(
        "@pointwise(lambda g: g * OFFSET)\ndef scaled(np, x, /):\n    return x * SCALE\n",
        space,
    )
    x = torch.ones(2, requires_grad=True)
    for _ in range(40):
        assert space["scaled"](x).tolist() == [1, 1]
    space["SCALE"] = 5.0
    assert space["scaled"](x).tolist() == [5, 5]


def in_new_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "RETROGRAD_CODEGEN": ""}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_specialisation_is_put_off_where_it_needs_too_deep_a_recursion() -> None:
    program = (
        "import sys\n"
        "import retrograd as torch\n"
        "x = torch.ones(3)\n"
        "torch.remainder(x, x)\n"
        "depth = len(__import__('inspect').stack())\n"
        "sys.setrecursionlimit(depth + 60)\n"
        "for count in range(60):\n"
        "    torch.remainder(x, x)\n"
        "sys.setrecursionlimit(1000)\n"
        "for count in range(60):\n"
        "    torch.remainder(x, x)\n"
        "print(torch.remainder.__code__.co_filename[-12:])\n"
    )
    assert in_new_process(program) == "templates.py\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_forked_while_code_is_generated_generates_code() -> None:
    program = (
        "import os\n"
        "import retrograd as torch\n"
        "from retrograd.runtime import lazy_functions\n"
        "import threading\n"
        "held, stop = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with lazy_functions._GENERATING:\n"
        "        held.set()\n"
        "        stop.wait()\n"
        "thread = threading.Thread(target=hold)\n"
        "thread.start()\n"
        "held.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    torch.hypot(torch.ones(1), torch.ones(1))\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "stop.set()\n"
        "thread.join()\n"
    )
    assert in_new_process(program) == "7\n"
