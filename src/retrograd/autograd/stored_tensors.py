"""``backward`` and ``grad`` of tensors whose elements are in another tensor, such as sparse and nested tensors.

The graph contains the stored tensors. The functions of this module replace each :class:`StoredTensor` by its stored tensor,
run the functions of ``autograd/backward.py``, and convert the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.layout_classes import StoredTensor, implements_in
from .backward import backward as run_backward
from .backward import grad as run_grad


def implement_gradients(
    table: dict[str, Callable[..., Any]],
    gradient_of: Callable[[Any, Any], Any],
    incoming_of: Callable[[Any, Any], Any],
) -> None:
    """Enter ``backward``, ``Tensor.backward`` and ``grad`` of a class of stored tensors in ``table``.

    ``gradient_of(x, gradient)`` returns the gradient of the tensor ``x`` from that of its stored tensor.
    ``incoming_of(out, gradient)`` returns the incoming gradient of the tensor that represents ``out`` in the graph.
    """
    implements = implements_in(table)

    def incoming(outputs: Any, gradients: Any) -> Any:
        if gradients is None:
            return None
        pairs = zip(_listed(outputs), _listed(gradients), strict=False)
        return tuple([None if each is None else incoming_of(out, each) for out, each in pairs])

    @implements()
    def backward(
        tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, create_graph: bool = False,
        grad_variables: Any = None, inputs: Any = None,
    ) -> None:  # fmt: skip
        given = grad_tensors if grad_variables is None else grad_variables
        run_backward(
            _each_stored(tensors), incoming(tensors, given), retain_graph, create_graph, inputs=_each_stored(inputs)
        )

    @implements()
    def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        found = run_grad(
            _each_stored(outputs), _each_stored(inputs), incoming(outputs, grad_outputs), *args, **kwargs
        )  # fmt: skip

        return tuple(
            [
                gradient_of(x, each) if isinstance(x, StoredTensor) and each is not None else each
                for x, each in zip(_listed(inputs), found, strict=True)
            ]
        )

    implement_method(table)


def implement_method(table: dict[str, Callable[..., Any]]) -> None:
    """Enter ``Tensor.backward`` in ``table``, which calls the function ``backward`` of the table."""

    @implements_in(table)("Tensor.backward")
    def backward_of(
        self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        given = None if gradient is None else (gradient,)
        table["backward"]((self,), given, retain_graph, create_graph, inputs=inputs)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (tuple, list)) else (value,)


def _each_stored(value: Any) -> Any:
    """Return ``value``, a tensor, several or None, with the stored tensor instead of each :class:`StoredTensor`."""
    if isinstance(value, dict):
        return {key: _each_stored(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(map(_each_stored, value))
    return value._stored if isinstance(value, StoredTensor) else value


__all__ = ["implement_gradients", "implement_method"]
