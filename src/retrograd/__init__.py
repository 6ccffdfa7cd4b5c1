"""PyTorch's tensors and autograd in readable Python: ``import retrograd as torch``."""

__version__ = "0.1.0"
