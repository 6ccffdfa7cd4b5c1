"""Recurrent layers and cells: ``rnn_tanh``, ``rnn_relu``, ``lstm``, ``gru``, and one step of each.

A layer in one direction is one operation (a block), however long the sequence; cells are written in terms of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtypes, engine
from ..core.devices import module_of
from ..core.modes import set_recording
from ..core.tensor import Tensor
from ..core.views import current
from ..kernels import recurrent
from .drop import dropout
from .embed import linear
from .join import cat, stack
from .pieces import unsafe_chunk
from .shape import transpose
from .table import ARRAYS, TENSORS, op, shared, surface

F: Any = TENSORS

# -- One layer -------------------------------------------------------------------------------------------------------


@shared
def _rule(
    F: Any, g: Any, input: Any, hidden: Any, cell: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, gates: Any,
    cells: Any, before: Any, kind: str, sizes: Sequence[int], reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    operands = input, hidden, cell, w_ih, w_hh, b_ih, b_hh, w_hr
    return F.recurrent_back(g[:3], operands, (gates, cells, before), kind, sizes, reverse)


def _block(node: str) -> Any:
    """The operation, with the node's name by which PyTorch shows the result."""

    def recurrent_layer(
        np: Any, input: Any, hidden: Any, cell: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, /, kind: str,
        sizes: Sequence[int], reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """The states of a recurrent layer after each step, the last state and cell, and what the gradients need."""
        rows = input.reshape(-1, input.shape[-1])
        out, *rest = recurrent.forward(np, kind, rows, hidden, cell, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)
        return (out.reshape(*input.shape[:-1], out.shape[-1]), *rest)

    block = op(
        name=f"recurrent_layer_{node}", backward=node, function=False, method=False, opmath=True, differentiable=3,
        outputs=("out", "last", "last_cell", "gates", "cells", "before"),
    )(recurrent_layer)  # fmt: skip
    block.derivative(**dict.fromkeys(block.op.tensors, _rule))
    return block


LAYERS = {name: _block(name) for name in ("StackBackward0", "CatBackward0", "MkldnnRnnLayerBackward0")}


def _back_on_arrays(
    grads: Sequence[Any], operands: Sequence[Any], kept: Sequence[Any], kind: str, sizes: Sequence[int], reverse: bool
) -> tuple[Any, ...]:
    input = operands[0]
    flat = [None if each is None else each.reshape(-1, each.shape[-1]) for each in (grads[0], input)]
    rest: Any = (*operands[1:], *kept, sizes, reverse)
    found = recurrent.backward(module_of(input), kind, (flat[0], *grads[1:]), flat[1], *rest)
    return (found[0].reshape(input.shape), *found[1:])


def _back_on_tensors(
    grads: Sequence[Any], operands: Sequence[Any], kept: Sequence[Any], kind: str, sizes: Sequence[int], reverse: bool
) -> tuple[Any, ...]:
    """The gradients in terms of operations that have derivatives themselves: the layer is computed again, step by step."""
    own = [None if each is None else F.mul(each, 1) for each in operands]  # with a place in the graph for each
    outs = _step_by_step(kind, own, sizes, reverse)
    roots = [
        (current(out), grad) for out, grad in zip(outs, grads, strict=True) if grad is not None and out.requires_grad
    ]
    places = [None if each is None or not each.requires_grad else each._node for each in own]
    wanted: dict[Any, Any] = {place: None for place in places if place is not None}
    engine.sweep(roots, True, True, wanted, write=False)
    set_recording(True)
    return tuple(None if place is None else wanted[place] for place in places)


ARRAYS.__dict__["recurrent_back"] = _back_on_arrays
TENSORS.__dict__["recurrent_back"] = _back_on_tensors


def _step_by_step(kind: str, operands: Sequence[Any], sizes: Sequence[int], reverse: bool) -> tuple[Any, ...]:
    """A layer as a program of cells: what it gives after each step, the last state and the last cell."""
    input, hidden, cell, *weights, w_hr = operands
    rows = input.reshape(-1, input.shape[-1])
    after: dict[int, Any] = {}
    start = [sum(sizes[:place]) for place in range(len(sizes))]
    for place in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        size = sizes[place]
        x = rows[start[place] : start[place] + size]
        if kind == "LSTM":
            new, new_cell = lstm_cell(x, (hidden[:size], cell[:size]), *weights)
            new = new if w_hr is None else F.matmul(new, w_hr.t())
            cell = cat([new_cell, cell[size:]])
        else:
            new = CELLS[kind](x, hidden[:size], *weights)
        after[place] = new
        hidden = cat([new, hidden[size:]])
    out = cat([after[place] for place in range(len(sizes))]).reshape(*input.shape[:-1], -1)
    return out, hidden, hidden[:0] if cell is None else cell


# -- Cells -----------------------------------------------------------------------------------------------------------


def _sum_of_products(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
    return linear(hx, w_hh, b_hh) + linear(input, w_ih, b_ih)


@surface(method=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)``: one step of a recurrent layer."""
    return F.tanh(_sum_of_products(input, hx, w_ih, w_hh, b_ih, b_hh))


@surface(method=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """``relu(w_ih @ input + b_ih + w_hh @ hx + b_hh)``: one step of a recurrent layer."""
    return F.relu(_sum_of_products(input, hx, w_ih, w_hh, b_ih, b_hh))


@surface(method=False)
def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of a long short-term memory: the new state and the new cell (Hochreiter and Schmidhuber 1997)."""
    hidden, cell = hx
    enter, keep, new, leave = unsafe_chunk(_sum_of_products(input, hidden, w_ih, w_hh, b_ih, b_hh), 4, 1)
    cell = F.sigmoid(keep) * cell + F.sigmoid(enter) * F.tanh(new)
    return F.sigmoid(leave) * F.tanh(cell), cell


@surface(method=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a gated recurrent unit: the new state (Cho et al. 2014)."""
    of_input = unsafe_chunk(linear(input, w_ih, b_ih), 3, 1)
    of_state = unsafe_chunk(linear(hx, w_hh, b_hh), 3, 1)
    reset = F.sigmoid(of_state[0] + of_input[0])
    update = F.sigmoid(of_state[1] + of_input[1])
    new = F.tanh(of_input[2] + of_state[2] * reset)
    return (hx - new) * update + new


CELLS: dict[str, Callable[..., Any]] = {"RNN_TANH": rnn_tanh_cell, "RNN_RELU": rnn_relu_cell, "GRU": gru_cell}

# -- Layers upon layers ----------------------------------------------------------------------------------------------


def _split(args: tuple[Any, ...]) -> tuple[Any, Any, Any, tuple[Any, ...], bool]:
    """The arguments of a packed call (data, sizes, state …) and of a padded one (input, state … batch_first)."""
    if isinstance(args[1], Tensor) and isinstance(args[3], (list, tuple)):
        data, sizes, hx, params, *rest = args
        return data, [int(each) for each in sizes.tolist()], hx, (params, *rest), False
    *first, batch_first = args
    input, hx, params, *rest = first
    if batch_first:
        input = transpose(input, 0, 1)
    return input, None, hx, (params, *rest), batch_first


def _run(kind: str, args: tuple[Any, ...]) -> tuple[Any, list[Tensor], list[Tensor]]:
    """All layers and directions; the output, and the last states and cells of each."""
    input, packed, hx, (params, biases, layers, p, train, bidirectional), batch_first = _split(args)
    sizes = packed if packed is not None else [input.shape[1]] * input.shape[0]
    directions = 2 if bidirectional else 1
    hidden, cell = hx if kind == "LSTM" else (hx, None)
    each_has = len(params) // (layers * directions)
    projected = each_has == (5 if biases else 3)
    fast = kind == "LSTM" and not projected and input.dtype is dtypes.float32 and packed is None
    run = LAYERS["MkldnnRnnLayerBackward0" if fast else "StackBackward0" if packed is None else "CatBackward0"]
    lasts: list[Tensor] = []
    cells: list[Tensor] = []
    for layer in range(layers):
        outs = []
        for direction in range(directions):
            place = layer * directions + direction
            own = list(params[place * each_has : (place + 1) * each_has])
            weights = own[:4] if biases else [*own[:2], None, None]
            w_hr = own[-1] if projected else None
            state = hidden[place], None if cell is None else cell[place]
            out, last, last_cell, *_ = run(input, *state, *weights, w_hr, kind, sizes, direction == 1)
            outs.append(out)
            lasts.append(last)
            cells.append(last_cell)
        input = outs[0] if directions == 1 else cat(outs, -1)
        if p and train and layer < layers - 1:
            input = dropout(input, p, True)
    if batch_first:
        input = transpose(input, 0, 1) if fast else input.transpose_(0, 1)  # as PyTorch's nodes show
    return input, lasts, cells


def _layered(kind: str, name: str, what: str) -> None:
    def layers(*args: Any) -> tuple[Tensor, ...]:
        out, lasts, cells = _run(kind, args)
        return (out, stack(lasts), stack(cells)) if kind == "LSTM" else (out, stack(lasts))

    layers.__name__ = layers.__qualname__ = name
    layers.__doc__ = (
        f"Layers of {what}: ``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or "
        "for packed sequences ``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``. "
        f"``nn.{name.partition('_')[0].upper()}`` is what programs use."
    )
    surface(method=False, name=name)(layers)


_layered("RNN_TANH", "rnn_tanh", "recurrent units with tanh")
_layered("RNN_RELU", "rnn_relu", "recurrent units with relu")
_layered("LSTM", "lstm", "long short-term memories")
_layered("GRU", "gru", "gated recurrent units")

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]
