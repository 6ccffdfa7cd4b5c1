"""Linear layers: Identity, Linear, Bilinear and LazyLinear."""

from __future__ import annotations

import math
from typing import Any

from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module


class Identity(Module):
    """Layer that returns its input. The arguments of the constructor have no effect.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Identity()(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` itself."""
        return input


class Linear(Module):
    """Layer that returns ``input @ weight.T + bias``.

    The last dimension of the input has size ``in_features``, and the last dimension of the result ``out_features``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Linear(20, 30)(torch.ones(128, 20)).shape
    torch.Size([128, 30])
    """

    weight: Any
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw ``weight`` and ``bias`` uniformly between ``-1 / sqrt(in_features)`` and ``1 / sqrt(in_features)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init._calculate_fan_in_and_fan_out(self.weight)[0]
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input @ weight.T + bias``."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return ``in_features``, ``out_features`` and ``bias`` as text."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """Subclass of :class:`Linear` without changes, used by MultiheadAttention for the output projection."""


class Bilinear(Module):
    """Layer that returns ``input1 @ weight[o] @ input2 + bias[o]`` for each output feature o.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Bilinear(20, 30, 40)(torch.ones(128, 20), torch.ones(128, 30)).shape
    torch.Size([128, 40])
    """

    weight: Any
    bias: Any

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw ``weight`` and ``bias`` uniformly between ``-1 / sqrt(in1_features)`` and ``1 / sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return ``input1 @ weight[o] @ input2 + bias[o]`` for each output feature o."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return ``in1_features``, ``in2_features``, ``out_features`` and ``bias`` as text."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """Variant of :class:`Linear` whose ``in_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyLinear(3)
    >>> layer(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    >>> layer
    Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new values of the parameters; do nothing if the parameters are not allocated yet."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set ``in_features`` to the size of the last dimension of ``input`` and allocate the parameters."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]
