"""Exceptions of ``torch._dynamo.exc``: those that the compiler raises, and others that programs name in ``except``."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """Base class of the errors of the compiler."""


class Unsupported(TorchDynamoException):
    """Error for a call that cannot be one graph, raised if the function was compiled with ``fullgraph=True``."""


class InvalidBackend(TorchDynamoException):
    """Error for a name that is not that of a backend."""


class InternalTorchDynamoError(TorchDynamoException):
    """Error within PyTorch's compiler; not raised, because what cannot be compiled runs in eager mode."""


class BackendCompilerFailed(TorchDynamoException):
    """Error of a backend of PyTorch's compiler; not raised."""


class TorchRuntimeError(TorchDynamoException):
    """Error of an operation in PyTorch's compiler; not raised, because operations raise the errors of eager mode."""


class UserError(TorchDynamoException):
    """Error for a program that PyTorch's compiler does not support; not raised."""


class RecompileError(TorchDynamoException):
    """Error for a function that PyTorch compiles again; not raised, because another path is another program."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """Error of functions such as ``cond`` in PyTorch's compiler; not raised."""


for _each in (
    TorchDynamoException, Unsupported, InvalidBackend, InternalTorchDynamoError, BackendCompilerFailed, TorchRuntimeError,
    UserError, RecompileError, UncapturedHigherOrderOpError,
):  # fmt: skip
    _each.__module__ = "torch._dynamo.exc"

__all__ = [
    "BackendCompilerFailed", "InternalTorchDynamoError", "InvalidBackend", "RecompileError", "TorchDynamoException",
    "TorchRuntimeError", "UncapturedHigherOrderOpError", "Unsupported", "UserError",
]  # fmt: skip
