"""Masked tensors and masked reductions: the counterpart of ``torch.masked``; see ``docs/masked.md``.

``_ops`` has the functions of dense tensors and a mask, ``maskedtensor`` the class ``MaskedTensor``. The package is
loaded on demand, and the class is registered for overrides when the first masked tensor is created.
"""

# ruff: noqa: F401 - PyTorch's names, among them private ones that packages import
from __future__ import annotations

from . import _ops as _ops
from ._ops import (
    _canonical_dim,
    _combine_input_and_mask,
    _input_mask,
    _output_mask,
    _reduction_identity,
    _where,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip
