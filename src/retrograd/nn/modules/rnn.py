"""Recurrent layers and cells: RNN, LSTM, GRU, RNNCell, LSTMCell and GRUCell."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...dispatch.declare import package_function
from ...dispatch.intercept import GO_ON, HANDLERS, intercept
from ...operations.creation.factory import empty, zeros
from ...runtime.user_frame import warn
from .. import init
from ..packed_sequence import PackedSequence
from ..parameter import Parameter
from .module import Module

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _shown(layer: Any, **usual: Any) -> str:
    """Return the text for the ``repr`` of ``layer``: its sizes, and the attributes that differ from their defaults.

    ``usual`` maps the names of these attributes to their default values.
    """
    text = f"{layer.input_size}, {layer.hidden_size}"
    for name, value in usual.items():
        if getattr(layer, name) != value:
            text += f", {name}={getattr(layer, name)}"
    return text


def _draw_parameters(layer: Any) -> None:
    """Draw new values of all parameters uniformly between ``-1 / sqrt(hidden_size)`` and ``1 / sqrt(hidden_size)``."""
    bound = 1.0 / math.sqrt(layer.hidden_size) if layer.hidden_size > 0 else 0
    for weight in layer.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """Base class of RNN, LSTM and GRU: registers the weights of all layers and directions, and defines ``forward``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.RNNBase("GRU", 10, 20)
    >>> layer.weight_ih_l0.shape
    torch.Size([60, 10])
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check(dropout)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                self._all_weights.append(self._add_layer(layer, suffix, device, dtype))
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def _check(self, dropout: Any) -> None:
        """Raise TypeError or ValueError if ``dropout`` or another argument of ``__init__`` is invalid."""
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
            )
        if not isinstance(self.hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(self.hidden_size).__name__}")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_layer(self, layer: int, suffix: str, device: Any, dtype: Any) -> list[str]:
        """Register the weights and biases of layer number ``layer`` for one direction and return their names.

        ``suffix`` is ``"_reverse"`` for the backward direction, and empty for the forward direction.
        """
        rows = GATES[self.mode] * self.hidden_size
        state = self.proj_size or self.hidden_size
        seen = self.input_size if layer == 0 else state * (2 if self.bidirectional else 1)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, seen), "weight_hh": (rows, state)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            setattr(self, names[-1], Parameter(empty(shape, device=device, dtype=dtype)))
        return names

    reset_parameters = _draw_parameters

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_flat_weights": self._flat_weights,
        }  # state entries of PyTorch's layer, which stores these lists

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: each for name, each in state.items() if name != "_flat_weights"})

    @property
    def all_weights(self) -> list[list[Any]]:
        """Return the weights and biases as a list of lists, with one inner list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing.

        In PyTorch this method copies the weights to contiguous memory for cuDNN, which retrograd does not use.
        """

    def extra_repr(self) -> str:
        """Return the sizes, and all arguments that differ from their defaults, as text for the ``repr``."""
        return _shown(self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)

    # -- call

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the pair ``(output, state)`` for the sequences in ``input``.

        ``output`` is the output of the last layer at each time step. ``state`` is the final state of all layers; for an
        LSTM it is a pair ``(hidden, cell)``. ``input`` has shape (time, batch, features), or (batch, time, features) if
        ``batch_first`` is true. It may also be one sequence (time, features), or a :class:`PackedSequence`. ``hx`` is
        the initial state of all layers and directions, by default zeros.
        """
        packed = isinstance(input, PackedSequence)
        data, sizes, order, back = input if packed else (input, (0,), None, None)
        self._check_dtype(data)
        if packed:
            alone, batch = False, int(sizes[0])
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
            alone = input.dim() == 2
            if alone:
                data = input.unsqueeze(0 if self.batch_first else 1)
            batch = data.size(0 if self.batch_first else 1)
        if data.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.size(-1)}"
            )
        states = self._first_states(hx, data, batch, alone, packed, order)
        shared = self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        forward_function = package_function(
            self.mode.lower()
        )  # the public function, so that __torch_function__ applies
        state = states if self.mode == "LSTM" else states[0]
        if packed:
            out, *final_states = forward_function(data, sizes, state, self._flat_weights, *shared)
            out = PackedSequence(out, sizes, order, back)
        else:
            out, *final_states = forward_function(data, state, self._flat_weights, *shared, self.batch_first)
        if back is not None:
            final_states = [each.index_select(1, back) for each in final_states]
        if alone:
            out = out.squeeze(0 if self.batch_first else 1)
            final_states = [each.squeeze(1) for each in final_states]
        return out, tuple(final_states) if self.mode == "LSTM" else final_states[0]

    def _check_dtype(self, data: Tensor) -> None:
        """Raise ValueError if the dtype of ``data`` differs from the dtype of the weights."""
        if HANDLERS and intercept(RNNBase._check_dtype, (self, data), {}) is not GO_ON:  # autocast converts ``data``
            return
        own = self._flat_weights[0].dtype
        if data.dtype != own:
            raise ValueError(
                f"RNN input dtype ({data.dtype}) does not match weight dtype ({own}). Convert input: input.to({own}), or "
                f"convert model: model.to({data.dtype})"
            )

    def _sizes(self, batch: int) -> list[tuple[int, int, int]]:
        """Return a list of the shapes of the states for ``batch`` sequences.

        The first item is the shape of the hidden states. For an LSTM, the second item is the shape of the cell states.
        """
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [(rows, batch, self.proj_size or self.hidden_size)]
        return [*sizes, (rows, batch, self.hidden_size)] if self.mode == "LSTM" else sizes

    def _first_states(
        self, hx: Any, data: Tensor, batch: int, alone: bool, packed: bool, order: Tensor | None
    ) -> list[Tensor]:
        """Return a list of the initial hidden states and, for an LSTM, the initial cell states.

        ``hx`` is the argument of ``forward``. If it is None, the states are zeros with the dtype and device of
        ``data``, for ``batch`` sequences. Otherwise RuntimeError is raised if a state in ``hx`` has a wrong shape.

        If ``alone`` is true, the input is one sequence without a batch dimension, and a batch dimension of size 1 is
        added to the states. If ``packed`` is true, the input is a PackedSequence. If ``order`` is not None, it is the
        permutation by which the sequences were sorted, and it is also applied to the batch dimension of the states.
        """
        sizes = self._sizes(batch)
        if hx is None:
            return [zeros(size, dtype=data.dtype, device=data.device) for size in sizes]
        several = self.mode == "LSTM"
        states = [hx[0], hx[1]] if several else [hx]
        if not packed:
            expected = 2 if alone else 3
            if any(each.dim() != expected for each in states):
                dims = ", ".join(f"{each.dim()}-D" for each in states)
                which = "hx and cx should" if several else "hx should"
                got = f"({dims}) tensors" if several else f"{dims} tensor"
                kind = "unbatched 2-D" if alone else "batched 3-D"
                raise RuntimeError(f"For {kind} input, {which} also be {expected}-D but got {got}")
            states = [each.unsqueeze(1) for each in states] if alone else states
        for index, (each, size) in enumerate(zip(states, sizes, strict=True)):
            if each.shape != size:
                which = f"hidden[{index}]" if several else "hidden"
                raise RuntimeError(f"Expected {which} size {size}, got {list(each.shape)}")
        return states if order is None else [each.index_select(1, order) for each in states]


class RNN(RNNBase):
    """Elman recurrent layers: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at each time step (Elman 1990).

    x is the input and h the hidden state. The signature is ``RNN(input_size, hidden_size, num_layers=1,
    nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False)``. With
    ``nonlinearity="relu"``, ``tanh`` is replaced by ``relu``. ``dropout`` is the dropout probability between layers.

    >>> import retrograd as torch
    >>> out, last = torch.nn.RNN(10, 20, 2)(torch.ones(5, 3, 10))
    >>> out.shape, last.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            self_nonlinearity, args = args[3], (*args[:3], *args[4:])
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self_nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = self_nonlinearity


