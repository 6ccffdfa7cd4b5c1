"""Python without threads, ``ctypes``, ``mmap``, ``subprocess`` or ``multiprocessing``, as in Pyodide: all but those works.

The modules are hidden in a new process after NumPy and SciPy, some versions of which need them, have been loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """if True:
    import io, os, sys, tempfile, threading
    import ml_dtypes, numpy, scipy.fft, scipy.linalg, scipy.special

    hidden = set(sys.argv[1].split())
    class Hidden:
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] in hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Hidden)
    for name in [each for each in sys.modules if each.partition(".")[0] in hidden]:
        del sys.modules[name]
    if "threads" in hidden:
        def start(self):
            raise RuntimeError("can't start new thread")
        threading.Thread.start = start

    import retrograd as torch
    F = torch.nn.functional

    x = torch.linspace(-1, 1, 5, requires_grad=True)
    (x.exp() * x).sum().backward()
    numpy.testing.assert_allclose(x.grad, numpy.exp(x.detach()) * (1 + x.detach().numpy()), 1e-6)

    x = torch.linspace(-1, 1, 1_200_000, requires_grad=True)
    (torch.sigmoid(x) * x + torch.add(x, x)).sum().backward()
    assert x.grad.isfinite().all() and x.softmax(0).sum().item() > 0.99
    a = torch.randn(600, 600) + 30 * torch.eye(600)
    assert torch.allclose(a @ torch.linalg.solve(a, torch.ones(600, 512)), torch.ones(600, 512), atol=1e-3)
    query = torch.randn(3, 2, 4, 64, 16)
    F.scaled_dot_product_attention(*query), F.conv2d(torch.randn(4, 3, 16, 16), torch.randn(8, 3, 3, 3))
    a.sort(), torch.fft.fft(a), torch.linalg.eigvalsh(a), torch.func.vmap(torch.sin)(a), torch.rand(100_000).cumsum(0)
    torch.distributions.Normal(0.0, 1.0).sample((3,)), torch.special.erf(a), torch.compile(lambda x: (x * 2).exp())(a)

    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(40, 5), torch.randint(0, 2, (40,)))
    for inputs, labels in torch.utils.data.DataLoader(data, 8, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    memory = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        for place in (memory, os.path.join(folder, "model.pt")):
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, place)
            if place is memory:
                memory.seek(0)
            kept = torch.load(place)
            model.load_state_dict(kept["model"]), optimizer.load_state_dict(kept["optimizer"])
            assert torch.equal(kept["model"]["0.weight"], model[0].weight)
    with torch.profiler.profile() as profile:
        torch.ones(3) + 1
    assert "aten::add" in profile.key_averages().table()
    torch.get_num_threads(), torch.empty_cache(), torch.ones(3).is_shared(), torch.ones(3).data_ptr(), torch.autograd.explain(x * 2)
    print("done")
"""
HIDDEN = ["threads", "ctypes _ctypes", "mmap", "subprocess _posixsubprocess", "multiprocessing _multiprocessing"]


@pytest.mark.parametrize("hidden", [HIDDEN[0], " ".join(HIDDEN)])
def test_everything_else_works(hidden: str) -> None:
    fast = "1" if hidden == "threads" else "0"  # Numba needs the modules
    variables = {**os.environ, "RETROGRAD_FAST": fast, "RETROGRAD_CODEGEN": "", "RETROGRAD_TRACEBACK": "full"}
    command = [sys.executable, "-c", PROGRAM, hidden]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]
