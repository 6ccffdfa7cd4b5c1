"""``torch.utils.tensorboard``: logging of training programs for TensorBoard; requires the package tensorboard.

Without that package the import raises ModuleNotFoundError, "No module named 'tensorboard'", as in PyTorch.
"""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
