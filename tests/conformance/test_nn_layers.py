"""Every layer of ``nn``: repr, initial weights for a seed, results, gradients and running statistics."""

from __future__ import annotations

import pytest

from tests.conformance.layer_cases import LAYERS, Layer
from tests.conformance.training_comparison import check_layer


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.expression)
def test_a_layer_is_pytorchs(layer: Layer) -> None:
    check_layer(layer)
