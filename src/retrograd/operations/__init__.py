"""The operations of tensors, each declared once with its kernel, its derivative rules and its properties."""
