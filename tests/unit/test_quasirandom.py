"""Sobol sequences: PyTorch's points (as literals), and their equidistribution."""

from __future__ import annotations

import hashlib

import pytest

import retrograd as torch
from retrograd.quasirandom import SobolEngine

#: Checksum of PyTorch's direction numbers.
DIGEST = "4a6c1b3e473e79ebf849fc9a695e6cbc566dff5cc899272a4dfc9b5038c3beca"


def test_points_match_pytorch() -> None:
    engine = SobolEngine(3)
    assert engine.draw(3).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25]]
    assert engine.draw(2, dtype=torch.float64).tolist() == [[0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert engine.fast_forward(3).draw(1).tolist() == [[0.1875, 0.3125, 0.9375]] and engine.num_generated == 9
    assert engine.reset().draw_base2(2).tolist()[3] == [0.25, 0.75, 0.75]
    out = torch.empty(5)
    assert engine.draw(2, out) is out and out.shape == (2, 3)


def test_scrambled_points_match_pytorch() -> None:
    engine = SobolEngine(2, scramble=True, seed=5)
    assert engine.shift.tolist() == [515708045, 125905764]
    assert [[round(each, 4) for each in row] for row in engine.draw(4).tolist()] == [
        [0.4803, 0.1173], [0.9498, 0.743], [0.6404, 0.3272], [0.1646, 0.9529],
    ]  # fmt: skip
    assert engine.quasi.tolist() == [176746528, 1023215495]
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=5)"


def test_direction_numbers_match_pytorch() -> None:
    state = SobolEngine(SobolEngine.MAXDIM).sobolstate.numpy()
    assert hashlib.sha256(state.astype("<i8").tobytes()).hexdigest() == DIGEST


def test_points_are_equidistributed() -> None:
    for scramble in (False, True):
        points = SobolEngine(5, scramble=scramble, seed=1).draw_base2(8)
        for dimension in range(5):
            assert torch.bincount((points[:, dimension] * 256).long()).tolist() == [1] * 256
        assert torch.bincount((points[:, 0] * 16).long() * 16 + (points[:, 1] * 16).long()).tolist() == [1] * 256


def test_invalid_arguments() -> None:
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"n=3\+2\*\*2=7"):
        engine.draw_base2(2)
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    with pytest.raises(NotImplementedError, match="\"_sobol_engine_draw\" not implemented for 'Half'"):
        engine.draw(2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        SobolEngine(2).draw(0)
