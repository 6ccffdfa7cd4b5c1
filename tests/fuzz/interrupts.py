"""Raise KeyboardInterrupt at the n-th bytecode of the package in representative programs, and check the state afterwards.

A program prepares tensors and returns an action and a function that observes the state, as a dict of groups: the values,
versions and gradients of the tensors that the action must change together. After an interrupted action, every group must
be as before or as after the action, or the use of its tensors must raise the error of an interrupted operation, and no
mode may have outlived its block.

``python -m tests.fuzz.interrupts [NAME …]`` interrupts at every bytecode; the suite draws some of them at random.
"""

from __future__ import annotations

import argparse
import atexit
import contextvars
import dis
import io
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy

import retrograd as torch
from retrograd.compat import lazy_imports
from retrograd.core import accumulate, anomaly_mode, grad_mode, saved_tensor_hooks, torch_function
from retrograd.dispatch import intercept
from retrograd.kernels import random
from retrograd.optim import fused
from retrograd.runtime import lazy_functions
from retrograd.utils.checkpoint import checkpoint

Observed = dict[str, Any]
Prepared = tuple[Callable[[], Any], Callable[[], Observed]]

MARKED = "marked"
PROGRAMS: dict[str, Callable[[], Prepared]] = {}
_compiled: list[Any] = []
_folders: list[str] = []


def program(function: Callable[[], Prepared]) -> Callable[[], Prepared]:
    PROGRAMS[function.__name__] = function
    return function


def values(x: Any) -> Any:
    return None if x is None else x.detach().tolist()


def seen(*tensors: Any, leaves: Iterable[Any] = ()) -> Any:
    """Return the values, versions and gradients of ``tensors``, or ``MARKED`` if one of them is marked."""
    try:
        observed = []
        for x in tensors:
            if x is None:
                observed.append(None)
                continue
            grads: Any = None
            if x.requires_grad and not x.is_leaf:
                grads = torch.autograd.grad((x * x).sum(), [*leaves], retain_graph=True, allow_unused=True)
                grads = [values(each) for each in grads]
            observed.append((values(x), x._version, x.requires_grad, grads))
        return observed
    except RuntimeError as error:
        if "was interrupted" in str(error):
            return MARKED
        raise


def leaf(*numbers: float) -> Any:
    return torch.tensor(numbers or (1.0, 2.0, 3.0, 4.0), requires_grad=True)


# --- Forward and in place ---------------------------------------------------------------------------------------------


@program
def forward() -> Prepared:
    x, w = leaf(), torch.ones(4, 4, requires_grad=True)
    return lambda: (torch.tanh(x @ w) * 2 + x).sum(), lambda: {"x": seen(x), "w": seen(w)}


@program
def untracked_in_place() -> Prepared:
    x = torch.ones(4)
    return lambda: x.add_(1), lambda: {"x": seen(x)}


@program
def untracked_view_in_place() -> Prepared:
    x = torch.ones(4)
    v = x[1:3]
    return lambda: v.mul_(2), lambda: {"x": seen(x, v)}


@program
def leaf_in_place() -> Prepared:
    x = leaf()

    def act() -> None:
        with torch.no_grad():
            x.sub_(0.5)

    return act, lambda: {"x": seen(x)}


@program
def recorded_in_place() -> Prepared:
    x = leaf()
    a = x * 1
    return lambda: a.mul_(2), lambda: {"a": seen(a, leaves=[x])}


@program
def recorded_by_result_in_place() -> Prepared:
    x = leaf()
    a = x * 1
    return lambda: a.exp_(), lambda: {"a": seen(a, leaves=[x])}


@program
def recorded_with_operand_in_place() -> Prepared:
    x, w = leaf(), leaf(2.0, 3.0, 4.0, 5.0)
    a = x * 1
    return lambda: a.mul_(w), lambda: {"a": seen(a, leaves=[x, w])}


@program
def view_in_place() -> Prepared:
    x = leaf()
    a = x * 1
    v = a[1:3]
    return lambda: v.mul_(2), lambda: {"a": seen(a, v, leaves=[x])}


@program
def retained_view_in_place() -> Prepared:
    x = leaf()
    a = x * 1
    a.retain_grad()
    v = a[1:3]

    def observe() -> Observed:
        state = {"a": seen(a, v, leaves=[x])}
        if state["a"] is not MARKED:
            (a * a).sum().backward()
            state["a"].append(values(a.grad))
        return state

    return lambda: v.mul_(2), observe


