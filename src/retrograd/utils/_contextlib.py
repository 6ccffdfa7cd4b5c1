"""``torch.utils._contextlib``: base classes of context managers that are decorators, too, such as ``no_grad``."""

from ..core.grad_mode import _DecoratorSwitch as _NoParamDecoratorContextManager
from ..core.grad_mode import _Switch as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]
