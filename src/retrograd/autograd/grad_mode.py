"""The switches of recording, as ``torch.autograd.grad_mode``."""

from ..compat.missing_names import absent, listed
from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
__getattr__, __dir__ = absent(__name__), listed(globals())
