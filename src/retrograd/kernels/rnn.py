"""Kernels of RNN, LSTM and GRU over whole sequences: the forward pass, and the gradients of all operands.

A packed sequence is a matrix with one row for each sequence and time step; the rows of the first time step come first.
``sizes`` holds the number of rows of each time step, which never increases, because sequences are sorted by descending
length. The products with the input weights are one matrix product for all time steps. Only the operations that depend
on the previous step are computed step by step: a matrix product, and the gates, which one Numba loop or about ten NumPy
calls compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from . import numba_dispatch
from .matmul import add_product, dot, product
from .thresholds import RECURRENT

#: Gates of each kind: rows of the weights for each unit.
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
#: Numba loops of one time step. An RNN has none, because NumPy computes its step by two or three calls.
FORWARD = {"LSTM": "lstm_step", "GRU": "gru_step"}
BACKWARD = {"LSTM": "lstm_back", "GRU": "gru_back"}


def steps(sizes: Sequence[int], reverse: bool) -> Iterator[tuple[int, slice]]:
    """Return an iterator over the time steps of packed sequences, as pairs (number of rows, slice of these rows).

    ``sizes`` holds the number of rows of each time step. If ``reverse`` is true, the last time step comes first.
    """
    spans, start = [], 0
    for size in sizes:
        spans.append((size, slice(start, start + size)))
        start += size
    return reversed(spans) if reverse else iter(spans)


def forward(
    np: Any, kind: str, x: Any, hidden: Any, cell: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any,
    sizes: Sequence[int], reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Return (outputs, last hidden state, last cell state, gates, cells, before) of a recurrent network.

    The outputs are the hidden states of all time steps (rows, units). The last three arrays are saved for
    :func:`backward`: the activated gates (gates, rows, units), the cell states before and after each step, and the
    hidden states before each step.

    ``kind`` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU". ``x`` is a packed sequence with ``sizes`` rows for each time
    step. ``hidden`` and ``cell`` are the initial states; ``cell`` is None except for an LSTM. ``w_hr`` is the
    projection of an LSTM, or None. If ``reverse`` is true, the sequences are processed backwards.
    """
    units = w_hh.shape[0] // GATES[kind]
    bias = b_ih if b_ih is None or kind == "GRU" else b_ih + b_hh
    seen = dot(np, x, w_ih.T) if bias is None else add_product(np, bias, x, w_ih.T)
    across = np.ascontiguousarray(w_hh.T)  # a product with a transposed matrix takes 1.5 times as long
    rows = x.shape[0]
    out = np.empty((rows, hidden.shape[1]), x.dtype)
    before = np.empty((rows, hidden.shape[1]), x.dtype)
    gates = np.empty((1 if kind.startswith("RNN") else 4, rows, units), x.dtype)
    cells = np.empty((2, rows, units) if kind == "LSTM" else (0,), x.dtype)
    hidden = hidden.copy()
    cell = hidden[:0] if cell is None else cell.copy()
    loop = step_loop(FORWARD[kind], hidden.shape[0] * units, seen, hidden, across) if kind in FORWARD else None
    for size, span in steps(sizes, reverse):
        h = before[span] = hidden[:size]
        of_state = product(h, across)
        if kind == "LSTM":
            new = _lstm_step(np, loop, gates, cells, span.start, seen[span], of_state, cell[:size])
            if w_hr is not None:
                new = new @ w_hr.T
        elif kind == "GRU":
            if b_hh is not None:
                of_state += b_hh
            new = gru_step(np, loop, gates, span.start, seen[span], of_state, h)
        else:
            of_state += seen[span]
            new = np.tanh(of_state) if kind == "RNN_TANH" else np.maximum(of_state, 0)
            gates[0, span] = new
        out[span] = hidden[:size] = new
    return out, hidden, cell, gates, cells, before


