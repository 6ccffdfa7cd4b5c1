"""The operations on tensors. Each operation is declared with its kernel, its derivative rules and its properties."""
