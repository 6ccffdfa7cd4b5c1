"""``torch.distributed.optim``: an optimiser whose state is split over the ranks of a group."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