class LSTM(RNNBase):
    """Long short-term memory layers (Hochreiter and Schmidhuber 1997).

    The state is the pair of the hidden state and the cell state. The signature is ``LSTM(input_size, hidden_size,
    num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0)``. If ``proj_size`` is
    not 0, the hidden state is projected to this size. ``dropout`` is the dropout probability between layers.

    >>> import retrograd as torch
    >>> out, (hidden, cell) = torch.nn.LSTM(10, 20)(torch.ones(5, 3, 10))
    >>> out.shape, hidden.shape, cell.shape
    (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit layers (Cho et al. 2014).

    The signature is ``GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False)``. ``dropout`` is the dropout probability between layers.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> output, hidden = nn.GRU(10, 20, num_layers=2)(torch.ones(5, 3, 10))
    >>> output.shape, hidden.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


# -- Cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """Base class of RNNCell, LSTMCell and GRUCell: registers the weights and biases, and defines ``forward``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> isinstance(nn.GRUCell(10, 20), nn.RNNCellBase)
    True
    """

    function: ClassVar[Any]
    states: ClassVar[int] = 1
    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        for name, shape in shapes.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    reset_parameters = _draw_parameters

    def extra_repr(self) -> str:
        """Return the sizes, and all arguments that differ from their defaults, as text for the ``repr``."""
        return _shown(self, bias=True)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the state after one time step with the input ``input`` (batch, features) and the state ``hx``.

        The state is the hidden state; for an LSTMCell, it is the pair ``(hidden, cell)``. The default of ``hx`` is
        zeros.
        """
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        alone = input.dim() == 1
        if alone:
            input = input.unsqueeze(0)
        if hx is None:
            states = [zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)] * self.states
        else:
            states = list(hx) if self.states > 1 else [hx]
            for index, each in enumerate(states):
                if each.dim() not in (1, 2):
                    which = f"hx[{index}]" if self.states > 1 else "hidden"
                    raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {each.dim()}D instead")
            states = [each.unsqueeze(0) for each in states] if alone else states
        self._check_sizes(input, states)
        result = self._step(input, tuple(states) if self.states > 1 else states[0])
        if not alone:
            return result
        return tuple(each.squeeze(0) for each in result) if self.states > 1 else result.squeeze(0)

    def _check_sizes(self, input: Tensor, states: list[Tensor]) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        for index, each in enumerate(states):
            if input.size(0) != each.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{index} batch size {each.size(0)}"
                )
            if each.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{index} has inconsistent hidden_size: got {each.size(1)}, expected {self.hidden_size}"
                )

    def _step(self, input: Tensor, state: Any) -> Any:
        return type(self).function(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class RNNCell(RNNCellBase):
    """Cell that computes one time step of an :class:`RNN` layer: the new hidden state.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.RNNCell(10, 20)(torch.ones(3, 10), torch.zeros(3, 20)).shape
    torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        """Return the sizes, and all arguments that differ from their defaults, as text for the ``repr``."""
        return _shown(self, bias=True, nonlinearity="tanh")

    def _step(self, input: Tensor, state: Any) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = package_function(f"rnn_{self.nonlinearity}_cell")
        return cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class LSTMCell(RNNCellBase):
    """Cell that computes one time step of an :class:`LSTM` layer: the new pair ``(hidden, cell)``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> hidden, cell = nn.LSTMCell(10, 20)(torch.ones(3, 10))
    >>> hidden.shape, cell.shape
    (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    function = staticmethod(package_function("lstm_cell"))
    states = 2

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)


class GRUCell(RNNCellBase):
    """Cell that computes one time step of a :class:`GRU` layer: the new hidden state.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.GRUCell(10, 20)(torch.ones(3, 10), torch.zeros(3, 20)).shape
    torch.Size([3, 20])
    """

    function = staticmethod(package_function("gru_cell"))

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]
