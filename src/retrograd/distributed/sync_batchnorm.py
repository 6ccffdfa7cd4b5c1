"""``SyncBatchNorm``: batch normalisation with the statistics of all ranks of a process group."""

from __future__ import annotations

from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks of ``process_group``, by default of the default group.

    In a group of one process, or without one, the result is that of ``BatchNorm1d``, ``BatchNorm2d`` or
    ``BatchNorm3d``. Inputs on the CPU are accepted, which PyTorch refuses while a group exists.
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
