"""BatchNorm1d, BatchNorm2d, BatchNorm3d, their lazy forms, and a base class of layers with running statistics."""

from __future__ import annotations

from typing import Any

from ...compat.lazy_imports import module_getattr
from ...core.dtypes import int64
from ...core.tensor import Tensor
from ...operations.creation.factory import empty, ones, zeros
from ...operations.creation.from_data import tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module


class _NormBase(Module):
    """Base class of normalisation layers with a weight, a bias, a running mean and a running variance per channel.

    Weight and bias are parameters. The running mean and running variance are buffers.
    """

    _version = 2  # version 2 added num_batches_tracked to the state
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(
                name, Parameter(empty(num_features, device=device, dtype=dtype)) if wanted else None
            )
        buffers: dict[str, Any] = dict.fromkeys(("running_mean", "running_var", "num_batches_tracked"))
        if track_running_stats:
            buffers["running_mean"] = zeros(num_features, device=device, dtype=dtype)
            buffers["running_var"] = ones(num_features, device=device, dtype=dtype)
            buffers["num_batches_tracked"] = tensor(0, dtype=int64, device=device)
        for name, value in buffers.items():
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and ``num_batches_tracked`` to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set ``weight`` to 1 and ``bias`` to 0, and reset the running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the constructor arguments as text for the ``repr`` of the layer."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self._parameters.get('bias') is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = count if count is not None else tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Base class of BatchNorm1d, BatchNorm2d and BatchNorm3d, which differ only in the accepted input shapes."""

    def forward(self, input: Tensor) -> Tensor:
        """Return ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel.

        In training mode, mean and variance are computed over the batch, and the running statistics are updated:
        ``running = (1 - momentum) * running + momentum * current``. With ``momentum=None``, the running statistics are
        the averages over all batches. In evaluation mode, mean and variance are the running statistics, or those of the
        batch if the layer has no running statistics (``track_running_stats=False``).
        """
        self._check_input_dim(input)
        average = 0.0 if self.momentum is None else self.momentum
        tracking = self.track_running_stats
        if self.training and tracking and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                average = 1.0 / float(self.num_batches_tracked)
        mean, variance = self.running_mean, self.running_var
        of_batch = self.training or (mean is None and variance is None)
        if self.training and not tracking:
            mean = variance = None
        return F.batch_norm(input, mean, variance, self.weight, self.bias, of_batch, average, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Base class of lazy normalisation layers, which infer ``num_features`` from the first input."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Reset the parameters and the running statistics; do nothing if the parameters are not allocated yet."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Allocate the parameters and running statistics for the number of channels of ``input``.

        The call has no effect if the parameters are already allocated.
        """
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        tensors = [self.weight, self.bias] * self.affine + [
            self.running_mean,
            self.running_var,
        ] * self.track_running_stats
        for each in tensors:
            if each is not None:
                each.materialize((self.num_features,))
        self.reset_parameters()


def _expects(*dims: int) -> Any:
    """Return a method that a layer calls to check its input, ``_check_input_dim(self, input)``.

    The method raises ValueError unless ``input.dim()`` is in ``dims``.
    """

    def _check_input_dim(self: Any, input: Tensor) -> None:
        if input.dim() not in dims:
            raise ValueError(f"expected {'D or '.join(map(str, dims))}D input (got {input.dim()}D input)")

    return _check_input_dim


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of an input of shape (N, C) or (N, C, L) (Ioffe and Szegedy 2015).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.BatchNorm1d(2)(torch.tensor([[1.0, 10.0], [3.0, 20.0]]))
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]], grad_fn=<NativeBatchNormBackward0>)
    """

    _check_input_dim = _expects(2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W) (Ioffe and Szegedy 2015).

    >>> import retrograd as torch
    >>> torch.nn.BatchNorm2d(3)(torch.rand(4, 3, 8, 8)).mean().abs() < 1e-6
    tensor(True)
    """

    _check_input_dim = _expects(4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W) (Ioffe and Szegedy 2015).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _check_input_dim = _expects(5)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """Variant of :class:`BatchNorm1d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(torch.ones(4, 3)).shape
    torch.Size([4, 3])
    >>> layer.num_features
    3
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """Variant of :class:`BatchNorm2d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(torch.ones(4, 3, 2, 2)).shape
    torch.Size([4, 3, 2, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """Variant of :class:`BatchNorm3d` whose ``num_features`` is inferred from the first input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(torch.ones(4, 3, 2, 2, 2)).shape
    torch.Size([4, 3, 2, 2, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"]
__getattr__ = module_getattr(__name__, {"SyncBatchNorm": ".sync_batchnorm"})
