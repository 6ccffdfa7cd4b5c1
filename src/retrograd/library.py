"""``torch.library``: operations of the program's own, ``custom_op`` and ``register_autograd``.

A custom operation is a Python function, which is called as it is. With ``register_autograd`` it is recorded as one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .autograd.function import Function

#: The custom operations by name, such as ``"mylib::scale"``.
_OPERATIONS: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """Operation made by :func:`custom_op`; it calls the decorated function."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._qualname, self._function = name, function
        self._namespace, _, self._name = name.partition("::")
        self._recorded: Any = None
        self.__name__, self.__doc__ = getattr(function, "__name__", self._name), function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorded is None:
            return self._function(*args, **kwargs)
        return self._recorded.apply(*args, **kwargs)

    def register_fake(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``fn``, which computes only shapes; it is not used."""
        return fn

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None) -> Any:
        """Use ``fn`` for the CPU if ``device_types`` contains it. Without ``fn``, return a decorator."""
        if fn is None:
            return lambda function: self.register_kernel(device_types, function)
        types = [device_types] if isinstance(device_types, str) else device_types
        if types is None or "cpu" in types:
            self._function = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:  # fmt: skip
        """Use ``backward(ctx, *gradients)``, which returns the gradients of the arguments.

        ``setup_context(ctx, inputs, output)`` stores what ``backward`` needs.
        """
        operation = self

        class Recorded(Function):
            @staticmethod
            def forward(*args: Any) -> Any:
                return operation._function(*args)

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                if setup_context is not None:
                    setup_context(ctx, inputs, output)

        Recorded.backward = staticmethod(backward)  # type: ignore[method-assign]
        self._recorded = Recorded

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Sequence[str], device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Return an operation that calls ``fn``; without ``fn``, return a decorator. The other arguments have no effect.

    >>> import retrograd as torch
    >>> @torch.library.custom_op("mylib::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> twice(torch.ones(2)), torch.ops.mylib.twice(torch.ones(1))
    (tensor([2., 2.]), tensor([2.]))
    """
    if fn is None:
        return lambda function: custom_op(
            name, function, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags
        )
    if "::" not in name:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
    operation = _OPERATIONS[name] = CustomOpDef(name, fn)
    return operation


def _operation(op: Any) -> CustomOpDef:
    name = op if isinstance(op, str) else getattr(op, "_qualname", repr(op))
    if name not in _OPERATIONS:
        raise RuntimeError(f"Could not find the operator {name}")
    return _OPERATIONS[name]


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1) -> Any:
    """Return ``func``, which computes only shapes and is not used; without ``func``, return a decorator."""
    return _operation(op).register_fake if func is None else func


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Use ``func`` as the function of the operation ``op`` (see :meth:`CustomOpDef.register_kernel`)."""
    return _operation(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:  # fmt: skip
    """Use ``backward`` as the derivative of the operation ``op`` (see :meth:`CustomOpDef.register_autograd`)."""
    _operation(op).register_autograd(backward, setup_context=setup_context)


__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel"]