@program
def index_assignment() -> Prepared:
    x = leaf()
    a = x * 1

    def act() -> None:
        a[1:3] = 5.0

    return act, lambda: {"a": seen(a, leaves=[x])}


@program
def copy_into_view() -> Prepared:
    x, w = leaf(), leaf(5.0, 6.0)
    a = x * 1
    v = a[::2]
    return lambda: v.copy_(w), lambda: {"a": seen(a, v, leaves=[x, w])}


@program
def hooked_in_place() -> Prepared:
    x = leaf()
    a = x * 1

    def act() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            a.mul_(a.detach() + 1)

    return act, lambda: {"a": seen(a, leaves=[x])}


@program
def into_out() -> Prepared:
    x, out = leaf().detach(), torch.zeros(4)
    return lambda: torch.add(x, 1, out=out), lambda: {"out": seen(out)}


@program
def element_assignment() -> Prepared:
    x = torch.zeros(4)

    def act() -> None:
        x[2] = 5.0

    return act, lambda: {"x": seen(x)}


@program
def batch_norm() -> Prepared:
    norm = torch.nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    return lambda: norm(x), lambda: {name: seen(each) for name, each in norm.named_buffers()}


@program
def random_in_place() -> Prepared:
    torch.manual_seed(0)
    x = torch.zeros(4)
    return lambda: x.uniform_(), lambda: {"x": seen(x)}


# --- Backward ---------------------------------------------------------------------------------------------------------


@program
def backward() -> Prepared:
    x, w = leaf(), leaf(2.0, 3.0, 4.0, 5.0)
    x.grad, y = torch.ones(4), (x * w).exp().sum()
    return lambda: y.backward(), lambda: {"x": seen(x, x.grad), "w": seen(w, w.grad)}


@program
def backward_twice() -> Prepared:
    x, w = leaf(), leaf(2.0, 3.0, 4.0, 5.0)
    (x * w).sum().backward()
    kept, y = (x.grad, w.grad), (x * w).exp().sum()  # the gradients are tensors, and are added to in place
    return lambda: y.backward(), lambda: {"x": seen(x, kept[0]), "w": seen(w, kept[1])}


@program
def backward_with_hooks() -> Prepared:
    x, w = leaf(), leaf(2.0, 3.0, 4.0, 5.0)
    x.register_hook(lambda grad: grad * 2)
    a = x * w
    a.retain_grad()
    y = a.exp().sum()
    return lambda: y.backward(), lambda: {
        "x": seen(x, x.grad),
        "w": seen(w, w.grad),
        "a": values(a.grad),
    }


@program
def create_graph() -> Prepared:
    x = leaf()
    y = (x**3).sum()

    def act() -> None:
        (dx,) = torch.autograd.grad(y, x, create_graph=True)
        dx.sum().backward()

    return act, lambda: {"x": seen(x, x.grad)}


# --- Optimisers -------------------------------------------------------------------------------------------------------


def stepping(make: Callable[[Any], Any], params: Any = None, steps: int = 1) -> Prepared:
    params = [leaf(), leaf(3.0, 4.0)] if params is None else params
    optimizer = make(params)
    for each in params:
        each.grad = torch.ones_like(each) * 0.5
    for _ in range(steps):
        optimizer.step()

    def observe() -> Observed:
        found = {}
        for i, x in enumerate(params):
            state = optimizer.state.get(x, {})
            observed = seen(x, *state.values())
            found[str(i)] = observed if observed is MARKED else (*state, observed)
        return found

    return optimizer.step, observe


@program
def sgd() -> Prepared:
    return stepping(lambda params: torch.optim.SGD(params, lr=0.1))


@program
def sgd_with_momentum() -> Prepared:
    return stepping(lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1))


@program
def adam() -> Prepared:
    return stepping(lambda params: torch.optim.Adam(params, lr=0.1))


@program
def adamw() -> Prepared:
    return stepping(lambda params: torch.optim.AdamW(params, lr=0.1, amsgrad=True))


@program
def first_step() -> Prepared:
    return stepping(lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5), steps=0)


@program
def rprop() -> Prepared:
    return stepping(lambda params: torch.optim.Rprop(params, lr=0.1, maximize=True))


