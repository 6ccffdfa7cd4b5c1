"""Context managers that enable and disable the recording of operations (``torch.autograd.grad_mode``)."""

from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
