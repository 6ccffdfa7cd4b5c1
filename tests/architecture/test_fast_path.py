"""Limit the Python calls on the fast path of the most common functions.

The fallback gives the same result and is slower. Counting the functions of the package that a call enters shows when a
call stops taking the fast path.
"""

from __future__ import annotations

import _thread
import sys
import time
from types import FrameType
from typing import Any

import pytest

import retrograd as torch
from retrograd.runtime.lazy_functions import SPECIALIZE_AT

PACKAGE = torch.__file__.rpartition("__init__")[0]

#: The largest number of functions of the package that each call may enter, the called function included.
CALLS = {
    1: """x.view(2, 4); x.view(-1); x.reshape(2, 4); w.transpose(0, 1); w.t(); w.unsqueeze(0); x.squeeze(); x[1]; w.sum()
        y.copy_(u); y.copy_(d); y.zero_(); y.add_(u); y.add_(2.0); y.mul_(u); y.div_(2.0); y.exp_(); y.add_(u, alpha=0.5)
        y.addcmul_(u, u, value=0.5); y.addcdiv_(u, u, value=0.5); y.lerp_(u, 0.1); q.mul_(2.0)
        torch.transpose(w, 0, 1); torch.reshape(w, (8, 8)); y.float(); torch.where(b, x, y)""",
    2: """w.T; w.mT; x.expand(4, 8); w.flatten(); w.permute(1, 0); y.fill_(1.0); s.item(); x.numel(); y.masked_fill_(b, 0)
        y.clamp_(0, 2); v.add_(2.0)""",
    4: "w.diagonal(); x.tolist(); x[1:3]; y.to(torch.float64)",
    5: """torch.stack([x, y]); torch.softmax(w, -1); torch.softmax(y, 0); w.amax(-1)""",
    6: "torch.cat([x, y]); y.masked_fill(b, 0); y.clamp(0, 2)",
    8: """w.unbind(); w[:, 0]; w[1, 2]; torch.arange(8); torch.tensor([1.0, 2.0]); torch.zeros(8); w.split(4)
        torch.zeros(8, requires_grad=True); torch.linspace(0, 1, 8); torch.randperm(8); w.chunk(2); m[:, 0]; m[1, 2]; m[...]; m[0] = 1.0""",
    12: "m[0] = y; m[idx]; w[idx]; m[mask]; m[mask] = 0; m[idx] = 0; m[idx, idx]",
}


def names() -> dict[str, Any]:
    x, y, u, m = torch.ones(8, requires_grad=True), torch.ones(8), torch.ones(8), torch.ones(8, 8)
    w = torch.ones(8, 8, requires_grad=True)
    return {
        "torch": torch, "x": x, "y": y, "u": u, "m": m, "w": w, "d": y.double(), "b": y > 0, "mask": m > 0, "q": w * 1,
        "idx": torch.tensor([1, 2, 3]), "s": torch.tensor(2.0), "v": m[2:6],
    }  # fmt: skip


@pytest.mark.skipif(SPECIALIZE_AT != 1, reason="templates call their helpers; specialised functions contain them")
@pytest.mark.parametrize("most", CALLS)
def test_fast_path_enters_few_functions(most: int) -> None:
    found, space = {}, names()
    for line in CALLS[most].splitlines():
        for statement in line.split(";"):
            code = compile(statement.strip(), "<user>", "exec")
            for _ in range(2):  # the first call generates the code
                called = functions_called(code, space)
            if len(called) > most:
                found[statement.strip()] = called
    assert not found


def functions_called(code: Any, space: dict[str, Any]) -> list[str]:
    """Return the names of the package's functions that are entered while ``code`` runs."""
    found: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        own = name.startswith((PACKAGE, "<")) and name != "<user>" and frame.f_code.co_name[0] != "<"
        if event == "call" and own:  # comprehensions are inlined from Python 3.12 on
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        exec(code, space)
    finally:
        sys.setprofile(None)
    return found


def test_call_without_user_frame() -> None:
    """Run a function of the package directly in a thread, where no frame of the user exists."""
    x, y, found = torch.ones(2), torch.ones(2, requires_grad=True), torch.zeros(2)
    for function, given in ((x.requires_grad_, ()), (torch.cat, ([y, y],)), (torch.mul, (y, y)), (found.fill_, (1.0,))):
        _thread.start_new_thread(function, given)
    end = time.perf_counter() + 10
    while not (x.requires_grad and bool(found[0])) and time.perf_counter() < end:
        time.sleep(0.01)
    assert x.requires_grad
    assert found.tolist() == [1.0, 1.0]
