"""Recurrent layers and cells: rnn_tanh, rnn_relu, lstm, gru, and rnn_tanh_cell, rnn_relu_cell, lstm_cell, gru_cell.

One operation computes a layer in one direction for the whole sequence. Cells, which compute one time step, are composed
of other operations, except that one operation computes the gates of a GRU in the usual case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...core import dtypes
from ...core.devices import array_module_of
from ...core.grad_mode import HOOKED, recording
from ...core.tensor import Tensor
from ...dispatch.declare import TENSORS, op, public, rule_function, shared
from ...dispatch.intercept import HANDLERS
from ...dispatch.operand_promotion import F32, F64, PLAIN
from ...kernels import rnn
from ..creation.factory import zeros_like
from ..shape.join import cat, stack
from ..shape.slicing import unsafe_chunk
from ..shape.views import transpose
from .dropout import dropout
from .linear import linear

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
    """Return a new operation, which computes one recurrent layer in one direction.

    ``node`` is the name of its node in the autograd graph. There are several such operations, because PyTorch uses
    several names.
    """

    def recurrent_layer(
        np: Any, input: Any, hidden: Any, cell: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, /, kind: str,
        sizes: Sequence[int], reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the six arrays that a recurrent layer computes: three results, and three arrays for the backward pass.

        The results are the hidden states after each time step, the last hidden state and the last cell state. The other
        arrays are the gates, the cell states and the hidden states before each time step.

        ``kind`` is ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``. ``sizes`` has the number of sequences at
        each step, which is constant except for packed sequences. If ``reverse`` is true, the steps are computed from
        last to first. ``cell`` is None except for an LSTM. ``w_hr`` is None or the matrix that projects the hidden
        state.
        """
        rows = input.reshape(-1, input.shape[-1])
        out, *rest = rnn.forward(np, kind, rows, hidden, cell, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)
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
    short = operands[0].dtype
    if short in dtypes.HALF_PRECISION:  # sums over all steps and rows need float32
        given: Any = (grads, operands, kept)
        wide = [[each if each is None else each.astype(numpy.float32) for each in every] for every in given]
        result = _back_on_arrays(wide[0], wide[1], wide[2], kind, sizes, reverse)
        return tuple([each if each is None else each.astype(short) for each in result])
    input = operands[0]
    flat = [None if each is None else each.reshape(-1, each.shape[-1]) for each in (grads[0], input)]
    rest: Any = (*operands[1:], *kept, sizes, reverse)
    result = rnn.backward(array_module_of(input), kind, (flat[0], *grads[1:]), flat[1], *rest)
    return (result[0].reshape(input.shape), *result[1:])


def _back_on_tensors(
    grads: Sequence[Any], operands: Sequence[Any], kept: Sequence[Any], kind: str, sizes: Sequence[int], reverse: bool
) -> tuple[Any, ...]:
    """Return the gradients of a recurrent layer with respect to ``operands``, for second derivatives.

    The gradients are computed by differentiable operations. ``operands`` are the input, the initial states and the
    weights of the layer. ``grads`` are the gradients of the hidden states, the last hidden state and the last cell
    state. ``kept`` holds the arrays that the forward pass saved. Here they are not used, because they cannot be
    differentiated: the gates and cell states are computed again. ``kind``, ``sizes`` and ``reverse`` are the parameters
    of the layer.
    """
    input, hidden, cell, w_ih, w_hh, b_ih, b_hh, w_hr = operands
    x = input.reshape(-1, input.shape[-1])
    of_out, dh, dc = grads
    of_out = None if of_out is None else of_out.reshape(-1, of_out.shape[-1])
    dh = zeros_like(hidden) if dh is None else dh
    dc = zeros_like(cell) if dc is None and cell is not None else dc
    spans = list(rnn.steps(sizes, reverse))
    steps_done = []
    for size, span in spans:
        h, c = hidden[:size], None if cell is None else cell[:size]
        gates = _gates(kind, x[span], h, w_ih, w_hh, b_ih, b_hh)
        new, after = _next_state(kind, gates, h, c)
        steps_done.append((gates, h, c, after, new))
        hidden = cat([new if w_hr is None else F.matmul(new, w_hr.t()), hidden[size:]])
        cell = None if after is None else cat([after, cell[size:]])
    result = []
    for (size, span), (gates, h, c, after, new) in zip(reversed(spans), reversed(steps_done), strict=True):
        d = arrived = dh[:size] if of_out is None else dh[:size] + of_out[span]
        if w_hr is not None:
            d = F.matmul(arrived, w_hr)
        outer, inner, past, of_cell = _step_back(kind, gates, d, None if dc is None else dc[:size], h, c, after)
        into = F.matmul(inner, w_hh)
        dh = cat([into if past is None else into + past, dh[size:]])
        dc = None if of_cell is None else cat([of_cell, dc[size:]])
        result.append((span.start, outer, inner, h, arrived, new))
    result.sort(key=lambda each: each[0])
    outer, inner, before, arrived, new = (cat(list(each)) for each in list(zip(*result, strict=True))[1:])
    return (
        F.matmul(outer, w_ih).reshape(input.shape), dh, dc, F.matmul(outer.t(), x), F.matmul(inner.t(), before),
        None if b_ih is None else outer.sum(0), None if b_hh is None else inner.sum(0),
        None if w_hr is None else F.matmul(arrived.t(), new),
    )  # fmt: skip


