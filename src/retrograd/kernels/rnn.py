"""Kernels of RNN, LSTM and GRU over whole sequences: the forward pass, and the gradients of all operands.

A packed sequence is a matrix with one row for each sequence and time step; the rows of the first time step come first.
``sizes`` holds the number of rows of each time step, which never increases, because sequences are sorted by descending
length. The products with the input weights are one matrix product for all time steps. Only the operations that depend
on the previous step are computed step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: Gates of each kind: rows of the weights for each unit.
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def steps(sizes: Sequence[int], reverse: bool) -> Iterator[tuple[int, slice]]:
    """Return an iterator over the time steps of packed sequences, as pairs (number of rows, slice of these rows).

    ``sizes`` holds the number of rows of each time step. If ``reverse`` is true, the last time step comes first.
    """
    spans, start = [], 0
    for size in sizes:
        spans.append((size, slice(start, start + size)))
        start += size
    return reversed(spans) if reverse else iter(spans)


def _apply_sigmoid(np: Any, x: Any) -> None:
    """Replace each element of ``x`` by its sigmoid, ``1 / (1 + exp(-x))``."""
    np.negative(x, out=x)
    np.exp(x, out=x)  # infinite for large negative elements, whose sigmoid is 0
    x += 1
    np.reciprocal(x, out=x)


def _added(x: Any, *biases: Any) -> Any:
    """Add each of ``biases`` that is not None to ``x`` in place, and return ``x``."""
    for bias in biases:
        if bias is not None:
            x += bias
    return x


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
    seen = _added(x @ w_ih.T, b_ih, b_hh if kind != "GRU" else None)
    rows = x.shape[0]
    if kind == "LSTM":  # one matrix for each gate, so that the gates of a step are contiguous
        seen = seen.reshape(rows, 4, units).swapaxes(0, 1)
        across = np.ascontiguousarray(w_hh.reshape(4, units, -1).swapaxes(1, 2))
    else:
        across = np.ascontiguousarray(w_hh.T)  # a product with a transposed matrix takes 1.5 times as long
    out = np.empty((rows, hidden.shape[1]), x.dtype)
    before = np.empty((rows, hidden.shape[1]), x.dtype)
    gates = np.empty((1 if kind.startswith("RNN") else 4, rows, units), x.dtype)
    cells = np.empty((2, rows, units) if kind == "LSTM" else (0,), x.dtype)
    hidden = hidden.copy()
    cell = hidden[:0] if cell is None else cell.copy()
    for size, span in steps(sizes, reverse):
        h = before[span] = hidden[:size]
        product = h @ across
        if kind == "LSTM":
            product += seen[:, span]
            cells[0, span] = cell[:size]
            new, cell[:size] = _lstm_step(np, gates[:, span], product, cell[:size])
            cells[1, span] = cell[:size]
            if w_hr is not None:
                new = new @ w_hr.T
        elif kind == "GRU":
            new = gru_step(np, gates[:, span], seen[span], _added(product, b_hh), h)
        else:
            product += seen[span]
            new = np.tanh(product) if kind == "RNN_TANH" else np.maximum(product, 0)
            gates[0, span] = new
        out[span] = hidden[:size] = new
    return out, hidden, cell, gates, cells, before


def _lstm_step(np: Any, gates: Any, total: Any, cell: Any) -> tuple[Any, Any]:
    """Return the hidden state and the cell state of an LSTM after one time step, and write the gates to ``gates``.

    ``cell`` is the cell state before the step. ``total`` (4, rows, units) holds the input, forget, cell and output gates
    before activation, which are overwritten.
    """
    new = np.tanh(total[2])
    _apply_sigmoid(np, total)
    total[2] = new
    gates[...] = total
    enter, keep, _, leave = total
    cell = keep * cell + enter * new
    return leave * np.tanh(cell), cell


def gru_step(np: Any, gates: Any, of_input: Any, of_state: Any, h: Any) -> Any:
    """Return the hidden state after one time step of a GRU, and write the activated gates to ``gates``.

    ``of_input`` and ``of_state`` are the products of the input and of ``h``, the previous hidden state, with their
    weights. ``gates`` (4, rows, units) gets the reset gate, the update gate, the new gate, and the part of the new gate
    that comes from ``h``.
    """
    units = h.shape[1]
    reset, update, new, part = gates
    np.add(of_state[:, :units], of_input[:, :units], out=reset)
    np.add(of_state[:, units : 2 * units], of_input[:, units : 2 * units], out=update)
    _apply_sigmoid(np, gates[:2])
    part[...] = of_state[:, 2 * units :]
    np.multiply(part, reset, out=new)
    new += of_input[:, 2 * units :]
    np.tanh(new, out=new)
    out = h - new
    out *= update
    out += new
    return out


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
    dh = np.zeros(hidden.shape, x.dtype) if of_last is None else of_last.copy()
    dc: Any = None if cell is None else np.zeros(cell.shape, x.dtype) if of_cell is None else of_cell.copy()
    inner = np.empty((x.shape[0], w_hh.shape[0]), x.dtype)  # gate gradients before activation: hidden part
    outer = np.empty_like(inner) if kind == "GRU" else inner  # and input part
    arrived: Any = np.empty((x.shape[0], hidden.shape[1]), x.dtype) if w_hr is not None else None
    for size, span in steps(sizes, not reverse):
        d = dh[:size] if of_out is None else dh[:size] + of_out[span]
        if arrived is not None:
            arrived[span] = d
            d = d @ w_hr
        if kind == "LSTM":
            dc[:size] = _lstm_back(np, inner[span], d, dc[:size], gates[:, span], cells[:, span])
            dh[:size] = inner[span] @ w_hh
        elif kind == "GRU":
            rest = gru_back(np, inner[span], outer[span], d, gates[:, span], before[span])
            dh[:size] = inner[span] @ w_hh + rest
        else:
            value = gates[0, span]
            inner[span] = d * (1 - value * value) if kind == "RNN_TANH" else np.where(value > 0, d, 0)
            dh[:size] = inner[span] @ w_hh
    projected = None
    if arrived is not None:
        projected = arrived.T @ (gates[3] * np.tanh(cells[1]))
    return (
        outer @ w_ih, dh, dc, outer.T @ x, inner.T @ before, None if b_ih is None else outer.sum(0),
        None if b_hh is None else inner.sum(0), projected,
    )  # fmt: skip


def _lstm_back(np: Any, inner: Any, d: Any, dc: Any, gates: Any, cells: Any) -> Any:
    """Return the gradient of the cell state before one time step of an LSTM.

    The gradients of the gates before activation are written to ``inner``. ``d`` and ``dc`` are the gradients of the
    hidden state and the cell state after the step. ``gates`` holds the activated gates: input, forget, cell and output
    gate. ``cells`` holds the cell states before and after the step.
    """
    units = d.shape[1]
    enter, keep, new, leave = gates
    squashed = np.tanh(cells[1])
    dc = dc + d * leave * (1 - squashed * squashed)
    inner[:, :units] = dc * new * enter * (1 - enter)
    inner[:, units : 2 * units] = dc * cells[0] * keep * (1 - keep)
    inner[:, 2 * units : 3 * units] = dc * enter * (1 - new * new)
    inner[:, 3 * units :] = d * squashed * leave * (1 - leave)
    return dc * keep


def gru_back(np: Any, inner: Any, outer: Any, d: Any, gates: Any, h: Any) -> Any:
    """Return ``d * update``, the part of the gradient of ``h`` that does not pass through the gates of a GRU.

    ``h`` is the hidden state before one time step, and ``d`` the gradient of the hidden state after it. ``gates`` holds
    the values that :func:`gru_step` wrote. The gradients of the gates before activation are written to two arrays: to
    ``outer`` with respect to the product of the input with its weights, and to ``inner`` with respect to the product of
    ``h`` with its weights.
    """
    units = d.shape[1]
    reset, update, new, part = gates
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
