"""Samples of recurrent layers and cells."""

from __future__ import annotations

from tests.conformance.samples import Recipe, Sample, normal


def weights(gates: int, inputs: int = 2, units: int = 2) -> dict[str, Recipe]:
    """Return a layer's weights by short names."""
    rows = gates * units
    return {"wi": normal(rows, inputs), "wh": normal(rows, units), "bi": normal(rows), "bh": normal(rows)}


GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}
ONE = "True, 1, 0.0, False, False"
SAMPLES = []
for _name, _gates in GATES.items():
    _state = {"h": normal(1, 2, 2), "c": normal(1, 2, 2)} if _name == "lstm" else {"h": normal(1, 2, 2)}
    _hx = "(h, c)" if _name == "lstm" else "h"
    _cell = {"h": normal(2, 2), "c": normal(2, 2)} if _name == "lstm" else {"h": normal(2, 2)}
    _own = weights(_gates)
    SAMPLES += [
        Sample(f"{_name}_cell", f"torch.{_name}_cell(x, {_hx}, wi, wh, bi, bh)", x=normal(2, 2), **_cell, **_own),
        Sample(f"{_name}_cell", f"torch.{_name}_cell(x, {_hx}, wi, wh)", x=normal(2, 2), **_cell,
               wi=_own["wi"], wh=_own["wh"]),
        Sample(_name, f"torch.{_name}(x, {_hx}, (wi, wh, bi, bh), {ONE}, False)", x=normal(3, 2, 2), **_state, **_own),
        Sample(_name, f"torch.{_name}(x, {_hx}, (wi, wh), False, 1, 0.0, True, False, True)", x=normal(2, 3, 2), **_state,
               wi=_own["wi"], wh=_own["wh"]),
        Sample(_name, f"torch.{_name}(x, torch.tensor([2, 1]), {_hx}, (wi, wh, bi, bh), {ONE})", x=normal(3, 2), **_state,
               **_own),
    ]  # fmt: skip
_two = {f"{name}{k}": recipe for k in "ab" for name, recipe in weights(3).items()}
SAMPLES += [
    Sample("gru", "torch.gru(x, h, (wia, wha, bia, bha, wib, whb, bib, bhb), True, 1, 0.0, False, True, False)",
           x=normal(2, 2, 2), h=normal(2, 2, 2), **_two),
    Sample("lstm", "torch.lstm(x, (h, c), (wi, wh, bi, bh, wr), True, 1, 0.0, False, False, False)", x=normal(3, 2, 2),
           h=normal(1, 2, 1), c=normal(1, 2, 2), wi=normal(8, 2), wh=normal(8, 1), bi=normal(8), bh=normal(8),
           wr=normal(1, 2)),
]  # fmt: skip
