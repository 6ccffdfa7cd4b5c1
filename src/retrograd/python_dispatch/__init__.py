"""``__torch_dispatch__``: modes and subclasses of Tensor that receive the basic operations below autograd.

Note [Dispatch below autograd]. While a ``TorchDispatchMode`` is active, or once a subclass with a ``__torch_dispatch__``
has an instance, :data:`calls.handler` intercepts the public functions. It replaces their tensors by
:class:`calls.Operand`, a wrapper that leaves the fast path, so that every operation arrives at ``Operand.process`` with
its operands: ``apply`` without the kernel. There the operation gets PyTorch's name and arguments (``aten_calls.py``), the
handlers get the call, and the result is recorded in the graph as usual. A function that is no operation (``cat``,
``zeros``) is passed to the handlers as a whole. A backward pass computes with tensors, so that its operations arrive in the
same way.

The array of a wrapper subclass (:class:`subclasses.SubclassArray`) is a meta array that has the instance's attributes.
What a node saves of it becomes an instance again when an operation of the backward pass gets it.

The folder is loaded by the first use.
"""
