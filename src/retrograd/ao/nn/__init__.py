"""``torch.ao.nn``: only ``quantized.FloatFunctional``."""

from . import quantized

__all__ = ["quantized"]
