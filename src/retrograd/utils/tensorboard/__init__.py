"""``SummaryWriter``: logging of training programs for TensorBoard, as ``torch.utils.tensorboard``.

Requires the package tensorboard. Without it the import raises ModuleNotFoundError, "No module named 'tensorboard'", as
in PyTorch.
"""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