@program
def nadam() -> Prepared:
    return stepping(lambda params: torch.optim.NAdam(params, lr=0.1, weight_decay=0.1))


@program
def muon() -> Prepared:
    return stepping(lambda params: torch.optim.Muon(params, lr=0.1), (leaf().detach().view(2, 2).requires_grad_(),))


@program
def adam_of_joined_parameters() -> Prepared:
    params = tuple(leaf(5.0 + n, 1.0) for n in range(fused.JOINED_COUNT))
    return stepping(lambda params: torch.optim.Adam(params, lr=0.1, weight_decay=0.1, amsgrad=True), params)


@program
def adam_in_half_precision() -> Prepared:
    params = (leaf().detach().bfloat16().requires_grad_(),)
    return stepping(lambda params: torch.optim.Adam(params, lr=0.1), params)


@program
def adam_in_blocks() -> Prepared:
    fused.STRIDE, before = 8, fused.STRIDE  # two floats
    try:
        ops = fused._levels.made[(numpy.ndarray, numpy.dtype("float64"))] = fused.ArrayOps(
            numpy, numpy.dtype("float64")
        )
    finally:
        fused.STRIDE = before
    ops.length = 2
    params = (leaf().detach().double().requires_grad_(),)
    return stepping(lambda params: torch.optim.Adam(params, lr=0.1, weight_decay=0.1, amsgrad=True), params)


# --- Compiled functions -----------------------------------------------------------------------------------------------


@torch.compile
def deferred(x: Any, w: Any, held: list[Any]) -> Any:
    """Return the result of two segments of several steps; ``held`` gets intermediate results."""
    a = (((x * 3).tanh() + x) * 2 - w).exp().sin()
    held += [a * 0.5 + x, a[1:]]
    b = (((a + w).cos() * x + 1).sigmoid() - a) * 2
    held.append(b.sum() * x)
    w.add_(1)
    c = (((x + w).tanh() * b + x) * 2 - w).exp().sin()
    held.append(c)
    return (((c + w).cos() * x + 1).sigmoid() - a) * 2


@program
def compiled_call() -> Prepared:
    x, w = leaf(), torch.ones(4)
    held: list[Any] = []

    def observe() -> Observed:
        known = {f"held {i}": seen(each, leaves=[x]) for i, each in enumerate(held)}
        return {"w": seen(w), **{f"held {i}": known.get(f"held {i}") for i in range(4)}}

    for _ in range(3):
        deferred(leaf(), torch.ones(4), [])
    return lambda: deferred(x, w, held), observe


@torch.compile
def deferred_step(x: Any, w: Any, held: list[Any]) -> None:
    """Run the backward pass of a pending result; ``held`` gets a result without a graph."""
    held.append((((w.detach() * 3).tanh() + 1).cos() * 2).exp())
    loss = ((((x * 3).tanh() + w) * 2 - x).exp().sin() * w).sum()
    loss.backward()


@program
def compiled_backward() -> Prepared:
    x, w = leaf(), leaf(2.0, 3.0, 4.0, 5.0)
    held: list[Any] = []

    def observe() -> Observed:
        return {"x": seen(x, x.grad), "w": seen(w, w.grad), "held": seen(*held) if held else seen(None)}

    for _ in range(3):
        deferred_step(leaf(), leaf(), [])
    w.grad = torch.ones(4)
    return lambda: deferred_step(x, w, held), observe


# --- Blocks -----------------------------------------------------------------------------------------------------------


def unchanged(act: Callable[[], Any]) -> Prepared:
    return act, dict


@program
def checkpoint_reentrant() -> Prepared:
    x = leaf()
    act = lambda: checkpoint(lambda t: t.exp().sin(), x, use_reentrant=True).sum().backward()
    return act, lambda: {"x": seen(x, x.grad)}


@program
def checkpoint_not_reentrant() -> Prepared:
    x = leaf()
    act = lambda: checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False).sum().backward()
    return act, lambda: {"x": seen(x, x.grad)}


@program
def autocast() -> Prepared:
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)

    def act() -> None:
        with torch.autocast("cpu"):
            x @ w
            with torch.autocast("cpu", enabled=False):
                x @ w

    return unchanged(act)


@program
def grad_modes() -> Prepared:
    x = leaf()

    def act() -> None:
        with torch.no_grad(), torch.enable_grad():
            x * 2
        with torch.inference_mode():
            x * 2
        with torch.set_grad_enabled(False):
            x * 2
        torch.no_grad()(lambda: x * 2)()

    return unchanged(act)


