"""``torch.utils.tensorboard``: writes what a training program logs for TensorBoard, if the package tensorboard is there.

Without that package this module is not to be had: ModuleNotFoundError, "No module named 'tensorboard'", as PyTorch's.
"""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
