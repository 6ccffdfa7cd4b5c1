"""``import retrograd`` is light: what most programs do not need is loaded when first asked for, and nobody sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import retrograd as torch


def in_new_process(program: str) -> str:
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_import_loads_no_more_than_tensors_and_autograd() -> None:
    loaded = set(in_new_process("import sys, retrograd; print(*sys.modules)").split())
    parts = ["cuda", "fft", "func", "linalg", "nn", "optim", "random", "serialization", "signal", "special", "utils"]
    assert not {f"retrograd.{part}" for part in parts} & loaded
    heavy = "asyncio decimal hashlib json logging multiprocessing scipy secrets socket subprocess tempfile zipfile"
    # NumPy's own imports are not ours to choose.
    numpys = set(in_new_process("import sys, numpy; print(*sys.modules)").split())
    assert not (set(heavy.split()) & loaded) - numpys


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
def test_what_comes_later_comes_in_every_way(program: str, printed: str) -> None:
    assert in_new_process(program) == printed


@pytest.mark.parametrize("first", ["torch.nn", "torch.serialization", "torch.func.vmap", "torch.utils.checkpoint"])
def test_what_comes_later_is_ours_and_quiet(first: str) -> None:
    program = f"""
import sys, retrograd as torch
{first}
from retrograd.runtime.fp_warnings import COMPUTING, Quiet
ours = {{name: module for name, module in sys.modules.items() if name.startswith("retrograd.")}}
print([name for name, module in ours.items() if "__retrograd__" not in vars(module)])
print([name for name, module in ours.items() if name.startswith(COMPUTING) and type(module) is not Quiet])
"""
    assert in_new_process(program) == "[]\n[]"


def test_a_name_that_comes_later_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "load", 3)
    assert torch.load == 3
