"""Modules, containers, hooks, states and utilities: module_sessions.txt compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.dispatch.operand_promotion import PLAIN
from tests.conformance.golden import load
from tests.conformance.module_cases import newer, programs, shown

GOLDEN = load("modules")["shown"]
PROGRAMS = programs()


@pytest.mark.parametrize("topic", PROGRAMS)
def test_sessions_match_pytorch(topic: str) -> None:
    statements, expected = PROGRAMS[topic], GOLDEN[topic]
    found = shown(torch, statements)
    wrong = [
        f"{statement}\n  PyTorch: {theirs}\n  here:    {ours}"
        for statement, ours, theirs in zip(statements, found, map(newer, expected), strict=True)
        if ours != theirs
    ]
    assert not wrong, "\n".join(wrong)


def test_parameters_take_the_fast_path() -> None:
    weight = nn.Parameter(torch.ones(2))
    assert type(weight) in PLAIN
    assert type(weight * 2) is torch.Tensor and (weight * 2).grad_fn is not None


def test_module_without_hooks_calls_forward_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> Any:
        raise AssertionError("a call without hooks came to the hooks")

    monkeypatch.setattr("retrograd.nn.modules.hooks.call_with_hooks", never)
    assert nn.Sequential(nn.Linear(2, 1), nn.ReLU())(torch.ones(2)).shape == (1,)


def test_handles_remove_hooks_and_do_not_keep_modules_alive() -> None:
    module = nn.ReLU()
    handle = module.register_forward_hook(lambda *args: None, with_kwargs=True, always_call=True)
    gone = weakref.ref(module)
    del module
    assert gone() is None
    handle.remove()


def test_modules_show_pytorchs_paths_and_pickle_as_retrograds() -> None:
    layer = nn.Conv2d(1, 2, 3)
    assert repr(type(layer)) == "<class 'torch.nn.modules.conv.Conv2d'>"
    assert b"torch.nn" not in pickle.dumps(layer)
    again = pickle.loads(pickle.dumps(layer))
    assert type(again) is nn.Conv2d and torch.equal(again.weight, layer.weight)
    bound = pickle.loads(pickle.dumps(nn.MultiheadAttention(2, 1)))
    assert type(bound) is nn.MultiheadAttention


class Own(nn.Module):
    """A user-defined module."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.count = 3


def test_user_module_is_pickled_and_copied() -> None:
    own = Own()
    for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own), copy.copy(own)):
        assert type(again) is Own and again.count == 3 and torch.equal(again.layer.weight, own.layer.weight)
    assert copy.copy(own).layer is own.layer and copy.deepcopy(own).layer is not own.layer


def test_tied_parameters_stay_tied() -> None:
    own = Own()
    own.other = nn.Linear(2, 2)
    own.other.weight = own.layer.weight
    for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own), own.double()):
        assert again.other.weight is again.layer.weight
    assert len(list(own.parameters())) == 3


#: The modules in which PyTorch has its layers.
TOPICS = """activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy linear
    loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"""


def test_every_module_of_pytorch_exists() -> None:
    assert [name for name in TOPICS.split() if not hasattr(nn.modules, name)] == []
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention
    assert nn.modules.batchnorm._BatchNorm and nn.modules.conv._ConvNd and nn.modules.utils._pair(1) == (1, 1)


def test_threads_share_a_module() -> None:
    layer, found = nn.Linear(3, 3), []

    def work() -> None:
        for _ in range(50):
            found.append(layer(torch.ones(3)).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(found)) == 1 and len(found) == 200


def test_function_instead_of_module_raises_with_its_name() -> None:
    with pytest.raises(TypeError, match=r"^torch\.nn\.functional\.relu is not a Module subclass"):
        nn.Sequential(nn.Linear(2, 1), torch.nn.functional.relu)  # type: ignore[arg-type]
