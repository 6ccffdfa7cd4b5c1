"""``torch.utils.data.datapipes``: data sets that are composed of steps, such as ``IterableWrapper(x).map(f).batch(2)``.

Each class of a step that is decorated by :func:`functional_datapipe` is a method of all data pipes.
"""

from . import iter as iter
from . import map as map

__all__ = ["iter", "map"]
