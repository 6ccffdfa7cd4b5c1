"""``torch.ao``: the names of quantization that modules of floats have; see ``quantization.py``."""

from . import nn, quantization

__all__ = ["nn", "quantization"]
