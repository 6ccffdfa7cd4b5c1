"""Numba loops of one time step of LSTM and GRU, forward and backward.

Each loop computes a row (one sequence) in several short loops over its units, because a loop that uses at most five arrays
compiles to vector instructions, and a row stays in the first-level cache. ``start`` is the first row of the time step in
the arrays with the rows of all time steps, ``gates`` and ``cells``.
"""

from __future__ import annotations

from typing import Any

from numba import prange

from .jit import loop
from .math import like, sigmoid, tanh


@loop
def lstm_step(cell: Any, inputs: Any, states: Any, start: Any, gates: Any, cells: Any, out: Any) -> None:
    """Write the hidden states of an LSTM after one time step to ``out`` (rows, units), and update ``cell`` in place.

    ``inputs`` and ``states`` (rows, 4 * units) are the products of the inputs and of the hidden states with their weights.
    The activated gates are written to ``gates`` (4, all rows, units), the cell states before and after the step to
    ``cells`` (2, all rows, units).
    """
    units = cell.shape[1]
    for r in prange(cell.shape[0]):
        at = start + r
        of_state, of_input, state, hidden = states[r], inputs[r], cell[r], out[r]
        enter, keep, new, leave = gates[0, at], gates[1, at], gates[2, at], gates[3, at]
        before, after = cells[0, at], cells[1, at]
        for u in range(units):
            enter[u] = sigmoid(of_state[u] + of_input[u])
        for u in range(units):
            keep[u] = sigmoid(of_state[units + u] + of_input[units + u])
        for u in range(units):
            new[u] = tanh(of_state[2 * units + u] + of_input[2 * units + u])
        for u in range(units):
            leave[u] = sigmoid(of_state[3 * units + u] + of_input[3 * units + u])
        for u in range(units):
            before[u] = state[u]
        for u in range(units):
            after[u] = keep[u] * before[u] + enter[u] * new[u]
        for u in range(units):
            state[u] = after[u]
        for u in range(units):
            hidden[u] = leave[u] * tanh(after[u])


@loop
def lstm_back(d: Any, dc: Any, start: Any, gates: Any, cells: Any, inner: Any) -> None:
    """Replace ``dc``, the gradients of the cell states of an LSTM after one time step, by those before it.

    ``d`` holds the gradients of the hidden states after the step (rows, units). The gradients of the gates before
    activation are written to ``inner`` (rows, 4 * units). ``gates`` and ``cells`` are as in :func:`lstm_step`.
    """
    units = d.shape[1]
    for r in prange(d.shape[0]):
        at = start + r
        of_hidden, of_cell, out = d[r], dc[r], inner[r]
        enter, keep, new, leave = gates[0, at], gates[1, at], gates[2, at], gates[3, at]
        before, after = cells[0, at], cells[1, at]
        one = like(of_cell[0], 1)
        last = out[3 * units :]
        for u in range(units):
            last[u] = tanh(after[u])
        for u in range(units):
            of_cell[u] += of_hidden[u] * leave[u] * (one - last[u] * last[u])
        for u in range(units):
            last[u] = of_hidden[u] * last[u] * leave[u] * (one - leave[u])
        for u in range(units):
            out[u] = of_cell[u] * new[u] * enter[u] * (one - enter[u])
        for u in range(units):
            out[units + u] = of_cell[u] * before[u] * keep[u] * (one - keep[u])
        for u in range(units):
            out[2 * units + u] = of_cell[u] * enter[u] * (one - new[u] * new[u])
        for u in range(units):
            of_cell[u] *= keep[u]


@loop
def gru_step(h: Any, inputs: Any, states: Any, start: Any, gates: Any, out: Any) -> None:
    """Write the hidden states of a GRU after one time step to ``out`` (rows, units).

    ``inputs`` and ``states`` (rows, 3 * units) are the products of the inputs and of ``h``, the hidden states before the
    step, with their weights. ``gates`` (4, all rows, units) gets the reset gate, the update gate, the new gate, and the
    part of the new gate that comes from ``h``.
    """
    units = h.shape[1]
    for r in prange(h.shape[0]):
        at = start + r
        of_state, of_input, hidden, result = states[r], inputs[r], h[r], out[r]
        reset, update, new, part = gates[0, at], gates[1, at], gates[2, at], gates[3, at]
        for u in range(units):
            reset[u] = sigmoid(of_state[u] + of_input[u])
        for u in range(units):
            update[u] = sigmoid(of_state[units + u] + of_input[units + u])
        for u in range(units):
            part[u] = of_state[2 * units + u]
        for u in range(units):
            new[u] = tanh(of_input[2 * units + u] + part[u] * reset[u])
        for u in range(units):
            result[u] = (hidden[u] - new[u]) * update[u] + new[u]


@loop
def gru_back(d: Any, h: Any, start: Any, gates: Any, inner: Any, outer: Any, rest: Any) -> None:
    """Write the gradients of the gates of a GRU before activation to ``outer`` and ``inner`` (rows, 3 * units).

    These are the gradients of the products of the inputs (``outer``) and of ``h`` (``inner``) with their weights.
    ``d * update``, the part of the gradient of ``h`` that does not pass through the gates, is written to ``rest``. ``d``
    holds the gradients of the hidden states after the step (rows, units), ``h`` the hidden states before it, and ``gates``
    the values that :func:`gru_step` wrote.
    """
    units = d.shape[1]
    for r in prange(d.shape[0]):
        at = start + r
        given, hidden, direct, of_input, of_state = d[r], h[r], rest[r], outer[r], inner[r]
        reset, update, new, part = gates[0, at], gates[1, at], gates[2, at], gates[3, at]
        one = like(given[0], 1)
        of_new = of_input[2 * units :]
        for u in range(units):
            direct[u] = given[u] * update[u]
        for u in range(units):
            of_new[u] = given[u] * (one - update[u]) * (one - new[u] * new[u])
        for u in range(units):
            of_input[u] = of_new[u] * part[u] * reset[u] * (one - reset[u])
        for u in range(units):
            of_input[units + u] = direct[u] * (hidden[u] - new[u]) * (one - update[u])
        for u in range(2 * units):
            of_state[u] = of_input[u]
        for u in range(units):
            of_state[2 * units + u] = of_new[u] * reset[u]
