"""Compiled copies of specialised functions: the same results, errors, lines and frames as without them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The functions that are compiled for these tests.
PROGRAMS = ("x * y", "x + y", "2 * x", "x / y", "x.exp()", "x.sum()", "w[1]", "w.t()", "w @ m")


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of an extension module with the functions of PROGRAMS."""
    if importlib.util.find_spec("Cython") is None or shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("needs Cython and a C compiler")
    folder = tmp_path_factory.mktemp("extension")
    command = [sys.executable, str(ROOT / "scripts" / "build_compiled.py"), str(folder), *PROGRAMS]
    subprocess.run(command, env={**os.environ, "CFLAGS": "-O0"}, check=True, capture_output=True)
    (found,) = folder.glob("_compiled.*")
    return found


def printed(setting: object, program: str) -> str:
    """Return what ``program`` prints with ``RETROGRAD_COMPILED`` as ``setting``."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "RETROGRAD_COMPILED": str(setting),
            "RETROGRAD_CODEGEN": "1",
            "RETROGRAD_TRACEBACK": "",  # as users have it
            "PYTHONPATH": str(ROOT / "src"),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


START = """
import traceback, warnings
warnings.simplefilter("always")
import numpy
import retrograd as torch
from retrograd.runtime import extension_module

def show(*values):
    for value in values:
        if isinstance(value, torch.Tensor):
            a = value.detach().numpy()
            print(type(value).__name__, value.dtype, a.shape, a.strides, a.tobytes().hex(), value._version,
                  value.grad_fn and (value.grad_fn.name(), value.grad_fn.code and value.grad_fn.instruction > 0))
        else:
            print(value)

def fail(call):
    try:
        print("no error", call())
    except Exception as error:
        frames = [(each.filename.rpartition("/")[2], each.name) for each in traceback.extract_tb(error.__traceback__)]
        frames = [each for each in frames if each[0] != "_compiled.pyx" and each[1] != "_run"]
        print(type(error).__name__, error, getattr(error, "__notes__", None), frames)

def data(*shape, dtype=torch.float32, seed=0):
    return torch.from_numpy(numpy.random.default_rng(seed).standard_normal(shape)).to(dtype)
"""

#: Programs that print the same with and without the compiled functions.
CASES = {
    "layouts and dtypes": """
for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64):
    for shape in ((), (1,), (3,), (4, 3), (0,), (700,)):
        x, y = data(*shape, dtype=dtype), data(*shape, dtype=dtype, seed=1)
        w, row = data(*shape, 3, dtype=dtype), data(3, dtype=dtype)
        show(x * y, x + y, x / y, 2 * x, x + 2.5, x * True, w * row, w[..., ::2] * w[..., ::2], w.t() if w.ndim == 2 else w)
        show(x * y.to(torch.float64), x.exp() if dtype is not torch.int64 else x, x.sum(), (w.T if w.ndim == 2 else w) + 1)
show(data(3, 3) @ data(3, 3, seed=1), data(3) @ data(3, seed=1), data(2, 3, 3) @ data(2, 3, 3, seed=1))
show(data(3) * numpy.float32(2), torch.ones(3) * torch.tensor(2.0), torch.tensor(2.0) * torch.ones(3))
""",
    "gradients": """
