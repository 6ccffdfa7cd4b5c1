"""Warnings: NumPy's are never shown, PyTorch's point to the user's line."""

import inspect
import pickle
import sys
import warnings

import numpy
import pytest

import retrograd as torch
from retrograd.core.quiet import COMPUTING

NOTHING, HUGE, MIXED = torch.zeros(2, 3), torch.full((3, 3), 3e38), torch.tensor([torch.inf, -torch.inf, torch.nan])

# Ufuncs, kernels of several steps, casts, NumPy's functions that are written in Python, and the way back.
NOISY = {
    "ufunc": lambda: torch.log(NOTHING),
    "operator": lambda: 1 / NOTHING,
    "in place": lambda: HUGE.clone().mul_(HUGE),
    "cast": lambda: HUGE.half(),
    "reduction": lambda: HUGE.sum(),
    "softmax": lambda: torch.softmax(MIXED, 0),
    "running": lambda: HUGE.cumsum(0) + HUGE.cumprod(1),
    "cross": lambda: torch.linalg.cross(HUGE, HUGE.T),
    "matrices": lambda: HUGE @ HUGE,
    "bilinear": lambda: torch.nn.functional.bilinear(HUGE, HUGE, HUGE.expand(2, 3, 3)),
    "exponential": lambda: torch.linalg.matrix_exp(HUGE),
    "trace": lambda: HUGE.trace(),
    "backward": lambda: torch.zeros(2, requires_grad=True).sqrt().sum().backward(),
    "recorded backward": lambda: torch.zeros(2, requires_grad=True).sqrt().sum().backward(create_graph=True),
}


@pytest.mark.parametrize("call", NOISY.values(), ids=NOISY)
def test_numpys_warnings_are_not_shown_whatever_the_filters(call: object) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert [str(each.message) for each in seen] == []


def test_the_programs_own_numpy_warns_as_before() -> None:
    torch.log(NOTHING)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        numpy.log(numpy.zeros(1))


def test_modules_that_compute_are_named_to_everybody_else() -> None:
    quiet = [(name, module) for name, module in sys.modules.items() if name.startswith(COMPUTING)]
    assert len(quiet) > 50
    for name, module in quiet:
        assert module.__name__ == name and f"'{name}'" in repr(module)
        assert vars(module)["__name__"] is None
    assert inspect.getmodule(quiet[0][1]) is quiet[0][1]
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
