"""Random tensors: PyTorch's numbers for a seed."""
