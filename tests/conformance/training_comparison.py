"""Compare layers, training runs and learning rate schedulers with PyTorch's record.

Used by their tests and by ``scripts/coverage.py``, which counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy

import retrograd as torch
from tests.conformance import lr_scheduler_cases, optimizer_cases, sparse_cases
from tests.conformance.golden import load
from tests.conformance.layer_cases import LAYERS, Layer, observe_layer


@cache
def recorded(name: str) -> dict[str, Any]:
    """Return the contents of a file of ``golden``."""
    return load(name)


def assert_close(got: Any, expected: Any, where: str, rel: float = 1e-8) -> None:
    """Compare JSON values: all floats with a relative tolerance, everything else exactly."""
    if isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key in expected:
            assert_close(got[key], expected[key], f"{where}.{key}", rel)
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for index, pair in enumerate(zip(got, expected, strict=True)):
            assert_close(*pair, f"{where}[{index}]", rel)
    elif isinstance(expected, float):
        assert math.isclose(got, expected, rel_tol=rel, abs_tol=rel / 100), where
    else:
        assert got == expected, where


def assert_same_digests(found: Any, expected: Any, what: str) -> None:
    """Compare digests of tensors: shapes exactly, numbers with the tolerance of float32."""
    assert len(found) == len(expected), what
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert (ours is None) == (theirs is None), f"{what} {place}: {ours} {theirs}"
        if ours is not None:
            assert ours[0] == theirs[0], f"{what} {place}: shape"
            numpy.testing.assert_allclose(ours[1], theirs[1], rtol=3e-4, atol=1e-4, err_msg=f"{what} {place}")


def check_layer(layer: Layer) -> None:
    """Compare a layer's repr, class, attributes, nodes, initial weights, results, gradients and running statistics."""
    expected = recorded("layers")["layers"][f"{layer.expression} {layer.call}"]
    found = observe_layer(torch, layer)
    for what in ("text", "place", "kept", "class", "names", "nodes"):
        assert found[what] == expected[what], what
    for what in ("state", "training", "gradients", "evaluation"):
        assert_same_digests(found[what], expected[what], what)


def check_optimiser(call: str) -> None:
    """Compare losses, parameters and state of a hundred steps."""
    rel = 0.01 if call.startswith("Muon") else 1e-8  # it calculates in bfloat16
    assert_close(
        json.loads(json.dumps(optimizer_cases.training_run(torch, call))), recorded("optim")["runs"][call], call, rel
    )


def check_schedule(call: str) -> None:
    """Compare rates, groups and state over 22 epochs."""
    got = json.loads(json.dumps(lr_scheduler_cases.schedule_run(torch, call)))
    assert_close(got, recorded("lr_schedulers")["runs"][call], call)


def check_sparse_training(optimizer: str, table: str) -> None:
    """Compare the training of a table with sparse gradients."""
    assert close(sparse_cases.train(torch, optimizer, table), recorded("sparse")["training"][f"{optimizer} {table}"])


def close(answered: Any, recorded: Any) -> bool:
    """Whether two answers are equal, numbers up to the rounding of float32."""
    if isinstance(recorded, list):
        return len(answered) == len(recorded) and all(map(close, answered, recorded))
    if isinstance(recorded, float):
        return bool(abs(answered - recorded) < 3e-4 or (answered != answered and recorded != recorded))
    return bool(answered == recorded)


def runs() -> Iterator[tuple[str, str, str, Callable[[], None]]]:
    """Yield every comparison: its kind, its class, the expression, and the check, which raises AssertionError."""
    for layer in LAYERS:
        name = layer.expression.removeprefix("nn.").partition("(")[0].partition(".")[0]
        yield "nn", name, f"{layer.expression} {layer.call}", lambda layer=layer: check_layer(layer)
    for kind, calls, check in (
        ("optim", optimizer_cases.OPTIMISERS, check_optimiser),
        ("optim.lr_scheduler", (*lr_scheduler_cases.SCHEDULES, *lr_scheduler_cases.LED), check_schedule),
    ):
        for call in calls:
            yield kind, call.partition("(")[0], call, lambda call=call, check=check: check(call)
    for call in sparse_cases.split(sparse_cases.OPTIMIZERS):
        if call.startswith("SparseAdam"):
            for table in sparse_cases.TABLES:
                name = f"{call} {table}"
                yield "optim", "SparseAdam", name, lambda call=call, table=table: check_sparse_training(call, table)
