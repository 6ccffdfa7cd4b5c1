"""``import retrograd`` is fast: parts that most programs do not need are imported on first access."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import retrograd as torch


def in_new_process(program: str) -> str:
    """Return the output of a program run in a new process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_only_tensors_and_autograd() -> None:
    loaded = set(in_new_process("import sys, retrograd; print(*sys.modules)").split())
    parts = ["cuda", "fft", "func", "linalg", "nn", "optim", "random", "serialization", "signal", "special", "utils"]
    assert not {f"retrograd.{part}" for part in parts} & loaded
    heavy = "asyncio decimal hashlib json logging multiprocessing scipy secrets socket subprocess tempfile zipfile"
    # NumPy's own imports do not count.
    numpys = set(in_new_process("import sys, numpy; print(*sys.modules)").split())
    assert not (set(heavy.split()) & loaded) - numpys


def test_import_leaves_the_garbage_collector_as_it_was() -> None:
    program = "import gc; {}; import retrograd; print(gc.isenabled()); import retrograd.nn; print(gc.isenabled())"
    assert in_new_process(program.format("pass")) == "True\nTrue"
    assert in_new_process(program.format("gc.disable()")) == "False\nFalse"


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("import retrograd as torch; print(torch.nn.Linear.__name__)", "Linear"),
        ("import retrograd as torch; print(torch.utils.data.DataLoader.__name__)", "DataLoader"),
        ("import retrograd as torch; print(torch.autograd.functional.jacobian.__name__)", "jacobian"),
        ("from retrograd import nn, optim; print(nn.Linear.__name__, optim.SGD.__name__)", "Linear SGD"),
        ("from retrograd import load, vmap; print(load.__name__, vmap.__name__)", "load vmap"),
        ("from retrograd import *; print(load.__name__, vmap.__name__)", "load vmap"),
        ("import retrograd.nn.functional as F; print(F.relu.__name__)", "relu"),
        ("import retrograd.utils.data; print(retrograd.utils.data.Dataset.__name__)", "Dataset"),
        ("import retrograd as torch; print({'nn', 'load', 'vmap', 'utils'} <= {*dir(torch)})", "True"),
        ("import retrograd as torch; print(torch.load is torch.serialization.load is torch.load)", "True"),
        ("import retrograd as torch; print(hasattr(torch, 'nn'), hasattr(torch, 'nowhere'))", "True False"),
        (
            "import pickle, retrograd; x = pickle.dumps(retrograd.nn.ReLU()); import sys;"
            "import subprocess; print(subprocess.run([sys.executable, '-c', 'import pickle, sys;"
            "print(pickle.loads(sys.stdin.buffer.read()))'], input=x, capture_output=True).stdout.decode().strip())",
            "ReLU()",
        ),
        ("import retrograd.cli as c; c.main(['run', '-c', 'from torch import nn; print(nn.ReLU())'])", "ReLU()"),
    ],
)
def test_lazy_names_resolve_in_every_form_of_import(program: str, printed: str) -> None:
    assert in_new_process(program) == printed


@pytest.mark.parametrize("first", ["torch.nn", "torch.serialization", "torch.func.vmap", "torch.utils.checkpoint"])
def test_lazy_modules_are_registered_and_silence_numpy(first: str) -> None:
    program = f"""
import sys, retrograd as torch
{first}
from retrograd.runtime.fp_warnings import COMPUTING, SilencedModule
ours = {{name: module for name, module in sys.modules.items() if name.startswith("retrograd.")}}
print([name for name, module in ours.items() if "__retrograd__" not in vars(module)])
print([name for name, module in ours.items() if name.startswith(COMPUTING) and type(module) is not SilencedModule])
"""
    assert in_new_process(program) == "[]\n[]"


@pytest.mark.parametrize(
    "first", ["pass", "torch.autograd.explain", "torch.compile(torch.exp)(torch.ones(2))", "import torch.nn"]
)
def test_internal_folders_are_not_attributes_of_the_package(first: str) -> None:
    program = f"""
import sys, retrograd as torch
from retrograd import import_hook
with import_hook.installed():
    {first}
folders = ["core", "kernels", "dispatch", "operations", "runtime", "compat", "inspection"]
print([folder for folder in folders if hasattr(torch, folder) or folder in dir(torch)])
import retrograd.core.engine, retrograd.inspection.draw as draw
from retrograd import kernels
from retrograd.core import engine, views
print(engine is sys.modules["retrograd.core.engine"], draw.__name__, kernels.__name__, hasattr(torch, "inspection"))
"""
    assert in_new_process(program) == "[]\nTrue retrograd.inspection.draw retrograd.kernels False"


def test_lazy_name_can_be_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "load", 3)
    assert torch.load == 3


def test_modules_of_a_zip_file_are_completed(tmp_path: Path) -> None:
    package = Path(torch.__file__).parent
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path in package.rglob("*"):
            if path.suffix in (".py", ".txt"):
                made.write(path, path.relative_to(package.parent))
    program = f"""
import sys; sys.path.insert(0, {str(archive)!r})
import retrograd as torch, retrograd.nn.functional, retrograd.backends.mkldnn
print(torch.__file__.startswith({str(archive)!r}), torch.nn.Linear.__name__, torch.backends.mkldnn.enabled)
print(hasattr(torch.fft, "nothing"), dir(torch.fft)[-1], "__retrograd__" in vars(torch.fft))
"""
    assert in_new_process(program) == "True Linear True\nFalse rfftn True"


@pytest.mark.parametrize("name", ["backends", "backends.cudnn", "cpu.amp", "_dynamo.config", "xpu", "accelerator"])
def test_namespaces_of_the_table_are_modules_like_others(name: str) -> None:
    program = f"""
import importlib, inspect, pickle, sys, retrograd
loaded = "retrograd.namespaces" in sys.modules
module = importlib.import_module("retrograd.{name}")
functions = [each for each in vars(module).values() if inspect.isfunction(each) and not each.__name__.startswith("__")]
assert all(pickle.loads(pickle.dumps(each)) is each and inspect.getsource(each) for each in functions)
assert all(each.__module__.removeprefix("retrograd.") in ("{name}", "compiler") for each in functions), functions
assert importlib.reload(module) is module is sys.modules[module.__spec__.name] and inspect.getdoc(module)
assert importlib.util.find_spec("retrograd.{name}.nowhere") is None if hasattr(module, "__path__") else True
print(loaded, set(module.__all__) <= set(dir(module)))
"""
    assert in_new_process(program) == "False True"