rule_function("recurrent_back", _back_on_arrays, _back_on_tensors)


def _gates(kind: str, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, ...]:
    """Return the gates of one time step of a recurrent layer for the input ``x`` and the hidden state ``h``.

    For an LSTM, the result is the tuple (input gate, forget gate, cell gate, output gate). For a GRU, it is the tuple
    (reset gate, update gate, new gate, part), where ``part`` is the term of the new gate that is multiplied by the
    reset gate. An RNN has no gates: the result is a tuple with only its new hidden state.
    """
    if kind == "GRU":
        return _gates_of_gru(linear(x, w_ih, b_ih).chunk(3, 1), linear(h, w_hh, b_hh).chunk(3, 1))
    total = _sum_of_products(x, h, w_ih, w_hh, b_ih, b_hh)
    if kind == "LSTM":
        enter, keep, new, leave = total.chunk(4, 1)
        return F.sigmoid(enter), F.sigmoid(keep), F.tanh(new), F.sigmoid(leave)
    return (F.tanh(total) if kind == "RNN_TANH" else F.relu(total),)


def _gates_of_gru(of_input: Sequence[Any], of_state: Sequence[Any]) -> tuple[Any, ...]:
    """Return the gates of a GRU as :func:`_gates` does.

    ``of_input`` and ``of_state`` are the three parts of the products of the input and the state with their weights.
    """
    reset, update = F.sigmoid(of_state[0] + of_input[0]), F.sigmoid(of_state[1] + of_input[1])
    return reset, update, F.tanh(of_input[2] + of_state[2] * reset), of_state[2]


def _next_state(kind: str, gates: tuple[Any, ...], h: Any, c: Any) -> tuple[Any, Any]:
    """Return the hidden state and the cell state of a recurrent layer after one step.

    ``gates`` is the result of ``_gates``. ``h`` and ``c`` are the hidden state and the cell state before the step. The
    cell state is None except for an LSTM.
    """
    if kind == "LSTM":
        enter, keep, new, leave = gates
        c = keep * c + enter * new
        return leave * F.tanh(c), c
    return (gates[0] if kind.startswith("RNN") else (h - gates[2]) * gates[1] + gates[2]), None


def _step_back(kind: str, gates: tuple[Any, ...], d: Any, dc: Any, h: Any, c: Any, after: Any) -> tuple[Any, ...]:
    """Return the four gradients that the backward pass computes for one time step of a recurrent layer.

    The result is the tuple (gradient of ``w_ih @ x + b_ih``, gradient of ``w_hh @ h + b_hh``, gradient of ``h``,
    gradient of ``c``). The gradient of ``h`` does not include the part through ``w_hh @ h``, and is None except for a
    GRU. The gradient of ``c`` is None except for an LSTM.

    ``gates`` is the result of :func:`_gates`. ``h`` and ``c`` are the hidden state and the cell state before the step,
    and ``after`` is the cell state after the step. ``d`` is the gradient of the new hidden state, and ``dc`` that of
    ``after``.
    """
    if kind == "LSTM":
        enter, keep, new, leave = gates
        bent = F.tanh(after)
        dc = dc + d * leave * (1 - bent * bent)
        into = (dc * new * enter * (1 - enter), dc * c * keep * (1 - keep), dc * enter * (1 - new * new),
                d * bent * leave * (1 - leave))  # fmt: skip
        both = cat(list(into), 1)
        return both, both, None, dc * keep
    if kind == "GRU":
        reset, update, new, part = gates
        dn = d * (1 - update) * (1 - new * new)
        shared_part = [dn * part * reset * (1 - reset), d * (h - new) * update * (1 - update)]
        return cat([*shared_part, dn], 1), cat([*shared_part, dn * reset], 1), d * update, None
    value = gates[0]
    inner = d * (1 - value * value) if kind == "RNN_TANH" else d * (value > 0)
    return inner, inner, None, None


