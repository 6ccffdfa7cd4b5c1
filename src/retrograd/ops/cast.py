"""Changing dtype and device, copying, and leaving the tensor world: item, tolist, numpy, pickling."""
