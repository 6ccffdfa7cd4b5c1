"""Creating tensors: from data, from a rule, like others; PyTorch's old constructors."""