# -- Cells -----------------------------------------------------------------------------------------------------------


def _sum_of_products(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
    return linear(hx, w_hh, b_hh) + linear(input, w_ih, b_ih)


def _check_gates(w_ih: Tensor, hidden: Tensor, gates: int) -> None:
    """Raise RuntimeError if ``w_ih`` has not ``gates`` rows for each element of the state ``hidden`` (N, hidden)."""
    size = hidden._array.shape[-1] if hidden._array.ndim else 0
    if w_ih._array.ndim == 2 and w_ih._array.shape[0] != gates * size:
        raise RuntimeError(
            f"weight_ih first dim must be {gates} * hidden_size = {gates * size}, but got {w_ih._array.shape[0]}"
        )


@public(method=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return ``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)`` for each row: one step of a recurrent layer.

    ``input`` has shape (N, in). The hidden state ``hx`` and the result have shape (N, hidden).
    """
    return F.tanh(_sum_of_products(input, hx, w_ih, w_hh, b_ih, b_hh))


@public(method=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return ``relu(w_ih @ input + b_ih + w_hh @ hx + b_hh)`` for each row: one step of a recurrent layer.

    ``input`` has shape (N, in). The hidden state ``hx`` and the result have shape (N, hidden).
    """
    return F.relu(_sum_of_products(input, hx, w_ih, w_hh, b_ih, b_hh))


@public(method=False)
def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the new hidden state and cell state after one step of a long short-term memory (LSTM).

    ``input`` has shape (N, in). ``hx`` is the pair of hidden state and cell state, of shape (N, hidden) each. See
    Hochreiter and Schmidhuber 1997.
    """
    hidden, cell = hx
    _check_gates(w_ih, hidden, 4)
    enter, keep, new, leave = unsafe_chunk(_sum_of_products(input, hidden, w_ih, w_hh, b_ih, b_hh), 4, 1)
    cell = F.sigmoid(keep) * cell + F.sigmoid(enter) * F.tanh(new)
    return F.sigmoid(leave) * F.tanh(cell), cell


@public(method=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return the new hidden state after one step of a gated recurrent unit (GRU; Cho et al. 2014).

    ``input`` has shape (N, in). The hidden state ``hx`` and the result have shape (N, hidden).
    """
    _check_gates(w_ih, hx, 3)
    of_input, of_state = linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)
    # With frozen weights the composition does not save ``hx``, which may then be modified before the backward pass.
    if (w_hh._grad_edge is not None or not recording()) and _is_usual(of_input, of_state, hx):
        return gru_step(of_input, of_state, hx)[0]
    gates = _gates_of_gru(unsafe_chunk(of_input, 3, 1), unsafe_chunk(of_state, 3, 1))
    return _next_state("GRU", gates, hx, None)[0]


def _is_usual(of_input: Any, of_state: Any, hx: Any) -> bool:
    """Whether :func:`gru_step` may compute a cell: matrices on the CPU, and nothing observes the single operations."""
    if HANDLERS or recording() is HOOKED or not {type(of_input), type(of_state), type(hx)} <= PLAIN:
        return False
    x, s, h = of_input._array, of_state._array, hx._array
    return bool(
        x.__class__ is s.__class__ is h.__class__ is numpy.ndarray
        and x.dtype is s.dtype is h.dtype
        and (h.dtype is F32 or h.dtype is F64)
        and x.shape == s.shape == (len(h), 3 * h.shape[-1])
    )


@shared
def _gates_rule(F: Any, g: Any, of_input: Any, of_state: Any, hidden: Any, gates: Any) -> tuple[Any, ...]:
    return F.gru_step_back(g, of_input, of_state, hidden, gates)


@op(function=False, method=False, backward="AddBackward0", outputs=("out", "gates"), differentiable=1)
def gru_step(np: Any, of_input: Any, of_state: Any, hidden: Any, /) -> tuple[Any, Any]:
    """Return the new hidden state of a GRU and its gates, as :func:`retrograd.kernels.rnn.gru_step` does.

    ``of_input`` and ``of_state`` (N, 3 * hidden) are the products of the input and of ``hidden`` (N, hidden), the state
    before the step, with their weights.
    """
    gates = np.empty((4, *hidden.shape), hidden.dtype)
    loop = rnn.step_loop("gru_step", hidden.size, hidden, of_input, of_state)
    return rnn.gru_step(np, loop, gates, 0, of_input, of_state, hidden), gates


