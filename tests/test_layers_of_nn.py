"""Every layer of ``nn``: text, first weights for a seed, results, gradients and running statistics, as recorded of PyTorch."""

from __future__ import annotations

import pytest

from tests.compared import check_layer
from tests.layers import LAYERS, Layer


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.expression)
def test_a_layer_is_pytorchs(layer: Layer) -> None:
    check_layer(layer)
