"""A child that is forked while eight threads compute, import or compile works; it does not hang."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import faulthandler, os, sys, threading, time, traceback
import retrograd as torch
from retrograd.nn import functional as F

def small():
    x = torch.ones(8, requires_grad=True)
    (x * 2).tanh().sum().backward()

def products():
    x = torch.ones(300, 300, requires_grad=True)
    (x @ x).sum().backward()

def convolution():
    w = torch.ones(8, 8, 3, 3, requires_grad=True)
    F.conv2d(torch.ones(4, 8, 32, 32), w).sum().backward()

def solving():
    torch.linalg.svd(torch.eye(50))
    torch.linalg.solve(torch.eye(200), torch.ones(200, 1))

def modes():
    with torch.autocast("cpu"):
        torch.ones(3, 3) @ torch.ones(3, 3)

def importing():
    for name in ("fft", "special", "distributions", "optim", "func"):
        getattr(torch, name)
    torch.sigmoid(torch.zeros(100000))

kinds = [small, products, convolution, solving, modes]
work = globals()[sys.argv[1]]
if work is not importing:
    for each in kinds:
        each()
stop = False

def repeat():
    while not stop:
        work()

for _ in range(8):
    threading.Thread(target=repeat, daemon=True).start()
time.sleep(0.01 if work is importing else 0.2)
for _ in range(3):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            for each in kinds:
                each()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
stop = True
print("done", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["small", "products", "convolution", "solving", "modes", "importing"])
def test_child_of_a_process_with_busy_threads(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, kind], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]


LATE = """
import _imp, os, threading, time
import retrograd
from retrograd.runtime import forks

lock = None
forks.hold_while_forking(lambda: lock)
started = threading.Event()

def importing():
    global lock
    _imp.acquire_lock()
    started.set()
    time.sleep(0.3)  # meanwhile the main thread begins the fork
    lock = threading.RLock()
    with lock:
        _imp.release_lock()
        time.sleep(0.3)

thread = threading.Thread(target=importing)
thread.start()
started.wait()
child = os.fork()
if child == 0:
    os._exit(0 if lock.acquire(timeout=2) else 1)
print(os.waitpid(child, 0)[1])
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_lock_that_is_created_while_the_fork_waits_for_an_import_is_held() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "0\n", done.stderr[-3000:]


TOGETHER = """
import os, sys, threading
import retrograd
sys.setswitchinterval(1e-6)

def forking():
    for _ in range(25):
        child = os.fork()
        if child == 0:
            import json
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])

statuses = []
threads = [threading.Thread(target=forking) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
import html.parser
print(set(statuses), len(statuses))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_several_threads_fork() -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "{0} 100\n" and "Error" not in done.stderr, done.stderr[-3000:]