for dtype in (torch.float32, torch.float64):
    x, y, s = (data(*shape, dtype=dtype, seed=1).requires_grad_() for shape in ((3, 4), (4,), ()))
    z = ((x * y + x).exp() / (y + 2) * s)[1]
    (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    show(z, g, *torch.autograd.grad(g.sum() * 2, (x, y, s), retain_graph=True))
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    show(x.grad, y.grad, s.grad)
    x.grad.add_(1)
    show(x.grad, g, z)
    (x @ x.t()).sum().backward()
    show(x.grad)
""",
    "a gradient that the program holds is copied": """
x, held = data(3).requires_grad_(), []
y = x + 1
y.register_hook(lambda g: held.append(g))
y.backward(torch.ones(3))
y = x + 1
y.backward(torch.ones(3))
show(x.grad, *held)
seed = torch.ones(3)
x.grad = None
(x + 1).backward(seed)
x.grad.add_(5)
show(seed, x.grad)
""",
    "modes, views and versions": """
x, y = data(3, 3).requires_grad_(), data(3, 3, seed=1)
with torch.no_grad():
    show(x * y, x[1], (x * y)._version)
with torch.inference_mode():
    z = x * y
    show(z.is_inference(), z[1].is_inference())
fail(lambda: x * z)
v = y[1]
v.add_(1)
show(y, v, v._base is y)
w = x * y
y.mul_(2)
fail(lambda: w.sum().backward())
a = x * 2
a[1] = 0
a[1].mul_(3)
a.sum().backward()
show(x.grad, a)
fail(lambda: a.sum().backward())
""",
    "errors": """
x, y = data(3).requires_grad_(), data(3)
fail(lambda: x * data(4))
fail(lambda: x * "a")
fail(lambda: x * None)
fail(lambda: (x * y).backward())
fail(lambda: x[7])
fail(lambda: data(3, 4) @ data(3, 4))
z = x * y
z.register_hook(lambda g: 1 / 0)
fail(lambda: z.sum().backward())
fail(lambda: x.exp(1))
show((x * y).exp().sum(0, keepdim=True), torch.exp(y, out=torch.empty(3)))
with numpy.errstate(all="raise"):
    show(data(3) * 1e38 * 1e38, data(3) / 0, (data(3) * 1e3).exp())
show(data(3) * 1e38 * 1e38, data(3) / 0, (data(3) * 1e3).exp())
""",
    "classes, hooks and handlers": """
class Own(torch.Tensor):
    pass

class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("called", func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("mode", func.__name__)
        return func(*args, **(kwargs or {}))

x, y = data(3).requires_grad_(), data(3)
show(y.as_subclass(Own) * y, y.as_subclass(Loud) * y, y * y.as_subclass(Loud), torch.nn.Parameter(y) * y)
with Mode():
    show(x * y, (x + y).exp().sum(), x[1])
show(x * y)
with torch.autograd.graph.saved_tensors_hooks(lambda t: (print("pack"), t)[1], lambda t: (print("unpack"), t)[1]):
    z = x * y
z.sum().backward()
show(x.grad)
with torch.autograd.detect_anomaly():
    (x * y).sum().backward()
show(torch.vmap(lambda t: t * y)(data(2, 3)), torch.func.grad(lambda t: (t * y).exp().sum())(y))
f = torch.compile(lambda t: (t * y + t).exp())
show(f(x), f(x), *torch.autograd.grad(f(x).sum(), x))
z = x * y
z.note = 1
print(z.note, z.grad_fn.metadata, z.grad_fn.next_functions[0][0].name())
torch.Tensor.doubled = lambda self: self * 2
show(x.doubled(), torch.mul(input=x, other=y), torch.mul(y, y, out=torch.empty(3)), x.mul(other=y))
""",
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_python(extension: Path, case: str) -> None:
    program = START + CASES[case]
    assert printed(extension, program) == printed(0, program)


def test_compiled_functions_are_used(extension: Path) -> None:
    program = """
import inspect
import retrograd as torch
from retrograd.core import accumulate, engine, views
x, y = torch.ones(3).requires_grad_(), torch.ones(3)
z = x * y
z.sum().backward()
for each in (engine._run, views.view_of, accumulate.sum_gradients, type(z.grad_fn).vjp):
    print(inspect.isfunction(each))
for each in (torch.Tensor.__mul__, torch.Tensor.sum):
    print("compiled_call" not in each.__globals__, inspect.signature(each))
"""
    python, compiled = printed(0, program), printed(extension, program)
    assert python.count("True") == 6
    assert compiled == python.replace("True", "False")


def test_a_copy_is_bound_to_the_globals_of_one_function(extension: Path) -> None:
    """Functions of two operations can have the same text, with different kernels in their globals."""
    program = """
import ast
import retrograd as torch
from retrograd.runtime import extension_module, lazy_functions
find, found = lazy_functions.compiled_copy, []
def note(tree, space):
    found.append((extension_module.key_of_text(ast.unparse(tree)), space))
    return find(tree, space)
lazy_functions.compiled_copy = note
torch.ones(3).exp()
(key, space), = [each for each in found if each[0] in extension_module._functions]
binders = extension_module._functions[key]
print([bind({**space, "form_ufunc": None}) for bind in binders], any(bind(space) for bind in binders))
"""
    assert printed(extension, program) == "[None] True\n"


def test_info_names_the_compiled_functions(extension: Path) -> None:
    program = (
        "from retrograd.cli import info; print([each for each in info().splitlines() if each.startswith('extension')])"
    )
    assert printed(0, program) == "['extension   not used (RETROGRAD_COMPILED=0)']\n"
    assert re.fullmatch(r"\['extension   [1-9]\d* functions'\]\n", printed(extension, program))