gru_step.derivative(of_input=_gates_rule, of_state=_gates_rule, hidden=_gates_rule)


def _gates_back_on_arrays(grad: Any, of_input: Any, of_state: Any, hidden: Any, gates: Any) -> tuple[Any, ...]:
    np = array_module_of(grad)
    outer, inner = np.empty(of_input.shape, grad.dtype), np.empty(of_state.shape, grad.dtype)
    loop = rnn.step_loop("gru_back", hidden.size, grad, hidden, gates)
    rest = rnn.gru_back(np, loop, gates, 0, inner, outer, grad, hidden)
    return outer, inner, rest


def _gates_back_on_tensors(grad: Any, of_input: Any, of_state: Any, hidden: Any, gates: Any) -> tuple[Any, ...]:
    """Return the gradients of :func:`gru_step` by differentiable operations, which compute the gates again."""
    outer, inner, rest, _ = _step_back(
        "GRU", _gates_of_gru(of_input.chunk(3, 1), of_state.chunk(3, 1)), grad, None, hidden, None, None
    )
    return outer, inner, rest


rule_function("gru_step_back", _gates_back_on_arrays, _gates_back_on_tensors)


# -- Stacked layers --------------------------------------------------------------------------------------------------


def _split(args: tuple[Any, ...]) -> tuple[Any, Any, Any, tuple[Any, ...], bool]:
    """Return ``args``, the arguments of a function such as ``lstm``, as (data, sizes, state, rest, ``batch_first``).

    These functions accept two lists of arguments: for padded and for packed sequences. In the data, time is the first
    dimension. The sizes are the batch size of each time step, or None for padded sequences. The state is the initial
    state, and the rest is the tuple of the further arguments.
    """
    if isinstance(args[1], Tensor) and isinstance(args[3], (list, tuple)):
        data, sizes, hx, params, *rest = args
        return data, [int(each) for each in sizes.tolist()], hx, (params, *rest), False
    *first, batch_first = args
    input, hx, params, *rest = first
    if batch_first:
        input = transpose(input, 0, 1)
    return input, None, hx, (params, *rest), batch_first


def _run(kind: str, args: tuple[Any, ...]) -> tuple[Any, list[Tensor], list[Tensor]]:
    """Compute stacked recurrent layers; return the tuple (output, last hidden states, last cell states).

    The two lists of states have one tensor for each layer and direction. ``kind`` is ``"RNN_TANH"``, ``"RNN_RELU"``,
    ``"LSTM"`` or ``"GRU"``. ``args`` are the arguments of ``rnn_tanh``, ``rnn_relu``, ``lstm`` or ``gru``.
    """
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
        input = transpose(input, 0, 1) if kind == "LSTM" else input.transpose_(0, 1)  # as in PyTorch's graph
    return input, lasts, cells


_PARAMETERS = (
    "input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first",
)  # fmt: skip
_PACKED_PARAMETERS = ("data", "batch_sizes", *_PARAMETERS[1:-1])


def _layered(kind: str, name: str, what: str) -> None:
    def layers(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        names = _PACKED_PARAMETERS if "data" in kwargs or "batch_sizes" in kwargs else _PARAMETERS
        args = (*args, *[kwargs.pop(each) for each in names[len(args) :] if each in kwargs])
        if kwargs or len(args) != len(names):
            raise TypeError
        out, lasts, cells = _run(kind, args)
        return (out, stack(lasts), stack(cells)) if kind == "LSTM" else (out, stack(lasts))

    layers.__name__ = layers.__qualname__ = name
    layers.__doc__ = (
        f"Return the output and the last states of layers of {what}.\n\n"
        f"``nn.{name.partition('_')[0].upper()}`` calls this function. The arguments are ``(input, hx, params, has_biases,\n"
        "num_layers, dropout, train, bidirectional, batch_first)``, or for packed sequences\n"
        "``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``."
    )
    public(method=False, name=name)(layers)


_layered("RNN_TANH", "rnn_tanh", "recurrent units with tanh")
_layered("RNN_RELU", "rnn_relu", "recurrent units with relu")
_layered("LSTM", "lstm", "long short-term memories")
_layered("GRU", "gru", "gated recurrent units")

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]
