"""``out=``: accepted outputs and errors of every function that takes it, as recorded from PyTorch."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.conformance.out_argument_cases import Trial, calls, plain

TEXTS, *RECORDS = load("out_arguments")
RECORDED: dict[str, dict[str, Any]] = {name: found for each in RECORDS for name, found in each.items()}


@cache
def trials(name: str) -> Trial:
    """Return the recorded call."""
    found, wanted = RECORDED[name], f"torch.{name}"
    for sample, call in calls_of_all()[wanted]:
        if (sample.expression, call) == (TEXTS[found["sample"]], TEXTS[found["call"]]):
            return Trial(torch, sample, call)
    raise LookupError(f"{wanted}: the sample is gone; record anew")


@cache
def calls_of_all() -> Any:
    return calls({f"torch.{each}" for each in RECORDED})


@pytest.mark.parametrize("first", "abcdefghijklmnopqrstuvwxyz")
def test_outcomes_match_pytorch(first: str) -> None:
    wrong = []
    for name in (each for each in RECORDED if each.startswith(first)):
        for key, outcome in trials(name).outcomes():
            if key in RECORDED[name] and TEXTS[RECORDED[name][key]] not in plain(outcome):
                wrong.append((name, key, TEXTS[RECORDED[name][key]], outcome))
    assert wrong == []


#: The dtype of out changes the value of these: sums accumulate in it, random numbers depend on it.
NOT_CAST = {"sum", "prod", "cumsum", "cumprod", "rand", "randn", "randint", "randperm", "linspace", "logspace", "empty"}


@pytest.mark.parametrize("first", "abcdefghijklmnopqrstuvwxyz")
def test_output_equals_result(first: str) -> None:
    for name in (each for each in RECORDED if each.startswith(first)):
        trial = trials(name)
        for kind in ("float32", "float64", "complex128", "bool"):
            target = trial.zeros(None, 0, kind)
            if trial.outcome(trial.inputs(), target) != "ok" or name in NOT_CAST:
                continue
            for result, out in zip(trial.results, target if trial.many else (target,), strict=True):
                assert torch.equal(result.to(out.dtype), out) or torch.allclose(
                    result.to(out.dtype), out, equal_nan=True
                ), (name, kind)


def test_rejected_output_is_unchanged() -> None:
    for name, found in RECORDED.items():
        trial = trials(name)
        for kind in ("bool", "int64", "float32"):
            target = trial.zeros((7, 2), 0, kind)
            first = target[0] if trial.many else target
            if TEXTS[found[f"{kind} 0"]] not in ("ok", "warns"):
                assert trial.outcome(trial.inputs(), target) not in ("ok", "warns"), (name, kind)
                assert first.shape == (7, 2) and not first.any(), (name, kind)


def test_sums_accumulate_in_the_dtype_of_out() -> None:
    x = torch.tensor([0.75, 0.75])
    assert torch.sum(x, 0, out=torch.zeros((), dtype=torch.int64)).item() == 0
    assert torch.cumsum(x, 0, out=torch.zeros(2, dtype=torch.int64)).tolist() == [0, 0]
    assert torch.nansum(torch.tensor([1, 2]), out=torch.zeros((), dtype=torch.int64)).item() == 3
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        torch.sum(x, 0, dtype=torch.float64, out=torch.zeros(()))


def test_out_is_returned() -> None:
    x, out = torch.ones(2, 3), torch.zeros(2, 3)
    assert torch.exp(x, out=out) is out
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, indices))
    assert found.values is values and found.indices is indices
    assert type(found).__name__ == "max_out"


def test_resizing_out_warns() -> None:
    out = torch.zeros(4)
    with pytest.warns(
        UserWarning, match=r"since it had shape \[4\], which does not match the required output shape \[2\]"
    ):
        torch.add(torch.ones(2), 1, out=out)
    assert out.tolist() == [2.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.add(torch.ones(3), 1, out=torch.empty(0)).tolist() == [2.0, 2.0, 2.0]


def test_methods_have_no_out() -> None:
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'out'"):
        torch.ones(2).sum(0, out=torch.zeros(()))


def test_methods_reject_out_none() -> None:
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'out'"):
        torch.ones(2).sum(dim=0, out=None)
    with pytest.raises(TypeError, match=r"^mean\(\) got an unexpected keyword argument"):
        torch.ones(2).mean(dim=0, out=None)
    assert np.mean(torch.ones(2)).item() == 1  # NumPy calls mean(axis=None, dtype=None, out=None), which is taken
