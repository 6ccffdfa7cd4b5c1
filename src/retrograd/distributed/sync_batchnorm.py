"""``SyncBatchNorm``: batch normalisation with the statistics of all ranks of a process group.

With ``n`` values of a channel in a rank, their mean ``m`` and their sum of squared deviations ``s``, the statistics of
all ranks are

    mean = sum(n m) / sum(n)        variance = sum(s + n (m - mean)²) / sum(n)

which, unlike a sum of squares, loses no digits to cancellation. One all-gather in the forward pass and one all-reduce in
the backward pass are needed, both of two numbers for each channel. All ranks compute with the same gathered numbers, so
they get the same bits.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd.function import Function
from ..core.dtypes import float32
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..operations.creation.factory import empty
from ..operations.shape.join import cat
from .collectives import all_gather_single, all_reduce
from .groups import ProcessGroup, _checked_group, is_initialized


class _SyncBatchNormFunction(Function):
    """Batch normalisation in training mode, whose statistics are those of all ranks of ``group``."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
        running_var: Tensor | None, eps: float, momentum: float, group: ProcessGroup,
    ) -> Tensor:  # fmt: skip
        x = input if input.element_size() >= 4 else input.to(float32)
        channels, dims = x.shape[1], [0, *range(2, x.ndim)]
        count = math.prod(x.shape) // channels
        total, shape = x.new_zeros(channels), [1, channels] + [1] * (x.ndim - 2)
        mean, squares = total, total
        if count:
            mean = x.mean(dims)
            squares = (x - mean.view(shape)).square().sum(dims)
        mine = cat([mean, squares, x.new_full((1,), count)])
        gathered = empty(group.size(), mine.numel(), dtype=mine.dtype, device=mine.device)
        all_gather_single(gathered.view(-1), mine, group)
        means, squares, counts = gathered[:, :channels], gathered[:, channels:-1], gathered[:, -1:]
        number = counts.sum()
        mean = (means * counts).sum(0) / number
        variance = (squares + counts * (means - mean).square()).sum(0) / number
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        if running_var is not None:
            unbiased = variance * (number / (number - 1)) if number > 1 else variance
            running_var.mul_(1 - momentum).add_(unbiased, alpha=momentum)
        scale = (variance + eps).rsqrt()
        normal = (x - mean.view(shape)) * scale.view(shape)
        ctx.save_for_backward(normal, scale, weight)
        ctx.total, ctx.group, ctx.stretched, ctx.axes = number, group, shape, dims
        if weight is not None:
            normal = normal * weight.view(shape)
        if bias is not None:
            normal = normal + bias.view(shape)
        return normal.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        normal, scale, weight = ctx.saved_tensors
        wide = grad.to(normal.dtype)
        sums = cat([wide.sum(ctx.axes), (wide * normal).sum(ctx.axes)])
        channels = scale.shape[0]
        of_bias, of_weight = sums[:channels].clone(), sums[channels:].clone()
        of_input = None
        all_reduce(sums, group=ctx.group)
        if ctx.needs_input_grad[0]:
            sums /= ctx.total
            mean, slope = sums[:channels].view(ctx.stretched), sums[channels:].view(ctx.stretched)
            factor = scale if weight is None else scale * weight
            of_input = ((wide - mean - normal * slope) * factor.view(ctx.stretched)).to(grad.dtype)
        needed = ctx.needs_input_grad
        return of_input, of_weight if needed[1] else None, of_bias if needed[2] else None, *[None] * 5


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks of ``process_group``, by default of the default group.

    The batches of the ranks may have different sizes. Outputs and gradients of the input are those of the corresponding
    part of one whole batch; gradients of ``weight`` and ``bias`` are sums over the batch of the rank, which
    ``DistributedDataParallel`` averages. In evaluation mode, in a group of one process, or without one, the result is
    that of ``BatchNorm1d``, ``BatchNorm2d`` or ``BatchNorm3d``. Inputs on the CPU are accepted, which PyTorch refuses
    while a group exists.

    Raises ValueError for an input with less than 2 dimensions, or without channels.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Return ``(input - mean) / sqrt(variance + eps) * weight + bias``, with the statistics of all ranks."""
        if not (self.training and is_initialized()) or _checked_group(self.process_group).size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        average = 0.0 if self.momentum is None else self.momentum
        if self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                average = 1.0 / float(self.num_batches_tracked)
        mean, variance = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        result: Tensor = _SyncBatchNormFunction.apply(
            input, self.weight, self.bias, mean, variance, self.eps, average, _checked_group(self.process_group)
        )
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return ``module`` with its batch normalisation layers replaced by :class:`SyncBatchNorm`.

        The new layers have the parameters and buffers of the layers that they replace. A ``module`` that is itself such
        a layer is not changed.
        """
        result: Module = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.affine and module.bias is not None,
            )  # fmt: skip
            if module.affine:
                with no_grad():
                    result.weight = module.weight
                    if module.bias is not None:
                        result.bias = module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


SyncBatchNorm.__module__ = "torch.nn.modules.batchnorm"
__all__ = ["SyncBatchNorm"]
