"""The operations on tensors.

Each operation is declared with its kernel (the function that computes the result on arrays), its derivative rules and
its properties.
"""
