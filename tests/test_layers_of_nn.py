"""Every layer of ``nn``: text, first weights for a seed, results, gradients and running statistics, as recorded of PyTorch."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
from tests.layers import LAYERS, Layer, played


@cache
def golden() -> dict[str, Any]:
    return json.loads((Path(__file__).with_name("golden") / "layers.json").read_text())["layers"]


def same(found: Any, expected: Any, what: str) -> None:
    """Compare digests: shapes exactly, numbers as closely as float32 allows."""
    assert len(found) == len(expected), what
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert (ours is None) == (theirs is None), f"{what} {place}: {ours} {theirs}"
        if ours is not None:
            assert ours[0] == theirs[0], f"{what} {place}: shape"
            numpy.testing.assert_allclose(ours[1], theirs[1], rtol=3e-4, atol=1e-4, err_msg=f"{what} {place}")


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.expression)
def test_a_layer_is_pytorchs(layer: Layer) -> None:
    expected = golden()[f"{layer.expression} {layer.call}"]
    found = played(torch, layer)
    for what in ("text", "place", "kept", "class", "names", "nodes"):
        assert found[what] == expected[what], what
    for what in ("state", "training", "gradients", "evaluation"):
        same(found[what], expected[what], what)
