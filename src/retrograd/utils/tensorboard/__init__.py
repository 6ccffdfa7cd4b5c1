"""``SummaryWriter``: logging of training programs for TensorBoard, as in ``torch.utils.tensorboard``.

The import requires the package ``tensorboard``. If that package is not installed, ModuleNotFoundError is raised with
the text "No module named 'tensorboard'", as in PyTorch.
"""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
