"""``SummaryWriter``: logging of training programs for TensorBoard, as in ``torch.utils.tensorboard``.

This package requires the package ``tensorboard``. If it is not installed, the import raises ModuleNotFoundError with
the text "No module named 'tensorboard'", as in PyTorch.
"""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