def backward(
    np: Any, kind: str, grads: Sequence[Any], x: Any, hidden: Any, cell: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
    w_hr: Any, gates: Any, cells: Any, before: Any, sizes: Sequence[int], reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the gradients of ``x``, ``hidden``, ``cell``, ``w_ih``, ``w_hh``, ``b_ih``, ``b_hh`` and ``w_hr``.

    ``grads`` holds the gradients of the hidden states, the last hidden state and the last cell state. Each may be None.
    ``gates``, ``cells`` and ``before`` are the arrays that :func:`forward` saved: the gates, the cell states, and the
    hidden states before each time step. The other parameters are the arguments of :func:`forward`.
    """
    of_out, of_last, of_cell = grads
    of_out = None if of_out is None else np.ascontiguousarray(of_out)
    dh = np.zeros(hidden.shape, x.dtype) if of_last is None else of_last.copy()
    dc: Any = None if cell is None else np.zeros(cell.shape, x.dtype) if of_cell is None else of_cell.copy()
    inner = np.empty((x.shape[0], w_hh.shape[0]), x.dtype)  # gate gradients before activation: hidden part
    outer = np.empty_like(inner) if kind == "GRU" else inner  # and input part
    arrived: Any = np.empty((x.shape[0], hidden.shape[1]), x.dtype) if w_hr is not None else None
    size = hidden.shape[0] * gates.shape[2]
    loop = step_loop(BACKWARD[kind], size, inner, dh, gates, cells, before) if kind in BACKWARD else None
    for size, span in steps(sizes, not reverse):
        d = dh[:size] if of_out is None else dh[:size] + of_out[span]
        if arrived is not None:
            arrived[span] = d
            d = d @ w_hr
        if kind == "LSTM":
            _lstm_back(np, loop, gates, cells, span.start, inner[span], d, dc[:size])
            dh[:size] = product(inner[span], w_hh)
        elif kind == "GRU":
            rest = gru_back(np, loop, gates, span.start, inner[span], outer[span], d, before[span])
            dh[:size] = product(inner[span], w_hh)
            dh[:size] += rest
        else:
            value = gates[0, span]
            inner[span] = d * (1 - value * value) if kind == "RNN_TANH" else np.where(value > 0, d, 0)
            dh[:size] = product(inner[span], w_hh)
    projected = None
    if arrived is not None:
        projected = arrived.T @ (gates[3] * np.tanh(cells[1]))
    return (
        dot(np, outer, w_ih), dh, dc, dot(np, outer.T, x), dot(np, inner.T, before), None if b_ih is None else outer.sum(0),
        None if b_hh is None else inner.sum(0), projected,
    )  # fmt: skip


# -- The gates of one time step ----------------------------------------------------------------------------------------


def step_loop(name: str, size: int, *arrays: Any) -> Any:
    """Return the Numba loop ``name`` for the time steps of a recurrent layer, or None if NumPy has to compute them.

    ``size`` is the number of elements of the state. ``arrays`` must be contiguous NumPy arrays of float32, whose functions
    the loops compute by vector instructions.
    """
    if size < RECURRENT or not numba_dispatch.available(arrays[0].size):
        return None
    for each in arrays:
        if each.__class__ is not numpy.ndarray or each.dtype is not numba_dispatch.F32 or not each.flags.c_contiguous:
            return None
    return numba_dispatch.on_threads(getattr(numba_dispatch.loops("rnn"), name), size)


def _sigmoid_in_place(np: Any, x: Any) -> None:
    """Replace each element of the contiguous array ``x`` by its sigmoid, ``1 / (1 + exp(-x))``.

    NumPy 2.4 computes ``negative(x, out=x)`` wrongly for some strides.
    """
    np.negative(x, out=x)
    np.exp(x, out=x)  # infinite for large negative elements, whose sigmoid is 0
    x += 1
    np.reciprocal(x, out=x)


def _lstm_step(
    np: Any, loop: Any, gates: Any, cells: Any, start: int, of_input: Any, of_state: Any, cell: Any
) -> Any:  # fmt: skip
    """Return the hidden state of an LSTM after one time step, and update ``cell``, the cell state, in place.

    ``of_input`` and ``of_state`` (rows, 4 * units) are the products of the input and of the hidden state with their
    weights, for the input, forget, cell and output gates. The activated gates are written to ``gates`` (4, all rows,
    units), and the cell states before and after the step to ``cells`` (2, all rows, units), from the row ``start`` on.
    ``loop`` is the result of :func:`step_loop`.
    """
    if loop is not None:
        out = numpy.empty(cell.shape, cell.dtype)
        loop(cell, of_input, of_state, start, gates, cells, out)
        return out
    rows = len(cell)
    before, after = cells[:, start : start + rows]
    total = np.empty((4, *cell.shape), cell.dtype)
    np.add(_by_gate(of_state, 4), _by_gate(of_input, 4), out=total)
    enter, keep, _, leave = total
    new = np.tanh(total[2])
    _sigmoid_in_place(np, total)
    total[2] = new
    gates[:, start : start + rows] = total
    before[...] = cell
    cell *= keep
    cell += enter * new
    after[...] = cell
    return leave * np.tanh(cell)


def _by_gate(x: Any, gates: int) -> Any:
    """Return ``x`` (rows, gates * units) as a view of shape (gates, rows, units)."""
    return x.reshape(len(x), gates, x.shape[1] // gates).swapaxes(0, 1)


def gru_step(np: Any, loop: Any, gates: Any, start: int, of_input: Any, of_state: Any, h: Any) -> Any:
    """Return the hidden state after one time step of a GRU, and write the activated gates to ``gates``.

    ``of_input`` and ``of_state`` (rows, 3 * units) are the products of the input and of ``h``, the previous hidden state,
    with their weights. ``gates`` (4, all rows, units) gets the reset gate, the update gate, the new gate, and the part of
    the new gate that comes from ``h``, from the row ``start`` on. ``loop`` is the result of :func:`step_loop`.
    """
    if loop is not None:
        out = numpy.empty(h.shape, h.dtype)
        loop(h, of_input, of_state, start, gates, out)
        return out
    rows, units = h.shape
    both = np.empty((2, *h.shape), h.dtype)
    reset, update = both
    here = gates[:, start : start + rows]
    new, part = here[2:]
    np.add(of_state[:, :units], of_input[:, :units], out=reset)
    np.add(of_state[:, units : 2 * units], of_input[:, units : 2 * units], out=update)
    _sigmoid_in_place(np, both)
    here[:2] = both
    part[...] = of_state[:, 2 * units :]
    np.multiply(part, reset, out=new)
    new += of_input[:, 2 * units :]
    np.tanh(new, out=new)
    out = h - new
    out *= update
    out += new
    return out


def _lstm_back(np: Any, loop: Any, gates: Any, cells: Any, start: int, inner: Any, d: Any, dc: Any) -> None:
    """Replace ``dc``, the gradient of the cell state of an LSTM after one time step, by that before it.

    ``d`` is the gradient of the hidden state after the step. The gradients of the gates before activation are written to
    ``inner`` (rows, 4 * units). ``gates`` and ``cells`` hold what :func:`_lstm_step` wrote from the row ``start`` on.
    ``loop`` is the result of :func:`step_loop`.
    """
    if loop is not None:
        loop(d, dc, start, gates, cells, inner)
        return
    rows, units = d.shape
    enter, keep, new, leave = gates[:, start : start + rows]
    before, after = cells[:, start : start + rows]
    squashed = np.tanh(after)
    dc += d * leave * (1 - squashed * squashed)
    inner[:, :units] = dc * new * enter * (1 - enter)
    inner[:, units : 2 * units] = dc * before * keep * (1 - keep)
    inner[:, 2 * units : 3 * units] = dc * enter * (1 - new * new)
    inner[:, 3 * units :] = d * squashed * leave * (1 - leave)
    dc *= keep


def gru_back(np: Any, loop: Any, gates: Any, start: int, inner: Any, outer: Any, d: Any, h: Any) -> Any:
    """Return ``d * update``, the part of the gradient of ``h`` that does not pass through the gates of a GRU.

    ``h`` is the hidden state before one time step, and ``d`` the gradient of the hidden state after it. ``gates`` holds
    what :func:`gru_step` wrote from the row ``start`` on. The gradients of the gates before activation are written to two
    arrays (rows, 3 * units): to ``outer`` with respect to the product of the input with its weights, and to ``inner`` with
    respect to the product of ``h`` with its weights. ``loop`` is the result of :func:`step_loop`.
    """
    if loop is not None:
        rest = numpy.empty(d.shape, d.dtype)
        loop(d, h, start, gates, inner, outer, rest)
        return rest
    rows, units = d.shape
    reset, update, new, part = gates[:, start : start + rows]
    rest = d * update
    kept = 1 - update
    part_of_update = h - new
    part_of_update *= rest
    np.multiply(part_of_update, kept, out=outer[:, units : 2 * units])
    kept *= d
    of_new = new * new
    np.subtract(1, of_new, out=of_new)
    of_new *= kept
    outer[:, 2 * units :] = of_new
    np.multiply(of_new, reset, out=inner[:, 2 * units :])
    of_new *= part
    of_new *= reset
    np.subtract(1, reset, out=kept)
    np.multiply(of_new, kept, out=outer[:, :units])
    inner[:, : 2 * units] = outer[:, : 2 * units]
    return rest