@program
def hooks_block() -> Prepared:
    x = leaf()

    def act() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            x * x
            with torch.autograd.graph.save_on_cpu():
                x * x

    return unchanged(act)


@program
def anomaly_block() -> Prepared:
    x = leaf()

    def act() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                (x * x).sum().backward()
            with torch.autograd.set_detect_anomaly(True):
                x * x

    return unchanged(act)


@program
def default_dtype() -> Prepared:
    def observe() -> Observed:
        found = {"dtype": (torch.get_default_dtype(), torch.zeros(1).dtype, torch.get_default_dtype().is_complex)}
        torch.set_default_dtype(torch.float32)
        return found

    torch.set_default_dtype(torch.float32)
    return lambda: torch.set_default_dtype(torch.float64), observe


@program
def compiled() -> Prepared:
    if not _compiled:
        _compiled.append(torch.compile(lambda t: (t * 2 + 1).tanh()))
    x = leaf()
    return lambda: _compiled[0](x).sum().backward(), lambda: {"x": seen(x, x.grad)}


@program
def saving() -> Prepared:
    x = leaf()

    def act() -> None:
        file = io.BytesIO()
        torch.save({"x": x}, file)
        file.seek(0)
        torch.load(file)

    return act, lambda: {"x": seen(x)}


@program
def saving_to_a_path() -> Prepared:
    if not _folders:
        _folders.append(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, _folders[0])
    folder = _folders[0]
    path = os.path.join(folder, "x.pt")
    for each in os.listdir(folder):
        os.unlink(os.path.join(folder, each))
    torch.save(torch.zeros(4), path)

    def observe() -> Observed:
        return {"file": (os.listdir(folder), values(torch.load(path)) if os.path.exists(path) else None)}

    return lambda: torch.save(torch.ones(4), path), observe


@program
def data_loader() -> Prepared:
    data = torch.utils.data.TensorDataset(torch.arange(4.0), torch.arange(4.0))
    return unchanged(lambda: list(torch.utils.data.DataLoader(data, batch_size=2)))


# --- Interruption -----------------------------------------------------------------------------------------------------


def modes() -> list[Any]:
    """Return the settings that no interrupted action may change."""
    return [
        grad_mode.recording(), grad_mode.in_inference(), grad_mode._hooked.get(), saved_tensor_hooks._stack.get(),
        [*saved_tensor_hooks.before_modification], [*intercept.HANDLERS], intercept.torch_function.handlers(),
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(),
        anomaly_mode.setting.enabled, anomaly_mode.setting.check_nan, numpy.geterr(), held_locks(),
    ]  # fmt: skip


def held_locks() -> list[Any]:
    """Return the locks of the package that this thread holds."""
    locks: list[Any] = [
        accumulate.accumulation_lock, random.Stream.lock, torch_function._changing, lazy_functions._GENERATING,
        lazy_imports._loading,
    ]  # fmt: skip
    return [each for each in locks if each._is_owned()]


def reset() -> None:
    """Release locks that are held, and restore the settings that are not context variables."""
    while locks := held_locks():
        locks[0].release()
    intercept.HANDLERS.clear()
    anomaly_mode.setting.enabled, anomaly_mode.setting.check_nan = False, True
    torch.set_default_dtype(torch.float32)


def _with_own_exception_state(act: Callable[[], Any]) -> Iterator[Any]:
    """Call ``act`` inside a generator, which has an exception state (``sys.exc_info()``) of its own.

    An exception that a trace function raises at the end of an ``except`` block leaves the state as inside of the block,
    and all later exceptions of the process would have the former one as context.
    """
    yield act()


