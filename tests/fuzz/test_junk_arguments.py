"""Calls with arguments that do not fit: outcomes recorded from PyTorch, and accesses out of bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from tests.fuzz.junk_arguments import RECORD, Names, outcome, summary

ROOT = Path(__file__).resolve().parents[2]
OUT_OF_BOUNDS = Path(__file__).with_name("out_of_bounds.txt")
#: Methods that modify their tensor, with arguments that fit a tensor of shape (3, 3).
IN_PLACE = [
    each for each in sorted(dir(torch.Tensor)) if each.endswith("_") and not each.startswith("_") and not each.endswith("__")
]  # fmt: skip
JUNK: list[Any] = [
    (), (None,), ("a",), ([1],), ((0,), 1), (0.5, "a"), (2**63,), (1j,), (object(),), ({},), (True, True, True, True),
    (torch.ones(2),), (torch.ones(2), torch.ones(2)), (torch.ones(3, 3), "a"), (0, torch.tensor([7]), 1.0),
    (0, torch.tensor([[7]]), torch.ones(1, 1)), (torch.tensor([99]), torch.ones(1)), (5, 0), (torch.ones(3, 3) > 0, "a"),
    (torch.ones(3, 3), torch.ones(2)), (0, 0, "a"),
]  # fmt: skip


def lies_in_memory(value: Any) -> bool:
    """Whether the elements of each tensor in ``value``, a result, are in the memory of the tensor."""
    import numpy

    if isinstance(value, (tuple, list)):
        return all(map(lies_in_memory, value))
    if not isinstance(value, torch.Tensor) or not value.numel():
        return True
    owner = value._array
    while isinstance(owner.base, numpy.ndarray):
        owner = owner.base
    low, high = numpy.lib.array_utils.byte_bounds(value._array)
    first, last = numpy.lib.array_utils.byte_bounds(owner)
    return bool(first <= low and high <= last)


def run_out_of_bounds() -> None:
    """Make the calls of ``out_of_bounds.txt``; print the number of each before it is made, and its result if it is bad."""
    import resource
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    for number, text in enumerate(OUT_OF_BOUNDS.read_text(encoding="utf-8").splitlines()):
        print(number, flush=True)
        try:
            result = eval(text, {}, Names(torch))
            str(result)
        except Exception:
            continue
        if not lies_in_memory(result):
            print(f"outside of its memory: {text}")


@pytest.mark.skipif(sys.platform != "linux", reason="the child process limits its memory")
def test_calls_stay_in_bounds() -> None:
    code = "from tests.fuzz.test_junk_arguments import run_out_of_bounds; run_out_of_bounds()"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    texts = OUT_OF_BOUNDS.read_text(encoding="utf-8").splitlines()
    lines = done.stdout.splitlines()
    assert done.returncode == 0, [done.stderr[-2000:], texts[int(lines[-1])] if lines else None]
    assert [each for each in lines if not each.isdigit()] == []


@pytest.mark.parametrize("name", IN_PLACE)
def test_refused_call_changes_nothing(name: str) -> None:
    for dtype in (torch.float32, torch.int64):
        for arguments in JUNK:
            x = torch.arange(9).reshape(3, 3).to(dtype)
            before = x.tolist(), x.shape, x.stride(), x.dtype, x.requires_grad, x._version, x.grad_fn
            try:
                getattr(x, name)(*arguments)
            except Exception:
                after = x.tolist(), x.shape, x.stride(), x.dtype, x.requires_grad, x._version, x.grad_fn
                assert after == before, [name, arguments]


RECORDED = [line.split("\t") for line in RECORD.read_text(encoding="utf-8").splitlines()]
#: Calls whose outcome differs, with that of retrograd: mostly the other of two faults of a call is reported.
KNOWN = {
    "i.roll([1, 0], 2**63)": "IndexError",
    "m.bitwise_left_shift(torch.ones(0))": "NotImplementedError",
    "m.norm(['a'])": "RuntimeError",
    "m.size(-inf)": "IndexError",
    "torch.affine_grid_generator(torch.tensor(True), [0], True)": "TypeError",
    "torch.bitwise_right_shift(m, torch.tensor([1, 0]))": "NotImplementedError",
    "torch.meshgrid(indexing={})": "RuntimeError",
    "torch.nanmean(torch.tensor(1j))": "complex64[]",
    "torch.nn.functional.bilinear(x, torch.tensor(1j), m)": "IndexError",
    "torch.nn.functional.fractional_max_pool2d_with_indices('a', x)": "TypeError",
    "torch.nn.functional.fractional_max_pool3d_with_indices(m, m, torch.ones(2, 3).half(), m, True, m)": "RuntimeError",
    "torch.nn.functional.log_softmax(torch.ones(2, 3, dtype=torch.bool))": "TypeError",
    "torch.nn.functional.lp_pool1d(m, 0.5, -1, m)": "RuntimeError",
    "torch.nn.functional.lp_pool2d(torch.tensor(True), 0.5, m)": "RuntimeError",
    "torch.nn.functional.lp_pool3d(m, 0.5, 2**63)": "RuntimeError",
    "torch.nn.functional.max_pool2d_with_indices(torch.ones(0), m)": "RuntimeError",
    "torch.nn.functional.max_unpool3d(i, -1, m)": "ValueError",
    "torch.nn.functional.max_unpool3d(m, torch.int32, m, 3)": "ValueError",
    "torch.nn.functional.nll_loss(m, m, -1)": "RuntimeError",
    "torch.nn.functional.rms_norm(numpy.int64(1), [1, 0])": "RuntimeError",
    "torch.nn.functional.soft_margin_loss(torch.tensor(1), (0.5,))": "RuntimeError",
    "torch.nn.functional.softmax(torch.ones(2, 3, dtype=torch.uint8))": "TypeError",
    "torch.norm(-0.5, ())": "RuntimeError",
    "torch.set_default_tensor_type(-inf)": "AttributeError",
    "torch.set_default_tensor_type(t=-0.5)": "AttributeError",
    "torch.special.chebyshev_polynomial_w(2**63, torch.ones(2, 3, dtype=torch.bool))": "float32[2,3]",
    "torch.view_copy(m, torch.tensor(1))": "RuntimeError",
    "x.unflatten(torch.float64, i)": "TypeError",
}


@pytest.mark.parametrize("part", range(16))
def test_recorded_outcome(part: int) -> None:
    differing = {}
    for text, expected in RECORDED[part::16]:
        found = outcome(torch, text)
        assert not found[2], [text, found]
        # Where PyTorch raises AttributeError because an argument is no tensor, retrograd raises TypeError.
        accident = expected == "AttributeError" and summary(found) == "TypeError"
        if summary(found) != KNOWN.get(text, expected) and not accident:
            differing[text] = [expected, summary(found), found]
    assert differing == {}
