"""NumPy's names of parameters (``axis`` for ``dim``): each call that PyTorch accepts gives the result of the usual call."""

import json
import warnings

import numpy
import pytest

import retrograd as torch
from tests.conformance.golden import GOLDEN
from tests.conformance.samples import FAMILIES, samples

RECORDED = json.loads((GOLDEN / "numpy_names.json").read_text())
SAMPLES = {each.expression: each for family in FAMILIES for each in samples(family)}


def evaluate(sample, expression):
    torch.manual_seed(0)
    tensors = {name: torch.tensor(array) for name, array in sample.arrays().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"torch": torch, **tensors})


def leaves(result):
    return [each for one in result for each in leaves(one)] if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("name", ["axis", "keepdims", "x", "a", "x1", "x2"])
def test_name(name):
    wrong = []
    for _function, each, sample, call, error in RECORDED:
        if each != name:
            continue
        if error is not None:
            try:
                evaluate(SAMPLES[sample], call)
            except Exception as raised:
                text = error[1].replace("_return_output()", "unique()")  # a function inside PyTorch
                if [type(raised).__name__, str(raised).splitlines()[0]] != [error[0], text]:
                    wrong.append(f"{call}: {type(raised).__name__}: {raised}, not {error}")
            else:
                wrong.append(f"{call}: accepted")
            continue
        usual = leaves(evaluate(SAMPLES[sample], sample))
        try:
            found = leaves(evaluate(SAMPLES[sample], call))
        except Exception as raised:
            wrong.append(f"{call}: {type(raised).__name__}: {raised}")
            continue
        for first, second in zip(usual, found, strict=True):
            same = torch.equal(first, second) if isinstance(first, torch.Tensor) and not first.isnan().any() else True
            if not same or type(first) is not type(second):
                wrong.append(f"{call}: {second}, not {first}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


def test_both_names_are_refused():
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        torch.sum(x, axis=0, dim=0)


def test_wrong_value_by_numpys_name():
    with pytest.raises(TypeError, match=r"cumsum\(\): argument 'dim' must be int, not str"):
        torch.cumsum(torch.ones(2), axis="a")
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.cumsum(torch.ones(2), axis=3)


def test_mode_gets_names_as_given():
    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append((func.__name__, sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    calls = []
    with Log():
        torch.cumsum(torch.ones(2), axis=0)
    assert calls[-1] == ("cumsum", ["axis"])


def test_array_divided_by_tensor():
    x = torch.tensor([1.0, 2.0, 4.0])
    assert torch.equal(numpy.array([2.0, 2.0, 2.0]) / x, torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64))
    with pytest.raises(TypeError, match="unsupported operand"):
        numpy.ones(3) * x