class Interrupter:
    """Trace function that raises KeyboardInterrupt before bytecode number ``n`` of the package; counts if ``n`` is 0."""

    def __init__(self, n: int) -> None:
        self.n, self.count = n, 0
        self.place: tuple[CodeType, int] | None = None
        self.returned: CodeType | None = None  # the code of the function that has just returned

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if "__retrograd__" not in frame.f_globals:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.count += 1
            if self.count == self.n:
                sys.settrace(None)
                self.place = frame.f_code, frame.f_lasti
                raise KeyboardInterrupt
            self.returned = None
        elif event == "return":
            self.returned = frame.f_code
        return self.step

    def run(self, act: Callable[[], Any]) -> bool:
        """Call ``act``; return whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            next(_with_own_exception_state(act))
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return self.place is not None

    def between_signals(self) -> bool:
        """Whether the interpreter would not raise a KeyboardInterrupt at this instruction.

        It handles signals at the start of a function, after the call of a C function and at the end of a loop. The
        exception after a call is raised at the call, which may be in another ``try`` block. A KeyboardInterrupt at the
        very start of ``__exit__``, or of an ``__enter__`` whose object has taken effect already, cannot be handled by a
        context manager written in Python.
        """
        if self.place is None:
            return False
        code, offset = self.place
        before = [each for each in dis.get_instructions(code) if each.offset <= offset]
        if before[-1].opname == "RESUME":
            return code.co_name in ("__exit__", "__enter__")
        if "JUMP_BACKWARD" in before[-1].opname:
            return False
        blocks = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        around = [[each for each in blocks if each.start <= one.offset < each.end] for one in before[-2:]]
        if self.returned is not None and self.returned.co_name != "__init__":
            return True
        return not before[-2].opname.startswith("CALL") or around[0] != around[1]

    def describe(self) -> str:
        if self.place is None:
            return "not interrupted"
        code, offset = self.place
        line = next((line for start, end, line in code.co_lines() if start <= offset < end), None)
        return f"{code.co_filename.rpartition('/')[2]}:{line} in {code.co_name} (instruction {offset})"


def length(name: str) -> int:
    """Return the number of bytecodes of the package in the action of a program, once its functions are generated."""
    for _ in range(2):
        contextvars.copy_context().run(PROGRAMS[name]()[0])
    counter = Interrupter(0)
    contextvars.copy_context().run(counter.run, PROGRAMS[name]()[0])
    reset()
    return counter.count


def expected(name: str) -> tuple[Observed, Observed]:
    """Return the observed states before and after the action of a program."""
    _, observe = PROGRAMS[name]()
    before = observe()
    act, after = PROGRAMS[name]()
    act()
    states = before, after()
    reset()
    return states


def failure(name: str, n: int, states: tuple[Observed, Observed]) -> tuple[str, int]:
    """Interrupt the action of a program at bytecode ``n``; return what is wrong then ("": nothing), and marked groups."""
    return contextvars.copy_context().run(_failure, name, n, *states)


def _failure(name: str, n: int, before: Observed, after: Observed) -> tuple[str, int]:
    act, observe = PROGRAMS[name]()
    usual, interrupter = modes(), Interrupter(n)
    interrupter.run(act)
    place = f"{name}, {n}: {interrupter.describe()}: "
    now = modes()
    if now != usual:
        reset()
        if interrupter.between_signals():
            return "", 0
        return f"{place}modes {[(a, b) for a, b in zip(usual, now, strict=True) if a != b]}", 0
    try:
        state = observe()
    except Exception as error:
        return f"{place}{type(error).__name__}: {error}", 0
    wrong = [key for key, each in state.items() if each not in (MARKED, before.get(key), after.get(key))]
    if wrong:
        return f"{place}{[(key, before.get(key), state[key], after.get(key)) for key in wrong]}", 0
    try:
        again, _ = PROGRAMS[name]()
        again()
    except Exception as error:
        return f"{place}a second run: {type(error).__name__}: {error}", 0
    finally:
        reset()
    return "", sum(each == MARKED for each in state.values())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.interrupts",
        description="Interrupt programs at every bytecode of the package, and check the state afterwards.",
        epilog=f"The programs are: {', '.join(PROGRAMS)}.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="program (default: all)")
    names = parser.parse_args(arguments).names
    unknown = [each for each in names if each not in PROGRAMS]
    if unknown:
        parser.error(f"no program is named {', '.join(unknown)}; the programs are: {', '.join(PROGRAMS)}")
    for name in names or PROGRAMS:
        count, states = length(name), expected(name)
        failures, marked = [], 0
        for n in range(1, count + 1):
            text, marks = failure(name, n, states)
            failures += [text] if text else []
            marked += bool(marks)
        print(f"{name}: {count} bytecodes, {len(failures)} failures, {marked} marked", flush=True)
        print("".join(f"    {each[:300]}\n" for each in failures[:5]), end="", flush=True)


if __name__ == "__main__":
    main()
