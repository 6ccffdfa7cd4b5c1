"""The operations on tensors, such as ``add``, ``matmul`` and ``conv2d``.

The definition of an operation consists of its kernel (the function that computes the result on arrays), its derivative
rules and its properties.
"""
