"""``torch.signal.windows``: the window functions defined in ``operations/signal/windows.py``."""

from ..operations.signal.windows import *  # noqa: F403 - it says itself what it exports

__all__ = sorted(_name for _name in globals() if _name[0] != "_")
